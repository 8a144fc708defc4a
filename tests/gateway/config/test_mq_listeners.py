"""The [[mq_listener]] tables: what they say, and what is wrong with them."""

from pathlib import Path

import pytest

from gateway.config import ConfigurationError, Settings

MQ = '[[mq_listener]]\nlisten = "127.0.0.1:1414"\n'


def load(folder: Path, text: str) -> Settings:
    path = folder / "rfhbridge.toml"
    path.write_text(text, encoding="utf-8")
    return Settings.load(path)


def test_a_listener_has_defaults_and_the_mqtt_server_stays_open(tmp_path: Path) -> None:
    settings = load(tmp_path, MQ)
    (listener,) = settings.mq_listener
    assert (listener.name, str(listener.address), listener.is_secure) == ("mq", "127.0.0.1:1414", False)
    assert (listener.plain_passwords, listener.maximum_connections) == (False, 1_000)
    assert [each.name for each in settings.all_listeners] == ["default", "mq"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[mq_listener]]\n", "mq_listener#1.listen"),
        ('[[mq_listener]]\nlisten = "127.0.0.1:1883"\n', "is the address of listener 'default' already"),
        (MQ + '[[mq_listener]]\nname = "two"\nlisten = "0.0.0.0:1414"\n', "mq_listener#2.listen"),
        (MQ + '[[mq_listener]]\nlisten = "127.0.0.1:1415"\n', "mq_listener#2.name: there is a listener 'mq' already"),
        (MQ + "maximum_connections = 0\n", "maximum_connections"),
        (MQ + "transport = 'websocket'\n", "transport"),
        (MQ + 'tls.certificate = "a.pem"\n', "key: is missing"),
        (MQ + "[[mq_listener.channel]]\nname = 'A B'\n", "must be the name of a channel"),
        (MQ + "[[mq_listener.channel]]\nname = '*'\naddresses = ['10.1.2.3/8']\n", "must be an address or a network"),
        (
            MQ + "[[mq_listener.channel]]\nname = '*'\nusers = []\n",
            "channel#1.users: must not be empty: it would admit nobody",
        ),
        (MQ + "[[mq_listener.channel]]\nname = '*'\naddresses = []\n", "channel#1.addresses: must not be empty"),
        (MQ + "[[mq_listener.channel]]\nname = '*'\naddresses = ['10.1.2.3/16']\n", "write '10.1.0.0/16'"),
        (MQ + "[[mq_listener.channel]]\nname = '*'\nusers = ['billing']\n", "nobody can be 'billing'"),
        (MQ + "[[mq_listener.channel]]\nname = '*'\nusers = ['a*b']\n", "must be the name of a user"),
        (
            MQ + "[[mq_listener.channel]]\nname = 'A*'\n[[mq_listener.channel]]\nname = 'AB*'\n",
            "mq_listener#1.channel#2.name: has no effect: channel#1 decides, whose 'A*' fits 'AB*'",
        ),
        (MQ + '[http]\nenabled = true\nlisten = "127.0.0.1:1414"\n', "http.listen"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        load(tmp_path, text)
    assert complaint in str(error.value)


def test_users_are_not_taken_from_certificates(tmp_path: Path) -> None:
    tls = (
        'tls = { certificate = "a", key = "b", client_certificate = "required", client_authority = "c",'
        ' user_from_certificate = "common_name" }\n'
    )
    with pytest.raises(ConfigurationError, match="user_from_certificate"):
        load(tmp_path, MQ + tls)


def test_channels_have_users_and_addresses(tmp_path: Path) -> None:
    application = "[[application]]\nname = 'panels'\naccess_users = ['panel-*']\n[access]\npassword_file = 'users'\n"
    table = (
        "[[mq_listener.channel]]\nname = 'APP.*'\nusers = ['panels', 'panel-7']\naddresses = ['192.0.2.0/24', '::1']\n"
    )
    (listener,) = load(tmp_path, MQ + table + application).mq_listener
    (channel,) = listener.channel
    assert (channel.name, channel.users) == ("APP.*", ("panels", "panel-7"))
    assert channel.addresses == ("192.0.2.0/24", "::1/128")

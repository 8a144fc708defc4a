"""The [[listener]] tables: what they say, and what is wrong with them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config import ConfigurationError, Settings, example_toml

SECURE = '[[listener]]\nname = "secure"\nlisten = "127.0.0.1:8883"\n'
TLS = 'tls.certificate = "a.pem"\ntls.key = "a.key"\n'
WEBSOCKET = '[[listener]]\nname = "web"\nlisten = "127.0.0.1:8083"\ntransport = "websocket"\n'
NAMED = '[[listener.tls.server_name]]\nname = "{}"\ncertificate = "b.pem"\nkey = "b.key"\n'

Load = Callable[[str], Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads the settings of a text."""

    def load_text(text: str) -> Settings:
        path = tmp_path / "rfhbridge.toml"
        path.write_text(text, encoding="utf-8")
        return Settings.load(path)

    return load_text


def test_listen_is_the_short_form_of_one_plain_listener() -> None:
    (listener,) = Settings().listeners
    assert (listener.name, listener.listen, listener.transport) == ("default", "127.0.0.1:1883", "tcp")
    assert not listener.is_secure
    assert listener.served_versions(Settings().mqtt) == ("3.1", "3.1.1", "5")


def test_where_listeners_are_named_only_they_are_opened(load: Load) -> None:
    assert [each.name for each in load(SECURE + TLS).listeners] == ["secure"]


def test_an_address_that_is_given_is_opened_beside_the_listeners(load: Load) -> None:
    settings = load('listen = "127.0.0.1:1883"\n' + SECURE + TLS + WEBSOCKET)
    assert [(each.name, each.is_secure) for each in settings.listeners] == [
        ("default", False),
        ("secure", True),
        ("web", False),
    ]


def test_what_is_opened_is_part_of_the_configurations_digest(load: Load) -> None:
    with_default = load('listen = "127.0.0.1:1883"\n' + SECURE)
    assert with_default.configuration_sha256 != load(SECURE).configuration_sha256


def test_a_listener_has_versions_of_its_own_or_those_of_all(load: Load) -> None:
    settings = load('[mqtt]\nversions = ["3.1.1"]\n' + SECURE + WEBSOCKET + 'versions = ["5", "3.1"]\n')
    assert [each.served_versions(settings.mqtt) for each in settings.listeners] == [("3.1.1",), ("5", "3.1")]


def test_host_names_are_compared_without_case_and_final_dot(load: Load) -> None:
    (listener,) = load(SECURE + TLS + NAMED.format("MQTT.example.com.") + NAMED.format("*.example.org")).listeners
    assert [server.name for server in listener.tls.server_name] == ["mqtt.example.com", "*.example.org"]


def test_one_port_may_be_open_on_two_addresses_and_in_both_families(load: Load) -> None:
    others = WEBSOCKET.replace("8083", "8883").replace("127.0.0.1", "127.0.0.2")
    assert len(load('listen = "[::]:8883"\n' + SECURE + others).listeners) == 3
    assert len(load('listen = "0.0.0.0:0"\n' + SECURE.replace("8883", "0")).listeners) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[listener]]\nname = "a"\n', "listener#1.listen: is missing"),
        ('[[listener]]\nlisten = "h:1"\n', "listener#1.name: is missing"),
        (SECURE.replace("secure", "se cure"), "listener#1.name: 'se cure' is not a name of a listener"),
        (SECURE.replace("8883", "x"), "listener#1.listen: '127.0.0.1:x' is not HOST:PORT"),
        (SECURE + SECURE, "listener#2.name: there is a listener 'secure' already"),
        (SECURE + WEBSOCKET.replace("8083", "8883"), "listener#2.listen: 127.0.0.1:8883 is the address of listener"),
        (
            SECURE + 'versions = ["3.1.1", "5"]\nrepeat_after_s = 5\n',
            "listener#1.repeat_after_s: is for clients of MQTT 3.1",
        ),
        (
            '[mqtt]\nversions = ["5"]\n' + SECURE + "repeat_after_s = 5\n",
            "listener#1.repeat_after_s: is for clients of",
        ),
        ('listen = "127.0.0.1:8883"\n' + SECURE, "is the address of listener 'default' already"),
        (
            SECURE + WEBSOCKET.replace("127.0.0.1:8083", "0.0.0.0:8883"),
            "listener#2.listen: 0.0.0.0:8883 cannot be opened beside 127.0.0.1:8883 of listener 'secure': one stands",
        ),
        (
            'listen = "[::]:8883"\n' + SECURE.replace("127.0.0.1", "[::1]"),
            "[::1]:8883 cannot be opened beside [::]:8883",
        ),
        (
            SECURE + '[http]\nenabled = true\nlisten = "0.0.0.0:8883"\n',
            "http.listen: 0.0.0.0:8883 is the address of a listener already",
        ),
        ('listen = ""\n', "listen: must be an address, because there is no [[listener]]"),
        (SECURE + '[http]\nenabled = true\nlisten = "127.0.0.1:8883"\n', "http.listen: 127.0.0.1:8883 is the address"),
        (SECURE + 'transport = "udp"\n', "listener#1.transport: must be 'tcp' or 'websocket'"),
        (SECURE + 'path = "/other"\n', "path, origins: belong to transport 'websocket'"),
        (
            WEBSOCKET + 'origins = ["panel"]\n',
            "listener#1.origins#1: 'panel' is not an origin of a web page: https://HOST",
        ),
        (WEBSOCKET + 'origins = ["https://a/page"]\n', "'https://a/page' is not an origin of a web page"),
        (SECURE + "anonymous = 3\n", "listener#1.anonymous: must be true, false or 'access', not 3"),
        (SECURE + 'origins = ["https://a"]\n', "path, origins: belong to transport 'websocket'"),
        (SECURE + 'proxy_addresses = ["10.0.0.1"]\n', "proxy_addresses: belong to proxy_protocol = true"),
        (
            SECURE + 'proxy_protocol = true\nproxy_addresses = ["10.0.0.1/8"]\n',
            "listener#1.proxy_addresses#1: '10.0.0.1/8' must be an address or a network: 10.0.0.1/8 has host bits set",
        ),
        (WEBSOCKET + 'path = "mqtt"\n', "listener#1.path: 'mqtt' is not a path of a URL"),
        (WEBSOCKET + 'path = "/a?b"\n', "listener#1.path: '/a?b' is not a path of a URL"),
        (WEBSOCKET + 'versions = ["4"]\n', "listener#1.versions#1: must be '3.1', '3.1.1' or '5'"),
        (WEBSOCKET + 'anonymous = "maybe"\n', "listener#1.anonymous"),
        (SECURE + 'tls.certificate = "a.pem"\n', "listener#1.tls: key: is missing"),
        (SECURE + 'tls.key = "a.key"\n', "certificate: is missing; key needs TLS, and TLS needs a certificate"),
        (SECURE + TLS + 'tls.client_certificate = "required"\n', "client_authority: is missing"),
        (SECURE + TLS + 'tls.client_authority = "c.pem"\n', "client_certificate: must be 'optional' or 'required'"),
        (SECURE + TLS + 'tls.user_from_certificate = "subject"\n', "client_certificate: must be 'optional' or"),
        (SECURE + TLS + 'tls.minimum_version = "1.1"\n', "listener#1.tls.minimum_version: must be '1.2' or '1.3'"),
        (SECURE + TLS + NAMED.format("no name"), "server_name#1.name: 'no name' is not a host name"),
        (SECURE + TLS + NAMED.format("a.b") * 2, "server_name#2.name: there is a certificate for a.b already"),
    ],
)
def test_a_listener_that_cannot_work_is_an_error_before_anything_starts(load: Load, text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(text)
    assert complaint in str(raised.value)


def test_the_example_of_the_guide_is_read(load: Load) -> None:
    guide = (Path(__file__).parents[3] / "docs/how-to/listeners.md").read_text(encoding="utf-8")
    example = guide.split("```toml\n", 1)[1].split("```", 1)[0]
    field, browsers, balanced = load(example).listeners
    assert (field.address.host, field.is_secure, field.tls.server_name[0].name) == ("::", True, "*.plant.example.com")
    assert (browsers.transport, browsers.path, browsers.anonymous) == ("websocket", "/mqtt", False)
    assert (balanced.proxy_protocol, balanced.proxy_addresses) == (True, ("10.0.0.1/32",))


def test_the_tables_of_the_example_hold_when_they_are_uncommented(load: Load) -> None:
    example = example_toml()
    tables = example[example.index("# [[listener]]") :].partition("\n\n")[0]
    uncommented = "\n".join(line.removeprefix("# ") for line in tables.splitlines())
    certificate, key = '\ncertificate = ""', '\nkey = ""'
    assert uncommented.count(certificate) == uncommented.count(key) == 1
    (listener,) = load(uncommented.replace(certificate, '\ncertificate = "a"').replace(key, '\nkey = "b"')).listeners
    assert (listener.name, listener.is_secure, len(listener.tls.server_name)) == ("secure", True, 1)

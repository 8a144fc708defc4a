"""What `check` warns of and `run` logs: configurations that work, and may not be what is meant."""

import pytest

from gateway.cli.configuration_warnings import configuration_warnings
from gateway.config import Settings

ANYWHERE = {"name": "field", "listen": "0.0.0.0:1883"}
SECURE = {"certificate": "a.pem", "key": "a.key"}
CERTIFIED = {**SECURE, "client_authority": "ca.pem", "client_certificate": "required"}
OPEN = "listener field, 0.0.0.0:1883: everybody who reaches it may publish and subscribe anything"
LIMITED = "listener field, 0.0.0.0:1883: clients without a user name may connect"
CLEAR = "listener field, 0.0.0.0:1883: passwords cross the network in clear"


def found(**settings: object) -> list[str]:
    return list(configuration_warnings(Settings.model_validate({"listen": "", **settings})))


@pytest.mark.parametrize(
    ("settings", "caution"),
    [
        ({"listener": [ANYWHERE]}, OPEN),
        ({"listener": [{**ANYWHERE, "tls": SECURE}]}, OPEN),
        ({"listener": [{**ANYWHERE, "anonymous": True, "tls": SECURE}], "access": {"password_file": "users"}}, OPEN),
        ({"listener": [ANYWHERE], "access": {"password_file": "users"}}, CLEAR),
        ({"listener": [ANYWHERE], "access": {"token": {"key_files": ["issuer.pem"]}}}, CLEAR),
        (
            {"listen": "127.0.0.1:1883", "mqtt": {"maximum_connections_per_user": 3}},
            "mqtt.maximum_connections_per_user counts nobody",
        ),
        (
            {"listen": "127.0.0.1:1883", "mq_listener": [{"listen": "127.0.0.1:1414"}]},
            "mq_listener: no program can connect",
        ),
        (
            {"listen": "127.0.0.1:1883", "http": {"enabled": True, "listen": "0.0.0.0:8080"}},
            "http, 0.0.0.0:8080: everybody who reaches this port may read the metrics and convert messages",
        ),
        ({"listener": [ANYWHERE], "access": {"access_file": "access.toml"}}, LIMITED),
        ({"listener": [ANYWHERE], "access": {"publish": ["plant/#"]}}, LIMITED),
        (
            {"listener": [{**ANYWHERE, "proxy_protocol": True}], "access": {"password_file": "users"}},
            "listener field, 0.0.0.0:1883: everybody who reaches it may claim any address",
        ),
        ({"listen": "gateway.example.com:1883"}, "listener default, gateway.example.com:1883: everybody who"),
    ],
)
def test_what_may_not_be_meant_is_said_in_one_sentence(settings: dict[str, object], caution: str) -> None:
    (sentence,) = found(**settings)
    assert sentence.startswith(caution)


@pytest.mark.parametrize(
    "settings",
    [
        {"listen": "127.0.0.1:1883"},
        {"listen": "[::1]:1883"},
        {"listen": "127.0.0.1:1883", "http": {"enabled": True}},
        {"listen": "127.0.0.1:1883", "http": {"listen": "0.0.0.0:8080"}},
        {"listen": "localhost:1883"},
        {"listener": [{**ANYWHERE, "tls": CERTIFIED}]},
        {"listener": [{**ANYWHERE, "tls": {**CERTIFIED, "user_from_certificate": "subject"}}]},
        {"listener": [{**ANYWHERE, "tls": SECURE}], "access": {"password_file": "users"}},
        {
            "listener": [{**ANYWHERE, "proxy_protocol": True, "proxy_addresses": ["10.0.0.0/8"]}],
            "access": {"password_file": "users"},
        },
        {"listen": "127.0.0.1:1883", "mqtt": {"maximum_connections_per_user": 3}, "access": {"password_file": "users"}},
    ],
)
def test_what_is_closed_or_on_this_machine_alone_is_no_caution(settings: dict[str, object]) -> None:
    assert found(**settings) == []


def test_check_and_run_tell_it(rfhbridge, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("gateway.daemon.run", lambda *_arguments, **_options: 0)
    config = tmp_path / "rfhbridge.toml"
    config.write_text('listen = "0.0.0.0:1883"\n')
    told = "warning: listener default, 0.0.0.0:1883: everybody who reaches it"
    assert told in rfhbridge("check", "--config", config).text
    ended = rfhbridge("run", "--config", config)
    assert ended.exit_code == 0
    assert 'configuration doubted because="listener default, 0.0.0.0:1883: everybody' in ended.stderr

"""What a listener's rules make of its own settings and of those for all."""

import pytest

from gateway.config.settings import Settings
from gateway.listener.rules import ListenerRules

CERTIFIED = {
    "certificate": "gateway.pem",
    "key": "gateway.key",
    "client_authority": "devices.pem",
    "client_certificate": "optional",
    "user_from_certificate": "common_name",
}


@pytest.mark.parametrize(
    ("of_listener", "of_all", "tls", "allows"),
    [
        ("access", "auto", {}, None),
        ("access", "auto", CERTIFIED, False),
        ("access", True, CERTIFIED, None),
        (True, "auto", CERTIFIED, True),
        (False, True, {}, False),
    ],
)
def test_where_certificates_tell_users_apart_nobody_is_anonymous_unasked(
    of_listener: object, of_all: object, tls: dict[str, str], allows: bool | None
) -> None:
    """A client without a certificate, or with one that names nobody, is no user there."""
    listener = {"name": "field", "listen": "127.0.0.1:0", "anonymous": of_listener, "tls": tls}
    settings = Settings.model_validate({"access": {"anonymous": of_all}, "listener": [listener]})
    assert ListenerRules.of(settings.listeners[0], settings).allows_anonymous is allows

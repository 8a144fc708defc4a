"""What works as it is configured, and may not be what the operator means: warnings of `check`, lines of `run`'s log."""

import ipaddress
from collections.abc import Iterator
from typing import Final

from gateway.config import Address, Settings
from gateway.config.listeners import ListenerSettings

_EVERYTHING: Final = ("#",)


def configuration_warnings(settings: Settings) -> Iterator[str]:
    """A sentence for each: ports that are open to everybody, passwords in clear, limits that can count nobody."""
    tells_users = settings.access.tells_users or settings.has_certificate_users
    if settings.mqtt.maximum_connections_per_user and not tells_users:
        yield "mqtt.maximum_connections_per_user counts nobody: the gateway knows no users (see [access])"
    if settings.http.enabled and not _is_of_this_machine(settings.http.address):
        yield f"http, {settings.http.listen}: everybody who reaches it may read the metrics and have messages converted"
    for listener in settings.listeners:
        if _is_of_this_machine(listener.address):
            continue
        where = f"listener {listener.name}, {listener.listen}"
        if _is_open_to_everybody(listener, settings):
            yield f"{where}: everybody who reaches it may publish and subscribe anything (set access.password_file)"
        if settings.access.tells_users and not listener.is_secure and not listener.proxy_protocol:
            yield f"{where}: passwords cross the network in clear (name a tls.certificate)"


def _is_of_this_machine(address: Address) -> bool:
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return address.host == "localhost"


def _is_open_to_everybody(listener: ListenerSettings, settings: Settings) -> bool:
    """Whether a stranger without a name has no rule to keep to."""
    from gateway.listener.rules import ListenerRules

    access = settings.access
    rule = ListenerRules.of(listener, settings).allows_anonymous
    is_limited = access.access_file or (access.publish, access.subscribe) != (_EVERYTHING, _EVERYTHING)
    shows_certificate = listener.tls.client_certificate == "required"
    return (access.allows_anonymous if rule is None else rule) and not is_limited and not shows_certificate

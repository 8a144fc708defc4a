"""Warnings of settings that work but may be mistakes, for `check` and for `run`'s log."""

from collections.abc import Iterator

from gateway.cli.risks import RISKS, Subject
from gateway.config import Settings


def configuration_warnings(settings: Settings) -> Iterator[str]:
    """A sentence for each risk that the settings alone show, and for each setting that serves nobody."""
    yield from settings_for_nobody(settings)
    for risk in RISKS:
        if risk.is_logged:
            yield from risk.find(Subject(settings=settings))


def settings_for_nobody(settings: Settings) -> Iterator[str]:
    """Limits for each user of a gateway that tells no users apart, and listeners that let no program in."""
    tells_users = settings.access.tells_users or settings.has_certificate_users
    if settings.mqtt.maximum_connections_per_user and not tells_users:
        yield "mqtt.maximum_connections_per_user counts nobody: the gateway knows no users (see [access])"
    if settings.mq_listener and not settings.application:
        yield "mq_listener: no program can connect, because there is no [[application]]"

"""The rules of one listener, made from the configuration for its links and the bridge."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Literal, Self

from gateway.config.listeners import DEFAULT_LISTENER, ListenerSettings
from gateway.config.settings import Settings
from gateway.mqtt.levels import BEFORE_MQTT_5, LEVELS
from gateway.mqtt.properties import UNLIMITED_RECEIVE_MAXIMUM

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketRules:
    """Conditions on a request for a WebSocket. `origins` are in lower case; without any, all pages may open one."""

    path: str
    origins: frozenset[str] = frozenset()
    maximum_message_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerRules:
    """The rules for every connection of one listener.

    `allows_anonymous` is None if [access] decides. `websocket` is None if MQTT stands directly on TCP or TLS. If
    `maximum_connections`, `maximum_keep_alive_s` or `repeat_after_s` is 0, this listener has no such limit of its own.
    If `proxy_addresses` is empty, a PROXY header may come from any address.
    """

    name: str = DEFAULT_LISTENER
    levels: frozenset[int] = BEFORE_MQTT_5
    allows_anonymous: bool | None = None
    proxy_protocol: bool = False
    proxy_addresses: tuple[Network, ...] = ()
    websocket: WebSocketRules | None = None
    user_from_certificate: Literal["", "common_name", "subject"] = ""
    maximum_connections: int = 0
    maximum_waiting_connections: int = 2_000
    maximum_packet_bytes: int
    receive_maximum: int = UNLIMITED_RECEIVE_MAXIMUM
    topic_alias_maximum: int = 0
    maximum_keep_alive_s: int = 0
    repeat_after_s: float = 0.0
    maximum_unsent_bytes: int
    connect_timeout_s: float

    @classmethod
    def of(cls, listener: ListenerSettings, settings: Settings) -> Self:
        """The rules of a listener, together with the rules for all listeners."""
        mqtt = settings.mqtt
        versions = listener.served_versions(mqtt)
        return cls(
            name=listener.name,
            levels=frozenset(number for number, level in LEVELS.items() if level.version in versions),
            allows_anonymous=_allows_anonymous(listener, settings),
            proxy_protocol=listener.proxy_protocol,
            proxy_addresses=tuple(map(ip_network, listener.proxy_addresses)),
            websocket=_websocket_rules(listener) if listener.transport == "websocket" else None,
            user_from_certificate=listener.tls.user_from_certificate,
            maximum_connections=listener.maximum_connections,
            maximum_waiting_connections=mqtt.maximum_waiting_connections,
            maximum_packet_bytes=mqtt.maximum_packet_bytes,
            receive_maximum=mqtt.receive_maximum,
            topic_alias_maximum=mqtt.topic_alias_maximum,
            maximum_keep_alive_s=mqtt.maximum_keep_alive_s,
            repeat_after_s=listener.repeat_after_s,
            maximum_unsent_bytes=mqtt.maximum_unsent_bytes,
            connect_timeout_s=mqtt.connect_timeout_s,
        )


def _allows_anonymous(listener: ListenerSettings, settings: Settings) -> bool | None:
    """By default a listener that takes users from certificates refuses a client whose certificate names no user."""
    if listener.anonymous != "access":
        return listener.anonymous
    return False if settings.access.anonymous == "auto" and listener.tls.user_from_certificate else None


def _websocket_rules(listener: ListenerSettings) -> WebSocketRules:
    return WebSocketRules(
        path=listener.path,
        origins=frozenset(origin.lower().rstrip("/") for origin in listener.origins),
        maximum_message_bytes=listener.maximum_message_bytes,
    )

"""Listeners of MQ clients: the addresses that IBM MQ's clients connect to with a server-connection channel."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gateway.config.applications import UserPatterns
from gateway.config.listeners import Networks, TlsSettings, checked_listener_name, why_taken
from gateway.config.values import Address, ListenText, Seconds, Table, listed
from mq_adapters.embedded.rights import covers

if TYPE_CHECKING:
    from typing import Self

    from gateway.config.settings import Settings


#: A channel's name has at most 20 characters (IBM MQ, "Rules for naming IBM MQ objects").
_CHANNEL: Final = re.compile(r"[A-Za-z0-9./_%]{1,20}|[A-Za-z0-9./_%]{0,19}\*")


def _checked_channel_pattern(pattern: str) -> str:
    if not _CHANNEL.fullmatch(pattern):
        raise ValueError(f"{pattern!r} must be the name of a channel, at most 20 characters, or its beginning and *")
    return pattern


def _checked_not_empty(value: object) -> object:
    if value == []:
        raise ValueError("must not be empty: it would admit nobody; name who may connect, or leave the key out for all")
    return value


class MqChannelSettings(Table):
    """Who may use some channels; the first table that fits a channel decides, and one that none fits is closed."""

    name: Annotated[str, AfterValidator(_checked_channel_pattern)] = Field(
        description="channels: a name, or its beginning and *", examples=["APP.*"]
    )
    users: Annotated[UserPatterns, BeforeValidator(_checked_not_empty)] = Field(
        default=(),
        description="users who may connect: applications by their token or MCAUSER, and users of [access]; names, or"
        " their beginning and *; without this key all may",
        examples=[("billing",)],
    )
    addresses: Annotated[Networks, BeforeValidator(_checked_not_empty)] = Field(
        default=(),
        description="addresses and networks from which programs may connect; without this key all",
        examples=[("10.1.0.0/16",)],
    )


MqChannels = Annotated[tuple[MqChannelSettings, ...], BeforeValidator(listed)]


class MqListenerSettings(Table):
    """An address that MQ clients connect to; one [[mq_listener]] for each. Channels are made by DEFINE CHANNEL."""

    name: Annotated[str, AfterValidator(checked_listener_name)] = Field(
        default="mq", description="name of the listener in the log"
    )
    listen: ListenText = Field(
        description="address, HOST:PORT or [IPV6]:PORT; port 0: any free one; 1414 is IBM MQ's usual one",
        examples=["127.0.0.1:1414"],
    )
    maximum_connections: int = Field(default=1_000, ge=1, description="connections here at one time")
    maximum_connections_per_address: int = Field(
        default=100, ge=1, description="connections of one client address at one time"
    )
    connect_timeout_s: Seconds = Field(
        default=10.0, description="seconds that a client has from its connection to the end of its first MQCONN"
    )
    plain_passwords: bool = Field(
        default=False,
        description="whether a client may send its password without TLS from another machine; everybody on the way can"
        " read it",
    )
    tls: TlsSettings = TlsSettings()
    channel: MqChannels = Field(default=(), description="who may use which channels; none: every channel for all")

    @property
    def address(self) -> Address:
        """`listen` as host and port."""
        return Address.parse(self.listen)

    @property
    def is_secure(self) -> bool:
        """Whether its connections are encrypted."""
        return bool(self.tls.certificate)

    @model_validator(mode="after")
    def _checked_tls(self) -> "Self":
        if self.tls.user_from_certificate:
            raise ValueError("tls.user_from_certificate: is for MQTT clients")
        return self


def mq_listener_problems(settings: "Settings") -> Iterator[str]:
    """Problems of these listeners: a name or an address that another listener has."""
    taken = [(each.address, each.name) for each in settings.listeners]
    names = {each.name for each in settings.listeners}
    for index, listener in enumerate(settings.mq_listener, 1):
        if listener.name in names:
            yield f"mq_listener#{index}.name: there is a listener {listener.name!r} already"
        for address, other in taken:
            if listener.address.takes_port_of(address):
                yield f"mq_listener#{index}.listen: {listener.listen} {why_taken(listener.address, address, other)}"
        names.add(listener.name)
        taken.append((listener.address, listener.name))
        yield from _problems_of_channels(settings, index)


def _problems_of_channels(settings: "Settings", index: int) -> Iterator[str]:
    """Tables that no channel comes to, and users who cannot be."""
    tables = settings.mq_listener[index - 1].channel
    known = [pattern for each in settings.application for pattern in (each.name, *each.access_users)]
    for number, table in enumerate(tables, 1):
        key = f"mq_listener#{index}.channel#{number}"
        for before, other in enumerate(tables[: number - 1], 1):
            if covers(other.name, table.name):
                yield f"{key}.name: has no effect: channel#{before} decides, whose {other.name!r} fits {table.name!r}"
        for user in table.users:
            if not any(covers(pattern, user) or covers(user, pattern) for pattern in known):
                yield f"{key}.users: nobody can be {user!r}: it is no [[application]] and none of their access_users"

"""Listeners of MQ clients: the addresses that IBM MQ's clients connect to with a server-connection channel."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, model_validator

from gateway.config.listeners import TlsSettings, checked_listener_name, why_taken
from gateway.config.values import Address, ListenText, Seconds, Table

if TYPE_CHECKING:
    from typing import Self

    from gateway.config.settings import Settings


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

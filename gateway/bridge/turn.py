"""A turn of a link: what the events of one read ask for; and what the bridge needs of the link itself."""

from collections.abc import Callable
from typing import Protocol

from gateway.bridge.sessions import ClientSession, Link
from gateway.mqtt.connection import Connection
from mq_adapters.embedded.unit_of_work import UnitOfWork

Ranges = list[list[int]]


class MqttLink(Link, Protocol):
    """What the bridge needs of a connection's network side (listener.py)."""

    connection: Connection
    session: ClientSession | None
    outstanding: int
    is_open: bool

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Turn:
    """What the events of one read ask for, until it is committed."""

    __slots__ = ("acknowledgements", "carried_on", "confirmed", "finished", "link", "session", "unit")

    def __init__(self, link: MqttLink, session: ClientSession, unit: UnitOfWork) -> None:
        self.link = link
        self.session = session
        self.unit = unit
        #: Packets for the link, in order.
        self.acknowledgements: list[bytes] = []
        #: Of these, the ones that the session's next link needs if this one is gone: PUBREL and PUBCOMP.
        self.carried_on: list[bytes] = []
        #: What becomes of the session's packet identifiers after the commit.
        self.finished: list[tuple[Callable[[int], object], int]] = []
        #: Ranges of exchanges that are acknowledged, by packet type.
        self.confirmed: dict[int, Ranges] = {}

    def confirm(self, packet_type: int, exchange: int) -> None:
        ranges = self.confirmed.setdefault(packet_type, [])
        if ranges and ranges[-1][1] == exchange - 1:
            ranges[-1][1] = exchange
        else:
            ranges.append([exchange, exchange])

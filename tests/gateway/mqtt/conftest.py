"""Connections past their CONNECT, for tests of what comes behind it; the bytes are written by hand."""

from collections.abc import Callable

import pytest

from gateway.mqtt.connection import Connection
from gateway.mqtt.events import Event
from gateway.mqtt.outgoing_flows import OutgoingFlows

CONNECT = {
    3: bytes.fromhex("10 10 0006 4D5149736470 03 02 003C 0002 6331"),  # MQIsdp, clean session, 60 s, "c1"
    4: bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"),  # MQTT, clean session, 60 s, "c1"
    5: bytes.fromhex("10 0F 0004 4D515454 05 02 003C 00 0002 6331"),  # MQTT, clean start, 60 s, no properties, "c1"
}

OpenConnection = Callable[..., Connection]
Feed = Callable[[Connection, bytes, int], list[Event]]


@pytest.fixture
def connect_bytes() -> dict[int, bytes]:
    """A plain CONNECT of client "c1" for each level."""
    return CONNECT


@pytest.fixture
def open_connection() -> OpenConnection:
    """Makes a connection of a level that has a session attached; `connect` is the CONNECT of another client."""

    def make(
        level: int = 4,
        session: OutgoingFlows | None = None,
        maximum_packet_bytes: int = 268_435_455,
        connect: bytes = b"",
        receive_maximum: int = 65_535,
        topic_alias_maximum: int = 0,
    ) -> Connection:
        connection = Connection(
            maximum_packet_bytes=maximum_packet_bytes,
            levels=CONNECT,
            receive_maximum=receive_maximum,
            topic_alias_maximum=topic_alias_maximum,
        )
        connection.receive_data(connect or CONNECT[level])
        connection.attach(session or OutgoingFlows("c1", clean_session=False))
        return connection

    return make


@pytest.fixture
def feed() -> Feed:
    """Hands bytes to a connection in pieces of one size, and gathers the events."""

    def hand_in(connection: Connection, data: bytes, piece_bytes: int) -> list[Event]:
        events: list[Event] = []
        for start in range(0, len(data), piece_bytes):
            events += connection.receive_data(data[start : start + piece_bytes])
        return events

    return hand_in

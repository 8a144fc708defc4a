"""An application that fills the audit trail is read more slowly, and nobody else is."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.socket.pace import ApplicationAccount
from mq_adapters.embedded.unit_of_work import Note, UnitOfWork
from mq_adapters.message import Message, MessageDescriptor
from tests.mq_adapters.gateway_thread import GatewayThread

MESSAGE = Message(MessageDescriptor(persistence=1), b"words")
NOTE: Note = (1, 2)
REST_S, FOR_EVER_S = 0.2, 1e6


class Charged:
    """Lets the first application of all rest for so long."""

    def __init__(self, rest_s: float) -> None:
        self.rest_s = rest_s
        self.notes: list[Note] = []

    def __call__(self, _account: ApplicationAccount, unit: UnitOfWork) -> float:
        self.notes += unit.notes
        return self.rest_s if len(self.notes) == 1 else 0.0


@pytest.fixture
def gateway_with(data_folder: Path) -> Iterator[Callable[[Charged], GatewayThread]]:
    """Starts a gateway with the queue ORDERS, in which each unit of work of an application has a note."""
    started: list[GatewayThread] = []

    def start(charged: Charged) -> GatewayThread:
        gateway = GatewayThread(data_folder, charge=charged)
        started.append(gateway)
        gateway.call(lambda: gateway.engine.define("ORDERS"))
        gateway.engine.seal_notes = lambda _batch, _notes: b"notes"
        gateway.call(lambda: gateway.engine.on_application_unit.append(lambda unit: unit.notes.append(NOTE)))
        return gateway

    yield start
    for gateway in started:
        gateway.stop()


def test_an_application_is_not_read_for_as_long_as_its_notes_cost(gateway_with) -> None:
    charged = Charged(REST_S)
    with SocketClient(gateway_with(charged).data_dir) as busy:
        started_s = time.monotonic()
        busy.put("ORDERS", MESSAGE)
        assert busy.depth("ORDERS") == 1
        assert time.monotonic() - started_s >= REST_S / 2  # the event loop counts from the beginning of its turn
        busy.put("ORDERS", MESSAGE)
        assert (busy.depth("ORDERS"), charged.notes) == (2, [NOTE, NOTE])


def test_others_go_on_while_one_rests_and_the_gateway_stops_all_the_same(gateway_with) -> None:
    charged = Charged(FOR_EVER_S)
    gateway = gateway_with(charged)
    with SocketClient(gateway.data_dir) as busy, SocketClient(gateway.data_dir) as other:
        busy.put("ORDERS", MESSAGE)
        other.put("ORDERS", MESSAGE)
        assert other.depth("ORDERS") == 2
        gateway.stop()
    assert len(charged.notes) == 2

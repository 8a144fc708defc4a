"""A listener at a handle: it gets messages while it is started and the program has room."""

from collections.abc import Callable

import pytest

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.consuming import Listening
from mq_adapters.embedded.mqi.getting import Got
from mq_adapters.embedded.mqi.options import GetOption, OpenOption
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.reasons import QueueManagerError, ReasonCode
from tests.mq_adapters.embedded.mqi.program import Program, request

Connect = Callable[..., Program]


class Listener:
    """Takes messages while it has room."""

    def __init__(self, program: Program, room: int, options: int = GetOption.NO_SYNCPOINT) -> None:
        self.bodies: list[bytes] = []
        self.failures: list[int] = []
        self.room = room
        handle = program.open("ORDERS", OpenOption.INPUT_SHARED)
        self.listening: Listening = program.connection.listen(
            handle,
            request(options),
            may_get=lambda: self.room > 0,
            wake=lambda: self.listening.go_on(),
            deliver=self.take,
            failed=self.fail,
        )

    def take(self, got: Got) -> None:
        self.room -= 1
        self.bodies.append(got.data)

    def fail(self, error: QueueManagerError) -> None:
        self.failures.append(error.reason_code)


@pytest.fixture
def writer(connect: Connect) -> Callable[..., None]:
    program = connect()
    handle = program.open("ORDERS", OpenOption.OUTPUT)

    def write(*bodies: bytes, **fields: object) -> None:
        for body in bodies:
            program.put(handle, body, **fields)

    return write


def test_messages_come_as_they_arrive_while_there_is_room(connect: Connect, writer: Callable[..., None]) -> None:
    listener = Listener(connect(), room=2)
    writer(b"1")
    assert listener.bodies == []
    listener.listening.start()
    writer(b"2", b"3")
    assert listener.bodies == [b"1", b"2"]
    listener.room = 5
    listener.listening.go_on()
    assert listener.bodies == [b"1", b"2", b"3"]


def test_a_stopped_listener_leaves_messages_to_others(connect: Connect, writer: Callable[..., None]) -> None:
    first, second = Listener(connect(), room=9), Listener(connect(), room=9)
    first.listening.start()
    first.listening.stop()
    second.listening.start()
    writer(b"1")
    assert (first.bodies, second.bodies) == ([], [b"1"])


def test_many_messages_are_delivered_without_a_deep_stack(connect: Connect, writer: Callable[..., None]) -> None:
    writer(*[b"x"] * 3_000, persistence=0)
    listener = Listener(connect(), room=10_000)
    listener.listening.start()
    assert len(listener.bodies) == 3_000


def test_a_message_of_a_unit_that_is_backed_out_comes_again(connect: Connect, writer: Callable[..., None]) -> None:
    program = connect()
    listener = Listener(program, room=2, options=GetOption.SYNCPOINT)
    listener.listening.start()
    writer(b"1")
    assert listener.bodies == [b"1"]
    program.connection.back_out()
    assert listener.bodies == [b"1", b"1"]
    writer(b"2")
    assert listener.bodies == [b"1", b"1"]


def test_gets_that_are_inhibited_pause_it_and_a_deleted_queue_ends_it(
    connect: Connect, writer: Callable[..., None], engine: Engine
) -> None:
    listener = Listener(connect(), room=9)
    listener.listening.start()
    server = CommandServer(engine)
    assert server.execute("ALTER QL(ORDERS) GET(DISABLED)").succeeded
    writer(b"1")
    assert listener.bodies == []
    assert server.execute("ALTER QL(ORDERS) GET(ENABLED)").succeeded
    listener.listening.go_on()
    assert listener.bodies == [b"1"]
    engine.queue("ORDERS").is_deleted = True
    listener.listening.go_on()
    engine.queue("ORDERS").is_deleted = False
    assert listener.failures == [ReasonCode.MQRC_Q_DELETED]

"""MQINQ of queues and of the queue manager."""

from collections.abc import Callable

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.options import ObjectKind, OpenOption
from mq_adapters.embedded.queue import Queue
from mq_adapters.reasons import ReasonCode
from tests.mq_adapters.embedded.mqi.program import Program, refused

Connect = Callable[..., Program]


def test_the_queue_manager_tells_its_level_name_and_dead_letter_queue(connect: Connect) -> None:
    program = connect(put=("ORDERS",))
    handle = program.open("", OpenOption.INQUIRE, kind=ObjectKind.Q_MGR)
    found = program.connection.inquire(handle, [31, 32, 2, 2015, 2006, 2040])
    assert found.integers == (945, 3, 1208)
    names = [found.characters[at : at + 48].decode().rstrip() for at in (0, 48)]
    assert names == ["RFHB", "SYSTEM.DEAD.LETTER.QUEUE"]
    assert (len(found.characters), found.is_partial) == (100, False)


def test_a_queue_tells_its_attributes(connect: Connect, engine: Engine) -> None:
    said = {"MAXDEPTH": 7, "BOTHRESH": 3, "BOQNAME": "BACKED.OUT", "PUT": "DISABLED", "MSGDLVSQ": "FIFO"}
    engine.objects.define(Definition(object_type=ObjectType.QLOCAL, name="Q", said=said))
    program = connect()
    handle = program.open("Q", OpenOption.INQUIRE | OpenOption.INPUT_SHARED)
    found = program.connection.inquire(handle, [3, 15, 22, 9, 10, 16, 20, 7, 17, 2019, 2016])
    assert found.integers == (0, 7, 3, 0, 1, 1, 1, 1, 1)
    assert found.characters.decode().split() == ["BACKED.OUT", "Q"]


def test_a_selector_of_another_object_is_a_warning_and_no_selector_an_error(connect: Connect) -> None:
    program = connect()
    handle = program.open("ORDERS", OpenOption.INQUIRE)
    found = program.connection.inquire(handle, [31, 15, 2015])
    assert (found.is_partial, found.integers, found.characters) == (True, (-1, 999_999_999), b"*" * 48)
    for selectors, reason_code in (
        ([0], ReasonCode.MQRC_SELECTOR_ERROR),
        ([-5], ReasonCode.MQRC_SELECTOR_ERROR),
        ([9_999], ReasonCode.MQRC_SELECTOR_ERROR),
        ([3] * 257, ReasonCode.MQRC_SELECTOR_COUNT_ERROR),
    ):
        assert refused(lambda each=selectors: program.connection.inquire(handle, each)) == reason_code  # type: ignore[misc]


def test_a_queue_that_was_deleted_and_an_unknown_right_are_told(connect: Connect, engine: Engine) -> None:
    engine.objects.define(Definition(object_type=ObjectType.QALIAS, name="A", said={"TARGET": "ORDERS"}))
    program = connect(put=("A",))
    handle = program.open("A", OpenOption.INQUIRE)
    assert program.connection.inquire(handle, [20, 2002]).integers == (3,)
    engine.objects.delete(engine.objects.find_queue("A") or Definition(object_type=ObjectType.QALIAS, name="A"))
    assert refused(lambda: program.connection.inquire(handle, [20])) == ReasonCode.MQRC_OBJECT_CHANGED
    assert refused(lambda: program.open("ORDERS", OpenOption.INQUIRE)) == ReasonCode.MQRC_NOT_AUTHORIZED


def test_a_selector_that_is_there_256_times_costs_as_much_as_one(connect: Connect, engine: Engine) -> None:
    class Asked:
        times = 0

        def is_getting_from(self, _queue: Queue) -> bool:
            self.times += 1
            return True

    user = Asked()
    engine.objects.users.add(user)  # type: ignore[arg-type]  # no more of it is asked
    program = connect()
    handle = program.open("ORDERS", OpenOption.INQUIRE)
    assert program.connection.inquire(handle, [17] * 256).integers == (1,) * 256
    assert user.times == 1

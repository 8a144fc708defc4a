"""Scans for a selector: each message is looked at once, in shares, and what comes late is not missed."""

from collections.abc import Callable, Iterator

import pytest

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.scan import MAXIMUM_NOTED, SHARE_MESSAGES, SHARE_S, Progress, Scan
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.selection.conditions import Content, Truth
from mq_adapters.selection.message_content import MessageContent
from mq_adapters.selection.selectors import parse_selector

ANY = (None, None, None)


class Wanted:
    """A condition that takes the bodies that begin with `yes`, and counts what it looks at."""

    def __init__(self) -> None:
        self.looks = 0

    def truth(self, content: Content) -> Truth:
        self.looks += 1
        assert isinstance(content, MessageContent)
        return content.message.body.startswith(b"yes")


class Plant:
    """A queue with messages, and a scan of it."""

    def __init__(self, engine: Engine, now_s: Callable[[], float] = lambda: 0.0) -> None:
        self.engine = engine
        self.queue: Queue = engine.queue("ORDERS")
        self.condition = Wanted()
        self.scan = Scan(engine, self.queue, self.condition, now_s=now_s)

    def put(self, *bodies: bytes, **fields: object) -> None:
        unit = self.engine.begin()
        for body in bodies:
            self.engine.put(unit, self.queue, Message(MessageDescriptor(persistence=0).replace(**fields), body))
        self.engine.submit(unit)
        self.engine.commit_now()

    def found(self, behind: int = -1) -> bytes | Progress:
        found = self.scan.next(ANY, behind)
        return found.body if isinstance(found, Message) else found

    def whole(self) -> bytes | Progress:
        """What the scan finds, in as many shares as it needs."""
        while (found := self.found()) is Progress.UNFINISHED:
            pass
        return found


@pytest.fixture
def plant(engine: Engine) -> Iterator[Plant]:
    made = Plant(engine)
    yield made
    made.scan.close()
    assert made.queue.watchers == []


def test_messages_that_match_come_in_order_and_each_is_looked_at_once(plant: Plant) -> None:
    plant.put(b"no", b"yes 1", b"no", b"yes 2", b"no")
    assert [plant.found() for _ in range(3)] == [b"yes 1", b"yes 2", Progress.NOTHING]
    assert plant.condition.looks == 5
    assert plant.found() is Progress.NOTHING
    plant.put(b"no", b"yes 3")
    assert [plant.found() for _ in range(2)] == [b"yes 3", Progress.NOTHING]
    assert plant.condition.looks == 7


def test_a_message_of_which_nobody_can_tell_is_passed_by(engine: Engine) -> None:
    plant = Plant(engine)
    selecting = Scan(engine, plant.queue, parse_selector("colour = 'blue' OR JMSPriority = 9"), now_s=lambda: 0.0)
    plant.put(b"RFH ", format=b"MQHRF2  ", encoding=0)
    plant.put(b"yes", priority=9)
    found = [selecting.next(ANY) for _ in range(2)]
    assert [each.body if isinstance(each, Message) else each for each in found] == [b"yes", Progress.NOTHING]


def test_a_share_ends_after_so_many_messages(plant: Plant) -> None:
    plant.put(*[b"no"] * SHARE_MESSAGES, b"yes")
    assert plant.found() is Progress.UNFINISHED
    assert plant.condition.looks == SHARE_MESSAGES
    assert plant.found() == b"yes"


def test_a_share_ends_after_its_time(engine: Engine) -> None:
    clock = iter(number * SHARE_S / 2 for number in range(99))
    plant = Plant(engine, now_s=lambda: next(clock))
    plant.put(b"no", b"no", b"no", b"yes")
    assert plant.found() is Progress.UNFINISHED
    assert plant.condition.looks == 2


def test_a_message_that_was_given_back_is_found_again(plant: Plant) -> None:
    plant.put(b"yes 1", b"no", b"yes 2")
    taken = plant.engine.take(plant.queue)
    assert taken is not None
    assert plant.found() == b"yes 2"
    plant.engine.give_back([(plant.queue, taken)])
    assert plant.found() == b"yes 1"
    assert plant.found() is Progress.NOTHING


def test_a_message_of_a_higher_priority_is_found_although_its_place_was_passed(plant: Plant) -> None:
    assert not plant.queue.is_fifo
    plant.put(*[b"no"] * 5, priority=4)
    assert plant.found() is Progress.NOTHING
    plant.put(b"yes low", priority=4)
    plant.put(b"no", b"yes high", priority=9)
    assert [plant.found() for _ in range(3)] == [b"yes high", b"yes low", Progress.NOTHING]
    assert plant.condition.looks == 8


def test_what_stands_before_a_cursor_is_not_found(plant: Plant) -> None:
    plant.put(b"yes 1", b"yes 2", b"yes 3")
    first = plant.queue.behind(-1, 1)[0]
    assert plant.found(behind=first) == b"yes 2"
    plant.scan.restart()
    assert plant.found() == b"yes 1"


def test_another_identifier_begins_a_new_scan(plant: Plant) -> None:
    plant.put(b"yes 1", correl_id=b"A" * 24)
    plant.put(b"yes 2", correl_id=b"B" * 24, msg_id=b"M" * 24)
    assert plant.found() == b"yes 1"
    of_b = plant.scan.next((None, b"B" * 24, None))
    assert isinstance(of_b, Message)
    assert of_b.body == b"yes 2"
    assert plant.scan.next((b"N" * 24, None, None)) is Progress.NOTHING
    assert isinstance(plant.scan.next((b"M" * 24, None, None)), Message)
    assert plant.found() == b"yes 1"


def test_a_scan_that_missed_too_many_begins_again(plant: Plant) -> None:
    plant.put(*[b"no"] * (MAXIMUM_NOTED + 2))
    assert plant.whole() is Progress.NOTHING
    looks = plant.condition.looks
    for _ in range(MAXIMUM_NOTED + 2):
        message = plant.engine.take(plant.queue)
        assert message is not None
        plant.engine.give_back([(plant.queue, message)])
    plant.put(b"yes")
    assert plant.whole() == b"yes"
    assert plant.condition.looks <= looks + 2 * MAXIMUM_NOTED


@pytest.mark.parametrize("lanes", [1, 100])
def test_a_wait_where_thousands_do_not_match_looks_at_new_messages_alone(plant: Plant, lanes: int) -> None:
    for number in range(lanes):
        plant.put(*[b"no"] * (5_000 // lanes), correl_id=number.to_bytes(24, "big"))
    assert plant.whole() is Progress.NOTHING
    looks = plant.condition.looks
    for _ in range(20):
        plant.put(b"no")
        assert plant.found() is Progress.NOTHING
    assert plant.condition.looks == looks + 20

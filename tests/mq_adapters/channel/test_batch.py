"""What one batch takes, and how large the next one may be."""

import threading

import pytest

from mq_adapters.channel.batch import BatchLimits, BatchSize, most_messages, take
from mq_adapters.channel.clock import Clock
from mq_adapters.message import Message
from mq_adapters.transmission import kept_with_next
from tests.mq_adapters.channel.conftest import TRANSMISSION_QUEUE, World
from tests.mq_adapters.channel.faults import FaultyConnection


def limits(**changes: object) -> BatchLimits:
    return BatchLimits(**{"messages": 10, "most_messages": 10, "bytes": 1_000_000, "idle_s": 0.0, **changes})


def take_now(world: World, connection: FaultyConnection, **changes: object) -> list[Message]:
    return take(connection, TRANSMISSION_QUEUE, limits(**changes), stop=threading.Event(), clock=world.clock)


def test_an_empty_queue_leaves_no_unit_of_work(world: World):
    connection = world.here.connect()
    assert take_now(world, connection) == []
    connection.begin()


def test_a_batch_takes_what_is_there_up_to_its_messages(world: World):
    world.send(*(b"%d" % number for number in range(12)))
    connection = world.here.connect()
    assert len(take_now(world, connection)) == 10
    connection.commit()
    assert len(take_now(world, connection)) == 2


def test_a_chain_of_messages_that_are_to_go_together_fills_no_memory(world: World):
    """Two go together; whoever says it of a thousand large ones has put them there by hand."""
    for _ in range(20):
        world.send_pair(b"x" * 1_000, b"last of a pair")
    for message in tuple(world.here.hand.browse(TRANSMISSION_QUEUE)):
        taken = world.here.hand.get(TRANSMISSION_QUEUE, msg_id=message.msg_id)
        world.here.hand.put(TRANSMISSION_QUEUE, kept_with_next(taken))
    taken = take_now(world, world.here.connect(), messages=2, most_messages=100, bytes=3_000)
    assert sum(len(message.body) for message in taken) < 3 * 3_000
    assert len(taken) < 40


def test_a_small_batch_waits_for_more_and_no_longer_than_it_may(world: World):
    world.send(b"early")
    connection = world.here.connect()
    waits: list[float] = []

    class Late:
        """The connection, with a message that comes while the batch waits."""

        def __getattr__(self, name: str) -> object:
            return getattr(connection, name)

        def get(self, queue_name: str, *, wait_s: float = 0.0, msg_id: bytes | None = None) -> Message:
            if wait_s and waits:
                world.now_s += 0.03
            elif wait_s:
                world.now_s += 0.02
            waits.append(wait_s)
            if len(waits) == 2:
                world.send(b"late")
            return connection.get(queue_name, wait_s=wait_s, msg_id=msg_id)

    clock = Clock(monotonic_s=lambda: world.now_s)
    taken = take(Late(), TRANSMISSION_QUEUE, limits(idle_s=0.05), stop=threading.Event(), clock=clock)
    assert [message.body[428:] for message in taken] == [b"early", b"late"]
    assert waits[0] == 1.0
    assert waits[1:] == pytest.approx([0.05, 0.02])


def test_a_batch_that_shall_stop_waits_for_nothing_more(world: World):
    world.send(b"early")
    stop = threading.Event()
    stop.set()
    connection = world.here.connect()
    assert len(take(connection, TRANSMISSION_QUEUE, limits(idle_s=60.0), stop=stop, clock=world.clock)) == 1


def test_pairs_take_a_batch_to_its_utmost_and_never_beyond(world: World):
    for number in range(4):
        world.send_pair(b"first %d" % number, b"second %d" % number)
    connection = world.here.connect()
    assert len(take_now(world, connection, messages=3, most_messages=10)) == 4
    assert len(take_now(world, world.here.connect(), messages=3, most_messages=3)) == 3


@pytest.mark.parametrize(
    ("here", "there", "most"), [(10_000, 10_000, 3_332), (10_000, 500, 497), (999_999_999, 10_000, 9_997), (1, 1, 1)]
)
def test_a_batch_stays_below_the_limits_of_both_units_of_work(here: int, there: int, most: int):
    assert most_messages(here, there) == most


def connected(wanted: int, most: int) -> BatchSize:
    size = BatchSize(wanted)
    size.connected(most)
    return size


def test_a_batch_is_halved_when_it_is_refused_and_grows_again():
    size = connected(100, 3_000)
    size.refused(100, 2003)
    size.refused(50, 2003)
    assert size.messages == 25
    size.went_through()
    size.went_through()
    size.went_through()
    assert size.messages == 100


def test_a_limit_that_was_met_stays():
    size = connected(100, 3_000)
    size.refused(100, 2024)
    size.went_through()
    assert size.messages == 50
    size.refused(1, 2024)
    assert size.messages == 1


def test_a_batch_that_became_smaller_stays_so_over_a_new_connection_and_a_limit_does_not():
    size = connected(100, 3_000)
    size.refused(100, 2024)
    size.connected(3_000)
    assert size.messages == 50
    size.went_through()
    assert size.messages == 100
    size.connected(80)
    assert size.messages == 80

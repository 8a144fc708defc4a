"""Messages that are refused for good, refusals that pass, and those that an operator must see to."""

import pytest

from mq_adapters.message import Message, MessageDescriptor
from tests.mq_adapters.channel.conftest import (
    DEAD_LETTER_QUEUE,
    STREAM,
    TRANSMISSION_QUEUE,
    World,
)

TEN = [b"message %d" % number for number in range(10)]
#: MQDLH_LENGTH_1
MQDLH_BYTES = 172


def dead_letters(world: World) -> list[tuple[int, bytes, bytes]]:
    """Reason code, destination and body of each dead letter in the store."""
    letters = world.here.bodies(DEAD_LETTER_QUEUE)
    return [(int.from_bytes(each[8:12], "little"), each[12:60].rstrip(), each[MQDLH_BYTES:]) for each in letters]


# -- messages that are refused for good --------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("reason_code", [2030, 2031, 2218, 2048, 2013, 2026, 2334])
def test_a_message_that_is_refused_for_good_is_a_dead_letter_and_the_rest_goes_on(
    world: World, at: int, reason_code: int
):
    bodies = [b"good %d" % number for number in range(4)]
    bodies.insert(at, b"<bad>")
    world.there.faults.refused_puts[b"<bad>"] = reason_code
    world.send(*bodies)
    status = world.run(world.outbound())
    assert world.there.bodies(STREAM) == [body for body in bodies if body != b"<bad>"]
    assert dead_letters(world) == [(reason_code, STREAM.encode(), b"<bad>")]
    assert (status.messages, status.dead_letters, status.batch) == (4, 1, 1)


@pytest.mark.parametrize("at", range(9))
def test_a_message_whose_commit_is_refused_is_found_by_halving(world: World, at: int):
    bodies = [b"good %d" % number for number in range(8)]
    bodies.insert(at, b"<bad>")
    world.there.faults.uncommittable.append(b"<bad>")
    world.send(*bodies)
    status = world.run(world.outbound())
    assert world.there.bodies(STREAM) == [body for body in bodies if body != b"<bad>"]
    assert dead_letters(world) == [(2003, STREAM.encode(), b"<bad>")]
    assert status.dead_letters == 1
    assert world.waits_s == []


def test_a_pair_whose_commit_is_refused_is_dead_letters_both(world: World):
    world.there.faults.uncommittable.append(b"<bad>")
    world.send(b"before")
    world.send_pair(b"first", b"<bad> second")
    world.send(b"behind")
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == [b"before", b"behind"]
    assert [letter[2] for letter in dead_letters(world)] == [b"first", b"<bad> second"]


def test_no_message_is_a_dead_letter_while_the_queue_manager_commits_nothing(world: World):
    world.send(*TEN)
    world.there.faults.uncommittable.append(b"")  # the state message, too
    wait = world._wait

    def heal(stop, seconds):
        wait(stop, seconds)
        if len(world.waits_s) == 3:
            world.there.faults.uncommittable.clear()

    world._wait = heal
    world.run(world.outbound())
    assert world.waits_s == [10, 60, 60]
    assert dead_letters(world) == []
    assert world.there.bodies(STREAM) == TEN


def test_what_is_no_message_for_another_queue_manager_is_a_dead_letter(world: World):
    world.send(b"good")
    world.here.hand.put(TRANSMISSION_QUEUE, Message(MessageDescriptor(format=b"MQSTR   "), b"stray"))
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == [b"good"]
    assert dead_letters(world) == [(2260, TRANSMISSION_QUEUE.encode(), b"stray")]


def test_a_message_that_asks_for_what_nobody_grants_is_a_dead_letter_that_asks_for_nothing(world: World):
    world.send(b"asks", descriptor=MessageDescriptor(report=2, msg_type=1, msg_id=b"m" * 24, format=b"MQSTR   "))
    world.send(b"good")
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == [b"good"]
    assert dead_letters(world) == [(2027, STREAM.encode(), b"asks")]
    letter = world.here.hand.get(DEAD_LETTER_QUEUE).descriptor
    assert (letter.report, letter.msg_type, letter.msg_id) == (0, 8, b"m" * 24)


def test_a_dead_letter_queue_that_is_full_keeps_the_batch_waiting(world: World):
    world.there.faults.refused_puts[b"<bad>"] = 2030
    world.here.mqsc(f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) MAXDEPTH(0)")
    world.send(b"good", b"<bad>")
    wait = world._wait

    def make_room(stop, seconds):
        wait(stop, seconds)
        assert world.state().doubtful is None
        world.here.mqsc(f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) MAXDEPTH(10)")

    world._wait = make_room
    world.run(world.outbound())
    assert world.waits_s == [10]
    assert world.there.bodies(STREAM) == [b"good"]
    assert [letter[2] for letter in dead_letters(world)] == [b"<bad>"]


# -- refusals that are no message's fault ------------------------------------------------------------------------------


@pytest.mark.parametrize("reason_code", [2053, 2056, 2051, 2269, 2102])
def test_a_refusal_that_passes_is_waited_for(world: World, reason_code: int):
    world.send(*TEN)
    world.there.faults.refused_puts[b"message 5"] = reason_code
    wait = world._wait

    def heal(stop, seconds):
        wait(stop, seconds)
        world.there.faults.refused_puts.clear()

    world._wait = heal
    world.run(world.outbound())
    assert world.waits_s == [10]
    assert world.there.bodies(STREAM) == TEN
    assert dead_letters(world) == []


@pytest.mark.parametrize("reason_code", [2085, 2035, 2087, 2173, 9999])
def test_what_an_operator_must_repair_is_waited_for_at_length_and_never_a_dead_letter(world: World, reason_code: int):
    world.send(*TEN)
    world.there.faults.refused_puts[b"message 5"] = reason_code
    wait = world._wait

    def repair(stop, seconds):
        wait(stop, seconds)
        if len(world.waits_s) == 3:
            world.there.faults.refused_puts.clear()

    world._wait = repair
    world.run(world.outbound())
    assert world.waits_s == [60, 60, 60]
    assert world.there.bodies(STREAM) == TEN
    problems = {status.problem.reason_code for status in world.recorder.statuses if status.problem}
    assert problems == {reason_code}


def test_a_unit_of_work_that_is_too_large_becomes_smaller(world: World):
    world.send(*TEN)
    world.there.faults.most_unit_calls = 5  # the state message is got and put, so 3 messages fit
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == TEN
    assert max(len(unit) - 1 for unit in world.there.faults.units) <= 3
    assert world.waits_s == []


def test_a_batch_keeps_below_what_a_unit_of_work_may_hold(world: World):
    world.there.mqsc("ALTER QMGR MAXUMSGS(6)")
    world.send(*TEN)
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == TEN
    assert [len(unit) - 1 for unit in world.there.faults.units] == [3, 3, 3, 1]

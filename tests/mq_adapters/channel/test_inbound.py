"""The way in, call by call: whatever fails, and wherever, each message is stored once, in order, as it was."""

import pytest

from mq_adapters.channel import ChannelState, StartAction
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from tests.mq_adapters.channel.conftest import DEAD_LETTER_QUEUE, IN, SUBSCRIBER, World

TEN = [b"message %d" % number for number in range(10)]
VERBS = ("begin", "put", "get", "take_batch", "browse", "commit", "open_exclusively", "inquire")
#: The store's own sockets close with the process; a queue manager across a network may notice later.
#: MQDLH_LENGTH_1
MQDLH_BYTES = 172


def arrive(world: World, *bodies: bytes, msg_id: bytes | None = None) -> None:
    """Messages that the other side's broker puts on our subscriber queue."""
    for body in bodies:
        identifier = {} if msg_id is None else {"msg_id": msg_id}
        world.there.hand.put(SUBSCRIBER, Message(MessageDescriptor(persistence=MQPER_PERSISTENT, **identifier), body))


def stored(world: World) -> list[bytes]:
    return world.here.bodies(SUBSCRIBER)


def test_what_arrives_is_stored_in_order(world: World):
    arrive(world, *TEN)
    status = world.run(world.inbound(batch_messages=3))
    assert stored(world) == TEN
    assert world.there.bodies(SUBSCRIBER) == []
    assert (status.state, status.messages, status.in_doubt) == (ChannelState.STOPPED, 10, None)
    assert world.state(IN).doubtful is None


def test_a_message_keeps_its_identifiers_and_context(world: World):
    descriptor = MessageDescriptor(
        report=0,
        format=b"MQHRF2  ",
        coded_char_set_id=437,
        encoding=273,
        priority=3,
        persistence=MQPER_PERSISTENT,
        msg_id=b"m" * 24,
        correl_id=b"c" * 24,
        user_identifier="broker",
        put_appl_type=26,
        put_appl_name="PLANT",
        appl_origin_data="orig",
    )
    world.there.hand.put(SUBSCRIBER, Message(descriptor, b"body"))
    world.run(world.inbound())
    assert world.here.hand.get(SUBSCRIBER).descriptor == descriptor


@pytest.mark.parametrize(
    ("when", "dropped"), [("before", 4), ("after", 0), ("later", 0)], ids=["before", "after", "later"]
)
def test_what_comes_again_after_a_doubtful_commit_is_dropped(world: World, when: str, dropped: int):
    arrive(world, *TEN)
    world.there.faults.plan("commit", 1, when=when)
    status = world.run(world.inbound(batch_messages=4))
    assert stored(world) == TEN
    assert status.dropped == dropped
    action = StartAction.REMOVE_DELIVERED if dropped else StartAction.NOTHING_IN_DOUBT
    assert world.recorder.actions[1:] == [(action, dropped)]


def test_a_commit_that_says_backed_out_is_no_doubt_about_what_is_stored(world: World):
    arrive(world, *TEN)
    world.there.faults.plan("commit", 1, when="before", reason_code=2003)
    status = world.run(world.inbound(batch_messages=4))
    assert stored(world) == TEN
    assert status.dropped == 4


def test_another_message_with_the_same_msg_id_is_not_dropped(world: World):
    arrive(world, b"first", msg_id=b"m" * 24)
    world.there.faults.plan("commit", 1, when="after")
    world.run(world.inbound())
    arrive(world, b"second", b"third", msg_id=b"m" * 24)
    world.run(world.inbound())
    assert stored(world) == [b"first", b"second", b"third"]


def test_a_msg_id_is_dropped_as_often_as_it_was_stored(world: World):
    arrive(world, b"first", b"second", msg_id=b"m" * 24)
    world.there.faults.plan("commit", 1, when="before")
    status = world.run(world.inbound(batch_messages=2))
    assert (stored(world), status.dropped) == ([b"first", b"second"], 2)


@pytest.mark.parametrize(
    ("side", "when"),
    [("here", "before"), ("here", "after"), ("there", "before"), ("there", "after"), ("there", "later")],
)
@pytest.mark.parametrize("verb", VERBS)
def test_a_loss_at_any_call_costs_nothing(world: World, side: str, verb: str, when: str):
    faults = (world.here if side == "here" else world.there).faults
    expected = []
    for nth in range(1, 9):
        bodies = [b"%s %d %d" % (verb.encode(), nth, each) for each in range(3)]
        expected += bodies
        arrive(world, *bodies)
        faults.plan(verb, nth, when=when)
        world.run(world.inbound(batch_messages=2))
        world.run(world.inbound(batch_messages=2))
    faults.heal()
    world.run(world.inbound())
    assert stored(world) == expected
    assert world.there.bodies(SUBSCRIBER) == []


def test_a_process_that_dies_between_both_commits_stores_nothing_twice(world: World):
    arrive(world, *TEN)
    world.there.faults.plan("commit", 2, when="before", reason_code=0)
    world.run(world.inbound(batch_messages=4))
    assert world.state(IN).doubtful is not None
    world.run(world.inbound(batch_messages=3))
    assert stored(world) == TEN
    assert world.state(IN).doubtful is None


def test_a_disk_that_is_short_of_space_gets_nothing_more(world: World):
    """Where it comes from it is safe, and an outage of the store counts as one back-out of a batch at most."""
    arrive(world, *TEN)
    queue = world.here.engine.queue(SUBSCRIBER)
    wait = world._wait
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(2) BOQNAME(ASIDE)")

    def make_room(stop, seconds):
        wait(stop, seconds)
        queue.lacks_space = len(world.waits_s) < 5

    world._wait = make_room
    queue.lacks_space = True
    status = world.run(world.inbound(batch_messages=4))
    assert stored(world) == TEN
    assert world.there.bodies("ASIDE") == []
    assert status.problem.reason_code == 2056
    assert "make room on the disk" in status.problem.text


def test_a_store_that_is_full_is_waited_for_without_getting_anything(world: World):
    arrive(world, *TEN)
    world.here.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) MAXDEPTH(2)")
    wait = world._wait

    def make_room(stop, seconds):
        wait(stop, seconds)
        if len(world.waits_s) == 5:
            world.here.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) MAXDEPTH(100)")

    world._wait = make_room
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(4) BOQNAME(ASIDE)")
    world.run(world.inbound(batch_messages=4))
    assert stored(world) == TEN
    assert world.waits_s == [10, 60, 60, 60, 60]
    assert world.there.bodies("ASIDE") == [], "an outage of the store counts as one back-out, not as five"


def test_a_message_that_the_store_refuses_for_good_is_a_dead_letter_there(world: World):
    arrive(world, b"one", b"bad", b"two")
    world.here.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) MAXMSGL(3)")
    arrive(world, b"too long")
    status = world.run(world.inbound())
    assert stored(world) == [b"one", b"bad", b"two"]
    letters = world.here.bodies(DEAD_LETTER_QUEUE)
    assert [letter[MQDLH_BYTES:] for letter in letters] == [b"too long"]
    assert int.from_bytes(letters[0][8:12], "little") == 2030
    assert (status.messages, status.dead_letters) == (3, 1)


# -- back-out threshold ------------------------------------------------------------------------------------------------


def back_out(world: World, times: int) -> None:
    for _ in range(times):
        world.there.hand.begin()
        world.there.hand.get(SUBSCRIBER)
        world.there.hand.back_out()


def test_a_message_that_was_backed_out_too_often_is_put_aside(world: World):
    arrive(world, b"bad", b"good")
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(3) BOQNAME(ASIDE)")
    back_out(world, 3)
    status = world.run(world.inbound())
    assert stored(world) == [b"good"]
    assert world.there.bodies("ASIDE") == [b"bad"]
    assert (status.messages, status.dead_letters) == (1, 1)


def test_below_the_threshold_or_without_one_a_message_is_stored(world: World):
    arrive(world, b"one", b"two")
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(3) BOQNAME(ASIDE)")
    back_out(world, 2)
    world.run(world.inbound())
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(0)")
    arrive(world, b"three")
    back_out(world, 9)
    world.run(world.inbound())
    assert stored(world) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("requeue_name", ["", "NOT.THERE"])
def test_without_a_requeue_queue_it_is_a_dead_letter_there(world: World, requeue_name: str):
    arrive(world, b"bad", b"good")
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(1) BOQNAME({requeue_name or chr(39) * 2})")
    back_out(world, 1)
    world.run(world.inbound())
    assert stored(world) == [b"good"]
    letters = world.there.bodies("DEAD.HERE")
    assert [letter[MQDLH_BYTES:] for letter in letters] == [b"bad"]
    assert int.from_bytes(letters[0][8:12], "little") == 2362
    assert letters[0][12:60].rstrip() == SUBSCRIBER.encode()


def test_where_nothing_takes_it_the_alarm_is_raised_and_nothing_is_lost(world: World):
    arrive(world, b"bad", b"good")
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(1)")
    world.there.mqsc("ALTER QMGR DEADQ(' ')")
    back_out(world, 1)
    wait = world._wait

    def name_one(stop, seconds):
        wait(stop, seconds)
        world.there.mqsc("ALTER QMGR DEADQ(DEAD.HERE)")

    world._wait = name_one
    world.run(world.inbound())
    assert world.waits_s == [60]
    problems = [status.problem for status in world.recorder.statuses if status.problem]
    assert "dead-letter queue of PLANT" in problems[0].text
    assert "ALTER QMGR DEADQ" in problems[0].text
    assert stored(world) + [body[MQDLH_BYTES:] for body in world.there.bodies("DEAD.HERE")] == [b"bad", b"good"]


def test_what_comes_again_is_dropped_and_not_put_aside(world: World):
    arrive(world, b"one")
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(1) BOQNAME(ASIDE)")
    world.there.faults.plan("commit", 1, when="before")
    world.run(world.inbound())
    assert (stored(world), world.there.bodies("ASIDE")) == ([b"one"], [])


def test_a_message_put_aside_in_a_unit_of_work_that_was_lost_is_put_aside_again(world: World):
    arrive(world, b"bad", b"good")
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(1) BOQNAME(ASIDE)")
    back_out(world, 1)
    world.there.faults.plan("commit", 1, when="before")
    world.run(world.inbound())
    assert (stored(world), world.there.bodies("ASIDE")) == ([b"good"], [b"bad"])


# -- who may go on -----------------------------------------------------------------------------------------------------


def test_another_queue_manager_is_refused_while_a_batch_is_in_doubt(world: World):
    other = world.another_queue_manager()
    arrive(world, b"one")
    other.hand.put(SUBSCRIBER, Message(MessageDescriptor(), b"two"))
    world.there.faults.plan("commit", 1, when="before", reason_code=0)
    world.run(world.inbound())
    turns = iter((other, world.there))
    channel = world.inbound()
    channel._connect_remote = lambda: next(turns).connect()
    other.faults.when_empty = world.there.faults.when_empty
    world.run(channel)
    assert stored(world) == [b"one"]
    assert other.bodies(SUBSCRIBER) == [b"two"]
    world.run(world.inbound(there=other))
    assert stored(world) == [b"one", b"two"]
    assert world.recorder.pins[-1] == (world.there.hand.identifier, other.hand.identifier)


def test_two_getters_share_nothing_out(world: World):
    arrive(world, *TEN)
    first = world.there.connect()
    fence = first.open_exclusively(SUBSCRIBER)
    asked = 0

    def give_up(verb: str) -> None:
        nonlocal asked
        asked += verb == "open_exclusively"
        if asked == 3:
            fence.close()

    world.there.faults.draw = give_up
    world.run(world.inbound())
    assert world.recorder.states[:3] == ["connecting", "fencing", "running"]
    assert stored(world) == TEN


def test_a_unit_of_work_that_is_too_large_becomes_smaller(world: World):
    arrive(world, *TEN)
    world.here.faults.most_unit_calls = 6
    world.run(world.inbound())
    assert stored(world) == TEN
    assert world.waits_s == []

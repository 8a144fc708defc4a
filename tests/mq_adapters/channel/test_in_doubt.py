"""Every row of the table in in_doubt.py: what both state messages say, and what follows."""

import pytest

from mq_adapters.channel.in_doubt import Mismatch, MismatchCause, Start, StartAction, compare, went_back
from mq_adapters.channel.state_message import Batch, LocalState, RemoteState
from mq_adapters.message import Message, MessageDescriptor

GATEWAY = b"g" * 12
A, B = "PLANT_A", "PLANT_B"
M1, M2, M3 = (bytes((number,)) * 24 for number in (1, 2, 3))


def local(*, settled: int = 0, doubtful: tuple[bytes, ...] | None = None, at: str = A, reset: bool = False):
    """The store: batch `settled` at queue manager A, and the next one perhaps in doubt."""
    return LocalState(
        channel="C",
        gateway=GATEWAY,
        queue_manager=at,
        batch=settled,
        settled={A: settled} if settled else {},
        doubtful=None if doubtful is None else Batch(number=settled + 1, messages=doubtful),
        reset=reset,
    )


def remote(batch: int, *messages: bytes, gateway: bytes = GATEWAY, channel: str = "C", made_at: str = A) -> Message:
    state = RemoteState(
        channel=channel, gateway=gateway, queue_manager=made_at, batch=Batch(number=batch, messages=messages)
    )
    return state.to_message()


def own(sequence: int) -> bytes:
    """The MsgId that the store makes of a sequence number."""
    return b"RFHB" + GATEWAY + sequence.to_bytes(8, "big")


GARBAGE = Message(MessageDescriptor(), b"garbage")

STARTS = {
    "never used": (local(), (), A, StartAction.NOTHING_IN_DOUBT),
    "never connected": (local(at=""), (), A, StartAction.NOTHING_IN_DOUBT),
    "the first batch did not arrive": (local(doubtful=(M1,)), (), A, StartAction.DELIVER_THE_REST),
    "all is settled": (local(settled=6), (remote(6, M1),), A, StartAction.NOTHING_IN_DOUBT),
    "the batch did not arrive": (local(settled=6, doubtful=(M2,)), (remote(6, M1),), A, StartAction.DELIVER_THE_REST),
    "another queue manager, nothing in doubt": (local(settled=6), (), B, StartAction.NOTHING_IN_DOUBT),
    "a reset, garbage there": (local(settled=6, reset=True), (GARBAGE, GARBAGE), A, StartAction.NOTHING_IN_DOUBT),
    "a reset, ahead there": (local(settled=6, reset=True), (remote(9, M1),), A, StartAction.NOTHING_IN_DOUBT),
}


@pytest.mark.parametrize(("state", "found", "queue_manager", "action"), STARTS.values(), ids=STARTS)
def test_a_channel_that_may_go_on_delivers_what_waits(state, found, queue_manager, action):
    assert compare(state, found, queue_manager=queue_manager) == Start(action=action)


DELIVERED = {
    "the whole batch": (local(settled=6, doubtful=(M1, M2)), remote(7, M1, M2), (M1, M2)),
    "the batch without what was refused": (local(settled=6, doubtful=(M1, M2, M3)), remote(7, M1, M3), (M1, M3)),
    "nothing of it, all was refused": (local(settled=6, doubtful=(M1,)), remote(7), ()),
    "one MsgId twice": (local(settled=6, doubtful=(M1, M1)), remote(7, M1, M1), (M1, M1)),
    "the first batch ever": (local(doubtful=(M1,)), remote(1, M1), (M1,)),
}


@pytest.mark.parametrize(("state", "found", "delivered"), DELIVERED.values(), ids=DELIVERED)
def test_what_arrived_is_removed(state, found, delivered):
    start = compare(state, (found,), queue_manager=A)
    assert start == Start(action=StartAction.REMOVE_DELIVERED, delivered=delivered)


MISMATCHES = {
    "in doubt elsewhere": (local(settled=6, doubtful=(M1,)), (), B, MismatchCause.ANOTHER_QUEUE_MANAGER),
    "in doubt elsewhere, a reset asked for": (
        local(settled=6, doubtful=(M1,), reset=True),
        (),
        B,
        MismatchCause.ANOTHER_QUEUE_MANAGER,
    ),
    "two state messages": (
        local(settled=6),
        (remote(6, M1), remote(6, M1)),
        A,
        MismatchCause.SEVERAL_STATE_MESSAGES,
    ),
    "no JSON": (local(settled=6), (GARBAGE,), A, MismatchCause.MALFORMED_STATE),
    "garbage before the first batch": (local(), (GARBAGE,), A, MismatchCause.MALFORMED_STATE),
    "the state is lost": (local(settled=6), (), A, MismatchCause.STATE_LOST),
    "the state is lost in doubt": (local(settled=6, doubtful=(M1,)), (), A, MismatchCause.STATE_LOST),
    "a second gateway": (local(settled=6), (remote(6, M1, gateway=b"h" * 12),), A, MismatchCause.ANOTHER_GATEWAY),
    "a second gateway was first": (local(), (remote(1, M1, gateway=b"h" * 12),), A, MismatchCause.ANOTHER_GATEWAY),
    "another shard": (local(settled=6), (remote(6, M1, channel="D"),), A, MismatchCause.ANOTHER_CHANNEL),
    "a copy from another queue manager": (local(settled=6), (remote(6, M1, made_at=B),), A, MismatchCause.COPIED_STATE),
    "the queue manager was restored": (local(settled=6), (remote(5, M1),), A, MismatchCause.OLDER_QUEUE_MANAGER),
    "the queue manager was restored in doubt": (
        local(settled=6, doubtful=(M2,)),
        (remote(5, M1),),
        A,
        MismatchCause.OLDER_QUEUE_MANAGER,
    ),
    "the store was restored": (local(settled=6), (remote(7, M1),), A, MismatchCause.OLDER_STORE),
    "the store was restored long after": (local(settled=6), (remote(99, M1),), A, MismatchCause.OLDER_STORE),
    "the store was restored in doubt": (
        local(settled=6, doubtful=(M1,)),
        (remote(8, M2),),
        A,
        MismatchCause.OLDER_STORE,
    ),
    "the batch has other messages": (
        local(settled=6, doubtful=(M1, M2)),
        (remote(7, M1, M3),),
        A,
        MismatchCause.OLDER_STORE,
    ),
    "the batch has a message twice": (
        local(settled=6, doubtful=(M1, M2)),
        (remote(7, M1, M1),),
        A,
        MismatchCause.OLDER_STORE,
    ),
    "an empty store, a state that is ours": (local(at=""), (remote(6, M1),), A, MismatchCause.OLDER_STORE),
    "a state of ours at a queue manager that is unknown": (
        local(settled=6),
        (remote(3, M1, made_at=B),),
        B,
        MismatchCause.OLDER_STORE,
    ),
}


@pytest.mark.parametrize(("state", "found", "queue_manager", "cause"), MISMATCHES.values(), ids=MISMATCHES)
def test_a_channel_that_cannot_know_refuses_and_names_what_to_do(state, found, queue_manager, cause):
    mismatch = compare(state, found, queue_manager=queue_manager)
    assert isinstance(mismatch, Mismatch)
    assert mismatch.cause is cause
    assert mismatch.detail in str(mismatch)
    if cause is not MismatchCause.SEVERAL_STATE_MESSAGES:
        assert "rfhbridge channel resolve C" in mismatch.hint


@pytest.mark.parametrize(
    ("state", "found", "next_sequence", "is_shown"),
    [
        (local(settled=6), (remote(8, M1),), 1000, True),
        (local(), (remote(2, M1),), 1000, True),
        (local(settled=6), (remote(7, own(1000)),), 1000, True),
        (local(settled=6, doubtful=(M1,)), (remote(7, own(1000)),), 1000, True),
        (local(settled=6), (remote(7, own(999)),), 1000, False),  # the operator may have said backout of it
        (local(settled=6, doubtful=(M1,)), (remote(7, M1),), 1000, False),
        (local(settled=6), (remote(6, own(999)),), 1000, False),
        (local(settled=6, reset=True), (remote(9, own(5000)),), 1000, False),
        (local(settled=6), (remote(9, own(5000), gateway=b"h" * 12),), 1000, False),
        (local(settled=6), (GARBAGE,), 1000, False),
        (local(settled=6), (), 1000, False),
    ],
)
def test_only_what_nothing_else_explains_stops_a_gateway(state, found, next_sequence, is_shown):
    there = went_back(state, found, queue_manager=A, next_sequence=next_sequence)
    assert (there is not None) is is_shown


def test_only_another_queue_manager_may_become_the_right_one_by_itself():
    finals = {cause: Mismatch(cause=cause, detail="", hint="").is_final for cause in MismatchCause}
    assert [cause for cause, is_final in finals.items() if not is_final] == [MismatchCause.ANOTHER_QUEUE_MANAGER]


def test_a_channel_that_comes_back_to_a_queue_manager_goes_on_there():
    state = LocalState(channel="C", gateway=GATEWAY, queue_manager=B, batch=9, settled={A: 6, B: 9})
    assert compare(state, (remote(6, M1),), queue_manager=A) == Start(action=StartAction.NOTHING_IN_DOUBT)

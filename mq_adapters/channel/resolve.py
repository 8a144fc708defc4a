"""An operator resolves a batch that the channel cannot resolve (`rfhbridge channel resolve`). The channel must not run.

COMMIT and BACKOUT say that the batch in doubt was delivered, or that it was not, as in RESOLVE CHANNEL of IBM MQ. RESET
makes the channel begin anew. When it runs next, it replaces whatever message the state queue on the other side holds.
"""

from dataclasses import replace
from enum import StrEnum

from mq_adapters.channel.batch import get_or_none
from mq_adapters.channel.channel import LocalQueueManager
from mq_adapters.channel.local_state import StateChanged, StateRecord
from mq_adapters.channel.state_message import LocalState
from mq_adapters.message import Message


class Resolution(StrEnum):
    """The operator's decision about a batch."""

    #: The batch in doubt was delivered, so its messages leave the transmission queue.
    COMMIT = "commit"
    #: The batch in doubt was not delivered, so the channel delivers its messages again.
    BACKOUT = "backout"
    #: No batch is in doubt, and the state on the other side does not count.
    RESET = "reset"


class ResolutionRefused(Exception):
    """The decision does not fit the channel's state. Nothing was changed."""


def resolve(
    local: LocalQueueManager,
    resolution: Resolution,
    *,
    channel: str,
    transmission_queue: str = "",
) -> tuple[LocalState, tuple[Message, ...]]:
    """Carries the decision out; returns the new state, and the messages that left the transmission queue.

    `transmission_queue` is that of an outbound channel, blank for an inbound one. Raises ResolutionRefused,
    MalformedState, QueueManagerError: 2042 while the channel holds its transmission queue (stop it first).
    """
    record = StateRecord(channel, gateway=local.incarnation)
    if not transmission_queue:
        return _resolve(local, record, resolution, "")
    with local.open_exclusively(transmission_queue):
        return _resolve(local, record, resolution, transmission_queue)


def _resolve(
    local: LocalQueueManager, record: StateRecord, resolution: Resolution, transmission_queue: str
) -> tuple[LocalState, tuple[Message, ...]]:
    record.load(local)
    new_state = _resolved(record.state, resolution)
    doubtful = record.state.doubtful
    removed: tuple[Message, ...] = ()
    local.begin()
    try:
        if resolution is Resolution.COMMIT and doubtful is not None and transmission_queue:
            found = [get_or_none(local, transmission_queue, msg_id=msg_id) for msg_id in doubtful.messages]
            removed = tuple(message for message in found if message is not None)
        record.replace(local, new_state)
    except StateChanged as error:
        local.back_out()
        raise ResolutionRefused(f"{error}: stop it first") from error
    local.commit()
    record.committed()
    return new_state, removed


def _resolved(state: LocalState, resolution: Resolution) -> LocalState:
    if resolution is Resolution.RESET:
        if state.doubtful is not None:
            raise ResolutionRefused(f"batch {state.doubtful.number} is in doubt: first resolve it by commit or backout")
        return replace(state, reset=True)
    if state.doubtful is None:
        raise ResolutionRefused(f"channel {state.channel} has no batch in doubt")
    return state.settling() if resolution is Resolution.COMMIT else state.undoubted()

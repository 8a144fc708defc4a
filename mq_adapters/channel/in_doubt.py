"""After a connection, one of four actions or a mismatch follows from the two state messages. Pure.

The store (local) says which batch it settled last and which one is under way. The queue manager (remote), behind the
fence, says which one it committed last. The first row that fits decides:

    the store says                      | the queue manager has            | then
    a batch in doubt elsewhere          | another identifier               | mismatch until the other one answers again
    the operator reset the channel      | anything                         | nothing in doubt; its state is replaced
                                        | two messages, or a malformed one | mismatch
    no batch here, nothing in doubt     | no message                       | nothing in doubt
    no batch here, one in doubt         | no message                       | deliver the rest
    a batch settled here                | no message                       | mismatch: the state is lost
                                        | another gateway, channel or      |
                                        | queue manager in the message     | mismatch
    it went back, batch N settled here  | N + 1 or more, of an incarnation |
                                        | before                           | remove what was taken
    batch N settled here                | N                                | nothing in doubt, or deliver the rest
    batch N+1 in doubt                  | N+1, of messages of that batch   | remove what was delivered
    batch N settled here                | less                             | mismatch: it was restored from a backup
    batch N settled here                | anything else                    | mismatch: the store was
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from mq_adapters.channel.state_message import (
    Batch,
    LocalState,
    MalformedState,
    RemoteState,
    own_sequence,
    read_remote_state,
)
from mq_adapters.message import Message


class StartAction(StrEnum):
    """The action of a channel that begins, or begins again, in an operator's words."""

    NOTHING_IN_DOUBT = "nothing in doubt"
    DELIVER_THE_REST = "deliver the rest"
    REMOVE_DELIVERED = "remove what was delivered"
    REMOVE_TAKEN = "remove what was taken before the store went back"


class MismatchCause(StrEnum):
    """The cause for which a channel may not go on."""

    ANOTHER_QUEUE_MANAGER = "another queue manager while a batch is in doubt"
    SEVERAL_STATE_MESSAGES = "more than one state message"
    MALFORMED_STATE = "a malformed state message"
    STATE_LOST = "no state message"
    ANOTHER_GATEWAY = "a second gateway"
    ANOTHER_CHANNEL = "another channel"
    COPIED_STATE = "a copied state message"
    OLDER_QUEUE_MANAGER = "a queue manager restored from a backup"
    OLDER_STORE = "a store restored from a backup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The channel may go on with this action, after it has removed the messages that were delivered.

    `taken` is the state at the target if the store went back behind it. All messages that waited here then, up to its
    last message, have gone there.
    """

    action: StartAction
    delivered: tuple[bytes, ...] = ()
    taken: RemoteState | None = None

    def is_taken(self, message: Message) -> bool:
        """Whether the target has a message that waits here, by its number and its time.

        A store that went back unseen gave the same numbers again. Messages that it took since then are newer than all
        messages that were delivered.
        """
        if self.taken is None or (self.taken.newest_us and message.put_us > self.taken.newest_us):
            return False
        return 0 < own_sequence(message.msg_id, self.taken.gateway) <= _last_of(self.taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The channel must not go on, because nobody can tell which messages were delivered.

    `hint` tells the operator what to do.
    """

    cause: MismatchCause
    detail: str
    hint: str

    @property
    def is_final(self) -> bool:
        """Whether only an operator can help.

        Another queue manager may give way to the right one without an operator.
        """
        return self.cause is not MismatchCause.ANOTHER_QUEUE_MANAGER

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail} ({self.hint})"


_RESET: Final = "find out which messages arrived, then begin anew: rfhbridge channel resolve {channel} --action reset"
_HINTS: Final = {
    MismatchCause.ANOTHER_QUEUE_MANAGER: "wait for the first queue manager, or say whether it has the batch: "
    "rfhbridge channel resolve {channel} --action commit, or backout",
    MismatchCause.SEVERAL_STATE_MESSAGES: "leave only this gateway's state message on the queue",
    MismatchCause.MALFORMED_STATE: "give this channel a state queue of its own; " + _RESET,
    MismatchCause.STATE_LOST: _RESET,
    MismatchCause.ANOTHER_GATEWAY: "give each gateway state queues of its own; if the other gateway is gone: " + _RESET,
    MismatchCause.ANOTHER_CHANNEL: "give each shard a state queue of its own; if the shards were changed: " + _RESET,
    MismatchCause.COPIED_STATE: _RESET,
    MismatchCause.OLDER_QUEUE_MANAGER: _RESET,
    MismatchCause.OLDER_STORE: "restore the newest files, or stop the gateway and accept it: rfhbridge queue"
    " accept-rollback --force, and nothing is sent again; or " + _RESET,
}


def compare(local: LocalState, found: Sequence[Message], *, queue_manager: str) -> Start | Mismatch:
    """The action at the queue manager of that identifier. Its state queue holds `found`."""
    elsewhere = mismatch_elsewhere(local, queue_manager)
    if elsewhere is not None:
        return elsewhere
    if local.reset:
        return Start(action=StartAction.NOTHING_IN_DOUBT)
    if len(found) > 1:
        return _mismatch(local, MismatchCause.SEVERAL_STATE_MESSAGES, f"the state queue has {len(found)} messages")
    if not found:
        return _without_state(local, queue_manager)
    try:
        remote = read_remote_state(found[0])
    except MalformedState as error:
        return _mismatch(local, MismatchCause.MALFORMED_STATE, str(error))
    return _stranger(local, remote, queue_manager) or _numbers(local, remote, queue_manager)


def went_back(
    local: LocalState, found: Sequence[Message], *, queue_manager: str, next_sequence: int
) -> RemoteState | None:
    """The state at the target, if only a store that went back explains it; else None.

    That is a state two batches ahead, or one with a number that the store has never given. A state one batch ahead,
    with messages that the store knows, may also come from an operator's resolution. It stops the channel, but not the
    gateway.
    """
    compared = compare(local, found, queue_manager=queue_manager)
    if not isinstance(compared, Mismatch) or compared.cause is not MismatchCause.OLDER_STORE:
        return None
    remote = read_remote_state(found[0])
    return remote if remote.batch.number > local.batch + 1 or _last_of(remote) >= next_sequence else None


def mismatch_elsewhere(local: LocalState, queue_manager: str) -> Mismatch | None:
    """The mismatch with any queue manager except the one that has the batch in doubt; None if no batch is in doubt."""
    if local.doubtful is None or local.queue_manager == queue_manager:
        return None
    detail = f"batch {local.doubtful.number} is in doubt at {local.queue_manager}, this is {queue_manager}"
    return _mismatch(local, MismatchCause.ANOTHER_QUEUE_MANAGER, detail)


def _without_state(local: LocalState, queue_manager: str) -> Start | Mismatch:
    settled = local.settled_at(queue_manager)
    if settled:
        detail = f"batch {settled} was delivered to {queue_manager}, and its state queue is empty"
        return _mismatch(local, MismatchCause.STATE_LOST, detail)
    return _go_on(local)


def _stranger(local: LocalState, remote: RemoteState, queue_manager: str) -> Mismatch | None:
    """The mismatch with a state message of another gateway, channel or queue manager."""
    if remote.gateway != local.gateway and remote.gateway not in local.earlier:
        detail = f"the state is that of gateway {remote.gateway.hex()}, this is {local.gateway.hex()}"
        return _mismatch(local, MismatchCause.ANOTHER_GATEWAY, detail)
    if remote.channel != local.channel:
        detail = f"the state is that of channel {remote.channel}"
        return _mismatch(local, MismatchCause.ANOTHER_CHANNEL, detail)
    if remote.queue_manager != queue_manager:
        detail = f"the state was made at {remote.queue_manager}, this is {queue_manager}"
        return _mismatch(local, MismatchCause.COPIED_STATE, detail)
    return None


def _numbers(local: LocalState, remote: RemoteState, queue_manager: str) -> Start | Mismatch:
    settled, committed = local.settled_at(queue_manager), remote.batch
    if committed.number == settled:
        return _go_on(local)
    if committed.number < settled:
        detail = f"it has committed batch {committed.number}, and batch {settled} was delivered to it"
        return _mismatch(local, MismatchCause.OLDER_QUEUE_MANAGER, detail)
    if local.doubtful is not None and _is_part(committed, local.doubtful):
        return Start(action=StartAction.REMOVE_DELIVERED, delivered=committed.messages)
    if remote.gateway in local.earlier:
        return Start(action=StartAction.REMOVE_TAKEN, taken=_since(local, remote))
    doubtful = "none" if local.doubtful is None else str(local.doubtful.number)
    detail = (
        f"{queue_manager} has committed batch {committed.number} up to message {remote.last_sequence}; "
        f"here batch {settled} is the last, and in doubt is {doubtful}"
    )
    return _mismatch(local, MismatchCause.OLDER_STORE, detail)


def _since(local: LocalState, remote: RemoteState) -> RemoteState:
    """The state at the target. Its last message counts only if it was in a batch that this store does not know."""
    return replace(remote, last_sequence=remote.last_sequence if remote.last_sequence > local.last_sequence else 0)


def _last_of(remote: RemoteState) -> int:
    """The highest number that was taken. Batches take the oldest messages first, so all older ones went before."""
    numbers = (own_sequence(msg_id, remote.gateway) for msg_id in remote.batch.messages)
    return max(remote.last_sequence, *numbers, 0)


def _is_part(committed: Batch, doubtful: Batch) -> bool:
    """Whether this is the batch in doubt: it has the same number, and all its messages were in that batch."""
    return committed.number == doubtful.number and not Counter(committed.messages) - Counter(doubtful.messages)


def _go_on(local: LocalState) -> Start:
    if local.doubtful is None:
        return Start(action=StartAction.NOTHING_IN_DOUBT)
    return Start(action=StartAction.DELIVER_THE_REST)


def _mismatch(local: LocalState, cause: MismatchCause, detail: str) -> Mismatch:
    return Mismatch(cause=cause, detail=detail, hint=_HINTS[cause].format(channel=local.channel))

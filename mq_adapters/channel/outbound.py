"""The way out: messages go from a transmission queue of the store to the other queue manager, each once.

One batch, in this order. A crash between any two steps leaves a state that `in_doubt.compare` knows:

    1. take messages from the transmission queue in a unit of work of the store, which stays open
    2. note in the store which messages are under way (a second connection, a commit of its own)
    3. put each message on the queue that its MQXQH names; a message refused for good becomes a dead letter in unit 1
    4. replace the state message there, commit there
    5. note in unit 1 that the batch is settled, commit it

A commit there that fails may have taken place, unless it fails with 2003: the channel gives the connection up, and
reads the state message behind the next fence. A message that is refused for good is refused alone. A batch whose commit
is refused (2003) is halved down to one message. It becomes a dead letter only if the rest commits and this message
fails a second time. The channel waits where every message would be refused alike (a missing queue, a missing authority,
a full queue). It refuses a message for a state queue, which would forge the state of a channel.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from mq_adapters.channel.batch import get_or_none
from mq_adapters.channel.channel import (
    Channel,
    MismatchFound,
    RemoteTrouble,
    Stopping,
    at_remote,
)
from mq_adapters.channel.in_doubt import Mismatch, Start, StartAction, compare
from mq_adapters.channel.settings import OutboundSettings
from mq_adapters.channel.state_message import Batch, RemoteState, own_sequence, read_remote_state
from mq_adapters.dead_letter import bury
from mq_adapters.exclusive_queue import ExclusiveQueue
from mq_adapters.message import Message
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import (
    Action,
    QueueManagerError,
    ReasonCode,
    what_to_do,
    what_to_do_after_commit,
)
from mq_adapters.transmission import Transmission, is_kept_with_next, read_transmission

#: Messages of one unit of work that were taken before the store went back.
_TAKEN_AT_ONCE = 500
#: After these reasons the channel makes the batch smaller. One of them means that the state message is too long for its
#: queue.
_TOO_LARGE = (Action.RETRY, Action.SMALLER_BATCH, Action.POISON)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outgoing:
    """A message of the transmission queue, unpacked, or the reason code with which it is refused already."""

    outside: Message
    transmission: Transmission | None
    reason_code: int = 0


class Outbound(Channel[OutboundSettings]):
    """Empties a transmission queue of the store into another queue manager."""

    _state_queue: ExclusiveQueue
    _notes: QueueManager
    _looked_s = 0.0
    #: The put time of the newest message that was ever delivered, as far as known; microseconds since 1970.
    _newest_us = 0
    #: The last lone message or group whose commit was refused although the queue manager commits without it.
    _suspects: frozenset[bytes] = frozenset()
    _condemned: frozenset[bytes] = frozenset()

    # -- beginning -----------------------------------------------------------------------------------------------------

    def _run_on_store(self) -> None:
        with self._connect_local() as self._notes:
            super()._run_on_store()

    def _hold_local_queue(self) -> ExclusiveQueue:
        return self._local.open_exclusively(self._settings.transmission_queue, wait_s=1.0)

    def _fenced_queue(self) -> str:
        return self._settings.remote_state_queue

    def _begin(self, fence: ExclusiveQueue) -> None:
        self._state_queue = fence
        start = self._compared()
        doubtful = self._record.state.doubtful
        number = doubtful.number if doubtful is not None else self._record.state.batch
        if start.action is StartAction.REMOVE_DELIVERED:
            self._remove(start.delivered)
        elif start.action is StartAction.REMOVE_TAKEN:
            self._remove_taken(start)
        elif start.action is StartAction.DELIVER_THE_REST:
            self._record.write(self._local, self._record.state.undoubted())
        self._board.started(start.action, batch=number, messages=len(start.delivered))
        self._pin()
        if self._record.state.reset:
            self._carry([])

    def _compared(self) -> Start:
        """Compares the states on both sides. It reads at most two messages there, because more are as bad as two."""
        self._looked_s = self._clock.monotonic_s()
        with at_remote():
            found = tuple(islice(self._remote.browse(self._settings.remote_state_queue), 2))
        compared = compare(self._record.state, found, queue_manager=self._remote.identifier)
        if isinstance(compared, Mismatch):
            raise MismatchFound(compared)
        if found and not self._record.state.reset:
            self._newest_us = max(self._newest_us, read_remote_state(found[0]).newest_us)
        return compared

    def _remove(self, delivered: Sequence[bytes]) -> None:
        """Takes delivered messages off the transmission queue. If one is gone, somebody removed it by hand."""
        self._local.begin()
        queue_name = self._settings.transmission_queue
        found = [get_or_none(self._local, queue_name, msg_id=msg_id) for msg_id in delivered]
        self._settle([self._parcel(message) for message in found if message is not None])

    def _remove_taken(self, start: Start) -> None:
        """Removes messages that the target had before the store went back, and goes on behind them."""
        queue_name, taken = self._settings.transmission_queue, start.taken
        assert taken is not None, "the action says so"
        waiting = [message.msg_id for message in self._local.browse(queue_name) if start.is_taken(message)]
        for first in range(0, max(1, len(waiting)), _TAKEN_AT_ONCE):
            removed = waiting[first : first + _TAKEN_AT_ONCE]
            is_last = first + _TAKEN_AT_ONCE >= len(waiting)
            self._local.begin()
            found = [get_or_none(self._local, queue_name, msg_id=msg_id) for msg_id in removed]
            state = self._record.state
            self._record.replace(self._local, state.caught_up(taken) if is_last else state)
            self._local.commit()
            self._record.committed()
            messages = [message for message in found if message is not None]
            self._board.settled(
                taken.batch.number,
                messages=len(messages),
                message_bytes=sum(len(message.body) for message in messages),
                dead_letters=0,
            )

    # -- a batch -------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        taken = self._take(self._local, self._settings.transmission_queue)
        if not taken:
            self._look_again()
            return
        try:
            self._carry([self._parcel(message) for message in taken])
        except RemoteTrouble as trouble:
            if trouble.is_in_doubt or what_to_do(trouble.error.reason_code) not in _TOO_LARGE:
                self._size.refused(len(taken), trouble.error.reason_code)
                raise
            self._make_smaller(taken, trouble)
        else:
            self._size.went_through()
            self._retry.succeeded()

    def _look_again(self) -> None:
        """From time to time, an idle channel checks that the state on the other side is unchanged."""
        if self._clock.monotonic_s() - self._looked_s >= self._settings.look_again_s:
            self._compared()

    def _parcel(self, outside: Message) -> _Outgoing:
        try:
            transmission = read_transmission(outside, now_us=self._clock.now_us())
        except QueueManagerError as error:
            return _Outgoing(outside=outside, transmission=None, reason_code=error.reason_code)
        reason_code = ReasonCode.MQRC_BACKED_OUT if outside.msg_id in self._condemned else 0
        queue_name, settings = transmission.queue_name, self._settings
        if queue_name == settings.remote_state_queue or queue_name in settings.protected_queues:
            reason_code = ReasonCode.MQRC_NOT_AUTHORIZED
        return _Outgoing(outside=outside, transmission=transmission, reason_code=reason_code)

    def _carry(self, parcels: Sequence[_Outgoing]) -> None:
        """Steps 2 to 5 for the taken messages; without messages it replaces the state message alone."""
        doubting = self._record.state.doubting(parcel.outside.msg_id for parcel in parcels)
        self._record.write(self._notes, doubting)
        try:
            delivered = self._put_all(parcels)
            self._commit_there(doubting.doubtful, delivered)
        except RemoteTrouble as trouble:
            if not trouble.is_in_doubt:
                self._give_up()
            raise
        except (Stopping, QueueManagerError):
            self._give_up()
            raise
        if not parcels:
            self._local.begin()
        self._settle(delivered, dead_letters=len(parcels) - len(delivered))

    def _put_all(self, parcels: Sequence[_Outgoing]) -> list[_Outgoing]:
        """Step 3; returns the messages that were not refused."""
        delivered: list[_Outgoing] = []
        with at_remote():
            self._remote.begin()
        for parcel in parcels:
            if self._stop.is_set():
                raise Stopping
            reason_code = parcel.reason_code or self._put(parcel)
            if reason_code:
                self._bury(parcel, reason_code)
            else:
                delivered.append(parcel)
        return delivered

    def _put(self, parcel: _Outgoing) -> int:
        """Puts one message; returns 0, or the reason code with which it is refused for good."""
        assert parcel.transmission is not None, "what cannot be read is refused already"
        try:
            self._remote.put(parcel.transmission.queue_name, parcel.transmission.message)
        except QueueManagerError as error:
            if what_to_do(error.reason_code) is not Action.POISON:
                raise RemoteTrouble(error) from error
            return error.reason_code
        return 0

    def _commit_there(self, doubtful: Batch | None, delivered: Sequence[_Outgoing]) -> None:
        assert doubtful is not None, "a batch is noted before it is put"
        self._newest_us = max(self._newest_us, *(parcel.outside.put_us for parcel in delivered), 0)
        state = RemoteState(
            channel=self.name,
            gateway=self._local.incarnation,
            queue_manager=self._remote.identifier,
            batch=Batch(number=doubtful.number, messages=tuple(parcel.outside.msg_id for parcel in delivered)),
            last_sequence=max(self._record.state.last_sequence, self._last_sequence(delivered)),
            newest_us=self._newest_us,
        )
        with at_remote():
            if self._record.state.reset:
                self._empty_state_queue()
            self._state_queue.replace(state.to_message())
        try:
            self._remote.commit()
        except QueueManagerError as error:
            is_backed_out = what_to_do_after_commit(error.reason_code) is Action.RETRY
            raise RemoteTrouble(error, is_in_doubt=not is_backed_out) from error

    def _empty_state_queue(self) -> None:
        """Empties the state queue, because the operator has said that it does not count."""
        while get_or_none(self._remote, self._settings.remote_state_queue) is not None:
            continue

    def _give_up(self) -> None:
        """Gives the batch back to the transmission queue. It was not delivered, and no batch is in doubt."""
        with suppress(QueueManagerError):
            self._remote.back_out()
        self._local.back_out()
        self._record.write(self._notes, self._record.state.undoubted())

    def _settle(self, delivered: Sequence[_Outgoing], *, dead_letters: int = 0) -> None:
        self._record.replace(self._local, self._record.state.settling(self._last_sequence(delivered)))
        self._local.commit()
        self._record.committed()
        self._board.settled(
            self._record.state.batch,
            messages=len(delivered),
            message_bytes=sum(len(parcel.outside.body) for parcel in delivered),
            dead_letters=dead_letters,
        )

    def _bury(self, parcel: _Outgoing, reason_code: int) -> None:
        transmission = parcel.transmission
        message = parcel.outside if transmission is None else transmission.message
        bury(
            self._local,
            message,
            queue_name=self._settings.transmission_queue if transmission is None else transmission.queue_name,
            queue_manager_name=self._local.name
            if transmission is None
            else transmission.queue_manager_name or self._remote.name,
            reason_code=reason_code,
            now_us=self._clock.now_us(),
        )

    def _last_sequence(self, parcels: Sequence[_Outgoing]) -> int:
        gateway = self._local.incarnation
        return max((own_sequence(parcel.outside.msg_id, gateway) for parcel in parcels), default=0)

    def _finish(self) -> None:
        """There is nothing left to do: each batch was settled before the next one."""

    # -- a batch that is refused as a whole ----------------------------------------------------------------------------

    def _make_smaller(self, taken: Sequence[Message], trouble: RemoteTrouble) -> None:
        """The batch was backed out. A lone message becomes a dead letter when it alone is refused twice."""
        groups = sum(not is_kept_with_next(message) for message in taken)
        if groups > 1:
            self._size.refused(len(taken), trouble.error.reason_code)
            return
        if trouble.error.reason_code != ReasonCode.MQRC_BACKED_OUT:
            raise trouble
        group = frozenset(message.msg_id for message in taken)
        if group == self._suspects:
            self._condemned = group
            return
        self._carry([])
        self._suspects = group

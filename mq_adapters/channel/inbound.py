"""The way in: messages go from a queue of the other queue manager to a queue of the store, each once.

One batch, in this order. After a crash, the MsgIds in the store tell which messages come again:

    1. get messages from the remote queue, which nobody else has open, in a unit of work there, which stays open
    2. put each on the local queue with its MsgId, CorrelId and context, and without the reports that it asks for; note
       all their MsgIds, commit in the store
    3. commit there

If step 3 fails, the messages come again, or they never do. Behind the next fence the last unit of work there has taken
effect. So noted messages that are on the queue come again. The channel gets, commits and drops each of them as often as
it is noted, and drops no other message. The doubt ends when all of them have come, or when the queue was empty once.

A message that has been backed out BOTHRESH times goes to BOQNAME there, or else to the dead-letter queue there. A
message that the store refuses for good becomes a dead letter in the store.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType

from mq_adapters.back_out import is_backed_out_too_often, put_aside
from mq_adapters.channel.channel import Channel, MismatchFound, RemoteTrouble, at_remote
from mq_adapters.channel.in_doubt import StartAction, mismatch_elsewhere
from mq_adapters.channel.settings import InboundSettings
from mq_adapters.channel.state_message import LocalState
from mq_adapters.dead_letter import bury
from mq_adapters.exclusive_queue import ExclusiveQueue
from mq_adapters.message import MQMT_DATAGRAM, MQMT_REQUEST, Message, MessageDescriptor
from mq_adapters.reasons import Action, QueueManagerError, ReasonCode, what_to_do


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sorted:
    """The messages of a batch, sorted by their fate."""

    stored: list[Message] = field(default_factory=list)
    dropped: list[Message] = field(default_factory=list)
    put_aside: list[Message] = field(default_factory=list)


class Inbound(Channel[InboundSettings]):
    """Brings messages from a queue of another queue manager into the store."""

    #: MsgIds that come again, and how often. They are known for the state `_known_of`, whose remote commit was
    #: answered.
    _expected_again: Mapping[bytes, int] = MappingProxyType({})
    _known_of: LocalState | None = None
    _backout_threshold = 0
    _requeue_name = ""

    # -- beginning -----------------------------------------------------------------------------------------------------

    def _hold_local_queue(self) -> AbstractContextManager[object]:
        """The local queue stays open to others, who get from it. The notes of MsgIds tell two channels apart."""
        return nullcontext()

    def _fenced_queue(self) -> str:
        return self._settings.remote_queue

    def _begin(self, fence: ExclusiveQueue) -> None:
        state = self._record.state
        if state == self._known_of:
            self._end_doubt_if_over()
        mismatch = mismatch_elsewhere(self._record.state, self._remote.identifier)
        if mismatch is not None:
            raise MismatchFound(mismatch)
        if state != self._known_of:
            self._expected_again = self._noted_and_there()
            self._end_doubt_if_over()
        action = StartAction.REMOVE_DELIVERED if self._expected_again else StartAction.NOTHING_IN_DOUBT
        number = state.doubtful.number if state.doubtful is not None else state.batch
        self._board.started(action, batch=number, messages=sum(self._expected_again.values()))
        if self._record.state.doubtful is None:
            self._pin()
        self._inquire_backout()
        self._check_local_queue()

    def _end_doubt_if_over(self) -> None:
        """Ends the doubt if no message of the noted batch comes again."""
        if not self._expected_again and self._record.state.doubtful is not None:
            self._record.write(self._local, self._record.state.settling())

    def _noted_and_there(self) -> Counter[bytes]:
        """The messages of the batch in doubt that come again. Nobody else gets from the queue now."""
        doubtful = self._record.state.doubtful
        noted = Counter(doubtful.messages if doubtful is not None else ())
        there: Counter[bytes] = Counter()
        with at_remote():
            for msg_id, times in noted.items():
                found = self._remote.browse(self._settings.remote_queue, msg_id=msg_id)
                there[msg_id] = sum(1 for _ in islice(found, times))
        return +there

    def _inquire_backout(self) -> None:
        with at_remote():
            queue = self._remote.inquire(self._settings.remote_queue)
        self._backout_threshold = queue.number("BOTHRESH")
        self._requeue_name = queue.text("BOQNAME")

    def _check_local_queue(self) -> None:
        """Checks that the local queue takes messages.

        A get in vain brings a message nearer to its back-out threshold.
        """
        self._local.begin()
        self._local.put(self._settings.local_queue, Message(MessageDescriptor(), b""))
        self._local.back_out()

    def _finish(self) -> None:
        """Notes in the store that the last batch was committed there."""
        if self._record.state == self._known_of:
            self._end_doubt_if_over()

    # -- a batch -------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        try:
            self._move()
        except (RemoteTrouble, QueueManagerError) as trouble:
            error = trouble.error if isinstance(trouble, RemoteTrouble) else trouble
            messages = self._size.messages
            self._size.refused(messages, error.reason_code)
            if error.reason_code != ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED or messages == 1:
                raise
            self._local.back_out()
            with at_remote():
                self._remote.back_out()

    def _move(self) -> None:
        with at_remote():
            taken = self._take(self._remote, self._settings.remote_queue)
        if taken:
            self._carry(taken)
        else:
            self._expected_again = {}
            self._end_doubt_if_over()

    def _carry(self, taken: Sequence[Message]) -> None:
        still_expected = Counter(self._expected_again)
        sorted_batch = self._sort(taken, still_expected)
        with at_remote():
            for message in sorted_batch.put_aside:
                put_aside(
                    self._remote,
                    self._settings.remote_queue,
                    message,
                    requeue_name=self._requeue_name,
                    now_us=self._clock.now_us(),
                )
        here = [message.msg_id for message in (*sorted_batch.dropped, *sorted_batch.stored)]
        self._store(sorted_batch.stored, noting=[*still_expected.elements(), *here])
        try:
            self._remote.commit()
        except QueueManagerError as error:
            raise RemoteTrouble(error, is_in_doubt=True) from error
        self._expected_again = +still_expected
        self._known_of = self._record.state
        self._retry.succeeded()
        self._size.went_through()
        self._board.counted(dead_letters=len(sorted_batch.put_aside), dropped=len(sorted_batch.dropped))

    def _sort(self, taken: Sequence[Message], still_expected: Counter[bytes]) -> _Sorted:
        """First drops the messages that come again, and takes them out of `still_expected`."""
        batch = _Sorted()
        for message in taken:
            if still_expected[message.msg_id]:
                still_expected[message.msg_id] -= 1
                batch.dropped.append(message)
            elif is_backed_out_too_often(message, threshold=self._backout_threshold):
                batch.put_aside.append(message)
            else:
                batch.stored.append(message)
        return batch

    def _store(self, messages: Sequence[Message], *, noting: Sequence[bytes]) -> None:
        """Step 2. The batch stays in the store, even if the commit there fails."""
        self._local.begin()
        accepted = [message for message in messages if self._accepts(_as_stored(message))]
        state = self._record.state
        settled = state if state.doubtful is None else state.settling()
        self._record.replace(self._local, settled.doubting(noting))
        self._local.commit()
        self._record.committed()
        self._board.settled(
            self._record.state.batch,
            messages=len(accepted),
            message_bytes=sum(len(message.body) for message in accepted),
            dead_letters=len(messages) - len(accepted),
        )

    def _accepts(self, message: Message) -> bool:
        """Puts a message on the local queue, or makes it a dead letter if that queue refuses it for good."""
        try:
            self._local.put(self._settings.local_queue, message)
        except QueueManagerError as error:
            if what_to_do(error.reason_code) is not Action.POISON:
                raise
            bury(
                self._local,
                message,
                queue_name=self._settings.local_queue,
                queue_manager_name=self._local.name,
                reason_code=error.reason_code,
                now_us=self._clock.now_us(),
            )
            return False
        return True


def _as_stored(message: Message) -> Message:
    """A message that arrived, without its Report options. The queue manager where it arrived makes the reports.

    A report made here would be a message of the gateway, on any queue that a stranger names.
    """
    descriptor = message.descriptor
    is_asking = descriptor.msg_type == MQMT_REQUEST and not descriptor.reply_to_q
    if not (descriptor.report or is_asking):
        return message
    msg_type = MQMT_DATAGRAM if is_asking else descriptor.msg_type
    message.descriptor = descriptor.replace(report=0, msg_type=msg_type)
    return message

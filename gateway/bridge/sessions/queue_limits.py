"""The limits of each session's queue: on the number of waiting messages, on their bytes, and on their age.

A message past a limit was acknowledged to its publisher. So it goes to the dead-letter queue, whole, the audit notes
it, and `rfhbridge queue redrive` brings it back. Over a size limit the newest message is removed, so order is kept.
Over the age limit, which holds while the session is not connected, the oldest is removed. A message of QoS 0 was not
acknowledged: it is dropped, and the audit notes that too. Publishers are never slowed down by one absent subscriber.
The bytes of each lane are charged to its session, and with it to its user or networks. If one of these has too many,
the newest messages of the sessions go that have its average or more.
When the dead-letter queue is full, messages stay where they are, and the disk's mark pauses publishers.

Limits are checked some time after a commit, so a session may be past one for a moment.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.notes.origin import exchange_of
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import SessionLimits
from gateway.limits.budgets import Account, Amount, Budgets
from gateway.limits.refusals import Refusals
from mq_adapters.embedded.dead_letters import ShareFilled
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError
from mq_adapters.reasons import ReasonCode as Reason
from mq_adapters.reports import MQFB_EXPIRATION

_log = logging.getLogger(__name__)

#: Lanes that one tick checks; ticks are a tenth of a second apart, so 10,000 lanes take a second.
_LANES_AT_ONCE: Final = 1_000
#: Messages that one tick reads to see their age: each may be a read of the disk.
_READS_AT_ONCE: Final = 20
#: The most messages and bytes that are taken off a lane before the first is moved, so that they keep their order.
_EXCESS_MESSAGES: Final = 2_000
_EXCESS_BYTES: Final = 16 * 1024 * 1024
#: Messages that one turn of the event loop takes, at some 5 microseconds each where they are in memory; messages and
#: bytes that it moves in a unit of work, at some 25 microseconds each.
_TAKEN_AT_ONCE: Final = 40
_MOVED_AT_ONCE: Final = 20
_BYTES_AT_ONCE: Final = 256 * 1024
_SECOND_US: Final = 1_000_000
#: The pause after the dead-letter queue refused a message, microseconds.
_REST_US: Final = 10 * _SECOND_US
#: MQDLH.Reason of a message that a limit sends to the dead-letter queue, where it is not that the queue is full.
_REASONS: Final = {
    Limit.QUEUED_AGE: MQFB_EXPIRATION,
}


class _Excess:
    """Messages that were taken off a lane past its limit, oldest first. `is_whole`: no more are taken for now."""

    __slots__ = ("correl_id", "is_whole", "limit", "messages", "size")

    def __init__(self, correl_id: bytes, limit: Limit) -> None:
        self.correl_id = correl_id
        self.limit = limit
        self.messages: deque[Message] = deque()
        self.size = 0
        self.is_whole = False


class QueueLimits:
    """Keeps the lanes of the subscriber queue, one for each session, within their limits."""

    def __init__(
        self,
        engine: Engine,
        queue: Queue,
        limits: SessionLimits,
        refusals: Refusals,
        *,
        is_connected: Callable[[bytes], bool],
        in_flight_bytes: Callable[[bytes], int],
        account_of: Callable[[bytes], Account | None],
        budgets: Budgets,
    ) -> None:
        """`is_connected`: whether the session of a CorrelId is connected.

        `in_flight_bytes`: bytes on their way from that session's lane to the client. They no longer wait, but the lane
        counts them until the client acknowledges them. `account_of`: the account in `budgets` of that session, if any.
        """
        queue.measure_lanes()
        self._engine = engine
        self._queue = queue
        self._maximum_messages = limits.maximum_queued_messages
        self._maximum_bytes = limits.maximum_queued_bytes
        self._maximum_age_us = limits.maximum_queued_age_s * _SECOND_US
        of_others = (
            limits.maximum_queued_bytes_per_user,
            limits.maximum_queued_bytes_per_address,
            limits.maximum_queued_bytes_per_prefix,
        )
        self._has_limits = any((self._maximum_messages, self._maximum_bytes, self._maximum_age_us, *of_others))
        self._refusals = refusals
        self._is_connected = is_connected
        self._in_flight_bytes = in_flight_bytes
        self._account_of = account_of
        self._budgets = budgets
        #: Lanes that something is charged for.
        self._charged: set[bytes] = set()
        #: Lanes that this round has not checked yet.
        self._round: list[bytes] = []
        #: Messages past limits, by CorrelId of the lane; and the order in which the lanes take their turns.
        self._excesses: dict[bytes, _Excess] = {}
        self._next: deque[_Excess] = deque()
        #: For each lane the number of its oldest message, and the time of its put.
        self._oldest: dict[bytes, tuple[int, int]] = {}
        self._rests_until_us = 0
        #: Lanes that have caused `maximum_dead_letters`, and the end of each one's pause.
        self._full_lanes: dict[bytes, int] = {}

    def tick(self, now_us: int) -> None:
        """Checks some of the lanes; several times a second."""
        if not self._has_limits or self._is_resting(now_us):
            return
        if not self._round:
            self._round = list(self._queue.lanes)
            self._release()
            self._full_lanes = {lane: until for lane, until in self._full_lanes.items() if _is_before(now_us, until)}
            self._oldest = {lane: known for lane, known in self._oldest.items() if lane in self._queue.lanes}
        reads = _READS_AT_ONCE
        for _ in range(min(_LANES_AT_ONCE, len(self._round))):
            correl_id = self._round.pop()
            if correl_id in self._excesses or correl_id in self._full_lanes or correl_id not in self._queue.lanes:
                continue
            limit = self._exceeded(correl_id)
            if limit is None and self._maximum_age_us and not self._is_connected(correl_id):
                limit, has_read = self._too_old(correl_id, now_us)
                reads -= has_read
            if limit is not None:
                self._begin(_Excess(correl_id, limit))
            if reads <= 0:
                return

    # -- inside --------------------------------------------------------------------------------------------------------

    def _exceeded(self, correl_id: bytes, taken_bytes: int | None = None) -> Limit | None:
        """The limit that a lane has passed.

        `taken_bytes`: bytes that the lane still counts although they have left it; None: the bytes in flight.
        """
        lane = self._queue.lanes.get(correl_id)
        if lane is None:
            return None
        lane_bytes = (self._queue.lane_bytes or {}).get(correl_id, 0)
        overdrawn = self._overdrawn(correl_id, lane_bytes - (taken_bytes or 0))
        if 0 < self._maximum_messages < len(lane):
            return Limit.QUEUED_MESSAGES
        if not 0 < self._maximum_bytes < lane_bytes:
            return overdrawn
        if taken_bytes is None:
            taken_bytes = self._in_flight_bytes(correl_id)
        return Limit.QUEUED_BYTES if self._maximum_bytes < lane_bytes - taken_bytes else overdrawn

    def _overdrawn(self, correl_id: bytes, waiting_bytes: int) -> Limit | None:
        """Charges a lane to its session. Returns the limit that its user or network has passed by it, if any."""
        account = self._account_of(correl_id)
        if account is None:
            return None
        account.charge(Amount.QUEUED_BYTES, waiting_bytes - account.amounts[Amount.QUEUED_BYTES])
        self._charged.add(correl_id)
        return self._budgets.overdrawn(account, Amount.QUEUED_BYTES)

    def _release(self) -> None:
        """Releases what is charged for lanes that are empty."""
        for correl_id in [each for each in self._charged if each not in self._queue.lanes]:
            self._overdrawn(correl_id, 0)
            self._charged.discard(correl_id)

    def _is_resting(self, now_us: int) -> bool:
        return _is_before(now_us, self._rests_until_us)

    def _too_old(self, correl_id: bytes, now_us: int) -> tuple[Limit | None, bool]:
        """The age limit if the oldest message of a lane has passed it; and whether the check read a message."""
        number = self._queue.upcoming(correl_id, 1)[0]
        known, put_us = self._oldest.get(correl_id, (0, 0))
        has_read = known != number
        if has_read:
            message = self._engine.take_number(self._queue, number)
            if message is None:
                return None, True
            self._engine.give_back([(self._queue, message)], wake=False)
            put_us = message.put_us
            self._oldest[correl_id] = (number, put_us)
        return (Limit.QUEUED_AGE if put_us + self._maximum_age_us <= now_us else None), has_read

    # -- inside: a little at a time ------------------------------------------------------------------------------------

    def _begin(self, excess: _Excess) -> None:
        self._excesses[excess.correl_id] = excess
        self._next.append(excess)
        if len(self._excesses) == 1:
            self._carry_on()

    def _carry_on(self) -> None:
        """Does a little work for the next lane in one unit of work. The lane behind it follows after the commit."""
        if not self._next or self._engine.failed is not None:
            return
        excess = self._next.popleft()
        unit = self._engine.begin()
        if excess.is_whole:
            self._move_some(unit, excess)
        else:
            self._take_some(excess)
        if excess.messages or not excess.is_whole:
            self._next.append(excess)
        else:
            del self._excesses[excess.correl_id]
        self._engine.submit(unit, lambda _unit: self._carry_on())

    def _take_some(self, excess: _Excess) -> None:
        """Takes more messages off the lane: the newest over a size limit, the oldest over the age limit."""
        in_flight_bytes = self._in_flight_bytes(excess.correl_id)
        for _ in range(_TAKEN_AT_ONCE):
            message = None
            if len(excess.messages) < _EXCESS_MESSAGES and excess.size < _EXCESS_BYTES:
                is_old = excess.limit is Limit.QUEUED_AGE
                message = self._oldest_one(excess) if is_old else self._newest_one(excess, in_flight_bytes)
            if message is None:
                excess.is_whole = True
                return
            excess.size += len(message.body)

    def _newest_one(self, excess: _Excess, in_flight_bytes: int) -> Message | None:
        correl_id = excess.correl_id
        if self._exceeded(correl_id, in_flight_bytes + excess.size) is None:
            return None
        message = self._engine.take_number(self._queue, self._queue.newest(correl_id))
        if message is not None:
            excess.messages.appendleft(message)
        return message

    def _oldest_one(self, excess: _Excess) -> Message | None:
        if excess.correl_id not in self._queue.lanes or self._is_connected(excess.correl_id):
            return None
        message = self._engine.take(self._queue, excess.correl_id)
        if message is not None and message.put_us + self._maximum_age_us > self._engine.now_us():
            self._engine.give_back([(self._queue, message)], wake=False)
            return None
        if message is not None:
            excess.messages.append(message)
        return message

    def _move_some(self, unit: UnitOfWork, excess: _Excess) -> None:
        """Moves messages to the dead-letter queue. If that queue is full, all of them go back to the lane."""
        now_us = self._engine.now_us()
        size = 0
        while excess.messages and len(unit.removals) < _MOVED_AT_ONCE and size < _BYTES_AT_ONCE:
            message = excess.messages[0]
            try:
                self._part_with(unit, message, excess.limit, now_us)
            except ShareFilled:
                self._engine.give_back([(self._queue, each) for each in excess.messages], wake=False)
                excess.messages.clear()
                self._full_lanes[excess.correl_id] = now_us + _REST_US
                break
            except QueueManagerError as error:
                self._engine.give_back([(self._queue, each) for each in excess.messages], wake=False)
                excess.messages.clear()
                if not self._is_resting(now_us):
                    _log.error("dead-letter queue took nothing queue=%s error=%s", self._queue.name, str(error))
                self._rests_until_us = now_us + _REST_US
                break
            excess.messages.popleft()
            size += len(message.body)
        if unit.removals:
            self._refusals.add(excess.limit, count=len(unit.removals))

    def _part_with(self, unit: UnitOfWork, message: Message, limit: Limit, now_us: int) -> None:
        """Makes a message a dead letter, or drops it. QueueManagerError if the dead-letter queue refuses it."""
        if message.is_persistent:
            self._engine.dead_letters.put_or_refuse(
                unit, message, queue_name=self._queue.name, reason_code=_REASONS.get(limit, int(Reason.MQRC_Q_FULL))
            )
            unit.remove(self._queue, message, Departure.DEAD_LETTERED)
        else:
            reason = f"the session's limit of {limit.label} was reached"
            origin = exchange_of(message.origin)
            unit.notes.append((NoteKind.DROPPED, now_us, *origin, self._queue.name, message.sequence, reason))
            unit.remove(self._queue, message, Departure.DROPPED)


def _is_before(now_us: int, until_us: int) -> bool:
    """Whether a pause still lasts. A clock that was set back does not make it longer."""
    return until_us - _REST_US <= now_us < until_us

"""What waits for a session is bounded: by number, by bytes, and while it is not connected by age.

What is past a limit was acknowledged to who published it, so it goes to the dead-letter queue, whole, and the audit
hears of it; from there `rfhbridge queue redrive` brings it back. It is the newest that goes, so that the session's
messages stay in order before and after; of what is too old it is the oldest. QoS 0, which was acknowledged to nobody,
is dropped, and the audit hears of that too. A publisher never waits because one subscriber is away. Where the
dead-letter queue takes nothing more, messages stay where they are: then the disk's own mark holds publishers back.

Limits are looked at some time after a commit, not in front of it, so a session may be past one for a moment.
"""

import logging
from collections.abc import Callable
from typing import Final

from gateway.audit_trail.notes import NoteKind
from gateway.bridge.origin import exchange_of
from gateway.config.limits import SessionLimits
from gateway.limits.limit import Limit, Refusals
from gateway.mqtt.reason_codes import ReasonCode
from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError
from mq_adapters.reasons import ReasonCode as Reason
from mq_adapters.reports import MQFB_EXPIRATION

_log = logging.getLogger(__name__)

#: Lanes that one tick looks at, a tenth of a second apart: all of 10,000 in half a second.
_LANES_AT_ONCE: Final = 2_000
#: Messages that one tick reads to see how old they are: each may be a read of the disk.
_READS_AT_ONCE: Final = 200
#: Messages and bytes that one unit of work moves.
_UNIT_MESSAGES: Final = 2_000
_UNIT_BYTES: Final = 16 * 1024 * 1024
_SECOND_US: Final = 1_000_000
#: How long nothing is tried after the dead-letter queue took nothing.
_REST_US: Final = 10 * _SECOND_US
#: MQDLH.Reason of what a limit sends to the dead-letter queue.
_REASONS: Final = {
    Limit.QUEUED_MESSAGES: int(Reason.MQRC_Q_FULL),
    Limit.QUEUED_BYTES: int(Reason.MQRC_Q_FULL),
    Limit.QUEUED_AGE: MQFB_EXPIRATION,
}


class Backlogs:
    """Keeps the lanes of the subscriber queue within their limits, which must be measured (Queue.measure_lanes)."""

    def __init__(
        self,
        engine: Engine,
        queue: Queue,
        limits: SessionLimits,
        refusals: Refusals,
        *,
        is_connected: Callable[[bytes], bool],
        in_flight_bytes: Callable[[bytes], int],
    ) -> None:
        """`is_connected`: whether somebody takes what waits under a CorrelId.

        `in_flight_bytes`: of what came from its lane and is on its way to a client. It waits no more, and the lane's
        bytes count it until it is acknowledged.
        """
        queue.measure_lanes()
        self._engine = engine
        self._queue = queue
        self._maximum_messages = limits.maximum_queued_messages
        self._maximum_bytes = limits.maximum_queued_bytes
        self._maximum_age_us = limits.maximum_queued_age_s * _SECOND_US
        self._refusals = refusals
        self._is_connected = is_connected
        self._in_flight_bytes = in_flight_bytes
        #: Lanes that are still to be looked at in this round.
        self._round: list[bytes] = []
        #: Lanes from which messages move just now.
        self._moving: set[bytes] = set()
        #: The oldest message of lanes, by number, and when it was put.
        self._oldest: dict[bytes, tuple[int, int]] = {}
        self._rests_until_us = 0

    def tick(self, now_us: int) -> None:
        """Looks at some of the lanes; several times a second."""
        has_limits = self._maximum_messages or self._maximum_bytes or self._maximum_age_us
        is_resting = self._rests_until_us - _REST_US <= now_us < self._rests_until_us  # a clock may be set back
        if not has_limits or is_resting:
            return
        if not self._round:
            self._round = list(self._queue.lanes)
            self._oldest = {lane: known for lane, known in self._oldest.items() if lane in self._queue.lanes}
        reads = _READS_AT_ONCE
        for _ in range(min(_LANES_AT_ONCE, len(self._round))):
            correl_id = self._round.pop()
            if correl_id in self._moving or correl_id not in self._queue.lanes:
                continue
            if limit := self._exceeded(correl_id):
                self._shorten(correl_id, limit, now_us)
            elif self._maximum_age_us and not self._is_connected(correl_id):
                reads -= self._let_old_go(correl_id, reads, now_us)
                if reads <= 0:
                    return

    # -- inside --------------------------------------------------------------------------------------------------------

    def _exceeded(self, correl_id: bytes, taken_bytes: int | None = None) -> Limit | None:
        """The limit that a lane is past.

        `taken_bytes` of what its bytes still count have been taken off it; None: what is in flight, and nothing else.
        """
        lane = self._queue.lanes.get(correl_id)
        if lane is None:
            return None
        if 0 < self._maximum_messages < len(lane):
            return Limit.QUEUED_MESSAGES
        measured = self._queue.lane_bytes or {}
        lane_bytes = measured.get(correl_id, 0)
        if not 0 < self._maximum_bytes < lane_bytes:
            return None
        if taken_bytes is None:
            taken_bytes = self._in_flight_bytes(correl_id)
        return Limit.QUEUED_BYTES if self._maximum_bytes < lane_bytes - taken_bytes else None

    def _shorten(self, correl_id: bytes, limit: Limit, now_us: int) -> None:
        """Takes the newest messages off a lane until it is within its limits, or enough for one unit of work."""
        taken: list[Message] = []
        size = 0
        in_flight = self._in_flight_bytes(correl_id)
        while len(taken) < _UNIT_MESSAGES and size < _UNIT_BYTES and self._exceeded(correl_id, in_flight + size):
            message = self._engine.take_number(self._queue, self._queue.newest(correl_id))
            if message is None:
                break
            taken.append(message)
            size += len(message.body)
        self._move(correl_id, taken[::-1], limit, now_us)

    def _let_old_go(self, correl_id: bytes, most: int, now_us: int) -> int:
        """Takes off a lane what has waited for too long, oldest first; returns how many messages were read."""
        taken: list[Message] = []
        reads = 0
        while reads < most and correl_id in self._queue.lanes:
            number = self._queue.upcoming(correl_id, 1)[0]
            known, put_us = self._oldest.get(correl_id, (0, 0))
            if known == number and put_us + self._maximum_age_us > now_us:
                break
            reads += 1
            message = self._engine.take_number(self._queue, number)
            if message is None:
                break
            if message.put_us + self._maximum_age_us > now_us:
                self._oldest[correl_id] = (number, message.put_us)
                self._engine.give_back([(self._queue, message)], wake=False)
                break
            taken.append(message)
        self._move(correl_id, taken, Limit.QUEUED_AGE, now_us)
        return reads

    def _move(self, correl_id: bytes, messages: list[Message], limit: Limit, now_us: int) -> None:
        """Moves messages that were taken off a lane to the dead-letter queue, or back where that takes no more."""
        if not messages:
            return
        unit = self._engine.begin()
        for place, message in enumerate(messages):
            try:
                self._part_with(unit, message, limit, now_us)
            except QueueManagerError as error:
                self._engine.give_back([(self._queue, each) for each in messages[place:]], wake=False)
                self._rests_until_us = now_us + _REST_US
                _log.error("dead-letter queue took nothing queue=%s error=%s", self._queue.name, str(error))
                break
        if not unit.removals:
            return
        self._moving.add(correl_id)
        self._refusals.add(limit, ReasonCode.QUOTA_EXCEEDED, len(unit.removals))
        self._engine.submit(unit, lambda _unit: self._moving.discard(correl_id))

    def _part_with(self, unit: UnitOfWork, message: Message, limit: Limit, now_us: int) -> None:
        """Raises QueueManagerError where the dead-letter queue does not take a message."""
        origin = exchange_of(message.origin)
        queue_name, reason_code = self._queue.name, _REASONS[limit]
        if message.is_persistent:
            letter = dead_letter(
                message,
                queue_name=queue_name,
                reason_code=reason_code,
                queue_manager_name=self._engine.name,
                now_us=now_us,
            )
            self._engine.put(unit, self._engine.objects.dead_letter_queue, letter)
            numbers = (message.sequence, letter.sequence)
            unit.notes.append((NoteKind.DEAD_LETTERED, now_us, *origin, queue_name, *numbers, reason_code))
        else:
            reason = f"the session's limit of {limit.value} was reached"
            unit.notes.append((NoteKind.DROPPED, now_us, *origin, queue_name, message.sequence, reason))
        unit.remove(self._queue, message)

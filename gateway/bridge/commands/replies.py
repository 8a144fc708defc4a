"""Answers of brokers: the reply queue, where the answers of the embedded broker and of every target arrive.

An answer carries the MsgId of its command as CorrelId. A caller that waits for one says so with `expect`. An answer
that nobody expects and that is no success is a notice: a broker refused a message after its acknowledgement. The
refused message goes to the dead-letter queue, whole and with the reason. It is found so:

    embedded broker   the refused publication comes with the commit of the refusal (`refused`)
    target            a copy of each delivered message lies on the target's sent queue for a while (channel_audit.py).
                      A notice may arrive before that copy; then it waits for the copy
    not found         the notice itself is kept; a notice about QoS 0 is not persistent, and is only counted

Source: IBM MQ, "Broker Response message"; "MQRO_NAN".
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from gateway.audit_trail.notes.origin import exchange_of
from gateway.bridge.counts import Counts
from gateway.channels.target import Target
from gateway.config.routes import Routes
from gateway.limits.log_rate import LogRate
from mappings.commands.command import Completion, DeletePublication, Publish, Response, read_command, read_response
from mappings.errors import MappingError
from mq_adapters.command_header import WrittenResponse, chain_of
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import KnownHeader, Message
from mq_adapters.reasons import ReasonCode

_log = logging.getLogger(__name__)

#: Reason codes that count as success: nothing registered (3073), nothing retained (3077).
_HARMLESS: Final = frozenset({3073, 3077})
#: The most notices that wait for a copy of their message. Then a new one replaces the oldest.
_WAITING_NOTICES: Final = 10_000
#: The most expected answers, about 500 bytes each: a target may stay away, or never answer. Then a new one replaces the
#: oldest. If the oldest is refused later, the refusal becomes a dead letter like every notice.
_EXPECTED_ANSWERS: Final = 100_000
#: Time between two searches for the copies of waiting notices, microseconds.
_RETRY_US: Final = 250_000
_REFUSED_AT_QOS_0: Final = "a target's broker refused a publication of QoS 0"

#: Takes an answer; None if it cannot be read.
Expected = Callable[[Response | None], None]


class Replies:
    """Reads the reply queue, and hands each answer to its `expected`."""

    def __init__(
        self,
        engine: Engine,
        reply_queue: Queue,
        *,
        stream_name: str,
        counts: Counts,
        routes: Routes,
        targets: Iterable[Target] = (),
    ) -> None:
        self._engine = engine
        self._queue = reply_queue
        self._stream_name = stream_name
        self._counts = counts
        self._routes = routes
        self._targets = tuple(targets)
        self._expected: dict[bytes, Expected] = {}
        #: Notices that wait for a copy, by MsgId of the refused message, each with the end of its wait.
        self._waiting: dict[bytes, tuple[Message, int]] = {}
        self._retry_us = 0
        #: Messages that the embedded broker refused, until the notice about each has been read.
        self.refused: dict[bytes, Message] = {}
        self._lines = LogRate(_log, "messages refused client=%s count=%s")
        reply_queue.listen(None, self.read)

    def expect(self, msg_id: bytes, expected: Expected) -> None:
        """Calls `expected` once with the answer to a command. It replaces an earlier `expected` for that command."""
        if len(self._expected) >= _EXPECTED_ANSWERS and msg_id not in self._expected:
            del self._expected[next(iter(self._expected))]
        self._expected[msg_id] = expected

    def take_from(self, unit: UnitOfWork) -> None:
        """Hands over the expected answers in a unit of work before it is submitted. They never come onto the queue."""
        answers = [
            message
            for queue, message in unit.puts
            if queue is self._queue and message.descriptor.correl_id in self._expected
        ]
        if not answers:
            return
        unit.puts = [put for put in unit.puts if put[1] not in answers]
        for message in answers:
            self._expected.pop(message.descriptor.correl_id)(_read(message))

    def read(self) -> None:
        """Takes every answer off the queue, even those that came before anybody listened."""
        while (message := self._engine.take(self._queue)) is not None:
            self._answer(message)

    def tick(self, now_us: int) -> None:
        """Several times a second: handles notices whose copy has come, or that have waited long enough."""
        self._lines.tick()
        if not self._waiting or self._retry_us - _RETRY_US <= now_us < self._retry_us:  # a clock may be set back
            return
        self._retry_us = now_us + _RETRY_US
        for msg_id, (message, until_us) in tuple(self._waiting.items()):
            found = self._delivered_copy(msg_id)
            if found is not None or now_us >= until_us:
                del self._waiting[msg_id]
                self._keep(message, found)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _answer(self, message: Message) -> None:
        msg_id = message.descriptor.correl_id
        expected = self._expected.pop(msg_id, None)
        refused = self.refused.pop(msg_id, None)
        response = _read(message)
        if expected is not None:
            self._settle(message)
            expected(response)
        elif response is not None and (response.completion is Completion.OK or _reason_code(response) in _HARMLESS):
            self._settle(message)
        elif refused is not None:
            self._keep_publication(message, refused)
        else:
            self._negative_notification(message, msg_id)

    def _settle(self, message: Message) -> None:
        unit = self._engine.begin()
        unit.remove(self._queue, message, Departure.TAKEN)
        self._engine.submit(unit)

    def _negative_notification(self, message: Message, msg_id: bytes) -> None:
        """A broker refused a message after the put. Looks for it among the copies of messages sent to targets."""
        found = self._delivered_copy(msg_id)
        if found is None and not message.is_persistent and self._targets and not message.origin:
            self._counts.add(_REFUSED_AT_QOS_0)
            _log.debug("publication of QoS 0 refused reason_code=%s", _reason_code(_read(message)))
            self._settle(message)
        elif found is None and self._targets and not message.origin:
            self._wait_for_copy(message, msg_id)
        else:
            self._keep(message, found)

    def _wait_for_copy(self, message: Message, msg_id: bytes) -> None:
        """Keeps a notice until the copy comes: the target's broker may see the channel's commit before we do."""
        if len(self._waiting) >= _WAITING_NOTICES:
            oldest = next(iter(self._waiting))
            self._keep(self._waiting.pop(oldest)[0], None)
        grace_s = max(target.settings.grace_s for target in self._targets)
        known = self._waiting.pop(msg_id, None)
        if known is not None:  # a second notice about the same message
            self._keep(known[0], None)
        self._waiting[msg_id] = (message, self._engine.now_us() + int(grace_s * 1_000_000))

    def _delivered_copy(self, msg_id: bytes) -> tuple[Target, Message] | None:
        for target in self._targets:
            copy = self._engine.take(target.sent_queue, msg_id=msg_id)
            if copy is not None:
                return target, copy
        return None

    def _keep_publication(self, notice: Message, refused: Message) -> None:
        """Makes a dead letter of a message that the embedded broker refused. Its only copy came with the commit."""
        unit = self._engine.begin()
        self._bury(unit, notice, refused, self._stream_name)

    def _keep(self, notice: Message, found: tuple[Target, Message] | None) -> None:
        """Keeps the refused message, or else the notice, so that no acknowledged message is refused in silence."""
        unit = self._engine.begin()
        if found is None:
            self._bury(unit, notice, notice, self._queue.name)
            return
        target, copy = found
        unit.remove(target.sent_queue, copy, Departure.DEAD_LETTERED)
        self._bury(unit, notice, copy, self._queue_there(target, copy), target.queue_manager_name)

    def _bury(
        self, unit: UnitOfWork, notice: Message, message: Message, queue_name: str, queue_manager_name: str = ""
    ) -> None:
        """Puts a message on the dead-letter queue with the notice's reason, and removes the notice."""
        reason_code = _reason_code(_read(notice))
        exchange = exchange_of(message.origin)
        event = "message refused client=%s exchange=%s reason_code=%s"
        self._lines.tell(exchange[0], exchange[0], event, exchange[0], exchange[2], reason_code)
        departure = self._engine.dead_letters.put(
            unit, message, queue_name=queue_name, reason_code=reason_code, queue_manager_name=queue_manager_name
        )
        unit.remove(self._queue, notice, departure if message is notice else Departure.TAKEN)
        self._engine.submit(unit)

    def _queue_there(self, target: Target, copy: Message) -> str:
        """The queue at the target that a message was for: the queue of its route, or the broker's command queue."""
        try:
            command = read_command(chain_of(copy))
        except MappingError:
            return target.sent_queue.name
        if not isinstance(command, Publish | DeletePublication):
            return target.settings.control_queue
        topic, _ = self._routes.without_prefix(command.topics[0])
        return self._routes.of(topic).queue or target.sent_queue.name


def _reason_code(response: Response | None) -> int:
    reasons = response.reasons if response is not None else ()
    return reasons[0].reason_code if reasons else int(ReasonCode.MQRC_UNEXPECTED_ERROR)


def _read(message: Message) -> Response | None:
    """The answer in a message: it came with the embedded broker's message, or is read now. None if it is no answer."""
    written = KnownHeader.of(message)
    if isinstance(written, WrittenResponse):
        return written.response
    try:
        return read_response(chain_of(message))
    except MappingError:
        return None

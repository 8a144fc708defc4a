"""Audit notes of channels: departures to a target and arrivals from one.

A channel is an application of the store. Each of its units of work puts the channel's state, and with it either removes
messages from a transmission queue or puts messages on the subscriber queue. Here, inside the submission, such a unit
gets an audit note for each message. A message that asks for a negative notification is kept for a while after its
delivery: a broker may refuse a publication after the put has succeeded, when nobody else has it any more.
"""

import logging
from collections.abc import Iterable
from typing import Final

from gateway.audit_trail.notes.notes import NoteKind, Passage
from gateway.audit_trail.notes.origin import exchange_of
from gateway.channels.target import Target
from mappings.headers.chain import FORMAT_DEAD_LETTER
from mq_adapters.channel.state_message import LocalState, MalformedState, read_local_state
from mq_adapters.dead_letter import reason_of
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQRO_NAN, Message
from mq_adapters.reasons import QueueManagerError
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE, SYSTEM_QUEUES
from mq_adapters.transmission import Transmission, read_transmission

_TENTHS_PER_SECOND: Final = 10

_log = logging.getLogger(__name__)


class ChannelAudit:
    """Watches the units of work of applications (Engine.on_application_unit) for those of channels."""

    def __init__(self, engine: Engine, targets: Iterable[Target], *, subscriber_queue: Queue) -> None:
        self._engine = engine
        self._targets = tuple(targets)
        self._subscriber_queue = subscriber_queue
        self._state_queue = engine.ensure(CHANNEL_STATE_QUEUE, SYSTEM_QUEUES[CHANNEL_STATE_QUEUE].description)

    def note(self, unit: UnitOfWork) -> None:
        """Adds audit notes to a unit of work of a channel."""
        state = self._state_of(unit)
        if state is None:
            return
        if unit.removals:
            self._departed(unit, state)
        self._arrived(unit, state)

    def _state_of(self, unit: UnitOfWork) -> LocalState | None:
        for queue, message in reversed(unit.puts):
            if queue is self._state_queue:
                try:
                    return read_local_state(message)
                except MalformedState as error:
                    _log.warning("channel state not read reason=%s", str(error))
                    return None
        return None

    # -- departures ----------------------------------------------------------------------------------------------------

    def _departed(self, unit: UnitOfWork, state: LocalState) -> None:
        """Notes each departure. A message of an application or the exporter has no origin, and leaves no record."""
        targets = {queue: target for target in self._targets for queue in target.transmission_queues}
        letters = {message.msg_id: message for queue, message in unit.puts if _is_dead_letter(message)}
        passages: dict[str, Passage] = {}
        for queue, message, _ in unit.removals:
            target = targets.get(queue)
            if target is None:
                continue
            sent = self._read(message)
            letter = letters.get(message.msg_id if sent is None else sent.message.msg_id)
            if letter is not None:
                self._note_dead_letter(unit, queue, message, letter)
            elif sent is not None:
                if message.origin:
                    self._note_departure(unit, state, message, sent, passages)
                if sent.message.is_persistent and sent.message.descriptor.report & MQRO_NAN:
                    self._keep(unit, target, message, sent)

    def _read(self, message: Message) -> Transmission | None:
        """The content of a message on a transmission queue; None if a channel cannot have sent it."""
        try:
            return read_transmission(message, now_us=self._engine.now_us())
        except QueueManagerError:
            return None

    def _note_departure(
        self,
        unit: UnitOfWork,
        state: LocalState,
        message: Message,
        sent: Transmission,
        passages: dict[str, Passage],
    ) -> None:
        now_us = self._engine.now_us()
        passage = passages.get(sent.queue_name)
        if passage is None:
            passage = passages[sent.queue_name] = _passage(sent.queue_name, state)
        unit.notes.append((NoteKind.FORWARDED, now_us, message.sequence, sent.message.msg_id, passage))

    def _keep(self, unit: UnitOfWork, target: Target, message: Message, sent: Transmission) -> None:
        """Keeps a copy of a sent message for as long as its broker may refuse it."""
        tenths = max(1, int(target.settings.grace_s * _TENTHS_PER_SECOND))
        copy = Message(sent.message.descriptor.replace(expiry=tenths), sent.message.body, message.origin)
        try:
            self._engine.put(unit, target.sent_queue, copy)
        except QueueManagerError as error:  # a later refusal will be reported without the message
            _log.warning("sent message not kept target=%s reason=%s", target.name, str(error))

    def _note_dead_letter(self, unit: UnitOfWork, queue: Queue, message: Message, letter: Message) -> None:
        """Notes the dead letter of a channel, which came through a socket, with its origin from the store."""
        letter.origin = message.origin
        unit.notes.append(
            (
                NoteKind.DEAD_LETTERED,
                self._engine.now_us(),
                *exchange_of(message.origin),
                queue.name,
                message.sequence,
                letter.sequence,
                reason_of(letter),
            )
        )

    # -- arrivals ------------------------------------------------------------------------------------------------------

    def _arrived(self, unit: UnitOfWork, state: LocalState) -> None:
        passage: Passage | None = None
        now_us = self._engine.now_us()
        for queue, message in unit.puts:
            if queue is self._subscriber_queue:
                passage = passage or _passage(queue.name, state)
                unit.notes.append((NoteKind.RECEIVED, now_us, message.sequence, message.msg_id, passage))


def _passage(queue_name: str, state: LocalState) -> Passage:
    """The passage of a message. Inbound, a batch is stored while it is in doubt there.

    Outbound, it leaves when it is settled.
    """
    batch = state.batch if state.doubtful is None else state.doubtful.number
    return Passage(queue=queue_name, queue_manager=state.queue_manager, channel=state.channel, batch=batch)


def _is_dead_letter(message: Message) -> bool:
    return message.descriptor.format == FORMAT_DEAD_LETTER

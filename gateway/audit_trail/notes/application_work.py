"""Notes of the work of MQ applications with messages: each MQPUT and MQGET, and each dead letter that is put back.

The broker's answers to applications, and reports, are noted as MQPUT without an application. So every message of a
queue has a record of its origin, and of its end.

A unit of work of an application is noted when it is submitted, so work that is backed out leaves no note. Other modules
note a put that the broker takes at once (`commanded`), the batches of channels (gateway/channels/channel_audit.py), and
messages that an operator's order takes (acts.py). Nobody notes the batches of notes that the exporter takes. The
operator's commands are applications too, with a gateway and without one.
"""

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import Final

from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.notes.origin import exchange_of
from mappings.errors import HeaderError
from mappings.headers.chain import FORMAT_MQRFH, FORMAT_MQRFH2
from mappings.headers.charset import INHERIT, UNDEFINED
from mappings.headers.fixed_part import read_fixed_part
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.redrive import redriven_in
from mq_adapters.embedded.unit_of_work import ApplicationIdentity, Departure, Note, UnitOfWork
from mq_adapters.message import Message
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE, is_closed_to_applications
from spark_audit.record.fields import MOST_MESSAGE_IDS

_VERSIONS: Final = {FORMAT_MQRFH: 1, FORMAT_MQRFH2: 2}
_NOBODY: Final = ApplicationIdentity("", "")
_BY_ITSELF: Final = ("", "", 0)
_Who = tuple[str, str, int]
_ENDED: Final = "its temporary queue ended"
#: Departures that are a get of an application. A dead letter that goes back has a record of its own.
_GOT: Final = (Departure.TAKEN, Departure.FORWARDED, Departure.DEAD_LETTERED)


def payload_offset(message: Message) -> int:
    """Where the payload of a message begins: behind the MQRFH and MQRFH2 that stand first, as far as they are whole."""
    descriptor, offset = message.descriptor, 0
    format, coded_char_set_id, encoding = descriptor.format, descriptor.coded_char_set_id, descriptor.encoding
    while (version := _VERSIONS.get(format)) is not None:
        try:
            fixed = read_fixed_part(
                message.body, offset, version=version, coded_char_set_id=coded_char_set_id, encoding=encoding
            )
        except HeaderError:
            return offset
        offset += fixed.struc_length
        format, encoding = fixed.format, fixed.encoding
        if fixed.coded_char_set_id not in (INHERIT, UNDEFINED):
            coded_char_set_id = fixed.coded_char_set_id
    return offset


class ApplicationWork:
    """Adds notes to the units of work of applications (Engine.on_application_unit)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def note(self, unit: UnitOfWork) -> None:
        application = unit.application or _NOBODY
        if application.is_owner and any(queue.name == CHANNEL_STATE_QUEUE for queue, _ in unit.puts):
            return
        gets, puts = list(self._gets(unit)), list(self._puts(unit))
        number = self._engine.number() if unit.is_explicit and (gets or puts) else 0
        who = (application.name, application.operator, number)
        program = (application.program,) if application.program else ()
        unit.notes += ((*self._note(NoteKind.MQGET, who, *each), *program) for each in gets)
        unit.notes += ((*self._note(NoteKind.MQPUT, who, *each), *program) for each in puts)
        unit.notes += self._redriven(unit)

    def note_own_put(self, unit: UnitOfWork, queue: Queue, message: Message) -> None:
        """The queue manager or its broker put a report or an answer by itself (Reporter.on_own_put)."""
        unit.notes.append(self._note(NoteKind.MQPUT, _BY_ITSELF, queue, message))

    def note_end(self, queue: Queue) -> None:
        """A temporary queue ends, with its messages (Engine.on_temporary_end)."""
        unit = self._engine.begin()
        unit.notes.append((int(NoteKind.LOST), self._engine.now_us(), queue.name, queue.depth, _ENDED))
        self._engine.submit(unit)

    def _gets(self, unit: UnitOfWork) -> Iterator[tuple[Queue, Message]]:
        is_order = any(note[0] == NoteKind.OPERATED for note in unit.notes)
        for queue, message, departure in islice(unit.removals, MOST_MESSAGE_IDS if is_order else 0, None):
            if departure in _GOT and not is_closed_to_applications(queue.name):
                yield queue, message

    @staticmethod
    def _puts(unit: UnitOfWork) -> Iterator[tuple[Queue, Message]]:
        redriven = {message.sequence for _, _, message in redriven_in(unit)}
        for queue, message in unit.puts:
            if queue.handler is None and message.sequence not in redriven:
                yield queue, message

    def _note(self, kind: NoteKind, who: _Who, queue: Queue, message: Message) -> Note:
        descriptor, offset = message.descriptor, payload_offset(message)
        digest = hashlib.sha256(memoryview(message.body)[offset:]).digest()
        what = (message.sequence, descriptor.correl_id, message.is_persistent, len(message.body) - offset, digest)
        return (int(kind), self._engine.now_us(), *who, descriptor.user_identifier, queue.name, *what)

    def _redriven(self, unit: UnitOfWork) -> Iterator[Note]:
        """Dead letters that an application takes and puts back with their MsgId."""
        for letter, queue, message in redriven_in(unit):
            exchange = exchange_of(letter.origin)
            ids = letter.sequence, message.sequence
            yield (NoteKind.REDRIVEN, self._engine.now_us(), *exchange, queue.name, *ids)

"""Audit notes: what each unit of work says of itself, packed with all others of a group commit into one batch.

Step 9 of the way of a PUBLISH begins here, on the hot path, so a note is a flat tuple and nothing is formatted. The
table in spark_audit/record/notes.py names the items of each kind. Later the exporter (../exporter.py), a process of its
own, makes records of the notes. A note may end in a header context, which a batch has once for all of its notes.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import ormsgpack

from gateway.audit_trail.notes.origin import exchange_of
from mq_adapters.delivery_listener import Delivery, TakenCommand
from mq_adapters.embedded.unit_of_work import ApplicationIdentity, Note, UnitOfWork
from mq_adapters.message import Message
from spark_audit.record import header_contexts as table
from spark_audit.record.notes import BATCH_VERSION, NoteKind
from spark_audit.record.packet_header import topic_bytes

if TYPE_CHECKING:  # the exporter loads this module, and no readers of headers
    from mappings.commands.response import Completion

__all__ = ["Arrival", "BrokerNotes", "NoteKind", "Passage", "Service", "Translation", "pack_batch", "with_level"]

_FIRST_LEVEL_WITH_PROPERTIES: Final = 5
_NO_APPLICATION: Final = ApplicationIdentity("", "")
#: Packs faster than the member itself.
_COPIED: Final = int(NoteKind.COPIED)
#: The items of the note of a delivery, kind and time included, without what level 5 adds.
_DELIVERED_ITEMS: Final = 12
#: How the note of a copy tells MQPER_NOT_PERSISTENT and MQPER_PERSISTENT; a message that was put is one of them.
_PERSISTENCE: Final = ((1,), (2,))
#: The same of a persistent copy that stays in memory: it does not survive a restart.
_STAYS_IN_MEMORY: Final = (1, True)


Ranges = list[list[int]]
"""First and last exchange of each range, in order."""


def with_level(note: Note, level: int, header: bytes | None = None, topic: str = "") -> Note:
    """The note of a packet with what level 5 adds; `header` and `topic` are a PUBLISH's, whose header may lack it."""
    if level < _FIRST_LEVEL_WITH_PROPERTIES:
        return note
    return (*note, level) if header is None or topic_bytes(header) else (*note, level, topic)


def with_sent(note: Note, payload: bytes) -> Note:
    """The note of a delivery whose payload was sent in another form than it was put in; behind what level 5 adds."""
    missing = (0, "")[len(note) - _DELIVERED_ITEMS :]
    return (*note, *missing, len(payload), hashlib.sha256(payload).digest())


@dataclass(slots=True, kw_only=True, eq=False)
class Translation:
    """Header context of packet to header: the command, where it is put, and the header that was written.

    For a target, `queue` is the target's queue and `destination` its name. `stream_style` says how the header names the
    stream, and `topic_filters` are what the target's routes make of the packet's filter. `dropped` names each user
    property that has no name in the configuration, with the reason.
    """

    command: str
    topic: str
    queue: str
    correl_id: bytes
    persistent: bool
    format: bytes
    coded_char_set_id: int
    encoding: int
    header: bytes
    destination: str = ""
    stream: str = ""
    stream_style: str = ""
    user: str | None = None
    topic_filters: tuple[str, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class Arrival:
    """Header context of header to packet: the header chain of a publication as it came off the subscriber queue.

    The topic of a target's publication may have the prefix of `stream`, which the packet has not. `source_client` and
    `source_exchange` are what such a publication says of its PUBLISH; the gateway cannot check them. `dropped` names
    what a PUBLISH of level 5 does not say of the header, with the reason; `dropped_before_5` is for earlier levels.
    """

    queue: str
    correl_id: bytes
    topic: str
    is_retained: bool
    format: bytes
    coded_char_set_id: int
    encoding: int
    header: bytes
    stream: str = ""
    stream_style: str = ""
    source_client: str = ""
    source_exchange: int = 0
    dropped: tuple[tuple[str, str], ...] = ()
    dropped_before_5: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class Service:
    """Header context of the conversion service: queue, wanted format, mode, and the header chain before and after.

    CodedCharSetId and Encoding are those of the MQMD, which the service leaves as they are. `dropped` names each field
    that was not copied, with the reason.
    """

    queue: str
    target: str
    mode: str
    table_version: str
    coded_char_set_id: int
    encoding: int
    input_format: bytes
    input_header: bytes
    output_format: bytes
    output_header: bytes
    dropped: tuple[tuple[str, str], ...]


@dataclass(slots=True, kw_only=True, eq=False)
class Passage:
    """Context of a channel's batch: the queue at its end, the other queue manager, the channel, the batch's number.

    `queue_manager` is the identifier of the target's queue manager (MQCA_Q_MGR_IDENTIFIER).
    """

    queue: str
    queue_manager: str
    channel: str
    batch: int


#: How the facts of each header context are read, in the order of the table.
_FACTS: Final[dict[type, tuple[str, Callable[[Any], tuple[object, ...]]]]] = {
    made: (context.name, attrgetter(*context.facts))
    for made, context in (
        (Translation, table.TRANSLATION),
        (Arrival, table.ARRIVAL),
        (Delivery, table.DELIVERY),
        (Service, table.SERVICE),
        (Passage, table.PASSAGE),
        (TakenCommand, table.TAKEN_COMMAND),
    )
}


def pack_batch(batch: int, notes: list[Note]) -> bytes:
    """One packed batch of the notes of a group commit."""
    contexts: list[tuple[object, ...]] = []
    index: dict[object, int] = {}

    def place(context: object) -> int:
        found = index.get(context)
        if found is None:
            name, facts = _FACTS[type(context)]
            found = index[context] = len(contexts)
            contexts.append((name, *facts(context)))
        return found

    packed = ormsgpack.packb(notes, default=place, option=ormsgpack.OPT_PASSTHROUGH_DATACLASS)
    return ormsgpack.packb([BATCH_VERSION, batch, packed, contexts])


class BrokerNotes:
    """DeliveryListener: what the broker does becomes notes."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us

    def copied(self, unit: UnitOfWork, publication: Message, copy: Message, delivery: Delivery) -> None:
        header_bytes = len(delivery.input_header)
        if not publication.payload_sha256:  # an application's, or a stored one: once for all of its copies
            publication.payload_sha256 = hashlib.sha256(memoryview(publication.body)[header_bytes:]).digest()
        payload = len(publication.body) - header_bytes, publication.payload_sha256
        told = _STAYS_IN_MEMORY if copy.stays_in_memory else _PERSISTENCE[copy.descriptor.persistence]
        unit.notes.append((_COPIED, copy.put_us, publication.sequence, copy.sequence, delivery, *payload, *told))

    def commanded(
        self, unit: UnitOfWork, message: Message, taken: TakenCommand, completion: "Completion", reason_code: int
    ) -> None:
        name, operator, _, program = unit.application or _NO_APPLICATION
        payload_bytes, digest = 0, b""
        if header_bytes := len(taken.header):
            payload_bytes = len(message.body) - header_bytes
            digest = message.payload_sha256 or hashlib.sha256(memoryview(message.body)[header_bytes:]).digest()
        described = message.descriptor
        note: Note = (
            NoteKind.COMMANDED,
            self._now_us(),
            *(name, operator, described.user_identifier, message.sequence, described.correl_id),
            *(message.is_persistent, payload_bytes, digest, completion.word, reason_code, taken, message.expires_us),
        )
        unit.notes.append((*note, program) if program else note)

    def refused(self, unit: UnitOfWork, command: Message, verb: str, reason_code: int) -> None:
        exchange = exchange_of(command.origin)
        unit.notes.append((NoteKind.REFUSED, self._now_us(), *exchange, verb, command.sequence, reason_code, ""))

    def dead_lettered(
        self, unit: UnitOfWork, message: Message, dead_letter: Message, queue_name: str, reason_code: int
    ) -> None:
        exchange = exchange_of(message.origin)
        unit.notes.append(
            (
                NoteKind.DEAD_LETTERED,
                self._now_us(),
                *exchange,
                queue_name,
                message.sequence,
                dead_letter.sequence,
                reason_code,
            )
        )

    def dropped(self, unit: UnitOfWork, message: Message, queue_name: str, reason: str) -> None:
        exchange = exchange_of(message.origin)
        unit.notes.append((NoteKind.DROPPED, self._now_us(), *exchange, queue_name, message.sequence, reason))

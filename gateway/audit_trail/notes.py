"""Audit notes: what each unit of work says of itself, packed with all others of a group commit into one batch.

Step 9 of the way of a PUBLISH begins here, on the hot path, so a note is a flat tuple and nothing is formatted.
The exporter (exporter.py) makes records of it later, in a process of its own. A note begins with its NoteKind and the
time in microseconds; its last item may be a fact sheet (a header translation used by many messages), once a batch.

A packed batch is msgpack: [version, batch number, notes as packed bytes, fact sheets]. In a note a fact sheet
stands as its index. The other items are, by kind:

    PUBLISHED      at, client, epoch, exchange, packet header, payload bytes, payload SHA-256, MsgId number, translation
    ACCEPTED       at, client, epoch, exchange, packet header, payload bytes, payload SHA-256
    RELEASED       at, client, epoch, exchange, packet header, payload bytes, payload SHA-256, MsgId number, translation
    REQUESTED      at, client, epoch, packet type, packet identifier, packet part, payload bytes, payload SHA-256,
                   MsgId number, translation
    COPIED         at, MsgId number of the publication, MsgId number of the copy, delivery
    DELIVERED      at, client, epoch, exchange, MsgId number, packet header, payload bytes, payload SHA-256,
                   granted QoS, published QoS, arrival
    ACKNOWLEDGED   at, client, epoch, exchange, packet type, packet identifier, MsgId number
    CONFIRMED      at, client, epoch, packet type, [[first exchange, last exchange], ...]
    REFUSED        at, client, epoch, exchange, command, MsgId number, reason code, reason text
    DEAD_LETTERED  at, client, epoch, exchange, queue, MsgId number, MsgId number of the dead letter, reason code
    DROPPED        at, client, epoch, exchange, queue, MsgId number, reason text
    STARTED        at, code version, table version, configuration SHA-256
    SESSION        at, client, epoch, event, protocol level, clean session
    SERVED         at, MsgId number of the message taken, MsgId number of the one put, persistent, payload bytes,
                   payload SHA-256, service
    FORWARDED      at, MsgId number, MsgId at the target, passage
    RECEIVED       at, MsgId number, MsgId at the target, passage
    REDRIVEN       at, client, epoch, exchange, queue, MsgId number of the dead letter, MsgId number
    REPEATED       at, client, epoch, exchange, packet header, payload bytes, payload SHA-256, event
    OPERATED       at, operator, command, queue, object, messages, reason text
    CLOCK_JUMPED   at, event, jump in microseconds, reason text
    RESTORED       at, event, incarnation before in hex, first and last missing record, first and last missing batch,
                   operator, reason text

Of a PUBLISH or will of level 5 or later the note has the protocol level behind these items, and behind that the topic
where the packet names it by a topic alias alone. A text that is empty and a missing number that is 0 say nothing.

PUBLISHED is one exchange of QoS 0 or 1: an `accepted` and a `put` record. A QoS 2 exchange is ACCEPTED when it is
stored and RELEASED when its PUBREL makes it a put. A MsgId number is the sequence number that ends a MsgId of this
store; 0 is none. A packet part is what of the packet the command was made from: one entry of a SUBSCRIBE or UNSUBSCRIBE
(length, filter, requested QoS); of a will its topic (length, text) and a byte with QoS 0x06 and RETAIN 0x01, at level 5
its properties behind that, with their length in front; the header of a PUBLISH; empty where no packet asked. The
exchange of REFUSED, DEAD_LETTERED, REDRIVEN and DROPPED is the incoming one that the message came from; with exchange 0
the client is the one who was to get it. A dead letter that was held is DEAD_LETTERED once more, off the queue of held
ones, when it goes on. A message that the conversion service put keeps the MsgId of the one it took;
their numbers differ.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Final

import ormsgpack

from gateway.audit_trail.origin import exchange_of
from gateway.audit_trail.packet_header import topic_bytes
from mq_adapters.delivery_listener import Delivery
from mq_adapters.embedded.unit_of_work import Note, UnitOfWork
from mq_adapters.message import Message

BATCH_VERSION: Final = 1
_FIRST_LEVEL_WITH_PROPERTIES: Final = 5


class NoteKind(IntEnum):
    """First item of a note. Stored: never reuse a number."""

    PUBLISHED = 1
    ACCEPTED = 2
    RELEASED = 3
    REQUESTED = 4
    COPIED = 5
    DELIVERED = 6
    ACKNOWLEDGED = 7
    CONFIRMED = 8
    REFUSED = 9
    DEAD_LETTERED = 10
    DROPPED = 11
    STARTED = 12
    SESSION = 13
    SERVED = 14
    FORWARDED = 15
    RECEIVED = 16
    REDRIVEN = 17
    REPEATED = 18
    OPERATED = 19
    CLOCK_JUMPED = 20
    RESTORED = 21


#: Packs faster than the member itself.
_COPIED: Final = int(NoteKind.COPIED)


def with_level(note: Note, level: int, header: bytes | None = None, topic: str = "") -> Note:
    """The note of a packet with what level 5 adds; `header` and `topic` are a PUBLISH's, whose header may lack it."""
    if level < _FIRST_LEVEL_WITH_PROPERTIES:
        return note
    return (*note, level) if header is None or topic_bytes(header) else (*note, level, topic)


class Translation:
    """Fact sheet of packet to header: the command, where it is put, and the header that was written.

    For a target, `queue` is its queue, and `destination` its name; the stream is said as `stream_style` has it, `user`
    stands in the header, and `topic_filters` are what its routes bring of the packet's filter. `dropped`: where the
    configuration wants a name for each user property, those that have none, with the reason.
    """

    __slots__ = (
        "coded_char_set_id",
        "command",
        "correl_id",
        "destination",
        "dropped",
        "encoding",
        "format",
        "header",
        "persistent",
        "queue",
        "stream",
        "stream_style",
        "topic",
        "topic_filters",
        "user",
    )

    def __init__(
        self,
        *,
        command: str,
        topic: str,
        queue: str,
        correl_id: bytes,
        persistent: bool,
        format: bytes,
        coded_char_set_id: int,
        encoding: int,
        header: bytes,
        destination: str = "",
        stream: str = "",
        stream_style: str = "",
        user: str | None = None,
        topic_filters: tuple[str, ...] = (),
        dropped: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.command = command
        self.topic = topic
        self.queue = queue
        self.correl_id = correl_id
        self.persistent = persistent
        self.format = format
        self.coded_char_set_id = coded_char_set_id
        self.encoding = encoding
        self.header = header
        self.destination = destination
        self.stream = stream
        self.stream_style = stream_style
        self.user = user
        self.topic_filters = topic_filters
        self.dropped = dropped

    def facts(self) -> list[object]:
        return ["translation", *(getattr(self, name) for name in _TRANSLATION_FIELDS)]


class Arrival:
    """Fact sheet of header to packet: the header chain of a publication as it came off the subscriber queue.

    From a target, its topic may have the prefix of `stream`, as `stream_style` has it, which the packet has not.
    `source_client` and `source_exchange` are what the publication says of its PUBLISH: from outside, for information.
    `dropped`: names of what a PUBLISH of level 5 does not say of the header, with the reason; `dropped_before_5`: of
    what an earlier one does not say.
    """

    __slots__ = (
        "coded_char_set_id",
        "correl_id",
        "dropped",
        "dropped_before_5",
        "encoding",
        "format",
        "header",
        "is_retained",
        "queue",
        "source_client",
        "source_exchange",
        "stream",
        "stream_style",
        "topic",
    )

    def __init__(
        self,
        *,
        queue: str,
        correl_id: bytes,
        topic: str,
        is_retained: bool,
        format: bytes,
        coded_char_set_id: int,
        encoding: int,
        header: bytes,
        stream: str = "",
        stream_style: str = "",
        source_client: str = "",
        source_exchange: int = 0,
        dropped: tuple[tuple[str, str], ...] = (),
        dropped_before_5: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.queue = queue
        self.correl_id = correl_id
        self.topic = topic
        self.is_retained = is_retained
        self.format = format
        self.coded_char_set_id = coded_char_set_id
        self.encoding = encoding
        self.header = header
        self.stream = stream
        self.stream_style = stream_style
        self.source_client = source_client
        self.source_exchange = source_exchange
        self.dropped = dropped
        self.dropped_before_5 = dropped_before_5

    def facts(self) -> list[object]:
        return ["arrival", *(getattr(self, name) for name in _ARRIVAL_FIELDS)]


class Service:
    """Fact sheet of the conversion service: queue, wanted format, mode, and the header chain before and after.

    CodedCharSetId and Encoding are those of the MQMD, which the service leaves as they are. `dropped` names each field
    that was not copied, with the reason.
    """

    __slots__ = (
        "coded_char_set_id",
        "dropped",
        "encoding",
        "input_format",
        "input_header",
        "mode",
        "output_format",
        "output_header",
        "queue",
        "table_version",
        "target",
    )

    def __init__(
        self,
        *,
        queue: str,
        target: str,
        mode: str,
        table_version: str,
        coded_char_set_id: int,
        encoding: int,
        input_format: bytes,
        input_header: bytes,
        output_format: bytes,
        output_header: bytes,
        dropped: tuple[tuple[str, str], ...],
    ) -> None:
        self.queue = queue
        self.target = target
        self.mode = mode
        self.table_version = table_version
        self.coded_char_set_id = coded_char_set_id
        self.encoding = encoding
        self.input_format = input_format
        self.input_header = input_header
        self.output_format = output_format
        self.output_header = output_header
        self.dropped = dropped

    def facts(self) -> list[object]:
        return ["service", *(getattr(self, name) for name in _SERVICE_FIELDS)]


class Passage:
    """Fact sheet of a channel's batch: the queue at its end, the other queue manager, the channel, the batch's number.

    `queue_manager` is the identifier of the target's queue manager (MQCA_Q_MGR_IDENTIFIER).
    """

    __slots__ = ("batch", "channel", "queue", "queue_manager")

    def __init__(self, *, queue: str, queue_manager: str, channel: str, batch: int) -> None:
        self.queue = queue
        self.queue_manager = queue_manager
        self.channel = channel
        self.batch = batch

    def facts(self) -> list[object]:
        return ["passage", self.queue, self.queue_manager, self.channel, self.batch]


_TRANSLATION_FIELDS: Final = (
    "command",
    "topic",
    "queue",
    "correl_id",
    "persistent",
    "format",
    "coded_char_set_id",
    "encoding",
    "header",
    "destination",
    "stream",
    "stream_style",
    "user",
    "topic_filters",
    "dropped",
)
_ARRIVAL_FIELDS: Final = (
    "queue",
    "correl_id",
    "topic",
    "is_retained",
    "format",
    "coded_char_set_id",
    "encoding",
    "header",
    "stream",
    "stream_style",
    "source_client",
    "source_exchange",
    "dropped",
    "dropped_before_5",
)
_SERVICE_FIELDS: Final = (
    "queue",
    "target",
    "mode",
    "table_version",
    "coded_char_set_id",
    "encoding",
    "input_format",
    "input_header",
    "output_format",
    "output_header",
    "dropped",
)
_DELIVERY_FIELDS: Final = (
    "queue_name",
    "correl_id",
    "topics",
    "is_retained",
    "input_format",
    "input_coded_char_set_id",
    "input_encoding",
    "input_header",
    "output_format",
    "output_coded_char_set_id",
    "output_encoding",
    "output_header",
    "dropped",
)


def pack_batch(batch: int, notes: list[Note]) -> bytes:
    """One packed batch of the notes of a group commit."""
    sheets: list[list[object]] = []
    index: dict[object, int] = {}

    def place(sheet: object) -> int:
        found = index.get(sheet)
        if found is None:
            found = index[sheet] = len(sheets)
            sheets.append(_facts(sheet))
        return found

    packed = ormsgpack.packb(notes, default=place, option=ormsgpack.OPT_PASSTHROUGH_DATACLASS)
    return ormsgpack.packb([BATCH_VERSION, batch, packed, sheets])


def _facts(sheet: object) -> list[object]:
    if isinstance(sheet, Delivery):
        return ["delivery", *(getattr(sheet, name) for name in _DELIVERY_FIELDS)]
    if isinstance(sheet, Translation | Arrival | Service | Passage):
        return sheet.facts()
    raise TypeError(f"no fact sheet: {type(sheet).__name__}")


class BrokerNotes:
    """DeliveryListener: what the broker does becomes notes."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us

    def copied(self, unit: UnitOfWork, publication: Message, copy: Message, delivery: Delivery) -> None:
        unit.notes.append((_COPIED, copy.put_us, publication.sequence, copy.sequence, delivery))

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

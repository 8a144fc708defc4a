"""Packed batches become the lines of the trail: the fields of spark_audit/record.py, in their order.

A line is built as text from fragments: what a fact sheet says is written once and used by all of its notes, so that a
record costs a few joins and one SHA-256. The exporter (exporter.py) is the only caller, away from the hot path.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Final

import ormsgpack

from gateway.audit_trail.disclosure import Disclosure, InClear
from gateway.audit_trail.fragments import PUBLISH_FLAGS, Sheet
from gateway.audit_trail.json_text import digest_text, json_text, truth_text
from gateway.audit_trail.notes import BATCH_VERSION, NoteKind
from gateway.audit_trail.packet_header import PUBLISH, first_byte_fields, packet_identifier, topic_bytes
from spark_audit.record import RECORD_VERSION, Kind

#: Fragments kept between batches (clients, topics, fact sheets); past it the cache is emptied.
_FRAGMENT_ENTRIES: Final = 50_000
#: What is longer (bytes) is made anew each time: it would fill the memory.
_LONGEST_KEPT: Final = 4_096
_MQTT: Final = "MQTT"
_IN_CLEAR: Final = InClear()


class MalformedBatch(Exception):
    """A message on the audit queue is no batch that this program can read: of another version, or damaged."""


class Expander:
    """Expands the batches of one gateway. `expand` gives each record without its first two and its last two fields."""

    def __init__(self, gateway: str, shown: Disclosure = _IN_CLEAR) -> None:
        self.gateway = gateway
        self._shown = shown
        self._message_prefix = f"52464842{gateway}"  # "RFHB" and the incarnation, see Message.msg_id
        self._batch = ""
        self._sheets: list[Sheet] = []
        self._known_sheets: dict[bytes, Sheet] = {}
        self._texts: dict[str | bytes, str] = {}
        self._write: dict[int, Callable[..., tuple[str, ...]]] = {
            NoteKind.PUBLISHED: self._published,
            NoteKind.ACCEPTED: self._accepted,
            NoteKind.RELEASED: self._released,
            NoteKind.REQUESTED: self._requested,
            NoteKind.COPIED: self._copied,
            NoteKind.DELIVERED: self._delivered,
            NoteKind.ACKNOWLEDGED: self._acknowledged,
            NoteKind.CONFIRMED: self._confirmed,
            NoteKind.REFUSED: self._refused,
            NoteKind.DEAD_LETTERED: self._dead_lettered,
            NoteKind.DROPPED: self._dropped,
            NoteKind.STARTED: self._started,
            NoteKind.SESSION: self._session,
            NoteKind.SERVED: self._served,
            NoteKind.FORWARDED: self._forwarded,
            NoteKind.RECEIVED: self._received,
            NoteKind.REDRIVEN: self._redriven,
            NoteKind.REPEATED: self._repeated,
            NoteKind.OPERATED: self._operated,
            NoteKind.CLOCK_JUMPED: self._clock_jumped,
            NoteKind.RESTORED: self._restored,
        }

    def expand(self, packed: bytes) -> tuple[int, list[str]]:
        """Number of the batch and its records. Raises MalformedBatch; then nothing of the batch is to be written."""
        try:
            version, batch, packed_notes, sheets = ormsgpack.unpackb(packed)
            if version != BATCH_VERSION:
                raise MalformedBatch(f"the batch has version {version!r}, this program reads {BATCH_VERSION}")
            self._batch = f',"batch":{int(batch)},"gateway":"{self.gateway}","kind":"'
            self._sheets = [self._sheet(facts) for facts in sheets]
            records: list[str] = []
            write = self._write
            for note in ormsgpack.unpackb(packed_notes):
                records += write[note[0]](*note[1:])
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise MalformedBatch(f"the batch cannot be read ({type(error).__name__}: {error})") from error
        return batch, records

    # -- fragments -----------------------------------------------------------------------------------------------------

    def _sheet(self, facts: list[Any]) -> Sheet:
        key = ormsgpack.packb(facts)
        found = self._known_sheets.get(key)
        if found is None:
            if len(self._known_sheets) >= _FRAGMENT_ENTRIES:
                self._known_sheets.clear()
            found = Sheet(facts, self._shown)
            if len(key) <= _LONGEST_KEPT and not found.is_of_one_message:
                self._known_sheets[key] = found
        return found

    def _text(self, text: str | bytes) -> str:
        """JSON string of a client identifier or a topic name, as it may be shown."""
        found = self._texts.get(text)
        if found is None:
            if len(self._texts) >= _FRAGMENT_ENTRIES:
                self._texts.clear()
            plain = text if isinstance(text, str) else text.decode(errors="replace")
            found = self._shown.name(plain)
            if len(text) <= _LONGEST_KEPT:
                self._texts[text] = found
        return found

    def _start(self, kind: Kind, at: int) -> str:
        return f'{self._batch}{kind}","at_us":{at}'

    def _exchange(self, direction: str, client: str, epoch: int, exchange: int = 0) -> str:
        """Whose exchange it is; nothing for a message that came from no MQTT client."""
        if not client and not epoch:
            return ""
        number = f',"exchange":{exchange}' if exchange else ""
        return f',"direction":"{direction}","client":{self._text(client)},"session_epoch":{epoch}{number}'

    def _origin(self, client: str, epoch: int, exchange: int) -> str:
        """The exchange that a message came from; only client and session where the note speaks of a recipient."""
        if exchange or not client:
            return self._exchange("in", client, epoch, exchange)
        return f',"direction":"out","client":{self._text(client)},"session_epoch":{epoch}'

    def _message(self, number: int, name: str = "message_id") -> str:
        return f',"{name}":"{self._message_prefix}{number:016x}"' if number else ""

    def _publish_fields(self, header: bytes, level: int) -> str:
        first = header[0]
        identifier = f',"packet_identifier":{packet_identifier(header)}' if first & 6 else ""
        return f',"packet_type":{PUBLISH}{identifier}{_level(level)}{PUBLISH_FLAGS[first]}'

    # -- one method a note kind: the fields as gateway/audit_trail/notes.py lists them ---------------------------------

    def _accepted(
        self,
        at: int,
        client: str,
        epoch: int,
        exchange: int,
        header: bytes,
        length: int,
        digest: bytes,
        level: int = 0,  # a note before level 5 ends before it
        named: str = "",
    ) -> tuple[str, ...]:
        who = self._exchange("in", client, epoch, exchange) + self._publish_fields(header, level)
        topic = self._text(named or topic_bytes(header))
        return (
            f'{self._batch}accepted","at_us":{at}{who},"topic":{topic}'
            f',"payload_bytes":{length},"payload_sha256":"{digest_text(digest)}"',
        )

    def _released(
        self,
        at: int,
        client: str,
        epoch: int,
        exchange: int,
        header: bytes,
        length: int,
        digest: bytes,
        number: int,
        translation: int,
        level: int = 0,
        _named: str = "",
    ) -> tuple[str, ...]:
        who = self._exchange("in", client, epoch, exchange) + self._publish_fields(header, level)
        return (self._put(at, who, header, length, digest, number, translation),)

    def _published(
        self,
        at: int,
        client: str,
        epoch: int,
        exchange: int,
        header: bytes,
        length: int,
        digest: bytes,
        number: int,
        translation: int,
        level: int = 0,
        named: str = "",
    ) -> tuple[str, ...]:
        who = self._exchange("in", client, epoch, exchange) + self._publish_fields(header, level)
        topic = self._text(named or topic_bytes(header))
        return (
            f'{self._batch}accepted","at_us":{at}{who},"topic":{topic}'
            f',"payload_bytes":{length},"payload_sha256":"{digest_text(digest)}"',
            self._put(at, who, header, length, digest, number, translation),
        )

    def _put(self, at: int, who: str, part: bytes, length: int, digest: bytes, number: int, translation: int) -> str:
        sheet = self._sheets[translation]
        checksum = f',"payload_sha256":"{digest_text(digest)}"' if digest else ""
        return (
            f'{self._batch}put","at_us":{at}{who}{sheet.head}{self._message(number)}{sheet.correlation}'
            f'{sheet.persistent}{sheet.conversion},"input_format":"{_MQTT}","input":{self._shown.header(part)}'
            f'{sheet.output},"payload_bytes":{length}{checksum}'
        )

    def _requested(
        self,
        at: int,
        client: str,
        epoch: int,
        packet_type: int,
        packet_identifier: int,
        part: bytes,
        length: int,
        digest: bytes,
        number: int,
        translation: int,
        level: int = 0,
    ) -> tuple[str, ...]:
        identifier = f',"packet_identifier":{packet_identifier}' if packet_identifier else ""
        who = f'{self._exchange("in", client, epoch)},"packet_type":{packet_type}{identifier}{_level(level)}'
        if packet_type == PUBLISH:
            who += PUBLISH_FLAGS[part[0]]
        return (self._put(at, who, part, length, digest, number, translation),)

    def _copied(self, at: int, publication: int, copy: int, delivery: int) -> tuple[str, ...]:
        sheet = self._sheets[delivery]
        return (
            f'{self._batch}put","at_us":{at}{sheet.head}{self._message(copy)}{sheet.correlation}'
            f"{self._message(publication, 'source_message_id')}{sheet.conversion}{sheet.input}{sheet.output}"
            f"{sheet.is_retained}",
        )

    def _delivered(
        self,
        at: int,
        client: str,
        epoch: int,
        exchange: int,
        number: int,
        header: bytes,
        length: int,
        digest: bytes,
        granted_qos: int,
        published_qos: int,
        arrival: int,
        level: int = 0,
        named: str = "",
    ) -> tuple[str, ...]:
        sheet, first = self._sheets[arrival], header[0]
        identifier = f',"packet_identifier":{packet_identifier(header)}' if first & 6 else ""
        qos, retain, duplicate = first_byte_fields(first)
        return (
            f'{self._batch}delivered","at_us":{at}{self._exchange("out", client, epoch, exchange)}'
            f',"packet_type":{PUBLISH}{identifier}{_level(level)},"qos":{qos},"published_qos":{published_qos}'
            f',"granted_qos":{granted_qos},"retain":{truth_text(retain)},"duplicate":{truth_text(duplicate)}'
            f',"topic":{self._text(named or topic_bytes(header))}{sheet.head}{self._message(number)}'
            f"{sheet.correlation}{sheet.conversion}{sheet.input}"
            f',"output_format":"{_MQTT}","output":{self._shown.header(header)}'
            f"{sheet.dropped if level else sheet.dropped_before_5}{sheet.is_retained}"
            f',"payload_bytes":{length},"payload_sha256":"{digest_text(digest)}"',
        )

    def _acknowledged(
        self, at: int, client: str, epoch: int, exchange: int, packet_type: int, packet_identifier: int, number: int
    ) -> tuple[str, ...]:
        return (
            f"{self._start(Kind.ACKNOWLEDGED, at)}{self._exchange('out', client, epoch, exchange)}"
            f',"packet_type":{packet_type},"packet_identifier":{packet_identifier}{self._message(number)}',
        )

    def _confirmed(
        self, at: int, client: str, epoch: int, packet_type: int, ranges: list[list[int]]
    ) -> tuple[str, ...]:
        pairs = ",".join(f"[{first},{last}]" for first, last in ranges)
        return (
            f"{self._start(Kind.CONFIRMED, at)}{self._exchange('in', client, epoch)}"
            f',"exchanges":[{pairs}],"packet_type":{packet_type}',
        )

    def _refused(
        self,
        at: int,
        client: str,
        epoch: int,
        exchange: int,
        command: str,
        number: int,
        reason_code: int,
        reason: str,
    ) -> tuple[str, ...]:
        return (
            f"{self._start(Kind.REFUSED, at)}{self._exchange('in', client, epoch, exchange)}"
            f',"command":{json_text(command)}{self._message(number)},"reason_code":{reason_code}{self._reason(reason)}',
        )

    def _dead_lettered(
        self,
        at: int,
        client: str,
        epoch: int,
        exchange: int,
        queue: str,
        number: int,
        dead_letter: int,
        reason_code: int,
    ) -> tuple[str, ...]:
        return (
            f"{self._start(Kind.DEAD_LETTERED, at)}{self._origin(client, epoch, exchange)}"
            f',"queue":{json_text(queue)}{self._message(number)}{self._message(dead_letter, "dead_letter_id")}'
            f',"reason_code":{reason_code}',
        )

    def _dropped(
        self, at: int, client: str, epoch: int, exchange: int, queue: str, number: int, reason: str
    ) -> tuple[str, ...]:
        return (
            f"{self._start(Kind.DROPPED, at)}{self._origin(client, epoch, exchange)}"
            f',"queue":{json_text(queue)}{self._message(number)},"reason":{json_text(reason)}',
        )

    def _started(self, at: int, code_version: str, table_version: str, configuration: bytes | str) -> tuple[str, ...]:
        return (
            f"{self._start(Kind.STARTED, at)}"
            f',"code_version":{json_text(code_version)},"table_version":{json_text(table_version)}'
            f',"configuration_sha256":{json_text(digest_text(configuration))}',
        )

    def _session(
        self, at: int, client: str, epoch: int, event: str, protocol_level: int, clean_session: bool
    ) -> tuple[str, ...]:
        return (
            f'{self._start(Kind.SESSION, at)},"client":{self._text(client)},"session_epoch":{epoch}'
            f',"protocol_level":{protocol_level},"clean_session":{truth_text(clean_session)},"event":{json_text(event)}',
        )

    def _served(
        self, at: int, taken: int, put: int, persistent: bool, length: int, digest: bytes, service: int
    ) -> tuple[str, ...]:
        sheet = self._sheets[service]
        return (
            f"{self._start(Kind.PUT, at)}{sheet.head}{self._message(put)}{self._message(taken, 'source_message_id')}"
            f',"persistent":{truth_text(persistent)}{sheet.conversion}{sheet.input}{sheet.output}'
            f',"payload_bytes":{length},"payload_sha256":"{digest_text(digest)}"{sheet.table_version}',
        )

    def _forwarded(self, at: int, number: int, msg_id: bytes, passage: int) -> tuple[str, ...]:
        return (self._passed(Kind.FORWARDED, at, number, msg_id, passage),)

    def _received(self, at: int, number: int, msg_id: bytes, passage: int) -> tuple[str, ...]:
        return (self._passed(Kind.RECEIVED, at, number, msg_id, passage),)

    def _redriven(
        self, at: int, client: str, epoch: int, exchange: int, queue: str, dead_letter: int, number: int
    ) -> tuple[str, ...]:
        return (
            f"{self._start(Kind.REDRIVEN, at)}{self._origin(client, epoch, exchange)}"
            f',"queue":{json_text(queue)}{self._message(number)}{self._message(dead_letter, "dead_letter_id")}',
        )

    def _repeated(
        self,
        at: int,
        client: str,
        epoch: int,
        exchange: int,
        header: bytes,
        length: int,
        digest: bytes,
        event: str,
        level: int = 0,
        named: str = "",
    ) -> tuple[str, ...]:
        who = self._exchange("in", client, epoch, exchange) + self._publish_fields(header, level)
        return (
            f'{self._start(Kind.REPEATED, at)}{who},"topic":{self._text(named or topic_bytes(header))}'
            f',"payload_bytes":{length},"payload_sha256":"{digest_text(digest)}","event":{json_text(event)}',
        )

    def _operated(
        self, at: int, operator: str, command: str, queue: str, subject: str, messages: int, reason: str
    ) -> tuple[str, ...]:
        on_queue = f',"queue":{json_text(queue)}' if queue else ""
        on_object = f',"object":{self._text(subject)}' if subject else ""
        return (
            f'{self._start(Kind.OPERATED, at)},"command":{json_text(command)}{on_queue}{self._reason(reason)}'
            f',"operator":{self._text(operator)}{on_object},"messages":{messages}',
        )

    def _clock_jumped(self, at: int, event: str, jump_us: int, reason: str) -> tuple[str, ...]:
        return (
            f"{self._start(Kind.CLOCK_JUMPED, at)}{self._reason(reason)}"
            f',"event":{json_text(event)},"jump_us":{jump_us}',
        )

    def _restored(
        self,
        at: int,
        event: str,
        gateway_before: str,
        first_missing: int,
        last_missing: int,
        first_missing_batch: int,
        last_missing_batch: int,
        operator: str,
        reason: str,
    ) -> tuple[str, ...]:
        by = f',"operator":{self._text(operator)}' if operator else ""
        before = f',"gateway_before":{json_text(gateway_before)}' if gateway_before else ""
        missing = f',"first_missing":{first_missing},"last_missing":{last_missing}' if last_missing else ""
        batches = (
            f',"first_missing_batch":{first_missing_batch},"last_missing_batch":{last_missing_batch}'
            if last_missing_batch
            else ""
        )
        return (
            f'{self._start(Kind.RESTORED, at)}{self._reason(reason)},"event":{json_text(event)}'
            f"{by}{before}{missing}{batches}",
        )

    def _reason(self, words: str) -> str:
        return f',"reason":{self._shown.words(words)}' if words else ""

    def _passed(self, kind: Kind, at: int, number: int, msg_id: bytes, passage: int) -> str:
        """A message that a channel took from one queue manager to the other."""
        sheet = self._sheets[passage]
        return (
            f"{self._start(kind, at)}{sheet.head}{self._message(number)}"
            f',"target_message_id":"{msg_id.hex()}"{sheet.passage}'
        )


def _level(level: int) -> str:
    return f',"protocol_level":{level}' if level else ""


class Chain:
    """Numbers records and links them by hash: the last step before the disk."""

    def __init__(self, *, sequence: int, head: str) -> None:
        self.sequence = sequence
        self.head = head

    def seal(self, records: list[str]) -> bytes:
        """The lines of these records, each with its sequence, the hash before and its own."""
        sequence, head = self.sequence, self.head
        lines: list[bytes] = []
        for record in records:
            sequence += 1
            text = f'{{"version":{RECORD_VERSION},"sequence":{sequence}{record},"prev":"{head}"'.encode()
            digest = hashlib.sha256(text)
            digest.update(b"}")
            head = digest.hexdigest()
            lines += (text, b',"hash":"', head.encode(), b'"}\n')
        self.sequence, self.head = sequence, head
        return b"".join(lines)

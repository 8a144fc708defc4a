"""`rfhbridge audit explain`: one message's life from packet to queue to channel to client, with the bytes."""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from gateway.cli.application import AuditExitCode, CommandFailed
from gateway.cli.audit.packet_properties import publish_properties
from gateway.cli.audit.prove import message_identifier
from gateway.cli.audit.trails import DataFoldersOption, TrailFoldersOption, trail_folders
from gateway.cli.settings_options import ConfigOption
from gateway.cli.terminal import Json, counted, write_json, write_line
from mappings.errors import HeaderError
from mappings.headers.charset import decode_text, is_ebcdic
from spark_audit.options import PERSONAL_KEY
from spark_audit.personal import PersonalKey, UnusablePersonalKey, is_sealed, opened_record

if TYPE_CHECKING:
    from spark_audit.life import Life

_BYTES_IN_A_LINE: Final = 16
#: The most bytes that are shown of a header; --json has it whole.
_SHOWN_BYTES: Final = 4_096
_SHOWN_TEXT: Final = 300
#: The fields that are shown beside the kind of a record, in this order, if it has them.
_SHOWN_FIELDS: Final = (
    ("client", "client"),
    ("session_epoch", "session"),
    ("exchange", "exchange"),
    ("exchanges", "exchanges"),
    ("packet_identifier", "packet"),
    ("qos", "QoS"),
    ("duplicate", "DUP"),
    ("retain", "RETAIN"),
    ("command", "command"),
    ("topic", "topic"),
    ("queue", "queue"),
    ("destination", "target"),
    ("message_id", "MsgId"),
    ("correlation_id", "CorrelId"),
    ("source_message_id", "copy of"),
    ("dead_letter_id", "dead letter"),
    ("target_message_id", "MsgId there"),
    ("queue_manager", "queue manager"),
    ("channel", "channel"),
    ("channel_batch", "batch"),
    ("reason_code", "reason"),
    ("reason", "because"),
    ("event", "event"),
    ("payload_bytes", "payload bytes"),
    ("payload_sha256", "payload SHA-256"),
)
#: The format of a packet's header, and the first protocol level whose packets have properties.
_MQTT: Final = "MQTT"
_LEVEL_WITH_PROPERTIES: Final = 5
#: An exchange has the direction of its PUBLISH; the packets of these records go the other way.
_ANSWERS: Final = ("acknowledged", "confirmed")
_PACKET_TYPES: Final = {
    1: "CONNECT",
    3: "PUBLISH",
    4: "PUBACK",
    5: "PUBREC",
    6: "PUBREL",
    7: "PUBCOMP",
    8: "SUBSCRIBE",
    10: "UNSUBSCRIBE",
}


def explain(
    message_id: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGE-ID",
            parser=message_identifier,
            help="MQMD.MsgId in hex: in the store, at a target, or of the dead letter.",
        ),
    ],
    data: DataFoldersOption = None,
    trail: TrailFoldersOption = None,
    personal_key: Annotated[
        Path | None, typer.Option(PERSONAL_KEY.flag, metavar="FILE", help=PERSONAL_KEY.help)
    ] = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, with the whole records.")] = False,
) -> None:
    """Tell one message's life, from packet to client.

    The command shows the records of the message, of its copies, channels and deliveries, and of the publication and the
    exchange that it comes from, with the bytes before and after each conversion. It needs no Spark. Exit code 0 shown,
    1 violation: a record was changed, 2 not evaluable: there is no record of the message, or no trail, 3 wrong use.
    """
    life = _life(message_id, trail_folders(data, trail, config))
    if not life.records:
        searched = f"{counted(life.lines, 'line')} in {counted(life.segments, 'segment')}"
        raise CommandFailed(
            f"no record names message {message_id} ({searched}; 'rfhbridge audit verify' finds missing records)"
        )
    key = _key(personal_key)
    life = replace(life, records=tuple(replace(each, record=_opened(each.record, key)) for each in life.records))
    if as_json:
        write_json(cast(Json, life.as_dict()))
    else:
        _write(life)
    is_unchanged = all(each.is_unchanged for each in life.records)
    raise typer.Exit(AuditExitCode.CLEAN if is_unchanged else AuditExitCode.VIOLATIONS)


def _life(message_id: str, trails: tuple[Path, ...]) -> "Life":
    from spark_audit.life import life_of
    from spark_audit.verify.source import DamagedSegment, LineTooLong, TrailFolder

    try:
        return life_of(message_id, [(str(folder), partial(TrailFolder, folder)) for folder in trails])
    except (DamagedSegment, LineTooLong) as error:
        raise CommandFailed(f"a segment cannot be read to its end: {error} (audit verify names it)") from None
    except OSError as error:
        raise CommandFailed(f"{error.filename} cannot be read: {error.strerror}") from None


def _key(path: Path | None) -> PersonalKey | None:
    if path is None:
        return None
    try:
        return PersonalKey.read(path)
    except UnusablePersonalKey as error:
        raise CommandFailed(f"{path}: {error}") from None


def _opened(record: dict[str, Any], key: PersonalKey | None) -> dict[str, Any]:
    try:
        return record if key is None else opened_record(record, key)
    except UnusablePersonalKey as error:
        raise CommandFailed(f"record {record.get('sequence')}: {error}") from None


def _write(life: "Life") -> None:
    write_line(f"message {life.message_id}: {counted(len(life.records), 'record')}")
    for found in life.records:
        record = found.record
        write_line()
        write_line(f"{_moment(record.get('at_us'))}  {_what(record)}")
        changed = "" if found.is_unchanged else "; CHANGED: the line does not match its hash"
        write_line(f"  record {record.get('sequence')}, {found.segment} line {found.line}{changed}")
        for line in _details(record):
            write_line(f"  {line}")
    if life.is_cut:
        write_line()
        write_line(f"only the first {len(life.records)} records are shown")


def _moment(at_us: object) -> str:
    try:
        at = datetime.fromtimestamp(cast(int, at_us) / 1_000_000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return "at an unknown time"
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}Z"


def _what(record: dict[str, Any]) -> str:
    packet = record.get("packet_type")
    words = [str(record.get("kind"))]
    if isinstance(packet, int):
        words.append(_PACKET_TYPES.get(packet, f"packet type {packet}"))
    if record.get("direction") in ("in", "out"):
        is_sent_by_client = (record["direction"] == "in") != (record.get("kind") in _ANSWERS)
        words.append("from the client" if is_sent_by_client else "to the client")
    if record.get("kind") == "repeated":
        words.append("again, answered with PUBREC")
    return " ".join(words)


def _details(record: dict[str, Any]) -> Iterator[str]:
    told = [f"{words} {_cut(record[name])}" for name, words in _SHOWN_FIELDS if record.get(name) not in (None, False)]
    yield ", ".join(told)
    for pair in record.get("dropped_fields") or ():
        yield f"not copied: {_cut(pair)}"
    for side, words in (("input", "before"), ("output", "after")):
        if record.get(side) is not None:
            yield from _bytes(record, side, words)


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}... ({len(text)} characters)"


def _bytes(record: dict[str, Any], side: str, words: str) -> Iterator[str]:
    """The bytes of one side of a conversion, in hexadecimal and in the letters of their code page."""
    page, value = record.get(f"{side}_ccsid"), record[side]
    described = f", CodedCharSetId {page}" if page is not None else ""
    if is_sealed(value):
        yield f"{words}: {_cut(record.get(f'{side}_format'))}, encrypted (--personal-key FILE opens it)"
        return
    try:
        data = base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        yield f"{words}: the record has no base64 here"
        return
    yield f"{words}: {_cut(record.get(f'{side}_format'))}{described}, {counted(len(data), 'byte')}"
    shown = data[:_SHOWN_BYTES]
    for offset in range(0, len(shown), _BYTES_IN_A_LINE):
        row = shown[offset : offset + _BYTES_IN_A_LINE]
        yield f"  {offset:04x}  {row.hex(' '):<47}  {_letters(row, page)}"
    if len(data) > len(shown):
        yield f"  ... {counted(len(data) - len(shown), 'byte')} more (--json has all)"
    if record.get(f"{side}_format") == _MQTT and record.get("protocol_level") == _LEVEL_WITH_PROPERTIES:
        yield from (f"  property {_cut(told)}" for told in publish_properties(data))


def _letters(row: bytes, page: object) -> str:
    """One letter a byte, by the EBCDIC page of the header or else ASCII; a dot for a byte that is no letter there."""
    letters = row.decode("latin-1")
    if isinstance(page, int) and is_ebcdic(page):
        letters = "".join(_letter(row[at : at + 1], page) for at in range(len(row)))
    return "".join(letter if letter.isascii() and letter.isprintable() else "." for letter in letters)


def _letter(byte: bytes, page: int) -> str:
    try:
        return decode_text(byte, page)
    except HeaderError:
        return "."

"""`rfhbridge audit explain`: messages' lives from packet to queue to channel to client, with the bytes."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from gateway.cli.application import AuditExitCode, CommandFailed
from gateway.cli.audit.filters import (
    ClientOption,
    IndexOption,
    PersonalKeyOption,
    SinceOption,
    TopicOption,
    UntilOption,
    index_in,
    personal_key_in,
    wanted_of,
)
from gateway.cli.audit.message_search import fates_in, write_fates
from gateway.cli.audit.moments import moment
from gateway.cli.audit.packet_properties import publish_properties
from gateway.cli.audit.prove import message_identifier
from gateway.cli.audit.trails import DataFoldersOption, TrailFoldersOption, trail_folders
from gateway.cli.settings_options import ConfigOption
from gateway.cli.terminal import Json, counted, write_json, write_line
from mappings.errors import HeaderError
from mappings.headers.charset import decode_text, is_ebcdic
from spark_audit.personal import PersonalKey, UnusablePersonalKey, is_sealed, opened_record

if TYPE_CHECKING:
    from spark_audit.fates import Fates, Wanted
    from spark_audit.life import Life
    from spark_audit.segment_index import SegmentIndex

#: The most lives that --whole shows: each costs two scans or more.
_MOST_LIVES: Final = 20
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
    ("sent_bytes", "sent as JSON, bytes"),
    ("sent_sha256", "sent SHA-256"),
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
        str | None,
        typer.Argument(
            metavar="[MESSAGE-ID]",
            parser=message_identifier,
            help="MQMD.MsgId in hex: in the store, at a target, or of the dead letter.",
        ),
    ] = None,
    client: ClientOption = "",
    topic: TopicOption = None,
    since_us: SinceOption = None,
    until_us: UntilOption = None,
    whole: Annotated[
        bool, typer.Option("--whole", help=f"Show the life of each message found, of at most {_MOST_LIVES}.")
    ] = False,
    data: DataFoldersOption = None,
    trail: TrailFoldersOption = None,
    personal_key: PersonalKeyOption = None,
    index: IndexOption = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the whole records of a life.")] = False,
) -> None:
    """Tell messages' lives, from packet to client.

    With a MsgId the command shows the records of the message, of its copies, channels and deliveries, and of the
    publication and the exchange that it comes from, with the bytes before and after each conversion. With --client,
    --topic, --since or --until it finds messages, and shows a line for each: time, client, topic, MsgId, and what
    became of it. With both it shows the life without records that name another client, topic or time. A time without
    a zone is UTC. The command needs no Spark. Exit code 0: shown; 1: a record was changed; 2: not evaluable,
    because there is no such message, or no trail; 3: wrong use.
    """
    key, topic = personal_key_in(personal_key), topic or ""
    wanted = wanted_of(client, topic, since_us or 0, until_us or 0, key)
    is_search = wanted != wanted_of("", "", 0, 0, None)
    if message_id is None and not is_search:
        raise typer.BadParameter("give a MsgId, or --client, --topic, --since or --until")
    if whole and message_id is not None:
        raise typer.BadParameter("--whole belongs to a search; a MsgId shows the whole life")
    trails, known = trail_folders(data, trail, config), index_in(index)
    if message_id is not None:
        code = _tell((_life_within(message_id, trails, wanted if is_search else None, known),), key, as_json=as_json)
    elif whole:
        named = _named(fates_in(wanted, trails, known), client, topic, key)
        lives = [_life(each, trails, known) for each in named]
        code = _tell(lives, key, as_json=as_json)
    else:
        code = write_fates(fates_in(wanted, trails, known), client, topic, key, as_json=as_json)
    raise typer.Exit(code)


def _tell(lives: "Sequence[Life]", key: PersonalKey | None, *, as_json: bool) -> AuditExitCode:
    """Shows lives. JSON has one object for one, an array for several."""
    opened = [
        replace(life, records=tuple(replace(each, record=_opened(each.record, key)) for each in life.records))
        for life in lives
    ]
    if as_json:
        told = [life.as_dict() for life in opened]
        write_json(cast(Json, told[0] if len(told) == 1 else told))
    else:
        for place, life in enumerate(opened):
            if place:
                write_line()
            _write(life)
    is_unchanged = all(each.is_unchanged for life in opened for each in life.records)
    return AuditExitCode.CLEAN if is_unchanged else AuditExitCode.VIOLATIONS


def _life_within(
    message_id: str, trails: tuple[Path, ...], wanted: "Wanted | None", index: "SegmentIndex | None"
) -> "Life":
    """A life; of a search, without the records that name another client, topic or time."""
    life = _life(message_id, trails, index)
    if not life.records:
        searched = f"{counted(life.lines, 'line')} in {counted(life.segments, 'segment')}"
        raise CommandFailed(
            f"no record names message {message_id} ({searched}; 'rfhbridge audit verify' finds missing records)"
        )
    if wanted is None:
        return life
    kept = tuple(each for each in life.records if _is_within(each.record, wanted))
    if not kept:
        raise CommandFailed(f"no record of message {message_id} fits ({counted(len(life.records), 'record')} of it)")
    return replace(life, records=kept)


def _is_within(record: dict[str, Any], wanted: "Wanted") -> bool:
    topic, is_told = record.get("topic"), isinstance(record.get("topic"), str)
    asked = wanted if is_told else replace(wanted, matches=None)
    return asked.fits(record, topic) and ("client" not in record or wanted.wants(record["client"]))


def _named(found: "Fates", client: str, topic: str, key: PersonalKey | None) -> list[str]:
    """The MsgIds of the messages that were found. Each life costs two scans, so there is a limit."""
    messages = [fate.message_id for fate in found.messages if fate.message_id]
    if not messages:
        write_fates(found, client, topic, key, as_json=False)
        raise CommandFailed("these messages have no MsgId yet, so there is no life to show")
    if len(messages) > _MOST_LIVES:
        raise CommandFailed(
            f"--whole shows at most {_MOST_LIVES} lives, and {counted(len(messages), 'message')} fit: without --whole "
            "each has a line, and its MsgId shows its life"
        )
    return messages


def _life(message_id: str, trails: tuple[Path, ...], index: "SegmentIndex | None") -> "Life":
    from spark_audit.life import life_of
    from spark_audit.trail.segment_forms import DamagedSegment
    from spark_audit.verify.source import LineTooLong, TrailFolder

    try:
        return life_of(message_id, [(str(folder), partial(TrailFolder, folder)) for folder in trails], index)
    except (DamagedSegment, LineTooLong) as error:
        raise CommandFailed(f"a segment cannot be read to its end: {error} (audit verify names it)") from None
    except OSError as error:
        raise CommandFailed(f"{error.filename} cannot be read: {error.strerror}") from None


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
        write_line(f"{moment(record.get('at_us'))}  {_what(record)}")
        changed = "" if found.is_unchanged else "; CHANGED: the line does not match its hash"
        write_line(f"  record {record.get('sequence')}, {found.segment} line {found.line}{changed}")
        for line in _details(record):
            write_line(f"  {line}")
    if life.is_cut:
        write_line()
        write_line(f"only the first {len(life.records)} records are shown")


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

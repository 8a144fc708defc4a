"""The words of findings of one record, and the findings that a record's kind alone brings."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from spark_audit.facts.lines import Line, Record
from spark_audit.record import EVENTS, Kind

#: More exchanges than one confirmation can speak of; a longer range is a violation and is not spelled out.
RANGE_LIMIT: Final = 1_000_000
PUBACK, PUBREC, PUBCOMP = 4, 5, 7
#: Which control asks for what a packet of the gateway confirms.
_ASKED_BY: Final = {PUBACK: "qos.1", PUBREC: "qos.2", PUBCOMP: "qos.2"}
_SAME, _REUSED = EVENTS[Kind.REPEATED]
_LOST: Final = "another message came under this packet identifier before PUBREL: it was acknowledged, and nobody got it"
_LAST_TIME_US: Final = 253_402_300_799_999_999
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Kinds of which records are told by `told_by_kind`.
TOLD_KINDS: Final = frozenset(map(str, (Kind.CONFIRMED, Kind.RESTORED, Kind.OPERATED, Kind.REPEATED)))

#: Control, subject, detail.
Told = tuple[str, str, str]


def gateway_words(record: Record) -> str:
    """What a finding of a gateway speaks of."""
    return f"gateway {record['gateway']}"


def message_words(record: Record) -> str:
    """What a finding of a message speaks of."""
    message_id = record.get("message_id")
    return f"message {'?' if message_id is None else message_id}"


def exchange_words(record: Record, direction: str, exchange: int | None) -> str:
    """What a finding of an exchange speaks of."""
    client, epoch = ["?" if value is None else value for value in (record.get("client"), record.get("session_epoch"))]
    return f"{direction}: client {client}, session {epoch}, exchange {'?' if exchange is None else exchange}"


def file_of(line: Line) -> str:
    """The file of a line, with its trail where several are read."""
    return f"{line.trail}/{line.segment}" if line.trail else line.segment


def told_by_kind(record: Record) -> Iterator[Told]:
    """What a record says that is worth a finding, whatever other records say."""
    kind = record["kind"]
    if kind == Kind.CONFIRMED:
        yield from _confirmed(record)
    elif kind == Kind.RESTORED:
        yield _restored(record)
    elif kind == Kind.OPERATED:
        yield _operated(record)
    elif kind == Kind.REPEATED and record.get("event") == _REUSED and record.get("direction") == "in":
        yield "qos.identifiers", exchange_words(record, "in", record.get("exchange")), _LOST


def _confirmed(record: Record) -> Iterator[Told]:
    control = _ASKED_BY.get(record.get("packet_type") or 0)
    if control is not None:
        for first in ranges_of(record)[1]:
            yield control, exchange_words(record, "in", first), "a confirmed range is no range of exchanges"


def _restored(record: Record) -> Told:
    missing = " and ".join(filter(None, (_missing(record, "records", ""), _missing(record, "batches", "_batch"))))
    what = f"{missing} missing" if missing else "the trail does not know what the store lost"
    detail = f"restored at {_time(record.get('at_us'))}, {what}; until a policy names it: record = "
    return "integrity.restored", gateway_words(record), detail + (record.get("hash") or "?")


def _operated(record: Record) -> Told:
    get = record.get
    place = get("queue") if get("queue") is not None else get("object")
    place = "the queue manager" if place is None else place
    why = "" if get("reason") is None else f": {get('reason')}"
    detail = f"{get('command')} by {get('operator')} on {place}, messages: {get('messages')}{why}"
    return "operators.acts", gateway_words(record), detail


def ranges_of(record: Record) -> tuple[list[tuple[int, int]], list[int | None]]:
    """The ranges of a confirmation, no more than RANGE_LIMIT exchanges in all; of those that are none, the first."""
    sound: list[tuple[int, int]] = []
    unsound: list[int | None] = []
    room = RANGE_LIMIT
    for pair in record.get("exchanges") or ():
        first, last = (*(pair or ()), None, None)[:2]
        if first is not None and last is not None and first >= 0 and 0 <= last - first < room:
            sound.append((first, last))
            room -= last - first + 1
        else:
            unsound.append(first)
    return sound, unsound


def _missing(record: Record, noun: str, suffix: str) -> str:
    first, last = record.get(f"first_missing{suffix}"), record.get(f"last_missing{suffix}")
    return "" if last is None else f"{noun} {'?' if first is None else first} to {last}"


def _time(at_us: int | None) -> str:
    if at_us is None or not 0 <= at_us <= _LAST_TIME_US:
        return "?"
    return str((_EPOCH + timedelta(microseconds=at_us)).replace(tzinfo=None))

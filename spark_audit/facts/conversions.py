"""A conversion that a record tells of, performed again from its raw bytes by a reading of its own (reperform/).

Copies to many subscribers, and publications of one length on one topic, differ in the packet identifier alone, which
no header carries. So what was right once is known again without it: on real trails nine of ten conversions are.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from spark_audit.facts.lines import Record
from spark_audit.personal import is_sealed
from spark_audit.record import ConversionKind
from spark_audit.reperform.comparison import Comparison, Finding, Status
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.own_bytes import COMPARED, differences_from_bytes
from spark_audit.reperform.performance import reperform
from spark_audit.reperform.rules import broken_rules

#: All that a conversion is judged by.
Key = tuple[Any, ...]
#: The values of a field, one for each record.
Values = Sequence[Any]
#: Conversions that a reader remembers.
_REMEMBERED: Final = 20_000
_TEXTS: Final = (
    "conversion",
    "command",
    "topic",
    "queue",
    "input_format",
    "output_format",
    "target",
    "mode",
    "destination",
    "stream",
    "stream_style",
    "user",
)
_NUMBERS: Final = (
    "packet_type",
    "protocol_level",
    "granted_qos",
    "published_qos",
    "payload_bytes",
    "sent_bytes",
    "input_ccsid",
    "input_encoding",
    "output_ccsid",
    "output_encoding",
)
_LISTS: Final = ("topic_filters", "dropped_fields")
_IDENTIFIER: Final = "packet_identifier"
_ASKED: Final = (*_TEXTS, *_NUMBERS, "is_retained", *[name for name in COMPARED if name != _IDENTIFIER])
#: The name of folder jms, in any character set and order: a header with it has the time of its record.
_HAS_TIME: Final = re.compile(rb"j\0?m\0?s")
#: Commands that may make the CorrelId a part of a client's identity.
_WITH_IDENTITY: Final = frozenset(("RegSub", "ReqUpdate", "DeregSub"))
WITHOUT_KEY: Final = "the headers are encrypted: name the key with --personal-key"
_CLOSED: Final = (
    "the headers are encrypted: with another key, or with this one and changed, or they do not hold a name of which the"
    " record has a hash"
)
#: Characters of a detail that are kept: it repeats what stands in headers, which may be long.
_DETAIL_SHOWN: Final = 2_000
#: MQTT 3.1.1 section 3.3: the type of a PUBLISH, and the two bits of its QoS, in the first byte of the packet.
_PUBLISH: Final = 3
_QOS_BITS: Final = 6


class Performed(NamedTuple):
    """What became of a conversion that was performed again; `findings` name the rules that it breaks."""

    comparison: Comparison
    findings: tuple[Finding, ...]

    @property
    def is_right(self) -> bool:
        """Whether there is nothing to show."""
        return self.comparison.status is Status.MATCH and not self.findings


class Conversions:
    """Performs conversions again, and remembers those that were right. `has_key`: encrypted headers would be opened."""

    def __init__(self, *, has_key: bool) -> None:
        self._closed = _CLOSED if has_key else WITHOUT_KEY
        self._right: dict[Key, Performed] = {}

    def known(self, key: Key) -> Performed | None:
        """The judgement of a conversion that was right before, by its key."""
        return self._right.get(key)

    def again(self, record: Record, key: Key | None = None) -> Performed:
        """The judgement of a record's conversion. What a hostile record does to a reader is no error of the audit's.

        `key` is its key, where that is there already.
        """
        if is_sealed(record.get("input")) or is_sealed(record.get("output")):
            return _not_performed(self._closed)
        try:
            if key is None:
                key = _key(record)
            if (known := self._right.get(key)) is not None:
                return known
            facts = Facts(**_values(record))
            found = (*broken_rules(facts), *differences_from_bytes(record, facts))
            performed = Performed(_printable_comparison(reperform(facts)), _printable(found))
        except (ValueError, TypeError, ArithmeticError, LookupError) as error:
            return _not_performed(f"the record cannot be read: {error}")
        if performed.is_right and not _is_timed(facts):
            if len(self._right) >= _REMEMBERED:
                del self._right[next(iter(self._right))]
            self._right[key] = performed
        return performed


def _is_timed(facts: Facts) -> bool:
    return facts.conversion == ConversionKind.PACKET_TO_HEADER and _HAS_TIME.search(facts.output) is not None


def _not_performed(detail: str) -> Performed:
    return Performed(Comparison(status=Status.NOT_REPERFORMABLE, detail=printable(detail), same_bytes=False), ())


def _printable_comparison(comparison: Comparison) -> Comparison:
    if not comparison.detail:
        return comparison
    return Comparison(
        status=comparison.status,
        detail=printable(comparison.detail),
        same_bytes=comparison.same_bytes,
        offset=comparison.offset,
        expected=comparison.expected,
    )


def _printable(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(Finding(rule=each.rule, detail=printable(each.detail)) for each in findings)


def printable(text: str) -> str:
    """Words that can be stored: cut, and without what UTF-8 cannot say."""
    return text[:_DETAIL_SHOWN].encode(errors="replace").decode()


def _values(record: Record) -> dict[str, Any]:
    """The values of Facts."""
    get = record.get
    values: dict[str, Any] = {name: get(name) or "" for name in _TEXTS}
    for name in _NUMBERS:
        number = get(name)
        values[name] = -1 if number is None else number
    if values["destination"]:  # looked at where a header for a target carries them
        exchange = get("exchange")
        values |= {"client": get("client") or "", "exchange": -1 if exchange is None else exchange}
    if values["command"] in _WITH_IDENTITY:
        values["correlation_id"] = get("correlation_id") or ""
    values["topic_filters"] = tuple(map(str, get("topic_filters") or ()))
    at_us = get("at_us")
    values["at_us"] = -1 if at_us is None else at_us
    values["is_retained"] = bool(get("is_retained"))
    values["dropped_fields"] = tuple((str(name), str(reason)) for name, reason in get("dropped_fields") or ())
    values["input"] = decoded(get("input") or "")
    values["output"] = decoded(get("output") or "")
    return values


def decoded(text: str) -> bytes:
    """The bytes for which base64 stands. Raises ValueError (binascii.Error is one)."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # stricter than what a record is held against; this is the slower way
        return base64.b64decode(text, validate=True)


def keys_of(there: Mapping[str, Values]) -> list[Key] | None:
    """The keys of records that have the same fields, whose values these are: column by column.

    They tell at least what `_key` tells. None where each record is to be looked at by itself.
    """
    conversions = there["conversion"]
    kind, number = conversions[0], len(conversions)
    if conversions.count(kind) < number:
        return None
    written, made, identifiers = [there.get(name, (None,) * number) for name in ("input", "output", _IDENTIFIER)]
    try:
        if kind == ConversionKind.PACKET_TO_HEADER:
            written, identifiers = _without_identifiers(written, identifiers)
        elif kind == ConversionKind.HEADER_TO_PACKET:
            made, identifiers = _without_identifiers(made, identifiers)
    except ValueError:  # no base64
        return None
    asked = _asked_of(there)
    columns = [there[name] for name in asked]
    lists = [[repr(each) for each in there[name]] for name in _LISTS if name in there]
    return list(zip((asked,) * number, *columns, *lists, identifiers, written, made, strict=True))


def _asked_of(there: Mapping[str, Values]) -> tuple[str, ...]:
    """The fields that are looked at as they are."""
    asked = [name for name in _ASKED if name in there]
    if "destination" in there:
        asked += [name for name in ("client", "exchange") if name in there]
    if "correlation_id" in there and "command" in there and not _WITH_IDENTITY.isdisjoint(there["command"]):
        asked.append("correlation_id")
    return tuple(asked)


def _without_identifiers(packets: Values, told: Values) -> tuple[Values, Values]:
    """The same for many. Raises ValueError."""
    without = [without_identifier(decoded(packet or ""), each) for packet, each in zip(packets, told, strict=True)]
    return [packet for packet, _ in without], [each for _, each in without]


def _key(record: Record) -> Key:
    """Everything that is looked at, with the packet identifier of a PUBLISH made one if record and bytes agree on it.

    Raises binascii.Error.
    """
    get = record.get
    conversion, written, made = get("conversion"), get("input") or "", get("output") or ""
    told: list[Any] = [get(name) for name in _ASKED]
    told += [repr(get(name)) for name in _LISTS if get(name)]
    if get("destination"):
        told += (get("client"), get("exchange"))
    if get("command") in _WITH_IDENTITY:
        told.append(get("correlation_id"))
    identifier = get(_IDENTIFIER)
    if conversion == ConversionKind.PACKET_TO_HEADER:
        return (*told, *without_identifier(decoded(written), identifier), made)
    if conversion == ConversionKind.HEADER_TO_PACKET:
        return (*told, written, *without_identifier(decoded(made), identifier))
    return (*told, identifier, written, made)


def without_identifier(packet: bytes, told: object) -> tuple[bytes, object]:
    """A header of a PUBLISH, and its packet identifier as a record tells it.

    If both are the same, both are 1. No PUBLISH may have the identifier 0.
    """
    if not packet or packet[0] >> 4 != _PUBLISH or not packet[0] & _QOS_BITS:
        return packet, told
    offset = 1
    while offset < len(packet) and packet[offset] & 0x80:
        offset += 1
    offset += 3 + int.from_bytes(packet[offset + 1 : offset + 3], "big")
    identifier = packet[offset : offset + 2]
    if len(identifier) < 2 or identifier == b"\0\0" or int.from_bytes(identifier, "big") != told:
        return packet, told
    return packet[:offset] + b"\0\1" + packet[offset + 2 :], 1


def size_of(encoded: str) -> int:
    """The number of bytes for which base64 stands; 0 where it is none."""
    try:
        return len(base64.b64decode(encoded, validate=True))
    except binascii.Error:
        return 0

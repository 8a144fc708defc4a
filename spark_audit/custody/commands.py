"""A command of the queued publish/subscribe interface, as a record of the trail tells it.

A command of an MQTT client or of the gateway itself is a put; its header is the output. A command of an MQ application
is `commanded`; its header is the input. Names of parameters are those of the psc folder.

The replay reads rows: the fields FIELDS_READ of a record, and what `told_of` takes out of the record's bytes. Of a
Publish it takes the header only if something stands there beside the topic: RetainPub, or properties.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from spark_audit.custody.topic_match import Scheme
from spark_audit.record import Kind
from spark_audit.reperform.code_page import UnknownCodePage
from spark_audit.reperform.comparison import UnreadableBytes
from spark_audit.reperform.header import Surroundings
from spark_audit.reperform.meaning import Meaning, read_meaning
from spark_audit.reperform.mqtt import CONNECT, FIRST_LEVEL_WITH_PROPERTIES

DEFAULT_STREAM: Final = "SYSTEM.BROKER.DEFAULT.STREAM"
#: The format of an MQRFH header, in a record.
MQRFH: Final = "MQHRF"
CONTROL_QUEUE: Final = "SYSTEM.BROKER.CONTROL.QUEUE"
#: CorrelId that the broker chooses for the copies of a subscriber without one: the tag of its identifiers and SUBS.
BROKERS_OWN: Final = b"RFHBSUBS".hex()
#: Names of parameters that have no row in the table of mapped names: psc folder, MQRFH.
_OTHERS: Final = {
    "StreamName": ("StreamName", "MQPSStreamName"),
    "SubPoint": ("SubPoint",),
    "Filter": ("Filter",),
    "SubName": ("SubName", "MQPSSubName"),
    "SubIdentity": ("SubIdentity", "MQPSSubIdentity"),
}

#: Fields of a record that the replay reads as they are.
FIELDS_READ: Final = (
    *("gateway", "sequence", "batch", "kind", "direction", "client", "session_epoch", "exchange", "packet_type"),
    *("packet_identifier", "protocol_level", "qos", "granted_qos", "retain", "topic", "command", "queue", "message_id"),
    *("correlation_id", "source_message_id", "persistent", "conversion", "destination", "is_retained", "event"),
    *("output_format", "reason_code", "completion", "messages", "queues", "subscribers", "channel"),
    *("dead_letter_id", "is_in_use", "codes", "requested_qos", "at_us", "default_persistent", "in_memory"),
    *("program", "operator"),
)
#: The columns of `told_of`: the header of a command in base64, with its description; the entry of the SUBSCRIBE from
#: which it comes; whether a publication or a command may expire; `listed` is JSON with the list of a record: the counts
#: of a stock-take, topics and filter of a command, messages and remark of an operator's order, the entries of an
#: inventory, ranges of exchanges, filters of an answer and those refused, flags of a session, rule and time of
#: refusals, or the broker's rules at a start.
TOLD: Final = ("header", "header_format", "header_ccsid", "header_encoding", "entry", "may_expire", "listed")
COLUMNS: Final = (*FIELDS_READ, *TOLD)
_NOTHING: Final = (None,) * len(TOLD)
_EMPTY_ROW: Final[dict[str, Any]] = dict.fromkeys(COLUMNS)
#: Fields that make a list; and the field with the list of a record: by kind, and by the event of an inventory.
_LISTED: Final = {
    Kind.STARTED: ("stream_rules", "points"),
    Kind.COMMANDED: ("topics", "filter"),
    Kind.OPERATED: ("message_ids", "reason"),
    Kind.ANSWERED: ("topic_filters", "refused_filters"),
    Kind.SESSION: ("clean_start", "clean_session"),
    Kind.TOPICS_REFUSED: ("rule", "since_us"),
    Kind.LOGINS_REFUSED: ("rule", "since_us"),
    Kind.CONNECTS_REFUSED: ("rule", "since_us"),
    Kind.PROGRAMS_REFUSED: ("rule", "since_us"),
}
_LISTS: Final = {Kind.STOCK: "depths", Kind.CONFIRMED: "exchanges"}
_LISTS_OF_INVENTORY: Final = {
    "sessions": "sessions",
    "filters": "filters",
    "registrations": "registrations",
    "retained": "retained_publications",
}
_REGISTRATIONS: Final = frozenset({"RegSub", "DeregSub", "ReqUpdate", "DeletePub"})
#: Bytes that stand in each header with properties.
_PROPERTIES: Final = (b"<usr", b"rfhb")
#: Message Expiry Interval, a property of a PUBLISH and a will.
_MESSAGE_EXPIRY: Final = b"\x02"

Lane = tuple[str, str]
"""Where a subscriber's copies go: queue and CorrelId, "" where the broker chooses that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a command says. `is_mqrfh`: in which of the two formats; `others` are its further parameters."""

    verb: str
    is_mqrfh: bool
    topics: tuple[str, ...]
    registration_options: frozenset[str]
    publication_options: frozenset[str]
    delete_options: frozenset[str]
    queue_name: str
    others: tuple[tuple[str, str], ...]
    meaning: Meaning

    @property
    def scheme(self) -> Scheme:
        """Which characters are wildcards in its topics, if it takes patterns."""
        return Scheme.CHARACTERS if self.is_mqrfh else Scheme.LEVELS

    def other(self, name: str) -> str | None:
        """A parameter that has different names in the two formats; None if it is not there."""
        return next((value for said, value in self.others if said in _OTHERS[name]), None)


def may_be_told(kind: str, columns: Mapping[str, Sequence[Any]]) -> bool:
    """Whether records of a kind, with the same fields of these values, may have something in the columns TOLD."""
    if kind != Kind.PUT:
        return kind in _LISTED or kind in _LISTS or "event" in columns
    commands = columns.get("command", ())
    if "in" not in columns.get("direction", ()):
        return False
    if not _REGISTRATIONS.isdisjoint(commands):
        return True
    may_be_retained = CONNECT in columns.get("packet_type", ()) or any(columns.get("retain", ()))
    return "Publish" in commands and (may_be_retained or "protocol_level" in columns)


def told_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of the columns TOLD."""
    kind = record["kind"]
    if kind == Kind.PUT:
        return _told_of_put(record) if record.get("direction") == "in" else _NOTHING
    if (listed := _LISTED.get(kind)) is not None:
        is_command = kind == Kind.COMMANDED
        header = _side(record, "input") if is_command else (None,) * 4
        may_expire = "expires_us" in record if is_command else None
        return (*header, None, may_expire, json.dumps([record.get(name) for name in listed]))
    name = _LISTS.get(kind) or _LISTS_OF_INVENTORY.get(record.get("event", ""), "")
    return (*(None,) * 6, json.dumps(record[name])) if name and record.get(name) else _NOTHING


def _told_of_put(record: Mapping[str, Any]) -> tuple[Any, ...]:
    verb = record.get("command")
    if verb in _REGISTRATIONS:
        return (*_side(record, "output"), record.get("input"), None, None)
    has_properties = (record.get("protocol_level") or 0) >= FIRST_LEVEL_WITH_PROPERTIES
    may_be_retained = record.get("retain") or record.get("packet_type") == CONNECT  # a will's record lacks the flag
    if verb != "Publish" or not (may_be_retained or has_properties):
        return _NOTHING
    header = _bytes_of(record.get("output"))
    if may_be_retained or header is None or any(each in header for each in _PROPERTIES):
        packet = _bytes_of(record.get("input"))
        may_expire = has_properties and (packet is None or _MESSAGE_EXPIRY in packet)
        return (*_side(record, "output"), None, may_expire, None)
    return _NOTHING


def _side(record: Mapping[str, Any], side: str) -> tuple[Any, ...]:
    return tuple(record.get(name) for name in (side, f"{side}_format", f"{side}_ccsid", f"{side}_encoding"))


def _bytes_of(text: str | None) -> bytes | None:
    """Bytes of a record; None where they cannot be read, for example without the key."""
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        return None


def row_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """The row that the replay reads."""
    return dict(zip(COLUMNS, (*map(record.get, FIELDS_READ), *told_of(record)), strict=True))


def rows_of(columns: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Rows that the replay reads, from their values by column. One that is missing has no value."""
    names = tuple(columns)
    for values in zip(*columns.values(), strict=True):
        row = _EMPTY_ROW.copy()  # in half the time that a row of its own takes
        row.update(zip(names, values, strict=True))
        yield row


def command_of(row: Mapping[str, Any]) -> Command | None:
    """The command in a row's header; None if there is none, or if it cannot be read, for example without the key."""
    header, name = row["header"], row["header_format"]
    if not header or not name:
        return None
    return _read(header, name, row["header_ccsid"] or 0, row["header_encoding"] or 0)


@lru_cache(maxsize=4_096)
def _read(header: str, name: str, ccsid: int, encoding: int) -> Command | None:
    described = Surroundings(format=name, coded_char_set_id=ccsid, encoding=encoding)
    try:
        meaning = read_meaning(base64.b64decode(header, validate=True), described)
    except (UnreadableBytes, UnknownCodePage, binascii.Error, ValueError, LookupError):
        return None
    return Command(
        verb=meaning.command,
        is_mqrfh=meaning.version == 1,
        topics=tuple(dict.fromkeys(meaning.values("Topic"))),
        registration_options=meaning.options("RegOpt"),
        publication_options=meaning.options("PubOpt"),
        delete_options=meaning.options("DelOpt"),
        queue_name="".join(meaning.values("QName")[:1]).rstrip(" "),  # JMS fills it up to 48 characters
        others=meaning.unmapped,
        meaning=meaning,
    )


def lane_of(queue: str, correlation_id: str | None) -> Lane:
    """The lane of a copy on a queue."""
    correlation_id = correlation_id or ""
    return queue, "" if correlation_id.startswith(BROKERS_OWN) else correlation_id


#: A Publish of which nothing is known but its topic, because nothing else stands in it.
PLAIN: Final = Command(
    verb="Publish",
    is_mqrfh=False,
    topics=(),
    registration_options=frozenset(),
    publication_options=frozenset(),
    delete_options=frozenset(),
    queue_name="",
    others=(),
    meaning=Meaning(
        version=2,
        fields=(("Command", "Publish"),),
        unmapped=(),
        folders=(),
        body=Surroundings(format="", coded_char_set_id=0, encoding=0),
    ),
)

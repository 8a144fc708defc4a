"""A commit of records, and what a record says by itself."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_audit.custody.commands import FIELDS_READ, Command
from spark_audit.custody.findings import Custody, Finding, message
from spark_audit.record import KINDS, Kind
from spark_audit.reperform.mqtt import PUBLISH

Record = Mapping[str, Any]
_REFUSED, _SESSION, _STOCK = map(str, (Kind.REFUSED, Kind.SESSION, Kind.STOCK))
#: An order counts whoever gave it.
_READ: Final = frozenset(FIELDS_READ) - {"operator"}
_NEEDED: Final = {row.kind.value: tuple(name for name in row.required if name in _READ) for row in KINDS}
#: Records of acts, and the control that is told of one that is there twice. Others are compared by sums.
_TOLD_ONCE: Final = {
    Kind.STARTED.value: Custody.SESSIONS,
    Kind.SESSION.value: Custody.SESSIONS,
    Kind.DELIVERED.value: Custody.DELIVERIES,
    Kind.CONFIRMED.value: Custody.CONFIRMATIONS,
    Kind.ANSWERED.value: Custody.CODES,
    Kind.COMMANDED.value: Custody.COMMANDS,
    Kind.REFUSED.value: Custody.COMMANDS,
    Kind.OPERATED.value: Custody.QUEUES,
}
_SAID: Final = (
    *("kind", "at_us", "client", "session_epoch", "message_id", "exchange", "event", "packet_type"),
    *("packet_identifier", "topic", "listed", "command", "queue", "messages", "completion"),
)
#: How the MsgIds begin that a gateway gives.
_OWN: Final = b"RFHB".hex()


@dataclass(slots=True)
class Commit:
    """A whole commit, before its records are taken one by one."""

    number: int
    refused: dict[str, int]
    events: dict[tuple[str, int], set[str]]
    has_stock: bool

    @classmethod
    def of(cls, records: list[Record]) -> "Commit":
        commit = cls(records[0]["batch"], {}, {}, has_stock=False)
        for record in records:
            kind = record["kind"]
            if kind == _REFUSED and record["message_id"]:
                commit.refused[record["message_id"]] = record["reason_code"] or 0
            elif kind == _STOCK:
                commit.has_stock = True
            elif kind == _SESSION:
                who = record["client"], record["session_epoch"]
                commit.events.setdefault(who, set()).add(record["event"])
        return commit


def told_twice(records: list[Record]) -> Iterator[Finding]:
    """The records of a commit that say just what another one before them says, at the same microsecond.

    An application chooses MsgIds, and may give one to two commands: these are not compared.
    """
    seen: set[tuple[Any, ...]] = set()
    for record in records:
        control = _TOLD_ONCE.get(record["kind"])
        if control is None or record["at_us"] is None:
            continue
        message_id = record["message_id"]
        if message_id is not None and not message_id.startswith(_OWN):
            continue
        said = tuple([record[name] for name in _SAID])
        if said in seen:
            detail = f"this record of kind {record['kind']} says just what another one of its commit says"
            yield Finding(control, record["sequence"], message(message_id or "?"), detail)
        seen.add(said)


def is_complete(record: Record) -> bool:
    """Whether a record has all fields of its kind. If not, another control reports it."""
    return None not in [record[name] for name in _NEEDED.get(record["kind"], ())]


def is_of_packet(record: Record) -> bool:
    """Whether a put comes from a packet (a PUBLISH, or one with an identifier), not from the gateway itself."""
    return record["packet_type"] == PUBLISH or bool(record["packet_identifier"])


def other_than_its_header(record: Record, command: Command) -> str:
    """The difference between a record of an application's command and the command's header; "" if there is none."""
    told, content_filter = json.loads(record["listed"])
    topics = [each for each in told or () if isinstance(each, str)]
    if record["command"] != command.verb:
        return f"the command is {record['command']}, and in its header {command.verb}"
    if set(topics) != set(command.topics):
        return f"the topics are {', '.join(topics)}, and in the header {', '.join(command.topics)}"
    asked = command.other("Filter") or ""
    return "" if (content_filter or "") == asked else f"the filter is {content_filter}, and in the header {asked}"

"""Custody: what a replay of the trail says each publication, session and queue is due (spark_audit/custody).

SQL cannot replay, so the step of these controls does: it goes through each gateway's records in their order, and makes
the table `custody`. Each control tells the findings of its own name in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from spark_audit.controls.control import Control, Rule, Severity, Tested
from spark_audit.custody.commands import COLUMNS, rows_of
from spark_audit.custody.findings import Custody, Finding
from spark_audit.custody.memory import Memory, replayed_from
from spark_audit.custody.replay import replayed
from spark_audit.engines.engine import VIOLATION, Columns

if TYPE_CHECKING:
    from spark_audit.audit_input import AuditInput
    from spark_audit.engines.engine import Engine

#: Kinds that the replay passes over are in it too, so that it sees where a record is missing.
_RECORDS: Final = Columns("records", COLUMNS)
#: Those that were not replayed before the state from which this audit goes on; of the carried ones the last commit.
_RECORDS_SINCE: Final = f"""
SELECT {", ".join(f"told.{name}" for name in COLUMNS)} FROM records AS told
LEFT JOIN since_memories AS memory ON memory.gateway = told.gateway
WHERE memory.sequence IS NULL OR told.sequence > memory.sequence"""
#: Stands for the name of a control where a row is a memory.
MEMORY: Final = "memory"
_ROWS: Final = 1_000


def findings_of(
    batches: Iterable[pa.RecordBatch], memories: Mapping[str, Memory] | None = None
) -> Iterator[pa.RecordBatch]:
    """The findings in the records of gateways, which come one gateway after the other, each in its order.

    With memories of earlier records, one by gateway, the next memory of each gateway stands among the findings.
    """
    found: list[dict[str, Any]] = []
    for gateway, rows in groupby(_rows_of(batches), key=itemgetter("gateway")):
        for each in replayed(rows) if memories is None else replayed_from(memories.get(gateway, Memory()), rows):
            found.append({"gateway": gateway} | _row_of(each))
            if len(found) >= _ROWS:
                yield pa.RecordBatch.from_pylist(found, schema=VIOLATION)
                found = []
    yield pa.RecordBatch.from_pylist(found, schema=VIOLATION)


def _row_of(each: Finding | Memory) -> dict[str, Any]:
    if isinstance(each, Memory):
        return {"control": MEMORY, "sequence": each.sequence, "subject": "", "detail": each.as_text()}
    return {**each._asdict(), "control": each.control.value}


def _rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        columns = {name: batch.column(name) for name in COLUMNS}
        yield from rows_of(
            {name: column.to_pylist() for name, column in columns.items() if column.null_count < len(column)}
        )


def replay(engine: "Engine", audit_input: "AuditInput") -> None:
    """The step of these controls: makes the table `custody`."""
    since = audit_input.since
    records, make = (
        (_RECORDS, findings_of) if since is None else (_RECORDS_SINCE, partial(findings_of, memories=since.memories))
    )
    engine.keep_in_order("custody", records, ("gateway", "sequence"), make, VIOLATION)


def _control(identifier: Custody, title: str, source: str, tested: Tested) -> Control:
    return Control(
        identifier=identifier.value,
        title=title,
        severity=Severity.ERROR,
        source=source,
        rule=Rule(query=f"SELECT gateway, sequence, subject, detail FROM custody WHERE control = '{identifier.value}'"),
        tested=tested,
        step=replay,
    )


#: Under a key nobody can say which topics a filter with wildcards matches. A copy is missing there for certain only if
#: filter and topic are equal; such copies and registrations are no items.
_IN_CLEAR: Final = "(topic IS NULL OR topic NOT LIKE 'k:%') AND (header IS NULL OR header NOT LIKE 'e:%')"
_IS_COPY: Final = "kind = 'put' AND conversion = 'header_to_header'"
COPIES = _control(
    Custody.COPIES,
    "Every publication has the copies that it was due, and no others",
    "Register Subscriber message, Publish message (IBM MQ); MQTT 3.1.1 sections 3.8.4 and 4.7",
    Tested(what="copies", table="records", where=f"{_IS_COPY} AND NOT is_retained AND {_IN_CLEAR}"),
)
RETAINED = _control(
    Custody.RETAINED,
    "New subscriptions are sent what is retained, and nobody else is",
    "MQTT 3.1.1 section 3.3.1.3; MQTT 5.0 section 3.8.3.1; Register Subscriber message (IBM MQ)",
    Tested(
        what="registrations",
        table="records",
        where=f"command = 'RegSub' AND kind IN ('put', 'commanded') AND {_IN_CLEAR}",
    ),
)
DELIVERIES = _control(
    Custody.DELIVERIES,
    "Clients are sent what waits for them, once, and as they have subscribed",
    "MQTT 3.1.1 sections 3.8.4 and 4.3; MQTT 5.0 section 4.8.2",
    Tested(what="deliveries", table="records", where="kind = 'delivered'"),
)
SESSIONS = _control(
    Custody.SESSIONS,
    "Clients act and are sent messages within their sessions, while they are connected",
    "MQTT 3.1.1 sections 3.1.2.4, 3.1.2.5 and 3.1.4",
    Tested(what="changes of sessions", table="records", where="kind = 'session'"),
)
ORDER = _control(
    Custody.ORDER,
    "Messages of a publisher, topic and QoS stay in their order",
    "MQTT 3.1.1 section 4.6",
    Tested(what="messages", table="records", where="kind = 'delivered' OR (kind = 'put' AND packet_type = 3)"),
)
COMMANDS = _control(
    Custody.COMMANDS,
    "Records of applications' commands say what their headers say, and DeregSub is refused by the rules",
    "Queued publish/subscribe commands (IBM MQ); Deregister Subscriber message (IBM MQ)",
    Tested(what="commands", table="records", where="kind = 'commanded' AND header NOT LIKE 'e:%'"),
)
PASSAGES = _control(
    Custody.PASSAGES,
    "Of a client's messages for a target none is left behind",
    "spark_audit/record/kinds.py: kind forwarded; MQTT 3.1.1 section 4.6",
    Tested(what="messages for targets", table="records", where="kind = 'put' AND destination IS NOT NULL"),
)
STOCK = _control(
    Custody.STOCK,
    "What the gateway counted for its clients is what the trail says waits",
    "spark_audit/record/kinds.py: stock",
    Tested(what="stock-takes", table="records", where="kind = 'stock' AND event = 'queues'"),
)
QUEUES = _control(
    Custody.QUEUES,
    "What was counted on queues of applications and of dead letters is what the trail says is there",
    "spark_audit/record/kinds.py: mqput, mqget, put, dead_lettered, redriven, dropped, operated and stock",
    Tested(
        what="messages put and got",
        table="records",
        where="kind IN ('mqput', 'mqget', 'dead_lettered', 'redriven') OR conversion = 'service'",
    ),
)
INVENTORY = _control(
    Custody.INVENTORY,
    "What the gateway says that it keeps is what the trail says: sessions, filters, registrations, retained values",
    "spark_audit/record/kinds.py: inventory",
    Tested(what="records of inventories", table="records", where="kind = 'inventory'"),
)
CONFIRMATIONS = _control(
    Custody.CONFIRMATIONS,
    "Every acknowledgement that was due to a client was sent",
    "MQTT 3.1.1 sections 4.3 and 4.6; spark_audit/record/kinds.py: confirmed",
    Tested(what="PUBLISHes of QoS 1 and 2 that were accepted", table="records", where="kind = 'accepted' AND qos > 0"),
)
PROGRAMS = _control(
    Custody.PROGRAMS,
    "Programs of MQ clients work within their sessions, and refusals have the answer and the rule of their reason",
    "spark_audit/record/kinds.py: program, programs_refused; MQCONN, MQDISC (IBM MQ)",
    Tested(what="sessions and refusals of programs", table="records", where="kind IN ('program', 'programs_refused')"),
)
CODES = _control(
    Custody.CODES,
    "Clients were told the codes that the rules give",
    "MQTT 5.0 sections 3.2.2, 3.4.2.1, 3.5.2.1, 3.9.3 and 3.11.3; MQTT 3.1.1 sections 3.2.2 and 3.9.3",
    Tested(what="answers", table="records", where="codes IS NOT NULL OR kind = 'answered'"),
)

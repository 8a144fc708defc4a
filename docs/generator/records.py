"""The page of the audit record and the digest, from the tables of the trail."""

import hashlib
import inspect
import json
import textwrap
from collections.abc import Iterable
from typing import Final

from docs.generator.markdown import block, code, sentence, table
from gateway.audit_trail.orders import COMMANDS, MQSC, VERBS
from spark_audit import digest
from spark_audit.record import FIELDS, KINDS, Field, Kind, RecordKind, line
from spark_audit.record.fields import MOST_MESSAGE_IDS
from spark_audit.record.notes import RECORD_FIELDS

INTRODUCTION: Final = """
The trail is the folder `trail` of the data folder. Its segments are files of lines; its digests stand in
`trail/digests`.

![Lines hang together by their hashes, digests by theirs; a digest has the Merkle root of a
segment](../pictures/the-trails-chain.svg)
""".strip()
ORDERS: Final = f"""
What operators and MQ applications can order, over the socket and without a gateway, and the records that tell of it.
An order that destroys or takes messages counts them all, and lists the MsgIds of the first {MOST_MESSAGE_IDS} of each
unit of work. The audit reports an `operated` record as a warning. For a message that an order destroyed it has the
`dropped` record, so the message is not lost, but cleared. An `mqget` says who has a message now, and an `mqput` where
it came from; no control reads these two yet.
""".strip()
#: The upper bound of a number that has none of its own: 64 bits with a sign.
LARGEST: Final = 2**63 - 1
#: Fields that records of every kind have.
EVERYWHERE: Final = [each.name for each in FIELDS if all(each.name in names for names in RECORD_FIELDS.values())]


def lines() -> list[str]:
    """The page, without its title."""
    return [
        *INTRODUCTION.splitlines(),
        "",
        "## Line",
        "",
        *_docstring(line),
        "",
        "A line; for reading it is broken here, with blanks behind the commas:",
        "",
        *block("text", _example()),
        "",
        "## Kinds",
        "",
        f"The field `kind` says what a record tells. Every record has {_listed(EVERYWHERE)}.",
        "",
        *table(["Kind", "Meaning", "Since"], ((code(each.kind), each.meaning, each.since) for each in KINDS)),
        *(text for kind in KINDS for text in _kind(kind)),
        "",
        *_orders(),
        "## Fields",
        "",
        "In the order in which a line has them.",
        "",
        *table(["Field", "Form", "Values", "Meaning", "Since"], map(_field, FIELDS)),
        "",
        "## Digest",
        "",
        *_docstring(digest),
    ]


#: A PUBLISH that was accepted; the other fields of the line follow from these.
EXAMPLE: Final = {
    "version": line.RECORD_VERSION,
    "sequence": 2,
    "batch": 2,
    "gateway": "0102030405060708090a0b0c",
    "kind": Kind.ACCEPTED.value,
    "at_us": 1_793_620_800_000_000,
    "direction": "in",
    "client": "pump-7",
    "session_epoch": 1,
    "exchange": 1,
    "packet_type": 3,
    "packet_identifier": 1,
    "qos": 1,
    "topic": "plant/pump-7/bar",
    "payload_bytes": 3,
    "payload_sha256": hashlib.sha256(b"4.2").hexdigest(),
    "prev": hashlib.sha256(b"the line before").hexdigest(),
}


def _example() -> list[str]:
    """A line as the gateway writes it, cut behind commas; its hash is that of its bytes."""
    assert set(EXAMPLE) <= set(RECORD_FIELDS[Kind.ACCEPTED])
    assert [each.name for each in FIELDS if each.name in EXAMPLE] == list(EXAMPLE)
    body = json.dumps(EXAMPLE, separators=(",", ":"))
    sealed = f'{body[:-1]},"hash":"{hashlib.sha256(body.encode()).hexdigest()}"}}'
    carried, computed = line.line_hashes(sealed.encode()) or ("", "none")
    assert carried == computed
    return textwrap.wrap(sealed.replace(",", ", "), 100)


def _docstring(module: object) -> list[str]:
    """The docstring of a module: its paragraphs, and what is indented as a block."""
    paragraphs = (inspect.getdoc(module) or "").split("\n\n")
    written = [
        block("text", inspect.cleandoc(each).splitlines()) if each.startswith(" ") else each.splitlines()
        for each in paragraphs
    ]
    return [text for paragraph in written for text in (*paragraph, "")][:-1]


def _kind(kind: RecordKind) -> list[str]:
    others = [name for name in RECORD_FIELDS[kind.kind] if name not in (*EVERYWHERE, *kind.required)]
    lines = ["", f"### `{kind.kind}`", "", kind.meaning, "", f"Always: {_listed(kind.required)}."]
    lines += ["", f"Where they apply: {_listed(others)}."] if others else []
    events = table(["`event`", "Meaning"], ((code(name), sentence(text)) for name, text in kind.events.items()))
    return [*lines, "", *events] if kind.events else lines


def _orders() -> list[str]:
    """What can be ordered, and the records of it."""
    rows = [(f"verb {verb.name} of the socket", told) for verb, told in VERBS.items()]
    rows += [(f"MQSC {' '.join(key)}", told) for key, told in MQSC.items()]
    rows += [(f"rfhbridge {command}", told) for command, told in COMMANDS.items()]
    changing = [row for row in rows if row[1].acts or row[1].kinds]
    reading = ", ".join(code(name) for name, told in rows if not (told.acts or told.kinds))
    return [
        "",
        "## Orders",
        "",
        *ORDERS.splitlines(),
        "",
        *table(
            ["Order", "`command` of `operated`", "Other records", "Remark"],
            (
                (code(name), _listed(told.acts), _listed(kind.value for kind in told.kinds), told.remark)
                for name, told in changing
            ),
        ),
        "",
        f"These change nothing that lasts, and have no record: {reading}.",
        "",
    ]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))


def _field(field: Field) -> tuple[str, ...]:
    values = " or ".join(map(code, field.values))
    if field.bounds:
        least, most = field.bounds
        values = f"{least:,} or more" if most == LARGEST else f"{least:,} to {most:,}"
    if field.digits:
        values = f"{field.digits} digits"
    meaning = sentence(field.meaning)
    unit = f" Unit: {field.unit}." if field.unit else ""
    return code(field.name), field.form.shown, values, meaning + unit, field.since

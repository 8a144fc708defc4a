"""The page of the audit record, the trail's files and the digest, from the tables of the trail."""

import hashlib
import inspect
import json
import re
import textwrap
from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from docs.generator.markdown import block, code, sentence, table
from gateway.audit_trail.notes.orders import COMMANDS, MQSC, VERBS
from spark_audit import personal, seal
from spark_audit.record import FIELDS, KINDS, Field, Kind, RecordKind, batch_line, line, notes
from spark_audit.record.columns import ADDED, PARTITION
from spark_audit.record.fields import MOST_MESSAGE_IDS
from spark_audit.record.header_contexts import HEADER_CONTEXTS
from spark_audit.record.notes import NOTES
from spark_audit.record.record_fields import RECORD_FIELDS
from spark_audit.trail import digest, segment_forms, signature

INTRODUCTION: Final = """
The trail is the folder `trail` of the data folder. Its segments are files of lines; its digests stand in
`trail/digests`.

![Lines hang together by their hashes, digests by theirs; a digest has the Merkle root of a
segment](../pictures/the-trails-chain.svg)
""".strip()
ORDERS: Final = f"""
The table has every order of an operator or an MQ application, over the socket or without a gateway, and its records.
The record of an order that destroys or takes messages counts them all, and lists the MsgIds of the first
{MOST_MESSAGE_IDS} of each unit of work. The audit reports each `operated` record as a warning. A message that an order
destroyed also has a `dropped` record, so the audit does not call it lost. An `mqput` says where a message came from,
and an `mqget` who has it now. The control `custody.queues` counts both.
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
        "## Files",
        "",
        *_docstring(segment_forms),
        "",
        "## Line of one record",
        "",
        *_docstring(line),
        "",
        "A line; for reading it is broken here, with blanks behind the commas:",
        "",
        *block("text", _example()),
        "",
        "## Line of a batch",
        "",
        *_docstring(batch_line),
        "",
        "## Notes",
        "",
        *_docstring(notes),
        "",
        NAMES_OF_NOTES,
        "",
        *table(["Note", "Meaning", "Items behind kind and time", "Records"], map(_note, NOTES)),
        "",
        "Header contexts:",
        "",
        *table(
            ["Name", "Facts behind the name"],
            ((code(name), _listed(row.facts)) for name, row in HEADER_CONTEXTS.items()),
        ),
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
        "## Columns of Parquet",
        "",
        *INGESTED.splitlines(),
        "",
        *table(["Column", "Type", "Meaning"], map(_column, (*ADDED, *PARTITION))),
        "",
        "## Personal data under a key",
        "",
        *_docstring(personal),
        "",
        "## Digest",
        "",
        *_docstring(digest),
        "",
        'Hashes, keys and signatures are lower-case hex. What does not apply is `0` or `""`.',
        "",
        *table(["Field", "Meaning", "Since version"], _digest_fields()),
        "",
        "A digest, broken behind its commas for reading. The private keys of RFC 8032, section 7.1, made it: that of",
        "TEST 1 signs, that of TEST 2 countersigns, and that of TEST 3 is the next one.",
        "",
        *block("text", textwrap.wrap(_digest_example().to_bytes().decode().strip().replace(",", ", "), 100)),
        "",
        "## Check a trail in another language",
        "",
        *STEPS.splitlines(),
        "",
        "## Keys and signatures",
        "",
        *_docstring(signature),
        "",
        "## Seal of results",
        "",
        *_docstring(seal),
    ]


NAMES_OF_NOTES: Final = "For programs the names of all items are in [`audit-notes.json`](audit-notes.json)."
#: The tables that `audit ingest` makes.
INGESTED: Final = """
`rfhbridge audit ingest` writes a row for each record, and for each line without any. A row has the fields above as
columns, all nullable: numbers as 64-bit integers, texts, booleans, and lists of these. Then it has the columns below.
`date` and `gateway_id` stand in the names of folders, so that a query reads only the days and gateways that it asks
for.
""".strip()


def _column(column: tuple[str, str, str]) -> tuple[str, str, str]:
    name, kind, meaning = column
    return code(name), kind, meaning


#: What a program does that checks a trail without any of ours.
STEPS: Final = """
[`trail_reader.py`](trail_reader.py) does these steps in 120 lines of Python, without any code of rfhbridge. It leaves
out step 7 and the countersignatures. Of a batch it prints the notes.

1. Read the lines of all segments in the order of their names. Each line has the hash of its own bytes without
   `,"hash":"..."`, and the hash of the line before.
2. Read the digests in the order of their numbers, from 1 without gaps. Each has in `previous` the SHA-256 of the whole
   file before, its line feed included.
3. Take `signature` out of the object, and write the rest with sorted keys, without blanks, in UTF-8: `public_key`
   signed these bytes. Take `countersignature` out too: `countersigner` signed those, where there is a countersignature.
4. From version 2 on, `public_key` is the `next_public_key` of the digest before, except in the first digest and a
   renewal. A renewal needs a reason from outside. In version 1, `public_key` is that of the digest before, or its
   `new_public_key`. No version 1 stands behind a later one.
5. `countersigner` is that of the digest before, or its `new_public_key`; behind version 1 it is the key that would have
   signed. The first digest of a chain of keys and behind a rotation, each rotation and renewal, and one an hour have a
   countersignature. Where `key_place` is not `file`, it may come later in a digest of kind `countersignature`, over
   `{"countersigned_number":NUMBER,"digest":"HASH"}`: number of a digest, and SHA-256 of its file. The first one comes
   within an hour. A key does not change its place.
6. Each digest of kind `segment` agrees with its file in length, hashes, number of lines, and the hash of the last line.
   A segment that is not there has a later digest of kind `retention` that names it or a newer one.
7. Compare: one `public_key` of a digest with a key that you got early and otherwise, or digests with your copies of
   them; the time of the last digest with your clock.
""".strip()


def _digest_fields() -> list[tuple[str, str, str]]:
    """Each field with the comment above it, which may be for several."""
    rows, meaning = [], ""
    for line_of in inspect.getsource(digest.Digest).splitlines():
        if found := re.fullmatch(r"    #: (.*)", line_of):
            meaning = found[1]
        elif found := re.fullmatch(r"    ([a-z0-9_]+): (?:str|int).*", line_of):
            since = str(digest.SINCE.get(found[1], digest.FIRST_VERSION))
            rows.append((code(found[1]), meaning.replace('""', '`""`'), since))
    assert [code(each.name) for each in fields(digest.Digest)] == [name for name, *_ in rows]
    return rows


def _digest_example() -> digest.Digest:
    """A digest that whoever writes a checker can try it with."""
    signs, countersigns, following = (Ed25519PrivateKey.from_private_bytes(bytes.fromhex(each)) for each in SECRETS)
    told = digest.Digest(
        number=1,
        kind=digest.DigestKind.INTERVAL,
        gateway="0102030405060708090a0b0c",
        head="0" * 64,
        previous="0" * 64,
        from_us=1_793_620_800_000_000,
        until_us=1_793_621_700_000_000,
        code_version="0.1.0",
        table_version="1",
        configuration_sha256="",
        public_key=signature.public_key_of(signs),
        next_public_key=signature.public_key_of(following),
        countersigner=signature.public_key_of(countersigns),
    )
    return told.countersigned(signature.KeySigner(countersigns)).signed(signs)


#: RFC 8032, section 7.1, TEST 1 to TEST 3.
SECRETS: Final = (
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
)
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


def _note(note: notes.Note) -> tuple[str, str, str, str]:
    items = _listed(note.items)
    if note.optional:
        items += f"; in later versions {_listed(note.optional)}"
    return (
        f"{int(note.kind)} {code(note.kind.name.lower())}",
        note.meaning,
        items,
        _listed(each.kind for each in note.records),
    )


def names_of_notes() -> str:
    """The names of the items of each note, and of the facts of each header context, as JSON for readers of a trail."""
    named = {
        "notes": {
            str(int(note.kind)): {"name": note.kind.name.lower(), "items": [*note.items, *note.optional]}
            for note in NOTES
        },
        "contexts": {name: list(context.facts) for name, context in HEADER_CONTEXTS.items()},
    }
    return json.dumps(named, indent=1) + "\n"


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
        "These have no record of their own. They change nothing that lasts, or carry orders that have records above:",
        f"{reading}.",
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

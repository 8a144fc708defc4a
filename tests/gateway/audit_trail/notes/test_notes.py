"""Notes are packed as the table says, byte for byte as an earlier version packed them."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import ormsgpack
import pytest

from gateway.audit_trail.notes.notes import Arrival, Passage, Service, Translation, pack_batch
from mq_adapters.delivery_listener import Delivery, TakenCommand
from spark_audit.record.header_contexts import HEADER_CONTEXTS
from spark_audit.record.notes import BATCH_VERSION, NOTES, NoteKind

#: Every kind of note, packed by version 0.1.0 before the table was there; the last batch is of a still earlier one.
KEPT_FOLDER = Path(__file__).parents[3] / "spark_audit/record/kept"
KEPT = [bytes.fromhex(line) for line in (KEPT_FOLDER / "batches.hex").read_text().splitlines()]
CLASSES: dict[str, Callable[..., object]] = {
    "translation": Translation,
    "arrival": Arrival,
    "delivery": Delivery,
    "service": Service,
    "passage": Passage,
    "taken_command": TakenCommand,
}


#: Kinds that came after the batches were kept.
YOUNGER = {NoteKind.LOGINS_REFUSED, NoteKind.COMMANDED, NoteKind.LOST, NoteKind.STOCK}
YOUNGER |= {NoteKind.TOPICS_REFUSED, NoteKind.FILE_READ, NoteKind.MQPUT, NoteKind.MQGET}
YOUNGER |= {NoteKind.INVENTORY, NoteKind.ANSWERED, NoteKind.CONNECTS_REFUSED}
YOUNGER |= {NoteKind.PROGRAM, NoteKind.PROGRAMS_REFUSED}
#: Facts of header contexts that came after them, with the value that says nothing.
YOUNGER_FACTS = {"delivery": {"default_persistence": 0}}


def _lists_are_tuples(value: object) -> object:
    return tuple(map(_lists_are_tuples, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("packed", KEPT[:-1])
def test_a_batch_is_packed_as_before(packed: bytes) -> None:
    version, batch, notes, contexts = ormsgpack.unpackb(packed)
    younger = [YOUNGER_FACTS.get(name, {}) for name, *_ in contexts]
    made = [
        CLASSES[name](**dict(zip(HEADER_CONTEXTS[name].facts, map(_lists_are_tuples, facts), strict=not more)), **more)
        for (name, *facts), more in zip(contexts, younger, strict=True)
    ]
    rows = {row.kind: ("kind", "at_us", *row.items, *row.optional) for row in NOTES}
    again = [
        tuple(made[item] if name in HEADER_CONTEXTS else item for name, item in zip(rows[note[0]], note, strict=False))
        for note in ormsgpack.unpackb(notes)
    ]
    told = [[*facts, *more.values()] for facts, more in zip(contexts, younger, strict=True)]
    assert version == BATCH_VERSION
    assert pack_batch(batch, again) == ormsgpack.packb([version, batch, notes, told])


def test_the_kept_batches_have_every_kind_of_note_and_of_header_context() -> None:
    batches = [ormsgpack.unpackb(packed) for packed in KEPT]
    assert {note[0] for _, _, notes, _ in batches for note in ormsgpack.unpackb(notes)} == set(NoteKind) - YOUNGER
    assert {facts[0] for *_, contexts in batches for facts in contexts} == set(HEADER_CONTEXTS) - {"taken_command"}


@pytest.mark.parametrize("name", HEADER_CONTEXTS)
def test_a_header_context_has_the_facts_of_the_table(name: str) -> None:
    facts, made = HEADER_CONTEXTS[name].facts, CLASSES[name]
    assert {field.name for field in dataclasses.fields(made)} == set(facts)  # type: ignore[arg-type]


def test_what_is_no_header_context_is_not_packed() -> None:
    with pytest.raises(TypeError):
        pack_batch(1, [(NoteKind.STARTED, object())])

"""The tables of the record agree with each other, and each row says what it means."""

import pytest

from spark_audit.record import EVENTS, FIELDS, KINDS, Field, Kind, RecordKind
from spark_audit.record.notes import NOTES, NoteKind
from spark_audit.record.record_fields import RECORD_FIELDS


def test_each_kind_of_record_and_of_note_has_one_row() -> None:
    assert [row.kind for row in KINDS] == list(Kind)
    assert [row.kind for row in NOTES] == list(NoteKind)


@pytest.mark.parametrize("row", KINDS, ids=lambda row: row.kind)
def test_a_kind_has_the_fields_that_it_must_have(row: RecordKind) -> None:
    assert set(row.required) <= set(RECORD_FIELDS[row.kind])
    assert ("event" in RECORD_FIELDS[row.kind]) == (row.kind in EVENTS)


def test_every_field_is_in_a_record_of_some_kind() -> None:
    assert {name for names in RECORD_FIELDS.values() for name in names} == {field.name for field in FIELDS}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_field_says_its_meaning_type_and_version(field: Field) -> None:
    assert field.meaning
    assert field.type in {"long", "boolean", "string", "array<string>", "array<array<long>>", "array<array<string>>"}
    assert field.since == "0.1.0"


@pytest.mark.parametrize("field", ["at_us", "jump_us", "payload_bytes", "messages"])
def test_a_measure_has_a_unit(field: str) -> None:
    assert next(row.unit for row in FIELDS if row.name == field)


@pytest.mark.parametrize("row", [*KINDS, *NOTES], ids=lambda row: f"{type(row).__name__}-{row.kind}")
def test_a_row_says_its_meaning_in_a_sentence(row: object) -> None:
    meaning = getattr(row, "meaning", "")
    assert meaning[:1].isupper()
    assert meaning.endswith(".")

"""The fields that records of each kind may have, as the notes of which they are made say."""

from typing import Final

from spark_audit.record.fields import FIELD_PLACES
from spark_audit.record.kinds import Kind
from spark_audit.record.notes import NOTES

_FIRST_FIELDS: Final = ("version", "sequence", "batch", "gateway", "kind", "at_us")
_LAST_FIELDS: Final = ("prev", "hash")


def _fields_of(kind: Kind) -> tuple[str, ...]:
    records = [record for note in NOTES for record in note.records if record.kind is kind]
    parts = [part for record in records for part in (*record.parts, *(record.context.parts if record.context else ()))]
    names = {name for part in parts for name in part.fields}
    return (*_FIRST_FIELDS, *sorted(names, key=FIELD_PLACES.__getitem__), *_LAST_FIELDS)


#: The fields that a record of each kind may have, in the order of a line.
RECORD_FIELDS: Final = {kind: _fields_of(kind) for kind in Kind}

"""Columns of the tables that `audit ingest` makes, beside the fields of a record: name, type, meaning."""

from typing import Final

#: Where a line stands, and what was found when it was read.
ADDED: Final = (
    ("segment", "string", "file of the segment that the line stands in"),
    ("block", "long", "offset in that segment at which a worker began to read, in bytes of text"),
    ("place", "long", "number of the record behind that offset, from 0; block and place give the order of records"),
    ("line_number", "long", "number of its line behind that offset, from 0; null in files of earlier versions"),
    ("is_record", "boolean", "whether the line is an audit record; if not, all fields of a record are null"),
    ("actual_hash", "string", "SHA-256 of the line's bytes, to compare with `hash`"),
    ("line", "string", "beginning of a line that is no record; null for a record"),
    ("trail", "string", "name of the trail: that of its first gateway"),
)
#: Columns that stand in the names of folders, not in the files.
PARTITION: Final = (
    (
        "date",
        "string",
        "day on which the record was noted, UTC, YYYY-MM-DD; of a line without a time that of its segment",
    ),
    ("gateway_id", "string", "`gateway`, or 'unknown' if the line has none"),
)

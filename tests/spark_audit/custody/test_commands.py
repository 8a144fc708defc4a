"""The rows that the replay reads: what a record's bytes tell, looked at only where they may tell something."""

from itertools import product
from typing import Any

import pytest

from spark_audit.custody.commands import COLUMNS, may_be_told, row_of, rows_of, told_of

PUT: dict[str, Any] = {"kind": "put", "input": "MAA=", "output": "PHVzcj4=", "output_format": "MQHRF2"}
DIRECTIONS = ({}, {"direction": "in"}, {"direction": "out"})
COMMANDS = ({}, {"command": "Publish"}, {"command": "RegSub"}, {"command": "DeletePub"})
FLAGS = ({}, {"retain": False}, {"retain": True}, {"packet_type": 1}, {"protocol_level": 5})
OTHERS: tuple[dict[str, Any], ...] = (
    {"kind": "accepted", "qos": 1},
    {"kind": "commanded", "topics": ["a"]},
    {"kind": "confirmed", "exchanges": [[1, 2]]},
    {"kind": "inventory", "event": "sessions", "sessions": [["pump", 1]]},
    {"kind": "session", "event": "opened", "clean_session": True},
    {"kind": "stock", "depths": [["Q", 1]]},
)
RECORDS = [*(PUT | a | b | c for a, b, c in product(DIRECTIONS, COMMANDS, FLAGS)), *OTHERS]


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_whatever_is_told_of_a_record_may_be_told_of_its_fields(record: dict[str, Any]) -> None:
    told = any(value is not None for value in told_of(record))
    assert may_be_told(record["kind"], {name: [value] for name, value in record.items()}) >= told


def test_nothing_is_looked_for_in_copies_and_in_plain_publications() -> None:
    plain = {"direction": ["in"], "command": ["Publish"], "packet_type": [3], "retain": [False]}
    assert not may_be_told("put", plain)
    assert not may_be_told("put", {"conversion": ["header_to_header"], "command": ["Publish"], "retain": [True]})
    assert may_be_told("put", plain | {"retain": [True]})


def test_rows_of_columns_have_every_column() -> None:
    records = [{"kind": "accepted", "gateway": "g", "sequence": number, "qos": number} for number in range(1, 4)]
    columns = {name: [record[name] for record in records] for name in records[0]}
    rows = list(rows_of(columns))
    assert rows == [row_of(record) for record in records]
    assert all(tuple(row) == COLUMNS for row in rows)
    assert list(rows_of({})) == []

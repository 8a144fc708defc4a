"""Facts of many lines at once: the same rows, in the same order, as of each line by itself, in batches of few bytes."""

from typing import Any

import pytest

from spark_audit.facts import reader
from spark_audit.facts.pieces import SegmentPiece
from spark_audit.facts.reader import FactReader
from spark_audit.facts.reading import Reading
from tests.spark_audit.conftest import SEGMENT, TrailBuilder

IN = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 3}
ACCEPTED = IN | {"qos": 1, "topic": "a/b", "retain": False, "payload_bytes": 2, "payload_sha256": "0b" * 32}
PUT = ACCEPTED | {"command": "Publish", "conversion": "packet_to_header", "message_id": "0a" * 24}


@pytest.fixture
def piece(trail: TrailBuilder) -> SegmentPiece:
    """Records of several kinds and shapes by turns, some of them wrong, and lines that are none."""
    for exchange in range(1, 13):
        trail.add("accepted", exchange=exchange, **ACCEPTED | ({"qos": 3} if exchange == 5 else {}))
        trail.add("put", exchange=exchange, **PUT | ({"input": "MAE="} if exchange % 4 else {"user": None}))
        trail.add("confirmed", **IN | {"packet_type": 4, "exchanges": [[exchange, exchange], [9, 2]]})
        if exchange % 5 == 0:
            trail.add("dropped", message_id="0a" * 24, reason="" if exchange == 5 else "an operator destroyed it: why")
            trail.add("operated", command="clear", operator="me", messages=1)
            trail.lines.append(b"no record\n")
    trail.lines[7] = trail.lines[7].replace(b"boiler", b"broken")
    return SegmentPiece(trail="", path=trail.write() / SEGMENT)


def tables(piece: SegmentPiece) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for table, batch in FactReader(Reading(salt=b"salt")).facts(piece.lines()):
        found.setdefault(table, []).extend(batch.to_pylist())
    return found


def test_lines_together_are_judged_as_each_by_itself(piece: SegmentPiece, monkeypatch: pytest.MonkeyPatch) -> None:
    together = tables(piece)
    monkeypatch.setattr(reader, "_BATCH_ROWS", 1)
    assert tables(piece) == together
    controls = {finding["control"] for finding in together["findings"]}
    assert controls >= {"integrity.hash", "integrity.values", "reasons", "qos.1", "operators.acts"}
    assert [row["sequence"] for row in together["records"]] == list(range(1, len(together["records"]) + 1))
    assert len({row["kind"] for row in together["records"]}) == 5


def test_long_lines_wait_in_small_number(trail: TrailBuilder) -> None:
    for exchange in range(1, 9):
        trail.add("accepted", exchange=exchange, **ACCEPTED, user="u" * (reader._BATCH_BYTES // 4))
    piece = SegmentPiece(trail="", path=trail.write() / SEGMENT)
    batches = [batch for table, batch in FactReader(Reading()).facts(piece.lines()) if table == "records"]
    assert max(batch.num_rows for batch in batches) <= 4
    assert sum(batch.num_rows for batch in batches) == 8


def test_a_long_confirmation_is_given_before_the_next(trail: TrailBuilder) -> None:
    for _ in range(3):
        trail.add("confirmed", **IN | {"packet_type": 4, "exchanges": [[1, reader._BATCH_ROWS]]})
    piece = SegmentPiece(trail="", path=trail.write() / SEGMENT)
    batches = [batch for table, batch in FactReader(Reading()).facts(piece.lines()) if table == "confirmations"]
    assert [batch.num_rows for batch in batches] == [reader._BATCH_ROWS] * 3

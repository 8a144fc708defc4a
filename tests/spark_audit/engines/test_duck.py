"""DuckDB sorts the records of a trail only where they do not stand in their order already."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from spark_audit.engines.duck import DuckEngine
from spark_audit.engines.engine import Columns
from spark_audit.facts.pieces import pieces_of
from spark_audit.facts.reading import Reading
from spark_audit.facts.tables import schema_of
from tests.spark_audit.conftest import TrailBuilder

ASKED = Columns("records", ("gateway", "sequence"))
BY = ("gateway", "sequence")
SCHEMA = pa.schema([("gateway", pa.string()), ("sequence", pa.int64())])
Place = tuple[str, int]


def trail_of(folder: Path, places: list[Place]) -> Path:
    """A trail with records of these gateways and sequences, in this order."""
    builder = TrailBuilder(folder)
    for gateway, sequence in places:
        builder.add("accepted", gateway=gateway * 24, sequence=sequence)
    return builder.write()


def read(engine: DuckEngine, *folders: Path) -> None:
    paths = [path for folder in folders for path in sorted(folder.glob("*.jsonl"))]
    engine.read(pieces_of("", paths), Reading(salt=b"salt"), 0)


def seen(engine: DuckEngine) -> list[Place]:
    """The places of the records, as a replay gets them."""
    places: list[Place] = []

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            places.extend((row["gateway"][0], row["sequence"]) for row in batch.to_pylist())
        yield from ()

    engine.keep_in_order("seen", ASKED, BY, make, SCHEMA)
    return places


@pytest.mark.parametrize(
    ("trails", "is_in_order"),
    [
        ([[("a", 1), ("a", 2)], [("a", 3)]], True),
        ([[("a", 1)], [("b", 1), ("b", 2)]], True),
        ([[("a", 2), ("a", 1)]], False),
        ([[("a", 3)], [("a", 1), ("a", 2)]], False),
        ([[("b", 1)], [("a", 1)], [("b", 2)]], False),
        ([[("b", 1), ("a", 1)]], False),
    ],
    ids=["one gateway", "two gateways", "swapped", "files in another order", "by turns", "two in a file"],
)
def test_a_replay_gets_records_in_their_order(tmp_path: Path, trails: list[list[Place]], is_in_order: bool) -> None:
    folders = [trail_of(tmp_path / str(number) / "trail", places) for number, places in enumerate(trails)]
    with closing(DuckEngine(tmp_path, "1g")) as engine:
        read(engine, *folders)
        assert seen(engine) == sorted(place for places in trails for place in places)
        assert ("records" in engine._orders) is is_in_order


def test_records_that_come_later_are_put_in_order(tmp_path: Path) -> None:
    earlier = {"gateway": "a" * 24, "sequence": 1, "kind": "accepted"}
    with closing(DuckEngine(tmp_path, "1g")) as engine:
        read(engine, trail_of(tmp_path / "trail", [("a", 2), ("a", 3)]))
        engine.add("records", pa.Table.from_pylist([earlier], schema=schema_of("records")))
        assert seen(engine) == [("a", 1), ("a", 2), ("a", 3)]

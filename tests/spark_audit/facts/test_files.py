"""Facts as files: alike in both forms, and of their piece alone, whatever happened to the piece before."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_audit.audit_input import input_of_trails
from spark_audit.facts.files import ARROW, PARQUET, write_facts
from spark_audit.facts.lines import Line
from spark_audit.facts.pieces import Piece
from spark_audit.facts.reading import Reading
from spark_audit.read import trail_files
from tests.spark_audit.conftest import TrailBuilder

IN = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 3, "qos": 1}


@dataclass(frozen=True)
class Vanishing:
    """A piece whose file is gone after some lines."""

    piece: Piece
    lines_there: int

    def lines(self) -> Iterator[Line]:
        yield from islice(self.piece.lines(), self.lines_there)
        raise FileNotFoundError("the segment is gone")


@pytest.fixture
def piece(trail: TrailBuilder, tmp_path: Path) -> Piece:
    for exchange in range(1, 9):
        trail.add("accepted", exchange=exchange, **IN)
    (found,) = input_of_trails([trail_files(trail.write(), tmp_path)]).pieces
    return found


def _tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for path in sorted(folder.rglob("*.*")):
        table = pq.read_table(path) if path.suffix == PARQUET else pa.ipc.open_file(path).read_all()
        found[f"{path.parent.name}/{path.stem}"] = table.to_pylist()
    return found


def _written(piece: Any, folder: Path, form: str = PARQUET) -> dict[str, list[dict[str, Any]]]:
    folder.mkdir()
    write_facts(piece, 7, Reading(), folder, form)
    return _tables(folder)


def test_both_forms_say_the_same(piece: Piece, tmp_path: Path) -> None:
    found = _written(piece, tmp_path / "parquet")
    assert found == _written(piece, tmp_path / "arrow", ARROW)
    assert len(found["records/00000007"]) == 8


def test_a_piece_that_broke_off_leaves_nothing_for_the_next_one(piece: Piece, tmp_path: Path) -> None:
    alone = _written(piece, tmp_path / "alone")
    with pytest.raises(FileNotFoundError):
        _written(Vanishing(piece, 3), tmp_path / "broken")
    assert _written(piece, tmp_path / "behind") == alone

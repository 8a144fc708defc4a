"""The facts of a piece of a trail as files, which any process writes and an engine reads."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from spark_audit.facts.pieces import Piece
from spark_audit.facts.reader import FactReader
from spark_audit.facts.reading import Reading

ARROW: Final = ".arrow"
PARQUET: Final = ".parquet"


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


_OPEN: Final[dict[str, Callable[[Path, pa.Schema], _Writer]]] = {
    ARROW: pa.ipc.new_file,
    PARQUET: pq.ParquetWriter,
}
#: The reader of this process, which may read many pieces: what it has worked out once, it knows for the next one.
_READERS: Final[dict[Reading, FactReader]] = {}


def write_facts(piece: Piece, number: int, reading: Reading, folder: Path, form: str) -> None:
    """Reads piece `number`; for each table that has rows writes one file, `folder/TABLE/NUMBER` with the form's ending.

    A second call writes the same files again.
    """
    reader = _READERS.pop(reading, None) or FactReader(reading)  # one that an error interrupted is not used again
    _READERS.clear()
    writers: dict[str, _Writer] = {}
    is_collecting = gc.isenabled()
    gc.disable()  # records make no cycles: to look for some took an eighth of the time
    try:
        for table, batch in reader.facts(piece.lines()):
            if table not in writers:
                (folder / table).mkdir(exist_ok=True)
                writers[table] = _OPEN[form](folder / table / f"{number:08d}{form}", batch.schema)
            writers[table].write_batch(batch)
    finally:
        if is_collecting:
            gc.enable()
        for writer in writers.values():
            writer.close()
    _READERS[reading] = reader


def write_arrow(task: tuple[int, Piece], *, reading: Reading, folder: Path) -> None:
    """Writes the facts of a numbered piece as files of Arrow. A process that does nothing else imports no engine."""
    number, piece = task
    write_facts(piece, number, reading, folder, ARROW)

"""The corpus of `tests/vectors` as values; its README describes the files."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "vectors"

Table = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """One message of the corpus, and what it says or what is wrong with it."""

    file: str
    name: str
    source: str
    data: bytes
    format: bytes
    coded_char_set_id: int
    encoding: int
    headers: list[Table] | None
    body: Table
    command: Table | None
    response: Table | None
    error: Table | None
    circumstances: Table
    after: list[str]
    answer: int | None

    @property
    def mqmd(self) -> Table:
        """What the MQMD says, as arguments."""
        return {"format": self.format, "coded_char_set_id": self.coded_char_set_id, "encoding": self.encoding}

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"


def bytes_of(text: str) -> bytes:
    """Hexadecimal lines with comments."""
    return bytes.fromhex("".join(line.partition("#")[0] for line in text.splitlines()))


def read_vectors() -> list[Vector]:
    """All vectors of all files."""
    return [
        Vector(
            file=path.stem,
            name=row["name"],
            source=row["source"],
            data=bytes_of(row["bytes"]),
            format=row["format"].ljust(8).encode("ascii"),
            coded_char_set_id=row["coded_char_set_id"],
            encoding=row["encoding"],
            headers=row.get("headers"),
            body=row.get("body", {}),
            command=row.get("command"),
            response=row.get("response"),
            error=row.get("error"),
            circumstances=row.get("circumstances", {}),
            after=row.get("after", []),
            answer=row.get("answer"),
        )
        for path in sorted(FOLDER.glob("*.toml"))
        for row in tomllib.loads(path.read_text("utf-8"))["vector"]
    ]


VECTORS = read_vectors()
READABLE = [vector for vector in VECTORS if vector.headers is not None]
REFUSED = [vector for vector in VECTORS if vector.error is not None]

"""manifest.json: the ingested segments, and the files with their lines. Other files do not count.

    {"version": 1, "next_number": N, "segments": [{trail, stem, gateway, sha256, size_bytes, lines}, ...],
     "files": [{path, rows, size_bytes, sha256}, ...]}

Raise MANIFEST_VERSION when a field changes its meaning. A folder of another version is ingested anew.
"""

import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

import orjson

from spark_audit.location import Location

MANIFEST_VERSION: Final = 1
MANIFEST_FILE: Final = "manifest.json"
#: The file beside it in the checkpoint of a stream of an earlier version, which forgot lines that were old.
EARLIER_STREAM_FILE: Final = "reported.json"
#: The folder of the files with lines, and in it that of the Delta log (delta_log.py).
RECORDS: Final = "records"
DELTA_LOG: Final = "_delta_log"


class UnusableManifest(Exception):
    """The folder was not made by `ingest`, or not by this version of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedSegment:
    """An ingested segment. `trail` is the name of its trail, `stem` its own name without its ending."""

    trail: str
    stem: str
    gateway: str
    sha256: str
    size_bytes: int
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A Parquet file; `path` is relative to the folder, `date=.../gateway_id=...` in it."""

    path: str
    rows: int
    size_bytes: int
    sha256: str

    @property
    def partition(self) -> str:
        """The folders for its date and gateway."""
        return self.path.rpartition("/")[0]

    @property
    def date(self) -> str:
        """YYYY-MM-DD."""
        return self.path.partition("date=")[2].partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The ingested segments and their files. `next_number` begins the names of the next files."""

    version: int = MANIFEST_VERSION
    next_number: int = 1
    segments: tuple[IngestedSegment, ...] = ()
    files: tuple[DataFile, ...] = ()
    _known: dict[tuple[str, str], IngestedSegment] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._known.update({(segment.trail, segment.stem): segment for segment in self.segments})

    @classmethod
    def load(cls, folder: Location) -> Self:
        """The manifest in a folder. Raises UnusableManifest, FileNotFoundError and other OSErrors."""
        return cls._parsed((folder / MANIFEST_FILE).read_bytes(), folder)

    @classmethod
    def _parsed(cls, data: bytes, folder: Location) -> Self:
        try:
            values: dict[str, Any] = orjson.loads(data)
            if values["version"] != MANIFEST_VERSION:
                raise UnusableManifest(f"{folder} was ingested by another version: ingest into a new folder")
            return cls(
                next_number=int(values["next_number"]),
                segments=tuple(IngestedSegment(**each) for each in values["segments"]),
                files=tuple(DataFile(**each) for each in values["files"]),
            )
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise UnusableManifest(f"{folder / MANIFEST_FILE} is no manifest: {error}") from None

    def save(self, folder: Location) -> None:
        """Replaces the manifest. It is on the disk when this returns. Raises UnusableManifest, OSError."""
        values = {name: value for name, value in asdict(self).items() if not name.startswith("_")}
        data = orjson.dumps(values, option=orjson.OPT_INDENT_2)
        if not isinstance(folder, Path):
            self._check_only_writer(folder)
            (folder / MANIFEST_FILE).write_bytes(data)
            return
        unfinished = folder / f"{MANIFEST_FILE}.part"
        with unfinished.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder / MANIFEST_FILE)
        sync_folder(folder)

    def _check_only_writer(self, folder: Location) -> None:
        """Each change raises `next_number` by one, so the manifest that is there is the one before."""
        try:
            there = self.load(folder).next_number
        except FileNotFoundError:
            there = 1
        if there != self.next_number - 1:
            raise UnusableManifest(f"another process ingested into {folder} meanwhile: ingest once more")

    def segment(self, trail: str, stem: str) -> IngestedSegment | None:
        """The ingested segment of a trail with that name."""
        return self._known.get((trail, stem))

    def stems_of(self, trail: str) -> frozenset[str]:
        """The names of the ingested segments of a trail."""
        return frozenset(segment.stem for segment in self.segments if segment.trail == trail)

    def trail_of(self, gateway: str) -> str:
        """The name of a gateway's trail; "" if none of it is ingested yet, or if it begins late."""
        named = {segment.trail for segment in self.segments if segment.trail == segment.gateway}
        found = (segment.trail for segment in self.segments if segment.gateway == gateway)
        return next((trail for trail in found if trail in named), "")

    def with_more(self, segments: tuple[IngestedSegment, ...], files: tuple[DataFile, ...]) -> Self:
        """The manifest with more segments and their files."""
        return replace(
            self,
            next_number=self.next_number + 1,
            segments=self.segments + segments,
            files=self.files + files,
            _known={},
        )

    def with_others(self, old: tuple[DataFile, ...], new: tuple[DataFile, ...]) -> Self:
        """The manifest with the same lines in other files."""
        kept = tuple(file for file in self.files if file not in old)
        return replace(self, next_number=self.next_number + 1, files=kept + new, _known={})


def sync_folder(folder: Path) -> None:
    """Syncs the names in a folder. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The input of an audit, from Parquet: the files that the manifest names, unchanged."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from spark_audit.audit_input import ALONE, AuditInput
from spark_audit.controls.digests import read_digests
from spark_audit.facts.pieces import ParquetPiece
from spark_audit.ingest.manifest import EARLIER_STREAM_FILE, DataFile, Manifest
from spark_audit.ingest.warehouse import Damaged, check_files
from spark_audit.location import Location
from spark_audit.period import AROUND_US, Period, hour_of
from spark_audit.trail.digest import DIGEST_FOLDER

_SEGMENT_NUMBER: Final = 12
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The files to read, with the first and the last segment of each trail. `cut`: its very first one is missing."""

    period: Period
    files: tuple[DataFile, ...]
    segments: Mapping[str, tuple[str, str]]
    cut: frozenset[str]
    text_bytes: int


def selected(folder: Location, period: Period) -> Selection:
    """The selection of a folder for a period, with unchanged files. Raises Damaged, UnusableManifest, OSError."""
    if (folder / EARLIER_STREAM_FILE).exists():
        raise Damaged(
            f"{folder} is the checkpoint of an earlier stream, which forgot what is old: ingest into a folder"
        )
    try:
        manifest = Manifest.load(folder)
    except FileNotFoundError:
        raise Damaged(f"{folder} holds no manifest: it was not made by `audit ingest`") from None
    selection = _selected(manifest, period)
    if not selection.files:
        raise Damaged(f"{folder} holds nothing" + ("" if period.is_everything else " of the period"))
    check_files(folder, selection.files)
    return selection


def _selected(manifest: Manifest, period: Period) -> Selection:
    stems: dict[str, list[str]] = {}
    for segment in sorted(manifest.segments, key=lambda each: each.stem):
        stems.setdefault(segment.trail, []).append(segment.stem)
    picked = {trail: period.to_read(names) for trail, names in stems.items()}
    ends = {trail: (names[0], names[-1]) for trail, names in picked.items() if names}
    return Selection(
        period=period,
        files=tuple(file for file in manifest.files if _may_hold(file, ends)),
        segments=ends,
        cut=frozenset(trail for trail, (first, _) in ends.items() if _is_later(first, stems[trail][0])),
        text_bytes=sum(each.size_bytes for each in manifest.segments if each.stem in picked[each.trail]),
    )


def _may_hold(file: DataFile, ends: Mapping[str, tuple[str, str]]) -> bool:
    """Whether a file may have lines of those segments. Some lines are noted a little before or after their hour."""
    return any(
        _date(hour_of(first) - AROUND_US) <= file.date <= _date(hour_of(last) + AROUND_US)
        for first, last in ends.values()
    )


def _is_later(first_read: str, first_there: str) -> bool:
    return first_read != first_there or int(first_there[:_SEGMENT_NUMBER]) > 1


def input_of_parquet(folder: Location, selection: Selection) -> AuditInput:
    """The audit input of a selection. Raises OSError."""
    several = len(selection.segments) > 1
    pieces = (
        ParquetPiece(path=folder / file.path, segments=dict(selection.segments), is_named=several)
        for file in selection.files
    )
    named = {trail if several else ALONE: trail for trail in sorted(selection.segments)}
    return AuditInput(
        pieces=tuple(pieces),
        digests={name: read_digests(folder / DIGEST_FOLDER / trail) for name, trail in named.items()},
        period=selection.period,
        is_whole=False,  # later lines are not ingested
        cut=frozenset(name for name, trail in named.items() if trail in selection.cut),
        size_bytes=sum(file.size_bytes for file in selection.files),
        text_bytes=selection.text_bytes,
        unverified="it reads segments, and this is Parquet",
    )


def _date(at_us: int) -> str:
    return f"{_EPOCH + timedelta(microseconds=max(at_us, 0)):%Y-%m-%d}"

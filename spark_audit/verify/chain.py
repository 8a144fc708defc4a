"""Line after line in the order in which they stand: each one's own hash, its link to the line before, its numbers."""

from dataclasses import dataclass, field
from typing import Final, TypeGuard

from spark_audit.record import RECORD_VERSION, ZERO_HASH, Kind, line_hashes
from spark_audit.record.batch_line import records_of
from spark_audit.trail.digest import Digest
from spark_audit.verify.verdict import Finding, Findings, Restoration

#: Lines of a segment that are no records, after which the rest of it is not read: it is no segment.
MOST_FOREIGN_LINES: Final = 1_000
_NUMBERS: Final = ("at_us", "first_missing", "last_missing", "first_missing_batch", "last_missing_batch")
#: A trail with more of them is told by their number.
MOST_RESTORATIONS: Final = 1_000
#: File, number of the line, byte offset.
_Place = tuple[str, int, int]


@dataclass(slots=True)
class Position:
    """Where a gateway's records have come to; `batch` is None where only digests speak of them."""

    sequence: int = 0
    batch: int | None = 0


@dataclass(slots=True)
class LineChain:
    """The hash chain through all segments of a trail, as its lines go by."""

    findings: Findings
    head: str = ZERO_HASH
    records: int = 0
    unknown_versions: int = 0
    #: Segments before were passed over: a gateway may have records that nobody saw.
    is_partial: bool = False
    positions: dict[str, Position] = field(default_factory=dict)
    #: First and last sequence of each gateway in the segment that is being read.
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    foreign_lines: int = 0
    #: Records of kind restored, in their order.
    restorations: list[Restoration] = field(default_factory=list)
    restoration_count: int = 0

    def begin_segment(self) -> None:
        """The next lines are those of another segment."""
        self.ranges = {}
        self.foreign_lines = 0

    def pass_over(self, digest: Digest) -> None:
        """Goes on behind a segment that is not there, as its digest says."""
        self.head = digest.head
        self.is_partial = True
        if digest.last_sequence:
            self.positions[digest.gateway] = Position(digest.last_sequence, None)

    def check(self, segment: str, number: int, offset: int, line: bytes) -> None:
        """Checks a line, without its line feed: the file that it stands in, its number from 1, its byte offset."""
        place = (segment, number, offset)
        hashes, records = line_hashes(line), records_of(line)
        if hashes is None or records is None:
            self.foreign_lines += 1
            self._report(Finding.FOREIGN_LINE, place, "the line is not an audit record with its hash at the end")
            return
        first = records[0]
        self.records += len(records)
        if first.get("version") != RECORD_VERSION:
            self.unknown_versions += len(records)
        borne, actual = hashes
        if borne != actual:
            what = f"the line's bytes have hash {actual}, it bears {borne}: it was changed"
            self._report(Finding.CHANGED_LINE, place, what)
        elif first.get("prev") != self.head:
            self._report(Finding.BROKEN_LINK, place, f"prev is not the hash of the line before, {self.head}")
        self.head = borne
        for record in records:
            self._check_numbers(place, record)

    def _check_numbers(self, place: _Place, record: dict[str, object]) -> None:
        gateway, sequence, batch = record.get("gateway"), record.get("sequence"), record.get("batch")
        if record.get("kind") == Kind.RESTORED and isinstance(gateway, str):
            self.restoration_count += 1
            if len(self.restorations) < MOST_RESTORATIONS:
                self.restorations.append(_restoration(record, gateway))
        if not isinstance(gateway, str) or not _is_number(sequence) or not _is_number(batch):
            self._report(Finding.FOREIGN_LINE, place, "gateway, sequence or batch is missing")
            return
        position = self.positions.get(gateway)
        if position is None:
            position = self.positions[gateway] = Position(sequence - 1, None) if self.is_partial else Position()
        if sequence != position.sequence + 1:
            what = f"sequence {sequence} stands where {position.sequence + 1} was due"
            self._report(Finding.WRONG_SEQUENCE, place, what)
        elif (
            position.batch is not None
            and batch != position.batch + 1
            and batch != max(position.batch, 1)
            and not _tells_gap(record, position)
        ):
            self._report(Finding.WRONG_BATCH, place, f"batch {batch} follows batch {position.batch}")
        position.sequence, position.batch = sequence, batch
        self.ranges[gateway] = (self.ranges.get(gateway, (sequence, 0))[0], sequence)

    def _report(self, finding: Finding, place: _Place, what: str) -> None:
        segment, number, offset = place
        self.findings.add(finding, segment, what, line=number, offset=offset)


def _is_number(value: object) -> TypeGuard[int]:
    """Whether a value is a number. To Python a truth value is one, to an audit it is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _tells_gap(record: dict[str, object], position: Position) -> bool:
    """Whether it is the first of a gateway, and says that the batches up to its own are missing."""
    is_first = position.sequence == 0 and record.get("event") == "trail_begun_late"
    told = record.get("first_missing_batch"), record.get("last_missing_batch")
    return is_first and record.get("kind") == Kind.RESTORED and told == (1, record.get("batch"))


def _restoration(record: dict[str, object], gateway: str) -> Restoration:
    at_us, *missing = [value if isinstance(value := record.get(name), int) else 0 for name in _NUMBERS]
    first, last, first_batch, last_batch = missing
    return Restoration(
        record=str(record.get("hash")),
        gateway=gateway,
        event=str(record.get("event")),
        at_us=at_us,
        first_missing=first,
        last_missing=last,
        first_missing_batch=first_batch,
        last_missing_batch=last_batch,
    )

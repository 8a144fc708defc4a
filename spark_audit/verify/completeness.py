"""Segments against digests: each digest's segment is there as it says, or was removed by retention, which says so."""

import sys
from dataclasses import dataclass, field

from spark_audit.trail.digest import Digest, DigestKind, SegmentMeasure
from spark_audit.trail.segment_forms import OPEN, DamagedSegment
from spark_audit.verify.chain import MOST_FOREIGN_LINES, LineChain
from spark_audit.verify.digests import segment_number
from spark_audit.verify.source import LineTooLong, SegmentFile
from spark_audit.verify.verdict import Finding, Findings


@dataclass(slots=True)
class Completeness:
    """Takes the digests and segments of a TrailSource, in its order."""

    findings: Findings
    lines: LineChain
    #: Segments that were read, and the number of the last that was read or passed over.
    segments: int = 0
    number: int = 0
    removed: int = 0
    lines_too_long: int = 0
    #: At the end of the trail: closed segments that have no digest, and the records of those and of an open one.
    without_digest: list[str] = field(default_factory=list)
    records_without_digest: int = 0
    #: Segments that are there in two forms with the same bytes.
    doubled: list[str] = field(default_factory=list)
    #: Digests whose segments have not come yet, by segment number.
    _due: dict[int, Digest] = field(default_factory=dict)
    #: Number of each digest whose segment did not come, by segment name.
    _absent: dict[str, int] = field(default_factory=dict)
    #: File of the segment that was read last, and its digest.
    _last_name: str = ""
    _last_digest: Digest | None = None

    def expect(self, digest: Digest) -> None:
        """A digest: its segment comes next, if it is there."""
        if digest.kind != DigestKind.SEGMENT:
            return
        for name in self.without_digest:
            self.findings.add(Finding.SEGMENT_WITHOUT_DIGEST, name, "it has no digest, though later segments have")
        self.without_digest = []
        self.records_without_digest = 0
        if segment_number(digest) > self.number:
            self._due[segment_number(digest)] = digest

    def give_up_before(self, number: int = sys.maxsize) -> None:
        """The segments before a number will not come any more."""
        for absent in [due for due in self._due if due < number]:
            digest = self._due.pop(absent)
            self._absent[digest.segment] = digest.number
            self.number = max(self.number, absent)
            self.lines.pass_over(digest)

    def read(self, segment: SegmentFile) -> None:
        """Reads a segment, and holds it against its digest. Raises OSError."""
        self.give_up_before(segment.number)
        if self.segments and segment.number == self.number:
            self._read_again(segment)
            return
        self._check_place(segment)
        self.segments += 1
        self.number = segment.number
        self._last_name, self._last_digest = segment.name, self._due.pop(segment.number, None)
        before = self.lines.records
        self.lines.begin_segment()
        measure = self._walk(segment)
        if self._last_digest is not None:
            self._compare(segment, self._last_digest, measure)
            return
        self.records_without_digest += self.lines.records - before
        if segment.ending != OPEN:
            self.without_digest.append(segment.name)

    def finish(self, removed_up_to: int) -> None:
        """The trail has ended; retention says that it removed the segments up to a number."""
        self.give_up_before()
        for stem, digest_number in self._absent.items():
            if int(stem[:12]) <= removed_up_to:
                self.removed += 1
            else:
                what = f"it is missing; digest {digest_number} is of it, and no digest announced its removal"
                self.findings.add(Finding.MISSING_SEGMENT, stem, what)

    def _check_place(self, segment: SegmentFile) -> None:
        """Segments are numbered from 1 without gaps, and only the last may be open."""
        due = self.number + 1
        if segment.number > due:
            what = f"segment {due} was expected here: a segment is missing or was added"
            self.findings.add(Finding.MISSING_SEGMENT, segment.name, what)
        elif segment.number < due:
            self.findings.add(Finding.MISPLACED_SEGMENT, segment.name, f"segment {due} was expected here")
        if self._last_name.endswith(OPEN):
            what = "an open segment stands before later ones"
            self.findings.add(Finding.MISPLACED_SEGMENT, self._last_name, what)

    def _walk(self, segment: SegmentFile) -> SegmentMeasure | None:
        """The measure of all lines, each of which is checked; None where they could not be read to the end."""
        measure = SegmentMeasure()
        try:
            for block in segment.blocks():
                self._check_block(segment, block, measure)
                if self.lines.foreign_lines >= MOST_FOREIGN_LINES:
                    what = f"{MOST_FOREIGN_LINES} lines are no records: the rest of the file was not read"
                    self.findings.add(Finding.DAMAGED_FILE, segment.name, what)
                    return None
        except DamagedSegment as error:
            what = f"it cannot be decompressed beyond line {measure.records}: {error}"
            self.findings.add(Finding.DAMAGED_FILE, segment.name, what)
            return None
        except LineTooLong:
            self.lines_too_long += 1
            return None
        return measure

    def _check_block(self, segment: SegmentFile, block: bytes, measure: SegmentMeasure) -> None:
        whole = block if block.endswith(b"\n") else block[: block.rfind(b"\n") + 1]
        if whole:
            number, offset = measure.records, measure.size_bytes
            for line in whole[:-1].split(b"\n"):
                number += 1
                self.lines.check(segment.name, number, offset, line)
                if self.lines.foreign_lines >= MOST_FOREIGN_LINES:
                    return
                offset += len(line) + 1
            measure.add(whole)
        if len(whole) < len(block) and (segment.ending != OPEN or self._last_digest is not None):
            self.findings.add(
                Finding.CUT_LINE,
                segment.name,
                "the line has no end: the segment was cut",
                line=measure.records + 1,
                offset=measure.size_bytes,
            )

    def _compare(self, segment: SegmentFile, digest: Digest, measure: SegmentMeasure | None) -> None:
        """Reports what differs; then the next segment is held against the digest's head, not against a wrong one."""
        if measure is None:
            self.lines.pass_over(digest)
            return
        first, last = self.lines.ranges.get(digest.gateway, (0, 0))
        theirs_and_ours = (
            ("name", digest.segment, segment.stem),
            ("first_sequence", digest.first_sequence, first),
            ("last_sequence", digest.last_sequence, last),
            ("head", digest.head, self.lines.head),
            *_content(digest, measure),
        )
        wrong = [f"{name} is {ours}, not {theirs}" for name, theirs, ours in theirs_and_ours if theirs != ours]
        if wrong:
            what = f"it is not as digest {digest.number} says: {'; '.join(wrong)}"
            self.findings.add(Finding.SEGMENT_UNLIKE_DIGEST, segment.name, what)
            self.lines.pass_over(digest)

    def _read_again(self, segment: SegmentFile) -> None:
        """A segment that is there twice: a crash leaves the compressed one beside the other, with the same lines."""
        measure, digest = SegmentMeasure(), self._last_digest
        try:
            for block in segment.blocks():
                measure.add(block)
        except (DamagedSegment, LineTooLong) as error:
            self.findings.add(Finding.DAMAGED_FILE, segment.name, f"it cannot be read to its end: {error}")
            return
        if digest is None or segment.stem != digest.segment or any(a != b for _name, a, b in _content(digest, measure)):
            what = f"it has the number of {self._last_name} and is not the same segment"
            self.findings.add(Finding.DOUBLED_SEGMENT, segment.name, what)
        else:
            self.doubled.append(segment.name)


def _content(digest: Digest, measure: SegmentMeasure) -> tuple[tuple[str, int | str, int | str], ...]:
    """What a digest says of a segment's bytes, and what they are."""
    return (
        ("records", digest.records, measure.records),
        ("size_bytes", digest.size_bytes, measure.size_bytes),
        ("sha256", digest.sha256, measure.sha256()),
        ("merkle_root", digest.merkle_root, measure.merkle_root()),
    )

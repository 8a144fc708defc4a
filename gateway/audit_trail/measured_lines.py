"""The lines of the segment that is being written, measured: what its digest will say without reading it again."""

from typing import Any, Final

from spark_audit.record.batch_line import span_of
from spark_audit.trail.digest import SegmentMeasure

#: A segment of which no line can be read has no gateway.
_NO_GATEWAY: Final = "0" * 24


class MeasuredLines:
    """Length, hashes, gateway and sequences of a segment, as its lines go by."""

    __slots__ = ("_first", "_last", "_measure")

    def __init__(self) -> None:
        self._measure = SegmentMeasure()
        self._first = self._last = b""

    @classmethod
    def of(cls, data: bytes) -> "MeasuredLines":
        """Measures a segment that is there already, all its lines with their line feeds, damaged ones or not."""
        measured = cls()
        if not data:
            return measured
        measured.add(data)
        lines = data.splitlines()
        measured._last = next((line for line in reversed(lines) if span_of(line)), b"")
        gateway = f'"gateway":"{measured.gateway}"'.encode()
        measured._first = next((line for line in lines if gateway in line), lines[0])
        return measured

    def add(self, lines: bytes) -> None:
        """Adds whole lines of one gateway."""
        self._measure.add(lines)
        if not self._first:
            self._first = lines[: lines.index(b"\n")]
        self._last = lines[lines.rfind(b"\n", 0, -1) + 1 : -1]

    @property
    def size_bytes(self) -> int:
        return self._measure.size_bytes

    @property
    def records(self) -> int:
        """The number of lines."""
        return self._measure.records

    @property
    def gateway(self) -> str:
        """The store whose records these are: the last one's."""
        span = span_of(self._last)
        return _NO_GATEWAY if span is None else span.gateway

    @property
    def began_us(self) -> int:
        """Time of the first record, microseconds since 1970."""
        span = span_of(self._first)
        return 0 if span is None else max(span.at_us, 0)

    @property
    def ended_us(self) -> int:
        """Time of the last record, microseconds since 1970."""
        span = span_of(self._last)
        return max(self.began_us, 0 if span is None else span.until_us)

    def facts(self, *, segment: str, head: str, until_us: int) -> dict[str, Any]:
        """The fields of the segment's digest; `head` is the hash of its last record."""
        first, last = span_of(self._first), span_of(self._last)
        return {
            "gateway": self.gateway,
            "segment": segment,
            "first_sequence": 0 if first is None else max(first.first_sequence, 0),
            "last_sequence": 0 if last is None else max(last.last_sequence, 0),
            "records": self._measure.records,
            "size_bytes": self._measure.size_bytes,
            "sha256": self._measure.sha256(),
            "merkle_root": self._measure.merkle_root(),
            "head": head,
            "from_us": self.began_us,
            "until_us": max(until_us, self.began_us),
        }

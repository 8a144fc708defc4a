"""A trail of four closed segments, an hour apart, and what tends it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway.audit_trail.compression import Compression
from gateway.audit_trail.retention import Retention
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.segment_digests import SegmentDigests
from spark_audit.trail.digest import parse_digest

HOUR = timedelta(hours=1)


class Keeper:
    """A trail of four closed segments, an hour apart, and what tends it."""

    def __init__(self, folder: Path, clock, batches) -> None:
        self.folder = folder
        self.safe = {1, 2, 3, 4}
        self._clock = clock
        self.trail = Trail.open(folder, now=clock)
        for _ in range(4):
            self.trail.append(*batches())
            self.trail.close_segment()
            clock.now += HOUR

    def compress(self, after_hours: float, **options: Any) -> None:
        while self.compression(after_hours, **options).step():
            continue

    def compression(self, after_hours: float, **options: Any) -> Compression:
        options = {"now_us": self._now_us} | options
        return Compression(self.folder, SegmentDigests(self.trail.digests), after_hours=after_hours, **options)

    def remove(self, keep_days: float) -> None:
        retention = self.retention(keep_days)
        while retention.step():
            continue

    def retention(self, keep_days: float) -> Retention:
        safe = self.safe.__contains__
        return Retention(
            self.folder,
            self.trail.digests,
            SegmentDigests(self.trail.digests),
            keep_days=keep_days,
            may_remove=safe,
            now_us=self._now_us,
        )

    def _now_us(self) -> int:
        return int(self._clock.now.timestamp() * 1_000_000)

    def endings(self) -> list[str]:
        """What each segment's file ends with, by number."""
        return [
            f"{int(path.name[:12])}{''.join(path.suffixes)}" for path in sorted(self.folder.iterdir()) if path.is_file()
        ]

    def kinds(self) -> list[str]:
        return [parse_digest(path.read_bytes()).kind for path in sorted((self.folder / "digests").iterdir())]

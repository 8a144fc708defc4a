"""Closed segments are compressed as soon as they have their digest, or some hours later.

`NAME.jsonl.zst.part` is written, synced and read back, renamed to `NAME.jsonl.zst`, and only then is `NAME.jsonl`
removed. The same lines give the same bytes. If a crash left both files, the compressed one is checked again. Files that
an earlier version compressed with gzip stay as they are.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.audit_trail.durable_file import PART_SUFFIX, part_of
from gateway.audit_trail.segment_digests import SegmentDigests
from gateway.audit_trail.segment_files import SegmentFile, segment_files
from mq_adapters.embedded.store.files import sync_folder
from mq_adapters.plausible_clock import wall_us
from mq_adapters.reasons import StoreError
from spark_audit.trail.digest import Digest
from spark_audit.trail.segment_forms import CLOSED, COMPRESSED, ZSTANDARD

_HOUR_US: Final = 3_600_000_000
#: Measured on lines of one record: 0.96 us and 71 bytes a record. Level 3, the default, took 1.8 us and 83 bytes.
_LEVEL: Final = 1


class Compression:
    """Compresses closed segments of a trail. Raises OSError, and StoreError for lines that were changed.

    `after_hours` 0 compresses each segment that has its digest, a number below 0 none. `is_time_sure` says whether the
    clock is right: until then no segment is compressed because of its age.
    """

    def __init__(
        self,
        trail: Path,
        segments: SegmentDigests,
        *,
        after_hours: float,
        now_us: Callable[[], int] = wall_us,
        is_time_sure: Callable[[], bool] = lambda: True,
    ) -> None:
        self._trail = trail
        self._segments = segments
        self._after_us = int(after_hours * _HOUR_US)
        self._now_us = now_us
        self._is_time_sure = is_time_sure
        for left in (left for suffix in COMPRESSED for left in trail.glob(f"*{suffix}{PART_SUFFIX}")):
            left.unlink()

    def step(self) -> bool:
        """Compresses one segment; False if none is due."""
        self._segments.read()
        age_us = self._after_us
        if age_us < 0 or (age_us and not self._is_time_sure()):
            return False
        for file in segment_files(self._trail):
            digest = self._segments.of(file) if file.suffix == CLOSED else None
            if digest is not None and (not age_us or self._now_us() - digest.until_us >= age_us):
                self._compress(file, digest)
                return True
        return False

    def _compress(self, file: SegmentFile, digest: Digest) -> None:
        place = self._trail / (file.stem + ZSTANDARD)
        if not (place.exists() and self._is_as_sworn(place, file, digest)):
            part = part_of(place)
            _write_compressed(part, file)
            if not self._is_as_sworn(part, file, digest):
                part.unlink()
                hint = "run rfhbridge audit verify: the segment was changed, or a disk is failing"
                raise StoreError(f"compress {file.path.name}", "its bytes are not those of its digest", hint)
            part.rename(place)
            sync_folder(self._trail)
        file.path.unlink()
        sync_folder(self._trail)

    @staticmethod
    def _is_as_sworn(path: Path, file: SegmentFile, digest: Digest) -> bool:
        compressed = SegmentFile(path=path, stem=file.stem, number=file.number, suffix=ZSTANDARD)
        try:
            return compressed.holds(digest.size_bytes, digest.sha256)
        except OSError:
            return False


def _write_compressed(part: Path, file: SegmentFile) -> None:
    """One frame, which tells its size uncompressed and ends with a checksum. Raises OSError, StoreError."""
    from zstandard import ZstdCompressor, ZstdError  # here, because not every gateway compresses

    compressor = ZstdCompressor(level=_LEVEL, write_checksum=True)
    with part.open("wb") as raw:
        try:
            with compressor.stream_writer(raw, size=file.path.stat().st_size, closefd=False) as compressed:
                for chunk in file.chunks():
                    compressed.write(chunk)
        except ZstdError as error:
            hint = "run rfhbridge audit verify: the segment was changed while it was read"
            raise StoreError(f"compress {file.path.name}", str(error), hint) from error
        raw.flush()
        os.fsync(raw.fileno())

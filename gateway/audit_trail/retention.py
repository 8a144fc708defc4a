"""Closed segments are compressed, and removed when their time is over and every digest and copy is safe.

Compressing: of a segment that has its digest, `NAME.jsonl.zst.part` is written, synced and read back, renamed to
`NAME.jsonl.zst`, and only then is `NAME.jsonl` removed. The same lines give the same bytes. Where a crash left both
files, the compressed one is checked again. What an earlier version compressed with gzip stays as it is.

Removing: a segment goes with all older ones, once each has its digest and, where there is a second place, is there.
A record of the trail, and then a signed digest of kind retention, say so before the first of them goes; a crash behind
them only delays the rest. The newest segment always stays: it says where the trail goes on.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from gateway.audit_trail.digests import Digests, read_digest, segment_number
from gateway.audit_trail.durable_file import PART_SUFFIX, part_of
from gateway.audit_trail.segment_files import (
    SegmentFile,
    segment_files,
)
from mq_adapters.embedded.store.files import sync_folder
from mq_adapters.plausible_clock import wall_us
from mq_adapters.reasons import StoreError
from spark_audit.digest import Digest, DigestKind
from spark_audit.verify.segment_forms import CLOSED, COMPRESSED, ZSTANDARD

#: What the record says that the keeper of the trail does.
ORDER: Final = "trail retention"
_HOUR_US: Final = 3_600_000_000
_DAY_US: Final = 24 * _HOUR_US
#: Segments are removed together, so that not each of them costs a digest: how often, microseconds.
REMOVAL_INTERVAL_US: Final = _HOUR_US
#: Measured on trail lines: 0.96 us and 71 bytes a record. Level 3, the default, took 1.8 us and 83 bytes.
_LEVEL: Final = 1


class Retention:
    """Compresses and removes closed segments of a trail. Raises OSError, and StoreError for lines that were changed.

    `compress_after_hours` 0 compresses what has its digest, a number below 0 nothing. `may_remove` says of a digest's
    number whether it, and its segment, is safe elsewhere; `is_time_sure` whether the clock is in no doubt: until then
    nothing is compressed or removed because of its age. `tell` adds the record: it is given the newest segment that
    goes, and why.
    """

    def __init__(
        self,
        trail: Path,
        digests: Digests,
        *,
        compress_after_hours: float,
        keep_days: float,
        may_remove: Callable[[int], bool],
        now_us: Callable[[], int] = wall_us,
        is_time_sure: Callable[[], bool] = lambda: True,
        tell: Callable[[str, str], None] = lambda _segment, _reason: None,
    ) -> None:
        self._trail = trail
        self._digests = digests
        self._compress_after_us = int(compress_after_hours * _HOUR_US)
        self._keep_us = int(keep_days * _DAY_US)
        self._allowed_by = f"audit.keep_days = {keep_days:g}"
        self._may_remove = may_remove
        self._now_us = now_us
        self._is_time_sure = is_time_sure
        self._tell = tell
        self._removal_due_us = 0
        #: Numbers of segments and of their digests, as far as the digests were read.
        self._digest_numbers: dict[int, int] = {}
        self._read_through = 0
        self._removed_through = 0
        #: A retention digest may be there whose segments are not all gone: at the start, and when it was just written.
        self._is_removing = True
        for left in (left for suffix in COMPRESSED for left in trail.glob(f"*{suffix}{PART_SUFFIX}")):
            left.unlink()

    def step(self) -> bool:
        """Compresses one segment, or removes what is due; False where nothing is due."""
        self._read_digests()
        return self._remove() or self._compress()

    # -- compressing ---------------------------------------------------------------------------------------------------

    def _compress(self) -> bool:
        age_us = self._compress_after_us
        if age_us < 0 or (age_us and not self._is_time_sure()):
            return False
        for file in segment_files(self._trail):
            digest = self._digest_of(file) if file.suffix == CLOSED else None
            if digest is not None and (not age_us or self._now_us() - digest.until_us >= age_us):
                self._compress_one(file, digest)
                return True
        return False

    def _compress_one(self, file: SegmentFile, digest: Digest) -> None:
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

    # -- removing ------------------------------------------------------------------------------------------------------

    def _remove(self) -> bool:
        """Removes what is to go, oldest first; first of all what a crash left of the last time."""
        now_us = self._now_us()
        if self._keep_us and now_us >= self._removal_due_us and self._is_time_sure():
            self._removal_due_us = now_us + REMOVAL_INTERVAL_US
            last = self._last_to_remove(now_us)
            if last is not None:
                self._tell(last.stem, f"keep_days is {self._keep_us / _DAY_US:g}")
                self._digests.add_retention(
                    last.stem, now_us=now_us, keep_us=self._keep_us, allowed_by=self._allowed_by
                )
                self._removed_through, self._is_removing = last.number, True
        if not self._is_removing:
            return False
        gone = [file for file in segment_files(self._trail) if file.number <= self._removed_through]
        for file in gone:
            for suffix in (*COMPRESSED, CLOSED):
                (self._trail / (file.stem + suffix)).unlink(missing_ok=True)
        if gone:
            sync_folder(self._trail)
        self._is_removing = False
        return bool(gone)

    def _last_to_remove(self, now_us: int) -> SegmentFile | None:
        """The newest segment of those that are old enough and safe, from the oldest on without a gap."""
        last = None
        for file in segment_files(self._trail)[:-1]:
            digest = self._digest_of(file)
            if digest is None or now_us - digest.until_us < self._keep_us or not self._may_remove(digest.number):
                break
            last = file
        return last

    # -- digests -------------------------------------------------------------------------------------------------------

    def _digest_of(self, file: SegmentFile) -> Digest | None:
        number = self._digest_numbers.get(file.number)
        return None if number is None else read_digest(self._digests.folder, number)[0]

    def _read_digests(self) -> None:
        for digest in self._unread():
            if digest.kind == DigestKind.SEGMENT:
                self._digest_numbers[segment_number(digest.segment)] = digest.number
            elif digest.kind == DigestKind.RETENTION:
                self._removed_through = segment_number(digest.segment)

    def _unread(self) -> Iterator[Digest]:
        for number in range(self._read_through + 1, self._digests.last_number + 1):
            self._read_through = number
            try:
                yield read_digest(self._digests.folder, number)[0]
            except StoreError:
                continue  # a digest that somebody damaged: its segment stays as it is, for `verify`


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

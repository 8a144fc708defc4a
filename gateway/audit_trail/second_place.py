"""Copies of segments, digests, time-stamps and receipts where the writer's fault cannot reach: another disk or machine.

The second place itself shows what was copied, so nothing about it is kept here. A segment is copied before its digest,
in the order of the digests; each is written beside its place, read back, synced and renamed.
"""

import logging
from pathlib import Path
from typing import Final

from gateway.audit_trail.digests import Digests, read_digest, segment_number
from gateway.audit_trail.durable_file import PART_SUFFIX, part_of, put_in_place, write_synced
from gateway.audit_trail.segment_files import SegmentFile, segment_file
from mq_adapters.embedded.store.files import sync_folder
from mq_adapters.reasons import StoreError
from spark_audit.trail.digest import (
    DIGEST_FOLDER,
    STAMPS_FOLDER,
    Digest,
    DigestKind,
    digest_name,
    digest_numbers,
    stamp_name,
    stamp_numbers,
)
from spark_audit.trail.receipt import RECEIPTS, RECEIPTS_FOLDER, MalformedReceipt, parse_receipt

_CHUNK_BYTES: Final = 1024 * 1024
_log = logging.getLogger(__name__)


class SecondPlace:
    """A folder that holds a copy of a trail. Raises OSError, and StoreError for a folder that is not its."""

    def __init__(self, trail: Path, folder: Path, digests: Digests) -> None:
        self._trail = trail
        self._folder = folder
        self._digests = digests
        #: Numbers of the digests that stand there; None before it was looked at.
        self._copied: set[int] | None = None
        #: Every digest up to this number stands there.
        self._through = 0
        #: When time-stamps were added last, by the folder of their witness, and when receipts were written.
        self._stamped_ns: dict[Path, int] = {}

    def has(self, digest_number: int) -> bool:
        """Whether a digest, and the segment that it speaks of, is there."""
        return self._copied is not None and digest_number in self._copied

    def step(self) -> bool:
        """Copies the oldest digest that is missing there, with its segment; False if none is missing."""
        copied = self._copied if self._copied is not None else self._look()
        while self._through + 1 in copied:
            self._through += 1
        missing = self._through + 1
        if missing > self._digests.last_number:
            return self._copy_time_stamps()
        digest, data = read_digest(self._digests.folder, missing)
        if digest.kind == DigestKind.SEGMENT and not self._copy_segment(digest):
            return False
        put_in_place(self._folder / DIGEST_FOLDER / digest_name(missing), (data,))
        copied.add(missing)
        return True

    def _look(self) -> set[int]:
        """The files in the second place. A missing folder is not made: its disk is probably not mounted."""
        there = self._folder / DIGEST_FOLDER
        if not self._folder.is_dir():
            hint = "mount or make it; then the missing files are copied"
            raise StoreError(f"copy the trail to {self._folder}", "there is no such folder", hint)
        there.mkdir(exist_ok=True, mode=0o700)
        copied = set(digest_numbers(there))
        self._check_same_trail(there, copied)
        for left in (*self._folder.glob(f"*{PART_SUFFIX}"), *there.glob(f"*{PART_SUFFIX}")):
            left.unlink()
        self._copied = copied
        return copied

    def _check_same_trail(self, there: Path, copied: set[int]) -> None:
        """Compares the last digest that both have: digests are a chain, so if it is the same, all before it are."""
        last = max(copied, default=0)
        common = min(last, self._digests.last_number)
        if not common:
            return
        _, ours = read_digest(self._digests.folder, common)
        if last > self._digests.last_number or (there / digest_name(common)).read_bytes() != ours:
            hint = "name an empty folder with audit.copy_folder; if it was a copy of this trail, keep both as evidence"
            raise StoreError(
                f"copy the trail to {self._folder}", f"the folder holds another trail (digest {last})", hint
            )

    def _copy_time_stamps(self) -> bool:
        """Copies the new time-stamps of witnesses. Returns False, because nothing is left then."""
        for folder in (self._trail / STAMPS_FOLDER).glob("*"):
            changed_ns = folder.stat().st_mtime_ns
            if self._stamped_ns.get(folder) == changed_ns:
                continue
            there = self._folder / STAMPS_FOLDER / folder.name
            there.mkdir(exist_ok=True, parents=True, mode=0o700)
            last = max(stamp_numbers(there), default=0)
            for number in stamp_numbers(folder):
                if number > last:
                    put_in_place(there / stamp_name(number), ((folder / stamp_name(number)).read_bytes(),))
            self._stamped_ns[folder] = changed_ns
        self._copy_receipts()
        return False

    def _copy_receipts(self) -> None:
        """Copies the receipts of witnesses that have changed. They speak of digests that were copied before."""
        for path in (self._trail / RECEIPTS_FOLDER).glob(RECEIPTS):
            changed_ns = path.stat().st_mtime_ns
            if self._stamped_ns.get(path) != changed_ns and self._has_digest_of(path):
                there = self._folder / RECEIPTS_FOLDER
                there.mkdir(exist_ok=True, mode=0o700)
                put_in_place(there / path.name, (path.read_bytes(),))
                self._stamped_ns[path] = changed_ns

    def _has_digest_of(self, receipt: Path) -> bool:
        """Whether the digest of a receipt is there: it may have come a moment ago."""
        try:
            return self.has(parse_receipt(receipt.read_bytes()).number)
        except MalformedReceipt:
            return False

    def _has_segment(self, digest: Digest) -> bool:
        """Whether a crash came between the copies of a segment and of its digest. Its form may have changed since."""
        there = segment_file(self._folder, digest.segment)
        try:
            return there is not None and there.holds(digest.size_bytes, digest.sha256)
        except OSError:
            return False  # it is damaged there, and copied again

    def _copy_segment(self, digest: Digest) -> bool:
        """Copies a segment; False if it has its digest but not yet its closed name."""
        file = segment_file(self._trail, digest.segment)
        if file is None:
            _log.error("segment not copied segment=%s reason=it is not in the trail", digest.segment)
            return True
        if file.is_open:
            return False
        if self._has_segment(digest):
            return True
        place = self._folder / file.path.name
        part = part_of(place)
        with file.path.open("rb") as source:
            write_synced(part, iter(lambda: source.read(_CHUNK_BYTES), b""))
        copy = SegmentFile(path=part, stem=file.stem, number=segment_number(file.stem), suffix=file.suffix)
        if not copy.holds(digest.size_bytes, digest.sha256):
            part.unlink()
            hint = "run rfhbridge audit verify: the segment was changed, or a disk is failing"
            raise StoreError(f"copy segment {file.path.name}", "its bytes are not those of its digest", hint)
        part.rename(place)
        sync_folder(self._folder)
        return True

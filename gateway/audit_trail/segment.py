"""The trail's files: segments that only grow, are closed by a rename, and are continued after a crash.

    NNNNNNNNNNNN-YYYYMMDDTHH.open      being written: number of the segment, UTC hour of its first record
    NNNNNNNNNNNN-YYYYMMDDTHH.jsonl     closed: synced, its digest written, renamed, the folder synced; final
    NNNNNNNNNNNN-YYYYMMDDTHH.jsonl.zst the same, compressed (compression.py); `.jsonl.gz` in earlier versions
    NNNNNNNNNNNN-YYYYMMDDTHH-N.torn    bytes from offset N that a crash left, without a whole, valid line
    digests/NNNNNNNNNNNN.digest        signed digests (digests.py)

A segment is closed at 64 MiB, after 15 minutes (SegmentLimits), when the UTC hour ends, or before records of another
store, always between two batches. Torn bytes had not been committed, so their batch is still on the audit queue and is
written again. If a crash left a segment with its digest but without its closed name, the next start renames it.
"""

import fcntl
import heapq
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

import orjson

from gateway.audit_trail.digests import NO_PROVENANCE, Digests, Provenance
from gateway.audit_trail.durable_file import write_synced
from gateway.audit_trail.keys.remote_key import KeyPlace
from gateway.audit_trail.measured_lines import MeasuredLines
from gateway.audit_trail.segment_files import (
    TORN_SUFFIX,
    SegmentFile,
    linked_lines,
    read_segment,
    segment_files,
)
from gateway.audit_trail.trail_end import TrailEnd, end_of_lines, heads_since, is_of_one_batch
from gateway.audit_trail.trail_head import AnotherBatch, TrailChanged, TrailHead, difference, head_by_digest
from mq_adapters.embedded.store.files import make_folder
from mq_adapters.reasons import StoreError
from spark_audit.record import line_hashes
from spark_audit.trail.digest import Digest, DigestKind
from spark_audit.trail.segment_forms import CLOSED, OPEN

_HOUR: Final = "%Y%m%dT%H"
_US: Final = 1_000_000
_log = logging.getLogger(__name__)

#: In the data folder, beside the folder of the trail, unless the configuration names another place.
SIGNING_KEY_NAME: Final = "trail-key.pem"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLimits:
    """When a segment is closed, beside the end of the UTC hour. Spark reads files of this size at once."""

    size_bytes: int = 64 * 1024 * 1024
    age: timedelta = timedelta(minutes=15)


STANDARD_LIMITS: Final = SegmentLimits()


class TrailInUse(StoreError):
    """Another process writes the trail."""


class TrailGone(StoreError):
    """The folder of the trail or its open segment was removed, moved or replaced by another one."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Trail:
    """The trail of one data folder, open for appending by this process alone. Raises StoreError when the disk fails."""

    def __init__(
        self,
        folder: Path,
        lock: int,
        limits: SegmentLimits,
        now: Callable[[], datetime],
        digests: Digests,
        known: TrailHead | None,
    ) -> None:
        self.folder = folder
        self.limits = limits
        self.digests = digests
        #: Hash of the last record, of whichever gateway.
        self.head = digests.head
        self._lock = lock
        self._now = now
        self._number = 0
        self._path: Path | None = None
        self._file = -1
        self._measured = MeasuredLines()
        #: Names of closed segments that were changed before they had a digest, the oldest first.
        self._unsigned: list[str] = []
        #: The head of the trail that the store knows; None if it knows none.
        self._known = known
        #: Where the last closed segment ended; None before there is one.
        self._closed: TrailHead | None = None
        #: Lines at the end of the open segment that the store does not know. Nobody relies on them until their batches
        #: come again.
        self._ahead = b""
        self._began = self._opened = now()
        self._recover()

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        limits: SegmentLimits = STANDARD_LIMITS,
        signing_key: Path | None = None,
        signing_token: KeyPlace | None = None,
        former_token: KeyPlace | None = None,
        provenance: Provenance = NO_PROVENANCE,
        now: Callable[[], datetime] = _utc_now,
        known: TrailHead | None = None,
    ) -> Self:
        """Opens or makes the folder, continues an open segment, sets torn bytes aside.

        `known` is the head that the store knows. Raises TrailChanged if the trail does not agree with it, TrailInUse,
        and ConfigurationError for a key that cannot sign (None: trail-key.pem beside the folder).
        """
        try:
            make_folder(folder)
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if known is not None and (cause := difference(folder, known)):
                    raise TrailChanged(f"open the trail in {folder}", cause)
                key = signing_key or folder.parent / SIGNING_KEY_NAME
                now_us = int(now().timestamp() * _US)
                digests = Digests(folder, key, provenance, now_us=now_us, token=signing_token, former=former_token)
                return cls(folder, lock, limits, now, digests, known)
            except BaseException:
                os.close(lock)
                raise
        except BlockingIOError as error:
            raise TrailInUse(
                f"open the trail in {folder}", "another process writes it", "stop it, or let it finish"
            ) from error
        except OSError as error:
            raise _failure("open the trail", error) from error

    # -- reading back --------------------------------------------------------------------------------------------------

    def end_of(self, gateway: str) -> TrailEnd:
        """Where this gateway's records end; all zero if the trail has none of it.

        A damaged closed segment stays as it is, for `verify` to find: its damaged lines are passed over, and the trail
        goes on after the readable ones. For a removed segment its digest tells the end.
        """
        end = end_of_lines(self._lines_backwards(gateway), gateway)
        if end.batch:
            return end
        return TrailEnd(sequence=next((each.last_sequence for each in self._digests_of(gateway)), 0))

    def heads_since(self, gateway: str, batch: int) -> dict[int, list[bytes]]:
        """Batches of a gateway in the trail, from one number on: see trail_end.heads_since."""
        return heads_since(self._lines_backwards(gateway), gateway, batch)

    @property
    def reached(self) -> TrailHead | None:
        """How far the trail reaches; None if it has no line. Durable after `sync`."""
        measured = self._measured
        if self._path is None or not measured.records:
            return self._closed
        return TrailHead(
            segment=self._path.stem, lines=measured.records, size_bytes=measured.size_bytes, head=self.head
        )

    def _lines_backwards(self, gateway: str) -> Iterator[bytes]:
        """Every line of the open segment, and of those that may have some of the gateway's; the newest first."""
        if self._path is not None:
            yield from reversed(self._path.read_bytes()[: self._measured.size_bytes].splitlines())
        signed = (digest.segment for digest in self._digests_of(gateway))
        for stem in heapq.merge(reversed(self._unsigned), signed, reverse=True):
            yield from reversed(read_segment(self.folder, stem).splitlines())

    def _digests_of(self, gateway: str) -> Iterator[Digest]:
        """The digests of segments that end with records of the gateway, the newest first."""
        for digest in self.digests.backwards():
            if digest.kind == DigestKind.SEGMENT and digest.gateway == gateway:
                yield digest

    # -- writing -------------------------------------------------------------------------------------------------------

    def append(self, lines: bytes, head: str, gateway: str) -> None:
        """Adds the lines of one batch of a store; `head` is the hash of the last. Safe only after `sync`."""
        try:
            there = self._taken_up(lines) if self._ahead else 0
            if not there:
                self._roll_before(len(lines), gateway)
            if self._path is None:
                self._begin_segment()
            view = memoryview(lines)[there:]
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            raise _failure("write the trail", error) from error
        self._measured.add(lines)
        self.head = head

    def check_confirmed(self) -> None:
        """No batch waits any more. Raises TrailChanged for lines that neither the store knows nor a batch had."""
        if self._ahead and self._path is not None:
            known, count = self._measured.records, self._ahead.count(b"\n")
            lines = f"lines {known + 1} to {known + count} of segment {self._path.stem}"
            raise TrailChanged("go on with the trail", f"{lines} belong to no waiting batch: somebody added them")

    def sync(self) -> None:
        """Returns when all appended lines are on the disk, in a file that can be found; otherwise raises TrailGone."""
        if self._file >= 0:
            try:
                os.fdatasync(self._file)
            except OSError as error:
                raise _failure("sync the trail", error) from error
        if self._path is not None:
            _check_name(self._path, self._file)

    def tend(self) -> None:
        """Does work that is due between two batches: closes a segment after its time, takes a new key or a signature.

        Raises TrailGone where the folder was removed, moved or hidden.
        """
        _check_name(self.folder, self._lock)
        self.digests.rotate_if_asked(self._now_us())
        self.digests.countersign_late(self._now_us())
        if self._path is not None and self._is_over():
            self.close_segment()

    def note_quiet(self, gateway: str) -> None:
        """Nothing waits to be written: after as long a time as a segment may take, a digest says so.

        `gateway` is the store whose records are awaited.
        """
        quiet_us = self._now_us() - self._quiet_since_us()
        if self._path is None and quiet_us >= self.limits.age // timedelta(microseconds=1):
            self._add_interval(gateway)

    def finish(self, gateway: str) -> None:
        """An orderly end: a digest covers the last lines, or the time without any."""
        if self._path is not None:
            self.close_segment()
        elif self.digests.until_us < self._now_us():
            self._add_interval(gateway)
        self.digests.await_first_countersignature(self._now_us)

    def close_segment(self) -> None:
        """Syncs, writes the digest, renames to `.jsonl`, syncs the folder. Nothing to do where no segment is open.

        A segment whose last lines are still to be confirmed stays open. Raises TrailChanged if the file has other bytes
        than those that were written.
        """
        if self._path is None or self._ahead:
            return
        try:
            os.fsync(self._file)
            facts = self._measured.facts(segment=self._path.stem, head=self.head, until_us=self._now_us())
            self._check_bytes(self._path, facts)
            self.digests.add_segment(facts)
            self._name_closed(self._path)
            os.close(self._file)
        except OSError as error:
            raise _failure("close a segment of the trail", error) from error
        self._closed = self.reached
        self._path, self._file, self._measured = None, -1, MeasuredLines()

    def close(self) -> None:
        """Lets go of the files; an open segment stays open and is continued next time."""
        if self._file >= 0:
            os.close(self._file)
            self._path, self._file = None, -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _now_us(self) -> int:
        return int(self._now().timestamp() * _US)

    def _quiet_since_us(self) -> int:
        return max(self.digests.until_us, int(self._opened.timestamp() * _US))

    def _add_interval(self, gateway: str) -> None:
        self.digests.add_interval(gateway, from_us=self._quiet_since_us(), until_us=self._now_us())

    def _roll_before(self, length: int, gateway: str) -> None:
        size = self._measured.size_bytes
        if self._path is None or not size:
            return
        if size + length > self.limits.size_bytes or self._measured.gateway != gateway or self._is_over():
            self.close_segment()

    def _check_bytes(self, path: Path, facts: dict[str, Any]) -> None:
        """Compares the file with the lines that were written, which the digest covers. Raises TrailChanged."""
        file = SegmentFile.of(path)
        if file is None or file.holds(facts["size_bytes"], facts["sha256"]):
            return
        known = self.reached
        cause = "" if known is None else difference(self.folder, known)
        raise TrailChanged(f"sign segment {path.stem}", cause or "bytes behind its last line are not the gateway's")

    def _is_over(self) -> bool:
        now = self._now()
        return now - self._began >= self.limits.age or now.strftime(_HOUR) != self._began.strftime(_HOUR)

    def _begin_segment(self) -> None:
        self._number += 1
        self._began = self._now()
        self._path = self.folder / f"{self._number:012d}-{self._began.strftime(_HOUR)}{OPEN}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        os.fsync(self._lock)

    def _name_closed(self, path: Path) -> None:
        path.rename(path.with_suffix(CLOSED))
        os.fsync(self._lock)

    # -- what an earlier life left -------------------------------------------------------------------------------------

    def _recover(self) -> None:
        self._number = self.digests.last_segment_number
        last = next((each for each in self.digests.backwards() if each.kind == DigestKind.SEGMENT), None)
        self._closed = None if last is None else head_by_digest(last)
        for file in segment_files(self.folder):
            self._number = max(self._number, file.number)
            if file.number <= self.digests.last_segment_number:
                if file.is_open:
                    self._name_closed(file.path)  # the crash came between its digest and its name
            elif file.is_open:
                self.close_segment()
                self._continue(file.path)
            else:
                self._testify(file)

    def _testify(self, file: SegmentFile) -> None:
        """The digest of a closed segment that has none: a version before there were digests closed it.

        Anybody may have put it there. If a hash or a link in it does not hold, nothing is signed: `verify` names the
        line, and the segment without a digest.
        """
        data = file.read()
        data = data if data.endswith(b"\n") or not data else data + b"\n"
        kept, head = linked_lines(data, self.head)
        is_known = self._known is None or self._known.covers(file.stem, data.count(b"\n"))
        if kept < len(data) or not is_known:
            line = 1 + data.count(b"\n", 0, kept)
            why = "a hash or link is wrong" if kept < len(data) else "the store does not know its lines"
            _log.error("segment not signed file=%s line=%s reason=%s", file.path.name, line, why)
            hashes = line_hashes(data.splitlines()[-1])
            self.head = head if hashes is None else hashes[0]
            self._unsigned.append(file.stem)
            return
        measured, self.head = MeasuredLines.of(data), head
        self.digests.add_segment(measured.facts(segment=file.stem, head=self.head, until_us=measured.ended_us))
        self._closed = TrailHead(segment=file.stem, lines=measured.records, size_bytes=len(data), head=head)

    def _continue(self, path: Path) -> None:
        """Keeps the whole, linked lines of an open segment; what follows them goes to a `.torn` file.

        Lines behind those that the store knows are kept aside, until their batches come again.
        """
        data = path.read_bytes()
        kept, head = linked_lines(data, self.head)
        if kept < len(data):
            self._cut(path, data, kept)
        os.fsync(self._lock)
        if not kept:
            path.unlink()
            self._number -= 1  # the last segment there is: without a line it never was, and its number is free
            return
        known = kept if self._known is None else self._known.bytes_of(path.stem)
        self._path, self._measured, self._ahead = path, MeasuredLines.of(data[:known]), data[known:kept]
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.fsync(self._file)
        self._began = datetime.fromtimestamp(MeasuredLines.of(data[:kept]).began_us / _US, UTC)
        if not self._ahead:
            self.head = head
            if self._is_over():
                self.close_segment()
        elif known and self._known is not None:
            self.head = self._known.head

    def _taken_up(self, lines: bytes) -> int:
        """How many bytes of these lines the file has already, from a life that ended before their notes had left.

        Other lines of the same batch go to a `.torn` file: another version of the program wrote them, or somebody
        changed them. Raises AnotherBatch if the lines are of another batch.
        """
        ahead, path = self._ahead, self._path
        assert path is not None
        same = min(len(ahead), len(lines))
        if ahead[:same] == lines[:same]:
            self._ahead = ahead[same:]
            return same
        for there, line in zip(ahead.splitlines(), lines.splitlines(), strict=False):
            if not is_of_one_batch(there, line):
                record = orjson.loads(line)
                raise AnotherBatch(record["gateway"], record["batch"])
        first = self._measured.records + 1
        _log.warning("trail lines written anew segment=%s line=%s reason=%s", path.stem, first, "the batch has others")
        self._cut(path, path.read_bytes(), self._measured.size_bytes)
        self._ahead = b""
        return 0

    @staticmethod
    def _cut(path: Path, data: bytes, size_bytes: int) -> None:
        write_synced(path.with_name(f"{path.stem}-{size_bytes}{TORN_SUFFIX}"), (data[size_bytes:],))
        os.truncate(path, size_bytes)


def _check_name(path: Path, descriptor: int) -> None:
    try:
        if os.path.samestat(path.stat(), os.fstat(descriptor)):
            return
        cause = f"{path} is not the file that is open"
    except OSError as error:
        cause = f"{path}: {error.strerror}"
    raise TrailGone("keep the trail", cause, "find out who removed or moved it, or mount it again, and start again")


def _failure(operation: str, error: OSError) -> StoreError:
    return StoreError(
        operation,
        f"{error.strerror}: {error.filename or ''}",
        "make room or mend the disk; the trail goes on from there",
    )

"""Where a gateway's records end in a trail, read from its files without writing anything."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gateway.audit_trail.digests import read_digest
from gateway.audit_trail.segment_files import read_segment, segment_files
from mq_adapters.reasons import StoreError
from spark_audit.record.batch_line import is_of_batch, span_of
from spark_audit.trail.digest import DIGEST_FOLDER, DigestKind, digest_numbers

_HEAD: Final = re.compile(
    rb',"batch":(?P<batch>[0-9]{1,19}),"gateway":"(?P<gateway>[0-9a-f]{24})","kind":"[a-z_]+","at_us":(?P<at_us>[0-9]+)'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailEnd:
    """Where a gateway's records end: its last sequence, its last batch, and how many records that batch has there.

    `at_us` is the time of the last record, microseconds since 1970 UTC. All are 0 where there is no record.
    """

    sequence: int = 0
    batch: int = 0
    records_of_batch: int = 0
    at_us: int = 0


def end_of_lines(lines_backwards: Iterable[bytes], gateway: str) -> TrailEnd:
    """The end by the lines of a trail, the newest first; damaged ones and those of others are passed over."""
    wanted = f'"gateway":"{gateway}"'.encode()
    last = TrailEnd()
    for line in lines_backwards:
        span = span_of(line) if wanted in line else None
        if span is None or span.gateway != gateway:
            continue
        if not last.records_of_batch:
            last = TrailEnd(sequence=span.last_sequence, batch=span.batch, at_us=span.until_us)
        elif span.batch != last.batch:
            break
        last = replace(last, records_of_batch=last.records_of_batch + span.records)
    return last


def heads_since(lines_backwards: Iterable[bytes], gateway: str, batch: int) -> dict[int, list[bytes]]:
    """What `beginning_of` gives for each line from a batch on, in their order; by the number of the batch."""
    heads: dict[int, list[bytes]] = {}
    for line in lines_backwards:
        head = _HEAD.search(line)
        if head is None or head["gateway"] != gateway.encode():
            continue
        if int(head["batch"]) < batch:
            break
        heads.setdefault(int(head["batch"]), []).insert(0, beginning_of(line))
    return heads


def beginning_of(line: bytes) -> bytes:
    """Batch, gateway, kind and time: no version of the program writes them in another way. b"" for what is no line."""
    head = _HEAD.search(line)
    return b"" if head is None else head[0]


def is_of_one_batch(line: bytes, other: bytes) -> bool:
    """Whether two lines tell of one batch. One of them may be its first record, written by an earlier version."""
    if is_of_batch(line) == is_of_batch(other):
        return beginning_of(line) == beginning_of(other)
    heads = _HEAD.search(line), _HEAD.search(other)
    names = "batch", "gateway", "at_us"
    return heads[0] is not None and heads[1] is not None and heads[0].group(*names) == heads[1].group(*names)


def end_in(trail: Path, gateway: str) -> TrailEnd:
    """The end in the trail of a folder, which nobody may have made yet. Raises OSError."""
    return end_of_lines(_lines_backwards(trail, gateway), gateway) if trail.is_dir() else TrailEnd()


def _lines_backwards(trail: Path, gateway: str) -> Iterator[bytes]:
    """Every line of the segments without a digest, and of those whose digests name the gateway; the newest first."""
    digested = digest_numbers(trail / DIGEST_FOLDER)
    last = next((stem for stem, _ in _segments_backwards(trail, digested)), "")
    for file in reversed(segment_files(trail)):
        if file.stem <= last:
            break
        yield from reversed(read_segment(trail, file.stem).splitlines())
    for stem, of_gateway in _segments_backwards(trail, digested):
        if of_gateway == gateway:
            yield from reversed(read_segment(trail, stem).splitlines())


def _segments_backwards(trail: Path, numbers: list[int]) -> Iterator[tuple[str, str]]:
    """Name and gateway of each segment that has a digest, the newest first."""
    for number in reversed(numbers):
        try:
            digest, _ = read_digest(trail / DIGEST_FOLDER, number)
        except StoreError:
            continue
        if digest.kind == DigestKind.SEGMENT:
            yield digest.segment, digest.gateway

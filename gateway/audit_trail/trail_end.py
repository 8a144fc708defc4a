"""Where a gateway's records end in a trail, read from its files without writing anything."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from gateway.audit_trail.digests import read_digest
from gateway.audit_trail.segment_files import read_segment, segment_files
from mq_adapters.reasons import StoreError
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
    last: dict[str, int] = {}
    count = 0
    for line in lines_backwards:
        if wanted not in line:
            continue
        try:
            record = orjson.loads(line)
            numbers = {"batch": int(record["batch"]), "sequence": int(record["sequence"])}
            numbers["at_us"], of_gateway = int(record.get("at_us", 0)), record["gateway"]
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if of_gateway != gateway:
            continue
        if last and numbers["batch"] != last["batch"]:
            break
        last = last or numbers
        count += 1
    if not last:
        return TrailEnd()
    return TrailEnd(**last, records_of_batch=count)


def heads_since(lines_backwards: Iterable[bytes], gateway: str, batch: int) -> dict[int, list[bytes]]:
    """Of each record from a batch on its beginning, batch to time, in their order; by the number of the batch."""
    heads: dict[int, list[bytes]] = {}
    for line in lines_backwards:
        head = head_of(line)
        if head is None or head["gateway"] != gateway.encode():
            continue
        if int(head["batch"]) < batch:
            break
        heads.setdefault(int(head["batch"]), []).insert(0, head[0])
    return heads


def head_of(record: bytes) -> "re.Match[bytes] | None":
    """The beginning of a record that no version of the program writes in another way; None for what is none."""
    return _HEAD.search(record)


def beginning_of(record: bytes) -> bytes:
    """The same as bytes; none for what is none."""
    head = head_of(record)
    return b"" if head is None else head[0]


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

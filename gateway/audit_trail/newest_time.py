"""The newest time in a trail. A start compares the wall clock with it, and with the time that the store has kept."""

import os
from pathlib import Path
from typing import Final

from gateway.audit_trail.digests import read_digest
from gateway.audit_trail.segment_files import segment_files
from mq_adapters.reasons import StoreError
from spark_audit.record.batch_line import span_of
from spark_audit.trail.digest import DIGEST_FOLDER, digest_numbers

#: Bytes read at the end of the open segment: the line of a batch is shorter (batch_line.py).
_END_BYTES: Final = 12 * 1024 * 1024


def newest_us(trail: Path) -> int:
    """Microseconds since 1970 UTC, of the last digest or record; 0 where neither can be read."""
    try:
        numbers = digest_numbers(trail / DIGEST_FOLDER)
        digested = read_digest(trail / DIGEST_FOLDER, numbers[-1])[0].until_us if numbers else 0
    except (OSError, StoreError):
        digested = 0
    try:
        opened = [file.path for file in segment_files(trail) if file.is_open]
        return max(digested, *(_last_record_us(path) for path in opened[-1:]), 0)
    except OSError:
        return digested


def _last_record_us(path: Path) -> int:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END_BYTES))
        lines = file.read().split(b"\n")
    for line in reversed(lines[:-1]):
        span = span_of(line)
        if span is not None:
            return span.until_us
    return 0

"""The lines of a trail for tests, whatever the form of its segments: open, closed or compressed."""

import base64
from pathlib import Path
from typing import Any

import pytest

from spark_audit.record.batch_line import packed_batch, records_of, text_of
from spark_audit.trail.segment_forms import SEGMENT_NAME
from spark_audit.verify.source import TrailFolder, each_segment


def trail_lines(trail: Path) -> list[bytes]:
    """Every line in its order, without its line feed. A line that is still being written ends what is given."""
    texts = (b"".join(segment.blocks()) for segment in each_segment(TrailFolder(trail)))
    return [line for text in texts for line in text.split(b"\n")[:-1]]


def trail_records(trail: Path) -> list[dict[str, Any]]:
    """Every record in its order."""
    return [record for line in trail_lines(trail) for record in records_of(line) or pytest.fail(f"no record: {line!r}")]


def trail_text(trail: Path) -> bytes:
    """All that stands in a trail: its lines, what is packed in them, and the records that readers make of them."""
    lines = trail_lines(trail)
    records = (text_of(record) for record in trail_records(trail))
    return b"\n".join((*lines, *map(packed_batch, lines), *records))


def in_batch(line: bytes, old: bytes, new: bytes) -> bytes:
    """The line of a batch with other bytes, as many, within its packed notes. Its hash is as before."""
    packed = packed_batch(line)
    assert old in packed
    assert len(new) == len(old)
    return line.replace(base64.b64encode(packed), base64.b64encode(packed.replace(old, new)))


def closed_segments(trail: Path) -> list[str]:
    """The names, without their endings, of the segments that are closed, in their order."""
    found = (SEGMENT_NAME.fullmatch(path.name) for path in trail.iterdir())
    return sorted({name[1] for name in found if name is not None and name[3] != ".open"})

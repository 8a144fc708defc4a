"""The lines of a trail for tests, whatever the form of its segments: open, closed or compressed."""

from pathlib import Path
from typing import Any

import orjson

from spark_audit.trail.segment_forms import SEGMENT_NAME
from spark_audit.verify.source import TrailFolder, each_segment


def trail_lines(trail: Path) -> list[bytes]:
    """Every line in its order, without its line feed. A line that is still being written ends what is given."""
    texts = (b"".join(segment.blocks()) for segment in each_segment(TrailFolder(trail)))
    return [line for text in texts for line in text.split(b"\n")[:-1]]


def trail_records(trail: Path) -> list[dict[str, Any]]:
    """Every record in its order."""
    return [orjson.loads(line) for line in trail_lines(trail)]


def closed_segments(trail: Path) -> list[str]:
    """The names, without their endings, of the segments that are closed, in their order."""
    found = (SEGMENT_NAME.fullmatch(path.name) for path in trail.iterdir())
    return sorted({name[1] for name in found if name is not None and name[3] != ".open"})

"""Flows of the trail: lines, segments that are closed and sworn to, copies, compressing and removing."""

from functools import partial
from pathlib import Path
from typing import Final

from tests.crash_matrix.publish_flows import publish_qos_1, subscribed
from tests.crash_matrix.questions import settle_messages
from tests.crash_matrix.stage import Flow, Stage, await_condition
from tests.trail_lines import closed_segments, trail_lines

#: Each batch of notes is a segment of its own.
SMALL: Final = "[audit]\nsegment_bytes = 1\n"
COPIED: Final = 'copy_folder = "FOLDER/second"\n'
PLAIN: Final = "compress_after_hours = -1\n"
#: Days that are over at once.
NO_TIME: Final = 1e-9


def _trail(stage: Stage) -> Path:
    return stage.data / "trail"


def _names(stage: Stage, pattern: str) -> int:
    return len(list(_trail(stage).glob(pattern)))


def _publish_until(pattern: str, count: int, stage: Stage) -> None:
    """Publishes, and waits until the exporter, which takes its time, has made so many files more."""
    before = _names(stage, pattern)
    publish_qos_1(stage)
    await_condition(lambda: _names(stage, pattern) >= before + count, stage)


def _publish_until_closed(count: int, stage: Stage) -> None:
    """The same for closed segments, compressed or not."""
    before = len(closed_segments(_trail(stage)))
    publish_qos_1(stage)
    await_condition(lambda: len(closed_segments(_trail(stage))) >= before + count, stage)


def _publish_until_removed(stage: Stage) -> None:
    """The segments of the first start go, but the newest."""
    oldest = min(closed_segments(_trail(stage)))
    publish_qos_1(stage)
    await_condition(lambda: oldest not in closed_segments(_trail(stage)), stage)


def _inspect_copies(stage: Stage) -> None:
    """The second place has each closed segment, line for line, and each digest."""
    second = stage.folder / "second"
    for path in _trail(stage).glob("digests/*.digest"):
        assert (second / "digests" / path.name).read_bytes() == path.read_bytes(), path
    lines = trail_lines(_trail(stage))
    copied = trail_lines(second)
    assert copied == lines[: len(copied)]
    assert closed_segments(second) == closed_segments(_trail(stage))


FLOWS: Final = (
    Flow(
        name="exporter",
        prepare=subscribed,
        run=partial(_publish_until, "*.open", 1),
        settle=settle_messages,
    ),
    Flow(
        name="digest",
        settings=SMALL + PLAIN,
        prepare=subscribed,
        run=partial(_publish_until_closed, 2),
        settle=settle_messages,
    ),
    Flow(
        name="second place",
        settings=SMALL + COPIED,
        folders=("second",),
        prepare=subscribed,
        run=partial(_publish_until_closed, 2),
        settle=settle_messages,
        inspect=_inspect_copies,
    ),
    Flow(
        name="compression",
        settings=SMALL,
        prepare=subscribed,
        run=partial(_publish_until, "*.zst", 1),
        settle=settle_messages,
    ),
    Flow(
        name="retention",
        settings=f"{SMALL}keep_days = {NO_TIME}\n",
        prepare=subscribed,
        run=_publish_until_removed,
        settle=settle_messages,
    ),
)

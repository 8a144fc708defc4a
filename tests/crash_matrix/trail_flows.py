"""Flows of the trail: lines, segments that are closed and sworn to, copies, compressing and removing."""

from functools import partial
from pathlib import Path
from typing import Final

from tests.crash_matrix.publish_flows import publish_qos_1, subscribed
from tests.crash_matrix.questions import settle_messages
from tests.crash_matrix.stage import Flow, Stage, await_condition

#: Each batch of notes is a segment of its own.
SMALL: Final = "[audit]\nsegment_bytes = 1\n"
COPIED: Final = 'copy_folder = "FOLDER/second"\n'
#: Hours and days that are over at once.
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


def _publish_until_removed(stage: Stage) -> None:
    """The segments of the first start go, but the newest."""
    oldest = min(_trail(stage).glob("*.jsonl"))
    publish_qos_1(stage)
    await_condition(lambda: not oldest.exists(), stage)


def _inspect_copies(stage: Stage) -> None:
    """The second place has each closed segment and each digest, byte for byte."""
    second = stage.folder / "second"
    for path in _trail(stage).rglob("*"):
        if path.suffix in (".jsonl", ".digest"):
            assert (second / path.relative_to(_trail(stage))).read_bytes() == path.read_bytes(), path


FLOWS: Final = (
    Flow(
        name="exporter",
        prepare=subscribed,
        run=partial(_publish_until, "*.open", 1),
        settle=settle_messages,
    ),
    Flow(
        name="digest",
        settings=SMALL,
        prepare=subscribed,
        run=partial(_publish_until, "*.jsonl", 2),
        settle=settle_messages,
    ),
    Flow(
        name="second place",
        settings=SMALL + COPIED,
        folders=("second",),
        prepare=subscribed,
        run=partial(_publish_until, "*.jsonl", 2),
        settle=settle_messages,
        inspect=_inspect_copies,
    ),
    Flow(
        name="compression",
        settings=f"{SMALL}compress_after_hours = {NO_TIME}\n",
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

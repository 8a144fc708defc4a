"""What new records name of the time before a state is found, whether by a message, an exchange or a number."""

from collections.abc import Callable

import pytest

from spark_audit.increments.given import NamedBefore
from tests.every_case import for_every
from tests.spark_audit.conftest import TrailBuilder
from tests.spark_audit.controls.conftest import Story, message
from tests.spark_audit.increments.conftest import Increments, write_segment

_TARGET = "7e" * 24


def _ended(story: Story) -> None:
    """A publication with its copy and deliveries, a message to a target and one from it: nothing of it is open."""
    story.started()
    story.session("opened")
    batch = story.trail.sequence + 1
    story.accepted(1, 1, batch=batch)
    story.put(1, 1, batch=batch)
    story.copied(1, 2, batch=batch)
    story.confirmed(4, [1, 1])
    story.delivered(1, 1, 2), story.acknowledged(1, message_id=message(2))
    story.put(2, 1, message_id=message(3), destination="QM1", queue="STOCK"), story.forwarded(3)
    story.received(4, _TARGET), story.delivered(2, 0, 4)
    for number in range(3, 8):
        (
            story.accepted(number, 1),
            story.put(number, 1, message_id=message(number + 5)),
            story.confirmed(4, [number] * 2),
        )


_NAMED: dict[str, tuple[str, Callable[[Story], object]]] = {
    "a message is delivered again": ("messages", lambda story: story.delivered(9, 1, 2)),
    "a message is copied again": ("messages", lambda story: story.copied(1, 20)),
    "a number is given again": ("messages", lambda story: story.put(9, 1, message_id=message(1))),
    "a message is forwarded again": ("messages", lambda story: story.forwarded(3)),
    "an exchange is confirmed again": ("exchanges", lambda story: story.confirmed(4, [1, 1])),
    "an exchange is accepted again": ("exchanges", lambda story: story.accepted(1, 1)),
    "a message of a target comes again": ("messages of targets", lambda story: story.received(30, _TARGET)),
    "a dead letter is put back that nobody knows": (
        "messages",
        lambda story: story.add("redriven", message_id=message(31), dead_letter_id=message(2), queue="Q"),
    ),
}
_NOT_NAMED: dict[str, Callable[[Story], object]] = {
    "the next exchange": lambda story: story.published(8, 1, message_id=message(20)),
    "the next message of a target": lambda story: story.received(30, "7f" * 24),
    "another session": lambda story: (
        story.session("opened", client="wall", session_epoch=1),
        story.delivered(1, 0, 20, client="wall", session_epoch=1),
    ),
}


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Story], object]], Increments]:
    """Audits what has ended, once, and gives the audit that goes on with what a story tells next."""
    scratch = tmp_path_factory.mktemp("named")
    builder = TrailBuilder(scratch)
    _ended(Story(builder))
    first = Increments([scratch / "first"], scratch)
    write_segment(scratch / "first", 1, builder.lines)
    first.audit()

    def goes_on(tells: Callable[[Story], object]) -> Increments:
        folder = scratch / f"{len(list(scratch.iterdir()))}"
        again = TrailBuilder(scratch)
        _ended(Story(again))
        tells(Story(again))
        write_segment(folder, 1, again.lines[: len(builder.lines)])
        write_segment(folder, 2, again.lines[len(builder.lines) :])
        return Increments([folder], scratch, data=first.data, is_patient=False)

    return goes_on


@for_every(_NAMED)
def test_what_had_ended_and_is_named_is_told(
    case: tuple[str, Callable[[Story], object]], behind: Callable[[Callable[[Story], object]], Increments]
) -> None:
    part, tells = case
    with pytest.raises(NamedBefore, match=rf"\d {part} \("):
        behind(tells).check_names()


@for_every(_NOT_NAMED)
def test_what_is_new_names_nothing_that_had_ended(
    tells: Callable[[Story], object], behind: Callable[[Callable[[Story], object]], Increments]
) -> None:
    behind(tells).check_names()

"""What began before the first record, or may go on behind the last, is pending; what lies between is judged."""

from spark_audit.controls import conservation, deliveries, incoming_exchanges
from spark_audit.controls.control import Control


def _found(control: Control, facts) -> set[int]:
    return facts.sequences(control)


def _message(number: int) -> str:
    return f"52464842{'0a' * 12}{number:016x}"


def test_exchanges_and_messages_that_began_before_the_window_are_pending(story, read) -> None:
    story.started()
    story.published(4, 1), story.accepted(5, 2), story.copied(4, 50), story.delivered(1, 1, 50)
    story.trail.lines = story.trail.lines[-1:]  # the window begins with the delivery
    (
        story.confirmed(4, [4, 4]),
        story.confirmed(5, [5, 5]),
        story.put(5, 2, message_id=_message(55)),
        story.confirmed(7, [5, 5]),
    )
    story.delivered(2, 1, 49), story.acknowledged(1), story.acknowledged(0)
    story.published(6, 1, message_id=_message(56)), story.copied(56, 60), story.delivered(3, 1, 60)
    lost = story.confirmed(4, [6, 7])  # 6 is there, 7 would have begun after it
    uncopied = story.delivered(4, 1, 61)
    for_nothing = story.acknowledged(5)
    unstored = story.confirmed(5, [8, 8])
    records = read(story.trail.write())
    assert _found(incoming_exchanges.AT_LEAST_ONCE, records) == {lost}
    assert _found(incoming_exchanges.EXACTLY_ONCE, records) == {unstored}
    assert _found(conservation.CONTROL, records) == {uncopied}
    assert _found(deliveries.ACKNOWLEDGED, records) == {for_nothing}


def test_what_waited_before_the_window_does_not_show_where_its_exchanges_begin(story, read) -> None:
    """A client is back, and gets what waited for it. Of a later exchange it owes PUBCOMP alone."""
    story.started(), story.started()
    story.trail.lines = story.trail.lines[-1:]
    story.delivered(3, 1, 43, duplicate=True), story.acknowledged(3)
    story.acknowledged(5, 7)
    story.delivered(4, 1, 44), story.acknowledged(4)  # one that waited for any member of a group
    story.copied(47, 48), story.delivered(8, 1, 48), story.acknowledged(8)
    for_nothing = story.acknowledged(9)
    assert _found(deliveries.ACKNOWLEDGED, read(story.trail.write())) == {for_nothing}


def test_a_session_that_was_opened_within_the_window_has_begun_within_it(story, read) -> None:
    story.started(), story.started()
    story.trail.lines = story.trail.lines[-1:]
    pending = {"client": "cooler", "session_epoch": 7}
    story.confirmed(4, [1, 1], **pending)  # nothing of this session is known: it may be older
    story.session("opened", client="boiler", session_epoch=1)
    lost = story.confirmed(4, [1, 1])
    assert _found(incoming_exchanges.AT_LEAST_ONCE, read(story.trail.write())) == {lost}


def test_what_stands_in_the_last_commit_may_go_on_behind_it(story, read) -> None:
    vanished = story.accepted(1, 1)
    story.accepted(2, 1, batch=2), story.accepted(3, 2, batch=2)
    assert _found(conservation.CONTROL, read(story.trail.write())) == {vanished}

"""The SUBSCRIBEs that a session remembers: which retained copies are for them, and how much they take."""

from gateway.bridge.sessions.session_filters import RetainedMarks


def test_a_retained_copy_belongs_to_the_latest_packet_or_to_one_that_was_not_answered_yet() -> None:
    marks = RetainedMarks()
    assert marks.want("a", 1)
    first, second, third = (marks.begin(place * 10, frozenset(each)) for place, each in enumerate("abc", 1))
    assert [marks.want("a", number) for number in (5, 15, 25, 35)] == [True] * 4
    first.last = 22
    assert [marks.want("a", number) for number in (15, 22, 23, 35)] == [True, True, False, False]
    assert [marks.want("b", number) for number in (15, 25, 35)] == [False, True, True]
    second.last = third.last = 36
    fourth = marks.begin(40, frozenset("d"))
    assert [marks.want(topic, 45) for topic in "abcd"] == [False, False, False, True]
    assert [marks.want(topic, 36) for topic in "abcd"] == [False, True, True, False]
    assert fourth.looks_back == 0


def test_long_filters_that_come_and_go_leave_no_more_than_a_bound_behind() -> None:
    """A thousand SUBSCRIBEs of two filters, each of 40,000 characters, were 80 MB."""
    marks = RetainedMarks()
    for number in range(1, 1_001):
        marks.begin(number, frozenset((f"{number}/" + "x" * 40_000, f"{number}/" + "y" * 40_000))).last = number
    assert marks.characters < 100_000
    assert marks.want("a", 500)  # what is forgotten costs no copy
    assert not marks.want("a", 1_001)


def test_a_copy_is_due_where_the_packet_that_it_may_be_for_is_forgotten() -> None:
    marks = RetainedMarks()
    marks.begin(1, frozenset(("a",)))
    marks.begin(2, frozenset(("b" * 40_000,)))
    marks.begin(3, frozenset(("c" * 40_000,)))
    assert marks.want("a", 4)

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


def test_a_subscribe_has_its_last_number_when_it_is_answered_and_all_is_sent() -> None:
    marks = RetainedMarks()
    first = marks.begin(1, frozenset({"a/#"}))
    first.under_way = {b"RegSub 1", b"RegSub 2"}
    first.answer(5)
    marks.begin(6, frozenset({"b"}))
    assert marks.want("a/1", 7)
    marks.all_sent(b"RegSub 1", 8)
    marks.all_sent(b"of nobody", 8)
    assert marks.want("a/1", 9)
    marks.all_sent(b"RegSub 2", 10)
    assert [marks.want("a/1", number) for number in (9, 11)] == [True, False]


def test_all_is_sent_before_the_answer() -> None:
    marks = RetainedMarks()
    first = marks.begin(1, frozenset({"a/#"}))
    first.under_way = {b"RegSub"}
    marks.begin(2, frozenset({"b"}))
    marks.all_sent(b"RegSub", 3)
    assert marks.want("a/1", 4)
    first.answer(5)
    assert not marks.want("a/1", 6)


def test_while_a_forgotten_subscribe_has_more_to_come_every_copy_is_due() -> None:
    marks = RetainedMarks()
    forgotten = marks.begin(0, None)
    forgotten.is_answered, forgotten.under_way = True, {b"of the run before"}
    marks.begin(3, frozenset({"b"}))
    assert marks.want("a/1", 4)
    marks.all_sent(b"of the run before", 5)
    assert [marks.want(topic, 6) for topic in ("a/1", "b")] == [False, True]

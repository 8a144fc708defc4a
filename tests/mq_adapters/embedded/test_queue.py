"""Lanes and the heap of their heads: order, holes, and cost with very many CorrelIds."""

import time

from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.embedded.lanes import SEQUENCE_MASK, Lane
from mq_adapters.embedded.queue import Queue


def lane_of(*numbers: int) -> Lane:
    lane = Lane()
    for number in numbers:
        lane.append(number)
    return lane


def correl_id(number: int) -> bytes:
    return number.to_bytes(24, "big")


def drain(queue: Queue) -> list[int]:
    taken = []
    while (oldest := queue.oldest()) is not None:
        taken.append(queue.take(oldest))
    return taken


def test_a_lane_gives_the_oldest_first():
    lane = lane_of(1, 2, 3)
    assert [lane.pop(), lane.pop(), lane.pop(), lane.pop()] == [1, 2, 3, 0]


def test_a_number_of_a_unit_of_work_that_was_open_for_long_takes_its_place():
    assert list(lane_of(2, 5, 9, 3, 1, 7)) == [1, 2, 3, 5, 7, 9]


def test_a_lane_has_no_number_that_was_discarded():
    lane = lane_of(1, 2, 3, 4)
    lane.discard(1)
    lane.discard(3)
    assert (list(lane), len(lane), lane.head()) == ([2, 4], 2, 2)


def test_numbers_given_back_are_at_their_old_places():
    lane = lane_of(1, 2, 3, 4, 5, 6)
    assert [lane.pop(), lane.pop(), lane.pop()] == [1, 2, 3]
    lane.discard(5)
    lane.give_back([3, 1, 5])
    assert (list(lane), len(lane)) == ([1, 3, 4, 5, 6], 5)


def test_two_takers_give_back_in_turns():
    lane = lane_of(*range(1, 9))
    taken = [lane.pop() for _ in range(6)]
    lane.give_back(taken[::2])
    lane.give_back(taken[1::2])
    assert list(lane) == [1, 2, 3, 4, 5, 6, 7, 8]


@given(st.permutations(range(1, 31)), st.data())
def test_a_lane_is_a_sorted_list(arrivals, data):
    lane, model, taken = Lane(), [], []
    for number in arrivals:
        lane.append(number)
        model = sorted([*model, number])
        action = data.draw(st.sampled_from(("nothing", "pop", "discard", "give back")))
        if action == "pop":
            taken.append(model.pop(0))
            assert lane.pop() == taken[-1]
        elif action == "discard":
            taken.append(model.pop(data.draw(st.integers(0, len(model) - 1))))
            lane.discard(taken[-1])
        elif action == "give back":
            back, taken = taken[::2], taken[1::2]
            lane.give_back(back)
            model = sorted([*model, *back])
        assert (list(lane), len(lane), lane.head()) == (model, len(model), model[0] if model else 0)


def test_the_oldest_message_of_all_lanes_comes_first():
    queue = Queue(1, "Q")
    for number, lane in ((1, 7), (2, 8), (3, 7), (4, 9), (5, 8)):
        queue.arrive(correl_id(lane), number)
    assert drain(queue) == [1, 2, 3, 4, 5]
    assert queue.lanes == {}


def test_a_late_number_becomes_the_head_of_its_lane_and_of_the_queue():
    queue = Queue(1, "Q")
    queue.arrive(correl_id(7), 5)
    queue.arrive(correl_id(8), 4)
    queue.arrive(correl_id(7), 3)
    assert drain(queue) == [3, 4, 5]


def test_lanes_that_are_taken_by_correl_id_leave_no_heads_behind():
    queue = Queue(1, "Q")
    for number in range(1, 10_000):
        queue.arrive(correl_id(7), number)
        assert queue.take(correl_id(7)) == number
    assert len(queue._heads) < 100


def test_a_hundred_thousand_correl_ids_are_taken_in_order():
    queue = Queue(1, "Q")
    for number in range(1, 100_001):
        queue.arrive(correl_id(number), number)
    assert queue.numbers() == list(range(1, 100_001))
    for number in range(1, 100_001, 2):
        assert queue.take(correl_id(number)) == number
    assert drain(queue) == list(range(2, 100_001, 2))


def test_a_hundred_thousand_messages_of_one_lane_are_given_back_at_once():
    queue = Queue(1, "Q")
    numbers = range(1, 100_001)
    for number in numbers:
        queue.arrive(correl_id(7), number)
    taken = [queue.take(correl_id(7)) for _ in range(50_000)]
    queue.give_back(correl_id(7), taken)
    assert queue.numbers() == list(numbers)
    assert queue.oldest() == correl_id(7)


def test_many_messages_may_have_one_msg_id():
    queue = Queue(1, "Q")
    for number in (3, 1, 2):
        queue.add_name(b"m" * 24, number)
    assert queue.named == {b"m" * 24: [1, 2, 3]}
    for number in (2, 1, 3, 3):
        queue.drop_name(b"m" * 24, number)
    assert queue.named == {}


def test_listeners_are_forgotten_when_they_leave():
    queue = Queue(1, "Q")

    def callback() -> None:
        """Never called here."""

    queue.listen(None, callback)
    queue.listen(correl_id(7), callback)
    queue.unlisten(correl_id(7), callback)
    queue.unlisten(correl_id(8), callback)
    assert queue.listeners == {None: [callback]}


@given(st.lists(st.integers(1, 30), unique=True, min_size=1), st.data())
def test_a_lane_read_from_its_end_is_the_lane_the_other_way_round(numbers: list[int], data: st.DataObject) -> None:
    lane = lane_of(*sorted(numbers))
    for number in data.draw(st.permutations(numbers)):
        assert list(reversed(lane)) == list(lane)[::-1]
        lane.discard(number)
    assert list(reversed(lane)) == []


def test_what_is_taken_off_the_end_of_a_lane_leaves_nothing_behind() -> None:
    lane = lane_of(*range(1, 10_001))
    for number in range(10_000, 10, -1):
        lane.discard(number)
    assert list(lane) == list(range(1, 11))
    assert (len(lane._numbers), len(lane._gone)) == (10, 0)


def test_the_newest_of_a_lane_is_the_one_that_it_delivers_last() -> None:
    queue = Queue(1, "Q")
    assert queue.newest(correl_id(7)) == 0
    for number, priority in ((1, 0), (2, 9), (3, 0), (4, 9)):
        queue.arrive(correl_id(7), queue.place(number, priority))
    assert queue.newest(correl_id(7)) == 3


def test_lanes_are_measured_where_that_was_asked_for_and_forgotten_when_they_are_empty() -> None:
    queue = Queue(1, "Q")
    queue.add(correl_id(7), 1, 10)
    assert queue.lane_bytes is None
    queue.remove(correl_id(7), 10)
    queue.measure_lanes()
    queue.add(correl_id(7), 2, 10)
    queue.add(correl_id(7), 3, 5)
    queue.add(correl_id(8), 4, 0)
    assert queue.lane_bytes == {correl_id(7): 15, correl_id(8): 0}
    queue.remove(correl_id(7), 10)
    queue.remove(correl_id(8), 0)
    assert queue.lane_bytes == {correl_id(7): 5}
    queue.end()
    assert queue.lane_bytes == {}


def test_places_behind_one_come_from_all_lanes_or_from_one() -> None:
    queue = Queue(1, "Q")
    for number in range(1, 7):
        queue.add(b"odd" if number % 2 else b"even", number, 0)
    assert [each & SEQUENCE_MASK for each in queue.behind(-1, 4)] == [1, 2, 3, 4]
    third = queue.behind(-1, 3)[-1]
    assert [each & SEQUENCE_MASK for each in queue.behind(third, 9)] == [4, 5, 6]
    assert [each & SEQUENCE_MASK for each in queue.behind(third, 9, b"odd")] == [5]
    assert queue.behind(-1, 9, b"none") == []


@given(st.data())
def test_places_of_many_lanes_are_listed_in_order_whatever_comes_and_goes(data: st.DataObject) -> None:
    """The whole of all lanes is made at the first listing, and follows from then on."""
    queue, there = Queue(1, "Q"), list[int]()
    queue.is_fifo = data.draw(st.booleans())
    taken: list[int] = []
    told: list[int] = []
    queue.watch(told.append)
    for number in range(1, data.draw(st.integers(20, 60))):
        place = queue.place(number, number % 3)
        queue.add(correl_id(number % 24), place, 0)
        there.append(place)
    assert told == there
    for _ in range(data.draw(st.integers(1, 12))):
        there.sort()
        behind = data.draw(st.sampled_from([-1, *there]))
        assert queue.behind(behind, 7) == [place for place in there if place > behind][:7]
        if there and data.draw(st.booleans()):
            place = data.draw(st.sampled_from(there))
            queue.discard(correl_id((place & SEQUENCE_MASK) % 24), place)
            taken.append(place)
            there.remove(place)
        elif taken:
            place = taken.pop()
            queue.give_back(correl_id((place & SEQUENCE_MASK) % 24), [place])
            there.append(place)
            assert told[-1] == place
        elif (oldest := queue.oldest()) is not None:
            number = queue.take(oldest)
            there = [place for place in there if place & SEQUENCE_MASK != number]
    queue.unwatch(told.append)
    assert queue.watchers == []


def test_listing_a_hundred_thousand_lanes_in_parts_looks_at_each_once() -> None:
    queue = Queue(1, "Q")
    for number in range(1, 100_001):
        queue.add(correl_id(number), number, 0)
    begun = time.process_time()
    place, seen = -1, 0
    while places := queue.behind(place, 64):
        place, seen = places[-1], seen + len(places)
    assert seen == 100_000
    assert time.process_time() - begun < 5
    drain(queue)
    assert queue.whole is None


def test_places_of_expired_messages_do_not_pile_up() -> None:
    queue = Queue(1, "Q")
    for number in range(1, 20):
        queue.add(correl_id(number), number, 0)
    assert len(queue.behind(-1, 50)) == 19
    for number in range(20, 5_000):
        queue.add(correl_id(number), number, 0)
        queue.pass_by(correl_id(number), {number: 1}, 2)
        queue.remove(correl_id(number), 0)
    assert queue.whole is None or len(queue.whole) < 2_000

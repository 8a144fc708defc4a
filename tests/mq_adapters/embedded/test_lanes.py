"""Lanes: what stands behind a place, against a list."""

from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.embedded.lanes import BAND_BITS, Lane, PriorityLane

PLACES = st.builds(lambda band, sequence: (band << BAND_BITS) | sequence, st.integers(0, 9), st.integers(1, 50))


@given(st.sets(PLACES), st.data())
def test_the_first_places_behind_one_are_those_of_a_sorted_list(places: set[int], data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.sampled_from(sorted(places)))) if places else set()
    left = sorted(places - gone)
    place, count = data.draw(PLACES | st.just(-1)), data.draw(st.integers(1, 10))
    for lane in (Lane(), PriorityLane()):
        for each in sorted(places):
            lane.append(each)
        for each in gone:
            lane.discard(each)
        assert lane.behind(place, count) == [each for each in left if each > place][:count]

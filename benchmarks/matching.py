"""How long it takes to find the subscriptions of a new topic, among ordinary filters and among those of an attack.

Times are the processor's, of a look-up in the index of patterns that no cache answers. An attack has 100,000 filters:
half of them exact, then all `{a,+}^k/z`, then the same with other ends, `z1` and so on. Another one is the longest work
that the limit on shapes allows: all `{z,+}^k/#` up to eight levels, none of which matches. The index takes filters as
far as the limit allows.
"""

import itertools
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from benchmarks.figures import Measure, Report, Row
from gateway.config.limits import Limit
from mappings.topics.pattern_index import PatternIndex
from mappings.topics.wildcards import Scheme

NAME: Final = "matching"
FILTERS: Final = 100_000
TURNS: Final = 5
#: Look-ups of a turn.
LOOK_UPS: Final = 1_000
#: Levels with a choice of a or + in an attack.
ATTACKS: Final = (11, 15)
MAXIMUM_LEVELS: Final = int(Limit.TOPIC_LEVELS.value.default)

_SITE: Final = "site{site}/line{line}/"
KINDS: Final = {
    "exact": _SITE + "device{number}/temperature",
    "one +": _SITE + "+/temperature{number}",
    "#": _SITE + "device{number}/#",
}
#: Of ten filters of the mixed case.
MIXED: Final = ("exact",) * 6 + ("one +",) * 3 + ("#",)


def _added(index: PatternIndex[str], topic_filter: str) -> None:
    """Adds a filter, unless it has a new shape that counts, and there are as many of these as the limit allows."""
    shape, shapes = index.shape(topic_filter, Scheme.TOPIC), index.shapes
    most = int(Limit.FILTER_SHAPES_IN_ALL.value.default)
    if shape is None or shape.is_ordinary or shape in shapes or shapes.unusual_weight + shape.weight <= most:
        index.add(topic_filter, Scheme.TOPIC, topic_filter)


def filter_of(kind: str, number: int) -> str:
    """A filter of the fleet."""
    return KINDS[kind].format(site=number % 50, line=number % 1_000, number=number)


def topic_of(topic_filter: str, number: int) -> str:
    """A new topic that the filter matches."""
    return topic_filter.replace("+", f"device{number}").replace("#", f"speed{number}")


def run(seconds: float) -> Report:
    """Measures all cases. `seconds` does not matter: each case has a fixed number of look-ups."""
    rows = [_of_fleet(f"filters: {kind}", (kind,)) for kind in KINDS]
    rows += [_of_fleet("filters: 60 % exact, 30 % one +, 10 % #", MIXED), _of_all_shapes()]
    rows += [row for levels in ATTACKS for row in _of_attack(levels)]
    longest = max(row.value("a look-up, longest turn") for row in rows)
    return Report(
        name=NAME,
        title=f"the subscriptions of a new topic among {FILTERS:,}, {TURNS} turns",
        rows=tuple(rows),
        notes=(f"The longest turn is {longest:.0f} us a look-up; the aim is less than 100 us for every topic.",),
    )


def _of_fleet(case: str, kinds: tuple[str, ...]) -> Row:
    filters = [filter_of(kinds[number % len(kinds)], number) for number in range(FILTERS)]
    step = FILTERS // (LOOK_UPS * TURNS) + 1
    topics = [topic_of(each, place) for place, each in enumerate(filters[::step])]
    return _row(case, filters, itertools.cycle(topics))


def _with_exact(chosen: Iterable[str]) -> list[str]:
    """The filters of an attack, behind as many of a fleet."""
    half = FILTERS // 2
    return [*(filter_of("exact", number) for number in range(half)), *itertools.islice(chosen, FILTERS - half)]


def _of_all_shapes() -> Row:
    chosen = ("/".join(each) + "/#" for levels in range(1, 9) for each in itertools.product("+z", repeat=levels))
    topics = (f"{'a/' * (MAXIMUM_LEVELS - 1)}new{number}" for number in itertools.count())
    filters = _with_exact(each for each in chosen if "z" in each)
    return _row(f"attack with {{z,+}}^1..8/#, {MAXIMUM_LEVELS} levels", filters, topics)


def _of_attack(levels: int) -> Iterator[Row]:
    ends = ("z" if turn == 0 else f"z{turn}" for turn in itertools.count())
    chosen = (f"{'/'.join(each)}/{end}" for end in ends for each in itertools.product("a+", repeat=levels))
    filters = _with_exact(chosen)
    new = (f"{'a/' * levels}new{number}" for number in itertools.count())
    yield _row(f"attack with {{a,+}}^{levels}/z", filters, new)
    longest = (f"{'a/' * (MAXIMUM_LEVELS - 1)}new{number}" for number in itertools.count())
    yield _row(f"the same, a topic of {MAXIMUM_LEVELS} levels", filters, longest)


def _row(case: str, filters: Iterable[str], topics: Iterator[str]) -> Row:
    index: PatternIndex[str] = PatternIndex(cached_topics=1)
    tracemalloc.start()
    for each in filters:
        _added(index, each)
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    turns = []
    for _ in range(TURNS):
        asked = list(itertools.islice(topics, LOOK_UPS))
        index.match(asked[0])
        turns.append(_time_us(index.match, asked))
    measures = (
        Measure(name="a look-up, median", value=statistics.median(turns), unit="us"),
        Measure(name="a look-up, longest turn", value=max(turns), unit="us"),
        Measure(name="memory", value=taken_bytes / FILTERS, unit="bytes a filter"),
    )
    return Row(subject="rfhbridge", case=case, measures=measures)


def _time_us(look_up: Callable[[str], object], topics: list[str]) -> float:
    started_ns = time.process_time_ns()
    for topic in topics:
        look_up(topic)
    return (time.process_time_ns() - started_ns) / len(topics) / 1_000

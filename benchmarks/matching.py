"""How long it takes to find the subscriptions of a new topic, among ordinary filters and among those of an attack.

The index of patterns is measured in turns with a tree by level, which the gateway had up to commit 5fe8107, with the
same filters and topics. Times are the processor's, of a look-up that no cache answers. An attack has 100,000 filters:
half of them exact, then all `{a,+}^k/z`, then the same with other ends, `z1` and so on. Another one is the longest work
that the limit on shapes allows: all `{z,+}^k/#` up to eight levels, none of which matches. The index takes filters as
far as the limit allows, the tree takes all.
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
#: Look-ups of a turn; a tree under attack is asked a few times alone.
LOOK_UPS, FEW_LOOK_UPS = 1_000, 5
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


class ByShape:
    """The index of the gateway."""

    def __init__(self) -> None:
        self._index: PatternIndex[str] = PatternIndex(cached_topics=1)

    def add(self, topic_filter: str) -> None:
        """Adds a filter, unless it has a new shape and there are as many as the limit allows."""
        shape, shapes = self._index.shape(topic_filter, Scheme.TOPIC), self._index.shapes
        most = int(Limit.FILTER_SHAPES_IN_ALL.value.default)
        if shape is None or shape in shapes or shapes.weight + shape.weight <= most:
            self._index.add(topic_filter, Scheme.TOPIC, topic_filter)

    def look_up(self, topic: str) -> tuple[str, ...]:
        return self._index.match(topic)


class _Node:
    """A level of filters; `+` and `#` are children like others."""

    __slots__ = ("children", "takes_any_number", "values")

    def __init__(self, level: str) -> None:
        self.takes_any_number = level == "#"
        self.children: dict[str, _Node] = {}
        self.values: dict[str, None] = {}


class ByLevel:
    """A tree with a node for each level of each filter."""

    def __init__(self) -> None:
        self._root = _Node("")

    def add(self, topic_filter: str) -> None:
        node = self._root
        for level in topic_filter.split("/"):
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node(level)
            node = child
        node.values[topic_filter] = None

    def look_up(self, topic: str) -> tuple[str, ...]:
        reached: dict[_Node, None] = {}
        _reach(self._root, reached)
        for level in topic.split("/"):
            following: dict[_Node, None] = {}
            for node in reached:
                if node.takes_any_number:
                    following[node] = None
                for name in (level, "+"):
                    child = node.children.get(name)
                    if child is not None:
                        _reach(child, following)
            reached = following
        return tuple(dict.fromkeys(itertools.chain.from_iterable(node.values for node in reached)))


def _reach(node: _Node, reached: dict[_Node, None]) -> None:
    """Notes a node, and the `#` below it, which may stand for no level."""
    following: _Node | None = node
    while following is not None and following not in reached:
        reached[following] = None
        following = following.children.get("#")


def filter_of(kind: str, number: int) -> str:
    """A filter of the fleet."""
    return KINDS[kind].format(site=number % 50, line=number % 1_000, number=number)


def topic_of(topic_filter: str, number: int) -> str:
    """A new topic that the filter matches."""
    return topic_filter.replace("+", f"device{number}").replace("#", f"speed{number}")


def run(seconds: float) -> Report:
    """Measures all cases. `seconds` does not matter: each case has a fixed number of look-ups."""
    rows = [row for kind in KINDS for row in _of_fleet(f"filters: {kind}", (kind,))]
    rows += _of_fleet("filters: 60 % exact, 30 % one +, 10 % #", MIXED)
    rows += _of_all_shapes()
    rows += [row for levels in ATTACKS for row in _of_attack(levels)]
    return Report(
        name=NAME,
        title=f"the subscriptions of a new topic among {FILTERS:,}, {TURNS} turns",
        rows=tuple(rows),
        notes=tuple(_notes(rows)),
    )


def _of_fleet(case: str, kinds: tuple[str, ...]) -> Iterator[Row]:
    filters = [filter_of(kinds[number % len(kinds)], number) for number in range(FILTERS)]
    step = FILTERS // (LOOK_UPS * TURNS) + 1
    topics = [topic_of(each, place) for place, each in enumerate(filters[::step])]
    yield from _rows(case, filters, itertools.cycle(topics), LOOK_UPS)


def _with_exact(chosen: Iterable[str]) -> list[str]:
    """The filters of an attack, behind as many of a fleet."""
    half = FILTERS // 2
    return [*(filter_of("exact", number) for number in range(half)), *itertools.islice(chosen, FILTERS - half)]


def _of_all_shapes() -> Iterator[Row]:
    chosen = ("/".join(each) + "/#" for levels in range(1, 9) for each in itertools.product("+z", repeat=levels))
    topics = (f"{'a/' * (MAXIMUM_LEVELS - 1)}new{number}" for number in itertools.count())
    filters = _with_exact(each for each in chosen if "z" in each)
    yield from _rows(f"attack with {{z,+}}^1..8/#, {MAXIMUM_LEVELS} levels", filters, topics, LOOK_UPS)


def _of_attack(levels: int) -> Iterator[Row]:
    ends = ("z" if turn == 0 else f"z{turn}" for turn in itertools.count())
    chosen = (f"{'/'.join(each)}/{end}" for end in ends for each in itertools.product("a+", repeat=levels))
    filters = _with_exact(chosen)
    new = (f"{'a/' * levels}new{number}" for number in itertools.count())
    yield from _rows(f"attack with {{a,+}}^{levels}/z", filters, new, FEW_LOOK_UPS)
    longest = (f"{'a/' * (MAXIMUM_LEVELS - 1)}new{number}" for number in itertools.count())
    yield from _rows(f"the same, a topic of {MAXIMUM_LEVELS} levels", filters, longest, FEW_LOOK_UPS)


def _rows(case: str, filters: Iterable[str], topics: Iterator[str], look_ups: int) -> Iterator[Row]:
    """One row for each index. They take turns, so that a load of the machine meets both."""
    indexes: dict[str, ByShape | ByLevel] = {"by shape": ByShape(), "by level": ByLevel()}
    memory = {name: _filled(index, filters) for name, index in indexes.items()}
    times: dict[str, list[float]] = {name: [] for name in indexes}
    for _ in range(TURNS):
        asked = list(itertools.islice(topics, look_ups))
        for name, index in indexes.items():
            index.look_up(asked[0])
            times[name].append(_time_us(index.look_up, asked))
    for name, turns in times.items():
        measures = (
            Measure(name="a look-up, median", value=statistics.median(turns), unit="us"),
            Measure(name="a look-up, longest turn", value=max(turns), unit="us"),
            Measure(name="memory", value=memory[name] / FILTERS, unit="bytes a filter"),
        )
        yield Row(subject=name, case=case, measures=measures)


def _filled(index: ByShape | ByLevel, filters: Iterable[str]) -> int:
    """Adds the filters; the bytes that the index takes."""
    tracemalloc.start()
    for each in filters:
        index.add(each)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken


def _time_us(look_up: Callable[[str], object], topics: list[str]) -> float:
    started_ns = time.process_time_ns()
    for topic in topics:
        look_up(topic)
    return (time.process_time_ns() - started_ns) / len(topics) / 1_000


def _notes(rows: list[Row]) -> Iterator[str]:
    for ours, tree in zip(rows[::2], rows[1::2], strict=True):
        ratio = ours.value("a look-up, median") / tree.value("a look-up, median")
        yield f"{ours.case}: by shape takes {ratio:.3g} times as long as by level."
    longest = max(row.value("a look-up, longest turn") for row in rows[::2])
    yield f"By shape the longest turn is {longest:.0f} us a look-up; the aim is less than 100 us for every topic."

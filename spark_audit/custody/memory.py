"""What a replay knows, as JSON: an audit that goes on from an earlier one has the state that the earlier one had.

A number, a text, a truth value and null are themselves. Everything else is a list, with a word for what it is in front:

    list, tuple, set, frozenset, deque    its items
    dict, counter                         its keys and values by turns
    enum                                  the name of its class, and its value
    named                                 a named tuple: the name of its class, and its values
    object                                the name of its class, its number, and its fields in their order
    same                                  the number of an object that came before: it is the same object

Only the classes of this module can stand there, and only their fields are set, so the text makes nothing else run. What
can be made from the rest (indexes, remembered answers) does not stand there.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Self

import orjson

from spark_audit.custody.answers import Subscribed
from spark_audit.custody.commit import Commit
from spark_audit.custody.confirmations import Connection, Due
from spark_audit.custody.copies import Distribution
from spark_audit.custody.expectations import Share
from spark_audit.custody.findings import Custody, Finding
from spark_audit.custody.lanes import Owner, Waiting
from spark_audit.custody.places import Place, Rules
from spark_audit.custody.programs import Program
from spark_audit.custody.queues import Contents
from spark_audit.custody.refusals import Refused
from spark_audit.custody.registry import Interest, Subscription
from spark_audit.custody.replay import Record, Replay
from spark_audit.custody.retained import Allowed, Kept, Promise
from spark_audit.custody.retained_copies import Unasked
from spark_audit.custody.sessions import Session
from spark_audit.custody.topic_match import Scheme

#: Changes with the parts below, and with what their values mean.
MEMORY_VERSION: Final = 12

#: What each part of a replay remembers; "" is the replay itself, and a part of a part stands behind a full stop.
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "": ("_stream", "_sequence", "_commit", "_ended", "_doubted", "_last_put"),
    "_registry": ("rules", "of_lane", "is_whole", "_of_operators"),
    "_retained": ("_kept", "_allowed", "_long", "is_whole", "_fewer_us", "_now_us"),
    "_retained_copies": ("_promises", "_sent", "_unasked", "_prompt", "_requested", "_now_us"),
    "_sessions": ("_of", "_clients", "is_whole"),
    "_lanes": (
        *("owners", "_of_owner", "fresh", "unread", "queues", "_waiting", "_of_lane", "arrived", "_sent", "_last"),
        *("is_counted", "is_whole"),
    ),
    "_copies": ("_open", "_orphans", "_lacking", "_persistences", "tells_all", "is_whole"),
    "_copies._equal_names": ("_subscribers", "_filters", "_queue"),
    "_deliveries": ("_filters", "_published", "_commit"),
    "_stock": ("_sequence", "_number", "_queues", "_depths", "_total", "_wrong", "_is_cut"),
    "_queues": ("_queues", "_of_message", "_doubtful"),
    "_inventory": ("_is_begun", "_listed", "_sessions_before", "_registered_before", "_retained_before"),
    "_programs": ("_of", "_ended", "_first", "_last", "_commit", "_is_whole"),
    "_passages": ("_waiting", "_last", "_targets"),
    "_refusals": ("_told", "_waiting", "_counted", "_others_us", "_firsts", "_commit", "_now_us", "_is_whole"),
    "_answers": (
        *("_tells", "_started_us", "_of", "_taken_over", "_due", "_refused", "_connected_us", "_spoke_5"),
        *("is_slow", "_exchange_of", "_with_copies", "_parted", "_to_nobody"),
    ),
    "_confirmations": ("_connections", "_due", "_exchanges", "_in_order", "_number", "_noted", "_looked_at"),
}
#: What is made from the rest, or when a replay is made.
MADE: Final[dict[str, tuple[str, ...]]] = {
    "": (*(name for name in PARTS if name and "." not in name), "_applications", "_others", "_takes"),
    "_registry": ("_by_place", "generation", "_filters", "_special"),
    "_retained": ("_trees", "_levels"),
    "_copies": ("_registry", "_lanes", "_expectations", "_equal_names"),
    "_deliveries": ("_lanes", "_granted"),
    "_inventory": ("_sessions", "_registry", "_retained", "_lanes", "_deliveries", "_takes"),
    "_answers": ("_sessions", "_refusals"),
    "_retained_copies": ("_registry", "_lanes", "_retained", "_copies"),
    "_applications": ("_registry", "_retained", "_copies", "_queues", "_register", "_request"),
}
_CLASSES: Final = {
    each.__name__: each
    for each in (
        *(Commit, Connection, Contents, Distribution, Due, Interest),
        *(Kept, Owner, Program, Promise, Rules, Session, Subscribed, Subscription, Waiting),
    )
}
_FIELDS: Final = {name: tuple(each.name for each in fields(made)) for name, made in _CLASSES.items()}
_NAMED: Final[dict[str, Callable[[Iterable[Any]], Any]]] = {
    each.__name__: each._make for each in (Allowed, Finding, Place, Refused, Share, Unasked)
}
_ENUMS: Final[dict[str, type[Enum]]] = {each.__name__: each for each in (Custody, Scheme)}
_SEQUENCES: Final[dict[str, type]] = {each.__name__: each for each in (list, tuple, set, frozenset, deque)}


class UnusableMemory(ValueError):
    """A text is not what a replay knew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a replay knew behind a record (`sequence`, 0: behind none), and which publications were retained there."""

    sequence: int = 0
    retained: tuple[str, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, replay: Replay) -> Self:
        writer = _Writer()
        parts = {
            part: [writer.told(getattr(_part(replay, part), name)) for name in names] for part, names in PARTS.items()
        }
        kept = _part(replay, "_retained").message_ids()
        return cls(sequence=_part(replay, "")._sequence, retained=tuple(sorted(set(kept))), parts=parts)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises UnusableMemory."""
        try:
            told = orjson.loads(text)
            return cls(sequence=told["sequence"], retained=tuple(told["retained"]), parts=told["parts"])
        except (ValueError, TypeError, KeyError) as error:
            raise UnusableMemory(f"it cannot be read: {error}") from None

    def as_text(self) -> str:
        """JSON."""
        return orjson.dumps({"sequence": self.sequence, "retained": self.retained, "parts": self.parts}).decode()

    def replay(self) -> Replay:
        """The replay that knows this. Raises UnusableMemory."""
        replay, reader = Replay(), _Reader()
        if not self.parts:
            return replay
        try:
            for part, names in PARTS.items():
                for name, value in zip(names, self.parts[part], strict=True):
                    setattr(_part(replay, part), name, reader.value(value))
            for part in ("_registry", "_retained"):
                _part(replay, part).index()
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            raise UnusableMemory(f"it cannot be read: {error}") from None
        return replay


def replayed_from(memory: Memory, records: Iterable[Record]) -> Iterator[Finding | Memory]:
    """What is wrong with the records of one gateway behind those that a memory is of, and at last the next memory.

    That is of what was known in front of the last commit: more of its records may come, and it is taken whole.
    """
    replay = memory.replay()
    commits = (list(commit) for _, commit in groupby(records, key=lambda record: record["batch"]))
    last = next(commits, None)
    for commit in commits:
        assert last is not None
        yield from replay.take(last)
        last = commit
    memory = Memory.of(replay)
    if last is not None:
        yield from replay.take(last)
    yield from replay.end()
    yield memory


def _part(replay: Replay, name: str) -> Any:
    return attrgetter(name)(replay) if name else replay


class _Writer:
    """Values as JSON; an object that comes again is the same one."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def told(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        name = kind.__name__
        if isinstance(value, Enum):
            return ["enum", name, value.value] if name in _ENUMS else value.value
        if kind in (dict, Counter):
            return [name.lower(), *(self.told(each) for pair in value.items() for each in pair)]
        if name in _NAMED:
            return ["named", name, *map(self.told, value)]
        if kind in (set, frozenset):
            # each process has an order of its own for a set, and the same state is to be the same bytes
            return [name, *map(self.told, sorted(value, key=lambda each: orjson.dumps(_Writer().told(each))))]
        if kind in _SEQUENCES.values():
            return [name, *map(self.told, value)]
        if kind is not _CLASSES.get(name):
            raise TypeError(f"a replay remembers no {name}")
        if (number := self._numbers.get(id(value))) is not None:
            return ["same", number]
        number = self._numbers[id(value)] = len(self._numbers)
        return ["object", name, number, *(self.told(getattr(value, each)) for each in _FIELDS[name])]


class _Reader:
    """The values again."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}

    def value(self, told: Any) -> Any:
        if not isinstance(told, list):
            return told
        word, *rest = told
        if word in _SEQUENCES:
            return _SEQUENCES[word](map(self.value, rest))
        if word in ("dict", "counter"):
            items = iter(list(map(self.value, rest)))
            pairs = zip(items, items, strict=True)
            return dict(pairs) if word == "dict" else Counter(dict(pairs))
        if word == "enum":
            return _ENUMS[rest[0]](rest[1])
        if word == "named":
            return _NAMED[rest[0]](map(self.value, rest[1:]))
        if word == "same":
            return self._objects[rest[0]]
        if word != "object":
            raise UnusableMemory(f"it has a {word}")
        return self._object(*rest)

    def _object(self, name: str, number: int, *values: Any) -> Any:
        fields_of_it = dict(zip(_FIELDS[name], map(self.value, values), strict=True))
        made = self._objects[number] = _CLASSES[name](**fields_of_it)
        return made

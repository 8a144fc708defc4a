"""Topic filters of rules: whether one covers or touches the filter of a SUBSCRIBE; filters with `%u` and `%c`.

`%u` stands for the user, `%c` for the client identifier, `%%` for a percent sign; a level holds at most one name. A
name is inserted literally: it never becomes a wildcard or a further level.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Self

from mappings.topics.topics import TopicError, check_mqtt_topic_filter

_PLACEHOLDER: Final = re.compile(r"%(.?)", re.DOTALL)
_UNUSABLE: Final = re.compile(r"[+#/\0]|\A\Z")


def covers(allowed: Sequence[str], asked: Sequence[str]) -> bool:
    """Whether every topic that `asked` matches is matched by `allowed`, level by level.

    A wildcard at the start does not match topics that start with `$` (MQTT 3.1.1 section 4.7.2).
    """
    if asked[0].startswith("$") and allowed[0] in ("+", "#"):
        return False
    for index, level in enumerate(allowed):
        if level == "#":
            return True
        if index >= len(asked):
            return False
        if asked[index] == "#" or (asked[index] != level and level != "+"):
            return False
    return len(allowed) == len(asked)


def touches(denied: Sequence[str], asked: Sequence[str]) -> bool:
    """Whether some topic is matched by both. The empty topic is none: nobody can publish it (MQTT-4.7.3-1)."""
    first = {denied[0], asked[0]}
    if first & {"+", "#"} and any(level.startswith("$") for level in first):
        return False
    for place, (ours, theirs) in enumerate(zip_longest(denied, asked)):
        if "#" in (ours, theirs):
            is_parent_alone = None in (ours, theirs)
            return not (is_parent_alone and place == 1 and "" in first)
        if ours is None or theirs is None or (ours != theirs and "+" not in (ours, theirs)):
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """One level of a rule's filter: text, and in it perhaps the place of a name (`u`, `c` or nothing)."""

    before: str
    name: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class RuleFilter:
    """A topic filter of a rule."""

    levels: tuple[_Level, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for a text that is no topic filter, or has a percent sign before another character."""
        try:
            check_mqtt_topic_filter(text)
        except TopicError as problem:
            raise ValueError(problem.hint) from None
        return cls(tuple(_level(level, text) for level in text.split("/")))

    def allowing(self, user: str | None, client: str) -> tuple[str, ...] | None:
        """The levels for a client; None where a name is not one plain level, or begins with `$`."""
        levels: list[str] = []
        for level in self.levels:
            text = _put_in(level, user, client)
            if text is None or (level.name and not levels and text.startswith("$")):
                return None
            levels.append(text)
        return tuple(levels)

    def denying(self, user: str | None, client: str) -> tuple[str, ...]:
        """The levels for a client; `#` in place of a level whose name is not one plain level."""
        levels: list[str] = []
        for level in self.levels:
            text = _put_in(level, user, client)
            if text is None:
                return (*levels, "#")
            levels.append(text)
        return tuple(levels)


def _level(text: str, topic_filter: str) -> _Level:
    found = [match for match in _PLACEHOLDER.finditer(text) if match[1] != "%"]
    if any(match[1] not in ("u", "c") for match in found):
        raise ValueError(f"topic filter {topic_filter!r}: % stands before u, c or another % only")
    if len(found) > 1:
        raise ValueError(f"topic filter {topic_filter!r}: one level holds one %u or %c, else two clients may share it")
    if not found:
        return _Level(before=text.replace("%%", "%"))
    before, after = text[: found[0].start()], text[found[0].end() :]
    return _Level(before=before.replace("%%", "%"), name=found[0][1], after=after.replace("%%", "%"))


def _put_in(level: _Level, user: str | None, client: str) -> str | None:
    if not level.name:
        return level.before
    value = client if level.name == "c" else user
    if value is None or _UNUSABLE.search(value):
        return None
    return f"{level.before}{value}{level.after}"

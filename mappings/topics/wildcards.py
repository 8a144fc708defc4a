"""Topic patterns in three wildcard schemes, and what they match.

- TOPIC (MQRFH2, IBM MQ 7 and later): `+` is one level, `#` any number of levels, wherever it stands as a whole level.
- CHARACTER (MQRFH): `*` is any characters, `?` one character, both also `/`; `%` escapes `*`, `?` and `%`.
- MQTT: as TOPIC with `#` last only; a filter that begins with a wildcard does not match topics that begin with `$`.

Sources: IBM MQ documentation, "Wildcard schemes"; WebSphere MQ V6 Publish/Subscribe User's Guide, "Topics"; MQTT 3.1.1
section 4.7.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import groupby

from mappings.errors import CommandError
from mappings.reasons import Reason

_COMPILED_PATTERNS = 4_096  # regular expressions kept for `matches`; the least recently used goes first
_CHARACTER_TOKEN = re.compile(r"%[*?%]|\*|\?|[^*?%]+", re.DOTALL)
_CHARACTER_WILDCARDS = frozenset({"*", "?"})
_TOPIC_WILDCARDS = frozenset({"+", "#"})


class Scheme(StrEnum):
    """Which characters of a pattern are wildcards."""

    TOPIC = "topic"
    CHARACTER = "character"
    MQTT = "mqtt"


class TopicError(CommandError, ValueError):
    """A topic name or a pattern breaks its rules (MQRCCF_TOPIC_ERROR): the fault of the application or the sensor."""


def topic_error(topic: str, problem: str) -> TopicError:
    """The error for a topic, with the text at fault."""
    return TopicError(Reason.MQRCCF_TOPIC_ERROR, f"topic {topic[:200]!a} {problem}", parameter=topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterPattern:
    """A character pattern taken apart: unescaped text before its first wildcard and behind its last.

    `wildcards` are the tokens from the first wildcard to the last: empty for a topic name, `("*",)` for most patterns.
    """

    prefix: str
    wildcards: tuple[str, ...]
    suffix: str


def parse_character_pattern(pattern: str) -> CharacterPattern:
    """Take a character pattern apart; TopicError for a wrong escape."""
    tokens = _character_tokens(pattern)
    places = [place for place, token in enumerate(tokens) if token in _CHARACTER_WILDCARDS]
    if not places:
        return CharacterPattern(prefix=_literal(tokens), wildcards=(), suffix="")
    first, behind_last = places[0], places[-1] + 1
    return CharacterPattern(
        prefix=_literal(tokens[:first]),
        wildcards=tuple(tokens[first:behind_last]),
        suffix=_literal(tokens[behind_last:]),
    )


def literal_texts(parsed: CharacterPattern) -> Iterator[str]:
    """The unescaped texts between the wildcards of a character pattern."""
    for is_wildcard, tokens in groupby(parsed.wildcards, _CHARACTER_WILDCARDS.__contains__):
        if not is_wildcard:
            yield _literal(tokens)


def literal_prefix(character_pattern: str) -> tuple[str, bool]:
    """The unescaped text before the first wildcard, and whether that is the whole pattern."""
    parsed = parse_character_pattern(character_pattern)
    return parsed.prefix, not parsed.wildcards


def matches(pattern: str, topic: str, scheme: Scheme) -> bool:
    """Whether a topic name matches a pattern; TopicError for a character pattern with a wrong escape."""
    if scheme is Scheme.CHARACTER:
        return _character_expression(pattern).match(topic) is not None
    if scheme is Scheme.MQTT and topic.startswith("$") and pattern[:1] in _TOPIC_WILDCARDS:
        return False
    return levels_match(pattern.split("/"), topic.split("/"))


def compile_character_pattern(pattern: str) -> re.Pattern[str]:
    """The regular expression of a character pattern; it does not backtrack over earlier `*` (atomic groups)."""
    pieces = [""]
    for token in _character_tokens(pattern):
        if token == "*":
            pieces.append("")
        else:
            pieces[-1] += "." if token == "?" else re.escape(_literal([token]))
    first, *rest = pieces
    if not rest:
        return re.compile(rf"{first}\Z", re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    return re.compile(rf"{first}{middle}.*{rest[-1]}\Z", re.DOTALL)


_character_expression = lru_cache(maxsize=_COMPILED_PATTERNS)(compile_character_pattern)


def _character_tokens(pattern: str) -> list[str]:
    tokens = _CHARACTER_TOKEN.findall(pattern)
    if sum(map(len, tokens)) != len(pattern):
        raise topic_error(pattern, "holds % before something that is not *, ? or %")
    return tokens


def _literal(tokens: Iterable[str]) -> str:
    return "".join(token[1:] if token[0] == "%" else token for token in tokens)


def levels_match(pattern: list[str], topic: list[str]) -> bool:
    """Whether a topic matches a pattern of the topic scheme, level by level.

    Each `#` takes as few levels as will do, as in a glob, so the time is bounded by levels times levels.
    """
    at_pattern = at_topic = 0
    retry: tuple[int, int] | None = None
    while at_topic < len(topic) or at_pattern < len(pattern):
        if at_pattern < len(pattern) and pattern[at_pattern] == "#":
            at_pattern += 1
            if at_pattern == len(pattern):
                return True
            retry = (at_pattern, at_topic)
        elif at_pattern < len(pattern) and at_topic < len(topic) and pattern[at_pattern] in ("+", topic[at_topic]):
            at_pattern, at_topic = at_pattern + 1, at_topic + 1
        elif retry is None or retry[1] >= len(topic):
            return False
        else:
            retry = (retry[0], retry[1] + 1)
            at_pattern, at_topic = retry
    return True

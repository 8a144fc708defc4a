"""Topic names and filters: escapes, MQTT's rules, and the translation of patterns between wildcard schemes.

In MQRFH `%`, `*` and `?` in a topic name are escaped. A translated pattern matches every topic that the original
matches. Where it matches more, the receiver checks each topic again with `matches`. Matching itself is in `wildcards`,
and can be imported from here too; the index of many patterns is in `pattern_index`, which few processes need.
Sources: IBM MQ documentation, "Wildcard schemes"; MQTT 3.1.1 section 4.7.
"""

import re

from mappings.topics.wildcards import (
    Scheme,
    TopicError,
    literal_prefix,
    matches,
    topic_error,
)

__all__ = [
    "Scheme",
    "TopicError",
    "character_patterns",
    "check_mqtt_topic_filter",
    "check_mqtt_topic_name",
    "escape_topic",
    "level_pattern",
    "literal_prefix",
    "matches",
    "topic_error",
    "topic_filter_for",
    "unescape_topic",
    "why_character_patterns_are_wider",
    "why_topic_filter_is_wider",
]

MAXIMUM_MQTT_BYTES = 65_535  # MQTT 3.1.1 section 1.5.3, the length of a UTF-8 string has two bytes

_ESCAPED = re.compile(r"%([*?%])|([^*?%]+)", re.DOTALL)
_WILDCARDS = frozenset({"+", "#"})
_TO_ESCAPE = re.compile(r"[*?%]")


def escape_topic(topic: str) -> str:
    """A topic name as MQRFH writes it: `%`, `*` and `?` become `%%`, `%*` and `%?`."""
    return _TO_ESCAPE.sub(r"%\g<0>", topic)


def unescape_topic(text: str) -> str:
    """The topic name that MQRFH text stands for; TopicError for a bare wildcard or a wrong escape."""
    if not _TO_ESCAPE.search(text):
        return text
    found = list(_ESCAPED.finditer(text))
    if sum(len(match[0]) for match in found) != len(text):
        raise topic_error(text, "must be a name: write %*, %? and %% for *, ? and %")
    return "".join(match[1] or match[2] for match in found)


def check_mqtt_topic_name(text: str) -> None:
    """TopicError unless the text can be the topic name of an MQTT PUBLISH (MQTT 3.1.1 section 4.7)."""
    _check_mqtt_text(text)
    if "+" in text or "#" in text:
        raise topic_error(text, "is a topic name and must not hold + or #")


def check_mqtt_topic_filter(text: str) -> None:
    """TopicError unless the text is a topic filter of MQTT (MQTT 3.1.1 section 4.7.1)."""
    _check_mqtt_text(text)
    levels = text.split("/")
    if "#" in levels[:-1]:
        raise topic_error(text, "holds # before the last level")
    if any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise topic_error(text, "holds + or # beside other characters of a level")


def character_patterns(topic_filter: str) -> tuple[str, ...]:
    """Patterns of the character scheme that together match at least what the filter matches.

    Where they match more, the receiver checks each topic again with `matches`. `a/#` gives two: `a` and `a/*`.
    """
    if not topic_filter:
        raise topic_error(topic_filter, "is empty")
    levels = _without_repeated_hashes(topic_filter.split("/"))
    if levels[-1] != "#":
        return (_character_pattern(levels),)
    parents = levels[:-1]
    if not parents:
        return ("*",)
    parent = _character_pattern(parents)
    if parents[-1] == "+":
        return (parent,)
    return (parent, f"{parent}/*") if parent else ("/*",)


def level_pattern(character_pattern: str) -> str | None:
    """A pattern of the topic scheme between an MQTT filter and the character pattern that `character_patterns` gave.

    It matches what the filter does, and nothing that the character pattern does not. So whoever checks each topic again
    with the filter may look it up by levels. None if a wildcard is a part of a level: such a pattern was no filter.
    """
    found: list[str] = []
    for level in character_pattern.split("/"):
        if level == "*":
            found.append("+")
            continue
        text, is_whole = literal_prefix(level)
        if not is_whole or text in _WILDCARDS:
            return None
        found.append(text)
    return "/".join([*found, "#"] if found[-1] == "+" else found)


def why_character_patterns_are_wider(topic_filter: str) -> str:
    """Why `character_patterns` match more than the filter does; empty where they match the same topics."""
    levels = topic_filter.removesuffix("/#").split("/")
    is_exact = topic_filter == "#" or _WILDCARDS.isdisjoint(levels)
    return "" if is_exact else "* matches / too, and + does not"


def topic_filter_for(character_pattern: str) -> str:
    """A filter of the topic scheme that matches at least what the character pattern matches.

    The pattern is cut back to the last `/` before its first wildcard, because `*` and `?` match `/` too and `+` never
    does. Raises TopicError when `+` or `#` would have to be literal, or for a wrong escape.
    """
    if not character_pattern:
        raise topic_error(character_pattern, "is empty")
    prefix, exact = literal_prefix(character_pattern)
    if "+" in prefix or "#" in prefix:
        raise topic_error(character_pattern, "holds + or #, which the topic scheme cannot say literally")
    if exact:
        return prefix
    parent, slash, _ = prefix.rpartition("/")
    return f"{parent}/#" if slash else "#"


def why_topic_filter_is_wider(character_pattern: str) -> str:
    """Why `topic_filter_for` matches more than the pattern does; empty where it matches the same topics."""
    is_exact = character_pattern == "*" or literal_prefix(character_pattern)[1]
    return "" if is_exact else "* and ? match / too, so the filter is cut back to the last / in front of them"


def _check_mqtt_text(text: str) -> None:
    if not text:
        raise topic_error(text, "is empty")
    if "\0" in text:
        raise topic_error(text, "holds U+0000")
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise topic_error(text, "holds half a surrogate pair, which UTF-8 cannot carry") from None
    if length > MAXIMUM_MQTT_BYTES:
        raise topic_error(text, f"has {length} bytes, and MQTT carries {MAXIMUM_MQTT_BYTES}")


def _without_repeated_hashes(levels: list[str]) -> list[str]:
    return [level for index, level in enumerate(levels) if level != "#" or levels[index - 1 : index] != ["#"]]


def _character_pattern(levels: list[str]) -> str:
    """The levels in the character scheme; a `#` inside takes the slash behind it along."""
    text = ""
    for index, level in enumerate(levels):
        last = index == len(levels) - 1
        if level == "#":
            text += "*"
            continue
        text += ("*" if level == "+" else escape_topic(level)) + ("" if last else "/")
    return re.sub(r"(?<!%)\*\*+", "*", text)

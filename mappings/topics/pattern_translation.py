"""Translates a topic pattern to another wildcard scheme, and says how well the result fits.

A translated pattern never matches less than the original. Where it matches more, the receiver checks each topic again
with the original pattern. Some patterns cannot be expressed in the other scheme at all; then the reason is given.
Sources: IBM MQ documentation, "Wildcard schemes" and "Proxy subscriptions"; MQTT 3.1.1 section 4.7.
"""

from dataclasses import dataclass
from enum import StrEnum

from mappings.topics.topics import (
    Scheme,
    TopicError,
    character_patterns,
    check_mqtt_topic_filter,
    topic_filter_for,
)
from mappings.topics.wildcards import parse_character_pattern

_WILDCARDS = frozenset({"+", "#"})
_DOLLAR_RULE = "an MQTT filter that begins with a wildcard does not match topics that begin with $"


class Fit(StrEnum):
    """How the topics that a translated pattern matches compare with those of the original."""

    EXACT = "exact"
    SUPERSET = "superset"  # every delivered topic must be checked again with the original pattern
    CANNOT_BE_EXPRESSED = "cannot be expressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedPattern:
    """The patterns that together replace the original, none where it cannot be expressed; their fit, and why."""

    patterns: tuple[str, ...]
    fit: Fit
    reason: str


def translate_pattern(pattern: str, source: Scheme, target: Scheme) -> TranslatedPattern:
    """The pattern in another scheme; a pattern that is wrong in its own scheme raises TopicError."""
    if source is Scheme.MQTT:
        check_mqtt_topic_filter(pattern)
    if source is target:
        return _exact((pattern,))
    if source is Scheme.CHARACTER:
        parse_character_pattern(pattern)
        return _from_character(pattern, target)
    if target is Scheme.CHARACTER:
        return _to_character(pattern, source)
    return _to_topic(pattern) if target is Scheme.TOPIC else _to_mqtt(pattern)


def _from_character(pattern: str, target: Scheme) -> TranslatedPattern:
    try:
        topic_filter = topic_filter_for(pattern)
    except TopicError as problem:
        return _not_expressible(problem.hint)
    wildcards = parse_character_pattern(pattern).wildcards
    if target is Scheme.MQTT:
        if topic_filter[:1] in _WILDCARDS:
            return _not_expressible(_DOLLAR_RULE)
        try:
            check_mqtt_topic_filter(topic_filter)
        except TopicError as problem:
            return _not_expressible(problem.hint)
    if not wildcards or pattern == "*":
        return _exact((topic_filter,))
    return _superset((topic_filter,), "* and ? match / too, so the filter is cut back to the last / in front of them")


def _to_character(pattern: str, source: Scheme) -> TranslatedPattern:
    patterns = character_patterns(pattern)
    levels = pattern.split("/")
    begins_with_wildcard = levels[0] in _WILDCARDS
    if source is Scheme.MQTT and begins_with_wildcard:
        return _superset(patterns, _DOLLAR_RULE)
    if _WILDCARDS.isdisjoint(levels) or (levels[-1] == "#" and _WILDCARDS.isdisjoint(levels[:-1])):
        return _exact(patterns)
    return _superset(patterns, "* matches / too, and + does not")


def _to_topic(pattern: str) -> TranslatedPattern:
    if pattern[:1] in _WILDCARDS:
        return _superset((pattern,), _DOLLAR_RULE)
    return _exact((pattern,))


def _to_mqtt(pattern: str) -> TranslatedPattern:
    levels = pattern.split("/")
    if levels[0] in _WILDCARDS:
        return _not_expressible(_DOLLAR_RULE)
    place = levels.index("#") if "#" in levels else len(levels)
    cut = "/".join(levels[: place + 1])
    try:
        check_mqtt_topic_filter(cut)
    except TopicError as problem:
        return _not_expressible(problem.hint)
    if place < len(levels) - 1:
        return _superset((cut,), "MQTT has # as the last level only")
    return _exact((cut,))


def _exact(patterns: tuple[str, ...]) -> TranslatedPattern:
    return TranslatedPattern(patterns=patterns, fit=Fit.EXACT, reason="it matches the same topics")


def _superset(patterns: tuple[str, ...], reason: str) -> TranslatedPattern:
    return TranslatedPattern(patterns=patterns, fit=Fit.SUPERSET, reason=reason)


def _not_expressible(reason: str) -> TranslatedPattern:
    return TranslatedPattern(patterns=(), fit=Fit.CANNOT_BE_EXPRESSED, reason=reason)

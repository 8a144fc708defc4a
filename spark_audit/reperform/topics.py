"""Topic text in the character scheme of MQRFH: escapes, and the patterns that stand for a topic filter.

Source: WebSphere MQ V6 Publish/Subscribe User's Guide, "Wildcard characters"; MQTT 3.1.1 section 4.7.
"""

from collections.abc import Iterator, Sequence

from spark_audit.reperform.comparison import UnreadableBytes

_SPECIAL = "%*?"
#: Sample levels for `+` and `#`, for the check that a set of patterns covers a filter.
_LEVEL_SAMPLES = ("x", "", "p%q*r?")
_TREE_SAMPLES = ("", "/x", "/x/y", "//")
_SAMPLES_LIMIT = 200


def escaped(topic: str) -> str:
    return "".join(f"%{character}" if character in _SPECIAL else character for character in topic)


def unescaped(text: str) -> str:
    """The topic that an escaped text names. UnreadableBytes if a wildcard or a percent sign stands alone."""
    plain: list[str] = []
    characters = iter(text)
    for character in characters:
        if character in "*?":
            raise UnreadableBytes(f"wildcard {character} in a topic name")
        meant = next(characters, "") if character == "%" else character
        if character == "%" and (not meant or meant not in _SPECIAL):
            raise UnreadableBytes("% escapes nothing in the topic")
        plain.append(meant)
    return "".join(plain)


def character_patterns(topic_filter: str) -> tuple[str, ...]:
    """Character patterns that together match at least the topics of the filter."""
    levels = topic_filter.split("/")
    has_tree = levels[-1] == "#"
    kept = levels[:-1] if has_tree else levels
    base = "/".join("*" if level == "+" else escaped(level) for level in kept)
    if not has_tree:
        return (base,)
    if not kept or kept[-1] == "+":
        return (base or "*",)  # the last `*` matches `/` too
    return base, f"{base}/*"


def topic_filter_of(pattern: str) -> str:
    """The narrowest filter of the topic scheme that matches all topics of a character pattern.

    `*` and `?` match `/` too, so everything from the level of the first of them on becomes `#`.
    """
    plain: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character in "*?":
            parents = "".join(plain).rpartition("/")
            return f"{parents[0]}/#" if parents[1] else "#"
        plain.append(next(characters, "") if character == "%" else character)
    return "".join(plain)


def covers(patterns: tuple[str, ...], topic_filter: str) -> bool:
    """Whether one of the patterns matches each sample topic of the filter."""
    read = [read_characters(pattern) for pattern in patterns]
    return all(any(characters_match(pattern, topic) for pattern in read) for topic in _samples(topic_filter))


def read_characters(pattern: str) -> list[str]:
    """The characters of a pattern, wildcards as themselves and each escaped character with its percent sign."""
    read: list[str] = []
    characters = iter(pattern)
    for character in characters:
        read.append(f"%{next(characters, '%')}" if character == "%" else character)
    return read


def characters_match(pattern: Sequence[str], topic: str) -> bool:
    """Compares by going back only to the last `*`. So no pattern takes longer than its length times the topic's."""
    at = here = 0
    star = resume = -1
    while here < len(topic):
        if at < len(pattern) and pattern[at] == "*":
            star, resume, at = at, here, at + 1
        elif at < len(pattern) and (pattern[at] == "?" or pattern[at][-1] == topic[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            resume += 1
            at, here = star + 1, resume
        else:
            return False
    return all(each == "*" for each in pattern[at:])


def _samples(topic_filter: str) -> Iterator[str]:
    bases = [""]
    for index, level in enumerate(topic_filter.split("/")):
        if level == "#":
            bases = [base + tree for base in bases for tree in _TREE_SAMPLES]
            break
        choices = _LEVEL_SAMPLES if level == "+" else (level,)
        slash = "/" if index else ""
        bases = [base + slash + choice for base in bases for choice in choices][:_SAMPLES_LIMIT]
    return (base for base in bases if base)

"""The NameValueString of an MQRFH: names and values, separated by blanks, quoted where needed.

Grammar (after decoding): items alternate name, value, name, value; one or more blanks separate them; an item with a
blank or a double quote in it is quoted, and a quote inside is doubled; NUL ends the string. Only the blank separates:
tab, CR and LF are ordinary characters. Source: IBM MQ documentation, "NameValueString (MQCHARn)" of MQRFH.
"""

import re

from mappings.errors import NameValueError
from mappings.reasons import Reason

NameValues = tuple[tuple[str, str], ...]

# Possessive quantifiers keep this linear on any input.
_ITEM = re.compile(r' *+(?:"([^"]*+(?:""[^"]*+)*+)"|([^ "]++))(?= |\Z)')
_NEEDS_QUOTES = re.compile(r'[ "]')


def parse_name_value_string(text: str) -> NameValues:
    """The pairs of a NameValueString in order, unquoted, repeats kept.

    Raises NameValueError (MQRC_RFH_STRING_ERROR) with `error_position` where a quote is wrong or a value is missing.
    """
    significant = text.partition("\0")[0]
    items = unambiguous_items(significant)
    if items is None:
        items = _unquoted_items(significant)
    if len(items) % 2:
        raise _string_error(f"the name {items[-1]!a} has no value", position=len(significant))
    return tuple(zip(items[::2], items[1::2], strict=True))


def unambiguous_items(text: str) -> list[str] | None:
    """The items of a string by cutting it at its quotes and blanks alone, each once.

    None where that does not account for every character: a NUL, a doubled quote, a quote that does not stand between
    blanks or is not closed. Whether that is an error is for `parse_name_value_string` to say.
    """
    if '"' not in text:
        return None if "\0" in text else [item for item in text.split(" ") if item]
    segments = text.split('"')  # outside, quoted, outside, quoted, ... outside
    last = len(segments) - 1
    if last % 2 or "\0" in text:
        return None
    items: list[str] = []
    for index, segment in enumerate(segments):
        if index % 2:
            items.append(segment)
        elif _stands_between(segment, first=index == 0, last=index == last):
            items += [item for item in segment.split(" ") if item]
        else:
            return None
    return items


def _stands_between(segment: str, *, first: bool, last: bool) -> bool:
    """Whether blanks separate what stands outside quotes from the quotes beside it."""
    if not segment:
        return first or last
    return (first or segment[0] == " ") and (last or segment[-1] == " ")


def name_positions(text: str) -> tuple[int, ...]:
    """Zero-based position of each name of a string that parses: what a response gives as MQPSErrorPos."""
    positions = [match.end() - len(match[0].lstrip(" ")) for match in _matches(text.partition("\0")[0])]
    return tuple(positions[::2])


def format_name_value_string(pairs: NameValues) -> str:
    """The string of some pairs: single blanks, quotes only where they are needed.

    Raises NameValueError (MQRC_RFH_STRING_ERROR) for NUL, which the grammar cannot hold.
    """
    return " ".join(f"{_quote(name)} {_quote(value)}" for name, value in pairs)


def _unquoted_items(text: str) -> list[str]:
    items = []
    for match in _matches(text):
        quoted, bare = match.groups()
        items.append(bare if quoted is None else quoted.replace('""', '"'))
    return items


def _matches(text: str) -> list[re.Match[str]]:
    end = len(text.rstrip(" "))
    found = []
    position = 0
    while position < end:
        match = _ITEM.match(text, position)
        if match is None:
            raise _string_error(
                "a double quote is not closed, or stands inside an item", position=_after_blanks(text, position)
            )
        found.append(match)
        position = match.end()
    return found


def _after_blanks(text: str, position: int) -> int:
    return len(text) - len(text[position:].lstrip(" "))


def _quote(item: str) -> str:
    if "\0" in item:
        raise NameValueError(
            Reason.MQRC_RFH_STRING_ERROR, "NUL ends a NameValueString and cannot be part of it", parameter=item
        )
    if item and not _NEEDS_QUOTES.search(item):
        return item
    doubled = item.replace('"', '""')
    return f'"{doubled}"'


def _string_error(problem: str, *, position: int) -> NameValueError:
    return NameValueError(
        Reason.MQRC_RFH_STRING_ERROR,
        f"NameValueString, position {position}: {problem}; quote items that hold blanks and double inner quotes",
        error_position=position,
    )

"""The NameValueString of MQRFH: names and values in turn, separated by blanks, quoted where they need it.

Source: IBM MQ, "NameValueString (MQCHARn)": NUL ends the string; blanks alone separate; in quotes, a quote is doubled.
"""

import re

from spark_audit.reperform.outcome import UnreadableBytes
from spark_audit.reperform.reason import Reason

_ITEM = re.compile(r'"((?:[^"]|"")*)"(?= |$)|([^ "]+)(?= |$)')


def read_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs in order."""
    text = text.partition("\0")[0]
    items: list[str] = []
    offset = 0
    while offset < len(text):
        if text[offset] == " ":
            offset += 1
            continue
        item = _ITEM.match(text, offset)
        if item is None:
            raise UnreadableBytes("the NameValueString is broken", offset, Reason.MQRC_RFH_STRING_ERROR)
        items.append(item[2] if item[1] is None else item[1].replace('""', '"'))
        offset = item.end()
    if len(items) % 2:
        raise UnreadableBytes("the last name has no value", len(text), Reason.MQRC_RFH_STRING_ERROR)
    return tuple(zip(items[::2], items[1::2], strict=True))


def written_pairs(pairs: tuple[tuple[str, str], ...]) -> str:
    """The string: single blanks between items, quotes only where an item has a blank or a quote, or is empty."""
    return " ".join(_written(item) for pair in pairs for item in pair)


def _written(item: str) -> str:
    if item and " " not in item and '"' not in item:
        return item
    doubled = item.replace('"', '""')
    return f'"{doubled}"'

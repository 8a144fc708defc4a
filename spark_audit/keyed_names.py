"""Keyed names: the names behind the hashes of a keyed trail, found in the header of the same record.

Nobody can undo a hash, but the key tells whether a given name has that hash. A decrypted header has client, user and
topics in clear. A name whose hash stands in the record replaces the hash, and the conversion can be performed again. If
the header carries another client or user, the record keeps the hash, and re-performance reports it.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from spark_audit.personal import NAME_PREFIX, PersonalKey
from spark_audit.reperform.comparison import UnreadableBytes
from spark_audit.reperform.header import Surroundings
from spark_audit.reperform.meaning import Meaning, read_meaning
from spark_audit.reperform.mqtt import SUBSCRIBE, UNSUBSCRIBE, read_filter
from spark_audit.reperform.target import read_carrier, stream_prefix
from spark_audit.reperform.topics import escaped, topic_filter_of

NAMES: Final = ("client", "user", "topic", "topic_filters")
_CARRIED: Final = {"client": "rfhbClient", "user": "rfhbUser"}


class UnknownName(ValueError):
    """The header lacks a name that is needed."""


def names_in_clear(record: Mapping[str, Any], key: PersonalKey) -> dict[str, Any]:
    """The names of a decrypted record in clear, from its header. Raises UnknownName.

    A header that cannot be read gives no names, and re-performance reports its fault.
    """
    side = "output" if record["conversion"] == "packet_to_header" else "input"
    try:
        meaning = read_meaning(base64.b64decode(record[side] or "", validate=True), _described(record, side))
        carried = dict(read_carrier(meaning.folders, meaning.unmapped))
    except (UnreadableBytes, binascii.Error, ValueError, LookupError):
        return {}
    prefix = stream_prefix(record["stream"] or "", record["stream_style"] or "")
    clear: dict[str, Any] = {}
    if record["destination"] and record["command"] == "Publish":
        clear |= _carried(record, carried, key)
    topics = {key.name(topic): topic for topic in _topics(meaning, prefix)}
    if record["topic"] in topics:
        clear["topic"] = topics[record["topic"]]
    if record["topic_filters"]:
        filters = {key.name(each): each for each in (*_filters(meaning, prefix), *_packet_filters(record))}
        clear["topic_filters"] = [_known(filters, each) for each in record["topic_filters"]]
    return clear


def _described(record: Mapping[str, Any], side: str) -> Surroundings:
    return Surroundings(
        format=record[f"{side}_format"] or "",
        coded_char_set_id=record[f"{side}_ccsid"] or 0,
        encoding=record[f"{side}_encoding"] or 0,
    )


def _carried(record: Mapping[str, Any], carried: Mapping[str, str], key: PersonalKey) -> dict[str, str]:
    clear: dict[str, str] = {}
    for field, name in _CARRIED.items():
        if not _is_hash(record[field]):
            continue
        if name not in carried:
            raise UnknownName(f"the header carries no {name}")
        if key.name(carried[name]) == record[field]:
            clear[field] = carried[name]
    return clear


def _topics(meaning: Meaning, prefix: str) -> Iterator[str]:
    for topic in meaning.values("Topic"):
        yield topic.removeprefix(prefix)


def _filters(meaning: Meaning, prefix: str) -> Iterator[str]:
    """Every filter that the topics of a subscriber's command may have been made from."""
    for written in meaning.values("Topic"):
        if meaning.version == 2:
            yield written.removeprefix(prefix)
            continue
        pattern = written.removeprefix(escaped(prefix))
        read = "/".join("+" if level == "*" else topic_filter_of(level) for level in pattern.split("/"))
        yield from (topic_filter_of(pattern), read, f"{read}/#")


def _packet_filters(record: Mapping[str, Any]) -> Iterable[str]:
    if record["packet_type"] not in (SUBSCRIBE, UNSUBSCRIBE) or not record["input"]:
        return ()
    try:
        return (read_filter(base64.b64decode(record["input"], validate=True), record["packet_type"]),)
    except (UnreadableBytes, binascii.Error, ValueError):
        return ()


def _known(names: Mapping[str, str], told: str) -> str:
    if not _is_hash(told):
        return told
    if told not in names:
        raise UnknownName("the header does not say which topic filter it was made from")
    return names[told]


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and value.startswith(NAME_PREFIX)

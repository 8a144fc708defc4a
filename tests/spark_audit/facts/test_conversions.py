"""Conversions that were right once are known again by their key, which tells all that they are judged by."""

import base64
from itertools import combinations
from typing import Any

import pytest

from spark_audit.facts.conversions import _key, decoded, keys_of

PACKET = base64.b64encode(b"\x32\x07\x00\x03a/b\x00\x07").decode()
SAME_PACKET = base64.b64encode(b"\x32\x07\x00\x03a/b\x00\x08").decode()
PUT = {
    "conversion": "packet_to_header",
    "command": "Publish",
    "topic": "a/b",
    "qos": 1,
    "packet_identifier": 7,
    "input": PACKET,
    "output": "UkZI",
}
DELIVERED = PUT | {"conversion": "header_to_packet", "input": "UkZI", "output": PACKET}
COPY = PUT | {"conversion": "header_to_header", "dropped_fields": [["a", "b"]]}
TO_TARGET = PUT | {"destination": "PLANT", "client": "pump", "exchange": 1}
REGISTERED = PUT | {"command": "RegSub", "correlation_id": "0a"}
#: Two records with the same fields, and whether one judgement holds for both.
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "the same": (PUT, dict(PUT), True),
    "packet identifiers": (PUT, PUT | {"packet_identifier": 8, "input": SAME_PACKET}, True),
    "packet identifiers of deliveries": (DELIVERED, DELIVERED | {"packet_identifier": 8, "output": SAME_PACKET}, True),
    "an identifier that the packet has not": (PUT, PUT | {"packet_identifier": 8}, False),
    "topics": (PUT, PUT | {"topic": "a/c"}, False),
    "outputs": (PUT, PUT | {"output": "UkZJ"}, False),
    "dropped fields": (COPY, COPY | {"dropped_fields": [["a", "c"]]}, False),
    "exchanges for a target": (TO_TARGET, TO_TARGET | {"exchange": 2}, False),
    "clients for a target": (TO_TARGET, TO_TARGET | {"client": "boiler"}, False),
    "subscribers": (REGISTERED, REGISTERED | {"correlation_id": "0b"}, False),
}


def columns(*records: dict[str, Any]) -> dict[str, list[Any]]:
    """The values of records with the same fields, by field."""
    return {name: [record[name] for record in records] for name in records[0]}


@pytest.mark.parametrize(("one", "other", "is_same"), PAIRS.values(), ids=PAIRS)
def test_a_key_of_columns_tells_what_the_key_of_a_record_tells(
    one: dict[str, Any], other: dict[str, Any], is_same: bool
) -> None:
    keys = keys_of(columns(one, other))
    assert keys is not None
    assert (keys[0] == keys[1]) is is_same
    assert (_key(one) == _key(other)) is is_same


def test_records_with_other_fields_have_other_keys() -> None:
    told = [PUT, TO_TARGET, REGISTERED, PUT | {"retain": True}, PUT | {"granted_qos": True}]
    keys = [keys_of(columns(each)) for each in told]
    assert all(one != other for one, other in combinations(keys, 2))


@pytest.mark.parametrize("other", [PUT | {"conversion": "service"}, PUT | {"input": "e:UkZI"}], ids=["kind", "sealed"])
def test_records_that_differ_in_kind_or_cannot_be_read_are_looked_at_one_by_one(other: dict[str, Any]) -> None:
    assert keys_of(columns(PUT, other)) is None


@pytest.mark.parametrize("text", ["", "UkZI", "UkY=", "Ug==", "UkZI=", "UkZI===", "UkY", "=", "U kZI", "é", "UkZI\n"])
def test_base64_is_read_as_strictly_as_by_a_look_at_its_characters(text: str) -> None:
    try:
        wanted: bytes | None = base64.b64decode(text, validate=True)
    except ValueError:
        wanted = None
    try:
        read: bytes | None = decoded(text)
    except ValueError:
        read = None
    assert read == wanted

"""Structures at every version, laid out by their offsets; versions, lengths and offsets that lie."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from mq_adapters.client_channel.charv import Charv
from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.segments import ByteOrder
from mq_adapters.client_channel.structures import Fopa, Mqgmo, Mqod, Mqpmo, Mqsd
from tests.every_case import for_every
from tests.mq_adapters.client_channel.layouts import STRUCTURES, Layout

BIG, LITTLE = ByteOrder
_ROUNDS = 300


def _read(layout: Layout, data: bytes, order: ByteOrder = BIG) -> Any:
    return type(layout.value).read(BodyReader(data, order))


@for_every(STRUCTURES)
def test_a_structure_is_read_and_written_in_both_byte_orders(layout: Layout) -> None:
    for order in ByteOrder:
        data = layout.data(order)
        assert _read(layout, data, order) == layout.value
        assert _read(layout, data, order).write(order) == data
        made = layout.value.write(order)
        assert (len(made), _read(layout, made, order)) == (layout.length, layout.value)


@for_every(STRUCTURES)
def test_a_structure_stands_anywhere_and_what_is_behind_it_is_left(layout: Layout) -> None:
    body = BodyReader(b"before" + layout.data(BIG) + b"behind", BIG, 6)
    assert type(layout.value).read(body) == layout.value
    assert body.rest() == b"behind"


@for_every(STRUCTURES)
def test_a_structure_is_refused_at_every_shorter_length(layout: Layout) -> None:
    data = layout.data(BIG)
    for length in range(layout.length - layout.filler):
        with pytest.raises(ChannelProtocolError):
            _read(layout, data[:length])
    assert _read(layout, data[: layout.length - layout.filler]) == layout.value


@for_every(STRUCTURES)
def test_a_version_that_is_not_known_is_refused(layout: Layout) -> None:
    data = layout.data(BIG)
    for version in (0, type(layout.value).HIGHEST_VERSION + 1, -1, 2**31 - 1):
        with pytest.raises(ChannelProtocolError) as refused:
            _read(layout, data[:4] + version.to_bytes(4, "big", signed=True) + data[8:] + bytes(400))
        assert refused.value.status_code is StatusCode.PROTOCOL_INVALID_DATA


@for_every(STRUCTURES)
def test_another_identifier_is_refused(layout: Layout) -> None:
    with pytest.raises(ChannelProtocolError):
        _read(layout, b"XX  " + layout.data(BIG)[4:])


@for_every(STRUCTURES)
def test_wrong_bytes_end_in_a_value_or_in_our_error(layout: Layout) -> None:
    for data in _damaged(layout.data(BIG)):
        try:
            value = _read(layout, data)
        except ChannelProtocolError:
            continue
        assert len(value.write(BIG)) <= len(data)


def _damaged(data: bytes) -> Iterator[bytes]:
    random = Random(1)
    for _ in range(_ROUNDS):
        wrong = bytearray(data)
        for _ in range(random.randint(1, 4)):
            wrong[random.randrange(len(wrong))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        yield bytes(wrong)


@pytest.mark.parametrize(
    ("offset", "length"),
    [(399, 1), (0, 4), (-4, 4), (400, 9), (408, 1), (400, -1), (2**31 - 1, 1), (400, 2**31 - 1), (396, 8)],
)
def test_a_string_outside_the_bytes_behind_its_structure_is_refused(offset: int, length: int) -> None:
    layout = STRUCTURES["MQOD 4 without strings"]
    data = replace(layout, length=408, parts={**layout.parts, 340: offset, 348: length}).data(BIG)
    with pytest.raises(ChannelProtocolError):
        _read(layout, data)


def test_lists_of_objects_and_of_records_are_refused() -> None:
    for name, at in (("MQOD 2", 168), ("MQPMO 2", 128)):
        layout = STRUCTURES[name]
        with pytest.raises(ChannelProtocolError, match="recs_present"):
            _read(layout, replace(layout, parts={**layout.parts, at: 1}).data(BIG))


def test_a_changed_structure_keeps_its_version_and_its_length() -> None:
    for name in ("MQOD 1", "MQOD 2", "MQOD 4 with strings"):
        layout = STRUCTURES[name]
        changed = replace(_read(layout, layout.data(LITTLE), LITTLE), object_name="OTHER", resolved_q_name="BASE")
        written = changed.write(LITTLE)
        assert len(written) == layout.length
        assert written[4:8] == layout.data(LITTLE)[4:8]
        assert written[12:60] == b"OTHER".ljust(48)


def test_strings_stay_where_they_came_while_none_of_them_changes() -> None:
    layout = STRUCTURES["MQOD 4 with strings"]
    kept = {offset: part for offset, part in layout.parts.items() if offset < 400}
    moved = {**kept, 340: 416, 360: 400, 400: b"colour='blue' \0\0", 416: b"plant/x\0"}
    data = replace(layout, parts=moved).data(BIG)
    read = _read(layout, data)
    assert read == layout.value
    assert replace(read, object_name="OTHER").write(BIG) == data[:12] + b"OTHER".ljust(48) + data[60:]
    longer = replace(read, object_string=Charv(value=b"plant/other"))
    assert Mqod.read(BodyReader(longer.write(BIG), BIG)) == longer


def test_a_string_that_is_returned_stands_behind_the_others() -> None:
    layout = STRUCTURES["MQSD"]
    read = _read(layout, layout.data(BIG))
    resolved = replace(read, res_object_string=Charv(value=b"plant/pump 7/#"))
    written = resolved.write(BIG)
    assert Mqsd.read(BodyReader(written, BIG)) == resolved
    assert len(written) == layout.length + 16


@pytest.mark.parametrize("length", [0, 12, 27, -1, 2**31 - 1])
def test_a_fopa_whose_length_lies_is_refused(length: int) -> None:
    layout = STRUCTURES["FOPA"]
    with pytest.raises(ChannelProtocolError):
        _read(layout, replace(layout, parts={**layout.parts, 8: length}).data(BIG))


def test_what_a_program_leaves_out_is_as_ibms_defaults() -> None:
    assert Mqgmo(version=2).match_options == 3
    assert (Mqpmo().timeout, Mqsd().sub_expiry, Mqsd().pub_priority, Mqsd().sub_level) == (-1, -1, -3, 1)
    assert Fopa().def_put_response == 1

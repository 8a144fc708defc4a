"""Tables of fields: a made-up record in both byte orders, and values that have no place."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from mq_adapters.client_channel.errors import ChannelProtocolError, UsageError
from mq_adapters.client_channel.fields import (
    BodyReader,
    Record,
    byte,
    integer,
    long,
    octets,
    reserved,
    short,
    text,
    unsigned,
    write_integers,
)
from mq_adapters.client_channel.segments import ByteOrder

BIG, LITTLE = ByteOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Made(Record):
    STRUC_ID: ClassVar[bytes] = b"MADE"

    number: int = integer(7)
    large: int = unsigned()
    two: int = short()
    one: int = byte(behind=1)
    eight: int = long(-1)
    name: str = text(4)
    identifier: bytes = octets(2)
    unknown: bytes = reserved(1)
    always_zero: int = integer(must_be_zero=True)


MADE = Made(large=0xFFFFFFFF, two=258, one=3, name="ab", identifier=b"\x01\x02", unknown=b"x")
IN_ORDER = {
    BIG: "4D414445 00000007 FFFFFFFF 0102 00 03 FFFFFFFFFFFFFFFF 61622020 0102 78 00000000",
    LITTLE: "4D414445 07000000 FFFFFFFF 0201 00 03 FFFFFFFFFFFFFFFF 61622020 0102 78 00000000",
}


@pytest.mark.parametrize("order", ByteOrder)
def test_a_record_is_read_and_written_by_its_table(order: ByteOrder) -> None:
    data = bytes.fromhex(IN_ORDER[order])
    assert Made.read(BodyReader(data, order)) == MADE
    assert MADE.write(order) == data


def test_a_record_is_refused_at_every_shorter_length() -> None:
    data = bytes.fromhex(IN_ORDER[BIG])
    for length in range(len(data)):
        with pytest.raises(ChannelProtocolError):
            Made.read(BodyReader(data[:length], BIG))


def test_another_eye_catcher_is_refused() -> None:
    with pytest.raises(ChannelProtocolError, match="MADE begins with 4d414446"):
        Made.read(BodyReader(b"MADF" + bytes(40), BIG))


def test_a_field_that_must_be_zero_is_refused_otherwise() -> None:
    with pytest.raises(ChannelProtocolError, match="always_zero 1"):
        Made.read(BodyReader(bytes.fromhex(IN_ORDER[BIG])[:-1] + b"\1", BIG))


@pytest.mark.parametrize(
    "made",
    [
        Made(name="abcde"),
        Made(name="\u20ac"),
        Made(number=2**31),
        Made(large=-1),
        Made(two=65_536),
        Made(identifier=b"\1"),
    ],
    ids=["a long text", "no letter of ISO 8859-1", "too high", "negative", "no short", "no identifier"],
)
def test_a_value_without_a_place_is_our_own_mistake(made: Made) -> None:
    with pytest.raises(UsageError):
        made.write(BIG)


def test_a_text_ends_at_its_first_nul_and_has_no_blanks_behind() -> None:
    data = bytes.fromhex(IN_ORDER[BIG]).replace(b"ab  ", b"a \0z")
    assert Made.read(BodyReader(data, BIG)).name == "a"
    assert Made(name="\xe9").write(BIG)[-11:-7] == b"\xe9   "


def test_integers_are_counted_before_they_are_read() -> None:
    body = BodyReader(write_integers(LITTLE, 1, -2, 3), LITTLE)
    assert body.integers(2, "two") == (1, -2)
    for count in (-1, 2, 2**31 - 1):
        with pytest.raises(ChannelProtocolError):
            body.integers(count, "too many")
    assert body.integer("one") == 3
    assert (body.left, body.rest()) == (0, b"")
    with pytest.raises(UsageError):
        write_integers(BIG, 2**31)

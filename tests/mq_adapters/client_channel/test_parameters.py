"""Parameters of calls: a made-up call by its table of parts."""

from dataclasses import dataclass

import pytest

from mq_adapters.client_channel.errors import ChannelProtocolError, UsageError
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.parameters import (
    NOTHING,
    Nothing,
    Parameters,
    Unknown,
    message_data,
    number,
    rest,
    structure,
)
from mq_adapters.client_channel.segments import ByteOrder
from mq_adapters.client_channel.structures import Fopa

BIG, LITTLE = ByteOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Made(Parameters):
    number: int = number(7)
    fopa: Fopa = structure(Fopa)
    data: bytes = message_data()
    behind: bytes = rest()


DATA = "00000007 464F5041 00000001 0000001C 00000000 00000001 00000000 00000000 00000002 4142 0000 FF"
MADE = Made(fopa=Fopa(), data=b"AB", behind=b"\0\0\xff")


def test_parts_are_read_in_their_order() -> None:
    assert Made.read(BodyReader(bytes.fromhex(DATA), BIG)) == MADE


def test_parts_are_written_in_their_order_and_data_are_filled_up() -> None:
    assert Made(fopa=Fopa(), data=b"AB", behind=b"\xff").write(BIG) == bytes.fromhex(DATA)


def test_a_call_is_refused_at_every_length_that_cuts_its_parts() -> None:
    for length in range(38):
        with pytest.raises(ChannelProtocolError):
            Made.read(BodyReader(bytes.fromhex(DATA)[:length], BIG))


@pytest.mark.parametrize("length", [-1, 6, 2**31 - 1])
def test_a_length_of_data_that_lies_is_refused(length: int) -> None:
    lying = bytes.fromhex(DATA)[:32] + length.to_bytes(4, "big", signed=True) + b"AB\0\0\xff"
    with pytest.raises(ChannelProtocolError):
        Made.read(BodyReader(lying, BIG))


def test_a_number_without_a_place_is_our_own_mistake() -> None:
    with pytest.raises(UsageError):
        Made(number=2**31, fopa=Fopa()).write(LITTLE)


def test_a_call_without_parameters_reads_nothing_and_an_unknown_one_all() -> None:
    body = BodyReader(b"rest of a buffer", BIG)
    assert Nothing.read(body) == NOTHING
    assert Unknown.read(body) == Unknown(data=b"rest of a buffer")
    assert (NOTHING.write(BIG), Unknown(data=b"x").write(BIG)) == (b"", b"x")


def test_the_data_of_a_message_are_never_shown() -> None:
    assert "AB" not in repr(MADE)

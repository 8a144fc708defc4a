"""Vectors of MQTT 3.1.1 sections 1.5.3 and 2.2.3, and of the table of remaining lengths in IBM's page of 2006."""

import pytest

from gateway.mqtt.errors import MalformedPacket, UsageError
from gateway.mqtt.wire import (
    Fields,
    decode_plain_text,
    decode_remaining_length,
    decode_text,
    encode_binary,
    encode_remaining_length,
    encode_text,
)

REMAINING_LENGTHS = [
    (0, "00"),
    (64, "40"),
    (127, "7F"),
    (128, "80 01"),
    (321, "C1 02"),  # section 2.2.3: 65 + 2 * 128
    (16_383, "FF 7F"),
    (16_384, "80 80 01"),
    (2_097_151, "FF FF 7F"),
    (2_097_152, "80 80 80 01"),
    (268_435_455, "FF FF FF 7F"),
]


@pytest.mark.parametrize(("length", "encoded"), REMAINING_LENGTHS)
def test_remaining_length_is_encoded_as_in_the_table(length: int, encoded: str) -> None:
    assert encode_remaining_length(length) == bytes.fromhex(encoded)


@pytest.mark.parametrize(("length", "encoded"), REMAINING_LENGTHS)
def test_remaining_length_is_decoded_between_other_bytes(length: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert decode_remaining_length(b"\x30" + data + b"\xff\xff", 1) == (length, 1 + len(data))


@pytest.mark.parametrize(("length", "encoded"), REMAINING_LENGTHS)
def test_remaining_length_cut_short_is_unknown(length: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    for size in range(len(data)):
        assert decode_remaining_length(data[:size], 0) == (-1, 0)


@pytest.mark.parametrize("encoded", ["80 80 80 80", "FF FF FF FF 7F", "80 80 80 80 01"])
def test_remaining_length_of_five_bytes_is_malformed_at_the_fourth(encoded: str) -> None:
    with pytest.raises(MalformedPacket, match="longer than four bytes"):
        decode_remaining_length(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("length", [-1, 268_435_456])
def test_remaining_length_out_of_range_is_our_callers_fault(length: int) -> None:
    with pytest.raises(UsageError, match="268,435,455"):
        encode_remaining_length(length)


def test_text_of_the_specification_with_a_supplementary_character() -> None:
    encoded = bytes.fromhex("0005 41 F0AA9B94")  # section 1.5.3: "A" and U+2A6D4
    assert encode_text("A\U0002a6d4") == encoded
    assert Fields(encoded, 0, 7).text() == "A\U0002a6d4"


def test_byte_order_mark_is_kept() -> None:
    """MQTT-1.5.3-3."""
    assert decode_text(b"\xef\xbb\xbfa") == "\ufeffa"


@pytest.mark.parametrize("encoded", ["00", "6100 62", "ED A0 80", "ED BF BF", "C0 80", "80", "F4 90 80 80", "E2 82"])
def test_text_that_is_no_utf8_or_holds_a_null_is_malformed(encoded: str) -> None:
    with pytest.raises(MalformedPacket, match="a text"):
        decode_text(bytes.fromhex(encoded))


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "a" * 65_536])
def test_text_that_cannot_be_encoded_is_our_callers_fault(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be encoded"):
        encode_text(text)


@pytest.mark.parametrize(
    "code_point",
    [0x01, 0x0A, 0x1F, 0x7F, 0x85, 0x9F, 0xFDD0, 0xFDEF, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF],
)
def test_control_character_is_malformed_but_at_level_3(code_point: int) -> None:
    """Sections 1.5.3 of 3.1.1 and 1.5.4 of 5.0: a receiver may close the connection."""
    encoded = f"a{chr(code_point)}".encode()
    with pytest.raises(MalformedPacket, match=f"U[+]{code_point:04X}"):
        decode_plain_text(encoded)
    assert decode_text(encoded) == f"a{chr(code_point)}"


@pytest.mark.parametrize("code_point", [0x20, 0x7E, 0xA0, 0xFDCF, 0xFDF0, 0xFEFF, 0xFFFD, 0x10000, 0x1FFFD, 0x10FFFD])
def test_neighbour_of_a_control_character_is_a_character(code_point: int) -> None:
    assert decode_plain_text(chr(code_point).encode()) == chr(code_point)


def test_longest_binary_field_has_65535_bytes() -> None:
    """MQTT-4.7.3-3."""
    assert encode_binary(bytes(65_535)) == b"\xff\xff" + bytes(65_535)


def test_fields_are_read_in_order_to_the_end_of_the_packet() -> None:
    fields = Fields(bytes.fromhex("FF 01 000A 0002 6162 FF"), 1, 8)
    assert (fields.byte(), fields.packet_identifier(), fields.text(), fields.left) == (1, 10, "ab", 0)
    fields.finish()


@pytest.mark.parametrize("encoded", ["", "00", "0003", "0003 6162"])
def test_field_that_reaches_past_the_packet_is_malformed(encoded: str) -> None:
    packet = bytes.fromhex(encoded)
    with pytest.raises(MalformedPacket, match="ends inside a field"):
        Fields(packet + b"abc", 0, len(packet)).binary()


def test_bytes_behind_the_last_field_are_malformed() -> None:
    with pytest.raises(MalformedPacket, match="2 bytes stand behind"):
        Fields(b"ab", 0, 2).finish()


def test_zero_is_not_a_packet_identifier() -> None:
    with pytest.raises(MalformedPacket, match="0 is not a packet identifier"):
        Fields(bytes(2), 0, 2).packet_identifier()

"""Code pages and byte order, against vectors typed by hand."""

import pytest

from mappings.errors import HeaderError
from mappings.headers.charset import CODED_CHAR_SET_IDS, decode_text, encode_text, is_big_endian

SINGLE_BYTE_IDS = sorted(CODED_CHAR_SET_IDS - {367, 1208, 1252, 1200, 13488, 17584})

# Position of characters in EBCDIC pages, as Java has them (glibc differs in places for 278, 285 and 871).
CHART_POSITIONS = [
    (37, "RFH ", "d9c6c840"),
    (37, "[]!^|", "babb5ab04f"),
    (500, "[]!^|", "4a5a4f5fbb"),
    (1047, "[]^", "adbd5f"),
    (273, "ÄÖÜäöüß", "4ae05ac06ad0a1"),
    (277, "ÆØÅæøå", "7b7c5bc06ad0"),
    (278, "ÄÖÅäöå", "7b7c5bc06ad0"),
    (280, "àèìòù", "c0d0a16a79"),
    (284, "ñÑ", "6a7b"),
    (285, "£$", "5b4a"),
    (297, "àéèùç", "7cc0d0" + "6ae0"),
    (871, "ÞÆÖðÐ", "4a5a5f79" + "7c"),
    (850, "äöü", "849481"),
    (437, "äöü", "849481"),
    (1252, "€", "80"),
    (819, "é", "e9"),
    (1208, "ß", "c39f"),
    (1200, "a", "0061"),
]

# The Euro sign replaces the currency sign at its position.
EURO_POSITIONS = [
    (1140, 37, 0x9F), (1141, 273, 0x9F), (1142, 277, 0x5A), (1143, 278, 0x5A), (1144, 280, 0x9F),
    (1145, 284, 0x9F), (1146, 285, 0x9F), (1147, 297, 0x9F), (1148, 500, 0x9F), (1149, 871, 0x9F),
]  # fmt: skip


@pytest.mark.parametrize(("coded_char_set_id", "text", "vector"), CHART_POSITIONS)
def test_text_is_encoded_and_decoded_as_its_code_page_says(coded_char_set_id: int, text: str, vector: str) -> None:
    assert encode_text(text, coded_char_set_id).hex() == vector
    assert decode_text(bytes.fromhex(vector), coded_char_set_id) == text


@pytest.mark.parametrize(("euro_page", "country_page", "position"), EURO_POSITIONS)
def test_a_euro_page_differs_from_its_country_page_in_the_currency_sign_only(
    euro_page: int, country_page: int, position: int
) -> None:
    every_byte = bytes(range(256))
    before, after = decode_text(every_byte, country_page), decode_text(every_byte, euro_page)
    assert [index for index in range(256) if before[index] != after[index]] == [position]
    assert (before[position], after[position]) == ("¤", "€")


@pytest.mark.parametrize("coded_char_set_id", SINGLE_BYTE_IDS)
def test_every_byte_of_a_single_byte_page_survives_both_ways(coded_char_set_id: int) -> None:
    every_byte = bytes(range(256))
    assert encode_text(decode_text(every_byte, coded_char_set_id), coded_char_set_id) == every_byte


def test_two_byte_pages_follow_the_byte_order_of_the_encoding() -> None:
    assert encode_text("a/", 1200, encoding=273).hex() == "0061002f"
    assert encode_text("a/", 13488, encoding=546).hex() == "61002f00"
    assert decode_text(bytes.fromhex("61002f00"), 17584, encoding=546) == "a/"


@pytest.mark.parametrize("coded_char_set_id", [13488, 17584])
def test_ucs_2_has_no_characters_beyond_the_basic_plane(coded_char_set_id: int) -> None:
    with pytest.raises(HeaderError) as caught:
        encode_text("\U0001f600", coded_char_set_id)
    assert caught.value.reason_name == "MQRC_NOT_CONVERTED"
    with pytest.raises(HeaderError):
        decode_text("\U0001f600".encode("utf-16-be"), coded_char_set_id)


def test_utf_16_has_them() -> None:
    assert decode_text(encode_text("\U0001f600", 1200), 1200) == "\U0001f600"


@pytest.mark.parametrize("coded_char_set_id", [0, -2, 1, 932, 65535])
def test_an_unknown_code_page_is_refused_by_number(coded_char_set_id: int) -> None:
    with pytest.raises(HeaderError, match=f"CodedCharSetId {coded_char_set_id} ") as reading:
        decode_text(b"x", coded_char_set_id)
    assert reading.value.reason_code == 2111
    with pytest.raises(HeaderError) as writing:
        encode_text("x", coded_char_set_id)
    assert writing.value.reason_code == 2115


@pytest.mark.parametrize(("coded_char_set_id", "text"), [(819, "€"), (37, "€"), (367, "ß"), (1208, "\ud800")])
def test_a_character_that_the_page_lacks_is_named(coded_char_set_id: int, text: str) -> None:
    with pytest.raises(HeaderError) as caught:
        encode_text(f"ab{text}", coded_char_set_id)
    assert (caught.value.reason_code, caught.value.parameter) == (2119, text)


@pytest.mark.parametrize(
    ("data", "coded_char_set_id"), [(b"\xff", 1208), (b"\x80", 367), (b"\xd8\x00", 1200), (b"a", 1200)]
)
def test_bytes_that_are_not_in_the_page_are_a_header_error(data: bytes, coded_char_set_id: int) -> None:
    with pytest.raises(HeaderError) as caught:
        decode_text(data, coded_char_set_id)
    assert caught.value.reason_code == 2334


@pytest.mark.parametrize(("encoding", "big_endian"), [(273, True), (546, False), (785, True), (1, True), (2, False)])
def test_the_low_nibble_of_the_encoding_is_the_byte_order(encoding: int, big_endian: bool) -> None:
    assert is_big_endian(encoding) is big_endian


@pytest.mark.parametrize("encoding", [0, 3, 0x110, -1])
def test_an_encoding_without_byte_order_is_refused(encoding: int) -> None:
    with pytest.raises(HeaderError, match=str(encoding)):
        is_big_endian(encoding)

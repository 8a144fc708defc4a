"""Header chains: dead-letter headers, several headers, inherited character sets."""

import struct

import pytest

from mappings.errors import HeaderError
from mappings.headers.chain import (
    FORMAT_DEAD_LETTER,
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    DeadLetterHeader,
    HeaderChain,
    read_dead_letter_header,
    read_header_chain,
    walk_headers,
)
from mappings.headers.mqrfh import Mqrfh
from mappings.headers.mqrfh2 import Mqrfh2
from tests.every_case import for_every

# MQDLH, little-endian, typed from the layout of IBM's documentation.
DEAD_LETTER = (
    b"DLH \x01\0\0\0\x23\x08\0\0"
    + b"SENSORS.IN".ljust(48)
    + b"QM1".ljust(48)
    + b"\x11\x01\0\0\xb8\x04\0\0MQHRF   \x1a\0\0\0"
    + b"rfhbridge".ljust(28)
    + b"2026112006150000"
)
MQRFH = b"RFH \0\0\0\x01\0\0\0\x24\0\0\x02\x22\xff\xff\xff\xfeMQHRF2  \0\0\0\0a b "
MQRFH2 = b"RFH \x02\0\0\0\x34\0\0\0\x22\x02\0\0\xb8\x04\0\0MQSTR   \0\0\0\0\xb8\x04\0\0\x0c\0\0\0<usr></usr> "


def read(data: bytes, format: bytes, coded_char_set_id: int = 819) -> HeaderChain:
    return read_header_chain(data, format=format, coded_char_set_id=coded_char_set_id, encoding=546)


def test_a_message_without_headers_is_all_body() -> None:
    chain = read(b"payload", b"MQSTR")
    assert (chain.headers, chain.body_offset, chain.body_format) == ((), 0, b"MQSTR   ")
    assert (chain.body_coded_char_set_id, chain.body_encoding) == (819, 546)


def test_each_format_names_the_next_header_and_the_last_the_body() -> None:
    chain = read(DEAD_LETTER + MQRFH + MQRFH2 + b"payload", FORMAT_DEAD_LETTER)
    assert [type(header) for header in chain.headers] == [DeadLetterHeader, Mqrfh, Mqrfh2]
    assert chain.offsets == (0, 172, 208)
    assert (chain.body_offset, chain.body_format) == (260, b"MQSTR   ")
    assert (chain.body_coded_char_set_id, chain.body_encoding) == (1208, 546)


def test_each_header_is_in_the_character_set_and_encoding_of_the_one_in_front() -> None:
    chain = read(DEAD_LETTER + MQRFH + MQRFH2, FORMAT_DEAD_LETTER)
    assert [(place.coded_char_set_id, place.encoding) for place in chain.places] == [
        (819, 546),
        (1208, 273),
        (1208, 546),
    ]


@pytest.mark.parametrize("inherited", [b"\xfe\xff\xff\xff", b"\0\0\0\0"])
def test_inherit_and_undefined_mean_the_character_set_in_front(inherited: bytes) -> None:
    chain = read(MQRFH2[:16] + inherited + MQRFH2[20:], FORMAT_MQRFH2, 850)
    assert chain.body_coded_char_set_id == 850


def test_the_dead_letter_header_is_read_and_written_byte_for_byte() -> None:
    header = read_dead_letter_header(DEAD_LETTER, coded_char_set_id=819, encoding=546)
    assert header == DeadLetterHeader(
        reason=2083,
        dest_q_name="SENSORS.IN",
        dest_q_mgr_name="QM1",
        encoding=273,
        coded_char_set_id=1208,
        format=FORMAT_MQRFH,
        put_appl_type=26,
        put_appl_name="rfhbridge",
        put_date="20261120",
        put_time="06150000",
    )
    assert len(DEAD_LETTER) == header.struc_length == 172
    assert header.to_bytes(coded_char_set_id=819, encoding=546) == DEAD_LETTER


def test_a_dead_letter_header_in_ebcdic_has_its_format_in_ascii() -> None:
    header = read_dead_letter_header(DEAD_LETTER, coded_char_set_id=819, encoding=546)
    ebcdic = header.to_bytes(coded_char_set_id=500, encoding=273)
    assert ebcdic[:4].hex() == "c4d3c840"
    assert ebcdic[116:124].hex() == "d4d8c8d9c6404040"
    assert read_dead_letter_header(ebcdic, coded_char_set_id=500, encoding=273) == header
    with pytest.raises(HeaderError, match="is not a format name"):
        read_dead_letter_header(ebcdic[:116] + b"\x4a\xc0" + ebcdic[118:], coded_char_set_id=37, encoding=273)


@for_every(range(172))
def test_a_dead_letter_header_cut_at_any_length_is_refused(length: int) -> None:
    with pytest.raises(HeaderError) as caught:
        read(DEAD_LETTER[:length], FORMAT_DEAD_LETTER)
    assert caught.value.reason_code == 2141


@pytest.mark.parametrize(("position", "replacement"), [(0, b"DLX "), (4, b"\x02"), (12, b"\xff")])
def test_a_wrong_dead_letter_header_is_refused(position: int, replacement: bytes) -> None:
    changed = DEAD_LETTER[:position] + replacement + DEAD_LETTER[position + len(replacement) :]
    with pytest.raises(HeaderError):
        read(changed, FORMAT_DEAD_LETTER, 1208)


def test_a_name_that_is_too_long_is_not_cut() -> None:
    header = read_dead_letter_header(DEAD_LETTER, coded_char_set_id=819, encoding=546)
    values = {name: getattr(header, name) for name in DeadLetterHeader.__slots__}
    with pytest.raises(HeaderError, match="longer than 48 bytes"):
        DeadLetterHeader(**(values | {"dest_q_name": "Q" * 49})).to_bytes(coded_char_set_id=819, encoding=546)


def test_a_chain_that_is_cut_says_where_the_broken_header_is() -> None:
    with pytest.raises(HeaderError) as caught:
        read(DEAD_LETTER + MQRFH + MQRFH2[:20], FORMAT_DEAD_LETTER)
    assert caught.value.offset == 208


@pytest.mark.timeout(20)
def test_a_chain_of_a_hundred_thousand_headers_takes_linear_time() -> None:
    one = struct.pack("<4siiii8si", b"RFH ", 1, 32, 546, 0, b"MQHRF   ", 0)
    last = struct.pack("<4siiii8si", b"RFH ", 1, 32, 546, 0, b"        ", 0)
    assert len(read(one * 100_000 + last, FORMAT_MQRFH).headers) == 100_001


def test_who_acts_on_a_message_sees_a_body_in_an_envelope_for_another_queue_manager() -> None:
    envelope = b"XQH \1\0\0\0".ljust(104) + b"MD  \1\0\0\0" + bytes(16) + (546).to_bytes(4, "little")
    envelope = (envelope + (1208).to_bytes(4, "little") + b"MQSTR   ").ljust(428)
    said = {"format": b"MQXMIT  ", "coded_char_set_id": 1208, "encoding": 546}
    acting = read_header_chain(envelope + b"text", **said)
    looking, error = walk_headers(envelope + b"text", **said)
    assert (acting.headers, acting.body_offset) == ((), 0)
    assert (len(looking.headers), looking.body_offset, looking.body_format, error) == (1, 428, b"MQSTR   ", None)

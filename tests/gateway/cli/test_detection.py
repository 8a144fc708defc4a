"""Finding what announces a header from its first bytes."""

import pytest

from gateway.cli.detection import Announcement, announcement_of
from mappings.errors import HeaderError


def test_byte_order_and_format_come_from_the_version(vectors):
    assert announcement_of(vectors.mqrfh) == Announcement(format=b"MQHRF   ", coded_char_set_id=1208, encoding=546)
    assert announcement_of(vectors.mqrfh_big_endian).encoding == 273
    assert announcement_of(vectors.mqrfh2).format == b"MQHRF2  "
    assert announcement_of(vectors.mqrfh2_two_folders) == Announcement(
        format=b"MQHRF2  ", coded_char_set_id=1208, encoding=273
    )


def test_ebcdic_page_is_that_of_what_follows_where_it_is_ebcdic(vectors):
    header = vectors.mqrfh_ebcdic
    for page in (500, 1047, 37, 1140):
        following = header[:16] + page.to_bytes(4, "big") + header[20:]
        assert announcement_of(following).coded_char_set_id == page


@pytest.mark.parametrize("following", [1208, 0, -2, 999_999])
def test_ebcdic_page_is_500_where_what_follows_is_not_ebcdic(vectors, following):
    header = vectors.mqrfh_ebcdic
    other = header[:16] + following.to_bytes(4, "big", signed=True) + header[20:]
    assert announcement_of(other).coded_char_set_id == 500


def test_dead_letter_header_is_found_in_both_alphabets():
    ascii_header = b"DLH " + (1).to_bytes(4, "little") + bytes(164)
    assert announcement_of(ascii_header) == Announcement(format=b"MQDEAD  ", coded_char_set_id=1208, encoding=546)
    ebcdic = bytes.fromhex("c4d3c840 00000001") + bytes(104) + (1047).to_bytes(4, "big") + bytes(56)
    assert announcement_of(ebcdic) == Announcement(format=b"MQDEAD  ", coded_char_set_id=1047, encoding=273)


def test_what_the_caller_knows_goes_before_what_is_found(vectors):
    found = announcement_of(vectors.mqrfh, coded_char_set_id=819)
    assert found == Announcement(format=b"MQHRF   ", coded_char_set_id=819, encoding=546)
    known = announcement_of(b"anything", format=b"MQSTR   ", coded_char_set_id=37, encoding=273)
    assert known == Announcement(format=b"MQSTR   ", coded_char_set_id=37, encoding=273)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "empty"),
        (b"XYZ 1234", "58 59 5a 20"),
        (b"RFH \x01\x00\x00", "ends after 7 bytes"),
        (b"RFH \x03\x00\x00\x00", "neither 1 nor 2"),
        (b"DLH \x02\x00\x00\x00", "neither 1 nor 2"),
    ],
)
def test_nothing_found_is_an_error_that_says_why(data, problem):
    with pytest.raises(HeaderError, match=problem) as raised:
        announcement_of(data)
    assert (raised.value.reason_code, raised.value.offset) == (2334, 0)

"""Finding what announces a header from its first bytes."""

import pytest

from mappings.errors import HeaderError
from mappings.headers.detection import Announcement, announcement_of

#: Fixed parts by IBM's layout: StrucId, Version, StrucLength 32 (36), Encoding, CodedCharSetId, Format, Flags.
MQRFH = bytes.fromhex("52464820 01000000 20000000 22020000 b8040000 4d51535452202020 00000000")
MQRFH_BIG_ENDIAN = bytes.fromhex("52464820 00000001 00000020 00000111 000004b8 4d51535452202020 00000000")
MQRFH_EBCDIC = bytes.fromhex("d9c6c840 00000001 00000020 00000111 000001f4 d4d8e2e3d9404040 00000000")
MQRFH2 = bytes.fromhex("52464820 02000000 24000000 22020000 b8040000 4d51535452202020 00000000 b8040000")
MQRFH2_BIG_ENDIAN = bytes.fromhex("52464820 00000002 00000024 00000111 000004b8 4d51535452202020 00000000 000004b8")


def test_byte_order_and_format_come_from_the_version():
    assert announcement_of(MQRFH) == Announcement(format=b"MQHRF   ", coded_char_set_id=1208, encoding=546)
    assert announcement_of(MQRFH_BIG_ENDIAN).encoding == 273
    assert announcement_of(MQRFH2).format == b"MQHRF2  "
    assert announcement_of(MQRFH2_BIG_ENDIAN) == Announcement(format=b"MQHRF2  ", coded_char_set_id=1208, encoding=273)


def test_ebcdic_page_is_that_of_what_follows_where_it_is_ebcdic():
    header = MQRFH_EBCDIC
    for page in (500, 1047, 37, 1140):
        following = header[:16] + page.to_bytes(4, "big") + header[20:]
        assert announcement_of(following).coded_char_set_id == page


@pytest.mark.parametrize("following", [1208, 0, -2, 999_999])
def test_ebcdic_page_is_500_where_what_follows_is_not_ebcdic(following):
    header = MQRFH_EBCDIC
    other = header[:16] + following.to_bytes(4, "big", signed=True) + header[20:]
    assert announcement_of(other).coded_char_set_id == 500


def test_dead_letter_header_is_found_in_both_alphabets():
    ascii_header = b"DLH " + (1).to_bytes(4, "little") + bytes(164)
    assert announcement_of(ascii_header) == Announcement(format=b"MQDEAD  ", coded_char_set_id=1208, encoding=546)
    ebcdic = bytes.fromhex("c4d3c840 00000001") + bytes(104) + (1047).to_bytes(4, "big") + bytes(56)
    assert announcement_of(ebcdic) == Announcement(format=b"MQDEAD  ", coded_char_set_id=1047, encoding=273)


@pytest.mark.parametrize(
    ("struc_id", "version", "format"),
    [
        (b"CIH ", 2, b"MQCICS  "),
        (b"IIH ", 1, b"MQIMS   "),
        (b"DH  ", 1, b"MQHDIST "),
        (b"MDE ", 2, b"MQHMDE  "),
        (b"RMH ", 1, b"MQHREF  "),
        (b"WIH ", 1, b"MQHWIH  "),
    ],
)
def test_header_that_is_walked_over_is_found_by_its_struc_id(struc_id, version, format):
    for order, encoding in (("little", 546), ("big", 273)):
        header = struc_id + version.to_bytes(4, order) + bytes(40)
        assert announcement_of(header) == Announcement(format=format, coded_char_set_id=1208, encoding=encoding)
    ebcdic = struc_id.decode().encode("cp500") + version.to_bytes(4, "big") + bytes(40)
    assert announcement_of(ebcdic) == Announcement(format=format, coded_char_set_id=500, encoding=273)


def test_what_the_caller_knows_goes_before_what_is_found():
    found = announcement_of(MQRFH, coded_char_set_id=819)
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

"""MQRFH against bytes worked out by hand from the layout of IBM's documentation."""

import pytest

from mappings.errors import HeaderError, MappingError
from mappings.headers.mqrfh import Mqrfh, read_mqrfh, write_mqrfh
from tests.every_case import for_every

BIG_ENDIAN = bytes.fromhex(
    "52464820 00000001 0000005c 00000111 000004b8 4d51535452202020 00000000"
    "4d515053436f6d6d616e64205075626c697368204d5150535075624f707473205265746169"
    "6e507562204d515053546f7069632022612062 22202020"
)
LITTLE_ENDIAN = bytes.fromhex(
    "52464820 01000000 58000000 22020000 b8040000 4d51535452202020 00000000"
    "4d515053436f6d6d616e64205075626c697368204d5150535075624f70747320526574"
    "61696e507562204d515053546f70696320612f6220"
)
EBCDIC = bytes.fromhex(  # `a b` in page 37, big-endian, Format MQSTR
    "d9c6c840 00000001 00000024 00000311 00000025 d4d8e2e3d9404040 00000000 81408240"
)

VECTORS = [
    (
        BIG_ENDIAN,
        1208,
        273,
        (("MQPSCommand", "Publish"), ("MQPSPubOpts", "RetainPub"), ("MQPSTopic", "a b")),
        1208,
        273,
    ),
    (
        LITTLE_ENDIAN,
        819,
        546,
        (("MQPSCommand", "Publish"), ("MQPSPubOpts", "RetainPub"), ("MQPSTopic", "a/b")),
        1208,
        546,
    ),
    (EBCDIC, 37, 785, (("a", "b"),), 37, 785),
]


def read(data: bytes, offset: int = 0) -> Mqrfh:
    return read_mqrfh(data, offset, coded_char_set_id=1208, encoding=546)


@pytest.mark.parametrize(("vector", "ccsid", "encoding", "pairs", "next_ccsid", "next_encoding"), VECTORS)
def test_the_worked_bytes_are_read_and_written(
    vector: bytes, ccsid: int, encoding: int, pairs: tuple[tuple[str, str], ...], next_ccsid: int, next_encoding: int
) -> None:
    header = read_mqrfh(vector + b"body", coded_char_set_id=ccsid, encoding=encoding)
    assert header.pairs == pairs
    assert (header.format, header.flags, header.struc_length) == (b"MQSTR   ", 0, len(vector))
    assert (header.coded_char_set_id, header.encoding) == (next_ccsid, next_encoding)
    written = write_mqrfh(
        pairs,
        format=b"MQSTR",
        next_coded_char_set_id=next_ccsid,
        next_encoding=next_encoding,
        coded_char_set_id=ccsid,
        encoding=encoding,
    )
    assert written == vector


@for_every(range(len(LITTLE_ENDIAN)))
def test_a_header_cut_at_any_length_is_refused(length: int) -> None:
    with pytest.raises(HeaderError) as caught:
        read(LITTLE_ENDIAN[:length])
    assert caught.value.reason_code == 2334


def test_a_header_behind_other_bytes_is_found_at_its_offset() -> None:
    assert read(b"1234567" + LITTLE_ENDIAN, 7) == read(LITTLE_ENDIAN)
    with pytest.raises(HeaderError, match="at byte 15"):
        read(b"1234567" + LITTLE_ENDIAN[:-1], 7)
    with pytest.raises(HeaderError):
        read(LITTLE_ENDIAN, 1_000)


@pytest.mark.parametrize(
    ("position", "replacement"),
    [
        (0, b"RFX "),
        (0, b"\xd9\xc6\xc8\x40"),
        (4, b"\x02\0\0\0"),
        (4, b"\0\0\0\x01"),
        (8, b"\x1f\0\0\0"),
        (8, b"\xff\xff\xff\xff"),
        (8, b"\xff\xff\xff\x7f"),
        (8, b"\x59\0\0\0"),
        (32, b"\xff"),
    ],
)
def test_a_wrong_field_is_refused(position: int, replacement: bytes) -> None:
    changed = LITTLE_ENDIAN[:position] + replacement + LITTLE_ENDIAN[position + len(replacement) :]
    with pytest.raises(HeaderError) as caught:
        read(changed)
    assert caught.value.reason_code == 2334


def test_any_length_from_32_bytes_on_is_accepted() -> None:
    fixed = LITTLE_ENDIAN[:8] + b"\x23\0\0\0" + LITTLE_ENDIAN[12:32]
    assert read(fixed + b"a b").pairs == (("a", "b"),)
    assert read(LITTLE_ENDIAN[:8] + b"\x20\0\0\0" + LITTLE_ENDIAN[12:32]).pairs == ()


def test_what_follows_nul_is_ignored_even_when_it_is_not_text() -> None:
    fixed = LITTLE_ENDIAN[:8] + b"\x28\0\0\0" + LITTLE_ENDIAN[12:32]
    assert read(fixed + b"a b\0\xff\xff\xff\xff").pairs == (("a", "b"),)


@pytest.mark.parametrize(("ccsid", "encoding"), [(1200, 546), (13488, 546), (1208, 0), (4711, 546)])
def test_a_header_cannot_be_in_a_two_byte_page_or_without_byte_order(ccsid: int, encoding: int) -> None:
    with pytest.raises(MappingError):
        read_mqrfh(LITTLE_ENDIAN, coded_char_set_id=ccsid, encoding=encoding)


def test_a_format_that_is_no_name_is_refused_in_ebcdic() -> None:
    with pytest.raises(HeaderError, match="is not a format name"):
        read_mqrfh(EBCDIC[:20] + b"\x4a" + EBCDIC[21:], coded_char_set_id=37, encoding=273)

"""Message data in another code page and byte order, with the headers in front."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.errors import MappingError
from mappings.headers.chain import DeadLetterHeader, read_header_chain
from mappings.headers.layout import MQCIH_1, MQCIH_2, MQIIH, MQXQH
from mappings.headers.mqrfh import write_mqrfh
from mappings.headers.mqrfh2 import write_mqrfh2
from mappings.headers.recoded import DataFormat, recoded
from mappings.reasons import Reason

PLAIN = DataFormat(format=b"MQSTR   ", coded_char_set_id=1208, encoding=546)


def of(format: bytes, page: int = 1208, encoding: int = 546) -> DataFormat:
    return DataFormat(format=format, coded_char_set_id=page, encoding=encoding)


def rfh2(
    *folders: bytes, format: bytes = b"MQSTR   ", page: int = 1208, encoding: int = 546, next_page: int = 1208
) -> bytes:
    return write_mqrfh2(
        folders,
        format=format,
        next_coded_char_set_id=next_page,
        next_encoding=encoding,
        coded_char_set_id=page,
        encoding=encoding,
        flags=0xFFFF0000,
    )


def rfh(format: bytes = b"MQSTR   ", page: int = 1208, encoding: int = 546) -> bytes:
    return write_mqrfh(
        (("Größe", "3"),),
        format=format,
        next_coded_char_set_id=page,
        next_encoding=encoding,
        coded_char_set_id=page,
        encoding=encoding,
    )


def dlh(format: bytes, page: int = 1208, encoding: int = 546) -> bytes:
    return DeadLetterHeader(
        reason=2053,
        dest_q_name="ORDERS",
        dest_q_mgr_name="PLANT",
        encoding=encoding,
        coded_char_set_id=page,
        format=format,
        put_appl_type=28,
        put_appl_name="orders",
        put_date="20261129",
        put_time="10203000",
    ).to_bytes(coded_char_set_id=page, encoding=encoding)


def test_text_changes_its_page() -> None:
    assert recoded("Zürich".encode(), PLAIN, coded_char_set_id=819, encoding=273) == "Zürich".encode("latin-1")
    assert recoded(b"ab", PLAIN, coded_char_set_id=1200, encoding=273) == "ab".encode("utf-16-be")


def test_an_mqrfh2_keeps_its_folders_and_changes_the_rest() -> None:
    data = rfh2(b"<usr><a>\xc3\xa9</a></usr>") + "Grüße".encode()
    made = recoded(data, of(b"MQHRF2  "), coded_char_set_id=500, encoding=273)
    folder, struc_id, format = b"<usr><a>\xc3\xa9</a></usr>", b"\xd9\xc6\xc8\x40", "MQSTR   ".encode("cp500")
    fixed = struct.pack(">4siiii8sIii", struc_id, 2, 60, 273, 500, format, 0xFFFF0000, 1208, 20)
    assert made == fixed + folder + "Grüße".encode("cp500")


def test_a_body_without_a_format_stays_as_it_is() -> None:
    data = rfh2(b"<usr/>", format=b"        ", next_page=0) + b"\xff\x00"
    made = recoded(data, of(b"MQHRF2  "), coded_char_set_id=819, encoding=273)
    chain = read_header_chain(made, format=b"MQHRF2  ", coded_char_set_id=819, encoding=273)
    assert (chain.body_format, chain.body_coded_char_set_id, chain.body_encoding) == (b"        ", 1208, 546)
    assert made[chain.body_offset :] == b"\xff\x00"


def test_the_string_of_an_mqrfh_is_in_the_page_of_the_message() -> None:
    made = recoded(rfh() + b"x", of(b"MQHRF   "), coded_char_set_id=273, encoding=273)
    assert made == rfh(page=273, encoding=273) + "x".encode("cp273")


def test_a_dead_letter_is_converted_with_all_its_headers() -> None:
    data = dlh(b"MQHRF2  ") + rfh2(b"<usr/>", format=b"MQHRF   ") + rfh() + b"text"
    made = recoded(data, of(b"MQDEAD  "), coded_char_set_id=37, encoding=273)
    assert made.startswith(dlh(b"MQHRF2  ", 37, 273))
    assert made.endswith(rfh(page=37, encoding=273) + "text".encode("cp037"))
    back = recoded(made, of(b"MQDEAD  ", 37, 273), coded_char_set_id=1208, encoding=546)
    assert back == data


@pytest.mark.parametrize(
    ("layout", "format", "version", "length"),
    [
        (MQXQH, b"MQXMIT  ", 1, 428),
        (MQIIH, b"MQIMS   ", 1, 84),
        (MQCIH_1, b"MQCICS  ", 1, 164),
        (MQCIH_2, b"MQCICS  ", 2, 180),
    ],
)
def test_fixed_headers_keep_their_bytes_and_change_numbers_and_characters(layout, format, version, length):
    assert layout.length_bytes == length
    values = {name: 7 if code in "iI" else b"Ab3".ljust(48)[: int(code[:-1])] for name, code in layout.fields}
    values |= {"Version": version, "Encoding": 546, "CodedCharSetId": 1208, "Format": b"MQSTR   "}
    values |= {"StrucLength": length} if "StrucLength" in values else {}
    binary = {"MsgId", "CorrelId", "AccountingToken", "TranInstanceId", "Facility"}
    values |= {name: bytes(range(200, 200 + len(values[name]))) for name in binary & set(values)}
    data = layout.little_endian.pack(*values.values()) + b"text"
    made = recoded(data, of(format), coded_char_set_id=500, encoding=273)
    expected = {
        name: value if isinstance(value, int) or name in binary else value.decode().encode("cp500")
        for name, value in values.items()
    }
    expected |= {"Encoding": 273, "CodedCharSetId": 500}
    assert made == layout.big_endian.pack(*expected.values()) + "text".encode("cp500")
    assert recoded(made, of(format, 500, 273), coded_char_set_id=1208, encoding=546) == data


@pytest.mark.parametrize(
    ("data", "source", "page", "reason"),
    [
        (b"x", of(b"MYFORMAT"), 819, Reason.MQRC_FORMAT_ERROR),
        (b"x", of(b"        "), 819, Reason.MQRC_FORMAT_ERROR),
        (rfh2(format=b"MYFORMAT"), of(b"MQHRF2  "), 819, Reason.MQRC_FORMAT_ERROR),
        (b"x", of(b"MQSTR   ", 4711), 819, Reason.MQRC_SOURCE_CCSID_ERROR),
        (b"x", PLAIN, 4711, Reason.MQRC_TARGET_CCSID_ERROR),
        ("日".encode(), PLAIN, 819, Reason.MQRC_NOT_CONVERTED),
        (b"\xff", PLAIN, 819, Reason.MQRC_RFH_ERROR),
        (rfh2(), of(b"MQHRF2  "), 1200, Reason.MQRC_TARGET_CCSID_ERROR),
        (b"IIH ", of(b"MQIMS   "), 819, Reason.MQRC_NOT_CONVERTED),
        (b"IIH \1\0\0\0" + bytes(76), of(b"MQIMS   "), 819, Reason.MQRC_NOT_CONVERTED),
        (b"CIH \3\0\0\0" + bytes(176), of(b"MQCICS  "), 819, Reason.MQRC_NOT_CONVERTED),
        (rfh2(format=b"MQHRF2  ") * 101, of(b"MQHRF2  "), 819, Reason.MQRC_FORMAT_ERROR),
    ],
)
def test_what_cannot_be_converted_says_why(data: bytes, source: DataFormat, page: int, reason: Reason) -> None:
    with pytest.raises(MappingError) as error:
        recoded(data, source, coded_char_set_id=page, encoding=273)
    assert error.value.reason_code == reason


FORMATS = [b"MQHRF   ", b"MQHRF2  ", b"MQDEAD  ", b"MQXMIT  ", b"MQIMS   ", b"MQCICS  "]
STARTS = [b"", b"RFH \2\0\0\0", b"RFH \1\0\0\0", b"DLH \1\0\0\0", b"XQH \1\0\0\0", b"CIH \2\0\0\0"]


@given(st.binary(max_size=500), st.sampled_from(STARTS), st.sampled_from(FORMATS))
def test_any_bytes_are_converted_or_refused(data: bytes, start: bytes, format: bytes) -> None:
    try:
        made = recoded(start + data, of(format), coded_char_set_id=500, encoding=273)
    except MappingError:
        return
    assert len(made) >= len(start)

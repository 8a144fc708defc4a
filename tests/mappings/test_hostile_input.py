"""Whatever the bytes: readers end in a value or in a MappingError, never in somebody else's exception."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.commands.command import (
    FORMAT_DEAD_LETTER,
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    Dialect,
    read_command,
    read_response,
)
from mappings.conversion.convert import Mode, convert
from mappings.errors import MappingError
from mappings.headers.chain import read_header_chain
from mappings.headers.mqrfh2 import Mqrfh2

FORMATS = st.sampled_from([FORMAT_MQRFH, FORMAT_MQRFH2, FORMAT_DEAD_LETTER])
CODED_CHAR_SET_IDS = st.sampled_from([1208, 819, 37, 500, 1200, 13488, 932, 0, -2])
ENCODINGS = st.sampled_from([273, 546, 785, 0, 3])

STRING = b'MQPSCommand Publish MQPSPubOpts 2 MQPSTopic "a ""b""" own 1 '
FOLDER = b"<psc><Command>RegSub</Command><Topic>a&amp;b</Topic></psc>".ljust(60)
MQRFH = struct.pack("<4siiii8si", b"RFH ", 1, 32 + len(STRING), 546, 1208, b"MQHRF2  ", 0) + STRING
MQRFH2 = struct.pack("<4siiii8siii", b"RFH ", 2, 100, 546, 1208, b"MQSTR   ", 0, 1208, 60) + FOLDER
DEAD_LETTER = b"DLH \x01\0\0\0" + bytes(100) + b"\x22\x02\0\0\xb8\x04\0\0MQHRF   " + bytes(48)
MESSAGE = DEAD_LETTER + MQRFH + MQRFH2


def read_everything(data: bytes, format: bytes, coded_char_set_id: int, encoding: int) -> None:
    """Every reader of this room on the same bytes; only MappingError is caught."""
    with contextlib.suppress(MappingError):
        chain = read_header_chain(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
        for header in chain.headers:
            for folder in header.folders if isinstance(header, Mqrfh2) else ():
                with contextlib.suppress(MappingError):
                    assert folder.elements is not None
        with contextlib.suppress(MappingError):
            read_command(chain)
        with contextlib.suppress(MappingError):
            read_response(chain)
    for to in Dialect:
        for mode in Mode:
            with contextlib.suppress(MappingError):
                convert(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding, to=to, mode=mode)


def test_the_message_that_is_broken_below_is_sound() -> None:
    chain = read_header_chain(MESSAGE, format=FORMAT_DEAD_LETTER, coded_char_set_id=1208, encoding=546)
    assert (len(chain.headers), chain.body_offset) == (3, len(MESSAGE))
    for format, data in ((FORMAT_MQRFH, MQRFH), (FORMAT_MQRFH2, MQRFH2)):
        alone = data.replace(b"MQHRF2  ", b"MQSTR   ")
        read_command(read_header_chain(alone, format=format, coded_char_set_id=1208, encoding=546))


@given(st.binary(max_size=200), FORMATS, CODED_CHAR_SET_IDS, ENCODINGS)
def test_random_bytes(data: bytes, format: bytes, coded_char_set_id: int, encoding: int) -> None:
    read_everything(data, format, coded_char_set_id, encoding)


@given(st.data(), FORMATS, CODED_CHAR_SET_IDS, ENCODINGS)
def test_a_good_header_with_bytes_changed(
    data: st.DataObject, format: bytes, coded_char_set_id: int, encoding: int
) -> None:
    start = {FORMAT_DEAD_LETTER: 0, FORMAT_MQRFH: 172, FORMAT_MQRFH2: 172 + len(MQRFH)}[format]
    changed = bytearray(MESSAGE[start:])
    for _ in range(data.draw(st.integers(0, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    read_everything(bytes(changed), format, coded_char_set_id, encoding)


@given(st.binary(max_size=80), st.sampled_from([1208, 1200, 13488]), ENCODINGS)
def test_random_folders(folder: bytes, name_value_ccsid: int, encoding: int) -> None:
    order = ">" if encoding & 0xF == 1 else "<"
    data = b"<psc>" + folder + bytes(-(5 + len(folder)) % 4)
    if name_value_ccsid != 1208:
        data = "<psc>".encode("utf-16-be" if order == ">" else "utf-16-le") + folder
        data += bytes(-len(data) % 4)
    fixed = struct.pack(
        f"{order}4siiii8siii", b"RFH ", 2, 40 + len(data), 546, 1208, b"MQSTR   ", 0, name_value_ccsid, len(data)
    )
    read_everything(fixed + data, FORMAT_MQRFH2, 1208, encoding)


@given(st.text(alphabet="<>/&;#x!?[]=\"' \n\r\tpscaTopic1", max_size=60))
def test_random_markup(markup: str) -> None:
    data = f"<psc><Command>Publish</Command>{markup}</psc>".encode()
    data += b" " * (-len(data) % 4)
    fixed = struct.pack("<4siiii8siii", b"RFH ", 2, 40 + len(data), 546, 1208, b"MQSTR   ", 0, 1208, len(data))
    read_everything(fixed + data, FORMAT_MQRFH2, 1208, 546)


@given(st.text(alphabet='MQPSCommandRegSubTopic "\0%*?#+/0129', max_size=80))
def test_random_strings(string: str) -> None:
    data = b"MQPSCommand RegSub " + string.encode()
    fixed = struct.pack("<4siiii8si", b"RFH ", 1, 32 + len(data), 546, 1208, b"MQSTR   ", 0)
    read_everything(fixed + data, FORMAT_MQRFH, 1208, 546)


def test_a_message_cut_at_any_length() -> None:
    for length in range(len(MESSAGE) + 1):
        read_everything(MESSAGE[:length], FORMAT_DEAD_LETTER, 1208, 546)


@pytest.mark.parametrize("value", [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\x80\0\0\0"])
def test_a_hostile_number_at_any_position(value: bytes) -> None:
    for position in range(len(MESSAGE) - 3):
        read_everything(MESSAGE[:position] + value + MESSAGE[position + 4 :], FORMAT_DEAD_LETTER, 1208, 546)

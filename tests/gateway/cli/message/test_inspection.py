"""Whatever the bytes are, an inspection ends in a value, and soon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.message.inspection import inspect_message
from gateway.cli.message.view import inspection_json, inspection_lines
from mappings.errors import MappingError
from mappings.headers.detection import Announcement, announcement_of

FORMATS = (b"MQHRF   ", b"MQHRF2  ", b"MQDEAD  ", b"MQCICS  ", b"MQHOTHER", b"MQSTR   ")


def shown(data, announcement):
    """Everything that the command would do with it."""
    inspection = inspect_message(data, announcement)
    assert inspection_json(inspection, data)
    return list(inspection_lines(inspection, data)), inspection


@given(
    data=st.binary(max_size=300),
    format=st.sampled_from(FORMATS),
    coded_char_set_id=st.sampled_from([1208, 819, 500, 1047, 1200, 0, -2, 7]),
    encoding=st.sampled_from([273, 546, 0, -1]),
)
def test_random_bytes_end_in_a_value(data, format, coded_char_set_id, encoding):
    shown(data, Announcement(format=format, coded_char_set_id=coded_char_set_id, encoding=encoding))


@given(place=st.integers(min_value=0), value=st.integers(min_value=0, max_value=255), data=st.data())
def test_message_with_one_wrong_byte_ends_in_a_value(vectors, place, value, data):
    name = data.draw(st.sampled_from(["mqrfh", "mqrfh2", "mqrfh_ebcdic", "mqrfh2_two_folders"]))
    message = bytearray(getattr(vectors, name) + b"body")
    message[place % len(message)] = value
    try:
        announcement = announcement_of(bytes(message))
    except MappingError:
        return
    shown(bytes(message), announcement)


@pytest.mark.timeout(100)
def test_long_name_value_string_is_read_in_time_that_grows_with_its_length():
    string = b"MQPSCommand Publish" + b' Topic "\xc3\xa9 x"' * 100_000
    string += b" " * (-len(string) % 4)
    message = bytes.fromhex("52464820 01000000") + (32 + len(string)).to_bytes(4, "little")
    message += bytes.fromhex("22020000 b8040000 2020202020202020 00000000") + string
    _, inspection = shown(message, announcement_of(message))
    pairs = inspection.headers[0].header.pairs
    assert len(pairs) == 100_001
    assert message[pairs[-1].offset :].startswith(b"Topic")


@pytest.mark.timeout(100)
def test_long_folder_is_read_in_time_that_grows_with_its_length():
    folder = b"<usr>" + "<a>é</a>".encode() * 100_000 + b"</usr>"
    folder += b" " * (-len(folder) % 4)
    message = bytes.fromhex("52464820 02000000") + (40 + len(folder)).to_bytes(4, "little")
    message += bytes.fromhex("22020000 b8040000 2020202020202020 00000000 b8040000")
    message += len(folder).to_bytes(4, "little") + folder
    _, inspection = shown(message, announcement_of(message))
    elements = inspection.headers[0].header.folders[0].elements
    assert len(elements) == 100_000
    assert message[elements[-1].offset :].startswith("<a>é</a></usr>".encode())

"""Folders of JMS: IBM MQ, "The MQRFH2 header and JMS"."""

import tracemalloc

import pytest

from mappings.conversion.jms_folders import is_utf_8, jms_folders
from mappings.errors import ConversionError


def test_a_text_has_its_kind_topic_time_and_delivery_mode() -> None:
    folders, body_format = jms_folders("a/<b>", is_text=True, time_ms=1_700_000_000_123, priority=4, is_persistent=True)
    assert folders == (
        "<mcd><Msd>jms_text</Msd></mcd>",
        "<jms><Dst>topic://a/&lt;b&gt;</Dst><Tms>1700000000123</Tms><Pri>4</Pri><Dlv>2</Dlv></jms>",
        "<mqps><Top>a/&lt;b&gt;</Top></mqps>",
    )
    assert body_format == b"MQSTR   "


def test_bytes_have_no_format_and_user_data_stand_behind_the_topic() -> None:
    (mcd, jms, mqps), body_format = jms_folders(
        "\U0001f600", is_text=False, time_ms=0, priority=0, is_persistent=False, user_data="orders"
    )
    assert (mcd, body_format) == ("<mcd><Msd>jms_bytes</Msd></mcd>", b" " * 8)
    assert jms == "<jms><Dst>topic://&#x1f600;</Dst><Tms>0</Tms><Pri>0</Pri><Dlv>1</Dlv></jms>"
    assert mqps == "<mqps><Top>&#x1f600;</Top><Sud>orders</Sud></mqps>"


def test_a_destination_that_ibms_client_cannot_read_is_left_out() -> None:
    folders, _ = jms_folders("a\r", is_text=False, time_ms=0, priority=0, is_persistent=False)
    assert folders[1:] == ("<jms><Tms>0</Tms><Pri>0</Pri><Dlv>1</Dlv></jms>", "<mqps><Top>a&#xd;</Top></mqps>")


@pytest.mark.parametrize("topic", ["a\x01", "\ufffe", "\ud800"])
def test_a_topic_that_no_folder_can_hold_is_an_error(topic: str) -> None:
    with pytest.raises(ConversionError):
        jms_folders(topic, is_text=False, time_ms=0, priority=0, is_persistent=False)


@pytest.mark.parametrize("payload", [b"", b"4.2", "Größe \U0001f600".encode(), b"\0", b"x" * 65_535 + "ß".encode()])
def test_utf_8_is_text(payload: bytes) -> None:
    assert is_utf_8(payload)


@pytest.mark.parametrize(
    "payload",
    [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", "ß".encode()[:1], b"x" * 65_536 + b"\xe2\x82", b"\xf5\x80\x80\x80"],
)
def test_other_bytes_are_none(payload: bytes) -> None:
    assert not is_utf_8(payload)


def test_a_long_payload_is_looked_at_without_its_text() -> None:
    payload = "ß".encode() * 4_000_000
    tracemalloc.start()
    try:
        assert is_utf_8(payload)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()

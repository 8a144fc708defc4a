"""Strings of any length: as text, and with the CCSIDs that can be read."""

import pytest

from mq_adapters.client_channel.charv import Charv
from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode


@pytest.mark.parametrize(
    ("charv", "text"),
    [
        (Charv(), ""),
        (Charv(value="pümp".encode()), "pümp"),
        (Charv(value=b"p\xfcmp", ccsid=819), "pümp"),
    ],
)
def test_a_string_is_text_in_its_ccsid(charv: Charv, text: str) -> None:
    assert charv.text == text


@pytest.mark.parametrize(
    ("charv", "status_code"),
    [
        (Charv(value=b"p\xfcmp"), StatusCode.PROTOCOL_INVALID_DATA),
        (Charv(value=b"\x97", ccsid=500), StatusCode.CCSID_NOT_SUPPORTED),
    ],
)
def test_what_is_no_text_is_refused(charv: Charv, status_code: StatusCode) -> None:
    with pytest.raises(ChannelProtocolError) as refused:
        _ = charv.text
    assert refused.value.status_code is status_code

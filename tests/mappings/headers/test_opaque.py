"""Headers of other kinds are walked over and carried as they are, wherever the Formats allow them."""

import struct

import pytest

from mappings.commands.command import FORMAT_DEAD_LETTER, FORMAT_MQRFH, FORMAT_MQRFH2, Dialect, read_command
from mappings.conversion.convert import convert
from mappings.headers.chain import announces_header, read_header_chain
from mappings.headers.opaque import OpaqueHeader, read_opaque_header
from tests.every_case import for_every

BODY = b"\x00\xffbody"
INSIDE = bytes(range(40))
COMMAND = b"MQPSCommand Publish MQPSTopic a "


def opaque(
    format: bytes, *, order: str = "<", encoding: int = 546, ccsid: int = 1208, struc_id: bytes = b"XYZ "
) -> bytes:
    fixed = struct.pack(f"{order}4siiii8si", struc_id, 1, 32 + len(INSIDE), encoding, ccsid, format, 0)
    return fixed + INSIDE


def mqrfh(format: bytes = b"MQSTR   ", *, ccsid: int = 1208, encoding: int = 546) -> bytes:
    return struct.pack("<4siiii8si", b"RFH ", 1, 64, encoding, ccsid, format, 0) + COMMAND


@pytest.mark.parametrize("format", [b"MQCICS  ", b"MQIMS   ", b"MQHWIH  ", b"MQHMDE  ", b"MQHOTHER"])
def test_a_header_of_another_kind_is_walked_over_to_the_command(format: bytes) -> None:
    data = opaque(FORMAT_MQRFH) + mqrfh() + BODY
    chain = read_header_chain(data, format=format, coded_char_set_id=1208, encoding=546)
    assert chain.headers[0] == OpaqueHeader(
        format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546, struc_length=32 + len(INSIDE)
    )
    assert read_command(chain).verb == "Publish"
    assert data[chain.body_offset :] == BODY


def test_headers_stand_in_any_order_that_their_formats_allow() -> None:
    data = opaque(FORMAT_MQRFH) + mqrfh(b"MQHWIH  ") + opaque(b"MQSTR   ", ccsid=0, encoding=273) + BODY
    chain = read_header_chain(data, format=b"MQCICS  ", coded_char_set_id=1208, encoding=546)
    assert [type(header).__name__ for header in chain.headers] == ["OpaqueHeader", "Mqrfh", "OpaqueHeader"]
    assert (chain.body_format, chain.body_coded_char_set_id, chain.body_encoding) == (b"MQSTR   ", 1208, 273)
    conversion = convert(data, format=b"MQCICS  ", coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH2)
    assert conversion.format == b"MQCICS  "
    assert conversion.header.startswith(opaque(FORMAT_MQRFH2))
    assert conversion.header.endswith(opaque(b"MQSTR   ", ccsid=0, encoding=273))
    assert data[conversion.body_offset :] == BODY
    back = convert(conversion.header + BODY, format=b"MQCICS  ", coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH)
    assert back.header + BODY == data


def test_a_header_in_ebcdic_names_what_follows_in_ebcdic() -> None:
    data = opaque("MQSTR   ".encode("cp500"), order=">", struc_id="CIH ".encode("cp500")) + BODY
    chain = read_header_chain(data, format=b"MQCICS  ", coded_char_set_id=500, encoding=273)
    assert (chain.body_format, chain.body_offset) == (b"MQSTR   ", 72)


WRONG = [
    ("too short", opaque(b"MQSTR   ")[:31], 546),
    ("a length beyond the data", opaque(b"MQSTR   ")[:40], 546),
    ("a length below the beginning", opaque(b"MQSTR   ").replace(b"\x48\0\0\0", b"\x08\0\0\0", 1), 546),
    ("no byte order in front", opaque(b"MQSTR   "), 0),
    ("no byte order behind", opaque(b"MQSTR   ", encoding=0), 546),
]


@pytest.mark.parametrize(("case", "data", "encoding"), WRONG)
def test_what_cannot_be_walked_over_is_the_body(case: str, data: bytes, encoding: int) -> None:
    assert read_opaque_header(data, coded_char_set_id=1208, encoding=encoding) is None, case
    chain = read_header_chain(data, format=b"MQHWIH  ", coded_char_set_id=1208, encoding=encoding)
    assert (chain.headers, chain.body_offset, chain.body_format) == ((), 0, b"MQHWIH  ")


def test_a_format_that_is_none_in_ebcdic_is_not_walked_over() -> None:
    data = opaque(b"\x43" * 8, order=">", encoding=273)
    assert read_opaque_header(data, coded_char_set_id=500, encoding=273) is None


@for_every(range(72))
def test_a_chain_cut_at_any_length_never_gives_a_body_behind_its_end(length: int) -> None:
    data = opaque(FORMAT_DEAD_LETTER)[:length]
    chain = read_header_chain(data, format=b"MQCICS  ", coded_char_set_id=1208, encoding=546)
    assert chain.body_offset == 0


@pytest.mark.parametrize(
    ("format", "header"), [(b"MQHRF   ", True), (b"MQDEAD  ", True), (b"MQSTR   ", False), (b"        ", False)]
)
def test_a_format_says_whether_a_header_follows(format: bytes, header: bool) -> None:
    assert announces_header(format) is header

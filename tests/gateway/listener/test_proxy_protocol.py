"""The PROXY protocol, version 2: vectors put together from section 2.2 of its specification."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config import Address
from gateway.listener.proxy_protocol import (
    FIXED_BYTES,
    ProxyProtocolError,
    check_beginning,
    read_fixed_part,
    read_source,
)

SIGNATURE = "0D0A0D0A000D0A515549540A"
#: 192.0.2.1:56324 (DC04) to 198.51.100.2:1883 (075B), TCP over IPv4.
IPV4 = bytes.fromhex(SIGNATURE + "21 11 000C" + "C0000201 C6336402 DC04 075B")
#: [2001:db8::1]:56324 to [2001:db8::2]:8883, TCP over IPv6.
IPV6 = bytes.fromhex(
    SIGNATURE + "21 21 0024" + "20010DB8000000000000000000000001" + "20010DB8000000000000000000000002" + "DC04 22B3"
)
UNIX = bytes.fromhex(SIGNATURE + "21 31 00D8") + b"/run/a".ljust(108, b"\0") + b"/run/b".ljust(108, b"\0")
LOCAL = bytes.fromhex(SIGNATURE + "20 00 0000")
UNSPECIFIED = bytes.fromhex(SIGNATURE + "21 00 0003 FFFFFF")
#: IPV4 with PP2_TYPE_AUTHORITY "a.b" (02) and PP2_TYPE_NOOP (04) of no length.
WITH_TLVS = bytes.fromhex(SIGNATURE + "21 11 0015" + "C0000201 C6336402 DC04 075B" + "02 0003 612E62" + "04 0000")


def _read(header: bytes) -> Address | None:
    fixed = read_fixed_part(header[:FIXED_BYTES])
    assert len(header) == FIXED_BYTES + fixed.rest_bytes
    return read_source(fixed, header[FIXED_BYTES:])


@pytest.mark.parametrize(
    ("header", "source"),
    [
        (IPV4, "192.0.2.1:56324"),
        (IPV6, "[2001:db8::1]:56324"),
        (WITH_TLVS, "192.0.2.1:56324"),
        (UNIX, None),
        (LOCAL, None),
        (UNSPECIFIED, None),
    ],
    ids=["ipv4", "ipv6", "tlvs", "unix", "local", "unspecified"],
)
def test_the_source_of_a_connection_is_read(header: bytes, source: str | None) -> None:
    found = _read(header)
    assert (str(found) if found is not None else None) == source


def test_a_local_command_says_nothing_of_addresses_whatever_follows() -> None:
    """A health check of the load balancer itself."""
    assert _read(bytes.fromhex(SIGNATURE + "20 11 000C" + "C0000201 C6336402 DC04 075B")) is None


@pytest.mark.parametrize("header", [IPV4, IPV6, LOCAL])
def test_every_beginning_of_a_header_may_become_one(header: bytes) -> None:
    for length in range(len(header) + 1):
        check_beginning(header[:length])


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"P", "version 1"),
        (b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 1883\r\n", "version 1 of the PROXY protocol"),
        (bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"), "did not begin with a header"),
        (bytes.fromhex("16 0301 0200"), "did not begin with a header"),
        (bytes.fromhex("0D0A0D0A000D0A515549540B"), "did not begin with a header"),
        (b"\r\nX", "did not begin with a header"),
    ],
    ids=["one byte", "version 1", "connect", "tls", "last byte of the signature", "third byte"],
)
def test_what_can_be_no_header_is_refused_at_its_first_wrong_byte(data: bytes, complaint: str) -> None:
    with pytest.raises(ProxyProtocolError, match=complaint):
        check_beginning(data)


@pytest.mark.parametrize(
    ("fixed", "complaint"),
    [
        ("11 11 000C", "version and command of its PROXY header are 11"),
        ("22 11 000C", "are 22, not 20 or 21"),
        ("31 11 000C", "are 31"),
        ("21 12 000C", "family and transport of its PROXY header are 12"),
        ("21 41 000C", "are 41, which no stream has"),
        ("21 10 000C", "are 10"),
        ("21 01 0000", "are 01"),
        ("21 11 1001", "has 4097 bytes of addresses, 4096 are taken"),
        ("21 11 FFFF", "has 65535 bytes of addresses"),
    ],
)
def test_a_fixed_part_that_may_not_be_is_refused(fixed: str, complaint: str) -> None:
    with pytest.raises(ProxyProtocolError, match=complaint):
        read_fixed_part(bytes.fromhex(SIGNATURE + fixed))


@pytest.mark.parametrize(
    ("fixed", "rest", "complaint"),
    [
        ("21 11 000B", "C0000201 C6336402 DC04 07", "has 11 bytes of addresses, and needs 12"),
        ("21 21 000C", "C0000201 C6336402 DC04 075B", "has 12 bytes of addresses, and needs 36"),
        ("21 31 0001", "2F", "needs 216"),
        ("21 11 000D", "C0000201 C6336402 DC04 075B 04", "a TLV of its PROXY header, at byte 28, is cut off"),
        ("21 11 0010", "C0000201 C6336402 DC04 075B 04 0002 00", "a TLV of its PROXY header, at byte 28, is cut off"),
    ],
)
def test_addresses_and_tlvs_that_are_cut_off_are_refused(fixed: str, rest: str, complaint: str) -> None:
    with pytest.raises(ProxyProtocolError, match=complaint):
        read_source(read_fixed_part(bytes.fromhex(SIGNATURE + fixed)), bytes.fromhex(rest))


@given(st.binary(min_size=4, max_size=4), st.binary(max_size=300))
def test_any_bytes_end_in_an_address_or_in_our_error(fixed: bytes, rest: bytes) -> None:
    with contextlib.suppress(ProxyProtocolError):
        source = read_source(read_fixed_part(bytes.fromhex(SIGNATURE) + fixed), rest)
        assert source is None or Address.parse(str(source)) == source

"""The PROXY header: a load balancer sends it before anything else, to say where a connection comes from.

PROXY protocol, version 2, in binary. Pure: bytes in, an address out.

    offset  length
    0       12      signature  0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A
    12      1       version in the upper four bits: 2; command in the lower: 0 LOCAL, 1 PROXY
    13      1       family in the upper four bits: 0 none, 1 IPv4, 2 IPv6, 3 Unix; transport in the lower: 1 stream
    14      2       length of what follows, big-endian
    16              addresses: source, destination, source port, destination port (2 bytes each, big-endian)
                    behind them TLVs: type (1 byte), length (2 bytes), value

Source: "The PROXY protocol, Versions 1 & 2" of HAProxy, section 2.2.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final

from gateway.config.values import Address

SIGNATURE: Final = bytes.fromhex("0D0A0D0A000D0A515549540A")
#: Signature, version and command, family and transport, length.
FIXED_BYTES: Final = 16
#: Our choice: addresses take 216 bytes at most, and one or two names of a certificate may stand behind them.
LONGEST_REST_BYTES: Final = 4_096
_VERSION_1: Final = b"PROXY "
_VERSION: Final = 2
_LOCAL, _PROXY = 0, 1
_STREAM: Final = 1
_UNSPECIFIED, _IPV4, _IPV6, _UNIX = range(4)
#: For each family: bytes of one address, and bytes in front of the TLVs.
_ADDRESS_BYTES: Final = {_IPV4: 4, _IPV6: 16, _UNIX: 108}
_PORTS_BYTES: Final = {_IPV4: 4, _IPV6: 4, _UNIX: 0}
_TLV_HEADER_BYTES: Final = 3


class ProxyProtocolError(Exception):
    """The connection does not begin with a header of the PROXY protocol, version 2. Its peer is at fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPart:
    """The first 16 bytes of the header; `rest_bytes` follow."""

    is_local: bool
    family: int
    rest_bytes: int


def check_beginning(data: bytes) -> None:
    """Raises ProxyProtocolError as soon as the first bytes, however few, cannot become a header."""
    beginning = data[: len(SIGNATURE)]
    if SIGNATURE.startswith(beginning):
        return
    if _VERSION_1.startswith(data[: len(_VERSION_1)]):
        raise ProxyProtocolError("it began with a header of version 1 of the PROXY protocol; only version 2 is taken")
    raise ProxyProtocolError("it did not begin with a header of the PROXY protocol, version 2")


def read_fixed_part(data: bytes) -> FixedPart:
    """Reads the first 16 bytes. Raises ProxyProtocolError for a version, command, family or length not allowed here."""
    check_beginning(data)
    version, command = divmod(data[12], 16)
    family, transport = divmod(data[13], 16)
    rest_bytes = int.from_bytes(data[14:16], "big")
    if version != _VERSION or command not in (_LOCAL, _PROXY):
        raise ProxyProtocolError(f"version and command of its PROXY header are {data[12]:02X}, not 20 or 21")
    if rest_bytes > LONGEST_REST_BYTES:
        raise ProxyProtocolError(
            f"its PROXY header has {rest_bytes} bytes of addresses, {LONGEST_REST_BYTES} are taken"
        )
    is_local = command == _LOCAL
    is_stream = family in _ADDRESS_BYTES and transport == _STREAM
    if not (is_local or is_stream or data[13] == _UNSPECIFIED):
        raise ProxyProtocolError(f"family and transport of its PROXY header are {data[13]:02X}, which no stream has")
    return FixedPart(is_local=is_local, family=family, rest_bytes=rest_bytes)


def read_source(fixed: FixedPart, rest: bytes) -> Address | None:
    """The client's address; None if the load balancer connects for itself, or if the address is no IP address.

    Raises ProxyProtocolError if the addresses are cut off, or if the TLVs end before or behind the header's end.
    """
    if fixed.is_local or fixed.family == _UNSPECIFIED:
        return None
    length = _ADDRESS_BYTES[fixed.family]
    end = 2 * length + _PORTS_BYTES[fixed.family]
    if len(rest) < end:
        raise ProxyProtocolError(f"its PROXY header has {len(rest)} bytes of addresses, and needs {end}")
    _check_tlvs(rest, end)
    if fixed.family == _UNIX:
        return None
    port = int.from_bytes(rest[2 * length : 2 * length + 2], "big")
    return Address(host=str(ipaddress.ip_address(rest[:length])), port=port)


def _check_tlvs(rest: bytes, position: int) -> None:
    """Checks that each TLV lies within the header. The gateway uses none of them."""
    while position < len(rest):
        value = position + _TLV_HEADER_BYTES
        end = value + int.from_bytes(rest[position + 1 : value], "big")
        if value > len(rest) or end > len(rest):
            raise ProxyProtocolError(f"a TLV of its PROXY header, at byte {FIXED_BYTES + position}, is cut off")
        position = end

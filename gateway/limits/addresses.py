"""Client addresses as limits count them: an IPv4 address, or the /64 of an IPv6 address, which is one network.

The prefix above it is the /24 of an IPv4 address and the /48 of an IPv6 one.
"""

import socket
from typing import Final

_MAPPED: Final = bytes(10) + b"\xff\xff"
_NETWORK_BYTES: Final = 8
_IPV4_BYTES: Final = 4
#: For each length of a network in bytes: the lengths of the prefixes around it, the widest first.
_PREFIX_BYTES: Final = {_IPV4_BYTES: (2, 3), _NETWORK_BYTES: (6,)}


def network_of_peer(peer: str) -> bytes:
    """`network_of` for an address with its port, HOST:PORT. An IPv6 host stands in brackets."""
    return network_of(peer.rpartition(":")[0].strip("[]"))


def network_of(address: str) -> bytes:
    """The network under which limits count connections from an address: 4 or 8 bytes; b"" if it is no IP address.

    An IPv4 address that is mapped into IPv6 (::ffff:192.0.2.1) counts as itself (RFC 4291 section 2.5.5.2).
    """
    try:
        if ":" not in address:
            return socket.inet_pton(socket.AF_INET, address)
        packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    except OSError:
        return b""
    return packed[-_IPV4_BYTES:] if packed.startswith(_MAPPED) else packed[:_NETWORK_BYTES]


def prefix_of(network: bytes) -> bytes:
    """The prefix of a network that `network_of` returned: the /24 of an IPv4 address, the /48 of an IPv6 one."""
    return network[: _PREFIX_BYTES.get(len(network), (0,))[-1]]


def prefixes_of(network: bytes) -> tuple[bytes, ...]:
    """The prefixes around a network, the widest first, and the network last: /16 and /24 of IPv4, /48 of IPv6.

    Whoever rents addresses gets a whole prefix. A rule about single addresses would not stop somebody who has many.
    """
    return (*(network[:size] for size in _PREFIX_BYTES.get(len(network), ())), network)

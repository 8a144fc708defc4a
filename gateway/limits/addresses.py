"""Client addresses as limits count them: an IPv4 address, or the /64 of an IPv6 one, which is one network's.

The prefix above it is the /24 of an IPv4 address and the /48 of an IPv6 one.
"""

import socket
from typing import Final

_MAPPED: Final = bytes(10) + b"\xff\xff"
_NETWORK_BYTES: Final = 8
_IPV4_BYTES: Final = 4
#: Bytes of the prefixes that hold a network, the widest first, by the network's own bytes.
_PREFIX_BYTES: Final = {_IPV4_BYTES: (2, 3), _NETWORK_BYTES: (6,)}


def network_of_peer(peer: str) -> bytes:
    """The same for an address with its port, HOST:PORT, an IPv6 host in brackets."""
    return network_of(peer.rpartition(":")[0].strip("[]"))


def network_of(address: str) -> bytes:
    """What connections from an address are counted under: 4 or 8 bytes; b"" for what is no IP address.

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
    """The wider network of what `network_of` returns: the /24 of an IPv4 address, the /48 of an IPv6 one."""
    return network[: _PREFIX_BYTES.get(len(network), (0,))[-1]]


def prefixes_of(network: bytes) -> tuple[bytes, ...]:
    """The prefixes that hold it, the widest first and itself last: /16 and /24 of IPv4, /48 of IPv6.

    Those who rent addresses get a whole prefix; so a rule about one address alone binds nobody who has many.
    """
    return (*(network[:size] for size in _PREFIX_BYTES.get(len(network), ())), network)

"""The protocols that a TLS client offers (ALPN), read from its first message before OpenSSL gets it.

RFC 7301 wants a client refused that offers only foreign protocols: otherwise an attacker could make a page of the web
speak to this port (ALPACA). OpenSSL, as Python has it, goes on with such a client. If this module cannot read a
message, OpenSSL judges it.

Sources: RFC 8446, sections 4.1.2, 4.2 and 5.1; RFC 7301, sections 3.1 and 3.2.
"""

import ssl
from typing import Final

#: OpenSSL alone judges a longer first message. An honest client's has less than two kilobytes.
MAXIMUM_BYTES: Final = 16_384
#: A record with the fatal alert no_application_protocol: type 21, version 3.3, two bytes, 2 (fatal), 120.
NO_APPLICATION_PROTOCOL: Final = bytes((21, 3, 3, 0, 2, 2, 120))
_HANDSHAKE_RECORD: Final = 22
_RECORD_HEADER_BYTES: Final = 5
_CLIENT_HELLO: Final = 1
_MESSAGE_HEADER_BYTES: Final = 4
#: legacy_version and random.
_FIXED_BYTES: Final = 34
_ALPN: Final = 16


class ForeignProtocol(ssl.SSLError):
    """The client offers protocols, but not the listener's. A subclass of OpenSSL's class of errors."""


class _Bytes:
    """A message that is read from its beginning to its end. Raises IndexError if it is too short."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise IndexError
        self._at += count
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count))

    def vector(self, length_bytes: int) -> bytes:
        """The bytes of a vector; its length stands in front of them."""
        return self.take(self.number(length_bytes))

    @property
    def has_more(self) -> bool:
        return self._at < len(self._data)


class ClientHello:
    """The beginning of a connection, until its first message is complete."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def offered(self, data: bytes) -> tuple[bytes, ...] | None:
        """The protocols that the client offers, perhaps none. Returns None while more bytes are needed."""
        self._data += data[: MAXIMUM_BYTES + 1 - len(self._data)]
        if len(self._data) > MAXIMUM_BYTES:
            return ()
        try:
            message = _message(bytes(self._data))
            return None if message is None else _protocols(_Bytes(message))
        except IndexError:
            return ()


def _message(data: bytes) -> bytes | None:
    """The first message out of its records, without its header; None if incomplete, b"" if of another type."""
    message = b""
    while len(data) >= _RECORD_HEADER_BYTES:
        if data[0] != _HANDSHAKE_RECORD:
            return b""
        end = _RECORD_HEADER_BYTES + int.from_bytes(data[3:5])
        message += data[_RECORD_HEADER_BYTES:end]
        if message and message[0] != _CLIENT_HELLO:
            return b""
        wanted = _MESSAGE_HEADER_BYTES + int.from_bytes(message[1:4])
        if len(message) >= max(wanted, _MESSAGE_HEADER_BYTES):
            return message[_MESSAGE_HEADER_BYTES:wanted]
        data = data[end:]
    return b"" if data[:1] and data[0] != _HANDSHAKE_RECORD else None


def _protocols(hello: _Bytes) -> tuple[bytes, ...]:
    hello.take(_FIXED_BYTES)
    for length_bytes in (1, 2, 1):  # session, cipher suites, methods of compression
        hello.vector(length_bytes)
    extensions = _Bytes(hello.vector(2)) if hello.has_more else _Bytes(b"")
    while extensions.has_more:
        kind, content = extensions.number(2), extensions.vector(2)
        if kind == _ALPN:
            names = _Bytes(_Bytes(content).vector(2))
            return tuple(_each(names))
    return ()


def _each(names: _Bytes) -> list[bytes]:
    found = []
    while names.has_more:
        found.append(names.vector(1))
    return found

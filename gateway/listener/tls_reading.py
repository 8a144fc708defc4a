"""A limit on TLS records without content. They cost the event loop time, but never reach MQTT.

A client of TLS 1.3 may ask for new keys as often as it likes (KeyUpdate, RFC 8446 section 4.6.3). Each request takes 27
bytes, and costs the gateway some 10 microseconds. OpenSSL sets no limit. One connection without a password stopped the
gateway with 3 MB of such requests a second. The dearest honest client sends each byte of MQTT in a record of its own.
A connection ends when it has sent far more bytes than that. Bytes that come slowly are forgiven, because an honest
client may pad its records.
"""

import ssl
import time
from typing import Final

#: Bytes allowed for each byte of content. A byte in a record of its own takes 23 to 85, depending on the cipher suite.
_BYTES_OF_RECORDS: Final = 96
#: Bytes allowed beyond that: the longest record has 16,640, and its content comes only at its end.
_MAXIMUM_BARREN_BYTES: Final = 32_768
#: Bytes forgiven each second: a client may pad each record to the longest (RFC 8446 section 5.4).
_FORGIVEN_BYTES: Final = 16_640

#: The reason in the log.
BARREN: Final = "its TLS records have almost no content"


class BarrenTls(ssl.SSLError):
    """The client sent too many TLS records without content. A subclass of OpenSSL's class of errors."""


class BarrenBytes:
    """Bytes of one connection that brought no content and are not forgiven yet."""

    __slots__ = ("_barren_bytes", "_counted_s")

    def __init__(self) -> None:
        self._barren_bytes = 0.0
        #: The time of the last count, by the monotonic clock.
        self._counted_s = time.monotonic()

    def count(self, taken_bytes: int, given_bytes: int) -> None:
        """Counts the bytes that OpenSSL took from the network, and the content that it gave. Raises BarrenTls."""
        now_s = time.monotonic()
        forgiven = _BYTES_OF_RECORDS * given_bytes + _FORGIVEN_BYTES * (now_s - self._counted_s)
        self._barren_bytes, self._counted_s = max(0.0, self._barren_bytes + taken_bytes - forgiven), now_s
        if self._barren_bytes > _MAXIMUM_BARREN_BYTES:
            raise BarrenTls(BARREN)

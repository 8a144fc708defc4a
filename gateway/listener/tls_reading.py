"""A limit on TLS records without content, which cost the event loop time that MQTT does not see.

A client of TLS 1.3 may ask for new keys as often as it likes (KeyUpdate, RFC 8446 section 4.6.3). Each costs some 10
microseconds and 27 bytes, OpenSSL sets no limit, and nothing of it reaches MQTT: one connection that sent 3 MB of them
a second stopped the gateway, without a password. So a connection ends when far more bytes have come than MQTT needs if
each of its bytes has a record of its own. Bytes that come slowly are forgiven, as those of a client that pads its
records.
"""

import ssl
import time
from typing import Final

#: Bytes that are allowed for each byte of content: one in a record of its own takes 23 to 85, by the cipher suite.
_BYTES_OF_RECORDS: Final = 96
#: Bytes that may come beyond that: the longest record has 16,640, and gives nothing before its end.
_MAXIMUM_BARREN_BYTES: Final = 32_768
#: Bytes that are forgiven in a second: a client may pad its records to the longest (RFC 8446 section 5.4).
_FORGIVEN_BYTES: Final = 16_640

#: The reason in the log.
BARREN: Final = "its TLS records have almost no content"


class BarrenTls(ssl.SSLError):
    """Too many TLS records without content: the client's fault. A subclass of the class of OpenSSL's errors."""


class BarrenBytes:
    """Bytes of one connection that brought no content, and are not forgiven yet."""

    __slots__ = ("_barren_bytes", "_counted_s")

    def __init__(self) -> None:
        self._barren_bytes = 0.0
        #: The time of the last count, by the monotonic clock.
        self._counted_s = time.monotonic()

    def count(self, taken_bytes: int, given_bytes: int) -> None:
        """Counts bytes that OpenSSL took from the network, and bytes that it gave. Raises BarrenTls."""
        now_s = time.monotonic()
        forgiven = _BYTES_OF_RECORDS * given_bytes + _FORGIVEN_BYTES * (now_s - self._counted_s)
        self._barren_bytes, self._counted_s = max(0.0, self._barren_bytes + taken_bytes - forgiven), now_s
        if self._barren_bytes > _MAXIMUM_BARREN_BYTES:
            raise BarrenTls(BARREN)

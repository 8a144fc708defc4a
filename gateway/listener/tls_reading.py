"""What TLS takes from the network and gives nothing for: bounded, for it costs the event loop what nobody can see.

A client of TLS 1.3 may ask for new keys as often as it likes (KeyUpdate, RFC 8446 section 4.6.3). Each costs some 10
microseconds and 27 bytes, OpenSSL sets no limit, and nothing of it reaches MQTT: one connection that sent 3 MB of them
a second stopped the gateway, and needed no password for that. So a connection ends when far more bytes have come on it
than MQTT can have sent byte by byte, each in a record of its own; what comes slowly, as from a client that fills its
records up, is forgiven.
"""

import ssl
import time
from typing import Final

#: A byte in a record of its own takes 23 to 85, by the cipher suite: so many for each are nobody's fault.
_BYTES_OF_RECORDS: Final = 96
#: What may come beyond that, bytes: the longest record has 16,640, and gives nothing before its end.
_MAXIMUM_BARREN_BYTES: Final = 32_768
#: How much of it is forgiven in a second: a client may fill its records up to the longest (RFC 8446 section 5.4).
_FORGIVEN_BYTES: Final = 16_640

#: What the log says of such a connection.
BARREN: Final = "its TLS records brought next to nothing"


class BarrenTls(ssl.SSLError):
    """Much has come in TLS and next to nothing in it: the client's fault. OpenSSL reports its errors as this class."""


class BarrenBytes:
    """What one connection has taken and brought nothing for, as far as it is not forgiven."""

    __slots__ = ("_barren_bytes", "_counted_s")

    def __init__(self) -> None:
        self._barren_bytes = 0.0
        #: When it counted last, by the monotonic clock.
        self._counted_s = time.monotonic()

    def count(self, taken_bytes: int, given_bytes: int) -> None:
        """What OpenSSL has taken from the network, and what it gave for that. Raises BarrenTls."""
        now_s = time.monotonic()
        forgiven = _BYTES_OF_RECORDS * given_bytes + _FORGIVEN_BYTES * (now_s - self._counted_s)
        self._barren_bytes, self._counted_s = max(0.0, self._barren_bytes + taken_bytes - forgiven), now_s
        if self._barren_bytes > _MAXIMUM_BARREN_BYTES:
            raise BarrenTls(BARREN)

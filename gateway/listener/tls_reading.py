"""What TLS takes from the network and gives nothing for: bounded, for it costs the event loop what nobody can see.

A client of TLS 1.3 may ask for new keys as often as it likes (KeyUpdate, RFC 8446 section 4.6.3). Each costs some 10
microseconds and 27 bytes, OpenSSL sets no limit, and nothing of it reaches MQTT: one connection that sent 3 MB of them
a second stopped the gateway, and needed no password for that. So a connection ends when far more bytes have come on it
than MQTT can have sent byte by byte, each in a record of its own; what comes slowly, as from a client that fills its
records up, is forgiven.
"""

import ssl
import time
from typing import Any, Final

#: A byte in a record of its own takes 23 to 85, by the cipher suite: so many for each are nobody's fault.
_BYTES_OF_RECORDS: Final = 96
#: What may come beyond that, bytes: the longest record has 16,640, and gives nothing before its end.
_MAXIMUM_BARREN_BYTES: Final = 32_768
#: What a record brings at most (RFC 8446 section 5.1), bytes.
_RECORD_BYTES: Final = 16_384
#: How much of it is forgiven in a second: a client may fill its records up to the longest (RFC 8446 section 5.4).
_FORGIVEN_BYTES: Final = 16_640

#: What the log says of such a connection.
BARREN: Final = "its TLS records brought next to nothing"


class BarrenTls(ssl.SSLError):
    """Much has come in TLS and next to nothing in it: the client's fault. OpenSSL reports its errors as this class."""


class CountedTls(ssl.SSLObject):
    """One TLS connection, which counts what it reads. `CountedContext` makes them."""

    #: What has come from the network, and was not read.
    incoming: ssl.MemoryBIO
    #: When it counted last, by the monotonic clock.
    counted_s: float
    _barren_bytes = 0.0

    def read(self, wanted_bytes: int = _RECORD_BYTES, *buffer: Any) -> Any:
        """See ssl.SSLObject.read: some bytes, or where there is a buffer their number. Raises BarrenTls.

        OpenSSL gives one record at most. uvloop asks for 256 KiB, which are mapped for it and given back each time.
        """
        before = self.incoming.pending
        try:
            found: Any = super().read(min(wanted_bytes, _RECORD_BYTES), *buffer)
        except ssl.SSLWantReadError:
            self._count(before - self.incoming.pending, 0)
            raise
        self._count(before - self.incoming.pending, found if isinstance(found, int) else len(found))
        return found

    def _count(self, taken_bytes: int, given_bytes: int) -> None:
        now_s = time.monotonic()
        forgiven = _BYTES_OF_RECORDS * given_bytes + _FORGIVEN_BYTES * (now_s - self.counted_s)
        self._barren_bytes, self.counted_s = max(0.0, self._barren_bytes + taken_bytes - forgiven), now_s
        if self._barren_bytes > _MAXIMUM_BARREN_BYTES:
            raise BarrenTls(BARREN)


class CountedContext(ssl.SSLContext):
    """A context whose connections count what they read; asyncio makes them by `wrap_bio` alone."""

    sslobject_class = CountedTls

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *how: Any, **named: Any) -> CountedTls:
        """See ssl.SSLContext.wrap_bio."""
        made = super().wrap_bio(incoming, outgoing, *how, **named)
        assert isinstance(made, CountedTls)
        made.incoming, made.counted_s = incoming, time.monotonic()
        return made

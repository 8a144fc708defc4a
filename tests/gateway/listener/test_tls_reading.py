"""TLS records that bring nothing end their connection, and single bytes in records of their own do not."""

import itertools
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.listener import tls_reading
from gateway.listener.tls_reading import BarrenTls
from tests.gateway.listener.tls_house import House, TlsPair, play

PINGREQ = b"\xc0\x00"
#: A KeyUpdate of TLS 1.3 in its record: 5 bytes of the record, 5 of the message, 1 of its type, 16 of the tag.
KEY_UPDATE_BYTES = 27
LONGEST_RECORD_BYTES = 16_384


@pytest.mark.parametrize(
    ("version", "ciphers"),
    [
        ("TLSv1.3", "ECDHE+AESGCM"),
        ("TLSv1.2", "ECDHE+AESGCM"),
        ("TLSv1.2", "ECDHE-ECDSA-AES256-SHA384"),
    ],
    ids=["1.3", "1.2", "1.2 with the longest records"],
)
def test_single_bytes_in_records_of_their_own_are_read(tmp_path: Path, version: str, ciphers: str) -> None:
    async def scenario() -> None:
        pair = TlsPair(House(tmp_path), version, ciphers)
        for _ in range(3_000):
            pair.client.write(b"\xc0")
            pair.transport.data_received(pair.sent.read())
        assert pair.above.received == b"\xc0" * 3_000

    play(scenario)


def test_long_records_that_come_byte_by_byte_are_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        pair = TlsPair(House(tmp_path), "TLSv1.3")
        payload = bytes(range(256)) * 64
        for _ in range(2):
            pair.client.write(payload)
            records = pair.sent.read()
            for place in range(len(records)):
                pair.transport.data_received(records[place : place + 1])
        assert pair.above.received == payload * 2

    play(scenario)


class Barren:
    """In place of OpenSSL: whatever comes is taken, and nothing is in it but a packet for each 64 KiB, if any."""

    def __init__(self, pair: TlsPair, packet: bytes) -> None:
        self._incoming = pair.transport._incoming
        self._packet = packet
        self._taken_bytes = 0

    def read(self, *_: Any) -> bytes:
        self._taken_bytes += len(self._incoming.read())
        if self._taken_bytes < 65_536 or not self._packet:
            raise ssl.SSLWantReadError
        self._taken_bytes -= 65_536
        return self._packet


@pytest.mark.parametrize("packet", [b"", PINGREQ, PINGREQ * 300])
def test_connection_that_brings_next_to_nothing_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packet: bytes
) -> None:
    async def scenario() -> None:
        pair = TlsPair(House(tmp_path), "TLSv1.3")
        monkeypatch.setattr(ssl.SSLObject, "read", Barren(pair, packet).read)
        pair.transport.data_received(bytes(KEY_UPDATE_BYTES * 40_000))
        assert pair.tcp.was_aborted
        pair.transport.connection_lost(None)
        assert isinstance(pair.above.lost.result(), BarrenTls)

    play(scenario)


def test_what_comes_slowly_may_be_filled_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest record that there is each second, as if nothing were in it, for two minutes."""

    async def scenario() -> None:
        pair = TlsPair(House(tmp_path), "TLSv1.3")
        monkeypatch.setattr(ssl.SSLObject, "read", Barren(pair, b"").read)
        seconds = itertools.count(tls_reading.time.monotonic(), 1 / 3)  # a record is given to OpenSSL in three pieces
        monkeypatch.setattr(tls_reading, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
        for _ in range(120):
            pair.transport.data_received(bytes(LONGEST_RECORD_BYTES + 256))
        assert not pair.tcp.was_aborted

    play(scenario)

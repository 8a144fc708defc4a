"""TLS records that bring nothing end their connection, and single bytes in records of their own do not."""

import contextlib
import itertools
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.listener import tls_reading
from gateway.listener.tls_reading import BarrenTls, CountedContext, CountedTls
from tests.end_to_end.clients.certificates import make_certificates

PINGREQ = b"\xc0\x00"
#: A KeyUpdate of TLS 1.3 in its record: 5 bytes of the record, 5 of the message, 1 of its type, 16 of the tag.
KEY_UPDATE_BYTES = 27
LONGEST_RECORD_BYTES = 16_384


class Pair:
    """Both ends of a connection; what the client sends stays in `sent` until it is handed over."""

    def __init__(self, folder: Path, version: ssl.TLSVersion, ciphers: str = "ECDHE+AESGCM") -> None:
        made = make_certificates(folder)
        context = CountedContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.certificate, made.key)
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        for each in (context, trusting):
            each.set_ciphers(ciphers)
            each.minimum_version = each.maximum_version = version
        self.incoming, answers, self._to_client, self.sent = (ssl.MemoryBIO() for _ in range(4))
        self.server = context.wrap_bio(self.incoming, answers, server_side=True)
        self.client = trusting.wrap_bio(self._to_client, self.sent)
        for _ in range(3):
            for end, out, to in ((self.client, self.sent, self.incoming), (self.server, answers, self._to_client)):
                with contextlib.suppress(ssl.SSLWantReadError):
                    end.do_handshake()
                to.write(out.read())

    def read_all(self) -> bytes:
        """What the server reads until it wants more."""
        found = b""
        while True:
            try:
                found += self.server.read(LONGEST_RECORD_BYTES)
            except ssl.SSLWantReadError:
                return found


@pytest.mark.parametrize(
    ("version", "ciphers"),
    [
        (ssl.TLSVersion.TLSv1_3, "ECDHE+AESGCM"),
        (ssl.TLSVersion.TLSv1_2, "ECDHE+AESGCM"),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES256-SHA384"),
    ],
    ids=["1.3", "1.2", "1.2 with the longest records"],
)
def test_single_bytes_in_records_of_their_own_are_read(tmp_path: Path, version: ssl.TLSVersion, ciphers: str) -> None:
    pair = Pair(tmp_path, version, ciphers)
    for _ in range(3_000):
        pair.client.write(b"\xc0")
        pair.incoming.write(pair.sent.read())
        assert pair.read_all() == b"\xc0"


def test_long_records_that_come_byte_by_byte_are_read(tmp_path: Path) -> None:
    pair = Pair(tmp_path, ssl.TLSVersion.TLSv1_3)
    payload = bytes(range(256)) * 64
    for _ in range(2):
        pair.client.write(payload)
        records, found = pair.sent.read(), b""
        for place in range(len(records)):
            pair.incoming.write(records[place : place + 1])
            found += pair.read_all()
        assert found == payload


def test_openssl_is_asked_for_no_more_than_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop asks for 256 KiB each time."""
    pair = Pair(tmp_path, ssl.TLSVersion.TLSv1_3)
    asked: list[int] = []
    read = ssl.SSLObject.read

    def noted(connection: ssl.SSLObject, wanted_bytes: int) -> Any:
        asked.append(wanted_bytes)
        return read(connection, wanted_bytes)

    monkeypatch.setattr(ssl.SSLObject, "read", noted)
    payload = bytes(range(256)) * 200
    pair.client.write(payload)
    pair.incoming.write(pair.sent.read())
    assert b"".join(pair.server.read(262_144) for _ in range(4)) == payload
    assert asked == [LONGEST_RECORD_BYTES] * 4


class Barren:
    """In place of OpenSSL: whatever comes is taken, and nothing is in it but a packet for each 64 KiB, if any."""

    def __init__(self, packet: bytes) -> None:
        self._packet = packet

    def __call__(self, connection: CountedTls, *_wanted: Any) -> bytes:
        taken = connection.incoming.read(65_536)
        if len(taken) < 65_536 or not self._packet:
            raise ssl.SSLWantReadError
        return self._packet


@pytest.mark.parametrize("packet", [b"", PINGREQ, PINGREQ * 300])
def test_connection_that_brings_next_to_nothing_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packet: bytes
) -> None:
    pair = Pair(tmp_path, ssl.TLSVersion.TLSv1_3)
    openssl = Barren(packet)
    monkeypatch.setattr(ssl.SSLObject, "read", lambda *arguments: openssl(*arguments))
    pair.incoming.write(bytes(KEY_UPDATE_BYTES * 40_000))
    with pytest.raises(BarrenTls):
        pair.read_all()


def test_what_comes_slowly_may_be_filled_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest record that there is each second, as if nothing were in it, for two minutes."""
    pair = Pair(tmp_path, ssl.TLSVersion.TLSv1_3)
    openssl = Barren(b"")
    monkeypatch.setattr(ssl.SSLObject, "read", lambda *arguments: openssl(*arguments))
    seconds = itertools.count(pair.server.counted_s)
    monkeypatch.setattr(tls_reading, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    for _ in range(120):
        pair.incoming.write(bytes(LONGEST_RECORD_BYTES + 256))
        assert pair.read_all() == b""

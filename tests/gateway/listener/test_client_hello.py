"""The protocols that a client offers: first messages as OpenSSL sends them, whole, cut anywhere, and broken."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.listener.client_hello import MAXIMUM_BYTES, ClientHello


def hello(*protocols: str, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, host: str = "localhost") -> bytes:
    """The first bytes of a client of Python's ssl module."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = version
    if protocols:
        context.set_alpn_protocols(protocols)
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("protocols", [(), ("mqtt",), ("h2", "http/1.1", "mqtt")])
def test_what_a_client_offers_is_read_when_its_message_is_complete(version, protocols) -> None:
    data = hello(*protocols, version=version)
    expected = tuple(name.encode() for name in protocols)
    assert ClientHello().offered(data) == expected
    by_bytes = ClientHello()
    told = [by_bytes.offered(data[at : at + 1]) for at in range(len(data))]
    assert told == [None] * (len(data) - 1) + [expected]


def test_a_message_over_several_records_is_put_together() -> None:
    data = hello("x-other")
    message, size = data[5:], 50
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    records = b"".join(data[:3] + len(part).to_bytes(2) + part for part in parts)
    assert ClientHello().offered(records) == (b"x-other",)


@pytest.mark.parametrize(
    "data",
    [
        b"\x10\x10\x00\x04MQTT\x04\x02\x00\x00",
        b"GET / HTTP/1.1\r\n",
        bytes((22, 3, 1, 0, 5, 2, 0, 0, 1, 0)),
        bytes((22, 3, 1, 0, 5, 1, 0, 0, 1, 0)),
    ],
    ids=["MQTT", "HTTP", "another message", "a message that is too short"],
)
def test_what_is_no_first_message_is_left_to_openssl(data: bytes) -> None:
    assert ClientHello().offered(data) == ()


def test_a_first_message_without_an_end_is_given_up() -> None:
    endless = bytes((22, 3, 1, 0x40, 0)) + bytes((1, 0xFF, 0xFF, 0xFF)) + bytes(0x4000 - 4)
    reading = ClientHello()
    assert reading.offered(endless[:100]) is None
    assert reading.offered(endless[100:] + bytes(MAXIMUM_BYTES)) == ()


@given(st.binary(max_size=300), st.integers(0, 300))
def test_any_bytes_end_in_a_value(noise: bytes, at: int) -> None:
    data = hello("mqtt")
    for broken in (noise, data[:at] + noise, data[:at] + noise + data[at:]):
        found = ClientHello().offered(broken)
        assert found is None or all(isinstance(name, bytes) for name in found)

"""A client of MQTT 5.0 on a raw socket: CONNECT is typed by hand as far as a test says it, CONNACK is taken apart."""

from dataclasses import dataclass

from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient, packet

#: How long each property of a CONNACK is, in bytes behind its identifier; 0: a text with its length in two bytes.
_LENGTHS = {0x11: 4, 0x12: 0, 0x13: 2, 0x1F: 0, 0x21: 2, 0x22: 2, 0x24: 1, 0x25: 1, 0x27: 4, 0x28: 1, 0x29: 1, 0x2A: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Connack:
    """`properties` by identifier; the bytes behind it, texts without their length."""

    session_present: bool
    reason_code: int
    properties: dict[int, bytes]


def read_connack(client: WireClient) -> Connack:
    """The next packet, which must be a CONNACK of level 5 shorter than 128 bytes."""
    data = client.receive_packet()
    assert data[:1] == b"\x20", f"{client.name}: no CONNACK but {data.hex(' ')}"
    assert data[1] == len(data) - 2
    assert data[4] == len(data) - 5, "the properties fill the packet"
    properties: dict[int, bytes] = {}
    rest = data[5:]
    while rest:
        identifier, rest = rest[0], rest[1:]
        length = _LENGTHS[identifier]
        if not length:
            length, rest = int.from_bytes(rest[:2], "big"), rest[2:]
        assert identifier not in properties
        properties[identifier], rest = rest[:length], rest[length:]
    return Connack(session_present=bool(data[2]), reason_code=data[3], properties=properties)


def connect_packet(
    name: str, *, clean_start: bool = True, keep_alive_s: int = 0, properties: str = "", will: str = "", flags: int = 0
) -> bytes:
    """CONNECT; `will` is typed from its properties on, `flags` are those of the will beside 04."""
    connect_flags = clean_start << 1 | (4 | flags if will else 0)
    encoded = packet(properties)
    body = b"".join(
        (
            packet("0004 'MQTT' 05"),
            bytes((connect_flags,)),
            keep_alive_s.to_bytes(2, "big"),
            bytes((len(encoded),)),
            encoded,
            len(name).to_bytes(2, "big"),
            name.encode(),
            packet(will),
        )
    )
    assert len(body) < 128
    return bytes((0x10, len(body))) + body


def connected(client: WireClient, name: str, **asked: object) -> Connack:
    """CONNECT that must be accepted."""
    client.name = name or client.name
    client.send("connects", connect_packet(name, **asked))  # type: ignore[arg-type]  # passed on as they came
    answer = read_connack(client)
    assert answer.reason_code == 0
    return answer


def payloads(client: WireClient, count: int) -> list[bytes]:
    """The last byte of each of so many PUBLISH packets, which must be the next ones."""
    found = []
    for _ in range(count):
        data = client.receive_packet()
        assert data[:1] >= b"\x30", f"{client.name}: no PUBLISH but {data.hex()}"
        assert data[0] >> 4 == 3, f"{client.name}: no PUBLISH but {data.hex()}"
        found.append(data[-1:])
    return found


def is_quiet(client: WireClient) -> bool:
    """Whether nothing was sent before the answer to a PINGREQ."""
    client.send("pings", "C0 00")
    return client.receive_packet() == b"\xd0\x00"


def publish(client: WireClient, topic: str, *texts: str, qos: int = 1) -> None:
    """Publishes one after the other, and waits until the gateway has each: at level 4, without properties."""
    for text in texts:
        body = len(topic).to_bytes(2, "big") + topic.encode() + (b"\x00\x01" if qos else b"") + text.encode()
        client.send("publishes", bytes((0x30 | qos << 1, len(body))) + body)
        if qos == 1:
            client.expect("hears that it is safe", "40 02 0001")
        elif qos == 2:
            client.expect("hears that it is kept", "50 02 0001")
            client.send("releases it", "62 02 0001")
            client.expect("hears that it is done", "70 02 0001")


def publisher(client: WireClient, name: str) -> WireClient:
    """A client of level 4."""
    body = packet("0004 'MQTT' 04 02 0000") + len(name).to_bytes(2, "big") + name.encode()
    client.send("connects", bytes((0x10, len(body))) + body)
    client.expect("is accepted", "20 02 00 00")
    return client


def subscribed(client: WireClient, gateway: Gateway, name: str, topic_filter: str, options: int = 1) -> WireClient:
    """A client of level 5 with one subscription; its session lasts."""
    assert gateway.is_running
    connected(client, name, properties="11 FFFFFFFF")
    subscribe(client, topic_filter, options)
    return client


def subscribe(client: WireClient, topic_filter: str, options: int = 1, *, properties: str = "") -> None:
    encoded, body = packet(properties), len(topic_filter).to_bytes(2, "big") + topic_filter.encode()
    body = b"\x00\x01" + bytes((len(encoded),)) + encoded + body + bytes((options,))
    client.send("subscribes", bytes((0x82, len(body))) + body)
    client.expect("is granted it", bytes((0x90, 4, 0, 1, 0, options & 3)))

"""MQTT packet headers as the audit reads and writes them (MQTT 3.1.1 and 5.0, sections 2.2, 3.3, 3.8 and 3.10)."""

from dataclasses import dataclass

from spark_audit.reperform.comparison import UnreadableBytes
from spark_audit.reperform.properties import variable_number

PUBLISH = 3
CONNECT = 1
SUBSCRIBE = 8
UNSUBSCRIBE = 10
DISCONNECT = 14
FIRST_LEVEL_WITH_PROPERTIES = 5
EXACTLY_ONCE = 2
_MAXIMUM_REMAINING_LENGTH = 268_435_455


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishHeader:
    """Fixed and variable header of a PUBLISH; `packet_identifier` is 0 with QoS 0.

    `properties`: the bytes with their length in front; empty before level 5, and from level 5 on at least a length of
    0. At level 5 the topic may be empty if there is a topic alias.
    """

    qos: int
    retain: bool
    duplicate: bool
    remaining_length: int
    topic: str
    packet_identifier: int
    properties: bytes = b""


def read_publish(header: bytes, level: int = -1) -> PublishHeader:
    """Reads the header, which must end where the payload would begin."""
    if not header or header[0] >> 4 != PUBLISH:
        raise UnreadableBytes("not a PUBLISH")
    qos = header[0] >> 1 & 3
    if qos == 3:
        raise UnreadableBytes("QoS 3 does not exist")
    remaining, offset = _remaining_length(header)
    topic, offset = _text(header, offset)
    identifier = 0
    if qos:
        if len(header) < offset + 2:
            raise UnreadableBytes("the packet identifier is missing", offset)
        identifier, offset = int.from_bytes(header[offset : offset + 2], "big"), offset + 2
        if not identifier:
            raise UnreadableBytes("packet identifier 0", offset - 2)
    properties = header[offset:]
    if level < FIRST_LEVEL_WITH_PROPERTIES:
        if properties:
            raise UnreadableBytes("bytes behind the variable header, which before level 5 has no properties", offset)
    else:
        length, start = variable_number(header, offset)
        if start + length != len(header):
            raise UnreadableBytes("bytes behind the variable header, which are no properties", offset)
    return PublishHeader(
        qos=qos,
        retain=bool(header[0] & 1),
        duplicate=bool(header[0] & 8),
        remaining_length=remaining,
        topic=topic,
        packet_identifier=identifier,
        properties=properties,
    )


def write_publish(
    *,
    qos: int,
    retain: bool,
    duplicate: bool,
    topic: str,
    packet_identifier: int,
    payload_bytes: int,
    properties: bytes = b"",
) -> bytes:
    """The header of a PUBLISH with that payload. The remaining length has as few bytes as possible."""
    name = topic.encode(errors="replace")
    variable = len(name).to_bytes(2, "big") + name
    if qos:
        variable += packet_identifier.to_bytes(2, "big")
    variable += properties
    first = PUBLISH << 4 | duplicate << 3 | qos << 1 | retain
    return bytes((first,)) + _written_length(len(variable) + payload_bytes) + variable


def read_filter(part: bytes, packet_type: int) -> str:
    """The topic filter of one entry of a SUBSCRIBE or UNSUBSCRIBE: length, filter and, in a SUBSCRIBE, the options.

    A whole packet with a single entry (fixed header, packet identifier, entry) is read too.
    """
    return _text(_entry(part, packet_type), 0)[0]


def read_retain_handling(part: bytes) -> int:
    """Bits 5 and 4 of the options of an entry of a SUBSCRIBE; 0 before level 5, and without options."""
    entry = _entry(part, SUBSCRIBE)
    options = entry[2 + int.from_bytes(entry[:2], "big") :]
    return options[0] >> 4 & 3 if options else 0


def _entry(part: bytes, packet_type: int) -> bytes:
    trailing = 1 if packet_type == SUBSCRIBE else 0
    for skipped in (0, _entry_offset(part, packet_type)):
        entry = part[skipped:]
        length = int.from_bytes(entry[:2], "big")
        if len(entry) in (2 + length, 2 + length + trailing) and length:
            return entry
    raise UnreadableBytes("not one entry of a SUBSCRIBE or UNSUBSCRIBE")


def read_will(part: bytes, level: int = -1) -> tuple[str, bool, int, bytes]:
    """Topic, RETAIN, QoS and properties of a will: length, topic, a byte with QoS (0x06) and RETAIN (0x01).

    From level 5 on the properties follow, with their length.
    """
    topic, offset = _text(part, 0)
    properties = part[offset + 1 :]
    if offset >= len(part) or bool(properties) != (level >= FIRST_LEVEL_WITH_PROPERTIES):
        raise UnreadableBytes("a will is a topic and one byte of flags, at level 5 and properties", offset)
    return topic, bool(part[offset] & 1), part[offset] >> 1 & 3, properties


def _entry_offset(part: bytes, packet_type: int) -> int:
    """The offset of the first entry of a whole packet; 0 if this is no whole packet."""
    if not part or part[0] >> 4 != packet_type:
        return 0
    try:
        remaining, offset = _remaining_length(part)
    except UnreadableBytes:
        return 0
    return offset + 2 if offset + remaining == len(part) else 0


def _remaining_length(header: bytes) -> tuple[int, int]:
    return variable_number(header, 1)


def _written_length(length: int) -> bytes:
    if not 0 <= length <= _MAXIMUM_REMAINING_LENGTH:
        raise UnreadableBytes(f"a packet of {length} bytes does not exist")
    digits = bytearray()
    while True:
        length, digit = divmod(length, 128)
        if not length:
            return bytes((*digits, digit))
        digits.append(digit | 0x80)


def _text(data: bytes, offset: int) -> tuple[str, int]:
    end = offset + 2 + int.from_bytes(data[offset : offset + 2], "big")
    if len(data) < max(end, offset + 2):
        raise UnreadableBytes("the text is cut", offset)
    try:
        return data[offset + 2 : end].decode(), end
    except UnicodeDecodeError as error:
        raise UnreadableBytes("the text is not UTF-8", offset + 2 + error.start) from error

"""Fields of a PUBLISH, read from the raw header bytes that the note kept.

A PUBLISH header here is fixed and variable header without the payload (MQTT 3.1.1 section 3.3):

    0      first byte: type 3 in the high nibble, DUP 0x08, QoS 0x06, RETAIN 0x01
    1..4   remaining length, seven bits a byte, 0x80 says that another follows
    then   topic name: two bytes of length (high byte first), UTF-8
    then   packet identifier: two bytes, high byte first, only with QoS 1 and 2
    last   at level 5: properties, with their length in front (MQTT 5.0 section 3.3.2.3)
"""

from typing import Final

PUBLISH: Final = 3
_CONTINUES: Final = 0x80


def first_byte_fields(first: int) -> tuple[int, bool, bool]:
    """QoS, RETAIN and DUP of a PUBLISH's first byte."""
    return first >> 1 & 3, bool(first & 1), bool(first & 8)


def topic_bytes(header: bytes) -> bytes:
    """The topic name's bytes; empty where the header is too short to hold one (the raw bytes are in the record)."""
    start, end = _topic_place(header)
    return header[start:end]


def packet_identifier(header: bytes) -> int:
    """The packet identifier of a PUBLISH of QoS 1 or 2."""
    _, end = _topic_place(header)
    return int.from_bytes(header[end : end + 2], "big")


def _topic_place(header: bytes) -> tuple[int, int]:
    """Where the topic name begins and ends."""
    if len(header) > 3 and header[1] < _CONTINUES:  # most packets: a remaining length of one byte
        return 4, 4 + (header[2] << 8 | header[3])
    offset = 1
    while offset < len(header) and header[offset] & _CONTINUES:
        offset += 1
    start = offset + 3
    return start, start + int.from_bytes(header[offset + 1 : start], "big")

"""What a trail record says of a packet, read from the raw header bytes that the note kept.

A PUBLISH header here is fixed and variable header without the payload (MQTT 3.1.1 section 3.3):

    0      first byte: type 3 in the high nibble, DUP 0x08, QoS 0x06, RETAIN 0x01
    1..4   remaining length, seven bits a byte, 0x80 says that another follows
    then   topic name: two bytes of length (high byte first), UTF-8
    last   packet identifier: two bytes, high byte first, only with QoS 1 and 2
"""

from typing import Final

PUBLISH: Final = 3
_CONTINUES: Final = 0x80


def first_byte_fields(first: int) -> tuple[int, bool, bool]:
    """QoS, RETAIN and DUP of a PUBLISH's first byte."""
    return first >> 1 & 3, bool(first & 1), bool(first & 8)


def topic_bytes(header: bytes) -> bytes:
    """The topic name's bytes; empty where the header is too short to hold one (the raw bytes are in the record)."""
    offset = 1
    while offset < len(header) and header[offset] & _CONTINUES:
        offset += 1
    length = int.from_bytes(header[offset + 1 : offset + 3], "big")
    return header[offset + 3 : offset + 3 + length]

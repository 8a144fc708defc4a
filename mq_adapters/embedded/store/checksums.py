"""Checksums of the store's rows. A bit that the disk changed is noticed before anybody gets the message.

CRC-32 (ISO 3309, as zlib.crc32) finds every single changed bit and every burst of up to 32. SQLite itself checks only
the structure of its pages. The checksum is computed when a row is written, and again when it is read or verified.
"""

from typing import Final, TypeVar
from zlib import crc32

_Value = TypeVar("_Value")
_LOW_32_BITS: Final = 0xFFFF_FFFF


def descriptor_checksum(packed: bytes) -> int:
    """The part of a message's checksum that all messages with one descriptor share."""
    return crc32(packed)


def message_checksum(shared: int, numbers: int, origin: bytes, body: bytes) -> int:
    """The checksum of a message's row: `shared` of its descriptor, its numbers combined by XOR, its origin and body.

    The numbers are sequence, queue, put_us and expires_us.
    """
    checksum = crc32(body, crc32(origin, shared))
    return checksum ^ (numbers ^ numbers >> 32) & _LOW_32_BITS


def state_checksum(kind: int, key: bytes, value: bytes) -> int:
    """The checksum of a row of state."""
    return crc32(value, crc32(key, kind))


def sound(kind: type[_Value], value: object) -> _Value | None:
    """A column that is read without its checksum; None if damage has changed its type."""
    return value if isinstance(value, kind) else None


def object_checksum(object_type: int, name: str, attributes: bytes) -> int:
    """The checksum of an object's row."""
    return crc32(attributes, crc32(bytes(name, "utf-8"), object_type))  # a TypeError for what is no text

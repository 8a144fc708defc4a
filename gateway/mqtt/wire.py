"""The primitive fields of MQTT: remaining length, UTF-8 text, binary data (MQTT 3.1.1 sections 1.5 and 2.2.3).

MQTT 5.0 calls the form of the remaining length a variable byte integer, and uses it for more (section 1.5.5).
"""

import re

from gateway.mqtt.errors import MalformedPacket, UsageError

MAXIMUM_REMAINING_LENGTH = 268_435_455  # FF FF FF 7F, four groups of seven bits (section 2.2.3, table 2.4)
MAXIMUM_FIELD_BYTES = 65_535  # a text or binary field has a length of two bytes (section 1.5.3)
MAXIMUM_PACKET_IDENTIFIER = 65_535  # two bytes, 0 excluded (section 2.3.1)

#: Control characters, and the code points that Unicode keeps free of characters (section 1.5.3, at level 5 1.5.4).
_NO_CHARACTERS = re.compile(
    "[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
    + "]"
)

_BYTES = tuple(bytes((byte,)) for byte in range(256))


def encode_remaining_length(length: int) -> bytes:
    """Encode in one to four bytes, seven bits each, lowest first; 321 is C1 02. UsageError outside 0..268,435,455."""
    if not 0 <= length <= MAXIMUM_REMAINING_LENGTH:
        raise UsageError(f"a remaining length of {length} bytes cannot be encoded, the limit is 268,435,455")
    encoded = b""
    while length > 127:
        encoded += _BYTES[length & 127 | 128]
        length >>= 7
    return encoded + _BYTES[length]


encode_variable_number = encode_remaining_length


def is_minimal(data: bytes | bytearray, offset: int, behind: int) -> bool:
    """Whether the variable byte integer that `decode_remaining_length` read is as short as can be (MQTT-1.5.5-1)."""
    return behind - offset < 2 or data[behind - 1] != 0


def largest_remaining_length(packet_bytes: int) -> int:
    """The largest remaining length of a packet of at most `packet_bytes` bytes, fixed header and all."""
    for length_bytes in (4, 3, 2):
        remaining_length = min(packet_bytes - 1 - length_bytes, 128**length_bytes - 1)
        if remaining_length >= 128 ** (length_bytes - 1):
            return remaining_length
    return max(0, min(packet_bytes - 2, 127))


def decode_remaining_length(data: bytes | bytearray, offset: int) -> tuple[int, int]:
    """Decode at `offset`: the length, and the offset behind it; (-1, offset) if `data` ends too early.

    A fourth byte that announces a fifth raises MalformedPacket, before the fifth has arrived.
    """
    length = shift = 0
    for byte in data[offset : offset + 4]:
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return length, offset + shift // 7
    if shift == 28:  # four groups of seven bits, and each announced another
        raise MalformedPacket("the remaining length is longer than four bytes")
    return -1, offset


def encode_binary(data: bytes) -> bytes:
    """Two bytes of length, high byte first, and the bytes. UsageError above 65,535 bytes."""
    if len(data) > MAXIMUM_FIELD_BYTES:
        raise UsageError(f"a field of {len(data)} bytes cannot be encoded, the limit is 65,535")
    return len(data).to_bytes(2, "big") + data


def encode_text(text: str) -> bytes:
    """Two bytes of length, and UTF-8. UsageError for U+0000, surrogates and more than 65,535 bytes."""
    if "\0" in text:
        raise UsageError("a text with U+0000 cannot be encoded")
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"a text with a surrogate at index {error.start} cannot be encoded") from error
    return encode_binary(encoded)


def decode_text(data: bytes) -> str:
    """Decode the bytes of a text, without its length. MalformedPacket for ill-formed UTF-8, surrogates and U+0000.

    U+FEFF is kept wherever it stands (MQTT-1.5.3-3).
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise MalformedPacket(f"a text is not UTF-8 at its byte {error.start}") from None
    if "\0" in text:
        raise MalformedPacket("a text holds U+0000")
    return text


def decode_plain_text(data: bytes) -> str:
    """`decode_text` for levels 4 and 5: control characters and noncharacters raise MalformedPacket too.

    The standard lets a receiver take or refuse them (MQTT 3.1.1 section 1.5.3, MQTT 5.0 section 1.5.4). The gateway
    refuses them, because MQ's headers cannot carry them: XML 1.0 has no form for them.
    """
    return _checked(decode_text(data))


def decode_plain_texts(parts: list[bytes]) -> list[str]:
    """`decode_plain_text` of each. It checks many short texts in one go."""
    try:
        texts = [part.decode() for part in parts]
    except UnicodeDecodeError as error:
        raise MalformedPacket(f"a text is not UTF-8 at its byte {error.start}") from None
    _checked("".join(texts))
    return texts


def _checked(text: str) -> str:
    if text.isprintable():  # then it has no such character, and this check takes a tenth of the time
        return text
    if found := _NO_CHARACTERS.search(text):
        raise MalformedPacket(f"a text holds U+{ord(found.group()):04X}, which is no character of a text")
    return text


class Fields:
    """Reads the fields of one packet in their order, and never past its end (`end`: offset behind the packet).

    Every method raises MalformedPacket if the packet ends inside the field.
    """

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data = data
        self.position = position
        self.end = end

    @property
    def left(self) -> int:
        """How many bytes are still unread."""
        return self.end - self.position

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        start = self.position
        if length > self.end - start:
            raise MalformedPacket("the packet ends inside a field")
        self.position = start + length
        return self.data[start : self.position]

    def byte(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def number(self) -> int:
        """Two bytes, high byte first."""
        start = self.position
        if start + 2 > self.end:
            raise MalformedPacket("the packet ends inside a field")
        self.position = start + 2
        return self.data[start] << 8 | self.data[start + 1]

    def variable_number(self) -> int:
        """A variable byte integer, 0..268,435,455, in as few bytes as it needs (MQTT 5.0 section 1.5.5)."""
        number, behind = decode_remaining_length(self.data, self.position)
        if number < 0 or behind > self.end:
            raise MalformedPacket("the packet ends inside a variable byte integer")
        if not is_minimal(self.data, self.position, behind):
            raise MalformedPacket("a variable byte integer is longer than it must be (MQTT-1.5.5-1)")
        self.position = behind
        return number

    def packet_identifier(self) -> int:
        """Two bytes, 1..65,535; 0 is MalformedPacket (section 2.3.1)."""
        packet_identifier = self.number()
        if packet_identifier == 0:
            raise MalformedPacket("0 is not a packet identifier")
        return packet_identifier

    def binary(self) -> bytes:
        """Bytes behind a length of two bytes."""
        return self.take(self.number())

    def text(self) -> str:
        """UTF-8 behind a length of two bytes."""
        return decode_plain_text(self.binary())

    def any_text(self) -> str:
        """A text of level 3, which may hold control characters."""
        return decode_text(self.binary())

    def finish(self) -> None:
        """The packet must have been read to its end."""
        if self.position != self.end:
            raise MalformedPacket(f"{self.left} bytes stand behind the last field of the packet")

"""The frames of a WebSocket as a server reads and writes them (RFC 6455 section 5): bytes in, payload out, no I/O.

    byte 0    FIN, three reserved bits (0: no extension is agreed to), opcode
    byte 1    MASK (1: a client must mask), length; 126: two bytes of length follow, 127: eight
    4 bytes   the mask
    payload   each byte XOR the mask's byte at its place modulo 4

What frames and messages begin and end means nothing to MQTT (MQTT 5.0 section 6, MQTT-6.0.0-2), so the payload of data
frames is given out as it comes: half a message keeps nothing here, and half a packet is MQTT's to count.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

_FINAL: Final = 0x80
_RESERVED: Final = 0x70
_OPCODE: Final = 0x0F
_CONTROL: Final = 0x08
_MASKED: Final = 0x80
_LENGTH: Final = 0x7F
_TWO_BYTES: Final = 126
_EIGHT_BYTES: Final = 127
_MASK_BYTES: Final = 4
#: How long a header is before its mask, by what its second byte says; 2 bytes where it says the length itself.
_HEADER_BYTES: Final = {_TWO_BYTES: 4, _EIGHT_BYTES: 10}
#: Section 5.5: what a control frame may carry.
_LONGEST_CONTROL: Final = 125


class Opcode(IntEnum):
    """Section 11.8."""

    CONTINUATION = 0x0
    TEXT = 0x1
    BINARY = 0x2
    CLOSE = 0x8
    PING = 0x9
    PONG = 0xA


class CloseCode(IntEnum):
    """Section 7.4.1, the ones that a server of MQTT uses."""

    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    UNSUPPORTED_DATA = 1003
    INVALID_TEXT = 1007
    POLICY_VIOLATION = 1008
    MESSAGE_TOO_BIG = 1009


#: What a peer may give as its reason; section 7.4.2 leaves 3000 and up to libraries and applications.
_KNOWN_CODES: Final = frozenset((*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)))
_CODE_BYTES: Final = 2
_OPCODES: Final = frozenset(Opcode)


class FrameError(Exception):
    """The peer sent a frame that may not be; `code` is what the close frame to it has to say."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class FrameReader:
    """Reads the frames of one connection, cut anywhere."""

    __slots__ = ("_beginning", "_is_inside", "_left", "_mask", "_maximum_message_bytes", "_message_bytes")

    def __init__(self, maximum_message_bytes: int) -> None:
        self._maximum_message_bytes = maximum_message_bytes
        #: Of a header, or of a control frame.
        self._beginning = b""
        #: Whether a message has begun whose last frame has not; what its frames have announced, in bytes.
        self._is_inside = False
        self._message_bytes = 0
        #: Of a data frame: how much of its payload is still to come, and the mask from the next byte on.
        self._left = 0
        self._mask = b""

    def receive_data(self, data: bytes) -> Iterator[tuple[Opcode, bytes]]:
        """What the bytes bring, in their order: BINARY with a piece of a message's payload, and whole control frames.

        All of it must be taken before the next call. Raises FrameError at the first frame that may not be, and is of
        no use then.
        """
        if self._beginning:
            data, self._beginning = self._beginning + data, b""
        place, end = 0, len(data)
        while place < end:
            if self._left:
                piece = data[place : place + self._left]
                place += len(piece)
                yield Opcode.BINARY, self._take(piece)
                continue
            if end - place < 2:
                break
            first, second = data[place], data[place + 1]
            self._check(first, second)
            length = second & _LENGTH
            masked_at = place + _HEADER_BYTES.get(length, 2)
            starts = masked_at + _MASK_BYTES
            if starts > end:
                break
            if length >= _TWO_BYTES:
                length = int.from_bytes(data[place + 2 : masked_at], "big")
            mask = data[masked_at:starts]
            if not first & _CONTROL:
                self._begin(first, length, mask)
                place = starts
            elif starts + length > end:
                break
            else:
                place = starts + length
                yield _control(first, unmask(data[starts:place], mask))
        self._beginning = data[place:]

    def _check(self, first: int, second: int) -> None:
        """What the first two bytes of a frame say."""
        opcode = first & _OPCODE
        if first & _RESERVED:
            raise FrameError(CloseCode.PROTOCOL_ERROR, "a frame has reserved bits, and no extension was agreed to")
        if opcode not in _OPCODES:
            raise FrameError(CloseCode.PROTOCOL_ERROR, f"a frame has opcode {opcode}, which no frame has")
        if not second & _MASKED:
            raise FrameError(CloseCode.PROTOCOL_ERROR, "a frame is not masked (RFC 6455 section 5.1)")
        if opcode & _CONTROL:
            if not first & _FINAL or second & _LENGTH > _LONGEST_CONTROL:
                raise FrameError(CloseCode.PROTOCOL_ERROR, "a control frame is in parts, or too long for one")
        elif opcode == Opcode.TEXT:
            raise FrameError(
                CloseCode.UNSUPPORTED_DATA, "a text message came, and MQTT comes in binary ones (MQTT-6.0.0-1)"
            )
        elif self._is_inside is (opcode != Opcode.CONTINUATION):
            raise FrameError(CloseCode.PROTOCOL_ERROR, "a message begins within another, or goes on without one")

    def _begin(self, first: int, length: int, mask: bytes) -> None:
        """A data frame: its header is read."""
        self._message_bytes = length if first & _OPCODE else self._message_bytes + length
        if self._message_bytes > self._maximum_message_bytes:
            raise FrameError(CloseCode.MESSAGE_TOO_BIG, "a message came that is longer than maximum_message_bytes")
        self._is_inside = not first & _FINAL
        self._left = length
        self._mask = mask

    def _take(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        mask = self._mask
        at = len(piece) % _MASK_BYTES
        self._mask = mask[at:] + mask[:at]
        return unmask(piece, mask)


def _control(first: int, payload: bytes) -> tuple[Opcode, bytes]:
    """A control frame, whole. Of a close frame the payload is the code alone, or nothing."""
    opcode = Opcode(first & _OPCODE)
    if opcode is not Opcode.CLOSE or not payload:
        return opcode, payload
    code, text = payload[:_CODE_BYTES], payload[_CODE_BYTES:]
    if len(code) < _CODE_BYTES or int.from_bytes(code, "big") not in _KNOWN_CODES:
        raise FrameError(CloseCode.PROTOCOL_ERROR, "a close frame has a code that none may have")
    try:
        text.decode()
    except UnicodeDecodeError:
        raise FrameError(CloseCode.INVALID_TEXT, "a close frame has a reason that is no UTF-8") from None
    return opcode, code


def unmask(payload: bytes, mask: bytes) -> bytes:
    """Section 5.3. As one long number: some 50 times as fast as byte by byte."""
    length = len(payload)
    repeated = (mask * (length // _MASK_BYTES + 1))[:length]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(repeated, "little")).to_bytes(length, "little")


def header(opcode: Opcode, length: int) -> bytes:
    """What stands in front of the payload of a frame that is a whole message, unmasked as a server's must be."""
    first = _FINAL | opcode
    if length < _TWO_BYTES:
        return bytes((first, length))
    if length < 1 << 16:
        return bytes((first, _TWO_BYTES)) + length.to_bytes(2, "big")
    return bytes((first, _EIGHT_BYTES)) + length.to_bytes(8, "big")

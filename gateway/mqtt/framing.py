"""The bytes of an incomplete packet, gathered in linear time and without memory in advance."""

from gateway.mqtt.wire import decode_remaining_length


class PartialPacket:
    """Gathers the bytes of one packet. Its memory follows the bytes that have arrived, not the length in the header."""

    __slots__ = ("_body", "_bytes", "_wanted_bytes")

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._wanted_bytes = 0
        #: Where the body begins, once the fixed header has arrived.
        self._body = 0

    def __len__(self) -> int:
        """The number of bytes that have arrived."""
        return len(self._bytes)

    @property
    def first_byte(self) -> int:
        """Packet type and flags."""
        return self._bytes[0]

    @property
    def has_header(self) -> bool:
        """Whether the fixed header has arrived, so that the length of the packet is known."""
        return self._wanted_bytes > 0

    @property
    def bytes_to_come(self) -> int:
        """The number of missing bytes; 0 while the length is unknown."""
        return max(0, self._wanted_bytes - len(self._bytes))

    @property
    def is_complete(self) -> bool:
        """Whether the last byte of the packet has arrived."""
        return 0 < self._wanted_bytes == len(self._bytes)

    def take_header(self, data: bytes, position: int) -> tuple[int, int]:
        """Take the fixed header from `data`: the remaining length (-1: header incomplete), and where the rest begins.

        Raises MalformedPacket for a remaining length of more than four bytes.
        """
        header = self._bytes
        while position < len(data):
            header.append(data[position])
            position += 1
            remaining_length, behind = decode_remaining_length(header, 1)
            if remaining_length >= 0:
                self._wanted_bytes = behind + remaining_length
                self._body = behind
                return remaining_length, position
        return -1, position

    def take_body(self, data: bytes, position: int) -> int:
        """Take the bytes of the packet, and return where the next one begins. Takes none before the fixed header."""
        if not self._wanted_bytes:
            return position
        end = min(position + self._wanted_bytes - len(self._bytes), len(data))
        self._bytes += data[position:end]
        return end

    @property
    def body_bytes(self) -> int:
        """The number of bytes of the body that have arrived."""
        return len(self._bytes) - self._body

    def body_behind(self, read_bytes: int) -> bytes:
        """The bytes of the body that have arrived, without the first ones."""
        return bytes(self._bytes[self._body + read_bytes :])

    def packet(self) -> bytes:
        """The complete packet; call it once."""
        packet = bytes(self._bytes)
        self._bytes = bytearray()
        return packet

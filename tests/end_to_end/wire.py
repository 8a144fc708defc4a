"""A raw socket to the gateway, and bytes as people write them: each step has a sentence, each packet is typed by hand.

    client.send("connects with a clean session", "10 0E 0004 'MQTT' 04 02 003C 0002 'c1'")
    client.expect("is accepted, without a session", "20 02 00 00")

Hexadecimal digits with blanks where they help; text between single quotes stands for its ASCII bytes.
"""

import re
import select
import socket
import time
from types import TracebackType
from typing import Final, Self

from tests.reason_strings import split_packets, without_reason_string

PATIENCE_S = 30.0

_PARTS = re.compile(r"'([^']*)'|([0-9A-Fa-f ]+)")


def packet(written: str) -> bytes:
    """The bytes of a packet as it is written in a step."""
    assert not _PARTS.sub("", written), f"not a packet: {written}"
    return b"".join(text.encode() or bytes.fromhex(digits) for text, digits in _PARTS.findall(written))


class WireClient:
    """One TCP connection. Every wait has a deadline, every failure names its step and what had come instead."""

    def __init__(self, port: int, name: str = "the client", *, source: str = "127.0.0.1") -> None:
        """`source`: the address that it comes from, any of 127.0.0.0/8."""
        self.name = name
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S, (source, 0))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._unfinished = b""
        #: The Reason Strings of what has come, in their order.
        self.told: list[str] = []
        #: This end of the connection as a pattern for the field `peer` of the log.
        self.peer: Final = f"^{re.escape(source)}:{self._socket.getsockname()[1]}$"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.drop()

    def send(self, step: str, *written: str | bytes) -> None:
        """Sends packets in one write."""
        data = b"".join(part if isinstance(part, bytes) else packet(part) for part in written)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise AssertionError(f"{self.name} {step}: could not send ({error})") from error

    def send_byte_by_byte(self, step: str, written: str) -> None:
        for byte in packet(written):
            self.send(step, bytes((byte,)))

    def expect(self, step: str, *written: str | bytes) -> None:
        """The next bytes must be these packets, in this order."""
        expected = b"".join(part if isinstance(part, bytes) else packet(part) for part in written)
        received = self.receive(len(expected))
        assert received == expected, (
            f"{self.name} {step}:\n expected {expected[:200].hex(' ')}\n received {received[:200].hex(' ')}"
        )

    def expect_in_any_order(self, step: str, *written: str) -> None:
        """The next packets must be these, in whatever order."""
        expected = sorted(packet(part) for part in written)
        received = sorted(self.receive_packet() for _ in expected)
        assert received == expected, f"{self.name} {step}: received {[part.hex(' ') for part in received]}"

    def expect_end(self, step: str) -> None:
        """The gateway closes the connection, and sends nothing before it does."""
        rest = self.receive(1)
        assert rest == b"", f"{self.name} {step}: the connection is still open and brought {rest.hex(' ')}"

    def ended_within(self, seconds: float) -> bool:
        """Whether the gateway ends the connection in that time; it must send nothing more."""
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(1)
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        assert not data, f"{self.name}: {data.hex()} came where nothing was due"
        return True

    @property
    def has_something(self) -> bool:
        """Whether anything has come that was not received yet, or the end of the connection."""
        return bool(self._received or self._unfinished or select.select([self._socket], [], [], 0)[0])

    def has_ended(self) -> bool:
        """Whether the gateway has ended the connection; what has come is kept for `receive`."""
        while select.select([self._socket], [], [], 0)[0]:
            try:
                data = self._socket.recv(65_536)
            except ConnectionError:
                return True
            if not data:
                self._received += self._unfinished
                return True
            self._take(data)
        return False

    def _take(self, data: bytes) -> None:
        """Bytes have come: whole packets are kept without their Reason Strings, which stand in `told`."""
        packets, self._unfinished = split_packets(self._unfinished + data)
        for each in packets:
            plain, told = without_reason_string(each)
            self._received += plain
            self.told += [told] if told else []

    def receive(self, length: int) -> bytes:
        """That many bytes, or fewer where the connection ends or the patience does."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self._received) < length:
            self._socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self._socket.recv(65_536)
            except (TimeoutError, ConnectionError) as error:
                if isinstance(error, ConnectionError):
                    break
                raise AssertionError(
                    f"{self.name}: {length} bytes were due, {bytes(self._received).hex(' ')!r} came in {PATIENCE_S} s"
                ) from error
            if not data:
                self._received += self._unfinished
                self._unfinished = b""
                break
            self._take(data)
        taken = bytes(self._received[:length])
        del self._received[:length]
        return taken

    def receive_packet(self) -> bytes:
        """The next packet, whole; empty at the end of the connection."""
        header = self.receive(2)
        while header and header[-1] & 0x80:
            header += self.receive(1)
        length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(header[1:]))
        return header + self.receive(length)

    def end(self) -> None:
        """Ends the connection in order (FIN), without DISCONNECT."""
        self._socket.close()

    def drop(self) -> None:
        """Ends the connection the hard way (RST), as a client does that lost its power."""
        linger_off = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_off)
        except OSError:
            return  # closed already
        self._socket.close()

"""Packets written from the specification, and many sockets at once that send what no client should."""

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterable
from typing import Final, Self

PATIENCE_S: Final = 60.0
_READ_BYTES: Final = 65_536
CLEAN: Final = 0x02


def text(value: str | bytes) -> bytes:
    """UTF-8 text with its length in front (section 1.5.3, at level 5 1.5.4), or bytes that are meant not to be one."""
    data = value.encode() if isinstance(value, str) else value
    return len(data).to_bytes(2, "big") + data


def number(value: int) -> bytes:
    """A remaining length, or variable byte integer (section 2.2.3, at level 5 1.5.5)."""
    encoded = b""
    while value > 127:
        encoded += bytes((value & 127 | 128,))
        value >>= 7
    return encoded + bytes((value,))


def packet(first_byte: int, body: bytes) -> bytes:
    return bytes((first_byte,)) + number(len(body)) + body


def two(value: int) -> bytes:
    return value.to_bytes(2, "big")


def connect(client: str | bytes, *, level: int = 4, flags: int = CLEAN, properties: bytes = b"") -> bytes:
    """CONNECT without keep-alive."""
    extra = number(len(properties)) + properties if level == 5 else b""
    return packet(0x10, text("MQTT") + bytes((level, flags)) + b"\x00\x00" + extra + text(client))


def publish(
    topic: str | bytes,
    payload: bytes = b"",
    *,
    qos: int = 0,
    identifier: int = 0,
    properties: bytes | None = None,
    retain: bool = False,
) -> bytes:
    """PUBLISH; `properties` makes it one of level 5."""
    extra = b"" if properties is None else number(len(properties)) + properties
    middle = two(identifier) if qos else b""
    return packet(0x30 | qos << 1 | retain, text(topic) + middle + extra + payload)


def subscribe(filters: Iterable[str], *, identifier: int = 1, qos: int = 0, level: int = 4) -> bytes:
    extra = b"\x00" if level == 5 else b""
    return packet(0x82, two(identifier) + extra + b"".join(text(each) + bytes((qos,)) for each in filters))


ACCEPTED: Final = b"\x20\x02\x00\x00"


class Attacker:
    """One connection, without any manners. What it gets is kept, up to `kept_bytes`."""

    kept_bytes: Final = 1_000_000

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        """`source`: the address that it comes from, any of 127.0.0.0/8."""
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S, (source, 0))
        self.received = bytearray()
        self.has_ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.drop()

    def send(self, data: bytes) -> bool:
        """Sends all of it; False where the gateway ended the connection meanwhile."""
        self.socket.settimeout(PATIENCE_S)
        try:
            self.socket.sendall(data)
        except TimeoutError:
            raise AssertionError("the gateway takes nothing more") from None
        except OSError:
            return False
        return True

    def send_without_reading(self, data: bytes, seconds: float) -> int:
        """Sends for so long at most, until nothing more is taken; returns how much was."""
        sent, deadline_s = 0, time.monotonic() + seconds
        while sent < len(data) and time.monotonic() < deadline_s:
            self.socket.settimeout(0.2)
            try:
                sent += self.socket.send(data[sent : sent + _READ_BYTES])
            except TimeoutError:
                continue
            except OSError:
                break
        return sent

    def expect(self, data: bytes) -> None:
        """The next bytes are these."""
        assert self.receive(len(data)) == data

    def receive(self, size: int) -> bytes:
        """So many bytes, or fewer where the connection ends."""
        deadline_s = time.monotonic() + PATIENCE_S
        while len(self.received) < size and not self.has_ended:
            self._read(deadline_s)
        taken = bytes(self.received[:size])
        del self.received[:size]
        return taken

    def read_to_end(self) -> bytes:
        """Everything up to the end of the connection, which must come."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not self.has_ended:
            self._read(deadline_s)
        return bytes(self.received)

    def _read(self, deadline_s: float) -> None:
        self.socket.settimeout(max(0.01, deadline_s - time.monotonic()))
        try:
            data = self.socket.recv(_READ_BYTES)
        except TimeoutError:
            raise AssertionError(f"nothing more came, and no end: {bytes(self.received[-100:]).hex()}") from None
        except OSError:
            data = b""
        self.take(data)

    def take(self, data: bytes) -> None:
        """What was read; nothing is the end."""
        self.has_ended = self.has_ended or not data
        if len(self.received) < self.kept_bytes:
            self.received += data

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.socket.close()


class Crowd:
    """Many connections that do the same."""

    def __init__(
        self,
        port: int,
        count: int,
        first: Callable[[int], bytes] = lambda _: b"",
        source: Callable[[int], str] = lambda _: "127.0.0.1",
    ) -> None:
        """`first` makes what each sends as soon as it is connected, `source` its address, both from its number."""
        self.members: list[Attacker] = []
        try:
            for place in range(count):
                self.members.append(Attacker(port, source(place)))
                self.members[-1].send(first(place))
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for member in self.members:
            member.drop()

    def send(self, make: Callable[[int], bytes]) -> None:
        """Each sends what `make` returns for its number; whose connection has ended does not."""
        for place, member in enumerate(self.members):
            if not member.has_ended:
                member.send(make(place))

    def read_until(self, is_done: Callable[[Attacker], bool], patience_s: float = PATIENCE_S) -> None:
        """Reads on all connections until each is done or has ended."""
        deadline_s = time.monotonic() + patience_s
        waiting = {member.socket.fileno(): member for member in self.members if not _is_over(member, is_done)}
        poller = select.poll()
        for descriptor in waiting:
            poller.register(descriptor, select.POLLIN)
        while waiting:
            assert time.monotonic() < deadline_s, f"{len(waiting)} of {len(self.members)} connections still wait"
            for descriptor, _ in poller.poll(200):
                member = waiting[descriptor]
                try:
                    member.take(member.socket.recv(_READ_BYTES))
                except OSError:
                    member.take(b"")
            for descriptor, member in tuple(waiting.items()):
                if _is_over(member, is_done):
                    poller.unregister(descriptor)
                    del waiting[descriptor]

    @property
    def ended(self) -> int:
        return sum(member.has_ended for member in self.members)


def _is_over(member: Attacker, is_done: Callable[[Attacker], bool]) -> bool:
    return member.has_ended or is_done(member)

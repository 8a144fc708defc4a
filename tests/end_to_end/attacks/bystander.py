"""Who must not feel an attack: a well-behaved client, and the memory of the gateway."""

import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.end_to_end.attacks.attacker import ACCEPTED, connect, publish, subscribe
from tests.end_to_end.gateway_process import Gateway

#: Far above what a round trip takes under any attack, for machines that are busy with something else.
PATIENCE_S: Final = 30.0
_PAUSE_S: Final = 0.02
_numbers = itertools.count(1)


class Bystander(threading.Thread):
    """Publishes to itself at QoS 1, one message after the other, and takes each back. `error` says what went wrong."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.round_trips = 0
        self.error: BaseException | None = None
        self._changed = threading.Condition()
        self._ends = threading.Event()
        self._topic = f"bystander/{next(_numbers)}"
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._socket.settimeout(PATIENCE_S)
        self._socket.sendall(connect(self._topic.replace("/", "-")) + subscribe([self._topic], qos=1))
        assert self._receive(9) == ACCEPTED + b"\x90\x03\x00\x01\x01"

    def run(self) -> None:
        try:
            while not self._ends.wait(_PAUSE_S):
                self._one_round_trip()
        except BaseException as error:
            self.error = error
        finally:
            self._socket.close()
            with self._changed:
                self._changed.notify_all()

    def _one_round_trip(self) -> None:
        payload = b"%08d" % self.round_trips
        sent = publish(self._topic, payload, qos=1, identifier=1)
        self._socket.sendall(sent)
        received = self._receive(len(sent) + 4)
        delivered = received.replace(b"\x40\x02\x00\x01", b"", 1)
        assert delivered[:2] == sent[:2], received
        assert delivered.endswith(payload), received
        place = len(delivered) - len(payload) - 2
        self._socket.sendall(b"\x40\x02" + delivered[place : place + 2])
        with self._changed:
            self.round_trips += 1
            self._changed.notify_all()

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, f"the gateway closed the connection of a well-behaved client after {data.hex()}"
            data += more
        return data

    def wait_for_more(self, round_trips: int) -> None:
        """Waits until so many more round trips are done."""
        wanted = self.round_trips + round_trips
        with self._changed:
            self._changed.wait_for(lambda: self.round_trips >= wanted or not self.is_alive(), PATIENCE_S)
        assert self.error is None, self.error
        assert self.round_trips >= wanted, f"only {self.round_trips} of {wanted} round trips"

    def end(self) -> None:
        self._ends.set()
        self.join(PATIENCE_S)
        assert self.error is None, self.error


class Watch:
    """A bystander, and the most memory that the gateway had since the watch began."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._process = Path(f"/proc/{gateway.process_identifier}")
        self._process.joinpath("clear_refs").write_text("5")  # the peak begins anew (proc(5))
        self._before_kib = self._kib("VmRSS")
        self.bystander = Bystander(gateway.port)
        self.bystander.start()

    @property
    def more_mib(self) -> float:
        """How much more memory than before the gateway had at most."""
        return (self._kib("VmHWM") - self._before_kib) / 1_024

    @property
    def more_now_mib(self) -> float:
        return (self._kib("VmRSS") - self._before_kib) / 1_024

    def _kib(self, field: str) -> int:
        lines = self._process.joinpath("status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))

    def others_are_served(self) -> None:
        """To be called while the attack is on."""
        assert self._gateway.is_running, self._gateway.log
        self.bystander.wait_for_more(3)


@contextmanager
def watched(gateway: Gateway, *, memory_mib: float) -> Iterator[Watch]:
    """Around an attack: the bystander was served all the time, and the gateway had no more memory than that on top."""
    watch = Watch(gateway)
    try:
        watch.others_are_served()
        yield watch
        watch.others_are_served()
        more_mib = watch.more_mib
        assert more_mib <= memory_mib, f"{more_mib:.0f} MiB more, {watch.more_now_mib:.0f} of it still there"
    finally:
        watch.bystander.end()

"""The counts of a simulation: each publication that was sent, acknowledged and received, and the verdict on them."""

import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

#: After the last publication, the simulation ends when nothing has come in for so many seconds. The disk of a small
#: gateway may stand still for ten, and later deliveries are no loss.
QUIET_S: Final = 30.0

#: A publication is known by its sensor and its number.
Publication = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """The fate of the publications. At QoS 0 nothing is acknowledged, and a loss is no failure.

    `lost` were acknowledged (at QoS 0: sent) and never received. The gateway promised nothing about `unacknowledged`.
    """

    qos: int
    sent: int
    acknowledged: int
    unacknowledged: int
    received: int
    lost: int
    doubled: int
    lost_connections: int
    ended_early: bool = False

    @property
    def is_as_promised(self) -> bool:
        """QoS 1 and 2 lose nothing, QoS 2 doubles nothing."""
        return (self.qos == 0 or self.lost == 0) and (self.qos < 2 or self.doubled == 0)


class SimulationCounts:
    """Publications by their fate. The threads of all clients share it."""

    def __init__(self, qos: int) -> None:
        self._qos = qos
        self._lock = threading.Lock()
        self._sent: set[Publication] = set()
        self._missing: set[Publication] = set()
        self._received: Counter[Publication] = Counter()
        self._unacknowledged: set[Publication] = set()
        self._lost_connections = 0
        self._changed_s = time.monotonic()

    def note_sent(self, publication: Publication) -> None:
        """Call this before the publication is sent, so that it cannot come back unknown."""
        with self._lock:
            self._sent.add(publication)
            self._missing.add(publication)
            if self._qos:
                self._unacknowledged.add(publication)
            self._changed_s = time.monotonic()

    def note_acknowledged(self, publication: Publication) -> None:
        with self._lock:
            self._unacknowledged.discard(publication)
            self._changed_s = time.monotonic()

    def note_received(self, publication: Publication) -> None:
        with self._lock:
            self._missing.discard(publication)
            self._received[publication] += 1
            self._changed_s = time.monotonic()

    def note_lost_connection(self) -> None:
        with self._lock:
            self._lost_connections += 1

    def is_settled(self) -> bool:
        """Nothing is missing, or nothing has happened for QUIET_S."""
        with self._lock:
            is_complete = not self._missing and not self._unacknowledged
            return is_complete or time.monotonic() - self._changed_s >= QUIET_S

    def result(self, *, ended_early: bool = False) -> SimulationResult:
        with self._lock:
            return SimulationResult(
                qos=self._qos,
                sent=len(self._sent),
                acknowledged=len(self._sent) - len(self._unacknowledged) if self._qos else 0,
                unacknowledged=len(self._unacknowledged),
                received=len(self._received),
                lost=len(self._missing - self._unacknowledged),
                doubled=sum(count - 1 for count in self._received.values()),
                lost_connections=self._lost_connections,
                ended_early=ended_early,
            )

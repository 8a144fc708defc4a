"""Logins under siege, simulated: attackers, newcomers and a fleet ask one queue for checks. No clock and no socket."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random

from gateway.access.login_queue import LoginQueue, WaitingLogin

#: One check takes one core so long, and a client waits so long for its CONNACK.
CHECK_S = 0.025
PATIENCE_S = 10.0


@dataclass(eq=False)
class Client:
    """Whoever asks for checks. `pause_s`: before it tries again; None: it asks once. `tries`: so far."""

    network: bytes
    user: str
    is_right: bool
    begins_s: float
    pause_s: float | None = None
    is_lately: bool = False
    tries: int = 0
    asked_s: float = -1.0
    in_s: float | None = None

    @property
    def took_s(self) -> float:
        """From its first CONNECT to its CONNACK; for ever where it is not in."""
        return float("inf") if self.in_s is None else self.in_s - self.begins_s


@dataclass
class Siege:
    """Runs the clients against a queue with one thread."""

    places: int = 256
    random: Random = field(default_factory=lambda: Random(20261123))
    now_s: float = 0.0

    def run(self, clients: list[Client], until_s: float) -> None:
        """Every event up to a time, in its order."""
        queue: LoginQueue[Client] = LoginQueue(self.places, now_s=lambda: self.now_s, random=self.random)
        order = count()
        events: list[tuple[float, int, Client | None]] = []
        for client in clients:
            heappush(events, (client.begins_s, next(order), client))
        checked: WaitingLogin[Client] | None = None
        while events and events[0][0] <= until_s:
            self.now_s, _, client = heappop(events)
            refused: Client | None = None
            if client is not None:
                client.tries += 1
                client.asked_s = self.now_s
                asked = WaitingLogin(client, network=client.network, user=client.user, is_lately=client.is_lately)
                loser = queue.offer(asked)
                refused = loser.asked if loser is not None else None
            elif checked is not None:
                queue.finished(checked, checked.asked.is_right)
                if checked.asked.is_right:
                    checked.asked.in_s = self.now_s
                else:
                    refused = checked.asked
                checked = None
            if refused is not None and refused.pause_s is not None:
                again_s = self.now_s + refused.pause_s * (0.5 + self.random.random())
                heappush(events, (again_s, next(order), refused))
            if checked is None and (checked := self._next(queue, events, order)) is not None:
                heappush(events, (self.now_s + CHECK_S, next(order), None))

    def _next(
        self, queue: LoginQueue[Client], events: list[tuple[float, int, Client | None]], order: "Iterator[int]"
    ) -> WaitingLogin[Client] | None:
        """The next login whose client still waits. One that has gone is not checked, and comes again."""
        while (login := queue.take()) is not None:
            client = login.asked
            if self.now_s - client.asked_s <= PATIENCE_S:
                return login
            queue.finished(login, None)
            if client.pause_s is not None:
                heappush(events, (self.now_s + client.pause_s * (0.5 + self.random.random()), next(order), client))
        return None


def attackers(random: Random, *, addresses: int, rate: float, until_s: float, user: str = "") -> list[Client]:
    """Wrong passwords, `rate` a second in all, from as many addresses, each in a /16 of its own while there are any."""
    networks = [number.to_bytes(2) + bytes((number >> 4 & 255, 7)) for number in range(256, 256 + addresses)]
    return [
        Client(random.choice(networks), user or f"guess {number}", is_right=False, begins_s=number / rate)
        for number in range(int(rate * until_s))
    ]


def newcomers(*, number: int, begins_s: float, each_s: float) -> list[Client]:
    """Devices that were never here, one after the other, each from its own network."""
    return [
        Client(
            bytes((203, index & 255, index >> 8 & 255, 1)),
            f"new {index}",
            is_right=True,
            begins_s=begins_s + index * each_s,
            pause_s=5.0,
        )
        for index in range(number)
    ]


def fleet(random: Random, *, number: int, begins_s: float, is_lately: bool, pause_s: float = 30.0) -> list[Client]:
    """Devices with passwords of their own behind one address, which come within ten seconds of a restart."""
    return [
        Client(
            bytes((198, 51, 100, 7)),
            f"pump {index}",
            is_right=True,
            begins_s=begins_s + random.random() * 10,
            pause_s=pause_s,
            is_lately=is_lately,
        )
        for index in range(number)
    ]


def share_in(clients: list[Client], within_s: float) -> float:
    """The share that was let in so soon after it first came."""
    return sum(client.took_s <= within_s for client in clients) / len(clients)

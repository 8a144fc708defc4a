"""Two clients of one name that fight for their session: what was acknowledged is not lost, what is QoS 2 comes once."""

import threading

import pytest

from tests.end_to_end.attacks.attacker import ACCEPTED, Attacker, Crowd, connect, publish
from tests.end_to_end.attacks.bystander import watched
from tests.end_to_end.attacks.conftest import Scale
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.resending_clients import PATIENCE_S, Connection, Publisher, ResendingClient, Subscriber

pytestmark = pytest.mark.proof

#: A CONNACK that says that there is a session.
SESSION_FOUND = b"\x20\x02\x01\x00"
LONGER_S = 0.005


class Fighter(ResendingClient):
    """Waits before each connection a little longer than before the last.

    So everybody has his turn at last, however slow the disk is, and nobody goes past the rate of connections.
    """

    _connects = 0

    def _one_connection(self) -> None:
        self._pause.wait(self._connects * LONGER_S)
        self._connects += 1
        if not self._is_stopped:
            super()._one_connection()


class FightingPublisher(Fighter, Publisher):
    """Shares its session with others of its name, so its packet identifiers are its own: `first` and those behind."""

    def __init__(self, port: int, client: bytes, topic: bytes, count: int, first: int, ring: threading.Barrier) -> None:
        """`ring`: nobody publishes before all of them have been connected, so each has to fight."""
        super().__init__(port, client, topic, count)
        self._identifier = first
        self._ring = ring

    def connected(self, connection: Connection) -> None:
        if self.connections == 1:
            self._ring.wait(PATIENCE_S)
        super().connected(connection)

    def received(self, connection: Connection, packets: list[bytes]) -> None:
        """Answers to what another has sent are its own business: it gets them again when it repeats."""
        super().received(
            connection, [packet for packet in packets if int.from_bytes(packet[2:4], "big") in self.in_flight]
        )


class FightingSubscriber(Fighter, Subscriber):
    """Shares its session with another of its name, who may end what this one has begun."""

    def is_done(self) -> bool:
        return self._saw_last

    def connected(self, connection: Connection) -> None:
        self._held.clear()
        super().connected(connection)


def test_publishers_that_fight_lose_nothing(attacked: Gateway, scale: Scale) -> None:
    count = scale(60, 1_000)
    with watched(attacked, memory_mib=120):
        watcher = Subscriber(attacked.port, b"fight-watcher", b"fight/publish")
        watcher.start()
        assert watcher.subscribed.wait(PATIENCE_S)
        ring = threading.Barrier(3)
        fighters = [
            FightingPublisher(attacked.port, b"fighter", b"fight/publish", count, first, ring)
            for first in (0, 20_000, 40_000)
        ]
        for fighter, mark in zip(fighters, (b"a", b"b", b"c"), strict=True):
            fighter.waiting = [(qos, mark + payload) for qos, payload in fighter.waiting]
            fighter.start()
        for fighter in fighters:
            fighter.join(2 * PATIENCE_S)
            assert fighter.error is None, fighter.error
            assert not fighter.is_alive(), f"{len(fighter.waiting)} wait, {len(fighter.in_flight)} in flight"
        _end(attacked, watcher, "fight/publish")
        for qos in (1, 2):
            acknowledged = set().union(*(fighter.acknowledged[qos] for fighter in fighters))
            assert len(acknowledged) == 3 * count // 2
            assert acknowledged <= set(watcher.payloads[qos])
        assert set(watcher.payloads[2].values()) == {1}
        assert sum(fighter.connections for fighter in fighters) > len(fighters)


def test_readers_that_fight_get_everything_between_them(attacked: Gateway, scale: Scale) -> None:
    """What one acknowledges the other does not get; what neither has acknowledged comes again."""
    count = scale(200, 5_000)
    with watched(attacked, memory_mib=120):
        readers = [FightingSubscriber(attacked.port, b"fight-reader", b"fight/read") for _ in range(2)]
        readers[0].start()
        assert readers[0].subscribed.wait(PATIENCE_S)
        readers[1].subscribed.set()
        readers[1].start()
        publisher = Publisher(attacked.port, b"fight-writer", b"fight/read", count)
        publisher.start()
        publisher.join(2 * PATIENCE_S)
        assert publisher.error is None
        assert not publisher.is_alive()
        readers[0].stop()
        readers[0].join(PATIENCE_S)
        _end(attacked, readers[1], "fight/read")
        for qos in (1, 2):
            received = set(readers[0].payloads[qos]) | set(readers[1].payloads[qos])
            assert publisher.acknowledged[qos] <= received


def _end(gateway: Gateway, watcher: Subscriber, topic: str) -> None:
    """Waits until the watcher has everything that was published so far."""
    watcher.end_with(b"the end")
    with Attacker(gateway.port) as attacker:
        attacker.send(connect("fight-end") + publish(topic, b"the end", qos=1, identifier=1))
        assert attacker.receive(8) == b"\x20\x02\x00\x00\x40\x02\x00\x01"
    watcher.join(PATIENCE_S)
    assert watcher.error is None, watcher.error
    assert not watcher.is_alive()


def test_a_crowd_that_fights_for_a_name_leaves_one(attacked: Gateway, scale: Scale) -> None:
    count = scale(50, 1_000)
    with watched(attacked, memory_mib=120) as watch, Crowd(attacked.port, count) as crowd:
        for turn in range(3):
            for attacker in crowd.members[turn::3]:
                attacker.send(connect("crowd", flags=0))
            watch.bystander.wait_for_more(1)
        crowd.read_until(lambda _: crowd.ended >= count - 1)
        (last,) = (attacker for attacker in crowd.members if not attacker.has_ended)
        last.send(b"\xc0\x00")
        received = last.receive(len(ACCEPTED) + 2)
        assert received in (ACCEPTED + b"\xd0\x00", SESSION_FOUND + b"\xd0\x00")

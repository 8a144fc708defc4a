"""Members of a group that come, go, acknowledge late and lose the gateway, by seeds: nothing is lost, QoS 2 is once."""

import random
from collections import Counter

import pytest

from mappings.commands.command import Dialect
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World
from tests.gateway.bridge.connect.test_level_5_sessions import connect
from tests.gateway.bridge.deliver.test_shared_subscriptions import KEPT, LEAVE

STEPS = 150
MEMBERS = ("one1", "two2", "thr3")
#: Always a member: whatever the others leave behind is for it.
ANCHOR = MEMBERS[0]


class Clients:
    """The members: what each has not acknowledged, and what all of them have acknowledged; at QoS 2: received."""

    def __init__(self, qos: int, dice: random.Random) -> None:
        self.received: Counter[bytes] = Counter()
        self._qos = qos
        self._dice = dice
        self._links: dict[str, FakeLink] = {}
        #: Answers, and the payloads that they stand for.
        self._due: dict[str, list[tuple[bytes, bytes]]] = {name: [] for name in MEMBERS}
        #: Packet identifiers of QoS 2 between PUBREC and PUBREL.
        self._held: dict[str, set[bytes]] = {name: set() for name in MEMBERS}

    def come(self, world: World, name: str) -> None:
        if name in self._links:
            return
        stays = self._qos == 2 or name == ANCHOR or self._dice.random() < 0.5
        window = self._dice.choice(("", "21 0001", "21 0003"))
        link = connect(world, name, flags="00", properties=(KEPT if stays else "") + window + self._limit(name))
        self._links[name] = link
        if not link.sent[2]:
            self._held[name].clear()
            world.receive(link, f"82 12 0001 00 000C '$share/g/a/b' 0{self._qos}")

    def _limit(self, _name: str) -> str:
        """Properties of its CONNECT that say how long packets may be."""
        return ""

    def go(self, world: World, name: str) -> None:
        if (link := self._links.pop(name, None)) is not None:
            self._read(name, link)
            self._due[name].clear()
            world.lose(link)

    def answer(self, world: World, name: str, *, all_of_it: bool) -> bool:
        """Acknowledges what a member has, or the first of it; whether there was anything."""
        link = self._links.get(name)
        if link is None:
            return False
        self._read(name, link)
        due = self._due[name]
        count = len(due) if all_of_it else min(len(due), 1)
        answers, self._due[name] = due[:count], due[count:]
        for answer, payload in answers:
            self.received.update([payload] if payload else [])
            world.bridge.receive(link, answer)
        world.run()
        return bool(answers)

    def leave(self, world: World, name: str) -> None:
        if name != ANCHOR and name in self._links:
            world.receive(self._links[name], LEAVE)

    def _read(self, name: str, link: FakeLink) -> None:
        data, position = link.taken(), 0
        while position < len(data):
            end = position + 2 + data[position + 1]
            packet, position = data[position:end], end
            kind = packet[0] >> 4
            if kind == 3:
                identifier, payload = packet[7:9], packet[10:]
                if self._qos == 1:
                    self._due[name].append((b"\x40\x02" + identifier, payload))
                    continue
                self.received[payload] += identifier not in self._held[name]
                self._held[name].add(identifier)
                self._due[name].append((b"\x50\x02" + identifier, b""))
            elif kind == 6:
                self._held[name].discard(packet[2:4])
                self._due[name].append((b"\x70\x02" + packet[2:4], b""))

    def step(self, world: World) -> None:
        """One member does something."""
        name, chance = self._dice.choice(MEMBERS), self._dice.random()
        if chance < 0.4:
            self.come(world, name)
        elif chance < 0.6:
            self.go(world, name)
        elif chance < 0.9:
            self.answer(world, name, all_of_it=self._dice.random() < 0.5)
        else:
            self.leave(world, name)

    def finish(self, world: World) -> None:
        """Everyone comes back and acknowledges what it is sent; then the sessions of all but one end."""
        for name in MEMBERS:
            self.go(world, name)
            self.come(world, name)
        while any(self.answer(world, name, all_of_it=True) for name in MEMBERS):
            continue
        for name in MEMBERS[1:]:
            self.go(world, name)
            world.lose(connect(world, name))
        while self.answer(world, ANCHOR, all_of_it=True):
            continue


class OneTakesLargePackets(Clients):
    """The others take packets of 20 bytes, so the one that takes larger ones stays; it may have no room for them."""

    def _limit(self, name: str) -> str:
        return "" if name == ANCHOR else "27 00000014"

    def go(self, world: World, name: str) -> None:
        if name != ANCHOR:
            super().go(world, name)


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_what_only_one_member_takes_is_not_lost_either(world: World, seed: int, qos: int) -> None:
    dice = random.Random(seed)
    clients, published = OneTakesLargePackets(qos, dice), 0
    clients.come(world, ANCHOR)
    for _ in range(STEPS):
        if dice.random() < 0.6:
            clients.step(world)
            continue
        published += 1
        payload = f"{published:03}" + "." * dice.choice((0, 0, 30))
        link = world.connect("else")
        packet = f"3{2 * qos} {7 + len(payload):02X} 0003 'a/b' 0001 '{payload}'"
        world.receive(link, packet, "62 02 0001", "E0 00")
    clients.finish(world)
    assert sorted(payload[:3] for payload in clients.received) == [b"%03d" % each for each in range(1, published + 1)]
    if qos == 2:
        assert set(clients.received.values()) == {1}
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 0


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_to_members_nothing_is_lost(new_world: NewWorld, seed: int, qos: int) -> None:
    dice = random.Random(seed)
    dialect = dice.choice(list(Dialect))
    world, clients, published = new_world(dialect=dialect), Clients(qos, dice), 0
    clients.come(world, ANCHOR)
    for _ in range(STEPS):
        chance = dice.random()
        if chance < 0.02:
            for name in MEMBERS:
                clients.go(world, name)
            world = new_world(dialect=dialect)
        elif chance < 0.6:
            clients.step(world)
        else:
            published += 1
            link = world.connect("else")
            world.receive(link, f"3{2 * qos} 0A 0003 'a/b' 0001 '{published:03}'", "62 02 0001", "E0 00")
    clients.finish(world)
    assert sorted(clients.received) == [f"{number:03}".encode() for number in range(1, published + 1)]
    if qos == 2:
        assert set(clients.received.values()) == {1}
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 0
    assert world.registrations() == 1
    assert_every_conversion_is_as_the_audit_predicts(world)

"""Four clients of all levels on a gateway without its process: an input is the list of what they do.

Each step says which client does what: a packet that is right as it stands, one with a wrong byte, bytes as they come, a
lost connection, one that nobody reads, a commit that returns, time that passes. Whatever a client is sent must be MQTT
of its level.
"""

from collections.abc import Iterator

from tests.fuzz.server_packets import ServerPackets
from tests.gateway.bridge.conftest import FakeLink, World, written

NAMES = "abcd"
LEVELS = (3, 4, 5, 5)
CONNECTS = {
    3: "10 0F 0006 'MQIsdp' 03 {} 0000 0001 '{}'",
    4: "10 0D 0004 'MQTT' 04 {} 0000 0001 '{}'",
    5: "10 13 0004 'MQTT' 05 {} 0000 05 11 {} 0001 '{}'",
}
#: The same with a will on `t`.
CONNECTS_WITH_WILL = {
    3: "10 15 0006 'MQIsdp' 03 {} 0000 0001 '{}' 0001 't' 0001 'w'",
    4: "10 13 0004 'MQTT' 04 {} 0000 0001 '{}' 0001 't' 0001 'w'",
    5: "10 1F 0004 'MQTT' 05 {} 0000 05 11 {} 0001 '{}' 05 18 00000001 0001 't' 0001 'w'",
}
#: QoS and RETAIN of wills, as bits of the flags.
WILLS = (0x04, 0x0C, 0x14, 0x2C)
#: Right as they stand at levels 3 and 4, and at level 5; topics `t`, `t/u` and shares of them.
PACKETS = (
    "30 04 0001 't' 'x'",
    "31 04 0001 't' 'r'",
    "31 03 0001 't'",
    "32 06 0001 't' 0001 'x'",
    "32 08 0003 't/u' 0002 'x'",
    "34 06 0001 't' 0003 'x'",
    "3C 06 0001 't' 0003 'x'",
    "35 06 0001 't' 0004 'r'",
    "62 02 0003",
    "62 02 0004",
    "62 02 0009",
    "40 02 0001",
    "40 02 0002",
    "50 02 0001",
    "50 02 0002",
    "70 02 0001",
    "70 02 0002",
    "C0 00",
    "E0 00",
    "82 06 000A 0001 't' 02",
    "82 06 000B 0001 '#' 01",
    "82 0E 000C 0003 't/u' 00 0003 't/+' 02",
    "A2 05 000D 0001 't'",
    "A2 05 000E 0001 '#'",
)
PACKETS_OF_5 = (
    "30 05 0001 't' 00 'x'",
    "31 05 0001 't' 00 'r'",
    "31 04 0001 't' 00",
    "32 07 0001 't' 0001 00 'x'",
    "32 0C 0001 't' 0002 05 02 00000001 'x'",
    "34 07 0001 't' 0003 00 'x'",
    "3C 07 0001 't' 0003 00 'x'",
    "35 07 0001 't' 0004 00 'r'",
    "62 02 0003",
    "62 03 0004 92",
    "62 02 0009",
    "40 02 0001",
    "40 03 0002 87",
    "50 02 0001",
    "50 03 0002 97",
    "70 02 0001",
    "70 03 0002 92",
    "C0 00",
    "E0 00",
    "E0 01 04",
    "E0 07 00 05 11 00000000",
    "82 07 000A 00 0001 't' 02",
    "82 07 000B 00 0001 '#' 0D",
    "82 09 000C 02 0B 07 0001 't' 11",
    "82 10 000D 00 000A '$share/g/t' 02",
    "82 10 000E 00 000A '$share/h/t' 01",
    "A2 06 000F 00 0001 't'",
    "A2 0F 0010 00 000A '$share/g/t'",
    "30 10 0001 't' 0C 03 0001 'c' 26 0001 'n' 0001 'v'",
    "F0 00",
)


class Client:
    """One device: its link, and its own reading of what it is sent."""

    def __init__(self, number: int, heard: list[tuple[str, object]] | None = None) -> None:
        """`heard` gets all that any client hears: name, and what it was sent, or why its connection was closed."""
        self.name, self.level = NAMES[number], LEVELS[number]
        self._heard = [] if heard is None else heard
        self.link: FakeLink | None = None
        self._reader = ServerPackets(self.level)

    def connect(self, world: World, choice: int) -> None:
        self.leave(world)
        self.link = FakeLink()
        self._reader = ServerPackets(self.level)
        will = WILLS[choice >> 4 & 3] if choice & 8 else 0
        flags = f"{will | 2 * (choice & 1):02X}"
        expiry = ("00000000", "FFFFFFFF", "00000002")[choice % 3]
        filled = (flags, expiry, self.name) if self.level == 5 else (flags, self.name)
        connects = CONNECTS_WITH_WILL if will else CONNECTS
        self.send(world, written(connects[self.level].format(*filled)))

    def leave(self, world: World) -> None:
        if self.link is not None:
            self.look()
            if self.link.reason is not None:
                self._heard.append((self.name, self.link.reason))
            world.lose(self.link)
            self.link = None

    def send(self, world: World, data: bytes) -> None:
        if self.link is not None and self.link.is_open:
            world.bridge.receive(self.link, data)
            world.run()

    def look(self) -> None:
        """Everything that came is MQTT."""
        assert self.link is not None
        sent, told = self.link.taken(), self.link.told
        if sent or told:
            self._heard.append((self.name, (sent, tuple(told))))
            self.link.told = []
        self._reader.read(sent)


class Play:
    """The steps of an input: one byte says who and what, what follows says how."""

    def __init__(self, world: World, clients: list[Client], steps: bytes) -> None:
        self._world = world
        self._clients = clients
        self._steps = steps
        self._place = 0
        self._actions = [self._right] * 6 + [
            self._fall_behind,
            self._catch_up,
            self._wrong,
            self._raw,
            self._leave,
            self._hold,
            self._commit,
            self._wait,
            self._let_go,
            self._connect,
        ]

    def act(self) -> None:
        while self._place < len(self._steps):
            step = self._byte()
            self._actions[step >> 2 & 15](self._clients[step & 3])
            for each in self._clients:
                if each.link is not None:
                    each.look()

    def _byte(self) -> int:
        self._place += 1
        return self._steps[self._place - 1] if self._place <= len(self._steps) else 0

    def _packet(self, client: Client) -> bytes:
        packets = PACKETS_OF_5 if client.level == 5 else PACKETS
        return written(packets[self._byte() % len(packets)])

    def _right(self, client: Client) -> None:
        client.send(self._world, self._packet(client))

    def _wrong(self, client: Client) -> None:
        data, where = bytearray(self._packet(client)), self._byte()
        data[where % len(data)] ^= 1 << (where >> 5)
        client.send(self._world, bytes(data))

    def _raw(self, client: Client) -> None:
        client.send(self._world, bytes(self._byte() for _ in range(1 + self._byte() % 16)))

    def _fall_behind(self, client: Client) -> None:
        """It reads no more."""
        if client.link is not None:
            client.link.can_send = False

    def _catch_up(self, client: Client) -> None:
        """It reads again, and its packets that wait have their turn. Level 3 repeats without a new connection."""
        link, bridge = client.link, self._world.bridge
        if link is None or not link.is_open:
            return
        link.can_send = True
        bridge.resumed(link)
        if link.awaits_turn:
            link.awaits_turn = False
            bridge.go_on(link)
        if client.level == 3:
            bridge.repeat(link, self._byte() * 100_000)
        self._world.run()

    def _leave(self, client: Client) -> None:
        client.leave(self._world)

    def _hold(self, _client: Client) -> None:
        self._world.commits_are_held = True

    def _commit(self, _client: Client) -> None:
        if self._world.waiting_commits:
            self._world.commit()
            self._world.run()

    def _wait(self, _client: Client) -> None:
        self._world.now_us += self._byte() * 100_000
        self._world.bridge.tick()
        self._world.run()

    def _let_go(self, _client: Client) -> None:
        self._world.commits_are_held = False
        self._world.run()

    def _connect(self, client: Client) -> None:
        client.connect(self._world, self._byte())


def seeds() -> Iterator[tuple[str, bytes]]:
    """Each packet by each client, and each will, behind subscriptions of all."""
    for number in range(len(PACKETS_OF_5)):
        subscribed = bytes(each for client in range(4) for each in (client, 19 + 2 * (client > 1)))
        gone = (each for client in range(4) for each in (15 << 2 | client, number << 3 | 8, 10 << 2 | client))
        yield f"will-{number}", subscribed + bytes(each & 0xFF for each in gone) + bytes((13 << 2, 20, 13 << 2, 255))
        yield f"packet-{number}", subscribed + bytes(each for client in range(4) for each in (client, number))
        yield (
            f"held-{number}",
            subscribed + bytes((11 << 2, 2, number, 3, number, 12 << 2, 10 << 2 | 3, 15 << 2 | 3, 0, 14 << 2)),
        )

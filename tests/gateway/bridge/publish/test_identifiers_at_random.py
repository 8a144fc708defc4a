"""A client that uses packet identifiers of QoS 2 again in every state, at random, against a plain model of the rule."""

import tempfile
from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.gateway.bridge.conftest import DEFAULT_STREAM, FakeLink, World, written

CONNECTS = {
    3: "10 12 0006 'MQIsdp' 03 00 0000 0004 'self'",
    4: "10 10 0004 'MQTT' 04 00 0000 0004 'self'",
    5: "10 16 0004 'MQTT' 05 00 0000 05 11 FFFFFFFF 0004 'self'",
}
#: Examples of 30 steps each.
EXAMPLES = {"short": 40, "full": 500}
IDENTIFIERS = st.integers(1, 2)
PAYLOADS = st.sampled_from("AB")
#: What a client may send: PUBLISH of QoS 2 to an allowed topic or another, PUBREL, PUBLISH of QoS 1.
KINDS = st.sampled_from(("publish", "release", "publish", "release", "refused", "at least once"))
PACKETS = st.tuples(KINDS, IDENTIFIERS, PAYLOADS, st.booleans())
Packet = tuple[str, int, str, bool]


@dataclass
class Model:
    """What the gateway knows of the client: what it holds by identifier, and what it has published, in order."""

    held: dict[int, str] = field(default_factory=dict)
    published: list[str] = field(default_factory=list)


@dataclass
class Group:
    """A group commit that has not returned: what is true with it, and which identifiers it releases."""

    after: Model
    releases: list[int]


class Reuse(RuleBasedStateMachine):
    """Packets in reads of any size, with commits under way, lost connections, take-overs and kills in between."""

    @initialize(level=st.sampled_from((3, 4, 5)))
    def begin(self, level: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.kills = 0
        self.level = level
        self.model = self.on_disk = Model()
        self.begin_world(Path(self.folder.name) / "0")
        self.connect()

    def begin_world(self, data: Path) -> None:
        data.mkdir(exist_ok=True)
        self.world = World(data, has_broker=False, publish=("a",))
        self.repeated = {"repeat": 0, "identifier_reused": 0}
        self.groups: deque[Group] = deque()
        self.is_resumed = False

    def connect(self) -> None:
        self.link, self.due = FakeLink(), ""
        self.world.receive(self.link, CONNECTS[self.level])
        self.world.commits_are_held = False
        self.world.run()
        self.settle()
        connack = self.link.taken()
        assert connack[:1] == b"\x20"
        self.is_resumed = connack[2] == 1

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()
            self.folder.cleanup()

    # -- the rule ------------------------------------------------------------------------------------------------------

    def told(self, packet: Packet) -> str:
        """What the client sends."""
        kind, identifier, payload, duplicate = packet
        if kind == "release":
            return f"62 02 {identifier:04X}"
        first = (0x32 if kind == "at least once" else 0x34) | duplicate << 3
        topic, properties = "b" if kind == "refused" else "a", "00" if self.level == 5 else ""
        length = 6 + (self.level == 5)
        return f"{first:02X} {length:02X} 0001 '{topic}' {identifier:04X} {properties} '{payload}'"

    def answer(self, packet: Packet, releases: list[int]) -> str:
        """What the client is told, and what becomes true."""
        kind, identifier, payload, _ = packet
        held = self.model.held
        if kind == "at least once":
            self.model.published.append(payload)
            return f"40 02 {identifier:04X}"
        if kind == "release":
            is_under_way = identifier in releases or any(identifier in group.releases for group in self.groups)
            if identifier in held:
                self.model.published.append(held.pop(identifier))
                releases.append(identifier)
            elif self.level == 5 and not is_under_way and not self.is_resumed:
                return f"70 03 {identifier:04X} 92"
            return f"70 02 {identifier:04X}"
        if identifier in held:
            is_same = held[identifier] == payload and kind == "publish"
            self.repeated["repeat" if is_same else "identifier_reused"] += 1
        elif kind == "refused":
            return f"50 03 {identifier:04X} 87"
        else:
            held[identifier] = payload
        return f"50 02 {identifier:04X}"

    # -- steps ---------------------------------------------------------------------------------------------------------

    @rule(packets=st.lists(PACKETS, min_size=1, max_size=8))
    def send(self, packets: list[Packet]) -> None:
        """One read. Before level 5 a refused PUBLISH would end the connection, so it is left out."""
        if self.level < 5:
            packets = [packet for packet in packets if packet[0] != "refused"]
        if not self.link.is_read() or not packets:
            return
        self.model, releases = deepcopy(self.model), list[int]()
        self.due += "".join(self.answer(packet, releases) for packet in packets)
        self.world.receive(self.link, *(self.told(packet) for packet in packets))
        if len(self.groups) < 2:
            self.groups.append(Group(self.model, releases))
        else:  # it gathers with what waits for the commit under way
            self.groups[-1] = Group(self.model, self.groups[-1].releases + releases)
        if not self.world.waiting_commits:
            self.settle()

    def settle(self) -> None:
        """Every commit has returned."""
        assert not self.world.waiting_commits
        self.groups.clear()
        self.on_disk = self.model

    @rule()
    def hold_commits(self) -> None:
        self.world.commits_are_held = True

    @precondition(lambda self: self.world.waiting_commits)
    @rule()
    def commit_once(self) -> None:
        self.on_disk = self.groups.popleft().after
        self.world.commit()
        self.world.run()

    @rule()
    def let_commits_go(self) -> None:
        self.world.commits_are_held = False
        self.world.run()
        self.settle()

    @rule()
    def lose_and_connect(self) -> None:
        self.world.lose(self.link)
        self.connect()

    @rule()
    def take_over(self) -> None:
        old = self.link
        self.connect()
        assert not old.is_open
        self.world.lose(old)

    @rule()
    def kill(self) -> None:
        """What is on the disk is what the last commit that returned has made true."""
        self.kills += 1
        self.model = self.on_disk
        left = self.world.kill(Path(self.folder.name) / str(self.kills))
        self.world.close()
        self.begin_world(left)
        self.connect()

    @invariant()
    def every_message_is_published_once_and_in_order(self) -> None:
        found = [message.body[-1:].decode() for message in self.world.messages(DEFAULT_STREAM)]
        assert found == self.on_disk.published
        assert self.world.bridge.traffic.repeated == self.repeated
        if not self.groups:
            session = self.world.sessions.get("self")
            assert session is not None
            assert {each: held.payload.decode() for each, held in session.held.items()} == self.model.held
            assert session.releases_under_way == {}

    @invariant()
    def every_packet_is_answered_in_order_behind_its_commit(self) -> None:
        due = written(self.due)
        assert due.startswith(self.link.sent)
        if not self.groups:
            assert self.link.sent == due


@pytest.mark.proof
def test_client_that_uses_identifiers_again_in_every_state_loses_and_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch, proof_scale: str
) -> None:
    monkeypatch.setattr("mq_adapters.embedded.group_commit.SLOW_COMMIT_S", -1.0)
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(  # type: ignore[no-untyped-call]  # hypothesis has no types here
        Reuse,
        settings=settings(
            max_examples=EXAMPLES[proof_scale], stateful_step_count=30, deadline=None, suppress_health_check=checks
        ),
    )

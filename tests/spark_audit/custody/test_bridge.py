"""What a real bridge and a real broker do, replayed: random clients raise no alarm, and a record that is gone does."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.audit_trail.disclosure import UnderKey
from gateway.audit_trail.notes.notes import pack_batch
from gateway.audit_trail.notes.stock_takes import StockTakes
from gateway.config.mqtt_limits import MqttLimits
from gateway.operations.inventory import Inventory
from mappings.commands.command import Dialect
from mq_adapters.embedded.unit_of_work import Note
from spark_audit.custody.commands import row_of
from spark_audit.custody.findings import Custody, Finding
from spark_audit.custody.replay import replayed
from spark_audit.personal import PersonalKey
from spark_audit.record.disclosure import Disclosure, InClear
from spark_audit.record.expansion import Expander
from tests.gateway.bridge.conftest import NOW_US, FakeLink, World

Record = dict[str, Any]
_NAMES = ("one1", "two2", "six6")
_TOPICS = ("a", "a/b", "a/c", "b/b", "c")
_FILTERS = ("a/+", "a/#", "#", "+/b", "a/b", "c", "$share/g/a/#")
#: Packet identifiers of QoS 2: few, so that some are used twice.
_IDENTIFIERS = (1, 2)
_STEPS = 500
_TICK_US, _LONGEST_PAUSE_US = 100_000, 60_000
_LIMITS = MqttLimits(maximum_in_flight=10, maximum_subscriptions=10)


class _Recorded:
    """Worlds, one after the other on one folder, and the trail that their notes make."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, dialect: Dialect, shown: Disclosure) -> None:
        self._folder, self._dialect = folder, dialect
        self._expander = Expander("g", shown)
        self._commits: list[list[Record]] = []
        self._links: dict[str, FakeLink] = {}
        self._now_us = self._tick_us = NOW_US
        patch.setattr(World, "_seal", self._seal)
        self.world = self._started({"kind": "stock", "event": "queues", "messages": 0})

    def _seal(self, number: int, notes: list[Note]) -> bytes:
        self._commits.append(self._expander.expand(pack_batch(number, list(notes)))[1])
        return b"notes"

    def _started(self, *more: Record) -> World:
        what = {"kind": "started", "code_version": "1", "table_version": "1", "configuration_sha256": "0"}
        self._commits.append([what, *more])
        world = World(self._folder, dialect=self._dialect, limits=_LIMITS, subscribe=("#", "$share/#"))
        world.now_us = self._now_us
        self._inventory = Inventory(world.engine, world.broker.read_subscription)
        return world

    def pass_time(self, chance: random.Random) -> None:
        """A moment passes; the bridge ticks every tenth of a second, as the gateway lets it."""
        self._now_us = self.world.now_us = self.world.now_us + chance.randrange(_LONGEST_PAUSE_US)
        if self._now_us >= self._tick_us:
            self._tick_us = self._now_us + _TICK_US
            self.tick(chance)

    def records(self) -> list[Record]:
        """The trail so far."""
        told = [(number, record) for number, records in enumerate(self._commits, start=1) for record in records]
        return [
            {"version": 1, "gateway": "g"} | record | {"batch": number, "sequence": place}
            for place, (number, record) in enumerate(told, start=1)
        ]

    # -- what may happen -----------------------------------------------------------------------------------------------

    def connect(self, chance: random.Random) -> None:
        name = chance.choice(_NAMES)
        self.lose(name)
        link = self._links[name] = FakeLink()
        level, rest = ("05", "05 11 0000 0E10") if chance.random() < 0.6 else ("04", "")
        length = 10 + 6 + (6 if rest else 0)
        flags = chance.choice(("00", "02"))
        self.world.receive(link, f"10 {length:02X} 0004 'MQTT' {level} {flags} 0000 {rest} 0004 '{name}'")

    def lose(self, name: str) -> None:
        link = self._links.pop(name, None)
        if link is not None and link.is_open:
            self.world.lose(link)

    def disconnect(self, chance: random.Random) -> None:
        name = chance.choice(_NAMES)
        if name in self._links:
            self._send(name, "E0 00")
            self.lose(name)

    def subscribe(self, chance: random.Random) -> None:
        """Mostly one filter, and sometimes several, of which some are the same."""
        name = chance.choice(_NAMES)
        is_new = self._is_new(name)
        filters = chance.choices(_FILTERS, k=chance.choice((1, 1, 1, 2, 4)))
        entries = []
        for each in filters:
            options = chance.randrange(3) | (chance.choice((0, 4, 16, 32)) if is_new and "$" not in each else 0)
            entries.append(f"{len(each):04X} '{each}' {options:02X}")
        length = 2 + is_new + sum(3 + len(each) for each in filters)
        self._send(name, f"82 {length:02X} 0001 {'00' if is_new else ''} {' '.join(entries)}")

    def unsubscribe(self, chance: random.Random) -> None:
        name, topic_filter = chance.choice(_NAMES), chance.choice(_FILTERS)
        is_new = self._is_new(name)
        body = f"0001 {'00' if is_new else ''} {len(topic_filter):04X} '{topic_filter}'"
        self._send(name, f"A2 {4 + is_new + len(topic_filter):02X} {body}")

    def publish(self, chance: random.Random) -> None:
        name, topic = chance.choice(_NAMES), chance.choice(_TOPICS)
        is_new, qos, retain = self._is_new(name), chance.randrange(3), chance.random() < 0.3
        payload = "" if retain and chance.random() < 0.3 else "'x'"
        identifier = ("", "0007", f"{chance.choice(_IDENTIFIERS):04X}")[qos]
        body = f"{len(topic):04X} '{topic}' {identifier} {'00' if is_new else ''} {payload}"
        length = 2 + len(topic) + len(identifier) // 2 + is_new + bool(payload)
        self._send(name, f"{0x30 | qos << 1 | retain:02X} {length:02X} {body}")

    def release(self, chance: random.Random) -> None:
        """PUBREL, often of a PUBLISH that is held."""
        self._send(chance.choice(_NAMES), f"62 02 {chance.choice(_IDENTIFIERS):04X}")

    def tick(self, _chance: random.Random) -> None:
        """The bridge notes which acknowledgements it has sent."""
        self.world.bridge.tick()
        self.world.run()

    def restart(self, _chance: random.Random) -> None:
        self.world.close()
        self._links.clear()
        self.world = self._started()

    def tell_inventory(self, _chance: random.Random) -> None:
        """One record of an inventory. The next begins as soon as one is complete."""
        self._inventory.tick()
        self.world.run()

    def take_stock(self, _chance: random.Random) -> None:
        StockTakes(self.world.engine, 0, lambda: 0).take()
        self.world.run()

    def _is_new(self, name: str) -> bool:
        link = self._links.get(name)
        return link is not None and link.session is not None and link.session.level == 5

    def _send(self, name: str, packet: str) -> None:
        link = self._links.get(name)
        if link is not None and link.is_open and link.session is not None:
            self.world.receive(link, packet)
            self._acknowledge(link)

    def _acknowledge(self, link: FakeLink) -> None:
        """Each client acknowledges at once what it has been sent at QoS 1; QoS 2 stays open."""
        for each in self._links.values():
            for identifier in _of_qos_1(each.taken()):
                if each.is_open:
                    self.world.receive(each, f"40 02 {identifier:04X}")


def _of_qos_1(sent: bytes) -> Iterator[int]:
    """The packet identifiers of the PUBLISHes of QoS 1; the packets here are short."""
    while sent:
        length = 2 + sent[1]
        if sent[0] >> 4 == 3 and sent[0] & 6 == 2:
            topic = int.from_bytes(sent[2:4], "big")
            yield int.from_bytes(sent[4 + topic : 6 + topic], "big")
        sent = sent[length:]


_ACTS: tuple[tuple[Callable[[_Recorded, random.Random], None], int], ...] = (
    (_Recorded.connect, 6),
    (_Recorded.disconnect, 2),
    (_Recorded.subscribe, 6),
    (_Recorded.unsubscribe, 2),
    (_Recorded.publish, 20),
    (_Recorded.release, 6),
    (_Recorded.tick, 6),
    (_Recorded.restart, 1),
    (_Recorded.take_stock, 2),
    (_Recorded.tell_inventory, 6),
)


def _found(records: list[Record]) -> list[Finding]:
    return list(replayed(map(row_of, records)))


def _lived(
    folder: Path,
    patch: pytest.MonkeyPatch,
    seed: int,
    dialect: Dialect,
    shown: Disclosure | None = None,
) -> list[Record]:
    patch.setattr("mq_adapters.embedded.group_commit.SLOW_COMMIT_S", -1.0)
    patch.setattr("gateway.operations.inventory.INTERVAL_US", 0)
    chance = random.Random(seed)
    recorded = _Recorded(folder, patch, dialect, shown or InClear())
    acts, weights = zip(*_ACTS, strict=True)
    for act in chance.choices(acts, weights, k=_STEPS):
        recorded.pass_time(chance)
        act(recorded, chance)
    recorded.take_stock(chance)
    recorded.world.close()
    return recorded.records()


@pytest.mark.parametrize("seed", range(6))
def test_random_clients_raise_no_alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    records = _lived(tmp_path / "data", monkeypatch, seed, (Dialect.MQRFH2, Dialect.MQRFH)[seed % 2])
    assert _found(records) == []
    copies = [each for each in records if each.get("conversion") == "header_to_header"]
    assert len(copies) > 10
    assert {"complete", "subscribers"} <= {each.get("event") for each in records}


def test_a_trail_that_begins_late_or_ends_anywhere_or_has_a_gap_raises_no_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = _lived(tmp_path / "data", monkeypatch, 8, Dialect.MQRFH2)
    for place in range(1, len(records), 29):
        assert _found(records[place:]) == []
        assert _found(records[:place]) == []
        assert _found(records[:place] + records[place + 7 :]) == []


def test_keyed_names_and_encrypted_headers_raise_no_alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = _lived(tmp_path / "data", monkeypatch, 9, Dialect.MQRFH2, UnderKey(PersonalKey(b"k" * 32)))
    assert {each["topic"][:2] for each in records if each.get("topic")} == {"k:"}
    assert _found(records) == []


def test_a_copy_that_is_gone_or_doubled_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = _lived(tmp_path / "data", monkeypatch, 7, Dialect.MQRFH2)
    dropped = {each["message_id"] for each in records if each["kind"] == "dropped"}  # control `stages` tells of these
    copies = [
        place
        for place, each in enumerate(records)
        if each.get("conversion") == "header_to_header" and each["message_id"] not in dropped
    ]
    for place in copies[::5]:
        gone = records[:place] + records[place + 1 :]
        doubled = [*records[: place + 1], records[place] | {"message_id": "ff" * 24}, *records[place + 1 :]]
        assert _found(_numbered(gone)), records[place]
        assert _found(_numbered(doubled)), records[place]


def test_a_changed_code_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = _lived(tmp_path / "data", monkeypatch, 10, Dialect.MQRFH2)
    told = [place for place, each in enumerate(records) if each.get("codes") and each["kind"] != "topics_refused"]
    assert {"session", "answered", "confirmed"} == {records[place]["kind"] for place in told}
    for place in told:
        codes = bytearray.fromhex(records[place]["codes"])
        codes[0] ^= 0x11 if records[place].get("packet_type") == 11 else 0x01
        wrong = [*records[:place], records[place] | {"codes": codes.hex()}, *records[place + 1 :]]
        assert Custody.CODES in {each.control for each in _found(wrong)}, records[place]


def _numbered(records: list[Record]) -> list[Record]:
    return [record | {"sequence": place} for place, record in enumerate(records, start=1)]

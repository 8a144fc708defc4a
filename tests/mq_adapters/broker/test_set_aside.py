"""Subscriptions that are set aside: they stay in the store, and everything else is as if they were loaded."""

from itertools import product
from pathlib import Path

import pytest

from mappings.topics.shapes import Shapes
from mq_adapters.broker.broker import Broker, BrokerRules
from mq_adapters.broker.set_aside import SubscriptionsSetAside, may_be_set_aside
from mq_adapters.broker.subscription import Subscription
from mq_adapters.broker.topic_spaces import BrokerDialect, TopicSpaces
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import MQPER_PERSISTENT
from mq_adapters.system_queues import DEFAULT_STREAM
from tests.mq_adapters.broker.conftest import MQRFH2, Station

ONE, TWO = b"one".ljust(24, b"\0"), b"two".ljust(24, b"\0")
LEVELS = ("a", "b", "+")
#: Every pattern of up to three levels of these, with and without `#` at its end.
PATTERNS = ["#"] + [
    "/".join(levels) + end for length in (1, 2, 3) for levels in product(LEVELS, repeat=length) for end in ("", "/#")
]
TOPICS = ["/".join(levels) for length in (1, 2, 3, 4) for levels in product("abc", repeat=length)] + ["", "/", "a/"]


class ApartStation(Station):
    """A station that sets the subscribers in `set_aside` aside at its next start."""

    set_aside: frozenset[bytes] = frozenset()

    def open(self) -> None:
        super().open()
        if self.set_aside:
            self.broker.stop()
            self.broker = Broker(self.engine, listener=self.listener, rules=self.rules, set_aside=self.set_aside)
            self.broker.attach()

    def set_apart(self, *correl_ids: bytes) -> None:
        self.set_aside = frozenset(correl_ids)
        self.restart()

    def subscribe(self, correl_id: bytes, *topics: str, more: str = "", verb: str = "RegSub") -> None:
        named = "".join(f"<Topic>{topic}</Topic>" for topic in topics)
        options = f"<RegOpt>CorrelAsId</RegOpt>{more}"
        self.control(
            f"<psc><Command>{verb}</Command><QName>NEW</QName>{options}{named}</psc>",
            correl_id=correl_id,
            user_identifier="ann",
        )

    def publish(self, topic: str) -> list[bytes]:
        """Publishes, and returns the CorrelIds of those who get a copy."""
        body = self.mqrfh2(f"<psc><Command>Publish</Command><Topic>{topic}</Topic></psc>", body=b"x")
        before = len(self.listener.copies)
        self.put(DEFAULT_STREAM, MQRFH2, body, persistence=MQPER_PERSISTENT)
        return sorted(copy.descriptor.correl_id for _, copy, _ in self.listener.copies[before:])

    def registered(self) -> list[tuple[int, str]]:
        return sorted(
            (each.number, each.topic) for each in self.broker.administration(is_audited=False).subscriptions()
        )

    def loaded(self) -> list[str]:
        return sorted(each.topic for each in self.broker._registry.loaded())


@pytest.fixture
def station(tmp_path: Path) -> ApartStation:
    return ApartStation(tmp_path, ())


def test_a_publication_reaches_the_same_subscribers_as_before(station: ApartStation) -> None:
    station.subscribe(TWO, "a/+/c", "b/#")
    for pattern in PATTERNS:
        station.subscribe(pattern.encode().ljust(24, b"\0"), pattern)
    loaded = [station.publish(topic) for topic in TOPICS]
    station.set_apart(*(pattern.encode().ljust(24, b"\0") for pattern in PATTERNS))
    assert station.loaded() == ["a/+/c", "b/#"]
    assert station.broker.subscribers_set_aside == len(PATTERNS)
    assert [station.publish(topic) for topic in TOPICS] == loaded
    assert sum(map(len, loaded)) > len(TOPICS)


def test_a_subscriber_gets_one_copy_however_many_of_its_subscriptions_match(station: ApartStation) -> None:
    station.subscribe(ONE, *PATTERNS)
    station.set_apart(ONE)
    reads: list[bytes] = []
    state = station.engine.state
    station.engine.state = lambda space, key: reads.append(key) or state(space, key)  # type: ignore[method-assign,func-returns-value]
    assert station.publish("a/b/a") == [ONE]
    assert len(reads) == 1


def test_what_is_not_alone_is_loaded(station: ApartStation) -> None:
    station.subscribe(ONE, "plain/+")
    station.subscribe(ONE, "twice", more="<RegOpt>DupsOK</RegOpt>")
    station.subscribe(ONE, "asked", more="<RegOpt>PubOnReqOnly</RegOpt>")
    station.subscribe(ONE, "named", more="<SubName>n</SubName>")
    station.subscribe(ONE, "joined", more="<RegOpt>JoinShared</RegOpt><SubIdentity>i</SubIdentity>")
    station.subscribe(ONE, "filtered", more="<Filter>x=1</Filter>")
    station.subscribe(ONE, "inner/#/more")
    station.set_apart(ONE)
    assert station.loaded() == ["asked", "filtered", "inner/#/more", "joined", "named", "twice"]
    assert station.publish("inner/a/more") == station.publish("plain/a") == [ONE]


def test_character_patterns_with_wildcards_are_loaded(station: ApartStation) -> None:
    for topic in ("a/b", "a/*", "a/%*", "a/+"):
        string = f"MQPSCommand RegSub MQPSQName NEW MQPSTopic {topic} MQPSRegOpts CorrelAsId"
        station.put("SYSTEM.BROKER.CONTROL.QUEUE", b"MQHRF   ", station.mqrfh(string), correl_id=ONE)
    station.set_apart(ONE)
    assert station.loaded() == ["a/%*", "a/*", "a/+"]
    assert station.publish("a/b") == [ONE]


def test_it_can_be_found_registered_again_and_ended(station: ApartStation) -> None:
    station.subscribe(ONE, "a/+", "b", "c/#")
    station.subscribe(TWO, "a/+")
    station.set_apart(ONE, TWO)
    before = station.engine.states(StateKind.BROKER_SUBSCRIPTION)
    assert len(station.registered()) == 4
    station.subscribe(ONE, "a/+")  # nothing changes, so nothing is written
    assert station.engine.states(StateKind.BROKER_SUBSCRIPTION) == before
    assert station.loaded() == []
    station.subscribe(ONE, "a/+", verb="DeregSub")
    assert station.publish("a/x") == [TWO]
    assert [topic for _, topic in station.registered()] == ["b", "c/#", "a/+"]
    station.subscribe(ONE, "a/+")
    assert station.publish("a/x") == [ONE, TWO]
    assert station.loaded() == ["a/+"]


def test_a_changed_one_is_loaded_and_counts_once(station: ApartStation) -> None:
    station.subscribe(ONE, "a/+")
    station.set_apart(ONE)
    station.subscribe(ONE, "a/+", more="<RegOpt>InformIfRet</RegOpt>")
    assert station.loaded() == ["a/+"]
    assert station.broker.subscribers_set_aside == 0
    assert station.publish("a/x") == [ONE]
    assert len(station.registered()) == 1


def test_all_of_a_subscriber_end_at_once(station: ApartStation) -> None:
    station.subscribe(ONE, *PATTERNS)
    station.subscribe(TWO, "a/b")
    station.set_apart(ONE)
    station.subscribe(ONE, verb="DeregSub", more="<RegOpt>DeregAll</RegOpt>")
    assert [topic for _, topic in station.registered()] == ["a/b"]
    assert len(station.engine.states(StateKind.BROKER_SUBSCRIPTION)) == 1
    assert station.broker.subscribers_set_aside == station.broker.shapes.weight == 0
    assert station.publish("a/b") == [TWO]


def test_shapes_weigh_the_same(station: ApartStation) -> None:
    station.subscribe(ONE, *PATTERNS)
    weight = station.broker.shapes.weight
    station.set_apart(ONE)
    assert isinstance(station.broker.shapes, Shapes)
    assert station.broker.shapes.weight == weight > 0


def test_an_administrator_sees_and_ends_one(station: ApartStation) -> None:
    station.subscribe(ONE, "a/+", "b")
    station.set_apart(ONE)
    ((number, _),) = [each for each in station.registered() if each[1] == "a/+"]
    unit = station.engine.begin()
    station.broker.administration(is_audited=False).delete(unit, number)
    station.engine.submit(unit)
    assert station.publish("a/x") == []
    assert station.publish("b") == [ONE]


def test_another_user_may_not_end_them(station: ApartStation) -> None:
    station.subscribe(ONE, "a")
    station.set_apart(ONE)
    command = "<psc><Command>DeregSub</Command><QName>NEW</QName><RegOpt>CorrelAsId</RegOpt><Topic>a</Topic></psc>"
    station.control(command, correl_id=ONE, user_identifier="bob")
    station.control(command.replace("Dereg", "Reg"), correl_id=ONE, user_identifier="bob")
    assert station.listener.refusals == [("DeregSub", 3151), ("RegSub", 3078)]
    assert station.publish("a") == [ONE]


def test_equal_hashes_are_told_apart_by_the_rows(station: ApartStation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mq_adapters.broker.set_aside.hash", lambda _value: 7, raising=False)
    station.subscribe(ONE, "a/+", "b/+", "+/a")
    station.subscribe(TWO, "b/+")
    station.set_apart(ONE, TWO)
    assert station.publish("b/c") == [ONE, TWO]
    assert station.publish("a/c") == [ONE]
    assert station.publish("c/c") == []


def test_on_a_stream_of_message_broker_the_topic_has_its_prefix(tmp_path: Path) -> None:
    station = ApartStation(tmp_path, (), BrokerRules(dialect=BrokerDialect.WMB, input_queues=("S1",)))
    station.engine.ensure("S1", "")
    string = "MQPSCommand RegSub MQPSQName NEW MQPSStreamName S1 MQPSTopic a/b MQPSRegOpts CorrelAsId"
    station.put("SYSTEM.BROKER.CONTROL.QUEUE", b"MQHRF   ", station.mqrfh(string), correl_id=ONE)
    station.subscribe(TWO, "#")
    station.set_apart(ONE, TWO)
    assert station.loaded() == []
    assert station.publish("a/b") == [TWO]
    assert station.publish("$SYS/STREAM/S1/a/b") == [ONE]


def test_a_row_whose_key_another_program_wrote_is_loaded(station: ApartStation) -> None:
    station.subscribe(ONE, "a/+")
    ((key, value),) = station.engine.states(StateKind.BROKER_SUBSCRIPTION)
    unit = station.engine.begin()
    unit.delete_state(StateKind.BROKER_SUBSCRIPTION, key)
    unit.set_state(StateKind.BROKER_SUBSCRIPTION, key.replace(ONE.hex().encode(), ONE.hex().upper().encode()), value)
    station.engine.submit(unit)
    station.set_apart(ONE)
    assert station.loaded() == ["a/+"]
    assert station.publish("a/b") == [ONE]


def test_many_read_ones_are_forgotten(station: ApartStation) -> None:
    station.subscribe(ONE, "a/+")
    station.set_apart(ONE)
    index = station.broker._registry.space(DEFAULT_STREAM).index("")
    index.match("b")
    forgets, index._kept_values = index.forgets, 4_000_000 - 100
    assert [len(index.match(topic)) for topic in ("a/1", "a/2")] == [1, 1]
    assert index.forgets == forgets + 1


def test_what_is_in_use_is_one_object(station: ApartStation) -> None:
    station.subscribe(ONE, "a/+")
    station.set_apart(ONE)
    apart = SubscriptionsSetAside(station.engine, TopicSpaces())
    ((_, found),) = [(each.number, each) for each in station.broker._registry.everyone()]
    assert isinstance(found, Subscription)
    assert may_be_set_aside(found)
    apart.add(found)
    first = apart.find(found.identity, found.interest)
    assert first is not None
    assert apart.matching("", "a/b") == [first] == apart.of(found.identity) == list(apart.everyone())

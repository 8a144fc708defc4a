"""The bridge on a real engine and broker, with links and an event loop that are lists; bytes are written by hand."""

import shutil
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tests.headers
from gateway.access.access_list import AccessList
from gateway.access.dollar_topics import ALL_RESERVED, DollarTopics
from gateway.access.login import Login
from gateway.access.rights import Access
from gateway.audit_trail.notes.notes import BrokerNotes
from gateway.bridge.assembly import build_bridge
from gateway.bridge.commands.mq_refusals import BrokerClosedTopics, ClosedTopics
from gateway.bridge.messages.usr_folder import UserPropertyStyle
from gateway.bridge.publish.publish import SubscriptionsTo
from gateway.bridge.sessions.filter_shapes import BrokerShapes
from gateway.bridge.sessions.retained_copies import RetainedCopies
from gateway.bridge.sessions.session_limits import BrokerRetained, RetainedStore
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.bridge.sessions.sessions_set_aside import sessions_set_aside
from gateway.bridge.subscribe.subscribe import CommandsUnderWay
from gateway.channels.target import Target
from gateway.config import RouteSettings, TargetSettings
from gateway.config.mqtt_limits import MqttLimits
from gateway.config.routes import Routes
from gateway.limits.admission import Admission
from gateway.limits.refusals import Refusals
from gateway.mqtt.connection import Connection
from gateway.mqtt.properties import DisconnectProperties
from gateway.mqtt.reason_codes import ReasonCode
from mappings.commands.command import Dialect
from mq_adapters.broker.broker import Broker, BrokerRules
from mq_adapters.embedded.balance import Balance, read_balance, running_publications, running_queues
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.gateway_queues import GatewayQueues
from mq_adapters.embedded.unit_of_work import Note, StateKind
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from tests.reason_strings import split_packets, without_reason_string

if TYPE_CHECKING:
    from tests.gateway.bridge.remote import Remote

DEFAULT_STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"
SUBSCRIBER_QUEUE, REPLY_QUEUE = "RFHBRIDGE.SUBSCRIBER", "RFHBRIDGE.REPLY"
NOW_US = 1_800_000_000_000_000
LIMITS = MqttLimits(maximum_in_flight=10, maximum_subscriptions=3)


def written(text: str) -> bytes:
    """Hexadecimal digits, with ASCII text between single quotes."""
    parts = text.split("'")
    return b"".join(part.encode() if place % 2 else bytes.fromhex(part) for place, part in enumerate(parts))


def remaining_length(length: int) -> bytes:
    """A length as seven bits a byte, the lowest first (MQTT 3.1.1 section 2.2.3)."""
    data = b""
    while length > 127:
        data, length = data + bytes((length & 127 | 128,)), length >> 7
    return data + bytes((length,))


def publish_packet(first_byte: int, topic: bytes, payload: bytes, packet_identifier: int = 1) -> bytes:
    """A PUBLISH that is too long to be written by hand."""
    identifier = packet_identifier.to_bytes(2, "big") if first_byte & 6 else b""
    body = len(topic).to_bytes(2, "big") + topic + identifier + payload
    return bytes((first_byte,)) + remaining_length(len(body)) + body


def mqrfh2(*topics: str) -> bytes:
    """The header of a publication as an application writes it: an MQRFH2, little-endian, UTF-8."""
    folder = "<psc><Command>Publish</Command>" + "".join(f"<Topic>{topic}</Topic>" for topic in topics) + "</psc>"
    return tests.headers.mqrfh2(folder, format=tests.headers.NO_FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntranceRules:
    """What a listener says of whoever connects to it."""

    name: str = "plain"
    allows_anonymous: bool | None = None


class FakeLink:
    """A connection without a network; `sent` is what the client would have received, without Reason Strings."""

    def __init__(self) -> None:
        self.connection = Connection(levels=(3, 4, 5), outgoing_alias_maximum=0)
        self.session: ClientSession | None = None
        self.outstanding = 0
        self.is_open = True
        self._is_reading = True
        self._is_paused = False
        self.waiting_bytes = 0
        self.can_send = True
        #: Whether its packets wait for its next turn; `World.go_on` gives it.
        self.awaits_turn = False
        self.sent = b""
        #: The Reason Strings of these packets, which do not stand in `sent`.
        self.told: list[str] = []
        self.reason: str | None = None
        self.peer = "192.0.2.7:50000"
        self.address = "192.0.2.7"
        self.certificate_subject = self.certificate_user = ""
        self.rules = EntranceRules()

    def send(self, data: bytes) -> None:
        if self.is_open:
            packets, rest = split_packets(data)
            for packet in packets:
                plain, told = without_reason_string(packet)
                self.sent += plain
                self.told += [told] if told else []
            self.sent += rest

    def close(
        self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR, told: str | None = None
    ) -> None:
        if self.is_open:
            self.send(self.connection.closing_packet(reason_code, DisconnectProperties(reason_string=told)))
            self.is_open, self.reason = False, reason

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True

    def pause_publisher(self, waiting_bytes: int = 0) -> None:
        self._is_paused, self.waiting_bytes = True, waiting_bytes

    def resume_publisher(self) -> None:
        self._is_paused, self.waiting_bytes = False, 0

    def wait_for_turn(self) -> None:
        self.awaits_turn = True

    def is_read(self) -> bool:
        return self._is_reading and not self._is_paused

    def taken(self) -> bytes:
        """What was sent since the last call."""
        sent, self.sent = self.sent, b""
        return sent


class World:
    """One gateway without its process. `commits_are_held`: a group commit waits until `commit` lets it through."""

    def __init__(
        self,
        data: Path,
        *,
        dialect: Dialect = Dialect.MQRFH2,
        has_broker: bool = True,
        publish: tuple[str, ...] = ("#",),
        subscribe: tuple[str, ...] = ("#",),
        access_list: AccessList | None = None,
        dollar_topics: DollarTopics = ALL_RESERVED,
        login: Login | None = None,
        targets: tuple[TargetSettings, ...] = (),
        routes: tuple[RouteSettings, ...] = (),
        limits: MqttLimits = LIMITS,
        user_properties: UserPropertyStyle = "one_json",
        jms_folders: bool = False,
        maps_as_json: bool = False,
        sys_topics_interval_s: int = 0,
    ) -> None:
        self._data = data
        self.now_us = NOW_US
        self.notes: list[Note] = []
        self.commits_are_held = False
        self._calls: deque[Callable[[], None]] = deque()
        self._held: deque[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = deque()
        self.engine = Engine.open(data, call_soon=self._calls.append, offload=self._offload, now_us=lambda: self.now_us)
        self.engine.seal_notes = self._seal
        subscriber_queue = self.engine.ensure(SUBSCRIBER_QUEUE, "")
        reply_queue = self.engine.ensure(REPLY_QUEUE, "")
        retained: RetainedStore = ()
        closed: ClosedTopics = ()
        shapes: BrokerShapes | None = None
        subscriptions_to: SubscriptionsTo | None = None
        commands: CommandsUnderWay | None = None
        notes = self.engine.dead_letters.listener = BrokerNotes(lambda: self.now_us)
        set_aside = sessions_set_aside(self.engine, limits.maximum_session_memory_bytes)
        if has_broker:
            self.broker = broker = Broker(
                self.engine,
                listener=notes,
                rules=BrokerRules(mqtt_queue=SUBSCRIBER_QUEUE),
                call_soon=self._calls.append,
                set_aside=set_aside,
            )
            broker.attach()
            self.retained_topics = lambda pattern: list(broker.retained_topics(DEFAULT_STREAM, pattern))
            commands = broker
            retained = BrokerRetained(broker, DEFAULT_STREAM, dialect)
            shapes = BrokerShapes(broker, dialect)
            closed = BrokerClosedTopics(broker, DEFAULT_STREAM, dialect)
            subscriptions_to = broker.audience(DEFAULT_STREAM, dialect).of
        self.access = access = Access(
            publish=publish, subscribe=subscribe, access_list=access_list, dollar_topics=dollar_topics
        )
        self.sessions = Sessions(self.engine, limits, access=access)
        self.refusals = Refusals()
        self.admission = Admission(limits, self.refusals, self.sessions.budgets)
        copies = None
        if has_broker:
            copies = RetainedCopies(
                self.sessions,
                subscriber_queue,
                self.refusals,
                retained_bytes=lambda: broker.retained_bytes,
                now_s=lambda: (self.now_us - NOW_US) / 1_000_000,
            )
            broker.limit_retained_copies(copies)
        self.targets = {each.name: Target(self.engine, each) for each in targets}
        transmission_queues = (queue.name for each in self.targets.values() for queue in each.transmission_queues)
        own = (SUBSCRIBER_QUEUE, REPLY_QUEUE, DEFAULT_STREAM, *transmission_queues)
        self.engine.settle(GatewayQueues(owned=frozenset(own)))
        self.bridge = build_bridge(
            self.engine,
            self.sessions,
            login or Login(),
            dialect=dialect,
            stream=DEFAULT_STREAM,
            subscriber_queue=subscriber_queue,
            reply_queue=reply_queue,
            routes=Routes(routes, targets, own_dialect=dialect),
            targets=self.targets.values(),
            answer_timeout_s=10.0,
            limits=limits,
            admission=self.admission,
            retained=retained,
            retained_copies=copies,
            shapes=shapes,
            closed=closed,
            subscriptions_to=subscriptions_to,
            published=(DEFAULT_STREAM,),
            user_properties=user_properties,
            jms_folders=jms_folders,
            maps_as_json=maps_as_json,
            commands_under_way=commands,
            sys_topics_interval_s=sys_topics_interval_s,
            call_soon=self._calls.append,
            now_s=lambda: (self.now_us - NOW_US) / 1_000_000,
        )
        self.bridge.load()
        self.run()

    def turn(self) -> None:
        """One turn of the event loop."""
        for _ in range(len(self._calls)):
            self._calls.popleft()()
        while self._held and not self.commits_are_held:
            self.commit()

    def run(self) -> None:
        """Turns of the event loop until nothing is left to do but held commits."""
        while self._calls or (self._held and not self.commits_are_held):
            if self._calls:
                self._calls.popleft()()
            else:
                self.commit()

    def commit(self) -> None:
        """Lets one held group commit through."""
        call, done = self._held.popleft()
        call()
        done(None)

    @property
    def waiting_commits(self) -> int:
        return len(self._held)

    def receive(self, link: FakeLink, *packets: str) -> None:
        """Packets arrive in one read."""
        self.bridge.receive(link, b"".join(written(packet) for packet in packets))
        self.run()

    def connect(self, name: str, *, flags: str = "02", level: int = 4) -> FakeLink:
        """A link whose CONNECT has been accepted; the client identifier has four characters."""
        link = FakeLink()
        protocol = "10 0004 'MQTT' 04" if level == 4 else "12 0006 'MQIsdp' 03"
        self.receive(link, f"10 {protocol} {flags} 0000 0004 '{name}'")
        assert link.taken()[:2] == b"\x20\x02"
        return link

    def lose(self, link: FakeLink) -> None:
        """The connection is gone."""
        link.is_open = False
        self.bridge.lost(link)
        self.run()

    def messages(self, queue_name: str) -> list[Message]:
        return list(self.engine.browse(self.engine.queue(queue_name)))

    def depth(self, queue_name: str) -> int:
        """Messages of a queue, those included that are on their way to a client."""
        return self.engine.queue(queue_name).depth

    def put(self, body: bytes, *, format: bytes = b"MQHRF2  ", **fields: object) -> None:
        """An application publishes on the default stream."""
        described = {"format": format, "persistence": MQPER_PERSISTENT, **fields}
        unit = self.engine.begin()
        message = Message(MessageDescriptor(**described), body)  # type: ignore[arg-type]  # passed on as they came
        self.engine.put(unit, self.engine.queue(DEFAULT_STREAM), message)
        self.engine.submit(unit)
        self.run()

    def registrations(self) -> int:
        """Subscriptions that the broker has stored."""
        return len(self.engine.states(StateKind.BROKER_SUBSCRIPTION))

    def kill(self, folder: Path) -> Path:
        """What kill -9 at this moment would leave on the disk, in a folder of its own."""
        folder.mkdir()
        for path in self._data.glob("queue_manager.[sm]*"):
            shutil.copy(path, folder)
        check_balance(read_balance(folder))
        return folder

    def close(self) -> None:
        """Whatever a test did: no message and no publication is missing, in memory and in the store."""
        self.commits_are_held = False
        self.run()
        if self.engine.failed is None:
            self.check_balance()
        self.engine.close()
        if self.engine.failed is None:
            check_balance(read_balance(self._data))

    def check_balance(self) -> None:
        """At this moment, with whatever waits for a commit."""
        missing = {name: queue.difference for name, queue in running_queues(self.engine).items() if queue.difference}
        assert not missing
        publications = running_publications(self.engine, self.sessions.held)
        assert not publications.difference, publications

    def _offload(self, call: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self._held.append((call, done))

    def _seal(self, _batch: int, notes: list[Note]) -> bytes:
        self.notes += notes
        return b"notes"


def check_balance(balance: Balance | None) -> None:
    assert balance is None or balance.adds_up, balance


NewWorld = Callable[..., World]


@pytest.fixture
def new_world(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewWorld]:
    """Makes worlds on the test's data folder or another, one after the other; every commit may be held back."""
    monkeypatch.setattr("mq_adapters.embedded.group_commit.SLOW_COMMIT_S", -1.0)
    made: list[World] = []

    def make(data: Path = data_folder, **options: object) -> World:
        while made:
            made.pop().close()
        made[:] = [World(data, **options)]  # type: ignore[arg-type]  # passed on as they came
        return made[0]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(new_world: NewWorld) -> World:
    return new_world()


@pytest.fixture
def remotes(tmp_path: Path) -> Iterator[Callable[..., "Remote"]]:
    """Makes queue managers of targets, each in a folder of its own."""
    from tests.gateway.bridge.remote import Remote  # which needs the names of this module

    made: list[Remote] = []

    def make(**options: object) -> Remote:
        made.append(Remote(tmp_path / f"remote-{len(made)}", **options))  # type: ignore[arg-type]  # as they came
        return made[-1]

    yield make
    for remote in made:
        remote.close()

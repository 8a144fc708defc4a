"""What one packet costs in the gateway's own process: Python calls, modules, and CPU time.

The bridge, the engine and the broker are those of the gateway, with the audit's notes packed as the gateway packs them.
Links and the event loop are lists, so a packet is carried out from `Bridge.receive` to its answer without a socket. The
commit belongs to it. Calls, modules and changes of module are counted for one packet that arrives alone; CPU time is
that of a packet among PACKETS of one read, because a commit for each would hide the rest. A SUBSCRIBE is measured
alone in both, for a read of many is carried out a few filters at a time. A packet without its answer ends the run.
"""

import gc
import itertools
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from benchmarks.figures import Measure, Report, Row
from benchmarks.load.wire import BenchmarkError
from gateway.access.login import Login
from gateway.access.rights import Access
from gateway.audit_trail.notes.notes import BrokerNotes, pack_batch
from gateway.bridge.assembly import build_bridge
from gateway.bridge.bridge import Bridge
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.config.mqtt_limits import MqttLimits
from gateway.config.routes import Routes
from gateway.limits.admission import Admission
from gateway.limits.refusals import Refusals
from gateway.mqtt.connection import Connection
from gateway.mqtt.properties import PublishProperties
from gateway.mqtt.property_codec import PUBLISH
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.wire import encode_text
from mappings.table import Dialect
from mq_adapters.broker.broker import Broker
from mq_adapters.embedded.engine import Engine
from mq_adapters.system_queues import DEFAULT_STREAM

NAME: Final = "ways"
#: PUBLISHes of one read, and SUBSCRIBEs that are measured together.
PACKETS: Final = 100
#: Packets before anything is counted: what is read once has been read then.
_FIRST: Final = 20
RETAINED_TOPICS: Final = 2
_PAYLOAD: Final = bytes(64)
_PROJECT: Final = ("gateway.", "mappings.", "mq_adapters.", "spark_audit.")
#: As in gateway/daemon.py, which says why.
_GC_THRESHOLD: Final = (50_000, 20, 10)


class EntranceRules:
    """What the listener of the links says of them."""

    name = "benchmark"
    allows_anonymous = True


class Link:
    """A connection without a network: what is sent on it is counted."""

    def __init__(self) -> None:
        self.connection = Connection(levels=(3, 4, 5), outgoing_alias_maximum=0)
        self.session: ClientSession | None = None
        self.outstanding = 0
        self.is_open = True
        self.can_send = True
        self.waiting_bytes = 0
        self.address = "192.0.2.7"
        self.peer = f"{self.address}:50000"
        self.certificate_user = ""
        self.certificate_subject = ""
        self.rules = EntranceRules()
        self.awaits_turn = False
        self.sent: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.sent.append(data)

    def close(
        self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR, told: str | None = None
    ) -> None:
        assert not reason, f"the gateway closed the connection: {reason}"
        self.is_open = False

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return

    def pause_publisher(self, waiting_bytes: int = 0) -> None:
        return

    def resume_publisher(self) -> None:
        return

    def wait_for_turn(self) -> None:
        self.awaits_turn = True


class World:
    """A gateway without its process, its sockets and its event loop."""

    def __init__(self, folder: Path, dialect: Dialect) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self.engine = engine = Engine.open(folder, call_soon=self._calls.append)
        engine.seal_notes = pack_batch
        subscriber_queue = engine.ensure("RFHBRIDGE.SUBSCRIBER", "")
        reply_queue = engine.ensure("RFHBRIDGE.REPLY", "")
        notes = engine.dead_letters.listener = BrokerNotes(engine.now_us)
        broker = Broker(engine, listener=notes, call_soon=self._calls.append)
        broker.attach()
        limits = MqttLimits(maximum_subscriptions=100_000, message_rate=0, new_topic_rate=0, trail_byte_rate=0)
        access = Access(publish=("#",), subscribe=("#",))
        sessions = Sessions(engine, limits, access=access)
        self.bridge: Bridge = build_bridge(
            engine,
            sessions,
            Login(),
            dialect=dialect,
            stream=DEFAULT_STREAM,
            subscriber_queue=subscriber_queue,
            reply_queue=reply_queue,
            routes=Routes((), (), own_dialect=dialect),
            answer_timeout_s=10.0,
            limits=limits,
            admission=Admission(limits, Refusals(), sessions.budgets),
            subscriptions_to=broker.audience(DEFAULT_STREAM, dialect).of,
            commands_under_way=broker,
            call_soon=self._calls.append,
        )
        self.bridge.load()
        self.run()

    def run(self) -> None:
        """Turns of the event loop until nothing is left to do."""
        while self._calls:
            self._calls.popleft()()

    def connect(self, name: str, *, level: int, keeps_session: bool = False) -> Link:
        """A link whose CONNECT has been answered."""
        link = Link()
        flags = 0x00 if keeps_session else 0x02
        body = encode_text("MQTT") + bytes((level, flags)) + b"\0\0" + (b"\0" if level == 5 else b"")
        self.carry_out(link, _packet(0x10, body + encode_text(name)))
        assert link.sent
        return link

    def carry_out(self, link: Link, data: bytes) -> None:
        """Bytes arrive in one read, and everything that follows is done, in as many turns as the gateway takes."""
        self.bridge.receive(link, data)  # type: ignore[arg-type]  # a Link is an MqttLink without a network
        self.run()
        while link.awaits_turn:
            link.awaits_turn = False
            self.bridge.go_on(link)  # type: ignore[arg-type]  # see above
            self.run()


class Way:
    """One kind of packet: makes the next one, and says on which link it arrives. A PUBACK has four bytes."""

    def __init__(
        self, case: str, link: Link, packets: Iterator[bytes], read: int = PACKETS, answer_bytes: int = 4
    ) -> None:
        self.case = case
        self.link = link
        self.packets = packets
        #: Packets of one read where CPU time is measured.
        self.read = read
        #: At least so much is sent for each packet.
        self.answer_bytes = answer_bytes


def run(seconds: float) -> Report:
    """Measures each way for its share of the time, with the gateway's own header of each format."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_GC_THRESHOLD)
    rows = tuple(row for dialect in (Dialect.MQRFH2, Dialect.MQRFH) for row in measure(dialect, seconds / 10))
    gc.set_threshold(*thresholds)
    return Report(
        name=NAME,
        title="one packet through bridge, broker and store, without a socket: calls alone, CPU among others",
        rows=rows,
        notes=(
            f"PUBLISHes have {len(_PAYLOAD)} B, QoS 1, and go to one offline subscriber; CPU is of one in a read of "
            f"{PACKETS}, commit and audit notes included. SUBSCRIBEs come one a read. Calls of compiled code are not "
            "seen: RFHBRIDGE_COMPILED=0 counts all of them.",
        ),
    )


def measure(dialect: Dialect, seconds: float) -> Iterator[Row]:
    """Every way, in a store of its own."""
    with opened_world(dialect) as world:
        for way in ways(world):
            counted = count(world, way)
            yield Row(
                subject=f"gateway, {dialect.value}",
                case=way.case,
                measures=(*counted, Measure(name="CPU", value=cpu_us(world, way, seconds), unit="us")),
            )


@contextmanager
def opened_world(dialect: Dialect) -> Iterator[World]:
    """A gateway on a store that is there for as long as the gateway."""
    with tempfile.TemporaryDirectory(prefix="rfhbench") as folder:
        world = World(Path(folder), dialect)
        with closing(world.engine):
            yield world


def ways(world: World) -> Iterator[Way]:
    """The five ways, in their order: retained messages are there for the last one alone."""
    absent = world.connect("absent", level=4, keeps_session=True)
    world.carry_out(absent, _subscribe(1, "plant/#"))
    world.carry_out(absent, b"\xe0\x00")
    publisher, level_5 = world.connect("pub4", level=4), world.connect("pub5", level=5)
    yield Way("PUBLISH, same topic", publisher, (_publish("plant/hall/boiler", n) for n in itertools.count()))
    yield Way(
        "PUBLISH, first of its topic", publisher, (_publish(f"plant/hall/boiler-{n}", n) for n in itertools.count())
    )
    yield Way(
        "PUBLISH 5, a user property that varies",
        level_5,
        (_publish("plant/hall/boiler", n, _properties(n)) for n in itertools.count()),
    )
    subscribers = (world.connect(f"sub{n}", level=4) for n in itertools.count())
    yield SubscribeWay("SUBSCRIBE, one filter", subscribers, "hall/boiler/#", retained=0)
    for number in range(RETAINED_TOPICS):
        world.carry_out(publisher, _publish(f"kept/{number}", number, flags=1))
    more = (world.connect(f"more{n}", level=4) for n in itertools.count())
    case = f"SUBSCRIBE that gets {RETAINED_TOPICS} retained messages"
    yield SubscribeWay(case, more, "kept/#", retained=RETAINED_TOPICS)


class SubscribeWay(Way):
    """A SUBSCRIBE of another client each time: the row of a session has all its filters. A SUBACK has five bytes."""

    def __init__(self, case: str, links: Iterator[Link], topic_filter: str, *, retained: int) -> None:
        self._links = links
        packets = itertools.repeat(_subscribe(1, topic_filter))
        super().__init__(case, next(links), packets, read=1, answer_bytes=5 + retained * len(_PAYLOAD))

    def next_client(self) -> None:
        self.link = next(self._links)


def count(world: World, way: Way) -> tuple[Measure, ...]:
    """Calls, modules and changes of module of one packet that arrives alone."""
    for _ in range(_FIRST):
        _next_client(way)
        world.carry_out(way.link, next(way.packets))
    _next_client(way)
    counter = CallCounter()
    packet = next(way.packets)
    sys.setprofile(counter)
    try:
        world.carry_out(way.link, packet)
    finally:
        sys.setprofile(None)
    return (
        Measure(name="Python calls", value=counter.calls, unit="calls"),
        Measure(name="modules", value=len(counter.modules), unit="modules"),
        Measure(name="changes of module", value=counter.changes, unit="changes"),
    )


class CallCounter:
    """Counts calls of the project's own functions, and of Python code that they call."""

    def __init__(self) -> None:
        self.calls = 0
        self.changes = 0
        self.modules: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        module = frame.f_globals.get("__name__", "")
        if module == __name__:
            return
        self.calls += 1
        if module.startswith(_PROJECT):
            self.modules.add(module)
        caller = frame.f_back
        if caller is not None and caller.f_globals.get("__name__", "") != module:
            self.changes += 1


def cpu_us(world: World, way: Way, seconds: float) -> float:
    """CPU time of one packet, microseconds; making packets and connecting clients is not in it."""
    spent_ns, packets = 0, 0
    while spent_ns < seconds * 1e9:
        _next_client(way)
        data = b"".join(itertools.islice(way.packets, way.read))
        started = time.process_time_ns()
        world.carry_out(way.link, data)
        spent_ns += time.process_time_ns() - started
        packets += way.read
        if (sent := sum(map(len, way.link.sent))) < way.read * way.answer_bytes:
            raise BenchmarkError(f"{way.case}: {sent} bytes answer {way.read} packets, so not all were carried out")
        way.link.sent.clear()
    return spent_ns / packets / 1_000


def _next_client(way: Way) -> None:
    if isinstance(way, SubscribeWay):
        way.next_client()


def _publish(topic: str, number: int, properties: bytes = b"", flags: int = 0) -> bytes:
    identifier = (number % PACKETS + 1).to_bytes(2, "big")
    return _packet(0x32 | flags, encode_text(topic) + identifier + properties + _PAYLOAD)


def _properties(number: int) -> bytes:
    return PUBLISH.encode(PublishProperties(user_properties=(("trace", f"{number:032x}"),)))


def _subscribe(packet_identifier: int, topic_filter: str) -> bytes:
    return _packet(0x82, packet_identifier.to_bytes(2, "big") + encode_text(topic_filter) + b"\x01")


def _packet(first_byte: int, body: bytes) -> bytes:
    length, digits = len(body), b""
    while length > 127:
        length, digits = length >> 7, digits + bytes((length & 127 | 128,))
    return bytes((first_byte,)) + digits + bytes((length,)) + body

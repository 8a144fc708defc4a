"""SUBSCRIBE and UNSUBSCRIBE: waiting for the broker, counting patterns, and answers that come too late."""

from pathlib import Path

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.log_rate import LINES_OF_ONE
from mappings.commands.command import Dialect
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQMT_REPLY, Message, MessageDescriptor
from tests.gateway.bridge.conftest import NewWorld, World, written

CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"
REPLY_OK = written(
    "'RFH ' 02000000 54000000 22020000 B8040000 '        ' 00000000 B8040000 2C000000"
    "'<pscr><Completion>ok</Completion></pscr>    '"
)

REPLY_TOPIC_ERROR = written(
    "'RFH ' 02000000 80000000 22020000 B8040000 '        ' 00000000 B8040000 58000000"
    "'<pscr><Completion>error</Completion><Response><Reason>3072</Reason></Response></pscr>   '"
)


def _topics(world: World, command: str) -> list[str]:
    """The last topic of each command of that name on the control queue."""
    bodies = [message.body.decode("latin-1") for message in world.messages(CONTROL_QUEUE)]
    return [body.rsplit("MQPSTopic ", 1)[1].rstrip() for body in bodies if f"MQPSCommand {command} " in body]


def _answer(world: World, msg_id: bytes, body: bytes = REPLY_OK) -> None:
    """Puts what a broker answers to the command with that MsgId."""
    unit = world.engine.begin()
    descriptor = MessageDescriptor(msg_type=MQMT_REPLY, format=b"MQHRF2  ", correl_id=msg_id)
    world.engine.put(unit, world.engine.queue("RFHBRIDGE.REPLY"), Message(descriptor, body))
    world.engine.submit(unit)
    world.run()


def test_suback_waits_for_every_answer_and_keeps_their_order(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, "82 0E 0007 0003 'a/+' 01 0003 'b/+' 02")
    first, second = (message.msg_id for message in world.messages(CONTROL_QUEUE))
    _answer(world, second)
    assert link.sent == b""
    _answer(world, first)
    assert link.taken() == written("90 04 0007 01 02")
    assert world.depth("RFHBRIDGE.REPLY") == 0


def test_a_broker_that_does_not_answer_in_time_fails_the_subscription_and_a_late_answer_is_undone(
    new_world: NewWorld,
) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, "82 08 0001 0003 'a/+' 01")
    (register,) = world.messages(CONTROL_QUEUE)
    world.now_us += 9_000_000
    world.bridge.tick()
    world.run()
    assert link.sent == b""
    world.now_us += 2_000_000
    world.bridge.tick()
    world.run()
    assert link.taken() == written("90 03 0001 80")
    _answer(world, register.msg_id)
    deregister = world.messages(CONTROL_QUEUE)[-1]
    assert b"<Command>DeregSub</Command>" in deregister.body
    assert b"<Topic>a/+</Topic>" in deregister.body


def test_what_waits_for_its_commit_alone_does_not_time_out_and_is_answered_once(world: World) -> None:
    """Found by tests/fuzz/bridge.py: no broker is asked about a filter that the session does not have."""
    link = world.connect("self")
    world.commits_are_held = True
    world.receive(link, "32 08 0003 'a/b' 0001 'x'", "A2 05 000A 0001 'a'")
    world.now_us += 11_000_000
    world.bridge.tick()
    world.run()
    assert link.taken() == b""
    world.commits_are_held = False
    world.run()
    assert link.taken() == written("40 02 0001 B0 02 000A")


def test_an_answer_that_is_none_fails_the_subscription(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, "82 08 0001 0003 'a/+' 01")
    _answer(world, world.messages(CONTROL_QUEUE)[0].msg_id, b"no header at all")
    assert link.taken() == written("90 03 0001 80")


def test_deliveries_wait_until_the_suback_has_left(world: World) -> None:
    publisher, link = world.connect("tell"), world.connect("self")
    world.receive(publisher, "33 08 0003 'a/b' 0001 'A'")
    world.receive(link, "82 08 0001 0003 'a/b' 01")
    assert link.taken() == written("90 03 0001 01 33 08 0003 'a/b' 0001 'A'")


def test_patterns_are_counted_and_the_last_one_deregisters(new_world: NewWorld) -> None:
    """In MQRFH `a/+` and `a/+/#` are both registered as `a/*`."""
    world = new_world(dialect=Dialect.MQRFH, has_broker=False)
    link = world.connect("self")
    world.receive(link, "82 10 0001 0003 'a/+' 01 0005 'a/+/#' 01")
    for message in world.messages(CONTROL_QUEUE):
        _answer(world, message.msg_id)
    assert link.taken() == written("90 04 0001 01 01")
    world.receive(link, "A2 07 0002 0003 'a/+'")
    assert link.taken() == written("B0 02 0002")
    assert _topics(world, "DeregSub") == []
    world.receive(link, "A2 09 0003 0005 'a/+/#'")
    assert _topics(world, "DeregSub") == ["a/*"]
    assert link.sent == b""
    _answer(world, world.messages(CONTROL_QUEUE)[-1].msg_id)
    assert link.taken() == written("B0 02 0003")


def test_patterns_are_counted_again_after_a_restart(new_world: NewWorld) -> None:
    world = new_world(dialect=Dialect.MQRFH)
    link = world.connect("self", flags="00")
    world.receive(link, "82 10 0001 0003 'a/+' 01 0005 'a/+/#' 01")
    assert link.taken() == written("90 04 0001 01 01")
    world = new_world(dialect=Dialect.MQRFH)
    link, publisher = world.connect("self", flags="00"), world.connect("tell")
    world.receive(link, "A2 07 0002 0003 'a/+'")
    world.receive(publisher, "30 06 0003 'a/1' 'A'")
    assert link.taken() == written("B0 02 0002 30 06 0003 'a/1' 'A'")
    world.receive(link, "A2 09 0003 0005 'a/+/#'")
    world.receive(publisher, "30 06 0003 'a/1' 'B'")
    assert link.taken() == written("B0 02 0003")
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 0


def test_what_the_wider_pattern_brought_in_vain_is_dropped_and_noted(new_world: NewWorld) -> None:
    """`a/+` is `a/*` in MQRFH, which also brings a/b/c: the client's own filter decides."""
    world = new_world(dialect=Dialect.MQRFH)
    link, publisher = world.connect("self"), world.connect("tell")
    world.receive(link, "82 08 0001 0003 'a/+' 01")
    link.taken()
    world.receive(publisher, "32 0A 0005 'a/b/c' 0001 'A'", "32 08 0003 'a/b' 0002 'B'")
    assert link.taken() == written("32 08 0003 'a/b' 0001 'B'")
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 1
    world.receive(link, "40 02 0001")
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 0
    world.engine.tick()
    world.run()
    dropped = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert [note[-1] for note in dropped] == ["no subscription of the session matches the topic"]


def test_a_session_that_ended_while_the_broker_thought_leaves_nothing(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, "82 08 0001 0003 'a/+' 01")
    register = world.messages(CONTROL_QUEUE)[0]
    world.receive(link, "E0 00")
    _answer(world, register.msg_id)
    assert link.sent == b""
    assert world.sessions.get("self") is None
    again = world.connect("self", flags="00")
    assert again.is_open


def test_a_publication_that_the_broker_refuses_goes_whole_to_the_dead_letter_queue(new_world: NewWorld) -> None:
    """It was acknowledged, so it must be somewhere: behind an MQDLH with the reason of the negative notification."""
    world = new_world(has_broker=False)
    stream, replies = world.engine.queue("SYSTEM.BROKER.DEFAULT.STREAM"), world.engine.queue("RFHBRIDGE.REPLY")

    def refuse(unit: UnitOfWork, _queue: Queue, message: Message) -> None:
        descriptor = MessageDescriptor(msg_type=MQMT_REPLY, format=b"MQHRF2  ", correl_id=message.msg_id)
        unit.answered[message.msg_id] = message
        world.engine.put(unit, replies, Message(descriptor, REPLY_TOPIC_ERROR, message.origin))

    world.engine.serve(stream, refuse)
    link = world.connect("self")
    world.receive(link, "32 0F 0003 'a/b' 0001 'precious'")
    assert link.taken() == written("40 02 0001")
    (dead,) = world.messages("SYSTEM.DEAD.LETTER.QUEUE")
    assert dead.body[:12] == written("'DLH ' 01000000 000C0000")
    assert dead.body[172:].startswith(b"RFH \x02")
    assert dead.body.endswith(b"precious")
    assert world.depth("RFHBRIDGE.REPLY") == 0
    (note,) = [note for note in world.notes if note[0] == NoteKind.DEAD_LETTERED]
    assert (note[2], note[-1]) == ("self", 3072)


def test_filters_past_the_limit_of_a_session_are_refused_in_the_suback(new_world: NewWorld) -> None:
    world = new_world()
    link = world.connect("self")
    world.receive(link, "82 16 0001 0001 'a' 00 0001 'b' 01 0001 'c' 02 0001 'd' 01 0001 'e' 01")
    assert link.taken() == written("90 07 0001 00 01 02 80 80")
    world.receive(link, "A2 05 0002 0001 'a'")
    assert link.taken() == written("B0 02 0002")
    world.receive(link, "82 06 0003 0001 'd' 01")
    assert link.taken() == written("90 03 0003 01")


def test_a_subscribe_that_is_repeated_at_the_limit_is_granted_again(world: World) -> None:
    """Clients send their SUBSCRIBE after each CONNECT; what they have counts once."""
    link = world.connect("self", flags="00")
    subscribe = "82 0E {0} 0001 'a' 01 0001 'b' 01 0001 'c' 01"
    world.receive(link, subscribe.format("0001"))
    world.lose(link)
    link = world.connect("self", flags="00")
    world.receive(link, subscribe.format("0002"), subscribe.format("0003"))
    assert link.taken() == written("90 05 0002 01 01 01 90 05 0003 01 01 01")
    world.receive(link, "82 06 0004 0001 'd' 01")
    assert link.taken() == written("90 03 0004 80")


def test_filters_that_are_under_way_count_against_the_limit(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, "82 0A 0001 0001 'a' 01 0001 'b' 01", "82 0A 0002 0001 'c' 01 0001 'd' 01")
    registered = world.messages(CONTROL_QUEUE)
    assert len(registered) == 3
    for message in registered:
        _answer(world, message.msg_id)
    assert link.taken() == written("90 04 0001 01 01 90 04 0002 01 80")


def test_a_filter_that_is_subscribed_and_unsubscribed_in_one_read_is_not_subscribed(new_world: NewWorld) -> None:
    world = new_world()
    link, publisher = world.connect("self", flags="00"), world.connect("tell")
    world.receive(link, "82 06 0001 0001 'a' 01", "A2 05 0002 0001 'a'")
    assert link.taken() == written("90 03 0001 01 B0 02 0002")
    world.receive(publisher, "32 06 0001 'a' 0001 'x'")
    assert (link.sent, world.depth("RFHBRIDGE.SUBSCRIBER"), world.registrations()) == (b"", 0, 0)
    world = new_world()
    session = world.sessions.get("self")
    assert session is not None
    assert session.subscriptions == {}


def test_what_is_subscribed_again_behind_an_unsubscribe_is_subscribed(world: World) -> None:
    link, publisher = world.connect("self"), world.connect("tell")
    world.receive(link, "82 06 0001 0001 'a' 01", "A2 05 0002 0001 'a'", "82 06 0003 0001 'a' 01")
    assert link.taken() == written("90 03 0001 01 B0 02 0002 90 03 0003 01")
    world.receive(publisher, "32 06 0001 'a' 0001 'x'")
    assert link.taken() == written("32 06 0001 'a' 0001 'x'")
    assert world.registrations() == 1


def test_a_filter_that_stands_in_a_subscribe_several_times_is_registered_once(new_world: NewWorld) -> None:
    """Each registration would send everything that is retained again; the last QoS counts (MQTT-3.8.4-3)."""
    world = new_world(has_broker=False)
    link = world.connect("self")
    world.receive(link, "82 0E 0001 0001 'a' 00 0001 'a' 02 0001 'a' 01")
    (registered,) = world.messages(CONTROL_QUEUE)
    _answer(world, registered.msg_id)
    assert link.taken() == written("90 05 0001 00 02 01")
    session = world.sessions.get("self")
    assert session is not None
    assert session.subscriptions == {"a": 1}


def test_a_filter_with_more_levels_than_anybody_needs_is_refused(world: World) -> None:
    """A level costs memory in the broker's index for as long as the subscription lives."""
    link = world.connect("self")
    deepest, too_deep = "/" * 199, "/" * 200
    world.receive(link, f"82 CC01 0001 00C7 '{deepest}' 01")
    world.receive(link, f"82 CD01 0002 00C8 '{too_deep}' 01")
    assert link.taken() == written("90 03 0001 01 90 03 0002 80")
    assert world.registrations() == 1


@pytest.mark.parametrize("refused_by", ["access", "limit"])
def test_a_packet_of_many_refused_filters_leaves_few_lines_in_the_log(
    new_world: NewWorld, caplog: pytest.LogCaptureFixture, refused_by: str
) -> None:
    subscribe = ("ours/#",) if refused_by == "access" else ("#",)
    world = new_world(subscribe=subscribe, limits=MqttLimits(maximum_subscriptions=1))
    link = world.connect("self")
    filters = b"".join(b"\x00\x04f%03d\x00" % number for number in range(200))
    body = b"\x00\x01" + filters
    world.bridge.receive(link, bytes((0x82, len(body) & 0x7F | 0x80, len(body) >> 7)) + body)
    world.run()
    granted = 0 if refused_by == "access" else 1
    assert link.taken()[-200:].count(b"\x80") == 200 - granted
    lines = [record.message for record in caplog.records if "subscription" in record.message]
    assert len(lines) == LINES_OF_ONE
    assert lines[0].startswith("subscription ")
    assert " client=self " in lines[0]


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[UnitOfWork]:
    """Every unit of work that is submitted, in order."""
    units: list[UnitOfWork] = []
    submit = Engine.submit

    def noted(engine: Engine, unit: UnitOfWork, *arguments: object) -> None:
        units.append(unit)
        submit(engine, unit, *arguments)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(Engine, "submit", noted)
    return units


@pytest.mark.parametrize(
    ("packet", "answer"),
    [
        ("82 08 0001 0003 'a/+' 01", "90 03 0001 01"),
        ("82 0E 0001 0003 'a/+' 01 0003 'b/+' 02", "90 04 0001 01 02"),
        ("A2 07 0001 0003 'c/+'", "B0 02 0001"),
    ],
    ids=["SUBSCRIBE", "SUBSCRIBE of two filters", "UNSUBSCRIBE"],
)
def test_what_the_broker_here_answers_at_once_is_one_unit_of_work_and_one_commit(
    new_world: NewWorld, tmp_path: Path, submitted: list[UnitOfWork], packet: str, answer: str
) -> None:
    """Before the commit nothing is acknowledged and nothing is there; after it everything is."""
    world = new_world()
    link = world.connect("self", flags="00")
    world.receive(link, "82 08 0001 0003 'c/+' 00")
    link.taken()
    world.commits_are_held = True
    submitted.clear()
    world.receive(link, packet)
    assert len(submitted) == world.waiting_commits == 1
    assert link.sent == b""
    before, after = world.kill(tmp_path / "before the commit"), tmp_path / "after the commit"
    world.commit()
    assert link.taken() == written(answer)
    assert world.waiting_commits == 0
    assert len(submitted) == 1
    world.kill(after)
    filters = {}
    for data in (before, after):
        world = new_world(data)
        (session,) = world.sessions
        assert world.registrations() == len(session.subscriptions)
        filters[data] = set(session.subscriptions)
    assert filters[before] == {"c/+"}
    assert filters[after] == {"82 08": {"a/+", "c/+"}, "82 0E": {"a/+", "b/+", "c/+"}, "A2 07": set()}[packet[:5]]


def test_a_filter_that_the_broker_here_refuses_is_decided_in_the_same_unit_of_work(
    new_world: NewWorld, submitted: list[UnitOfWork]
) -> None:
    world = new_world()
    world.engine.objects.define(
        Definition(object_type=ObjectType.TOPIC, name="CLOSED", said={"TOPICSTR": "shut", "SUB": "DISABLED"})
    )
    link = world.connect("self")
    submitted.clear()
    world.receive(link, "82 10 0001 0003 'a/+' 01 0005 'shut/' 01")
    assert link.taken() == written("90 04 0001 01 80")
    assert len(submitted) == 1
    assert world.registrations() == 1
    (session,) = world.sessions
    assert list(session.subscriptions) == ["a/+"]


def test_a_subscribe_whose_session_row_could_not_be_written_has_no_suback(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = world.connect("self", flags="00")
    save = world.sessions.save
    broken = [True]

    def failing(*arguments: object) -> None:
        if broken.pop():
            raise OverflowError("no such row")
        save(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(world.sessions, "save", failing)
    with pytest.raises(OverflowError):
        world.receive(link, "82 08 0007 0003 'a/+' 01")
    world.run()
    assert link.taken() == b""
    broken.append(False)
    world.receive(link, "82 08 0008 0003 'b/+' 01")
    world.run()
    assert link.taken() == written("90 03 0008 01")

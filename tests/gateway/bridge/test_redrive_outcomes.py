"""Redrive knows what becomes of a message before its dead letter is gone: what is refused, or for nobody, stays."""

from pathlib import Path

import pytest

from gateway.audit_trail.notes.application_work import ApplicationWork
from gateway.audit_trail.notes.notes import NoteKind
from gateway.channels.channel_audit import ChannelAudit
from gateway.operations.redrive import Redrive, RedriveResult, RedriveSelection
from mappings.commands.command import Dialect
from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.gateway_queues import GatewayQueues
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reports import MQRO_DISCARD_MSG
from tests.gateway.bridge.conftest import SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, mqrfh2, publish_packet, written
from tests.mq_adapters.channel.faults import Connection

DEAD, HELD, STREAM = "SYSTEM.DEAD.LETTER.QUEUE", "SYSTEM.RFHBRIDGE.HELD", "SYSTEM.BROKER.DEFAULT.STREAM"
OWNED = GatewayQueues(owned=frozenset({SUBSCRIBER_QUEUE, STREAM}))


@pytest.fixture
def world(new_world: NewWorld) -> World:
    made = new_world()
    made.engine.settle(OWNED)
    audit = ChannelAudit(made.engine, (), subscriber_queue=made.engine.queue(SUBSCRIBER_QUEUE))
    made.engine.on_application_unit += (audit.note, ApplicationWork(made.engine).note)
    made.run()
    return made


def mqsc(world: World, *commands: str) -> None:
    hand = Connection(world.engine, "a test")
    for command in commands:
        assert hand.mqsc(command).succeeded, command
    hand.close()
    world.run()


def bury(world: World, body: bytes, *, queue: str = STREAM, **fields: object) -> None:
    """A dead letter whose queue and reason an earlier failure chose."""
    message = Message(MessageDescriptor(persistence=MQPER_PERSISTENT, **fields), body)  # type: ignore[arg-type]  # by name
    letter = dead_letter(
        message, queue_name=queue, reason_code=2053, queue_manager_name=world.engine.name, now_us=world.now_us
    )
    unit = world.engine.begin()
    world.engine.put(unit, world.engine.queue(DEAD), letter)
    world.engine.submit(unit)
    world.run()


def redriven(world: World) -> RedriveResult:
    hand = Connection(world.engine, "redrive")
    work = Redrive(hand, DEAD, ways={}, now_us=lambda: world.now_us)
    outcome = work.run(RedriveSelection(), dry=False, advance=world.run)
    hand.close()
    world.run()
    return outcome


def reasons(outcome: RedriveResult) -> str:
    return " ".join(reason for _, reason in outcome.reasons)


def subscriber(world: World, name: str = "self", topic: str = "a") -> FakeLink:
    link = world.connect(name, flags="00")
    world.receive(link, f"82 06 0001 0001 '{topic}' 01")
    assert link.taken() == written("90 03 0001 01")
    return link


@pytest.mark.parametrize("put_appl_name", ["rfhbridge", "another"])
def test_letters_without_a_header_stay_and_say_so_also_on_a_full_queue(world: World, put_appl_name: str) -> None:
    """An earlier version kept the payload alone; put back while the dead-letter queue was full, all were gone."""
    for number in range(5):
        bury(world, b"payload %d" % number, put_appl_name=put_appl_name)
    mqsc(world, f"ALTER QLOCAL({DEAD}) MAXDEPTH(5)")
    outcome = redriven(world)
    assert (outcome.put_back, outcome.refused) == (0, 5)
    assert "2110" in reasons(outcome)
    assert ("a payload alone" in reasons(outcome)) is (put_appl_name == "rfhbridge")
    assert [letter.body[172:] for letter in world.messages(DEAD)] == [b"payload %d" % number for number in range(5)]
    assert world.messages(HELD) == []


def test_what_the_broker_refuses_again_stays_and_goes_back_when_it_may(world: World) -> None:
    link = subscriber(world)
    for payload in (b"1", b"2", b"3"):
        bury(world, mqrfh2("a") + payload, format=b"MQHRF2  ")
    mqsc(world, "DEFINE TOPIC(T) TOPICSTR('a') PUB(DISABLED)")
    outcome = redriven(world)
    assert (outcome.put_back, outcome.refused) == (0, 3)
    assert "3081" in reasons(outcome)
    assert len(world.messages(DEAD)) == 3
    mqsc(world, "ALTER TOPIC(T) PUB(ENABLED)")
    assert (redriven(world).put_back, world.messages(DEAD)) == (3, [])
    sent = link.taken()
    assert sent == written("32 06 0001 'a' 0001 '1' 32 06 0001 'a' 0002 '2' 32 06 0001 'a' 0003 '3'")
    kinds = [note[0] for note in world.notes]
    assert (kinds.count(NoteKind.REDRIVEN), kinds.count(NoteKind.REFUSED)) == (3, 0)


@pytest.mark.parametrize("report", [0, MQRO_DISCARD_MSG])
def test_a_bad_command_that_nobody_wants_answered_stays(world: World, report: int) -> None:
    """The broker ends such a command in silence, and discards what asks for that."""
    for body in (mqrfh2(), b"no header"):
        bury(world, body, format=b"MQHRF2  ", report=report)
    outcome = redriven(world)
    assert (outcome.put_back, outcome.refused) == (0, 2)
    assert len(world.messages(DEAD)) == 2


def test_a_good_command_among_bad_ones_goes_back(world: World) -> None:
    link = subscriber(world)
    for body in (b"no header", mqrfh2("a") + b"good", b"none either"):
        bury(world, body, format=b"MQHRF2  ")
    outcome = redriven(world)
    assert (outcome.put_back, outcome.refused) == (1, 2)
    assert link.taken().endswith(b"good")


def test_what_an_ended_session_should_have_had_stays(world: World) -> None:
    link = subscriber(world)
    session = world.sessions.get("self")
    assert session is not None
    bury(world, mqrfh2("a") + b"1", queue=SUBSCRIBER_QUEUE, format=b"MQHRF2  ", correl_id=session.correl_id)
    bury(world, mqrfh2("b") + b"2", queue=SUBSCRIBER_QUEUE, format=b"MQHRF2  ", correl_id=session.correl_id)
    bury(world, mqrfh2("a") + b"3", queue=SUBSCRIBER_QUEUE, format=b"MQHRF2  ", correl_id=b"\x07" * 24)
    outcome = redriven(world)
    assert (outcome.put_back, outcome.refused) == (1, 2)
    assert "2428" in reasons(outcome)
    assert link.taken() == written("32 06 0001 'a' 0001 '1'")
    assert [letter.body[-1:] for letter in world.messages(DEAD)] == [b"2", b"3"]


def test_a_stream_that_is_not_served_takes_nothing_back(world: World) -> None:
    bury(world, mqrfh2("a") + b"1", format=b"MQHRF2  ")
    mqsc(world, f"ALTER QLOCAL({STREAM}) GET(DISABLED)")
    outcome = redriven(world)
    assert (outcome.put_back, outcome.refused) == (0, 1)
    assert "2016" in reasons(outcome)


def test_a_packet_that_mq_cannot_say_stays(new_world: NewWorld) -> None:
    world = new_world(dialect=Dialect.MQRFH)
    link = world.connect("self", flags="00", level=3)
    world.receive(link, "34 10 0004 'a/' 0162 0001 'precious'")
    world = new_world(dialect=Dialect.MQRFH2)
    world.receive(world.connect("self", flags="00", level=3), "62 02 0001")
    outcome = redriven(world)
    assert (outcome.put_back, outcome.refused) == (0, 1)
    assert "PUBLISH packet, which an MQTT client can send again; reason 3072" in reasons(outcome)


def test_a_copy_that_its_queue_did_not_take_goes_back_to_its_subscriber(world: World) -> None:
    mqsc(world, "DEFINE QLOCAL(APP) MAXDEPTH(0)", "DEFINE SUB(S) TOPICSTR('a') DEST(APP)")
    world.bridge.receive(world.connect("publ"), publish_packet(0x32, b"a", b"21.5"))
    world.run()
    mqsc(world, "ALTER QLOCAL(APP) MAXDEPTH(9)")
    assert redriven(world).put_back == 1
    (copy,) = world.messages("APP")
    world.bridge.receive(world.connect("othe"), publish_packet(0x32, b"a", b"21.5"))
    world.run()
    direct = world.messages("APP")[1]
    assert (copy.body, copy.descriptor.correl_id) == (direct.body, direct.descriptor.correl_id)


def test_without_a_gateway_what_is_for_the_gateway_stays(tmp_path: Path) -> None:
    """At the next start what no session waits for would be destroyed, and what the broker refuses in silence too."""
    with Direct(tmp_path) as queue_manager:
        queue_manager.define(SUBSCRIBER_QUEUE)
        assert queue_manager._engine is not None
        queue_manager._engine.settle(OWNED)
        for queue in (SUBSCRIBER_QUEUE, STREAM):
            message = Message(MessageDescriptor(format=b"MQHRF2  "), mqrfh2("a"))
            queue_manager.put(
                DEAD,
                dead_letter(message, queue_name=queue, reason_code=2053, queue_manager_name="", now_us=0),
            )
        work = Redrive(queue_manager, DEAD, ways={}, now_us=lambda: 0)
        outcome = work.run(RedriveSelection(), dry=False, advance=lambda: None)
        assert (outcome.put_back, outcome.refused) == (0, 2)
        assert "needs a running gateway" in reasons(outcome)
        assert queue_manager.depth(DEAD) == 2

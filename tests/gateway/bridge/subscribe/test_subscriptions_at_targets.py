"""SUBSCRIBE and UNSUBSCRIBE at targets: answers of several brokers, outages, restarts, another queue manager."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.sessions.session_store import stored_registrations
from gateway.config import RouteSettings, TargetSettings
from mappings.commands.command import Dialect
from mq_adapters.embedded.unit_of_work import Departure, StateKind
from mq_adapters.message import MQMT_REPLY, Message, MessageDescriptor
from tests.gateway.bridge.conftest import REPLY_QUEUE, SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, written
from tests.gateway.bridge.remote import Remote, headers, transmissions
from tests.gateway.bridge.subscribe.test_subscribe import REPLY_OK, REPLY_TOPIC_ERROR

KEY = "QM1 SYSTEM.BROKER.DEFAULT.STREAM"
SUBSCRIBE, SUBSCRIBE_ALL = "82 08 0001 0003 'a/+' 01", "82 06 0001 0001 '#' 01"


def configured(header: str = "mqrfh2", *topics: str, **settings: object) -> dict[str, object]:
    """Options of a World whose topics go to QM1."""
    target = TargetSettings.model_validate({"name": "QM1", "header": header, **settings})
    route = RouteSettings.model_validate({"target": "QM1", "topics": topics or ("a/#",)})
    return {"targets": (target,), "routes": (route,)}


def answer(world: World, msg_id: bytes, body: bytes = REPLY_OK) -> None:
    """Puts what a target's broker answers on the reply queue, as its channel does."""
    unit = world.engine.begin()
    descriptor = MessageDescriptor(msg_type=MQMT_REPLY, format=b"MQHRF2  ", correl_id=msg_id, persistence=1)
    world.engine.put(unit, world.engine.queue(REPLY_QUEUE), Message(descriptor, body))
    world.engine.submit(unit)
    world.run()


def commands(world: World) -> list[str]:
    """Command and topics of what waits for the target."""
    found = []
    for header in headers(world):
        command = header.split("<Command>")[1].split("<")[0]
        topics = [part.split("<")[0] for part in header.split("<Topic>")[1:]]
        found.append(" ".join((command, *topics)))
    return found


def msg_ids(world: World) -> list[bytes]:
    return [each.message.msg_id for each in transmissions(world)]


def emitted(world: World, client: str = "self") -> dict[str, dict[str, int]]:
    session = world.sessions.get(client)
    assert session is not None
    return session.emitted


def pass_time(world: World, seconds: int = 11) -> None:
    world.now_us += seconds * 1_000_000
    world.bridge.tick()
    world.run()


# -- answers -----------------------------------------------------------------------------------------------------------


def test_suback_waits_for_every_broker_that_a_filter_concerns(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = world.connect("self")
    world.receive(link, SUBSCRIBE_ALL)
    assert link.sent == b"", "the embedded broker has answered, the target has not"
    assert commands(world) == ["RegSub a/#"]
    assert world.registrations() == 1
    answer(world, msg_ids(world)[0])
    assert link.taken() == written("90 03 0001 01")
    assert emitted(world) == {KEY: {"a/#": 1}, "": {"#": 1}}


def test_a_filter_of_the_target_alone_is_not_registered_at_the_embedded_broker(new_world: NewWorld) -> None:
    world = new_world(**configured())
    world.receive(world.connect("self"), SUBSCRIBE)
    assert commands(world) == ["RegSub a/+"]
    assert world.registrations() == 0


def test_a_filter_that_one_broker_refuses_is_taken_back_at_the_other(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = world.connect("self")
    world.receive(link, SUBSCRIBE_ALL)
    answer(world, msg_ids(world)[0], REPLY_TOPIC_ERROR)
    assert link.taken() == written("90 03 0001 80")
    assert world.registrations() == 0
    assert commands(world) == ["RegSub a/#"], "where it was refused there is nothing to take back"
    assert emitted(world) == {KEY: {}, "": {}}


@pytest.mark.parametrize(
    ("configured_name", "said"), [("", ""), ("*GROUP", ""), ("CENTRAL", "<QMgrName>CENTRAL</QMgrName>")]
)
def test_a_registration_names_the_queue_manager_only_where_the_configuration_does(
    new_world: NewWorld, configured_name: str, said: str
) -> None:
    """In an outage it waits, and another queue manager than the last that answered may take it."""
    world = new_world(**configured(queue_manager=configured_name))
    world.targets["QM1"].heard_from("CENTRAL", "CENTRAL_1", {})
    world.run()
    world.receive(world.connect("self"), SUBSCRIBE, "A2 07 0002 0003 'a/+'")
    for header in headers(world):
        assert f"<QName>RFHBRIDGE.SUBSCRIBER</QName>{said}<Topic>" in header


def test_retained_copies_of_both_brokers_come_behind_the_suback(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured()), remotes()
    remote.connect(world)
    teller = world.connect("tell")
    world.receive(teller, "33 08 0003 'a/b' 0001 'A'", "33 08 0003 'b/b' 0002 'B'")
    remote.carry(world)
    link = world.connect("self")
    world.receive(link, SUBSCRIBE_ALL)
    assert link.sent == b""
    remote.carry(world)
    sent = link.taken()
    assert sent.startswith(written("90 03 0001 01"))
    assert sorted((sent[5:][:10], sent[15:])) == [
        written("33 08 0003 'a/b' 0002 'A'"),
        written("33 08 0003 'b/b' 0001 'B'"),
    ]


def test_publications_come_and_stop_with_the_subscription(new_world: NewWorld, remotes: Callable[..., Remote]) -> None:
    world, remote = new_world(**configured()), remotes()
    remote.connect(world)
    link, teller = world.connect("self"), world.connect("tell")
    world.receive(link, SUBSCRIBE)
    remote.carry(world)
    assert link.taken() == written("90 03 0001 01")
    world.receive(
        teller, "32 08 0003 'a/b' 0001 'A'", "34 08 0003 'a/c' 0002 'B'", "62 02 0002", "30 06 0003 'a/d' 'C'"
    )
    remote.carry(world)
    assert link.taken() == written("32 08 0003 'a/b' 0001 'A' 32 08 0003 'a/c' 0002 'B' 30 06 0003 'a/d' 'C'")
    world.receive(link, "A2 07 0002 0003 'a/+'")
    assert link.taken() == written("B0 02 0002"), "nothing depends on the target's answer"
    remote.carry(world)
    world.receive(teller, "32 08 0003 'a/b' 0003 'D'")
    remote.carry(world)
    assert link.taken() == b""
    assert remote.engine.states(StateKind.BROKER_SUBSCRIPTION) == []
    assert world.messages("SYSTEM.DEAD.LETTER.QUEUE") == []


@pytest.mark.parametrize("header", ["mqrfh", "mqrfh2"])
def test_both_dialects_bring_each_publication_once(
    new_world: NewWorld, remotes: Callable[..., Remote], header: str
) -> None:
    world, remote = new_world(**configured(header)), remotes()
    remote.connect(world)
    link, teller = world.connect("self"), world.connect("tell")
    world.receive(link, "82 0E 0001 0003 'a/+' 01 0003 'a/#' 02")
    remote.carry(world)
    assert link.taken() == written("90 04 0001 01 02")
    world.receive(teller, "34 0A 0005 'a/b/c' 0001 'A'", "62 02 0001", "34 08 0003 'a/b' 0002 'B'", "62 02 0002")
    remote.carry(world)
    assert link.taken() == written("34 0A 0005 'a/b/c' 0001 'A' 34 08 0003 'a/b' 0002 'B'")


# -- retained publications of a SUBSCRIBE that repeats one -------------------------------------------------------------


def test_a_repeated_subscribe_registers_again(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = world.connect("self")
    for _ in range(2):
        world.receive(link, SUBSCRIBE)
        answer(world, msg_ids(world)[-1])
        assert link.taken() == written("90 03 0001 01")
    assert commands(world) == ["RegSub a/+", "RegSub a/+"]


def test_where_a_broker_sends_retained_publications_once_they_are_asked_for(new_world: NewWorld) -> None:
    world = new_world(**configured(retained_again="request_update"))
    link = world.connect("self")
    world.receive(link, SUBSCRIBE)
    answer(world, msg_ids(world)[0])
    assert link.taken() == written("90 03 0001 01")
    assert commands(world) == ["RegSub a/+"], "the first one brings them"
    world.receive(link, SUBSCRIBE)
    assert commands(world) == ["RegSub a/+", "RegSub a/+", "ReqUpdate a/+"]
    asked = transmissions(world)[2]
    assert headers(world)[2].startswith(
        "<psc><Command>ReqUpdate</Command><RegOpt>CorrelAsId</RegOpt><QName>RFHBRIDGE.SUBSCRIBER</QName><Topic>a/+</Topic>"
    )
    assert asked.queue_name == "SYSTEM.BROKER.CONTROL.QUEUE"
    assert asked.message.descriptor.correl_id == transmissions(world)[0].message.descriptor.correl_id
    assert (asked.message.descriptor.msg_type, asked.message.descriptor.report) == (8, 2), "only a refusal is answered"
    answer(world, msg_ids(world)[1])
    assert link.taken() == written("90 03 0001 01"), "nothing waits for an answer to it"


def test_a_pattern_that_another_filter_has_registered_is_asked_for_too(new_world: NewWorld) -> None:
    """In MQRFH `a/+` and `a/+/#` are both registered as `a/*`, and a request takes one topic."""
    world = new_world(**configured("mqrfh", retained_again="request_update"))
    world.receive(world.connect("self"), "82 10 0001 0003 'a/+' 01 0005 'a/+/#' 01")
    assert [header.split()[1] for header in headers(world)] == ["RegSub", "RegSub", "ReqUpdate"]
    assert headers(world)[2].rstrip().endswith("MQPSTopic a/*")


def test_a_broker_without_retained_publications_may_say_so(new_world: NewWorld, remotes: Callable[..., Remote]) -> None:
    world, remote = new_world(**configured(retained_again="request_update")), remotes()
    remote.connect(world)
    link = world.connect("self")
    for _ in range(2):
        world.receive(link, SUBSCRIBE)
        remote.carry(world)
        assert link.taken() == written("90 03 0001 01")
    pass_time(world, 61)
    assert world.messages("SYSTEM.DEAD.LETTER.QUEUE") == [], "3077 is no refusal"


# -- patterns ----------------------------------------------------------------------------------------------------------


def test_patterns_are_counted_for_each_destination(new_world: NewWorld) -> None:
    """In MQRFH `a/+` and `a/+/#` are both registered as `a/*`."""
    world = new_world(dialect=Dialect.MQRFH, **configured("mqrfh"))
    link = world.connect("self")
    world.receive(link, "82 10 0001 0003 'a/+' 01 0005 'a/+/#' 01")
    for msg_id in msg_ids(world):
        answer(world, msg_id)
    assert link.taken() == written("90 04 0001 01 01")
    assert emitted(world) == {KEY: {"a/*": 2}}
    world.receive(link, "A2 07 0002 0003 'a/+'")
    assert len(transmissions(world)) == 2
    world.receive(link, "A2 09 0003 0005 'a/+/#'")
    assert len(transmissions(world)) == 3
    assert "MQPSCommand DeregSub" in headers(world)[2]
    assert emitted(world) == {KEY: {}}


def test_an_unsubscribe_before_the_answer_undoes_the_subscription(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = world.connect("self")
    world.receive(link, SUBSCRIBE, "A2 07 0002 0003 'a/+'")
    assert commands(world) == ["RegSub a/+", "DeregSub a/+"]
    answer(world, msg_ids(world)[0])
    assert link.taken() == written("B0 02 0002 90 03 0001 01")
    session = world.sessions.get("self")
    assert session is not None
    assert (session.subscriptions, emitted(world)) == ({}, {KEY: {}})


# -- an outage ---------------------------------------------------------------------------------------------------------


def test_a_target_that_does_not_answer_in_time_fails_the_subscription_and_it_is_taken_back_at_once(
    new_world: NewWorld,
) -> None:
    """DeregSub stands behind RegSub on the transmission queue, so no answer and no crash can leave it registered."""
    world = new_world(**configured())
    link = world.connect("self")
    world.receive(link, SUBSCRIBE)
    pass_time(world)
    assert link.taken() == written("90 03 0001 80")
    assert commands(world) == ["RegSub a/+", "DeregSub a/+"]
    world.receive(link, SUBSCRIBE)
    registered, _, again = msg_ids(world)
    answer(world, registered)
    assert link.taken() == b"", "the late answer is not the new one's"
    answer(world, again)
    assert link.taken() == written("90 03 0001 01")


def test_by_configuration_a_subscription_is_granted_in_an_outage_and_registered_later(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured(subscribe_in_outage="grant")), remotes()
    link = world.connect("self")
    world.receive(link, SUBSCRIBE)
    assert link.taken() == written("90 03 0001 01")
    remote.connect(world)
    remote.carry(world)
    world.receive(world.connect("tell"), "32 08 0003 'a/b' 0001 'A'")
    remote.carry(world)
    assert link.taken() == written("32 08 0003 'a/b' 0001 'A'")


def test_a_clock_that_is_set_back_lets_no_subscribe_wait_longer(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = world.connect("self")
    pass_time(world, 1)
    world.receive(link, SUBSCRIBE)
    pass_time(world, 5)
    pass_time(world, -3_600)
    assert link.taken() == b"", "five of its ten seconds have passed"
    pass_time(world, 6)
    assert link.taken() == written("90 03 0001 80")


def test_a_clock_that_is_set_back_leaves_nothing_of_an_ended_session(new_world: NewWorld) -> None:
    world = new_world(**configured())
    pass_time(world, -3_600)
    unit = world.engine.begin()
    message = Message(MessageDescriptor(correl_id=b"RFHS" + bytes(20)), b"too late")
    world.engine.put(unit, world.engine.queue(SUBSCRIBER_QUEUE), message)
    world.engine.submit(unit)
    world.run()
    pass_time(world, 61)
    assert world.depth(SUBSCRIBER_QUEUE) == 0


@pytest.mark.parametrize("in_outage", ["refuse", "grant"])
def test_a_subscription_at_a_full_target_is_refused_at_once(new_world: NewWorld, in_outage: str) -> None:
    """Clients that ask again and again in an outage must not fill what publishers are held back from."""
    world = new_world(**configured(subscribe_in_outage=in_outage, hold_bytes=100))
    link = world.connect("self")
    world.receive(link, "32 08 0003 'a/b' 0001 'A'")
    assert link.taken() == written("40 02 0001")
    assert world.targets["QM1"].is_full
    world.receive(link, SUBSCRIBE_ALL)
    assert link.taken() == written("90 03 0001 80")
    assert commands(world) == ["Publish a/b"]
    assert world.registrations() == 0
    world.receive(link, "82 08 0002 0003 'b/+' 01")
    assert link.taken() == written("90 03 0002 01"), "the embedded broker has room"


def test_a_connected_target_that_stays_silent_is_granted_when_the_time_is_up(new_world: NewWorld) -> None:
    world = new_world(**configured(subscribe_in_outage="grant"))
    world.targets["QM1"].is_connected = True
    link = world.connect("self")
    world.receive(link, SUBSCRIBE)
    assert link.sent == b""
    pass_time(world)
    assert link.taken() == written("90 03 0001 01")
    assert commands(world) == ["RegSub a/+"]


def test_a_refusal_of_what_was_granted_is_told_in_the_audit(new_world: NewWorld) -> None:
    world = new_world(**configured(subscribe_in_outage="grant"))
    world.receive(world.connect("self"), SUBSCRIBE)
    answer(world, msg_ids(world)[0], REPLY_TOPIC_ERROR)
    world.engine.tick()
    world.run()
    (refused,) = [note for note in world.notes if note[0] == NoteKind.REFUSED]
    assert refused[2] == "self"
    assert refused[5:] == ("RegSub", 0, 3072, "a/+, which was granted before the answer was there")
    assert world.messages("SYSTEM.DEAD.LETTER.QUEUE") == []


# -- the end of a session ----------------------------------------------------------------------------------------------


def test_the_end_of_a_session_deregisters_it_wherever_it_may_be_registered(new_world: NewWorld) -> None:
    world = new_world(**configured())
    link = world.connect("self")
    world.receive(link, SUBSCRIBE_ALL)
    world.receive(link, "E0 00")
    assert commands(world) == ["RegSub a/#", "DeregSub"]
    deregister = transmissions(world)[1].message
    assert b"<RegOpt>DeregAll</RegOpt>" in deregister.body
    assert (deregister.descriptor.persistence, deregister.descriptor.expiry) == (1, -1)
    assert world.registrations() == 0
    answer(world, msg_ids(world)[0])
    assert world.sessions.get("self") is None


def test_a_session_that_never_subscribed_asks_nothing_of_a_target(new_world: NewWorld) -> None:
    world = new_world(**configured())
    world.receive(world.connect("self"), "E0 00")
    assert commands(world) == []


def test_what_is_still_under_way_for_an_ended_session_is_discarded(
    new_world: NewWorld, remotes: Callable[..., Remote]
) -> None:
    world, remote = new_world(**configured()), remotes()
    remote.connect(world)
    link, teller = world.connect("self"), world.connect("tell")
    world.receive(link, SUBSCRIBE)
    remote.carry(world)
    world.receive(teller, "32 08 0003 'a/b' 0001 'A'")
    world.receive(link, "E0 00")
    remote.carry(world)
    assert world.depth(SUBSCRIBER_QUEUE) == 1
    pass_time(world, 61)
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    dropped = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert [note[-1] for note in dropped] == ["the session ended"]
    fresh = world.connect("self")
    world.receive(fresh, SUBSCRIBE)
    remote.carry(world)
    assert fresh.taken() == written("90 03 0001 01")


# -- restarts and another queue manager --------------------------------------------------------------------------------


def persistent(world: World, *clients: str) -> list[FakeLink]:
    """Persistent sessions that have `a/+`, whose registrations have been carried away."""
    links = []
    for client in clients:
        link = world.connect(client, flags="00")
        world.receive(link, SUBSCRIBE)
        answer(world, msg_ids(world)[-1])
        assert link.taken() == written("90 03 0001 01")
        links.append(link)
    forget(world)
    return links


def forget(world: World) -> None:
    """The channel has taken what waited."""
    queue = world.engine.queue("RFHBRIDGE.XMIT.QM1.0")
    unit = world.engine.begin()
    while (message := world.engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
    world.engine.submit(unit)
    world.run()


def test_a_restart_registers_nothing_anew(new_world: NewWorld) -> None:
    persistent(new_world(**configured()), "self")
    world = new_world(**configured())
    assert commands(world) == []
    assert emitted(world) == {KEY: {"a/+": 1}}
    world.receive(world.connect("self", flags="00"), "A2 07 0002 0003 'a/+'")
    assert commands(world) == ["DeregSub a/+"]


def test_a_crash_between_registration_and_suback_takes_it_back_at_the_next_start(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world(**configured())
    link = world.connect("self", flags="00")
    world.receive(link, SUBSCRIBE)
    assert link.sent == b""
    world = new_world(world.kill(tmp_path / "after"), **configured())
    assert commands(world) == ["RegSub a/+", "DeregSub a/+"]
    world = new_world(world.kill(tmp_path / "later"), **configured())
    assert len(commands(world)) == 2, "once is enough"


def test_a_route_that_is_new_registers_what_sessions_have_and_nothing_retained(new_world: NewWorld) -> None:
    world = new_world(**configured("mqrfh2", "z/#"))
    link = world.connect("self", flags="00")
    world.receive(link, "82 06 0001 0001 '#' 01")
    answer(world, msg_ids(world)[0])
    forget(world)
    world = new_world(**configured("mqrfh2", "a/#"))
    assert commands(world) == ["RegSub a/#", "DeregSub z/#"]
    assert "<RegOpt>NewPubsOnly</RegOpt>" in headers(world)[0]
    assert emitted(world) == {KEY: {"a/#": 1}, "": {"#": 1}}
    forget(world)
    assert commands(new_world(**configured("mqrfh2", "a/#"))) == []


def test_a_target_that_is_gone_from_the_configuration_is_forgotten(new_world: NewWorld) -> None:
    persistent(new_world(**configured()), "self")
    world = new_world()
    session = world.sessions.get("self")
    assert session is not None
    assert session.generations == {}
    link = world.connect("self", flags="00")
    world.receive(world.connect("tell"), "32 08 0003 'a/b' 0001 'A'")
    assert link.taken() == b"", "the embedded broker never had the subscription"


def test_the_first_queue_manager_that_answers_needs_nothing_anew(new_world: NewWorld) -> None:
    world = new_world(**configured())
    persistent(world, "self")
    world.targets["QM1"].heard_from("QM1", "QM1_1", {})
    world.run()
    assert commands(world) == []


def test_another_queue_manager_gets_every_subscription_anew_and_nothing_else(new_world: NewWorld) -> None:
    world = new_world(**configured())
    world.targets["QM1"].heard_from("QM1", "QM1_1", {})
    persistent(world, "cli1", "cli2")
    world.receive(world.connect("tell"), "32 08 0003 'a/b' 0001 'A'")
    forget(world)
    world.targets["QM1"].heard_from("QM1", "QM1_2", {})
    world.run()
    assert commands(world) == ["RegSub a/+", "RegSub a/+"]
    assert all("<RegOpt>NewPubsOnly</RegOpt>" in header for header in headers(world))
    assert len({each.message.descriptor.correl_id for each in transmissions(world)}) == 2
    forget(world)
    world.targets["QM1"].heard_from("QM1", "QM1_2", {"Q": 5})
    world.run()
    assert commands(world) == []


def test_what_is_due_at_another_queue_manager_survives_a_crash_in_the_middle(
    new_world: NewWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.bridge.commands.registrations._SESSIONS_AT_ONCE", 1)
    world = new_world(**configured())
    world.targets["QM1"].heard_from("QM1", "QM1_1", {})
    persistent(world, "cli1", "cli2", "cli3")
    world.commits_are_held = True
    world.targets["QM1"].heard_from("QM1", "QM1_2", {})
    world.run()
    world.commit()
    world.run()
    world.commit()
    world.run()
    killed = world.kill(tmp_path / "after")
    world.commits_are_held = False
    world.run()
    assert len(commands(world)) == 3
    world = new_world(killed, **configured())
    registered = [each.message.descriptor.correl_id for each in transmissions(world)]
    assert sorted(registered) == sorted(session.correl_id for session in world.sessions), "each once, however it ended"


def test_a_sweep_learns_what_should_be_registered_from_the_store(new_world: NewWorld) -> None:
    world = new_world(**configured())
    persistent(world, "self")
    world.connect("othr", flags="00")
    rows = world.engine.states(StateKind.SESSION)
    known = {each.client: each for each in stored_registrations(rows, world.engine.incarnation)}
    session = world.sessions.get("self")
    assert session is not None
    assert known["self"].patterns == {KEY: ("a/+",)}
    assert known["self"].correl_id == session.correl_id
    assert known["othr"].patterns == {}

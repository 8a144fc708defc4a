"""A SUBSCRIBE that brings much that is retained: SUBACK comes first, the others go on, and nothing is lost."""

from pathlib import Path

import pytest

from gateway.config.mqtt_limits import MqttLimits
from mappings.commands.command import Dialect
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts
from tests.gateway.bridge.conftest import (
    REPLY_QUEUE,
    SUBSCRIBER_QUEUE,
    FakeLink,
    NewWorld,
    World,
    publish_packet,
    written,
)
from tests.gateway.bridge.connect.test_level_5_sessions import connect
from tests.reason_strings import split_packets

#: More than some pieces of copies (mq_adapters.broker.updates).
MANY = 70
ALL = [f"t/{number:02}" for number in range(MANY)]
SUBSCRIBE_ALL = "82 06 0001 0001 '#' 00"
SUBSCRIBE_ALL_AT_QOS_1 = SUBSCRIBE_ALL[:-2] + "01"
SUBACK = written("90 03 0001 00")


def retain(world: World, payload: str = "R") -> None:
    link = world.connect("puts")
    world.receive(link, *(f"31 07 0004 '{topic}' '{payload}'" for topic in ALL))
    world.receive(link, "E0 00")


def retain_at_qos_1(world: World) -> None:
    link = world.connect("puts")
    world.receive(link, *(f"33 09 0004 '{topic}' 0001 'R'" for topic in ALL))
    world.receive(link, "E0 00")


def resume(world: World, *packets: str) -> FakeLink:
    """The session is connected again; what it is sent has not been taken."""
    link = FakeLink()
    world.receive(link, "10 10 0004 'MQTT' 04 00 0000 0004 'subs'", *packets)
    return link


def acknowledge(world: World, link: FakeLink, packets: list[bytes]) -> list[str]:
    """Acknowledges each PUBLISH of QoS 1; returns their topics and payloads."""
    publications = [packet for packet in packets if packet[0] >> 4 == 3]
    world.bridge.receive(link, b"".join(b"\x40\x02" + packet[8:10] for packet in publications))
    return [packet[4:8].decode() for packet in publications]


def receive_all(world: World, link: FakeLink, *, with_payload: bool = False) -> list[str]:
    """The topics of all that comes until nothing more does, with the payload at their end on demand."""
    received = []
    world.run()
    while data := link.taken():
        packets, _ = split_packets(data)
        topics = acknowledge(world, link, packets)
        payloads = [packet[10:].decode() for packet in packets if packet[0] >> 4 == 3]
        received += (
            [topic + payload for topic, payload in zip(topics, payloads, strict=True)] if with_payload else topics
        )
        world.run()
    return received


def begin(world: World, link: FakeLink, *packets: str, turns: int = 4) -> None:
    """Packets arrive; the loop goes on for a few turns, which do not bring all that is retained."""
    world.bridge.receive(link, b"".join(written(packet) for packet in packets))
    for _ in range(turns):
        world.turn()


def begin_and_send_some(world: World, link: FakeLink) -> None:
    """SUBSCRIBE arrives, and some of what is retained has been sent."""
    world.bridge.receive(link, written(SUBSCRIBE_ALL))
    while not world.depth(SUBSCRIBER_QUEUE):
        world.turn()


def taken(link: FakeLink) -> tuple[list[str], list[str]]:
    """Topic and payload of each PUBLISH of QoS 0 in hexadecimal digits, and the other packets, since the last call."""
    data, publications, others, position = link.taken(), [], [], 0
    while position < len(data):
        end = position + 2 + data[position + 1]
        packet = data[position:end]
        if packet[0] >> 4 == 3:
            publications.append(packet[4:].decode())
        else:
            others.append(packet.hex())
        position = end
    return publications, others


def test_suback_comes_first_and_all_that_is_retained_once_behind_it(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    assert link.taken() == SUBACK
    assert 0 < world.depth(SUBSCRIBER_QUEUE) < MANY
    world.run()
    publications, others = taken(link)
    assert (sorted(publications), others) == ([topic + "R" for topic in ALL], [])


def test_meanwhile_others_are_answered(world: World) -> None:
    retain(world)
    link, other = world.connect("subs"), world.connect("othe")
    begin(world, link, SUBSCRIBE_ALL, turns=1)
    begin(world, other, "C0 00", "82 09 0002 0004 't/03' 00", "C0 00")
    assert taken(other) == (["t/03R"], ["d000", "d000", "9003000200"])
    assert taken(link) == ([], [SUBACK.hex()])


def test_a_second_subscribe_meanwhile_takes_nothing_from_the_first(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    begin(world, link, "82 09 0002 0004 't/03' 00")
    world.run()
    publications, others = taken(link)
    assert sorted(others) == [SUBACK.hex(), "9003000200"]
    assert sorted(publications) == sorted([*(topic + "R" for topic in ALL), "t/03R"])


def test_where_the_limit_does_not_promise_everything_suback_comes_behind_the_copies(new_world: NewWorld) -> None:
    """A session may have one copy of everything. What is asked beyond it must show how much it is."""
    world = new_world(limits=MqttLimits(maximum_retained_copy_bytes=50_000))
    retain(world)
    world.bridge.receive(world.connect("puts"), publish_packet(0x31, b"x/y", bytes(60_000)))
    link = world.connect("subs", flags="00")
    link.can_send = False
    world.receive(link, SUBSCRIBE_ALL)
    assert link.taken() == SUBACK
    begin(world, link, "82 08 0002 0003 't/#' 00")
    while world.depth(SUBSCRIBER_QUEUE) == MANY + 1:
        world.turn()
    assert link.taken() == b""
    world.now_us += 60_000_000
    world.bridge.tick()  # a broker that is at work is waited for
    world.run()
    assert (link.taken(), world.depth(SUBSCRIBER_QUEUE)) == (written("90 03 0002 00"), 2 * MANY + 1)
    world.receive(link, "82 08 0003 0003 't/#' 00")
    assert link.taken() == written("90 03 0003 80")


def test_what_is_published_meanwhile_comes_behind_what_was_retained(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    other = world.connect("othe")
    world.bridge.receive(other, b"".join(written(f"30 07 0004 '{topic}' 'L'") for topic in ALL))
    world.run()
    publications, _ = taken(link)
    assert len(publications) == 2 * MANY
    for topic in ALL:
        assert publications.index(topic + "R") < publications.index(topic + "L")


def test_unsubscribe_meanwhile_ends_it(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin(world, link, SUBSCRIBE_ALL, "A2 05 0002 0001 '#'")
    world.run()
    assert world.registrations() == 0
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert sorted(taken(link)[1]) == [SUBACK.hex(), "b0020002"]


def test_the_end_of_the_session_meanwhile_ends_it(world: World) -> None:
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    world.lose(link)
    assert world.registrations() == 0
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert world.depth(REPLY_QUEUE) == 0


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 8, 12, 16, 20, 30, 40])
def test_a_crash_behind_suback_loses_and_doubles_nothing(new_world: NewWorld, tmp_path: Path, turns: int) -> None:
    """What is acknowledged before the crash does not come again, and all the rest does."""
    world = new_world()
    retain_at_qos_1(world)
    link = world.connect("subs", flags="00")
    world.bridge.receive(link, written(SUBSCRIBE_ALL_AT_QOS_1))
    acknowledged: list[str] = []
    granted = False
    for _ in range(turns):
        world.turn()
        packets, _ = split_packets(link.taken())
        granted = granted or any(packet[0] == 0x90 for packet in packets)
        acknowledged += acknowledge(world, link, packets)
    world = new_world(world.kill(tmp_path / "killed"))
    assert world.registrations() == int(granted)
    assert world.depth(REPLY_QUEUE) == 0
    received = receive_all(world, resume(world))
    if granted:
        assert sorted({*acknowledged, *received}) == ALL
        assert len(received) == len(set(received))
        assert len(set(acknowledged) & set(received)) <= 65  # acknowledgements whose commit had no turn
    else:
        assert received == []
    assert world.engine.states(StateKind.BROKER_UPDATE) == []


def test_a_subscribe_after_a_crash_takes_nothing_from_the_one_before(
    new_world: NewWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The filters of the SUBSCRIBE before the crash are forgotten; its copies come behind the SUBACK of the next."""
    world = new_world()
    retain_at_qos_1(world)
    link = world.connect("subs", flags="00")
    begin(world, link, SUBSCRIBE_ALL_AT_QOS_1, turns=3)
    assert link.taken() == written("90 03 0001 01")
    killed = world.kill(tmp_path / "killed")
    with monkeypatch.context() as patched:
        patched.setattr(World, "run", lambda _world: None)
        world = new_world(killed)
        link = resume(world, "82 08 0002 0003 'x/y' 01")
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert sorted(receive_all(world, link)) == ALL


def test_what_was_retained_never_comes_behind_what_was_published_before_a_crash(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world()
    retain_at_qos_1(world)
    link, other = world.connect("subs", flags="00"), world.connect("othe")
    begin(world, link, SUBSCRIBE_ALL_AT_QOS_1, turns=3)
    world.bridge.receive(other, b"".join(written(f"32 09 0004 '{topic}' 0001 'L'") for topic in ALL[-3:]))
    for _ in range(4):
        world.turn()
    world = new_world(world.kill(tmp_path / "killed"))
    received = receive_all(world, resume(world), with_payload=True)
    assert len(received) == MANY + 3
    for topic in ALL[-3:]:
        assert [each[-1] for each in received if each.startswith(topic)] == ["R", "L"]


def test_a_crash_while_a_granted_filter_is_asked_for_again_loses_nothing(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world()
    link = world.connect("subs", flags="00")
    world.receive(link, SUBSCRIBE_ALL)
    world.lose(link)
    retain(world)
    link = world.connect("subs", flags="00")
    begin_and_send_some(world, link)
    link.taken()
    world = new_world(world.kill(tmp_path / "killed"))
    world.run()
    assert world.registrations() == 1
    link = world.connect("subs", flags="00")
    world.receive(link, SUBSCRIBE_ALL)
    assert set(taken(link)[0]) == {topic + "R" for topic in ALL}


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_audit_performs_it_again(new_world: NewWorld, dialect: Dialect) -> None:
    world = new_world(dialect=dialect)
    retain(world)
    link = world.connect("subs")
    begin_and_send_some(world, link)
    begin(world, world.connect("othe"), *(f"30 07 0004 '{topic}' 'L'" for topic in ALL))
    world.run()
    assert len(taken(link)[0]) == 2 * MANY
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_retained_messages_too_large_for_a_client_use_up_nothing_of_its_window(world: World) -> None:
    teller = world.connect("puts")
    world.receive(teller, *(f"33 26 0004 '{topic}' 0001 '{'R' * 30}'" for topic in ALL))
    world.receive(teller, "31 07 0004 't/03' 'S'")
    link = connect(world, "subs", properties="27 00000014 21 0002")
    link.taken()
    world.receive(link, "82 07 0001 00 0001 '#' 02")
    assert link.taken() == written("90 04 0001 00 02 31 08 0004 't/03' 00 'S'")
    world.receive(teller, "32 08 0003 'x/y' 0001 'A'", "32 08 0003 'x/z' 0002 'B'")
    assert link.taken() == written("32 09 0003 'x/y' 0046 00 'A' 32 09 0003 'x/z' 0047 00 'B'")
    assert world.depth(SUBSCRIBER_QUEUE) == 2

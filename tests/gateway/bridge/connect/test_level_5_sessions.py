"""MQTT 5.0 at the bridge: how long sessions and wills last, and the reason codes of refusals and closings."""

from itertools import pairwise

import ormsgpack
import pytest

from gateway.mqtt.properties import NEVER_EXPIRES_S
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.reasons import StoreError
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, mqrfh2, written

SECOND_US = 1_000_000
#: CONNACK of level 5: success; nothing is said where the server can do what the standard has.
ACCEPTED = written("20 03 00 00 00")
RESUMED = written("20 03 01 00 00")


def connect(world: World, name: str, *, flags: str = "02", properties: str = "", payload: str = "") -> FakeLink:
    """A link that has sent CONNECT of level 5; `payload` stands behind the client identifier."""
    link = FakeLink()
    encoded, behind = written(properties), written(payload)
    identifier = name.encode()
    body = b"".join(
        (
            written(f"0004 'MQTT' 05 {flags} 0000"),
            bytes((len(encoded),)) + encoded,
            len(identifier).to_bytes(2, "big") + identifier,
            behind,
        )
    )
    world.bridge.receive(link, bytes((0x10, len(body))) + body)
    world.run()
    return link


def pass_seconds(world: World, seconds: int) -> None:
    world.now_us += seconds * SECOND_US
    world.bridge.tick()
    world.run()


def watcher(world: World) -> FakeLink:
    """A client of level 4 that is sent everything."""
    link = world.connect("hear")
    world.receive(link, "82 06 0001 0001 '#' 00")
    link.taken()
    return link


WILL = "00 0003 'w/t' 0001 'W'"
WILL_IN_TEN_SECONDS = "05 18 0000000A 0003 'w/t' 0001 'W'"
WILL_PUBLISHED = written("30 06 0003 'w/t' 'W'")


def test_a_session_without_expiry_ends_with_its_connection(world: World) -> None:
    link = connect(world, "self", flags="00")
    assert link.taken() == ACCEPTED
    world.lose(link)
    assert list(world.sessions) == []


def test_a_session_lasts_as_long_as_its_expiry_says(world: World) -> None:
    world.lose(connect(world, "self", properties="11 0000003C"))
    pass_seconds(world, 59)
    assert [each.client for each in world.sessions] == ["self"]
    pass_seconds(world, 1)
    assert list(world.sessions) == []
    assert world.engine.states(StateKind.SESSION) == []


def test_a_restart_neither_shortens_nor_lengthens_an_expiry(new_world: NewWorld) -> None:
    world = new_world()
    link = connect(world, "self", properties="11 0000003C")
    world.receive(link, "E0 00")
    world = new_world()
    pass_seconds(world, 59)
    assert [each.client for each in world.sessions] == ["self"]
    pass_seconds(world, 1)
    assert list(world.sessions) == []


def test_a_session_that_comes_back_is_present_and_its_time_runs_no_more(world: World) -> None:
    world.lose(connect(world, "self", properties="11 0000003C"))
    link = connect(world, "self", flags="00", properties="11 0000003C")
    assert link.taken() == RESUMED
    pass_seconds(world, 100)
    assert [each.client for each in world.sessions] == ["self"]


def test_a_session_that_comes_back_after_its_time_is_not_present_though_nobody_has_looked_yet(world: World) -> None:
    heard = watcher(world)
    world.lose(connect(world, "self", flags="06", properties="11 0000003C", payload=WILL_IN_TEN_SECONDS))
    world.now_us += 60 * SECOND_US
    link = connect(world, "self", flags="00", properties="11 0000003C")
    assert link.taken() == ACCEPTED
    assert heard.taken() == WILL_PUBLISHED


def test_a_fleet_whose_sessions_expire_together_is_ended_in_shares(world: World) -> None:
    for number in range(120):
        world.lose(connect(world, f"m{number}", properties="11 0000003C"))
    world.now_us += 60 * SECOND_US
    world.bridge.tick()
    left = [len(world.sessions)]
    while world.sessions and len(left) < 1_000:
        world.turn()
        left.append(len(world.sessions))
    assert max(before - after for before, after in pairwise(left)) <= 5
    assert left[-1] == 0


def test_a_session_that_came_back_from_a_fleet_that_expires_does_not_end(world: World) -> None:
    for number in range(20):
        world.lose(connect(world, f"m{number}", properties="11 0000003C"))
    world.now_us += 30 * SECOND_US
    world.lose(connect(world, "m7", flags="00", properties="11 0000003C"))
    link = connect(world, "m8", flags="00", properties="11 0000003C")
    pass_seconds(world, 30)
    assert [session.client for session in world.sessions] == ["m7", "m8"]
    pass_seconds(world, 30)
    assert [session.client for session in world.sessions] == ["m8"]
    assert link.is_open


@pytest.mark.parametrize("seconds", [1, 20, 59])
def test_a_will_and_then_the_session_fall_due(world: World, seconds: int) -> None:
    heard = watcher(world)
    properties = "11 0000003C"
    world.lose(
        connect(world, "self", flags="06", properties=properties, payload=f"05 18 {seconds:08X} 0003 'w/t' 0001 'W'")
    )
    pass_seconds(world, seconds)
    assert heard.taken() == WILL_PUBLISHED
    assert len(world.sessions) == 2
    pass_seconds(world, 60 - seconds)
    assert len(world.sessions) == 1
    assert heard.taken() == b""


def test_clean_start_ends_the_session_from_before_and_keeps_the_new_one(world: World) -> None:
    world.lose(connect(world, "self", properties="11 FFFFFFFF"))
    link = connect(world, "self", flags="02", properties="11 FFFFFFFF")
    assert link.taken() == ACCEPTED
    world.lose(link)
    pass_seconds(world, 10_000_000)
    assert [each.client for each in world.sessions] == ["self"]


def test_disconnect_may_change_the_expiry(world: World) -> None:
    link = connect(world, "self", properties="11 0000003C")
    world.receive(link, "E0 07 00 05 11 00000000")
    assert list(world.sessions) == []


def test_a_client_without_an_identifier_is_told_the_one_that_it_got(world: World) -> None:
    link = connect(world, "")
    (session,) = world.sessions
    name = session.client.encode()
    assert link.taken() == b"".join(
        (
            bytes((0x20, 6 + len(name), 0, 0, 3 + len(name), 0x12)),
            len(name).to_bytes(2, "big"),
            name,
        )
    )


def test_a_client_whose_session_is_taken_over_is_told_so(world: World) -> None:
    old = connect(world, "self")
    old.taken()
    connect(world, "self")
    assert old.taken() == written("E0 01 8E")
    assert not old.is_open


def test_a_violation_is_answered_by_its_reason_code(world: World) -> None:
    link = connect(world, "self")
    link.taken()
    world.receive(link, "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'")
    assert link.taken() == written("E0 01 82")


def test_a_disconnect_with_reason_4_leaves_the_will_and_one_without_takes_it_back(world: World) -> None:
    heard = watcher(world)
    world.receive(connect(world, "self", flags="06", payload=WILL), "E0 00")
    assert heard.taken() == b""
    world.receive(connect(world, "self", flags="06", payload=WILL), "E0 01 04")
    assert heard.taken() == WILL_PUBLISHED


def test_a_delayed_will_waits_and_is_published_once(world: World) -> None:
    heard = watcher(world)
    link = connect(world, "self", flags="06", properties="11 0000003C", payload=WILL_IN_TEN_SECONDS)
    world.lose(link)
    pass_seconds(world, 9)
    assert heard.taken() == b""
    pass_seconds(world, 1)
    assert heard.taken() == WILL_PUBLISHED
    pass_seconds(world, 60)
    assert heard.taken() == b""


def test_a_delayed_will_survives_a_restart(new_world: NewWorld) -> None:
    world = new_world()
    world.lose(connect(world, "self", flags="06", properties="11 0000003C", payload=WILL_IN_TEN_SECONDS))
    world = new_world()
    heard = watcher(world)
    pass_seconds(world, 10)
    assert heard.taken() == WILL_PUBLISHED


def test_a_client_that_comes_back_in_time_leaves_no_delayed_will(world: World) -> None:
    heard = watcher(world)
    world.lose(connect(world, "self", flags="06", properties="11 0000003C", payload=WILL_IN_TEN_SECONDS))
    connect(world, "self", flags="00", properties="11 0000003C")
    pass_seconds(world, 30)
    assert heard.taken() == b""


def test_a_delayed_will_is_due_when_the_session_ends(world: World) -> None:
    heard = watcher(world)
    world.lose(connect(world, "self", flags="06", properties="11 0000003C", payload=WILL_IN_TEN_SECONDS))
    connect(world, "self", flags="02")
    assert heard.taken() == WILL_PUBLISHED


def test_a_will_is_delayed_no_longer_than_its_session_lasts(world: World) -> None:
    heard = watcher(world)
    world.lose(connect(world, "self", flags="06", properties="11 00000003", payload=WILL_IN_TEN_SECONDS))
    pass_seconds(world, 3)
    assert heard.taken() == WILL_PUBLISHED
    assert [each.client for each in world.sessions] == ["hear"]


def test_a_publish_that_is_not_allowed_is_refused_and_the_connection_goes_on(new_world: NewWorld) -> None:
    world = new_world(publish=("a/#",))
    link = connect(world, "self")
    link.taken()
    world.receive(link, "32 09 0003 'b/c' 0001 00 'X'", "34 09 0003 'b/c' 0002 00 'X'", "32 09 0003 'a/b' 0003 00 'X'")
    assert link.taken() == written("40 03 0001 87 50 03 0002 87 40 03 0003 10")
    assert link.is_open


def test_a_release_of_nothing_is_answered_by_its_reason_code(world: World) -> None:
    link = connect(world, "self")
    link.taken()
    world.receive(link, "62 02 0007")
    assert link.taken() == written("70 03 0007 92")


def test_a_release_that_is_repeated_after_its_lost_answer_is_a_success(world: World) -> None:
    """MQTT 5.0 table 3-7: in recovery an unknown identifier is no error, and its message was published."""
    link = connect(world, "self", flags="00", properties="11 FFFFFFFF")
    world.receive(link, "34 09 0003 'a/b' 0007 00 'X'", "62 02 0007")
    assert link.taken().endswith(written("50 02 0007 70 02 0007"))
    world.lose(link)
    again = connect(world, "self", flags="00", properties="11 FFFFFFFF")
    world.receive(again, "62 02 0007")
    assert again.taken() == RESUMED + written("70 02 0007")


def test_a_client_that_takes_no_packet_as_long_as_its_suback_is_told_so(world: World) -> None:
    link = connect(world, "self", properties="27 00000007")
    assert link.taken() == ACCEPTED
    world.receive(link, "82 0F 0001 00 0001 'a' 00 0001 'b' 00 0001 'c' 00")
    assert (link.taken(), link.is_open) == (written("E0 01 95"), False)


def test_a_publish_larger_than_the_client_takes_counts_as_delivered(world: World) -> None:
    link = connect(world, "self", properties="27 00000014")
    world.receive(link, "82 09 0001 00 0003 'a/b' 01")
    link.taken()
    world.put(_publication("a/b", b"0123456789A"))
    assert link.taken() == b""
    world.put(_publication("a/b", b"0123456789"))
    assert link.taken() == written("32 12 0003 'a/b' 0002 00 '0123456789'")
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 1


def test_a_delivery_that_the_client_refuses_is_not_sent_again(world: World) -> None:
    link = connect(world, "self", properties="11 0000003C")
    world.receive(link, "82 09 0001 00 0003 'a/b' 01")
    world.put(_publication("a/b", b"X"))
    world.receive(link, "40 03 0001 83")
    assert world.depth("RFHBRIDGE.SUBSCRIBER") == 0
    world.lose(link)
    assert connect(world, "self", flags="00", properties="11 0000003C").taken() == RESUMED


def test_what_is_unfinished_is_repeated_within_the_receive_maximum(world: World) -> None:
    link = connect(world, "self", properties="11 0000003C")
    world.receive(link, "82 09 0001 00 0003 'a/b' 01")
    for payload in (b"X", b"Y"):
        world.put(_publication("a/b", payload))
    world.lose(link)
    link = connect(world, "self", flags="00", properties="11 0000003C 21 0001")
    assert link.taken() == RESUMED + written("3A 09 0003 'a/b' 0001 00 'X'")
    world.receive(link, "40 02 0001")
    assert link.taken() == written("3A 09 0003 'a/b' 0002 00 'Y'")


def test_rows_before_version_4_never_expire_or_end_with_their_connection(new_world: NewWorld) -> None:
    world = new_world()
    unit = world.engine.begin()
    kept = [3, 77, 4, False, False, ["w/t", b"W", 0, False], {"a/#": 1}, None, {}]
    clean = [3, 78, 4, True, True, None, {}, None, {}]
    unit.set_state(StateKind.SESSION, b"kept", ormsgpack.packb(kept))
    unit.set_state(StateKind.SESSION, b"gone", ormsgpack.packb(clean))
    world.engine.submit(unit)
    world = new_world()
    (session,) = world.sessions
    assert (session.client, session.expiry_s, session.expires_us) == ("kept", NEVER_EXPIRES_S, 0)
    assert session.will is not None
    assert session.will.payload == b"W"


@pytest.mark.parametrize(
    ("connect_packet", "answer"),
    [
        ("10 12 0006 'MQIsdp' 03 02 0000 0004 'late'", "20 02 00 03"),
        ("10 10 0004 'MQTT' 04 02 0000 0004 'late'", "20 02 00 03"),
        ("10 11 0004 'MQTT' 05 02 0000 00 0004 'late'", "20 03 00 88 00"),
        ("10 11 0004 'MQTT' 05", ""),  # what it is nobody knows yet
    ],
)
@pytest.mark.parametrize("reason", ["the gateway stops", "the store has failed"])
def test_connect_that_meets_a_gateway_that_stops_is_told_that_it_is_unavailable(
    world: World, connect_packet: str, answer: str, reason: str
) -> None:
    connected = connect(world, "self")
    connected.taken()
    if reason == "the gateway stops":
        world.bridge.is_stopping = True
    else:
        world.engine.failed = StoreError("write", "no", "nothing")
        world.bridge.receive(connected, written("C0 00"))
        assert (connected.taken(), connected.reason) == (written("E0 01 8B"), reason)
    late = FakeLink()
    world.bridge.receive(late, written(connect_packet))
    assert (late.taken(), late.reason) == (written(answer), reason)
    assert world.sessions.get("late") is None


def _publication(topic: str, payload: bytes) -> bytes:
    return mqrfh2(topic) + payload

"""What waits aside of a group's lane: only a member without room can take it, and the others go on."""

import pytest

from gateway.access.access_list import AccessList
from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.mqtt_limits import MqttLimits
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, mqrfh2
from tests.gateway.bridge.connect.test_level_5_sessions import connect
from tests.gateway.bridge.deliver.test_shared_subscriptions import (
    JOIN,
    KEPT,
    LEAVE,
    SUBSCRIBER_QUEUE,
    back,
    member,
    payloads,
    publish,
)

#: Properties of a CONNECT: packets of at most 20 bytes are taken; and one unanswered PUBLISH at a time.
SMALL, ONE_AT_A_TIME = KEPT + "27 00000014", KEPT + "21 0001"
LARGE = mqrfh2("a/b") + b"0123456789"


def a_small_one_and_a_full_one(world: World) -> tuple[FakeLink, FakeLink]:
    """Two members: one that takes small packets, and one that takes large ones and has no room just now."""
    small, large = member(world, "smal", properties=SMALL), member(world, "larg", properties=ONE_AT_A_TIME)
    publish(world, "A", "B")
    assert (payloads(small), payloads(large)) == ("A", "B")
    return small, large


def test_what_only_a_member_without_room_can_take_does_not_hold_up_the_others(world: World) -> None:
    small, large = a_small_one_and_a_full_one(world)
    world.put(LARGE + b"C")
    publish(world, *"DEF")
    assert (payloads(small), large.taken()) == ("DEF", b"")
    world.receive(large, "40 02 0001")
    assert large.taken()[-11:] == b"0123456789C"
    world.receive(large, "40 02 0002")
    assert large.taken() == b""


def test_what_waits_aside_goes_to_a_member_in_the_order_of_arrival_and_before_the_lane(world: World) -> None:
    small, large = a_small_one_and_a_full_one(world)
    for payload in b"CDE":
        world.put(LARGE + bytes((payload,)))
    world.lose(small)
    publish(world, "F")
    found = ""
    for place in range(1, 5):
        world.receive(large, f"40 02 {place:04X}")
        found += payloads(large)
    assert found == "CDEF"


def test_what_waits_aside_goes_to_a_member_that_comes_later(world: World) -> None:
    a_small_one_and_a_full_one(world)
    world.put(LARGE + b"C")
    late = connect(world, "late", properties=KEPT)
    late.taken()
    world.receive(late, JOIN)
    assert late.taken()[-11:] == b"0123456789C"


def test_more_than_a_batch_that_waits_aside_holds_up_nobody(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(maximum_in_flight=10))
    small, _ = a_small_one_and_a_full_one(world)
    world.receive(small, "A2 11 0003 00 000C '$share/g/a/b'")
    small.taken()
    for _ in range(250):
        world.put(LARGE + b"C")
    world.receive(small, JOIN)
    publish(world, "D")
    assert payloads(small) == "D"


def test_what_waits_aside_is_dropped_when_nobody_is_there_who_takes_it(world: World) -> None:
    small, large = a_small_one_and_a_full_one(world)
    world.put(LARGE + b"C")
    world.lose(large)
    publish(world, "D")
    assert payloads(small) == "D"
    (note,) = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert (note[2], note[-1]) == ("smal", "larger than the client takes")


def test_what_waits_aside_ends_with_the_group(world: World) -> None:
    small, large = a_small_one_and_a_full_one(world)
    world.put(LARGE + b"C")
    for link in (small, large):
        world.receive(link, "40 02 0001", LEAVE)
    assert world.depth(SUBSCRIBER_QUEUE) == 0


def test_what_waits_aside_survives_a_restart_at_its_place(new_world: NewWorld) -> None:
    world = new_world()
    small, _ = a_small_one_and_a_full_one(world)
    world.put(LARGE + b"C")
    publish(world, "D")
    assert payloads(small) == "D"
    world = new_world()
    large = back(world, "larg", properties=KEPT)
    assert payloads(large) == "BC"


def test_what_waits_aside_and_expires_is_sent_to_nobody(world: World) -> None:
    _, large = a_small_one_and_a_full_one(world)
    world.put(LARGE + b"C", expiry=10)
    world.put(LARGE + b"D")
    world.now_us += 2_000_000
    world.receive(large, "40 02 0001")
    assert payloads(large) == "D"


def test_too_many_that_wait_aside_hold_up_their_group_and_none_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.bridge.deliver.shared_deliveries._MOST_MESSAGES", 1)
    small, large = a_small_one_and_a_full_one(world)
    for payload in b"CD":
        world.put(LARGE + bytes((payload,)))
    publish(world, "E")
    assert payloads(small) == ""
    world.receive(large, "40 02 0001")
    assert (payloads(large), payloads(small)) == ("C", "E")
    world.receive(large, "40 02 0002")
    assert payloads(large) == "D"


def test_a_member_that_may_no_more_is_not_waited_for(new_world: NewWorld) -> None:
    rules = '[[rule]]\npublish = "#"\nsubscribe = "#"\n'
    world = new_world(access_list=AccessList.parse(rules, "rules"))
    a_small_one_and_a_full_one(world)
    world.access.access_list = AccessList.parse(rules + '[[rule]]\nclient = "larg"\ndeny_subscribe = "a/b"\n', "rules")
    world.bridge.access_changed()
    world.put(LARGE + b"C")
    (note,) = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert (note[2], note[-1]) == ("smal", "larger than the client takes")

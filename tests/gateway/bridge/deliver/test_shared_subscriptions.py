"""Shared subscriptions of MQTT 5.0 at the bridge (section 4.8.2): who gets what, and what survives whom."""

from pathlib import Path

import pytest

from gateway.access.access_list import AccessList
from gateway.access.dollar_topics import DollarTopics
from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.writer import PacketWriter
from mappings.commands.command import Dialect
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, mqrfh2, written
from tests.gateway.bridge.connect.test_level_5_sessions import RESUMED, connect

SUBSCRIBER_QUEUE = "RFHBRIDGE.SUBSCRIBER"
KEPT = "11 FFFFFFFF"
JOIN = "82 12 0001 00 000C '$share/g/a/b' 01"
GRANTED = written("90 04 0001 00 01")
LEAVE = "A2 11 0002 00 000C '$share/g/a/b'"


def member(world: World, name: str, *, properties: str = KEPT, join: str = JOIN) -> FakeLink:
    """A client of level 5 that shares a/b in group g at QoS 1."""
    link = connect(world, name, properties=properties)
    link.taken()
    world.receive(link, join)
    assert link.taken()[:1] == b"\x90"
    return link


def back(world: World, name: str, *, properties: str = KEPT) -> FakeLink:
    return connect(world, name, flags="00", properties=properties)


def publish(world: World, *payloads: str, qos: int = 1) -> None:
    """Another client, of level 4, publishes on a/b; each payload is one character."""
    link = world.connect("else")
    for payload in payloads:
        first, identifier = ("30 06", "") if not qos else ("32 08", "0001") if qos == 1 else ("34 08", "0001")
        world.receive(link, f"{first} 0003 'a/b' {identifier} '{payload}'")
        if qos == 2:
            world.receive(link, "62 02 0001")
    world.receive(link, "E0 00")


def payloads(link: FakeLink) -> str:
    """The last byte of each PUBLISH that was sent; lengths are below 128."""
    data, found, position = link.taken(), "", 0
    while position < len(data):
        end = position + 2 + data[position + 1]
        if data[position] >> 4 == 3:
            found += chr(data[end - 1])
        position = end
    return found


def test_each_message_goes_to_one_member_and_members_take_turns(world: World) -> None:
    one, two = member(world, "one1"), member(world, "two2")
    publish(world, *"ABCD")
    assert (payloads(one), payloads(two)) == ("AC", "BD")


def test_who_answers_in_the_moment_in_which_a_message_comes_does_not_have_it_out_of_turn(world: World) -> None:
    one, two = member(world, "one1"), member(world, "two2")
    publish(world, "A", qos=1)
    assert (payloads(one), payloads(two)) == ("A", "")
    other = world.connect("tell")
    world.bridge.receive(one, written("40 02 0001"))
    world.bridge.receive(other, written("32 08 0003 'a/b' 0002 'B'"))
    world.run()
    assert (payloads(one), payloads(two)) == ("", "B")


def test_a_group_is_one_subscriber_of_the_broker(world: World) -> None:
    member(world, "one1")
    member(world, "two2")
    assert world.registrations() == 1
    publish(world, "A")
    assert world.depth(SUBSCRIBER_QUEUE) == 1


def test_groups_of_another_name_or_filter_are_others(world: World) -> None:
    one = member(world, "one1")
    two = member(world, "two2", join="82 12 0001 00 000C '$share/h/a/b' 01")
    three = member(world, "thre", join="82 12 0001 00 000C '$share/g/a/#' 01")
    plain = member(world, "plai", join="82 09 0001 00 0003 'a/b' 01")
    publish(world, "A")
    assert [payloads(each) for each in (one, two, three, plain)] == ["A", "A", "A", "A"]


def test_a_member_has_its_own_subscription_beside_the_shared_one(world: World) -> None:
    link = member(world, "one1")
    world.receive(link, "82 0B 0002 02 0B 07 0003 'a/b' 00")
    link.taken()
    publish(world, "A")
    shared, own = written("32 09 0003 'a/b' 0001 00 'A'"), written("30 09 0003 'a/b' 02 0B 07 'A'")
    assert link.taken() in (shared + own, own + shared)


def test_the_audit_hears_who_was_sent_what_and_for_which_subscriber_it_came(world: World) -> None:
    member(world, "one1")
    member(world, "two2")
    publish(world, "A", "B")
    notes = [note for note in world.notes if note[0] == NoteKind.DELIVERED]
    assert [note[2] for note in notes] == ["one1", "two2"]
    (correl_id,) = {note[11].correl_id for note in notes}  # type: ignore[attr-defined]  # an Arrival
    assert all(session.correl_id != correl_id for session in world.sessions)


def test_the_qos_is_the_members_own(world: World) -> None:
    """MQTT-4.8.2-3."""
    one = member(world, "one1", join="82 12 0001 00 000C '$share/g/a/b' 00")
    two = member(world, "two2", join="82 12 0001 00 000C '$share/g/a/b' 02")
    publish(world, "A", "B", qos=2)
    assert one.taken() == written("30 07 0003 'a/b' 00 'A'")
    assert two.taken() == written("34 09 0003 'a/b' 0001 00 'B'")


def test_a_delivery_has_the_identifier_of_the_shared_subscription_alone(world: World) -> None:
    link = connect(world, "one1", properties=KEPT)
    world.receive(link, "82 0B 0001 02 0B 07 0003 'c/d' 01", "82 14 0002 02 0B 09 000C '$share/g/a/b' 01")
    link.taken()
    publish(world, "A")
    assert link.taken() == written("32 0B 0003 'a/b' 0001 02 0B 09 'A'")


def test_a_shared_subscription_brings_nothing_retained(world: World) -> None:
    publisher = world.connect("else")
    world.receive(publisher, "31 06 0003 'a/b' 'R'", "E0 00")
    link = member(world, "one1")
    assert link.taken() == b""
    world.receive(link, JOIN)
    assert link.taken() == GRANTED


def test_retain_as_published_holds_for_a_shared_subscription(world: World) -> None:
    link = member(world, "one1", join="82 12 0001 00 000C '$share/g/a/b' 08")
    publisher = world.connect("else")
    world.receive(publisher, "31 06 0003 'a/b' 'R'", "30 06 0003 'a/b' 'X'")
    assert link.taken() == written("31 07 0003 'a/b' 00 'R' 30 07 0003 'a/b' 00 'X'")


def test_no_local_on_a_shared_subscription_is_a_protocol_error(world: World) -> None:
    link = connect(world, "one1")
    link.taken()
    world.receive(link, "82 12 0001 00 000C '$share/g/a/b' 05")
    assert link.taken() == written("E0 01 82")


def test_a_member_that_is_away_gets_nothing_while_another_is_there(world: World) -> None:
    one, two = member(world, "one1"), member(world, "two2")
    world.lose(one)
    publish(world, *"ABC")
    assert payloads(two) == "ABC"
    assert back(world, "one1").taken() == RESUMED


def test_what_comes_while_all_are_away_waits_for_the_first_who_comes_back(world: World) -> None:
    one, two = member(world, "one1"), member(world, "two2")
    world.lose(one)
    world.lose(two)
    publish(world, "A", "B")
    assert payloads(back(world, "two2")) == "AB"
    assert payloads(back(world, "one1")) == ""


def test_what_waits_too_long_while_all_are_away_becomes_a_dead_letter(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(maximum_queued_age_s=60))
    one, two = member(world, "one1"), member(world, "two2", properties=KEPT + "21 0001")
    world.lose(one)
    publish(world, "A", "B")
    world.now_us += 61_000_000
    world.bridge.tick()
    world.run()
    assert world.depth("SYSTEM.DEAD.LETTER.QUEUE") == 0, "a member is there"
    world.lose(two)
    world.bridge.tick()
    world.run()
    assert world.depth("SYSTEM.DEAD.LETTER.QUEUE") == 1


def test_who_has_no_room_in_its_window_is_passed_over(world: World) -> None:
    slow = member(world, "slow", properties=KEPT + "21 0001")
    fast = member(world, "fast")
    publish(world, *"ABCDE")
    assert (payloads(slow), payloads(fast)) == ("A", "BCDE")
    world.receive(slow, "40 02 0001")
    publish(world, "F")
    assert payloads(slow) == "F"


def test_who_reads_too_slowly_is_passed_over(world: World) -> None:
    slow, fast = member(world, "slow"), member(world, "fast")
    slow.can_send = False
    publish(world, "A", "B")
    assert (payloads(slow), payloads(fast)) == ("", "AB")


def test_what_waited_for_a_window_goes_on_when_it_opens(world: World) -> None:
    link = member(world, "one1", properties=KEPT + "21 0001")
    publish(world, *"ABC")
    assert payloads(link) == "A"
    world.receive(link, "40 02 0001")
    assert payloads(link) == "B"
    world.receive(link, "40 02 0002")
    assert payloads(link) == "C"


def test_what_a_member_had_not_acknowledged_is_its_own_when_it_comes_back(world: World) -> None:
    """MQTT-4.8.2-4."""
    one, two = member(world, "one1"), member(world, "two2")
    publish(world, "A")
    world.lose(one)
    assert payloads(two) == ""
    assert back(world, "one1").taken() == RESUMED + written("3A 09 0003 'a/b' 0001 00 'A'")


def test_what_a_member_had_not_acknowledged_at_qos_1_goes_to_another_when_its_session_ends(world: World) -> None:
    one, two = member(world, "one1", properties=""), member(world, "two2")
    publish(world, "A", "B")
    two.taken()
    world.lose(one)
    assert two.taken() == written("32 09 0003 'a/b' 0002 00 'A'")
    world.receive(two, "40 02 0001 40 02 0002")
    assert world.depth(SUBSCRIBER_QUEUE) == 0


def test_what_goes_to_another_waits_where_nobody_is_there(world: World) -> None:
    one, two = member(world, "one1", properties=""), member(world, "two2")
    publish(world, "A", "B")
    world.lose(two)
    world.lose(one)
    publish(world, "C")
    assert back(world, "two2").taken() == RESUMED + written(
        "3A 09 0003 'a/b' 0001 00 'B' 32 09 0003 'a/b' 0002 00 'A' 32 09 0003 'a/b' 0003 00 'C'"
    )


def test_what_a_member_had_not_acknowledged_at_qos_2_goes_to_nobody_else(world: World) -> None:
    """MQTT-4.8.2-5."""
    join = "82 12 0001 00 000C '$share/g/a/b' 02"
    one, two = member(world, "one1", properties="", join=join), member(world, "two2", join=join)
    publish(world, "A", qos=2)
    assert payloads(one) == "A"
    world.lose(one)
    assert two.taken() == b""
    assert world.depth(SUBSCRIBER_QUEUE) == 0


def test_what_a_member_refuses_goes_to_nobody_else(world: World) -> None:
    """MQTT-4.8.2-6."""
    one, two = member(world, "one1"), member(world, "two2")
    publish(world, "A")
    world.receive(one, "40 03 0001 83")
    assert two.taken() == b""
    assert world.depth(SUBSCRIBER_QUEUE) == 0


def test_what_is_too_large_for_one_member_goes_to_another(world: World) -> None:
    small, large = member(world, "smal", properties=KEPT + "27 00000014"), member(world, "larg")
    world.put(mqrfh2("a/b") + b"0123456789A")
    assert (small.taken(), large.taken()[-11:]) == (b"", b"0123456789A")


def test_what_is_too_large_for_one_member_waits_for_another_that_has_no_room(world: World) -> None:
    small = member(world, "smal", properties=KEPT + "27 00000014")
    large = member(world, "larg", properties=KEPT + "21 0001")
    publish(world, "A", "B")
    world.put(mqrfh2("a/b") + b"0123456789A")
    assert (payloads(small), payloads(large)) == ("A", "B")
    world.receive(small, "40 02 0001")
    assert small.taken() == b""
    world.receive(large, "40 02 0001")
    assert large.taken()[-11:] == b"0123456789A"


def test_what_is_too_large_for_every_member_is_dropped_and_the_audit_says_so(world: World) -> None:
    link = member(world, "smal", properties=KEPT + "27 00000014")
    world.put(mqrfh2("a/b") + b"0123456789A")
    assert link.taken() == b""
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    (note,) = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert (note[2], note[-1]) == ("smal", "larger than the client takes")


def test_unsubscribe_leaves_the_group_to_the_others(world: World) -> None:
    one, two = member(world, "one1"), member(world, "two2")
    world.receive(one, LEAVE)
    assert one.taken() == written("B0 04 0002 00 00")
    publish(world, "A", "B")
    assert (payloads(one), payloads(two)) == ("", "AB")
    assert world.registrations() == 1


def test_the_last_who_leaves_takes_the_registration_and_what_waits_along(world: World) -> None:
    one = member(world, "one1")
    world.receive(one, LEAVE)
    assert world.registrations() == 0
    assert world.engine.states(StateKind.SHARED_SUBSCRIPTION) == []
    world.receive(one, LEAVE)
    assert one.taken() == written("B0 04 0002 00 00 B0 04 0002 00 11")


def test_a_group_ends_with_the_session_of_its_last_member(world: World) -> None:
    one, two = member(world, "one1"), member(world, "two2", properties="")
    world.lose(two)
    assert world.registrations() == 1
    world.lose(one)
    publish(world, "A")
    connect(world, "one1", flags="02")
    assert world.registrations() == 0
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert world.engine.states(StateKind.SHARED_SUBSCRIPTION) == []


def test_a_member_that_subscribes_again_has_another_qos_and_counts_once(world: World) -> None:
    one = member(world, "one1")
    world.receive(one, "82 12 0003 00 000C '$share/g/a/b' 00")
    assert one.taken() == written("90 04 0003 00 00")
    publish(world, "A")
    assert one.taken() == written("30 07 0003 'a/b' 00 'A'")
    world.receive(one, LEAVE)
    assert world.registrations() == 0


def test_what_is_under_way_is_completed_after_unsubscribe(world: World) -> None:
    one = member(world, "one1")
    publish(world, "A")
    world.receive(one, LEAVE)
    world.lose(one)
    assert back(world, "one1").taken() == RESUMED + written("3A 09 0003 'a/b' 0001 00 'A'")


def test_a_group_survives_a_restart_with_what_waits_and_what_is_under_way(new_world: NewWorld) -> None:
    world = new_world()
    one, two = member(world, "one1"), member(world, "two2", join="82 14 0001 02 0B 09 000C '$share/g/a/b' 01")
    publish(world, "A")
    world.lose(one)
    world.lose(two)
    publish(world, "B")
    world = new_world()
    assert world.registrations() == 1
    assert back(world, "two2").taken() == RESUMED + written("32 0B 0003 'a/b' 0001 02 0B 09 'B'")
    assert back(world, "one1").taken() == RESUMED + written("3A 09 0003 'a/b' 0001 00 'A'")


def test_a_group_whose_only_member_died_with_the_gateway_is_gone_after_a_restart(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world()
    member(world, "one1", properties="")
    publish(world, "A")
    world = new_world(world.kill(tmp_path / "killed"))
    assert world.registrations() == 0
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert world.engine.states(StateKind.SHARED_SUBSCRIPTION) == []


def test_a_group_that_was_not_granted_when_the_gateway_died_is_gone_after_a_restart(
    new_world: NewWorld, tmp_path: Path
) -> None:
    world = new_world()
    link = connect(world, "one1", properties=KEPT)
    link.taken()
    world.commits_are_held = True
    world.receive(link, JOIN)
    assert link.taken() == b""
    copy = world.kill(tmp_path / "killed")
    world.commit()
    assert link.taken() == GRANTED
    world = new_world(copy)
    assert world.engine.states(StateKind.SHARED_SUBSCRIPTION) == []
    assert world.registrations() == 0


def test_the_access_list_is_asked_for_the_filter_that_is_shared(new_world: NewWorld) -> None:
    world = new_world(subscribe=("a/#",))
    link = connect(world, "one1")
    link.taken()
    world.receive(link, "82 21 0001 00 000C '$share/g/a/b' 01 000C '$share/g/b/c' 01")
    assert link.taken() == written("90 05 0001 00 01 87")


def test_a_member_that_may_no_more_is_passed_over(new_world: NewWorld) -> None:
    rules = '[[rule]]\npublish = "#"\nsubscribe = "#"\n'
    world = new_world(access_list=AccessList.parse(rules, "rules"))
    one, two = member(world, "one1"), member(world, "two2")
    world.access.access_list = AccessList.parse(rules + '[[rule]]\nclient = "one1"\ndeny_subscribe = "a/b"\n', "rules")
    world.bridge.access_changed()
    publish(world, "A", "B")
    assert (payloads(one), payloads(two)) == ("", "AB")


def test_a_permission_that_is_given_again_brings_what_waits_at_once(new_world: NewWorld) -> None:
    rules = '[[rule]]\npublish = "#"\nsubscribe = "#"\n'
    allowed, denied = (AccessList.parse(rules + each, "rules") for each in ("", '[[rule]]\ndeny_subscribe = "a/b"\n'))
    world = new_world(access_list=allowed)
    small, large = member(world, "smal", properties=KEPT + "27 00000014"), member(world, "larg")
    world.access.access_list = denied
    world.bridge.access_changed()
    publish(world, "A")
    world.put(mqrfh2("a/b") + b"0123456789B")
    assert (small.taken(), large.taken()) == (b"", b"")
    world.access.access_list = allowed
    world.bridge.access_changed()
    world.run()
    assert (payloads(small), large.taken()[-11:]) == ("A", b"0123456789B")


def test_shared_subscriptions_count_among_those_of_a_session(world: World) -> None:
    link = member(world, "one1")
    world.receive(link, "82 0F 0002 00 0001 'a' 00 0001 'b' 00 0001 'c' 00")
    assert link.taken() == written("90 06 0002 00 00 00") + bytes((ReasonCode.QUOTA_EXCEEDED,))


def test_before_level_5_a_shared_filter_is_a_filter_like_any_other(new_world: NewWorld) -> None:
    world = new_world(dollar_topics=DollarTopics(["$share/#"]))
    old = world.connect("old1")
    world.receive(old, "82 11 0001 000C '$share/g/a/b' 01")
    assert old.taken() == written("90 03 0001 01")
    publish(world, "A")
    assert old.taken() == b""
    world.receive(old, "30 0F 000C '$share/g/a/b' 'X'")
    assert old.taken() == written("30 0F 000C '$share/g/a/b' 'X'")


def test_a_client_that_comes_back_with_level_4_goes_on_sharing(world: World) -> None:
    world.lose(member(world, "one1"))
    old = world.connect("one1", flags="00")
    publish(world, "A")
    assert old.taken() == written("32 08 0003 'a/b' 0001 'A'")


def test_looking_whether_a_member_takes_a_packet_gives_no_alias(world: World) -> None:
    """The first PUBLISH on a topic is the one that tells the client what its alias stands for."""
    link = connect(world, "self", properties=f"22 0005 {KEPT}")
    link.connection.writer = PacketWriter(5, topic_alias_maximum=5)
    world.receive(link, "82 18 0001 00 0012 '$share/g/plant/one' 01")
    link.taken()
    teller = world.connect("else")
    world.receive(teller, "30 0C 0009 'plant/one' 'A'", "30 0C 0009 'plant/one' 'B'")
    assert link.taken() == written("30 10 0009 'plant/one' 03 23 0001 'A' 30 07 0000 03 23 0001 'B'")


def test_of_a_publication_with_hundreds_of_topics_the_first_256_are_looked_at(world: World) -> None:
    link = member(world, "one1", join="82 12 0001 00 000C '$share/g/a/+' 01")
    others = [f"b/{number}" for number in range(255)]
    world.put(mqrfh2(*others, "a/1", "a/2") + b"X")
    assert link.taken() == written("32 09 0003 'a/1' 0001 00 'X'")
    assert world.engine.failed is None


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_audit_performs_all_that_a_group_does_again_to_the_byte(new_world: NewWorld, dialect: Dialect) -> None:
    world = new_world(dialect=dialect)
    one = member(world, "one1")
    two = member(world, "two2", join="82 14 0001 02 0B 09 000C '$share/g/a/b' 01", properties="")
    publish(world, "A", "B", "C")
    world.receive(one, "40 02 0001", "40 02 0002")
    world.lose(two)
    world.receive(one, LEAVE)
    last = member(world, "last", join="82 12 0001 00 000C '$share/g/a/+' 01", properties="")
    world.lose(last)
    assert_every_conversion_is_as_the_audit_predicts(world)
    assert world.registrations() == 0


def test_while_deliveries_are_paused_a_group_waits_and_then_all_goes_on(world: World) -> None:
    one = member(world, "one1")
    world.bridge.pause_deliveries(True)
    publish(world, "A", "B")
    assert payloads(one) == ""
    world.bridge.pause_deliveries(False)
    world.run()
    assert payloads(one) == "AB"


def asked(world: World, link: FakeLink, group: int, *, first: str = "82") -> bytes:
    """Asks for `$share/gN/#`, or gives it up; the code of the answer."""
    topic_filter = f"$share/g{group:02}/#".encode()
    body = b"\0\x01\0" + len(topic_filter).to_bytes(2, "big") + topic_filter + (b"\0" if first == "82" else b"")
    world.bridge.receive(link, bytes.fromhex(first) + bytes((len(body),)) + body)
    world.run()
    return link.taken()[-1:]


def test_groups_of_a_session_and_of_its_network_are_limited_because_each_brings_a_copy(
    new_world: NewWorld, tmp_path: Path
) -> None:
    limits = MqttLimits(maximum_shared_groups=3, maximum_shared_groups_per_prefix=5)
    world = new_world(limits=limits)
    one = member(world, "one1")
    codes = [asked(world, one, group) for group in range(4)]
    assert codes == [b"\0", b"\0", b"\x97", b"\x97"]
    assert one.told.pop() == Limit.SHARED_GROUPS.value.told
    assert asked(world, one, 1) == b"\0", "it is a member already"
    two = member(world, "two2")
    assert [asked(world, two, group) for group in range(10, 13)] == [b"\0", b"\x97", b"\x97"]
    assert two.told.pop() == Limit.SHARED_GROUPS_PER_PREFIX.value.told
    totals = world.refusals.totals
    assert totals[Limit.SHARED_GROUPS, ReasonCode.QUOTA_EXCEEDED] == 2
    assert totals[Limit.SHARED_GROUPS_PER_PREFIX, ReasonCode.QUOTA_EXCEEDED] == 2
    publish(world, "A")
    assert payloads(one).count("A") + payloads(two).count("A") == 4, "one in each of three groups, and one for two"
    assert asked(world, one, 0, first="A2") == b"\0"
    again = World(world.kill(tmp_path / "killed"), limits=limits)
    assert [asked(again, back(again, "one1"), group) for group in (2,)] == [b"\0"]
    assert asked(again, back(again, "two2"), 11) == b"\x97"
    again.close()

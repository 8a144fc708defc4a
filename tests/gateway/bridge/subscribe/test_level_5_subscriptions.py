"""MQTT 5.0 at the bridge: subscription options and identifiers, and the reason codes of SUBACK and UNSUBACK."""

import pytest

from mappings.commands.command import Dialect
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts
from tests.gateway.bridge.conftest import SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect

RETAINED = "31 06 0003 'a/b' 'R'"


def connected(world: World, name: str = "self") -> FakeLink:
    link = connect(world, name, properties="11 FFFFFFFF")
    link.taken()
    return link


def subscribed(world: World, options: str, *, properties: str = "00", name: str = "self") -> FakeLink:
    """A client of level 5 with a subscription to a/b, whose SUBACK and retained copies have been taken."""
    link = connected(world, name)
    subscribe(world, link, options, properties=properties)
    link.taken()
    return link


def subscribe(world: World, link: FakeLink, options: str, *, properties: str = "00") -> None:
    body = written(f"0001 {properties} 0003 'a/b' {options}")
    world.bridge.receive(link, bytes((0x82, len(body))) + body)
    world.run()


def publish(world: World, packet: str) -> None:
    """Another client, of level 4, publishes."""
    link = world.connect("else")
    world.receive(link, packet)
    world.receive(link, "E0 00")


def test_a_delivery_of_level_5_has_the_length_of_its_properties(world: World) -> None:
    link = subscribed(world, "01")
    publish(world, "32 08 0003 'a/b' 0001 'X'")
    assert link.taken() == written("32 09 0003 'a/b' 0001 00 'X'")


def test_no_local_keeps_a_clients_own_publications_from_it(world: World) -> None:
    link = subscribed(world, "04")
    world.receive(link, "30 07 0003 'a/b' 00 'X'")
    assert link.taken() == b""
    publish(world, "30 06 0003 'a/b' 'Y'")
    assert link.taken() == written("30 07 0003 'a/b' 00 'Y'")


def test_no_local_of_one_subscription_leaves_the_others_alone(world: World) -> None:
    link = subscribed(world, "06")
    world.receive(link, "82 09 0002 00 0003 'a/#' 00")
    link.taken()
    world.receive(link, "32 09 0003 'a/b' 0001 00 'X'")
    assert link.taken() == written("40 02 0001 30 07 0003 'a/b' 00 'X'")


def test_retain_as_published_keeps_the_flag_of_the_publication(world: World) -> None:
    link = subscribed(world, "08")
    publish(world, RETAINED)
    assert link.taken() == written("31 07 0003 'a/b' 00 'R'")
    publish(world, "30 06 0003 'a/b' 'X'")
    assert link.taken() == written("30 07 0003 'a/b' 00 'X'")


def test_without_retain_as_published_the_flag_is_taken_off(world: World) -> None:
    link = subscribed(world, "00")
    publish(world, RETAINED)
    assert link.taken() == written("30 07 0003 'a/b' 00 'R'")


def test_retain_handling_0_brings_retained_messages_with_every_subscribe(world: World) -> None:
    publish(world, RETAINED)
    link = connected(world)
    for _ in range(2):
        subscribe(world, link, "00")
        assert link.taken() == written("90 04 0001 00 00 31 07 0003 'a/b' 00 'R'")


def test_retain_handling_1_brings_retained_messages_to_a_new_subscription_only(world: World) -> None:
    publish(world, RETAINED)
    link = connected(world)
    subscribe(world, link, "10")
    assert link.taken() == written("90 04 0001 00 00 31 07 0003 'a/b' 00 'R'")
    subscribe(world, link, "10")
    assert link.taken() == written("90 04 0001 00 00")


def test_of_two_with_retain_handling_1_at_once_the_first_brings_retained_messages(world: World) -> None:
    publish(world, RETAINED)
    link = connected(world)
    world.receive(link, "82 09 0001 00 0003 'a/b' 10", "82 09 0002 00 0003 'a/b' 10")
    assert link.taken() == written("90 04 0001 00 00 90 04 0002 00 00 31 07 0003 'a/b' 00 'R'")


@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_retain_handling_keeps_back_is_not_even_copied(new_world: NewWorld, dialect: Dialect) -> None:
    world = new_world(dialect=dialect)
    publish(world, RETAINED)
    link = connected(world)
    link.can_send = False
    for options, copies in (("20", 0), ("10", 0), ("00", 1), ("20", 1), ("10", 1)):
        subscribe(world, link, options)
        assert world.depth(SUBSCRIBER_QUEUE) == copies
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_retain_handling_2_brings_no_retained_messages(world: World) -> None:
    publish(world, RETAINED)
    link = connected(world)
    subscribe(world, link, "20")
    assert link.taken() == written("90 04 0001 00 00")
    publish(world, "30 06 0003 'a/b' 'X'")
    assert link.taken() == written("30 07 0003 'a/b' 00 'X'")


@pytest.mark.parametrize(("first", "second", "copies"), [("00", "20", 1), ("10", "20", 1), ("20", "10", 0)])
def test_a_filter_that_stands_twice_in_a_subscribe_is_handled_as_in_two(
    new_world: NewWorld, first: str, second: str, copies: int
) -> None:
    world = new_world(dialect=Dialect.MQRFH2)
    publish(world, RETAINED)
    link = connected(world)
    retained = "31 07 0003 'a/b' 00 'R'" * copies
    world.receive(link, f"82 0F 0001 00 0003 'a/b' {first} 0003 'a/b' {second}")  # MQTT-3.8.4-5
    assert link.taken() == written(f"90 05 0001 00 00 00 {retained}")
    world.receive(link, "A2 08 0001 00 0003 'a/b'")
    link.taken()
    world.receive(link, f"82 15 0001 00 0003 'x/y' 20 0003 'a/b' {first} 0003 'a/b' {second}")  # in parts
    assert link.taken() == written(f"90 06 0001 00 00 00 00 {retained}")
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_retain_handling_holds_for_its_own_subscribe_when_another_follows_at_once(world: World) -> None:
    publish(world, RETAINED)
    link = connected(world)
    world.receive(link, "82 09 0001 00 0003 'a/b' 20", "82 09 0002 00 0003 'c/d' 00")
    assert link.taken() == written("90 04 0001 00 00 90 04 0002 00 00")


def test_a_delivery_has_the_identifiers_of_all_subscriptions_that_match(world: World) -> None:
    link = subscribed(world, "00", properties="02 0B 07")
    world.receive(link, "82 0C 0002 03 0B 8001 0003 'a/#' 00")
    link.taken()
    publish(world, "30 06 0003 'a/b' 'X'")
    assert link.taken() == written("30 0C 0003 'a/b' 05 0B 07 0B 8001 'X'")


def test_an_identifier_of_several_subscriptions_that_match_comes_as_often(world: World) -> None:
    """Section 3.3.4: such a PUBLISH carries multiple identical subscription identifiers."""
    link = subscribed(world, "00", properties="02 0B 07")
    world.receive(link, "82 0B 0002 02 0B 07 0003 'a/#' 00")
    link.taken()
    publish(world, "30 06 0003 'a/b' 'X'")
    assert link.taken() == written("30 0B 0003 'a/b' 04 0B 07 0B 07 'X'")


def test_options_and_identifiers_survive_a_restart(new_world: NewWorld) -> None:
    world = new_world()
    world.lose(subscribed(world, "0C", properties="02 0B 07"))
    world = new_world()
    link = connect(world, "self", flags="00", properties="11 FFFFFFFF")
    link.taken()
    world.receive(link, "30 07 0003 'a/b' 00 'X'")
    assert link.taken() == b""
    publish(world, RETAINED)
    assert link.taken() == written("31 09 0003 'a/b' 02 0B 07 'R'")


def test_a_subscribe_without_identifier_takes_the_one_from_before_away(world: World) -> None:
    link = subscribed(world, "00", properties="02 0B 07")
    subscribe(world, link, "00")
    link.taken()
    publish(world, "30 06 0003 'a/b' 'X'")
    assert link.taken() == written("30 07 0003 'a/b' 00 'X'")


def test_refusals_have_their_reason_codes(new_world: NewWorld) -> None:
    world = new_world(subscribe=("a/#",))
    link = connected(world)
    world.receive(link, "82 0F 0001 00 0003 'b/c' 00 0003 'a/b' 02")
    assert link.taken() == written("90 05 0001 00 87 02")


def test_more_subscriptions_than_allowed_are_a_quota(world: World) -> None:
    link = connected(world)
    world.receive(link, "82 13 0001 00 0001 'a' 00 0001 'b' 00 0001 'c' 00 0001 'd' 00")
    assert link.taken() == written("90 07 0001 00 00 00 00 97")


def test_unsuback_says_which_subscriptions_there_were(world: World) -> None:
    link = subscribed(world, "00")
    world.receive(link, "A2 0D 0002 00 0003 'a/b' 0003 'a/c'")
    assert link.taken() == written("B0 05 0002 00 00 11")

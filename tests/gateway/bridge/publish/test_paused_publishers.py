"""Links that are held back, for room or until their next turn: nothing gets lost, or is taken for what it was not."""

import itertools

import pytest

from gateway.bridge.sessions.links import MqttLink
from gateway.bridge.sessions.sessions import ClientSession
from gateway.bridge.subscribe.filter_pacing import Asked
from gateway.config.mqtt_limits import MqttLimits
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import StoreError
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written
from tests.gateway.bridge.connect.test_level_5_sessions import connect

SUBSCRIBER_QUEUE = "RFHBRIDGE.SUBSCRIBER"
FOR_100_SECONDS = "11 00000064"


def test_a_link_that_is_closed_but_not_gone_publishes_nothing_and_its_client_can_send_it_again(world: World) -> None:
    receiver, link = world.connect("recv"), world.connect("self", flags="00")
    world.receive(receiver, "82 08 0001 0003 'a/b' 01")
    receiver.taken()
    world.bridge.disk_space_changed(True)
    world.receive(link, "34 08 0003 'a/b' 0002 'B'")
    link.close("the operator has disconnected the client")
    world.bridge.disk_space_changed(False)
    world.run()
    world.lose(link)
    again = world.connect("self", flags="00")
    world.receive(again, "3C 08 0003 'a/b' 0002 'B'", "62 02 0002")
    assert again.taken() == written("50 02 0002 70 02 0002")
    assert receiver.taken() == written("32 08 0003 'a/b' 0001 'B'")


def test_a_delivery_that_a_held_back_client_refuses_before_it_goes_is_finished(world: World) -> None:
    link = connect(world, "self", properties=FOR_100_SECONDS)
    world.receive(link, "82 09 0001 00 0003 'a/b' 01")
    world.receive(world.connect("send"), "32 08 0003 'a/b' 0001 'A'")
    assert link.taken()[-9:] == written("0003 'a/b' 0001 00 'A'")
    world.bridge.disk_space_changed(True)
    world.receive(link, "32 09 0003 'x/y' 0002 00 'B'", "40 03 0001 80")
    world.lose(link)
    session = world.sessions.get("self")
    assert session is not None
    assert session.mqtt.outgoing == {}
    assert world.depth(SUBSCRIBER_QUEUE) == 0


def test_a_held_back_client_that_takes_its_leave_and_asks_for_its_will_gets_it(world: World) -> None:
    receiver = world.connect("recv")
    world.receive(receiver, "82 08 0001 0003 'w/l' 01")
    receiver.taken()
    link = connect(world, "self", flags="06", payload="00 0003 'w/l' 0001 'W'")
    world.bridge.disk_space_changed(True)
    world.receive(link, "32 09 0003 'x/y' 0002 00 'B'", "E0 01 04")
    world.lose(link)
    assert receiver.taken() == written("30 06 0003 'w/l' 'W'")


def test_a_held_back_client_that_takes_its_leave_may_end_its_session_with_it(world: World) -> None:
    link = connect(world, "self", properties=FOR_100_SECONDS)
    world.bridge.disk_space_changed(True)
    world.receive(link, "32 09 0003 'x/y' 0002 00 'B'", "E0 07 00 05 11 00000000")
    world.lose(link)
    assert world.sessions.get("self") is None


# -- the time of one turn ----------------------------------------------------------------------------------------------


def _packets_take(world: World, took_us: int) -> None:
    """From now on each message that is put takes so long."""
    put = world.engine.put

    def slow_put(unit: UnitOfWork, queue: Queue, message: Message) -> None:
        world.now_us += took_us
        put(unit, queue, message)

    world.engine.put = slow_put  # type: ignore[method-assign]


def _published(first: int, count: int) -> list[str]:
    return [f"32 08 0003 'a/b' {first + each:04X} 'A'" for each in range(count)]


def _answers(first: int, count: int) -> bytes:
    return written(" ".join(f"40 02 {first + each:04X}" for each in range(count)))


def _go_on(world: World, link: FakeLink) -> None:
    assert link.awaits_turn
    link.awaits_turn = False
    world.bridge.go_on(link)
    world.run()


def test_the_packets_of_a_link_have_two_milliseconds_of_a_turn_and_go_on_in_order_in_the_next(world: World) -> None:
    """What a packet asks for does not matter, and neither does the number of packets in a read."""
    link = world.connect("self")
    _packets_take(world, 700)
    world.receive(link, *_published(1, 7))
    assert link.taken() == _answers(1, 3)
    assert world.bridge.paused_publishers.publishes == 4
    world.receive(link, *_published(8, 1))
    assert link.taken() == b"", "a later read waits behind the packets before it"
    _go_on(world, link)
    assert link.taken() == _answers(4, 3)
    _go_on(world, link)
    assert link.taken() == _answers(7, 2)
    assert (link.awaits_turn, len(world.bridge.paused_publishers)) == (False, 0)


def test_a_packet_that_takes_longer_than_a_turn_is_carried_out_all_the_same(world: World) -> None:
    link = world.connect("self")
    _packets_take(world, 1_000_000)
    world.receive(link, *_published(1, 2))
    assert link.taken() == _answers(1, 1)
    _go_on(world, link)
    assert link.taken() == _answers(2, 1)


def test_a_client_that_goes_between_its_turns_publishes_no_more_and_its_answers_count(world: World) -> None:
    link = connect(world, "self", properties=FOR_100_SECONDS)
    world.receive(link, "82 09 0001 00 0003 'x/y' 01")
    for packet_identifier in (1, 2):
        world.receive(world.connect("send"), f"32 08 0003 'x/y' {packet_identifier:04X} 'A'")
    session = world.sessions.get("self")
    assert session is not None
    assert len(session.mqtt.outgoing) == 2
    times_s = itertools.count(step=0.003)
    world.bridge.paused_publishers._now_s = lambda: next(times_s)
    late = [f"32 09 0003 'a/b' {number:04X} 00 'B'" for number in (7, 8, 9)]
    world.receive(link, *late, "40 02 0001", "40 02 0002")
    assert link.awaits_turn
    world.lose(link)
    assert session.mqtt.outgoing == {}
    world.bridge.go_on(link)
    assert (len(world.bridge.paused_publishers), world.bridge.paused_publishers.publishes) == (0, 0)


def test_a_client_that_used_up_its_turn_still_waits_for_its_budget(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(message_rate=1))
    world.engine.seal_notes = None  # otherwise the charge for the trail finds it
    link = world.connect("self")
    world.receive(link, *_published(1, 1))
    _packets_take(world, 1_500)
    world.receive(link, *_published(2, 12))
    while link.awaits_turn:
        assert link.is_read(), "it waits for its turn alone"
        _go_on(world, link)
    assert link.taken() == _answers(1, 13)
    assert not link.is_read()


def _held_back(world: World, count: int) -> list[FakeLink]:
    """Links that wait for room on the disk, each with a PUBLISH."""
    links = [world.connect(f"l{number:03}") for number in range(count)]
    world.bridge.disk_space_changed(True)
    for link in links:
        world.receive(link, *_published(1, 1))
    assert len(world.bridge.paused_publishers) == count
    return links


def test_links_that_go_on_together_share_two_milliseconds_of_a_turn(world: World) -> None:
    """Ten thousand of them would hold up all others otherwise."""
    links = _held_back(world, 8)
    _packets_take(world, 700)
    world.bridge.disk_space_changed(False)
    paused = world.bridge.paused_publishers
    assert [link in paused for link in links] == [False] * 3 + [True] * 5, "they go on in their order"
    world.bridge.disk_space_changed(False)
    assert len(paused) == 5, "the time of this turn is over"
    world.receive(links[7], *_published(2, 1))
    assert [link.taken() for link in links] == [_answers(1, 1)] * 7 + [_answers(1, 2)]
    assert len(paused) == 0


def test_a_place_that_is_full_again_keeps_the_links_that_have_not_gone_on(world: World) -> None:
    links = _held_back(world, 5)
    _packets_take(world, 2_500)
    world.bridge.disk_space_changed(False)
    world.bridge.disk_space_changed(True)
    world.run()
    assert [link.taken() for link in links] == [_answers(1, 1)] + [b""] * 4
    world.bridge.disk_space_changed(False)
    world.run()
    assert [link.taken() for link in links] == [b""] + [_answers(1, 1)] * 4


def test_a_link_that_is_lost_before_it_goes_on_publishes_nothing(world: World) -> None:
    links = _held_back(world, 3)
    _packets_take(world, 2_500)
    world.bridge.disk_space_changed(False)
    world.lose(links[1])
    world.run()
    assert [link.taken() for link in links] == [_answers(1, 1), b"", _answers(1, 1)]
    assert world.bridge.paused_publishers.publishes == 0


def test_a_link_that_is_closed_before_it_goes_on_stays_until_it_is_lost(world: World) -> None:
    """Its answers to deliveries count then."""
    links = _held_back(world, 2)
    _packets_take(world, 2_500)
    world.bridge.disk_space_changed(False)
    links[1].close("the operator has disconnected the client")
    world.run()
    assert links[1] in world.bridge.paused_publishers
    world.lose(links[1])
    assert links[1] not in world.bridge.paused_publishers


def test_a_link_that_waits_for_something_else_by_now_does_not_go_on(world: World) -> None:
    links = _held_back(world, 2)
    _packets_take(world, 2_500)
    world.bridge.disk_space_changed(False)
    paused = world.bridge.paused_publishers
    paused.goes_on(links[1])
    paused.pause(links[1], "pace", [])
    world.run()
    assert links[1] in paused


def test_an_error_in_one_link_that_goes_on_keeps_no_other_back(world: World) -> None:
    links = _held_back(world, 3)
    carry_out = world.bridge.paused_publishers._carry_out

    def fail(link: MqttLink, session: ClientSession, events: list[Asked]) -> None:
        carry_out(link, session, events)
        if link is links[0]:
            raise ZeroDivisionError

    world.bridge.paused_publishers._carry_out = fail
    with pytest.raises(ZeroDivisionError):
        world.bridge.disk_space_changed(False)
    world.run()
    assert [link.taken() for link in links] == [_answers(1, 1)] * 3


def test_no_link_goes_on_once_the_store_has_failed(world: World) -> None:
    links = _held_back(world, 2)
    _packets_take(world, 2_500)
    world.bridge.disk_space_changed(False)
    world.engine.failed = StoreError("commit", "the disk is broken", "replace it")
    world.run()
    assert links[1] in world.bridge.paused_publishers


def test_links_whose_pauses_end_together_share_two_milliseconds_of_a_turn(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(message_rate=1))
    links = [world.connect(f"l{number:03}") for number in range(4)]
    for link in links:
        world.receive(link, *_published(1, 12))
        world.bridge.receive(link, written(_published(13, 1)[0]))
    world.run()
    assert not any(link.is_read() for link in links)
    world.now_us += 60_000_000
    _packets_take(world, 1_500)
    world.bridge.tick()
    world.engine.commit_now()
    assert not any(link.is_read() for link in links), "they go on in a turn of their own"
    world.turn()
    assert sum(link.is_read() for link in links) == 2
    world.run()
    assert all(link.is_read() for link in links)


def test_pauses_that_end_together_are_looked_at_for_two_milliseconds_a_tick(new_world: NewWorld) -> None:
    world = new_world(limits=MqttLimits(message_rate=1))
    links = [world.connect(f"l{number:03}") for number in range(4)]
    for link in links:
        world.receive(link, *_published(1, 12))
    times_s = itertools.count(60, step=0.0015)
    world.bridge._slow_reading._now_s = lambda: next(times_s)
    read = []
    for _ in range(4):
        world.bridge.tick()
        world.run()
        read.append(sum(link.is_read() for link in links))
    assert read == [1, 2, 3, 4]

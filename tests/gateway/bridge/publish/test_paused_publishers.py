"""Links that end while they are held back: nothing of what they had sent gets lost, or is taken for what it was not."""

from tests.gateway.bridge.conftest import World, written
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

"""What the gateway tells of itself below $SYS/broker: to whom, when, and to nobody else."""

import importlib.metadata

from gateway.access.dollar_topics import DollarTopics
from mappings.commands.command import Dialect
from tests.gateway.bridge.conftest import DEFAULT_STREAM, NOW_US, FakeLink, NewWorld, World, mqrfh2, written
from tests.gateway.bridge.test_dollar_topics import connected, publish, subscribe

TOLD = {"sys_topics_interval_s": 10, "dollar_topics": DollarTopics(has_sys_topics=True)}
VERSION = f"rfhbridge {importlib.metadata.version('rfhbridge')}".encode()


def publishes(link: FakeLink) -> dict[str, tuple[int, bytes]]:
    """What a client of 3.1.1 was sent, all of it PUBLISHes of QoS 0: first byte and payload by topic."""
    data, found = link.taken(), {}
    while data:
        end, behind = 2 + data[1], 4 + int.from_bytes(data[2:4], "big")
        found[data[4:behind].decode()] = (data[0], data[behind:end])
        data = data[end:]
    return found


def pass_s(world: World, seconds: float) -> None:
    world.now_us += int(seconds * 1_000_000)
    world.bridge.tick()
    world.run()


def test_who_subscribes_is_sent_all_of_it_as_retained_and_then_what_has_changed(new_world: NewWorld) -> None:
    world = new_world(**TOLD)
    link = connected(world, 4)
    answer = subscribe(world, link, "$SYS/#")
    assert answer[:5] == written("90 03 0001 01")
    link.sent = answer[5:]
    told = publishes(link)
    assert {name.removeprefix("$SYS/broker/") for name in told} == {
        "version",
        "uptime",
        "clients/connected",
        "clients/total",
        "clients/disconnected",
        "messages/received",
        "messages/sent",
        "publish/messages/received",
        "publish/messages/sent",
        "retained messages/count",
    }
    assert {first_byte for first_byte, _ in told.values()} == {0x31}
    assert told["$SYS/broker/version"] == (0x31, VERSION)
    assert told["$SYS/broker/uptime"] == (0x31, b"0 seconds")
    assert told["$SYS/broker/clients/connected"] == told["$SYS/broker/clients/total"] == (0x31, b"1")
    other = world.connect("else")
    pass_s(world, 9.9)
    assert link.taken() == b""
    pass_s(world, 0.1)
    changed = publishes(link)
    assert "$SYS/broker/version" not in changed
    assert changed["$SYS/broker/uptime"] == (0x30, b"10 seconds")
    assert changed["$SYS/broker/clients/connected"] == (0x30, b"2")
    assert other.taken() == b""
    world.receive(link, "A2 0A 0002 0006 '$SYS/#'")
    link.taken()
    pass_s(world, 20)
    assert link.taken() == b""


def test_level_5_has_its_identifier_and_its_retain_handling(new_world: NewWorld) -> None:
    world = new_world(**TOLD)
    link = connected(world, 5)
    entry = "0013 '$SYS/broker/version'"
    world.receive(link, f"82 1B 0001 02 0B07 {entry} 08")
    expected = written("0013 '$SYS/broker/version' 02 0B07") + VERSION
    assert link.taken() == written("90 04 0001 00 00 31") + bytes((len(expected),)) + expected
    for options in ("10", "20"):
        world.receive(link, f"82 1B 0001 02 0B07 {entry} {options}")
        assert link.taken() == written("90 04 0001 00 00")


def test_nobody_else_hears_of_it_and_nothing_is_stored(new_world: NewWorld) -> None:
    for dialect in Dialect:
        world = new_world(dialect=dialect, **TOLD)
        everything = connected(world, 4)
        subscribe(world, everything, "#")
        pass_s(world, 30)
        assert everything.taken() == b""
        assert world.messages(DEFAULT_STREAM) == world.messages("RFHBRIDGE.SUBSCRIBER") == []
        assert world.retained_topics("*") == []


def test_a_session_that_comes_back_is_told_what_changes(new_world: NewWorld) -> None:
    world = new_world(**TOLD)
    subscribe(world, connected(world, 4), "$SYS/broker/uptime")
    world = new_world(**TOLD)
    link = connected(world, 4)
    pass_s(world, 30)
    assert publishes(link) == {"$SYS/broker/uptime": (0x30, b"30 seconds")}
    world.lose(link)
    pass_s(world, 30)
    assert link.taken() == b""


def test_who_reads_too_slowly_misses_some(new_world: NewWorld) -> None:
    world = new_world(**TOLD)
    link = connected(world, 4)
    subscribe(world, link, "$SYS/broker/uptime")
    link.can_send = False
    pass_s(world, 30)
    assert link.taken() == b""
    link.can_send = True
    pass_s(world, 10)
    assert publishes(link) == {"$SYS/broker/uptime": (0x30, b"40 seconds")}


def test_no_client_publishes_it_and_no_stream_comes_through_its_door(new_world: NewWorld) -> None:
    world = new_world(**TOLD)
    link = connected(world, 5)
    assert publish(world, link, 0x32, "$SYS/broker/version") == written("40 03 0001 87")
    listener = world.connect("hear")
    subscribe(world, listener, "$SYS/#")
    world.put(mqrfh2("$SYS/STREAM/STOCK/a") + b"secret")
    assert b"secret" not in listener.sent


def test_nothing_is_told_unless_it_is_switched_on(new_world: NewWorld) -> None:
    world = new_world(dollar_topics=DollarTopics(["$SYS/#"]))
    link = connected(world, 4)
    assert subscribe(world, link, "$SYS/#") == written("90 03 0001 01")
    world.now_us = NOW_US + 60_000_000
    pass_s(world, 60)
    assert link.taken() == b""

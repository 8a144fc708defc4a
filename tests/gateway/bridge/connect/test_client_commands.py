"""The operator's hand on sessions: what is shown of them, a connection that is ended, a session that is ended."""

import pytest

from gateway.audit_trail.notes.notes import NoteKind
from mq_adapters.embedded.mqsc.clients import CLIENT_KEYWORDS
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.mqsc import read_command
from tests.gateway.bridge.conftest import NOW_US, SUBSCRIBER_QUEUE, FakeLink, NewWorld, World, written

#: MQTT 5, session expiry an hour, keep alive 60 s, will `w` "bye" at QoS 1 with RETAIN and a delay of 30 s.
CONNECT_5 = "10 24 0004 'MQTT' 05 2C 003C 05 11 00000E10 0004 'self' 05 18 0000001E 0001 'w' 0003 'bye'"


def told(world: World, command: str) -> tuple[str, ...]:
    """The answer to a command that is carried out."""
    answer = CommandServer(world.engine).execute(command)
    assert answer.succeeded, answer.lines
    world.run()
    return answer.lines


def shown(world: World, client: str) -> dict[str, tuple[str, ...]]:
    _, *lines = told(world, f"DISPLAY CHSTATUS(*) CHLTYPE(MQTT) CLIENTID('{client}')")
    parameters = read_command("DISPLAY X " + " ".join(lines)).parameters
    return {each.keyword: each.items or () for each in parameters}


def enter(world: World, connect: str) -> FakeLink:
    link = FakeLink()
    world.receive(link, connect)
    assert link.session is not None, link.reason
    link.taken()
    return link


def stop(world: World, client: str) -> tuple[str, ...]:
    return told(world, f"STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('{client}')")


def purge(world: World, client: str) -> tuple[str, ...]:
    return told(world, f"PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('{client}')")


def test_a_connected_client_is_shown_with_all_that_is_known_of_it(world: World) -> None:
    link = enter(world, CONNECT_5)
    world.receive(link, "82 0F 0001 02 0B 07 0003 'a/+' 2D 0001 'b' 00")
    link.taken()
    world.receive(link, "34 07 0001 'x' 0009 00 'X'")
    world.now_us += 5_000_000
    values = shown(world, "self")
    assert set(values) == set(CLIENT_KEYWORDS)
    assert {keyword: value[0] for keyword, value in values.items() if len(value) == 1 and value[0]} == {
        "CHSTATUS": "MQTT",
        "CHLTYPE": "MQTT",
        "CLIENTID": "self",
        "STATUS": "RUNNING",
        "PROTOCOL": "5",
        "LISTENER": "plain",
        "CONNAME": "192.0.2.7:50000",
        "SINCE": "2027-01-15T08:00:00+00:00",
        "KAINT": "60",
        "EXPIRY": "3600",
        "INDOUBTIN": "1",
        "INDOUBTOUT": "0",
        "PENDING": "0",
        "PENDBYTE": "0",
        "SUBCOUNT": "2",
        "WILL": "YES",
        "WILLTOPIC": "w",
        "WILLQOS": "1",
        "WILLRETN": "YES",
        "WILLBYTE": "3",
        "WILLDLAY": "30",
    }
    assert values["SUBS"] == ("qos=1,no_local,retain_as_published,identifier=7 a/+", "qos=0,identifier=7 b")
    assert NOW_US // 1_000_000 == 1_800_000_000


def test_what_waits_for_a_client_that_is_not_connected_is_counted(world: World) -> None:
    link = world.connect("self", flags="00")
    world.receive(link, "82 06 0001 0001 'a' 01")
    world.lose(link)
    publisher = world.connect("tell")
    world.receive(publisher, "32 06 0001 'a' 0001 'A'", "32 06 0001 'a' 0002 'B'")
    values = shown(world, "self")
    assert (values["STATUS"], values["PENDING"], values["INDOUBTOUT"]) == (("DISCONNECTED",), ("2",), ("0",))
    assert (values["CONNAME"], values["SINCE"], values["PROTOCOL"]) == ((), (), ("3.1.1",))
    again = world.connect("self", flags="00")
    assert again.is_open
    values = shown(world, "self")
    assert (values["PENDING"], values["INDOUBTOUT"]) == (("0",), ("2",))


def test_bytes_are_those_of_the_messages_that_are_counted(world: World) -> None:
    """What is on its way to the client is no longer among what waits, be it counted or weighed."""
    link = world.connect("self", flags="00")
    world.receive(link, "82 06 0001 0001 'a' 02")
    publisher = world.connect("tell")
    world.receive(publisher, "32 06 0001 'a' 0001 'A'", "34 06 0001 'a' 0002 'B'", "62 02 0002")
    values = shown(world, "self")
    assert (values["PENDING"], values["PENDBYTE"], values["INDOUBTOUT"]) == (("0",), ("0",), ("2",))
    world.lose(link)
    world.receive(publisher, "32 07 0001 'a' 0003 'CC'")
    values = shown(world, "self")
    assert (values["PENDING"], values["INDOUBTOUT"]) == (("1",), ("2",))
    size = int(values["PENDBYTE"][0])
    world.receive(publisher, "32 07 0001 'a' 0003 'DD'")
    assert shown(world, "self")["PENDBYTE"] == (str(2 * size),)


def test_a_client_that_is_disconnected_is_told_98_keeps_its_session_and_its_will_waits_as_it_says(
    world: World,
) -> None:
    watcher = world.connect("hear")
    world.receive(watcher, "82 06 0001 0001 '#' 00")
    watcher.taken()
    link = enter(world, CONNECT_5)
    assert stop(world, "self") == ("AMQ8019I: Stop of client 'self' accepted.",)
    assert (link.taken(), link.is_open) == (written("E0 01 98"), False)
    assert shown(world, "self")["STATUS"] == ("DISCONNECTED",), "though its end of the connection is still there"
    again = CommandServer(world.engine).execute("STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('self')")
    assert (again.succeeded, again.lines) == (False, ("AMQ9533W: Client 'self' is not connected.",))
    world.lose(link)
    assert world.sessions.get("self") is not None
    assert watcher.taken() == b""
    world.now_us += 31_000_000
    world.bridge.tick()
    world.run()
    assert watcher.taken() == written("30 06 0001 'w' 'bye'")
    refused = CommandServer(world.engine).execute("STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('self')")
    assert (refused.succeeded, refused.lines) == (False, ("AMQ9533W: Client 'self' is not connected.",))


def test_before_level_5_a_client_that_is_disconnected_is_told_nothing_and_its_will_is_published_at_once(
    world: World,
) -> None:
    watcher = world.connect("hear")
    world.receive(watcher, "82 06 0001 0001 '#' 00")
    watcher.taken()
    link = enter(world, "10 18 0004 'MQTT' 04 06 0000 0004 'self' 0001 'w' 0003 'bye'")
    stop(world, "self")
    assert (link.taken(), link.is_open) == (b"", False)
    world.lose(link)
    assert watcher.taken() == written("30 06 0001 'w' 'bye'")


def test_a_session_that_is_ended_leaves_its_will_and_nothing_else(world: World) -> None:
    watcher = world.connect("hear")
    world.receive(watcher, "82 06 0001 0001 'w' 00")
    watcher.taken()
    link = enter(world, CONNECT_5)
    world.receive(link, "82 07 0001 00 0001 'a' 02")
    world.receive(link, "34 07 0001 'x' 0009 00 'X'")
    publisher = world.connect("tell")
    world.receive(publisher, "32 06 0001 'a' 0001 'A'", "34 06 0001 'a' 0002 'B'", "62 02 0002")
    link.taken()
    assert world.depth(SUBSCRIBER_QUEUE) == 2
    purge(world, "self")
    assert (link.taken(), link.is_open) == (written("E0 01 98"), False)
    world.lose(link)
    assert watcher.taken() == written("30 06 0001 'w' 'bye'")
    assert world.sessions.get("self") is None
    assert world.depth(SUBSCRIBER_QUEUE) == 0
    assert [key for key, _ in world.engine.states(StateKind.SESSION)] == [b"hear", b"tell"]
    assert world.engine.states(StateKind.SESSION_INCOMING) == []
    assert world.engine.states(StateKind.SESSION_OUTGOING) == []
    assert world.registrations() == 1, "that of the watcher"
    dropped = [note for note in world.notes if note[0] == NoteKind.DROPPED]
    assert [note[-1] for note in dropped] == ["the session ended", "the session ended"]


def test_what_waits_for_a_session_that_is_ended_offline_is_destroyed_and_audited(world: World) -> None:
    link = world.connect("self", flags="00")
    world.receive(link, "82 06 0001 0001 'a' 01")
    world.lose(link)
    world.receive(world.connect("tell"), "32 06 0001 'a' 0001 'A'")
    purge(world, "self")
    assert (world.sessions.get("self"), world.depth(SUBSCRIBER_QUEUE)) == (None, 0)
    assert [note[-1] for note in world.notes if note[0] == NoteKind.DROPPED] == ["the session ended"]
    again = FakeLink()
    world.receive(again, "10 10 0004 'MQTT' 04 00 0000 0004 'self'")
    assert again.taken() == written("20 02 0000"), "no session is present"


def test_a_session_that_is_ended_while_its_connect_waits_for_the_disk_is_gone(new_world: NewWorld) -> None:
    world = new_world()
    world.commits_are_held = True
    link = FakeLink()
    world.receive(link, "10 10 0004 'MQTT' 04 00 0000 0004 'self'")
    assert link.sent == b""
    answer = CommandServer(world.engine).execute("PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('self')")
    assert answer.succeeded
    world.commits_are_held = False
    world.run()
    world.lose(link)
    assert (world.sessions.get("self"), link.is_open) == (None, False)
    assert world.engine.states(StateKind.SESSION) == []


@pytest.mark.parametrize("restart", [False, True], ids=["at once", "after a restart"])
def test_an_ended_session_stays_ended(new_world: NewWorld, restart: bool) -> None:
    world = new_world()
    link = world.connect("self", flags="00")
    purge(world, "self")
    world.lose(link)
    if restart:
        world = new_world()
    assert list(world.sessions) == []

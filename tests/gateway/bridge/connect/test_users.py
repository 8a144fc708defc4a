"""Users on the bridge: CONNACK after the check of a password, whose a session is, what a change of the rules does."""

from collections import deque
from itertools import pairwise
from pathlib import Path

import ormsgpack
import pytest

from gateway.access.access_list import AccessList
from gateway.access.hashing import Check, Done, HashingThreads
from gateway.access.login import Login
from gateway.access.refused_logins import LoginRefusal
from gateway.access.users import Users
from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.sessions.sessions import ClientSession
from gateway.limits.owner import Owner
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.unit_of_work import StateKind
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written

HASH = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
USERS = Users.parse(f"ann:{HASH}\nbob:{HASH}\n", "users")
ACCEPTED, PRESENT = b"\x20\x02\x00\x00", b"\x20\x02\x01\x00"
BUSY, WRONG, NOT_AUTHORIZED = b"\x20\x02\x00\x03", b"\x20\x02\x00\x04", b"\x20\x02\x00\x05"


class HeldChecks(HashingThreads):
    """Checks that wait until the test lets them run."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Check, Done]] = deque()
        self.is_full = False

    def submit(self, check: Check, done: Done, *, origin: bytes = b"", user: str = "", is_lately: bool = False) -> bool:
        if not self.is_full:
            self.waiting.append((check, done))
        return not self.is_full

    def run(self) -> None:
        while self.waiting:
            check, done = self.waiting.popleft()
            done(check())


class Guarded:
    """A world with users ann and bob, both with the password `password`, and anonymous clients."""

    def __init__(self, new_world: NewWorld) -> None:
        self._new_world = new_world
        self.checks = HeldChecks()
        self.login = Login(USERS, threads=self.checks)
        self.world: World = new_world(login=self.login)

    def restart(self, folder: Path | None = None, **options: object) -> None:
        arguments = () if folder is None else (folder,)
        self.world = self._new_world(*arguments, login=self.login, **options)

    def connect(
        self, client: str, user: str, password: str = "password", *, flags: str = "C0", will: str = ""
    ) -> FakeLink:
        """CONNECT of a client identifier of four characters and a user of three; it is not decided yet."""
        link = FakeLink()
        body = f"0004 'MQTT' 04 {flags} 0000 0004 '{client}' {will} 0003 '{user}' {len(password):04X} '{password}'"
        length = len(bytes.fromhex("".join(part for part in body.split("'")[::2]))) + sum(
            map(len, body.split("'")[1::2])
        )
        self.world.receive(link, f"10 {length:02X} {body}")
        return link

    def enter(self, client: str, user: str, **options: str) -> FakeLink:
        """A link that is let in."""
        link = self.connect(client, user, **options)
        self.checks.run()
        self.world.run()
        assert link.taken()[:2] + b"\0\0" == ACCEPTED, link.reason
        return link


@pytest.fixture
def guarded(new_world: NewWorld) -> Guarded:
    return Guarded(new_world)


def test_connack_waits_for_the_check_of_the_password_and_nothing_is_read_meanwhile(guarded: Guarded) -> None:
    link = guarded.connect("self", "ann")
    assert (link.sent, link.is_open, link.is_read()) == (b"", True, False)
    assert guarded.world.engine.states(StateKind.SESSION) == []
    guarded.checks.run()
    guarded.world.run()
    assert (link.taken(), link.is_read()) == (ACCEPTED, True)
    assert link.session is not None
    assert link.session.user == "ann"


def test_what_a_client_sends_behind_its_connect_is_carried_out_after_the_check(guarded: Guarded) -> None:
    link = guarded.connect("self", "ann")
    guarded.world.receive(link, "32 06 0001 'a' 0007 'A'")
    assert link.sent == b""
    guarded.checks.run()
    guarded.world.run()
    assert link.taken() == ACCEPTED + b"\x40\x02\x00\x07"


@pytest.mark.parametrize(("user", "password"), [("ann", "passwort"), ("eve", "password"), ("ann", "")])
def test_a_wrong_name_or_password_is_return_code_4_and_leaves_no_trace(
    guarded: Guarded, user: str, password: str
) -> None:
    link = guarded.connect("self", user, password)
    guarded.world.receive(link, "32 06 0001 'a' 0007 'A'")
    guarded.checks.run()
    guarded.world.run()
    assert (link.taken(), link.is_open) == (WRONG, False)
    assert guarded.world.engine.states(StateKind.SESSION) == []
    assert link.reason is not None
    assert "passwort" not in link.reason


def test_a_client_without_a_name_is_return_code_5_where_users_are_asked_for(new_world: NewWorld) -> None:
    world = new_world(login=Login(USERS, allows_anonymous=False, threads=HeldChecks()))
    link = FakeLink()
    world.receive(link, "10 10 0004 'MQTT' 04 02 0000 0004 'self'")
    assert (link.taken(), link.is_open) == (NOT_AUTHORIZED, False)


def test_too_many_logins_at_once_are_return_code_3(guarded: Guarded) -> None:
    guarded.checks.is_full = True
    link = guarded.connect("self", "ann")
    assert (link.taken(), link.is_open) == (BUSY, False)


def test_a_link_that_closed_during_the_check_gets_no_session(guarded: Guarded) -> None:
    link = guarded.connect("self", "ann")
    guarded.world.lose(link)
    guarded.checks.run()
    guarded.world.run()
    assert link.sent == b""
    assert guarded.world.engine.states(StateKind.SESSION) == []


def test_a_gateway_that_stops_during_the_check_makes_no_session(guarded: Guarded) -> None:
    link = guarded.connect("self", "ann")
    guarded.world.bridge.is_stopping = True
    guarded.checks.run()
    guarded.world.run()
    assert link.sent == b""
    assert guarded.world.engine.states(StateKind.SESSION) == []


# -- whose a session is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", ["C0", "C2"], ids=["persistent", "clean"])
def test_another_user_takes_neither_the_link_nor_the_session(guarded: Guarded, flags: str) -> None:
    first = guarded.enter("self", "ann", flags=flags)
    second = guarded.connect("self", "bob", flags="C2")
    guarded.checks.run()
    guarded.world.run()
    assert (second.taken(), second.is_open) == (NOT_AUTHORIZED, False)
    assert first.is_open
    nobody = FakeLink()
    guarded.world.receive(nobody, "10 10 0004 'MQTT' 04 02 0000 0004 'self'")
    assert (nobody.taken(), nobody.is_open) == (NOT_AUTHORIZED, False)
    third = guarded.enter("self", "ann", flags="C0")
    assert (first.is_open, third.is_open) == (False, True)


def test_a_clean_session_that_has_ended_is_nobodys_any_more(guarded: Guarded) -> None:
    link = guarded.enter("self", "ann", flags="C2")
    guarded.world.receive(link, "E0 00")
    assert guarded.enter("self", "bob").is_open


def test_the_user_of_a_session_is_known_after_a_restart(guarded: Guarded) -> None:
    link = guarded.enter("self", "ann")
    guarded.world.receive(link, "E0 00")
    guarded.restart()
    (session,) = guarded.world.sessions
    assert session.user == "ann"
    refused = guarded.connect("self", "bob")
    guarded.checks.run()
    guarded.world.run()
    assert refused.taken() == NOT_AUTHORIZED
    back = guarded.connect("self", "ann")
    guarded.world.run()
    assert back.taken() == PRESENT


def test_a_session_from_the_time_before_users_becomes_the_first_users_who_takes_it(guarded: Guarded) -> None:
    old = guarded.world.connect("self", flags="00")
    guarded.world.receive(old, "E0 00")
    link = guarded.connect("self", "ann")
    guarded.checks.run()
    guarded.world.run()
    assert link.taken() == PRESENT
    refused = guarded.connect("self", "bob")
    guarded.checks.run()
    guarded.world.run()
    assert refused.taken() == NOT_AUTHORIZED


def test_a_row_of_version_1_is_a_session_without_a_user(new_world: NewWorld) -> None:
    world = new_world()
    unit = world.engine.begin()
    row = [1, 77, 4, False, False, None, {"a/#": 1}]
    unit.set_state(StateKind.SESSION, b"self", ormsgpack.packb(row))
    world.engine.submit(unit)
    world = new_world()
    (session,) = world.sessions
    assert (session.client, session.user, session.epoch, session.subscriptions) == ("self", None, 77, {"a/#": 1})
    link = FakeLink()
    world.receive(link, "10 10 0004 'MQTT' 04 00 0000 0004 'self'")
    assert link.taken() == PRESENT


def test_the_will_of_a_killed_gateway_is_published_by_the_rules_of_its_user(guarded: Guarded, tmp_path: Path) -> None:
    rules = AccessList.parse("[[rule]]\nuser = 'ann'\npublish = 'u/%u'\n[[rule]]\nsubscribe = '#'\n", "rules")
    guarded.restart(access_list=AccessList.parse("[[rule]]\npublish = 'u/%u'\nsubscribe = '#'\n", "rules"))
    watcher = guarded.enter("hear", "bob")
    guarded.world.receive(watcher, "82 06 0001 0001 '#' 00")
    watcher.taken()
    guarded.enter("ann1", "ann", flags="C4", will="0005 'u/ann' 0003 'sad'")
    guarded.enter("bob1", "bob", flags="C4", will="0005 'u/bob' 0003 'sad'")
    guarded.restart(guarded.world.kill(tmp_path / "killed"), access_list=rules)
    back = guarded.connect("hear", "bob")
    guarded.world.run()
    assert back.taken() == PRESENT + b"\x30\x0a\x00\x05u/annsad"
    assert guarded.world.depth("SYSTEM.BROKER.DEFAULT.STREAM") == 0


@pytest.mark.parametrize("topic", ["u/bob", "u/ann/x"])
def test_a_client_whose_will_its_user_may_not_publish_is_return_code_5_and_the_session_goes_on(
    guarded: Guarded, topic: str
) -> None:
    guarded.restart(access_list=AccessList.parse("[[rule]]\npublish = 'u/%u'\nsubscribe = '#'\n", "rules"))
    first = guarded.enter("ann1", "ann", flags="C4", will="0005 'u/ann' 0003 'sad'")
    second = guarded.connect("ann1", "ann", flags="C4", will=f"{len(topic):04X} '{topic}' 0003 'sad'")
    guarded.checks.run()
    guarded.world.run()
    assert (second.taken(), second.is_open, first.is_open) == (NOT_AUTHORIZED, False, True)
    assert guarded.login.refused.totals == {LoginRefusal.NOT_ALLOWED: 1}


def test_at_level_5_a_will_that_is_not_allowed_is_reason_code_87(new_world: NewWorld) -> None:
    world = new_world(publish=("a/#",))
    link = FakeLink()
    world.receive(link, "10 1A 0004 'MQTT' 05 06 0000 00 0004 'self' 00 0003 'w/t' 0001 'W'")
    assert (link.taken(), link.is_open) == (written("20 03 00 87 00"), False)
    assert list(world.sessions) == []


# -- changes -----------------------------------------------------------------------------------------------------------


def test_users_whose_line_has_changed_are_disconnected_and_the_others_stay(guarded: Guarded) -> None:
    ann, bob, nobody = guarded.enter("ann1", "ann"), guarded.enter("bob1", "bob"), guarded.world.connect("none")
    guarded.login.replace(Users.parse(f"bob:{HASH}\n", "users"), {"ann"})
    guarded.world.bridge.users_changed(frozenset({"ann"}))
    assert (ann.is_open, bob.is_open, nobody.is_open) == (False, True, True)


def test_what_a_group_shares_waits_while_its_only_member_may_not_have_it_and_comes_when_it_may(
    guarded: Guarded,
) -> None:
    everything = AccessList.parse("[[rule]]\npublish = '#'\nsubscribe = '#'\n", "rules")
    guarded.restart(access_list=everything)
    world = guarded.world
    member, publisher = FakeLink(), guarded.enter("ann1", "ann")
    world.receive(member, "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'")
    world.receive(member, "82 10 0001 00 000A '$share/g/a' 00")
    member.taken()
    world.access.access_list = AccessList.parse("[[rule]]\npublish = '#'\nsubscribe = 'b'\n", "rules")
    world.bridge.access_changed()
    world.receive(publisher, "32 06 0001 'a' 0001 '1'")
    assert member.taken() == b""
    world.access.access_list = everything
    world.bridge.access_changed()
    world.run()
    assert member.taken() == b"\x30\x05\x00\x01a\x001"


def test_other_rules_hold_at_once_for_publish_and_for_what_is_delivered(guarded: Guarded) -> None:
    rules = AccessList.parse("[[rule]]\npublish = '#'\nsubscribe = '#'\n", "rules")
    guarded.restart(access_list=rules)
    world = guarded.world
    link, watcher = guarded.enter("ann1", "ann"), guarded.enter("hear", "bob")
    world.receive(watcher, "82 0A 0001 0001 'a' 00 0001 'b' 00")
    world.receive(link, "30 04 0001 'a' '1'")
    watcher.taken()
    world.access.access_list = AccessList.parse("[[rule]]\npublish = ['a', 'b']\nsubscribe = 'b'\n", "rules")
    world.bridge.access_changed()
    world.receive(link, "30 04 0001 'a' '2'", "30 04 0001 'b' '3'")
    assert watcher.taken() == b"\x30\x04\x00\x01b3"
    assert link.is_open
    world.receive(link, "30 04 0001 'c' '4'")
    assert not link.is_open


@pytest.mark.parametrize("turns_between", [0, 1])
def test_many_sessions_take_up_other_rules_in_shares_and_each_takes_up_the_last_ones(
    world: World, monkeypatch: pytest.MonkeyPatch, turns_between: int
) -> None:
    for number in range(1_200):
        world.sessions.create(f"s{number}", level=4, clean_session=False)
    taken_up: list[str] = []
    monkeypatch.setattr(ClientSession, "forget_access", lambda session: taken_up.append(session.client))
    world.bridge.access_changed()
    for _ in range(turns_between):
        world.turn()
    before = len(taken_up)
    assert before == 500 * (1 + turns_between)
    world.bridge.access_changed()
    counts = [before]
    for _ in range(5):
        world.turn()
        counts.append(len(taken_up))
    assert max(later - earlier for earlier, later in pairwise(counts)) == 500
    assert {f"s{number}" for number in range(1_200)} <= set(taken_up[before:])


# -- client identifiers of others, and the trail -------------------------------------------------------------------


def squat(guarded: Guarded) -> None:
    """Before identifiers were reserved, bob took the identifier `ann:`, and left a session under it."""
    guarded.login = Login(USERS, threads=guarded.checks)
    guarded.restart()
    guarded.world.bridge.lost(guarded.enter("ann:", "bob"))
    guarded.world.run()


def reserve(guarded: Guarded) -> None:
    guarded.login = Login(USERS, threads=guarded.checks, binding="reserved")
    guarded.restart()


def test_nobody_takes_the_identifier_of_another_user_and_a_fleet_may_share_one(guarded: Guarded) -> None:
    reserve(guarded)
    for client, user in (("ann:", "bob"), ("ann:", "ann"), ("pump", "bob"), ("tank", "bob")):
        link = guarded.connect(client, user)
        guarded.checks.run()
        guarded.world.run()
        assert link.taken() == (ACCEPTED if (client, user) != ("ann:", "bob") else b"\x20\x02\x00\x02"), client


def test_an_operator_frees_an_identifier_that_another_user_has_taken(guarded: Guarded) -> None:
    squat(guarded)
    reserve(guarded)
    refused = guarded.connect("ann:", "ann")
    guarded.checks.run()
    guarded.world.run()
    assert refused.taken() == NOT_AUTHORIZED
    assert "'rfhbridge sessions expire' frees it" in refused.reason
    answer = CommandServer(guarded.world.engine).execute("PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('ann:')")
    guarded.world.run()
    assert answer.succeeded
    squatter = guarded.connect("ann:", "bob")
    guarded.checks.run()
    guarded.world.run()
    assert squatter.taken() == b"\x20\x02\x00\x02"
    guarded.enter("ann:", "ann")


def test_a_user_who_has_a_session_is_known_whoever_named_it(guarded: Guarded) -> None:
    """A token's user is in no file; its identifiers are its own as long as it has a session."""
    guarded.login = Login(USERS, threads=guarded.checks, binding="reserved")
    guarded.restart()
    link = guarded.enter("eve:", "bob")
    assert link.session is not None
    guarded.world.sessions.give(link.session, Owner("eve"))
    squatter = guarded.connect("eve:", "ann")
    guarded.checks.run()
    guarded.world.run()
    assert squatter.taken() == b"\x20\x02\x00\x02"


def test_refused_logins_are_in_the_trail_once_in_five_minutes(guarded: Guarded) -> None:
    for _ in range(40):
        guarded.connect("self", "ann", "wrong")
    guarded.connect("self", "eve", "wrong")
    guarded.checks.run()
    guarded.world.bridge.tick()
    guarded.world.run()
    assert [note for note in guarded.world.notes if note[0] == NoteKind.LOGINS_REFUSED] == []
    guarded.world.now_us += 300_000_000
    guarded.world.bridge.tick()
    guarded.world.run()
    notes = [note for note in guarded.world.notes if note[0] == NoteKind.LOGINS_REFUSED]
    assert [(note[2], note[3], note[5]) for note in notes] == [
        ("wrong_credentials", "known", 40),
        ("wrong_credentials", "unknown", 1),
    ]


def test_a_kill_loses_the_refused_logins_of_five_seconds_at_most(guarded: Guarded, tmp_path: Path) -> None:
    for _ in range(40):
        guarded.connect("self", "ann", "wrong")
    guarded.checks.run()
    guarded.world.now_us += 5_000_000
    guarded.world.bridge.tick()
    guarded.world.run()
    guarded.connect("self", "eve", "wrong")
    guarded.checks.run()
    killed = guarded.world.kill(tmp_path / "killed")
    after = World(killed)
    after.bridge.tick()
    after.run()
    notes = [note for note in after.notes if note[0] == NoteKind.LOGINS_REFUSED]
    assert [(note[3], note[5]) for note in notes] == [("known", 40)]
    after.close()
    again = World(killed)
    again.bridge.tick()
    again.run()
    assert [note for note in again.notes if note[0] == NoteKind.LOGINS_REFUSED] == [], "each is noted once"
    again.close()


def test_a_session_of_another_user_and_a_will_are_refused_logins_too(guarded: Guarded) -> None:
    guarded.enter("self", "ann")
    guarded.connect("self", "bob")
    guarded.checks.run()
    guarded.world.bridge.is_stopping = True
    guarded.world.bridge.tick()
    guarded.world.run()
    notes = [note for note in guarded.world.notes if note[0] == NoteKind.LOGINS_REFUSED]
    assert [(note[2], note[3], note[5]) for note in notes] == [("not_allowed", "known", 1)]

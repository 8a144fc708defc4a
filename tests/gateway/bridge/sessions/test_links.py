"""The end of a permission: a token that expires or loses its key ends the connection, and not the session."""

import pytest

from gateway.access.external_users import ExternalUser
from gateway.access.login import Login
from gateway.mqtt.reason_codes import ReasonCode
from tests.gateway.bridge.conftest import NOW_US, FakeLink, NewWorld, World, written

SECOND_US = 1_000_000
TOKEN = "eyJh.e30.AA"
#: CONNECT of level 4, persistent, and of level 5 with a session expiry of an hour; the password is a token.
LEVEL_4 = f"10 1F 0004 'MQTT' 04 C0 0000 0004 'self' 0000 000B '{TOKEN}'"
LEVEL_5 = f"10 23 0004 'MQTT' 05 40 0000 05 11 00000E10 0004 'self' 000B '{TOKEN}'"


class Issuer:
    """Vouches for ann for ten seconds from the beginning, with the key that is in use."""

    def __init__(self) -> None:
        self.fingerprint = "first"

    def check(self, _token: bytes) -> ExternalUser:
        return ExternalUser(user="ann", until_us=NOW_US + 10 * SECOND_US, fingerprint=self.fingerprint)


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def tokens(new_world: NewWorld, issuer: Issuer) -> World:
    """A world whose users have tokens."""
    return new_world(login=Login(tokens=issuer))


def connected(world: World, connect: str) -> FakeLink:
    link = FakeLink()
    world.receive(link, connect)
    assert link.session is not None, link.reason
    link.taken()
    return link


def pass_time(world: World, seconds: float) -> None:
    world.now_us += int(seconds * SECOND_US)
    world.bridge.tick()
    world.run()


@pytest.mark.parametrize(("connect", "farewell"), [(LEVEL_4, b""), (LEVEL_5, b"\xe0\x01\xa0")])
def test_a_connection_ends_with_its_token_and_the_session_stays(tokens: World, connect: str, farewell: bytes) -> None:
    link = connected(tokens, connect)
    pass_time(tokens, 9)
    assert link.is_open
    pass_time(tokens, 2)
    assert (link.is_open, link.reason) == (False, "the token has expired")
    assert link.taken() == farewell, "reason code A0, maximum connect time"
    tokens.lose(link)
    session = tokens.sessions.get("self")
    assert session is not None
    assert (session.user, session.connected) == ("ann", False)


def test_a_connection_without_a_token_does_not_end(tokens: World) -> None:
    link = tokens.connect("none")
    pass_time(tokens, 1_000_000)
    assert link.is_open


def test_a_connection_that_was_lost_is_forgotten(tokens: World) -> None:
    first = connected(tokens, LEVEL_4)
    tokens.lose(first)
    assert tokens.bridge.connected_clients.of(first) is None
    second = connected(tokens, LEVEL_4)
    client = tokens.bridge.connected_clients.of(second)
    assert client is not None
    assert (client.since_us, client.until_us) == (tokens.now_us, NOW_US + 10 * SECOND_US)


def test_a_key_that_is_taken_away_ends_the_connections_that_it_let_in(tokens: World, issuer: Issuer) -> None:
    link = connected(tokens, LEVEL_5)
    issuer.fingerprint = "second"
    other = connected(tokens, LEVEL_5.replace("self", "else"))
    nobody = tokens.connect("none")
    tokens.bridge.keys_gone(frozenset({"first"}))
    assert [each.is_open for each in (link, other, nobody)] == [False, True, True]
    assert link.taken() == written("E0 01 87")
    assert ReasonCode.NOT_AUTHORIZED == 0x87


def test_another_password_ends_no_connection_that_a_token_or_a_certificate_let_in(tokens: World) -> None:
    by_token = connected(tokens, LEVEL_4)
    by_certificate = FakeLink()
    by_certificate.certificate_user = "ann"
    tokens.receive(by_certificate, "10 10 0004 'MQTT' 04 02 0000 0004 'cert'")
    assert by_certificate.session is not None
    assert by_certificate.session.user == "ann"
    tokens.bridge.users_changed(frozenset({"ann"}))
    assert (by_token.is_open, by_certificate.is_open) == (True, True)


def test_the_will_of_a_connection_that_its_token_ends_is_published(tokens: World) -> None:
    watcher = tokens.connect("hear")
    tokens.receive(watcher, "82 06 0001 0001 '#' 00")
    watcher.taken()
    will = f"10 27 0004 'MQTT' 04 C6 0000 0004 'self' 0001 'w' 0003 'bye' 0000 000B '{TOKEN}'"
    link = connected(tokens, will)
    pass_time(tokens, 11)
    tokens.lose(link)
    assert watcher.taken() == written("30 06 0001 'w' 'bye'")

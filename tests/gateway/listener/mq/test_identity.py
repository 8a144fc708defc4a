"""Who an MQ client is."""

import asyncio
import hashlib
from ipaddress import ip_network

import pytest

from gateway.access.external_users import ExternalUser
from gateway.access.hashing import HashingThreads
from gateway.access.login import Login
from gateway.access.password_hash import PasswordHash
from gateway.access.refused_logins import UserClass
from gateway.access.refused_programs import ProgramRefusal, ProgramRefused
from gateway.access.users import Users
from gateway.listener.mq.channel_rules import EVERYBODY, ChannelRule
from gateway.listener.mq.identity import Credentials, Door, Identified, ProgramLogin, is_loopback, printable
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.rights import Rights
from mq_adapters.embedded.socket.applications import ApplicationRole, Applications
from mq_adapters.reasons import QueueManagerError, ReasonCode
from spark_audit.record import LoginProof

TOKEN = "rfhbridge_of-billing"
JWT = "eyJhbGciOiJFZERTQSJ9.e30.c2ln"
BILLING = Rights(put=("ORDERS",))
ROLES = (
    ApplicationRole(name="billing", rights=BILLING),
    ApplicationRole(name="guest", rights=Rights()),
    ApplicationRole(name="panels", rights=Rights(get=("PANELS",)), access_users=("anna", "panel-*")),
)
HASH = PasswordHash.of(b"secret of anna")
ADDRESS, PEER = "192.0.2.7", "192.0.2.7:40000"


class Issuer:
    """Knows one token."""

    def check(self, token: bytes) -> ExternalUser:
        assert token == JWT.encode()
        return ExternalUser(user="panel-9", until_us=7, fingerprint="f")


def applications(*, roles: tuple[ApplicationRole, ...] = ROLES) -> Applications:
    return Applications(roles, lambda: {"billing": hashlib.sha256(TOKEN.encode()).digest()})


def password_file() -> Users:
    return Users({"anna": HASH, "bob": HASH})


def channel(**said: str) -> Definition:
    return Definition(object_type=ObjectType.CHANNEL, name="APP", said=said)


def door(rule: ChannelRule | None = EVERYBODY, **changes: object) -> Door:
    said: dict[str, object] = {"channel": channel(MCAUSER="guest"), "rule": rule, "address": ADDRESS, "peer": PEER}
    return Door(**(said | changes))  # type: ignore[arg-type]  # a test gives what it means


def credentials(user: str = "billing", password: str = TOKEN, *, is_protected: bool = True) -> Credentials:
    return Credentials(user=user, password=password, is_protected=is_protected)


def told(shown: Credentials | None, at: Door, roles: tuple[ApplicationRole, ...] = ROLES) -> Identified:
    """Who a program is; raises the refusal."""
    results: list[Identified | QueueManagerError] = []

    async def scenario() -> None:
        login = Login(password_file(), tokens=Issuer(), threads=HashingThreads(maximum_waiting=9))
        ended = asyncio.Event()

        def done(result: Identified | QueueManagerError) -> None:
            results.append(result)
            ended.set()

        ProgramLogin(applications(roles=roles), login).identify(shown, at, lambda: True, done)
        await asyncio.wait_for(ended.wait(), 60)

    asyncio.run(scenario())
    (result,) = results
    if isinstance(result, QueueManagerError):
        raise result
    return result


def refusal(shown: Credentials | None, at: Door, roles: tuple[ApplicationRole, ...] = ROLES) -> tuple[str, str]:
    with pytest.raises(ProgramRefused) as error:
        told(shown, at, roles)
    assert error.value.reason_code == ReasonCode.MQRC_NOT_AUTHORIZED
    assert TOKEN not in str(error.value)
    return str(error.value.refusal), error.value.rule


def test_a_token_gives_its_application() -> None:
    found = told(credentials(), door())
    assert (found.application.user, found.application.rights, found.user) == ("billing", BILLING, "billing")
    assert (found.application.operator, found.proof) == (f"billing ({PEER})", LoginProof.APPLICATION_TOKEN)
    assert found.application.account == ("billing", b""), "one account for all its connections"


@pytest.mark.parametrize(
    ("user", "password"), [("billing", "wrong"), ("billing", ""), ("guest", TOKEN), ("", TOKEN), ("BILLING", TOKEN)]
)
def test_a_wrong_name_or_password_is_refused_even_where_nobody_needs_one(user: str, password: str) -> None:
    assert refusal(credentials(user, password), door()) == (ProgramRefusal.WRONG_CREDENTIALS, "")


def test_a_user_of_the_password_file_is_the_application_that_names_it() -> None:
    found = told(credentials("anna", "secret of anna"), door())
    assert (found.application.user, found.user, found.proof) == ("panels", "anna", LoginProof.PASSWORD)
    assert found.application.operator == f"panels (anna, {PEER})"
    assert found.application.account == ("panels (anna)", b"")


def test_a_user_of_a_token_is_the_application_whose_pattern_fits_until_the_token_ends() -> None:
    found = told(credentials("panel-9", JWT), door())
    assert (found.application.user, found.user, found.proof) == ("panels", "panel-9", LoginProof.TOKEN)
    assert (found.until_us, found.fingerprint) == (7, "f")


def test_a_user_whom_no_application_names_is_refused() -> None:
    assert refusal(credentials("bob", "secret of anna"), door()) == (ProgramRefusal.NOT_ALLOWED, "access_users")


@pytest.mark.parametrize(("user", "password"), [("anna", "wrong"), ("anna", ""), ("eve", "secret of anna")])
def test_a_wrong_password_of_a_user_is_refused(user: str, password: str) -> None:
    assert refusal(credentials(user, password), door()) == (ProgramRefusal.WRONG_CREDENTIALS, "")


def test_users_are_nobody_where_no_application_has_some() -> None:
    shown = credentials("anna", "secret of anna")
    assert refusal(shown, door(), ROLES[:2]) == (ProgramRefusal.WRONG_CREDENTIALS, "")


def test_a_password_in_clear_is_refused_unless_it_is_allowed() -> None:
    for plain in (credentials(is_protected=False), credentials("anna", "secret of anna", is_protected=False)):
        assert refusal(plain, door()) == (ProgramRefusal.NOT_ALLOWED, "plain_passwords")
        assert told(plain, door(plain_passwords=True)).user == plain.user


def test_without_a_password_the_channel_decides() -> None:
    found = told(None, door())
    assert (found.application.user, found.proof) == ("guest", LoginProof.CHANNEL)
    assert found.application.account == ("guest", bytes((192, 0, 2, 7)))
    assert told(None, door(certificate_counts=True)).proof is LoginProof.CERTIFICATE
    for said in ("", "nobody"):
        assert refusal(None, door(channel=channel(MCAUSER=said))) == (ProgramRefusal.NOT_ALLOWED, "MCAUSER")


ANNA_ALONE = ChannelRule(key="channel#2", name="*", users=("anna",))


@pytest.mark.parametrize("shown", [credentials(), None])
def test_a_user_whom_the_table_does_not_name_is_refused(shown: Credentials | None) -> None:
    assert refusal(shown, door(ANNA_ALONE)) == (ProgramRefusal.NOT_ALLOWED, "channel#2.users")
    assert told(credentials("anna", "secret of anna"), door(ANNA_ALONE)).user == "anna"


@pytest.mark.parametrize("shown", [credentials("anna", "wrong"), credentials(), None])
def test_an_address_or_a_channel_that_is_not_let_in_is_refused_before_any_password(shown: Credentials | None) -> None:
    elsewhere = ChannelRule(key="channel#1", name="*", networks=(ip_network("198.51.100.0/24"),))
    assert refusal(shown, door(elsewhere)) == (ProgramRefusal.NOT_ALLOWED, "channel#1.addresses")
    assert refusal(shown, door(None)) == (ProgramRefusal.NOT_ALLOWED, "channel")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (None, (UserClass.NONE, "")),
        (credentials(password="wrong"), (UserClass.KNOWN, "billing")),
        (credentials("anna", "wrong"), (UserClass.KNOWN, "anna")),
        (credentials("hunter2", ""), (UserClass.UNKNOWN, "")),
        (credentials("panel-9", JWT), (UserClass.EXTERNAL, "")),
    ],
)
def test_a_name_that_may_be_a_password_is_not_told(shown: Credentials | None, expected: tuple[UserClass, str]) -> None:
    login = Login(password_file(), tokens=Issuer())
    assert ProgramLogin(applications(), login).class_of(shown) == expected


def test_a_password_is_not_shown() -> None:
    assert TOKEN not in repr(credentials())


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1", True), ("127.3.2.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("192.0.2.1", False),
     ("::ffff:192.0.2.1", False), ("fe80::1%eth0", False), ("", False), ("somewhere", False)],
)  # fmt: skip
def test_loopback_is_this_machine_alone(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


def test_a_name_that_would_move_a_terminal_is_shown_without_that() -> None:
    assert printable("Zürich 1\n\x1b[2J\x9b") == "Zürich 1??[2J?"

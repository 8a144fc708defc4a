"""Who an MQ client is."""

import hashlib

import pytest

from gateway.listener.mq.identity import Credentials, identified, is_loopback, printable
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.rights import Rights
from mq_adapters.embedded.socket.applications import ApplicationRole, Applications
from mq_adapters.reasons import QueueManagerError, ReasonCode

TOKEN = "rfhbridge_of-billing"
BILLING = Rights(put=("ORDERS",))
APPLICATIONS = Applications(
    (ApplicationRole(name="billing", rights=BILLING), ApplicationRole(name="guest", rights=Rights())),
    lambda: {"billing": hashlib.sha256(TOKEN.encode()).digest()},
)
PEER = "192.0.2.7:40000"


def channel(**said: str) -> Definition:
    return Definition(object_type=ObjectType.CHANNEL, name="APP", said=said)


def credentials(user: str = "billing", password: str = TOKEN, *, is_protected: bool = True) -> Credentials:
    return Credentials(user=user, password=password, is_protected=is_protected)


def test_a_token_gives_its_application() -> None:
    found = identified(APPLICATIONS, channel(MCAUSER="guest"), credentials(), peer=PEER, plain_passwords=False)
    assert (found.user, found.rights, found.role) == ("billing", BILLING, "billing")
    assert found.operator == f"billing ({PEER})"


@pytest.mark.parametrize(
    ("user", "password"), [("billing", "wrong"), ("billing", ""), ("guest", TOKEN), ("", TOKEN), ("BILLING", TOKEN)]
)
def test_a_wrong_name_or_password_is_refused_even_where_nobody_needs_one(user: str, password: str) -> None:
    with pytest.raises(QueueManagerError) as error:
        identified(
            APPLICATIONS, channel(MCAUSER="guest"), credentials(user, password), peer=PEER, plain_passwords=False
        )
    assert error.value.reason_code == ReasonCode.MQRC_NOT_AUTHORIZED
    assert TOKEN not in str(error.value)


def test_a_password_in_clear_is_refused_unless_it_is_allowed() -> None:
    plain = credentials(is_protected=False)
    with pytest.raises(QueueManagerError) as error:
        identified(APPLICATIONS, channel(), plain, peer=PEER, plain_passwords=False)
    assert error.value.reason_code == ReasonCode.MQRC_NOT_AUTHORIZED
    assert identified(APPLICATIONS, channel(), plain, peer=PEER, plain_passwords=True).user == "billing"


def test_without_a_password_the_channel_decides() -> None:
    found = identified(APPLICATIONS, channel(MCAUSER="guest"), None, peer=PEER, plain_passwords=False)
    assert found.user == "guest"
    for said in ("", "nobody"):
        with pytest.raises(QueueManagerError) as error:
            identified(APPLICATIONS, channel(MCAUSER=said), None, peer=PEER, plain_passwords=False)
        assert error.value.reason_code == ReasonCode.MQRC_NOT_AUTHORIZED


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

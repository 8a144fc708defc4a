"""Users of the password file as MQ programs, and channels that only some users and addresses may use."""

import shutil
import time
from collections.abc import Callable, Iterator

import jwt
import pytest

from gateway.access.password_hash import PasswordHash
from mq_adapters.client_channel.identification import UserIdData
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.client_channel.verbs import Mqconn
from mq_adapters.reasons import ReasonCode
from tests.end_to_end.mq_clients.house import PASSWORD, PATIENCE_S, TOKEN, House
from tests.end_to_end.mq_clients.raw_client import RawClient, call, of_conversation
from tests.gateway.access.jwt_vectors import ec_key

Java = Callable[..., list[str]]
REFUSED = ReasonCode.MQRC_NOT_AUTHORIZED
APP = "APP.SVRCONN"


@pytest.fixture
def anna(house: House) -> Iterator[RawClient]:
    with RawClient(house.port) as client:
        yield client.connect(user="anna", password=PASSWORD)


def test_ibms_client_connects_as_a_user_of_the_password_file(house: House, java: Java) -> None:
    assert java("Jms", house.port, APP, "anna", PASSWORD, "transacted") == [
        "transacted: after rollback true",
        "transacted: kept false true 2",
        "transacted: after commit true",
    ]
    (said,) = java("Jms", house.port, APP, "anna", "wrong", "transacted")
    assert "2035" in said
    (said,) = java("Jms", house.guarded_port, APP, "billing", TOKEN, "transacted")
    assert "2035" in said


@pytest.mark.parametrize(
    ("port", "channel", "user", "password", "reason_code"),
    [
        ("port", APP, "anna", PASSWORD, 0),
        ("port", APP, "anna", TOKEN, REFUSED),
        ("port", APP, "eve", PASSWORD, REFUSED),
        ("port", APP, "panels", PASSWORD, REFUSED),
        ("guarded_port", APP, "anna", PASSWORD, 0),
        ("guarded_port", APP, "billing", TOKEN, REFUSED),
        ("guarded_port", "QUEUED", "", "", REFUSED),
        ("guarded_port", "FEW", "anna", PASSWORD, REFUSED),
        ("port", "QUEUED", "", "", 0),
    ],
)
def test_a_channel_lets_in_whom_its_table_names(
    house: House, port: str, channel: str, user: str, password: str, reason_code: int
) -> None:
    with RawClient(getattr(house, port)) as client:
        client.negotiate(channel)
        assert client.log_in(user, password) == reason_code


def test_the_log_says_which_table_refuses(house: House) -> None:
    with RawClient(house.guarded_port) as client:
        client.negotiate("QUEUED")
        client.log_in()
    line = house.gateway.wait_for_log("program refused", listener="guarded", channel="QUEUED")
    assert "name the address in addresses of this table" in line["reason"]


def test_a_channel_that_is_closed_to_an_address_runs_no_instance_for_it(house: House) -> None:
    with RawClient(house.guarded_port) as stranger:
        stranger.negotiate("FEW")
        with RawClient(house.port) as client:
            client.connect(channel="FEW")


def test_a_user_who_is_taken_out_of_the_password_file_is_disconnected(house: House, anna: RawClient) -> None:
    path = house.gateway.data.parent / "users"
    kept = path.with_name("kept")
    shutil.copy2(path, kept)
    path.write_text(f"bob:{PasswordHash.of(b'other').text}\n")
    try:
        anna.end()
        house.gateway.wait_for_log(
            "connection closed", channel=APP, reason="the password of its user has changed or gone"
        )
    finally:
        shutil.copy2(kept, path)
        path.touch()
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with RawClient(house.port) as client:
            client.negotiate()
            if client.log_in("anna", PASSWORD) == 0:
                return
        time.sleep(1)  # the log has room for twenty refusals a minute, and other tests of this gateway read it
    raise AssertionError("anna is not let in again")


def test_a_password_is_checked_while_others_are_served(house: House) -> None:
    with RawClient(house.port) as waiting, RawClient(house.port) as client:
        waiting.negotiate()
        waiting.send(of_conversation(SegmentType.USERID_DATA, UserIdData(user="ROOT", long_user="root")))
        waiting.show("anna", "wrong")
        waiting.expect(SegmentType.STATUS_DATA)
        waiting.send(call(SegmentType.MQCONN, Mqconn(appl_name="raw")))
        client.connect()
        assert waiting.answer(SegmentType.MQCONN)[0].reason_code == REFUSED


@pytest.mark.parametrize(("user", "reason_code"), [("anna", 0), ("jwt", 0), ("eve", REFUSED)])
def test_a_json_web_token_is_a_password_until_it_ends(house: House, user: str, reason_code: int) -> None:
    token = jwt.encode({"sub": "anna", "exp": int(time.time()) + 3}, ec_key(), "ES256")
    with RawClient(house.port) as client:
        client.negotiate()
        assert client.log_in(user, token) == reason_code
        if reason_code == 0:
            client.end()
            house.gateway.wait_for_log("connection closed", reason="the token of its user has expired")

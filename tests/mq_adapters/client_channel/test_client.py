"""A socket as a client sees it: its bytes beside those of IBM's client, and queue managers that answer anything."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.client_channel.attributes import MqinqRequest
from mq_adapters.client_channel.client import ClientConnection, ClientPhase
from mq_adapters.client_channel.client_events import (
    AuthenticationAnswered,
    ClientEvent,
    Ended,
    HeartbeatAnswered,
    InitialDataAnswered,
    Replied,
)
from mq_adapters.client_channel.errors import StatusCode, UsageError
from mq_adapters.client_channel.events import HeartbeatAsked, Violated
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.identification import ConAuthInfo, UserIdData
from mq_adapters.client_channel.initial_data import InitialData
from mq_adapters.client_channel.message_descriptors import PLAIN_MQMD
from mq_adapters.client_channel.parameters import NOTHING
from mq_adapters.client_channel.segments import ByteOrder, SegmentReader, SegmentType
from mq_adapters.client_channel.server import ServerConnection
from mq_adapters.client_channel.structures import Fopa, Mqgmo, Mqod, Mqpmo
from mq_adapters.client_channel.verbs import (
    Mqclose,
    Mqconn,
    MqgetReply,
    MqgetRequest,
    Mqopen,
    MqputRequest,
    read_request,
)
from tests.every_case import for_every
from tests.mq_adapters.client_channel.test_server import api, tsh, tshc, tshm

_CAPTURED: Final = {
    each["name"]: bytes.fromhex(each["bytes"])
    for each in tomllib.loads(Path(__file__).with_name("captured.toml").read_text())["segment"]
}
_OF_JAVA: Final = ", classes for Java"
OFFER: Final = InitialData(
    level=13, maximum_message_length=1_000_000, channel_name="APP.SVRCONN", conversations_per_socket=1
)
MQGET: Final = MqgetRequest(message_descriptor=PLAIN_MQMD, get_message_options=Mqgmo(version=3), buffer_length=100)
STATUS, HEARTBEAT, INITIAL_DATA = 0x05, 0x09, 0x01


def answered(**changes: Any) -> bytes:
    """INITIAL_DATA of a queue manager."""
    return tsh(INITIAL_DATA, 0x31, replace(OFFER, queue_manager_name="RFHB", **changes).write(ByteOrder.BIG_ENDIAN))


def opened(**changes: Any) -> ClientConnection:
    connection = ClientConnection(OFFER)
    connection.begin()
    (event,) = connection.receive(answered(**changes))
    assert isinstance(event, InitialDataAnswered)
    return connection


def connected(**changes: Any) -> ClientConnection:
    """A socket whose MQCONN was answered, so that longer segments may come."""
    connection = opened(**changes)
    connection.call(SegmentType.MQCONN, Mqconn(tail=b"FCNO"))
    (event,) = connection.receive(reply(connection, SegmentType.MQCONN, Mqconn().write(ByteOrder.BIG_ENDIAN)))
    assert isinstance(event, Replied)
    return connection


def reply(connection: ClientConnection, verb: SegmentType, body: bytes = b"", **header: int) -> bytes:
    segment = tshm if connection.answer.conversations_per_socket else tsh
    data: bytes = segment(verb + 0x10, flags=0x30, body=api(**header) + body)
    return data


def got(data: bytes, length: int) -> bytes:
    """The reply to MQGET, behind its header."""
    made = MqgetReply(message_descriptor=PLAIN_MQMD, get_message_options=MQGET.get_message_options, data_length=length)
    return replace(made, data=data).write(ByteOrder.BIG_ENDIAN)


def the_violation(connection: ClientConnection, data: bytes) -> StatusCode:
    event = connection.receive(data)[-1]
    assert isinstance(event, Violated), event
    assert connection.is_closed
    return event.error.status_code


# -- bytes -------------------------------------------------------------------------------------------------------------


def _read(name: str) -> Any:
    """The parameters of a captured call."""
    (segment,) = SegmentReader().feed(_CAPTURED[name + _OF_JAVA])
    return read_request(segment.type, BodyReader(segment.body, segment.byte_order, 16))


def _call(name: str, verb: SegmentType, *, handle: int = 0) -> bytes:
    return connected().call(verb, _read(name), handle=handle)


_WRITTEN: Final = {
    "MQOPEN type 5": lambda: _call("MQOPEN type 5", SegmentType.MQOPEN),
    "MQCLOSE": lambda: _call("MQCLOSE", SegmentType.MQCLOSE, handle=2),
    "MQPUT MQMD v2": lambda: _call("MQPUT MQMD v2", SegmentType.MQPUT, handle=6),
    "MQGET MQMD v2 GMO v4": lambda: _call("MQGET MQMD v2 GMO v4", SegmentType.MQGET, handle=6),
    "MQCMIT": lambda: _call("MQCMIT", SegmentType.MQCMIT),
    "MQBACK": lambda: _call("MQBACK", SegmentType.MQBACK),
    "MQDISC": lambda: _call("MQDISC", SegmentType.MQDISC),
    "HEARTBEAT": lambda: connected().heartbeat(),
    "SOCKET_ACTION 20 flags 38": lambda: connected().goodbye(),
    "USERID_DATA": lambda: opened().assert_user(UserIdData(user="ROOT", long_user="root")),
}


@for_every(list(_WRITTEN))
def test_a_segment_is_the_one_that_ibms_client_sends(name: str) -> None:
    assert without_filling(_WRITTEN[name]()) == without_filling(_CAPTURED[name + _OF_JAVA])


def without_filling(data: bytes) -> bytes:
    """A text that is empty may be zeros or blanks."""
    return data.replace(b" ", b"\0")


def test_the_first_segment_differs_only_in_what_is_announced() -> None:
    captured = _CAPTURED["INITIAL_DATA" + _OF_JAVA]
    (segment,) = SegmentReader().feed(captured)
    offer = InitialData.read(BodyReader(segment.body, segment.byte_order))
    assert ClientConnection(offer).begin() == captured


def test_credentials_are_filled_up_as_by_ibms_client() -> None:
    shown = ConAuthInfo(user=b"alice", password=b"secret")
    assert opened().authenticate(shown) == _CAPTURED["CONAUTH_INFO, classes for JMS"]


def test_a_mqinq_says_how_long_its_reply_is() -> None:
    asked = MqinqRequest(selectors=(31, 2015), int_attr_count=1, char_attr_length=48)
    data = connected().call(SegmentType.MQINQ, asked)
    reply_bytes = 36 + 16 + 12 + 2 * 4 + 4 + 48
    assert int.from_bytes(data[36:40], "big") == reply_bytes


# -- with our own server -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conversations", [0, 1])
def test_the_two_halves_understand_each_other(conversations: int) -> None:
    client, server = ClientConnection(OFFER), ServerConnection()
    (offered,) = server.receive(client.begin())
    answer = replace(OFFER, conversations_per_socket=conversations, transmission_size=2_048)
    (event,) = client.receive(server.accept(answer))
    assert event == InitialDataAnswered(answer)
    assert offered.offer == OFFER  # type: ignore[union-attr]
    assert len(server.receive(client.assert_user(UserIdData(user="ROOT")))) == 1
    (_asked,) = server.receive(client.authenticate(ConAuthInfo(user=b"a", password=b"b")))
    assert client.receive(server.answer_authentication(1)) == [AuthenticationAnswered()]
    (mqconn,) = server.receive(client.call(SegmentType.MQCONN, Mqconn(q_mgr_name="RFHB", tail=b"FCNO")))
    (replied,) = client.receive(server.reply(mqconn, mqconn.parameters))  # type: ignore[arg-type,union-attr]
    assert isinstance(replied, Replied)
    put = MqputRequest(message_descriptor=PLAIN_MQMD, put_message_options=Mqpmo(), data=b"x" * 10_000)
    (call,) = server.receive(client.call(SegmentType.MQPUT, put, handle=7))
    assert (call.parameters, call.header.object_handle) == (put, 7)  # type: ignore[union-attr]
    (refused,) = client.receive(server.fail(call, 2053))  # type: ignore[arg-type]
    assert (refused.header.reason_code, refused.parameters) == (2053, NOTHING)  # type: ignore[union-attr]
    get = replace(MQGET, buffer_length=50_000)
    (call,) = server.receive(client.call(SegmentType.MQGET, get, handle=7))
    long = MqgetReply(message_descriptor=PLAIN_MQMD, get_message_options=Mqgmo(version=3), data_length=40_000)
    (replied,) = client.receive(server.reply(call, replace(long, data=b"y" * 40_000)))  # type: ignore[arg-type]
    assert replied.parameters.data == b"y" * 40_000  # type: ignore[union-attr]
    assert [type(each) for each in client.receive(server.heartbeat())] == [HeartbeatAsked]
    assert server.receive(client.heartbeat())
    assert server.receive(client.goodbye())
    assert server.is_closed
    assert client.is_closed


# -- hostile queue managers --------------------------------------------------------------------------------------------


@for_every(
    {
        "a level beyond the offer": {"level": 14},
        "a level without a heartbeat": {"level": 3},
        "more conversations": {"conversations_per_socket": 2},
        "longer messages": {"maximum_message_length": 1_000_001},
        "longer segments": {"transmission_size": 32_749},
        "segments without room": {"transmission_size": 36},
    }
)
def test_an_answer_beyond_the_offer_ends_the_connection(changes: dict[str, int]) -> None:
    connection = ClientConnection(OFFER)
    connection.begin()
    assert the_violation(connection, answered(**changes)) is StatusCode.NEGOTIATION_FAILED


@pytest.mark.parametrize("status_code", [StatusCode.NO_CHANNEL, StatusCode.CIPHER_SPEC])
def test_a_refusal_says_why(status_code: StatusCode) -> None:
    connection = ClientConnection(OFFER)
    connection.begin()
    body = (8).to_bytes(4, "big") + int(status_code).to_bytes(4, "big")
    (event,) = connection.receive(tsh(STATUS, 0x3A, body))
    assert isinstance(event, Ended)
    assert (event.status.code, connection.phase) == (status_code, ClientPhase.CLOSED)


def test_the_queue_manager_ends_the_connection_during_a_call() -> None:
    connection = connected()
    connection.call(SegmentType.MQCMIT)
    body = (8).to_bytes(4, "big") + (5).to_bytes(4, "big")
    (event,) = connection.receive(tshc(STATUS, 0x3A, body))
    assert isinstance(event, Ended)
    with pytest.raises(UsageError):
        connection.call(SegmentType.MQBACK)


@for_every(
    {
        "a reply to nothing": (None, lambda each: reply(each, SegmentType.MQCMIT)),
        "a reply to another call": (SegmentType.MQCMIT, lambda each: reply(each, SegmentType.MQBACK)),
        "of another conversation": (SegmentType.MQCMIT, lambda _: tshm(0x9A, api(), of=3)),
        "in the form of the socket": (SegmentType.MQCMIT, lambda _: tshc(0x9A, 0x30, api())),
        "in the form without numbers": (SegmentType.MQCMIT, lambda _: tsh(0x9A, 0x30, api())),
        "a message for a listener": (SegmentType.MQCMIT, lambda _: tshm(0x0D, bytes(100))),
        "without a header": (SegmentType.MQCMIT, lambda _: tshm(0x9A, bytes(15))),
        "no segment at all": (SegmentType.MQCMIT, lambda _: b"HTTP/1.1 400 Bad Request"),
        "a segment that is too long": (SegmentType.MQCMIT, lambda _: b"TSHM" + (32_749).to_bytes(4, "big")),
        "a verdict that nobody asked for": (SegmentType.MQCMIT, lambda _: tshm(STATUS)),
    }
)
def test_what_does_not_answer_the_call_ends_the_connection(case: tuple[SegmentType | None, Any]) -> None:
    verb, made = case
    connection = connected()
    if verb is not None:
        connection.call(verb)
    assert the_violation(connection, made(connection)) in set(StatusCode)


@for_every(
    {
        "fewer bytes than it says": (b"x" * 10, 50),
        "none of them": (b"", 1),
        "more bytes than it says": (b"x" * 50, 10),
        "a negative length": (b"", -1),
        "more than there is room for": (b"x" * 104, 104),
    }
)
def test_a_message_whose_length_lies_ends_the_connection(case: tuple[bytes, int]) -> None:
    data, length = case
    connection = connected()
    connection.call(SegmentType.MQGET, MQGET, handle=7)
    violation = the_violation(connection, reply(connection, SegmentType.MQGET, got(data, length), completion_code=1))
    assert violation is StatusCode.PROTOCOL_LENGTH_ERROR


def test_a_longer_message_comes_as_far_as_there_is_room() -> None:
    connection = connected()
    connection.call(SegmentType.MQGET, MQGET, handle=7)
    data = reply(connection, SegmentType.MQGET, got(b"x" * 100, 5_000), completion_code=1, reason_code=2080)
    (event,) = connection.receive(data)
    assert isinstance(event, Replied)
    assert (event.header.reason_code, event.parameters.data_length) == (2080, 5_000)


def test_a_reply_that_never_ends_is_not_kept() -> None:
    connection = connected()
    connection.call(SegmentType.MQCMIT)
    part = b"x" * 30_000
    events: list[ClientEvent] = connection.receive(tshm(0x9A, api() + part, flags=0x10))
    for _ in range(100):
        events += connection.receive(tshm(0x9A, part, flags=0))
    events += connection.receive(tshm(0x9A, b"", flags=0x20))
    assert isinstance(events[-1], Violated)


def test_before_mqconn_is_answered_segments_are_short() -> None:
    connection = opened()
    connection.call(SegmentType.MQCONN, Mqconn(tail=b"FCNO"))
    assert the_violation(connection, b"TSHM" + (4_097).to_bytes(4, "big")) is StatusCode.PROTOCOL_LENGTH_ERROR


@given(st.binary(max_size=200))
def test_any_bytes_end_in_events_or_in_a_violation(data: bytes) -> None:
    beginning = ClientConnection(OFFER)
    beginning.begin()
    for connection in (beginning, connected()):
        events = connection.receive(data)
        assert connection.is_closed == any(isinstance(event, Violated | Ended) for event in events)


@given(st.integers(0, 600), st.binary(min_size=1, max_size=4))
def test_changed_bytes_of_a_reply_end_in_events_or_in_a_violation(place: int, change: bytes) -> None:
    connection = connected()
    connection.call(SegmentType.MQGET, MQGET, handle=7)
    data = bytearray(reply(connection, SegmentType.MQGET, got(b"x" * 52, 52)))
    data[place : place + len(change)] = change
    expected = Replied | Violated | HeartbeatAnswered | HeartbeatAsked | Ended
    assert all(isinstance(event, expected) for event in connection.receive(bytes(data)))


def test_calls_come_one_after_another() -> None:
    connection = connected()
    connection.call(SegmentType.MQOPEN, Mqopen(object_descriptor=Mqod(version=2), fopa=Fopa()))
    with pytest.raises(UsageError):
        connection.call(SegmentType.MQCLOSE, Mqclose())
    with pytest.raises(UsageError):
        connection.begin()

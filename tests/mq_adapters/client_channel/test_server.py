"""A socket of IBM's client, its bytes written by hand, and what the server makes of them, cut anywhere."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mq_adapters.client_channel import verbs
from mq_adapters.client_channel.asynchronous import AsyncMessage
from mq_adapters.client_channel.conversations import Phase
from mq_adapters.client_channel.errors import StatusCode, UsageError
from mq_adapters.client_channel.events import (
    AuthenticationAsked,
    CallReceived,
    CallTooLong,
    ConversationAsked,
    ConversationEnded,
    Event,
    Goodbye,
    HeartbeatAsked,
    InitialDataOffered,
    MessagesAsked,
    Notified,
    UserAsserted,
    Violated,
)
from mq_adapters.client_channel.identification import ConAuthInfo, UserIdData
from mq_adapters.client_channel.initial_data import InitialData, negotiate
from mq_adapters.client_channel.parameters import NOTHING, Unknown
from mq_adapters.client_channel.segments import SegmentReader, SegmentType
from mq_adapters.client_channel.server import ServerConnection, SocketPhase
from mq_adapters.client_channel.status import Notification, NotificationCode, StatusData
from mq_adapters.reasons import ReasonCode
from tests.mq_adapters.client_channel.layouts import STRUCTURES, descriptor, descriptor_value, laid_out
from tests.mq_adapters.client_channel.test_asynchronous import FIRST_ASKED, FIRST_REQUEST
from tests.mq_adapters.client_channel.test_identification import ASSERTED, SHOWN
from tests.mq_adapters.client_channel.test_initial_data import OFFER, OFFERED, OURS
from tests.mq_adapters.client_channel.test_spi import _query

MAXIMUM_MESSAGE_BYTES = 1_000_000


def tsh(segment_type: int, flags: int, body: bytes = b"", eye_catcher: bytes = b"TSH ") -> bytes:
    """A segment without the number of a conversation."""
    rest = bytes((1, segment_type, flags, 0)) + bytes.fromhex("0000000000000000 00000111 0333 0000")
    return eye_catcher + (28 + len(body)).to_bytes(4, "big") + rest + body


def tshc(segment_type: int, flags: int, body: bytes = b"") -> bytes:
    return tsh(segment_type, flags, body, b"TSHC")


def tshm(segment_type: int, body: bytes = b"", *, of: int = 1, request: int = 0, flags: int = 0x30) -> bytes:
    """A segment of conversation `of`."""
    numbers = of.to_bytes(4, "big") + request.to_bytes(4, "big")
    rest = bytes((1, segment_type, flags, 0)) + bytes.fromhex("0000000000000000 00000111 0333 0000")
    return b"TSHM" + (36 + len(body)).to_bytes(4, "big") + numbers + rest + body


def api(length: int = 1_000, handle: int = -1, completion_code: int = 0, reason_code: int = 0) -> bytes:
    return laid_out(16, {0: length, 4: completion_code, 8: reason_code, 12: handle})


def socket_action(conversation: int, action: int) -> bytes:
    return laid_out(20, {0: conversation, 8: action})


MQCONN = api() + laid_out(120, {0: ("EDGE", 48), 48: ("Main", 28), 76: 28, 112: 7}) + b"FCNO"
USERID, CONAUTH, HEARTBEAT, STATUS, SOCKET_ACTION = 0x08, 0x0A, 0x09, 0x05, 0x0C
START, END = 1, 2


def opened(conversations: int = 10, *, connected: bool = True, **limits: int) -> ServerConnection:
    """A socket whose first conversation has said its user, and is connected."""
    connection = ServerConnection(**limits)
    (offered,) = connection.receive(tsh(0x01, 0x31, OFFERED))
    assert offered == InitialDataOffered(OFFER)
    ours = replace(OURS, conversations_per_socket=conversations, maximum_message_length=MAXIMUM_MESSAGE_BYTES)
    connection.accept(negotiate(OFFER, ours))
    if connected:
        connect(connection, 1)
    return connection


def connect(connection: ServerConnection, conversation: int) -> None:
    send = _sender(connection, conversation)
    (_, call) = connection.receive(send(USERID, ASSERTED) + send(SegmentType.MQCONN, MQCONN))
    assert isinstance(call, CallReceived)
    assert connection.reply(call, call.parameters)


def _sender(connection: ServerConnection, conversation: int) -> Callable[..., bytes]:
    if not connection.has_numbers:
        return lambda segment_type, body=b"", flags=0x30: tsh(segment_type, flags, body)
    return lambda segment_type, body=b"", flags=0x30: tshm(segment_type, body, of=conversation, flags=flags)


def received_call(connection: ServerConnection, data: bytes) -> CallReceived:
    (call,) = connection.receive(data)
    assert isinstance(call, CallReceived)
    return call


def the_violation(events: list[Event]) -> Violated:
    assert isinstance(events[-1], Violated), events
    return events[-1]


def test_the_answer_to_an_offer_is_in_the_form_tsh_whatever_is_agreed() -> None:
    connection = ServerConnection()
    connection.receive(tsh(0x01, 0x31, OFFERED))
    answer = negotiate(OFFER, OURS)
    assert connection.accept(answer) == tsh(0x01, 0x31, answer.write(SegmentReader().feed(tsh(1, 0x31))[0].byte_order))
    assert connection.has_numbers
    assert connection.phase is SocketPhase.OPEN


def test_a_client_is_refused_by_a_status_with_the_flags_that_close() -> None:
    connection = ServerConnection()
    connection.receive(tsh(0x01, 0x31, OFFERED))
    assert connection.refuse(StatusCode.NO_CHANNEL) == tsh(STATUS, 0x3A, bytes.fromhex("00000008 00000001"))
    assert connection.is_closed
    assert connection.receive(tsh(0x01, 0x31, OFFERED)) == []


def test_a_client_connects_with_a_user_and_a_password() -> None:
    connection = opened(connected=False)
    events = connection.receive(tshm(USERID, ASSERTED) + tshm(CONAUTH, SHOWN))
    assert events == [
        UserAsserted(1, UserIdData(user="ROOT", long_user="root")),
        AuthenticationAsked(1, ConAuthInfo(user=b"alice", password=b"pass wor"), 819),
    ]
    assert "pass wor" not in repr(events)
    assert connection.answer_authentication(1) == tshm(STATUS)
    call = received_call(connection, tshm(SegmentType.MQCONN, MQCONN))
    assert call.parameters == verbs.Mqconn(q_mgr_name="EDGE", appl_name="Main", options=7, tail=b"FCNO")
    assert connection.reply(call, call.parameters) == tshm(0x91, api(length=36 + len(MQCONN)) + MQCONN[16:])
    assert connection.phase_of(1) is Phase.CONNECTED


def test_a_wrong_password_is_refused_by_the_reply_to_mqconn() -> None:
    connection = opened(connected=False)
    connection.receive(tshm(USERID, ASSERTED) + tshm(CONAUTH, SHOWN))
    connection.answer_authentication(1)
    call = received_call(connection, tshm(SegmentType.MQCONN, MQCONN))
    reply = connection.fail(call, ReasonCode.MQRC_NOT_AUTHORIZED)
    assert reply[36:52] == api(length=36 + len(MQCONN), completion_code=2, reason_code=2035)
    assert connection.phase_of(1) is Phase.DISCONNECTED
    assert the_violation(connection.receive(tshm(SegmentType.MQCMIT, api()))).error.status_code == 10


def test_without_numbers_every_segment_is_tsh() -> None:
    connection = opened(conversations=0)
    assert not connection.has_numbers
    call = received_call(connection, tsh(SegmentType.MQCMIT, 0x30, api()))
    assert (call.conversation, call.verb) == (1, SegmentType.MQCMIT)
    assert connection.reply(call) == tsh(0x9A, 0x30, api(length=44))
    assert connection.heartbeat() == tsh(HEARTBEAT, 0x31)
    assert connection.receive(tsh(HEARTBEAT, 0x30)) == []
    assert connection.receive(tsh(STATUS, 0x38)) == [Goodbye()]
    assert connection.is_closed


def test_without_numbers_no_reply_is_filled_up() -> None:
    """IBM's client of provider version 6 gives up a message behind which it gets a byte more (2195)."""
    connection = opened(conversations=0)
    call = received_call(connection, tsh(SegmentType.MQINQ, 0x30, api() + laid_out(12, {})))
    assert connection.reply(call, Unknown(data=b"qqq")) == tsh(0x99, 0x30, api(length=47) + b"qqq")


def test_heartbeats_are_answered_in_any_phase_of_a_conversation() -> None:
    connection = opened(connected=False)
    for data in (tshm(USERID, ASSERTED), tshm(SegmentType.MQCONN, MQCONN)):
        assert connection.receive(tshc(HEARTBEAT, 0x31)) == [HeartbeatAsked(tshc(HEARTBEAT, 0x30))]
        connection.receive(data)
    assert connection.receive(tshc(HEARTBEAT, 0x31)) == [HeartbeatAsked(tshc(HEARTBEAT, 0x30))]
    assert connection.heartbeat() == tshc(HEARTBEAT, 0x31)


def test_a_reply_has_the_request_number_the_handle_and_the_length_of_all_its_segments() -> None:
    connection = opened()
    request = api(handle=7) + descriptor(2) + STRUCTURES["MQGMO 4"].data(verbs.ByteOrder.BIG_ENDIAN) + bytes(4)
    call = received_call(connection, tshm(SegmentType.MQGET, request, request=5))
    assert (call.request, call.header.object_handle) == (5, 7)
    data = bytes(range(256)) * 200
    content = verbs.MqgetReply(
        message_descriptor=call.parameters.message_descriptor,
        get_message_options=call.parameters.get_message_options,
        data_length=len(data),
        data=data,
    )
    segments = SegmentReader().feed(connection.reply(call, content))
    assert [(each.type, each.conversation, each.request) for each in segments] == [(0x95, 1, 5)] * 2
    body = b"".join(each.body for each in segments)
    assert body[:16] == api(length=36 + len(body), handle=7)
    assert body[-len(data) :] == data


def test_a_reply_is_in_the_byte_order_of_its_call() -> None:
    connection = opened()
    header = bytes.fromhex("000003E8 00000000 00000000 07000000")
    little = bytearray(tshm(SegmentType.MQCLOSE, header + bytes.fromhex("08000000")))
    little[16] = 2
    call = received_call(connection, bytes(little))
    assert (call.header.object_handle, call.parameters) == (7, verbs.Mqclose(options=8))
    reply = connection.reply(call, call.parameters, object_handle=0)
    assert reply[16:18] == b"\x02\x94"
    assert reply[28:34] == bytes.fromhex("22020000 3303")
    assert reply[36:] == bytes.fromhex("00000038 00000000 00000000 00000000 08000000")


def _put(data_bytes: int) -> bytes:
    pmo = STRUCTURES["MQPMO 2"].data(verbs.ByteOrder.BIG_ENDIAN)
    return api(handle=7) + descriptor(2) + pmo + laid_out(4, {0: data_bytes}) + bytes(data_bytes)


def _cut(call_type: int, body: bytes, of: int = 1) -> list[bytes]:
    parts = [body[start : start + 32_712] for start in range(0, len(body), 32_712)]
    flags = [0x10, *[0x00] * (len(parts) - 2), 0x20]
    return [tshm(call_type, part, of=of, flags=flag) for part, flag in zip(parts, flags, strict=True)]


def test_long_calls_of_two_conversations_alternate_with_heartbeats() -> None:
    connection = opened()
    connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(3, START)))
    connection.open_conversation(3)
    connect(connection, 3)
    events: list[Event] = []
    for first, second in zip(
        _cut(SegmentType.MQPUT, _put(100_000)), _cut(SegmentType.MQPUT, _put(100_004), of=3), strict=True
    ):
        events += connection.receive(first + tshc(HEARTBEAT, 0x31) + second)
    calls = [event for event in events if isinstance(event, CallReceived)]
    assert [(call.conversation, len(call.parameters.data)) for call in calls] == [(1, 100_000), (3, 100_004)]
    assert len(events) == 2 + 4
    assert connection.unfinished_bytes == 0


def test_a_call_that_is_too_long_is_refused_with_its_own_structures() -> None:
    connection = opened()
    events = connection.receive(b"".join(_cut(SegmentType.MQPUT, _put(MAXIMUM_MESSAGE_BYTES + 70_000))))
    (too_long,) = events
    assert isinstance(too_long, CallTooLong)
    assert too_long.reason_code is ReasonCode.MQRC_MSG_TOO_BIG_FOR_CHANNEL
    assert too_long.call_bytes > MAXIMUM_MESSAGE_BYTES
    reply = connection.fail(too_long.call, too_long.reason_code)
    expected = _put(0)[16:]
    assert reply == tshm(0x96, api(52 + len(expected), 7, 2, 2218) + expected)


def test_all_unfinished_calls_of_a_socket_have_a_limit() -> None:
    connection = opened(most_unfinished_bytes=50_000)
    (refused,) = connection.receive(b"".join(_cut(SegmentType.MQPUT, _put(100_000))))
    assert isinstance(refused, CallTooLong)
    assert refused.reason_code is ReasonCode.MQRC_STORAGE_NOT_AVAILABLE


def test_a_conversation_is_opened_by_a_status_that_is_addressed_to_it() -> None:
    connection = opened()
    action = laid_out(20, {0: 3, 8: 1, 12: 1, 16: 2})
    assert connection.receive(tshc(SOCKET_ACTION, 0x30, action)) == [ConversationAsked(3)]
    assert connection.open_conversation(3) == tshm(STATUS, of=3)
    (asked,) = connection.receive(tshm(CONAUTH, SHOWN, of=3))  # without the user, which the first one has said
    assert asked == AuthenticationAsked(3, ConAuthInfo(user=b"alice", password=b"pass wor"), 819)
    assert connection.answer_authentication(3) == tshm(STATUS, of=3)
    call = received_call(connection, tshm(SegmentType.MQCONN, MQCONN, of=3))
    assert connection.reply(call, call.parameters)
    assert connection.phase_of(3) is Phase.CONNECTED
    assert connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(3, END))) == [ConversationEnded(3)]
    assert connection.phase_of(3) is None
    assert connection.receive(tshc(SOCKET_ACTION, 0x38, socket_action(1, END))) == [ConversationEnded(1), Goodbye()]


def test_the_unfinished_call_of_a_conversation_that_ends_is_dropped() -> None:
    connection = opened()
    connection.receive(_cut(SegmentType.MQPUT, _put(70_000))[0])
    assert connection.unfinished_bytes == 32_712
    connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(1, END)))
    assert connection.unfinished_bytes == 0


def test_the_agreed_transmission_size_holds_both_ways() -> None:
    connection = ServerConnection()
    connection.receive(tsh(0x01, 0x31, OFFERED))
    connection.accept(replace(negotiate(OFFER, OURS), transmission_size=2_000))
    connect(connection, 1)
    call = received_call(connection, tshm(SegmentType.MQCMIT, api()))
    reply = connection.reply(call, Unknown(data=bytes(5_000)))
    assert [36 + len(each.body) for each in SegmentReader().feed(reply)] == [2_000, 2_000, 1_124]
    violation = the_violation(connection.receive(tshm(SegmentType.MQCMIT, api() + bytes(1_949))))
    assert violation.error.status_code is StatusCode.PROTOCOL_LENGTH_ERROR


def test_every_segment_of_a_reply_has_a_multiple_of_four_bytes_whatever_size_was_agreed() -> None:
    connection = ServerConnection()
    connection.receive(tsh(0x01, 0x31, OFFERED))
    connection.accept(replace(negotiate(OFFER, OURS), transmission_size=1_999))
    connect(connection, 1)
    for answered_bytes in range(3_998, 4_002):
        call = received_call(connection, tshm(SegmentType.MQINQ, api() + laid_out(12, {})))
        segments = SegmentReader().feed(connection.reply(call, Unknown(data=b"q" * answered_bytes)))
        assert all(len(each.body) % 4 == 0 for each in segments)
        body = b"".join(each.body for each in segments)
        assert body[:16] == api(length=36 + len(body))
        assert body[16:].rstrip(b"\0") == b"q" * answered_bytes


def test_a_conversation_is_refused_by_a_status_with_an_error() -> None:
    connection = opened()
    connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(3, START)))
    assert connection.refuse_conversation(3) == tshm(STATUS, bytes.fromhex("00000008 0000001E"), of=3, flags=0x32)
    assert connection.phase_of(3) is None
    assert connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(3, START))) == [ConversationAsked(3)]


def test_what_is_answered_after_a_conversation_has_ended_is_not_sent() -> None:
    connection = opened()
    connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(3, START)))
    connection.open_conversation(3)
    connect(connection, 3)
    call = received_call(connection, tshm(SegmentType.MQCMIT, api(), of=3))
    connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(3, END)))
    message = AsyncMessage(
        object_handle=7, global_message_index=1, selection_index=1, msg_token=bytes(16), resolved_q_name="Q",
        message_descriptor=descriptor_value(2),
    )  # fmt: skip
    notified = Notified(
        conversation=3, request=1, notification=Notification(), is_answer_wanted=True, byte_order=call.byte_order
    )
    assert connection.reply(call) == connection.fail(call, 2009) == b""
    assert connection.deliver(3, 1, message) == b""
    assert connection.answer_notification(notified) == connection.notify(3, 1, Notification()) == b""
    for answer in (connection.answer_authentication, connection.open_conversation, connection.refuse_conversation):
        assert answer(3) == b""
    connection.end()
    assert connection.end() == b""


def test_a_listener_starts_gets_a_message_and_stops() -> None:
    connection = opened()
    start = bytes.fromhex("00000001 FFFFFFFF 00000003 00000002")
    stop = bytes.fromhex("00000001 FFFFFFFF 00000003 00000000")
    events = connection.receive(
        tshm(0x0F, start, request=1) + tshm(0x0E, FIRST_ASKED, request=1) + tshm(0x0F, stop, request=3, flags=0x31)
    )
    assert events[1] == MessagesAsked(conversation=1, request=1, asked=FIRST_REQUEST)
    started, stopped = events[0], events[2]
    assert isinstance(started, Notified)
    assert isinstance(stopped, Notified)
    assert (started.is_answer_wanted, stopped.is_answer_wanted) == (False, True)
    assert started.notification == Notification(code=NotificationCode.CONN_STATE, value=2)
    stopped_answer = bytes.fromhex("00000001 FFFFFFFF 00000004 00000000")
    assert connection.answer_notification(stopped) == tshm(0x0F, stopped_answer, request=3)
    message = AsyncMessage(
        object_handle=7, global_message_index=1, selection_index=1, msg_token=bytes(16), resolved_q_name="Q",
        message_descriptor=descriptor_value(2), data=bytes(40_000),
    )  # fmt: skip
    segments = SegmentReader().feed(connection.deliver(1, 1, message))
    assert [(each.type, each.conversation, each.request, int(each.flags_1)) for each in segments] == [
        (0x0D, 1, 1, 0x10),
        (0x0D, 1, 1, 0x20),
    ]
    quiescing = Notification(code=NotificationCode.QM_QUIESCING)
    assert connection.notify(1, 1, quiescing) == tshm(
        0x0F, bytes.fromhex("00000001 FFFFFFFF 00000007 00000000"), request=1
    )


def test_the_end_of_a_queue_manager_is_told_to_the_whole_socket() -> None:
    assert opened().end() == tshc(STATUS, 0x3A, bytes.fromhex("00000008 00000005"))
    assert opened(conversations=0).end() == tsh(STATUS, 0x3A, bytes.fromhex("00000008 00000005"))


def test_an_error_that_the_client_tells_is_its_goodbye() -> None:
    status = bytes.fromhex("0000000C 00000014 00000001")
    connection = opened()
    assert connection.receive(tshc(STATUS, 0x30)) == []
    assert connection.receive(tshc(STATUS, 0x3A, status)) == [Goodbye(StatusData(20, 1))]
    assert connection.is_closed


def test_a_client_that_disconnects_may_only_say_goodbye() -> None:
    connection = opened()
    call = received_call(connection, tshm(SegmentType.MQDISC, api()))
    assert connection.phase_of(1) is Phase.DISCONNECTING
    connection.reply(call)
    assert connection.phase_of(1) is Phase.DISCONNECTED
    assert connection.receive(tshc(SOCKET_ACTION, 0x38, socket_action(1, END))) == [ConversationEnded(1), Goodbye()]


@pytest.mark.parametrize(
    ("data", "status_code"),
    [
        (tshm(SegmentType.MQCMIT, api()), 10),
        (tsh(0x01, 0x30, OFFERED[:239]), 11),
        (tsh(0x01, 0x10, OFFERED), 10),
        (tshm(0x01, OFFERED), 10),
        (tsh(STATUS, 0x38), 10),
        (b"GET / HTTP/1.1", 14),
    ],
    ids=["a call", "a short offer", "an offer in parts", "with a number", "a goodbye", "another protocol"],
)
def test_before_the_offer_nothing_else_may_come(data: bytes, status_code: int) -> None:
    violation = the_violation(ServerConnection().receive(data))
    assert violation.error.status_code == status_code
    assert violation.answer == tsh(STATUS, 0x3A, laid_out(8, {0: 8, 4: status_code}))


def test_before_the_answer_nothing_may_come() -> None:
    connection = ServerConnection()
    events = connection.receive(tsh(0x01, 0x31, OFFERED) + tsh(0x01, 0x31, OFFERED))
    assert events[0] == InitialDataOffered(OFFER)
    assert the_violation(events).error.status_code == StatusCode.PROTOCOL_SEGMENT_TYPE
    assert connection.is_closed


WRONG = {
    "a segment without a number": (tsh(SegmentType.MQCMIT, 0x30, api()), 10),
    "a call about the socket": (tshc(SegmentType.MQCMIT, 0x30, api()), 10),
    "a second offer": (tshm(0x01, OFFERED), 10),
    "a second user": (tshm(USERID, ASSERTED), 10),
    "a second connection": (tshm(SegmentType.MQCONN, MQCONN), 10),
    "a reply": (tshm(0x91, api()), 10),
    "data of a message channel": (tshm(0x04), 10),
    "an unknown type": (tshm(0x70), 10),
    "a conversation that does not exist": (tshm(SegmentType.MQCMIT, api(), of=3), 30),
    "the conversation 0": (tshm(SegmentType.MQCMIT, api(), of=0), 30),
    "a conversation in use": (tshc(SOCKET_ACTION, 0x30, socket_action(1, START)), 30),
    "an unknown action": (tshc(SOCKET_ACTION, 0x30, socket_action(1, 3)), 31),
    "a key reset": (tshc(SOCKET_ACTION, 0x30, socket_action(0, 5)), 31),
    "a short header": (tshm(SegmentType.MQCMIT, bytes(15)), 11),
    "a short call": (tshm(SegmentType.MQCLOSE, api()), 11),
    "a structure of an unknown version": (tshm(SegmentType.MQOPEN, api() + b"OD  \0\0\0\x09"), 12),
    "a notification in parts": (tshm(0x0F, bytes(8), flags=0x10), 10),
    "the middle of a call": (tshm(SegmentType.MQPUT, bytes(8), flags=0x00), 13),
}


@pytest.mark.parametrize(("data", "status_code"), WRONG.values(), ids=WRONG)
def test_what_a_connected_client_may_not_send_ends_its_socket(data: bytes, status_code: int) -> None:
    connection = opened()
    events = connection.receive(tshm(SegmentType.MQCMIT, api()) + data + tshm(SegmentType.MQCMIT, api()))
    assert isinstance(events[0], CallReceived)
    violation = the_violation(events)
    assert (len(events), violation.error.status_code) == (2, status_code)
    assert violation.answer == tshc(STATUS, 0x3A, laid_out(8, {0: 8, 4: status_code}))
    assert connection.is_closed
    assert connection.receive(data) == []
    assert connection.unfinished_bytes == 0


def test_a_socket_without_numbers_has_one_conversation() -> None:
    connection = opened(conversations=0)
    assert the_violation(connection.receive(tsh(SOCKET_ACTION, 0x30, socket_action(3, START)))).error.status_code == 31
    assert isinstance(opened(conversations=0).receive(tshm(SegmentType.MQCMIT, api()))[0], Violated)


def test_more_conversations_than_agreed_end_the_socket() -> None:
    connection = opened(conversations=2)
    connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(3, START)))
    violation = the_violation(connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(5, START))))
    assert violation.error.status_code is StatusCode.CONV_ID_ERROR


def test_the_end_of_a_conversation_that_does_not_exist_is_no_fault() -> None:
    connection = opened()
    assert connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(7, END))) == []
    assert connection.receive(tshc(SOCKET_ACTION, 0x30, socket_action(0, 4))) == []


def test_an_answer_in_the_wrong_phase_is_our_own_mistake() -> None:
    connection = ServerConnection()
    wrong: list[Callable[[], Any]] = [
        lambda: connection.accept(OURS),
        lambda: connection.refuse(StatusCode.NO_CHANNEL),
    ]
    for call in wrong:
        with pytest.raises(UsageError):
            call()
    connection = opened()
    for answer in (connection.answer_authentication, connection.open_conversation, connection.refuse_conversation):
        with pytest.raises(UsageError):
            answer(1)
    with pytest.raises(UsageError):
        connection.accept(OURS)


INQUIRY = laid_out(20, {0: 2, 4: 1, 8: 4, 12: 3, 16: 2016})
QUERY = _query(verbs.ByteOrder.BIG_ENDIAN)
SRO = laid_out(20, {0: 1, 4: b"SRO ", 8: 1})
#: Type, what stands behind the header of the call, and behind that of the reply.
REFUSED = {
    "MQPUT": (SegmentType.MQPUT, _put(4)[16:], _put(0)[16:]),
    "MQCLOSE": (SegmentType.MQCLOSE, laid_out(4, {0: 8}), laid_out(4, {0: 8})),
    "MQCMIT": (SegmentType.MQCMIT, b"", b""),
    "MQSUBRQ": (SegmentType.MQSUBRQ, SRO, SRO),
    "MQINQ": (SegmentType.MQINQ, INQUIRY, INQUIRY + bytes(4) + b"    "),
    "MQSET": (SegmentType.MQSET, laid_out(20, {0: 1, 4: 1, 12: 9, 16: 1}), laid_out(12, {0: 1, 4: 1})),
    "an unknown verb of SPI": (SegmentType.SPI, laid_out(12, {0: 11, 4: 1}) + b"SPNU", b""),
    "SPI QUERY": (SegmentType.SPI, QUERY, QUERY[:24] + laid_out(16, {0: b"SPQO", 4: 1, 8: 16})),
}


@pytest.mark.parametrize(("call_type", "body", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_refused_call_returns_the_structures_that_its_reply_has(
    call_type: SegmentType, body: bytes, expected: bytes
) -> None:
    connection = opened()
    call = received_call(connection, tshm(call_type, api(handle=7) + body))
    reply = connection.fail(call, ReasonCode.MQRC_FUNCTION_NOT_SUPPORTED)
    assert reply == tshm(call_type + 0x10, api(52 + len(expected), 7, 2, 2298) + expected)


def test_xa_calls_have_their_own_header_and_are_replied_to() -> None:
    connection = opened()
    call = received_call(connection, tshm(SegmentType.XA_COMMIT, api(handle=3, reason_code=0x40000000) + b"xid"))
    assert (call.verb, call.header.reason_code, call.header.object_handle) == (SegmentType.XA_COMMIT, 0x40000000, 3)
    assert connection.reply(call, call.parameters, reason_code=call.header.reason_code) == tshm(
        0xB6, api(56, 3, 0, 0x40000000) + b"xid\0"
    )


SESSION = (
    tshm(USERID, ASSERTED),
    tshm(SegmentType.MQCONN, MQCONN),
    tshc(HEARTBEAT, 0x31),
    tshm(SegmentType.MQPUT, _put(8)),
    *_cut(SegmentType.MQPUT, _put(70_000)),
    tshm(0x0F, bytes.fromhex("00000001 FFFFFFFF 00000003 00000002"), request=1),
    tshm(SegmentType.MQDISC, api()),
    tshc(SOCKET_ACTION, 0x38, socket_action(1, END)),
)


def _played(pieces: list[bytes]) -> list[Event]:
    """The events of a session, each call answered as soon as it comes."""
    connection, events = opened(connected=False), []
    for piece in pieces:
        for event in connection.receive(piece):
            events.append(event)
            if isinstance(event, CallReceived):
                connection.reply(event, NOTHING)
    return events


@pytest.mark.parametrize("piece_bytes", [1, 7, 36, 1_000, 32_748])
def test_a_session_has_the_same_events_however_its_segments_are_cut(piece_bytes: int) -> None:
    whole = _played(list(SESSION))
    cut = [each[at : at + piece_bytes] for each in SESSION for at in range(0, len(each), piece_bytes)]
    assert _played(cut) == whole
    assert [type(event) for event in whole] == [
        UserAsserted, CallReceived, HeartbeatAsked, CallReceived, CallReceived, Notified, CallReceived,
        ConversationEnded, Goodbye,
    ]  # fmt: skip


@settings(max_examples=200)
@given(st.integers(0, len(SESSION) - 1), st.integers(0, 700), st.binary(min_size=1, max_size=6))
def test_damaged_bytes_end_in_events_and_never_in_an_exception(segment: int, at: int, wrong: bytes) -> None:
    pieces = list(SESSION)
    pieces[segment] = pieces[segment][:at] + wrong + pieces[segment][at + len(wrong) :]
    events = _played(pieces)
    assert all(not isinstance(event, Violated) for event in events[:-1])


@given(st.lists(st.binary(max_size=100), max_size=5))
def test_random_bytes_end_in_a_violation_at_last(pieces: list[bytes]) -> None:
    connection = ServerConnection()
    for piece in pieces:
        for event in connection.receive(piece):
            assert isinstance(event, Violated)
    assert connection.unfinished_bytes <= 8 or not connection.is_closed


def test_a_level_without_a_number_of_conversations_has_one() -> None:
    connection = ServerConnection()
    old = replace(OFFER, level=8)
    connection.receive(tsh(0x01, 0x31, OFFERED[:4] + b"\x08" + OFFERED[5:]))
    answer = negotiate(old, OURS)
    written = connection.accept(answer)
    assert (written[32], len(written), connection.has_numbers) == (7, 128, False)
    assert isinstance(answer, InitialData)


def test_events_are_answered_one_after_another_in_the_phase_in_which_they_came() -> None:
    connection = opened()
    begin, end = (tshc(SOCKET_ACTION, 0x30, socket_action(3, action)) for action in (START, END))
    connection.take(begin + end + begin)
    assert connection.next_events() == [ConversationAsked(3)]
    assert connection.open_conversation(3) == tshm(STATUS, of=3)
    assert connection.next_events() == [ConversationEnded(3)]
    assert connection.next_events() == [ConversationAsked(3)]
    assert connection.open_conversation(3) == tshm(STATUS, of=3)
    assert connection.next_events() is None


def test_a_stranger_may_send_short_segments_alone() -> None:
    connection = opened(connected=False)
    too_long = tshm(USERID, bytes(4_096))
    assert the_violation(connection.receive(too_long[:8])).error.status_code == StatusCode.PROTOCOL_LENGTH_ERROR
    assert connection.unfinished_bytes == 0
    connected = opened()
    assert connected.receive(too_long[:8]) == []


def test_a_stranger_may_not_cut_mqconn() -> None:
    connection = opened(connected=False)
    events = connection.receive(tshm(USERID, ASSERTED) + tshm(SegmentType.MQCONN, MQCONN, flags=0x10))
    assert the_violation(events).error.status_code == StatusCode.PROTOCOL_SEGMENT_TYPE
    assert connection.unfinished_bytes == 0


def test_a_stranger_may_send_few_segments_and_a_program_any_number() -> None:
    heartbeat = tshc(HEARTBEAT, 0x31)
    stranger = opened(connected=False)
    assert len(stranger.receive(heartbeat * 99)) == 99
    assert the_violation(stranger.receive(heartbeat)).error.status_code == StatusCode.PROTOCOL_SEGMENT_ERROR
    assert len(opened().receive(heartbeat * 1_000)) == 1_000

"""Strangers who reach the port of MQ clients, and programs that mean harm: the gateway goes on for the others."""

import contextlib
import re
import secrets
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mq_adapters import connect
from mq_adapters.client_channel.asynchronous import RequestMsgs
from mq_adapters.client_channel.attributes import MqinqRequest
from mq_adapters.client_channel.charv import Charv
from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.client_channel.identification import UserIdData
from mq_adapters.client_channel.segments import ControlFlags1, Segment, SegmentType, write_segment
from mq_adapters.client_channel.status import (
    DELIVERY_STARTED,
    Notification,
    NotificationCode,
    SocketAction,
    SocketActionType,
)
from mq_adapters.client_channel.verbs import Mqclose, Mqconn
from mq_adapters.reasons import ReasonCode
from tests.end_to_end.mq_clients.house import TOKEN, House
from tests.end_to_end.mq_clients.raw_client import (
    ORDER,
    RawClient,
    call,
    getting,
    of_conversation,
    of_socket,
    offer,
    opening,
    putting,
)

OUTPUT, INPUT_SHARED, BROWSE, INQUIRE = 0x10, 0x2, 0x8, 0x20
BROWSE_FIRST = 0x10
MODEL = "SYSTEM.DEFAULT.MODEL.QUEUE"
ASK = ControlFlags1.WHOLE | ControlFlags1.CONFIRM_REQUEST
HEARTBEAT = of_socket(SegmentType.HEARTBEAT, flags=ASK)
USER = of_conversation(SegmentType.USERID_DATA, UserIdData(user="ROOT", long_user="root"))


@pytest.fixture(autouse=True)
def no_fault_of_ours(house: House) -> Iterator[None]:
    """After each test the gateway serves a program, and its log has no error."""
    yield
    with RawClient(house.port) as client:
        client.connect().open("ORDERS", OUTPUT)
    assert [line for line in house.gateway.lines if '"level":"error"' in line] == []


def action(conversation: int, kind: int) -> bytes:
    return of_socket(SegmentType.SOCKET_ACTION, SocketAction(conversation=conversation, type=kind).write(ORDER))


def memory_mib(house: House) -> float:
    """The memory of the gateway."""
    status = Path(f"/proc/{house.gateway.process_identifier}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1_024


def sent_until_it_stops(client: RawClient, data: bytes, *, most_bytes: int) -> int:
    """Sends the same again and again, until the gateway takes no more; how many bytes were sent."""
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < most_bytes:
            sent += client.socket.send(data)
    return sent


# -- strangers ---------------------------------------------------------------------------------------------------------


def test_conversations_that_begin_and_end_in_one_packet_are_answered_each(house: House) -> None:
    with RawClient(house.port) as client:
        client.negotiate()
        begin, end = action(3, SocketActionType.START_CONVERSATION), action(3, SocketActionType.END_CONVERSATION)
        client.send((begin + end) * 20 + begin)
        assert [client.expect(SegmentType.STATUS_DATA).conversation for _ in range(21)] == [3] * 21


def test_a_stranger_who_floods_is_turned_away(house: House) -> None:
    with RawClient(house.port) as client:
        client.negotiate()
        client.send(HEARTBEAT * 101)
        assert client.end() == StatusCode.PROTOCOL_SEGMENT_ERROR


def test_a_stranger_has_no_memory_for_a_long_call(house: House) -> None:
    with RawClient(house.port) as client:
        client.negotiate()
        connect = call(SegmentType.MQCONN, Mqconn(tail=bytes(100_000)))
        client.send(USER + connect[:32_748])
        assert client.end() == StatusCode.PROTOCOL_LENGTH_ERROR


def test_random_bytes_after_each_phase_end_the_connection_or_wait_for_more(house: House) -> None:
    phases = (b"", write_segment(offer()), write_segment(offer()) + USER)
    for phase in phases:
        for _ in range(100):
            with RawClient(house.port) as client:
                client.send(phase + secrets.token_bytes(200))
                client.socket.shutdown(socket.SHUT_WR)
                client.end()


def test_a_first_segment_that_is_cut_at_each_byte_is_no_fault(house: House) -> None:
    whole = write_segment(offer())
    for length in range(0, len(whole), 3):
        with RawClient(house.port) as client:
            client.send(whole[:length])
    with RawClient(house.port) as client:
        for byte in whole:
            client.send(bytes((byte,)))
        client.expect(SegmentType.INITIAL_DATA)


def test_wrong_passwords_without_end_are_few_lines_of_the_log(house: House) -> None:
    for number in range(150):
        with RawClient(house.port) as client:
            client.negotiate()
            client.send(USER)
            client.show("billing", f"wrong-{number}")
            client.expect(SegmentType.STATUS_DATA)
            header, _ = client.ask(SegmentType.MQCONN, Mqconn(appl_name="guess"))
            assert header.reason_code == ReasonCode.MQRC_NOT_AUTHORIZED
    assert len([line for line in house.gateway.lines if '"level":"warning"' in line]) < 150
    assert not any("wrong-" in line for line in house.gateway.lines)


# -- programs ----------------------------------------------------------------------------------------------------------


def test_a_notification_with_the_highest_code_ends_the_connection(house: House) -> None:
    with RawClient(house.port) as client:
        client.connect()
        body = Notification(code=2**31 - 1).write(ORDER)
        client.send(write_segment(Segment(type=SegmentType.NOTIFICATION, conversation=1, flags_1=ASK, body=body)))
        assert client.end() == StatusCode.PROTOCOL_INVALID_DATA


def test_a_program_that_takes_no_answers_is_not_read(house: House) -> None:
    with RawClient(house.port) as client:
        client.connect()
        client.socket.settimeout(1.0)
        assert sent_until_it_stops(client, HEARTBEAT * 1_000, most_bytes=64 * 1024 * 1024) < 64 * 1024 * 1024


def test_handles_that_nobody_has_and_lengths_that_lie_are_refused(house: House) -> None:
    with RawClient(house.port) as other, RawClient(house.port) as client:
        others = other.connect().open("ORDERS", OUTPUT | INPUT_SHARED | INQUIRE)
        client.connect()
        for handle in (0, -1, others, 2**31 - 1, -(2**31)):
            for verb, parameters in (
                (SegmentType.MQPUT, putting()),
                (SegmentType.MQGET, getting()),
                (SegmentType.MQINQ, MqinqRequest(selectors=(3,), int_attr_count=1)),
                (SegmentType.MQCLOSE, Mqclose()),
            ):
                assert client.ask(verb, parameters, handle)[0].reason_code == ReasonCode.MQRC_HOBJ_ERROR
        own = client.open("ORDERS", OUTPUT | INPUT_SHARED | BROWSE)
        for room in (-1, -(2**31), 2**31 - 1):
            header, _ = client.ask(SegmentType.MQGET, getting(room=room), own)
            assert header.reason_code == ReasonCode.MQRC_NO_MSG_AVAILABLE
        header, _ = client.ask(SegmentType.MQGET, getting(options=1, wait_ms=-2), own)
        assert header.reason_code == ReasonCode.MQRC_WAIT_INTERVAL_ERROR


def test_rubbish_in_the_descriptor_of_a_message_is_refused_or_kept(house: House) -> None:
    with RawClient(house.port) as client:
        handle = client.connect().open("ORDERS", OUTPUT | INPUT_SHARED)
        plain = putting()
        names = ("Report", "MsgType", "Expiry", "Feedback", "Encoding", "CodedCharSetId", "Priority", "Persistence")
        for name in (*names, "MsgSeqNumber", "Offset", "MsgFlags", "OriginalLength"):
            for value in (-(2**31), -7, 2**31 - 1):
                changed = replace(plain, message_descriptor=plain.message_descriptor.changed(**{name: value}))
                client.ask(SegmentType.MQPUT, changed, handle)
        client.put(handle, format=b"MQSTR   ", coded_char_set_id=1208)
        codes = []
        while (answer := client.ask(SegmentType.MQGET, getting(options=4 | 0x4000), handle))[1] is not None:
            codes.append(answer[0].completion_code)
        assert answer[0].reason_code == ReasonCode.MQRC_NO_MSG_AVAILABLE
        assert codes


def test_a_string_in_an_unknown_code_page_is_refused(house: House) -> None:
    with RawClient(house.port) as client:
        client.connect()
        asked = opening("ORDERS", OUTPUT, version=4, selection_string=Charv(value=b"a = 1", ccsid=37))
        header, _ = client.ask(SegmentType.MQOPEN, asked)
        assert header.reason_code == ReasonCode.MQRC_SOURCE_CCSID_ERROR


def test_calls_without_waiting_for_answers_are_answered_in_order_or_end_the_connection(house: House) -> None:
    with RawClient(house.port) as client:
        handle = client.connect().open("ORDERS", OUTPUT)
        client.send(call(SegmentType.MQPUT, putting(), handle) * 16)
        assert [client.answer(SegmentType.MQPUT)[0].completion_code for _ in range(16)] == [0] * 16
    with RawClient(house.port) as client:
        handle = client.connect().open("ORDERS", INPUT_SHARED)
        client.send(call(SegmentType.MQGET, getting(options=1, wait_ms=-1, correl_id=b"n" * 24), handle))
        client.send(call(SegmentType.MQCMIT) * 40)
        assert client.end() in (None, StatusCode.QM_TERMINATING)


@pytest.mark.parametrize("requested", [2**31 - 1, -1, -(2**31)])
def test_a_listener_with_any_credit_does_not_end_the_others(house: House, requested: int) -> None:
    with RawClient(house.port) as client:
        handle = client.connect().open("ORDERS", INPUT_SHARED | BROWSE | OUTPUT)
        client.put(handle)
        for options in (4, 4 | BROWSE_FIRST):
            asked = RequestMsgs(object_handle=handle, requested_bytes=requested, get_options=options)
            client.send(of_conversation(SegmentType.REQUEST_MSGS, asked))
        start = Notification(code=NotificationCode.CONN_STATE, value=DELIVERY_STARTED)
        client.send(of_conversation(SegmentType.NOTIFICATION, start))
        if requested > 0:
            client.expect(SegmentType.ASYNC_MESSAGE)
        with RawClient(house.port) as other:
            other.connect()


def test_a_listener_at_a_handle_that_is_none_ends_the_connection(house: House) -> None:
    for handle in (0, -1, 77):
        with RawClient(house.port) as client:
            client.connect()
            asked = RequestMsgs(object_handle=handle, requested_bytes=1)
            client.send(of_conversation(SegmentType.REQUEST_MSGS, asked))
            assert client.end() == StatusCode.QM_TERMINATING


def test_notifications_of_every_code_are_taken(house: House) -> None:
    with RawClient(house.port) as client:
        client.connect()
        for code in (*range(-1, 20), -(2**31), 2**31 - 2):
            body = Notification(code=code).write(ORDER)
            client.send(write_segment(Segment(type=SegmentType.NOTIFICATION, conversation=1, flags_1=ASK, body=body)))
            client.expect(SegmentType.NOTIFICATION)


def test_a_name_with_control_characters_makes_no_line_of_the_log(house: House) -> None:
    name = "x\n\x1b[2Jlevel=error"
    with RawClient(house.port) as client:
        client.negotiate()
        client.send(USER)
        client.show("billing\nevil", TOKEN)
        client.expect(SegmentType.STATUS_DATA)
        client.ask(SegmentType.MQCONN, Mqconn(appl_name=name))
    with RawClient(house.port) as client:
        client.send(write_segment(offer("A\nB")))
        assert client.end() == StatusCode.NO_CHANNEL
    with RawClient(house.port) as client:
        client.connect(appl_name=name)
        with connect(str(house.gateway.data)) as operator:
            shown = operator.mqsc("DISPLAY CHSTATUS(APP.SVRCONN)").lines
        assert not any("\x1b" in line or "\n" in line for line in shown)


def test_a_message_that_is_too_long_for_its_channel_is_refused_and_the_next_is_not(house: House) -> None:
    with RawClient(house.port) as client:
        handle = client.connect().open("ORDERS", OUTPUT | INPUT_SHARED)
        client.send(call(SegmentType.MQPUT, putting(bytes(4_300_000)), handle))
        assert client.answer(SegmentType.MQPUT)[0].reason_code == ReasonCode.MQRC_MSG_TOO_BIG_FOR_CHANNEL
        client.put(handle)


@pytest.mark.parametrize("way", ["silent", "waiting", "unit", "listener"])
def test_a_stopped_channel_ends_every_connection(house: House, way: str) -> None:
    with connect(str(house.gateway.data)) as operator, RawClient(house.port) as client:
        assert operator.mqsc("DEFINE CHANNEL(STOPPED) CHLTYPE(SVRCONN) REPLACE").succeeded
        client.connect(channel="STOPPED")
        handle = client.open("ORDERS", INPUT_SHARED | OUTPUT)
        if way == "waiting":
            client.send(call(SegmentType.MQGET, getting(options=1, wait_ms=-1, correl_id=b"n" * 24), handle))
        elif way == "unit":
            assert client.ask(SegmentType.MQPUT, putting(options=2), handle)[0].completion_code == 0
        elif way == "listener":
            asked = RequestMsgs(object_handle=handle, requested_bytes=1_000, get_options=2)
            client.send(of_conversation(SegmentType.REQUEST_MSGS, asked))
            start = Notification(code=NotificationCode.CONN_STATE, value=DELIVERY_STARTED)
            client.send(of_conversation(SegmentType.NOTIFICATION, start))
        assert operator.mqsc("STOP CHANNEL(STOPPED)").succeeded
        assert client.end() == StatusCode.QM_TERMINATING
        assert operator.mqsc("START CHANNEL(STOPPED)").succeeded


def test_connections_that_come_and_go_leave_nothing(house: House) -> None:
    """What a connection registers is told by MQINQ: how many have the queue open for input."""

    def come_and_go(times: int) -> None:
        for number in range(times):
            with RawClient(house.port) as client:
                client.connect().open("ORDERS", INPUT_SHARED | BROWSE)
                if number % 3 == 0:
                    client.open(MODEL, INPUT_SHARED, dynamic_q_name="AMQ.*")
                if number % 3 == 1:
                    client.send(call(SegmentType.MQGET, getting(options=1, wait_ms=-1), 2))

    come_and_go(200)
    before = memory_mib(house)
    come_and_go(600)
    with RawClient(house.port) as client:
        handle = client.connect().open("ORDERS", INQUIRE)
        until_s = time.monotonic() + 10
        asked = MqinqRequest(selectors=(17,), int_attr_count=1)
        while client.ask(SegmentType.MQINQ, asked, handle)[1].int_attrs != (0,):
            assert time.monotonic() < until_s
    assert memory_mib(house) - before < 20
    with connect(str(house.gateway.data)) as operator:
        assert not [each for each in operator.queues() if each.name.startswith("AMQ.")]


def test_a_gateway_that_stops_in_the_middle_of_each_call_ends_every_connection(house: House) -> None:
    clients = [RawClient(house.port).connect() for _ in range(4)]
    handles = [client.open("ORDERS", INPUT_SHARED | OUTPUT) for client in clients]
    silent, waiting, unit, listener = clients
    waiting.send(call(SegmentType.MQGET, getting(options=1, wait_ms=-1, correl_id=b"n" * 24), handles[1]))
    assert unit.ask(SegmentType.MQPUT, putting(b"never committed", options=2), handles[2])[0].completion_code == 0
    asked = RequestMsgs(object_handle=handles[3], requested_bytes=1_000, get_options=2)
    listener.send(of_conversation(SegmentType.REQUEST_MSGS, asked))
    stranger = RawClient(house.port)
    stranger.negotiate()
    house.gateway.stop()
    assert [client.end() for client in (silent, waiting, unit, listener, stranger)] == [StatusCode.QM_TERMINATING] * 5
    for client in (*clients, stranger):
        client.socket.close()
    house.gateway.start()
    with connect(str(house.gateway.data)) as operator:
        assert b"never committed" not in [message.body for message in operator.browse("ORDERS")]

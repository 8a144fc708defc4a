"""Strangers who reach the port of MQ clients, and programs that mean harm: the gateway goes on for the others."""

import contextlib
import secrets
import socket
from collections.abc import Iterator

import pytest

from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.client_channel.identification import UserIdData
from mq_adapters.client_channel.segments import ControlFlags1, Segment, SegmentType, write_segment
from mq_adapters.client_channel.status import Notification, SocketAction, SocketActionType
from mq_adapters.client_channel.verbs import Mqconn
from mq_adapters.reasons import ReasonCode
from tests.end_to_end.mq_clients.house import House
from tests.end_to_end.mq_clients.raw_client import ORDER, RawClient, call, of_conversation, of_socket, offer

OUTPUT, INPUT_SHARED, BROWSE, INQUIRE = 0x10, 0x2, 0x8, 0x20
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

"""The session: packet identifiers, the window, and what a reconnect and a restart repeat."""

import pytest

from gateway.mqtt.errors import UsageError
from gateway.mqtt.levels import PacketType
from gateway.mqtt.outgoing_flows import OutgoingFlows, OutgoingState


def _session(maximum_in_flight: int = 100) -> OutgoingFlows:
    return OutgoingFlows("c1", clean_session=False, maximum_in_flight=maximum_in_flight)


def test_packet_identifiers_count_from_1() -> None:
    session = _session()
    assert [session.start(f"message {number}", 1) for number in range(3)] == [1, 2, 3]


def test_packet_identifier_wraps_from_65535_to_1() -> None:
    session = _session()
    session.restore(65_534, "old", 1, OutgoingState.AWAIT_PUBACK)
    assert [session.start("new", 1) for _ in range(3)] == [65_535, 1, 2]


def test_packet_identifier_in_use_is_never_given_again() -> None:
    """MQTT 5.0: MQTT-2.2.1-4, MQTT-4.3.2-1, MQTT-4.3.3-1. MQTT-2.3.1-4."""
    session = _session()
    session.restore(1, "a", 2, OutgoingState.AWAIT_PUBCOMP)
    session.restore(2, "b", 1, OutgoingState.AWAIT_PUBACK)
    session.restore(65_535, "c", 1, OutgoingState.AWAIT_PUBACK)
    assert session.start("new", 1) == 3


def test_every_packet_identifier_can_be_in_use_at_once() -> None:
    session = _session(65_535)
    assert sorted(session.start(None, 1) for _ in range(65_535)) == list(range(1, 65_536))
    assert session.window() == 0


def test_freed_packet_identifier_is_used_again_last() -> None:
    session = _session(3)
    for expected in [1, 2, 3, 4, 5]:
        assert session.start(None, 1) == expected
        session.finish(expected)


def test_window_closes_and_opens_again() -> None:
    session = _session(2)
    assert session.window() == 2
    session.start("a", 1)
    session.start("b", 2)
    assert session.window() == 0
    with pytest.raises(UsageError, match="window of 2 messages"):
        session.start("c", 1)
    assert session.finish(1) == "a"
    assert session.window() == 1


@pytest.mark.parametrize("qos", [1, 2])
def test_last_answer_opens_the_window_and_frees_the_identifier_only_after_its_commit(qos: int) -> None:
    """MQTT 5.0: MQTT-3.3.4-9 counts what has not been answered."""
    session = _session(1)
    session.start("a", qos)
    if qos == 2:
        session.note_acknowledgement(PacketType.PUBREC, 1)
        session.release(1)
        assert session.window() == 0
    session.note_acknowledgement(PacketType.PUBACK if qos == 1 else PacketType.PUBCOMP, 1)
    assert session.window() == 1
    assert session.start("b", 1) == 2
    assert session.window() == 0
    session.finish(1)
    assert session.window() == 0
    session.finish(2)
    assert session.window() == 1


def test_flow_that_is_given_up_leaves_the_window_as_one_that_is_answered() -> None:
    session = _session(2)
    session.start("a", 1)
    session.start("b", 1)
    session.note_refusal(PacketType.PUBACK, 1, 0x80, None)
    assert session.window() == 1
    session.finish(2)
    assert session.window() == 2
    session.finish(1)
    assert session.window() == 2


def test_window_is_closed_while_every_packet_identifier_is_in_use() -> None:
    session = _session(65_535)
    for _ in range(65_535):
        session.start(None, 1)
    session.note_acknowledgement(PacketType.PUBACK, 7)
    assert session.window() == 0
    session.finish(7)
    assert session.window() == 1
    assert session.start(None, 1) == 7


def test_window_is_not_negative_when_more_was_in_flight_before_a_restart() -> None:
    session = _session(1)
    session.restore(5, "a", 1, OutgoingState.AWAIT_PUBACK)
    session.restore(6, "b", 1, OutgoingState.AWAIT_PUBACK)
    assert session.window() == 0


def test_unfinished_flows_are_repeated_in_the_order_of_sending() -> None:
    """MQTT 5.0: MQTT-4.3.2-3, MQTT-4.3.3-3, MQTT-4.3.3-5, MQTT-4.3.3-6."""
    session = _session()
    session.restore(9, "a", 1, OutgoingState.AWAIT_PUBACK)
    session.restore(3, "b", 2, OutgoingState.AWAIT_PUBCOMP)
    session.restore(7, "c", 2, OutgoingState.AWAIT_PUBREC)
    session.start("d", 1)
    assert [(flow.packet_identifier, flow.token, flow.qos, flow.state) for flow in session.unfinished()] == [
        (9, "a", 1, OutgoingState.AWAIT_PUBACK),
        (3, "b", 2, OutgoingState.AWAIT_PUBCOMP),
        (7, "c", 2, OutgoingState.AWAIT_PUBREC),
        (8, "d", 1, OutgoingState.AWAIT_PUBACK),
    ]


def test_releases_are_repeated_in_the_order_of_their_pubrecs() -> None:
    session = _session()
    for token in ("a", "b", "c"):
        session.start(token, 2)
    for packet_identifier in (2, 1):
        session.note_acknowledgement(PacketType.PUBREC, packet_identifier)
        session.release(packet_identifier)
    assert [(flow.token, flow.state) for flow in session.unfinished()] == [
        ("c", OutgoingState.AWAIT_PUBREC),
        ("b", OutgoingState.AWAIT_PUBCOMP),
        ("a", OutgoingState.AWAIT_PUBCOMP),
    ]


def test_flow_with_a_commit_under_way_is_not_repeated() -> None:
    session = _session()
    session.start("a", 1)
    session.start("b", 2)
    session.note_acknowledgement(PacketType.PUBACK, 1)
    session.note_acknowledgement(PacketType.PUBREC, 2)
    assert session.unfinished() == ()
    session.release(2)
    assert [flow.token for flow in session.unfinished()] == ["b"]


@pytest.mark.parametrize(
    ("packet_identifier", "qos", "state"),
    [
        (0, 1, OutgoingState.AWAIT_PUBACK),
        (65_536, 1, OutgoingState.AWAIT_PUBACK),
        (5, 1, OutgoingState.AWAIT_PUBACK),
        (6, 1, OutgoingState.AWAIT_PUBREC),
        (6, 2, OutgoingState.AWAIT_PUBACK),
        (6, 2, OutgoingState.RECEIVED),
    ],
)
def test_flow_that_cannot_be_is_our_callers_fault(packet_identifier: int, qos: int, state: OutgoingState) -> None:
    session = _session()
    session.restore(5, "a", 1, OutgoingState.AWAIT_PUBACK)
    with pytest.raises(UsageError, match="c1: "):
        session.restore(packet_identifier, "b", qos, state)


@pytest.mark.parametrize("maximum_in_flight", [0, 65_536])
def test_window_out_of_range_is_our_callers_fault(maximum_in_flight: int) -> None:
    with pytest.raises(UsageError, match=r"1\.\.65,535"):
        _session(maximum_in_flight)


def _restored(flows: int, state: OutgoingState = OutgoingState.AWAIT_PUBACK) -> OutgoingFlows:
    session = _session()
    for number in range(1, flows + 1):
        session.restore(number, number, 1 if state is OutgoingState.AWAIT_PUBACK else 2, state)
    return session


def test_clients_receive_maximum_narrows_the_window() -> None:
    """MQTT-4.9.0-1, MQTT-4.9.0-2, MQTT-3.3.4-9."""
    session = _session()
    session.begin_connection(2)
    assert session.window() == 2
    session.start("a", 1)
    session.start("b", 2)
    assert session.window() == 0
    session.begin_connection(65_535)
    assert session.window() == 98


def test_repeats_beyond_the_receive_maximum_wait_for_room() -> None:
    """MQTT-3.3.4-9 holds for repeats too, and nothing new overtakes them (MQTT-4.6.0-1)."""
    session = _restored(5)
    session.begin_connection(2)
    assert [flow.token for flow in session.unfinished()] == [1, 2]
    assert session.overdue() == ()
    assert session.window() == 0
    session.finish(1)
    assert [flow.token for flow in session.overdue()] == [3]
    assert session.overdue() == ()
    session.finish(3)
    session.finish(2)
    assert [flow.token for flow in session.overdue()] == [4, 5]
    assert session.window() == 0
    session.finish(4)
    assert session.window() == 1


def test_releases_are_repeated_whatever_the_receive_maximum() -> None:
    """MQTT-3.3.4-10."""
    session = _restored(5, OutgoingState.AWAIT_PUBCOMP)
    session.begin_connection(2)
    assert [flow.token for flow in session.unfinished()] == [1, 2, 3, 4, 5]
    assert session.overdue() == ()


def test_flow_that_ended_before_its_repeat_is_not_repeated() -> None:
    session = _restored(3)
    session.begin_connection(1)
    session.note_acknowledgement(PacketType.PUBACK, 2)
    session.finish(2)
    session.finish(1)
    assert [flow.token for flow in session.overdue()] == [3]


def test_flow_without_an_answer_is_due_again_after_each_interval() -> None:
    """MQTT 3.1 section 4.2."""
    session = _session()
    session.start("one", 1)
    assert session.repeats_due(10_000_000, 5_000_000) == ()
    session.start("two", 2)
    assert session.repeats_due(12_000_000, 5_000_000) == ()
    assert [flow.token for flow in session.repeats_due(15_000_000, 5_000_000)] == ["one"]
    assert [flow.token for flow in session.repeats_due(17_000_000, 5_000_000)] == ["two"]
    assert [flow.token for flow in session.repeats_due(25_000_000, 5_000_000)] == ["one", "two"]


def test_answer_begins_the_interval_of_a_flow_anew_or_ends_it() -> None:
    session = _session()
    first, second = session.start("one", 1), session.start("two", 2)
    session.repeats_due(0, 5_000_000)
    session.note_acknowledgement(PacketType.PUBACK, first)
    session.note_acknowledgement(PacketType.PUBREC, second)
    assert session.repeats_due(5_000_000, 5_000_000) == ()
    session.finish(first)
    session.release(second)
    assert session.repeats_due(6_000_000, 5_000_000) == ()
    (release,) = session.repeats_due(11_000_000, 5_000_000)
    assert release.state is OutgoingState.AWAIT_PUBCOMP


def test_identifier_that_is_used_again_begins_an_interval_of_its_own() -> None:
    session = _session()
    first = session.start("one", 1)
    session.repeats_due(0, 5_000_000)
    session.note_acknowledgement(PacketType.PUBACK, first)
    session.finish(first)
    session.restore(first, "another", 1, OutgoingState.AWAIT_PUBACK)
    assert session.repeats_due(5_000_000, 5_000_000) == ()


def test_new_connection_and_a_clock_that_is_set_back_begin_every_interval_anew() -> None:
    session = _session()
    session.start("one", 1)
    session.repeats_due(0, 5_000_000)
    session.begin_connection(65_535)
    assert session.repeats_due(5_000_000, 5_000_000) == ()
    assert session.repeats_due(1_000_000, 5_000_000) == ()
    assert session.repeats_due(5_500_000, 5_000_000) == ()
    assert len(session.repeats_due(6_000_000, 5_000_000)) == 1

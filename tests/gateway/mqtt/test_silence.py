"""What ends a silence: whole packets, and parts of a large one while it makes progress (MQTT-3.1.2-24, 5.0: -22)."""

import pytest

from gateway.mqtt.connection import Connection
from gateway.mqtt.outgoing_flows import OutgoingFlows
from gateway.mqtt.silence import Silence

#: When so many bytes come, and how many are still to come then.
Part = tuple[float, int, int]


def _every(step_s: float, until_s: float, size: int, to_come: int = 1_000_000) -> list[Part]:
    return [(place * step_s, size, to_come) for place in range(1, round(until_s / step_s) + 1)]


@pytest.mark.parametrize(
    ("parts", "since_s"),
    [
        ([], 0.0),
        (_every(0.1, 60.0, 1), 0.0),
        (_every(0.1, 60.0, 90), 0.0),
        (_every(1.1, 66.0, 999), 0.0),
        (_every(0.1, 60.0, 100), 60.0),
        (_every(0.5, 60.0, 500), 60.0),
        (_every(1.0, 60.0, 1_000), 60.0),
        (_every(1.0, 60.0, 1_000, to_come=1_000), 0.0),
        (_every(1.0, 60.0, 1_000, to_come=0), 0.0),
        ([(7.0, 16_384, 5_000)], 7.0),
        ([(7.0, 16_384, 5_000), *((7.0 + place, 10, 5_000) for place in range(1, 60))], 7.0),
        ([(1.0, 999, 5_000), (1_000.0, 1_000, 5_000)], 1_000.0),
        ([(1.0, 999, 5_000), (1_000.0, 999, 5_000)], 0.0),
    ],
    ids=[
        "nothing",
        "one byte each tenth of a second",
        "900 bytes a second",
        "999 bytes in more than a second",
        "1,000 bytes a second in tenths",
        "in halves",
        "at once",
        "only 1,000 to come",
        "a packet that nobody knows the length of",
        "much at once",
        "much at once, and then a trickle",
        "much after the machine was suspended",
        "little after it",
    ],
)
def test_parts_of_a_packet_end_the_silence_while_it_makes_progress(parts: list[Part], since_s: float) -> None:
    silence = Silence(0.0)
    for now_s, size, to_come in parts:
        silence.part_came(size, to_come, now_s)
    assert silence.since_s == pytest.approx(since_s)


def test_whole_packet_ends_the_silence() -> None:
    silence = Silence(5.0)
    assert silence.since_s == 5.0
    silence.end(9.0)
    assert silence.since_s == 9.0


@pytest.mark.parametrize(
    ("reads", "finished", "to_come"),
    [
        (["C0 00"], [True], [0]),
        (["C0", "00"], [False, True], [0, 0]),
        (["40 02 0009"], [True], [0]),  # an answer that changes nothing is a packet too
        (["32 0B 0001"], [False], [9]),
        (["32 0B 0001", "61"], [False, False], [9, 8]),
        (["32 FF"], [False], [0]),
        (["C0 00 32 0B 0001"], [True], [9]),
        (["32 07 0001", "61 0001 41 42 C0", "00"], [False, True, True], [5, 0, 0]),
        (["82 06 0001", "0001 61", "00"], [False, False, True], [4, 1, 0]),
    ],
)
@pytest.mark.parametrize("level", ["04", "05"])
def test_connection_knows_whether_a_packet_is_finished_and_what_is_to_come(
    level: str, reads: list[str], finished: list[bool], to_come: list[int]
) -> None:
    connection = Connection(levels=(4, 5))
    rest = "00 0002 6331" if level == "05" else "0002 6331"
    connect = bytes.fromhex(f"0004 4D515454 {level} 02 003C {rest}")
    connection.receive_data(bytes((0x10, len(connect))) + connect)
    assert connection.has_finished_packet
    connection.attach(OutgoingFlows("c1", clean_session=True))
    connection.receive_data(b"")
    assert not connection.has_finished_packet
    for read, is_finished, left in zip(reads, finished, to_come, strict=True):
        connection.receive_data(bytes.fromhex(read))
        if connection.is_closed:
            break  # at level 5 some of these are malformed
        assert (connection.has_finished_packet, connection.bytes_to_come) == (is_finished, left)

"""Packet identifiers used up, answers that nobody asked for, sessions without end."""

import pytest

from tests.end_to_end.attacks.attacker import ACCEPTED, Attacker, connect, packet, publish, subscribe, two
from tests.end_to_end.attacks.bystander import watched
from tests.end_to_end.attacks.conftest import Scale
from tests.end_to_end.gateway_process import Gateway

pytestmark = pytest.mark.proof

ALL_IDENTIFIERS = range(1, 65_536)


def _connected(attacker: Attacker, client: str, *, flags: int = 2) -> None:
    attacker.send(connect(client, flags=flags))
    attacker.expect(ACCEPTED)


def test_qos_2_messages_that_are_never_released_are_taken_up_to_a_limit(attacked: Gateway) -> None:
    """maximum_held_bytes, here 8 MiB with 600 bytes for each: some 13,000 of 64 bytes. 3.1.1 has no refusal."""
    with watched(attacked, memory_mib=120) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "never-released")
        for first in range(1, 65_535, 1_000):
            identifiers = range(first, min(first + 1_000, 65_536))
            messages = [publish("held", bytes(64), qos=2, identifier=each) for each in identifiers]
            if not attacker.send(b"".join(messages)):
                break
        watch.others_are_served()
        received = attacker.read_to_end()
        answered = [received[place : place + 4] for place in range(0, len(received), 4)]
        assert answered == [b"\x50\x02" + two(each) for each in range(1, len(answered) + 1)]
        assert 1_000 < len(answered) < 20_000


def test_a_reader_that_never_acknowledges_gets_its_window_and_no_more(attacked: Gateway, scale: Scale) -> None:
    count = scale(2_000, 100_000)
    with (
        watched(attacked, memory_mib=120) as watch,
        Attacker(attacked.port) as reader,
        Attacker(attacked.port) as writer,
    ):
        _connected(reader, "never-acknowledges")
        reader.send(subscribe(["window/never"], qos=1))
        reader.expect(b"\x90\x03\x00\x01\x01")
        _connected(writer, "fills-the-window")
        for number in range(count):
            writer.send(publish("window/never", b"%06d" % number, qos=1, identifier=1))
            writer.expect(b"\x40\x02\x00\x01")
        window = 100  # maximum_in_flight
        expected = [publish("window/never", b"%06d" % n, qos=1, identifier=n + 1) for n in range(window)]
        reader.expect(b"".join(expected))
        reader.send(b"\xc0\x00")
        reader.expect(b"\xd0\x00")
        watch.others_are_served()


@pytest.mark.parametrize("answer", [0x40, 0x50, 0x62, 0x70], ids=["PUBACK", "PUBREC", "PUBREL", "PUBCOMP"])
def test_answers_to_what_was_never_sent_change_nothing(attacked: Gateway, scale: Scale, answer: int) -> None:
    """PUBREC and PUBREL are answered all the same: their sender could only repeat them for ever."""
    rounds, expected = scale(1, 15), {0x50: 0x62, 0x62: 0x70}.get(answer)
    storm = b"".join(bytes((answer, 2)) + two(each) for each in ALL_IDENTIFIERS)
    with watched(attacked, memory_mib=80) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "unknown-answers")
        for _ in range(rounds):
            for first in range(0, len(storm), 40_000):
                part = storm[first : first + 40_000]
                attacker.send(part)
                if expected is not None:
                    attacker.expect(
                        b"".join(bytes((expected, 2)) + part[n + 2 : n + 4] for n in range(0, len(part), 4))
                    )
        watch.others_are_served()
        attacker.send(b"\xc0\x00")
        attacker.expect(b"\xd0\x00")


def test_who_asks_and_does_not_read_the_answers_is_not_read_either(attacked: Gateway, scale: Scale) -> None:
    storm = b"".join(b"\x62\x02" + two(each) for each in ALL_IDENTIFIERS) * 200
    with watched(attacked, memory_mib=80) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "does-not-read")
        taken = attacker.send_without_reading(storm, seconds=scale(2, 20))
        watch.others_are_served()
        assert taken < len(storm)


def test_a_subscriber_that_does_not_read_costs_a_bounded_buffer(attacked: Gateway, scale: Scale) -> None:
    """In full more than the 256 MiB of messages that are not persistent: they are dropped past that."""
    count, payload = scale(3_000, 60_000), bytes(10_000)
    with (
        watched(attacked, memory_mib=400) as watch,
        Attacker(attacked.port) as reader,
        Attacker(attacked.port) as writer,
    ):
        _connected(reader, "reads-nothing")
        reader.send(subscribe(["flood"]))
        reader.expect(b"\x90\x03\x00\x01\x00")
        _connected(writer, "floods")
        for place in range(count):
            writer.send(publish("flood", payload))
            if place % 500 == 499:
                watch.bystander.wait_for_more(1)
        watch.others_are_served()


def test_sessions_are_begun_up_to_a_limit(attacked: Gateway, scale: Scale) -> None:
    """maximum_sessions, here 6,000: past it a session that would stay is refused, one that would not is welcome."""
    count = scale(300, 7_000)
    answers = []
    with watched(attacked, memory_mib=120) as watch:
        for number in range(count):
            with Attacker(attacked.port) as attacker:
                attacker.send(connect(f"stays-{number}", flags=0))
                answers.append(attacker.receive(4))
        watch.others_are_served()
        for number in range(count):  # and away again
            with Attacker(attacked.port) as attacker:
                _connected(attacker, f"stays-{number}")
                attacker.send(packet(0xE0, b""))
                assert attacker.read_to_end() == b""
    assert answers == sorted(answers)
    assert set(answers) <= {ACCEPTED, b"\x20\x02\x00\x03"}
    assert (answers[-1] == ACCEPTED) == (count < 6_000)


def test_retained_messages_are_kept_up_to_a_limit(attacked: Gateway) -> None:
    """maximum_retained_messages, here 300; 3.1.1 has no refusal, so the connection is closed."""
    with watched(attacked, memory_mib=80) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "retained-flood")
        for place in range(400):
            message = publish(f"retained/flood/{place}", b"x" * 100, qos=1, identifier=place + 1, retain=True)
            if not attacker.send(message) or attacker.receive(4) != b"\x40\x02" + two(place + 1):
                break
        assert place == 300
        watch.others_are_served()
        with Attacker(attacked.port) as cleaner:
            _connected(cleaner, "retained-away")
            for place in range(300):
                cleaner.send(publish(f"retained/flood/{place}", b"", qos=1, identifier=place + 1, retain=True))
                cleaner.expect(b"\x40\x02" + two(place + 1))

"""The load generator measures what it says, and ends with an error where a server does anything else than it must."""

import itertools
import json
import random
import struct
import subprocess
import time
from dataclasses import replace

import pytest

from benchmarks.load.task import GENERATOR, Task, generate, generator, missing, receive_retained, retain
from benchmarks.load.wire import BenchmarkError
from benchmarks.servers import Gateway, Sink
from tests.benchmarks.load_generator import Answer, Session, answering, needs_generator

pytestmark = needs_generator

NOTHING = (b"", b"")
STALL_S = 0.2
#: A server counts its own packets.
IDENTIFIERS = itertools.count(1)


def _identifier(publish: bytes) -> bytes:
    """That of a PUBLISH of QoS 1 or 2."""
    topic_end = 4 + int.from_bytes(publish[2:4], "big")
    return publish[topic_end : topic_end + 2]


def _acknowledge(packet: bytes) -> tuple[bytes, bytes]:
    """What a server must do that has no subscribers."""
    if packet[0] == 0x62:
        return b"\x70\x02" + packet[2:4], b""
    return {0x32: b"\x40\x02", 0x34: b"\x50\x02"}[packet[0]] + _identifier(packet), b""


def _deliver(packet: bytes) -> tuple[bytes, bytes]:
    """What a server must do whose subscriber answers."""
    kind = packet[0]
    if kind in {0x32, 0x34}:
        given = packet[:-66] + next(IDENTIFIERS).to_bytes(2, "big") + packet[-64:]
        return _acknowledge(packet)[0], given
    if kind == 0x50:
        return b"\x62\x02" + packet[2:4], b""
    return (b"\x70\x02" + packet[2:4], b"") if kind == 0x62 else (b"", packet if kind == 0x30 else b"")


class Nth:
    """A server that does as it must, but not with the nth packet of a kind."""

    def __init__(self, kind: int, number: int, otherwise: Answer, well: Answer = _acknowledge) -> None:
        self._kind = kind
        self._number = number
        self._otherwise = otherwise
        self._well = well
        self._count = 0

    def __call__(self, packet: bytes) -> tuple[bytes, bytes]:
        self._count += packet[0] == self._kind
        is_it = packet[0] == self._kind and self._count == self._number
        return (self._otherwise if is_it else self._well)(packet)


def _withhold(_packet: bytes) -> tuple[bytes, bytes]:
    return NOTHING


def _told(values_ns: list[int]) -> dict[str, float]:
    """The percentiles that the generator makes of these latencies, in ms."""
    lines = "\n".join(map(str, values_ns))
    run = subprocess.run(generator("percentiles"), input=lines, capture_output=True, text=True, check=True)
    told: dict[str, float] = json.loads(run.stdout)
    return told


SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
SAMPLES = {
    "one value": [123_456_789],
    "all small values": list(range(128)),
    "a million ns": list(range(1, 1_000_001, 7)),
    "powers of two, and beside them": [2**power + more for power in range(1, 60) for more in (-1, 0, 1)],
    "long tails": [int(random.Random(7).lognormvariate(14, 2)) for _ in range(20_000)],
}


@pytest.mark.parametrize("values", SAMPLES.values(), ids=SAMPLES)
def test_percentiles_are_those_of_the_sorted_sample_and_never_too_low(values: list[int]) -> None:
    told, ordered = _told(random.Random(1).sample(values, len(values))), sorted(values)
    for name, share in SHARES.items():
        exact_ms = ordered[max(0, -int(-len(ordered) * share // 1) - 1)] / 1e6
        assert exact_ms - 1e-6 <= told[name] <= exact_ms * 1.01 + 1e-6, name
        assert told[name] <= told["max"]
    assert told["max"] == pytest.approx(ordered[-1] / 1e6, abs=1e-6)
    assert told["count"] == len(values)


def test_nothing_has_no_percentiles() -> None:
    assert set(_told([]).values()) == {0}


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("qos", [1, 2])
def test_all_that_a_sink_acknowledges_is_counted(level: int, qos: int) -> None:
    with Sink() as sink:
        outcome = generate(Task(port=sink.port, seconds=0.1, connections=3, window=10, qos=qos, level=level))
    assert outcome.acknowledged >= 3 * 10
    assert 0 < outcome.acknowledgement.p50_ms <= outcome.acknowledgement.p99_ms <= outcome.acknowledgement.max_ms


def test_a_fixed_rate_sends_exactly_so_many_messages_and_says_how_late() -> None:
    with Sink() as sink:
        outcome = generate(Task(port=sink.port, seconds=0.1, connections=3, window=10, rate=200))
    assert outcome.messages == 20
    assert outcome.elapsed_s > 0.09
    assert outcome.late.p50_ms <= outcome.acknowledgement.p50_ms


def test_an_acknowledgement_that_comes_in_two_pieces_counts_once() -> None:
    rest = [b""]

    def half(packet: bytes) -> tuple[bytes, bytes]:
        data = rest[0] + _acknowledge(packet)[0]
        rest[0] = b"" if packet[-66:-64] == b"\x00\x0a" else data[-2:]  # the last of a window is whole
        return data[: len(data) - len(rest[0])], b""

    with answering(half) as port:
        assert generate(Task(port=port, seconds=0.1, window=10, rate=100)).acknowledged == 10


def test_a_stall_is_charged_to_all_messages_that_were_due_meanwhile() -> None:
    """A server stands still for 0.2 s of a second: a fifth of all messages waits, and the window has room for ten."""

    def stall(packet: bytes) -> tuple[bytes, bytes]:
        time.sleep(STALL_S)
        return _acknowledge(packet)

    with answering(Nth(0x32, 300, stall)) as port:
        outcome = generate(Task(port=port, seconds=1, window=10, rate=1_000))
    assert outcome.messages == 1_000
    assert outcome.acknowledgement.max_ms >= 1_000 * STALL_S
    assert outcome.acknowledgement.p90_ms >= 90  # the longest tenth of all waited for 100 to 200 ms
    assert outcome.acknowledgement.p99_ms >= 180


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("rate", [0, 500])
def test_each_subscriber_gets_every_message_of_its_publisher_through_the_gateway(qos: int, rate: int) -> None:
    task = Task(port=0, seconds=0.1, connections=2, subscribers=2, window=10, qos=qos, rate=rate)
    with Gateway() as gateway:
        for level in (4, 5):
            outcome = generate(replace(task, port=gateway.port, level=level))
            assert outcome.delivered == 50 if rate else outcome.delivered >= 20
            assert outcome.acknowledged == (outcome.delivered if qos else 0)
            assert 0 < outcome.way.p50_ms <= outcome.way.max_ms


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_all_subscribers_of_one_publisher_get_every_message(qos: int) -> None:
    with Gateway() as gateway:
        outcome = generate(Task(port=gateway.port, seconds=0.1, subscribers=3, window=10, qos=qos))
    assert outcome.delivered >= 3 * 10
    assert outcome.delivered == 3 * outcome.acknowledged if qos else outcome.delivered % 3 == 0


def test_the_other_server_of_these_tests_delivers() -> None:
    for qos in (0, 1, 2):
        with answering(_deliver) as port:
            assert generate(Task(port=port, seconds=0.05, subscribers=1, window=5, qos=qos)).delivered >= 5


def _changed(place: int, well: Answer = _deliver) -> Answer:
    """One byte of what the subscriber gets is another."""

    def changed(packet: bytes) -> tuple[bytes, bytes]:
        to_sender, to_subscriber = well(packet)
        at = place % len(to_subscriber)
        return to_sender, to_subscriber[:at] + bytes((to_subscriber[at] ^ 1,)) + to_subscriber[at + 1 :]

    return changed


def _twice(packet: bytes) -> tuple[bytes, bytes]:
    to_sender, to_subscriber = _deliver(packet)
    return to_sender, 2 * to_subscriber


WRONG_ACKNOWLEDGEMENTS: dict[str, tuple[int, Answer, str]] = {
    "one PUBACK withheld": (1, Nth(0x32, 5, _withhold), "got the PUBACK of packet identifier 6 where that of 5 was"),
    "one PUBREC withheld": (2, Nth(0x34, 5, _withhold), "got the PUBREC of packet identifier 6 where that of 5 was"),
    "one PUBCOMP withheld": (2, Nth(0x62, 5, _withhold), "got the PUBCOMP of packet identifier 6 where that of 5 was"),
    "the last PUBACK withheld": (1, Nth(0x32, 20, _withhold), "19 of 20 messages were acknowledged, then nothing came"),
    "a PUBACK twice": (
        1,
        Nth(0x32, 20, lambda packet: (2 * _acknowledge(packet)[0], b"")),
        "PUBACK for packet identifier 10, and waits for none|got a wrong PUBACK",
    ),
    "PUBCOMP without PUBREL": (
        2,
        Nth(0x34, 3, lambda packet: (b"\x50\x02\x00\x03\x70\x02\x00\x03", b"")),
        "got the PUBCOMP of packet identifier 3 where that of|PUBCOMP for packet identifier 3, and waits for none",
    ),
    "PUBREC at QoS 1": (1, Nth(0x32, 2, lambda packet: (b"\x50\x02\x00\x02", b"")), "got a wrong PUBREC: flags 0"),
    "flags in a PUBACK": (1, Nth(0x32, 2, lambda packet: (b"\x41\x02\x00\x02", b"")), "got a wrong PUBACK: flags 1"),
    "a PUBACK of one byte": (1, Nth(0x32, 2, lambda packet: (b"\x40\x01\x00", b"")), "got a wrong PUBACK: flags 0"),
    "a refusal": (1, Nth(0x32, 2, lambda packet: (b"\x40\x03\x00\x02\x97", b"")), "wrong PUBACK: .* 000297"),
    "a PUBLISH for a publisher": (1, Nth(0x32, 2, lambda packet: (packet, b"")), "got a wrong PUBLISH"),
    "a malformed length": (1, Nth(0x32, 2, lambda packet: (b"\x40" + 5 * b"\xff", b"")), "length is malformed"),
}


@pytest.mark.parametrize(("qos", "answer", "said"), WRONG_ACKNOWLEDGEMENTS.values(), ids=WRONG_ACKNOWLEDGEMENTS)
def test_a_wrong_acknowledgement_ends_the_run(qos: int, answer: Answer, said: str) -> None:
    with answering(answer) as port, pytest.raises(BenchmarkError, match=said):
        generate(Task(port=port, seconds=0.1, window=10, qos=qos, rate=200, wait_ms=200))


def _reusing(packet: bytes) -> tuple[bytes, bytes]:
    to_sender, to_subscriber = _deliver(packet)
    return to_sender, to_subscriber[:-66] + b"\x00\x01" + to_subscriber[-64:] if to_subscriber else b""


WRONG_DELIVERIES: dict[str, tuple[int, Answer, str]] = {
    "a message withheld": (1, Nth(0x32, 5, _acknowledge, _deliver), "got message 6 where message 5 was due"),
    "a message of QoS 0 withheld": (0, Nth(0x30, 5, _withhold, _deliver), "got message 6 where message 5 was due"),
    "the last message withheld": (1, Nth(0x32, 20, _acknowledge, _deliver), "19 of 20 messages came, and 0 PUBRELs"),
    "a message twice": (1, Nth(0x32, 5, _twice, _deliver), "got message 5 where message 6 was due"),
    "the last message twice": (
        1,
        Nth(0x32, 20, _twice, _deliver),
        "got message 20 where message 21 was due|got a wrong PUBLISH",
    ),
    "another topic": (1, Nth(0x32, 2, _changed(6), _deliver), "subscriber-0 got a wrong PUBLISH"),
    "retained": (1, Nth(0x32, 2, _changed(0), _deliver), "subscriber-0 got a wrong PUBLISH: flags 3"),
    "a PUBREL withheld": (2, Nth(0x50, 20, _withhold, _deliver), "20 of 20 messages came, and 19 PUBRELs"),
    "an identifier that is in use": (
        2,
        Nth(0x50, 2, _withhold, _reusing),
        "packet identifier 1, which was not released",
    ),
    "a PUBREL of another identifier": (
        2,
        Nth(0x50, 2, lambda packet: (b"\x62\x02\x77\x77", b""), _deliver),
        "subscriber-0 got a wrong PUBREL: flags 2, 2 bytes, 7777",
    ),
}


@pytest.mark.parametrize(("qos", "answer", "said"), WRONG_DELIVERIES.values(), ids=WRONG_DELIVERIES)
def test_a_wrong_delivery_ends_the_run(qos: int, answer: Answer, said: str) -> None:
    with answering(answer) as port, pytest.raises(BenchmarkError, match=said):
        generate(Task(port=port, seconds=0.1, subscribers=1, window=10, qos=qos, rate=200, wait_ms=200))


@pytest.mark.parametrize("connack", ["20 02 00 05", "20 02 01 00", "20 03 00 00 00", "90 02 00 00"])
def test_a_connection_that_is_not_accepted_as_new_ends_the_run(connack: str) -> None:
    session = Session(connack=bytes.fromhex(connack))
    with answering(_acknowledge, session) as port, pytest.raises(BenchmarkError, match="publisher-0"):
        generate(Task(port=port, seconds=0.1))


def test_an_acknowledgement_too_many_is_found_behind_the_last_message() -> None:
    session = Session(pingresp=b"\x40\x02\x00\x01\xd0\x00")
    with answering(_acknowledge, session) as port, pytest.raises(BenchmarkError, match="got a wrong PUBACK"):
        generate(Task(port=port, seconds=0.1, rate=100))


@pytest.mark.parametrize("code", [b"\x00", b"\x80"])
def test_a_subscription_that_is_not_granted_ends_the_run(code: bytes) -> None:
    with answering(_deliver, Session(code=code)) as port, pytest.raises(BenchmarkError, match="got a wrong SUBACK"):
        generate(Task(port=port, seconds=0.1, subscribers=1, qos=1))


def test_a_window_beyond_what_the_server_allows_is_refused() -> None:
    allows_five = Session(connack=bytes.fromhex("20 09 00 00 06") + b"\x21\x00\x05\x22\x00\x01")
    with answering(_acknowledge, allows_five) as port, pytest.raises(BenchmarkError, match="allows 5 messages"):
        generate(Task(port=port, seconds=0.1, window=6, level=5))


def test_a_generator_without_a_server_says_so() -> None:
    with pytest.raises(BenchmarkError, match="publish: publisher-0 cannot connect to port 1: Connection refused"):
        generate(Task(port=1, seconds=0.1))


@pytest.mark.parametrize(
    "arguments",
    [[], ["run"], ["publish", "speed=1"], ["publish", "qos=3"], ["publish", "qos=x"], ["publish", "seconds=0"]],
)
def test_a_wrong_argument_exits_2_and_shows_the_usage(arguments: list[str]) -> None:
    run = subprocess.run(generator(*arguments), capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "usage: generator publish|retain|subscribe" in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("payload_bytes", [0, 64, 20_000])
def test_packets_are_those_of_the_specification(payload_bytes: int) -> None:
    """The length of a PUBLISH has one byte below 128, else up to four (MQTT 3.1.1 section 2.2.3)."""
    with Gateway() as gateway:
        task = Task(port=gateway.port, seconds=0.05, payload_bytes=payload_bytes, window=3)
        assert generate(task).acknowledged >= 3
        assert generate(replace(task, subscribers=min(payload_bytes, 1), qos=2)).messages >= 3


def _retained(number: int, payload: bytes = 64 * b"x") -> bytes:
    topic = f"kept/{number}".encode()
    body = struct.pack(">H", len(topic)) + topic + payload
    return bytes((0x31, len(body))) + body


WRONGLY_RETAINED = {
    "one is missing": ([_retained(0)], "1 of 2 messages came, then nothing"),
    "one comes twice": ([_retained(0), _retained(0)], "retained message 0 came twice"),
    "one that was not asked for": ([_retained(2)], "got a wrong PUBLISH"),
    "a longer number": ([_retained(0), _retained(1).replace(b"kept/1", b"kept/a")], "got a wrong PUBLISH"),
    "another length": ([_retained(1, b"x")], "got a wrong PUBLISH"),
    "one that is not retained": ([b"\x30" + _retained(1)[1:]], "got a wrong PUBLISH"),
}


@pytest.mark.parametrize(("sent", "said"), WRONGLY_RETAINED.values(), ids=WRONGLY_RETAINED)
def test_a_retained_message_that_is_not_what_it_must_be_ends_the_run(sent: list[bytes], said: str) -> None:
    with answering(_acknowledge, Session(retained=b"".join(sent))) as port, pytest.raises(BenchmarkError, match=said):
        receive_retained(Task(port=port, qos=0, count=2, topic="kept", wait_ms=200))


def test_retained_messages_are_published_with_more_than_one_window() -> None:
    with answering(_acknowledge_retained) as port:
        retain(Task(port=port, count=25, window=10, topic="kept", wait_ms=200))
    withheld = Nth(0x33, 24, _withhold, _acknowledge_retained)
    with answering(withheld) as port, pytest.raises(BenchmarkError, match="got a wrong PUBACK"):
        retain(Task(port=port, count=25, window=10, topic="kept", wait_ms=200))


def test_topics_without_a_retained_message_begin_where_they_are_told_to() -> None:
    topics: list[bytes] = []

    def acknowledge(packet: bytes) -> tuple[bytes, bytes]:
        assert packet[0] == 0x32
        topics.append(packet[4 : 4 + int.from_bytes(packet[2:4], "big")])
        return _acknowledge_retained(packet)

    with answering(acknowledge) as port:
        assert retain(Task(port=port, count=3, first=8, window=2, topic="new", retained=False, wait_ms=200)) > 0
    assert topics == [b"new/8", b"new/9", b"new/10"]


def _acknowledge_retained(packet: bytes) -> tuple[bytes, bytes]:
    return b"\x40\x02" + _identifier(packet), b""


def test_a_generator_that_is_not_built_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.load.task.GENERATOR", GENERATOR.with_name("elsewhere"))
    assert "deploy/setup/load-generator.sh" in missing()
    with pytest.raises(BenchmarkError, match="not built"):
        generate(Task(port=1))

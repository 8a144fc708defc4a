"""Dead letters go back: where to, which of them, once, and why some stay."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.operations.redrive import Redrive, RedriveResult, RedriveSelection, opened
from mq_adapters.embedded.direct import Direct
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from tests.headers import mqrfh

DEAD_LETTERS = "SYSTEM.DEAD.LETTER.QUEUE"
TRANSMISSION_QUEUES = ("RFHBRIDGE.XMIT.CENTRAL.0", "RFHBRIDGE.XMIT.CENTRAL.1")
NOW_US = 1_800_000_000_000_000


def mqdlh(
    *, reason: int, queue: str, queue_manager: str, format: bytes = b"MQSTR   ", time: bytes = b"08300050"
) -> bytes:
    """172 bytes by IBM's layout, little-endian, UTF-8, of 2026-11-20."""
    return b"".join(
        (
            b"DLH \x01\x00\x00\x00",
            reason.to_bytes(4, "little"),
            queue.encode().ljust(48),
            queue_manager.encode().ljust(48),
            (546).to_bytes(4, "little"),
            (1208).to_bytes(4, "little"),
            format,
            (26).to_bytes(4, "little"),
            b"RFHBRIDGE".ljust(28),
            b"20261120",
            time,
        )
    )


def dead_letter(body: bytes, number: int = 1, **header: object) -> Message:
    said = {"reason": 2053, "queue": "ORDERS", "queue_manager": "", **header}
    descriptor = MessageDescriptor(
        persistence=MQPER_PERSISTENT, format=b"MQDEAD  ", msg_id=b"RFHB" + number.to_bytes(20, "big"), priority=3
    )
    return Message(descriptor, mqdlh(**said) + body)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Direct]:
    with Direct(tmp_path) as queue_manager:
        queue_manager.define("ORDERS")
        for name in TRANSMISSION_QUEUES:
            assert queue_manager.mqsc(f"DEFINE QLOCAL({name}) USAGE(XMITQ)").succeeded
        yield queue_manager


def put(store: Direct, *letters: Message) -> None:
    for letter in letters:
        store.put(DEAD_LETTERS, letter)


def redriven(store: Direct, *, dry: bool = False, **wish: object) -> RedriveResult:
    work = Redrive(store, DEAD_LETTERS, ways={"QM1": TRANSMISSION_QUEUES}, now_us=lambda: NOW_US)
    return work.run(RedriveSelection(**wish), dry=dry, advance=lambda: None)


def bodies(store: Direct, queue: str) -> list[bytes]:
    return [message.body for message in store.browse(queue)]


def test_a_message_of_this_queue_manager_goes_back_as_it_was(store):
    put(store, dead_letter(b"one"), dead_letter(b"two", 2, queue_manager=store.name))
    outcome = redriven(store)
    assert (outcome.put_back, outcome.refused, outcome.queues) == (2, 0, {"ORDERS": 2})
    first, second = store.browse("ORDERS")
    assert (first.body, first.msg_id, first.descriptor.format) == (
        b"one",
        b"RFHB" + (1).to_bytes(20, "big"),
        b"MQSTR   ",
    )
    assert (first.descriptor.priority, first.is_persistent) == (3, True)
    assert second.body == b"two"
    assert bodies(store, DEAD_LETTERS) == []


def test_a_message_for_a_target_goes_through_its_transmission_queue_again(store):
    header = mqrfh("MQPSCommand Publish MQPSTopic a/b rfhbQos 1 rfhbClient pump-7 rfhbSeq 12")
    put(store, dead_letter(header + b"21.5", queue="STOCK", queue_manager="QM1", format=b"MQHRF   "))
    outcome = redriven(store)
    assert outcome.put_back == 1
    (name,) = outcome.queues
    (message,) = store.browse(name)
    assert message.descriptor.format == b"MQXMIT  "
    assert message.body[:8] == b"XQH \x01\x00\x00\x00"
    assert message.body[8:56] == b"STOCK".ljust(48)
    assert message.body[104 + 48 : 104 + 72] == b"RFHB" + (1).to_bytes(20, "big")  # MsgId in the embedded MQMD
    assert message.body[428:] == header + b"21.5"


def test_a_filter_leaves_the_others_where_they_are(store):
    def publish(topic: str, client: str) -> bytes:
        return mqrfh(f"MQPSCommand Publish MQPSTopic {topic} rfhbClient {client}")

    put(
        store,
        dead_letter(publish("plant/1", "pump"), 1, format=b"MQHRF   ", reason=2053, time=b"08000000"),
        dead_letter(publish("plant/2", "pump"), 2, format=b"MQHRF   ", reason=2030, time=b"09000000"),
        dead_letter(publish("office", "lamp"), 3, format=b"MQHRF   ", reason=2053, time=b"10000000"),
    )
    nine = 1_795_165_200_000_000  # 2026-11-20 09:00:00 UTC
    for wish, expected in (
        ({"reason_code": 2030}, 1),
        ({"client": "lamp"}, 1),
        ({"topic_filter": "plant/+"}, 2),
        ({"since_us": nine}, 2),
        ({"until_us": nine}, 1),
        ({"since_us": nine, "reason_code": 2053, "topic_filter": "#", "client": "lamp"}, 1),
        ({"client": "nobody"}, 0),
    ):
        outcome = redriven(store, dry=True, **wish)
        assert (outcome.put_back, outcome.passed_over) == (expected, 3 - expected), wish
    assert redriven(store, client="lamp").put_back == 1
    assert len(bodies(store, DEAD_LETTERS)) == 2


def test_a_dry_run_changes_nothing(store):
    put(store, dead_letter(b"one"), dead_letter(b"lost", 2, queue="MISSING"))
    outcome = redriven(store, dry=True)
    assert (outcome.put_back, outcome.refused, outcome.queues) == (1, 1, {"ORDERS": 1})
    assert len(bodies(store, DEAD_LETTERS)) == 2
    assert bodies(store, "ORDERS") == []


def test_what_cannot_go_back_stays_with_its_reason_and_the_rest_go(store):
    store.mqsc("DEFINE QLOCAL(CLOSED) PUT(DISABLED)")
    put(
        store,
        dead_letter(b"one", 1),
        dead_letter(b"lost", 2, queue="MISSING"),
        dead_letter(b"shut", 3, queue="CLOSED"),
        dead_letter(b"nowhere", 4, queue=""),
        dead_letter(b"round", 5, queue=DEAD_LETTERS),
        dead_letter(b"abroad", 6, queue_manager="QM9"),
        Message(MessageDescriptor(msg_id=b"\x07" * 24), b"no header"),
        Message(MessageDescriptor(msg_id=b"\x08" * 24, format=b"MQDEAD  "), b"no header either"),
        dead_letter(b"two", 9),
    )
    outcome = redriven(store)
    assert bodies(store, "ORDERS") == [b"one", b"two"]
    assert (outcome.put_back, outcome.refused) == (2, 7)
    assert len(bodies(store, DEAD_LETTERS)) == 7
    words = " ".join(reason for _, reason in outcome.reasons)
    for expected in ("2085", "2051", "does not say", "this very queue", "QM9", "no MQDLH", "cannot be read"):
        assert expected in words
    assert len(outcome.reasons) == 7


def test_many_go_back_in_units_of_work_in_their_order(store):
    store.begin()
    for number in range(250):
        store.put(DEAD_LETTERS, dead_letter(b"%03d" % number, number + 1))
    store.commit()
    assert redriven(store).put_back == 250
    assert bodies(store, "ORDERS") == [b"%03d" % number for number in range(250)]


def test_what_becomes_a_dead_letter_meanwhile_is_not_looked_at(store):
    put(store, dead_letter(b"one"))
    work = Redrive(store, DEAD_LETTERS, ways={}, now_us=lambda: NOW_US)
    seen: list[int] = []

    def advance() -> None:
        seen.append(1)
        put(store, dead_letter(b"later", 100 + len(seen)))

    assert work.run(RedriveSelection(), dry=False, advance=advance).put_back == 1
    assert len(bodies(store, DEAD_LETTERS)) == len(seen)


def test_the_second_of_two_with_one_msg_id_waits_for_its_turn(store):
    put(store, dead_letter(b"first", 1, reason=2030), dead_letter(b"second", 1, reason=2053))
    outcome = redriven(store, reason_code=2053)
    assert (outcome.put_back, outcome.refused) == (0, 1)
    assert "same MsgId" in outcome.reasons[0][1]
    assert len(bodies(store, DEAD_LETTERS)) == 2
    assert redriven(store).put_back == 2


@pytest.mark.parametrize("time", [b"08300050", b"        ", b"99999999"])
def test_a_time_that_is_none_is_never(time):
    letter = dead_letter(b"", time=time)
    assert opened(letter).at_us == (1_795_163_400_500_000 if time == b"08300050" else 0)


def test_a_dead_letter_that_comes_back_meanwhile_is_left_for_the_next_run(store):
    """What is refused again is a dead letter again within milliseconds: one run must end all the same."""
    put(store, dead_letter(b"poison"))
    numbers = iter(range(2, 50))

    def refused_again() -> None:
        put(store, dead_letter(b"poison", next(numbers)))

    work = Redrive(store, DEAD_LETTERS, ways={}, now_us=lambda: NOW_US)
    outcome = work.run(RedriveSelection(), dry=False, advance=refused_again)
    assert (outcome.put_back, store.depth(DEAD_LETTERS)) == (1, 1)

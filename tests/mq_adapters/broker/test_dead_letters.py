"""A dead-letter queue that takes nothing: nothing persistent is lost, and what is held goes on by itself."""

from itertools import pairwise

import pytest

from mq_adapters.dead_letter import bury
from mq_adapters.embedded.direct import Direct
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from mq_adapters.system_queues import DEAD_LETTER_QUEUE
from tests.mq_adapters.broker.conftest import Station
from tests.mq_adapters.channel import faults

HELD = "SYSTEM.RFHBRIDGE.HELD"
HEADER = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
CLOSED = [
    f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) PUT(DISABLED)",
    f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) MAXDEPTH(0)",
    "ALTER QMGR DEADQ(' ')",
    "ALTER QMGR DEADQ(NO.SUCH.QUEUE)",
    "ALTER QMGR DEADQ(SYSTEM.BROKER.DEFAULT.STREAM)",
    f"ALTER QMGR DEADQ({HELD})",
]
OPEN = [
    f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) PUT(ENABLED) MAXDEPTH(1000)",
    f"ALTER QMGR DEADQ({DEAD_LETTER_QUEUE})",
]


def mqsc(station: Station, *commands: str) -> None:
    hand = faults.Connection(station.engine, "a test")
    for command in commands:
        assert hand.mqsc(command).succeeded, command
    hand.close()


def lost(station: Station, count: int = 1, **fields: object) -> None:
    """Publications whose only subscriber has no room."""
    if not station.broker.retained_publications and station.engine.queue("NEW").maximum_depth:
        station.subscribe_new("a")
        station.engine.queue("NEW").maximum_depth = 0
    for number in range(count):
        station.publish(HEADER, b"%02d" % number, **fields)


def numbers(station: Station, queue_name: str) -> list[bytes]:
    return [message.body[-2:] for message in station.engine.browse(station.engine.queue(queue_name))]


@pytest.mark.parametrize("closed", CLOSED)
def test_what_finds_no_dead_letter_queue_is_held_and_goes_on_in_its_order(station: Station, closed: str) -> None:
    mqsc(station, closed)
    lost(station, 3)
    assert numbers(station, HELD) == [b"00", b"01", b"02"]
    assert station.listener.drops == []
    assert [name for _, name, _ in station.listener.dead_letters] == ["NEW"] * 3
    station.restart()
    station.engine.tick()
    assert len(numbers(station, HELD)) == 3, "held over a restart, and while the queue takes nothing"
    mqsc(station, *OPEN)
    held = [letter.msg_id for letter in station.engine.browse(station.engine.queue(HELD))]
    station.pass_time(2)
    station.engine.tick()
    assert numbers(station, HELD) == []
    assert numbers(station, DEAD_LETTER_QUEUE) == [b"00", b"01", b"02"]
    moved = station.take_all(DEAD_LETTER_QUEUE)
    assert [letter.msg_id for letter in moved] == held
    assert [name for _, name, _ in station.listener.dead_letters[3:]] == [HELD] * 3


def test_as_many_go_on_as_the_dead_letter_queue_has_room_for(station: Station) -> None:
    mqsc(station, f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) MAXDEPTH(2)")
    lost(station, 50)
    assert (len(numbers(station, DEAD_LETTER_QUEUE)), len(numbers(station, HELD))) == (2, 48)
    mqsc(station, f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) MAXDEPTH(45)")
    station.pass_time(2)
    station.engine.tick()
    assert (len(numbers(station, DEAD_LETTER_QUEUE)), len(numbers(station, HELD))) == (45, 5)
    together = numbers(station, DEAD_LETTER_QUEUE) + numbers(station, HELD)
    assert together == [b"%02d" % number for number in range(50)]


def test_what_is_not_persistent_is_dropped_counted_and_told(station: Station) -> None:
    mqsc(station, CLOSED[0])
    lost(station, 2, persistence=0)
    assert numbers(station, HELD) == numbers(station, DEAD_LETTER_QUEUE) == []
    assert [name for name, _ in station.listener.drops] == ["NEW", "NEW"]
    assert "2051" in station.listener.drops[0][1]
    assert (station.engine.dead_letters.dropped, station.engine.dead_letters.held) == (2, 0)


def test_an_operator_cannot_close_the_queue_of_held_letters(station: Station) -> None:
    mqsc(station, CLOSED[0], f"ALTER QLOCAL({HELD}) PUT(DISABLED) MAXDEPTH(0) MAXMSGL(1) DEFPSIST(NO)")
    lost(station)
    station.restart()
    assert numbers(station, HELD) == [b"00"]


def test_an_operator_cannot_delete_the_queue_of_held_letters(station: Station) -> None:
    hand = faults.Connection(station.engine, "a test")
    assert not hand.mqsc(f"DELETE QLOCAL({HELD})").succeeded
    hand.close()


def test_an_application_that_caused_what_is_held_gives_the_broker_nothing_more(station: Station) -> None:
    mqsc(station, CLOSED[0])
    cause, other = (faults.Connection(station.engine, name) for name in ("cause", "other"))
    message = Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"no header")
    cause.put("SYSTEM.BROKER.DEFAULT.STREAM", message)
    with pytest.raises(QueueManagerError, match="2053"):
        cause.put("SYSTEM.BROKER.DEFAULT.STREAM", message)
    cause.put("OLD", message)
    other.put("SYSTEM.BROKER.DEFAULT.STREAM", message)
    assert len(numbers(station, HELD)) == 2
    mqsc(station, *OPEN)
    station.pass_time(2)
    station.engine.tick()
    cause.put("SYSTEM.BROKER.DEFAULT.STREAM", message)
    assert len(numbers(station, DEAD_LETTER_QUEUE)) == 3
    for hand in (cause, other):
        hand.close()


def test_a_queue_that_is_full_is_told_in_few_lines(station: Station, caplog: pytest.LogCaptureFixture) -> None:
    mqsc(station, CLOSED[0])
    for _ in range(30):
        lost(station, 3)
        station.pass_time(0.1)
        station.engine.tick()
    lines = [record for record in caplog.records if "dead-letter queue took nothing" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].levelname == "ERROR"
    assert "held=3" in lines[0].getMessage()
    assert "2051" in lines[0].getMessage()
    station.pass_time(10)
    station.engine.tick()
    assert "held=87" in caplog.records[-1].getMessage()


def test_a_report_that_has_no_queue_is_held_too(station: Station) -> None:
    mqsc(station, CLOSED[0])
    station.put("OLD", b"        ", b"late", report=0x0020_0000, reply_to_q="NO.SUCH.QUEUE", expiry=10)
    station.pass_time(2)
    station.engine.tick()
    (letter,) = station.engine.browse(station.engine.queue(HELD))
    assert letter.body[12:60].rstrip() == b"NO.SUCH.QUEUE"


# -- letters are longer than messages ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_altered", [False, True])
def test_no_letter_is_too_long(station: Station, is_altered: bool) -> None:
    """The longest message of its queue, and 172 bytes; a store of an earlier version may have said MAXMSGL of it."""
    mqsc(station, f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) MAXMSGL(100)")
    if is_altered:
        mqsc(station, f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) MAXDEPTH(10)", "ALTER QMGR MAXMSGL(500)")
    else:
        station.restart()
    body = bytes(1000)
    station.put("SYSTEM.BROKER.DEFAULT.STREAM", b"MQSTR   ", body)
    (letter,) = station.engine.browse(station.engine.queue(DEAD_LETTER_QUEUE))
    assert letter.body[172:] == body
    assert numbers(station, HELD) == []


def test_a_channel_or_an_application_can_bury_the_longest_message(tmp_path) -> None:
    with Direct(tmp_path) as queue_manager:
        assert queue_manager.mqsc("ALTER QMGR MAXMSGL(500)").succeeded
        assert queue_manager.mqsc(f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) MAXMSGL(500)").succeeded
        message = Message(MessageDescriptor(persistence=MQPER_PERSISTENT), bytes(500))
        bury(queue_manager, message, queue_name="A", queue_manager_name="B", reason_code=2030, now_us=0)
        (letter,) = queue_manager.browse(DEAD_LETTER_QUEUE)
        assert len(letter.body) == 672


def test_another_dead_letter_queue_takes_the_longest_message_too(station: Station) -> None:
    mqsc(
        station, "ALTER QMGR DEADQ(ALIAS)", "DEFINE QLOCAL(MY.DEAD) MAXMSGL(10)", "DEFINE QALIAS(ALIAS) TARGET(MY.DEAD)"
    )
    lost(station)
    assert numbers(station, "MY.DEAD") == [b"00"]
    mqsc(station, *OPEN)
    assert station.engine.queue("MY.DEAD").maximum_message_bytes == 10


# -- shares ------------------------------------------------------------------------------------------------------------


def test_nobody_fills_more_than_his_share(station: Station) -> None:
    letters = station.engine.dead_letters
    letters.client_of, letters.share = bytes.decode, 3
    refused: list[int] = []
    letters.on_share_reached = lambda _limit: refused.append(1)
    for client in (b"one", b"two"):
        for number in range(5):
            station.put("SYSTEM.BROKER.DEFAULT.STREAM", b"MQSTR   ", b"%02d" % number, origin=client)
    origins = [letter.origin for letter in station.engine.browse(station.engine.queue(DEAD_LETTER_QUEUE))]
    assert origins == [b"one"] * 3 + [b"two"] * 3
    assert len(numbers(station, HELD)) == 4
    assert len(refused) == 4
    assert letters.waits("one")
    assert letters.waits("two")


def test_a_share_is_what_the_queue_holds_also_after_a_restart(station: Station) -> None:
    station.engine.dead_letters.client_of = bytes.decode
    for number in range(4):
        station.put("SYSTEM.BROKER.DEFAULT.STREAM", b"MQSTR   ", b"%02d" % number, origin=b"one")
    station.restart()
    letters = station.engine.dead_letters
    letters.client_of, letters.share = bytes.decode, 4
    station.put("SYSTEM.BROKER.DEFAULT.STREAM", b"MQSTR   ", b"04", origin=b"one")
    assert numbers(station, HELD) == [b"04"]
    released: list[int] = []
    letters.on_release = lambda: released.append(1)
    station.engine.tick()
    station.take_all(DEAD_LETTER_QUEUE)
    station.pass_time(11)
    station.engine.tick()
    assert numbers(station, DEAD_LETTER_QUEUE) == [b"04"]
    assert released == [1]
    assert not letters.waits("one")


def test_letters_past_a_share_are_looked_at_a_few_bytes_in_a_turn(station: Station, monkeypatch) -> None:
    letters = station.engine.dead_letters
    letters.client_of, letters.share = bytes.decode, 1
    for number in range(6):
        station.put("SYSTEM.BROKER.DEFAULT.STREAM", b"MQSTR   ", b"%02d" % number + bytes(500_000), origin=b"one")
    assert len(numbers(station, HELD)) == 5
    looks: list[int] = []
    units: list[int] = []
    take, begin = station.engine.take_number, station.engine.begin
    monkeypatch.setattr(
        station.engine, "take_number", lambda queue, number: looks.append(number) or take(queue, number)
    )
    monkeypatch.setattr(station.engine, "begin", lambda: units.append(len(looks)) or begin())
    station.pass_time(11)
    station.engine.tick()
    assert len(looks) == 5
    assert all(later - before <= 3 for before, later in pairwise([*units, len(looks)]))


def test_who_has_filled_his_share_of_a_queue_that_was_deleted_begins_anew(station: Station) -> None:
    letters = station.engine.dead_letters
    letters.client_of, letters.share = bytes.decode, 1
    mqsc(station, "DEFINE QLOCAL(MY.DEAD)", "ALTER QMGR DEADQ(MY.DEAD)")
    station.put("SYSTEM.BROKER.DEFAULT.STREAM", b"MQSTR   ", b"00", origin=b"one")
    mqsc(station, f"ALTER QMGR DEADQ({DEAD_LETTER_QUEUE})", "DELETE QLOCAL(MY.DEAD) PURGE", "DEFINE QLOCAL(MY.DEAD)")
    mqsc(station, "ALTER QMGR DEADQ(MY.DEAD)")
    for number in range(2):
        station.put("SYSTEM.BROKER.DEFAULT.STREAM", b"MQSTR   ", b"%02d" % number, origin=b"one")
    assert (numbers(station, "MY.DEAD"), numbers(station, HELD)) == ([b"00"], [b"01"])


def test_a_share_is_half_of_a_small_queue(station: Station) -> None:
    letters = station.engine.dead_letters
    letters.client_of, letters.share = bytes.decode, 100
    mqsc(station, f"ALTER QLOCAL({DEAD_LETTER_QUEUE}) MAXDEPTH(5)")
    for number in range(5):
        station.put("SYSTEM.BROKER.DEFAULT.STREAM", b"MQSTR   ", b"%02d" % number, origin=b"one")
    assert numbers(station, DEAD_LETTER_QUEUE) == [b"00", b"01"]
    station.put("SYSTEM.BROKER.DEFAULT.STREAM", b"MQSTR   ", b"99", origin=b"two")
    assert numbers(station, DEAD_LETTER_QUEUE) == [b"00", b"01", b"99"], "there is room for others"


def test_a_subscription_has_its_share_by_its_correl_id(station: Station) -> None:
    station.engine.dead_letters.share = 2
    lost(station, 3)
    assert (len(numbers(station, DEAD_LETTER_QUEUE)), len(numbers(station, HELD))) == (2, 1)

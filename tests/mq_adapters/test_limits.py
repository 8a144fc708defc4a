"""What may not grow without an end, and what applications may not touch."""

import tracemalloc

import pytest

from mq_adapters.embedded import message_cache
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError

AUDIT_QUEUE = "SYSTEM.RFHBRIDGE.AUDIT"
ONE_HOUR = 36_000  # MQMD.Expiry counts tenths of a second


def _put(engine: Engine, body: bytes, **fields: object) -> None:
    unit = engine.begin()
    engine.put(unit, engine.queue("ORDERS"), Message(MessageDescriptor(**fields), body))
    engine.submit(unit)


def _get(engine: Engine) -> bytes:
    queue = engine.queue("ORDERS")
    message = engine.take(queue)
    assert message is not None
    unit = engine.begin()
    unit.remove(queue, message, Departure.TAKEN)
    engine.submit(unit)
    return message.body


def test_messages_that_live_in_memory_alone_are_refused_with_2056_when_it_is_used_up(engine, monkeypatch):
    """Persistent ones are on the disk and are taken; a get makes room again."""
    monkeypatch.setattr(message_cache, "MAXIMUM_IN_MEMORY_BYTES", 2_000)
    _put(engine, bytes(1_000), persistence=MQPER_NOT_PERSISTENT)
    with pytest.raises(QueueManagerError) as refused:
        _put(engine, bytes(1_000), persistence=MQPER_NOT_PERSISTENT)
    assert refused.value.reason_code == 2056
    _put(engine, b"on the disk", persistence=MQPER_PERSISTENT)
    assert _get(engine) == bytes(1_000)
    _put(engine, b"in memory", persistence=MQPER_NOT_PERSISTENT)
    assert (_get(engine), _get(engine)) == (b"on the disk", b"in memory")


def test_messages_that_were_got_before_they_expired_do_not_pile_up(engine):
    """Each would cost its entry, about 150 bytes, until the moment at which it would have expired."""

    def pass_through(count: int) -> None:
        for _ in range(count):
            _put(engine, b"gone", persistence=MQPER_NOT_PERSISTENT, expiry=ONE_HOUR)
            _get(engine)

    pass_through(100)
    tracemalloc.start()
    try:
        pass_through(2_000)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 100_000


@pytest.mark.parametrize("waiting", [0, 200])
def test_what_has_expired_is_destroyed_among_many_that_are_gone(data_folder, waiting):
    now_us = 1_000_000
    engine = Engine.open(data_folder, now_us=lambda: now_us)
    engine.define("ORDERS")
    for _ in range(300):
        _put(engine, b"gone", persistence=MQPER_NOT_PERSISTENT, expiry=ONE_HOUR)
        _get(engine)
    for _ in range(waiting):
        _put(engine, b"waits", persistence=MQPER_NOT_PERSISTENT, expiry=ONE_HOUR)
    now_us += 3_601_000_000
    engine.tick()
    assert engine.queue("ORDERS").depth == 0
    engine.close()


@pytest.fixture
def noted(adapter, queue_manager):
    """A queue manager whose audit queue has a batch, as a commit of the gateway leaves it there."""

    def note():
        engine = adapter.engine
        unit = engine.begin()
        engine.put(unit, engine.queue(AUDIT_QUEUE), Message(MessageDescriptor(format=b"RFHBAUD "), b"packed notes"))
        engine.submit(unit)

    note() if adapter.gateway is None else adapter.gateway.call(note)
    while queue_manager.depth(AUDIT_QUEUE) == 0:
        continue
    queue_manager.mqsc(f"DEFINE QALIAS(NOTES) TARGET({AUDIT_QUEUE})")
    return queue_manager


def _take_batch(queue_manager):
    queue_manager.begin()
    try:
        queue_manager.take_batch(AUDIT_QUEUE, most_messages=9, most_bytes=9_999)
    finally:
        queue_manager.commit()


def _take_browsed(queue_manager):
    cursor = queue_manager.browse(AUDIT_QUEUE)
    cursor.first()
    cursor.take()


@pytest.mark.parametrize(
    "take",
    [
        lambda queue_manager: queue_manager.get(AUDIT_QUEUE),
        lambda queue_manager: queue_manager.get("NOTES", wait_s=9),
        lambda queue_manager: queue_manager.get(AUDIT_QUEUE, msg_id=next(queue_manager.browse(AUDIT_QUEUE)).msg_id),
        _take_browsed,
        _take_batch,
        lambda queue_manager: queue_manager.clear(AUDIT_QUEUE),
        lambda queue_manager: queue_manager.open_exclusively(AUDIT_QUEUE).close(),
    ],
    ids=["get", "get from an alias", "get one", "take what was browsed", "take a batch", "clear", "hold"],
)
def test_no_application_takes_audit_notes_off_their_queue(noted, take):
    """Nor one of the gateway's own user: the trail would have a gap for ever."""
    with pytest.raises(QueueManagerError, match="the gateway's alone") as refused:
        take(noted)
    assert refused.value.reason_code == 2035
    assert [message.body for message in noted.browse(AUDIT_QUEUE)] == [b"packed notes"]


@pytest.mark.parametrize(
    "command",
    [
        f"ALTER QLOCAL({AUDIT_QUEUE}) GET(DISABLED)",
        f"ALTER QLOCAL({AUDIT_QUEUE}) PUT(DISABLED) MAXDEPTH(0)",
        f"DEFINE QLOCAL({AUDIT_QUEUE}) REPLACE MSGDLVSQ(PRIORITY)",
        f"CLEAR QLOCAL({AUDIT_QUEUE})",
        f"DELETE QLOCAL({AUDIT_QUEUE}) PURGE",
    ],
)
def test_the_audit_queue_stays_as_it_was_made(noted, command):
    before = noted.inquire(AUDIT_QUEUE)
    answer = noted.mqsc(command)
    assert not answer.succeeded
    assert answer.lines[0].startswith("AMQ8148E: The object is in use."), answer
    assert (noted.inquire(AUDIT_QUEUE), noted.depth(AUDIT_QUEUE)) == (before, 1)


def test_what_an_earlier_version_let_an_operator_say_of_the_audit_queue_is_taken_back(data_folder):
    engine = Engine.open(data_folder)
    made = engine.queue(AUDIT_QUEUE).definition
    engine.objects.alter(made.altered({"GET": "DISABLED", "MAXDEPTH": 0}))
    engine.close()
    engine = Engine.open(data_folder)
    assert engine.queue(AUDIT_QUEUE).definition == made
    assert not engine.queue(AUDIT_QUEUE).is_get_inhibited
    engine.close()


def test_an_application_may_read_the_audit_queue_and_put_nothing_there(queue_manager):
    """The trail is made of it: what anybody could put there would prove nothing."""
    with pytest.raises(QueueManagerError) as refused:
        queue_manager.put(AUDIT_QUEUE, Message(MessageDescriptor(), b"no batch"))
    assert refused.value.reason_code == 2051
    queue_manager.begin()
    with pytest.raises(QueueManagerError):
        queue_manager.put(AUDIT_QUEUE, Message(MessageDescriptor(), b"no batch"))
    queue_manager.commit()
    assert queue_manager.depth(AUDIT_QUEUE) == 0

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
    monkeypatch.setattr(message_cache, "MAXIMUM_NOT_PERSISTENT_BYTES", 2_000)
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

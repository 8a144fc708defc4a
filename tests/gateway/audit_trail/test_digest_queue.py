"""Digests go to a target as text messages behind an MQXQH, once each where nothing crashes."""

import hashlib
from pathlib import Path

import pytest

from gateway.audit_trail.digest_queue import DigestQueue
from gateway.audit_trail.segment import Trail
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.direct import Direct
from mq_adapters.reasons import QueueManagerError
from mq_adapters.transmission import read_transmission

XMIT = "RFHBRIDGE.XMIT.PLANT.0"


class Connection:
    """A connection that is opened for each unit of work and not closed, as the test needs it on."""

    def __init__(self, queue_manager: Direct) -> None:
        self.queue_manager = queue_manager

    def __enter__(self) -> Direct:
        return self.queue_manager

    def __exit__(self, *_exception: object) -> None:
        return


def _queue(trail: Trail, folder: Path, queue_manager: Direct) -> DigestQueue:
    return DigestQueue(
        folder,
        trail.digests,
        transmission_queue=XMIT,
        queue="AUDIT.DIGESTS",
        connect=lambda: Connection(queue_manager),
    )


def _define(queue_manager: Direct) -> None:
    said = {"USAGE": "XMITQ", "MSGDLVSQ": "FIFO"}
    assert queue_manager._engine is not None
    queue_manager._engine.objects.define(Definition(object_type=ObjectType.QLOCAL, name=XMIT, said=said))


def test_each_digest_is_a_persistent_text_message_for_the_queue_there(folder, clock, batches, store) -> None:
    queue_manager = store.queue_manager
    _define(queue_manager)
    with Trail.open(folder, now=clock) as trail:
        digests = _queue(trail, folder, queue_manager)
        assert not digests.step()
        for _ in range(2):
            trail.append(*batches())
            trail.close_segment()
        assert digests.step()
        assert not digests.step()
        assert (digests.has(2), digests.has(3)) == (True, False)
        assert not _queue(trail, folder, queue_manager).step(), "the next life knows how far it had come"
    for path in sorted((folder / "digests").iterdir()):
        sent = read_transmission(queue_manager.get(XMIT), now_us=0)
        message = sent.message
        assert (sent.queue_name, sent.queue_manager_name) == ("AUDIT.DIGESTS", "")
        assert message.body + b"\n" == path.read_bytes()
        assert (message.descriptor.format, message.descriptor.coded_char_set_id) == (b"MQSTR   ", 1208)
        assert message.is_persistent
        assert message.msg_id == b"RFHB" + hashlib.sha256(path.read_bytes()).digest()[:20]


def test_what_the_queue_does_not_take_is_sent_later(folder, clock, batches, store) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
        digests = _queue(trail, folder, store.queue_manager)
        with pytest.raises(QueueManagerError):
            digests.step()
        store.queue_manager.back_out()
        assert not digests.has(1)
        _define(store.queue_manager)
        assert digests.step()
    assert store.queue_manager.depth(XMIT) == 1

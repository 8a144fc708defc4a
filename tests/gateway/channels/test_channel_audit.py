"""What the audit hears of a channel's units of work, what is kept of them, and what is left alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.audit_trail.notes.application_work import ApplicationWork
from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.notes.origin import ORIGIN
from gateway.channels.channel_audit import ChannelAudit
from gateway.channels.target import Target
from gateway.config import TargetSettings
from mq_adapters.channel import LocalState
from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Note
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, MQRO_NAN, Message, MessageDescriptor
from mq_adapters.transmission import transmission_message

TRANSMISSION_QUEUE, SENT_QUEUE, STATES = "RFHBRIDGE.XMIT.CENTRAL.0", "RFHBRIDGE.SENT.CENTRAL", "RFHBRIDGE.CHANNEL.STATE"
DEAD_LETTERS, SUBSCRIBER_QUEUE = "SYSTEM.DEAD.LETTER.QUEUE", "RFHBRIDGE.SUBSCRIBER"
MSG_ID = b"RFHB" + b"\x11" * 20
NOW_US = 1_800_000_000_000_000
ORIGIN_OF_PUMP = ORIGIN.pack(5, 2, 10, 1) + b"pump"
MQRC_MSG_TOO_BIG_FOR_Q = 2030


class Store:
    """An engine whose notes are kept, and an application that is a channel."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine.open(folder, now_us=lambda: NOW_US)
        self.notes: list[Note] = []
        self.engine.seal_notes = self._seal
        self.target = Target(self.engine, TargetSettings.model_validate({"name": "CENTRAL", "grace_s": 7.5}))
        subscriber_queue = self.engine.ensure(SUBSCRIBER_QUEUE, "")
        audit = ChannelAudit(self.engine, (self.target,), subscriber_queue=subscriber_queue)
        self.engine.on_application_unit += (audit.note, ApplicationWork(self.engine).note)
        self.channel = Application(self.engine, "channel")

    def _seal(self, _batch: int, notes: list[Note]) -> bytes:
        self.notes += notes
        return b"notes"

    def put(self, *, origin: bytes = ORIGIN_OF_PUMP, **fields: object) -> Message:
        """A message of an MQTT client for queue STOCK of the target, on its transmission queue."""
        said = {"persistence": MQPER_PERSISTENT, "report": MQRO_NAN, "msg_id": MSG_ID, **fields}
        message = Message(MessageDescriptor(**said), b"payload", origin)
        transmitted = transmission_message(
            message, queue_name="STOCK", queue_manager_name="", own_name="RFHBRIDGE", now_us=NOW_US
        )
        unit = self.engine.begin()
        self.engine.put(unit, self.engine.queue(TRANSMISSION_QUEUE), transmitted)
        self.engine.submit(unit)
        return transmitted

    def commit(self, *puts: tuple[str, Message], takes: bool = True) -> None:
        """A unit of work of the channel."""
        self.channel.begin()
        if takes:
            self.channel.take_batch(TRANSMISSION_QUEUE, most_messages=10, most_bytes=1_000_000)
        for queue, message in puts:
            self.channel.put(queue, message, lambda: None)
        self.channel.commit(lambda: None)

    def state(self) -> tuple[str, Message]:
        """What a channel knows when its batch 12 is settled."""
        state = LocalState(channel="CENTRAL.OUT.0", gateway=self.engine.incarnation, queue_manager="QM1_2026", batch=12)
        return STATES, state.to_message()

    def messages(self, queue: str) -> list[Message]:
        return list(self.engine.browse(self.engine.queue(queue)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    yield store
    store.engine.close()


def test_a_message_that_left_is_noted_with_both_its_identifiers(store):
    transmitted = store.put()
    store.commit(store.state())
    ((kind, at, number, msg_id, passage),) = store.notes
    assert (kind, at, number, msg_id) == (NoteKind.FORWARDED, NOW_US, transmitted.sequence, MSG_ID)
    assert (passage.queue, passage.queue_manager, passage.channel, passage.batch) == (
        "STOCK",
        "QM1_2026",
        "CENTRAL.OUT.0",
        12,
    )


def test_what_may_be_refused_later_is_kept_for_its_grace_time(store):
    store.put()
    store.commit(store.state())
    (kept,) = store.messages(SENT_QUEUE)
    assert (kept.msg_id, kept.body, kept.origin) == (MSG_ID, b"payload", ORIGIN_OF_PUMP)
    assert kept.expires_us == NOW_US + 7_500_000


def test_an_application_s_own_message_is_no_conversion_and_kept_all_the_same(store):
    """A sweep's DeregSub, or a dead letter that was put back, for example: nobody else has it when it is refused."""
    store.put(origin=b"")
    store.commit(store.state())
    store.engine.tick()
    assert [note for note in store.notes if note[0] == NoteKind.FORWARDED] == []
    assert [kept.msg_id for kept in store.messages(SENT_QUEUE)] == [MSG_ID]


@pytest.mark.parametrize("fields", [{"report": 0}, {"persistence": MQPER_NOT_PERSISTENT}])
def test_what_nobody_would_miss_is_not_kept(store, fields):
    store.put(**fields)
    store.commit(store.state())
    store.engine.tick()
    assert [note[0] for note in store.notes] == [NoteKind.FORWARDED]
    assert store.messages(SENT_QUEUE) == []


def test_a_dead_letter_of_a_channel_has_its_exchange_again(store):
    transmitted = store.put()
    store.put(msg_id=b"RFHB" + b"\x22" * 20)
    refused = Message(MessageDescriptor(persistence=MQPER_PERSISTENT, msg_id=MSG_ID), b"payload")
    letter = dead_letter(
        refused,
        queue_name="STOCK",
        reason_code=MQRC_MSG_TOO_BIG_FOR_Q,
        queue_manager_name="QM1",
        now_us=NOW_US,
    )
    store.commit((DEAD_LETTERS, letter), store.state())
    (found,) = store.messages(DEAD_LETTERS)
    assert found.origin == ORIGIN_OF_PUMP
    dead, forwarded = store.notes
    assert dead[2:] == (
        "pump",
        5,
        2,
        TRANSMISSION_QUEUE,
        transmitted.sequence,
        found.sequence,
        MQRC_MSG_TOO_BIG_FOR_Q,
    )
    assert (dead[0], forwarded[0]) == (NoteKind.DEAD_LETTERED, NoteKind.FORWARDED)


def test_an_arrival_is_noted_with_its_identifier_over_there(store):
    arrived = Message(MessageDescriptor(persistence=MQPER_PERSISTENT, msg_id=MSG_ID), b"publication")
    store.commit((SUBSCRIBER_QUEUE, arrived), store.state(), takes=False)
    ((kind, _, number, msg_id, passage),) = store.notes
    assert (kind, number, msg_id) == (NoteKind.RECEIVED, arrived.sequence, MSG_ID)
    assert (passage.queue, passage.queue_manager) == (SUBSCRIBER_QUEUE, "QM1_2026")


@pytest.mark.parametrize("is_transmitted", [False, True])
def test_a_dead_letter_that_is_put_back_gets_its_exchange_back(store, is_transmitted):
    refused = Message(MessageDescriptor(persistence=MQPER_PERSISTENT, msg_id=MSG_ID), b"payload", ORIGIN_OF_PUMP)
    letter = dead_letter(
        refused, queue_name="STOCK", reason_code=MQRC_MSG_TOO_BIG_FOR_Q, queue_manager_name="QM1", now_us=NOW_US
    )
    unit = store.engine.begin()
    store.engine.put(unit, store.engine.queue(DEAD_LETTERS), letter)
    store.engine.submit(unit)
    back = Message(MessageDescriptor(persistence=MQPER_PERSISTENT, msg_id=MSG_ID), b"payload")
    queue = SUBSCRIBER_QUEUE
    if is_transmitted:
        queue = TRANSMISSION_QUEUE
        back = transmission_message(back, queue_name="STOCK", queue_manager_name="", own_name="X", now_us=NOW_US)
    store.channel.begin()
    store.channel.take_batch(DEAD_LETTERS, most_messages=1, most_bytes=1_000)
    store.channel.put(queue, back, lambda: None)
    store.channel.commit(lambda: None)
    (found,) = store.messages(queue)
    assert found.origin == ORIGIN_OF_PUMP
    (note,) = store.notes
    assert note == (NoteKind.REDRIVEN, NOW_US, "pump", 5, 2, queue, letter.sequence, found.sequence)


def test_a_unit_of_work_without_a_channels_state_is_nobodys_passage(store):
    store.put()
    application = Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"of an application")
    store.commit((SUBSCRIBER_QUEUE, application))
    assert [note[0] for note in store.notes] == [NoteKind.MQGET, NoteKind.MQPUT]
    assert store.messages(SENT_QUEUE) == []


def test_a_state_that_cannot_be_read_stops_nobody(store):
    store.put()
    store.commit((STATES, Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"{")))
    assert store.notes == []
    assert store.messages(TRANSMISSION_QUEUE) == []

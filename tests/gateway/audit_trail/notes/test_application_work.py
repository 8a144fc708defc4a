"""What applications put and get leaves a note in the unit of work that does it, and nothing else does."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.audit_trail.notes.acts import note_acts
from gateway.audit_trail.notes.application_work import payload_offset
from gateway.audit_trail.notes.charges import trail_bytes
from gateway.audit_trail.notes.notes import NoteKind
from mappings.headers.chain import FORMAT_MQRFH2
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.rights import EXPORTER, Rights
from mq_adapters.embedded.unit_of_work import Note
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reports import ReportOption
from mq_adapters.system_queues import AUDIT_QUEUE, CHANNEL_STATE_QUEUE, DEAD_LETTER_QUEUE
from spark_audit.record.notes import NOTES
from tests.gateway.bridge.conftest import mqrfh2

ITEMS = {row.kind: ("kind", "at_us", *row.items) for row in NOTES}
PUBLISH = mqrfh2("a/b")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine.open(tmp_path / "data")
    engine.define("ORDERS")
    yield engine
    engine.close()


@pytest.fixture
def noted(engine: Engine) -> list[Note]:
    """The notes of all units, as they are committed."""
    notes: list[Note] = []

    def seal(_batch: int, added: list[Note]) -> bytes:
        notes.extend(added)
        return b"a batch"

    engine.seal_notes = seal
    note_acts(engine)
    return notes


def _told(notes: list[Note], *names: str) -> list[tuple[object, ...]]:
    rows = [dict(zip(ITEMS[NoteKind(note[0])], note, strict=False)) for note in notes]  # type: ignore[arg-type]
    return [(NoteKind(int(row["kind"])).name, *(row.get(name) for name in names)) for row in rows]  # type: ignore[call-overload]


def _message(body: bytes, **fields: object) -> Message:
    return Message(MessageDescriptor(persistence=1, **fields), body)  # type: ignore[arg-type]  # by name


def _take(application: Application, engine: Engine, queue_name: str = "ORDERS") -> None:
    queue = engine.queue(queue_name)
    message = application.take(queue, None, None)
    assert message is not None
    application.remove(queue, message, lambda: None)


def test_a_put_and_a_get_are_told_with_identity_queue_and_hash(engine: Engine, noted: list[Note]) -> None:
    application = Application(engine, "orders", user="ANN", operator="ann")
    message = _message(b"words", correl_id=b"7" * 24)
    application.put("ORDERS", message, lambda: None)
    assert list(engine.browse(engine.queue("ORDERS")))
    _take(application, engine)
    engine.tick()
    assert _told(noted, "application", "operator", "user_identifier", "queue", "message_id", "unit_of_work") == [
        (name, "orders", "ann", "ANN", "ORDERS", message.sequence, 0) for name in ("MQPUT", "MQGET")
    ]
    what = _told(noted, "correl_id", "persistent", "payload_bytes", "payload_sha256")
    assert {row[1:] for row in what} == {(b"7" * 24, True, 5, hashlib.sha256(b"words").digest())}


def test_a_unit_of_work_has_one_number_and_what_is_backed_out_has_no_note(engine: Engine, noted: list[Note]) -> None:
    application = Application(engine, "orders", operator="ann")
    for ending in (application.back_out, lambda: application.commit(lambda: None)):
        application.begin()
        for _ in range(2):
            application.put("ORDERS", _message(b"x"), lambda: None)
        ending()
    assert [row[1] > 0 for row in _told(noted, "unit_of_work")] == [True, True]  # type: ignore[operator]
    assert len(set(_told(noted, "unit_of_work"))) == 1


def test_the_payload_begins_behind_whole_headers() -> None:
    body = PUBLISH + b"4.2"
    assert payload_offset(_message(body, format=FORMAT_MQRFH2)) == len(PUBLISH)
    assert payload_offset(_message(body, format=b"MQSTR   ")) == 0
    assert payload_offset(_message(body[: len(PUBLISH) - 1], format=FORMAT_MQRFH2)) == 0


def test_a_dead_letter_that_goes_back_is_told_once_without_a_gateway_too(engine: Engine, noted: list[Note]) -> None:
    made = dead_letter(_message(b"x"), queue_name="ORDERS", queue_manager_name="", reason_code=2053, now_us=0)
    operator = Application(engine, operator="ann")
    operator.put(DEAD_LETTER_QUEUE, made, lambda: None)
    noted.clear()
    operator.begin()
    operator.operate("queue redrive")
    _take(operator, engine, DEAD_LETTER_QUEUE)
    operator.put("ORDERS", _message(b"x", msg_id=made.msg_id), lambda: None)
    operator.commit(lambda: None)
    assert [row[0] for row in _told(noted)] == ["OPERATED", "REDRIVEN"]
    assert _told(noted, "dead_letter_id")[1][1] == made.sequence


def test_of_an_order_what_its_record_does_not_list_is_told_each(engine: Engine, noted: list[Note]) -> None:
    operator = Application(engine, operator="ann")
    for _ in range(103):
        operator.put("ORDERS", _message(b"x"), lambda: None)
    noted.clear()
    operator.begin()
    operator.operate("queue get")
    operator.take_batch("ORDERS", most_messages=103, most_bytes=10_000)
    operator.commit(lambda: None)
    (order, *others) = noted
    assert (order[0], order[6], len(order[8])) == (NoteKind.OPERATED, 103, 100)  # type: ignore[arg-type]
    assert [note[0] for note in others] == [NoteKind.MQGET] * 3


def test_batches_for_the_trail_and_states_of_channels_are_no_work_of_applications(
    engine: Engine, noted: list[Note]
) -> None:
    engine.ensure(CHANNEL_STATE_QUEUE, "")
    Application(engine, operator="ann").put("ORDERS", _message(b"x"), lambda: None)
    noted.clear()
    next_number = engine.next_sequence
    exporter = Application(engine, rights=EXPORTER)
    exporter.begin()
    assert exporter.take_batch(AUDIT_QUEUE, most_messages=9, most_bytes=10_000)
    exporter.commit(lambda: None)
    assert engine.next_sequence == next_number, "else the gateway would take stock of nothing for ever"
    Application(engine).put(CHANNEL_STATE_QUEUE, _message(b"state"), lambda: None)
    engine.tick()
    assert noted == []
    disguised = Application(engine, rights=Rights(put=("*",), get=("*",)))
    disguised.begin()
    _take(disguised, engine)
    disguised.put(CHANNEL_STATE_QUEUE, _message(b"state"), lambda: None)
    disguised.commit(lambda: None)
    assert [row[0] for row in _told(noted)] == ["MQGET", "MQPUT"], "only the gateway's own user has channels"


def test_who_causes_the_records_of_an_application_is_told_how_many_bytes_they_are(
    engine: Engine, noted: list[Note]
) -> None:
    charged: list[int] = []
    application = Application(engine, operator="ann")
    application.on_submitted = lambda unit: charged.append(trail_bytes(unit.notes))
    application.put("ORDERS", _message(b"x"), lambda: None)
    _take(application, engine)
    assert charged == [750, 750]


def test_a_report_on_what_expired_and_the_expiry_itself_are_told(engine: Engine, noted: list[Note]) -> None:
    engine.define("REPORTS")
    application = Application(engine, "orders", user="ANN", operator="ann")
    short = _message(b"words", expiry=1, report=int(ReportOption.EXPIRATION), reply_to_q="REPORTS")
    application.put("ORDERS", short, lambda: None)
    engine.now_us = lambda: short.expires_us
    engine.tick()
    engine.tick()
    (report,) = engine.browse(engine.queue("REPORTS"))
    assert _told(noted, "application", "queue", "message_id", "reason") == [
        ("MQPUT", "orders", "ORDERS", short.sequence, None),
        ("MQPUT", "", "REPORTS", report.sequence, None),
        ("DROPPED", None, "ORDERS", short.sequence, "the message expired"),
    ]


def test_a_temporary_queue_tells_how_many_messages_end_with_it(engine: Engine, noted: list[Note]) -> None:
    engine.objects.define(Definition(object_type=ObjectType.QMODEL, name="BRIEF"))
    application = Application(engine, "orders", user="ANN", operator="ann")
    name = application.create_dynamic("BRIEF", "BRIEF.*")
    application.put(name, Message(MessageDescriptor(persistence=0), b"words"), lambda: None)
    application.close()
    engine.tick()
    assert _told(noted, "queue", "messages")[1:] == [("LOST", name, 1)]

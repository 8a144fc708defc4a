"""Each kind of note has a charge, and what is charged is about what its records have."""

import pytest

from gateway.audit_trail.notes.charges import CHARGES, Payer, served_trail_bytes, trail_bytes
from gateway.audit_trail.notes.notes import NoteKind, Passage, Service, Translation, pack_batch
from mq_adapters.delivery_listener import TakenCommand
from mq_adapters.embedded.unit_of_work import Note
from spark_audit.record.batch_line import text_of
from spark_audit.record.expansion import Expander
from spark_audit.record.kinds import Kind
from spark_audit.record.notes import NOTES

GATEWAY, NOW_US = "0102030405060708090a0b0c", 1_800_000_000_000_000
#: What the chain puts around each record: its number and two hashes.
CHAIN_BYTES = 149
EXCHANGE = ("sensor-1234", 5, 99)
PASSAGE = Passage(queue="ORDERS.FROM.SENSORS", queue_manager="QM1_2026-01-01_12.00.00", channel="TO.PARIS", batch=12)
APPLICATION = ("app", "uid:1000 root", 12, "root", "ORDERS", 1234, b"\1" * 24, True, 100, b"\2" * 32)


def records_bytes(note: Note) -> int:
    _, records = Expander(GATEWAY).expand(pack_batch(1, [note]))
    return sum(len(text_of(record)) + CHAIN_BYTES for record in records)


def command(header_bytes: int) -> Note:
    taken = TakenCommand(
        verb="Publish",
        queue_name="SYSTEM.BROKER.DEFAULT.STREAM",
        topics=("plant/7/line/3",),
        filter="",
        format=b"MQHRF2  ",
        coded_char_set_id=1208,
        encoding=546,
        header=bytes(header_bytes),
    )
    who = ("app", "uid:1000 root", "root", 1234, b"\1" * 24, True, 100, b"\2" * 32)
    return (NoteKind.COMMANDED, NOW_US, *who, "ok", 0, taken)


def served(header_bytes: int) -> Note:
    service = Service(
        queue="IN.QUEUE",
        target="OUT.QUEUE",
        mode="strict",
        table_version="1.0",
        coded_char_set_id=1208,
        encoding=546,
        input_format=b"MQHRF2  ",
        input_header=bytes(header_bytes),
        output_format=b"MQHRF   ",
        output_header=bytes(header_bytes),
        dropped=(),
    )
    return (NoteKind.SERVED, NOW_US, 1234, 1235, True, 100, b"\2" * 32, service)


PAID: list[Note] = [
    (NoteKind.SESSION, NOW_US, *EXCHANGE[:2], "resumed", 4, True, "alice", "password", "192.0.2.17", "plain", ""),
    (NoteKind.SESSION, NOW_US, "s", 5, "lost", 4, True, None),
    (NoteKind.SESSION, NOW_US, "s" * 2_000, 5, "lost", 4, True, "u" * 900, "token", "192.0.2.17", "plain", "CN=x"),
    (NoteKind.DROPPED, NOW_US, *EXCHANGE, "RFHBRIDGE.SUBSCRIBER", 1234, "the session ended"),
    (NoteKind.REFUSED, NOW_US, *EXCHANGE, "Publish", 0, 2334, "the topic has a character that no header can carry"),
    (NoteKind.REDRIVEN, NOW_US, *EXCHANGE, "RFHBRIDGE.SUBSCRIBER", 1234, 1235),
    (NoteKind.MQPUT, NOW_US, *APPLICATION),
    (NoteKind.MQGET, NOW_US, *APPLICATION),
    *(command(header_bytes) for header_bytes in (64, 1_000, 4_000)),
]


def test_each_kind_of_note_and_each_kind_of_record_has_somebody_to_pay_or_a_reason_why_nobody_pays() -> None:
    assert set(CHARGES) == set(NoteKind)
    assert {record.kind for note in NOTES if note.kind in CHARGES for record in note.records} == set(Kind)
    for kind, charge in CHARGES.items():
        assert bool(charge.why) == (charge.payer is Payer.NOBODY), kind


@pytest.mark.parametrize("note", PAID, ids=lambda note: f"{NoteKind(note[0]).name}-{records_bytes(note)}")
def test_a_note_is_charged_for_about_what_its_record_has(note: Note) -> None:
    assert 0.8 < trail_bytes([note]) / records_bytes(note) < 1.3


def test_a_dead_letter_is_charged_for_the_record_of_going_on_too() -> None:
    letter = (NoteKind.DEAD_LETTERED, NOW_US, *EXCHANGE, "SYSTEM.BROKER.DEFAULT.STREAM", 1234, 1235, 2334)
    assert 0.8 < trail_bytes([letter]) / (2 * records_bytes(letter)) < 1.25


@pytest.mark.parametrize("header_bytes", [64, 1_000, 4_000])
def test_a_message_for_the_conversion_service_is_charged_for_its_conversion(header_bytes: int) -> None:
    assert 0.8 < served_trail_bytes(header_bytes) / records_bytes(served(header_bytes)) < 1.25


def published(destination: str) -> Note:
    translation = Translation(
        command="Publish",
        topic="a",
        queue="Q",
        correl_id=bytes(24),
        persistent=True,
        format=b"MQHRF2  ",
        coded_char_set_id=1208,
        encoding=546,
        header=bytes(100),
        destination=destination,
    )
    return (NoteKind.PUBLISHED, NOW_US, *EXCHANGE, b"\x32\x03\x00\x01a", 1, b"\2" * 32, 1234, translation)


def test_what_goes_to_a_target_is_charged_for_its_departure_when_it_is_put() -> None:
    forwarded = (NoteKind.FORWARDED, NOW_US, 1234, b"\1" * 24, PASSAGE)
    assert trail_bytes([forwarded]) == 0
    of_departure = trail_bytes([published("PARIS")]) - trail_bytes([published("")])
    assert 0.8 < of_departure / records_bytes(forwarded) < 1.25

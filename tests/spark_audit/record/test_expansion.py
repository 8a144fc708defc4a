"""Notes become records: fields by the definition, packet fields from the raw bytes of the specification's packets."""

import base64
import dataclasses
import hashlib
from pathlib import Path

import orjson
import ormsgpack
import pytest

from gateway.audit_trail.disclosure import UnderKey
from gateway.audit_trail.notes.notes import Arrival, NoteKind, Passage, Service, Translation, pack_batch
from gateway.audit_trail.records import Chain
from mq_adapters.delivery_listener import Delivery, TakenCommand
from spark_audit.personal import PersonalKey
from spark_audit.record import FIELDS, Kind
from spark_audit.record.disclosure import Disclosure, InClear
from spark_audit.record.expansion import Expander, MalformedBatch
from spark_audit.record.header_contexts import TRANSLATION
from spark_audit.record.record_fields import RECORD_FIELDS

GATEWAY = "0102030405060708090a0b0c"
AT = 1_795_158_000_000_000
#: PUBLISH QoS 1, RETAIN, topic a/b, packet identifier 10, payload of 2 bytes: MQTT 3.1.1 figure 3.9 with other flags.
PUBLISH = bytes.fromhex("33 09 0003 612f62 000a")
DIGEST = hashlib.sha256(b"21").digest()
HEADER = b"RFH \x02\x00\x00\x00"
CORREL_ID = b"RFHB" + bytes(19) + b"\x07"
#: As IBM MQ makes them: "AMQ ", the queue manager, and numbers.
MSG_ID = b"AMQ QM1         \x01\x02\x03\x04\x05\x06\x07\x08"


@pytest.fixture
def translation() -> Translation:
    return Translation(
        command="Publish",
        topic="a/b",
        queue="SYSTEM.BROKER.DEFAULT.STREAM",
        correl_id=bytes(24),
        persistent=True,
        format=b"MQHRF2  ",
        coded_char_set_id=1208,
        encoding=546,
        header=HEADER,
    )


@pytest.fixture
def arrival() -> Arrival:
    return Arrival(
        queue="RFHBRIDGE.SUBSCRIBER",
        correl_id=CORREL_ID,
        topic="a/b",
        is_retained=True,
        format=b"MQHRF2  ",
        coded_char_set_id=1208,
        encoding=546,
        header=HEADER,
    )


@pytest.fixture
def delivery() -> Delivery:
    return Delivery(
        queue_name="BOILER.ALARMS",
        correl_id=CORREL_ID,
        topics=("a/b",),
        input_format=b"MQHRF2  ",
        input_coded_char_set_id=1208,
        input_encoding=546,
        input_header=HEADER,
        output_format=b"MQHRF   ",
        output_coded_char_set_id=819,
        output_encoding=273,
        output_header=b"RFH \x00\x00\x00\x01",
        is_retained=False,
        dropped=(("usr", "folders have no place"),),
    )


@pytest.fixture
def passage() -> Passage:
    return Passage(queue="STOCK", queue_manager="QM1_2026-11-20", channel="CENTRAL.OUT.0", batch=12)


@pytest.fixture
def taken() -> TakenCommand:
    return TakenCommand(
        verb="RegSub",
        queue_name="SYSTEM.BROKER.CONTROL.QUEUE",
        topics=("a/b", "c/#"),
        filter="site = 'M1'",
        format=b"MQHRF2  ",
        coded_char_set_id=819,
        encoding=273,
        header=HEADER,
    )


def _expanded(*notes: tuple[object, ...]) -> list[dict[str, object]]:
    batch, records = Expander(GATEWAY).expand(pack_batch(7, list(notes)))
    assert batch == 7
    return [orjson.loads(line) for line in Chain(sequence=0, head="0" * 64).seal(records).splitlines()]


def _message_id(number: int) -> str:
    return "52464842" + GATEWAY + f"{number:016x}"


def test_a_publish_becomes_accepted_and_put(translation) -> None:
    accepted, put = _expanded((NoteKind.PUBLISHED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, 300, translation))
    common = {
        "version": 1,
        "batch": 7,
        "gateway": GATEWAY,
        "at_us": AT,
        "direction": "in",
        "client": "boiler",
        "session_epoch": 5,
        "exchange": 2,
        "packet_type": 3,
        "packet_identifier": 10,
        "qos": 1,
        "retain": True,
        "duplicate": False,
        "topic": "a/b",
        "payload_bytes": 2,
        "payload_sha256": "6f4b6612125fb3a0daecd2799dfd6c9c299424fd920f9b308110a2c1fbd8f443",
    }
    links = {"prev", "hash"}
    assert {name: value for name, value in accepted.items() if name not in links} == common | {
        "sequence": 1,
        "kind": "accepted",
    }
    assert {name: value for name, value in put.items() if name not in links} == common | {
        "sequence": 2,
        "kind": "put",
        "command": "Publish",
        "queue": "SYSTEM.BROKER.DEFAULT.STREAM",
        "message_id": _message_id(300),
        "persistent": True,
        "conversion": "packet_to_header",
        "input_format": "MQTT",
        "input": base64.b64encode(PUBLISH).decode(),
        "output_format": "MQHRF2",
        "output_ccsid": 1208,
        "output_encoding": 546,
        "output": base64.b64encode(HEADER).decode(),
    }


def test_a_held_publish_is_accepted_first_and_put_when_released(translation) -> None:
    header = bytes.fromhex("34 09 0003 612f62 000a")
    note = (AT, "boiler", 5, 3, header, 2, DIGEST)
    accepted, put = _expanded((NoteKind.ACCEPTED, *note), (NoteKind.RELEASED, *note, 301, translation))
    assert (accepted["kind"], put["kind"]) == ("accepted", "put")
    assert accepted["qos"] == put["qos"] == 2
    assert put["message_id"] == _message_id(301)


def test_a_publish_with_qos_0_has_no_packet_identifier(translation) -> None:
    header = bytes.fromhex("30 07 0003 612f62")
    accepted, _ = _expanded((NoteKind.PUBLISHED, AT, "boiler", 5, 2, header, 2, DIGEST, 300, translation))
    assert "packet_identifier" not in accepted
    assert (accepted["qos"], accepted["topic"]) == (0, "a/b")


def test_the_packet_identifier_of_level_5_stands_in_front_of_the_properties(translation) -> None:
    header = bytes.fromhex("32 0c 0003 612f62 000a 02 0101")
    accepted, _ = _expanded((NoteKind.PUBLISHED, AT, "boiler", 5, 2, header, 2, DIGEST, 300, translation))
    assert (accepted["packet_identifier"], accepted["topic"]) == (10, "a/b")


def test_a_packet_of_level_5_says_its_level_and_the_topic_behind_an_alias(translation, arrival) -> None:
    by_alias = bytes.fromhex("30 08 0000 03 23 0001")
    accepted, put, delivered = _expanded(
        (NoteKind.PUBLISHED, AT, "boiler", 5, 2, by_alias, 2, DIGEST, 300, translation, 5, "a/b"),
        (NoteKind.DELIVERED, AT, "screen", 6, 1, 303, by_alias, 2, DIGEST, 1, 1, arrival, 5, "a/b"),
    )
    for record in (accepted, put, delivered):
        assert (record["protocol_level"], record["topic"]) == (5, "a/b")
    (before,) = _expanded((NoteKind.ACCEPTED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST))
    assert "protocol_level" not in before


def test_a_header_that_carries_properties_is_not_kept_in_memory_either(translation, arrival) -> None:
    expander = Expander(GATEWAY)
    translation.header = arrival.header = HEADER + b"<usr><rfhbCorrel dt='bin.hex'>00</rfhbCorrel></usr>"
    expander.expand(pack_batch(7, [(NoteKind.PUBLISHED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, 300, translation, 5)]))
    expander.expand(pack_batch(8, [(NoteKind.DELIVERED, AT, "s", 6, 1, 3, PUBLISH, 2, DIGEST, 1, 1, arrival, 5)]))
    assert expander._known == {}


def test_a_remaining_length_of_four_bytes_is_passed_over(translation) -> None:
    header = bytes.fromhex("30 ffffff7f 0003 612f62")
    accepted, _ = _expanded((NoteKind.PUBLISHED, AT, "boiler", 5, 2, header, 2, DIGEST, 300, translation))
    assert accepted["topic"] == "a/b"


def test_a_subscription_has_a_packet_type_and_no_exchange(translation) -> None:
    translation.command, translation.topic, translation.correl_id = "RegSub", "a/#", CORREL_ID
    entry = bytes.fromhex("0003 612f23 01")
    (put,) = _expanded((NoteKind.REQUESTED, AT, "boiler", 5, 8, 11, entry, 0, b"", 302, translation))
    assert (put["packet_type"], put["packet_identifier"], put["command"], put["topic"]) == (8, 11, "RegSub", "a/#")
    assert (put["payload_bytes"], put["correlation_id"]) == (0, CORREL_ID.hex())
    assert not {"exchange", "qos", "payload_sha256"} & put.keys()


def test_a_copy_names_its_publication_and_what_was_dropped(delivery) -> None:
    (put,) = _expanded((NoteKind.COPIED, AT, 300, 303, delivery))
    assert (put["message_id"], put["source_message_id"]) == (_message_id(303), _message_id(300))
    assert (put["input_format"], put["output_format"], put["output_ccsid"]) == ("MQHRF2", "MQHRF", 819)
    assert put["dropped_fields"] == [["usr", "folders have no place"]]
    assert (put["conversion"], put["is_retained"], put["queue"]) == ("header_to_header", False, "BOILER.ALARMS")
    assert not {"direction", "client", "payload_bytes", "payload_sha256"} & put.keys()


def test_a_copy_has_the_hash_of_its_payload_even_of_an_empty_one(delivery) -> None:
    empty = hashlib.sha256(b"").digest()
    full, none = _expanded((NoteKind.COPIED, AT, 300, 303, delivery, 2, DIGEST), (5, AT, 1, 2, delivery, 0, empty))
    assert (full["payload_bytes"], full["payload_sha256"]) == (2, DIGEST.hex())
    assert (none["payload_bytes"], none["payload_sha256"]) == (0, empty.hex())


def test_a_delivery_has_both_qualities_of_service_and_the_packets_own_topic(arrival) -> None:
    header = bytes.fromhex("3b 09 0003 612f63 0001")
    (delivered,) = _expanded((NoteKind.DELIVERED, AT, "screen", 6, 1, 303, header, 2, DIGEST, 1, 2, arrival))
    assert (delivered["direction"], delivered["qos"], delivered["granted_qos"], delivered["published_qos"]) == (
        "out",
        1,
        1,
        2,
    )
    assert (delivered["retain"], delivered["duplicate"], delivered["is_retained"]) == (True, True, True)
    assert (delivered["topic"], delivered["output"]) == ("a/c", base64.b64encode(header).decode())


def test_what_ended_says_why() -> None:
    refused, dead, dropped = _expanded(
        (NoteKind.REFUSED, AT, "boiler", 5, 2, "Publish", 300, 3072, "topic error"),
        (NoteKind.DEAD_LETTERED, AT, "boiler", 5, 2, "BOILER.ALARMS", 303, 304, 2053),
        (NoteKind.DROPPED, AT, "screen", 6, 0, "RFHBRIDGE.SUBSCRIBER", 305, "the session ended"),
    )
    assert (refused["reason_code"], refused["reason"], refused["exchange"]) == (3072, "topic error", 2)
    assert (dead["message_id"], dead["dead_letter_id"]) == (_message_id(303), _message_id(304))
    assert (dropped["direction"], dropped["reason"]) == ("out", "the session ended")
    assert "exchange" not in dropped


def test_a_dead_letter_that_was_put_back_names_both_messages() -> None:
    (redriven,) = _expanded((NoteKind.REDRIVEN, AT, "boiler", 5, 2, "BOILER.ALARMS", 304, 307))
    assert (redriven["kind"], redriven["queue"], redriven["exchange"]) == ("redriven", "BOILER.ALARMS", 2)
    assert (redriven["dead_letter_id"], redriven["message_id"]) == (_message_id(304), _message_id(307))


def test_a_repeat_tells_whether_it_is_the_same_message() -> None:
    header = bytes.fromhex("3c 09 0003 612f63 0007")
    repeat, reused = _expanded(
        (NoteKind.REPEATED, AT, "boiler", 5, 2, header, 2, DIGEST, "repeat"),
        (NoteKind.REPEATED, AT, "boiler", 5, 2, header, 2, DIGEST, "identifier_reused", 5, "a/c"),
    )
    assert (repeat["kind"], repeat["event"], repeat["exchange"], repeat["qos"]) == ("repeated", "repeat", 2, 2)
    assert (repeat["duplicate"], repeat["packet_identifier"], repeat["topic"]) == (True, 7, "a/c")
    assert (reused["event"], reused["protocol_level"]) == ("identifier_reused", 5)


def test_an_operators_act_says_who_did_what_to_how_many() -> None:
    cleared, expired = _expanded(
        (NoteKind.OPERATED, AT, "anna", "CLEAR QLOCAL", "BOILER.ALARMS", "", 12, ""),
        (NoteKind.OPERATED, AT, "anna", "sessions expire", "", "panel-7", 3, "the operator's word"),
    )
    assert (cleared["operator"], cleared["command"], cleared["queue"]) == ("anna", "CLEAR QLOCAL", "BOILER.ALARMS")
    assert cleared["messages"] == 12
    assert not {"object", "reason", "client"} & cleared.keys()
    assert (expired["object"], expired["reason"]) == ("panel-7", "the operator's word")
    assert "queue" not in expired


def test_a_jump_of_the_clock_and_a_restored_store_are_told_with_their_numbers() -> None:
    jumped, restored, late = _expanded(
        (NoteKind.CLOCK_JUMPED, AT, "behind", -7_000_000, ""),
        (NoteKind.RESTORED, AT, "rolled_back", "0a" * 12, 41, 60, 7, 9, "anna", "an old copy"),
        (NoteKind.RESTORED, AT, "trail_begun_late", "", 1, 40, 0, 0, "", ""),
    )
    assert (jumped["event"], jumped["jump_us"]) == ("behind", -7_000_000)
    assert (restored["gateway_before"], restored["operator"], restored["reason"]) == ("0a" * 12, "anna", "an old copy")
    assert [restored[name] for name in ("first_missing", "last_missing")] == [41, 60]
    assert [restored[name] for name in ("first_missing_batch", "last_missing_batch")] == [7, 9]
    assert (late["event"], late["last_missing"]) == ("trail_begun_late", 40)
    assert not {"gateway_before", "operator", "reason", "first_missing_batch"} & late.keys()


def test_refused_logins_are_told_with_their_number_network_and_reason() -> None:
    of_network, others = _expanded(
        (NoteKind.LOGINS_REFUSED, AT, "wrong_credentials", "unknown", "192.0.2.0/24", 150, AT - 9),
        (NoteKind.LOGINS_REFUSED, AT, "busy", "known", "", 7, AT - 9),
    )
    assert (of_network["kind"], of_network["event"]) == ("logins_refused", "wrong_credentials")
    assert (of_network["user_class"], of_network["network"], of_network["logins"]) == ("unknown", "192.0.2.0/24", 150)
    assert (of_network["since_us"], of_network["at_us"]) == (AT - 9, AT)
    assert (others["event"], others["logins"]) == ("busy", 7)
    assert "network" not in others, "of all others"


def test_refused_connects_are_told_first_one_whole_then_in_numbers() -> None:
    first, others = _expanded(
        (NoteKind.CONNECTS_REFUSED, AT, "malformed", "", "192.0.2.0/24", 5, "", 1, AT, b"\x81", "a text holds U+0000"),
        (NoteKind.CONNECTS_REFUSED, AT, "limit", "", "", 0, "packet_bytes", 9, AT - 9, b"", ""),
    )
    said = {"event": "malformed", "network": "192.0.2.0/24", "protocol_level": 5, "connects": 1, "codes": "81"}
    assert first.items() >= (said | {"reason": "a text holds U+0000"}).items()
    assert others.items() >= {"event": "limit", "rule": "packet_bytes", "connects": 9, "since_us": AT - 9}.items()
    assert not {"client", "network", "protocol_level", "codes", "reason"} & others.keys()


def test_a_program_is_told_with_who_it_is_and_its_work_has_its_number() -> None:
    begun, over, put, before = _expanded(
        (NoteKind.PROGRAM, AT, 7, "connected", "b (h:5)", "b", "app", "anna", "password", "h", "mq", "CN=a", "APP", ""),
        (NoteKind.PROGRAM, AT, 7, "ended", "b (h:5)", "b", "", "b", "channel", "h", "mq", "", "APP", "it is silent"),
        (NoteKind.MQPUT, AT, "orders", "anna", 0, "ANNA", "Q", 309, CORREL_ID, True, 2, DIGEST, 7),
        (NoteKind.MQPUT, AT, "orders", "anna", 0, "ANNA", "Q", 309, CORREL_ID, True, 2, DIGEST),
    )
    who = {"program": 7, "operator": "b (h:5)", "user_identifier": "b", "user": "anna", "proof": "password"}
    where = {"address": "h", "listener": "mq", "channel": "APP", "certificate_subject": "CN=a", "application": "app"}
    assert begun.items() >= (who | where | {"event": "connected"}).items()
    assert (over["event"], over["reason"], over["proof"]) == ("ended", "it is silent", "channel")
    assert not {"certificate_subject", "application"} & over.keys()
    assert put["program"] == 7
    assert "program" not in before, "an earlier version noted it"


def test_refused_programs_are_told_first_one_whole_then_in_numbers() -> None:
    first, others = _expanded(
        (NoteKind.PROGRAMS_REFUSED, AT, "not_allowed", "known", 1, AT, "anna", "n", "mq", "APP", "rule", 2035, "why"),
        (NoteKind.PROGRAMS_REFUSED, AT, "channel", "none", 9, AT - 9, "", "", "mq", "", "no_channel", 0, ""),
    )
    said = {"event": "not_allowed", "user_class": "known", "user": "anna", "network": "n", "listener": "mq"}
    assert first.items() >= (said | {"channel": "APP", "rule": "rule", "reason_code": 2035, "reason": "why"}).items()
    assert others.items() >= {"event": "channel", "logins": 9, "since_us": AT - 9, "rule": "no_channel"}.items()
    assert not {"user", "network", "channel", "reason_code", "reason"} & others.keys()


def test_a_message_of_no_client_has_no_exchange() -> None:
    (dead,) = _expanded((NoteKind.DEAD_LETTERED, AT, "", 0, 0, "BOILER.ALARMS", 303, 304, 2053))
    assert not {"direction", "client", "session_epoch", "exchange"} & dead.keys()


def test_sessions_starts_and_acknowledgements_are_told() -> None:
    started, session, acknowledged, confirmed = _expanded(
        (NoteKind.STARTED, AT, "0.1.0", "1", bytes(32)),
        (NoteKind.SESSION, AT, "boiler", 5, "opened", 4, True),
        (NoteKind.ACKNOWLEDGED, AT, "screen", 6, 1, 4, 1, 303),
        (NoteKind.CONFIRMED, AT, "boiler", 5, 4, [[1, 3], [5, 5]]),
    )
    assert (started["code_version"], started["table_version"], started["configuration_sha256"]) == (
        "0.1.0",
        "1",
        "0" * 64,
    )
    assert (session["event"], session["protocol_level"], session["clean_session"]) == ("opened", 4, True)
    assert (acknowledged["direction"], acknowledged["packet_type"], acknowledged["exchange"]) == ("out", 4, 1)
    assert (confirmed["exchanges"], confirmed["packet_type"]) == ([[1, 3], [5, 5]], 4)


def test_a_start_tells_the_rules_of_the_broker() -> None:
    note = (NoteKind.STARTED, AT, "0.1.0", "1", bytes(32), "", False)
    (started,) = _expanded((*note, "wmb, implicit", (("PRICES", "EUR"),)))
    assert (started["stream_rules"], started["points"]) == ("wmb, implicit", [["PRICES", "EUR"]])
    (started,) = _expanded((*note, "mq6", ()))
    assert started["stream_rules"] == "mq6"
    assert "points" not in started


def test_a_message_that_went_over_a_channel_is_told_with_both_its_identifiers(passage) -> None:
    forwarded, received = _expanded(
        (NoteKind.FORWARDED, AT, 300, MSG_ID, passage), (NoteKind.RECEIVED, AT, 306, MSG_ID, passage)
    )
    assert (forwarded["kind"], received["kind"]) == ("forwarded", "received")
    assert (forwarded["message_id"], received["message_id"]) == (_message_id(300), _message_id(306))
    for record in (forwarded, received):
        assert record["target_message_id"] == "414d5120514d312020202020202020200102030405060708"
        assert (record["queue"], record["queue_manager"]) == ("STOCK", "QM1_2026-11-20")
        assert (record["channel"], record["channel_batch"]) == ("CENTRAL.OUT.0", 12)


@pytest.fixture
def translation_at_target() -> Translation:
    return Translation(
        command="RegSub",
        topic="SPORT/a/b SPORT/a/b/*",
        queue="SYSTEM.BROKER.CONTROL.QUEUE",
        correl_id=CORREL_ID,
        persistent=True,
        format=b"MQHRF   ",
        coded_char_set_id=1208,
        encoding=546,
        header=HEADER,
        destination="CENTRAL",
        stream="SPORT",
        stream_style="queue_manager",
        user="anna",
        topic_filters=("a/b/#", "a/c"),
    )


@pytest.fixture
def arrival_from_target() -> Arrival:
    return Arrival(
        queue="RFHBRIDGE.SUBSCRIBER",
        correl_id=CORREL_ID,
        topic="a/b",
        is_retained=False,
        format=b"MQHRF2  ",
        coded_char_set_id=1208,
        encoding=546,
        header=HEADER,
        stream="SPORT",
        stream_style="queue_manager",
        source_client="boiler",
        source_exchange=12,
    )


def test_a_put_for_a_target_names_it_with_its_stream(translation_at_target) -> None:
    part = b"\x00\x05a/b/#\x01"
    (put,) = _expanded((NoteKind.REQUESTED, AT, "boiler", 5, 8, 11, part, 0, b"", 302, translation_at_target))
    assert (put["destination"], put["stream"], put["stream_style"]) == ("CENTRAL", "SPORT", "queue_manager")
    assert (put["topic_filters"], put["user"]) == (["a/b/#", "a/c"], "anna")
    assert list(put) == [field.name for field in FIELDS if field.name in put]


def test_a_delivery_from_a_target_tells_what_the_publication_says_of_its_origin(arrival_from_target) -> None:
    (put,) = _expanded((NoteKind.DELIVERED, AT, "screen", 6, 1, 303, PUBLISH, 2, DIGEST, 1, 1, arrival_from_target))
    assert (put["source_client"], put["source_exchange"]) == ("boiler", 12)
    assert (put["stream"], put["stream_style"]) == ("SPORT", "queue_manager")
    assert list(put) == [field.name for field in FIELDS if field.name in put]


def test_a_header_that_only_one_message_has_is_not_kept_in_memory(translation, translation_at_target) -> None:
    """A publication for a target carries its exchange: kept, each would cost kilobytes and never be used again."""
    published = Translation(
        **{name: getattr(translation_at_target, name) for name in TRANSLATION.facts} | {"command": "Publish"}
    )
    expander = Expander(GATEWAY)
    for context in (translation, published):
        expander.expand(pack_batch(7, [(NoteKind.PUBLISHED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, 300, context)]))
    (kept,) = expander._known.values()
    assert {"destination", "stream"}.isdisjoint(kept[1])


def test_a_command_of_an_application_says_who_asked_for_what_and_how_it_ended(taken) -> None:
    identity = ("orders", "billing (anna)", "ANNA")
    (record,) = _expanded((NoteKind.COMMANDED, AT, *identity, 308, CORREL_ID, True, 2, DIGEST, "warning", 3073, taken))
    assert {name: value for name, value in record.items() if name not in {"prev", "hash"}} == {
        "version": 1,
        "sequence": 1,
        "batch": 7,
        "gateway": GATEWAY,
        "kind": "commanded",
        "at_us": AT,
        "command": "RegSub",
        "queue": "SYSTEM.BROKER.CONTROL.QUEUE",
        "message_id": _message_id(308),
        "correlation_id": CORREL_ID.hex(),
        "persistent": True,
        "input_format": "MQHRF2",
        "input_ccsid": 819,
        "input_encoding": 273,
        "input": base64.b64encode(HEADER).decode(),
        "payload_bytes": 2,
        "payload_sha256": DIGEST.hex(),
        "reason_code": 3073,
        "operator": "billing (anna)",
        "application": "orders",
        "user_identifier": "ANNA",
        "topics": ["a/b", "c/#"],
        "filter": "site = 'M1'",
        "completion": "warning",
    }


def test_a_command_that_expires_says_when(taken) -> None:
    note = (NoteKind.COMMANDED, AT, "", "", "", 308, bytes(24), True, 2, DIGEST, "ok", 0, taken)
    assert [record.get("expires_us") for record in _expanded((*note, AT + 1), (*note, 0), note)] == [AT + 1, None, None]


def test_a_command_that_nobody_can_read_has_no_header_and_no_payload(taken) -> None:
    unreadable = dataclasses.replace(taken, verb="", topics=(), filter="", header=b"")
    (record,) = _expanded((NoteKind.COMMANDED, AT, "", "", "", 308, bytes(24), True, 0, b"", "error", 3023, unreadable))
    assert (record["completion"], record["reason_code"], record["input_format"]) == ("error", 3023, "MQHRF2")
    absent = {"command", "topics", "filter", "input", "payload_bytes", "payload_sha256", "operator", "application"}
    assert not absent & record.keys()


@pytest.mark.parametrize("shown", [InClear(), UnderKey(PersonalKey(bytes(32)))], ids=["clear", "keyed"])
def test_a_stock_names_subscribers_as_copies_do(shown: Disclosure, delivery) -> None:
    stock = (NoteKind.STOCK, AT, "subscribers", "BOILER.ALARMS", 2, 0, 0, 0, b"", ((CORREL_ID, 2, AT - 5),))
    packed = pack_batch(7, [(NoteKind.COPIED, AT, 300, 303, delivery), stock])
    records = Expander(GATEWAY, shown).expand(packed)[1]
    copy, told = (orjson.loads(line) for line in Chain(sequence=0, head="0" * 64).seal(records).splitlines())
    assert told["depths"] == [[copy["correlation_id"], "2", str(AT - 5)]]
    assert (told["kind"], told["queue"], told["messages"]) == ("stock", "BOILER.ALARMS", 2)
    assert not {"queues", "oldest_us", "subscribers", "subscribers_sha256"} & told.keys()


@pytest.mark.parametrize(("told", "persistent"), [((), None), ((0,), None), ((1,), False), ((2,), True)])
def test_a_copy_says_whether_it_is_persistent(told: tuple[int, ...], persistent: bool | None, delivery) -> None:
    """An earlier version did not say it."""
    (record,) = _expanded((NoteKind.COPIED, AT, 300, 303, delivery, 2, DIGEST, *told))
    assert record.get("persistent") is persistent


def test_a_copy_says_that_it_stays_in_memory_although_it_is_persistent(delivery) -> None:
    (record,) = _expanded((NoteKind.COPIED, AT, 300, 303, delivery, 2, DIGEST, 1, True))
    assert (record.get("persistent"), record.get("in_memory")) == (False, True)
    (record,) = _expanded((NoteKind.COPIED, AT, 300, 303, delivery, 2, DIGEST, 1))
    assert "in_memory" not in record


@pytest.mark.parametrize(("told", "persistent"), [(0, None), (1, False), (2, True)])
def test_a_copy_says_how_its_queue_is_defined_where_that_decides(told: int, persistent: bool | None, delivery) -> None:
    as_queue = dataclasses.replace(delivery, default_persistence=told)
    (record,) = _expanded((NoteKind.COPIED, AT, 300, 303, as_queue, 2, DIGEST, 1))
    assert (record.get("persistent"), record.get("default_persistent")) == (False, persistent)


def test_messages_that_ended_with_a_run_are_one_record_of_their_queue() -> None:
    (record,) = _expanded((NoteKind.LOST, AT, "BOILER.ALARMS", 3, "in memory"))
    said = {name: record[name] for name in ("kind", "queue", "messages", "reason")}
    assert said == {"kind": "dropped", "queue": "BOILER.ALARMS", "messages": 3, "reason": "in memory"}


def test_a_header_context_of_an_earlier_version_is_read() -> None:
    """It ended before what is said of targets: such batches may still be on the audit queue after an upgrade."""
    earlier = ["translation", "Publish", "a/b", "Q", bytes(24), True, b"MQHRF2  ", 1208, 546, HEADER]
    note = [NoteKind.RELEASED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, 300, 0]
    packed = ormsgpack.packb([1, 7, ormsgpack.packb([note]), [earlier]])
    _, (put,) = Expander(GATEWAY).expand(packed)
    assert put["queue"] == "Q"
    assert "destination" not in put


def test_an_order_lists_the_msg_ids_of_its_messages() -> None:
    (record,) = _expanded((NoteKind.OPERATED, AT, "anna", "CLEAR QLOCAL", "Q", "", 2, "", (300, 301)))
    assert record["message_ids"] == [f"52464842{GATEWAY}{number:016x}" for number in (300, 301)]
    (record,) = _expanded((NoteKind.OPERATED, AT, "anna", "ALTER QMGR", "", "", 0, "", ()))
    assert "message_ids" not in record


def test_every_record_has_its_fields_in_the_order_of_the_definition(
    translation, arrival, delivery, passage, taken
) -> None:
    records = _expanded(
        (NoteKind.PUBLISHED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, 300, translation),
        (NoteKind.PUBLISHED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, 300, translation, 5),
        (NoteKind.ACCEPTED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, 5),
        (NoteKind.RELEASED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, 300, translation, 5, "a/b"),
        (NoteKind.DELIVERED, AT, "screen", 6, 1, 303, PUBLISH, 2, DIGEST, 1, 1, arrival, 5),
        (NoteKind.REQUESTED, AT, "boiler", 5, 1, 0, b"\x00\x03a/b\x01\x00", 0, b"", 302, translation, 5),
        (NoteKind.REQUESTED, AT, "boiler", 5, 8, 11, b"\x00\x03a/#\x01", 0, b"", 302, translation),
        (NoteKind.COPIED, AT, 300, 303, delivery, 2, DIGEST),
        (NoteKind.DELIVERED, AT, "screen", 6, 1, 303, PUBLISH, 2, DIGEST, 1, 1, arrival),
        (NoteKind.ACKNOWLEDGED, AT, "screen", 6, 1, 4, 1, 303),
        (NoteKind.CONFIRMED, AT, "boiler", 5, 4, [[1, 3]]),
        (NoteKind.REFUSED, AT, "boiler", 5, 2, "Publish", 300, 3072, "why"),
        (NoteKind.DEAD_LETTERED, AT, "boiler", 5, 2, "Q", 303, 304, 2053),
        (NoteKind.DROPPED, AT, "boiler", 5, 2, "Q", 303, "why"),
        (NoteKind.STARTED, AT, "0.1.0", "1", bytes(32)),
        (NoteKind.SESSION, AT, "boiler", 5, "opened", 4, True, "anna", "none", "192.0.2.7", "tls", "CN=boiler"),
        (NoteKind.SESSION, AT, "boiler", 5, "resumed", 4, True, "anna", "none", "", "", "", False, b"\x01\x00"),
        (NoteKind.CONFIRMED, AT, "boiler", 5, 4, [[4, 4]], b"\x10"),
        (NoteKind.COPIED, AT, 300, 303, delivery, 2, DIGEST, 2),
        (NoteKind.FORWARDED, AT, 300, MSG_ID, passage),
        (NoteKind.RECEIVED, AT, 306, MSG_ID, passage),
        (NoteKind.REDRIVEN, AT, "boiler", 5, 2, "BOILER.ALARMS", 304, 307),
        (NoteKind.REPEATED, AT, "boiler", 5, 2, PUBLISH, 2, DIGEST, "repeat", 5, "a/b"),
        (NoteKind.OPERATED, AT, "anna", "CLEAR QLOCAL", "BOILER.ALARMS", "panel-7", 12, "why", (300, 301)),
        (NoteKind.CLOCK_JUMPED, AT, "behind", -7, "why"),
        (NoteKind.RESTORED, AT, "rolled_back", "0a" * 12, 41, 60, 7, 9, "anna", "why"),
        (NoteKind.LOGINS_REFUSED, AT, "busy", "known", "192.0.2.0/24", 9, AT - 7),
        (NoteKind.COMMANDED, AT, "orders", "anna", "ANNA", 308, CORREL_ID, True, 2, DIGEST, "warning", 3073, taken, AT),
        (NoteKind.LOST, AT, "BOILER.ALARMS", 3, "why"),
        (NoteKind.STOCK, AT, "queue", "BOILER.ALARMS", 2, 1, AT, 1, DIGEST, ((CORREL_ID, 2, AT),)),
        (NoteKind.TOPICS_REFUSED, AT, "publish", "boiler", "anna", "line 7", "a/b", 1, AT),
        (NoteKind.FILE_READ, AT, "changed", "access.access_file", "access.toml", "sha256", bytes(32)),
        (NoteKind.MQPUT, AT, "orders", "anna", 7, "ANNA", "Q", 308, CORREL_ID, True, 2, DIGEST),
        (NoteKind.MQGET, AT, "orders", "anna", 0, "", "Q", 308, bytes(24), False, 2, DIGEST),
        (NoteKind.INVENTORY, AT, "sessions", 1, (("boiler", 5, "anna", 4, "away"),), (), (), ()),
        (NoteKind.INVENTORY, AT, "filters", 1, (), ((5, "a/#", 1),), (), ()),
        (NoteKind.INVENTORY, AT, "registrations", 1, (), (), (("Q", CORREL_ID, "S", "a/#", "", "", 1),), ()),
        (NoteKind.INVENTORY, AT, "retained", 1, (), (), (), (("S", "a/b", "", 300, 2, DIGEST),)),
        (NoteKind.ANSWERED, AT, "boiler", 5, 9, 1, ("a/#", "b"), b"\x01\x00", b"\x01\x87", (("2", "line 7"),)),
        (NoteKind.ANSWERED, AT, "boiler", 5, 11, 1, ("a/#",), b"", b"\x11", ()),
        (NoteKind.CONNECTS_REFUSED, AT, "limit", "boiler", "192.0.2.0/24", 5, "sessions", 1, AT, b"\x97", "why"),
        (
            NoteKind.PROGRAM,
            AT,
            7,
            "connected",
            "b (h:5)",
            "b",
            "app",
            "anna",
            "password",
            "h",
            "mq",
            "CN=a",
            "APP",
            "why",
        ),
        (
            NoteKind.PROGRAMS_REFUSED,
            AT,
            "not_allowed",
            "known",
            1,
            AT,
            "anna",
            "n/24",
            "mq",
            "APP",
            "rule",
            2035,
            "why",
        ),
        (NoteKind.MQPUT, AT, "orders", "anna", 7, "ANNA", "Q", 309, CORREL_ID, True, 2, DIGEST, 7),
        (NoteKind.COMMANDED, AT, "o", "anna", "A", 310, CORREL_ID, True, 2, DIGEST, "ok", 0, taken, AT, 7),
    )
    order = [field.name for field in FIELDS]
    for record in records:
        assert list(record) == sorted(record, key=order.index), record["kind"]
        assert set(record) <= set(RECORD_FIELDS[record["kind"]]), record["kind"]
    assert {record["kind"] for record in records} == set(Kind)


KEPT = Path(__file__).parent / "kept"


@pytest.mark.parametrize(
    ("trail", "shown"),
    [("clear", InClear()), ("keyed", UnderKey(PersonalKey(bytes(range(32)))))],
    ids=["clear", "keyed"],
)
def test_batches_of_an_earlier_version_become_the_same_bytes_as_then(trail: str, shown: Disclosure) -> None:
    """Written before records were made from the table; a keyed hash or ciphertext of other bytes is a change too."""
    expander, chain = Expander(GATEWAY, shown), Chain(sequence=0, head="0" * 64)
    batches = map(bytes.fromhex, (KEPT / "batches.hex").read_text().splitlines())
    lines = b"".join(chain.seal(expander.expand(packed)[1]) for packed in batches)
    assert lines.splitlines() == (KEPT / f"{trail}.jsonl").read_bytes().splitlines()


@pytest.mark.parametrize("client", ['a"b', "a\\b", "a\nb", "ä€𝄞", "</script>", "\x00\x1f"])
def test_hostile_identifiers_stay_within_their_line(client: str) -> None:
    (record,) = _expanded((NoteKind.SESSION, AT, client, 5, "opened", 4, True))
    assert record["client"] == client


def test_the_hash_is_of_the_stored_bytes_and_names_the_record_before() -> None:
    _, records = Expander(GATEWAY).expand(pack_batch(1, [(NoteKind.STARTED, AT, "0.1.0", "1", bytes(32))] * 2))
    first, second = Chain(sequence=0, head="0" * 64).seal(records).splitlines()
    marker = b',"hash":"'
    digest = hashlib.sha256(first[: first.rindex(marker)] + b"}").hexdigest()
    assert first.endswith(marker + digest.encode() + b'"}')
    assert b'"prev":"' + digest.encode() + b'"' in second


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\xc1",
        b"\x93",
        pack_batch(1, [(99, AT)]),
        pack_batch(1, [(1, AT, "boiler")]),
        pack_batch(1, [(12, AT, "1", "1", "", "", True, "mq6", (), 7)]),
    ],
)
def test_what_is_no_batch_is_named_as_such(packed: bytes) -> None:
    with pytest.raises(MalformedBatch):
        Expander(GATEWAY).expand(packed)


def test_a_message_of_the_conversion_service_becomes_a_put_with_both_headers_mode_and_table() -> None:
    service = Service(
        queue="ORDERS.MQRFH2",
        target="mqrfh2",
        mode="extended",
        table_version="7",
        coded_char_set_id=819,
        encoding=273,
        input_format=b"MQHRF   ",
        input_header=b"RFH \x00\x00\x00\x01",
        output_format=b"MQHRF2  ",
        output_header=HEADER,
        dropped=(("MQPSStreamName", "psc names no stream"),),
    )
    (put,) = _expanded((NoteKind.SERVED, AT, 300, 301, True, 2, DIGEST, service))
    assert {name: value for name, value in put.items() if name not in {"prev", "hash"}} == {
        "version": 1,
        "sequence": 1,
        "batch": 7,
        "gateway": GATEWAY,
        "kind": "put",
        "at_us": AT,
        "queue": "ORDERS.MQRFH2",
        "message_id": _message_id(301),
        "source_message_id": _message_id(300),
        "persistent": True,
        "conversion": "service",
        "target": "mqrfh2",
        "mode": "extended",
        "input_format": "MQHRF",
        "input_ccsid": 819,
        "input_encoding": 273,
        "input": base64.b64encode(b"RFH \x00\x00\x00\x01").decode(),
        "output_format": "MQHRF2",
        "output_ccsid": 819,
        "output_encoding": 273,
        "output": base64.b64encode(HEADER).decode(),
        "dropped_fields": [["MQPSStreamName", "psc names no stream"]],
        "payload_bytes": 2,
        "payload_sha256": DIGEST.hex(),
        "table_version": "7",
    }
    assert list(put) == [field.name for field in FIELDS if field.name in put]

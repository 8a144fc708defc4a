"""Under a key nothing personal stands in a line in clear, and with the key all of it comes back."""

import base64

import orjson

from gateway.audit_trail.disclosure import UnderKey
from gateway.audit_trail.notes.notes import Arrival, NoteKind, Translation, pack_batch
from gateway.audit_trail.records import Chain
from spark_audit.personal import PersonalKey, opened_record
from spark_audit.record.expansion import Expander

GATEWAY = "0102030405060708090a0b0c"
AT = 1_795_158_000_000_000
KEY = PersonalKey(bytes(range(32)))
#: PUBLISH QoS 1, topic ward/7, packet identifier 10.
PUBLISH = bytes.fromhex("32 0c 0006 776172642f37 000a")
CORREL_ID = b"RFHB" + bytes(19) + b"\x07"
HEADER = b"<psc><Topic>ward/7</Topic></psc>"
DIGEST = bytes(32)


def _translation() -> Translation:
    return Translation(
        command="Publish",
        topic="ward/7",
        queue="SYSTEM.BROKER.DEFAULT.STREAM",
        correl_id=CORREL_ID,
        persistent=True,
        format=b"MQHRF2  ",
        coded_char_set_id=1208,
        encoding=546,
        header=HEADER,
        destination="PLANT",
        user="dr.house",
        topic_filters=("ward/+",),
    )


def _arrival() -> Arrival:
    return Arrival(
        queue="RFHBRIDGE.SUBSCRIBER",
        correl_id=CORREL_ID,
        topic="ward/7",
        is_retained=False,
        format=b"MQHRF2  ",
        coded_char_set_id=1208,
        encoding=546,
        header=HEADER,
        source_client="patient-9",
        source_exchange=4,
    )


def _lines(*notes: tuple[object, ...]) -> list[bytes]:
    _, records = Expander(GATEWAY, UnderKey(KEY)).expand(pack_batch(1, list(notes)))
    return Chain(sequence=0, head="0" * 64).seal(records).splitlines()


NOTES = (
    (NoteKind.SESSION, AT, "patient-9", 5, "opened", 4, True, "dr.house", "password", "192.0.2.7", "tls", "CN=ward"),
    (NoteKind.PUBLISHED, AT, "patient-9", 5, 2, PUBLISH, 2, DIGEST, 300, _translation()),
    (NoteKind.DELIVERED, AT, "patient-9", 5, 3, 301, PUBLISH, 2, DIGEST, 1, 1, _arrival()),
    (NoteKind.REFUSED, AT, "patient-9", 5, 4, "Publish", 0, 3013, "topic 'ward/7' is too long"),
    (NoteKind.TOPICS_REFUSED, AT, "publish", "patient-9", "dr.house", "line 7", "ward/7", 1, AT),
    (NoteKind.CONNECTS_REFUSED, AT, "will", "patient-9", "192.0.2.0/24", 5, "", 1, AT, b"\x83", "a will on 'ward/7'"),
    (NoteKind.PROGRAMS_REFUSED, AT, "busy", "known", 1, AT, "dr.house", "192.0.2.0/24", "mq", "A", "", 2035, "ward/7"),
    (
        *(NoteKind.PROGRAM, AT, 7, "ended", "a (dr.house, 192.0.2.7:5)", "a", "app", "dr.house", "password"),
        *("192.0.2.7", "mq", "CN=ward", "APP", "ward/7"),
    ),
    (NoteKind.DROPPED, AT, "patient-9", 5, 0, "RFHBRIDGE.SUBSCRIBER", 302, "the message expired"),
)


def test_no_client_topic_user_or_header_stands_in_clear() -> None:
    text = b"\n".join(_lines(*NOTES))
    for clear in (b"patient-9", b"ward", b"dr.house", b"192.0.2", CORREL_ID.hex().encode()):
        assert clear not in text
        assert base64.b64encode(clear)[:-4] not in text
    assert base64.b64encode(HEADER) not in text
    assert base64.b64encode(PUBLISH) not in text


def test_the_same_client_and_topic_are_the_same_hash_in_every_record() -> None:
    records = [orjson.loads(line) for line in _lines(*NOTES)]
    assert {record["client"] for record in records if "client" in record} == {KEY.name("patient-9")}
    assert {record["topic"] for record in records if "topic" in record} == {KEY.name("ward/7")}
    put, delivered = records[2], records[3]
    assert (put["user"], put["topic_filters"]) == (KEY.name("dr.house"), [KEY.name("ward/+")])
    assert delivered["source_client"] == KEY.name("patient-9")
    assert put["correlation_id"] == delivered["correlation_id"] == KEY.identifier(CORREL_ID).hex()


def test_the_key_opens_headers_and_reasons() -> None:
    records = [opened_record(orjson.loads(line), KEY) for line in _lines(*NOTES)]
    put, delivered, refused = records[2], records[3], records[4]
    assert (base64.b64decode(put["input"]), base64.b64decode(put["output"])) == (PUBLISH, HEADER)
    assert (base64.b64decode(delivered["input"]), base64.b64decode(delivered["output"])) == (HEADER, PUBLISH)
    assert refused["reason"] == "topic 'ward/7' is too long"
    assert records[6]["reason"] == "a will on 'ward/7'"
    assert records[9]["reason"] == "the message expired"


def test_what_is_written_again_after_a_crash_is_the_same() -> None:
    assert _lines(*NOTES) == _lines(*NOTES)

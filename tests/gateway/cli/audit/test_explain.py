"""`rfhbridge audit explain`: what is shown of a message's life, and when there is nothing to tell."""

import base64
import hashlib
import json

import pytest

from gateway.cli.audit.packet_properties import publish_properties
from spark_audit.personal import PersonalKey

MESSAGE = "52464842" + "01" * 20
PACKET = bytes.fromhex("32 09 0003 612f62 000a")
#: `RFH ` and a letter that would move the cursor, in EBCDIC page 500.
EBCDIC = bytes.fromhex("d9c6c840 27 f1")


def _line(sequence: int, **fields: object) -> bytes:
    record = {"version": 1, "sequence": sequence, "at_us": 1_795_158_000_123_000, **fields, "prev": "0" * 64}
    text = json.dumps(record, separators=(",", ":")).encode()
    return text[:-1] + b',"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'"}\n'


@pytest.fixture
def trail(data_folder):
    """The folder of a trail with one put of MESSAGE."""
    folder = data_folder / "trail"
    folder.mkdir(parents=True)
    put = {
        "kind": "put",
        "direction": "in",
        "client": "boiler\x1b[2J",
        "packet_type": 3,
        "message_id": MESSAGE,
        "dropped_fields": [["usr", "no place"]],
        "input_format": "MQTT",
        "input": base64.b64encode(PACKET).decode(),
        "output_format": "MQHRF",
        "output_ccsid": 500,
        "output": base64.b64encode(EBCDIC).decode(),
    }
    (folder / "000000000001-20261120T07.jsonl").write_bytes(_line(1, **put))
    return folder


def test_life_is_shown_with_time_place_and_bytes(rfhbridge, data_folder, trail):
    ended = rfhbridge("audit", "explain", MESSAGE.upper(), "--data", data_folder)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.text.splitlines() == [
        f"message {MESSAGE}: 1 record",
        "",
        "2026-11-20 07:00:00.123Z  put PUBLISH from the client",
        "  record 1, 000000000001-20261120T07.jsonl line 1",
        f"  client boiler\\x1b[2J, MsgId {MESSAGE}",
        "  not copied: ['usr', 'no place']",
        "  before: MQTT, 9 bytes",
        "    0000  32 09 00 03 61 2f 62 00 0a                       2...a/b..",
        "  after: MQHRF, CodedCharSetId 500, 6 bytes",
        "    0000  d9 c6 c8 40 27 f1                                RFH .1",
    ]


SIDES = [
    ("accepted", "in", 3, "accepted PUBLISH from the client"),
    ("confirmed", "in", 4, "confirmed PUBACK to the client"),
    ("confirmed", "in", 5, "confirmed PUBREC to the client"),
    ("confirmed", "in", 7, "confirmed PUBCOMP to the client"),
    ("repeated", "in", 3, "repeated PUBLISH from the client again, answered with PUBREC"),
    ("put", "in", 8, "put SUBSCRIBE from the client"),
    ("delivered", "out", 3, "delivered PUBLISH to the client"),
    ("acknowledged", "out", 4, "acknowledged PUBACK from the client"),
    ("acknowledged", "out", 5, "acknowledged PUBREC from the client"),
    ("acknowledged", "out", 7, "acknowledged PUBCOMP from the client"),
]


def test_each_packet_is_told_with_the_side_that_sent_it(rfhbridge, trail):
    (segment,) = trail.iterdir()
    exchange = {"gateway": "01" * 12, "client": "boiler", "session_epoch": 1, "exchange": 1}
    records = [
        exchange | {"kind": kind, "direction": direction, "packet_type": packet, "message_id": MESSAGE}
        for kind, direction, packet, _told in SIDES
    ]
    segment.write_bytes(b"".join(_line(number, **record) for number, record in enumerate(records, start=1)))
    told = rfhbridge("audit", "explain", MESSAGE, "--trail", trail).text.splitlines()
    assert [line[26:] for line in told if line.startswith("2026")] == [words for *_, words in SIDES]


#: PUBLISH of topic a at QoS 0: Payload Format Indicator 1, Content Type `t`, Correlation Data FF, two User Properties.
PACKET_5 = bytes.fromhex(
    "30 22 0001 61 1e 01 01 03 0001 74 09 0001 ff 26 0004 756e6974 0001 4b 26 0004 756e6974 0001 43"
)


@pytest.mark.parametrize(
    ("packet", "told"),
    [
        (
            PACKET_5,
            [
                "payload-format-indicator 1",
                "correlation-data ff",
                "user-property unit=K",
                "user-property unit=C",
                "content-type t",
            ],
        ),
        (PACKET_5[:20], []),
        (PACKET_5[:1], []),
        (b"", []),
        (b"\x82" + PACKET_5[1:], []),
    ],
    ids=["whole", "half", "one byte", "nothing", "another packet"],
)
def test_properties_of_mqtt_5_stand_behind_the_packet(packet, told):
    assert list(publish_properties(packet)) == told


def test_properties_are_shown_for_protocol_level_5_alone(rfhbridge, data_folder, trail):
    (segment,) = trail.iterdir()
    put = {"kind": "put", "packet_type": 3, "message_id": MESSAGE, "input_format": "MQTT"}
    put["input"] = base64.b64encode(PACKET_5).decode()
    segment.write_bytes(_line(1, **put, protocol_level=5))
    ended = rfhbridge("audit", "explain", MESSAGE, "--data", data_folder)
    assert "    property user-property unit=K" in ended.text.splitlines()
    segment.write_bytes(_line(1, **put, protocol_level=4))
    assert "property" not in rfhbridge("audit", "explain", MESSAGE, "--data", data_folder).text


def test_folder_that_is_a_trail_is_searched(rfhbridge, trail):
    assert rfhbridge("audit", "explain", MESSAGE, "--trail", trail).exit_code == 0


def test_json_has_the_whole_records(rfhbridge, data_folder, trail):
    ended = rfhbridge("audit", "explain", MESSAGE, "--data", data_folder, "--json")
    told = json.loads(ended.stdout)
    assert (told["message_id"], told["segments"], told["lines"], told["is_cut"]) == (MESSAGE, 1, 1, False)
    (record,) = told["records"]
    assert (record["trail"], record["line"], record["is_unchanged"]) == (str(trail), 1, True)
    assert base64.b64decode(record["record"]["input"]) == PACKET


def test_changed_record_ends_with_1(rfhbridge, data_folder, trail):
    segment = trail / "000000000001-20261120T07.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b"boiler", b"cooler"))
    ended = rfhbridge("audit", "explain", MESSAGE, "--data", data_folder)
    assert ended.exit_code == 1
    assert "CHANGED" in ended.text


def test_bytes_that_are_encrypted_need_the_key(rfhbridge, data_folder, trail, tmp_path):
    key_file = tmp_path / "personal.key"
    key_file.write_bytes(bytes(range(32)))
    sealed = PersonalKey(bytes(range(32))).sealed(PACKET)
    fields = {"kind": "put", "message_id": MESSAGE, "input_format": "MQTT", "input": sealed}
    (trail / "000000000001-20261120T07.jsonl").write_bytes(_line(1, **fields))
    assert "encrypted (--personal-key" in rfhbridge("audit", "explain", MESSAGE, "--data", data_folder).text
    with_key = rfhbridge("audit", "explain", MESSAGE, "--data", data_folder, "--personal-key", key_file)
    assert "32 09 00 03 61 2f 62 00 0a" in with_key.text
    key_file.write_bytes(bytes(32))
    assert rfhbridge("audit", "explain", MESSAGE, "--data", data_folder, "--personal-key", key_file).exit_code == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("000000000001-20261120T07.jsonl", b""),
        ("000000000001-20261120T07.jsonl", b'{"message_id":"%s"' % MESSAGE.encode()),
        ("000000000001-20261120T07.jsonl", b"temperature;21\n"),
        ("000000000001-20261120T07.jsonl.gz", b"\x1f\x8b damaged"),
        ("notes.txt", b"nothing\n"),
    ],
    ids=["empty", "half a line", "foreign", "damaged", "no segment"],
)
def test_input_that_tells_nothing_is_not_evaluable(rfhbridge, data_folder, name, content):
    (data_folder / "trail").mkdir(parents=True)
    (data_folder / "trail" / name).write_bytes(content)
    ended = rfhbridge("audit", "explain", MESSAGE, "--data", data_folder)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert ended.stderr.count("\n") == 1


def test_data_folder_without_a_trail_is_not_evaluable(rfhbridge, data_folder):
    data_folder.mkdir()
    ended = rfhbridge("audit", "explain", MESSAGE, "--data", data_folder)
    assert ended.exit_code == 2
    assert "there is no trail" in ended.stderr
    assert "(name the gateway's data folder with --data)" in ended.stderr


def test_same_folder_twice_and_no_folder_fail(rfhbridge, data_folder, trail):
    assert rfhbridge("audit", "explain", MESSAGE, "--data", data_folder, "--data", data_folder).exit_code == 2
    assert rfhbridge("audit", "explain", MESSAGE, "--data", data_folder / "nowhere").exit_code == 2


@pytest.mark.parametrize("identifier", ["", "52", "zz" * 24])
def test_text_that_is_no_message_identifier_is_wrong_use(rfhbridge, data_folder, trail, identifier):
    assert rfhbridge("audit", "explain", identifier, "--data", data_folder).exit_code == 3

"""The controls of conversions on records: each finding with its control, and hostile records that break no job."""

import base64
import json

import pytest

from spark_audit.controls import reperformance
from spark_audit.controls.catalogue import CONTROLS

LARGEST = 2**63 - 1
FOLLOWING = bytes.fromhex("22020000 b8040000")
PUBLISH = bytes.fromhex("33 09 0003 612f62 000a")


def _mqrfh(string: str) -> bytes:
    """An MQRFH as the byte layout says, little-endian, in UTF-8."""
    data = string.encode() + b" " * (-len(string.encode()) % 4)
    return b"RFH \x01\x00\x00\x00" + (32 + len(data)).to_bytes(4, "little") + FOLLOWING + b" " * 8 + bytes(4) + data


def _mqrfh2(*psc: str) -> bytes:
    """An MQRFH2 with one folder as the byte layout says, little-endian."""
    text = ("<psc>" + "".join(psc) + "</psc>").encode()
    text += b" " * (-len(text) % 4)
    data = (1208).to_bytes(4, "little") + len(text).to_bytes(4, "little") + text
    return b"RFH \x02\x00\x00\x00" + (32 + len(data)).to_bytes(4, "little") + FOLLOWING + b" " * 8 + bytes(4) + data


COMMAND, TOPIC, RETAIN = "<Command>Publish</Command>", "<Topic>a/b</Topic>", "<PubOpt>RetainPub</PubOpt>"
SERVED = {
    "conversion": "service",
    "message_id": "01" * 24,
    "target": "mqrfh2",
    "mode": "strict",
    "input_format": "MQHRF",
    "input_ccsid": 1208,
    "input_encoding": 546,
    "output_format": "MQHRF2",
    "output_ccsid": 1208,
    "output_encoding": 546,
}
PACKET = SERVED | {
    "conversion": "packet_to_header",
    "command": "Publish",
    "packet_type": 3,
    "input_format": "MQTT",
    "payload_bytes": 2,
    "topic": "a/b",
    "qos": 1,
    "retain": True,
    "packet_identifier": 10,
    "persistent": True,
}


def _put(trail, fields: dict[str, object], before: bytes, after: bytes, **changes: object) -> int:
    sides = {"input": base64.b64encode(before).decode(), "output": base64.b64encode(after).decode()}
    return trail.add("put", **fields | sides | changes)


#: Right, though they look wrong: blanks between elements, an option that both formats have, RETAIN that deletes.
NEAR_MISSES: tuple[tuple[dict[str, object], bytes, bytes], ...] = (
    (SERVED, _mqrfh("MQPSCommand Publish MQPSTopic a/b"), _mqrfh2(" ", COMMAND, "  ", TOPIC, " ")),
    (SERVED, _mqrfh("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a/b"), _mqrfh2(COMMAND, RETAIN, TOPIC)),
    (PACKET | {"payload_bytes": 0}, b"\x33\x07" + PUBLISH[2:], _mqrfh2(COMMAND, TOPIC)),
)


def plant_conversions(trail) -> dict[str, int]:
    """Right conversions, and wrong ones by what is wrong with them."""
    served = _mqrfh("MQPSCommand Publish MQPSStreamName S MQPSTopic a/b")
    dropped = {"dropped_fields": [["MQPSStreamName", "no row in the table"]]}
    _put(trail, SERVED, served, _mqrfh2(COMMAND, TOPIC), **dropped)
    _put(trail, PACKET, PUBLISH, _mqrfh2(COMMAND, RETAIN, TOPIC))
    for near_miss in NEAR_MISSES:
        _put(trail, *near_miss)
    field = _put(trail, SERVED, served, _mqrfh2(COMMAND, "<Topic>a/c</Topic>"), **dropped)
    support = _put(trail, SERVED, served, _mqrfh2(COMMAND, TOPIC, "<StreamName>S</StreamName>"), **dropped)
    report = _put(trail, SERVED, served, _mqrfh2(COMMAND, TOPIC))
    retain = _put(trail, PACKET, PUBLISH, _mqrfh2(COMMAND, TOPIC))
    unreadable = _put(trail, SERVED, b"RFH ", _mqrfh2(COMMAND, TOPIC))
    other_bytes = _put(trail, PACKET | {"qos": 2}, PUBLISH, _mqrfh2(COMMAND, RETAIN, TOPIC))
    return {
        "field": field,
        "support": support,
        "report": report,
        "retain": retain,
        "unreadable": unreadable,
        "bytes": other_bytes,
    }


def test_each_fault_of_a_conversion_is_found_by_the_control_that_names_its_rule(trail, read) -> None:
    wrong = plant_conversions(trail)
    field, support, report, retain = (wrong[name] for name in ("field", "support", "report", "retain"))
    facts = read(trail.write())
    assert facts.sequences(reperformance.FIELDS) == {field, support}  # a name that has no row, too
    assert facts.sequences(reperformance.SUPPORT) == {support}
    assert facts.sequences(reperformance.REPORT) == {report}
    assert facts.sequences(reperformance.RETAIN) == {retain}
    assert facts.sequences(reperformance.CONTROL) == {field, support, report, retain}
    assert facts.sequences(reperformance.UNREADABLE) == {wrong["unreadable"]}
    assert facts.sequences(reperformance.BYTES) == {wrong["bytes"]}
    status = {row["sequence"]: row["status"] for row in facts.engine.rows("SELECT sequence, status FROM records")}
    assert [status[number] for number in range(3, 3 + len(NEAR_MISSES))] == ["match"] * len(NEAR_MISSES)
    shown = {row["sequence"]: row for row in facts.engine.rows("SELECT * FROM evidence")}
    assert base64.b64decode(shown[field]["expected"]) == _mqrfh2(COMMAND, TOPIC)
    assert shown[field]["byte_offset"] == _mqrfh2(COMMAND, TOPIC).index(b"a/b") + 2


#: Values of the right type that no gateway writes.
HOSTILE: tuple[dict[str, object], ...] = (
    {"kind": "put", "conversion": "packet_to_header", "payload_bytes": -1_000},
    {"kind": "put", "conversion": "packet_to_header", "payload_bytes": LARGEST, "packet_type": LARGEST},
    {"kind": "put", "conversion": "header_to_packet", "granted_qos": LARGEST, "published_qos": LARGEST},
    {"kind": "put", "conversion": "header_to_packet", "granted_qos": -5, "published_qos": -5},
    {"kind": "put", "conversion": "service", "input": "no base64", "output": None},
    {"kind": "put", "conversion": "service", "input_ccsid": -LARGEST, "input_encoding": LARGEST},
    {"kind": "put", "conversion": "service", "output_ccsid": LARGEST, "output_encoding": -1},
    {"kind": "put", "conversion": "service", "dropped_fields": [["a"], [], ["b", None], None]},
    {"kind": "put", "conversion": "😀", "topic": "\u0000</script>"},
    {
        "kind": "put",
        "conversion": "packet_to_header",
        "destination": "T",
        "exchange": -LARGEST,
        "topic_filters": [None],
    },
    {"kind": "confirmed", "packet_type": 4, "exchanges": [[1, LARGEST], [LARGEST, -LARGEST], [None, 1], [], None]},
    {"kind": "confirmed", "packet_type": 5, "exchanges": None},
    {"kind": "accepted", "qos": LARGEST, "exchange": -1, "at_us": -LARGEST},
    {"kind": "delivered", "qos": 2, "at_us": LARGEST, "message_id": ""},
    {"kind": "put", "destination": "T", "message_id": "", "at_us": LARGEST},
    {"kind": "forwarded", "message_id": "", "at_us": -LARGEST},
    {"kind": "started", "table_version": None},
    {"kind": "session", "event": "opened", "session_epoch": -LARGEST},
)


def _surrogate(trail) -> None:
    """A header whose text names half a character."""
    _put(trail, SERVED, _mqrfh("MQPSCommand Publish MQPSTopic a"), _mqrfh2(COMMAND, "<Topic>&#xD800;</Topic>"))


@pytest.fixture
def hostile(trail):
    """A trail of everything that is wrong at once; the last number there is stands in the middle."""
    for fields in HOSTILE:
        trail.add(**fields)
    _surrogate(trail)
    lines = trail.lines
    trail.sequence = LARGEST - 1
    trail.add("started", batch=LARGEST, at_us=1)
    trail.sequence = -LARGEST - 2
    trail.add("started", batch=-LARGEST - 1, at_us=1)
    wrong_types = ({"qos": "1"}, {"exchange": 1.5}, {"exchanges": {}}, {"sequence": 2**70}, {"kind": 5}, {"batch": []})
    for changes in wrong_types:
        text = {"version": 1, "sequence": 1, "batch": 1, "gateway": "f" * 24, "kind": "put"} | changes
        lines.append(json.dumps(text).encode() + b"\n")
    return trail


def test_hostile_records_are_violations_and_no_dead_jobs(hostile, read) -> None:
    facts = read(hostile.write())
    found = {control.identifier: len(facts.found(control)) for control in CONTROLS if control.rule.query}
    assert found["integrity.lines"] == 6
    assert found["conversion.reperformable"] + found["conversion.reperformance"] == 11
    for identifier in ("integrity.values", "integrity.sequence", "integrity.batch", "reasons", "qos.1", "timeliness"):
        assert found[identifier], identifier

"""The controls of integrity, on one trail of two segments: whole, and touched in each way."""

from collections.abc import Callable

import pytest

from spark_audit.audit_input import input_of_trails
from spark_audit.controls import integrity
from spark_audit.controls.control import Control
from spark_audit.engines.duck import DuckEngine
from spark_audit.policy import Policy
from spark_audit.read import trail_files
from spark_audit.verify import Verdict, verify
from tests.spark_audit.conftest import Facts, TrailBuilder

CONTROLS = {
    control.identifier: control
    for control in (integrity.LINES, integrity.HASHES, integrity.CHAIN, integrity.SEQUENCE, integrity.BATCHES)
}
NEXT_SEGMENT = "000000000002-20261120T08.jsonl"
LARGEST = 2**63 - 1
Lines = list[bytes]

#: For each touch: what it does to the six lines (the last two in a second segment), and what each control then finds.
TOUCHES: dict[str, tuple[Callable[[Lines], Lines], dict[str, set[int]]]] = {
    "nothing": (lambda rows: rows, {}),
    "edit": (lambda rows: [*rows[:2], rows[2].replace(b"boiler", b"cooler"), *rows[3:]], {"integrity.hash": {3}}),
    "delete": (
        lambda rows: rows[:2] + rows[3:],
        {"integrity.chain": {4}, "integrity.sequence": {4}, "integrity.batch": {4}},
    ),
    "double": (lambda rows: [*rows[:3], rows[2], *rows[3:]], {"integrity.chain": {3}, "integrity.sequence": {3}}),
    "swap": (lambda rows: [rows[0], rows[2], rows[1], *rows[3:]], {"integrity.chain": {2, 3, 4}}),
    "a foreign line": (lambda rows: [*rows[:3], b"text\n", *rows[3:]], {"integrity.lines": {0}}),
    "the first deleted": (
        lambda rows: rows[1:],
        {"integrity.chain": {2}, "integrity.sequence": {2}, "integrity.batch": {2}},
    ),
}


def _found(control: Control, facts: Facts) -> set[int]:
    return facts.sequences(control)


@pytest.fixture(scope="module")
def touched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrailBuilder]:
    """A trail for each touch, each of a gateway of its own."""
    trails: dict[str, TrailBuilder] = {}
    for number, (touch, (change, _expected)) in enumerate(TOUCHES.items(), start=1):
        trail = trails[touch] = TrailBuilder(tmp_path_factory.mktemp("touched") / "trail")
        for exchange in range(1, 7):
            trail.add("accepted", gateway=f"{number:024x}", client="boiler", exchange=exchange)
        rows = change(list(trail.lines))
        trail.lines = rows[:-2]
        trail.write()
        trail.lines = rows[-2:]
        trail.write(NEXT_SEGMENT)
    return trails


def _touch_of(touched: dict[str, TrailBuilder], subject: str) -> str:
    """The touch whose trail a finding is of: its subject names a file there, or its gateway."""
    gateways = {f"gateway {number:024x}": touch for number, touch in enumerate(touched, start=1)}
    return gateways.get(subject) or next(
        touch for touch, trail in touched.items() if subject.startswith(f"{trail.folder}/")
    )


@pytest.fixture(scope="module")
def found(touched: dict[str, TrailBuilder], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, set[int]]]:
    """By touch and control the sequences of everything that is found in these trails, which are read together."""
    scratch = tmp_path_factory.mktemp("scratch")
    engine = DuckEngine(scratch, "1g")
    facts = Facts(engine, input_of_trails([trail_files(trail.folder, scratch) for trail in touched.values()]))
    told = [(name, row) for name, control in CONTROLS.items() for row in facts.found(control)]
    engine.close()
    by_touch: dict[str, dict[str, set[int]]] = {touch: {} for touch in touched}
    for name, row in told:
        by_touch[_touch_of(touched, row["subject"])].setdefault(name, set()).add(row["sequence"])
    return by_touch


@pytest.mark.parametrize("touch", TOUCHES)
def test_each_touch_is_found_by_the_controls_that_it_concerns(touched, found, touch: str) -> None:
    _change, expected = TOUCHES[touch]
    assert found[touch] == expected
    assert (verify(touched[touch].folder).verdict is Verdict.INTACT) == (not expected), "Spark and verify must agree"


#: What looks like another hash, a line's end, another field or no record, within a record that is one.
NEAR_MISSES: tuple[dict[str, object], ...] = (
    {"client": 'boiler","hash":"' + "0" * 64 + '"}'},
    {"client": "b\u2028o\u0085i\x1eler\n{}", "topic": "ä/日本/😀"},
    {"client": "boiler", "a_field_of_a_later_version": {"version": 2, "sequence": [7]}},
    {"client": "", "topic": None},
)


def test_records_that_only_look_changed_or_foreign_are_whole(trail, read) -> None:
    for fields in NEAR_MISSES:
        trail.add("accepted", **fields)
    frame = read(trail.write())
    assert {name: _found(control, frame) for name, control in CONTROLS.items()} == {name: set() for name in CONTROLS}
    assert verify(trail.folder).verdict is Verdict.INTACT


def test_batches_of_several_records_and_a_second_gateway_are_no_gap(trail, read) -> None:
    for batch in (1, 1, 2):
        trail.add("accepted", batch=batch)
    trail.sequence = 0
    trail.add("started", batch=1, gateway="f" * 24)
    frame = read(trail.write())
    assert {name: _found(control, frame) for name, control in CONTROLS.items()} == {name: set() for name in CONTROLS}


def test_a_missing_group_commit_is_found_though_the_sequence_holds(trail, read) -> None:
    trail.add("accepted", batch=1)
    trail.add("accepted", batch=3)
    frame = read(trail.write())
    assert (_found(integrity.BATCHES, frame), _found(integrity.SEQUENCE, frame)) == ({2}, set())


def test_a_trail_that_says_why_it_begins_late_is_no_gap_and_is_told_until_a_policy_names_it(trail, read) -> None:
    trail.add("restored", batch=4, event="trail_begun_late", first_missing_batch=1, last_missing_batch=4)
    trail.add("accepted", batch=5)
    frame = read(trail.write())
    assert {name: _found(control, frame) for name, control in CONTROLS.items()} == {name: set() for name in CONTROLS}
    (told,) = frame.found(integrity.RESTORED)
    verification = verify(trail.folder)
    (restoration,) = verification.restorations
    assert verification.verdict is Verdict.RESTORED
    assert "batches 1 to 4 missing" in told["detail"]
    assert restoration.record in told["detail"]
    policy = Policy.parse(f'[[restore]]\nrecord = "{restoration.record}"\n'.encode())
    (named,) = [each for each in policy.controls() if each.identifier == integrity.RESTORED.identifier]
    assert frame.found(named) == []
    assert verify(trail.folder, accepted=policy.accepted).verdict is Verdict.INTACT


@pytest.mark.parametrize(
    "fields",
    [
        {"event": "trail_begun_late", "first_missing_batch": 1, "last_missing_batch": 3},
        {"event": "trail_begun_late", "first_missing_batch": 2, "last_missing_batch": 4},
        {"event": "trail_begun_late"},
    ],
)
def test_a_record_that_tells_another_gap_than_there_is_hides_none(trail, read, fields) -> None:
    trail.add("restored", batch=4, **fields)
    frame = read(trail.write())
    assert _found(integrity.BATCHES, frame) == {1}
    assert verify(trail.folder).verdict is Verdict.VIOLATED


def test_a_trail_whose_older_segments_were_removed_is_whole_from_its_first_record_on(trail, read) -> None:
    for _ in range(6):
        trail.add("accepted")
    trail.lines = trail.lines[2:4] + trail.lines[5:]
    frame = read(trail.write())
    later = {name: control.with_values({"from_start": False}) for name, control in CONTROLS.items()}
    found = {name: sequences for name, control in later.items() if (sequences := _found(control, frame))}
    assert found == {"integrity.chain": {6}, "integrity.sequence": {6}, "integrity.batch": {6}}
    assert _found(integrity.SEQUENCE, frame) == {3, 6}


def test_two_trails_in_one_frame_are_two_chains(trail, read, tmp_path) -> None:
    trail.add("accepted"), trail.add("accepted")
    first = trail.write()
    trail.folder, trail.lines, trail.sequence, trail.head = tmp_path / "other", [], 0, "0" * 64
    trail.add("accepted", gateway="f" * 24)
    trail.lines.append(b"text\n")
    facts = read(first, trail.write())
    assert _found(integrity.CHAIN, facts) == set()
    (line,) = facts.found(integrity.LINES)
    assert line["subject"].endswith(", line 2")


#: Values that a field may not have, and near misses: the last ones that it may.
WRONG_VALUES: tuple[dict[str, object], ...] = (
    {"kind": "put_aside"},
    {"kind": "accepted", "qos": 3},
    {"kind": "accepted", "client": None},
    {"kind": "accepted", "exchange": 0},
    {"kind": "accepted", "direction": "up"},
    {"kind": "accepted", "payload_sha256": "AB" * 32},
    {"kind": "accepted", "payload_bytes": -1},
    {"kind": "accepted", "packet_identifier": 65_536},
    {"kind": "accepted", "at_us": LARGEST},
    {"kind": "accepted", "batch": -1},
    {"kind": "put", "message_id": "00", "queue": "Q", "conversion": "service"},
    {"kind": "put", "message_id": "00" * 24, "queue": "Q", "conversion": "guess"},
    {"kind": "session", "client": "a", "session_epoch": 1, "event": "seen"},
    {"kind": "forwarded", "message_id": "00" * 24, "queue": "Q", "queue_manager": "Q", "channel": "C"},
)
RIGHT_VALUES: tuple[dict[str, object], ...] = (
    {"kind": "accepted"},
    {"kind": "accepted", "qos": 2, "packet_identifier": 65_535, "payload_bytes": 0, "exchange": LARGEST},
    {"kind": "put", "message_id": "00" * 24, "queue": "", "conversion": "packet_to_header"},
    {"kind": "dropped", "queue": "Q"},
)
ACCEPTED = {"direction": "in", "client": "a", "session_epoch": 0, "exchange": 1, "packet_type": 3, "qos": 0}


def test_values_that_no_field_has_are_found_and_the_last_ones_that_it_has_are_not(trail, read) -> None:
    wrong = {_add(trail, changes) for changes in WRONG_VALUES}
    for changes in RIGHT_VALUES:
        _add(trail, changes)
    found = read(trail.write()).found(integrity.VALUES)
    assert {row["sequence"] for row in found} == wrong
    assert {row["detail"] for row in found if row["sequence"] == 3} == {"accepted: client is missing"}


def _add(trail, changes: dict[str, object]) -> int:
    standard = ACCEPTED if changes["kind"] == "accepted" else {}
    return trail.add(**standard | changes)

"""The controls of integrity, on one trail of two segments: whole, and touched in each way."""

from collections.abc import Callable

import pytest

from spark_audit.controls import batches, chain, hashes, lines, sequence
from spark_audit.controls.control import Control
from spark_audit.verify import Verdict, verify

CONTROLS = {
    control.identifier: control
    for control in (lines.CONTROL, hashes.CONTROL, chain.CONTROL, sequence.CONTROL, batches.CONTROL)
}
NEXT_SEGMENT = "000000000002-20261120T08.jsonl"
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


def _found(control: Control, frame) -> set[int]:
    rows = control.find(frame if control is lines.CONTROL else frame.where("is_record")).collect()
    return {row["sequence"] or 0 for row in rows}


@pytest.mark.parametrize("touch", TOUCHES)
def test_each_touch_is_found_by_the_controls_that_it_concerns(trail, read, touch: str) -> None:
    for exchange in range(1, 7):
        trail.add("accepted", client="boiler", exchange=exchange)
    change, expected = TOUCHES[touch]
    rows = change(list(trail.lines))
    trail.lines = rows[:-2]
    trail.write()
    trail.lines = rows[-2:]
    frame = read(trail.write(NEXT_SEGMENT)).persist()
    found = {name: sequences for name, control in CONTROLS.items() if (sequences := _found(control, frame))}
    frame.unpersist()
    assert found == expected
    assert (verify(trail.folder).verdict is Verdict.INTACT) == (not expected), "Spark and verify must agree"


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
    assert (_found(batches.CONTROL, frame), _found(sequence.CONTROL, frame)) == ({2}, set())

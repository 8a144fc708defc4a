"""Bytes as hexadecimal and text: eight in a row, the first that differs set apart, long headers shown around it."""

import base64
from dataclasses import replace

from spark_audit.report.hexdump import dump
from tests.spark_audit.report.conftest import evidence_of


def test_a_short_header_is_shown_whole_with_the_byte_that_differs_apart() -> None:
    shown = dump(evidence_of(b"\x30\x05", b"<Topic>a/c</Topic>", b"<Topic>a/b</Topic>", 9), "output")
    assert [row.offset for row in shown.rows] == ["00000", "00008", "00010"]
    assert shown.rows[1].hexadecimal == ("2f", "63", "3c 2f 54 6f 70 69")
    assert shown.rows[1].text == ("/", "c", "</Topi")
    assert [row.differs for row in shown.rows] == [False, True, False]
    assert (shown.bytes_before, shown.bytes_after) == (0, 0)


def test_a_last_row_is_padded_so_that_its_text_stands_below_the_others() -> None:
    shown = dump(evidence_of(b"", b"123456789", b"", -1), "output")
    assert [len(row.padding) for row in shown.rows] == [0, 7 * 3]


def test_the_input_is_never_marked_and_unprintable_bytes_are_dots() -> None:
    shown = dump(evidence_of(bytes(range(8)), b"x", b"y", 0), "input")
    assert [(row.differs, "".join(row.text)) for row in shown.rows] == [(False, "........")]


def test_long_headers_are_shown_around_the_difference_from_the_same_byte_on() -> None:
    evidence = evidence_of(b"", b"a" * 5_000 + b"c" + b"a" * 999, b"a" * 5_000 + b"b", 5_000)
    written, expected = dump(evidence, "output"), dump(evidence, "expected")
    assert [shown.rows[0].offset for shown in (written, expected)] == [f"{5_000 - 64:05x}"] * 2
    assert [sum(row.differs for row in shown.rows) for shown in (written, expected)] == [1, 1]
    assert written.bytes_before == 4_936
    assert written.bytes_after == 6_000 - 4_936 - 32 * 8
    assert expected.bytes_after == 0


def test_bytes_that_the_result_does_not_hold_are_counted() -> None:
    evidence = replace(evidence_of(b"a" * 16, b"", b"", -1), input_bytes=1_000)
    assert dump(evidence, "input").bytes_after == 984


def test_a_side_that_ends_before_the_difference_has_no_rows() -> None:
    evidence = evidence_of(b"", b"a" * 9_000, b"a" * 100, 8_000)
    shown = dump(evidence, "expected")
    assert (shown.rows, shown.bytes_before, shown.bytes_after) == ((), 100, 0)


def test_what_is_no_base64_is_said_to_be_none() -> None:
    evidence = replace(evidence_of(b"", b"", b"", -1), output="not base64")
    assert not dump(evidence, "output").is_readable
    assert dump(replace(evidence, output=base64.b64encode(b"x").decode()), "output").is_readable

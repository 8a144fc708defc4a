"""The seven notes of the message format page: read, numbered, and said where an option is dropped for its format."""

import struct

import pytest

from mappings.commands.command import FORMAT_MQRFH, Dialect
from mappings.conversion.convert import convert
from mappings.table import OPTION_ROWS, SUPPORT_NOTES, TableError, read_support_notes

# "Message formats" (aq19780_): the notes at each option of the support table.
NOTES = {
    ("registration", "CorrelAsId"): (4,),
    ("registration", "Anon"): (7,),
    ("registration", "Local"): (5,),
    ("registration", "DirectReq"): (1,),
    ("registration", "InclStreamName"): (3,),
    ("publication", "NoReg"): (1,),
    ("delete", "Local"): (5,),
}


def test_there_are_seven_notes() -> None:
    assert sorted(SUPPORT_NOTES) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(("option", "notes"), NOTES.items())
def test_options_have_the_notes_of_the_page(option: tuple[str, str], notes: tuple[int, ...]) -> None:
    (row,) = (row for row in OPTION_ROWS if (row.kind, row.token) == option)
    assert row.notes == notes


def test_a_note_without_a_text_is_a_fault_of_the_table() -> None:
    with pytest.raises(TableError, match="no text"):
        read_support_notes({"notes": {"1": "a"}}, OPTION_ROWS)
    with pytest.raises(TableError, match="of texts"):
        read_support_notes({}, OPTION_ROWS)


@pytest.mark.parametrize(
    ("string", "note"),
    [
        ("MQPSCommand RegSub MQPSRegOpts Anon MQPSTopic a", "note 7: ignored by WebSphere Message Broker"),
        ("MQPSCommand RegSub MQPSRegOpts 128 MQPSTopic a", "note 3: the stream name is put before the topic"),
        ("MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a", "note 1: kept for migration"),
    ],
)
def test_a_report_says_what_the_page_notes_about_a_dropped_option(string: str, note: str) -> None:
    data = struct.pack("<4siiii8si", b"RFH ", 1, 32 + len(string), 546, 1208, b"MQSTR   ", 0) + string.encode()
    report = convert(data, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH2).report
    (dropped,) = report.dropped
    assert note in dropped.reason

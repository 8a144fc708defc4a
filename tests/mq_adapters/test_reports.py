"""What reports carry of the message, and how their MQMD describes it."""

import pytest

from mappings.headers.charset import ENCODING_NORMAL, ENCODING_REVERSED
from mappings.headers.mqrfh2 import write_mqrfh2
from mq_adapters.message import MQFMT_NONE, Message, MessageDescriptor
from mq_adapters.reports import MQFB_COA, ReportOption, report_on

HEADER = write_mqrfh2(
    (b"<mcd><Msd>jms_text</Msd></mcd>", b"<usr><a>" + b"x" * 200 + b"</a></usr>"),
    format=b"MQSTR   ",
    next_coded_char_set_id=819,
    next_encoding=ENCODING_NORMAL,
    coded_char_set_id=1208,
    encoding=ENCODING_REVERSED,
)
BODY = b"body" * 100
COA, WITH_DATA, WITH_FULL_DATA = 0x100, 0x300, 0x700


def report(body: bytes, report: int, **fields: object) -> Message:
    descriptor = MessageDescriptor(report=report, encoding=ENCODING_REVERSED, reply_to_q="REPLIES").replace(**fields)
    asked = Message(descriptor, body)
    return report_on(asked, ReportOption.CONFIRM_ON_ARRIVAL, feedback=MQFB_COA, queue_manager_name="PLANT")


def description(message: Message) -> tuple[bytes, int, int]:
    descriptor = message.descriptor
    return descriptor.format, descriptor.coded_char_set_id, descriptor.encoding


def test_a_report_without_data_announces_no_header() -> None:
    made = report(HEADER + BODY, COA, format=b"MQHRF2  ")
    assert (made.body, description(made)) == (b"", (b"MQSTR   ", 819, ENCODING_NORMAL))


@pytest.mark.parametrize("body", [b"", b"RFH ", HEADER[:40], b"\xff" * 60])
@pytest.mark.parametrize("format", [b"MQHRF2  ", b"MQDEAD  ", b"MQHRF   "])
def test_a_wrong_header_is_none(body: bytes, format: bytes) -> None:
    made = report(body, COA, format=format)
    assert (made.body, description(made)) == (b"", (MQFMT_NONE, 1208, ENCODING_REVERSED))
    assert report(body, WITH_DATA, format=format).body == body


@pytest.mark.parametrize(("options", "data"), [(WITH_DATA, HEADER + BODY[:100]), (WITH_FULL_DATA, HEADER + BODY)])
def test_headers_come_whole_beside_the_first_bytes(options: int, data: bytes) -> None:
    made = report(HEADER + BODY, options, format=b"MQHRF2  ")
    assert (made.body, description(made)) == (data, (b"MQHRF2  ", 1208, ENCODING_REVERSED))


def test_a_plain_message_is_described_as_it_is() -> None:
    for options, data in ((COA, b""), (WITH_DATA, BODY[:100]), (WITH_FULL_DATA, BODY)):
        made = report(BODY, options, format=b"MQSTR   ")
        assert (made.body, description(made)) == (data, (b"MQSTR   ", 1208, ENCODING_REVERSED))


def test_a_hundred_headers_and_one_are_the_limit() -> None:
    again = write_mqrfh2(
        (),
        format=b"MQHRF2  ",
        next_coded_char_set_id=1208,
        next_encoding=ENCODING_REVERSED,
        coded_char_set_id=1208,
        encoding=ENCODING_REVERSED,
    )
    assert description(report(again * 101 + BODY, COA, format=b"MQHRF2  "))[0] == MQFMT_NONE

"""Folders of JMS in the header of a Publish, as the audit judges them: what differs from the packet is told."""

from functools import partial
from typing import Any

import pytest

import tests.headers
from spark_audit.reperform.comparison import Status
from spark_audit.reperform.performance import reperform
from spark_audit.reperform.report import publish_report_faults

mqrfh2 = partial(tests.headers.mqrfh2, format=tests.headers.NO_FORMAT)
text = partial(tests.headers.mqrfh2, format=b"MQSTR   ")

#: PUBLISH on a/b of QoS 1 with a payload of one byte; the second one says that it is UTF-8.
PLAIN, SAYS_TEXT = bytes.fromhex("32 09 0003 612f62 000a 00"), bytes.fromhex("32 0b 0003 612f62 000a 02 0101")
PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
BYTES, TEXT = "<mcd><Msd>jms_bytes</Msd></mcd>", "<mcd><Msd>jms_text</Msd></mcd>"
JMS = "<jms><Dst>topic://a/b</Dst><Tms>1700000000123</Tms><Pri>0</Pri><Dlv>2</Dlv></jms>"
MQPS = "<mqps><Top>a/b</Top></mqps>"
USR = "<usr><rfhbPayloadFormat dt='i4'>1</rfhbPayloadFormat></usr>"
NO_TEXT = (("jms_text", "the payload is no UTF-8: it is bytes"),)
GIVEN: dict[str, Any] = {"payload_bytes": 1, "protocol_level": 5, "at_us": 1_700_000_000_123_456}
OF_BYTES = GIVEN | {"input": PLAIN, "output": mqrfh2(PSC, BYTES, JMS, MQPS)}
OF_TEXT = GIVEN | {"input": SAYS_TEXT, "output": text(PSC, TEXT, JMS, MQPS, USR)}
OF_NONE = GIVEN | {"input": SAYS_TEXT, "output": mqrfh2(PSC, BYTES, JMS, MQPS, USR), "dropped_fields": NO_TEXT}


@pytest.mark.parametrize("case", [OF_BYTES, OF_TEXT, OF_NONE, OF_BYTES | {"at_us": -1}])
def test_a_message_of_jms_matches_byte_for_byte(facts: Any, case: dict[str, Any]) -> None:
    outcome = reperform(facts(**case))
    assert (outcome.status, outcome.detail, outcome.same_bytes) == (Status.MATCH, "", True)


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        (OF_BYTES, {"output": mqrfh2(PSC, TEXT, JMS, MQPS)}),
        (OF_BYTES, {"output": text(PSC, BYTES, JMS, MQPS)}),
        (OF_BYTES, {"output": mqrfh2(PSC, BYTES, JMS)}),
        (OF_BYTES, {"output": mqrfh2(PSC, JMS)}),
        (OF_BYTES, {"output": mqrfh2(PSC, BYTES, JMS, MQPS, MQPS)}),
        (OF_BYTES, {"output": mqrfh2(PSC, BYTES, JMS.replace("a/b", "a/c"), MQPS)}),
        (OF_BYTES, {"output": mqrfh2(PSC, BYTES, JMS, MQPS.replace("a/b", "a/c"))}),
        (OF_BYTES, {"output": mqrfh2(PSC, BYTES, JMS.replace("<Dlv>2", "<Dlv>1"), MQPS)}),
        (OF_BYTES, {"output": mqrfh2(PSC, BYTES, JMS.replace("<Pri>0", "<Pri>9"), MQPS)}),
        (OF_BYTES, {"output": mqrfh2(PSC, BYTES, JMS.replace("0123<", "0124<"), MQPS)}),
        (OF_BYTES, {"output": mqrfh2(PSC, BYTES, "<jms><Dst>topic://a/b</jms>", MQPS)}),
        (OF_BYTES, {"at_us": -1, "output": mqrfh2(PSC, BYTES, JMS.replace("1700", "x"), MQPS)}),
        (OF_BYTES, {"at_us": 1_700_000_000_124_000}),
        (OF_BYTES, {"dropped_fields": NO_TEXT}),
        (OF_TEXT, {"output": mqrfh2(PSC, BYTES, JMS, MQPS, USR)}),
        (OF_TEXT, {"output": mqrfh2(PSC, TEXT, JMS, MQPS, USR)}),
        (OF_TEXT, {"output": text(PSC, JMS, TEXT, MQPS)}),
        (OF_NONE, {"payload_bytes": 0}),
        (OF_NONE, {"dropped_fields": ()}),
        (OF_NONE, {"output": mqrfh2(PSC, USR)}),
        (OF_NONE, {"output": text(PSC, TEXT, JMS, MQPS, USR)}),
    ],
)
def test_what_the_packet_and_the_record_do_not_say_is_a_difference(
    facts: Any, case: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert reperform(facts(**case | changes)).status is Status.DIFFERENCE


def test_the_report_of_a_text_that_is_none_is_no_report_of_a_user_property(facts: Any) -> None:
    given = facts(**OF_NONE)
    assert list(publish_report_faults(given, _meaning(given))) == []


DELIVERED: dict[str, Any] = {
    "conversion": "header_to_packet",
    "granted_qos": 1,
    "published_qos": 1,
    "input": mqrfh2(PSC, "<mcd><Msd>jms_map</Msd></mcd>"),
    "input_format": "MQHRF2",
    "input_ccsid": 1208,
    "input_encoding": 546,
    "output": bytes.fromhex("32 12 0003 612f62 000a"),
    "payload_bytes": 44,
    "sent_bytes": 11,
}


def test_the_json_of_a_map_has_the_length_that_the_record_tells(facts: Any) -> None:
    outcome = reperform(facts(**DELIVERED))
    assert (outcome.status, outcome.detail, outcome.same_bytes) == (Status.MATCH, "", True)


@pytest.mark.parametrize(
    "changes",
    [
        {"sent_bytes": 12},
        {"sent_bytes": -1},
        {"input": mqrfh2(PSC, TEXT)},
        {"input": mqrfh2(PSC)},
        {"input": mqrfh2(PSC, "<mcd><Msd>jms_map</mcd>")},
    ],
)
def test_only_a_map_may_be_sent_as_something_else(facts: Any, changes: dict[str, Any]) -> None:
    assert reperform(facts(**DELIVERED | changes)).status is Status.DIFFERENCE


def _meaning(given: Any) -> Any:
    from spark_audit.reperform.meaning import read_meaning

    return read_meaning(given.output, given.output_described)

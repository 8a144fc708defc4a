"""User properties and those of applications as the audit judges them: planted faults are found, each by its rule."""

import re
from typing import Any

import pytest

from spark_audit.reperform.comparison import Comparison, Rule, Status
from spark_audit.reperform.performance import reperform
from spark_audit.reperform.rules import broken_rules
from tests.spark_audit.reperform import test_properties
from tests.spark_audit.reperform.test_properties import PSC, mqrfh2

USR = "<usr><colour>red</colour><ready dt='boolean'>0</ready><none xsi:nil='1'></none></usr>"
COLOUR, READY = "26 0006 'colour' 0003 'red'", "26 0005 'ready' 0005 'false'"
NONE = (("none", "it is null"),)


def packet(*properties: str) -> bytes:
    """The header of a PUBLISH with a payload of two bytes; texts stand in quotes."""
    texts = (re.sub("'([^']*)'", lambda text: text[1].encode().hex(), each) for each in properties)
    return test_properties.packet(*texts)


@pytest.fixture
def judge(facts: Any) -> Any:
    described = {"input_format": "MQHRF2", "input_ccsid": 1208, "input_encoding": 546, "output_format": "MQTT"}
    said = {"conversion": "header_to_packet", "granted_qos": 1, "published_qos": 1, "protocol_level": 5, **described}

    def judged(output: bytes, **more: object) -> tuple[Comparison, list[tuple[Rule, str]]]:
        told = facts(**{**said, "input": mqrfh2(PSC, USR), "output": output, **more})
        return reperform(told), [(each.rule, each.detail) for each in broken_rules(told)]

    return judged


def test_what_is_given_and_what_is_told_add_up(judge: Any) -> None:
    comparison, found = judge(packet(COLOUR, READY), dropped_fields=NONE)
    assert (comparison.status, comparison.same_bytes, found) == (Status.MATCH, True, [])


def test_what_was_left_out_without_a_word_breaks_the_rule_of_the_report(judge: Any) -> None:
    for output, missing in ((packet(COLOUR, READY), ["none"]), (packet(), ["colour", "ready", "none"])):
        comparison, found = judge(output)
        assert comparison.status is Status.MATCH
        assert found == [(Rule.REPORT, f"{name} was left out without a word") for name in missing]


def test_an_earlier_level_has_no_properties_and_tells_of_all(judge: Any) -> None:
    plain = bytes.fromhex("32 09 0003 612f62 000a")
    _, found = judge(plain, protocol_level=-1)
    assert [detail.split()[0] for _, detail in found] == ["colour", "ready", "none"]
    told = tuple((name, "no properties") for name in ("colour", "ready", "none"))
    assert judge(plain, protocol_level=-1, dropped_fields=told)[1] == []


@pytest.mark.parametrize(
    "given",
    [
        ("26 0006 'colour' 0004 'blue'", READY),
        (READY, COLOUR),
        (COLOUR, COLOUR, READY),
        (COLOUR, READY, "26 0004 'none' 0000"),
        (COLOUR, "26 0005 'ready' 0001 '0'"),
    ],
)
def test_other_properties_than_the_publications_are_a_difference(judge: Any, given: tuple[str, ...]) -> None:
    comparison, _ = judge(packet(*given), dropped_fields=NONE)
    assert comparison.status is Status.DIFFERENCE


def test_a_false_report_is_found(judge: Any) -> None:
    comparison, found = judge(packet(COLOUR, READY), dropped_fields=(*NONE, ("colour", "why")))
    assert found == [(Rule.REPORT, "colour was given, though the report says that it was left out")]
    comparison, found = judge(packet(READY), dropped_fields=(*NONE, ("colour", "why")))
    assert comparison.status is Status.DIFFERENCE
    assert "colour was left out, though MQTT can say it" in comparison.detail


def test_folders_and_fields_without_a_place_are_told(judge: Any) -> None:
    timed = PSC.replace("</psc>", "<PubTime>2026112215000000</PubTime></psc>")
    header = mqrfh2(timed, "<jms><Dst>topic://a</Dst></jms>")
    _, found = judge(packet(), input=header)
    assert [detail.split(" was")[0] for _, detail in found] == ["PubTime", "jms"]
    told = (("PubTime", "no place"), ("jms", "no place"))
    assert judge(packet(), input=header, dropped_fields=told)[1] == []


NAMED = '<rfhbUserProps>[["unit","bar"],["a.b","1"]]</rfhbUserProps>'
PUBLISHED = packet("26 0004 'unit' 0003 'bar'", "26 0003 'a.b' 0001 '1'")


def made(facts: Any, usr: str, *dropped: str) -> tuple[Status, list[str]]:
    described = {"output_format": "MQHRF2", "output_ccsid": 1208, "output_encoding": 546, "input_format": "MQTT"}
    told = facts(
        conversion="packet_to_header",
        command="Publish",
        packet_type=3,
        protocol_level=5,
        payload_bytes=0,
        input=PUBLISHED,
        output=mqrfh2(PSC, f"<usr>{usr}</usr>"),
        dropped_fields=tuple((name, "why") for name in dropped),
        **described,
    )
    return reperform(told).status, [each.detail for each in broken_rules(told) if each.rule is Rule.REPORT]


def test_a_header_names_each_user_property_that_it_can_or_none(facts: Any) -> None:
    assert made(facts, NAMED) == (Status.MATCH, [])
    assert made(facts, f"{NAMED}<unit>bar</unit>", "a.b") == (Status.MATCH, [])
    assert made(facts, f"{NAMED}<unit>bar</unit>") == (Status.MATCH, ["a.b was left out without a word"])
    assert made(facts, f"{NAMED}<unit>bar</unit><a.b>1</a.b>")[0] is Status.DIFFERENCE
    assert made(facts, f"{NAMED}<unit>baz</unit>", "a.b")[0] is Status.DIFFERENCE
    assert made(facts, NAMED, "a.b")[0] is Status.DIFFERENCE
    assert made(facts, f"{NAMED}<unit>bar</unit>", "a.b", "c")[1] == ["c was not left out, though the report says so"]

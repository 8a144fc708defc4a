"""Captured messages by the byte layouts of IBM's manuals: what is read, refused and lost, and what goes with what."""

import random

import pytest

from spark_audit.reperform.captured import AskedConversion, Captured, UnknownHeader, announced, examine, facts_of
from spark_audit.reperform.comparison import Status, UnreadableBytes
from spark_audit.reperform.header import Surroundings
from spark_audit.reperform.performance import reperform
from tests.headers import mqrfh, mqrfh2

BODY = b"\x00\xff 21.5 \xe9"


PUBLISH = mqrfh("MQPSCommand Publish MQPSTopic a/b")
PUBLISH_2 = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
EBCDIC = bytes.fromhex(
    "d9c6c840 00000001 00000040 00000111 000001f4 d4d8e2e3d9404040 00000000"
) + "MQPSCommand Publish MQPSTopic ab ".encode("cp500")


def test_first_header_is_found_in_either_byte_order_and_in_ebcdic() -> None:
    assert announced(PUBLISH) == Surroundings(format="MQHRF", coded_char_set_id=1208, encoding=546)
    assert announced(PUBLISH_2) == Surroundings(format="MQHRF2", coded_char_set_id=1208, encoding=546)
    assert announced(EBCDIC) == Surroundings(format="MQHRF", coded_char_set_id=500, encoding=273)
    assert examine(Captured(data=EBCDIC + BODY), AskedConversion()).command == "Publish"


def test_what_is_known_of_the_mqmd_goes_before_what_is_found() -> None:
    assert announced(PUBLISH, encoding=273).encoding == 273
    assert examine(Captured(data=PUBLISH, encoding=273), AskedConversion()).fault is not None


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", 2334, "empty"),
        (b"hello world", 2334, "68 65 6c 6c"),
        (b"RFH \x03\x00\x00\x00", 2334, "without a Version"),
        (PUBLISH[:40], 2334, "StrucLength does not fit"),
        (mqrfh("MQPSCommand Publish MQPSTopic"), 2335, "the last name has no value"),
        (mqrfh('MQPSCommand "Publish'), 2335, "NameValueString is broken"),
        (mqrfh2("<psc><Command>Publish</Topic></psc>"), 2421, "is not closed"),
        (mqrfh2("no folder"), 2421, "does not begin with a tag"),
        (b"DLH \x01\x00\x00\x00" + bytes(20), 2141, "172 bytes"),
    ],
)
def test_what_cannot_be_read_has_the_reason_code_of_ibm_mq(data: bytes, code: int, words: str) -> None:
    fault = examine(Captured(data=data), AskedConversion()).fault
    assert fault is not None
    assert (fault.reason.value, words in str(fault)) == (code, True), str(fault)


@pytest.mark.parametrize(
    ("data", "target", "code", "words"),
    [
        (mqrfh("MQPSCommand RegPub MQPSTopic a"), "", 2336, "MQRFH2 does not have it"),
        (mqrfh2("<psc><Command>RegSub</Command><Topic>a</Topic><Filter>x=1</Filter></psc>"), "", 2337, "its Filter"),
        (mqrfh2("<psc><Command>RegSub</Command><Topic>a/#/b</Topic></psc>"), "mqrfh", 3072, "before its last level"),
        (mqrfh("MQPSCommand DeregSub MQPSSubName pump"), "mqrfh2", 2339, "SubName"),
        (mqrfh2("<mcd><Msd>jms_text</Msd></mcd>"), "", 2334, "no command"),
    ],
)
def test_what_the_other_format_cannot_say_has_a_reason_code(data: bytes, target: str, code: int, words: str) -> None:
    refusal = examine(Captured(data=data), AskedConversion(target=target)).refusal
    assert refusal is not None
    assert (refusal.reason.value, words in str(refusal)) == (code, True), str(refusal)


def test_near_misses_of_refusals_are_none() -> None:
    for data, asked in (
        (mqrfh("MQPSCommand RegPub MQPSTopic a"), AskedConversion(target="mqrfh")),
        (mqrfh2("<psc><Command>RegSub</Command><Topic>a</Topic><SubPoint></SubPoint></psc>"), AskedConversion()),
        (mqrfh2("<psc><Command>RegSub</Command><Topic>a/#</Topic></psc>"), AskedConversion()),
        (mqrfh("MQPSCommand DeregSub MQPSSubName pump"), AskedConversion(mode="extended")),
        (mqrfh("MQPSCommand DeregSub MQPSSubName pump MQPSTopic a"), AskedConversion()),
        (mqrfh2("<mcd><Msd>jms_text</Msd></mcd>"), AskedConversion(target="mqrfh2")),
    ):
        assert examine(Captured(data=data), asked).refusal is None, data


def test_losses_name_fields_options_and_folders() -> None:
    said = "MQPSCommand Publish MQPSPubOpts NoReg MQPSPubOpts RetainPub MQPSStreamName STOCK MQPSTopic a"
    assert dict(examine(Captured(data=mqrfh(said)), AskedConversion()).losses) == {
        "MQPSStreamName": "it has no row in the table of Message formats (aq19780_)",
        "MQPSPubOpts": "MQRFH2 has no NoReg",
    }
    with_usr = mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>", "<usr><a>1</a></usr>")
    assert examine(Captured(data=with_usr), AskedConversion()).losses == (("usr", "MQRFH has no folders"),)
    assert examine(Captured(data=with_usr), AskedConversion(target="mqrfh2")).losses == ()
    named = mqrfh("MQPSCommand RegSub MQPSTopic a MQPSSubName pump")
    assert examine(Captured(data=named), AskedConversion(mode="extended")).losses == ()


def test_headers_that_are_not_walked_over_are_not_judged_and_no_fault() -> None:
    for data, format in ((b"IIH \x01\x00\x00\x00" + bytes(76) + PUBLISH, None), (PUBLISH, "MQHMDE")):
        examination = examine(Captured(data=data, format=format), AskedConversion())
        assert (examination.fault, "does not walk over" in examination.unjudged) == (None, True)
    with pytest.raises(UnknownHeader):
        announced(b"WIH \x01\x00\x00\x00")
    with pytest.raises(UnreadableBytes):
        announced(b"RFH ")


def test_conversion_is_performed_again_and_its_body_compared() -> None:
    asked = AskedConversion(target="mqrfh2")
    facts, body_is_same = facts_of(Captured(data=PUBLISH + BODY), Captured(data=PUBLISH_2 + BODY), asked, None)
    assert (reperform(facts).status, reperform(facts).same_bytes, body_is_same) == (Status.MATCH, True, True)
    _, body_is_same = facts_of(Captured(data=PUBLISH + BODY), Captured(data=PUBLISH_2 + BODY[:-1]), asked, None)
    assert not body_is_same
    other = mqrfh2("<psc><Command>Publish</Command><Topic>a/c</Topic></psc>")
    facts, body_is_same = facts_of(Captured(data=PUBLISH + BODY), Captured(data=other + BODY), asked, None)
    assert (reperform(facts).status, body_is_same) == (Status.DIFFERENCE, True)
    facts, _ = facts_of(Captured(data=PUBLISH + BODY), Captured(data=PUBLISH_2[:30]), asked, None)
    assert "cannot be read" in reperform(facts).detail


def test_a_field_that_is_gone_counts_as_reported_only_where_there_is_no_report() -> None:
    source = Captured(data=mqrfh("MQPSCommand Publish MQPSStreamName STOCK MQPSTopic a/b"))
    made, asked = Captured(data=PUBLISH_2), AskedConversion(target="mqrfh2")
    assert reperform(facts_of(source, made, asked, None)[0]).status is Status.MATCH
    told = (("MQPSStreamName", "not one of the nine"),)
    assert reperform(facts_of(source, made, asked, told)[0]).status is Status.MATCH
    silent = reperform(facts_of(source, made, asked, ())[0])
    assert "MQPSStreamName was dropped without being reported" in silent.detail


def test_hostile_bytes_end_in_a_judgement() -> None:
    chance = random.Random(5)
    for seed in (PUBLISH + BODY, PUBLISH_2 + BODY, EBCDIC):
        for length in range(len(seed)):
            examine(Captured(data=seed[:length]), AskedConversion())
        for _ in range(500):
            data = bytearray(seed)
            for _ in range(3):
                data[chance.randrange(len(data))] = chance.randrange(256)
            examination = examine(Captured(data=bytes(data)), AskedConversion())
            assert examination.fault or examination.unjudged or examination.format

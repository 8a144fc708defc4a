"""Single rules: each finds its planted fault, and leaves documented conversions alone."""

from typing import Any

import pytest

from spark_audit.reperform.comparison import Rule
from spark_audit.reperform.rules import broken_rules

FOLLOWING = bytes.fromhex("22020000 b8040000")
PUBLISH_PACKET = bytes.fromhex("32 09 0003 612f62 000a")
RETAINED_PACKET = bytes.fromhex("33 09 0003 612f62 000a")


def mqrfh(string: str) -> bytes:
    """An MQRFH as the byte layout says, little-endian, in UTF-8."""
    data = string.encode() + b" " * (-len(string.encode()) % 4)
    return b"RFH \x01\x00\x00\x00" + (32 + len(data)).to_bytes(4, "little") + FOLLOWING + b" " * 8 + bytes(4) + data


def mqrfh2(*folders: str) -> bytes:
    """An MQRFH2 as the byte layout says, little-endian."""
    data = (1208).to_bytes(4, "little")
    for text in folders:
        padded = text.encode() + b" " * (-len(text.encode()) % 4)
        data += len(padded).to_bytes(4, "little") + padded
    return b"RFH \x02\x00\x00\x00" + (32 + len(data)).to_bytes(4, "little") + FOLLOWING + b" " * 8 + bytes(4) + data


def psc(text: str) -> bytes:
    return mqrfh2(f"<psc>{text}</psc>")


PUBLISH = "<Command>Publish</Command><Topic>a/b</Topic>"
HEADERS = {"input_ccsid": 1208, "input_encoding": 546, "packet_type": -1, "mode": "strict"}
TO_2 = HEADERS | {"target": "mqrfh2", "input_format": "MQHRF", "output_format": "MQHRF2"}
TO_1 = HEADERS | {"target": "mqrfh", "input_format": "MQHRF2", "output_format": "MQHRF"}
SERVED_TO_2 = TO_2 | {"conversion": "service"}
SERVED_TO_1 = TO_1 | {"conversion": "service"}
COPIED_TO_2 = TO_2 | {"conversion": "header_to_header"}
COPIED_TO_1 = TO_1 | {"conversion": "header_to_header"}
#: The example of Message formats (aq19780_): four names, of which the stream's has no row.
SEED = {
    "input": mqrfh(
        "MQPSCommand Publish MQPSPubOpts RetainPub MQPSStreamName SAMPLE.BROKER.RESULTS.STREAM "
        'MQPSTopic "Sport/Soccer/State/LatestScore/Team1 Team2"'
    ),
    "output": psc(
        "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>Sport/Soccer/State/LatestScore/Team1 Team2</Topic>"
    ),
    "dropped_fields": (("MQPSStreamName", "no row in the table"),),
}
ANSWER = mqrfh2("<pscr><Completion>warning</Completion><Response><Reason>3157</Reason></Response></pscr>")
REGSUB = "<Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt><Topic>a</Topic>"
TARGET = {
    "conversion": "packet_to_header",
    "destination": "CENTRAL",
    "stream": "RESULTS",
    "stream_style": "message_broker",
    "input": PUBLISH_PACKET,
}
DELIVERY = {"conversion": "header_to_packet", "input_format": "MQHRF2", "input_ccsid": 1208, "input_encoding": 546}
MARKED = psc("<Command>Publish</Command><PubOpt>IsRetainedPub</PubOpt><Topic>a/b</Topic>")

CLEAN: dict[str, dict[str, Any]] = {
    "the example of Message formats (aq19780_), served": SERVED_TO_2 | SEED,
    "the example of Message formats (aq19780_), copied": COPIED_TO_2 | SEED,
    "the same way back, nothing to leave out": SERVED_TO_1
    | {
        "input": SEED["output"],
        "output": mqrfh(SEED["input"][32:].decode().replace(" MQPSStreamName SAMPLE.BROKER.RESULTS.STREAM", "")),
    },
    "an option that MQRFH2 lacks, named": SERVED_TO_2
    | {
        "input": mqrfh("MQPSCommand Publish MQPSPubOpts NoReg MQPSPubOpts RetainPub MQPSTopic a/b"),
        "output": psc("<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/b</Topic>"),
        "dropped_fields": (("MQPSPubOpts", "NoReg is not in MQRFH2"),),
    },
    "the publisher's own options and address, not delivered and named": COPIED_TO_1
    | {
        "input": psc("<Command>Publish</Command><RegOpt>Local</RegOpt><QName>Q</QName><Topic>a/b</Topic>"),
        "output": mqrfh("MQPSCommand Publish MQPSTopic a/b"),
        "dropped_fields": (("RegOpt", "the publisher's own"), ("QName", "the publisher's own")),
    },
    "a point that the broker puts in": COPIED_TO_2
    | {
        "input": mqrfh("MQPSCommand Publish MQPSTopic a/b"),
        "output": psc(PUBLISH + "<SubPoint>EUR</SubPoint>"),
    },
    "sequence number and time": SERVED_TO_2
    | {
        "input": mqrfh("MQPSCommand Publish MQPSPubTime 2026112007000000 MQPSSeqNum 7 MQPSTopic a/b"),
        "output": psc(
            "<Command>Publish</Command><PubTime>2026112007000000</PubTime><SeqNum>7</SeqNum><Topic>a/b</Topic>"
        ),
    },
    "a pattern becomes a filter": SERVED_TO_2
    | {
        "input": mqrfh("MQPSCommand RegSub MQPSTopic a/*"),
        "output": psc("<Command>RegSub</Command><Topic>a/#</Topic>"),
    },
    "SubName in extended mode": SERVED_TO_2
    | {
        "mode": "extended",
        "input": mqrfh("MQPSCommand RegSub MQPSRegOpts AddName MQPSTopic a MQPSSubName pump"),
        "output": psc("<Command>RegSub</Command><RegOpt>AddName</RegOpt><Topic>a</Topic><SubName>pump</SubName>"),
    },
    "AddName with its name left out, both named": SERVED_TO_2
    | {
        "input": mqrfh("MQPSCommand RegSub MQPSRegOpts AddName MQPSTopic a MQPSSubName pump"),
        "output": psc("<Command>RegSub</Command><Topic>a</Topic>"),
        "dropped_fields": (("MQPSRegOpts", "AddName means nothing alone"), ("MQPSSubName", "no row")),
    },
    "Local moves in extended mode": SERVED_TO_2
    | {
        "mode": "extended",
        "input": mqrfh("MQPSCommand Publish MQPSRegOpts Local MQPSTopic a/b"),
        "output": psc("<Command>Publish</Command><PubOpt>Local</PubOpt><Topic>a/b</Topic>"),
    },
    "a folder left out and named": SERVED_TO_1
    | {
        "input": mqrfh2(f"<psc>{PUBLISH}</psc>", "<usr><a>1</a></usr>"),
        "output": mqrfh("MQPSCommand Publish MQPSTopic a/b"),
        "dropped_fields": (("usr", "MQRFH has no folders"),),
    },
    "an answer": SERVED_TO_2 | {"input": mqrfh("MQPSCompCode 1 MQPSReason 3157"), "output": ANSWER},
    "a strange header that passes as it is": SERVED_TO_2
    | {
        "input_format": "MQHRF2",
        "input": psc(PUBLISH + "<StreamName>S</StreamName>"),
        "output": psc(PUBLISH + "<StreamName>S</StreamName>"),
    },
    "the prefix of a stream": TARGET
    | {"output": psc("<Command>Publish</Command><Topic>$SYS/STREAM/RESULTS/a/b</Topic>")},
    "an identity with a CorrelId": {
        "command": "RegSub",
        "packet_type": 8,
        "correlation_id": "52" * 24,
        "output": psc(REGSUB),
    },
    "RETAIN": {
        "input": RETAINED_PACKET,
        "output": psc(PUBLISH.replace("<Topic>", "<PubOpt>RetainPub</PubOpt><Topic>")),
    },
    "RETAIN without payload, deleted": {"input": RETAINED_PACKET, "payload_bytes": 0, "output": psc(PUBLISH)},
    "a retained copy": COPIED_TO_2
    | {
        "is_retained": True,
        "input": mqrfh("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a/b"),
        "output": psc(
            "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><PubOpt>IsRetainedPub</PubOpt><Topic>a/b</Topic>"
        ),
    },
    "a retained delivery": DELIVERY | {"input": MARKED, "output": RETAINED_PACKET},
    "a delivery at level 5 with RETAIN as it was published": DELIVERY
    | {"input": psc(PUBLISH), "output": bytes.fromhex("31 07 0003 612f62 00")},
    "what cannot be read": SERVED_TO_2 | {"input": b"RFH ", "output": psc(PUBLISH)},
    "a code page that is not known": SERVED_TO_2 | SEED | {"input_ccsid": 99_999},
}


@pytest.mark.parametrize("case", CLEAN)
def test_a_documented_conversion_breaks_no_rule(facts, case: str) -> None:
    assert broken_rules(facts(**CLEAN[case])) == ()


#: Base case, what is changed of it, and the rule that finds it with its words.
PLANTED: dict[str, tuple[str, dict[str, Any], Rule, str]] = {
    "a topic changed": (
        "the example of Message formats (aq19780_), served",
        {"output": SEED["output"].replace(b"Team1", b"Team3")},
        Rule.FIELDS,
        "MQPSTopic, Topic: ",
    ),
    "a sequence number lost": (
        "sequence number and time",
        {"output": psc("<Command>Publish</Command><PubTime>2026112007000000</PubTime><Topic>a/b</Topic>")},
        Rule.FIELDS,
        "MQPSSeqNum, SeqNum: ['7'] became []",
    ),
    "an option lost": (
        "the example of Message formats (aq19780_), copied",
        {"output": psc("<Command>Publish</Command><Topic>Sport/Soccer/State/LatestScore/Team1 Team2</Topic>")},
        Rule.FIELDS,
        "PubOpt: option RetainPub was lost",
    ),
    "an option added": (
        "a pattern becomes a filter",
        {"output": psc("<Command>RegSub</Command><RegOpt>Pers</RegOpt><Topic>a/#</Topic>")},
        Rule.FIELDS,
        "RegOpt: option Pers was added",
    ),
    "a name in the other format's spelling": (
        "the example of Message formats (aq19780_), served",
        {"output": psc(PUBLISH + "<MQPSSeqNum>7</MQPSSeqNum>")},
        Rule.FIELDS,
        "MQPSSeqNum has no row",
    ),
    "SubName in strict mode": (
        "SubName in extended mode",
        {"mode": "strict"},
        Rule.FIELDS,
        "SubName has no row in the table and was written",
    ),
    "an option that needs a name, kept without it": (
        "AddName with its name left out, both named",
        {"output": psc("<Command>RegSub</Command><RegOpt>AddName</RegOpt><Topic>a</Topic>")},
        Rule.FIELDS,
        "option AddName was written without its SubName",
    ),
    "note 1": (
        "an option that MQRFH2 lacks, named",
        {"output": psc("<Command>Publish</Command><PubOpt>RetainPub</PubOpt><PubOpt>NoReg</PubOpt><Topic>a/b</Topic>")},
        Rule.SUPPORT,
        "note 1: NoReg is not in MQRFH2",
    ),
    "note 2": (
        "the example of Message formats (aq19780_), served",
        {"output_ccsid": 819},
        Rule.SUPPORT,
        "note 2: CodedCharSetId",
    ),
    "note 3, a stream name": (
        "the example of Message formats (aq19780_), served",
        {"output": psc("<Command>Publish</Command><StreamName>S</StreamName><Topic>a</Topic>")},
        Rule.SUPPORT,
        "note 3: StreamName is not in MQRFH2",
    ),
    "note 3, no prefix": (
        "the prefix of a stream",
        {"output": psc(PUBLISH)},
        Rule.SUPPORT,
        "note 3: topic 'a/b' has not",
    ),
    "note 4": ("an identity with a CorrelId", {"correlation_id": ""}, Rule.SUPPORT, "note 4: CorrelAsId is set"),
    "note 4, all zeros": ("an identity with a CorrelId", {"correlation_id": "0" * 48}, Rule.SUPPORT, "note 4"),
    "note 5": (
        "the publisher's own options and address, not delivered and named",
        {"output": mqrfh("MQPSCommand Publish MQPSRegOpts Local MQPSTopic a/b")},
        Rule.SUPPORT,
        "note 5: Local was delivered",
    ),
    "note 6": (
        "an answer",
        {"output": ANSWER.replace(b"warning", b"warming")},
        Rule.SUPPORT,
        "note 6: completion 'warming'",
    ),
    "note 7": (
        "a pattern becomes a filter",
        {"output": psc("<Command>RegSub</Command><RegOpt>Anon</RegOpt><Topic>a/#</Topic>")},
        Rule.SUPPORT,
        "note 7: Anon is not in MQRFH2",
    ),
    "an option under another command": (
        "RETAIN",
        {"output": psc("<Command>Publish</Command><RegOpt>InformIfRet</RegOpt><Topic>a/b</Topic>")},
        Rule.SUPPORT,
        "InformIfRet of RegOpt does not go with Publish",
    ),
    "a stream name left out in silence": (
        "the example of Message formats (aq19780_), copied",
        {"dropped_fields": ()},
        Rule.REPORT,
        "MQPSStreamName was left out without a word",
    ),
    "a field of the table left out in silence": (
        "the publisher's own options and address, not delivered and named",
        {"dropped_fields": (("RegOpt", "the publisher's own"),)},
        Rule.REPORT,
        "QName was left out without a word",
    ),
    "an option left out in silence with its name": (
        "AddName with its name left out, both named",
        {"dropped_fields": (("MQPSSubName", "no row"),)},
        Rule.REPORT,
        "MQPSRegOpts was left out without a word",
    ),
    "a folder left out in silence": (
        "a folder left out and named",
        {"dropped_fields": ()},
        Rule.REPORT,
        "folder usr was left out without a word",
    ),
    "reported, and yet copied": (
        "SubName in extended mode",
        {"dropped_fields": (("MQPSSubName", "no row"),)},
        Rule.REPORT,
        "MQPSSubName was copied, though",
    ),
    "reported, and nothing was changed": (
        "SubName in extended mode",
        {"dropped_fields": (("MQPSSubName", "no row"),), "output": None},
        Rule.REPORT,
        "the report names MQPSSubName as left out, and nothing was left out",
    ),
    "an option that needs an identity, kept without it": (
        "a pattern becomes a filter",
        {"output": psc("<Command>RegSub</Command><RegOpt>JoinExcl</RegOpt><Topic>a/#</Topic>")},
        Rule.FIELDS,
        "option JoinExcl was written without its SubIdentity",
    ),
    "RETAIN lost": ("RETAIN", {"output": psc(PUBLISH)}, Rule.RETAIN, "the command has no RetainPub"),
    "retained without RETAIN": ("RETAIN", {"input": PUBLISH_PACKET}, Rule.RETAIN, "though the packet has no RETAIN"),
    "retained with an empty payload": ("RETAIN", {"payload_bytes": 0}, Rule.RETAIN, "an empty payload deletes"),
    "a copy marked as retained": ("a retained copy", {"is_retained": False}, Rule.RETAIN, "IsRetainedPub in a copy"),
    "a delivery without RETAIN": ("a retained delivery", {"output": PUBLISH_PACKET}, Rule.RETAIN, "RETAIN is 0"),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_fault_is_found_by_its_rule(facts, case: str) -> None:
    base, changes, rule, words = PLANTED[case]
    said = CLEAN[base] | changes
    if said["output"] is None:  # the same as the input
        said |= {each.replace("input", "output"): value for each, value in said.items() if each.startswith("input")}
    found = broken_rules(facts(**said))
    assert rule in {each.rule for each in found}
    assert any(words in each.detail for each in found if each.rule is rule), found

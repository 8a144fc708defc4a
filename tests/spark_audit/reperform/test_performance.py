"""Conversions performed again: the specification's bytes match, and each wrong byte that changes a meaning is found."""

import ast
from pathlib import Path

import pytest

import spark_audit.reperform
from spark_audit.reperform.comparison import Status
from spark_audit.reperform.performance import reperform

#: PUBLISH QoS 1 of topic a/b, packet identifier 10, with a payload of 2 bytes; with RETAIN; and without payload.
PUBLISH = bytes.fromhex("32 09 0003 612f62 000a")
PUBLISH_RETAIN = bytes.fromhex("33 09 0003 612f62 000a")


def mqrfh2(*psc: str, body: bytes = b"        ", folders: tuple[str, ...] = ()) -> bytes:
    """An MQRFH2 as the byte layout says, little-endian, psc first."""
    data = (1208).to_bytes(4, "little")
    for text in ("<psc>" + "".join(psc) + "</psc>", *folders):
        padded = text.encode() + b" " * (-len(text.encode()) % 4)
        data += len(padded).to_bytes(4, "little") + padded
    length = 32 + len(data)
    return (
        b"RFH \x02\x00\x00\x00"
        + length.to_bytes(4, "little")
        + bytes.fromhex("22020000 b8040000")
        + body
        + bytes(4)
        + data
    )


def mqrfh(string: str) -> bytes:
    """An MQRFH as the byte layout says, little-endian, in UTF-8."""
    data = string.encode() + b" " * (-len(string.encode()) % 4)
    length = 32 + len(data)
    return (
        b"RFH \x01\x00\x00\x00"
        + length.to_bytes(4, "little")
        + bytes.fromhex("22020000 b8040000")
        + b" " * 8
        + bytes(4)
        + data
    )


COMMAND, RETAIN, TOPIC = "<Command>Publish</Command>", "<PubOpt>RetainPub</PubOpt>", "<Topic>a/b</Topic>"
IS_RETAINED = "<PubOpt>IsRetainedPub</PubOpt>"
REGISTRATION = (
    "<Command>RegSub</Command>",
    "<RegOpt>CorrelAsId</RegOpt>",
    "<RegOpt>InformIfRet</RegOpt>",
    "<QName>RFHBRIDGE.SUBSCRIBER</QName>",
    "<QMgrName>RFHBRIDGE</QMgrName>",
)
REGISTRATION_1 = (
    "MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSRegOpts InformIfRet "
    "MQPSQName RFHBRIDGE.SUBSCRIBER MQPSQMgrName RFHBRIDGE "
)
FILTER = bytes.fromhex("0003 612f23 01")  # a/# with QoS 1
SHARED_FILTER = bytes.fromhex("000c") + b"$share/g/a/#" + b"\x01"
NEW_ONLY_REGISTRATION = (*REGISTRATION[:2], "<RegOpt>NewPubsOnly</RegOpt>", *REGISTRATION[2:])

PACKETS = {
    "publish": {"input": PUBLISH, "output": mqrfh2(COMMAND, TOPIC)},
    "publish, retain": {"input": PUBLISH_RETAIN, "output": mqrfh2(COMMAND, RETAIN, TOPIC)},
    "publish after a delete": {"input": PUBLISH_RETAIN, "payload_bytes": 0, "output": mqrfh2(COMMAND, TOPIC)},
    "delete": {
        "input": PUBLISH_RETAIN,
        "payload_bytes": 0,
        "command": "DeletePub",
        "output": mqrfh2("<Command>DeletePub</Command>", TOPIC),
    },
    "delete, MQRFH, a topic that is no pattern": {
        "input": bytes.fromhex("31 09 0007") + b"50% *?x",
        "payload_bytes": 0,
        "command": "DeletePub",
        "output_format": "MQHRF",
        "output": mqrfh('MQPSCommand DeletePub MQPSTopic "50%% %*%?x"'),
    },
    "publish, markup in the topic": {
        "input": bytes.fromhex("30 07 0003") + b"<&>",
        "output": mqrfh2(COMMAND, "<Topic>&lt;&amp;&gt;</Topic>"),
    },
    "publish, MQRFH": {
        "input": PUBLISH,
        "output_format": "MQHRF",
        "output": mqrfh("MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b"),
    },
    "publish, retain, MQRFH, blank and percent sign": {
        "input": bytes.fromhex("31 07 0003") + b"a %",
        "output_format": "MQHRF",
        "output": mqrfh('MQPSCommand Publish MQPSPubOpts RetainPub MQPSPubOpts NoReg MQPSTopic "a %%"'),
    },
    "will": {
        "input": bytes.fromhex("0003 612f62 03"),
        "packet_type": 1,
        "output": mqrfh2(COMMAND, RETAIN, TOPIC),
    },
    "subscribe": {
        "input": FILTER,
        "packet_type": 8,
        "command": "RegSub",
        "payload_bytes": 0,
        "output": mqrfh2(*REGISTRATION, "<Topic>a/#</Topic>"),
    },
    "subscribe, retain handling 1, not new": {
        "input": bytes.fromhex("0003 612f23 11"),
        "packet_type": 8,
        "command": "RegSub",
        "payload_bytes": 0,
        "output": mqrfh2(*NEW_ONLY_REGISTRATION, "<Topic>a/#</Topic>"),
    },
    "subscribe, retain handling 1, new": {
        "input": bytes.fromhex("0003 612f23 11"),
        "packet_type": 8,
        "command": "RegSub",
        "payload_bytes": 0,
        "output": mqrfh2(*REGISTRATION, "<Topic>a/#</Topic>"),
    },
    "subscribe, retain handling 2": {
        "input": bytes.fromhex("0003 612f23 21"),
        "packet_type": 8,
        "command": "RegSub",
        "payload_bytes": 0,
        "output": mqrfh2(*NEW_ONLY_REGISTRATION, "<Topic>a/#</Topic>"),
    },
    "subscribe, shared": {
        "input": SHARED_FILTER,
        "packet_type": 8,
        "command": "RegSub",
        "payload_bytes": 0,
        "output": mqrfh2(*NEW_ONLY_REGISTRATION, "<Topic>a/#</Topic>"),
    },
    "subscribe, like a shared one, before MQTT 5": {
        "input": SHARED_FILTER,
        "packet_type": 8,
        "command": "RegSub",
        "payload_bytes": 0,
        "output": mqrfh2(*REGISTRATION, "<Topic>$share/g/a/#</Topic>"),
    },
    "unsubscribe, shared": {
        "input": SHARED_FILTER[:-1],
        "packet_type": 10,
        "command": "DeregSub",
        "payload_bytes": 0,
        "output": mqrfh2("<Command>DeregSub</Command>", "<RegOpt>CorrelAsId</RegOpt>", "<Topic>a/#</Topic>"),
    },
    "subscribe, MQRFH": {
        "input": FILTER,
        "packet_type": 8,
        "command": "RegSub",
        "payload_bytes": 0,
        "output_format": "MQHRF",
        "output": mqrfh(REGISTRATION_1 + "MQPSTopic a MQPSTopic a/*"),
    },
    "unsubscribe": {
        "input": FILTER[:-1],
        "packet_type": 10,
        "command": "DeregSub",
        "payload_bytes": 0,
        "output": mqrfh2("<Command>DeregSub</Command>", "<RegOpt>CorrelAsId</RegOpt>", "<Topic>a/#</Topic>"),
    },
    "unsubscribe, MQRFH, one pattern still in use": {
        "input": FILTER[:-1],
        "packet_type": 10,
        "command": "DeregSub",
        "payload_bytes": 0,
        "output_format": "MQHRF",
        "output": mqrfh("MQPSCommand DeregSub MQPSRegOpts CorrelAsId MQPSTopic a"),
    },
    "end of a session": {
        "input": b"",
        "packet_type": 14,
        "command": "DeregSub",
        "payload_bytes": 0,
        "output": mqrfh2("<Command>DeregSub</Command>", "<RegOpt>CorrelAsId</RegOpt>", "<RegOpt>DeregAll</RegOpt>"),
    },
}


@pytest.mark.parametrize("case", PACKETS)
def test_a_packet_that_became_the_documented_header_matches_byte_for_byte(facts, case: str) -> None:
    outcome = reperform(facts(**PACKETS[case]))
    assert (outcome.status, outcome.detail, outcome.same_bytes) == (Status.MATCH, "", True)


WRONG_HEADERS = {
    "another topic": (mqrfh2(COMMAND, "<Topic>a/c</Topic>"), "Topic 'a/b' is missing"),
    "no topic": (mqrfh2(COMMAND), "Topic 'a/b' is missing"),
    "retained without being asked": (mqrfh2(COMMAND, RETAIN, TOPIC), "RetainPub', which nothing asked for"),
    "an invented field": (mqrfh2(COMMAND, TOPIC, "<Filter>1=1</Filter>"), "Filter is '1=1'"),
    "an invented folder": (mqrfh2(COMMAND, TOPIC, folders=("<usr><a>1</a></usr>",)), "has folder usr"),
    "another command": (mqrfh2("<Command>DeletePub</Command>", TOPIC), "Command 'Publish' is missing"),
    "a format for the payload": (
        mqrfh2(COMMAND, TOPIC, body=b"MQHRF   "),
        "bytes behind the last header|cannot be read",
    ),
    "the command last": (mqrfh2(TOPIC, COMMAND), "Command does not come first"),
    "the topic twice": (mqrfh2(COMMAND, TOPIC, TOPIC), "doubled"),
    "no header at all": (b"", "cannot be read"),
    "a header of the other version": (mqrfh("MQPSCommand Publish MQPSTopic a/b"), "cannot be read"),
}


@pytest.mark.parametrize("case", WRONG_HEADERS)
def test_a_wrong_header_is_a_difference_that_says_what_is_wrong(facts, case: str) -> None:
    output, words = WRONG_HEADERS[case]
    outcome = reperform(facts(input=PUBLISH, output=output))
    assert outcome.status is Status.DIFFERENCE
    assert any(word in outcome.detail for word in words.split("|")), outcome.detail


def test_a_publish_in_mqrfh_without_noreg_is_a_difference(facts) -> None:
    output = mqrfh("MQPSCommand Publish MQPSTopic a/b")
    outcome = reperform(facts(input=PUBLISH, output_format="MQHRF", output=output))
    assert (outcome.status, outcome.detail) == (Status.DIFFERENCE, "PubOpt 'NoReg' is missing")


def test_a_delete_in_mqrfh_that_would_delete_more_than_its_topic_is_a_difference(facts) -> None:
    case = PACKETS["delete, MQRFH, a topic that is no pattern"]
    outcome = reperform(facts(**case | {"output": mqrfh('MQPSCommand DeletePub MQPSTopic "50%% *?x"')}))
    assert (outcome.status, outcome.same_bytes) == (Status.DIFFERENCE, False)
    assert "Topic '50%% %*%?x' is missing" in outcome.detail


def test_patterns_that_do_not_cover_the_filter_are_a_difference(facts) -> None:
    case = PACKETS["subscribe, MQRFH"] | {"output": mqrfh(REGISTRATION_1 + "MQPSTopic a/*")}
    assert reperform(facts(**case)).status is Status.DIFFERENCE


def test_a_shared_subscription_that_takes_what_is_retained_is_a_difference(facts) -> None:
    case = PACKETS["subscribe, shared"] | {"output": mqrfh2(*REGISTRATION, "<Topic>a/#</Topic>")}
    outcome = reperform(facts(**case))
    assert (outcome.status, outcome.detail) == (Status.DIFFERENCE, "RegOpt 'NewPubsOnly' is missing")


def test_a_registration_for_new_publications_alone_is_a_difference_where_nobody_asked_for_that(facts) -> None:
    case = PACKETS["subscribe"] | {"output": mqrfh2(*NEW_ONLY_REGISTRATION, "<Topic>a/#</Topic>")}
    assert reperform(facts(**case)).status is Status.DIFFERENCE


def test_a_shared_subscription_to_another_filter_is_a_difference(facts) -> None:
    case = PACKETS["subscribe, shared"] | {"output": mqrfh2(*NEW_ONLY_REGISTRATION, "<Topic>b/#</Topic>")}
    assert reperform(facts(**case)).status is Status.DIFFERENCE


def test_a_wider_pattern_than_the_table_has_covers_the_filter(facts) -> None:
    case = PACKETS["subscribe, MQRFH"] | {"output": mqrfh(REGISTRATION_1 + "MQPSTopic a*")}
    assert reperform(facts(**case)).status is Status.MATCH


def test_other_padding_is_a_match_that_tells_the_byte(facts) -> None:
    output = mqrfh2(COMMAND, TOPIC)
    padded = (
        output.replace((len(output) - 40).to_bytes(4, "little"), (len(output) - 36).to_bytes(4, "little")) + b"    "
    )
    padded = padded[:8] + len(padded).to_bytes(4, "little") + padded[12:]
    outcome = reperform(facts(input=PUBLISH, output=padded))
    assert (outcome.status, outcome.same_bytes, outcome.offset) == (Status.MATCH, False, 8)


def test_a_packet_that_does_not_become_the_command_is_a_difference(facts) -> None:
    outcome = reperform(facts(input=PUBLISH, command="RegSub", output=mqrfh2(*REGISTRATION, TOPIC)))
    assert (outcome.status, outcome.detail) == (Status.DIFFERENCE, "packet type 3 does not become RegSub")


def test_a_delete_for_a_packet_with_a_payload_is_a_difference(facts) -> None:
    outcome = reperform(facts(**PACKETS["delete"] | {"payload_bytes": 2}))
    assert "not a RETAIN without payload" in outcome.detail


@pytest.mark.parametrize(
    "changes", [{"input": b"\x36"}, {"output_ccsid": 4711}, {"conversion": "header_to_paper"}], ids=str
)
def test_what_cannot_be_read_is_not_reperformable(facts, changes: dict[str, object]) -> None:
    standard = {"input": PUBLISH, "output": mqrfh2(COMMAND, TOPIC)}
    assert reperform(facts(**standard | changes)).status is Status.NOT_REPERFORMABLE


# -- header to header ----------------------------------------------------------------------------------------------

#: The example of Message formats (aq19780_), its topic in English on both sides as the English page has it.
SEED_1 = (
    "MQPSCommand Publish MQPSPubOpts RetainPub MQPSStreamName SAMPLE.BROKER.RESULTS.STREAM "
    'MQPSTopic "Sport/Soccer/State/LatestScore/Team1 Team2"'
)
SEED_2 = (
    "<Command>Publish</Command>",
    "<PubOpt>RetainPub</PubOpt>",
    "<Topic>Sport/Soccer/State/LatestScore/Team1 Team2</Topic>",
)
DROPPED_STREAM = (("MQPSStreamName", "not in the table"),)
V1, V2 = {"input_format": "MQHRF"}, {"input_format": "MQHRF2"}
TO_V1, TO_V2 = {"output_format": "MQHRF"}, {"output_format": "MQHRF2"}

COPIES = {
    "the seed's example": V1
    | TO_V2
    | {"input": mqrfh(SEED_1), "output": mqrfh2(*SEED_2), "dropped_fields": DROPPED_STREAM},
    "back to MQRFH": V2
    | TO_V1
    | {
        "input": mqrfh2(*SEED_2),
        "output": mqrfh(SEED_1.replace("MQPSStreamName SAMPLE.BROKER.RESULTS.STREAM ", "")),
    },
    "unchanged": V2 | TO_V2 | {"input": mqrfh2(COMMAND, TOPIC), "output": mqrfh2(COMMAND, TOPIC)},
    "of a retained publication": V2
    | TO_V2
    | {
        "is_retained": True,
        "input": mqrfh2(COMMAND, RETAIN, TOPIC),
        "output": mqrfh2(COMMAND, RETAIN, IS_RETAINED, TOPIC),
    },
    "escaped for MQRFH": V2
    | TO_V1
    | {"input": mqrfh2(COMMAND, "<Topic>50% *</Topic>"), "output": mqrfh('MQPSCommand Publish MQPSTopic "50%% %*"')},
    "NoReg does not go on": V1
    | TO_V1
    | {
        "input": mqrfh("MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b"),
        "output": mqrfh("MQPSCommand Publish MQPSTopic a/b"),
    },
    "NoReg as a number": V1
    | TO_V2
    | {
        "input": mqrfh("MQPSCommand Publish MQPSPubOpts 10 MQPSTopic a/b"),
        "output": mqrfh2(COMMAND, RETAIN, TOPIC),
        "dropped_fields": (("MQPSPubOpts", "valid towards a broker only"),),
    },
    "other folders go on": V2
    | TO_V2
    | {
        "input": mqrfh2(COMMAND, TOPIC, folders=("<usr><a>1</a></usr>",)),
        "output": mqrfh2(COMMAND, TOPIC, folders=("<usr><a>1</a></usr>",)),
    },
    "folders are dropped and named": V2
    | TO_V1
    | {
        "input": mqrfh2(COMMAND, TOPIC, folders=("<usr><a>1</a></usr>",)),
        "output": mqrfh("MQPSCommand Publish MQPSTopic a/b"),
        "dropped_fields": (("usr", "MQRFH has no folders"),),
    },
    "a return address stays with DirectReq": V1
    | TO_V1
    | {
        "input": mqrfh("MQPSCommand Publish MQPSRegOpts DirectReq MQPSQName Q MQPSTopic a/b"),
        "output": mqrfh("MQPSCommand Publish MQPSQName Q MQPSTopic a/b"),
    },
    "a return address from the MQMD, with DirectReq": V1
    | TO_V2
    | {
        "input": mqrfh("MQPSCommand Publish MQPSRegOpts DirectReq MQPSTopic a/b"),
        "output": mqrfh2(COMMAND, "<QName>Q</QName>", "<QMgrName>QM</QMgrName>", TOPIC),
        "dropped_fields": (("MQPSRegOpts", "the publisher's own"),),
    },
    "the user data of the subscription are added": V2
    | TO_V1
    | {
        "input": mqrfh2(COMMAND, TOPIC, "<SubUserData>of the publisher</SubUserData>"),
        "output": mqrfh('MQPSCommand Publish MQPSTopic a/b MQPSSubUserData "x y"'),
        "dropped_fields": (("SubUserData", "set by the broker alone"),),
    },
    "the subscription point and the user data are added": V1
    | TO_V2
    | {
        "input": mqrfh("MQPSCommand Publish MQPSTopic a/b"),
        "output": mqrfh2(COMMAND, TOPIC, "<SubPoint>p</SubPoint>", "<SubUserData>u</SubUserData>"),
    },
}


@pytest.mark.parametrize("case", COPIES)
def test_a_documented_copy_matches(facts, case: str) -> None:
    described = {"conversion": "header_to_header", "input_ccsid": 1208, "input_encoding": 546}
    outcome = reperform(facts(**described | COPIES[case]))
    assert (outcome.status, outcome.detail) in ((Status.MATCH, ""), (Status.MATCH, "the layout differs"))


def test_the_seeds_example_has_the_same_bytes(facts) -> None:
    described = {"conversion": "header_to_header", "input_ccsid": 1208, "input_encoding": 546}
    assert reperform(facts(**described | COPIES["the seed's example"])).same_bytes


WRONG_COPIES = {
    "dropped without being reported": (
        COPIES["the seed's example"] | {"dropped_fields": ()},
        "MQPSStreamName was dropped without being reported",
    ),
    "a folder dropped without being reported": (
        COPIES["folders are dropped and named"] | {"dropped_fields": ()},
        "folder usr was dropped without being reported",
    ),
    "an option dropped without being reported": (
        COPIES["NoReg as a number"] | {"dropped_fields": ()},
        "option NoReg of PubOpt was dropped without being reported",
    ),
    "another topic": (COPIES["unchanged"] | {"output": mqrfh2(COMMAND, "<Topic>a/c</Topic>")}, "Topic 'a/b' was lost"),
    "RetainPub lost": (COPIES["the seed's example"] | {"output": mqrfh2(SEED_2[0], SEED_2[2])}, "'RetainPub' was lost"),
    "marked as retained": (
        COPIES["unchanged"] | {"output": mqrfh2(COMMAND, IS_RETAINED, TOPIC)},
        "'IsRetainedPub' was added",
    ),
    "topic not escaped": (
        COPIES["escaped for MQRFH"] | {"output": mqrfh('MQPSCommand Publish MQPSTopic "50% *"')},
        "the output cannot be read",
    ),
    "copied though not in the table": (
        COPIES["the seed's example"] | {"output": mqrfh2(*SEED_2, "<SubName>x</SubName>")},
        "SubName 'x' was added",
    ),
    "a return address without DirectReq": (
        V1
        | TO_V1
        | {
            "input": mqrfh("MQPSCommand Publish MQPSQName Q MQPSTopic a/b"),
            "output": mqrfh("MQPSCommand Publish MQPSQName Q MQPSTopic a/b"),
        },
        "QName 'Q' was added",
    ),
    "another return address than the publisher's own": (
        V1
        | TO_V1
        | {
            "input": mqrfh("MQPSCommand Publish MQPSRegOpts DirectReq MQPSQName Q MQPSTopic a/b"),
            "output": mqrfh("MQPSCommand Publish MQPSQName R MQPSTopic a/b"),
        },
        "QName 'Q' was lost",
    ),
    "a return address behind the topic": (
        V1
        | TO_V1
        | {
            "input": mqrfh("MQPSCommand Publish MQPSRegOpts DirectReq MQPSTopic a/b"),
            "output": mqrfh("MQPSCommand Publish MQPSTopic a/b MQPSQName R"),
        },
        "another order",
    ),
    "the body described otherwise": (
        COPIES["unchanged"] | {"output": mqrfh2(COMMAND, TOPIC, body=b"MQSTR   ")},
        "the body is described as",
    ),
}


@pytest.mark.parametrize("case", WRONG_COPIES)
def test_a_wrong_copy_is_a_difference_that_says_what_is_wrong(facts, case: str) -> None:
    changes, words = WRONG_COPIES[case]
    described = {"conversion": "header_to_header", "input_ccsid": 1208, "input_encoding": 546}
    outcome = reperform(facts(**described | changes))
    assert outcome.status is Status.DIFFERENCE
    assert words in outcome.detail


def test_the_conversion_service_keeps_registration_options(facts) -> None:
    described = {"conversion": "service", "input_ccsid": 1208, "input_encoding": 546} | V1 | TO_V2
    given = mqrfh("MQPSCommand RegSub MQPSRegOpts 257 MQPSTopic a/b")
    made = mqrfh2("<Command>RegSub</Command>", "<RegOpt>CorrelAsId</RegOpt>", "<RegOpt>InformIfRet</RegOpt>", TOPIC)
    outcome = reperform(facts(**described | {"input": given, "output": made}))
    assert (outcome.status, outcome.same_bytes) == (Status.MATCH, True)


# -- header to packet ----------------------------------------------------------------------------------------------

DELIVERY = V2 | {
    "conversion": "header_to_packet",
    "input_ccsid": 1208,
    "input_encoding": 546,
    "input": mqrfh2(COMMAND, TOPIC),
    "output": PUBLISH,
    "granted_qos": 1,
    "published_qos": 2,
}

DELIVERIES = {
    "QoS lowered to what was granted": DELIVERY,
    "sent again": DELIVERY | {"output": bytes.fromhex("3a 09 0003 612f62 000a")},
    "retained": DELIVERY
    | {
        "is_retained": True,
        "input": mqrfh2(COMMAND, RETAIN, IS_RETAINED, TOPIC),
        "output": bytes.fromhex("33 09 0003 612f62 000a"),
    },
    "published with QoS 0": DELIVERY | {"published_qos": 0, "output": bytes.fromhex("30 07 0003 612f62")},
    "from MQRFH": DELIVERY | V1 | {"input": mqrfh("MQPSCommand Publish MQPSTopic a/b")},
    "a long payload": DELIVERY | {"payload_bytes": 316, "output": bytes.fromhex("32 c302 0003 612f62 000a")},
    "the second topic": DELIVERY | {"input": mqrfh2(COMMAND, "<Topic>x</Topic>", TOPIC)},
}


@pytest.mark.parametrize("case", DELIVERIES)
def test_a_publication_delivered_by_the_rules_matches(facts, case: str) -> None:
    outcome = reperform(facts(**DELIVERIES[case]))
    assert (outcome.status, outcome.same_bytes) == (Status.MATCH, True)


WRONG_DELIVERIES = {
    "QoS above what was granted": (DELIVERY | {"output": bytes.fromhex("34 09 0003 612f62 000a")}, "QoS is 2"),
    "QoS below both": (DELIVERY | {"output": bytes.fromhex("30 07 0003 612f62")}, "QoS is 0"),
    "RETAIN on a live publication": (DELIVERY | {"output": bytes.fromhex("33 09 0003 612f62 000a")}, "RETAIN is 1"),
    "another topic": (DELIVERY | {"output": bytes.fromhex("32 09 0003 612f63 000a")}, "topic 'a/c' is not"),
    "a wrong remaining length": (
        DELIVERY | {"output": bytes.fromhex("32 0a 0003 612f62 000a")},
        "remaining length is 10",
    ),
    "a remaining length in two bytes": (DELIVERY | {"output": bytes.fromhex("32 8900 0003 612f62 000a")}, "short"),
    "DUP with QoS 0": (
        DELIVERY | {"published_qos": 0, "output": bytes.fromhex("38 07 0003 612f62")},
        "remaining length",
    ),
    "packet identifier 0": (DELIVERY | {"output": bytes.fromhex("32 09 0003 612f62 0000")}, "cannot be read"),
    "a delete delivered": (
        DELIVERY | {"input": mqrfh2("<Command>DeletePub</Command>", TOPIC)},
        "command DeletePub was delivered",
    ),
}


@pytest.mark.parametrize("case", WRONG_DELIVERIES)
def test_a_publication_delivered_otherwise_is_a_difference(facts, case: str) -> None:
    changes, words = WRONG_DELIVERIES[case]
    outcome = reperform(facts(**changes))
    assert outcome.status is Status.DIFFERENCE
    assert words in outcome.detail


def test_the_reading_imports_nothing_of_what_it_checks() -> None:
    room = Path(spark_audit.reperform.__file__).parent
    imported = {
        name.split(".")[0]
        for path in room.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in getattr(node, "names", [])]
        )
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    of_python = {"collections", "contextlib", "dataclasses", "enum", "functools", "json", "re", "types", "typing"}
    assert imported <= {"spark_audit", *of_python}

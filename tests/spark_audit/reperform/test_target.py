"""Headers for a target and publications from one: what they carry of MQTT, their stream, and filters made narrower."""

from functools import partial
from typing import Any

import pytest

import tests.headers
from spark_audit.reperform.comparison import Status
from spark_audit.reperform.performance import reperform

mqrfh = partial(tests.headers.mqrfh, format=tests.headers.NO_FORMAT)
mqrfh2 = partial(tests.headers.mqrfh2, format=tests.headers.NO_FORMAT)

PUBLISH = bytes.fromhex("32 09 0003 612f62 000a")
DELETE = bytes.fromhex("33 07 0003 612f62 000a")
FILTER = bytes.fromhex("0001 23 01")  # `#` with QoS 1


PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
QOS, CLIENT, SEQUENCE = (
    "<rfhbQos dt='i4'>1</rfhbQos>",
    "<rfhbClient>boiler</rfhbClient>",
    "<rfhbSeq dt='i8'>7</rfhbSeq>",
)
DELETES = "<rfhbRetain dt='i4'>1</rfhbRetain></usr>"
USR = f"<usr>{QOS}{CLIENT}{SEQUENCE}</usr>"
PAIRS = "rfhbQos 1 rfhbClient boiler rfhbSeq 7"
TO_TARGET = {
    "destination": "CENTRAL",
    "stream": "SYSTEM.BROKER.DEFAULT.STREAM",
    "stream_style": "queue",
    "client": "boiler",
    "exchange": 7,
    "input": PUBLISH,
}
IN_1 = TO_TARGET | {"output_format": "MQHRF"}
STREAMED = {"stream": "RESULTS"}
SUBSCRIBE = {"packet_type": 8, "command": "RegSub", "payload_bytes": 0, "input": FILTER}
REGSUB = "<Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>InformIfRet</RegOpt><QName>Q</QName>"
FROM_TARGET = {
    "conversion": "header_to_packet",
    "input_format": "MQHRF2",
    "input_ccsid": 1208,
    "input_encoding": 546,
    "output": PUBLISH,
    "granted_qos": 2,
    "published_qos": 1,
}

MATCHES: dict[str, dict[str, Any]] = {
    "publish": TO_TARGET | {"output": mqrfh2(PSC, USR)},
    "publish, with its user": TO_TARGET
    | {"user": "anna", "output": mqrfh2(PSC, USR.replace("</usr>", "<rfhbUser>anna</rfhbUser></usr>"))},
    "publish, MQRFH": IN_1 | {"output": mqrfh(f"MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b {PAIRS}")},
    "publish on a stream, MQRFH": IN_1
    | STREAMED
    | {"output": mqrfh(f"MQPSCommand Publish MQPSPubOpts NoReg MQPSStreamName RESULTS MQPSTopic a/b {PAIRS}")},
    "publish on a stream, Message Broker": TO_TARGET
    | STREAMED
    | {"stream_style": "message_broker", "output": mqrfh2(PSC.replace("a/b", "$SYS/STREAM/RESULTS/a/b"), USR)},
    "publish on a stream, queue manager": TO_TARGET
    | STREAMED
    | {"stream_style": "queue_manager", "output": mqrfh2(PSC.replace("a/b", "RESULTS/a/b"), USR)},
    "delete, which carries nothing": TO_TARGET
    | {
        "input": DELETE,
        "payload_bytes": 0,
        "command": "DeletePub",
        "output": mqrfh2("<psc><Command>DeletePub</Command><Topic>a/b</Topic></psc>"),
    },
    "publish behind a delete, which carries RETAIN": TO_TARGET
    | {"input": DELETE, "payload_bytes": 0, "output": mqrfh2(PSC, USR.replace("</usr>", DELETES))},
    "a client that XML cannot say": TO_TARGET
    | {"client": "boi\x01ler", "output": mqrfh2(PSC, f"<usr>{QOS}{SEQUENCE}</usr>")},
    "a will, whose exchange no record tells": TO_TARGET
    | {
        "packet_type": 1,
        "exchange": -1,
        "input": bytes.fromhex("0003 612f62 02"),
        "output": mqrfh2(PSC, USR),
    },
    "subscribe": TO_TARGET | SUBSCRIBE | {"output": mqrfh2(f"<psc>{REGSUB}<Topic>#</Topic></psc>")},
    "subscribe, as far as the route goes": TO_TARGET
    | SUBSCRIBE
    | {
        "topic_filters": ("plant/#", "site/+"),
        "output": mqrfh2(f"<psc>{REGSUB}<Topic>plant/#</Topic><Topic>site/+</Topic></psc>"),
    },
    "registered anew, nothing retained is due": TO_TARGET
    | SUBSCRIBE
    | {
        "input": b"",
        "output": mqrfh2(
            "<psc><Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>NewPubsOnly</RegOpt>"
            "<RegOpt>InformIfRet</RegOpt><QName>Q</QName><Topic>#</Topic></psc>"
        ),
    },
    "delivered with the QoS that it carries": FROM_TARGET | {"input": mqrfh2(PSC, USR)},
    "delivered, MQRFH": FROM_TARGET
    | {"input_format": "MQHRF", "input": mqrfh(f"MQPSCommand Publish MQPSTopic a/b {PAIRS}")},
    "delivered, of an application": FROM_TARGET | {"input": mqrfh2(PSC, "<usr><a>1</a></usr>")},
    "delivered without the prefix of its stream": FROM_TARGET
    | STREAMED
    | {"stream_style": "queue_manager", "input": mqrfh2(PSC.replace("a/b", "RESULTS/a/b"), USR)},
}


@pytest.mark.parametrize("case", MATCHES)
def test_what_goes_to_or_comes_from_a_target_matches_byte_for_byte(facts, case: str) -> None:
    outcome = reperform(facts(**MATCHES[case]))
    assert (outcome.status, outcome.detail, outcome.same_bytes) == (Status.MATCH, "", True)


#: Base case, what is changed of it, and what is then said.
PLANTED: dict[str, tuple[str, dict[str, Any], str]] = {
    "nothing carried": ("publish", {"output": mqrfh2(PSC)}, "rfhbQos '1' is not carried"),
    "another QoS": ("publish", {"output": mqrfh2(PSC, USR.replace(">1<", ">2<"))}, "rfhbQos '2' is carried"),
    "another client": ("publish", {"client": "cooler"}, "rfhbClient 'cooler' is not carried"),
    "another exchange": ("publish", {"exchange": 8}, "rfhbSeq '8' is not carried"),
    "a user that the record does not tell": ("publish, with its user", {"user": ""}, "rfhbUser 'anna' is carried"),
    "the user of another": ("publish, with its user", {"user": "bert"}, "rfhbUser 'bert' is not carried"),
    "RETAIN of a delete not carried": (
        "publish behind a delete, which carries RETAIN",
        {"output": mqrfh2(PSC, USR)},
        "rfhbRetain '1' is not carried",
    ),
    "RETAIN carried with a payload": (
        "publish",
        {"output": mqrfh2(PSC, USR.replace("</usr>", DELETES))},
        "rfhbRetain '1' is carried",
    ),
    "carried in another order": (
        "publish",
        {"output": mqrfh2(PSC, f"<usr>{CLIENT}{QOS}{SEQUENCE}</usr>")},
        "in another order",
    ),
    "carried to the embedded broker": ("publish", {"destination": ""}, "folder usr, which nothing asked for"),
    "carried with a delete": (
        "delete, which carries nothing",
        {"output": mqrfh2("<psc><Command>DeletePub</Command><Topic>a/b</Topic></psc>", USR)},
        "folder usr, which nothing asked for",
    ),
    "another folder beside": ("publish", {"output": mqrfh2(PSC, USR, "<mcd><a>1</a></mcd>")}, "folder mcd"),
    "no stream": (
        "publish on a stream, MQRFH",
        {"output": mqrfh(f"MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b {PAIRS}")},
        "MQPSStreamName 'RESULTS' is missing",
    ),
    "another stream": ("publish on a stream, MQRFH", {"stream": "ALARMS"}, "MQPSStreamName 'ALARMS' is missing"),
    "no prefix": (
        "publish on a stream, Message Broker",
        {"output": mqrfh2(PSC, USR)},
        "Topic '$SYS/STREAM/RESULTS/a/b' is missing",
    ),
    "the prefix of the other product": (
        "publish on a stream, queue manager",
        {"stream_style": "message_broker"},
        "Topic '$SYS/STREAM/RESULTS/a/b' is missing",
    ),
    "a filter that is wider than what was asked for": (
        "subscribe, as far as the route goes",
        {"input": bytes.fromhex("0007 706c616e742f23 01")},  # plant/#
        "'site/+' is more than 'plant/#'",
    ),
    "a filter that was left out": (
        "subscribe, as far as the route goes",
        {"output": mqrfh2(f"<psc>{REGSUB}<Topic>plant/#</Topic></psc>")},
        "Topic 'site/+' is missing",
    ),
    "retained asked for again": (
        "registered anew, nothing retained is due",
        {"output": mqrfh2(f"<psc>{REGSUB}<Topic>#</Topic></psc>")},
        "RegOpt 'NewPubsOnly' is missing",
    ),
    "retained not asked for": (
        "subscribe",
        {"output": MATCHES["registered anew, nothing retained is due"]["output"]},
        "RegOpt is 'NewPubsOnly', which nothing asked for",
    ),
    "noted with another QoS than it carries": (
        "delivered with the QoS that it carries",
        {"published_qos": 2, "output": bytes.fromhex("34 09 0003 612f62 000a")},
        "published with QoS 1, not 2",
    ),
    "delivered with the prefix": (
        "delivered without the prefix of its stream",
        {"output": bytes.fromhex("32 11 000b") + b"RESULTS/a/b" + bytes.fromhex("000a")},
        "topic 'RESULTS/a/b' is not the publication's",
    ),
}


@pytest.mark.parametrize("case", PLANTED)
def test_what_differs_towards_a_target_is_told(facts, case: str) -> None:
    base, changes, words = PLANTED[case]
    outcome = reperform(facts(**MATCHES[base] | changes))
    assert outcome.status is Status.DIFFERENCE
    assert words in outcome.detail

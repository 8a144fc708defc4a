"""What the conversion service did, judged again: documented conversions match, wrong ones say what is wrong."""

from functools import partial

import pytest

import tests.headers
from spark_audit.reperform.comparison import Status
from spark_audit.reperform.performance import reperform
from spark_audit.reperform.topics import topic_filter_of

mqrfh = partial(tests.headers.mqrfh, format=tests.headers.NO_FORMAT)
mqrfh2 = partial(tests.headers.mqrfh2, format=tests.headers.NO_FORMAT)

FOLLOWING = bytes.fromhex("22020000 b8040000")


def psc(text: str) -> bytes:
    return mqrfh2(f"<psc>{text}</psc>")


def dead_letter_header(next_format: bytes) -> bytes:
    """An MQDLH by IBM's layout: reason 2085, names and dates blank."""
    return (
        b"DLH \x01\x00\x00\x00"
        + (2085).to_bytes(4, "little")
        + b" " * 96
        + FOLLOWING
        + next_format
        + bytes(4)
        + b" " * 44
    )


TO_2 = {"target": "mqrfh2", "input_format": "MQHRF", "output_format": "MQHRF2"}
TO_1 = {"target": "mqrfh", "input_format": "MQHRF2", "output_format": "MQHRF"}
PUBLISH = "<Command>Publish</Command><Topic>a/b</Topic>"
REGISTER = "<Command>RegSub</Command>"
NAMED_1 = mqrfh("MQPSCommand RegSub MQPSTopic a/b MQPSSubName pump")
ANSWER_1 = mqrfh("MQPSCompCode 1 MQPSReason 3157 MQPSReasonText MQRCCF_DUPLICATE_SUBSCRIPTION MQPSTopic a\0")
ANSWER_2 = mqrfh2(
    "<pscr><Completion>warning</Completion><Response><Reason>3157</Reason><Topic>a</Topic></Response></pscr>"
)
USR = "<usr><a>1</a></usr>"

MATCHES = {
    "publish": TO_2 | {"input": mqrfh("MQPSCommand Publish MQPSTopic a/b"), "output": psc(PUBLISH)},
    "publish, back": TO_1 | {"input": psc(PUBLISH), "output": mqrfh("MQPSCommand Publish MQPSTopic a/b")},
    "escaped name": TO_2
    | {
        "input": mqrfh('MQPSCommand Publish MQPSTopic "50%% %*"'),
        "output": psc("<Command>Publish</Command><Topic>50% *</Topic>"),
    },
    "options as a number": TO_2
    | {
        "input": mqrfh("MQPSCommand RegSub MQPSRegOpts 257 MQPSTopic a/b"),
        "output": psc(REGISTER + "<RegOpt>CorrelAsId</RegOpt><RegOpt>InformIfRet</RegOpt><Topic>a/b</Topic>"),
    },
    "option of MQRFH alone, named": TO_2
    | {
        "input": mqrfh("MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a/b"),
        "output": psc(PUBLISH),
        "dropped_fields": (("MQPSPubOpts", "the option NoReg does not exist in mqrfh2"),),
    },
    "a topic that stands twice": TO_2
    | {
        "input": mqrfh("MQPSCommand DeregSub MQPSTopic a MQPSTopic b/* MQPSTopic a"),
        "output": psc("<Command>DeregSub</Command><Topic>a</Topic><Topic>b/#</Topic><Topic>a</Topic>"),
    },
    "a topic that stands twice, back": TO_1
    | {
        "input": psc("<Command>DeregSub</Command><Topic>a/+</Topic><Topic>a/#</Topic><Topic>a/+</Topic>"),
        "output": mqrfh("MQPSCommand DeregSub MQPSTopic a/* MQPSTopic a MQPSTopic a/*"),
    },
    "pattern to filter": TO_2
    | {
        "input": mqrfh("MQPSCommand RegSub MQPSTopic a/*/c"),
        "output": psc(REGISTER + "<Topic>a/#</Topic>"),
    },
    "a deletion that reaches as far": TO_2
    | {
        "input": mqrfh('MQPSCommand DeletePub MQPSTopic a MQPSTopic a/* MQPSTopic "50%% %*"'),
        "output": psc("<Command>DeletePub</Command><Topic>a</Topic><Topic>a/#</Topic><Topic>50% *</Topic>"),
    },
    "a deletion that reaches as far, back": TO_1
    | {
        "input": psc("<Command>DeletePub</Command><Topic>a/#</Topic>"),
        "output": mqrfh("MQPSCommand DeletePub MQPSTopic a MQPSTopic a/*"),
    },
    "filter to two patterns": TO_1
    | {
        "input": psc(REGISTER + "<Topic>a/#</Topic>"),
        "output": mqrfh("MQPSCommand RegSub MQPSTopic a MQPSTopic a/*"),
    },
    "subscription name, strict": TO_2
    | {
        "mode": "strict",
        "input": NAMED_1,
        "output": psc(REGISTER + "<Topic>a/b</Topic>"),
        "dropped_fields": (("MQPSSubName", "not one of the nine names"),),
    },
    "subscription name, extended": TO_2
    | {
        "mode": "extended",
        "input": NAMED_1,
        "output": psc(REGISTER + "<Topic>a/b</Topic><SubName>pump</SubName>"),
    },
    "subscription name, extended, back": TO_1
    | {
        "mode": "extended",
        "input": psc(REGISTER + "<Topic>a/b</Topic><SubName>pump</SubName>"),
        "output": NAMED_1,
    },
    "Local moves in extended mode": TO_2
    | {
        "mode": "extended",
        "input": mqrfh("MQPSCommand Publish MQPSRegOpts Local MQPSTopic a/b"),
        "output": psc("<Command>Publish</Command><PubOpt>Local</PubOpt><Topic>a/b</Topic>"),
    },
    "Local stays in strict mode": TO_2
    | {
        "input": mqrfh("MQPSCommand Publish MQPSRegOpts Local MQPSTopic a/b"),
        "output": psc("<Command>Publish</Command><RegOpt>Local</RegOpt><Topic>a/b</Topic>"),
    },
    "an option that needs a name, strict": TO_2
    | {
        "mode": "strict",
        "input": mqrfh("MQPSCommand RegSub MQPSRegOpts 147457 MQPSTopic a/b MQPSSubName pump MQPSSubIdentity i"),
        "output": psc(REGISTER + "<RegOpt>CorrelAsId</RegOpt><Topic>a/b</Topic>"),
        "dropped_fields": (
            ("MQPSRegOpts", "AddName means nothing without SubName"),
            ("MQPSRegOpts", "JoinShared means nothing without SubIdentity"),
            ("MQPSSubName", "not one of the nine names"),
            ("MQPSSubIdentity", "not one of the nine names"),
        ),
    },
    "an option that needs a name, strict, back": TO_1
    | {
        "mode": "strict",
        "input": psc(REGISTER + "<RegOpt>JoinExcl</RegOpt><Topic>a</Topic><SubIdentity>i</SubIdentity>"),
        "output": mqrfh("MQPSCommand RegSub MQPSTopic a"),
        "dropped_fields": (("RegOpt", "JoinExcl means nothing without it"), ("SubIdentity", "not one of the nine")),
    },
    "an identity that leaves, extended": TO_1
    | {
        "mode": "extended",
        "input": psc(
            "<Command>DeregSub</Command><RegOpt>LeaveOnly</RegOpt><Topic>a</Topic><SubIdentity>i</SubIdentity>"
        ),
        "output": mqrfh("MQPSCommand DeregSub MQPSRegOpts LeaveOnly MQPSTopic a MQPSSubIdentity i"),
    },
    "an option that needs a name, extended": TO_1
    | {
        "mode": "extended",
        "input": psc(REGISTER + "<RegOpt>AddName</RegOpt><Topic>a/b</Topic><SubName>pump</SubName>"),
        "output": mqrfh("MQPSCommand RegSub MQPSRegOpts AddName MQPSTopic a/b MQPSSubName pump"),
    },
    "by name alone, extended": TO_2
    | {
        "mode": "extended",
        "input": mqrfh("MQPSCommand DeregSub MQPSSubName pump"),
        "output": psc("<Command>DeregSub</Command><SubName>pump</SubName>"),
    },
    "folders dropped and named": TO_1
    | {
        "input": mqrfh2(f"<psc>{PUBLISH}</psc>", USR),
        "output": mqrfh("MQPSCommand Publish MQPSTopic a/b"),
        "dropped_fields": (("usr", "MQRFH has no folders"),),
    },
    "in the wanted format already": TO_1
    | {
        "input_format": "MQHRF",
        "input": mqrfh("MQPSCommand Publish MQPSTopic a"),
        "output": mqrfh("MQPSCommand Publish MQPSTopic a"),
    },
    "an MQRFH2 without a command": TO_2 | {"input_format": "MQHRF2", "input": mqrfh2(USR), "output": mqrfh2(USR)},
    "an answer": TO_2
    | {
        "input": ANSWER_1,
        "output": ANSWER_2,
        "dropped_fields": (("MQPSReasonText", "made from the number"),),
    },
    "an answer, back": TO_1 | {"input": ANSWER_2, "output": ANSWER_1},
    "behind an MQDLH": TO_2
    | {
        "input_format": "MQDEAD",
        "output_format": "MQDEAD",
        "input": dead_letter_header(b"MQHRF   ") + mqrfh("MQPSCommand Publish MQPSTopic a/b"),
        "output": dead_letter_header(b"MQHRF2  ") + psc(PUBLISH),
    },
    "in front of another header": TO_2
    | {
        "input": mqrfh("MQPSCommand Publish MQPSTopic a/b", format=b"MQHRF2  ") + mqrfh2(USR),
        "output": psc(PUBLISH)[:20] + b"MQHRF2  " + psc(PUBLISH)[28:] + mqrfh2(USR),
    },
}
DESCRIBED = {"conversion": "service", "input_ccsid": 1208, "input_encoding": 546, "mode": "strict"}


@pytest.mark.parametrize("case", MATCHES)
def test_a_documented_conversion_matches(facts, case: str) -> None:
    outcome = reperform(facts(**DESCRIBED | MATCHES[case]))
    assert (outcome.status, outcome.detail) in ((Status.MATCH, ""), (Status.MATCH, "the layout differs"))


@pytest.mark.parametrize("case", ["publish", "publish, back", "escaped name", "pattern to filter"])
def test_a_header_that_stands_alone_has_the_same_bytes(facts, case: str) -> None:
    assert reperform(facts(**DESCRIBED | MATCHES[case])).same_bytes


DIFFERENCES = {
    "not converted": (
        MATCHES["publish"] | {"output": mqrfh("MQPSCommand Publish MQPSTopic a/b"), "output_format": "MQHRF"},
        "no mqrfh2 header",
    ),
    "topic changed": (MATCHES["publish"] | {"output": psc(PUBLISH.replace("a/b", "a/c"))}, "Topic 'a/b' was lost"),
    "output cut": (MATCHES["publish"] | {"output": psc(PUBLISH)[:-4]}, "the output cannot be read"),
    "option without its name": (
        MATCHES["option of MQRFH alone, named"] | {"dropped_fields": ()},
        "option NoReg of PubOpt was dropped without being reported",
    ),
    "pattern kept as it was": (
        MATCHES["pattern to filter"] | {"output": psc(REGISTER + "<Topic>a/*/c</Topic>")},
        "Topic 'a/#' was lost",
    ),
    "one of two patterns": (
        MATCHES["filter to two patterns"] | {"output": mqrfh("MQPSCommand RegSub MQPSTopic a/*")},
        "Topic 'a' was lost",
    ),
    "copied in strict mode": (
        MATCHES["subscription name, extended"] | {"mode": "strict", "dropped_fields": (("MQPSSubName", "x"),)},
        "SubName 'pump' was added",
    ),
    "lost in extended mode": (
        MATCHES["subscription name, strict"] | {"mode": "extended"},
        "SubName 'pump' was lost",
    ),
    "dropped in silence": (
        MATCHES["subscription name, strict"] | {"dropped_fields": ()},
        "MQPSSubName was dropped without being reported",
    ),
    "an option kept without the name that it needs": (
        MATCHES["an option that needs a name, strict, back"]
        | {"output": mqrfh("MQPSCommand RegSub MQPSRegOpts JoinExcl MQPSTopic a")},
        "RegOpt 'JoinExcl' was added",
    ),
    "an option dropped with its name in silence": (
        MATCHES["an option that needs a name, strict, back"] | {"dropped_fields": (("SubIdentity", "x"),)},
        "option JoinExcl of RegOpt was dropped without being reported",
    ),
    "a leaving that ended the subscription": (
        MATCHES["an identity that leaves, extended"]
        | {
            "mode": "strict",
            "output": mqrfh("MQPSCommand DeregSub MQPSTopic a"),
            "dropped_fields": (("RegOpt", "LeaveOnly"), ("SubIdentity", "not one of the nine")),
        },
        "DeregSub was converted without its LeaveOnly, and ends the subscription for everybody",
    ),
    "by name alone, strict": (
        MATCHES["by name alone, extended"]
        | {
            "mode": "strict",
            "output": psc("<Command>DeregSub</Command>"),
            "dropped_fields": (("MQPSSubName", "not one of the nine names"),),
        },
        "DeregSub was converted without its SubName",
    ),
    "a deletion that reaches further": (
        TO_2
        | {
            "input": mqrfh("MQPSCommand DeletePub MQPSTopic a/*"),
            "output": psc("<Command>DeletePub</Command><Topic>a/#</Topic>"),
        },
        "DeletePub was converted, and deletes more than 'a/*'",
    ),
    "a deletion that reaches further, back": (
        TO_1
        | {
            "input": psc("<Command>DeletePub</Command><Topic>a/+</Topic>"),
            "output": mqrfh("MQPSCommand DeletePub MQPSTopic a/*"),
        },
        "DeletePub was converted, and deletes more than 'a/+'",
    ),
    "a request that became two": (
        TO_1
        | {
            "input": psc("<Command>ReqUpdate</Command><Topic>a/#</Topic>"),
            "output": mqrfh("MQPSCommand ReqUpdate MQPSTopic a MQPSTopic a/*"),
        },
        "ReqUpdate was converted, though it takes one topic",
    ),
    "a request for two": (
        TO_2
        | {
            "input": mqrfh("MQPSCommand ReqUpdate MQPSTopic a MQPSTopic b"),
            "output": psc("<Command>ReqUpdate</Command><Topic>a</Topic><Topic>b</Topic>"),
        },
        "ReqUpdate was converted, though it takes one topic and has 2",
    ),
    "a second topic of a request dropped": (
        TO_1
        | {
            "input": psc("<Command>ReqUpdate</Command><Topic>a</Topic><Topic>a</Topic>"),
            "output": mqrfh("MQPSCommand ReqUpdate MQPSTopic a"),
        },
        "ReqUpdate was converted, though it takes one topic and has 2",
    ),
    "a topic that stood twice dropped": (
        TO_2
        | {
            "input": mqrfh("MQPSCommand DeregSub MQPSTopic a MQPSTopic b MQPSTopic a"),
            "output": psc("<Command>DeregSub</Command><Topic>a</Topic><Topic>b</Topic>"),
        },
        "the fields are in another order, or doubled",
    ),
    "folder dropped in silence": (
        MATCHES["folders dropped and named"] | {"dropped_fields": ()},
        "folder usr was dropped without being reported",
    ),
    "changed though it was right": (
        MATCHES["in the wanted format already"] | {"output": mqrfh("MQPSCommand Publish MQPSTopic b")},
        "a message in the wanted format was changed",
    ),
    "a filter widened": (
        TO_1
        | {
            "input": psc(REGISTER + "<Topic>a</Topic><Filter>x=1</Filter>"),
            "output": mqrfh("MQPSCommand RegSub MQPSTopic a"),
            "dropped_fields": (("Filter", "not known"),),
        },
        "RegSub was converted without its Filter",
    ),
    "a command that MQRFH2 lacks": (
        TO_2
        | {
            "input": mqrfh("MQPSCommand RegPub MQPSTopic a"),
            "output": psc("<Command>RegPub</Command><Topic>a</Topic>"),
        },
        "RegPub was converted",
    ),
    "another completion": (
        MATCHES["an answer"] | {"output": mqrfh2("<pscr><Completion>ok</Completion></pscr>")},
        "the completion 'warning' became 'ok'",
    ),
    "an answer that became a command": (MATCHES["an answer"] | {"output": psc(PUBLISH)}, "no answer of a broker"),
    "the body described otherwise": (
        MATCHES["publish"] | {"output": psc(PUBLISH)[:20] + b"MQSTR   " + psc(PUBLISH)[28:]},
        "the body is described as",
    ),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_a_wrong_conversion_is_a_difference_that_says_what_is_wrong(facts, case: str) -> None:
    changes, words = DIFFERENCES[case]
    outcome = reperform(facts(**DESCRIBED | changes))
    assert outcome.status is Status.DIFFERENCE
    assert words in outcome.detail


def test_input_that_cannot_be_read_is_not_reperformable(facts) -> None:
    outcome = reperform(facts(**DESCRIBED | TO_2 | {"input": b"RFH ", "output": psc(PUBLISH)}))
    assert outcome.status is Status.NOT_REPERFORMABLE


@pytest.mark.parametrize(
    ("pattern", "topic_filter"),
    [("a/b", "a/b"), ("*", "#"), ("a*", "#"), ("a/*", "a/#"), ("a/b?c/d", "a/#"), ("a%*/b", "a*/b"), ("/*", "/#")],
)
def test_character_pattern_becomes_the_narrowest_filter_that_covers_it(pattern: str, topic_filter: str) -> None:
    assert topic_filter_of(pattern) == topic_filter

"""Which command takes which field and which option, in both formats: the tables of the manuals, typed here.

Sources: the command pages of the queued publish/subscribe manuals; cmqpsc.h and cmqcfc.h for tokens and numbers.
"""

import re

import pytest

CONTROL, DEFAULT = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
VERBS = ("Publish", "DeletePub", "RegSub", "DeregSub", "ReqUpdate", "RegPub", "DeregPub")
ONLY_IN_MQRFH = ("RegPub", "DeregPub")
COMMANDS = [("MQRFH", verb) for verb in VERBS] + [("MQRFH2", verb) for verb in VERBS[:5]]
REFUSED_AS_PARAMETER = {2337, 2338, 2339}

#: M mandatory, O optional, R may be repeated, - not a parameter; in the order of VERBS. A name that is empty does not
#: exist in that format. The value is one that every command takes.
FIELDS = (
    ("MQPSTopic", "Topic", "a", "MR MR MR MR M MR MR"),
    ("MQPSStreamName", "", DEFAULT, "O O O O O O O"),
    ("", "SubPoint", "p", "O - O O O"),
    ("", "Filter", "x=1", "- - O O O"),
    ("MQPSQMgrName", "QMgrName", "QM1", "O - O O O O O"),
    ("MQPSQName", "QName", "OLD", "O - O O O O O"),
    ("MQPSRegOpts", "RegOpt", "None", "OR - OR OR OR OR OR"),
    ("MQPSPubOpts", "PubOpt", "None", "OR - - - - - -"),
    ("MQPSDelOpts", "DelOpt", "None", "- OR - - - - -"),
    ("MQPSPubTime", "PubTime", "2026112012000000", "O - - - - - -"),
    ("MQPSSeqNum", "SeqNum", "1", "O - - - - - -"),
    ("MQPSStringData", "", "text", "OR - - - - - -"),
    ("MQPSIntData", "", "1", "OR - - - - - -"),
    ("own", "", "value", "OR - - - - - -"),
    ("MQPSSubName", "SubName", "n", "- - O O O - -"),
    ("MQPSSubIdentity", "SubIdentity", "i", "- - O O O - -"),
    ("MQPSSubUserData", "SubUserData", "u", "O - O - - - -"),
    ("MQPSNothing", "MQPSNothing", "x", "- - - - - - -"),
)
CELLS = [
    (format, verb, v1 if format == "MQRFH" else v2, value, cell)
    for v1, v2, value, row in FIELDS
    for format, verbs in (("MQRFH", VERBS), ("MQRFH2", VERBS[:5]))
    for verb, cell in zip(verbs, row.split(), strict=False)
    if (v1 if format == "MQRFH" else v2)
]

#: Registration options: number, formats, and the commands that take them.
REGISTRATION_OPTIONS = (
    ("CorrelAsId", 1, 12, "Publish RegSub DeregSub ReqUpdate RegPub DeregPub"),
    ("Anon", 2, 1, "Publish RegSub RegPub"),
    ("Local", 4, 12, "Publish RegSub RegPub"),
    ("DirectReq", 8, 1, "Publish RegPub"),
    ("NewPubsOnly", 16, 12, "RegSub"),
    ("PubOnReqOnly", 32, 12, "RegSub"),
    ("DeregAll", 64, 12, "DeregSub DeregPub"),
    ("InclStreamName", 128, 1, "RegSub"),
    ("InformIfRet", 256, 12, "RegSub"),
    ("DupsOK", 512, 12, "RegSub"),
    ("NonPers", 1024, 12, "RegSub"),
    ("Pers", 2048, 12, "RegSub"),
    ("PersAsPub", 4096, 12, "RegSub"),
    ("PersAsQueue", 8192, 12, "RegSub"),
    ("AddName", 16384, 12, "RegSub"),
    ("NoAlter", 32768, 12, "RegSub"),
    ("FullResp", 65536, 12, "RegSub DeregSub"),
    ("JoinShared", 131072, 12, "RegSub"),
    ("JoinExcl", 262144, 12, "RegSub"),
    ("LeaveOnly", 524288, 12, "DeregSub"),
    ("VariableUserId", 1048576, 12, "RegSub DeregSub ReqUpdate"),
    ("Locked", 2097152, 12, ""),
    ("CorrelAsID", None, 12, ""),
    ("NoSuchOption", 4194304, 12, ""),
)
PUBLICATION_OPTIONS = (
    ("CorrelAsId", 1, 12, "Publish"),
    ("RetainPub", 2, 12, "Publish"),
    ("OtherSubsOnly", 4, 12, "Publish"),
    ("NoReg", 8, 1, "Publish"),
    ("IsRetainedPub", 16, 12, "Publish"),
    ("NoSuchOption", 32, 12, ""),
)
DELETE_OPTIONS = (("Local", 4, 12, "DeletePub"), ("RetainPub", 1, 12, ""))
KINDS = (
    ("MQPSRegOpts", "RegOpt", 3083, REGISTRATION_OPTIONS, [verb for verb in VERBS if verb != "DeletePub"]),
    ("MQPSPubOpts", "PubOpt", 3084, PUBLICATION_OPTIONS, ["Publish"]),
    ("MQPSDelOpts", "DelOpt", 3087, DELETE_OPTIONS, ["DeletePub"]),
)
OPTIONS = [
    (
        format,
        verb,
        v1 if format == "MQRFH" else v2,
        value,
        reason,
        verb in commands.split() and str(digit) in str(formats),
    )
    for v1, v2, reason, rows, verbs in KINDS
    for token, number, formats, commands in rows
    for value in ((token,) if number is None else (token, str(number)))
    for format, digit in (("MQRFH", 1), ("MQRFH2", 2))
    for verb in verbs
    if format == "MQRFH" or verb not in ONLY_IN_MQRFH
]


def header(format: str, verb: str, fields: list[tuple[str, str]]) -> str:
    """The command with these fields, and a topic unless one is among them."""
    if format == "MQRFH":
        return " ".join(f"{name} {value}" for name, value in [("MQPSCommand", verb), *fields])
    return "<psc>" + "".join(f"<{name}>{value}</{name}>" for name, value in [("Command", verb), *fields]) + "</psc>"


def reason_of(station, format: str, verb: str, fields: list[tuple[str, str]]) -> int:
    """The reason code of the answer, 0 where the command was carried out."""
    queue_name = DEFAULT if verb in ("Publish", "DeletePub") else CONTROL
    text = header(format, verb, fields)
    station.publish(text, queue_name=queue_name, msg_type=1, reply_to_q="REPLY", correl_id=b"c" * 24)
    answer = next(body for body in station.bodies("REPLY") if b"MQPSCompCode" in body or b"<pscr>" in body)
    station.end_subscriptions("REPLY")
    station.end_subscriptions("OLD")
    assert answer[4:8] == (b"\1\0\0\0" if format == "MQRFH" else b"\2\0\0\0")
    found = re.search(rb"MQPSReason (\d+) |<Reason>(\d+)<|<Completion>(ok)<", answer)
    return int(found[1] or found[2] or 0)


def topic(format: str) -> tuple[str, str]:
    return ("MQPSTopic" if format == "MQRFH" else "Topic"), "a"


@pytest.mark.parametrize(("format", "verb"), COMMANDS)
def test_field_is_taken_refused_or_missed_as_the_matrix_says(station, format, verb):
    for name, value, cell in [row[2:] for row in CELLS if row[:2] == (format, verb)]:
        is_topic = name in ("MQPSTopic", "Topic")
        others = [] if is_topic else [topic(format)]
        once = reason_of(station, format, verb, [(name, value), *others])
        twice = reason_of(station, format, verb, [(name, value), (name, "b" if is_topic else value), *others])
        if cell == "-":
            assert (once, twice) == (2337, 2337), name
            continue
        assert once not in REFUSED_AS_PARAMETER, name
        assert (twice not in REFUSED_AS_PARAMETER) if "R" in cell else (twice == 2338), name
        if "M" in cell:
            assert reason_of(station, format, verb, []) == 2339, name


@pytest.mark.parametrize(("format", "verb"), COMMANDS)
def test_option_is_taken_by_its_commands_alone(station, format, verb):
    for name, value, reason, is_taken in [row[2:] for row in OPTIONS if row[:2] == (format, verb)]:
        found = reason_of(station, format, verb, [(name, value), *needed_with(format, verb, value)])
        assert (found in (0, 3073)) if is_taken else (found == reason), (name, value, found)


def needed_with(format: str, verb: str, option: str) -> list[tuple[str, str]]:
    """The fields that an option needs beside it."""
    prefix = "MQPS" if format == "MQRFH" else ""
    fields = [] if option in ("DeregAll", "64") and verb in ("DeregSub", "DeregPub") else [topic(format)]
    if option in ("AddName", "16384") and verb == "RegSub":
        fields.append((f"{prefix}SubName", "n"))
    if option in ("JoinShared", "JoinExcl", "LeaveOnly", "131072", "262144", "524288") and verb in (
        "RegSub",
        "DeregSub",
    ):
        fields.append((f"{prefix}SubIdentity", "i"))
    return fields


@pytest.mark.parametrize("format", ["MQRFH", "MQRFH2"])
def test_tokens_and_sums_are_added_up(station, format):
    name = "MQPSRegOpts" if format == "MQRFH" else "RegOpt"
    queue = ("MQPSQName", "OLD") if format == "MQRFH" else ("QName", "OLD")
    given = [(name, "FullResp"), (name, "257"), (name, "None"), (name, "DupsOK"), queue, topic(format)]
    station.publish(
        header(format, "RegSub", given), queue_name=CONTROL, msg_type=1, reply_to_q="REPLY", correl_id=b"c" * 24
    )
    (answer,) = station.bodies("REPLY")
    kept = re.findall(rb"(?:MQPSRegOpts |<RegOpt>)(\w+)", answer)
    assert kept == [b"CorrelAsId", b"InformIfRet", b"DupsOK"]

"""Every reason code that a client's header can provoke, in both formats where both exist: the answer and its MQMD.

3081 stands in test_topic_permissions. What no header can provoke is missing (3008, 3070, 3085 ...).
Source: the reason codes of the queued publish/subscribe commands in IBM's manuals.
"""

import struct
from dataclasses import dataclass, field

import pytest

CONTROL, DEFAULT = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
STREAM = "SAMPLE.BROKER.RESULTS.STREAM"
REG1, REG2 = (
    "MQPSCommand RegSub MQPSQName OLD MQPSTopic a",
    "<Command>RegSub</Command><QName>OLD</QName><Topic>a</Topic>",
)
PUB1, PUB2 = "MQPSCommand Publish MQPSTopic a", "<Command>Publish</Command><Topic>a</Topic>"
LONG = "x" * 10_241


@dataclass(frozen=True)
class Row:
    """A bad command, and the answer: reason code, its name, and what identifies the cause.

    In MQRFH the cause is what follows MQPSCommand, in MQRFH2 what follows Reason. `before` are commands that must have
    succeeded; `mqmd` are fields of the MQMD; `level` is the completion code.
    """

    reason: int
    name: str
    header: str
    cause: str
    queue: str = CONTROL
    before: tuple[str, ...] = ()
    mqmd: dict = field(default_factory=dict)
    level: int = 2


DEREG1, DEREG2 = REG1.replace("Reg", "Dereg"), REG2.replace("Reg", "Dereg")
REQ1, REQ2 = REG1.replace("RegSub", "ReqUpdate"), REG2.replace("RegSub", "ReqUpdate")
DEL1, DEL2 = PUB1.replace("Publish", "DeletePub"), PUB2.replace("Publish", "DeletePub")
EXCL1, SHARED1, OTHER_EXCL1, OTHER_SHARED1 = (
    f"{REG1} MQPSSubIdentity {identity} MQPSRegOpts {option}"
    for identity in ("i", "j")
    for option in ("JoinExcl", "JoinShared")
)
EXCL2, SHARED2, OTHER_EXCL2, OTHER_SHARED2 = (
    f"{REG2}<SubIdentity>{identity}</SubIdentity><RegOpt>{option}</RegOpt>"
    for identity in ("i", "j")
    for option in ("JoinExcl", "JoinShared")
)
ALL1, ALL2 = "MQPSCommand DeregSub MQPSQName OLD", "<Command>DeregSub</Command><QName>OLD</QName>"
NAMED1, NAMED2 = f"{REG1} MQPSSubName n", f"{REG2}<SubName>n</SubName>"
NAMED_REQ1, NAMED_REQ2 = f"{REQ1} MQPSSubName n", f"{REQ2}<SubName>n</SubName>"
ZEROS = "0" * 48
BOB, ODD_TYPE = {"user_identifier": "bob"}, {"msg_type": 65_536, "report": 2}


def parm(name: str) -> str:
    """The parameter at fault, as MQRFH2 names it."""
    return f"<ParmId>{name}</ParmId>"


ROWS = [
    Row(2029, "MQRC_MSG_TYPE_ERROR", REG1, "", mqmd=ODD_TYPE),
    Row(2029, "MQRC_MSG_TYPE_ERROR", REG2, "", mqmd=ODD_TYPE),
    Row(2029, "MQRC_MSG_TYPE_ERROR", PUB1, "", DEFAULT, mqmd=ODD_TYPE),
    Row(2029, "MQRC_MSG_TYPE_ERROR", PUB2, "", DEFAULT, mqmd=ODD_TYPE),
    Row(2029, "MQRC_MSG_TYPE_ERROR", DEL1, "", DEFAULT, mqmd=ODD_TYPE),
    Row(2029, "MQRC_MSG_TYPE_ERROR", DEL2, "", DEFAULT, mqmd=ODD_TYPE),
    Row(2335, "MQRC_RFH_STRING_ERROR", "MQPSCommand RegSub MQPSTopic", " MQPSErrorPos 28"),
    Row(2335, "MQRC_RFH_STRING_ERROR", 'MQPSCommand RegSub MQPSTopic "a', " MQPSErrorPos 29"),
    Row(2335, "MQRC_RFH_STRING_ERROR", "MQPSCommand Publish MQPSTopic", " MQPSErrorPos 32", DEFAULT),
    Row(2336, "MQRC_RFH_COMMAND_ERROR", "MQPSCommand Hello MQPSTopic a", " MQPSErrorPos 0"),
    Row(2336, "MQRC_RFH_COMMAND_ERROR", "MQPSTopic a MQPSCommand RegSub", " MQPSErrorPos 0"),
    Row(2336, "MQRC_RFH_COMMAND_ERROR", "<Command>Hello</Command><Topic>a</Topic>", parm("Command")),
    Row(2336, "MQRC_RFH_COMMAND_ERROR", "<Command>RegPub</Command><Topic>a</Topic>", parm("Command")),
    Row(2336, "MQRC_RFH_COMMAND_ERROR", "<Topic>a</Topic>", parm("Command"), DEFAULT),
    Row(2337, "MQRC_RFH_PARM_ERROR", REG1 + " MQPSSeqNum 1", " MQPSParmId MQPSSeqNum"),
    Row(2337, "MQRC_RFH_PARM_ERROR", REG2 + "<SeqNum>1</SeqNum>", parm("SeqNum")),
    Row(2337, "MQRC_RFH_PARM_ERROR", REG1 + " own 1", " MQPSParmId own"),
    Row(2337, "MQRC_RFH_PARM_ERROR", PUB2 + "<PubOpts>1</PubOpts>", parm("PubOpts"), DEFAULT),
    Row(2337, "MQRC_RFH_PARM_ERROR", REG2 + "<Hello>1</Hello>", parm("Hello")),
    Row(2337, "MQRC_RFH_PARM_ERROR", f"{REG2}<SubPoint>{'p' * 129}</SubPoint>", parm("SubPoint")),
    Row(2337, "MQRC_RFH_PARM_ERROR", DEREG1 + " MQPSRegOpts DeregAll", " MQPSParmId MQPSTopic"),
    Row(2338, "MQRC_RFH_DUPLICATE_PARM", REG1 + " MQPSQName OLD", " MQPSParmId MQPSQName"),
    Row(2338, "MQRC_RFH_DUPLICATE_PARM", REG2 + "<QName>OLD</QName>", parm("QName")),
    Row(2338, "MQRC_RFH_DUPLICATE_PARM", REQ1 + " MQPSTopic b", " MQPSParmId MQPSTopic"),
    Row(2338, "MQRC_RFH_DUPLICATE_PARM", REQ2 + "<Topic>b</Topic>", parm("Topic")),
    Row(2339, "MQRC_RFH_PARM_MISSING", "MQPSCommand RegSub MQPSQName OLD", " MQPSParmId MQPSTopic"),
    Row(2339, "MQRC_RFH_PARM_MISSING", "<Command>RegSub</Command><QName>OLD</QName>", parm("Topic")),
    Row(2339, "MQRC_RFH_PARM_MISSING", "MQPSCommand Publish", " MQPSParmId MQPSTopic", DEFAULT),
    Row(2339, "MQRC_RFH_PARM_MISSING", "<Command>DeletePub</Command>", parm("Topic"), DEFAULT),
    Row(2339, "MQRC_RFH_PARM_MISSING", REG1 + " MQPSRegOpts JoinExcl", " MQPSParmId MQPSSubIdentity"),
    Row(2339, "MQRC_RFH_PARM_MISSING", DEREG2 + "<RegOpt>LeaveOnly</RegOpt>", parm("SubIdentity")),
    Row(2551, "", REG2 + "<Filter>f(x)</Filter>", "<Filter>f(x)</Filter>"),
    Row(2551, "", REQ2 + "<Filter>f(x)</Filter>", "<Filter>f(x)</Filter>"),
    Row(2554, "", PUB2, "", DEFAULT, before=(REG2 + "<Filter>Body.x=1</Filter>",), level=1),
    Row(2554, "MQRC_CONTENT_ERROR", PUB1, "", DEFAULT, before=(REG2 + "<Filter>Body.x=1</Filter>",), level=1),
    Row(3071, "MQRCCF_STREAM_ERROR", REG1 + " MQPSStreamName A!B", " MQPSStreamName A!B"),
    Row(3071, "MQRCCF_STREAM_ERROR", PUB1 + " MQPSStreamName A!B", " MQPSStreamName A!B", DEFAULT),
    Row(3071, "MQRCCF_STREAM_ERROR", f"{REQ1} MQPSStreamName {'S' * 49}", f" MQPSStreamName {'S' * 49}"),
    Row(3072, "MQRCCF_TOPIC_ERROR", "MQPSCommand RegSub MQPSQName OLD MQPSTopic a%b", " MQPSTopic a%b"),
    Row(3072, "MQRCCF_TOPIC_ERROR", "MQPSCommand Publish MQPSTopic a*", " MQPSTopic a*", DEFAULT),
    Row(3072, "MQRCCF_TOPIC_ERROR", "MQPSCommand DeletePub MQPSTopic a%", " MQPSTopic a%", DEFAULT),
    Row(3072, "MQRCCF_TOPIC_ERROR", "MQPSCommand RegPub MQPSTopic a?", " MQPSTopic a?"),
    Row(3072, "MQRCCF_TOPIC_ERROR", f"<Command>RegSub</Command><Topic>{LONG}</Topic>", f"<Topic>{LONG[:-1]}</Topic>"),
    Row(3072, "MQRCCF_TOPIC_ERROR", "<Command>Publish</Command><Topic></Topic>", "<Topic></Topic>", DEFAULT),
    Row(3072, "MQRCCF_TOPIC_ERROR", "<Command>DeletePub</Command><Topic></Topic>", "<Topic></Topic>", DEFAULT),
    Row(3073, "MQRCCF_NOT_REGISTERED", DEREG1, " MQPSTopic a"),
    Row(3073, "MQRCCF_NOT_REGISTERED", DEREG2, "<Topic>a</Topic>"),
    Row(3073, "MQRCCF_NOT_REGISTERED", REQ1, " MQPSTopic a"),
    Row(3073, "MQRCCF_NOT_REGISTERED", REQ2, "<Topic>a</Topic>"),
    Row(3073, "MQRCCF_NOT_REGISTERED", DEREG1 + " MQPSTopic b", " MQPSTopic b", before=(REG1,), level=1),
    Row(3073, "", DEREG2 + "<Topic>b</Topic>", "<Topic>b</Topic>", before=(REG2,), level=1),
    Row(3073, "MQRCCF_NOT_REGISTERED", f"{ALL1} MQPSRegOpts DeregAll", " MQPSQName OLD"),
    Row(3073, "MQRCCF_NOT_REGISTERED", f"{ALL2}<RegOpt>DeregAll</RegOpt>", "<QName>OLD</QName>"),
    Row(3073, "MQRCCF_NOT_REGISTERED", "MQPSCommand DeregSub MQPSSubName n", " MQPSSubName n"),
    Row(3073, "MQRCCF_NOT_REGISTERED", "<Command>ReqUpdate</Command><SubName>n</SubName>", "<SubName>n</SubName>"),
    Row(3074, "MQRCCF_Q_MGR_NAME_ERROR", REG1 + " MQPSQMgrName QM9", " MQPSQMgrName QM9"),
    Row(3074, "MQRCCF_Q_MGR_NAME_ERROR", REG2 + "<QMgrName>QM9</QMgrName>", "<QMgrName>QM9</QMgrName>"),
    Row(3074, "MQRCCF_Q_MGR_NAME_ERROR", REG1 + " MQPSQMgrName Q!", " MQPSQMgrName Q!"),
    Row(3074, "MQRCCF_Q_MGR_NAME_ERROR", PUB2 + "<QMgrName>Q!</QMgrName>", "<QMgrName>Q!</QMgrName>", DEFAULT),
    Row(3075, "MQRCCF_INCORRECT_STREAM", PUB1 + f" MQPSStreamName {STREAM}", f" MQPSStreamName {STREAM}", DEFAULT),
    Row(3075, "MQRCCF_INCORRECT_STREAM", PUB1 + " MQPSStreamName NONE", " MQPSStreamName NONE", STREAM),
    Row(3075, "MQRCCF_INCORRECT_STREAM", DEL1 + f" MQPSStreamName {DEFAULT}", f" MQPSStreamName {DEFAULT}", STREAM),
    Row(3076, "MQRCCF_Q_NAME_ERROR", REG1.replace("OLD", "NO.Q"), " MQPSErrorId 2085 MQPSQName NO.Q"),
    Row(3076, "MQRCCF_Q_NAME_ERROR", REG2.replace("OLD", "NO.Q"), "<QName>NO.Q</QName>"),
    Row(3076, "MQRCCF_Q_NAME_ERROR", REG1.replace("OLD", "A!B"), " MQPSQName A!B"),
    Row(3076, "MQRCCF_Q_NAME_ERROR", REG2.replace("OLD", "A!B"), "<QName>A!B</QName>"),
    Row(3076, "MQRCCF_Q_NAME_ERROR", REG1.replace("OLD", CONTROL), f" MQPSErrorId 2051 MQPSQName {CONTROL}"),
    Row(3076, "MQRCCF_Q_NAME_ERROR", REG2.replace("OLD", DEFAULT), f"<QName>{DEFAULT}</QName>"),
    Row(3077, "MQRCCF_NO_RETAINED_MSG", REQ1, " MQPSTopic a", before=(REG1,)),
    Row(3077, "MQRCCF_NO_RETAINED_MSG", REQ2, "<Topic>a</Topic>", before=(REG2,)),
    Row(3078, "MQRCCF_DUPLICATE_IDENTITY", REG1, " MQPSUserId bob", before=(REG1,), mqmd=BOB),
    Row(3078, "MQRCCF_DUPLICATE_IDENTITY", REG2, "<UserId>bob</UserId>", before=(REG2,), mqmd=BOB),
    Row(3078, "MQRCCF_DUPLICATE_IDENTITY", REQ1, " MQPSUserId bob", before=(REG1,), mqmd=BOB),
    Row(3078, "", REQ2, "<UserId>bob</UserId>", before=(REG2,), mqmd=BOB),
    Row(3079, "MQRCCF_INCORRECT_Q", PUB1, f" MQPSQName {CONTROL}"),
    Row(3079, "MQRCCF_INCORRECT_Q", PUB2, f"<QName>{CONTROL}</QName>"),
    Row(3079, "MQRCCF_INCORRECT_Q", DEL1, f" MQPSQName {CONTROL}"),
    Row(3079, "MQRCCF_INCORRECT_Q", DEL2, f"<QName>{CONTROL}</QName>"),
    Row(3079, "MQRCCF_INCORRECT_Q", REG1, f" MQPSQName {DEFAULT}", DEFAULT),
    Row(3079, "MQRCCF_INCORRECT_Q", REG2, f"<QName>{STREAM}</QName>", STREAM),
    Row(3079, "MQRCCF_INCORRECT_Q", DEREG2, f"<QName>{DEFAULT}</QName>", DEFAULT),
    Row(3079, "MQRCCF_INCORRECT_Q", REQ1, f" MQPSQName {DEFAULT}", DEFAULT),
    Row(3079, "MQRCCF_INCORRECT_Q", "MQPSCommand RegPub MQPSTopic a", f" MQPSQName {DEFAULT}", DEFAULT),
    Row(3079, "MQRCCF_INCORRECT_Q", "MQPSCommand DeregPub MQPSTopic a", f" MQPSQName {DEFAULT}", DEFAULT),
    Row(3080, "MQRCCF_CORREL_ID_ERROR", REG1 + " MQPSRegOpts CorrelAsId", f" MQPSCorrelId {ZEROS}"),
    Row(3080, "MQRCCF_CORREL_ID_ERROR", REG2 + "<RegOpt>CorrelAsId</RegOpt>", f"<CorrelId>{ZEROS}</CorrelId>"),
    Row(3080, "MQRCCF_CORREL_ID_ERROR", DEREG2 + "<RegOpt>CorrelAsId</RegOpt>", f"<CorrelId>{ZEROS}</CorrelId>"),
    Row(3080, "MQRCCF_CORREL_ID_ERROR", REQ1 + " MQPSRegOpts CorrelAsId", f" MQPSCorrelId {ZEROS}"),
    Row(3080, "MQRCCF_CORREL_ID_ERROR", PUB1 + " MQPSPubOpts CorrelAsId", f" MQPSCorrelId {ZEROS}", DEFAULT),
    Row(3080, "MQRCCF_CORREL_ID_ERROR", PUB2 + "<RegOpt>CorrelAsId</RegOpt>", f"<CorrelId>{ZEROS}</CorrelId>", DEFAULT),
    Row(3080, "MQRCCF_CORREL_ID_ERROR", "MQPSCommand RegPub MQPSRegOpts 1 MQPSTopic a", f" MQPSCorrelId {ZEROS}"),
    Row(3082, "MQRCCF_UNKNOWN_STREAM", REG1 + " MQPSStreamName NONE", " MQPSStreamName NONE"),
    Row(3082, "MQRCCF_UNKNOWN_STREAM", DEREG1 + " MQPSStreamName NONE", " MQPSStreamName NONE"),
    Row(3082, "MQRCCF_UNKNOWN_STREAM", REQ1 + " MQPSStreamName NONE", " MQPSStreamName NONE"),
    Row(3082, "MQRCCF_UNKNOWN_STREAM", "MQPSCommand RegPub MQPSTopic a MQPSStreamName NONE", " MQPSStreamName NONE"),
    Row(3083, "MQRCCF_REG_OPTIONS_ERROR", REG1 + " MQPSRegOpts 0x1", " MQPSRegOpts 0x1"),
    Row(3083, "MQRCCF_REG_OPTIONS_ERROR", REG2 + "<RegOpt>Anon</RegOpt>", "<RegOpt>Anon</RegOpt>"),
    Row(3083, "MQRCCF_REG_OPTIONS_ERROR", REG1 + " MQPSRegOpts AddName", " MQPSRegOpts AddName"),
    Row(3083, "MQRCCF_REG_OPTIONS_ERROR", REG2 + "<RegOpt>AddName</RegOpt>", "<RegOpt>AddName</RegOpt>"),
    Row(3083, "MQRCCF_REG_OPTIONS_ERROR", REG1 + " MQPSRegOpts 3072", " MQPSRegOpts Pers"),
    Row(3083, "MQRCCF_REG_OPTIONS_ERROR", REG2 + "<RegOpt>3072</RegOpt>", "<RegOpt>Pers</RegOpt>"),
    Row(3083, "MQRCCF_REG_OPTIONS_ERROR", DEREG1 + " MQPSRegOpts Local", " MQPSRegOpts Local"),
    Row(3083, "MQRCCF_REG_OPTIONS_ERROR", REQ2 + "<RegOpt>FullResp</RegOpt>", "<RegOpt>FullResp</RegOpt>"),
    Row(3083, "MQRCCF_REG_OPTIONS_ERROR", PUB1 + " MQPSRegOpts 10", " MQPSRegOpts DirectReq", DEFAULT),
    Row(3084, "MQRCCF_PUB_OPTIONS_ERROR", PUB1 + " MQPSPubOpts What", " MQPSPubOpts What", DEFAULT),
    Row(3084, "MQRCCF_PUB_OPTIONS_ERROR", PUB2 + "<PubOpt>NoReg</PubOpt>", "<PubOpt>NoReg</PubOpt>", DEFAULT),
    Row(3087, "MQRCCF_DEL_OPTIONS_ERROR", DEL1 + " MQPSDelOpts 8", " MQPSDelOpts 8", DEFAULT),
    Row(3087, "MQRCCF_DEL_OPTIONS_ERROR", DEL2 + "<DelOpt>x</DelOpt>", "<DelOpt>x</DelOpt>", DEFAULT),
    Row(3150, "", REG2 + "<Filter>x=</Filter>", "<Filter>x=</Filter>"),
    Row(3150, "", DEREG2 + "<Filter>(</Filter>", "<Filter>(</Filter>"),
    Row(3150, "", REQ2 + "<Filter></Filter>", "<Filter></Filter>"),
    Row(3151, "MQRCCF_WRONG_USER", DEREG1, " MQPSUserId bob", before=(REG1,), mqmd=BOB),
    Row(3151, "", DEREG2, "<UserId>bob</UserId>", before=(REG2,), mqmd=BOB),
    Row(3151, "MQRCCF_WRONG_USER", NAMED_REQ1, " MQPSUserId bob", before=(NAMED1,), mqmd=BOB),
    Row(3151, "", NAMED_REQ2, "<UserId>bob</UserId>", before=(NAMED2,), mqmd=BOB),
    Row(3152, "MQRCCF_DUPLICATE_SUBSCRIPTION", NAMED1, " MQPSSubName n", before=(REG1,)),
    Row(3152, "", NAMED2, "<SubName>n</SubName>", before=(REG2,)),
    Row(3153, "MQRCCF_SUB_NAME_ERROR", REG1 + ' MQPSSubName ""', ' MQPSSubName ""'),
    Row(3153, "", REG2 + "<SubName>MQ.N</SubName>", "<SubName>MQ.N</SubName>"),
    Row(3153, "MQRCCF_SUB_NAME_ERROR", NAMED_REQ1, " MQPSSubName n", before=(REG1,)),
    Row(3153, "", NAMED_REQ2, "<SubName>n</SubName>", before=(REG2,)),
    Row(3154, "MQRCCF_SUB_IDENTITY_ERROR", REG1 + " MQPSSubIdentity i", " MQPSSubIdentity i"),
    Row(3154, "", REG2 + "<SubIdentity>i</SubIdentity>", "<SubIdentity>i</SubIdentity>"),
    Row(3154, "MQRCCF_SUB_IDENTITY_ERROR", REG1, ' MQPSSubIdentity ""', before=(SHARED1,)),
    Row(3154, "", REG2, "<SubIdentity></SubIdentity>", before=(SHARED2,)),
    Row(3154, "MQRCCF_SUB_IDENTITY_ERROR", DEREG1 + " MQPSSubIdentity j", " MQPSSubIdentity j", before=(SHARED1,)),
    Row(3154, "", DEREG2 + "<SubIdentity>j</SubIdentity>", "<SubIdentity>j</SubIdentity>", before=(SHARED2,)),
    Row(3155, "MQRCCF_SUBSCRIPTION_IN_USE", EXCL1, " MQPSSubIdentity i", before=(OTHER_SHARED1,)),
    Row(3155, "", EXCL2, "<SubIdentity>i</SubIdentity>", before=(OTHER_SHARED2,)),
    Row(3156, "MQRCCF_SUBSCRIPTION_LOCKED", EXCL1, " MQPSSubIdentity i", before=(OTHER_EXCL1,)),
    Row(3156, "", SHARED2, "<SubIdentity>i</SubIdentity>", before=(OTHER_EXCL2,)),
    Row(3157, "MQRCCF_ALREADY_JOINED", SHARED1, " MQPSTopic a", before=(SHARED1,), level=1),
    Row(3157, "", SHARED2, "<Topic>a</Topic>", before=(SHARED2,), level=1),
]  # fmt: skip


@pytest.fixture(scope="module")
def module_station(station_class, tmp_path_factory):
    made = station_class(tmp_path_factory.mktemp("reasons"), (STREAM,))
    yield made
    made.engine.close()


@pytest.fixture
def station(module_station):
    """One station for all rows: each leaves it without subscriptions and with empty queues."""
    yield module_station
    for name in ("OLD", "REPLY"):
        module_station.end_subscriptions(name)
        module_station.take_all(name)


def title(row: Row) -> str:
    return f"{row.reason} {row.header:.60}"


def send(station, header: str, queue_name: str, **mqmd: object):
    """Sends a command as a request, unless its MQMD says otherwise; returns it."""
    text = f"<psc>{header}</psc>" if header.startswith("<") else header
    fields = {"msg_type": 1, "reply_to_q": "REPLY", "user_identifier": "ann", **mqmd}
    return station.publish(text, b"body", queue_name=queue_name, **fields)


@pytest.mark.parametrize("row", ROWS, ids=title)
def test_answer_tells_the_reason_and_its_cause(station, row):
    for header in row.before:
        send(station, header, CONTROL)
    station.take_all("REPLY")
    command = send(station, row.header, row.queue, expiry=300, priority=4, **row.mqmd)
    (answer,) = station.take_all("REPLY")
    descriptor = answer.descriptor
    assert (descriptor.msg_type, descriptor.report, descriptor.correl_id) == (2, 0, command.msg_id)
    assert (descriptor.expiry, descriptor.priority, descriptor.put_appl_type) == (300, 4, 26)
    if row.header.startswith("<"):
        assert descriptor.format == b"MQHRF2  "
        word = "error" if row.level == 2 else "warning"
        told = (
            f"<pscr><Completion>{word}</Completion><Response><Reason>{row.reason}</Reason>{row.cause}</Response></pscr>"
        )
        length = struct.unpack_from("<i", answer.body, 36)[0]
        assert answer.body[40 : 40 + length].rstrip() == told.encode()
        assert answer.body[44 + length :].rstrip() == f"<psc>{row.header}</psc>".encode()
        return
    assert descriptor.format == b"MQHRF   "
    verb = dict(zip(row.header.split()[::2], row.header.split()[1::2], strict=False)).get("MQPSCommand")
    told = f"MQPSCompCode {row.level} MQPSReason {row.reason} MQPSReasonText {row.name} MQPSCommand {verb}{row.cause}"
    length = struct.unpack_from("<i", answer.body, 8)[0]
    string = answer.body[32:length]
    assert string.rstrip(b"\0") == told.encode()
    assert string.endswith(b"\0")
    assert answer.body[length:].rstrip() == row.header.encode()


@pytest.mark.parametrize("row", [row for row in ROWS if row.reason != 2029], ids=title)
def test_datagram_is_answered_as_its_report_says(station, row):
    for report in (0, 1, 2):
        for header in row.before:
            send(station, header, CONTROL)
        station.take_all("REPLY")
        send(station, row.header, row.queue, **{**row.mqmd, "msg_type": 8, "report": report})
        wanted = report == 2 or (report == 1 and row.level == 1)
        assert len(station.take_all("REPLY")) == wanted, report
        station.end_subscriptions("OLD")
    assert station.take_all("SYSTEM.DEAD.LETTER.QUEUE") == []


@pytest.mark.parametrize("queue_name", [CONTROL, DEFAULT])
@pytest.mark.parametrize(
    ("mqmd", "reason"),
    [
        ({"coded_char_set_id": 7}, b"3049 MQPSReasonText MQRCCF_CCSID_ERROR"),
        ({"encoding": 0}, b"3050 MQPSReasonText MQRCCF_ENCODING_ERROR"),
    ],
)
def test_header_in_a_page_or_byte_order_that_is_none_is_answered_in_utf_8(station, mqmd, reason, queue_name):
    data = station.mqrfh("MQPSCommand Publish MQPSTopic a")
    station.put(queue_name, b"MQHRF   ", data, msg_type=1, reply_to_q="REPLY", **mqmd)
    (answer,) = station.take_all("REPLY")
    assert b"MQPSCompCode 2 MQPSReason " + reason in answer.body
    assert (answer.descriptor.coded_char_set_id, answer.descriptor.encoding) == (1208, 546)
    mqrfh2 = station.mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    mqrfh2 = mqrfh2[:32] + struct.pack("<i", 819) + mqrfh2[36:]  # NameValueCCSID is none of the four
    station.put(queue_name, b"MQHRF2  ", mqrfh2, msg_type=1, reply_to_q="REPLY")
    (answer,) = station.take_all("REPLY")
    assert b"<Response><Reason>3049</Reason></Response>" in answer.body


@pytest.mark.parametrize(("format", "data"), [(b"MQHRF   ", b"RFH \1\0\0\0\1\0\0\0"), (b"MQHRF2  ", b"RFH \2\0\0\0")])
def test_broken_structure_is_2334_without_the_command(station, format, data):
    station.put(CONTROL, format, data, msg_type=1, reply_to_q="REPLY")
    (answer,) = station.take_all("REPLY")
    assert answer.descriptor.format == format
    assert (
        b"MQPSReason 2334 MQPSReasonText MQRC_RFH_ERROR MQPSCommand" in answer.body or b"<Reason>2334<" in answer.body
    )
    assert b"RFH " not in answer.body[4:].replace(b"RFH_ERROR", b"")

"""Commands of subscribers and publishers, and the broker's answers to them, byte for byte."""

import struct

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.broker.broker import Broker
from mq_adapters.reasons import QueueManagerError

STREAM = "SAMPLE.BROKER.RESULTS.STREAM"
CONTROL = "SYSTEM.BROKER.CONTROL.QUEUE"
DEFAULT = "SYSTEM.BROKER.DEFAULT.STREAM"
MQRFH = b"MQHRF   "
MQRFH2 = b"MQHRF2  "


def mqrfh_answer(string: str, command: bytes = b"") -> bytes:
    """An answer: the string from offset 32, ended by NUL up to a multiple of 4, and the failing command's string."""
    text = string.encode() + b"\0"
    text += b"\0" * (-len(text) % 4)
    next_format = b"MQSTR   " if command else b" " * 8
    return b"RFH " + struct.pack("<iiii8si", 1, 32 + len(text), 546, 1208, next_format, 0) + text + command


def mqrfh2_answer(*folders: str) -> bytes:
    variable = b""
    for folder in folders:
        text = folder.encode() + b" " * (-len(folder) % 4)
        variable += struct.pack("<i", len(text)) + text
    return b"RFH " + struct.pack("<iiii8sii", 2, 36 + len(variable), 546, 1208, b" " * 8, 0, 1208) + variable


def string_of(header: str) -> bytes:
    text = header.encode()
    return text + b" " * (-len(text) % 4)


def test_mqrfh_success(station):
    station.control("MQPSCommand RegSub MQPSQName OLD MQPSTopic a")
    expected = "MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE MQPSCommand RegSub"
    assert station.bodies("REPLY") == [mqrfh_answer(expected)]


def test_mqrfh2_success(station):
    station.control("<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a</Topic></psc>")
    assert station.bodies("REPLY") == [mqrfh2_answer("<pscr><Completion>ok</Completion></pscr>")]


def test_mqrfh_refusal_names_the_cause_and_repeats_the_command(station):
    command = "MQPSCommand RegSub MQPSQName OLD MQPSTopic ABC%x"
    station.control(command)
    expected = "MQPSCompCode 2 MQPSReason 3072 MQPSReasonText MQRCCF_TOPIC_ERROR MQPSCommand RegSub MQPSTopic ABC%x"
    assert station.bodies("REPLY") == [mqrfh_answer(expected, string_of(command))]


def test_mqrfh2_refusal_names_the_cause_and_repeats_the_psc_folder(station):
    psc = "<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a</Topic><Filter>x=</Filter></psc>"
    station.control(psc)
    pscr = "<pscr><Completion>error</Completion><Response><Reason>3150</Reason><Filter>x=</Filter></Response></pscr>"
    assert station.bodies("REPLY") == [mqrfh2_answer(pscr, psc)]


def test_unknown_queue_is_3076_with_2085_as_error_id(station):
    command = "MQPSCommand RegSub MQPSQName NO.SUCH.Q MQPSTopic a"
    station.control(command)
    expected = (
        "MQPSCompCode 2 MQPSReason 3076 MQPSReasonText MQRCCF_Q_NAME_ERROR MQPSCommand RegSub MQPSErrorId 2085 "
        "MQPSQName NO.SUCH.Q"
    )
    assert station.bodies("REPLY") == [mqrfh_answer(expected, string_of(command))]


@pytest.mark.parametrize(
    ("format", "header", "queue_name"),
    [
        (MQRFH, "MQPSCommand RegSub MQPSQName OLD MQPSTopic a", CONTROL),
        (MQRFH2, "<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a</Topic></psc>", CONTROL),
        (MQRFH, "MQPSCommand RegSub MQPSQName OLD MQPSTopic %", CONTROL),
        (MQRFH2, "<psc><Command>DeregSub</Command><QName>NEW</QName><Topic>a</Topic></psc>", CONTROL),
        (MQRFH, "MQPSCommand Publish MQPSTopic a", DEFAULT),
        (MQRFH2, "<psc><Command>Publish</Command><Topic>a</Topic></psc>", DEFAULT),
        (MQRFH, "MQPSCommand DeletePub MQPSTopic a", DEFAULT),
        (MQRFH2, "<psc><Command>DeletePub</Command><Topic></Topic></psc>", DEFAULT),
    ],
)
def test_descriptor_of_an_answer_is_as_the_response_page_says(station, format, header, queue_name):
    command = station.publish(
        header,
        queue_name=queue_name,
        msg_type=1,
        reply_to_q="REPLY",
        priority=6,
        persistence=0,
        expiry=300,
        report=3,
        correl_id=b"C" * 24,
        user_identifier="ann",
        accounting_token=b"acct",
        appl_identity_data="panel",
        appl_origin_data="abcd",
        origin=b"exchange",
    )
    (answer,) = station.take_all("REPLY")
    descriptor = answer.descriptor
    assert (descriptor.format, descriptor.msg_type, descriptor.report, descriptor.feedback) == (format, 2, 0, 0)
    assert (descriptor.priority, descriptor.persistence, descriptor.expiry) == (6, 0, 300)
    assert (descriptor.put_appl_type, descriptor.put_appl_name, descriptor.user_identifier) == (26, "QM1", "ann")
    assert (descriptor.accounting_token, descriptor.appl_identity_data) == (b"acct", "panel")
    assert (descriptor.appl_origin_data, descriptor.reply_to_q) == ("", "")
    assert descriptor.correl_id == command.msg_id
    assert answer.msg_id != command.msg_id
    assert answer.origin == b"exchange"


@pytest.mark.parametrize("topic", ["a", ""])
@pytest.mark.parametrize(
    ("report", "passes_correl_id", "passes_msg_id"), [(0, 0, 0), (64, 1, 0), (128, 0, 1), (192, 1, 1)]
)
@pytest.mark.parametrize("format", ["MQRFH", "MQRFH2"])
def test_identifiers_of_an_answer_are_passed_on_request(
    station, format, report, passes_correl_id, passes_msg_id, topic
):
    headers = {
        "MQRFH": f'MQPSCommand RegSub MQPSQName OLD MQPSTopic "{topic}"',
        "MQRFH2": f"<psc><Command>RegSub</Command><QName>OLD</QName><Topic>{topic}</Topic></psc>",
    }
    command = station.control(headers[format], report=report, correl_id=b"C" * 24)
    (answer,) = station.take_all("REPLY")
    assert answer.descriptor.correl_id == (b"C" * 24 if passes_correl_id else command.msg_id)
    assert (answer.msg_id == command.msg_id) == bool(passes_msg_id)


def test_answer_lives_as_long_as_its_command_has_left(station):
    station.engine.queue(CONTROL).handler = None
    station.control("MQPSCommand RegPub MQPSTopic a", expiry=100)
    station.control("MQPSCommand RegPub MQPSTopic a")
    station.pass_time(4)
    station.restart()
    assert [answer.descriptor.expiry for answer in station.take_all("REPLY")] == [60, -1]


@pytest.mark.parametrize(
    ("msg_type", "report", "on_success", "on_failure"),
    [(1, 0, 1, 1), (8, 0, 0, 0), (8, 1, 1, 0), (8, 2, 0, 1), (8, 3, 1, 1)],
)
@pytest.mark.parametrize(
    ("verb", "queue_name"), [("RegSub", CONTROL), ("DeregSub", CONTROL), ("Publish", DEFAULT), ("DeletePub", DEFAULT)]
)
@pytest.mark.parametrize("format", ["MQRFH", "MQRFH2"])
def test_request_is_always_answered_and_datagram_as_its_report_says(
    station, format, verb, queue_name, msg_type, report, on_success, on_failure
):
    def send(topic):
        queue = "MQPSQName OLD " if queue_name == CONTROL else ""
        element = "<QName>OLD</QName>" if queue_name == CONTROL else ""
        text = f'MQPSCommand {verb} {queue}MQPSTopic "{topic}"'
        if format == "MQRFH2":
            text = f"<psc><Command>{verb}</Command>{element}<Topic>{topic}</Topic></psc>"
        station.publish(text, queue_name=queue_name, msg_type=msg_type, report=report, reply_to_q="REPLY")
        return len(station.bodies("REPLY"))

    station.subscribe_old("a")
    assert send("a") == on_success
    assert send("") == on_failure
    assert station.listener.refusals == [(verb, 3072)]
    assert station.take_all("SYSTEM.DEAD.LETTER.QUEUE") == []


@pytest.mark.parametrize(("msg_type", "report", "answers"), [(1, 0, 1), (8, 0, 0), (8, 1, 1), (8, 2, 1), (8, 3, 1)])
@pytest.mark.parametrize("format", ["MQRFH", "MQRFH2"])
def test_warning_is_answered_where_either_report_is_set(station, format, msg_type, report, answers):
    header = "MQPSCommand DeregSub MQPSQName OLD MQPSTopic a MQPSTopic b"
    if format == "MQRFH2":
        header = "<psc><Command>DeregSub</Command><QName>OLD</QName><Topic>a</Topic><Topic>b</Topic></psc>"
    station.subscribe_old("a")
    station.control(header, msg_type=msg_type, report=report)
    told = station.bodies("REPLY")
    assert len(told) == answers
    assert all(b"MQPSCompCode 1 MQPSReason 3073 " in body or b"<Completion>warning<" in body for body in told)
    station.publish("MQPSCommand Publish MQPSTopic a")
    assert station.take_all("OLD") == []


def test_refused_publication_is_remembered_in_its_unit_of_work(station):
    data = station.mqrfh("MQPSCommand Publish MQPSTopic *", b"payload")
    message, unit = station.put(DEFAULT, MQRFH, data, report=2, reply_to_q="REPLY")
    assert unit.answered == {message.msg_id: message}
    _, silent = station.put(DEFAULT, MQRFH, data)
    assert silent.answered == {}


@pytest.mark.parametrize(
    ("header", "reason", "fields"),
    [
        ("MQPSCommand RegSub MQPSTopic", 2335, {}),
        ("MQPSCommand Hello MQPSTopic a", 2336, {}),
        ("MQPSTopic a MQPSCommand RegSub", 2336, {}),
        ("MQPSCommand RegSub MQPSTopic a MQPSPubOpts RetainPub", 2337, {}),
        ("MQPSCommand RegSub MQPSTopic a MQPSQName A MQPSQName B", 2338, {}),
        ("MQPSCommand RegSub MQPSQName OLD", 2339, {}),
        ("MQPSCommand RegSub MQPSQName OLD MQPSStreamName ? MQPSTopic a", 3071, {}),
        ("MQPSCommand DeregSub MQPSQName OLD MQPSTopic a", 3073, {}),
        ("MQPSCommand DeregSub MQPSQName OLD MQPSRegOpts DeregAll", 3073, {}),
        ("MQPSCommand RegSub MQPSQName OLD MQPSQMgrName QM2 MQPSTopic a", 3074, {}),
        ("MQPSCommand RegSub MQPSQName OLD MQPSTopic a", 3074, {"reply_to_q_mgr": "QM2", "msg_type": 8}),
        ("MQPSCommand RegSub MQPSTopic a", 3076, {"reply_to_q": "", "msg_type": 8}),
        ("MQPSCommand RegSub MQPSQName SYSTEM.BROKER.DEFAULT.STREAM MQPSTopic a", 3076, {}),
        ("MQPSCommand Publish MQPSTopic a", 3079, {}),
        ("MQPSCommand DeletePub MQPSTopic a", 3079, {}),
        ("MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSQName OLD MQPSTopic a", 3080, {}),
        ("MQPSCommand RegSub MQPSQName OLD MQPSStreamName NO.STREAM MQPSTopic a", 3082, {}),
        ("MQPSCommand RegPub MQPSQName OLD MQPSStreamName NO.STREAM MQPSTopic a", 3082, {}),
        ("MQPSCommand RegSub MQPSRegOpts 0x1 MQPSQName OLD MQPSTopic a", 3083, {}),
        ("MQPSCommand RegSub MQPSRegOpts NonPers MQPSRegOpts Pers MQPSQName OLD MQPSTopic a", 3083, {}),
        ("MQPSCommand RegSub MQPSRegOpts AddName MQPSQName OLD MQPSTopic a", 3083, {}),
        ("MQPSCommand RegSub MQPSQName OLD MQPSTopic a", 2029, {"msg_type": 2}),
    ],
)
def test_commands_are_refused_with_the_reason_code_of_the_manual(station, header, reason, fields):
    station.control(header, **fields)
    assert [code for _, code in station.listener.refusals] == [reason]
    station.publish("MQPSCommand Publish MQPSTopic a")
    assert station.bodies("OLD") == []


@pytest.mark.parametrize(
    ("header", "queue_name", "reason"),
    [
        ("MQPSCommand RegSub MQPSQName OLD MQPSTopic a", DEFAULT, 3079),
        (f"MQPSCommand Publish MQPSStreamName {STREAM} MQPSTopic a", DEFAULT, 3075),
        (f"MQPSCommand DeletePub MQPSStreamName {DEFAULT} MQPSTopic a", STREAM, 3075),
        ("MQPSCommand Publish MQPSPubOpts CorrelAsId MQPSTopic a", DEFAULT, 3080),
        ("<psc><Command>Publish</Command><RegOpt>CorrelAsId</RegOpt><Topic>a</Topic></psc>", DEFAULT, 3080),
        ("MQPSCommand Publish MQPSPubOpts 4096 MQPSTopic a", DEFAULT, 3084),
        ("MQPSCommand DeletePub MQPSDelOpts 1 MQPSTopic a", DEFAULT, 3087),
    ],
)
def test_publications_are_refused_with_the_reason_code_of_the_manual(station, header, queue_name, reason):
    station.subscribe_old("*")
    station.subscribe_old("*", f"MQPSStreamName {STREAM}")
    for _ in range(2):
        station.publish(header, queue_name=queue_name)
    assert [code for _, code in station.listener.refusals] == [reason, reason]
    assert station.bodies("OLD") == []


def test_publication_seen_before_is_still_checked_for_its_message_type_and_correl_id(station):
    header = "MQPSCommand Publish MQPSPubOpts CorrelAsId MQPSTopic a"
    station.publish(header, correl_id=b"c" * 24)
    station.publish(header)
    station.publish(header, correl_id=b"c" * 24, msg_type=4)
    assert station.listener.refusals == [("Publish", 3080), ("Publish", 2029)]


def test_structure_error_is_answered_without_the_command(station):
    broken = station.mqrfh("MQPSCommand RegSub MQPSTopic a")[:40]
    station.put(CONTROL, MQRFH, broken, msg_type=1, reply_to_q="REPLY")
    assert station.bodies("REPLY") == [
        mqrfh_answer('MQPSCompCode 2 MQPSReason 2334 MQPSReasonText MQRC_RFH_ERROR MQPSCommand ""')
    ]


@pytest.mark.parametrize("verb", ["RegPub", "DeregPub"])
def test_publishers_may_register_and_are_answered_ok(station, verb):
    station.control(
        f"MQPSCommand {verb} MQPSRegOpts Local MQPSTopic a" if verb == "RegPub" else f"MQPSCommand {verb} MQPSTopic a"
    )
    expected = f"MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE MQPSCommand {verb}"
    assert station.bodies("REPLY") == [mqrfh_answer(expected)]


def test_another_user_may_neither_register_nor_deregister_the_same_identity(station):
    station.subscribe_old("a", user_identifier="ann")
    station.control("MQPSCommand RegSub MQPSQName OLD MQPSTopic b", user_identifier="bob")
    station.control("MQPSCommand ReqUpdate MQPSQName OLD MQPSTopic a", user_identifier="bob")
    station.control("MQPSCommand DeregSub MQPSQName OLD MQPSTopic a", user_identifier="bob")
    assert station.listener.refusals == [("RegSub", 3078), ("ReqUpdate", 3078), ("DeregSub", 3151)]


def test_variable_user_id_lets_another_user_act(station):
    station.subscribe_old("a", "MQPSRegOpts VariableUserId", user_identifier="ann")
    command = "MQPSCommand DeregSub MQPSRegOpts VariableUserId MQPSQName OLD MQPSTopic a"
    station.control(command, user_identifier="bob")
    assert station.listener.refusals == []


def test_deregistration_of_some_topics_only_is_a_warning(station):
    station.subscribe_new("a")
    psc = "<psc><Command>DeregSub</Command><QName>NEW</QName><Topic>a</Topic><Topic>b</Topic></psc>"
    station.control(psc)
    pscr = "<pscr><Completion>warning</Completion><Response><Reason>3073</Reason><Topic>b</Topic></Response></pscr>"
    assert station.bodies("REPLY") == [mqrfh2_answer(pscr, psc)]
    station.publish("MQPSCommand Publish MQPSTopic a")
    assert station.bodies("NEW") == []


def test_dereg_all_ends_the_subscriptions_of_one_identity_only(station):
    for correl_id in (b"1" * 24, b"2" * 24):
        for topic in ("a", "b/#"):
            station.subscribe_new(topic, "<RegOpt>CorrelAsId</RegOpt>", correl_id=correl_id)
    psc = "<psc><Command>DeregSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>DeregAll</RegOpt><QName>NEW</QName></psc>"
    station.control(psc, correl_id=b"1" * 24)
    station.publish("MQPSCommand Publish MQPSTopic a MQPSTopic b/c")
    assert [copy.descriptor.correl_id for copy in station.take_all("NEW")] == [b"2" * 24]


def test_subscriber_queue_is_the_reply_queue_by_default(station):
    station.control("MQPSCommand RegSub MQPSTopic a", reply_to_q="OLD", reply_to_q_mgr="QM1")
    assert len(station.bodies("OLD")) == 1
    station.publish("MQPSCommand Publish MQPSTopic a")
    assert station.bodies("OLD") == [station.mqrfh("MQPSCommand Publish MQPSTopic a")]


def test_registering_again_changes_options_and_format(station):
    station.subscribe_new("a", "<RegOpt>NonPers</RegOpt>")
    station.control("MQPSCommand RegSub MQPSQName NEW MQPSTopic a")
    station.publish("MQPSCommand Publish MQPSTopic a")
    (copy,) = station.take_all("NEW")
    assert (copy.descriptor.format, copy.descriptor.persistence) == (MQRFH, 1)


def test_no_alter_leaves_an_existing_subscription_as_it_is(station):
    station.subscribe_new("a", "<RegOpt>NonPers</RegOpt>")
    station.subscribe_new("a", "<RegOpt>NoAlter</RegOpt>")
    station.publish("<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    assert [copy.descriptor.persistence for copy in station.take_all("NEW")] == [0]


def test_full_response_describes_the_subscription(station):
    psc = (
        "<psc><Command>RegSub</Command><RegOpt>FullResp</RegOpt><RegOpt>CorrelAsId</RegOpt><QName>NEW</QName>"
        "<Topic>a/#</Topic><SubName>mine</SubName></psc>"
    )
    station.control(psc, correl_id=b"\xab" * 24, user_identifier="ann")
    pscr = (
        "<pscr><Completion>ok</Completion><Command>RegSub</Command><Topic>a/#</Topic><QMgrName>QM1</QMgrName>"
        f"<QName>NEW</QName><CorrelId>{'ab' * 24}</CorrelId><UserId>ann</UserId><RegOpt>CorrelAsId</RegOpt>"
        "<SubName>mine</SubName></pscr>"
    )
    assert station.bodies("REPLY") == [mqrfh2_answer(pscr)]


def test_subscription_name_belongs_to_one_subscription(station):
    command = "<psc><Command>RegSub</Command><QName>{}</QName><Topic>a</Topic><SubName>mine</SubName></psc>"
    station.control(command.format("NEW"))
    station.control(command.format("NEW"))
    station.control(command.format("OLD"))
    assert station.listener.refusals == [("RegSub", 3152)]


def test_subscriptions_survive_a_restart(station):
    station.subscribe_old("a/*", "MQPSRegOpts CorrelAsId MQPSRegOpts NonPers", correl_id=b"1" * 24, user_identifier="u")
    station.subscribe_old("s", f"MQPSStreamName {STREAM}")
    station.subscribe_new("a/#")
    station.subscribe_new("gone")
    station.control("<psc><Command>DeregSub</Command><QName>NEW</QName><Topic>gone</Topic></psc>")
    station.restart()
    station.publish("MQPSCommand Publish MQPSTopic a/b", b"x")
    (old,) = station.take_all("OLD")
    assert old.body == station.mqrfh("MQPSCommand Publish MQPSTopic a/b", b"x")
    assert (old.descriptor.correl_id, old.descriptor.persistence, old.descriptor.user_identifier) == (b"1" * 24, 0, "u")
    psc = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
    assert station.bodies("NEW") == [station.mqrfh2(psc, body=b"x")]
    station.publish("MQPSCommand Publish MQPSTopic gone")
    assert station.bodies("NEW") == []
    station.publish("MQPSCommand Publish MQPSTopic s", queue_name=STREAM)
    assert len(station.bodies("OLD")) == 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"reply_to_q": ""}, 2027), ({"reply_to_q": "NO.Q"}, 2085), ({"reply_to_q_mgr": "QM2"}, 2087)],
)
def test_command_that_cannot_be_answered_is_not_carried_out(station, fields, reason):
    station.control("MQPSCommand RegSub MQPSQName OLD MQPSTopic a", **fields)
    assert [(name, code) for _, name, code in station.listener.dead_letters] == [(CONTROL, reason)]
    station.publish("MQPSCommand Publish MQPSTopic a")
    assert station.bodies("OLD") == []


def test_answer_to_a_publication_that_cannot_be_put_goes_to_the_dead_letter_queue(station):
    station.subscribe_old("a")
    station.publish("MQPSCommand Publish MQPSTopic a", report=1, reply_to_q="NO.Q")
    assert len(station.bodies("OLD")) == 1
    (dead,) = station.take_all("SYSTEM.DEAD.LETTER.QUEUE")
    assert dead.body[172:] == mqrfh_answer("MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE MQPSCommand Publish")


@pytest.mark.parametrize("queue_name", [CONTROL, DEFAULT, STREAM])
def test_message_that_is_no_command_goes_to_the_dead_letter_queue_whole(station, queue_name):
    message, _ = station.put(queue_name, b"MQSTR   ", b"hello", correl_id=b"c" * 24)
    (dead,) = station.take_all("SYSTEM.DEAD.LETTER.QUEUE")
    assert (dead.body[:4], dead.body[172:], len(dead.body)) == (b"DLH ", b"hello", 177)
    assert dead.descriptor.correl_id == b"c" * 24
    assert station.listener.dead_letters == [(message, queue_name, 2110)]


def test_message_that_is_no_command_is_discarded_and_reported_as_its_report_says(station):
    report = 0x0800_0000 + 0x0300_0000
    message, _ = station.put(DEFAULT, b"MQSTR   ", b"x" * 200, report=report, reply_to_q="REPLY")
    (told,) = station.take_all("REPLY")
    assert (told.descriptor.msg_type, told.descriptor.feedback, told.body) == (4, 2110, b"x" * 100)
    assert told.descriptor.correl_id == message.msg_id
    assert station.take_all("SYSTEM.DEAD.LETTER.QUEUE") == []
    assert [name for name, _ in station.listener.drops] == [DEFAULT]


@pytest.mark.parametrize("format", [b"MQADMIN ", b"MQPCF   "])
@pytest.mark.parametrize("queue_name", [CONTROL, DEFAULT])
def test_pcf_command_goes_to_the_dead_letter_queue_with_an_exception_report_if_asked(station, queue_name, format):
    publish_pcf = struct.pack("<9i", 1, 36, 1, 63, 1, 1, 0, 0, 0)
    message, _ = station.put(queue_name, format, publish_pcf, report=0x0100_0000, reply_to_q="REPLY")
    (dead,) = station.take_all("SYSTEM.DEAD.LETTER.QUEUE")
    assert dead.body[172:] == publish_pcf
    (told,) = station.take_all("REPLY")
    assert (told.descriptor.msg_type, told.descriptor.feedback, told.body) == (4, 2110, b"")
    assert told.descriptor.correl_id == message.msg_id


def test_exception_report_has_the_identifiers_that_its_message_asks_for(station):
    report = 0x0700_0000 | 0x80 | 0x40
    message, _ = station.put(
        DEFAULT, b"MQSTR   ", b"hello", report=report, reply_to_q="REPLY", correl_id=b"c" * 24, user_identifier="anna"
    )
    (told,) = station.take_all("REPLY")
    descriptor = told.descriptor
    assert (told.msg_id, descriptor.correl_id, told.body) == (message.msg_id, b"c" * 24, b"hello")
    assert (descriptor.put_appl_type, descriptor.user_identifier, descriptor.format) == (7, "anna", b"MQSTR   ")


def test_exception_report_for_another_queue_manager_goes_by_its_transmission_queue(station):
    definition = Definition(object_type=ObjectType.QLOCAL, name="QM9", said={"USAGE": "XMITQ"})
    station.engine.objects.define(definition)
    fields = {"report": 0x0100_0000, "reply_to_q": "REPLY"}
    station.put(DEFAULT, b"MQSTR   ", b"hello", reply_to_q_mgr="QM9", **fields)
    (sent,) = station.take_all("QM9")
    assert sent.descriptor.format == b"MQXMIT  "
    station.put(DEFAULT, b"MQSTR   ", b"hello", reply_to_q_mgr="NOBODY", **fields)
    reasons = [struct.unpack_from("<i", dead.body, 8)[0] for dead in station.take_all("SYSTEM.DEAD.LETTER.QUEUE")]
    assert sorted(reasons) == [2087, 2110, 2110]


@pytest.mark.parametrize("queue_name", [CONTROL, DEFAULT])
def test_header_that_is_none_goes_to_the_dead_letter_queue_unless_an_answer_is_wanted(station, queue_name):
    broken = b"RFH " + struct.pack("<ii", 1, 5)
    station.put(queue_name, MQRFH, broken)
    (dead,) = station.take_all("SYSTEM.DEAD.LETTER.QUEUE")
    assert (struct.unpack_from("<i", dead.body, 8)[0], dead.body[172:]) == (2334, broken)
    station.put(queue_name, MQRFH, broken, report=2, reply_to_q="REPLY")
    assert len(station.bodies("REPLY")) == 1
    assert station.take_all("SYSTEM.DEAD.LETTER.QUEUE") == []


def test_answer_sent_to_the_control_queue_ends_there(station):
    station.control("MQPSCommand RegPub MQPSTopic a", reply_to_q=CONTROL)
    assert station.listener.refusals == [("RegPub", 2336)]
    assert station.engine.queue(CONTROL).depth == 0


@pytest.mark.parametrize("name", [CONTROL, "SYSTEM.DEAD.LETTER.QUEUE", "no stream"])
def test_stream_must_have_a_queue_of_its_own(station, name):
    with pytest.raises(QueueManagerError, match="2152"):
        Broker(station.engine, listener=station.listener, streams=(name,))


def test_answer_is_in_the_code_page_and_byte_order_of_the_command(station):
    text = "MQPSCommand RegPub MQPSTopic a  ".encode("cp500")
    header = "RFH ".encode("cp500") + struct.pack(">iiii", 1, 32 + len(text), 273, 500)
    header += " ".encode("cp500") * 8 + bytes(4) + text
    station.put(CONTROL, MQRFH, header, msg_type=1, reply_to_q="REPLY", coded_char_set_id=500, encoding=273)
    (answer,) = station.take_all("REPLY")
    assert (answer.descriptor.coded_char_set_id, answer.descriptor.encoding) == (500, 273)
    expected = "MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE MQPSCommand RegPub\0"
    assert answer.body[32:] == expected.encode("cp500")


def test_listener_hears_where_the_dead_letter_queue_takes_nothing_of_what_is_not_persistent(station):
    station.engine.queue("SYSTEM.DEAD.LETTER.QUEUE").maximum_depth = 0
    station.put(DEFAULT, b"MQSTR   ", b"hello", report=0x0700_0000, reply_to_q="REPLY", persistence=0)
    assert station.bodies("REPLY") == [b"hello"]
    assert [name for name, _ in station.listener.drops] == [DEFAULT]
    assert station.engine.dead_letters.dropped == 1


OF_MQSUB = {"put_appl_type": 7, "appl_origin_data": "MS-3", "user_identifier": "ann"}


def test_commands_of_others_do_not_change_a_subscription_of_mqsub(station):
    command = "<psc><Command>RegSub</Command><RegOpt>VariableUserId</RegOpt><QName>NEW</QName><Topic>a</Topic></psc>"
    station.control(command, **OF_MQSUB)
    for verb, reason in (("RegSub", 3078), ("DeregSub", 3151), ("ReqUpdate", 3078)):
        station.control(command.replace("RegSub", verb), user_identifier="bob")
        assert f"<Reason>{reason}</Reason>".encode() in station.bodies("REPLY")[-1]
    administration = station.engine.objects.publish_subscribe()
    (found,) = administration.subscriptions()
    assert (found.user_identifier, found.is_of_mqsub) == ("ann", True)


def test_a_copy_for_mqsub_is_marked_and_has_its_priority(station):
    command = "<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a</Topic></psc>"
    station.control(command, **{**OF_MQSUB, "appl_origin_data": "MS05"})
    station.control(command.replace("NEW", "OLD"), user_identifier="ann")
    station.publish("<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    marks = {
        name: [
            (each.descriptor.appl_origin_data, each.descriptor.priority)
            for each in station.engine.browse(station.engine.queue(name))
        ]
        for name in ("NEW", "OLD")
    }
    assert marks == {"NEW": [("MQPS", 5)], "OLD": [("", 0)]}

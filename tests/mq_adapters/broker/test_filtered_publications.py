"""Content filters at work: per publication, in both formats, on live and on retained publications."""

import pytest

DEFAULT = "SYSTEM.BROKER.DEFAULT.STREAM"
MQRFH, MQRFH2 = b"MQHRF   ", b"MQHRF2  "
PSC = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
RETAINED = "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a</Topic></psc>"
USR = (
    "<usr><site>M1</site><level dt='r8'>21.5</level><count dt=\"i4\">7</count><hot dt='boolean'>1</hot>"
    "<raw dt='bin.hex'>0aFF</raw><none xsi:nil='true'></none><odd dt='i4'>x</odd></usr>"
)
READING = (
    b"<?xml version='1.0'?><m:reading xmlns:m='u'><value> 21.5</value><value>9</value><unit>C</unit></m:reading>\0"
)


def subscribe(station, condition, **fields):
    escaped = condition.replace("&", "&amp;").replace("<", "&lt;")
    station.subscribe_new("a", f"<Filter>{escaped}</Filter>", **fields)


def publish_with_properties(station, body=READING, **fields):
    station.put(DEFAULT, MQRFH2, station.mqrfh2(PSC, USR, body=body), **fields)


@pytest.mark.parametrize(
    ("condition", "passes"),
    [
        ("usr.site = 'M1'", True),
        ("site = 'M2'", False),
        ("level BETWEEN 21 AND 22", True),
        ("Root.MQRFH2.usr.count = 7", True),
        ("hot", True),
        ("raw = X'0AFF'", True),
        ("none IS NULL", True),
        ("odd IS NULL", True),
        ("Body.reading.value = 21.5", True),
        ("Body.reading.value < 21", False),
        ("Root.XMLNSC.reading.unit IN ('F', 'C')", True),
        ("Body.reading.other IS NULL AND Root.MQMD.Format = 'MQHRF2'", True),
        ("Root.MQMD.Priority > 3 AND Root.MQMD.UserIdentifier LIKE 'an%'", True),
        (f"Root.MQMD.CorrelId = X'{'63' * 24}'", True),
        ("Root.MQMD.MsgId IS NULL", False),
    ],
)
def test_publication_passes_or_does_not(station, condition, passes):
    subscribe(station, condition)
    for _ in range(2):
        publish_with_properties(station, priority=5, user_identifier="ann", correl_id=b"c" * 24)
    assert len(station.take_all("NEW")) == 2 * passes


def test_each_publication_is_judged_for_itself_though_their_headers_are_the_same(station):
    subscribe(station, "Body.n > 1 AND Root.MQMD.ReplyToQ = 'R'")
    station.subscribe_old("a")
    for number in (1, 2, 3):
        station.publish(PSC, b"<n>%d</n>" % number, reply_to_q="R")
    station.publish(PSC, b"<n>4</n>")
    assert [body[-8:] for body in station.bodies("NEW")] == [b"<n>2</n>", b"<n>3</n>"]
    assert len(station.bodies("OLD")) == 4


def test_publication_of_an_mqrfh_client_is_filtered_too(station):
    subscribe(station, "site = 'M1' AND Body.n = 1 AND Root.MQMD.Format = 'MQHRF'")
    station.publish("MQPSCommand Publish MQPSTopic a site M1", b"<n>1</n>")
    station.publish("MQPSCommand Publish MQPSTopic a site M2", b"<n>1</n>")
    station.publish("MQPSCommand Publish MQPSTopic a site M1", b"<n>2</n>")
    (copy,) = station.take_all("NEW")
    assert copy.body == station.mqrfh2(PSC, body=b"<n>1</n>")


def test_body_is_read_in_its_own_character_set(station):
    subscribe(station, "Body.n = 'ä'")
    text = "<?xml version='1.0' encoding='IBM500'?><n>ä</n>".encode("cp500")
    data = station.mqrfh2(PSC, next_ccsid=500) + text
    station.put(DEFAULT, MQRFH2, data)
    assert station.bodies("NEW") == [data]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"21.5",
        b"<n>1</n",
        b"<n>1</n><n>1</n>",
        b"\xff<n>1</n>",
        b"<!DOCTYPE n [<!ENTITY a 'aaaa'>]><n>&a;</n>",
        b"<n>" * 33 + b"</n>" * 33,
        b"<n>" + b"x" * 262_144 + b"</n>",
    ],
)
def test_publication_that_cannot_be_parsed_is_a_warning_and_reaches_the_others(station, body):
    subscribe(station, "Body.n = 1")
    station.subscribe_old("a")
    station.publish(PSC, body, report=2, reply_to_q="REPLY")
    (answer,) = station.bodies("REPLY")
    assert b"<pscr><Completion>warning</Completion><Response><Reason>2554</Reason></Response></pscr>" in answer
    assert (station.bodies("NEW"), len(station.bodies("OLD"))) == ([], 1)


def test_one_identity_gets_one_copy_whichever_of_its_filters_passes(station):
    subscribe(station, "Body.n = 1")
    subscribe(station, "Body.n < 3")
    for number in (1, 2, 3):
        station.publish(PSC, b"<n>%d</n>" % number)
    assert [body[-8:] for body in station.bodies("NEW")] == [b"<n>1</n>", b"<n>2</n>"]


def test_retained_publications_are_filtered_on_registration_and_on_request(station):
    for number in (1, 2):
        header = RETAINED.replace("<Topic>a<", f"<Topic>a/{number}<")
        station.publish(header, b"<n>%d</n>" % number)
    register = "<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a/#</Topic><Filter>Body.n = {}</Filter></psc>"
    station.control(register.format(2))
    assert [body[-8:] for body in station.bodies("NEW")] == [b"<n>2</n>"]
    station.control(register.format(3))
    station.bodies("REPLY")
    station.control(register.format(3).replace("RegSub", "ReqUpdate"))
    assert b"<Reason>3077</Reason>" in station.bodies("REPLY")[0]
    station.publish(RETAINED.replace("<Topic>a<", "<Topic>a/3<"), b"no XML")
    station.control(register.format(2).replace("RegSub", "ReqUpdate"))
    assert b"<Completion>warning</Completion><Response><Reason>2554</Reason>" in station.bodies("REPLY")[0]
    assert [body[-8:] for body in station.bodies("NEW")] == [b"<n>2</n>"]


def test_filter_survives_a_restart(station):
    subscribe(station, "Body.n = 1")
    station.restart()
    station.publish(PSC, b"<n>1</n>")
    station.publish(PSC, b"<n>2</n>")
    assert len(station.bodies("NEW")) == 1

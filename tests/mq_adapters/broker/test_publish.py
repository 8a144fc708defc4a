"""Publications: who gets them, with which bytes, and under which MQMD."""

import struct

import pytest

from mq_adapters.broker import deliveries
from mq_adapters.embedded import queue_administration
from mq_adapters.embedded.mqsc import subscriptions as mqsc_subscriptions

STREAM = "SAMPLE.BROKER.RESULTS.STREAM"
MQRFH = b"MQHRF   "
MQRFH2 = b"MQHRF2  "


def test_publication_without_changes_is_delivered_byte_for_byte_in_both_formats(station):
    station.subscribe_old("a/*")
    station.subscribe_new("a/#")
    station.publish("MQPSCommand Publish MQPSTopic a/b", b"21.5")
    assert station.bodies("OLD") == [station.mqrfh("MQPSCommand Publish MQPSTopic a/b", b"21.5")]
    station.take_all("NEW")
    header = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
    station.publish(header, b"22.5")
    assert station.bodies("NEW") == [station.mqrfh2(header, body=b"22.5")]


def test_mqrfh_publication_reaches_an_mqrfh2_subscriber_as_the_message_format_page_shows(station):
    station.subscribe_old("Sport/*", f"MQPSStreamName {STREAM}")
    station.subscribe_new("Sport/#")
    topic = "Sport/Soccer/State/LatestScore/Team1 Team2"
    station.publish(f'MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic "{topic}"', b"2:1")
    (copy,) = station.take_all("NEW")
    assert copy.descriptor.format == MQRFH2
    psc = f"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{topic}</Topic></psc>"
    assert copy.body == station.mqrfh2(psc, body=b"2:1")
    assert station.bodies("OLD") == []


def test_mqrfh2_publication_reaches_an_mqrfh_subscriber_with_its_topic_escaped(station):
    station.subscribe_old("100%%/*")
    header = "<psc><Command>Publish</Command><Topic>100%/a b</Topic></psc>"
    station.put("SYSTEM.BROKER.DEFAULT.STREAM", MQRFH2, station.mqrfh2(header, "<usr><x>1</x></usr>", body=b"\0\xff"))
    (copy,) = station.take_all("OLD")
    assert copy.descriptor.format == MQRFH
    assert copy.body == station.mqrfh('MQPSCommand Publish MQPSTopic "100%%/a b"', b"\0\xff")
    (_, _, delivery) = station.listener.copies[0]
    assert delivery.conversion
    assert [name for name, _ in delivery.dropped] == ["usr"]
    assert delivery.output_header + b"\0\xff" == copy.body


def test_other_folders_stay_for_an_mqrfh2_subscriber(station):
    station.subscribe_new("a")
    usr = "<usr><site dt='string'>M1</site></usr>"
    psc = "<psc><Command>Publish</Command><RegOpt>CorrelAsId</RegOpt><QName>P.Q</QName><Topic>a</Topic></psc>"
    data = station.mqrfh2(psc, usr, body=b"x")
    station.put("SYSTEM.BROKER.DEFAULT.STREAM", MQRFH2, data, correl_id=b"c" * 24)
    delivered = station.mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>", usr, body=b"x")
    assert station.bodies("NEW") == [delivered]


def test_what_is_the_publishers_own_is_hidden_and_reported(station):
    station.subscribe_old("a", "MQPSRegOpts Local")
    station.publish(
        "MQPSCommand Publish MQPSRegOpts Local MQPSPubOpts NoReg MQPSPubOpts RetainPub MQPSQMgrName QM9 MQPSQName P.Q "
        "MQPSStreamName SYSTEM.BROKER.DEFAULT.STREAM MQPSTopic a MQPSPubTime 2026112012000000 MQPSStringData hi own 1",
        b"x",
    )
    expected = (
        "MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a MQPSPubTime 2026112012000000 MQPSStringData hi own 1"
    )
    assert station.bodies("OLD") == [station.mqrfh(expected, b"x")]
    names = [name for name, _ in station.listener.copies[0][2].dropped]
    assert names == ["MQPSRegOpts", "MQPSPubOpts", "MQPSQMgrName", "MQPSQName", "MQPSStreamName"]


def test_decimal_options_lose_no_reg_and_keep_the_rest(station):
    station.subscribe_old("a")
    station.publish("MQPSCommand Publish MQPSPubOpts 10 MQPSTopic a")
    assert station.bodies("OLD") == [station.mqrfh("MQPSCommand Publish MQPSPubOpts 2 MQPSTopic a")]


def test_direct_requests_show_where_the_publisher_is(station):
    station.subscribe_old("a")
    station.publish("MQPSCommand Publish MQPSRegOpts DirectReq MQPSQMgrName QM9 MQPSQName P.Q MQPSTopic a")
    expected = "MQPSCommand Publish MQPSQMgrName QM9 MQPSQName P.Q MQPSTopic a"
    assert station.bodies("OLD") == [station.mqrfh(expected)]


def test_direct_requests_show_the_reply_queue_of_a_publisher_who_names_none(station):
    station.subscribe_old("a")
    station.subscribe_new("a")
    for queue_name in ("P.1", "P.2"):
        header = "MQPSCommand Publish MQPSRegOpts DirectReq MQPSTopic a"
        station.publish(header, reply_to_q=queue_name, reply_to_q_mgr="QM9")
    expected = "MQPSCommand Publish MQPSQName {} MQPSQMgrName QM9 MQPSTopic a"
    assert station.bodies("OLD") == [station.mqrfh(expected.format(name)) for name in ("P.1", "P.2")]
    psc = "<psc><Command>Publish</Command><QName>{}</QName><QMgrName>QM9</QMgrName><Topic>a</Topic></psc>"
    assert station.bodies("NEW") == [station.mqrfh2(psc.format(name)) for name in ("P.1", "P.2")]
    station.publish("MQPSCommand Publish MQPSRegOpts DirectReq MQPSTopic a")
    assert station.listener.refusals == [("Publish", 3076)]


def test_mqrfh_publication_with_local_reaches_subscriptions_with_local_alone(station):
    station.subscribe_old("a")
    station.subscribe_new("a", "<RegOpt>Local</RegOpt>")
    station.publish("MQPSCommand Publish MQPSRegOpts Local MQPSTopic a")
    assert (len(station.take_all("OLD")), len(station.take_all("NEW"))) == (0, 1)
    station.publish("<psc><Command>Publish</Command><PubOpt>Local</PubOpt><Topic>a</Topic></psc>")
    assert (len(station.take_all("OLD")), len(station.take_all("NEW"))) == (1, 1)


def test_user_data_of_the_subscription_come_with_each_publication(station):
    station.control(
        "MQPSCommand RegSub MQPSQName OLD MQPSTopic a MQPSSubUserData 'x MQPSSubName n".replace("'x", '"x y"')
    )
    station.control(
        "<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a</Topic><SubUserData>1 &lt; 2</SubUserData></psc>"
    )
    station.publish("MQPSCommand Publish MQPSTopic a MQPSSeqNum 7", b"x")
    expected = 'MQPSCommand Publish MQPSTopic a MQPSSeqNum 7 MQPSSubUserData "x y"'
    assert station.bodies("OLD") == [station.mqrfh(expected, b"x")]
    psc = "<psc><Command>Publish</Command><Topic>a</Topic><SeqNum>7</SeqNum><SubUserData>1 &lt; 2</SubUserData></psc>"
    assert station.bodies("NEW") == [station.mqrfh2(psc, body=b"x")]


def test_publisher_cannot_speak_for_the_broker(station):
    station.subscribe_new("a")
    psc = "<psc><Command>Publish</Command><Topic>a</Topic><SubPoint>p</SubPoint><SubUserData>u</SubUserData></psc>"
    station.publish(psc)
    assert station.bodies("NEW") == [station.mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>")]
    assert [name for name, _ in station.listener.copies[0][2].dropped] == ["SubPoint", "SubUserData"]


@pytest.mark.parametrize("published", ["", f"MQPSStreamName {STREAM} "])
def test_stream_name_is_delivered_with_incl_stream_name(station, published):
    station.subscribe_old("a", f"MQPSRegOpts InclStreamName MQPSStreamName {STREAM}")
    station.publish(f"MQPSCommand Publish {published}MQPSTopic a", queue_name=STREAM)
    assert station.bodies("OLD") == [station.mqrfh(f"MQPSCommand Publish MQPSStreamName {STREAM} MQPSTopic a")]


def test_inherited_character_set_becomes_a_number_on_delivery(station):
    station.subscribe_new("a")
    psc = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    station.put("SYSTEM.BROKER.DEFAULT.STREAM", MQRFH2, station.mqrfh2(psc, next_ccsid=-2), coded_char_set_id=819)
    assert station.bodies("NEW") == [station.mqrfh2(psc, next_ccsid=819)]


def test_big_endian_headers_stay_big_endian_through_conversion(station):
    station.subscribe_new("a/#")
    data = station.mqrfh("MQPSCommand Publish MQPSTopic a/b", b"x", order=">")
    for _ in range(2):
        station.put("SYSTEM.BROKER.DEFAULT.STREAM", MQRFH, data, encoding=273)
    psc = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
    copies = station.take_all("NEW")
    assert [copy.body for copy in copies] == [station.mqrfh2(psc, body=b"x", order=">")] * 2
    assert {copy.descriptor.encoding for copy in copies} == {273}


def test_pscr_folder_in_a_publication_is_ignored(station):
    station.subscribe_old("a")
    psc = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    data = station.mqrfh2("<pscr><Completion>ok</Completion></pscr>", psc, body=b"x")
    station.put("SYSTEM.BROKER.DEFAULT.STREAM", MQRFH2, data)
    assert station.bodies("OLD") == [station.mqrfh("MQPSCommand Publish MQPSTopic a", b"x")]


@pytest.mark.parametrize("is_retained", [False, True])
def test_publisher_cannot_mark_a_publication_as_retained(station, is_retained):
    option = "MQPSPubOpts RetainPub " if is_retained else ""
    station.subscribe_old("a", "MQPSRegOpts Anon")
    station.publish(f"MQPSCommand Publish MQPSRegOpts Anon {option}MQPSPubOpts IsRetainedPub MQPSTopic a")
    assert station.bodies("OLD") == [station.mqrfh(f"MQPSCommand Publish {option}MQPSTopic a")]


def test_descriptor_of_a_copy_is_as_the_broker_manual_says(station):
    station.subscribe_old(
        "a",
        "MQPSRegOpts CorrelAsId",
        correl_id=b"S" * 24,
        user_identifier="ann",
        accounting_token=b"acct",
        appl_identity_data="panel",
    )
    published = station.publish(
        "MQPSCommand Publish MQPSTopic a",
        b"x",
        origin=b"exchange",
        priority=7,
        expiry=600,
        report=2,
        reply_to_q="REPLY",
        correl_id=b"P" * 24,
        user_identifier="bob",
        appl_origin_data="abcd",
    )
    (copy,) = station.take_all("OLD")
    descriptor = copy.descriptor
    assert (descriptor.report, descriptor.msg_type, descriptor.expiry, descriptor.priority) == (0, 8, 600, 7)
    assert (descriptor.persistence, descriptor.correl_id, descriptor.reply_to_q) == (1, b"S" * 24, "")
    assert (descriptor.reply_to_q_mgr, descriptor.put_appl_type, descriptor.put_appl_name) == ("QM1", 26, "QM1")
    assert (descriptor.user_identifier, descriptor.accounting_token) == ("ann", b"acct")
    assert (descriptor.appl_identity_data, descriptor.appl_origin_data) == ("panel", "")
    assert copy.msg_id != published.msg_id
    assert copy.origin == b"exchange"


def test_correl_id_without_correl_as_id_is_not_zero_and_stays_the_same(station):
    station.subscribe_old("a")
    station.publish("MQPSCommand Publish MQPSTopic a", b"1")
    station.publish("MQPSCommand Publish MQPSTopic a", b"2", priority=3)
    correl_ids = {copy.descriptor.correl_id for copy in station.take_all("OLD")}
    assert len(correl_ids) == 1
    assert correl_ids != {bytes(24)}


@pytest.mark.parametrize(
    ("option", "published", "delivered"),
    [("", 0, 0), ("", 1, 1), ("NonPers", 1, 0), ("Pers", 0, 1), ("PersAsPub", 0, 0), ("PersAsQueue", 0, 1)],
)
def test_persistence_follows_the_subscription(station, option, published, delivered):
    station.subscribe_new("a", f"<RegOpt>{option}</RegOpt>" if option else "")
    station.publish("<psc><Command>Publish</Command><Topic>a</Topic></psc>", persistence=published)
    assert [copy.descriptor.persistence for copy in station.take_all("NEW")] == [delivered]


def test_a_copy_tells_the_persistence_that_its_queue_was_defined_with(station):
    """1: not persistent, 2: persistent; 0: the subscription does not leave it to the queue."""
    station.subscribe_new("a", "<RegOpt>PersAsQueue</RegOpt>")
    station.subscribe_old("a")
    queue = station.engine.queue("NEW")
    for default in ("NO", "YES"):
        queue_administration.alter(station.engine, queue.definition.altered({"DEFPSIST": default}))
        station.publish("<psc><Command>Publish</Command><Topic>a</Topic></psc>", persistence=0)
    told = [(each.queue_name, each.default_persistence) for _, _, each in station.listener.copies]
    assert sorted(told) == [("NEW", 1), ("NEW", 2), ("OLD", 0), ("OLD", 0)]
    assert [copy.descriptor.persistence for copy in station.take_all("NEW")] == [0, 1]


def test_schemes_are_those_of_the_subscribers_format(station):
    station.subscribe_old("a/?/*")
    station.subscribe_new("a/+/c")
    station.publish("MQPSCommand Publish MQPSTopic a/b/c", b"1")
    station.publish("MQPSCommand Publish MQPSTopic a/bb/c", b"2")
    station.publish("MQPSCommand Publish MQPSTopic a/b/d", b"3")
    assert [body[-1:] for body in station.bodies("OLD")] == [b"1", b"3"]
    assert [body[-1:] for body in station.bodies("NEW")] == [b"1", b"2"]


def test_streams_are_separate_topic_spaces(station):
    station.subscribe_old("*", f"MQPSStreamName {STREAM}")
    station.subscribe_new("#")
    station.publish("MQPSCommand Publish MQPSTopic a", b"default")
    station.publish(f"MQPSCommand Publish MQPSStreamName {STREAM} MQPSTopic a", b"sample", queue_name=STREAM)
    assert [body[-6:] for body in station.bodies("OLD")] == [b"sample"]
    assert [body[-7:] for body in station.bodies("NEW")] == [b"default"]


def test_overlapping_subscriptions_give_one_copy_and_one_more_for_dups_ok(station):
    station.subscribe_new("a/#")
    station.subscribe_new("a/b")
    station.publish("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
    assert len(station.take_all("NEW")) == 1
    station.subscribe_new("a/b", "<RegOpt>DupsOK</RegOpt>")
    station.subscribe_new("a/#", "<RegOpt>DupsOK</RegOpt>")
    station.publish("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
    assert len(station.take_all("NEW")) == 2


def test_subscribers_on_one_queue_are_told_apart_by_their_correl_id(station):
    for correl_id in (b"1" * 24, b"2" * 24):
        station.subscribe_new("a", "<RegOpt>CorrelAsId</RegOpt>", correl_id=correl_id)
    station.publish("<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    assert [copy.descriptor.correl_id for copy in station.take_all("NEW")] == [b"1" * 24, b"2" * 24]


def test_publication_on_several_topics_is_one_copy_with_all_of_them(station):
    station.subscribe_old("t1")
    station.subscribe_new("t2")
    station.publish("MQPSCommand Publish MQPSTopic t1 MQPSTopic t2", b"x")
    assert station.bodies("OLD") == [station.mqrfh("MQPSCommand Publish MQPSTopic t1 MQPSTopic t2", b"x")]
    psc = "<psc><Command>Publish</Command><Topic>t1</Topic><Topic>t2</Topic></psc>"
    assert station.bodies("NEW") == [station.mqrfh2(psc, body=b"x")]
    assert station.listener.copies[0][2].topics == ("t1", "t2")


def test_other_subs_only_leaves_out_the_publisher(station):
    station.subscribe_old("a")
    station.subscribe_new("a")
    station.publish("MQPSCommand Publish MQPSPubOpts OtherSubsOnly MQPSTopic a", reply_to_q="OLD")
    assert (len(station.take_all("OLD")), len(station.take_all("NEW"))) == (0, 1)
    station.publish("MQPSCommand Publish MQPSPubOpts OtherSubsOnly MQPSTopic a", reply_to_q="REPLY")
    assert (len(station.take_all("OLD")), len(station.take_all("NEW"))) == (1, 1)


def test_a_change_of_subscriptions_counts_for_the_next_publication(station):
    header = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    station.publish(header)
    station.subscribe_new("a")
    station.publish(header)
    station.control("<psc><Command>DeregSub</Command><QName>NEW</QName><Topic>a</Topic></psc>")
    station.publish(header)
    assert len(station.take_all("NEW")) == 1


def test_subscription_ends_with_the_expiry_of_its_command(station):
    station.subscribe_new("a", expiry=100)
    header = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    station.publish(header)
    station.pass_time(9.9)
    station.publish(header)
    station.pass_time(0.1)
    station.publish(header)
    assert len(station.take_all("NEW")) == 2
    station.broker.tend()
    station.control("<psc><Command>DeregSub</Command><QName>NEW</QName><Topic>a</Topic></psc>")
    assert station.listener.refusals == [("DeregSub", 3073)]


@pytest.mark.parametrize("format", ["MQRFH", "MQRFH2"])
def test_expired_subscription_is_gone_for_everybody_before_anybody_sweeps(station, format):
    def send(verb, name="", **fields):
        if format == "MQRFH2":
            named = f"<SubName>{name}</SubName>" if name else ""
            station.control(f"<psc><Command>{verb}</Command><QName>OLD</QName><Topic>a</Topic>{named}</psc>", **fields)
        else:
            named = f" MQPSSubName {name}" if name else ""
            station.control(f"MQPSCommand {verb} MQPSQName OLD MQPSTopic a{named}", **fields)
        return [code for _, code in station.listener.refusals]

    assert send("RegSub", "n", expiry=100, user_identifier="ann") == []
    station.publish("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a", b"1")
    assert len(station.take_all("OLD")) == 1
    assert [row.name for row in mqsc_subscriptions.rows(station.engine)] == ["n"]
    station.pass_time(10)
    assert mqsc_subscriptions.rows(station.engine) == []
    station.publish("MQPSCommand Publish MQPSTopic a", b"2")
    assert station.take_all("OLD") == []
    assert send("ReqUpdate", user_identifier="bob") == [3073]
    assert send("DeregSub", user_identifier="bob") == [3073, 3073]
    other = "MQPSCommand RegSub MQPSQName NEW MQPSTopic b MQPSSubName n"
    station.control(other, user_identifier="bob")
    assert send("RegSub", user_identifier="bob") == [3073, 3073]
    assert len(station.take_all("OLD")) == 1
    assert [row.name for row in mqsc_subscriptions.rows(station.engine)] == ["QM1:OLD", "n"]
    station.restart()
    assert send("DeregSub", user_identifier="bob") == [3073, 3073]


def test_headers_of_a_chain_with_the_same_beginning_are_told_apart(station):
    station.subscribe_new("#")
    psc = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    first = station.mqrfh2(psc).replace(b"MQSTR   ", MQRFH2)
    bodies = [first + station.mqrfh2(f"<usr><n>{n}</n></usr>", body=b"x") for n in (1, 2, 1)]
    for body in bodies:
        station.put("SYSTEM.BROKER.DEFAULT.STREAM", MQRFH2, body)
    assert station.bodies("NEW") == bodies
    assert [len(delivery.input_header) for _, _, delivery in station.listener.copies] == [len(bodies[0]) - 1] * 3


def test_waiting_publications_are_carried_out_when_the_broker_comes(station, tmp_path):
    station.subscribe_new("a")
    station.engine.queue("SYSTEM.BROKER.DEFAULT.STREAM").handler = None
    header = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    station.publish(header, b"1", expiry=100)
    station.pass_time(4)
    station.restart()
    (copy,) = station.take_all("NEW")
    assert copy.body == station.mqrfh2(header, body=b"1")
    assert copy.descriptor.expiry == 60
    assert station.engine.queue("SYSTEM.BROKER.DEFAULT.STREAM").depth == 0


def test_full_subscriber_queue_sends_its_copy_to_the_dead_letter_queue(station):
    station.subscribe_old("a")
    station.subscribe_new("a")
    header = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    station.publish(header, b"x")
    (copy,) = station.take_all("OLD")
    station.engine.queue("OLD").maximum_depth = 0
    station.publish(header, b"x")
    assert len(station.take_all("NEW")) == 2
    (dead,) = station.take_all("SYSTEM.DEAD.LETTER.QUEUE")
    assert dead.descriptor.format == b"MQDEAD  "
    assert dead.body[:8] == b"DLH " + struct.pack("<i", 1)
    assert struct.unpack_from("<i48s48sii8si28s8s8s", dead.body, 8) == (
        2053,
        b"OLD".ljust(48),
        b"QM1".ljust(48),
        546,
        1208,
        MQRFH,
        26,
        b"QM1".ljust(28),
        b"20270115",
        b"08000000",
    )
    assert (dead.body[172:], dead.descriptor.correl_id) == (copy.body, copy.descriptor.correl_id)
    assert [(name, code) for _, name, code in station.listener.dead_letters] == [("OLD", 2053)]


def test_header_that_the_other_format_cannot_say_goes_to_the_dead_letter_queue(station):
    station.subscribe_old("#*")
    header = "<psc><Command>Publish</Command><Topic>#Ω</Topic></psc>"
    station.put("SYSTEM.BROKER.DEFAULT.STREAM", MQRFH2, station.mqrfh2(header), coded_char_set_id=819)
    assert station.bodies("OLD") == []
    assert [(name, code) for _, name, code in station.listener.dead_letters] == [("OLD", 2119)]


def test_descriptors_and_deliveries_are_shared_by_publications_with_the_same_header(station):
    station.subscribe_new("a")
    header = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    station.publish(header, b"1")
    station.subscribe_new("elsewhere")
    station.publish(header, b"2")
    (_, first, first_delivery), (_, second, second_delivery) = station.listener.copies
    assert first.descriptor is second.descriptor
    assert first_delivery is second_delivery
    assert (first.body[-1:], second.body[-1:]) == (b"1", b"2")


def test_a_new_subscriber_leaves_the_deliveries_to_the_others_as_they_were(station):
    header = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    for queue in ("OLD", "NEW"):
        station.control(f"<psc><Command>RegSub</Command><QName>{queue}</QName><Topic>a</Topic></psc>")
    station.publish(header)
    station.control("<psc><Command>RegSub</Command><QName>REPLY</QName><Topic>a</Topic></psc>")
    station.control("<psc><Command>DeregSub</Command><QName>OLD</QName><Topic>a</Topic></psc>")
    station.publish(header)
    _, before, after, new = (delivery for _, _, delivery in station.listener.copies)
    assert after is before
    assert (after.queue_name, new.queue_name) == ("NEW", "REPLY")


def test_subscribers_who_want_the_same_header_have_it_decided_once(station, monkeypatch):
    decided = []
    wanted_by = deliveries._wanted_by
    monkeypatch.setattr(deliveries, "_wanted_by", lambda *args: decided.append(args) or wanted_by(*args))
    for number in range(1, 31):
        station.subscribe_new("a", "<RegOpt>CorrelAsId</RegOpt>", correl_id=bytes([number]) * 24)
    decided.clear()
    station.publish("<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    assert (len(station.take_all("NEW")), len(decided)) == (30, 1)


def test_neighbours_who_want_different_copies_get_their_own(station):
    """In the order of registration, each with a header or a persistence of its own."""
    user_data, persistent = "<SubUserData>mine</SubUserData>", "<RegOpt>Pers</RegOpt>"
    for number, differs in enumerate(("", persistent, user_data, "", "")):
        station.subscribe_new("a", f"<RegOpt>CorrelAsId</RegOpt>{differs}", correl_id=bytes([number + 1]) * 24)
    station.control("MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSQName NEW MQPSTopic a", correl_id=b"6" * 24)
    station.publish("<psc><Command>Publish</Command><Topic>a</Topic></psc>", persistence=0)
    copies = station.take_all("NEW")
    assert [copy.descriptor.persistence for copy in copies] == [0, 1, 0, 0, 0, 0]
    assert [b"mine" in copy.body for copy in copies] == [False, False, True, False, False, False]
    assert [copy.descriptor.format for copy in copies] == [MQRFH2] * 5 + [MQRFH]
    assert [copy.descriptor.correl_id[:1] for copy in copies] == [b"\1", b"\2", b"\3", b"\4", b"\5", b"6"]


def test_subscriber_queue_that_comes_late_is_served_from_then_on(station):
    station.subscribe_new("a")
    header = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    queue = station.engine._queues.pop("NEW")
    station.publish(header, b"1")
    assert [(name, code) for _, name, code in station.listener.dead_letters] == [("NEW", 2085)]
    station.engine._queues["NEW"] = queue
    station.publish(header, b"2")
    assert station.bodies("NEW") == [station.mqrfh2(header, body=b"2")]


def test_a_publishers_own_name_stands_in_psc_and_is_not_converted(station):
    """IBM's JMS client (provider version 6, BROKERVER V2) writes UNIQUE_CONNECTION_ID behind the topic."""
    station.subscribe_new("a")
    station.subscribe_old("a")
    own = "<UNIQUE_CONNECTION_ID>414D51</UNIQUE_CONNECTION_ID>"
    header = f"<psc><Command>Publish</Command><Topic>a</Topic>{own}</psc>"
    station.publish(header, b"x")
    assert station.bodies("NEW") == [station.mqrfh2(header, body=b"x")]
    assert station.bodies("OLD") == [station.mqrfh("MQPSCommand Publish MQPSTopic a", b"x")]
    (delivery,) = [copy for _, _, copy in station.listener.copies if copy.queue_name == "OLD"]
    assert [name for name, _ in delivery.dropped] == ["UNIQUE_CONNECTION_ID"]

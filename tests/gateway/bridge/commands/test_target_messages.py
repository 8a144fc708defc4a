"""Commands for a target: headers typed by hand from IBM's layouts, and the MQMD in front of them."""

from functools import partial

import pytest

import tests.headers
from gateway.bridge.commands.target_messages import (
    TargetMessage,
    UserNotExpressible,
    deletion,
    deregistration,
    own_message_identifier,
    publication,
    registration,
)
from gateway.config import RouteSettings, TargetSettings
from gateway.config.routes import Route, route_of
from mq_adapters.message import MQMT_DATAGRAM, MQMT_REQUEST, MQRO_NAN

mqrfh = partial(tests.headers.mqrfh, format=tests.headers.NO_FORMAT)
mqrfh2 = partial(tests.headers.mqrfh2, format=tests.headers.NO_FORMAT)

MSG_ID, CORREL_ID = b"M" * 24, b"C" * 24
USR = "<usr><rfhbQos dt='i4'>1</rfhbQos><rfhbClient>pump-1</rfhbClient><rfhbSeq dt='i8'>7</rfhbSeq></usr>"


def to(header: str, *, stream: str = "SYSTEM.BROKER.DEFAULT.STREAM", **settings: object) -> Route:
    target = TargetSettings.model_validate({"name": "QM1", "header": header, **settings})
    return route_of(RouteSettings(target="QM1", stream=stream), target)


def published(route: Route, **changes: object) -> TargetMessage:
    said: dict[str, object] = {
        "topic": "a/b",
        "qos": 1,
        "retain": False,
        "client": "pump-1",
        "user": None,
        "sequence": 7,
        "msg_id": MSG_ID,
    }
    return publication(route, **{**said, **changes})  # type: ignore[arg-type]  # passed on as they came


def test_a_publish_in_mqrfh2_has_its_carrier_in_folder_usr() -> None:
    psc = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
    assert published(to("mqrfh2")).header == mqrfh2(psc, USR)


def test_a_publish_in_mqrfh_has_its_carrier_in_pairs_of_its_own() -> None:
    carrier = "rfhbQos 2 rfhbClient pump-1 rfhbSeq 7"
    assert published(to("mqrfh"), qos=2, retain=True).header == mqrfh(
        f"MQPSCommand Publish MQPSPubOpts RetainPub MQPSPubOpts NoReg MQPSTopic a/b {carrier}"
    )


def test_in_mqrfh_a_stream_that_is_a_queue_is_named() -> None:
    made = published(to("mqrfh", stream="SPORT"))
    assert made.queue == "SPORT"
    assert b"MQPSPubOpts NoReg MQPSStreamName SPORT MQPSTopic a/b " in made.header


def test_a_stream_that_is_a_prefix_stands_in_the_topic() -> None:
    made = published(to("mqrfh2", stream="SPORT", streams="message_broker"))
    assert made.queue == "SYSTEM.BROKER.DEFAULT.STREAM"
    assert b"<Topic>$SYS/STREAM/SPORT/a/b</Topic>" in made.header


@pytest.mark.parametrize(("qos", "persistence"), [(0, 0), (1, 1), (2, 1)])
def test_the_mqmd_of_a_publish_asks_for_negative_notification_on_the_targets_reply_queue(
    qos: int, persistence: int
) -> None:
    descriptor = published(to("mqrfh2", reply_queue="OUR.REPLY"), qos=qos).descriptor
    assert (descriptor.msg_type, descriptor.report, descriptor.persistence) == (MQMT_DATAGRAM, MQRO_NAN, persistence)
    assert (descriptor.reply_to_q, descriptor.reply_to_q_mgr) == ("OUR.REPLY", "")
    assert (descriptor.msg_id, descriptor.correl_id) == (MSG_ID, bytes(24))
    assert (descriptor.expiry, descriptor.priority, descriptor.format) == (-1, 0, b"MQHRF2  ")


def test_a_user_goes_into_the_carrier_where_the_target_takes_no_identity() -> None:
    made = published(to("mqrfh2"), user="anna<longer-than-12>")
    assert made.descriptor.user_identifier == ""
    assert b"</rfhbSeq><rfhbUser>anna&lt;longer-than-12&gt;</rfhbUser></usr>" in made.header


def test_a_user_of_at_most_12_characters_is_the_user_identifier() -> None:
    made = published(to("mqrfh2", set_identity=True), user="twelve-chars")
    assert made.descriptor.user_identifier == "twelve-chars"
    assert b"rfhbUser" not in made.header


def test_a_longer_user_is_mapped_and_never_cut() -> None:
    route = to("mqrfh2", set_identity=True, users={"thirteen-char": "THIRTEEN"})
    assert published(route, user="thirteen-char").descriptor.user_identifier == "THIRTEEN"
    with pytest.raises(UserNotExpressible, match="fourteen-chars"):
        published(route, user="fourteen-chars")


@pytest.mark.parametrize("user", ["", "bob ", " bob", "b\tob", "Jürg"])
def test_a_user_that_an_mqmd_would_confuse_with_another_is_refused(user: str) -> None:
    """Blanks are padding there: `bob ` would be bob."""
    with pytest.raises(UserNotExpressible):
        published(to("mqrfh2", set_identity=True), user=user)


def test_nobody_in_particular_publishes_as_the_gateways_own_user() -> None:
    assert published(to("mqrfh2", set_identity=True)).descriptor.user_identifier == ""


def test_a_client_identifier_that_no_folder_can_hold_is_left_out() -> None:
    made = published(to("mqrfh2"), client="a\x01")
    assert b"<usr><rfhbQos dt='i4'>1</rfhbQos><rfhbSeq dt='i8'>7</rfhbSeq></usr>" in made.header


def test_a_deletion_names_a_pattern_and_carries_nothing() -> None:
    made = deletion(to("mqrfh", stream="S"), topic="a*", msg_id=MSG_ID)
    assert made.header == mqrfh("MQPSCommand DeletePub MQPSStreamName S MQPSTopic a%*")
    assert (made.queue, made.descriptor.persistence, made.descriptor.report) == ("S", 1, MQRO_NAN)
    made = deletion(to("mqrfh2"), topic="a*", msg_id=MSG_ID)
    assert made.header == mqrfh2("<psc><Command>DeletePub</Command><Topic>a*</Topic></psc>")


def test_a_registration_names_queue_and_queue_manager_and_is_known_by_its_correl_id() -> None:
    destination = to("mqrfh2", subscriber_queue="OUR.SUBS", queue_manager="QM1").destination
    made = registration(destination, patterns=("a/+",), correl_id=CORREL_ID, msg_id=MSG_ID)
    assert made.header == mqrfh2(
        "<psc><Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>InformIfRet</RegOpt>"
        "<QName>OUR.SUBS</QName><QMgrName>QM1</QMgrName><Topic>a/+</Topic></psc>"
    )
    descriptor = made.descriptor
    assert made.queue == "SYSTEM.BROKER.CONTROL.QUEUE"
    assert (descriptor.msg_type, descriptor.report, descriptor.correl_id) == (MQMT_REQUEST, 0, CORREL_ID)
    assert (descriptor.persistence, descriptor.expiry, descriptor.user_identifier) == (1, -1, "")


def test_a_registration_at_whichever_queue_manager_answers_names_none() -> None:
    destination = to("mqrfh", stream="S").destination
    made = registration(destination, patterns=("a", "a/*"), correl_id=CORREL_ID, msg_id=MSG_ID)
    assert made.header == mqrfh(
        "MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSRegOpts InformIfRet MQPSStreamName S"
        " MQPSQName RFHBRIDGE.SUBSCRIBER MQPSTopic a MQPSTopic a/*"
    )


def test_a_registration_that_no_subscribe_asked_for_brings_nothing_retained() -> None:
    destination = to("mqrfh2").destination
    made = registration(destination, patterns=("a",), correl_id=CORREL_ID, msg_id=MSG_ID, anew=True)
    assert b"<RegOpt>NewPubsOnly</RegOpt>" in made.header


def test_a_deregistration_is_a_datagram_that_only_a_refusal_answers() -> None:
    destination = to("mqrfh2").destination
    made = deregistration(destination, patterns=("a/+",), correl_id=CORREL_ID, msg_id=MSG_ID)
    assert made.header == mqrfh2(
        "<psc><Command>DeregSub</Command><RegOpt>CorrelAsId</RegOpt><QName>RFHBRIDGE.SUBSCRIBER</QName>"
        "<Topic>a/+</Topic></psc>"
    )
    assert (made.descriptor.msg_type, made.descriptor.report, made.descriptor.persistence) == (8, MQRO_NAN, 1)
    made = deregistration(destination, patterns=(), correl_id=CORREL_ID, msg_id=MSG_ID)
    assert b"<RegOpt>CorrelAsId</RegOpt><RegOpt>DeregAll</RegOpt>" in made.header
    assert b"<Topic>" not in made.header


def test_message_identifiers_differ_in_gateway_session_client_command_and_sequence() -> None:
    said: dict[str, object] = {"epoch": 1, "client": "a", "verb": "Publish", "sequence": 1}
    others = [{"epoch": 2}, {"client": "b"}, {"verb": "DeletePub"}, {"sequence": 2}]
    made = [own_message_identifier(b"gateway", **{**said, **other}) for other in ({}, *others)]  # type: ignore[arg-type]
    made.append(own_message_identifier(b"another", epoch=1, client="a", verb="Publish", sequence=1))
    assert len(set(made)) == len(made)
    assert {(identifier[:4], len(identifier)) for identifier in made} == {(b"RFHB", 24)}

"""Properties of MQ and JMS applications as user properties of MQTT 5, and back; packets, folders are typed by hand."""

import pytest

from gateway.bridge.single_properties import single_properties
from mappings.commands.command import Dialect
from tests.gateway.bridge.audited import assert_every_conversion_is_as_the_audit_predicts, records
from tests.gateway.bridge.conftest import NewWorld, World, written
from tests.gateway.bridge.remote import Remote, headers
from tests.gateway.bridge.test_deliveries_from_targets import configured
from tests.gateway.bridge.test_level_5_sessions import connect
from tests.gateway.bridge.test_level_5_subscriptions import subscribed
from tests.gateway.bridge.test_properties import PSC, application_put, header_at_broker, remotes
from tests.gateway.bridge.test_target_messages import mqrfh, mqrfh2

__all__ = ["remotes"]

#: As JMS writes them: text, number, boolean, bytes; and one that the gateway carries too.
JMS = (
    "<usr><colour>red</colour><weight dt='i4'>7</weight><ready dt='boolean'>1</ready><key dt='bin.hex'>0AFF</key>"
    "<empty></empty></usr>"
)
AS_USER_PROPERTIES = (
    "26 0006 'colour' 0003 'red' 26 0006 'weight' 0001 '7' 26 0005 'ready' 0004 'true'"
    " 26 0003 'key' 0004 '0AFF' 26 0005 'empty' 0000"
)


def dropped(world: World, kind: str) -> list[str]:
    """Names that the last record of a kind with a conversion tells as left out."""
    told = [each for each in records(world) if each["kind"] == kind and each.get("conversion")]
    return [name for name, _ in told[-1].get("dropped_fields", ())]


def test_an_applications_properties_become_user_properties(world: World) -> None:
    link = subscribed(world, "01")
    application_put(world, mqrfh2(PSC, JMS) + b"X")
    assert link.taken() == written(f"32 47 0003 'a/b' 0001 3E {AS_USER_PROPERTIES} 'X'")
    assert dropped(world, "delivered") == []
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_the_gateways_json_comes_first_and_its_names_count_once(world: World) -> None:
    link = subscribed(world, "01")
    usr = '<usr><b>2</b><a>1</a><a>other</a><rfhbUserProps>[["a","1"],["a","0"]]</rfhbUserProps></usr>'
    application_put(world, mqrfh2(PSC, usr) + b"X")
    user_properties = "26 0001 'a' 0001 '1' 26 0001 'a' 0001 '0' 26 0001 'b' 0001 '2'"
    assert link.taken() == written(f"32 1E 0003 'a/b' 0001 15 {user_properties} 'X'")
    assert dropped(world, "delivered") == ["a"], "its second value in the folder is not in the JSON"
    assert_every_conversion_is_as_the_audit_predicts(world)


@pytest.mark.parametrize(
    "element",
    [
        "<x xsi:nil='true'></x>",
        "<x><y>1</y></x>",
        "<rfhbNew>1</rfhbNew>",
        "<x>a\nb</x>",
        f"<x>{'v' * 65_536}</x>",
        f"<x>{'&amp;' * 65_536}</x>",
        f"<{'x' * 65_536}>1</{'x' * 65_536}>",
    ],
    ids=lambda element: element[:24],
)
def test_what_mqtt_has_no_place_for_is_told_and_the_rest_delivered(world: World, element: str) -> None:
    link = subscribed(world, "01")
    application_put(world, mqrfh2(PSC, f"<usr>{element}<k>v</k></usr>") + b"X")
    assert link.taken() == written("32 10 0003 'a/b' 0001 07 26 0001 'k' 0001 'v' 'X'")
    assert dropped(world, "delivered") == [element[1:].partition(">")[0].partition(" ")[0]]
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_there_are_no_more_user_properties_than_a_client_may_send(world: World) -> None:
    link = subscribed(world, "01")
    application_put(world, mqrfh2(PSC, f"<usr>{'<n>1</n>' * 1_002}</usr>") + b"X")
    assert link.taken().count(b"&\0\x01n\0\x011") == 1_000
    assert dropped(world, "delivered") == ["n", "n"]
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_pairs_of_an_mqrfh_become_user_properties(new_world: NewWorld) -> None:
    world = new_world(dialect=Dialect.MQRFH)
    link = subscribed(world, "01")
    header = mqrfh("MQPSCommand Publish MQPSTopic a/b unit bar MQPSSeqNum 7")
    application_put(world, header + b"X", format=b"MQHRF   ")
    assert link.taken() == written("32 15 0003 'a/b' 0001 0C 26 0004 'unit' 0003 'bar' 'X'")
    assert dropped(world, "delivered") == ["MQPSSeqNum"]
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_a_client_before_mqtt_5_is_sent_none_and_the_audit_hears_of_it(world: World) -> None:
    link = world.connect("old ")
    world.receive(link, "82 08 0001 0003 'a/#' 01")
    link.taken()
    application_put(world, mqrfh2(PSC, "<mcd><Msd>jms_text</Msd></mcd>", JMS) + b"X")
    assert link.taken() == written("32 08 0003 'a/b' 0001 'X'")
    assert dropped(world, "delivered") == ["mcd", "colour", "weight", "ready", "key", "empty"]
    assert_every_conversion_is_as_the_audit_predicts(world)


#: PUBLISH of level 5 to a/b with payload X and user properties unit=bar, a=1, a=2, x.y=3, JMSType=4, not=5.
PUBLISH = (
    "32 42 0003 'a/b' 0001 39 26 0004 'unit' 0003 'bar' 26 0001 'a' 0001 '1' 26 0001 'a' 0001 '2'"
    " 26 0003 'x.y' 0001 '3' 26 0007 'JMSType' 0001 '4' 26 0003 'not' 0001 '5' 'X'"
)
JSON = '[["unit","bar"],["a","1"],["a","2"],["x.y","3"],["JMSType","4"],["not","5"]]'
NAMELESS = ["a", "x.y", "JMSType", "not"]


def test_each_user_property_has_a_name_of_its_own_where_the_configuration_says_so(new_world: NewWorld) -> None:
    world = new_world(has_broker=False, user_properties="each")
    world.receive(connect(world, "self"), PUBLISH)
    usr = f"<usr><rfhbUserProps>{JSON}</rfhbUserProps><unit>bar</unit></usr>"
    assert header_at_broker(world) == mqrfh2(PSC, usr) + b"X"
    assert dropped(world, "put") == NAMELESS
    assert_every_conversion_is_as_the_audit_predicts(world)


def test_by_default_the_json_stands_alone_and_nothing_is_told(new_world: NewWorld) -> None:
    world = new_world(has_broker=False)
    world.receive(connect(world, "self"), PUBLISH)
    assert header_at_broker(world) == mqrfh2(PSC, f"<usr><rfhbUserProps>{JSON}</rfhbUserProps></usr>") + b"X"
    assert dropped(world, "put") == []


def test_names_of_their_own_reach_a_target_and_come_back_once(new_world: NewWorld, remotes: type[Remote]) -> None:
    world, remote = new_world(**configured(), user_properties="each"), remotes()
    remote.connect(world)
    link = connect(world, "self")
    link.taken()
    world.receive(link, "82 09 0001 00 0003 'a/#' 01")
    remote.carry(world)
    link.taken()
    world.receive(connect(world, "else"), PUBLISH)
    (header,) = headers(world)
    assert "<unit>bar</unit></usr>" in header or header.endswith(" unit bar")
    remote.carry(world)
    assert link.taken() == written(PUBLISH)
    assert dropped(world, "delivered") == []
    assert_every_conversion_is_as_the_audit_predicts(world)


@pytest.mark.parametrize("name", ["unit", "_", "größe", "x1", "名前", "Mx", "nota"])
def test_names_that_java_and_xml_share_are_properties(name: str) -> None:
    assert single_properties(((name, "v"),)) == (((name, "v"),), ())


@pytest.mark.parametrize(
    "name",
    [
        *("", "1a", "a.b", "a:b", "a-b", "a b", "$a", "\u037e", "a\u00d7", "\U00010400"),
        *("rfhbX", "RFHB", "jmsX", "JMSXGroupID", "mqps", "MQ", "Null", "escape"),
    ],
)
def test_all_others_stand_in_the_json_alone(name: str) -> None:
    found, ((told, reason),) = single_properties(((name, "v"),))
    assert (found, told) == ((), name)
    assert reason.endswith("it stands in rfhbUserProps alone")


def test_a_value_that_a_folder_does_not_support_stands_in_the_json_alone() -> None:
    assert single_properties((("smile", "\U0001f600"),))[0] == ()

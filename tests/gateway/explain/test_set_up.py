"""The MQSC of a target: what it defines, how it is folded, and that a queue manager takes it."""

import pytest

from gateway.config import RouteSettings, TargetSettings
from gateway.explain.set_up import fixed_levels, mqsc_text, set_up, topic_objects
from mq_adapters.embedded.direct import Direct
from mq_adapters.message import Message, MessageDescriptor

PLANT = TargetSettings(name="PLANT", user="o'hara", set_identity=True, shards=2, cipher="ANY_TLS12_OR_HIGHER")
ROUTES = (
    RouteSettings(target="PLANT", topics=("plant/#", "plant/+/state")),
    RouteSettings(target="PLANT", topics=("results/#",), stream="RESULTS.STREAM"),
)


def text_of(target: TargetSettings, routes: tuple[RouteSettings, ...]) -> str:
    return mqsc_text(set_up(target, routes), heading="set-up")


def commands_of(text: str) -> list[str]:
    """As runmqsc reads them: no comments, a plus at the end of a line goes on with the next."""
    joined = "\n".join(line for line in text.splitlines() if not line.startswith("*")).replace(" +\n       ", " ")
    return [line for line in joined.splitlines() if line]


def test_every_queue_that_the_gateway_uses_there_is_defined_and_allowed():
    commands = commands_of(text_of(PLANT, ROUTES))
    for queue in ("RFHBRIDGE.STATE.0", "RFHBRIDGE.STATE.1"):
        (definition,) = (line for line in commands if line.startswith(f"DEFINE QLOCAL({queue}) "))
        for attribute in ("DEFPSIST(YES)", "DEFSOPT(EXCL)", "NOSHARE", "BOTHRESH(0)", "REPLACE"):
            assert attribute in definition.split()
        assert (
            f"SET AUTHREC PROFILE({queue}) OBJTYPE(QUEUE) PRINCIPAL('o''hara') AUTHADD(GET,BROWSE,PUT,INQ)" in commands
        )
    for queue in ("RFHBRIDGE.SUBSCRIBER", "RFHBRIDGE.REPLY"):
        (definition,) = (line for line in commands if line.startswith(f"DEFINE QLOCAL({queue}) "))
        assert "MSGDLVSQ(FIFO)" in definition
        assert "BOQNAME(RFHBRIDGE.SUBSCRIBER.BACKOUT)" in definition
    assert (
        "SET AUTHREC PROFILE(RESULTS.STREAM) OBJTYPE(QUEUE) PRINCIPAL('o''hara') AUTHADD(PUT,BROWSE,INQ,SETID)"
        in commands
    )
    assert "SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('o''hara') AUTHADD(CONNECT,INQ,SETID)" in commands


def test_the_channel_is_encrypted_and_has_one_conversation_a_socket():
    (channel,) = (line for line in commands_of(text_of(PLANT, ROUTES)) if line.startswith("DEFINE CHANNEL"))
    for attribute in ("CHLTYPE(SVRCONN)", "SHARECNV(1)", "HBINT(30)", "SSLCIPH(ANY_TLS12_OR_HIGHER)"):
        assert attribute in channel.split()
    assert "DEFINE CHANNEL" not in text_of(TargetSettings(name="PLANT", mode="bindings"), ROUTES)


def test_a_stream_is_a_queue_a_topic_object_and_last_of_all_a_name_in_the_list():
    commands = commands_of(text_of(PLANT, ROUTES))
    queue, topic, names = (
        next(index for index, line in enumerate(commands) if line.startswith(start))
        for start in ("DEFINE QLOCAL(RESULTS.STREAM)", "DEFINE TOPIC(RESULTS.STREAM)", "ALTER NAMELIST")
    )
    assert queue < names
    assert topic < names
    assert commands[names].endswith(
        "NAMES('SYSTEM.BROKER.DEFAULT.STREAM', 'SYSTEM.BROKER.ADMIN.STREAM', 'RESULTS.STREAM')"
    )


def test_authority_is_given_for_the_topics_of_the_routes_alone():
    assert topic_objects(PLANT, ROUTES) == (("RFHBRIDGE.PLANT.1", "plant"), ("RESULTS.STREAM", "RESULTS.STREAM"))
    assert topic_objects(PLANT, (RouteSettings(target="PLANT"),)) == (("SYSTEM.BASE.TOPIC", ""),)
    assert "DEFINE TOPIC(SYSTEM.BASE.TOPIC)" not in text_of(PLANT, (RouteSettings(target="PLANT"),))


def test_a_message_broker_has_no_topic_objects():
    target = TargetSettings(name="PLANT", streams="message_broker")
    assert "TOPIC(" not in text_of(target, ROUTES)
    assert topic_objects(target, ROUTES) == ()


@pytest.mark.parametrize(
    ("topic_filter", "prefix"),
    [("#", ""), ("+/a", ""), ("a/#", "a"), ("a/b/+/c", "a/b"), ("a/b", "a/b"), ("/a/#", "/a")],
)
def test_the_levels_before_the_first_wildcard_are_the_topic_string(topic_filter, prefix):
    assert fixed_levels(topic_filter) == prefix


def test_no_name_is_too_long_for_an_object():
    target = TargetSettings(name="PLANT", subscriber_queue="Q" * 48)
    assert f"DEFINE QLOCAL({'Q' * 40}.BACKOUT)" in text_of(target, ROUTES)


def test_a_queue_manager_carries_out_the_definitions_again_and_keeps_the_messages(tmp_path):
    commands = [line for line in commands_of(text_of(PLANT, ROUTES)) if line.startswith("DEFINE QLOCAL")]
    definitions = [line.replace(" DEFSOPT(EXCL) NOSHARE", "") for line in commands]  # the embedded one has neither
    assert len(definitions) == 6
    with Direct(tmp_path, application_name="a test") as queue_manager:
        for line in definitions:
            assert queue_manager.mqsc(line).succeeded, line
        queue_manager.put("RFHBRIDGE.STATE.1", Message(MessageDescriptor(), b"state"))
        for line in definitions:
            assert queue_manager.mqsc(line).succeeded, line
        assert queue_manager.inquire("RFHBRIDGE.STATE.1").said["DEFPSIST"] == "YES"
        assert queue_manager.get("RFHBRIDGE.STATE.1").body == b"state"


def test_digests_of_the_trail_get_their_queue_and_the_user_may_put_on_it_and_no_more() -> None:
    target = TargetSettings.model_validate({"name": "PLANT", "connections": ["localhost(1414)"], "user": "edge"})
    text = mqsc_text(set_up(target, (), digest_queue="AUDIT.DIGESTS"), heading="set-up").replace(" +\n       ", " ")
    assert "DEFINE QLOCAL(AUDIT.DIGESTS)" in text
    assert "SET AUTHREC PROFILE(AUDIT.DIGESTS) OBJTYPE(QUEUE) PRINCIPAL('edge') AUTHADD(PUT)\n" in text
    assert "DIGESTS" not in mqsc_text(set_up(target, ()), heading="set-up")

"""What another rfhbridge needs as a target: that it takes the commands, and reads the table."""

import tomllib

from gateway.config import RouteSettings, TargetSettings
from gateway.config.applications import ApplicationSettings
from gateway.explain.hub import set_up_of
from gateway.explain.set_up import mqsc_text
from mq_adapters.embedded.direct import Direct
from mq_adapters.mqsc import commands_of

HUB = TargetSettings(
    name="HUB",
    binding="native",
    user="spoke1",
    set_identity=True,
    cipher="TLS_AES_256_GCM_SHA384",
    channel="SPOKE1.SVRCONN",
    state_queue="SPOKE1.STATE",
    subscriber_queue="SPOKE1.SUBSCRIBER",
    reply_queue="SPOKE1.REPLY",
)
ROUTES = (RouteSettings(target="HUB", topics=("plant/#",)), RouteSettings(target="HUB", queue="PLANT.INPUT"))


def text_of(target: TargetSettings) -> str:
    return mqsc_text(set_up_of(target, ROUTES, digest_queue="SPOKE1.DIGESTS"), heading="set-up")


def test_the_other_gateway_takes_every_command(tmp_path):
    with Direct(tmp_path) as hub:
        for command in commands_of(text_of(HUB).splitlines()):
            answer = hub.mqsc(command)
            assert answer.succeeded, (command, answer.lines)
        for name in ("SPOKE1.STATE.0", "SPOKE1.SUBSCRIBER", "SPOKE1.REPLY", "PLANT.INPUT", "SPOKE1.DIGESTS"):
            assert hub.depth(name) == 0
        assert "SSLCIPH(ANY_TLS13_OR_HIGHER)" in " ".join(hub.mqsc("DISPLAY CHANNEL(SPOKE1.SVRCONN) ALL").lines)


def test_the_table_gives_the_rights_that_the_gateway_needs_there_and_no_other():
    lines = [line.removeprefix("* ") for line in text_of(HUB).splitlines()]
    table = "\n".join(lines[lines.index("[[application]]") :])
    (application,) = tomllib.loads(table)["application"]
    read = ApplicationSettings(**application)
    own = {"SPOKE1.STATE.0", "SPOKE1.SUBSCRIBER", "SPOKE1.REPLY"}
    put = {"SPOKE1.SUBSCRIBER.BACKOUT", "SPOKE1.DIGESTS", "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.DEAD.LETTER.QUEUE"}
    streams = {"SYSTEM.BROKER.DEFAULT.STREAM", "PLANT.INPUT"}
    assert (read.name, read.set_context) == ("spoke1", "identity")
    assert (set(read.get), set(read.browse), set(read.put)) == (own, own | streams, own | put | streams)
    assert (read.admin, read.publish, read.subscribe) == ((), ("plant/#", "#"), ("plant/#", "#"))


def test_without_identity_the_table_gives_no_right_on_context():
    assert "set_context" not in text_of(HUB.model_copy(update={"set_identity": False}))


def test_a_target_of_ibm_has_the_set_up_for_runmqsc():
    assert "SET AUTHREC" in text_of(TargetSettings(name="PLANT"))


def test_without_a_user_the_channel_lets_everybody_in_and_says_so(tmp_path):
    alone = HUB.model_copy(update={"user": ""})
    text = text_of(alone)
    assert "lets in everybody" in text
    with Direct(tmp_path) as hub:
        assert all(hub.mqsc(command).succeeded for command in commands_of(text.splitlines()))
        assert "MCAUSER(rfhbridge)" in " ".join(hub.mqsc("DISPLAY CHANNEL(SPOKE1.SVRCONN) ALL").lines).replace("'", "")


def test_a_user_of_any_characters_stands_in_the_table():
    lines = [line.removeprefix("* ") for line in text_of(HUB.model_copy(update={"user": 'a"b'})).splitlines()]
    (application,) = tomllib.loads("\n".join(lines[lines.index("[[application]]") :]))["application"]
    assert application["name"] == 'a"b'

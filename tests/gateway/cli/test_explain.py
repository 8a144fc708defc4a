"""`rfhbridge explain`: from a topic to bytes and MQSC, with and without a configuration."""

import json

import pytest

CONFIGURATION = """
[[target]]
name = "PLANT"
header = "mqrfh"
user = "gateway"

[[route]]
target = "PLANT"
topics = ["plant/#"]
stream = "PLANT.STREAM"
"""


@pytest.fixture
def configuration(tmp_path):
    path = tmp_path / "rfhbridge.toml"
    path.write_text(CONFIGURATION)
    return path


def test_a_topic_is_explained_without_a_configuration_a_gateway_or_a_store(rfhbridge, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = rfhbridge("explain", "plant/boiler", "--client", "boiler-1")
    assert (ended.exit_code, ended.stderr) == (0, "")
    lines = ended.text.splitlines()
    assert lines[1] == "target  no configuration names a target, so one with the default names is assumed"
    assert "PUBLISH, QoS 1 becomes Publish on queue SYSTEM.BROKER.DEFAULT.STREAM at target IBMMQ" in lines
    assert "    text  <psc><Command>Publish</Command><Topic>plant/boiler</Topic></psc>" in lines
    hexadecimal = [line.removeprefix("    hex   ") for line in lines if line.startswith("    hex   ")]
    assert bytes.fromhex(hexadecimal[0]).startswith(b"RFH \x02\0\0\0")
    assert b"<Topic>plant/boiler</Topic>" in bytes.fromhex(hexadecimal[0])
    assert "       PRINCIPAL('rfhbridge') AUTHADD(PUB,SUB)" in lines
    assert list(tmp_path.iterdir()) == []


def test_json_has_the_header_as_text_and_as_hexadecimal(rfhbridge, configuration):
    found = json.loads(rfhbridge("explain", "plant/pump", "--config", configuration, "--qos", "0", "--json").text)
    assert found["route"] == {"topics": ["plant/#"], "target": "PLANT", "queue": "PLANT.STREAM"}
    assert found["assumed_target"] is False
    publish = found["commands"][0]
    assert publish["mqmd"]["Format"] == "MQHRF"
    assert publish["mqmd"]["Persistence"] == "0 MQPER_NOT_PERSISTENT"
    assert publish["header_text"][0].startswith("MQPSCommand Publish MQPSPubOpts NoReg MQPSStreamName PLANT.STREAM")
    assert bytes.fromhex(publish["header_hex"])[32:].startswith(b"MQPSCommand Publish ")
    assert "DEFINE QLOCAL(PLANT.STREAM)" in found["mqsc"]["PLANT"]


def test_properties_of_mqtt_5_are_shown_with_their_places(rfhbridge, configuration):
    asked = ("--property", "user-property=unit=C", "--property", "message-expiry-interval=60")
    lines = rfhbridge("explain", "plant/pump", "--config", configuration, *asked).text.splitlines()
    assert "  MQMD Expiry           600 tenths of a second" in lines
    assert "  message-expiry-interval in MQMD.Expiry: 600 tenths of a second" in lines
    assert '  user-property           in pair rfhbUserProps: [["unit","C"]]' in lines
    found = json.loads(rfhbridge("explain", "plant/pump", "--config", configuration, *asked, "--json").text)
    assert found["commands"][0]["properties"][1] == {
        "name": "user-property",
        "place": "pair rfhbUserProps",
        "value": '[["unit","C"]]',
    }
    assert found["commands"][1]["properties"] == []


def test_a_shared_subscription_is_said_to_be_one(rfhbridge, configuration):
    lines = rfhbridge("explain", "$share/night/plant/+", "--config", configuration).text.splitlines()
    assert lines[:2] == [
        "filter   $share/night/plant/+",
        "group   one subscriber at MQTT 5, registered by its first member; before, a filter like any other",
    ]


def test_the_whole_set_up_is_mqsc_alone(rfhbridge, configuration):
    ended = rfhbridge("explain", "--mqsc", "--config", configuration)
    assert ended.exit_code == 0
    words = {line.split()[0] for line in ended.text.splitlines() if line and not line.startswith(("*", " "))}
    assert words == {"ALTER", "DEFINE", "DISPLAY", "SET"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "give a topic"),
        (("a/#/b",), "holds # before the last level"),
        (("",), "topic"),
        (("a/b", "--mqsc"), "leave out TOPIC"),
        (("a/b", "--qos", "3"), "less than or equal to 2"),
        (("a/b", "--property", "colour=red"), "Invalid value for --property"),
    ],
)
def test_wrong_use_says_what_to_do(rfhbridge, arguments, problem):
    ended = rfhbridge("explain", *arguments)
    assert ended.exit_code == 2
    assert problem in ended.stderr


def test_a_configuration_without_a_target_is_explained_as_it_is(rfhbridge, tmp_path):
    path = tmp_path / "plain.toml"
    path.write_text('header = "mqrfh"\n')
    ended = rfhbridge("explain", "a/b", "--config", path)
    assert "route   no route takes it, so it stays at the embedded broker" in ended.text.splitlines()
    ended = rfhbridge("explain", "--mqsc", "--config", path)
    assert (ended.exit_code, ended.text) == (1, "")
    assert "names no target" in ended.stderr


def test_a_topic_that_mq_cannot_carry_is_a_clear_error(rfhbridge):
    ended = rfhbridge("explain", "t" * 10_241)
    assert ended.exit_code == 2
    assert "has 10241 characters, and IBM MQ carries 10240" in ended.stderr
    assert len(ended.stderr) < 1_000


def test_a_stream_that_nobody_can_subscribe_to_is_explained_for_publishers(rfhbridge, configuration):
    configuration.write_text(CONFIGURATION.replace('"mqrfh"', '"mqrfh2"'))
    ended = rfhbridge("explain", "plant/pump", "--config", configuration)
    assert ended.exit_code == 0
    assert "PUBLISH, QoS 1 becomes Publish on queue PLANT.STREAM at target PLANT" in ended.text
    assert "SUBSCRIBE is refused: " in ended.text
    assert "MQRFH2 cannot name stream PLANT.STREAM in a RegSub" in ended.text
    assert "DEFINE QLOCAL(PLANT.STREAM)" in ended.text
    found = json.loads(rfhbridge("explain", "#", "--config", configuration, "--json").text)
    assert found["commands"] == []
    assert 'set header of target PLANT to "mqrfh"' in found["subscribe_refused"]

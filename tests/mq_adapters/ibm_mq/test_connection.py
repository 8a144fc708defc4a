"""What reaches the queue manager of what the operator says, and what is refused before it is packed."""

from dataclasses import replace

import pytest

from mq_adapters.ibm_mq import ConnectionSettings, IbmMq
from mq_adapters.ibm_mq.constants import MQCNO_CLIENT_BINDING, MQCNO_HANDLE_SHARE_BLOCK, MQCNO_RECONNECT_DISABLED
from mq_adapters.reasons import QueueManagerError
from tests.ibm_mq_stand_in.process import VARIABLE

ANY_RECONNECT = 0x0100_0000 | 0x0400_0000  # MQCNO_RECONNECT, MQCNO_RECONNECT_Q_MGR


def refusal(text: str):
    return pytest.raises(QueueManagerError, match=text)


def test_everything_that_is_said_reaches_the_queue_manager_uncut(control, stand_in, package):
    connections = tuple(f"host-number-{number}.example.com(1414)" for number in range(8))  # 255 of 264 characters
    settings = ConnectionSettings(
        package=package,
        queue_manager=stand_in.name,
        connections=connections,
        channel="C" * 20,
        user="keeper",
        password="open sesame",
        cipher="ANY_TLS13_OR_HIGHER",
        key_repository="/k" * 128,
        peer_name="CN=STANDIN,O=" + "x" * 1011,
        application_name="A" * 28,
    )
    control.require_passwords({"keeper": "open sesame"})
    with IbmMq(settings):
        [said] = control.connections()
    assert said["queue_manager_name"] == settings.queue_manager
    assert said["connection_name"] == ",".join(connections)
    assert said["channel"] == settings.channel
    assert said["user"] == "keeper"
    assert said["cipher_spec"] == settings.cipher
    assert said["key_repository"] == settings.key_repository
    assert said["peer_name"] == settings.peer_name
    assert said["max_msg_length"] == 100 * 1024 * 1024
    assert package == "pymqi" or said["application"] == settings.application_name


def test_automatic_reconnect_is_off_and_handles_may_be_closed_by_another_thread(control, settings):
    with IbmMq(settings):
        [said] = control.connections()
    wanted = MQCNO_RECONNECT_DISABLED | MQCNO_HANDLE_SHARE_BLOCK | MQCNO_CLIENT_BINDING
    assert said["options"] & wanted == wanted
    assert not said["options"] & ANY_RECONNECT


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("queue_manager", "Q" * 49),
        ("channel", "C" * 21),
        ("connections", tuple(f"host-number-{number}.example.com(1414)" for number in range(9))),
        ("cipher", "X" * 33),
        ("key_repository", "k" * 257),
        ("certificate_label", "l" * 65),
        ("peer_name", "p" * 1025),
        ("channel", "KANÄLE"),
        ("channel", "A\0B"),
        ("user", "u" * 1025),
        ("password", "p" * 257),
    ],
)
def test_what_would_be_cut_is_refused_by_its_name(control, settings, setting, value):
    values = {"user": "u", "cipher": "X", setting: value}
    with refusal(f"setting {setting}: 2277"):
        IbmMq(replace(settings, **values))
    assert control.connections() == []


def test_a_password_is_not_shown(settings):
    assert "open sesame" not in repr(replace(settings, password="open sesame"))


def test_a_wrong_password_is_2035_with_what_to_do(control, settings):
    control.require_passwords({"keeper": "open sesame"})
    with refusal("2035.*explain --mqsc"):
        IbmMq(replace(settings, user="keeper", password="guess"))


@pytest.mark.parametrize("reason_code", [2059, 2538, 2540, 2393, 2161])
def test_a_queue_manager_that_is_away_is_named_with_its_reason(control, settings, reason_code):
    control.begin_outage(reason_code)
    with refusal(rf"connect to QM1 at localhost\(1414\): {reason_code}"):
        IbmMq(replace(settings, queue_manager="QM1"))


def test_the_next_connection_name_is_tried_where_one_does_not_answer(control, stand_in, settings, monkeypatch):
    monkeypatch.setenv(VARIABLE, f"second(1414)={stand_in.socket}")
    with refusal("2538"):
        IbmMq(replace(settings, connections=("first(1414)",)))
    with IbmMq(replace(settings, connections=("first(1414)", "second(1414)"))) as connected:
        assert connected.name == stand_in.name


def test_a_ccdt_is_for_ibmmq_alone(control, package, settings):
    wanted = replace(settings, ccdt_url="file:///etc/mq/channels.json")
    if package == "pymqi":
        with refusal("setting ccdt_url: 2277.*pymqi"):
            IbmMq(wanted)
        return
    with IbmMq(wanted):
        [said] = control.connections()
    assert said["ccdt_url"] == wanted.ccdt_url
    assert said["channel"] == ""


def test_a_queue_manager_is_known_by_name_and_identifier(queue_manager, control, stand_in):
    assert queue_manager.name == stand_in.name
    assert queue_manager.identifier == control.identifier


def test_a_keyword_with_a_spelling_mistake_is_an_error():
    with pytest.raises(TypeError, match="chanel"):
        ConnectionSettings(chanel="RFHBRIDGE.SVRCONN")

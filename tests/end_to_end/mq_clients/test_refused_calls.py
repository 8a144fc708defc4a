"""What the log and the metrics say of calls that MQ programs may not make."""

from mq_adapters.client_channel.charv import Charv
from mq_adapters.client_channel.identification import UserIdData
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.client_channel.structures import Mqod, Mqsd
from mq_adapters.client_channel.verbs import Mqconn, Mqput1Request, Mqsub
from mq_adapters.reasons import ReasonCode
from tests.end_to_end.metrics_page import scrape_until
from tests.end_to_end.mq_clients.house import House
from tests.end_to_end.mq_clients.raw_client import RawClient, of_conversation, opening, putting

OUTPUT, INPUT_SHARED, BROWSE = 0x10, 0x2, 0x8
TOPIC = 8


def test_each_missing_right_is_one_line_and_counted(house: House) -> None:
    put = putting()
    with RawClient(house.port) as client:
        client.connect(appl_name="stranger")
        asked = (
            (SegmentType.MQOPEN, opening("OTHERS", OUTPUT)),
            (SegmentType.MQOPEN, opening("OTHERS", INPUT_SHARED)),
            (SegmentType.MQOPEN, opening("OTHERS", BROWSE)),
            (
                SegmentType.MQOPEN,
                opening("", OUTPUT, version=4, object_type=TOPIC, object_string=Charv(value=b"secret")),
            ),
            (
                SegmentType.MQSUB,
                Mqsub(subscription_descriptor=Mqsd(options=2 | 32, object_string=Charv(value=b"secret/#"))),
            ),
            (
                SegmentType.MQPUT1,
                Mqput1Request(
                    object_descriptor=Mqod(object_name="OTHERS"),
                    message_descriptor=put.message_descriptor,
                    put_message_options=put.put_message_options,
                    data=b"goods",
                ),
            ),
        )
        for verb, parameters in asked:
            assert client.ask(verb, parameters)[0].reason_code == ReasonCode.MQRC_NOT_AUTHORIZED
        peer = f"127.0.0.1:{client.socket.getsockname()[1]}"
        client.open("ORDERS", OUTPUT)
    house.gateway.wait_for_log("right refused", count=len(asked))
    told = house.gateway.logged("right refused")
    assert [(each["right"], each["object"]) for each in told] == [
        ("put", "OTHERS"),
        ("get", "OTHERS"),
        ("browse", "OTHERS"),
        ("publish", "secret"),
        ("subscribe", "secret/#"),
        ("put", "OTHERS"),
    ]
    first = told[0]
    who = {key: first[key] for key in ("listener", "channel", "peer", "user", "application", "program")}
    assert who == {
        "listener": "mq",
        "channel": "APP.SVRCONN",
        "peer": peer,
        "user": "billing",
        "application": "billing",
        "program": "stranger",
    }
    page = scrape_until(house.gateway, lambda page: page.value("mq_rights_refused_total", right="put") == 2)
    assert page.value("mq_rights_refused_total", right="publish") == 1
    assert page.value("mq_rights_refused_total", right="subscribe") == 1
    assert page.value("mq_rights_refused_total", right="owner") == 0


def test_another_queue_managers_name_is_logged_and_counted(house: House) -> None:
    with RawClient(house.port) as client:
        client.negotiate()
        client.send(of_conversation(SegmentType.USERID_DATA, UserIdData(user="ROOT", long_user="root")))
        header, _ = client.ask(SegmentType.MQCONN, Mqconn(q_mgr_name="OTHER", appl_name="raw"))
        assert header.reason_code == ReasonCode.MQRC_Q_MGR_NAME_ERROR
    told = house.gateway.wait_for_log("program refused", rule="queue_manager.name", channel="APP.SVRCONN")
    assert "2058" in told["reason"]
    assert "'OTHER'" in told["reason"]
    page = scrape_until(
        house.gateway, lambda page: page.value("mq_programs_refused_total", reason="queue_manager") == 1
    )
    assert page.value("applications_refused_total", reason="mqrc_q_mgr_name_error") == 1


def test_a_channel_that_refuses_is_named(house: House) -> None:
    with RawClient(house.port) as client, RawClient(house.port) as other:
        client.connect(channel="FEW")
        other.send_offer("FEW")
        other.end()
    told = house.gateway.wait_for_log("connection closed", channel="FEW")
    assert "MAXINST" in told["reason"]

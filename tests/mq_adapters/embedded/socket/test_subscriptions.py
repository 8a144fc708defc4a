"""Subscriptions of programs over the socket."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.broker.broker import Broker, BrokerRules
from mq_adapters.embedded.mqi.options import SubOption
from mq_adapters.embedded.rights import Rights
from mq_adapters.embedded.socket import subscriptions
from mq_adapters.embedded.socket.applications import AdmittedApplication, Applications
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.socket.pace import ApplicationAccount
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import DEFAULT_MODEL_QUEUE, DEFAULT_STREAM
from tests.headers import mqrfh2
from tests.mq_adapters.broker.conftest import RecordingListener
from tests.mq_adapters.embedded.mqi.subscriber import DURABLE, MANAGED, RESUMED, PlantAlone

PATIENCE_S = 20.0
ACCOUNT = ApplicationAccount("anybody")


@pytest.fixture
def broker(gateway: Any) -> Broker:
    """The broker of the gateway."""

    def attach() -> Broker:
        engine = gateway.engine
        engine.objects.define(Definition(object_type=ObjectType.QMODEL, name=DEFAULT_MODEL_QUEUE))
        made = Broker(engine, listener=RecordingListener(), rules=BrokerRules(input_queues=(DEFAULT_STREAM,)))
        made.attach()
        return made

    return gateway.call(attach)


def publish(client: SocketClient, topic: str, body: bytes, options: str = "") -> None:
    header = mqrfh2(f"<psc><Command>Publish</Command>{options}<Topic>{topic}</Topic></psc>")
    client.put(DEFAULT_STREAM, Message(MessageDescriptor(format=b"MQHRF2  ", persistence=1), header + body))


def refused(call: Callable[[], object]) -> ReasonCode:
    with pytest.raises(QueueManagerError) as error:
        call()
    return ReasonCode(error.value.reason_code)


def test_publications_come_with_properties_to_the_queue_of_a_subscription(gateway: Any, broker: Broker) -> None:
    with SocketClient(gateway.data_dir) as client:
        with client.subscribe("plant/#", options=MANAGED) as subscription:
            publish(client, "plant/1", b"4.2")
            got = subscription.get(wait_s=PATIENCE_S)
            assert b"<mqps><Top>plant/1</Top></mqps>" in got.body
            assert (b"<psc>" in got.body, got.body[-3:]) == (False, b"4.2")
            assert got.descriptor.appl_origin_data == ""
        assert refused(subscription.get) == ReasonCode.MQRC_HOBJ_ERROR
        assert refused(lambda: client.get(subscription.name)) == ReasonCode.MQRC_UNKNOWN_OBJECT_NAME


def test_a_durable_subscription_waits_for_its_program(gateway: Any, broker: Broker) -> None:
    with SocketClient(gateway.data_dir) as client:
        client.subscribe("plant/#", options=DURABLE, name="kept", user_data="orders")
    with SocketClient(gateway.data_dir) as client:
        publish(client, "plant/1", b"one")
        resumed = client.subscribe("", options=RESUMED, name="kept")
        with SocketClient(gateway.data_dir) as other:
            assert refused(lambda: other.subscribe("", options=RESUMED, name="kept")) == (
                ReasonCode.MQRC_SUBSCRIPTION_IN_USE
            )
        got = resumed.get()
        assert (b"<Sud>orders</Sud>" in got.body, got.body[-3:]) == (True, b"one")
        resumed.remove()
        gateway.call(broker.tend)
        assert refused(lambda: client.subscribe("", options=RESUMED, name="kept")) == ReasonCode.MQRC_NO_SUBSCRIPTION
        assert not [each for each in client.queues() if each.name.startswith("SYSTEM.MANAGED.")]


def test_publications_come_to_the_programs_own_queue_and_on_request(gateway: Any, broker: Broker) -> None:
    with SocketClient(gateway.data_dir) as client:
        publish(client, "plant/1", b"old", "<PubOpt>RetainPub</PubOpt>")
        options = SubOption.CREATE | SubOption.PUBLICATIONS_ON_REQUEST
        subscription = client.subscribe("plant/#", options=options, queue_name="ORDERS", expiry=600)
        assert subscription.name == "ORDERS"
        assert refused(subscription.get) == ReasonCode.MQRC_NO_MSG_AVAILABLE
        assert subscription.request_publications() == 1
        assert subscription.get().body.endswith(b"old")
        assert refused(lambda: client.subscribe("plant/#", options=SubOption.CREATE, queue_name="NOWHERE")) == (
            ReasonCode.MQRC_UNKNOWN_OBJECT_NAME
        )
        assert refused(lambda: client.subscribe("plant/#", options=SubOption.CREATE)) == ReasonCode.MQRC_HOBJ_ERROR


def test_an_application_has_its_topics_and_the_queues_of_its_subscriptions(
    gateway: Any, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = AdmittedApplication(
        user="billing", operator="billing", rights=Rights(), account=ACCOUNT, role="billing", topics=PlantAlone()
    )
    monkeypatch.setattr(Applications, "admitted", lambda *_: role)
    with SocketClient(gateway.data_dir) as client:
        assert refused(lambda: client.subscribe("secret", options=MANAGED)) == ReasonCode.MQRC_NOT_AUTHORIZED
        subscription = client.subscribe("plant/#", options=DURABLE, name="kept")
        assert refused(subscription.get) == ReasonCode.MQRC_NO_MSG_AVAILABLE
        name = subscription.name
        assert refused(lambda: client.put(name, Message(MessageDescriptor(), b""))) == ReasonCode.MQRC_NOT_AUTHORIZED
        subscription.close()
        assert refused(lambda: client.get(name)) == ReasonCode.MQRC_NOT_AUTHORIZED


def test_a_general_pattern_opens_managed_queues_on_the_socket_as_it_does_to_gets(
    gateway: Any, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = AdmittedApplication(
        user="monitor",
        operator="monitor",
        rights=Rights(get=("*",)),
        account=ACCOUNT,
        role="monitor",
        topics=PlantAlone(),
    )
    with SocketClient(gateway.data_dir) as client:
        client.subscribe("plant/#", options=DURABLE | SubOption.ANY_USERID, name="kept").close()
        publish(client, "plant/1", b"one")
    monkeypatch.setattr(Applications, "admitted", lambda *_: role)
    with SocketClient(gateway.data_dir) as monitor:
        resumed = monitor.subscribe("", options=RESUMED | SubOption.ANY_USERID, name="kept")
        assert resumed.get().body.endswith(b"one")
        resumed.close()
        assert refused(lambda: monitor.get(resumed.name)) == ReasonCode.MQRC_NO_MSG_AVAILABLE


def test_a_program_has_so_many_subscriptions_and_no_others(
    gateway: Any, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAXIMUM_OPEN_SUBSCRIPTIONS", 1)
    with SocketClient(gateway.data_dir) as client, SocketClient(gateway.data_dir) as other:
        first = client.subscribe("plant/1", options=MANAGED)
        assert refused(lambda: client.subscribe("plant/2", options=MANAGED)) == ReasonCode.MQRC_HANDLE_NOT_AVAILABLE
        stolen = other.subscribe("plant/1", options=MANAGED)
        stolen.close()
        assert refused(stolen.request_publications) == ReasonCode.MQRC_HOBJ_ERROR
        first.close()
        client.subscribe("plant/2", options=MANAGED)


def test_without_a_broker_nobody_subscribes(gateway: Any) -> None:
    with SocketClient(gateway.data_dir) as client:
        assert refused(lambda: client.subscribe("plant/1", options=DURABLE, name="kept")) == (
            ReasonCode.MQRC_PUBSUB_INHIBITED
        )


def test_everything_but_the_durable_ends_with_the_program(gateway: Any, broker: Broker) -> None:
    client = SocketClient(gateway.data_dir)
    client.subscribe("plant/1", options=MANAGED)
    client.subscribe("plant/2", options=DURABLE, name="kept")
    client.close()
    ended = threading.Event()
    for _ in range(200):
        names = gateway.call(lambda: [each.topic for each in broker.administration(is_audited=False).subscriptions()])
        if names == ["plant/2"] or ended.wait(0.05):
            break
    assert names == ["plant/2"]

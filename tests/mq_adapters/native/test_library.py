"""The native client beside the port's contract: losses, long messages, texts."""

import gc

import pytest

from mq_adapters.ibm_mq import IbmMq
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from tests.ibm_mq_stand_in.process import wait_until
from tests.mq_adapters.native.conftest import Connect
from tests.mq_adapters.native.gateway import NativeGateway

ANY = MessageDescriptor()


def bodies(queue_manager: IbmMq) -> list[bytes]:
    return [message.body for message in queue_manager.browse("ORDERS")]


@pytest.mark.parametrize("length", [0, 1, 32_600, 32_748, 100_000, 4_000_000])
def test_a_message_of_any_length_passes(connect: Connect, length: int) -> None:
    queue_manager = connect()
    body = bytes(range(256)) * (length // 256) + bytes(length % 256)
    queue_manager.put("ORDERS", Message(ANY, body))
    assert bodies(queue_manager) == [body]
    assert queue_manager.get("ORDERS").body == body


def test_a_text_beyond_ascii_passes(connect: Connect) -> None:
    queue_manager = connect()
    given = MessageDescriptor(user_identifier="Jürgen", appl_identity_data="Kühlung")
    queue_manager.put("ORDERS", Message(given, b""))
    got = queue_manager.get("ORDERS").descriptor
    assert (got.user_identifier, got.appl_identity_data) == ("Jürgen", "Kühlung")


def test_a_gateway_that_stops_is_2009_or_says_so_and_the_connection_stays_lost(
    connect: Connect, gateway: NativeGateway
) -> None:
    queue_manager = connect()
    queue_manager.begin()
    queue_manager.put("ORDERS", Message(ANY, b"never"))
    gateway.stop()
    for _ in range(2):
        with pytest.raises(QueueManagerError) as error:
            queue_manager.commit() if queue_manager._is_in_unit else queue_manager.put("ORDERS", Message(ANY, b""))
        assert error.value.reason_code in (2009, 2162)


def test_a_connection_that_was_lost_in_a_call_is_closed_without_an_error(
    connect: Connect, gateway: NativeGateway
) -> None:
    queue_manager = connect()
    (link,) = gateway.call(lambda: gateway.connections)
    gateway.loop.call_soon_threadsafe(gateway.loop.call_later, 0.05, link.abort)
    with pytest.raises(QueueManagerError, match="2009"):
        queue_manager.get("ORDERS", wait_s=60)
    queue_manager.close()
    with pytest.raises(QueueManagerError, match="2018"):
        queue_manager.commit()


def test_a_connection_that_is_forgotten_commits_nothing(connect: Connect, gateway: NativeGateway) -> None:
    connected = connect()
    settings = connected._settings
    forgotten = IbmMq(settings)
    forgotten.begin()
    forgotten.put("ORDERS", Message(ANY, b"never"))
    del forgotten
    gc.collect()
    wait_until(lambda: gateway.call(lambda: len(gateway.connections)) == 1)
    assert bodies(connected) == []


def test_a_closed_connection_says_goodbye(connect: Connect, gateway: NativeGateway) -> None:
    connect().close()
    wait_until(lambda: gateway.call(lambda: len(gateway.connections)) == 0)
    assert gateway.complaints == []

"""The native client beside the port's contract: losses, long messages, texts."""

import gc

import pytest

from mq_adapters.client_channel.client_events import Replied
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.message_descriptors import PLAIN_MQMD, Mqmd
from mq_adapters.client_channel.segments import ByteOrder, SegmentType
from mq_adapters.client_channel.structures import Mqpmo
from mq_adapters.client_channel.verbs import ApiHeader, MqputReply
from mq_adapters.ibm_mq import IbmMq
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.native import library
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


def _with_warning(verb: SegmentType, reason_code: int, parameters: object = None) -> Replied:
    header = ApiHeader(length=0, completion_code=1, reason_code=reason_code)
    return Replied(verb=verb, header=header, parameters=parameters)


@pytest.mark.parametrize("name", ["commit", "backout"])
def test_a_unit_of_work_that_was_backed_out_is_not_taken_for_committed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue manager says so with a warning."""
    queue_manager = library.QueueManager()
    monkeypatch.setattr(queue_manager, "call", lambda verb: _with_warning(verb, 2003))
    with pytest.raises(library.MQMIError) as warned:
        getattr(queue_manager, name)()
    assert (warned.value.comp, warned.value.reason) == (1, 2003)


def test_the_warning_of_a_put_is_told_and_its_descriptor_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    queue_manager = library.QueueManager()
    queue, mqmd = library.Queue(queue_manager), library.MD()
    reply = MqputReply(message_descriptor=PLAIN_MQMD.changed(MsgId=b"x" * 24), put_message_options=Mqpmo())
    monkeypatch.setattr(queue, "_call", lambda verb, _asked: _with_warning(verb, 2049, reply))
    with pytest.raises(library.MQMIError) as warned:
        queue.put(b"", mqmd, library.PMO(1, 0))
    assert (warned.value.comp, warned.value.reason, mqmd.MsgId) == (1, 2049, b"x" * 24)


def test_a_descriptor_of_version_1_is_packed_as_one_of_version_2() -> None:
    mqmd = library.MD()
    first = Mqmd(1, PLAIN_MQMD.values).write(ByteOrder.BIG_ENDIAN)
    mqmd.descriptor = Mqmd.read(BodyReader(first, ByteOrder.BIG_ENDIAN))
    assert (len(first), len(mqmd.pack())) == (324, 364)


def test_a_closed_connection_says_goodbye(connect: Connect, gateway: NativeGateway) -> None:
    connect().close()
    wait_until(lambda: gateway.call(lambda: len(gateway.connections)) == 0)
    assert gateway.complaints == []

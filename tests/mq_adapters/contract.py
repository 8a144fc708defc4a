"""Short forms of calls for the tests of the port's contract."""

from collections.abc import Iterable

import pytest

from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import QueueManagerError
from tests.mq_adapters.adapters import ORDERS

ANY = MessageDescriptor()


def put(queue_manager: QueueManager, body: bytes, descriptor: MessageDescriptor = ANY) -> bytes:
    return queue_manager.put(ORDERS, Message(descriptor, body))


def bodies(messages: Iterable[Message]) -> list[bytes]:
    return [message.body for message in messages]


def drain(queue_manager: QueueManager) -> list[bytes]:
    return [queue_manager.get(ORDERS).body for _ in range(queue_manager.depth(ORDERS))]


def refusal(reason_code: int):
    return pytest.raises(QueueManagerError, match=str(reason_code))

"""A program that is connected to an engine: its calls end before they return."""

from collections import deque
from collections.abc import Callable

import pytest

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.connection import Connection
from mq_adapters.embedded.mqi.getting import GetRequest, Got
from mq_adapters.embedded.mqi.open_object import ObjectName
from mq_adapters.embedded.mqi.options import GetOption, ObjectKind, PutOption
from mq_adapters.embedded.rights import Rights
from mq_adapters.message import MQCI_NONE, MQMI_NONE, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode


class Program:
    """A program with one connection; its calls end before they return."""

    def __init__(self, engine: Engine, rights: Rights, *, user: str = "billing") -> None:
        application = Application(engine, "program", user=user, rights=rights)
        #: What its calls go on with in later turns, and how many turns its last get took.
        self.begun: deque[Callable[[], None]] = deque()
        self.turns = 0
        self.connection = Connection(engine, application, later=self.begun.append)

    def open(
        self, name: str, options: int, *, dynamic_name: str = "", kind: int = ObjectKind.Q, selector: str = ""
    ) -> int:
        handles: list[int] = []
        wanted = ObjectName(kind=kind, name=name, dynamic_name=dynamic_name, selector=selector)
        self.connection.open(wanted, options, lambda opened: handles.append(opened.handle))
        return handles[0]

    def put(self, handle: int, body: bytes, options: int = PutOption.NO_SYNCPOINT, **fields: object) -> Message:
        message = Message(MessageDescriptor().replace(**fields), body)
        ends: list[str] = []
        self.connection.put(handle, message, options, lambda: ends.append("put"))
        assert ends == ["put"]
        return message

    def get(self, handle: int, options: int = GetOption.NO_SYNCPOINT, **said: object) -> Got:
        results: list[Got | QueueManagerError] = []
        self.turns = 1
        self.connection.get(handle, request(options, **said), results.append)
        while self.begun:
            self.begun.popleft()()
            self.turns += 1
        (result,) = results
        if isinstance(result, QueueManagerError):
            raise result
        return result

    def commit(self) -> None:
        ends: list[str] = []
        self.connection.commit(lambda: ends.append("committed"))
        assert ends == ["committed"]


def request(options: int, **said: object) -> GetRequest:
    """An MQGET with a buffer of 1,000 bytes that takes any message, with changes."""
    fields: dict[str, object] = {
        "options": options,
        "match_options": 0,
        "msg_id": MQMI_NONE,
        "correl_id": MQCI_NONE,
        "buffer_bytes": 1_000,
        **said,
    }
    return GetRequest(**fields)  # type: ignore[arg-type]  # a test gives what it means


def refused(call: Callable[[], object]) -> ReasonCode:
    """The reason for which a call is refused."""
    with pytest.raises(QueueManagerError) as error:
        call()
    return ReasonCode(error.value.reason_code)

"""A program of IBM MQ over either binding, with all that differs between them, and nothing but plain calls."""

from types import ModuleType
from typing import Any

SHARE_NONE = 0x20
SHARE_BLOCK = 0x40
SHARE_NO_BLOCK = 0x80
INPUT_SHARED, INPUT_EXCLUSIVE, BROWSE, OUTPUT, INQUIRE = 2, 4, 8, 16, 32
SYNCPOINT, NO_SYNCPOINT = 2, 4


class Program:
    """One connection, its message descriptors and options of explicit versions."""

    def __init__(self, mq: ModuleType, *, share: int = SHARE_BLOCK, **connecting: Any) -> None:
        self.mq = mq
        self.manager = mq.QueueManager(None)
        self.manager.connect_with_options("", opts=share, **connecting)

    def open(self, name: str, options: int) -> Any:
        od = self.mq.OD(ObjectName=self.text(name), Version=4)
        queue = self.mq.Queue(self.manager)
        queue.open(od, options)
        return queue

    def put(self, queue: Any, body: bytes, options: int = SYNCPOINT, **descriptor: Any) -> Any:
        md = self.mq.MD(Version=2, **descriptor)
        queue.put(body, md, self.mq.PMO(Version=3, Options=options))
        return md

    def get(self, queue: Any, options: int = SYNCPOINT, *, wait_ms: int = 0, longest: int = 10_000, **more: Any) -> Any:
        """The body and the descriptor."""
        md = self.mq.MD(Version=2, **more)
        gmo = self.mq.GMO(Version=4, Options=options | (1 if wait_ms else 0), WaitInterval=wait_ms)
        return queue.get(longest, md, gmo), md

    def reason_of(self, call: Any, *arguments: Any, **named: Any) -> int:
        """The reason with which a call fails; 0 where it does not."""
        try:
            call(*arguments, **named)
        except self.mq.MQMIError as error:
            return int(error.reason)
        return 0

    def text(self, text: str) -> Any:
        """Text as the binding takes it: pymqi wants bytes."""
        return text.encode() if self.mq.__name__ == "pymqi" else text

"""The port: what every queue manager behind the gateway can do, as blocking calls for one thread.

Contract, the same for every adapter:

* `put` outside a unit of work returns when the message is safe (persistent) or available (not persistent).
* After `begin`, `put` and `get` belong to the unit of work until `commit` or `back_out`; others see nothing of it.
  A message that was got and backed out is back at its place with its back-out count one higher.
* `get` takes the oldest message that matches; `browse` looks without taking. Identifiers are 24 bytes, None matches
  all.
* `begin` inside a unit of work is 2128; `commit` and `back_out` outside of one do nothing.
* `wait_s` is how long `get` may wait for a message, in seconds; then QueueManagerError 2033.
* Every refusal is a QueueManagerError with an MQRC_* reason code; a queue that is not defined is 2085.
* A lost connection is 2009, and the open unit of work has been backed out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self

from mq_adapters.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """A queue as `rfhbridge queue list` shows it. `depth` counts messages, `oldest_put_us` is 0 for an empty queue."""

    name: str
    depth: int
    oldest_put_us: int
    description: str


class QueueManager(Protocol):
    """A connection to a queue manager; used by one thread. Close it, or use it as a context manager."""

    name: str

    def put(self, queue_name: str, message: Message) -> bytes:
        """Put a message; returns its MsgId."""
        ...

    def get(
        self, queue_name: str, *, wait_s: float = 0.0, msg_id: bytes | None = None, correl_id: bytes | None = None
    ) -> Message:
        """Take the oldest message that matches."""
        ...

    def browse(
        self, queue_name: str, *, msg_id: bytes | None = None, correl_id: bytes | None = None
    ) -> Iterator[Message]:
        """The messages that match, oldest first, without taking them."""
        ...

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def back_out(self) -> None: ...
    def define(self, queue_name: str, *, description: str = "") -> None: ...
    def clear(self, queue_name: str) -> int:
        """Remove every message of a queue; returns how many there were."""
        ...

    def depth(self, queue_name: str) -> int: ...
    def queues(self) -> tuple[QueueStatus, ...]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

"""The port: what every queue manager behind the gateway can do, as blocking calls for one thread.

Contract, the same for every adapter:

* `put` outside a unit of work returns when the message is safe (persistent) or available (not persistent).
* After `begin`, `put` and `get` belong to the unit of work until `commit` or `back_out`; others see nothing of it.
  A message that was got and backed out is back at its place with its back-out count one higher.
* `get` takes the first message that matches: with MSGDLVSQ(PRIORITY) the oldest of the highest priority, with FIFO the
  oldest. `browse` looks without taking; its cursor can take what it stands on. Identifiers are 24 bytes, None matches
  all.
* A put resolves what is left open: Priority -1 and Persistence 2 are as the queue that was opened says; blank context
  fields are filled with the application's name; a blank ReplyToQMgr becomes this queue manager. Context fields that a
  program gives are kept, as with MQPMO_SET_ALL_CONTEXT (PutDate and PutTime excepted, which are the put's).
* Reports that Report asks for (COA, COD, expiration; exception where a message is taken and then put aside) go to
  ReplyToQ in the unit of work of what they report. PAN and NAN are the applications' own (mq_adapters/reports.py). A
  request, or a message that asks for reports, without ReplyToQ is 2027; a report option that is unknown and may not be
  passed on is 2061. A put that is refused at once is refused to the putter, and to nobody by report.
* A back-out count survives a restart for persistent messages, unless the queue says NOHARDENBO. Nobody acts on
  BOTHRESH and BOQNAME but the application, which inquires them (mq_adapters/back_out.py does it for one).
* `take_batch` takes messages that are there now, in the order of `get`, into the open unit of work (2255 without one):
  at most `most_messages` with bodies of at most `most_bytes` together, but one at least where there is one. It ends
  early where the unit of work may hold no more.
* `open_exclusively` is MQOPEN with MQOO_INPUT_EXCLUSIVE: 2042 while any connection, this one too, has the queue open
  for input (in the embedded queue manager: gets from it with a wait or in a unit of work), or holds it. It asks again
  for `wait_s` seconds. When it returns, all that the last holder's connection did has taken effect or never will. Until
  the handle or the connection is closed every other connection's `get` and `take_batch`, and a cursor's `take`, are
  2042; this connection's go on as ever. Puts and browses are possible to all.
* `begin` inside a unit of work is 2128; `commit` and `back_out` outside of one do nothing.
* `wait_s` is how long `get` may wait for a message, in seconds; then QueueManagerError 2033.
* Every refusal is a QueueManagerError with an MQRC_* reason code; a queue that is not defined is 2085.
* A lost connection is 2009: an open unit of work has been backed out. A commit that was under way, or a put or get
  outside a unit of work, took place or did not; nobody can tell from the answer. The connection is of no further use.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self

from mq_adapters.attributes import Definition
from mq_adapters.cursor import Cursor
from mq_adapters.exclusive_queue import ExclusiveQueue
from mq_adapters.message import Message
from mq_adapters.mqsc import MqscAnswer
from mq_adapters.subscribed_queue import SubscribedQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """A queue as `rfhbridge queue list` shows it. `depth` counts messages, `oldest_put_us` is 0 for an empty queue."""

    name: str
    depth: int
    oldest_put_us: int
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """State of a compaction: the bytes of the store's file, the free bytes among them, and whether it is done."""

    size_bytes: int
    free_bytes: int
    is_done: bool


class QueueManager(Protocol):
    """A connection to a queue manager; used by one thread. Close it, or use it as a context manager.

    `name` is the queue manager's name; `identifier` (MQCA_Q_MGR_IDENTIFIER, at most 48 characters) tells it from every
    other, also from one of the same name.
    """

    name: str
    identifier: str

    def put(self, queue_name: str, message: Message) -> bytes:
        """Put a message; returns its MsgId."""
        ...

    def get(
        self, queue_name: str, *, wait_s: float = 0.0, msg_id: bytes | None = None, correl_id: bytes | None = None
    ) -> Message:
        """Take the oldest message that matches."""
        ...

    def browse(self, queue_name: str, *, msg_id: bytes | None = None, correl_id: bytes | None = None) -> Cursor[Any]:
        """The messages that match, in the order of `get`, without taking them."""
        ...

    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> tuple[Message, ...]:
        """Messages that are there now into the open unit of work."""
        ...

    def open_exclusively(self, queue_name: str, *, wait_s: float = 0.0) -> ExclusiveQueue:
        """Holds a queue: nobody else may get from it. 2042 where it is still in use after `wait_s` seconds."""
        ...

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def back_out(self) -> None: ...
    def create_dynamic(self, model_name: str, name: str = "AMQ.*") -> str:
        """A temporary dynamic queue like a model queue, deleted with this connection; returns its full name.

        `*` at the end of `name` becomes what makes it unique. 2085 or 2057 without the model, 2011 for a bad name.
        """
        ...

    def inquire(self, name: str) -> Definition:
        """The attributes of a queue, of the base queue behind an alias, or with a blank name of the queue manager."""
        ...

    def maximum_message_bytes(self, queue_name: str) -> int:
        """The longest body that a put on a queue may have, in bytes, as far as it is known: of MAXMSGL the smallest."""
        ...

    def depth(self, queue_name: str) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...


class QueueAdministration(QueueManager, Protocol):
    """A connection that may also define queues and look after them: the embedded queue manager's."""

    def define(self, queue_name: str, *, description: str = "") -> None: ...
    def operate(self, command: str, reason: str = "") -> None:
        """The open unit of work is an operator's act: the audit hears of it with its commit. 2255 without a unit."""
        ...

    def clear(self, queue_name: str) -> int:
        """Destroy every message of a queue, as an operator's act; returns how many there were.

        2042 where somebody holds the queue, or messages on it are in doubt.
        """
        ...

    def compaction(self) -> Compaction:
        """How far the store is compacted."""
        ...

    def compact_some(self) -> Compaction:
        """Give room that the store has inside back to the disk, a little; call it until it is done."""
        ...

    def queues(self) -> tuple[QueueStatus, ...]: ...
    def subscribe(
        self, topic: str, *, options: int, name: str = "", user_data: str = "", queue_name: str = "", expiry: int = 0
    ) -> SubscribedQueue:
        """MQSUB with these options (SubscriptionOption): to a topic, on a managed queue or on this one.

        `expiry` is in tenths of a second, 0 for ever. 2531 where no broker runs.
        """
        ...

    def mqsc(self, command: str) -> MqscAnswer:
        """Carries out one MQSC command. The answer says so if the command server refuses it."""
        ...

"""The port without a gateway: a command that owns the store itself for as long as it runs.

The command is alone: there is no broker. Messages on the control queue wait there for the gateway, and a get never
waits, because no message can arrive. No message is converted here. An operator's acts may be noted for the audit trail.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from mq_adapters.attributes import Definition, longest_message_bytes, queue_manager_identifier
from mq_adapters.cursor import Cursor
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.publications import delivered
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.queue_administration import CLEAR_MESSAGES
from mq_adapters.embedded.rights import EVERYTHING, Rights
from mq_adapters.embedded.socket.peer import own_name, own_user
from mq_adapters.exclusive_queue import ExclusiveQueue
from mq_adapters.message import Message
from mq_adapters.mqmd import checked_identifier, read_mqmd, write_mqmd
from mq_adapters.mqsc import MqscAnswer
from mq_adapters.queue_manager import Compaction, QueueStatus
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.subscribed_queue import SubscribedQueue


class Direct:
    """The queue manager of a data folder, owned. Implements mq_adapters.queue_manager.QueueAdministration.

    Raises StoreError if the disk fails. Acknowledged messages are safe then.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        application_name: str = "",
        wait_s: float = 0.0,
        prepare: Callable[[Engine], None] = lambda _engine: None,
        rights: Rights = EVERYTHING,
    ) -> None:
        """Opens or makes the store. QueueManagerError 2042 if somebody else owns it for longer than `wait_s`.

        `prepare` is called with the engine before all else, so that the keeper of the audit can set its call-backs.
        """
        self._engine: Engine | None = Engine.open(data_dir, wait_s=wait_s)
        prepare(self._engine)
        self.name = self._engine.name
        self.incarnation = self._engine.incarnation
        self.identifier = queue_manager_identifier(self.incarnation)
        self._application = Application(
            self._engine, application_name, user=own_user(), operator=own_name(), rights=rights
        )

    # -- messages ----------------------------------------------------------------------------------------------------

    def put(self, queue_name: str, message: Message) -> bytes:
        engine = self._open()
        own = read_mqmd(write_mqmd(message), message.body)
        own.backout_count = 0
        self._now(lambda done: self._application.put(queue_name, own, done))
        return own.msg_id if engine.failed is None else b""

    def get(
        self, queue_name: str, *, wait_s: float = 0.0, msg_id: bytes | None = None, correl_id: bytes | None = None
    ) -> Message:
        self._open()
        queue = self._application.getting(queue_name)
        message = self._application.take(queue, checked_identifier(correl_id), checked_identifier(msg_id))
        if message is None:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_AVAILABLE, f"get from {queue_name}")
        return self._removed(queue, message)

    def browse(self, queue_name: str, *, msg_id: bytes | None = None, correl_id: bytes | None = None) -> Cursor[int]:
        self._open()
        wanted = checked_identifier(correl_id), checked_identifier(msg_id)

        def start() -> Iterator[tuple[int, Message]]:
            found = self._application.browse(queue_name, *wanted)
            return ((message.sequence, self._delivered(message)) for message in found)

        def take(sequence: int) -> Message:
            self._open()
            queue = self._application.getting(queue_name)
            return self._removed(queue, self._application.take_number(queue, sequence))

        return Cursor(queue_name, start, take)

    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> tuple[Message, ...]:
        """Takes the oldest messages into the open unit of work, at least one if there is one; 2255 without a unit."""
        self._open()
        batch = self._application.take_batch(queue_name, most_messages=most_messages, most_bytes=most_bytes)
        return tuple(map(self._delivered, batch))

    def open_exclusively(self, queue_name: str, *, wait_s: float = 0.0) -> ExclusiveQueue:
        """As the port says. It never waits, because nobody else is here to give the queue up."""
        self._open()
        names: list[str] = []
        self._application.hold(queue_name, names.append)
        self._check_store()
        return ExclusiveQueue(self, names[0], self._application.release)

    # -- units of work -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._open()
        self._application.begin()

    def operate(self, command: str, reason: str = "") -> None:
        self._open()
        self._application.operate(command, reason)

    def keep_trail_head(self, head: str) -> None:
        """Keeps how far the trail reaches, with the open unit of work."""
        self._open()
        self._application.keep_trail_head(head)

    def trail_head(self) -> str:
        """How far the trail reaches, as last committed; "" where nothing was kept."""
        self._open()
        heads: list[str] = []
        self._application.trail_head(heads.append)
        self._check_store()
        return heads[0]

    def commit(self) -> None:
        self._open()
        self._now(self._application.commit)

    def back_out(self) -> None:
        self._open()
        self._application.back_out()

    # -- queues ------------------------------------------------------------------------------------------------------

    def define(self, queue_name: str, *, description: str = "") -> None:
        self._open()
        self._application.define(queue_name, description)

    def clear(self, queue_name: str) -> int:
        self._open()
        counts: list[int] = []
        while not counts or counts[-1] == CLEAR_MESSAGES:
            self._application.clear_some(queue_name, counts.append)
            self._check_store()
        return sum(counts)

    def compaction(self) -> Compaction:
        return self._open().maintenance.compaction()

    def compact_some(self) -> Compaction:
        self._check_store()
        return self._application.compact_some()

    def depth(self, queue_name: str) -> int:
        self._open()
        return self._application.depth(queue_name)

    def queues(self) -> tuple[QueueStatus, ...]:
        self._open()
        return self._application.queues()

    def create_dynamic(self, model_name: str, name: str = "AMQ.*") -> str:
        self._open()
        return self._application.create_dynamic(model_name, name)

    def subscribe(
        self, topic: str, *, options: int, name: str = "", user_data: str = "", queue_name: str = "", expiry: int = 0
    ) -> SubscribedQueue:
        raise QueueManagerError(ReasonCode.MQRC_PUBSUB_INHIBITED, f"subscribe to {topic}: no gateway runs")

    def inquire(self, name: str) -> Definition:
        self._open()
        return self._application.inquire(name)

    def maximum_message_bytes(self, queue_name: str) -> int:
        return longest_message_bytes(self.inquire(queue_name), self.inquire(""))

    def mqsc(self, command: str) -> MqscAnswer:
        engine, application = self._open(), self._application
        answer = CommandServer(engine, application.user, application.operator, application.rights).execute(command)
        self._check_store()
        return answer

    # -- the connection ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Gives the store up. Uncommitted work is backed out."""
        engine, self._engine = self._engine, None
        if engine is not None:
            self._application.close()
            engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _open(self) -> Engine:
        if self._engine is None:
            raise QueueManagerError(ReasonCode.MQRC_HCONN_ERROR, "use the queue manager")
        return self._engine

    def _now(self, call: Callable[[Callable[[], None]], None]) -> None:
        """Makes a call whose commit happens before it returns, because this engine has no loop to wait for."""
        call(_committed)
        self._check_store()

    def _removed(self, queue: Queue, message: Message) -> Message:
        delivered = self._delivered(message)
        self._now(lambda done: self._application.remove(queue, message, done))
        return delivered

    def _check_store(self) -> None:
        failed = self._open().failed
        if failed is not None:
            raise failed

    def _delivered(self, message: Message) -> Message:
        """The application's own copy, as it would come over the socket: with MsgId and the rest of its expiry."""
        message = delivered(message)
        return read_mqmd(write_mqmd(message, now_us=self._open().now_us()), message.body)


def _committed() -> None:
    """The engine has committed, or has failed: `_check_store` tells."""

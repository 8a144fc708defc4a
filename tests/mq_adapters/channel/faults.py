"""A connection whose calls fail on purpose: the nth call of a verb, before, after or long before its work.

`before`: nothing of the call takes place. `after`: it takes place, and the answer is lost. `later`: the answer is lost,
and the queue manager notices nothing yet: the connection is there, with its unit of work and its queues, until somebody
has asked several times for a queue that it holds; only then a commit takes effect, or its unit of work is backed out.
"""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mq_adapters.attributes import Definition, queue_manager_identifier
from mq_adapters.cursor import Cursor
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.exclusive_queue import ExclusiveQueue
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError

BROKEN = 2009
BACKED_OUT = 2003
#: How often a queue is asked for before a connection that nobody has any longer is noticed.
LINGERS = 3


class Killed(BaseException):
    """The channel's process died at this call."""


class Connection(Direct):
    """One of several connections to one engine, all in the test's thread."""

    def __init__(self, engine: Engine, application_name: str = "") -> None:
        self._engine = engine
        self.name = engine.name
        self.incarnation = engine.incarnation
        self.identifier = queue_manager_identifier(engine.incarnation)
        self._application = Application(engine, application_name)

    def close(self) -> None:
        if self._engine is not None:
            self._application.close()
            self._engine = None


class Faults:
    """What goes wrong on one side. Calls are counted by verb, over all connections."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        #: (verb, its nth call) to (reason code, "before" or "after" its work); reason code 0 kills the process.
        self.planned: dict[tuple[str, int], tuple[int, str]] = {}
        #: Reason codes of puts by a part of the body; the connection stays.
        self.refused_puts: dict[bytes, int] = {}
        #: A unit of work with one of these in a body is backed out by its commit.
        self.uncommittable: list[bytes] = []
        self.most_unit_calls = 0
        #: What `later` has left behind: how often it is asked for, then what happens.
        self.lingering: list[tuple[int, Callable[[], None]]] = []
        self.draw: Callable[[str], tuple[int, str] | None] = lambda _verb: None
        self.when_empty: Callable[[str], None] = lambda _queue_name: None
        #: Bodies of each unit of work that was committed, in order.
        self.units: list[list[bytes]] = []

    def plan(self, verb: str, nth: int, *, when: str, reason_code: int = BROKEN) -> None:
        """The nth call of a verb from now on fails."""
        self.planned[verb, self.calls[verb] + nth] = reason_code, when

    def lose_randomly(self, seed: random.Random, *, every_calls: int, ways: tuple[str, ...]) -> None:
        """From now on a call fails, or the process dies, every so many calls on average."""

        def draw(_verb: str) -> tuple[int, str] | None:
            if seed.randrange(every_calls):
                return None
            return (0 if seed.random() < 0.3 else BROKEN), seed.choice(ways)

        self.draw = draw

    def heal(self) -> None:
        self.planned.clear()
        self.draw = lambda _verb: None

    def somebody_asks(self) -> None:
        """A queue is asked for: what lingers comes nearer to its end."""
        left, self.lingering = self.lingering, []
        for times, end in left:
            if times > 1:
                self.lingering.append((times - 1, end))
            else:
                end()


class FaultyConnection:
    """The port, with faults. A connection that broke or whose process died has backed out and answers nothing more."""

    def __init__(self, engine: Engine, faults: Faults) -> None:
        self._connection = Connection(engine, "channel")
        self._faults = faults
        self._dead: BaseException | None = None
        self._unit: list[bytes] = []
        self._unit_calls = 0
        self._in_unit = False
        self._lingers = False
        self.name = self._connection.name
        self.identifier = self._connection.identifier
        self.incarnation = self._connection.incarnation

    def put(self, queue_name: str, message: Message) -> bytes:
        def put() -> bytes:
            for part, reason_code in self._faults.refused_puts.items():
                if part in message.body:
                    raise QueueManagerError(reason_code, f"put on {queue_name}")
            self._count_unit_call()
            msg_id = self._connection.put(queue_name, message)
            self._unit.append(message.body)
            return msg_id

        return self._call("put", put)

    def get(
        self, queue_name: str, *, wait_s: float = 0.0, msg_id: bytes | None = None, correl_id: bytes | None = None
    ) -> Message:
        def get() -> Message:
            self._count_unit_call()
            return self._connection.get(queue_name, msg_id=msg_id, correl_id=correl_id)

        try:
            return self._call("get", get)
        except QueueManagerError as error:
            if error.reason_code == 2033 and wait_s:
                self._faults.when_empty(queue_name)
            raise

    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> tuple[Message, ...]:
        taken = self._call(
            "take_batch",
            lambda: self._connection.take_batch(queue_name, most_messages=most_messages, most_bytes=most_bytes),
        )
        self._unit_calls += len(taken)
        return taken

    def browse(self, queue_name: str, *, msg_id: bytes | None = None, correl_id: bytes | None = None) -> Cursor[int]:
        return self._call("browse", lambda: self._connection.browse(queue_name, msg_id=msg_id, correl_id=correl_id))

    def open_exclusively(self, queue_name: str, *, wait_s: float = 0.0) -> ExclusiveQueue:
        self._faults.somebody_asks()
        held = self._call("open_exclusively", lambda: self._connection.open_exclusively(queue_name))
        return ExclusiveQueue(self, held.name, lambda _name: self._call("release", held.close))

    def begin(self) -> None:
        self._call("begin", self._connection.begin)
        self._in_unit, self._unit, self._unit_calls = True, [], 0

    def commit(self) -> None:
        def commit() -> None:
            if any(part in body for part in self._faults.uncommittable for body in self._unit):
                self._connection.back_out()
                self._in_unit = False
                raise QueueManagerError(BACKED_OUT, "commit")
            self._connection.commit()
            self._in_unit = False
            self._faults.units.append(self._unit)

        self._call("commit", commit)

    def back_out(self) -> None:
        self._in_unit = False
        self._call("back_out", self._connection.back_out)

    def inquire(self, name: str) -> Definition:
        return self._call("inquire", lambda: self._connection.inquire(name))

    def maximum_message_bytes(self, queue_name: str) -> int:
        return self._connection.maximum_message_bytes(queue_name)

    def create_dynamic(self, model_name: str, name: str = "AMQ.*") -> str:
        return self._connection.create_dynamic(model_name, name)

    def depth(self, queue_name: str) -> int:
        return self._connection.depth(queue_name)

    def close(self) -> None:
        if not self._lingers:
            self._connection.close()

    def __enter__(self) -> "FaultyConnection":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _count_unit_call(self) -> None:
        self._unit_calls += 1
        if self._in_unit and 0 < self._faults.most_unit_calls < self._unit_calls:
            raise QueueManagerError(2024, "a unit of work")

    def _call(self, verb: str, work: Callable[[], Any]) -> Any:
        if self._dead is not None:
            raise self._dead
        faults = self._faults
        faults.calls[verb] += 1
        fault = faults.planned.pop((verb, faults.calls[verb]), None) or faults.draw(verb)
        if fault is None:
            return work()
        reason_code, when = fault
        if when == "after":
            work()
        if reason_code not in (0, BROKEN):
            raise QueueManagerError(reason_code, verb)
        if when == "later":
            self._linger(work if verb == "commit" else self._connection.back_out)
        else:
            self._connection.close()
        self._dead = QueueManagerError(BROKEN, verb) if reason_code else Killed(verb)
        raise self._dead

    def _linger(self, last_work: Callable[[], Any]) -> None:
        self._lingers = True

        def end() -> None:
            with suppress(QueueManagerError):
                last_work()
            self._connection.close()

        self._faults.lingering.append((LINGERS, end))

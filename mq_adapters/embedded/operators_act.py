"""An operator's act: the operator, and the command. The unit of work that carries it out tells of it.

The keeper of the audit is told of each act (Engine.on_operated). An act destroys or moves messages, limits a queue or
ends a session. The work of applications with their own messages is no act.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mq_adapters.embedded.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from mq_adapters.embedded.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsAct:
    """One act: the operator as the operating system knows him, and the command as he gave it.

    `subject` is the object of the act if that is no queue: a client, a topic, a channel. `reason` is a further remark.
    """

    operator: str
    command: str
    queue: str = ""
    subject: str = ""
    reason: str = ""

    def on_queue(self, name: str) -> "OperatorsAct":
        return replace(self, queue=name)


def tell(engine: "Engine", unit: UnitOfWork, act: OperatorsAct, *, messages: int = 0) -> None:
    """Adds the act to its unit of work. `messages`: how many messages it destroys, takes or moves."""
    engine.on_operated(unit, act, messages)


def tell_alone(engine: "Engine", act: OperatorsAct, *, messages: int = 0) -> None:
    """Tells of an act without a unit of work, in a new unit."""
    unit = engine.begin()
    tell(engine, unit, act, messages=messages)
    engine.submit(unit)


def tell_removals(engine: "Engine", unit: UnitOfWork, act: OperatorsAct) -> None:
    """Like `tell`, for each queue that the unit removes messages from. If there is none, once without a queue."""
    counts = Counter(queue.name for queue, _, _ in unit.removals)
    for name, messages in counts.items():
        tell(engine, unit, act.on_queue(name), messages=messages)
    if not counts:
        tell(engine, unit, act)

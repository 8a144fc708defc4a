"""An operator's act: who ordered what. It is told in the unit of work that carries it out.

The keeper of the audit hears of each (Engine.on_operated). An act destroys or moves messages, limits a queue or ends a
session. Applications' work with their own messages is none.
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

    `subject` is what it was on where that is no queue: a client, a topic, a channel. `reason` is what else there is to
    say.
    """

    operator: str
    command: str
    queue: str = ""
    subject: str = ""
    reason: str = ""

    def on_queue(self, name: str) -> "OperatorsAct":
        return replace(self, queue=name)


def tell(engine: "Engine", unit: UnitOfWork, act: OperatorsAct, *, messages: int = 0) -> None:
    """Adds the act to the unit of work that carries it out; `messages` are those that it destroys, takes or moves."""
    engine.on_operated(unit, act, messages)


def tell_alone(engine: "Engine", act: OperatorsAct, *, messages: int = 0) -> None:
    """Tells of an act that no unit of work carries out, in one of its own."""
    unit = engine.begin()
    tell(engine, unit, act, messages=messages)
    engine.submit(unit)


def tell_removals(engine: "Engine", unit: UnitOfWork, act: OperatorsAct) -> None:
    """The same for each queue that the unit removes messages from; once, without a queue, where there is none."""
    counts = Counter(queue.name for queue, _, _ in unit.removals)
    for name, messages in counts.items():
        tell(engine, unit, act.on_queue(name), messages=messages)
    if not counts:
        tell(engine, unit, act)

"""What one application of the engine does to the others."""

from collections.abc import Callable
from pathlib import Path

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.message import Message, MessageDescriptor


def test_a_queue_is_held_when_all_that_was_committed_before_can_be_seen(data_folder: Path) -> None:
    turns: list[Callable[[], None]] = []
    engine = Engine.open(data_folder, call_soon=turns.append)
    engine.define("STATE")
    before, after = Application(engine), Application(engine)
    events: list[str] = []
    before.put("STATE", Message(MessageDescriptor(), b"last"), lambda: events.append("put"))
    before.close()
    after.hold("STATE", events.append)
    assert events == []
    turns.pop()()
    assert events == ["put", "STATE"]
    after.close()
    engine.close()

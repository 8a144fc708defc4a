"""The table of system queues: a store has those that it says, and whoever may not open one is refused."""

import ast
from pathlib import Path

import pytest

from mq_adapters import connect
from mq_adapters.embedded.engine import Engine
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import AUDIT_QUEUE, MADE_AT_START, SYSTEM_QUEUES


def test_a_new_store_has_the_queues_that_the_table_makes_at_start_and_no_other(tmp_path: Path) -> None:
    engine = Engine.open(tmp_path)
    made = {queue.name: (queue.definition.text("DESCR"), engine.owner(queue)) for queue in engine.queues()}
    engine.close()
    assert made == {row.name: (row.description, row.owner) for row in MADE_AT_START}


@pytest.mark.parametrize("row", SYSTEM_QUEUES.values(), ids=SYSTEM_QUEUES)
def test_an_application_may_put_on_each_queue_but_those_that_the_gateway_alone_puts_on(tmp_path: Path, row) -> None:
    with connect(tmp_path) as queue_manager:
        if not row.is_made_at_start:
            queue_manager.define(row.name)
        message = Message(MessageDescriptor(format=b"MQSTR   "), b"words")
        if not row.is_closed_to_applications:
            queue_manager.put(row.name, message)
            return
        with pytest.raises(QueueManagerError) as refused:
            queue_manager.put(row.name, message)
    assert (row.name, refused.value.reason_code) == (AUDIT_QUEUE, ReasonCode.MQRC_PUT_INHIBITED)


def test_no_other_module_spells_the_name_of_a_system_queue() -> None:
    root = Path(__file__).parents[2]
    spelled = {
        (path.relative_to(root).as_posix(), node.value)
        for room in ("gateway", "mappings", "mq_adapters")
        for path in (root / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in SYSTEM_QUEUES
    }
    assert {name for _, name in spelled} == set(SYSTEM_QUEUES)
    assert {path for path, _ in spelled} == {"mq_adapters/system_queues.py", "mappings/topics/streams.py"}

"""RabbitMQ answers the load of the benchmarks, and leaves nothing behind. Only where it is installed."""

import socket
from pathlib import Path

import pytest

from benchmarks import one_to_one, qos1_offline
from benchmarks.rabbitmq import RabbitMq, rabbitmq_program
from benchmarks.servers import ALONE
from tests.benchmarks.load_generator import needs_generator

pytestmark = [
    needs_generator,
    pytest.mark.skipif(rabbitmq_program() is None, reason="RabbitMQ is missing (apt-get install rabbitmq-server)"),
    pytest.mark.timeout(120),
]


def test_messages_are_kept_and_delivered_and_nothing_is_left_behind() -> None:
    with RabbitMq() as rabbitmq:
        kept, used_s = qos1_offline.measure(rabbitmq, 0.3)
        row = one_to_one.measure(rabbitmq, 1, 0.3)
        folder, node, port = rabbitmq._folder, rabbitmq.process_id, rabbitmq.port
        assert "beam" in Path(f"/proc/{node}/comm").read_text()
    assert kept.acknowledged > 0
    assert used_s > 0
    assert row.value("rate") > 0
    assert row.durable == rabbitmq.durable
    assert not folder.exists()
    assert not Path(f"/proc/{node}").is_dir()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_it_is_not_measured_where_the_gateway_is_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALONE, "1")
    assert rabbitmq_program() is None

"""The audit of a gateway that IBM's client has used."""

from collections.abc import Callable
from pathlib import Path

from tests.end_to_end.mq_clients.house import House
from tests.processes.forked import rfhbridge


def test_work_of_mq_clients_is_recorded_and_no_control_finds_fault(
    house: House, java: Callable[..., list[str]], tmp_path: Path
) -> None:
    java("Jms", *house.as_billing("kinds", "transacted", "reply", "topics", "forbidden"))
    assert house.gateway.stop() == 0, house.gateway.log
    report = tmp_path / "report"
    ended = rfhbridge("audit", "run", "--engine", "duckdb", "--data", house.gateway.data, "--out", report, timeout=None)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    balance = rfhbridge("balance", "--data", house.gateway.data, timeout=None)
    assert balance.returncode == 0, balance.stdout + balance.stderr

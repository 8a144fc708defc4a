"""The connections of a channel process: the password comes from where the settings say, at each connection."""

from pathlib import Path

import pytest

from gateway.channels.connections import Connections, password_of
from gateway.channels.protocol import ProcessSettings
from gateway.channels.reports import Reports
from gateway.config import TargetSettings
from mq_adapters.embedded.direct import Direct
from mq_adapters.reasons import QueueManagerError

SECRET = "correct horse"


def target(**said: object) -> TargetSettings:
    return TargetSettings.model_validate({"name": "CENTRAL", "user": "gateway", **said})


def settings(target_settings: TargetSettings, *queues: str) -> ProcessSettings:
    return ProcessSettings(
        data="/nowhere",
        target=target_settings,
        shards=1,
        subscriber_queue="S",
        reply_queue="R",
        publication_queues=queues,
        stopped=("CENTRAL.OUT.0",),
        log_level="info",
        log_format="text",
        now_us=0,
    )


def test_the_password_is_the_first_line_of_its_file(tmp_path):
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\nsomething else\n")
    assert password_of(target(password_file=str(path))) == SECRET
    path.write_text("another")
    assert password_of(target(password_file=str(path))) == "another"


def test_the_password_is_in_the_environment(monkeypatch):
    monkeypatch.setenv("CENTRAL_PASSWORD", SECRET)
    assert password_of(target(password_environment="CENTRAL_PASSWORD")) == SECRET


def test_without_a_place_there_is_no_password():
    assert password_of(target()) == ""


@pytest.mark.parametrize(
    "said", [{"password_file": "/nowhere/password"}, {"password_environment": "RFHBRIDGE_TEST_IS_NOT_SET"}]
)
def test_a_password_that_is_not_there_is_the_operators_fault(said):
    with pytest.raises(QueueManagerError) as refused:
        password_of(target(**said))
    assert refused.value.reason_code == 2035
    assert "CENTRAL" in str(refused.value)


def test_a_password_never_travels_with_the_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("CENTRAL_PASSWORD", SECRET)
    sent = settings(target(password_environment="CENTRAL_PASSWORD"), "STOCK")
    assert SECRET.encode() not in sent.to_line()
    assert ProcessSettings.from_line(sent.to_line()) == sent


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"{}", b'{"target":{"name":"CENTRAL"}}', b"\xff"])
def test_what_are_no_settings_is_refused(line):
    with pytest.raises(ValueError):
        ProcessSettings.from_line(line)


def test_lengths_are_those_of_the_queues_that_may_be_inquired(tmp_path: Path):
    lines: list[bytes] = []
    reports = Reports(lines.append)
    queue_manager = Direct(tmp_path)
    queue_manager.mqsc("DEFINE QLOCAL(STOCK) MAXMSGL(1000)")
    connections = Connections(settings(target(), "STOCK", "MISSING"), reports, lambda _target: queue_manager)
    assert connections.remote("CENTRAL.OUT.0") is queue_manager
    assert reports._found["CENTRAL.OUT.0"].maximum_message_bytes == {"STOCK": 1_000}
    queue_manager.close()


def test_a_second_queue_manager_of_the_list_is_as_one_that_is_not_available(tmp_path: Path):
    reports = Reports(lambda _line: None)
    places = iter((tmp_path / "one", tmp_path / "two", tmp_path / "two"))
    connections = Connections(settings(target()), reports, lambda _target: Direct(next(places)))
    first = connections.remote("CENTRAL.OUT.0")
    with pytest.raises(QueueManagerError) as refused:
        connections.remote("CENTRAL.OUT.1")
    assert refused.value.reason_code == 2059
    Direct(tmp_path / "two").close()  # it was let go
    first.close()

"""The daemon in this process: what its run gives back, and what it leaves behind where it cannot start."""

import contextlib
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from gateway import daemon
from gateway.config import ConfigurationError, Settings
from gateway.listener import OpenListener
from mq_adapters import connect as connect_queue_manager
from mq_adapters.embedded import group_commit
from mq_adapters.embedded.store.store import Store
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

pytestmark = pytest.mark.usefixtures("interpreter_as_it_was")


@pytest.fixture(autouse=True)
def _nobody_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "OWNER_WAIT_S", 0.0)


def _settings(data: Path, **overrides: object) -> Settings:
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    return Settings.load(None, {"listen": "127.0.0.1:0", "data": str(data), **dotted})


def _terminate(*_address: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _endings_of_the_trail(data: Path) -> set[str]:
    """Of the segments; there are two where an hour begins meanwhile."""
    return {path.suffix for path in (data / "trail").iterdir() if path.is_file()}


def _owner_is_gone(data: Path) -> bool:
    Store.open(data).close()
    return True


def test_a_daemon_that_is_told_to_stop_gives_zero_and_lets_go_of_its_store(data_folder: Path) -> None:
    ports: list[int] = []

    def ready(listeners: Sequence[OpenListener]) -> None:
        (address,) = [listener.address for listener in listeners]
        assert address.host == "127.0.0.1"
        ports.append(address.port)
        with socket.create_connection((address.host, address.port), 10):
            _terminate()

    assert daemon.run(_settings(data_folder), ready=ready) == 0
    assert ports[0] > 0
    assert _endings_of_the_trail(data_folder) == {".jsonl"}
    assert _owner_is_gone(data_folder)


def test_a_daemon_that_has_stopped_is_ended_by_no_further_signal(data_folder: Path) -> None:
    """Its process still frees its memory, and what it ends with is settled."""
    assert daemon.run(_settings(data_folder), ready=_terminate) == 0
    assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_IGN] * 3


def test_no_signal_has_its_default_while_the_daemon_stops(data_folder: Path) -> None:
    """The default is the end of the process: a second SIGTERM would make a failure of a clean stop."""
    seen: set[object] = set()

    def look(_frame: object, _event: str, _argument: object) -> None:
        seen.update(map(signal.getsignal, SIGNALS))

    def ready(_listeners: Sequence[OpenListener]) -> None:
        sys.setprofile(look)
        _terminate()

    try:
        assert daemon.run(_settings(data_folder), ready=ready) == 0
    finally:
        sys.setprofile(None)
    assert signal.SIG_IGN in seen
    assert signal.SIG_DFL not in seen
    assert signal.default_int_handler not in seen


def test_a_daemon_whose_commits_are_slow_stops_as_cleanly(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit is given to a thread, but the last: then there is no event loop any more to hear of its end."""
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    assert daemon.run(_settings(data_folder), ready=_terminate) == 0
    assert _endings_of_the_trail(data_folder) == {".jsonl"}
    assert _owner_is_gone(data_folder)


def test_a_daemon_whose_commits_are_slow_stops_while_applications_go_on_putting(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one commit is under way the next one gathers: a moment without any may not come in a thousand of them."""
    commit, is_told = Store.commit, threading.Event()
    commits_of_the_end: list[Store] = []
    at_work: queue.Queue[str] = queue.Queue()
    names = [f"APP.{number}" for number in range(5)]

    def commit_slowly(store: Store) -> None:
        commit(store)
        time.sleep(0.03)
        if is_told.is_set():
            commits_of_the_end.append(store)

    def terminate() -> None:
        for _ in names:
            at_work.get(timeout=60)
        is_told.set()
        _terminate()

    monkeypatch.setattr(Store, "commit", commit_slowly)
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    threads = [threading.Thread(target=_put_until_it_stops, args=(data_folder, name, at_work)) for name in names]
    threads.append(threading.Thread(target=terminate))

    def ready(_listeners: Sequence[OpenListener]) -> None:
        for thread in threads:
            thread.start()

    assert daemon.run(_settings(data_folder, audit__enabled=False), ready=ready) == 0
    for thread in threads:
        thread.join(60)
    assert len(commits_of_the_end) < 300
    assert _owner_is_gone(data_folder)


def _put_until_it_stops(data: Path, queue_name: str, at_work: "queue.Queue[str]") -> None:
    """One message after another, until the queue manager has gone."""
    message = Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"put")
    with contextlib.suppress(QueueManagerError), connect_queue_manager(data) as queue_manager:
        queue_manager.define(queue_name)
        for number in count(1):
            queue_manager.put(queue_name, message)
            if number == 5:
                at_work.put(queue_name)


def test_without_an_audit_there_is_no_trail(data_folder: Path) -> None:
    assert daemon.run(_settings(data_folder, audit__enabled=False), ready=_terminate) == 0
    assert not (data_folder / "trail").exists()


def test_a_data_folder_that_another_owns_is_refused(data_folder: Path) -> None:
    owner = Store.open(data_folder)
    try:
        with pytest.raises(QueueManagerError) as refused:
            daemon.run(_settings(data_folder))
    finally:
        owner.close()
    assert refused.value.reason_code == ReasonCode.MQRC_OBJECT_IN_USE


def test_an_address_in_use_leaves_nothing_behind(data_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigurationError, match="address already in use"):
            daemon.run(_settings(data_folder, listen=address))
    assert not (data_folder / "queue_manager.socket").exists()
    assert _owner_is_gone(data_folder)


def test_every_start_makes_the_queues_it_needs(data_folder: Path) -> None:
    names = {
        "publish__stream": "PLANT.STREAM",
        "subscribe__queue": "PLANT.SUB",
        "subscribe__reply_queue": "PLANT.REPLY",
    }
    for _ in range(2):
        assert daemon.run(_settings(data_folder, **names), ready=_terminate) == 0
    store = Store.open(data_folder)
    defined = {name for _, name, _ in store.queues()}
    store.close()
    assert {*names.values(), "SYSTEM.BROKER.CONTROL.QUEUE"} <= defined


def test_a_store_that_is_found_damaged_at_the_start_is_logged_with_the_exit_code_it_gives(
    data_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store.open(data_folder)
    states = [(int(StateKind.BROKER_SUBSCRIPTION), b"key", b"what is no subscription")]
    store.write(puts=[], removals=[], states=states, next_sequence=1, next_batch=1)
    store.commit()
    store.close()
    with caplog.at_level(logging.INFO), pytest.raises(StoreError, match="read a subscription"):
        daemon.run(_settings(data_folder))
    assert [record.getMessage() for record in caplog.records if "stopped" in record.getMessage()] == [
        "gateway stopped exit_code=1"
    ]
    assert _owner_is_gone(data_folder)


def test_a_rescue_folder_that_cannot_be_had_is_told_before_anything_starts(data_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"rescue_folder: .*/file cannot be used: File exists"):
        daemon.run(_settings(data_folder, rescue_folder=str(tmp_path / "file")))
    assert not (data_folder / "queue_manager.sqlite").exists()

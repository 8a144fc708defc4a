"""The daemon in this process: what its run gives back, and what it leaves behind where it cannot start."""

import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from gateway import daemon
from gateway.config import ConfigurationError, Settings
from gateway.listener import OpenListener
from mq_adapters import connect as connect_queue_manager
from mq_adapters.embedded import group_commit
from mq_adapters.embedded.store import Store
from mq_adapters.embedded.unit_of_work import StateSpace
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _the_interpreter_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A daemon changes settings of its interpreter, which here is that of the tests."""
    monkeypatch.setattr(daemon, "OWNER_WAIT_S", 0.0)
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)
    gc.unfreeze()


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


def test_a_daemon_whose_commits_are_slow_stops_as_cleanly(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit is given to a thread, but the last: then there is no event loop any more to hear of its end."""
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    assert daemon.run(_settings(data_folder), ready=_terminate) == 0
    assert _endings_of_the_trail(data_folder) == {".jsonl"}
    assert _owner_is_gone(data_folder)


def test_a_daemon_whose_commits_are_slow_stops_while_applications_go_on_putting(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one commit is under way the next one gathers, so that there is never none."""
    commit = Store.commit

    def commit_slowly(store: Store) -> None:
        commit(store)
        time.sleep(0.01)

    monkeypatch.setattr(Store, "commit", commit_slowly)
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    all_put = threading.Barrier(3, action=_terminate, timeout=60)
    applications = [
        threading.Thread(target=_put_until_it_stops, args=(data_folder, f"APP.{number}", all_put))
        for number in range(all_put.parties)
    ]

    def ready(_listeners: Sequence[OpenListener]) -> None:
        for application in applications:
            application.start()

    assert daemon.run(_settings(data_folder), ready=ready) == 0
    for application in applications:
        application.join(60)
    assert _endings_of_the_trail(data_folder) == {".jsonl"}
    assert _owner_is_gone(data_folder)


def _put_until_it_stops(data: Path, queue_name: str, all_put: threading.Barrier) -> None:
    """One message after another, until the queue manager has gone."""
    message = Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"put")
    with contextlib.suppress(QueueManagerError), connect_queue_manager(data) as queue_manager:
        queue_manager.define(queue_name)
        for number in count(1):
            queue_manager.put(queue_name, message)
            if number == 5:
                all_put.wait()


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
    states = [(int(StateSpace.BROKER_SUBSCRIPTION), b"key", b"what is no subscription")]
    store.write(puts=[], removals=[], states=states, next_sequence=1, next_batch=1)
    store.commit()
    store.close()
    with caplog.at_level(logging.INFO), pytest.raises(StoreError, match="read a subscription"):
        daemon.run(_settings(data_folder))
    assert [record.getMessage() for record in caplog.records if "stopped" in record.getMessage()] == [
        "gateway stopped exit_code=1"
    ]
    assert _owner_is_gone(data_folder)

"""True trails of gateways that did not end as they should, or had much to do at once: real gateways wrote them.

killed     kill -9 and a start again, some times, in the middle of what many clients and applications do
restored   a backup while they do it; the store is put back, and accepted; they go on, and a kill besides
stormed    many retained values, and many subscribers that want all of them at once, while others are published

Each function returns the folder of the trail. `scale` is how often and how many.
"""

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.end_to_end.clients.client import Login, Way
from tests.end_to_end.clients.paho import Paho
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.ibm_mq.target_gateway import wait_until
from tests.processes.forked import rfhbridge
from tests.spark_audit.forger.crowd import Application, Sensor, end

_CONFIGURATION: Final = """
[access]
publish = ["a/#", "b/#", "c", "values/#"]
subscribe = ["a/#", "b/#", "c", "+/b", "#", "values/#", "$share/#"]

[mqtt]
maximum_topic_levels = 20
"""
_SENSORS: Final = ("one", "two", "three", "four")
_APPLICATIONS: Final = ("orders", "stores")
#: How long a gateway runs before it is killed, seconds: at least so long, and at most that.
_RUNS_S: Final = (0.3, 1.2)
_STORE: Final = "queue_manager.sqlite"


def killed(folder: Path, scale: int) -> Path:
    chance = random.Random(scale)
    with _gateway(folder) as gateway:
        _in_a_crowd(gateway, lambda: [_kill(gateway, chance) for _ in range(scale)])
        assert gateway.stop() == 0, gateway.log
    return gateway.data / "trail"


def restored(folder: Path, scale: int) -> Path:
    chance, backup = random.Random(scale), folder / "backup.sqlite"
    with _gateway(folder) as gateway:
        for number in range(scale):
            backup.unlink(missing_ok=True)
            _in_a_crowd(gateway, lambda: _back_up(gateway, backup, chance), number)
            assert gateway.stop() == 0, gateway.log
            _restore(gateway, backup)
            _in_a_crowd(gateway.start(), lambda: _kill(gateway, chance), number)
        assert gateway.stop() == 0, gateway.log
    return gateway.data / "trail"


def _back_up(gateway: Gateway, backup: Path, chance: random.Random) -> None:
    """In the middle of the work: what comes after it is lost."""
    _pass(chance)
    done = rfhbridge("queue", "backup", backup, "--data", gateway.data)
    assert done.returncode == 0, done.stderr
    _pass(chance)


def _restore(gateway: Gateway, backup: Path) -> None:
    """Puts the store back, and accepts that."""
    shutil.copyfile(backup, gateway.data / _STORE)
    for each in (f"{_STORE}-wal", f"{_STORE}-shm"):
        (gateway.data / each).unlink(missing_ok=True)
    accepted = rfhbridge("queue", "accept-rollback", "--data", gateway.data, "--yes")
    assert accepted.returncode == 0, accepted.stderr


def stormed(folder: Path, scale: int) -> Path:
    values, subscribers = 30 * scale, 4 * scale
    with _gateway(folder) as gateway:
        pump = _connected(gateway, "pump")
        for number in range(values):
            pump.publish(f"values/{number}", b"%d" % number, number % 3, retain=True)
        everyone = [_connected(gateway, f"wall-{number}", ("3.1.1", "5")[number % 2]) for number in range(subscribers)]
        asking = [
            threading.Thread(target=each.subscribe, args=("values/#", number % 3))
            for number, each in enumerate(everyone)
        ]
        for each in asking:
            each.start()
        for number in range(0, values, 3):  # some are replaced and some deleted while they are sent
            pump.publish(f"values/{number}", b"" if number % 2 else b"new", 1, retain=True)
        for each in asking:
            each.join()
        for client in everyone:
            wait_until(lambda client=client: client.messages.qsize() >= values // 2, "everybody has most values")
        late = _connected(gateway, "late")
        late.subscribe("values/#", 1)
        for client in (pump, late, *everyone):
            client.close()
        assert gateway.restart()
        late = _connected(gateway, "late")
        late.subscribe("values/+", 2)
        late.close()
        assert gateway.stop() == 0, gateway.log
    return gateway.data / "trail"


@contextmanager
def _gateway(folder: Path) -> Iterator[Gateway]:
    folder.mkdir()
    config = folder / "rfhbridge.toml"
    config.write_text(_CONFIGURATION)
    gateway = Gateway(folder / "data", "--config", str(config)).start()
    try:
        yield gateway
    finally:
        gateway.clean_up()


def _connected(gateway: Gateway, name: str, version: str = "3.1.1") -> Paho:
    client = Paho()
    client.connect(Way(port=gateway.port), Login(client_identifier=name, version=version))
    return client


def _in_a_crowd(gateway: Gateway, act: Callable[[], object], seed: int = 0) -> None:
    """Does something while clients and applications do what they like."""
    everyone = [
        *(Sensor(gateway.port, name, seed) for name in _SENSORS),
        *(Application(gateway.data, name, seed) for name in _APPLICATIONS),
    ]
    for each in everyone:
        each.start()
    act()
    before = [each.steps for each in everyone]
    wait_until(lambda: all(each.steps > steps + 5 for each, steps in zip(everyone, before, strict=True)), "all go on")
    end(*everyone)


def _kill(gateway: Gateway, chance: random.Random) -> None:
    _pass(chance)
    gateway.kill_and_restart()


def _pass(chance: random.Random) -> None:
    threading.Event().wait(chance.uniform(*_RUNS_S))

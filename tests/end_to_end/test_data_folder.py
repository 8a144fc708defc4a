"""The data folder of a running gateway goes: nothing more is acknowledged, it stops, and what was open is saved."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mq_adapters.embedded.store.rescue import rescued_in
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import PATIENCE_S, Gateway
from tests.end_to_end.wire import WireClient
from tests.mounts import Mounts

CONNECT = "10 10 0004 'MQTT' 04 00 0000 0004 '{}'"
DELIVERED = "32 08 0003 'a/b' {:04X} '{}'"

Configured = Callable[..., Gateway]


@pytest.fixture
def configured(new_gateway: StartGateway, tmp_path: Path) -> Configured:
    """A gateway with a rescue folder; its data folder may lie on a volume."""

    def make(data: Path) -> Gateway:
        path = tmp_path / "rfhbridge.toml"
        path.write_text(f'rescue_folder = "{tmp_path / "rescue"}"\n', encoding="utf-8")
        return new_gateway("--config", str(path), data=data)

    return make


def _client(connect: Connect, gateway: Gateway, name: str, answer: str) -> WireClient:
    client = connect(gateway, name)
    client.send("connects and keeps its session", CONNECT.format(name))
    client.expect("is accepted", answer)
    return client


def _with_a_message_that_waits(connect: Connect, gateway: Gateway) -> WireClient:
    """A publisher whose message A was acknowledged, for an absent session."""
    absent = _client(connect, gateway, "gone", "20 02 00 00")
    absent.send("subscribes", "82 08 0001 0003 'a/b' 01")
    absent.expect("is granted", "90 03 0001 01")
    absent.drop()
    publisher = _client(connect, gateway, "work", "20 02 00 00")
    publisher.send("publishes", "32 08 0003 'a/b' 0001 'A'")
    publisher.expect("gets PUBACK", "40 02 0001")
    return publisher


def _assert_it_waits(connect: Connect, gateway: Gateway) -> None:
    gateway.start()
    client = _client(connect, gateway, "gone", "20 02 01 00")
    client.expect("gets what was acknowledged", DELIVERED.format(1, "A"))
    assert gateway.stop() == 0


def _mount_over(mounts: Mounts, data: Path) -> None:
    mounts.mount(data, size_bytes=65_536)


WAYS: dict[str, Callable[[Mounts, Path], object]] = {
    "removed": lambda _mounts, data: shutil.rmtree(data),
    "renamed": lambda _mounts, data: data.rename(data.with_name("elsewhere")),
    "hidden by a mount": _mount_over,
    "on a volume that goes away": lambda mounts, data: mounts.take_away(data.parent),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_publisher_is_not_acknowledged_into_files_that_nobody_finds(
    configured: Configured, connect: Connect, mounts: Mounts, tmp_path: Path, way: str
) -> None:
    data = tmp_path / "volume" / "data"
    if "volume" in way:
        mounts.mount(data.parent, size_bytes=512 * 1024 * 1024)
    gateway = configured(data).start()
    publisher = _with_a_message_that_waits(connect, gateway)
    WAYS[way](mounts, data)
    publisher.send("publishes again", "32 08 0003 'a/b' 0002 'B'")
    publisher.expect_end("is closed without PUBACK")
    assert gateway.wait() == 1
    (failure,) = gateway.logged("store failed")
    (place,) = rescued_in(tmp_path / "rescue")
    assert str(place) in failure["error"]
    assert (place / "trail-key.pem").exists()
    _assert_it_waits(connect, configured(place))


def test_an_idle_gateway_notices_and_no_empty_store_takes_the_place(
    configured: Configured, connect: Connect, tmp_path: Path
) -> None:
    gateway = configured(tmp_path / "data").start()
    _with_a_message_that_waits(connect, gateway)
    shutil.rmtree(tmp_path / "data")
    assert gateway.wait() == 1
    assert gateway.launch().wait() == 1
    (place,) = rescued_in(tmp_path / "rescue")
    assert f"{place} has what was open" in gateway.log
    shutil.rmtree(tmp_path / "data", ignore_errors=True)
    place.rename(tmp_path / "data")
    _assert_it_waits(connect, gateway)


def test_a_trail_that_is_gone_stops_the_gateway(configured: Configured, connect: Connect, tmp_path: Path) -> None:
    gateway = configured(tmp_path / "data").start()
    _with_a_message_that_waits(connect, gateway)
    trail = tmp_path / "data" / "trail"
    deadline = time.monotonic() + PATIENCE_S
    while not list(trail.glob("*.open")):  # from then on the exporter is up
        assert time.monotonic() < deadline, gateway.log
    trail.rename(tmp_path / "aside")
    assert gateway.wait() == 1
    assert str(trail) in gateway.logged("store failed")[0]["error"]
    assert not trail.exists()
    (tmp_path / "aside").rename(trail)
    _assert_it_waits(connect, gateway)

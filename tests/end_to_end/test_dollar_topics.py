"""Topics that begin with `$`: what the store has of them, what the gateway tells of itself, and the door of `wmb`."""

import subprocess
from pathlib import Path

from tests.conftest import MosquittoClients
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient
from tests.processes.forked import rfhbridge

RESERVED = "their topics are reserved: '$aws/"


def _configuration(folder: Path, text: str) -> tuple[str, str]:
    path = folder / "rfhbridge.toml"
    path.write_text(text)
    return "--config", str(path)


def _connected(connect: Connect, gateway: Gateway, answer: str = "20 02 00 00") -> WireClient:
    client = connect(gateway)
    client.send("connects with a session that stays", "10 10 0004 'MQTT' 04 00 0000 0004 'aws1'")
    client.expect("is accepted", answer)
    return client


def _check(data: Path, folder: Path, text: str) -> list[str]:
    config = _configuration(folder, f'data = "{data}"\n{text}')
    ended = rfhbridge("check", *config)
    assert ended.returncode == 0, ended.stderr
    return [line for line in ended.stdout.splitlines() if line.startswith("warning: ")]


def test_what_the_store_has_is_named_by_check_and_at_the_start_and_kept(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    opened = '[mqtt]\ndollar_topics = ["$aws/#"]\n'
    gateway = new_gateway(*_configuration(tmp_path, opened)).start()
    client = _connected(connect, gateway)
    client.send("subscribes", "82 0B 0001 0006 '$aws/+' 01")
    client.expect("is granted QoS 1", "90 03 0001 01")
    client.send("publishes what is retained", "33 0A 0006 '$aws/r' 0002 ")
    client.expect("gets PUBACK and nothing, for it is empty", "40 02 0002", "32 0A 0006 '$aws/r' 0001")
    client.send("acknowledges, and publishes what stays", "40 02 0001", "33 0B 0006 '$aws/r' 0003 'R'")
    client.expect("gets PUBACK and its own publication", "40 02 0003", "32 0B 0006 '$aws/r' 0002 'R'")
    client.send("acknowledges and leaves", "40 02 0002", "E0 00")
    client.expect_end("is disconnected")
    assert _check(gateway.data, tmp_path, opened) == []
    for runs in (True, False):
        assert [RESERVED in line for line in _check(gateway.data, tmp_path, "")] == [True, True], runs
        if runs:
            gateway.stop()
    reserved = new_gateway(data=gateway.data).start()
    assert len(reserved.logged("store doubted")) == 2
    reserved.wait_for_log("store doubted", because="^subscriptions bring nothing.*of aws1")
    client = _connected(connect, reserved, "20 02 01 00")
    client.send("subscribes", "82 0B 0001 0006 '$aws/+' 01")
    client.expect("is refused", "90 03 0001 80")
    reserved.stop()
    gateway = new_gateway(*_configuration(tmp_path, opened), data=gateway.data).start()
    assert gateway.logged("store doubted") == []
    client = _connected(connect, gateway, "20 02 01 00")
    client.send("subscribes", "82 0B 0001 0006 '$aws/+' 00")
    client.expect_in_any_order(
        "is granted QoS 0, and sent what is retained", "90 03 0001 00", "31 09 0006 '$aws/r' 'R'"
    )


def test_mosquitto_hears_what_the_gateway_tells_of_itself(
    new_gateway: StartGateway, mosquitto_clients: MosquittoClients, tmp_path: Path
) -> None:
    gateway = new_gateway(*_configuration(tmp_path, "[mqtt]\nsys_topics_interval_s = 1\n")).start()
    command = [str(mosquitto_clients.subscribe), "-h", "127.0.0.1", "-p", str(gateway.port), "-v", "-W", "30"]
    command += ["-t", "$SYS/broker/uptime", "-t", "$SYS/broker/version", "-C", "3"]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=True, encoding="utf-8")
    lines = sorted(ended.stdout.splitlines())
    assert [line.rpartition(" ")[0] for line in lines[-1:]] == ["$SYS/broker/version rfhbridge"]
    assert len({line for line in lines if line.startswith("$SYS/broker/uptime ")}) == 2


def test_streams_are_behind_a_door_that_is_shut_unless_it_is_opened(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    """Dialect wmb has one topic space, and `$SYS/STREAM/STOCK/` in front of the topics of stream STOCK."""
    broker = '[broker]\ndialect = "wmb"\n'
    subscribe = "82 18 0001 0013 '$SYS/STREAM/STOCK/#' 00"
    shut = new_gateway(*_configuration(tmp_path, broker)).start()
    client = _connected(connect, shut)
    client.send("subscribes to a stream", subscribe)
    client.expect("is refused", "90 03 0001 80")
    shut.stop()
    opened = '[mqtt]\ndollar_topics = ["$SYS/STREAM/STOCK/#"]\n'
    gateway = new_gateway(*_configuration(tmp_path, broker + opened), data=shut.data).start()
    client = _connected(connect, gateway, "20 02 01 00")
    client.send("subscribes to a stream", subscribe)
    client.expect("is granted QoS 0", "90 03 0001 00")
    client.send("publishes there", "30 16 0013 '$SYS/STREAM/STOCK/a' 'X'")
    client.expect("gets it", "30 16 0013 '$SYS/STREAM/STOCK/a' 'X'")

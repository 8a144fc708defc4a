"""Shared subscriptions on a running gateway: by hand, with mosquitto's clients and paho, and over kill -9."""

import queue
import shutil
import subprocess
import threading
from collections import Counter
from pathlib import Path

import orjson
import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from spark_audit.verify import Verdict, verify
from tests.conftest import MosquittoClients
from tests.end_to_end.conftest import Connect
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.mqtt5.client import connected, is_quiet, payloads, publish, publisher, subscribed
from tests.end_to_end.mqtt5.conftest import NewGateway
from tests.end_to_end.resending_clients import Publisher, Subscriber
from tests.end_to_end.wire import WireClient
from tests.processes.forked import rfhbridge

PATIENCE_S = 60.0
FOR_EVER = "11 FFFFFFFF"


def test_each_message_goes_to_one_member_of_each_group(five: Gateway, connect: Connect) -> None:
    one, two = (subscribed(connect(five), five, f"sh-{each}", "$share/g/sh/+") for each in "12")
    other = subscribed(connect(five), five, "sh-3", "$share/h/sh/+")
    plain = subscribed(connect(five), five, "sh-4", "sh/+")
    publish(publisher(connect(five), "sh-5"), "sh/a", *"ABCD")
    assert payloads(one, 2) + payloads(two, 2) == [b"A", b"C", b"B", b"D"]
    assert payloads(other, 4) == payloads(plain, 4) == [b"A", b"B", b"C", b"D"]
    assert is_quiet(one)
    assert is_quiet(two)


def test_what_a_group_waits_for_goes_to_the_member_that_comes_first(five: Gateway, connect: Connect) -> None:
    one, two = (subscribed(connect(five), five, f"sw-{each}", "$share/g/sw") for each in "12")
    for member in (one, two):
        member.send("takes its leave", "E0 00")
        member.expect_end("is let go")
    publish(publisher(connect(five), "sw-3"), "sw", "A", "B")
    back = connect(five)
    assert connected(back, "sw-2", clean_start=False, properties=FOR_EVER).session_present
    assert payloads(back, 2) == [b"A", b"B"]


def test_nothing_retained_comes_with_a_shared_subscription(five: Gateway, connect: Connect) -> None:
    publisher(connect(five), "sr-1").send("publishes what is retained", "31 05 0002 'sr' 'R'")
    assert is_quiet(subscribed(connect(five), five, "sr-2", "$share/g/sr"))


@pytest.mark.parametrize(
    ("subscribe", "code"),
    [
        ("82 11 0001 00 000B '$share/g/sx' 05", "82"),  # no local
        ("82 0F 0001 00 0009 '$share/sx' 01", "82"),  # no filter
        ("82 0F 0001 00 0009 '$share//a' 01", "82"),  # no name
        ("82 11 0001 00 000B '$share/+/sx' 01", "82"),
        ("82 11 0001 00 000B '$share/#/sx' 01", "81"),
    ],
)
def test_a_shared_subscription_that_is_none_ends_the_connection(
    five: Gateway, connect: Connect, subscribe: str, code: str
) -> None:
    client = connect(five)
    connected(client, "sx")
    client.send("subscribes", subscribe)
    client.expect("is told of its fault", f"E0 01 {code}")
    client.expect_end("is cut off")


def test_members_of_paho_and_mosquitto_share_with_each_other(
    five: Gateway, connect: Connect, mosquitto_clients: MosquittoClients
) -> None:
    unbuffered = shutil.which("stdbuf")
    if unbuffered is None:
        pytest.skip("stdbuf (coreutils) is not installed: mosquitto_sub would not say when it is subscribed")
    received: queue.Queue[bytes] = queue.Queue()
    is_subscribed = threading.Event()
    paho = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="sm-1", protocol=mqtt.MQTTv5)
    paho.on_message = lambda _client, _data, message: received.put(bytes(message.payload))
    paho.on_subscribe = lambda *_arguments: is_subscribed.set()
    paho.connect("127.0.0.1", five.port)
    paho.loop_start()
    paho.subscribe("$share/g/sm/#", 2)
    assert is_subscribed.wait(PATIENCE_S)
    command = [unbuffered, "-oL", str(mosquitto_clients.subscribe), "-V", "5", "-h", "127.0.0.1", "-p", str(five.port)]
    command += ["-t", "$share/g/sm/#", "-q", "1", "-C", "2", "-v", "-d"]
    mosquitto = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert mosquitto.stdout is not None
        lines = iter(mosquitto.stdout.readline, "")
        assert next(line for line in lines if "Subscribed" in line)
        publish(publisher(connect(five), "sm-2"), "sm/a", *"ABCD")
        heard = [line.split()[1].encode() for line in lines if line.startswith("sm/a ")]
        heard += [received.get(timeout=PATIENCE_S) for _ in range(2)]
    finally:
        mosquitto.kill()
        mosquitto.communicate()
        paho.disconnect()
        paho.loop_stop()
    assert sorted(heard) == [b"A", b"B", b"C", b"D"]


class Member(Subscriber):
    """A member that has joined at level 5, and comes back as often as it must, at level 4."""

    def __init__(self, port: int, client: bytes, topic_filter: str, connect: WireClient) -> None:
        super().__init__(port, client, b"")
        connected(connect, client.decode(), properties=FOR_EVER)
        body = b"\x00\x01\x00" + len(topic_filter).to_bytes(2, "big") + topic_filter.encode() + b"\x02"
        connect.send("joins", bytes((0x82, len(body))) + body)
        connect.expect("is a member", "90 04 0001 00 02")
        connect.send("takes its leave", "E0 00")
        connect.expect_end("is let go")
        self.subscribed.set()


@pytest.mark.proof
@pytest.mark.timeout(1_800)
def test_kill_9_loses_nothing_that_is_shared_and_doubles_nothing_at_qos_2(
    new_five: NewGateway, connect: Connect, proof_scale: str, tmp_path: Path
) -> None:
    count, kills = (5_000, 6) if proof_scale == "full" else (300, 2)  # publishes of each of the three clients
    gateway = new_five()
    members = [Member(gateway.port, b"member-%d" % each, "$share/g/pr/#", connect(gateway)) for each in range(3)]
    publishers = [Publisher(gateway.port, b"proof-%d" % number, b"pr/f", count) for number in range(3)]
    for thread in (*members, *publishers):
        thread.start()
    pause = threading.Event()
    for kill in range(1, kills + 1):
        while sum(len(each.acknowledged[qos]) for each in publishers for qos in (1, 2)) < 3 * count * kill / (
            kills + 1
        ):
            assert any(each.is_alive() for each in publishers), [each.error for each in publishers]
            pause.wait(0.005)
        gateway.kill_and_restart()
    for thread in publishers:
        thread.join(PATIENCE_S)
        assert thread.is_done(), (thread.error, gateway.log)
    acknowledged = {qos: set[bytes]().union(*(each.acknowledged[qos] for each in publishers)) for qos in (1, 2)}
    for _ in range(int(PATIENCE_S / 0.02)):
        if set(_received(members)) >= acknowledged[1] | acknowledged[2] and not any(each._held for each in members):
            break
        pause.wait(0.02)
    for member in members:
        member.stop()
        member.join(PATIENCE_S)
    received = _received(members)
    assert set(received) == acknowledged[1] | acknowledged[2]
    assert {payload for payload in acknowledged[2] if received[payload] != 1} == set()
    assert all(each.payloads[2] for each in members), "each of them had its part"
    assert gateway.stop() == 0, gateway.log
    assert "Traceback" not in gateway.log
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT
    out = tmp_path / "audit"
    done = rfhbridge("audit", "run", "--engine", "duckdb", "--data", gateway.data, "--out", out, timeout=None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert orjson.loads((out / "result.json").read_bytes())


def _received(members: list[Member]) -> Counter[bytes]:
    return sum((each.payloads[qos].copy() for each in members for qos in (1, 2)), Counter[bytes]())


def test_a_sweep_leaves_groups_alone_and_the_operator_sees_who_shares(new_five: NewGateway, connect: Connect) -> None:
    gateway = new_five()
    member = subscribed(connect(gateway), gateway, "swept", "$share/g/sw/#")

    def command(*arguments: str) -> str:
        ended = rfhbridge("sessions", *arguments, "--json", "--data", gateway.data)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert orjson.loads(command("sweep"))["ended"] == []
    assert "$share/g/sw/#" in command("show", "swept")
    publish(publisher(connect(gateway), "else"), "sw/a", "A")
    assert payloads(member, 1) == [b"A"]

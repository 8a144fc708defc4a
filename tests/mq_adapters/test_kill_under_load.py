"""A gateway that is killed at random instants while several processes put, move and get: nothing acknowledged is lost,
nothing committed is doubled, and no unit of work is there in part."""

import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mq_adapters.embedded.balance import Messages, read_balance
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store.verification import verify_store
from tests.ibm_mq_stand_in.process import wait_until

GATEWAY = """
import asyncio, os, signal, sys, threading
from pathlib import Path
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.server import Server
folder, life_s = Path(sys.argv[1]), float(sys.argv[2])
async def main():
    loop = asyncio.get_running_loop()
    engine = Engine.open(folder, wait_s=10, call_soon=loop.call_soon)
    for name in ("ORDERS", "MOVED"):
        engine.ensure(name, "")
    await Server(engine, folder).start()
    threading.Timer(life_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
    await asyncio.Event().wait()
asyncio.run(main())
"""
CLIENT = """
import sys, time
from pathlib import Path
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
folder, role = Path(sys.argv[1]), sys.argv[2]
number = 0
def put(connection):
    global number
    number += 1
    bodies = [b"%s:%d:%d" % (role.encode(), number, part) for part in range(3)]
    connection.begin()
    for body in bodies:
        connection.put("ORDERS", Message(MessageDescriptor(), body))
    connection.commit()
    return bodies
def move(connection):
    connection.begin()
    message = connection.get("ORDERS", wait_s=1)
    connection.put("MOVED", Message(MessageDescriptor(), message.body))
    connection.commit()
    return [message.body]
work = move if role.startswith("move") else put
while True:
    try:
        with SocketClient(folder) as connection:
            while True:
                print(*(body.decode() for body in work(connection)), flush=True)
    except QueueManagerError:
        time.sleep(0.01)
"""
ROLES = ("put-a", "put-b", "move-a", "move-b")
KILLS = {"short": 5, "full": 200}
LONGEST_LIFE_S = 0.2
#: The first gateway is killed by the test, and not by itself.
LIFE_OF_THE_FIRST_S = 3_600


@contextmanager
def clients(data_folder: Path, outputs: Path) -> Iterator[None]:
    """Client processes that go on over every death of the gateway, and note what was acknowledged in files."""
    running = []
    for role in ROLES:
        with (outputs / role).open("wb") as output:
            command = [sys.executable, "-c", CLIENT, str(data_folder), role]
            running.append(subprocess.Popen(command, stdout=output))
    try:
        yield
    finally:
        for client in running:
            client.send_signal(signal.SIGKILL)
            client.wait(60)


def let_everybody_work(data_folder: Path, outputs: Path) -> None:
    """A gateway that is killed when each client has noted something: from then on kills meet clients at work."""
    first = [sys.executable, "-c", GATEWAY, str(data_folder), str(LIFE_OF_THE_FIRST_S)]
    with subprocess.Popen(first) as gateway:
        try:
            wait_until(lambda: all(acknowledged(outputs / role) for role in ROLES))
        finally:
            gateway.kill()


def acknowledged(output: Path) -> list[list[str]]:
    """The units of work that a client noted; a last line that is cut was not noted."""
    return [line.split() for line in output.read_text().splitlines(keepends=True) if line.endswith("\n")]


def check_balance(data_folder: Path) -> dict[str, Messages]:
    """No message is missing; what was counted of each queue."""
    balance = read_balance(data_folder)
    assert balance is not None
    assert balance.adds_up, balance
    return {queue.name: queue.persistent for queue in balance.queues}


@pytest.mark.proof
def test_nothing_acknowledged_is_lost_and_nothing_doubled_however_often_the_gateway_is_killed(
    socket_folder, tmp_path, proof_scale
):
    data_folder = socket_folder / "data"
    draw = random.Random(20261120)
    with clients(data_folder, tmp_path):
        let_everybody_work(data_folder, tmp_path)
        for _ in range(KILLS[proof_scale]):
            life_s = draw.uniform(0.0, LONGEST_LIFE_S)
            gateway = [sys.executable, "-c", GATEWAY, str(data_folder), str(life_s)]
            ended = subprocess.run(gateway, timeout=60, check=False)
            assert ended.returncode == -signal.SIGKILL
            check_balance(data_folder)
    assert verify_store(data_folder).findings == ()
    with Direct(data_folder, wait_s=10) as queue_manager:
        waiting = [message.body.decode() for message in queue_manager.browse("ORDERS")]
        moved = [message.body.decode() for message in queue_manager.browse("MOVED")]
    found = Counter(waiting + moved)
    assert max(found.values()) == 1
    for role in ("put-a", "put-b"):
        units = acknowledged(tmp_path / role)
        assert units
        assert all(found[body] == 1 for unit in units for body in unit)
    assert {body for role in ("move-a", "move-b") for unit in acknowledged(tmp_path / role) for body in unit} <= set(
        moved
    )
    counted = check_balance(data_folder)
    assert counted["ORDERS"].put - counted["ORDERS"].taken == len(waiting)
    assert counted["MOVED"].put == counted["ORDERS"].taken == len(moved)
    parts = Counter(body.rpartition(":")[0] for body in found)
    assert set(parts.values()) == {3}

"""A coverage-guided fuzzer of the bridge: clients of every level that send, vanish and come back, while commits wait.

Run by `make fuzz`; see the README beside this. An input is a list of steps (clients.py). What must hold: no exception,
and whatever a client is sent is MQTT of its level.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import atheris

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

with atheris.instrument_imports(include=["gateway.bridge", "gateway.mqtt"]):
    from mq_adapters.embedded import group_commit
    from tests.fuzz.campaign import run
    from tests.fuzz.clients import NAMES, Client, Play, seeds
    from tests.gateway.bridge.conftest import World

LONGEST_BYTES = 512
INPUTS_OF_A_WORLD = 200


class Stage:
    """A world for some hundred inputs: making one for each would take longer than the inputs."""

    def __init__(self) -> None:
        group_commit.SLOW_COMMIT_S = -1.0
        self._world: World | None = None
        self._inputs = 0
        self._folder = Path()

    def world(self) -> World:
        if self._world is None or self._inputs >= INPUTS_OF_A_WORLD:
            self.close()
            self._folder = Path(tempfile.mkdtemp(prefix="rfhbridge-fuzz-"))
            self._world = World(self._folder)
        self._inputs += 1
        return self._world

    def close(self) -> None:
        if self._world is not None:
            self._world.close()
            shutil.rmtree(self._folder)
        self._world, self._inputs = None, 0


STAGE = Stage()


def read_everything(given: bytes) -> None:
    """One input of the fuzzer."""
    world = STAGE.world()
    clients = [Client(number) for number in range(len(NAMES))]
    for client in clients:
        client.connect(world, 1)
    Play(world, clients, given).act()
    world.commits_are_held = False
    world.run()
    for client in clients:
        client.connect(world, 1)
        assert client.link is not None
        client.leave(world)


if __name__ == "__main__":
    run("bridge", read_everything, seeds(), longest_bytes=LONGEST_BYTES)

"""Thousands of losses and kills at random calls, on both sides, both ways, against a plain model: a list per client."""

import random
from collections import defaultdict
from itertools import pairwise

import pytest

from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from tests.mq_adapters.channel.conftest import DEAD_LETTER_QUEUE, STREAM, SUBSCRIBER, World

pytestmark = pytest.mark.timeout(1_800)

CLIENTS = ("a", "b", "c")
#: Rounds of puts and runs with losses; each run makes some hundred calls.
ROUNDS = {"short": 150, "full": 2_500}
#: A store is opened anew, as after a crash of the gateway, about every so many rounds.
RESTARTS_EVERY = 20
#: Longer bodies are refused there with 2030.
LONGEST_BYTES = 200
POISON = b"!" * (LONGEST_BYTES + 1)
#: A unit of work with this in it is backed out by its commit.
UNCOMMITTABLE = b"<bad>"


class Model:
    """What was sent, by client, in order."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.sent: dict[str, list[bytes]] = defaultdict(list)
        self.poison: list[bytes] = []
        self.pairs: list[tuple[bytes, bytes]] = []
        self._number = 0

    def body(self, client: str) -> bytes:
        self._number += 1
        return b"%s:%d:" % (client.encode(), self._number)

    def send_some(self, world: World) -> None:
        for _ in range(self.draw.randrange(12)):
            client = self.draw.choice(CLIENTS)
            kind = self.draw.random()
            if kind < 0.1:
                body = self.body(client) + self.draw.choice((POISON, UNCOMMITTABLE))
                self.poison.append(body)
                world.send(body)
            elif kind < 0.25:
                pair = self.body(client), self.body(client)
                self.pairs.append(pair)
                self.sent[client] += pair
                world.send_pair(*pair)
            else:
                self.sent[client].append(self.body(client))
                world.send(self.sent[client][-1])


def break_things(world: World, draw: random.Random) -> None:
    """The gateway's own connections end with its process; a queue manager across a network may notice much later."""
    world.here.faults.lose_randomly(draw, every_calls=draw.choice((10, 40, 200)), ways=("before", "after"))
    world.there.faults.lose_randomly(draw, every_calls=draw.choice((10, 40, 200)), ways=("before", "after", "later"))


def restart_sometimes(world: World, draw: random.Random) -> None:
    if not draw.randrange(RESTARTS_EVERY):
        world.here.restart()


def heal(world: World) -> None:
    for side in (world.here, world.there, *world.more_sides):
        side.faults.heal()


def by_client(bodies: list[bytes]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = defaultdict(list)
    for body in bodies:
        found[body.partition(b":")[0].decode()].append(body)
    return found


@pytest.mark.proof
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_message_leaves_once_and_in_order_whatever_breaks(world: World, proof_scale: str, seed: int):
    model = Model(seed)
    world.there.mqsc(f"ALTER QLOCAL({STREAM}) MAXMSGL({LONGEST_BYTES})")
    world.there.faults.uncommittable.append(UNCOMMITTABLE)
    channel = world.outbound(batch_messages=7)
    for _ in range(ROUNDS[proof_scale]):
        model.send_some(world)
        break_things(world, model.draw)
        restart_sometimes(world, model.draw)
        world.run(channel if model.draw.random() < 0.5 else world.outbound(batch_messages=7))
    heal(world)
    world.run(world.outbound(batch_messages=7))
    assert world.waiting() == 0
    assert by_client(world.there.bodies(STREAM)) == model.sent
    letters = [body[172:] for body in world.here.bodies(DEAD_LETTER_QUEUE)]
    assert sorted(letters) == sorted(model.poison)
    behind = {first: second for unit in world.there.faults.units for first, second in pairwise(unit)}
    assert all(behind[first] == second for first, second in model.pairs), "a pair went in two units of work"


@pytest.mark.proof
@pytest.mark.parametrize("seed", [4, 5, 6])
def test_every_message_arrives_once_and_in_order_whatever_breaks(world: World, proof_scale: str, seed: int):
    model = Model(seed)
    put: list[bytes] = []
    world.there.mqsc(f"ALTER QLOCAL({SUBSCRIBER}) BOTHRESH(1) BOQNAME(ASIDE)")
    channel = world.inbound(batch_messages=7)
    for _ in range(ROUNDS[proof_scale]):
        for _ in range(model.draw.randrange(12)):
            put.append(model.body(model.draw.choice(CLIENTS)))
            descriptor = MessageDescriptor(persistence=MQPER_PERSISTENT, msg_id=put[-1].ljust(24, b"\0"))
            world.there.hand.put(SUBSCRIBER, Message(descriptor, put[-1]))
        break_things(world, model.draw)
        restart_sometimes(world, model.draw)
        world.run(channel if model.draw.random() < 0.5 else world.inbound(batch_messages=7))
    heal(world)
    world.run(world.inbound(batch_messages=7))
    assert world.there.bodies(SUBSCRIBER) == []
    aside = set(world.there.bodies("ASIDE"))
    assert 0 < len(aside) == world.there.hand.depth("ASIDE") < len(put) / 2
    assert world.here.bodies(SUBSCRIBER) == [body for body in put if body not in aside]


@pytest.mark.proof
@pytest.mark.parametrize("seed", [7, 8])
def test_every_message_goes_to_one_of_two_queue_managers_whatever_breaks(world: World, proof_scale: str, seed: int):
    model = Model(seed)
    other = world.another_queue_manager()
    sides = (world.there, other)
    for side in sides:
        side.mqsc(f"ALTER QLOCAL({STREAM}) MAXMSGL({LONGEST_BYTES})")
        side.faults.uncommittable.append(UNCOMMITTABLE)

    def run_somewhere() -> None:
        channel = world.outbound(batch_messages=7)
        channel._connect_remote = lambda: model.draw.choice(sides).connect()
        world.run(channel)

    for _ in range(ROUNDS[proof_scale]):
        model.send_some(world)
        break_things(world, model.draw)
        other.faults.draw = world.there.faults.draw
        run_somewhere()
        restart_sometimes(world, model.draw)
    heal(world)
    run_somewhere()
    assert world.waiting() == 0
    arrived = [by_client(side.bodies(STREAM)) for side in sides]
    for client, sent in model.sent.items():
        shares = [set(each[client]) for each in arrived]
        assert all(shares), "both were used"
        assert [[body for body in sent if body in share] for share in shares] == [each[client] for each in arrived]
        assert sorted(sent) == sorted(body for each in arrived for body in each[client])

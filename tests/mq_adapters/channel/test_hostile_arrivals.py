"""What strangers may do to a channel: messages with any descriptor on the way in, any MQXQH on the way out."""

import pytest

from mq_adapters.channel import ChannelState
from mq_adapters.message import MQMT_DATAGRAM, MQMT_REQUEST, MQPER_PERSISTENT, Message, MessageDescriptor
from tests.mq_adapters.channel.conftest import DEAD_LETTER_QUEUE, STATE_QUEUE, STREAM, SUBSCRIBER, World
from tests.mq_adapters.channel.faults import FaultyConnection

#: MQRO_COA_WITH_FULL_DATA, MQRO_COD_WITH_FULL_DATA, MQRO_EXPIRATION and MQRO_EXCEPTION with full data.
CONFIRMATIONS = 0x700 | 0x3800 | 0xE0_0000 | 0x700_0000
#: One field of an MQMD each with a value that no MQPUT takes (IBM MQ, "MQMD - Message descriptor").
IMPOSSIBLE = [
    {"msg_type": 0},
    {"expiry": -5},
    {"expiry": 0},
    {"priority": 77},
    {"priority": -9},
    {"persistence": 7},
    {"report": 0x1000_0000},
    {"report": -1},
    {"feedback": -1},
    {"put_appl_type": -1},
    {"encoding": -1},
    {"coded_char_set_id": -4},
]


def smuggle(world: World, descriptor: MessageDescriptor, body: bytes) -> None:
    """A message that no program could put there: nobody says what a queue manager delivers."""
    world.there.hand.put(SUBSCRIBER, Message(MessageDescriptor(persistence=MQPER_PERSISTENT), body))
    connect = world.there.connect

    def changed(message: Message) -> Message:
        return message if message.body != body else Message(descriptor.replace(msg_id=message.msg_id), body)

    def connect_there() -> FaultyConnection:
        connection = connect()
        get, take_batch = connection.get, connection.take_batch
        connection.get = lambda *names, **match: changed(get(*names, **match))
        connection.take_batch = lambda *names, **most: tuple(map(changed, take_batch(*names, **most)))
        return connection

    world.there.connect = connect_there


def test_what_arrives_makes_no_reports_here(world: World):
    world.here.engine.ensure("VICTIM", "")
    descriptor = MessageDescriptor(
        report=CONFIRMATIONS, reply_to_q="VICTIM", reply_to_q_mgr="GATEWAY", persistence=MQPER_PERSISTENT
    )
    smuggle(world, descriptor, b"MQRFH of an attacker")
    world.run(world.inbound())
    taken = world.here.hand.get(SUBSCRIBER)
    assert taken.body == b"MQRFH of an attacker"
    assert world.here.bodies("VICTIM") == [], "arrival and delivery were confirmed where it arrived"
    assert world.here.bodies(DEAD_LETTER_QUEUE) == []


def test_a_request_without_a_reply_queue_is_stored_as_a_datagram(world: World):
    smuggle(world, MessageDescriptor(msg_type=MQMT_REQUEST, persistence=MQPER_PERSISTENT), b"publication")
    world.run(world.inbound())
    assert world.here.hand.get(SUBSCRIBER).descriptor.msg_type == MQMT_DATAGRAM


@pytest.mark.parametrize("field", IMPOSSIBLE, ids=str)
def test_an_impossible_descriptor_stops_nobody(world: World, field: dict[str, int]):
    smuggle(world, MessageDescriptor(**{"persistence": MQPER_PERSISTENT, **field}), b"impossible")
    world.there.hand.put(SUBSCRIBER, Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"behind it"))
    status = world.run(world.inbound())
    assert status.state is ChannelState.STOPPED
    assert status.problem is None
    assert world.here.bodies(SUBSCRIBER)[-1:] == [b"behind it"]
    kept = [*world.here.bodies(SUBSCRIBER)[:-1], *world.here.bodies(DEAD_LETTER_QUEUE)]
    assert len(kept) == 1
    assert kept[0].endswith(b"impossible")


def test_no_message_can_forge_the_state_of_a_channel(world: World):
    world.send(b"first")
    world.run(world.outbound())
    world.send(b'{"version":1}', queue_name=STATE_QUEUE)
    world.send(b"second")
    status = world.run(world.outbound())
    assert status.state is ChannelState.STOPPED
    assert len(world.there.bodies(STATE_QUEUE)) == 1
    assert world.there.bodies(STREAM) == [b"first", b"second"]
    [letter] = world.here.bodies(DEAD_LETTER_QUEUE)
    assert letter.endswith(b'{"version":1}')

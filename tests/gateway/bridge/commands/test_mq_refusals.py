"""What MQ refuses comes back as the right MQTT answer at every level: from topic objects, queues and targets."""

import pytest

from gateway.bridge.commands.mq_refusals import ANSWERS, refused_publication, refused_subscription
from gateway.limits.log_rate import LINES_OF_ONE
from gateway.mqtt.reason_codes import ACKNOWLEDGEMENT_CODES, FAILURE, SUBACK_CODES
from tests.gateway.bridge.conftest import FakeLink, NewWorld, World, written
from tests.gateway.bridge.subscribe.test_subscribe import REPLY_TOPIC_ERROR
from tests.gateway.bridge.subscribe.test_subscriptions_at_targets import answer, configured, msg_ids
from tests.mq_adapters.channel.faults import Connection

CONNECT = {
    3: "10 12 0006 'MQIsdp' 03 02 0000 0004 'self'",
    4: "10 10 0004 'MQTT' 04 02 0000 0004 'self'",
    5: "10 11 0004 'MQTT' 05 02 0000 00 0004 'self'",
}
DEAD_LETTERS = "SYSTEM.DEAD.LETTER.QUEUE"
STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"


def enter(world: World, level: int) -> FakeLink:
    link = FakeLink()
    world.receive(link, CONNECT[level])
    assert link.session is not None, link.reason
    link.taken()
    return link


def command(world: World, text: str) -> None:
    hand = Connection(world.engine, "a test")
    assert hand.mqsc(text).succeeded
    hand.close()


def publish(level: int, qos: int, topic: str = "shut/a") -> str:
    """A PUBLISH with packet identifier 1 (none at QoS 0) and the payload X."""
    identifier = "0001" if qos else ""
    properties = "00" if level == 5 else ""
    length = 2 + len(topic) + len(identifier) // 2 + len(properties) // 2 + 1
    return f"{0x30 | qos << 1:02X} {length:02X} {len(topic):04X} '{topic}' {identifier} {properties} 'X'"


@pytest.mark.parametrize(
    ("reason_code", "subscription", "publication"),
    [
        (2035, 0x87, 0x87),
        (2063, 0x87, 0x87),
        (2109, 0x87, 0x87),
        (2292, 0x87, 0x87),
        (2531, 0x87, 0x87),
        (3081, 0x87, 0x87),
        (3151, 0x87, 0x87),
        (3318, 0x87, 0x87),
        (3072, 0x8F, 0x90),
        (2053, 0x97, 0x97),
        (2056, 0x97, 0x97),
        (2071, 0x97, 0x97),
        (2102, 0x97, 0x97),
        (2030, 0x97, 0x97),
        (2031, 0x97, 0x97),
        (3016, 0x97, 0x97),
        (2051, 0x83, 0x83),
        (2085, 0x83, 0x83),
        (3082, 0x83, 0x83),
        (9999, 0x83, 0x83),
        (0, 0x83, 0x83),
    ],
)
def test_each_reason_of_mq_has_its_reason_code(reason_code: int, subscription: int, publication: int) -> None:
    assert refused_subscription(reason_code) == subscription
    assert refused_publication(reason_code) == publication


def test_every_answer_may_stand_in_its_packet_and_is_a_failure() -> None:
    for subscription, publication in ANSWERS.values():
        assert subscription in SUBACK_CODES
        assert publication in ACKNOWLEDGEMENT_CODES
        assert min(subscription, publication) >= FAILURE


# -- topic objects: 3081 -----------------------------------------------------------------------------------------------


@pytest.fixture
def shut(world: World) -> World:
    """Nobody may publish or subscribe below shut."""
    command(world, "DEFINE TOPIC(SHUT) TOPICSTR('shut') PUB(DISABLED) SUB(DISABLED)")
    return world


@pytest.mark.parametrize(("level", "suback"), [(4, "90 03 0001 80"), (5, "90 04 0001 00 87")])
def test_a_subscription_that_topic_objects_refuse_is_refused_in_the_words_of_its_level(
    shut: World, level: int, suback: str
) -> None:
    link = enter(shut, level)
    shut.receive(link, f"82 {'0B' if level == 4 else '0C'} 0001 {'00' if level == 5 else ''} 0006 'shut/a' 01")
    assert (link.taken(), link.is_open) == (written(suback), True)


def test_a_refused_subscription_of_mqtt_3_1_closes_the_connection(shut: World) -> None:
    link = enter(shut, 3)
    shut.receive(link, "82 0B 0001 0006 'shut/a' 01")
    assert (link.taken(), link.is_open) == (b"", False)


@pytest.mark.parametrize(("qos", "refusal"), [(1, "40 03 0001 87"), (2, "50 03 0001 87")])
def test_at_level_5_what_topic_objects_close_is_refused_and_nothing_of_it_is_kept(
    shut: World, qos: int, refusal: str
) -> None:
    link = enter(shut, 5)
    shut.receive(link, publish(5, qos))
    assert (link.taken(), link.is_open) == (written(refusal), True)
    assert shut.depth(DEAD_LETTERS) == 0
    shut.receive(link, publish(5, qos, "open/a"))
    assert link.taken() == written("40 03 0001 10" if qos == 1 else "50 02 0001")
    command(shut, "ALTER TOPIC(SHUT) PUB(ENABLED)")
    other = enter(shut, 5)
    shut.receive(other, publish(5, 1))
    assert other.taken() == written("40 03 0001 10")


@pytest.mark.parametrize("level", [3, 4])
def test_before_level_5_it_is_acknowledged_and_kept_with_its_reason(shut: World, level: int) -> None:
    link = enter(shut, level)
    shut.receive(link, publish(level, 1))
    assert (link.taken(), link.is_open) == (written("40 02 0001"), True)
    (dead,) = shut.messages(DEAD_LETTERS)
    assert int.from_bytes(dead.body[8:12], "little") == 3081
    assert dead.body.endswith(b"X")
    shut.receive(link, publish(level, 2))
    shut.receive(link, "62 02 0001")
    assert link.taken() == written("50 02 0001 70 02 0001")
    assert shut.depth(DEAD_LETTERS) == 2


# -- queues here -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("attributes", "reason_code"), [("MAXDEPTH(0)", 0x97)])
def test_a_queue_here_that_takes_nothing_is_told_at_level_5_and_closes_the_connection_before(
    world: World, attributes: str, reason_code: int
) -> None:
    command(world, f"ALTER QLOCAL({STREAM}) {attributes}")
    link = enter(world, 5)
    world.receive(link, publish(5, 1))
    assert (link.taken(), link.is_open) == (written("40 03 0001") + bytes((reason_code,)), True)
    older = enter(world, 4)
    world.receive(older, publish(4, 1))
    assert (older.taken(), older.is_open) == (b"", False)
    assert world.depth(DEAD_LETTERS) == 0


# -- targets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason_code", "suback"), [(2035, 0x87), (3081, 0x87), (3072, 0x8F), (2053, 0x97), (3094, 0x83)]
)
def test_what_the_broker_of_a_target_says_to_a_subscription_comes_back(
    new_world: NewWorld, reason_code: int, suback: int
) -> None:
    world = new_world(**configured())
    link = enter(world, 5)
    world.receive(link, "82 09 0001 00 0003 'a/+' 01")
    answer(world, msg_ids(world)[0], REPLY_TOPIC_ERROR.replace(b"3072", str(reason_code).encode()))
    assert link.taken() == written("90 04 0001 00") + bytes((suback,))


def test_many_messages_that_the_broker_refuses_leave_few_lines_in_the_log(
    shut: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Before MQTT 5 they are acknowledged, and each of them stands on the dead-letter queue and in the audit."""
    link = enter(shut, 4)
    for _ in range(50):
        shut.receive(link, publish(4, 1))
    assert len(link.taken()) == 50 * len(written("40 02 0001"))
    assert shut.depth(DEAD_LETTERS) == 50
    lines = [record.message for record in caplog.records if record.message.startswith("message refused client=self")]
    assert len(lines) == LINES_OF_ONE

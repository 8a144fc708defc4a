"""What MQTT 5 has more, with each client that speaks it."""

import threading
import time

import pytest

from tests.end_to_end.clients.client import Login, Options, Properties, Way, Will
from tests.end_to_end.clients.conftest import Connected, Kind, NewClient, every_kind_of_5
from tests.end_to_end.clients.relay import Relay, packets

ALL_PROPERTIES: Properties = {
    "payload_format_indicator": 1,
    "content_type": "text/plain; charset=utf-8",
    "response_topic": "answers/kessel №1",
    "correlation_data": bytes(range(256)),
    "user_property": [("unit", "°C"), ("unit", "K"), ("", "")],
}
SESSION_TAKEN_OVER = 0x8E
NOT_SUCH_A_FILTER = 0x8F


@every_kind_of_5
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_properties_of_a_message_come_as_they_were_given(
    connected: Connected, way: Way, kind: Kind, qos: int
) -> None:
    topic = f"{kind.prefix}/properties/{qos}"
    client = connected(kind, way, f"{kind.prefix}-properties-{qos}")
    client.subscribe(topic, qos)
    client.publish(topic, "21.5 °C".encode(), qos, properties=ALL_PROPERTIES)
    message = client.next_message()
    assert message.essence == (topic, "21.5 °C".encode(), qos, False)
    assert message.properties == ALL_PROPERTIES


@every_kind_of_5
def test_a_retained_message_and_a_will_keep_their_properties(
    connected: Connected, way: Way, relay: Relay, kind: Kind
) -> None:
    topic = f"{kind.prefix}/kept"
    some = {name: ALL_PROPERTIES[name] for name in ("content_type", "correlation_data", "user_property")}
    will = Will(topic=f"{topic}/will", payload=b"gone", qos=1, properties=some)
    doomed = connected(kind, way.through(relay.port), f"{kind.prefix}-kept-1", will=will)
    doomed.publish(f"{topic}/state", b"on", 1, retain=True, properties=some)
    watcher = connected(kind, way, f"{kind.prefix}-kept-2")
    watcher.subscribe(f"{topic}/#", 1)
    retained = watcher.next_message()
    assert (retained.essence, retained.properties) == ((f"{topic}/state", b"on", 1, True), some)
    relay.cut()
    last = watcher.next_message()
    assert (last.essence, last.properties) == ((f"{topic}/will", b"gone", 1, False), some)


@every_kind_of_5
def test_a_will_waits_for_its_delay_and_a_client_that_comes_back_has_none(
    connected: Connected, new_client: NewClient, way: Way, relay: Relay, kind: Kind
) -> None:
    topic = f"{kind.prefix}/delay"
    will = Will(topic=topic, payload=b"gone", qos=1, properties={"will_delay_interval": 3_600})
    watcher = connected(kind, way, f"{kind.prefix}-delay-1")
    watcher.subscribe(topic, 1)
    first = connected(kind, way.through(relay.port), f"{kind.prefix}-delay-2", stays=True, will=will)
    relay.cut()
    first.disconnected.get(timeout=40)
    second = new_client(kind)
    assert second.connect(way, Login(client_identifier=f"{kind.prefix}-delay-2", version="5", stays=True)) is True
    second.publish(topic, b"back", 1)
    assert watcher.next_message().payload == b"back"


@every_kind_of_5
def test_a_subscription_identifier_tells_which_subscription_it_was(connected: Connected, way: Way, kind: Kind) -> None:
    topic = f"{kind.prefix}/which"
    client = connected(kind, way, f"{kind.prefix}-which")
    client.subscribe(f"{topic}/a", 1, Options(subscription_identifier=7))
    client.subscribe(f"{topic}/b/+", 1, Options(subscription_identifier=268_435_455))
    client.publish(f"{topic}/b/1", b"", 1)
    client.publish(f"{topic}/a", b"", 1)
    assert [client.next_message().properties for _ in range(2)] == [
        {"subscription_identifier": [268_435_455]},
        {"subscription_identifier": [7]},
    ]


@every_kind_of_5
def test_with_no_local_a_client_does_not_hear_itself(connected: Connected, way: Way, kind: Kind) -> None:
    topic = f"{kind.prefix}/local"
    client = connected(kind, way, f"{kind.prefix}-local-1")
    client.subscribe(topic, 1, Options(no_local=True))
    client.publish(topic, b"mine", 1)
    connected(kind, way, f"{kind.prefix}-local-2").publish(topic, b"another's", 1)
    assert client.next_message().payload == b"another's"


@every_kind_of_5
def test_retain_is_kept_as_published_and_handled_as_asked(connected: Connected, way: Way, kind: Kind) -> None:
    topic = f"{kind.prefix}/handling"
    client = connected(kind, way, f"{kind.prefix}-handling")
    client.publish(topic, b"before", 1, retain=True)
    client.subscribe(topic, 1, Options(retain_as_published=True, retain_handling=2))
    client.publish(topic, b"after", 1, retain=True)
    assert client.next_message().essence == (topic, b"after", 1, True)
    client.subscribe(topic, 1, Options(retain_handling=1))
    client.publish(topic, b"later", 1, retain=True)
    assert client.next_message().essence == (topic, b"later", 1, False)


@every_kind_of_5
def test_a_shared_subscription_gives_each_message_to_one_of_its_members(
    connected: Connected, way: Way, kind: Kind
) -> None:
    topic = f"{kind.prefix}/shared"
    members = [connected(kind, way, f"{kind.prefix}-shared-{number}") for number in range(2)]
    for member in members:
        assert member.subscribe(f"$share/crew/{topic}/#", 1) == 1
    publisher = connected(kind, way, f"{kind.prefix}-shared-p")
    for number in range(40):
        publisher.publish(f"{topic}/{number}", b"%d" % number, 1)
    for member in members:
        member.subscribe(f"{kind.prefix}/end", 1)
    publisher.publish(f"{kind.prefix}/end", b"end", 1)
    shares = [
        [int(payload) for payload in iter(lambda m=member: m.next_message().payload, b"end")] for member in members
    ]
    assert sorted(shares[0] + shares[1]) == list(range(40))
    assert all(shares)


@every_kind_of_5
def test_a_session_ends_when_it_expires(connected: Connected, new_client: NewClient, way: Way, kind: Kind) -> None:
    name = f"{kind.prefix}-expiry"
    at_once = connected(kind, way, name, stays=True, properties={"session_expiry_interval": 0})
    at_once.close()
    second = new_client(kind)
    assert second.connect(way, Login(client_identifier=name, version="5", stays=True)) is False
    second.close()
    third = new_client(kind)
    assert third.connect(way, Login(client_identifier=name, version="5", stays=True)) is True


@every_kind_of_5
def test_a_message_that_expires_while_its_reader_is_away_is_not_delivered(
    connected: Connected, new_client: NewClient, way: Way, kind: Kind
) -> None:
    topic = f"{kind.prefix}/expires"
    login = Login(client_identifier=f"{kind.prefix}-expires-1", version="5", stays=True)
    first = new_client(kind)
    first.connect(way, login)
    first.subscribe(topic, 1)
    first.close()
    publisher = connected(kind, way, f"{kind.prefix}-expires-2")
    publisher.publish(topic, b"short", 1, properties={"message_expiry_interval": 1})
    publisher.publish(topic, b"long", 1, properties={"message_expiry_interval": 3_600})
    expired_s = time.monotonic() + 1.1
    threading.Event().wait(max(0.0, expired_s - time.monotonic()))  # time itself is what is tested
    second = new_client(kind)
    second.connect(way, login)
    message = second.next_message()
    assert message.payload == b"long"
    left_s = message.properties["message_expiry_interval"]
    assert isinstance(left_s, int)
    assert 3_000 < left_s < 3_600


@every_kind_of_5
def test_who_connects_with_the_same_identifier_takes_over_and_the_other_is_told(
    connected: Connected, way: Way, kind: Kind
) -> None:
    first = connected(kind, way, f"{kind.prefix}-taken", stays=True)
    second = connected(kind, way, f"{kind.prefix}-taken", stays=True)
    assert first.told.get(timeout=40) == SESSION_TAKEN_OVER
    second.publish(f"{kind.prefix}/taken", b"", 1)


@every_kind_of_5
def test_a_refused_subscription_says_why(connected: Connected, way: Way, kind: Kind) -> None:
    client = connected(kind, way, f"{kind.prefix}-refused")
    assert client.subscribe("/".join("x" * 300), 1) == NOT_SUCH_A_FILTER


def test_a_client_without_an_identifier_is_told_its_own(connected: Connected, way: Way) -> None:
    client = connected(Kind("paho", "5"), way, "")
    assert client.announced["assigned_client_identifier"]


@every_kind_of_5
def test_an_alias_stands_for_its_topic_until_the_end_of_the_connection(
    connected: Connected, way: Way, relay: Relay, kind: Kind
) -> None:
    topic = f"{kind.prefix}/a/topic/that/is/worth/an/alias"
    watcher = connected(kind, way, f"{kind.prefix}-alias-1")
    watcher.subscribe(f"{kind.prefix}/a/#", 2)
    publisher = connected(kind, way.through(relay.port), f"{kind.prefix}-alias-2")
    maximum = publisher.announced["topic_alias_maximum"]
    assert isinstance(maximum, int)
    assert maximum >= 2
    for number in range(6):
        alias = 1 + number % 2
        publisher.publish(
            f"{topic}/{alias}" if number < 2 else "", b"%d" % number, number % 3, properties={"topic_alias": alias}
        )
    received = sorted(watcher.next_essences(6), key=lambda each: each[1])  # QoS 2 may be given later
    assert received == [(f"{topic}/{1 + number % 2}", b"%d" % number, number % 3, False) for number in range(6)]
    sent = [packet for packet in packets(bytes(relay.sent[0])) if packet[0] >> 4 == 3]
    assert [topic.encode() in packet for packet in sent] == [True, True, False, False, False, False]

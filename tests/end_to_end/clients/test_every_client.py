"""What each client must be able to do with the gateway, at every version that it speaks; much of it over all ways."""

import pytest

from tests.end_to_end.clients.client import Client, Login, Way, Will
from tests.end_to_end.clients.conftest import Connected, Kind, NewClient, every_kind, every_kind_and_transport
from tests.end_to_end.clients.relay import Relay, packets

LARGE_BYTES = 1_500_000  # many reads of a socket, many frames of a WebSocket


@every_kind_and_transport
@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_a_message_comes_at_the_lower_qos(connected: Connected, way: Way, kind: Kind, wanted: int) -> None:
    topic = f"{kind.prefix}/qos/{wanted}"
    client = connected(kind, way, f"{kind.prefix}-qos-{wanted}")
    assert client.subscribe(topic, wanted) == wanted
    for qos in (0, 1, 2):
        client.publish(topic, b"at %d" % qos, qos)
        assert client.next_message().essence == (topic, b"at %d" % qos, min(qos, wanted), False)


@every_kind
def test_a_hundred_messages_keep_their_order(connected: Connected, way: Way, kind: Kind) -> None:
    topic = f"{kind.prefix}/order"
    watcher = connected(kind, way, f"{kind.prefix}-order-1")
    publisher = connected(kind, way, f"{kind.prefix}-order-2")
    watcher.subscribe(f"{topic}/+", 2)
    for number in range(100):
        publisher.begin_publish(f"{topic}/{number % 7}", b"%d" % number, 2)
    publisher.finish_publish()
    assert [int(payload) for _, payload, _, _ in watcher.next_essences(100)] == list(range(100))


@every_kind_and_transport
def test_a_large_message_comes_back_whole(connected: Connected, way: Way, kind: Kind) -> None:
    topic = f"{kind.prefix}/large"
    payload = bytes(range(256)) * (LARGE_BYTES // 256)
    client = connected(kind, way, f"{kind.prefix}-large")
    client.subscribe(topic, 1)
    client.publish(topic, payload, 1)
    assert client.next_message().essence == (topic, payload, 1, False)


@every_kind
def test_a_retained_message_waits_for_the_subscriber_and_can_be_deleted(
    connected: Connected, way: Way, kind: Kind
) -> None:
    topic = f"{kind.prefix}/retained"
    publisher = connected(kind, way, f"{kind.prefix}-retained-1")
    publisher.publish(f"{topic}/a", b"on", 1, retain=True)
    first = connected(kind, way, f"{kind.prefix}-retained-2")
    first.subscribe(f"{topic}/#", 2)
    assert first.next_message().essence == (f"{topic}/a", b"on", 1, True)
    publisher.publish(f"{topic}/a", b"", 1, retain=True)
    assert first.next_message().essence == (f"{topic}/a", b"", 1, False)
    second = connected(kind, way, f"{kind.prefix}-retained-3")
    second.subscribe(f"{topic}/#", 2)
    publisher.publish(f"{topic}/b", b"end", 1)
    assert second.next_message().essence == (f"{topic}/b", b"end", 1, False)


@every_kind
def test_after_unsubscribing_nothing_comes(connected: Connected, way: Way, kind: Kind) -> None:
    topic = f"{kind.prefix}/less"
    client = connected(kind, way, f"{kind.prefix}-less")
    client.subscribe(f"{topic}/a", 1)
    client.subscribe(f"{topic}/b", 1)
    client.unsubscribe(f"{topic}/a")
    client.publish(f"{topic}/a", b"not wanted", 1)
    client.publish(f"{topic}/b", b"wanted", 1)
    assert client.next_message().essence == (f"{topic}/b", b"wanted", 1, False)


@every_kind_and_transport
def test_the_will_of_a_client_that_is_cut_off_is_published(
    connected: Connected, way: Way, relay: Relay, kind: Kind
) -> None:
    topic = f"{kind.prefix}/will"
    watcher = connected(kind, way, f"{kind.prefix}-will-1")
    watcher.subscribe(topic, 2)
    will = Will(topic=topic, payload="getrennt: Kessel №1".encode(), qos=2, retain=True)
    connected(kind, way.through(relay.port), f"{kind.prefix}-will-2", will=will)
    relay.cut()
    assert watcher.next_message().essence == (topic, will.payload, 2, False)
    late = connected(kind, way, f"{kind.prefix}-will-3")
    late.subscribe(topic, 1)
    assert late.next_message().essence == (topic, will.payload, 1, True)


@every_kind
def test_a_client_that_takes_its_leave_has_no_will(connected: Connected, way: Way, kind: Kind) -> None:
    topic = f"{kind.prefix}/no-will"
    watcher = connected(kind, way, f"{kind.prefix}-no-will-1")
    watcher.subscribe(topic, 1)
    polite = connected(kind, way, f"{kind.prefix}-no-will-2", will=Will(topic=topic, payload=b"gone", qos=1))
    polite.close()
    watcher.publish(topic, b"nobody has gone", 1)
    assert watcher.next_message().payload == b"nobody has gone"


@every_kind_and_transport
def test_a_session_that_stays_gets_what_came_while_it_was_away(
    connected: Connected, new_client: NewClient, way: Way, kind: Kind
) -> None:
    topic = f"{kind.prefix}/away"
    login = Login(client_identifier=f"{kind.prefix}-away-1", version=kind.version, stays=True)
    first = new_client(kind)
    assert first.connect(way, login) is False
    first.subscribe(f"{topic}/#", 2)
    first.close()
    publisher = connected(kind, way, f"{kind.prefix}-away-2")
    for number in range(20):
        publisher.publish(f"{topic}/{number}", b"%d" % number, 1 + number % 2)
    second = new_client(kind)
    # 3.1 has no Session Present; paho and MQTT.js read the byte that is reserved there.
    assert second.connect(way, login) is (kind.version != "3.1")
    received = second.next_essences(20)
    for qos in (1, 2):  # a client gives QoS 2 to its application at PUBREL, when later ones of QoS 1 may have come
        assert [each for each in received if each[2] == qos] == [
            (f"{topic}/{number}", b"%d" % number, qos, False) for number in range(20) if 1 + number % 2 == qos
        ]


@every_kind
def test_a_clean_start_ends_the_session_that_was_there(
    connected: Connected, new_client: NewClient, way: Way, kind: Kind
) -> None:
    topic, name = f"{kind.prefix}/clean", f"{kind.prefix}-clean"
    first = connected(kind, way, name, stays=True)
    first.subscribe(topic, 1)
    first.close()
    second = new_client(kind)
    assert second.connect(way, Login(client_identifier=name, version=kind.version)) is False
    second.publish(topic, b"nobody listens", 1)
    second.subscribe(topic, 1)
    second.publish(topic, b"now", 1)
    assert second.next_message().payload == b"now"


@every_kind
@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_not_acknowledged_is_published_again_and_taken_once_at_qos_2(
    connected: Connected, way: Way, relay: Relay, kind: Kind, qos: int
) -> None:
    """The gateway's PUBACK or PUBREC is lost on the way; the client comes back by itself and repeats."""
    topic = f"{kind.prefix}/again/{qos}"
    watcher = connected(kind, way, f"{kind.prefix}-again-1-{qos}")
    watcher.subscribe(topic, 2)
    publisher = connected(kind, way.through(relay.port), f"{kind.prefix}-again-2-{qos}", stays=True, reconnects=True)
    relay.loses_answers.set()
    publisher.begin_publish(topic, b"once", qos)
    relay.wait_for_answer(0x40 if qos == 1 else 0x50)
    relay.cut()
    publisher.finish_publish()
    publisher.publish(topic, b"end", qos)
    seen = _payloads_until(watcher, b"end")
    assert seen == ([b"once"] if qos == 2 else [b"once", b"once"])
    repeats = [packet[0] & 0x3E for packet in packets(bytes(relay.sent[-1])) if packet[0] >> 4 == 3]
    duplicate = 0x08 if kind.name == "paho" else 0  # MQTT.js and gmqtt repeat without it
    assert repeats[0] == 0x30 | qos << 1 | duplicate


@every_kind
@pytest.mark.parametrize("qos", [1, 2])
def test_what_the_client_did_not_acknowledge_is_delivered_again_with_dup(
    connected: Connected, way: Way, relay: Relay, kind: Kind, qos: int
) -> None:
    """The client's PUBACK or PUBREC is lost on the way; it comes back by itself and gets the message again."""
    topic = f"{kind.prefix}/repeat/{qos}"
    publisher = connected(kind, way, f"{kind.prefix}-repeat-1-{qos}")
    watcher = connected(kind, way.through(relay.port), f"{kind.prefix}-repeat-2-{qos}", stays=True, reconnects=True)
    watcher.subscribe(topic, qos)
    relay.loses_requests.set()
    publisher.publish(topic, b"once", qos)
    relay.wait_for_request(0x40 if qos == 1 else 0x50)
    relay.cut()
    relay.wait_for_answer(0x38 | qos << 1)
    publisher.publish(topic, b"end", qos)
    assert set(_payloads_until(watcher, b"end")) <= {b"once"}


def _payloads_until(client: Client, last: bytes) -> list[bytes]:
    """What came before the payload `last`."""
    return list(iter(lambda: client.next_message().payload, last))

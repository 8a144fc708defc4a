"""A client of paho-mqtt (its second API): calls that wait, and what arrives on a queue."""

import queue

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

PATIENCE_S = 30.0
LEVELS = {"3.1": mqtt.MQTTv31, "3.1.1": mqtt.MQTTv311}


class PahoClient:
    """A paho client with its network thread, and what arrives on queues."""

    def __init__(self, name: str, *, level: str = "3.1.1", clean_session: bool = True) -> None:
        self.received: queue.Queue[tuple[str, bytes, int, bool]] = queue.Queue()
        self._happened: queue.Queue[str] = queue.Queue()
        # The callbacks hold the queues and not the client: it then goes, with its sockets, when nobody has it any more.
        received, happened = self.received, self._happened
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id=name, clean_session=clean_session, protocol=LEVELS[level]
        )
        self.client.on_message = lambda _client, _data, message: received.put(
            (message.topic, bytes(message.payload), message.qos, message.retain)
        )
        self.client.on_connect = lambda _client, _data, flags, reason, _properties: happened.put(
            f"connected {reason} {flags.session_present}"
        )
        self.client.on_subscribe = lambda _client, _data, _number, reasons, _properties: happened.put(
            f"subscribed {' '.join(str(reason) for reason in reasons)}"
        )
        self.client.on_unsubscribe = lambda *_arguments: happened.put("unsubscribed")
        self.client.on_disconnect = lambda *_arguments: happened.put("disconnected")

    def connect(self, port: int) -> str:
        self.client.connect("127.0.0.1", port, keepalive=60)
        self.client.loop_start()
        return self._happened.get(timeout=PATIENCE_S)

    def subscribe(self, topic_filter: str, qos: int) -> str:
        self.client.subscribe(topic_filter, qos)
        return self._happened.get(timeout=PATIENCE_S)

    def unsubscribe(self, topic_filter: str) -> None:
        self.client.unsubscribe(topic_filter)
        assert self._happened.get(timeout=PATIENCE_S) == "unsubscribed"

    def publish(self, topic: str, payload: bytes, qos: int, retain: bool = False) -> None:
        self.client.publish(topic, payload, qos, retain).wait_for_publish(PATIENCE_S)

    def next_message(self) -> tuple[str, bytes, int, bool]:
        return self.received.get(timeout=PATIENCE_S)

    def wait_until_disconnected(self) -> None:
        assert self._happened.get(timeout=PATIENCE_S) == "disconnected"

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

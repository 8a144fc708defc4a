"""paho-mqtt, by its second API."""

import queue
from typing import Any, Final

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.end_to_end.clients.client import PATIENCE_S, PLAIN, Client, Login, Message, Options, Properties, Way

_LEVELS: Final = {"3.1": mqtt.MQTTv31, "3.1.1": mqtt.MQTTv311, "5": mqtt.MQTTv5}


class Paho(Client):
    """Of its callbacks none holds the client: it then goes, with its sockets, when nobody has it any more."""

    def __init__(self) -> None:
        super().__init__()
        self._client: mqtt.Client | None = None
        self._is_5 = False
        self._answers: queue.Queue[list[Any]] = queue.Queue()
        self._under_way: list[mqtt.MQTTMessageInfo] = []

    def connect(self, way: Way, login: Login) -> bool:
        self._is_5 = login.version == "5"
        self._client = client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=login.client_identifier,
            clean_session=None if self._is_5 else not login.stays,
            protocol=_LEVELS[login.version],
            transport="websockets" if way.is_websocket else "tcp",
            reconnect_on_failure=login.reconnects,
        )
        client.reconnect_delay_set(1, 1)
        if way.authority is not None:
            client.tls_set(str(way.authority))
        if login.user_name:
            client.username_pw_set(login.user_name, login.password)
        self._set_will(client, login)
        self._watch(client)
        start = {"clean_start": not login.stays} if self._is_5 else {}
        client.connect(
            "127.0.0.1",
            way.port,
            properties=_properties(PacketTypes.CONNECT, login.all_properties, self._is_5),
            **start,
        )
        client.loop_start()
        return self.connected.get(timeout=PATIENCE_S)

    def _set_will(self, client: mqtt.Client, login: Login) -> None:
        if (will := login.will) is not None:
            properties = _properties(PacketTypes.WILLMESSAGE, will.properties, self._is_5)
            client.will_set(will.topic, will.payload, will.qos, will.retain, properties)

    def _watch(self, client: mqtt.Client) -> None:
        messages, connected, disconnected, told = self.messages, self.connected, self.disconnected, self.told
        answers, announced = self._answers, self.announced

        def on_connect(_client: object, _data: object, flags: Any, reason: Any, properties: Any) -> None:
            assert not reason.is_failure, reason
            announced.update(_read(properties))
            connected.put(flags.session_present)

        def on_disconnect(_client: object, _data: object, flags: Any, reason: Any, _properties: object) -> None:
            if flags.is_disconnect_packet_from_server:
                told.put(reason.value)
            disconnected.put(None)

        client.on_connect = on_connect
        client.on_disconnect = on_disconnect
        client.on_message = lambda _client, _data, message: messages.put(_message(message))
        client.on_subscribe = lambda _client, _data, _number, reasons, _properties: answers.put(reasons)
        client.on_unsubscribe = lambda _client, _data, _number, reasons, _properties: answers.put(reasons)

    @property
    def _connected_client(self) -> mqtt.Client:
        assert self._client is not None
        return self._client

    def subscribe(self, topic_filter: str, qos: int, options: Options = PLAIN) -> int:
        if self._is_5:
            asked = SubscribeOptions(qos, options.no_local, options.retain_as_published, options.retain_handling)
            number = options.subscription_identifier
            properties = {"subscription_identifier": number} if number else {}
            self._connected_client.subscribe(
                topic_filter, options=asked, properties=_properties(PacketTypes.SUBSCRIBE, properties, True)
            )
        else:
            self._connected_client.subscribe(topic_filter, qos)
        (reason,) = self._answers.get(timeout=PATIENCE_S)
        return int(reason.value)

    def unsubscribe(self, topic_filter: str) -> None:
        self._connected_client.unsubscribe(topic_filter)
        self._answers.get(timeout=PATIENCE_S)

    def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False, properties: Properties | None = None
    ) -> None:
        given = _properties(PacketTypes.PUBLISH, properties or {}, self._is_5)
        self._connected_client.publish(topic, payload, qos, retain, given).wait_for_publish(PATIENCE_S)

    def begin_publish(self, topic: str, payload: bytes, qos: int) -> None:
        self._under_way.append(self._connected_client.publish(topic, payload, qos))

    def finish_publish(self) -> None:
        for each in self._under_way:
            each.wait_for_publish(PATIENCE_S)
            assert each.is_published()

    def close(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None


def _message(message: mqtt.MQTTMessage) -> Message:
    return Message(
        topic=message.topic,
        payload=bytes(message.payload),
        qos=message.qos,
        retain=message.retain,
        is_repeated=message.dup,
        properties=_read(message.properties),
    )


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _properties(packet_type: int, given: Properties, is_5: bool) -> PahoProperties | None:
    if not is_5 or not given:
        return None
    made = PahoProperties(packet_type)
    for name, value in given.items():
        setattr(made, _camel(name), value)
    return made


def _read(properties: PahoProperties | None) -> Properties:
    """paho has them as attributes, in its own spelling of their names; a user property is a list of pairs there too."""
    names = properties.names if properties is not None else {}
    found = {name.lower().replace(" ", "_"): getattr(properties, name.replace(" ", ""), None) for name in names}
    return {name: value for name, value in found.items() if value is not None}

"""gmqtt, which runs on asyncio: here in a thread with a loop of its own. It speaks 3.1.1 and 5, over TCP and TLS.

It repeats messages without DUP, and gives its application a repeated QoS 2 message again.
"""

import asyncio
import contextlib
import queue
import ssl
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import gmqtt
from gmqtt.storage import PersistentStorage

from tests.end_to_end.clients.client import PATIENCE_S, PLAIN, Client, Login, Message, Options, Properties, Way

_LEVELS: Final = {"3.1.1": 4, "5": 5}
#: Its names of properties that are not the specification's.
_OWN_NAMES: Final = {"payload_format_indicator": "payload_format_id"}
_SPECIFIED_NAMES: Final = {own: specified for specified, own in _OWN_NAMES.items()}
_LISTS: Final = ("user_property", "subscription_identifier")

Value = TypeVar("Value")


class Gmqtt(Client):
    def __init__(self) -> None:
        super().__init__()
        self._answers: queue.Queue[tuple[int, ...]] = queue.Queue()
        self._storage = PersistentStorage()
        self._client: gmqtt.Client | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _do(self, work: Coroutine[Any, Any, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def connect(self, way: Way, login: Login) -> bool:
        self._do(self._connect(way, login))
        return self.connected.get(timeout=PATIENCE_S)

    async def _connect(self, way: Way, login: Login) -> None:
        will = None
        if (asked := login.will) is not None:
            will = gmqtt.Message(asked.topic, asked.payload, asked.qos, asked.retain, **asked.properties)
        is_5 = login.version == "5"
        self._client = client = gmqtt.Client(
            login.client_identifier,
            clean_session=not login.stays,
            will_message=will,
            persistent_storage=self._storage,
            **(login.all_properties if is_5 else {}),
        )
        client.set_config({"reconnect_delay": 0.05, "reconnect_retries": -1 if login.reconnects else 0})
        if login.user_name:
            client.set_auth_credentials(login.user_name, login.password)
        self._watch(client)
        tls = False if way.authority is None else ssl.create_default_context(cafile=str(way.authority))
        await client.connect("127.0.0.1", way.port, ssl=tls, version=_LEVELS[login.version])

    def _watch(self, client: gmqtt.Client) -> None:
        def on_connect(_client: object, flags: int, code: int, properties: dict[str, Any]) -> None:
            assert code == 0, code
            self.announced.update(_read(properties))
            self.connected.put(bool(flags))

        def on_disconnect(_client: object, packet: object, _error: object = None) -> None:
            if isinstance(packet, bytes) and packet:
                self.told.put(packet[0])
            self.disconnected.put(None)

        client.on_connect = on_connect
        client.on_disconnect = on_disconnect
        client.on_message = lambda _client, *arguments: self.messages.put(_message(*arguments))
        client.on_subscribe = lambda _client, _number, reasons, _properties: self._answers.put(reasons)
        client.on_unsubscribe = lambda _client, _number, reasons: self._answers.put(reasons)

    async def _call(self, name: str, *arguments: object, **named: object) -> None:
        assert self._client is not None
        getattr(self._client, name)(*arguments, **named)

    def subscribe(self, topic_filter: str, qos: int, options: Options = PLAIN) -> int:
        number = options.subscription_identifier
        subscription = gmqtt.Subscription(
            topic_filter,
            qos=qos,
            no_local=options.no_local,
            retain_as_published=options.retain_as_published,
            retain_handling_options=options.retain_handling,
        )
        self._do(self._call("subscribe", subscription, **({"subscription_identifier": number} if number else {})))
        (reason,) = self._answers.get(timeout=PATIENCE_S)
        return reason

    def unsubscribe(self, topic_filter: str) -> None:
        self._do(self._call("unsubscribe", topic_filter))
        self._answers.get(timeout=PATIENCE_S)

    def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False, properties: Properties | None = None
    ) -> None:
        given = {_OWN_NAMES.get(name, name): value for name, value in (properties or {}).items()}
        self._do(self._call("publish", topic, payload, qos=qos, retain=retain, **given))
        self.finish_publish()

    def begin_publish(self, topic: str, payload: bytes, qos: int) -> None:
        self._do(self._call("publish", topic, payload, qos=qos))

    def finish_publish(self) -> None:
        self._do(self._storage.wait_empty())

    def close(self) -> None:
        if self._client is not None:
            with contextlib.suppress(ssl.SSLError):  # asyncio's, where an answer crosses the end of a TLS connection
                self._do(self._client.disconnect())
            self._client = None
        if self._thread.is_alive():
            self._do(_end_tasks())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)
            self._loop.close()


async def _end_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _message(topic: str, payload: bytes, qos: int, properties: dict[str, Any]) -> Message:
    flags = {name: bool(properties.pop(name)) for name in ("dup", "retain")}
    return Message(
        topic=topic,
        payload=bytes(payload),
        qos=qos,
        retain=flags["retain"],
        is_repeated=flags["dup"],
        properties=_read(properties),
    )


def _read(properties: dict[str, Any]) -> Properties:
    """gmqtt gives a list for each; those that may stand once are taken out of it."""
    found: Properties = {}
    for name, values in properties.items():
        is_single = isinstance(values, list) and name not in _LISTS
        found[_SPECIFIED_NAMES.get(name, name)] = values[0] if is_single else values
    return found

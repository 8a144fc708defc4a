"""MQTT.js, many clients in one process of Node.js; mqtt_js/driver.js is its other end."""

import base64
import itertools
import json
import os
import re
import subprocess
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from tests.end_to_end.clients.client import PATIENCE_S, PLAIN, Client, Login, Message, Options, Properties, Way

_ROOT: Final = Path(__file__).resolve().parents[3]
_DRIVER: Final = Path(__file__).parent / "mqtt_js" / "driver.js"
INSTALLED: Final = _ROOT / ".venv" / "mqtt-js"
_PROTOCOLS: Final = {(False, False): "mqtt", (False, True): "mqtts", (True, False): "ws", (True, True): "wss"}
_LEVELS: Final = {
    "3.1": {"protocolId": "MQIsdp", "protocolVersion": 3},
    "3.1.1": {"protocolId": "MQTT", "protocolVersion": 4},
    "5": {"protocolId": "MQTT", "protocolVersion": 5},
}


def why_missing() -> str:
    """Why MQTT.js cannot be used here; empty where it can."""
    if (INSTALLED / "stamp").exists():
        return ""
    unavailable = INSTALLED / "unavailable"
    return unavailable.read_text().strip() if unavailable.exists() else "MQTT.js is not installed (make setup)"


class Node:
    """The process. Its answers and events are handed on by a thread."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["node", str(_DRIVER)],
            env=os.environ | {"NODE_PATH": str(INSTALLED / "node_modules")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._awaited: dict[int, Future[Any]] = {}
        self._watchers: dict[str, MqttJs] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def watch(self, client: "MqttJs") -> str:
        """From now on the events of the client are given to it; returns the name that it has in the process."""
        name = f"client {next(self._numbers)}"
        self._watchers[name] = client
        return name

    def begin(self, client: str, command: str, **given: object) -> Future[Any]:
        """Sends a command. The future has its result, or AssertionError."""
        assert self._process.stdin is not None
        number, answered = next(self._numbers), Future[Any]()
        self._awaited[number] = answered
        line = json.dumps({"number": number, "client": client, "do": command, **given}, default=_bytes_as_json)
        with self._lock:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return answered

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._take(json.loads(line, object_hook=_bytes_from_json))

    def _take(self, said: dict[str, Any]) -> None:
        if "number" not in said:
            self._watchers[said["client"]].happened(said)
        elif "error" in said:
            self._awaited.pop(said["number"]).set_exception(AssertionError(f"MQTT.js: {said['error']}"))
        else:
            self._awaited.pop(said["number"]).set_result(said["result"])


class MqttJs(Client):
    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node = node
        self._name = node.watch(self)
        self._is_5 = False
        self._is_open = False
        self._under_way: list[Future[Any]] = []

    def _do(self, command: str, **given: object) -> Any:
        return self._node.begin(self._name, command, **given).result(PATIENCE_S)

    def happened(self, said: dict[str, Any]) -> None:
        """An event of the process, in the thread that reads from it."""
        match said["event"]:
            case "message":
                self.messages.put(_message(said))
            case "connected":
                self.connected.put(said["sessionPresent"])
            case "disconnect":
                self.told.put(said["reasonCode"])
            case "closed":
                self.disconnected.put(None)

    def connect(self, way: Way, login: Login) -> bool:
        self._is_5 = login.version == "5"
        options: dict[str, object] = {
            **_LEVELS[login.version],
            "protocol": _PROTOCOLS[way.is_websocket, way.authority is not None],
            "host": "127.0.0.1",
            "port": way.port,
            "path": "/mqtt",
            "clientId": login.client_identifier,
            "clean": not login.stays,
            "reconnectPeriod": 50 if login.reconnects else 0,
            "resubscribe": False,
        }
        if way.authority is not None:
            options["ca"] = way.authority.read_text()
        if login.user_name:
            options |= {"username": login.user_name, "password": login.password}
        if self._is_5:
            options["properties"] = _camel_names(login.all_properties)
        if (will := login.will) is not None:
            options["will"] = {"topic": will.topic, "payload": will.payload, "qos": will.qos, "retain": will.retain} | (
                {"properties": _camel_names(will.properties)} if self._is_5 else {}
            )
        connack = self._do("connect", options=options)
        self._is_open = True
        self.announced = _snake_names(connack.get("properties", {}))
        return self.connected.get(timeout=PATIENCE_S)

    def subscribe(self, topic_filter: str, qos: int, options: Options = PLAIN) -> int:
        asked: dict[str, object] = {"qos": qos}
        if self._is_5:
            asked |= {"nl": options.no_local, "rap": options.retain_as_published, "rh": options.retain_handling}
            if options.subscription_identifier:
                asked["properties"] = {"subscriptionIdentifier": options.subscription_identifier}
        (reason,) = self._do("subscribe", filter=topic_filter, options=asked)
        return int(reason)

    def unsubscribe(self, topic_filter: str) -> None:
        self._do("unsubscribe", filter=topic_filter)

    def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False, properties: Properties | None = None
    ) -> None:
        self._begin(topic, payload, qos, retain, properties or {}).result(PATIENCE_S)

    def begin_publish(self, topic: str, payload: bytes, qos: int) -> None:
        self._under_way.append(self._begin(topic, payload, qos, False, {}))

    def finish_publish(self) -> None:
        for each in self._under_way:
            each.result(PATIENCE_S)

    def _begin(self, topic: str, payload: bytes, qos: int, retain: bool, properties: Properties) -> Future[Any]:
        options: dict[str, object] = {"qos": qos, "retain": retain}
        if properties:
            options["properties"] = _camel_names(properties)
        return self._node.begin(self._name, "publish", topic=topic, payload=payload, options=options)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._do("end", force=False)


def _message(said: dict[str, Any]) -> Message:
    return Message(
        topic=said["topic"],
        payload=said["payload"],
        qos=said["qos"],
        retain=said["retain"],
        is_repeated=said["dup"],
        properties=_snake_names(said["properties"]),
    )


def _bytes_as_json(value: object) -> dict[str, str]:
    assert isinstance(value, bytes)
    return {"base64": base64.b64encode(value).decode()}


def _bytes_from_json(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value


def _camel_names(properties: Properties) -> dict[str, object]:
    """MQTT.js has user properties as an object, with a list where a name is repeated."""
    made: dict[str, object] = {}
    for name, value in properties.items():
        first, *others = name.split("_")
        camel = "".join((first, *(word.capitalize() for word in others)))
        made[_JS_NAMES.get(camel, camel)] = _js_value(name, value)
    return made


def _js_value(name: str, value: object) -> object:
    if name == "payload_format_indicator":
        return bool(value)
    if name != "user_property":
        return value
    assert isinstance(value, list)
    values: dict[str, list[str]] = {}
    for each, text in value:
        values.setdefault(each, []).append(text)
    return values


_JS_NAMES: Final = {"userProperty": "userProperties"}


def _snake_names(properties: dict[str, Any]) -> Properties:
    """Of user properties MQTT.js does not keep the order of different names."""
    made: Properties = {}
    for camel, value in properties.items():
        name = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", camel)
        if name == "user_properties":
            pairs = [(each, text) for each, texts in value.items() for text in _listed(texts)]
            made["user_property"] = pairs
        elif name == "subscription_identifier":
            made[name] = _listed(value)
        else:
            made[name] = int(value) if name == "payload_format_indicator" else value
    return made


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]

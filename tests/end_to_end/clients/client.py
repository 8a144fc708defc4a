"""What the tests ask of any MQTT client, in the specification's words; each of others has its adapter beside this.

An adapter only translates: the bytes on the network are the client's own.
"""

import queue
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PATIENCE_S: Final = 40.0

Properties = dict[str, object]
"""By the specification's names. `user_property` is a list of pairs, `subscription_identifier` of numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a gateway is reached. `authority`: certificates of who may have signed the gateway's; None without TLS."""

    port: int
    is_websocket: bool = False
    authority: Path | None = None

    def through(self, port: int) -> "Way":
        """The same with something on that port in between."""
        return Way(port=port, is_websocket=self.is_websocket, authority=self.authority)


@dataclass(frozen=True, slots=True, kw_only=True)
class Will:
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What a CONNECT says. At level 5 `stays` is Clean Start 0 with a session that expires in an hour."""

    client_identifier: str
    version: str
    stays: bool = False
    will: Will | None = None
    properties: Properties = field(default_factory=dict)
    user_name: str = ""
    password: str = ""
    #: Whether the client connects again by itself, at once.
    reconnects: bool = False

    @property
    def all_properties(self) -> Properties:
        """The CONNECT properties at level 5."""
        return ({"session_expiry_interval": 3_600} if self.stays else {}) | self.properties


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Subscription options and identifier of MQTT 5; an identifier of 0 is none."""

    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    subscription_identifier: int = 0


PLAIN: Final = Options()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A PUBLISH that a client gave to its application."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    is_repeated: bool
    properties: Properties

    @property
    def essence(self) -> tuple[str, bytes, int, bool]:
        return self.topic, self.payload, self.qos, self.retain


class Client(ABC):
    """One client with its own thread or process. Every call waits for the gateway's answer."""

    def __init__(self) -> None:
        self.messages: queue.Queue[Message] = queue.Queue()
        #: Session Present of each CONNACK.
        self.connected: queue.Queue[bool] = queue.Queue()
        self.disconnected: queue.Queue[None] = queue.Queue()
        #: Reason codes of the gateway's DISCONNECT.
        self.told: queue.Queue[int] = queue.Queue()
        #: What CONNACK announced, at level 5.
        self.announced: Properties = {}

    @abstractmethod
    def connect(self, way: Way, login: Login) -> bool:
        """Returns whether the gateway had a session."""

    @abstractmethod
    def subscribe(self, topic_filter: str, qos: int, options: Options = PLAIN) -> int:
        """Returns the reason code: the granted QoS, or 128 and more."""

    @abstractmethod
    def unsubscribe(self, topic_filter: str) -> None: ...

    @abstractmethod
    def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False, properties: Properties | None = None
    ) -> None:
        """Returns when the message is acknowledged, at QoS 0 when it is sent."""

    @abstractmethod
    def begin_publish(self, topic: str, payload: bytes, qos: int) -> None:
        """The same without waiting; a client that comes back by itself brings the message to its end."""

    @abstractmethod
    def finish_publish(self) -> None:
        """Waits until what was begun is acknowledged."""

    @abstractmethod
    def close(self) -> None:
        """DISCONNECT, and the end of the connection; does nothing where there is none."""

    def next_message(self) -> Message:
        return self.messages.get(timeout=PATIENCE_S)

    def next_essences(self, count: int) -> list[tuple[str, bytes, int, bool]]:
        return [self.next_message().essence for _ in range(count)]

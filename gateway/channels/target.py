"""A target as the daemon's event loop knows it: its transmission queues, their fill, and its last report.

Everything for a target is put on one of its transmission queues here, and a channel takes it from there to the queue
manager (gateway/channels/process.py). A client's messages are always on the same one, so they stay in order. The
target's last report survives a restart: an outage of hours must not change what its clients may publish.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final

import orjson

from gateway.config import TargetSettings
from gateway.config.queue_names import sent_queue_name, shard_of, transmission_queue_name
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork
from mq_adapters.reasons import StoreError

#: MAXMSGL of queues and queue managers that nobody changed (IBM MQ, "Queue attributes").
DEFAULT_MAXIMUM_MESSAGE_BYTES: Final = 4_194_304
#: A target that was full has room again below this share of `hold_bytes`, in percent.
ROOM_PERCENT: Final = 90
_KEY_PREFIX: Final = b"target:"
_STATE_VERSION: Final = 1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """The knowledge of a target that survives a restart. Kept as JSON under `target:NAME` in StateKind.GATEWAY.

    `queue_manager_identifier` is MQCA_Q_MGR_IDENTIFIER, "" before the first connection; `maximum_message_bytes` is by
    queue name, in bytes; `stopped` names the channels that the operator stopped.
    """

    shards: int
    queue_manager_name: str = ""
    queue_manager_identifier: str = ""
    maximum_message_bytes: Mapping[str, int] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()

    def pack(self) -> bytes:
        return orjson.dumps({"version": _STATE_VERSION, **asdict(self)})

    @classmethod
    def unpack(cls, packed: bytes, target: str) -> "TargetState":
        """The state from its stored form. StoreError for another version or for damage."""
        try:
            said = orjson.loads(packed)
            if said.pop("version") != _STATE_VERSION:
                raise ValueError("it has another version")
            return cls(**{**said, "stopped": tuple(said["stopped"])})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(
                f"read the stored state of target {target}", str(error), "use the program that wrote it"
            ) from error


def known_of(engine: Engine, settings: TargetSettings) -> TargetState:
    """The knowledge of a target in the store. StoreError if it cannot be read."""
    packed = engine.state(StateKind.GATEWAY, _key_of(settings))
    return TargetState(shards=settings.shards) if packed is None else TargetState.unpack(packed, settings.name)


def _key_of(settings: TargetSettings) -> bytes:
    return _KEY_PREFIX + settings.name.encode()


class Target:
    """One target of the configuration, for the event loop's thread. It makes missing local queues.

    `on_room` is called when the target was full and is no longer; `on_new_queue_manager` when another queue manager
    than before answers (the first one too): its subscriptions are due anew, in the unit of work that it is given.
    """

    def __init__(self, engine: Engine, settings: TargetSettings) -> None:
        self.settings = settings
        self.name = settings.name
        #: Whether every channel of the target has its connection.
        self.is_connected = False
        #: Whether the target has taken more than the store knows: the store went back, and a channel waits for an
        #: operator.
        self.is_store_behind = False
        self.on_room: list[Callable[[], None]] = []
        self.on_new_queue_manager: list[Callable[[UnitOfWork], None]] = []
        self._engine = engine
        self._key = _key_of(settings)
        self._is_full = False
        self._state = known_of(engine, settings)
        self._transmission_queues = self._ensure_transmission_queues()
        self.sent_queue = _ensure(
            engine, sent_queue_name(settings.name), "NORMAL", "copies of messages lately sent to a target"
        )
        self._settle_shards()
        if engine.state(StateKind.GATEWAY, self._key) is None:
            self._save(engine.begin(), self._state)

    # -- putting -------------------------------------------------------------------------------------------------------

    def transmission_queue(self, client: str) -> Queue:
        """The queue on which messages of an MQTT client wait. It is always the same for the same client."""
        queues = self._transmission_queues
        return queues[0] if len(queues) == 1 else queues[shard_of(client, len(queues))]

    @property
    def transmission_queues(self) -> tuple[Queue, ...]:
        """One for each shard in use."""
        return self._transmission_queues

    @property
    def shards(self) -> int:
        """Shards in use. A new number in the configuration counts as soon as no message waits."""
        return self._state.shards

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the messages that wait for the target."""
        return sum(queue.waiting_bytes for queue in self._transmission_queues)

    @property
    def is_full(self) -> bool:
        """Whether publishers must wait: from `hold_bytes` on, until `on_room` is called."""
        if not self._is_full and self.waiting_bytes >= self.settings.hold_bytes:
            self._is_full = True
            _log.warning("target full target=%s waiting_bytes=%s", self.name, self.waiting_bytes)
        return self._is_full

    def paused_queue(self, client: str) -> Queue | None:
        """The transmission queue of an MQTT client, if the operator has closed it for puts."""
        queue = self.transmission_queue(client)
        return queue if queue.is_put_inhibited else None

    def tick(self) -> None:
        """Looks whether there is room again, and whether a new number of shards may count.

        Call it several times a second.
        """
        if self.shards != self.settings.shards:
            self._settle_shards()
        if self.is_full and self.waiting_bytes < self.settings.hold_bytes * ROOM_PERCENT // 100:
            self._is_full = False
            _log.info("target has room target=%s waiting_bytes=%s", self.name, self.waiting_bytes)
            for callback in self.on_room:
                callback()

    # -- what the queue manager said of itself -------------------------------------------------------------------------

    @property
    def queue_manager_name(self) -> str:
        """The queue manager's last known name; "" before the first connection."""
        return self._state.queue_manager_name

    @property
    def queue_manager_identifier(self) -> str:
        """MQCA_Q_MGR_IDENTIFIER of the queue manager that last answered; "" before the first connection."""
        return self._state.queue_manager_identifier

    def maximum_message_bytes(self, queue_name: str) -> int:
        """The last known length of the longest message that a queue there takes, in bytes; 4 MiB if unknown."""
        return self._state.maximum_message_bytes.get(queue_name, DEFAULT_MAXIMUM_MESSAGE_BYTES)

    def heard_from(self, name: str, identifier: str, maximum_message_bytes: Mapping[str, int]) -> None:
        """Takes over the data of a queue manager to which a channel connected. New data go to the store."""
        known = self._state
        said = replace(
            known,
            queue_manager_name=name,
            queue_manager_identifier=identifier,
            maximum_message_bytes={**known.maximum_message_bytes, **maximum_message_bytes},
        )
        if said == known:
            return
        unit = self._engine.begin()
        if identifier != known.queue_manager_identifier:
            _log.info("queue manager found target=%s queue_manager=%s identifier=%s", self.name, name, identifier)
        self._state = said
        if identifier != known.queue_manager_identifier:
            for callback in self.on_new_queue_manager:
                callback(unit)
        self._save(unit, said)

    # -- what the operator said ----------------------------------------------------------------------------------------

    def is_stopped(self, channel: str) -> bool:
        """Whether the operator stopped the channel. It stays stopped over a restart."""
        return channel in self._state.stopped

    def set_stopped(self, channel: str, *, stopped: bool) -> None:
        """The operator stopped or started a channel."""
        names = {*self._state.stopped, channel} if stopped else {*self._state.stopped} - {channel}
        self._save(self._engine.begin(), replace(self._state, stopped=tuple(sorted(names))))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _settle_shards(self) -> None:
        """Takes over a new number of shards when no message waits, so that a client's messages stay in order."""
        queues, wanted = self._transmission_queues, self.settings.shards
        if self.shards == wanted or any(queue.depth or self._engine.is_committing_on(queue) for queue in queues):
            return
        _log.info("shards changed target=%s before=%s shards=%s", self.name, self.shards, wanted)
        self._save(self._engine.begin(), replace(self._state, shards=wanted))
        self._transmission_queues = self._ensure_transmission_queues()

    def _ensure_transmission_queues(self) -> tuple[Queue, ...]:
        names = (transmission_queue_name(self.name, shard) for shard in range(self.shards))
        return tuple(_ensure(self._engine, name, "XMITQ", "messages on their way to a target") for name in names)

    def _save(self, unit: UnitOfWork, state: TargetState) -> None:
        self._state = state
        unit.set_state(StateKind.GATEWAY, self._key, state.pack())
        self._engine.submit(unit)


def _ensure(engine: Engine, name: str, usage: str, description: str) -> Queue:
    """A queue of the gateway, first in, first out; it is defined if it is missing."""
    if name not in engine.objects.queues:
        said = {"DESCR": description, "MSGDLVSQ": "FIFO", "USAGE": usage}
        engine.objects.define(Definition(object_type=ObjectType.QLOCAL, name=name, said=said))
    return engine.queue(name)

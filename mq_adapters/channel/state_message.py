"""The two state messages of a channel, as values and as JSON text (MQSTR, UTF-8, persistent, never expiring).

`RemoteState` is the one message of a state queue of the other queue manager: the last batch that was committed there.
`LocalState` is the channel's message in the gateway's store: the settled batch, and the number and messages of a batch
that is under way. Both begin with `"version":1`; this is all of them:

    {"version":1,"channel":"PLANT.OUT.0","gateway":"<24 hex digits>","queue_manager":"<identifier>",
     "batch":7,"last_sequence":4711,"messages":[4709,4710,4711]}

    {"version":1,"channel":"PLANT.OUT.0","gateway":"<24 hex digits>","queue_manager":"<identifier>",
     "batch":6,"last_sequence":4708,"settled":{"<identifier>":6},"doubtful":{"batch":7,"messages":[4709]},"reset":false}

The first may also have `"newest_us"`: the put time here of the newest message that was delivered. `gateway` is the
store's incarnation, 12 bytes. If the store went back, the channel's message also has `"earlier"`: the incarnations
before, the latest last, 24 hex digits each. A message is its MsgId: the sequence number alone if the store made the
MsgId, else 48 hex digits. Either reader takes hostile bytes and ends in a value or in MalformedState.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

import orjson

from mq_adapters.message import IDENTIFIER_BYTES, IDENTIFIER_TAG, MQPER_PERSISTENT, Message, MessageDescriptor

STATE_VERSION: Final = 1
#: IBM MQ's default of MAXMSGL. A longer message is no state message, because no queue takes it.
MAXIMUM_STATE_BYTES: Final = 4 * 1024 * 1024
#: The most queue managers whose last batch is remembered, for a channel that fails over and comes back.
MAXIMUM_QUEUE_MANAGERS: Final = 16
#: The most earlier incarnations of a store that are remembered, one for each time that it went back.
MAXIMUM_EARLIER: Final = 16
#: MQCA_Q_MGR_IDENTIFIER has 48 characters; a channel's name is as long as a queue's.
_NAME_CHARACTERS: Final = 48
_FORMAT_STRING: Final = b"MQSTR   "
_INCARNATION_BYTES: Final = 12
_CORREL_ID_TAG: Final = b"RFHC"
_CORREL_ID_HASH_BYTES: Final = 20
_LARGEST_NUMBER: Final = 2**63 - 1
_REMOTE_KEYS: Final = frozenset(
    ("version", "channel", "gateway", "queue_manager", "batch", "last_sequence", "messages")
)
_LOCAL_KEYS: Final = _REMOTE_KEYS - {"messages"} | {"settled", "doubtful", "reset"}


class MalformedState(Exception):
    """A message that is no state message of a channel. The text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch of messages: its number, from 1, and the MsgIds of the messages on their first queue."""

    number: int
    messages: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteState:
    """The last committed batch of a channel, as the other queue manager keeps it.

    `last_sequence` is the highest sequence number of the store that was ever delivered. `newest_us` is the put time in
    the store of the newest delivered message, microseconds since 1970, 0 if unknown.
    """

    channel: str
    gateway: bytes
    queue_manager: str
    batch: Batch
    last_sequence: int = 0
    newest_us: int = 0

    def to_message(self) -> Message:
        return _state_message(
            self.channel,
            {
                **_common(self.channel, self.gateway, self.queue_manager, self.batch.number, self.last_sequence),
                "messages": _written(self.batch.messages, self.gateway),
                **({"newest_us": self.newest_us} if self.newest_us else {}),
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalState:
    """The state of a channel, as the store keeps it.

    `earlier` has the incarnations of the store before it went back. A state message there may still be of one of them.

    `queue_manager` is the identifier that the channel is pinned to, blank before the first connection. `settled` has
    the last settled batch of each queue manager by its identifier, the latest last. Batch numbers only rise. `doubtful`
    is the batch that is under way. `reset`: the operator has said that the state message there does not count.
    """

    channel: str
    gateway: bytes
    queue_manager: str = ""
    batch: int = 0
    last_sequence: int = 0
    settled: Mapping[str, int] = field(default_factory=dict)
    doubtful: Batch | None = None
    reset: bool = False
    earlier: tuple[bytes, ...] = ()

    def carried_over(self, gateway: bytes) -> "LocalState":
        """The state in the next incarnation of a store that went back."""
        return replace(self, gateway=gateway, earlier=(*self.earlier, self.gateway)[-MAXIMUM_EARLIER:])

    def caught_up(self, remote: "RemoteState") -> "LocalState":
        """The state with the batch that the other side had committed before the store went back."""
        return replace(
            self,
            batch=max(self.batch, remote.batch.number),
            last_sequence=max(self.last_sequence, remote.last_sequence),
            settled=self._settled_with(remote.queue_manager, remote.batch.number),
            doubtful=None,
        )

    def _settled_with(self, queue_manager: str, number: int) -> dict[str, int]:
        others = [pair for pair in self.settled.items() if pair[0] != queue_manager]
        return dict([*others[-(MAXIMUM_QUEUE_MANAGERS - 1) :], (queue_manager, number)])

    def settled_at(self, queue_manager: str) -> int:
        """The number of the last settled batch at a queue manager; 0 if there is none."""
        return self.settled.get(queue_manager, 0)

    def pinned_to(self, queue_manager: str) -> "LocalState":
        """The state of a channel that begins or goes on at a queue manager. No batch may be in doubt."""
        assert self.doubtful is None, "the batch in doubt belongs to the queue manager before"
        return replace(self, queue_manager=queue_manager)

    def doubting(self, messages: Iterable[bytes]) -> "LocalState":
        """The state with the next batch under way."""
        return replace(self, doubtful=Batch(number=self.batch + 1, messages=tuple(messages)))

    def undoubted(self) -> "LocalState":
        """The state without a batch under way, because it was not delivered."""
        return replace(self, doubtful=None)

    def settling(self, last_sequence: int = 0) -> "LocalState":
        """The state with the doubtful batch delivered. That also ends a reset."""
        assert self.doubtful is not None, "only a batch that was under way can be settled"
        number = self.doubtful.number
        return replace(
            self,
            batch=number,
            last_sequence=max(self.last_sequence, last_sequence),
            settled=self._settled_with(self.queue_manager, number),
            doubtful=None,
            reset=False,
        )

    def to_message(self) -> Message:
        doubtful = self.doubtful
        under_way = None
        if doubtful is not None:
            under_way = {"batch": doubtful.number, "messages": _written(doubtful.messages, self.gateway)}
        return _state_message(
            self.channel,
            {
                **_common(self.channel, self.gateway, self.queue_manager, self.batch, self.last_sequence),
                "settled": dict(self.settled),
                "doubtful": under_way,
                "reset": self.reset,
                **({"earlier": [gateway.hex() for gateway in self.earlier]} if self.earlier else {}),
            },
        )


def restated(body: bytes, gateway: bytes) -> bytes:
    """The body of a channel's message in the store, for the store's next incarnation. Any other body stays as it is."""
    try:
        state = read_local_state(Message(MessageDescriptor(), body))
    except MalformedState:
        return body
    return state.carried_over(gateway).to_message().body


def state_correl_id(channel: str) -> bytes:
    """The CorrelId of a channel's state messages: a tag of 4 bytes and 20 bytes of a hash of its name."""
    return _CORREL_ID_TAG + hashlib.sha256(channel.encode()).digest()[:_CORREL_ID_HASH_BYTES]


def own_sequence(msg_id: bytes, gateway: bytes) -> int:
    """The sequence number in a MsgId that a store of this incarnation has made; 0 for any other MsgId."""
    prefix = IDENTIFIER_TAG + gateway
    return int.from_bytes(msg_id[len(prefix) :], "big") if msg_id.startswith(prefix) else 0


def read_remote_state(message: Message) -> RemoteState:
    """The state message of a state queue. Raises MalformedState for anything else."""
    fields = _read_object(message, _REMOTE_KEYS, left_out="newest_us")
    gateway = _read_gateway(fields["gateway"])
    return RemoteState(
        channel=_read_name(fields["channel"], "channel"),
        gateway=gateway,
        queue_manager=_read_name(fields["queue_manager"], "queue_manager"),
        batch=Batch(
            number=_read_number(fields["batch"], "batch"), messages=_read_messages(fields["messages"], gateway)
        ),
        last_sequence=_read_number(fields["last_sequence"], "last_sequence"),
        newest_us=_read_number(fields.get("newest_us", 0), "newest_us"),
    )


def read_local_state(message: Message) -> LocalState:
    """The channel's message in the store. Raises MalformedState for anything else."""
    fields = _read_object(message, _LOCAL_KEYS, left_out="earlier")
    gateway = _read_gateway(fields["gateway"])
    reset = fields["reset"]
    if not isinstance(reset, bool):
        raise MalformedState("reset must be true or false")
    return LocalState(
        channel=_read_name(fields["channel"], "channel"),
        gateway=gateway,
        queue_manager=_read_name(fields["queue_manager"], "queue_manager"),
        batch=_read_number(fields["batch"], "batch"),
        last_sequence=_read_number(fields["last_sequence"], "last_sequence"),
        settled=_read_settled(fields["settled"]),
        doubtful=_read_doubtful(fields["doubtful"], gateway),
        reset=reset,
        earlier=_read_earlier(fields.get("earlier", [])),
    )


# -- writing ---------------------------------------------------------------------------------------------------------


def _common(channel: str, gateway: bytes, queue_manager: str, batch: int, last_sequence: int) -> dict[str, object]:
    return {
        "version": STATE_VERSION,
        "channel": channel,
        "gateway": gateway.hex(),
        "queue_manager": queue_manager,
        "batch": batch,
        "last_sequence": last_sequence,
    }


def _state_message(channel: str, fields: dict[str, object]) -> Message:
    descriptor = MessageDescriptor(
        format=_FORMAT_STRING, persistence=MQPER_PERSISTENT, correl_id=state_correl_id(channel)
    )
    return Message(descriptor, orjson.dumps(fields))


def _written(messages: Iterable[bytes], gateway: bytes) -> list[int | str]:
    return [own_sequence(msg_id, gateway) or msg_id.hex() for msg_id in messages]


# -- reading ---------------------------------------------------------------------------------------------------------


def _read_object(message: Message, keys: frozenset[str], *, left_out: str) -> dict[str, object]:
    """The fields of a state message: exactly `keys`, and perhaps the optional one."""
    if len(message.body) > MAXIMUM_STATE_BYTES:
        raise MalformedState(f"{len(message.body)} bytes are no state message")
    try:
        fields = orjson.loads(message.body)
    except orjson.JSONDecodeError as error:
        raise MalformedState(f"it is not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.get("version") != STATE_VERSION:
        raise MalformedState(f"it is not of version {STATE_VERSION}, which this program reads")
    if fields.keys() - {left_out} != keys:
        raise MalformedState(f"its keys are not {', '.join(sorted(keys))}")
    return cast(dict[str, object], fields)


def _read_number(value: object, key: str) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST_NUMBER:
        raise MalformedState(f"{key} is not a number from 0 to {_LARGEST_NUMBER}")
    return value


def _read_name(value: object, key: str) -> str:
    if not isinstance(value, str) or len(value) > _NAME_CHARACTERS or not (value.isascii() and value.isprintable()):
        raise MalformedState(f"{key} is not a name of at most {_NAME_CHARACTERS} characters")
    return value


def _read_gateway(value: object) -> bytes:
    return _read_hex(value, _INCARNATION_BYTES, "gateway")


def _read_earlier(value: object) -> tuple[bytes, ...]:
    if not isinstance(value, list) or len(value) > MAXIMUM_EARLIER:
        raise MalformedState(f"earlier is not a list of at most {MAXIMUM_EARLIER} gateways")
    return tuple(map(_read_gateway, value))


def _read_hex(value: object, length: int, key: str) -> bytes:
    """Bytes from lower-case hex digits with nothing between them."""
    if isinstance(value, str) and len(value) == 2 * length and value.isascii():
        try:
            read = bytes.fromhex(value)
        except ValueError:
            read = b""
        if read.hex() == value:
            return read
    raise MalformedState(f"{key} is not {2 * length} hex digits")


def _read_messages(value: object, gateway: bytes) -> tuple[bytes, ...]:
    if not isinstance(value, list):
        raise MalformedState("messages is not a list")
    return tuple(_read_msg_id(each, gateway) for each in value)


def _read_msg_id(value: object, gateway: bytes) -> bytes:
    if type(value) is int and 0 < value <= _LARGEST_NUMBER:
        prefix = IDENTIFIER_TAG + gateway
        return prefix + value.to_bytes(IDENTIFIER_BYTES - len(prefix), "big")
    return _read_hex(value, IDENTIFIER_BYTES, "a message")


def _read_settled(value: object) -> dict[str, int]:
    if not isinstance(value, dict) or len(value) > MAXIMUM_QUEUE_MANAGERS:
        raise MalformedState(f"settled is not an object of at most {MAXIMUM_QUEUE_MANAGERS} queue managers")
    return {_read_name(name, "settled"): _read_number(number, "settled") for name, number in value.items()}


def _read_doubtful(value: object, gateway: bytes) -> Batch | None:
    if value is None:
        return None
    if not isinstance(value, dict) or value.keys() != {"batch", "messages"}:
        raise MalformedState("doubtful must be null or a batch with messages")
    return Batch(
        number=_read_number(value["batch"], "doubtful batch"), messages=_read_messages(value["messages"], gateway)
    )

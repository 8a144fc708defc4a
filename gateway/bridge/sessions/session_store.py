"""Sessions in the store: a row for each session, for each subscription, and for each PUBLISH of QoS 2 that it holds.

A session's row (StateKind.SESSION, key: client identifier) is written in the unit of work that changes it:

    msgpack [version, epoch, level, clean session, connected, will or nil, user or nil,
             {destination at a target: [generation of its queue manager, [patterns registered there]]},
             expiry in seconds, when it expires, when its will is due, network, when its connection ended]

The row of a subscription (StateKind.SESSION_SUBSCRIPTION, key: epoch of the session as 8 bytes, big-endian, and topic
filter) is written alone, so a client that subscribes again and again does not write all of its filters again:

    msgpack [version, granted QoS, no local, retain as published, subscription identifier or 0]

The three times are microseconds since 1970; 0: no time is running. A will is topic, payload, QoS, RETAIN, and nil or
the list of its properties (`gateway.mqtt.properties.WillProperties`). The network is that of the client's last
connection, for the budgets of clients without a user (gateway.limits.addresses.network_of). A row of version 1 has no
user. A row before version 3 has no registrations at targets. A row before version 4 has no fields of MQTT 5: a clean
session ends with its connection (expiry 0), any other never (FFFFFFFF hex). A row before version 5 has neither network
nor the end of its connection. A row before version 6 has {topic filter: granted QoS} behind the will, and from version
4 on {topic filter: [no local, retain as published, subscription identifier]} behind the times; the first start writes
them as rows of subscriptions. `connected` tells a restarted gateway which connections ended when it stopped. The
CorrelId of a session's subscriptions is a tag and a hash of store, client and epoch, so messages on their way to an
ended session never reach the client's next one.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import ormsgpack

from gateway.mqtt.events import Will
from gateway.mqtt.properties import NEVER_EXPIRES_S, WillProperties
from mq_adapters.reasons import StoreError

_VERSION: Final = 6
#: The first version with network and end of the connection.
_WITH_NETWORK: Final = 5
#: The first version with fields of MQTT 5.
_WITH_MQTT_5: Final = 4
#: Fields that rows before version 4 lack in front of expiry and times, by version.
_MISSING_FIELDS: Final[dict[int, list[Any]]] = {3: [], 2: [{}], 1: [None, {}]}
#: Places of fields in a row, counted behind its version.
_CLEAN_SESSION_FIELD: Final = 2
_WILL_FIELD: Final = 4
_SUBSCRIPTIONS_FIELD: Final = 5
_REGISTERED_FIELD: Final = 7
_OPTIONS_FIELD: Final = 11
_SUBSCRIPTION_VERSION: Final = 1
_EPOCH_BYTES: Final = 8
#: Topic, payload, QoS and RETAIN of a will. Behind them stand its properties, except in an old row.
_WILL_FIELDS: Final = 4
_HELD_VERSION: Final = 3
_CORREL_ID_TAG: Final = b"RFHS"

#: What is read, in words.
_SESSION: Final = "a session"
_SUBSCRIPTION: Final = "a subscription of a session"
_HELD: Final = "a PUBLISH of QoS 2 that is held"
_INT: Final = (int,)
_BOOL: Final = (bool,)
_STR: Final = (str,)
_BYTES: Final = (bytes,)
_DICT: Final = (dict,)
_LIST: Final = (list,)
#: The types of the fields of each row, in their order. At another type compiled code would stop, and a source go on.
_SESSION_TYPES: Final[tuple[tuple[type, ...], ...]] = (
    *(_INT, _INT, _BOOL, _BOOL, (list, type(None)), _DICT, (str, type(None)), _DICT),
    *(_INT, _INT, _INT, _DICT, _BYTES, _INT),
)
_REGISTRATION_TYPES: Final[tuple[tuple[type, ...], ...]] = (_INT, _LIST)
_SUBSCRIPTION_TYPES: Final[tuple[tuple[type, ...], ...]] = (_INT, _BOOL, _BOOL, _INT)
_HELD_TYPES: Final[tuple[tuple[type, ...], ...]] = (_INT, _STR, _BOOL, _BYTES, _BYTES, _INT, _INT)
_WILL_TYPES: Final[tuple[tuple[type, ...], ...]] = (_STR, _BYTES, _INT, _BOOL)

#: By destination at a target: the generation of its queue manager, and the patterns registered there.
StoredRegistrations = dict[str, tuple[int, list[str]]]


class SessionRow(NamedTuple):
    """A session as it stands in its row.

    `subscriptions` and `options` (no local, retain as published, subscription identifier) are only in rows before
    version 6.
    """

    epoch: int
    level: int
    clean_session: bool
    connected: bool
    will: Will | None
    subscriptions: Mapping[str, int]
    user: str | None
    registered: StoredRegistrations
    expiry_s: int
    expires_us: int
    will_due_us: int
    options: Mapping[str, tuple[bool, bool, int]]
    network: bytes
    parted_us: int

    def pack(self) -> bytes:
        fields: list[object] = list(self)
        fields[_WILL_FIELD] = _packed_will(self.will)
        del fields[_OPTIONS_FIELD], fields[_SUBSCRIPTIONS_FIELD]
        return ormsgpack.packb([_VERSION, *fields])

    @classmethod
    def unpack(cls, row: bytes) -> "SessionRow":
        """Reads a row of any version up to ours. StoreError for a row that a later program has written."""
        version, fields = read_row(_SESSION, row, _VERSION)
        try:
            if version < _WITH_MQTT_5:
                fields += [*_MISSING_FIELDS[version], 0 if fields[_CLEAN_SESSION_FIELD] else NEVER_EXPIRES_S, 0, 0, {}]
            if version < _WITH_NETWORK:
                fields += [b"", 0]
            if version == _VERSION:
                fields.insert(_SUBSCRIPTIONS_FIELD, {})
                fields.insert(_OPTIONS_FIELD, {})
            _check_types(fields, _SESSION_TYPES)
            for registration in fields[_REGISTERED_FIELD].values():
                _check_types(registration, _REGISTRATION_TYPES)
            fields[_WILL_FIELD] = _unpacked_will(fields[_WILL_FIELD])
            for place in (_REGISTERED_FIELD, _OPTIONS_FIELD):
                fields[place] = {name: tuple(values) for name, values in fields[place].items()}
            return cls._make(fields)
        except (ValueError, TypeError, IndexError) as error:
            raise _damaged(_SESSION, error) from error


class SubscriptionRow(NamedTuple):
    """A subscription as it stands in its row."""

    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0

    def pack(self) -> bytes:
        return ormsgpack.packb([_SUBSCRIPTION_VERSION, *self])

    @classmethod
    def unpack(cls, packed: bytes) -> "SubscriptionRow":
        """StoreError as for a session."""
        _, fields = read_row(_SUBSCRIPTION, packed, _SUBSCRIPTION_VERSION)
        try:
            _check_types(fields, _SUBSCRIPTION_TYPES)
        except ValueError as error:
            raise _damaged(_SUBSCRIPTION, error) from error
        return cls._make(fields)

    @staticmethod
    def key(epoch: int, topic_filter: str) -> bytes:
        return epoch.to_bytes(_EPOCH_BYTES, "big") + topic_filter.encode()

    @staticmethod
    def read_key(key: bytes) -> tuple[int, str]:
        """The epoch of the session, and the topic filter."""
        return int.from_bytes(key[:_EPOCH_BYTES], "big"), key[_EPOCH_BYTES:].decode()


class HeldPublish(NamedTuple):
    """A QoS 2 PUBLISH between PUBREC and PUBREL; state of the session in SESSION_INCOMING.

    `expires_us`: microseconds since 1970, 0 for never. `level`: the MQTT level of the header; 5 has properties.
    """

    exchange: int
    topic: str
    retain: bool
    header: bytes
    payload: bytes
    expires_us: int = 0
    level: int = 4

    @property
    def packet_bytes(self) -> int:
        """Its length as a packet: properties may be longer than the payload."""
        return len(self.header) + len(self.payload)

    def pack(self) -> bytes:
        return ormsgpack.packb([_HELD_VERSION, *self])

    @classmethod
    def unpack(cls, packed: bytes) -> "HeldPublish":
        """Reads any version up to ours: before 3 it had no level, before 2 no expiry. StoreError as for a session."""
        version, fields = read_row(_HELD, packed, _HELD_VERSION)
        try:
            _check_types(fields, _HELD_TYPES[: version - _HELD_VERSION or len(_HELD_TYPES)])
        except ValueError as error:
            raise _damaged(_HELD, error) from error
        return cls(*fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSession:
    """A session or group as it stands in its row; `patterns`: those to register, by destination (`TARGET STREAM`)."""

    client: str
    correl_id: bytes
    patterns: dict[str, tuple[str, ...]]
    level: int = 0
    is_connected: bool = False
    user: str | None = None
    parted_us: int = 0


def read_row(what: str, packed: bytes, newest: int) -> tuple[int, list[Any]]:
    """The version of a row, 1 to `newest`, and its fields. StoreError for a row of a later program, or for damage."""
    try:
        version, *fields = _list_of(ormsgpack.unpackb(packed))
        if type(version) is not int or version < 1:
            raise ValueError(f"it has version {version}")
    except ValueError as error:
        raise _damaged(what, error) from error
    if version > newest:
        cause = f"this is a newer file: version {version} of the row, and this program reads up to {newest}"
        raise StoreError(f"read {what}", cause, "use the program that wrote it, or a later one")
    return version, fields


def _damaged(what: str, error: Exception) -> StoreError:
    return StoreError(f"read {what}", f"its row is damaged: {error}", "put a backup of the store back")


def _list_of(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("it is no list")
    return value


def _check_types(fields: object, types: tuple[tuple[type, ...], ...]) -> None:
    """ValueError where a list has other fields than these; each has one of its types, and True is no number."""
    found = [type(field) for field in _list_of(fields)]
    if len(found) != len(types) or any(kind not in allowed for kind, allowed in zip(found, types, strict=True)):
        raise ValueError("it has other fields")


def stored_registrations(rows: Iterable[tuple[bytes, bytes]], identity: bytes) -> Iterator[KnownSession]:
    """The registrations of sessions at targets, from the rows of StateKind.SESSION; `identity` is the store's."""
    for key, row in rows:
        client, session = key.decode(), SessionRow.unpack(row)
        yield KnownSession(
            client=client,
            correl_id=session_correl_id(identity, client, session.epoch),
            patterns={destination: tuple(found) for destination, (_, found) in session.registered.items()},
            level=session.level,
            is_connected=session.connected,
            user=session.user,
            parted_us=session.parted_us,
        )


def session_correl_id(identity: bytes, client: str, epoch: int) -> bytes:
    """The CorrelId of a session's subscriptions: a tag, and a hash of store, client and session."""
    digest = hashlib.sha256(b"\0".join((identity, client.encode(), epoch.to_bytes(8, "big")))).digest()
    return _CORREL_ID_TAG + digest[:20]


def _packed_will(will: Will | None) -> list[Any] | None:
    if will is None:
        return None
    return [*will[:-1], None if will.properties is None else list(will.properties)]


def _unpacked_will(fields: list[Any] | None) -> Will | None:
    if fields is None:
        return None
    _check_types(fields[:_WILL_FIELDS], _WILL_TYPES)
    topic, payload, qos, retain = fields[:_WILL_FIELDS]
    packed: list[Any] | None = fields[_WILL_FIELDS] if len(fields) > _WILL_FIELDS else None
    properties = None
    if packed is not None:
        user_properties = tuple((name, value) for name, value in packed[-1])
        properties = WillProperties._make((*packed[:-1], user_properties))
    return Will(topic, payload, qos, retain, properties)

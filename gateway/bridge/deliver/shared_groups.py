"""Groups that share a subscription: their members, and the rows by which they survive a restart.

A shared subscription is a topic filter `$share/GROUP/FILTER` of level 5: each publication goes to one of its members.
The same name with another filter is another group. To a broker a group is one subscriber with its own CorrelId. A group
lives as long as the session of any member, or a SUBSCRIBE that waits for its answer. The keys of its rows of state
(kind SHARED_SUBSCRIPTION) begin with the epoch of the group, 8 bytes, big-endian:

    epoch            msgpack [version, topic filter, {destination at a target: [generation, [patterns]]}]
    epoch, client    msgpack [version, epoch of the client's session, QoS, no local, retain as published,
                     subscription identifier or 0]

Source: MQTT 5.0 section 4.8.2.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import ormsgpack

from gateway.bridge.sessions.session_store import KnownSession, StoredRegistrations, read_row, session_correl_id
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.bridge.sessions.subscription import GrantedOptions, SharedSubscription
from gateway.mqtt.topics import share_of
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork

_VERSION: Final = 1
_EPOCH_BYTES: Final = 8


class SharedGroup:
    """A group and the filter that it shares (gateway.bridge.sessions.subscriber.Subscriber).

    `members` stand in the order in which they are served: a member that was sent a message goes to the end.
    """

    __slots__ = (
        "client",
        "correl_id",
        "emitted",
        "epoch",
        "generations",
        "may_be_registered",
        "members",
        "origin_suffix",
        "stored_registrations",
        "takes_retained",
        "topic_filter",
    )

    def __init__(self, name: str, *, epoch: int, identity: bytes) -> None:
        share = share_of(name)
        if share is None:
            raise ValueError(f"{name!r} is not $share/GROUP/FILTER, the filter of a shared subscription")
        #: The whole of `$share/GROUP/FILTER`. No client has both this identifier and this epoch.
        self.client = name
        self.topic_filter = share.topic_filter
        self.epoch = epoch
        self.correl_id = session_correl_id(identity, name, epoch)
        self.origin_suffix = name.encode()
        self.members: dict[ClientSession, SharedSubscription] = {}
        self.emitted: dict[str, dict[str, int]] = {}
        self.generations: dict[str, int] = {}
        self.stored_registrations: StoredRegistrations | None = None
        self.may_be_registered = True
        #: A shared subscription gets no retained messages (MQTT-3.3.1-6 is about other subscriptions).
        self.takes_retained = False

    @property
    def is_held(self) -> bool:
        """Whether the group has a member, or a SUBSCRIBE for it waits for its answer."""
        return any(self.emitted.values())

    def was_served(self, member: ClientSession) -> None:
        """Moves a member behind the others."""
        self.members[member] = self.members.pop(member)

    def pack(self) -> bytes:
        registered = self.stored_registrations
        if registered is None:
            registered = {key: (number, list(self.emitted.get(key, ()))) for key, number in self.generations.items()}
        return ormsgpack.packb([_VERSION, self.client, registered])


class SharedGroups:
    """Every group, by its filter and by its CorrelId."""

    def __init__(self, engine: Engine, sessions: Sessions) -> None:
        self._engine = engine
        self._sessions = sessions
        self._by_filter: dict[str, SharedGroup] = {}
        self._by_correl_id: dict[bytes, SharedGroup] = {}

    def __iter__(self) -> Iterator[SharedGroup]:
        return iter(tuple(self._by_filter.values()))

    def get(self, name: str) -> SharedGroup | None:
        return self._by_filter.get(name)

    def of_correl_id(self, correl_id: bytes) -> SharedGroup | None:
        return self._by_correl_id.get(correl_id)

    def create(self, name: str) -> SharedGroup:
        """A new group without members; `save` makes it durable."""
        return self._add(name, self._engine.number())

    def save(self, unit: UnitOfWork, group: SharedGroup) -> None:
        unit.set_state(StateKind.SHARED_SUBSCRIPTION, _key(group), group.pack())

    def join(
        self, unit: UnitOfWork, group: SharedGroup, session: ClientSession, subscription: SharedSubscription
    ) -> None:
        """Makes the session a member, or changes the terms of its membership."""
        group.members[session] = subscription
        session.join(group.correl_id, subscription)
        row = [_VERSION, session.epoch, subscription.qos, *subscription.options]
        unit.set_state(StateKind.SHARED_SUBSCRIPTION, _key(group, session), ormsgpack.packb(row))

    def leave(self, unit: UnitOfWork, group: SharedGroup, session: ClientSession) -> None:
        """Removes the session from the members."""
        group.members.pop(session, None)
        session.leave(group.correl_id)
        unit.delete_state(StateKind.SHARED_SUBSCRIPTION, _key(group, session))

    def end(self, unit: UnitOfWork, group: SharedGroup) -> None:
        """Forgets a group without members."""
        unit.delete_state(StateKind.SHARED_SUBSCRIPTION, _key(group))
        self._by_correl_id.pop(group.correl_id, None)
        if self._by_filter.get(group.client) is group:
            del self._by_filter[group.client]

    def load(self) -> None:
        """Loads every group as it was last committed. Load the sessions first."""
        rows = self._engine.states(StateKind.SHARED_SUBSCRIPTION)
        groups: dict[bytes, SharedGroup] = {}
        for key, row in rows:
            if len(key) == _EPOCH_BYTES:
                name, registered = _fields(row)
                groups[key] = group = self._add(name, int.from_bytes(key, "big"))
                group.stored_registrations = registered
        for key, row in rows:
            client = key[_EPOCH_BYTES:].decode()
            session = self._sessions.get(client)
            if client and session is not None:
                epoch, qos, *options = _fields(row)
                group = groups[key[:_EPOCH_BYTES]]
                if epoch == session.epoch:
                    found = SharedSubscription(group.client, qos, GrantedOptions(*options))
                    group.members[session] = found
                    session.join(group.correl_id, found)

    def _add(self, name: str, epoch: int) -> SharedGroup:
        group = SharedGroup(name, epoch=epoch, identity=self._engine.identity)
        self._by_filter[name] = group
        self._by_correl_id[group.correl_id] = group
        return group


def stored_groups(rows: Iterable[tuple[bytes, bytes]], identity: bytes) -> Iterator[KnownSession]:
    """The registrations of groups at targets, from the rows of StateKind.SHARED_SUBSCRIPTION."""
    for key, row in rows:
        if len(key) == _EPOCH_BYTES:
            name, registered = _fields(row)
            yield KnownSession(
                client=name,
                correl_id=session_correl_id(identity, name, int.from_bytes(key, "big")),
                patterns={destination: tuple(found) for destination, (_, found) in registered.items()},
            )


def _key(group: SharedGroup, session: ClientSession | None = None) -> bytes:
    return group.epoch.to_bytes(_EPOCH_BYTES, "big") + (b"" if session is None else session.client.encode())


def _fields(row: bytes) -> list[Any]:
    _, fields = read_row("a shared subscription", row, _VERSION)
    return fields

"""The sessions of clients in memory. By their rows (session_store.py) they survive a restart.

Source: MQTT 3.1.1 section 3.1.2.4; MQTT 5.0 section 3.1.2.11.2; IBM MQ, identity of a subscriber.
"""

import hashlib
import struct
import sys
from collections.abc import Iterator
from typing import Final

from gateway.access.refused_topics import RefusedTopics
from gateway.access.rights import Access, Rights
from gateway.bridge.sessions.link import Link
from gateway.bridge.sessions.session_filters import MatchingFilters, RetainedMarks
from gateway.bridge.sessions.session_store import (
    HeldPublish,
    SessionRow,
    StoredRegistrations,
    SubscriptionRow,
    session_correl_id,
)
from gateway.bridge.sessions.subscription import NO_OPTIONS, Entitlement, GrantedOptions, SharedSubscription
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.budgets import Account, Amount, Budgets
from gateway.limits.owner import Owner
from gateway.limits.topics import levels_of
from gateway.mqtt.events import DisconnectReceived, Will
from gateway.mqtt.outgoing_flows import OutgoingFlows
from gateway.mqtt.properties import NEVER_EXPIRES_S
from gateway.mqtt.reason_codes import ReasonCode
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import PublicationCounter, StateKind, UnitOfWork

_FLOW_KEY: Final = struct.Struct(">QH")
#: Entries of a session's topic cache before it is emptied.
_GRANTED_CACHE_ENTRIES: Final = 1_000
#: Topics longer than this (characters) are not cached: they would fill the memory.
_LONGEST_KEPT_TOPIC: Final = 1_024
#: A client without a user, of an unknown network.
NOBODY: Final = Owner(None)


class ClientSession:
    """One client's session: its MQTT flows (`mqtt`), its subscriptions, and the link that it has now."""

    __slots__ = (
        "_entitlements",
        "_filters",
        "_granted",
        "_will",
        "account",
        "connected",
        "correl_id",
        "emitted",
        "epoch",
        "expires_us",
        "expiry_s",
        "generations",
        "held",
        "held_bytes",
        "incoming_exchange",
        "level",
        "link",
        "may_be_registered",
        "mqtt",
        "network",
        "options",
        "origin_suffix",
        "parted_us",
        "pending_answers",
        "pending_link",
        "releases_under_way",
        "retained_marks",
        "rights",
        "shared",
        "stored_registrations",
        "subscriptions",
        "unsaved",
        "user",
        "who",
        "will_bytes",
        "will_due_us",
        "written",
    )

    def __init__(
        self,
        mqtt: OutgoingFlows,
        *,
        epoch: int,
        level: int,
        correl_id: bytes,
        first_exchange: int,
        rights: Rights,
        owner: Owner,
        account: Account,
    ) -> None:
        self.mqtt = mqtt
        #: The user that the gateway has authenticated; None: an anonymous client.
        self.user = owner.user
        #: Who its connection is, for the audit trail (links.ConnectedClient.told); (): it has none.
        self.who: tuple[str | None, ...] = ()
        #: The network of its last connection, as limits count it (addresses.network_of).
        self.network = owner.network
        #: What is charged to it (limits/budgets.py).
        self.account = account
        self.rights = rights
        self.epoch = epoch
        self.level = level
        self.correl_id = correl_id
        self.connected = False
        self.will = None
        #: Seconds for which the session outlives its connection; NEVER_EXPIRES_S: for ever.
        self.expiry_s = 0 if mqtt.clean_session else NEVER_EXPIRES_S
        #: Without a connection: the times of its end and of its will, microseconds since 1970; 0: no time is running.
        self.expires_us = 0
        self.will_due_us = 0
        #: When its last connection ended; 0 while it has one.
        self.parted_us = 0
        self.link: Link | None = None
        #: The link whose CONNECT waits for its commit.
        self.pending_link: Link | None = None
        self.subscriptions: dict[str, int] = {}
        #: Filters that have changed since `Sessions.save`.
        self.unsaved: set[str] = set()
        #: A digest of its row as `Sessions.save` wrote it last.
        self.written = b""
        #: QoS 2 PUBLISHes between PUBREC and PUBREL, by packet identifier.
        self.held: dict[int, HeldPublish] = {}
        #: The length of these packets together.
        self.held_bytes = 0
        #: How many PUBRELs of each packet identifier wait for their commit; empty when a client has just connected.
        self.releases_under_way: dict[int, int] = {}
        #: By destination (routes.Destination.key): the number of subscriptions for each pattern registered there.
        self.emitted: dict[str, dict[str, int]] = {}
        #: By destination at a target: the generation of the queue manager that knows the session.
        self.generations: dict[str, int] = {}
        #: The registrations in the row, until they have been compared with the subscriptions and routes.
        self.stored_registrations: StoredRegistrations | None = None
        #: Options of level 5 subscriptions beside their QoS, by topic filter; without subscriptions that have none.
        self.options: dict[str, GrantedOptions] = {}
        #: Its shared subscriptions, by CorrelId of the group (shared_groups.py).
        self.shared: dict[bytes, SharedSubscription] = {}
        #: The latest SUBSCRIBEs of this run.
        self.retained_marks = RetainedMarks()
        #: How many SUBSCRIBE and UNSUBSCRIBE packets wait for the broker; deliveries wait behind them.
        self.pending_answers = 0
        #: Whether the broker may know this session: a crash between RegSub and the session's row leaves no other trace.
        self.may_be_registered = False
        self.incoming_exchange = first_exchange
        self.origin_suffix = mqtt.client_identifier.encode()
        self._filters = MatchingFilters()
        self._granted: dict[str, int | None] = {}
        self._entitlements: dict[tuple[str, bool], Entitlement | None] = {}

    @property
    def client(self) -> str:
        return self.mqtt.client_identifier

    @property
    def takes_retained(self) -> bool:
        """Whether its registrations ask for retained messages."""
        return True

    @property
    def will(self) -> Will | None:
        """The message that is published when its connection or the session itself ends."""
        return self._will

    @will.setter
    def will(self, will: Will | None) -> None:
        self._will = will
        self.will_bytes = 0 if will is None else will.kept_bytes

    @property
    def will_delay_s(self) -> int:
        """Seconds for which the will of a lost connection waits for the client to come back."""
        properties = self.will.properties if self.will is not None else None
        return properties.will_delay_s if properties is not None else 0

    def release_begins(self, packet_identifier: int) -> None:
        """A PUBREL is carried out. The client may use its identifier again from now on, even before the commit."""
        self.releases_under_way[packet_identifier] = self.releases_under_way.get(packet_identifier, 0) + 1

    def release_ends(self, packet_identifier: int) -> None:
        """A PUBREL of the identifier is committed."""
        left = self.releases_under_way.pop(packet_identifier) - 1
        if left:
            self.releases_under_way[packet_identifier] = left

    def expire_after(self, expiry_s: int) -> None:
        """Sets the seconds for which the session outlives its connection."""
        self.expiry_s = expiry_s
        self.mqtt.clean_session = expiry_s == 0

    def take_leave(self, event: DisconnectReceived) -> None:
        """DISCONNECT removes the will, unless it asks for the will. It may also change the session's expiry."""
        if event.reason_code == ReasonCode.SUCCESS:
            self.will = None
        if event.properties is not None and event.properties.session_expiry_s is not None:
            self.expire_after(event.properties.session_expiry_s)

    def granted_qos(self, topic: str) -> int | None:
        """The highest QoS granted to a subscription that matches the topic; None if none matches.

        A granted subscription does not count if the access list refuses it now.
        """
        try:
            return self._granted[topic]
        except KeyError:
            granted = max((qos for _, qos in self._matching(topic)), default=None)
            if len(topic) <= _LONGEST_KEPT_TOPIC:
                if len(self._granted) >= _GRANTED_CACHE_ENTRIES:
                    self._granted.clear()
                self._granted[topic] = granted
            return granted

    def entitlement(self, topic: str, *, is_own: bool) -> Entitlement | None:
        """The rights of the matching subscriptions; `is_own`: the client published it, so No Local has effect."""
        key = topic, is_own
        if key in self._entitlements:
            return self._entitlements[key]
        found = [(qos, self.options.get(pattern, NO_OPTIONS)) for pattern, qos in self._matching(topic)]
        taking_part = [(qos, options) for qos, options in found if not (is_own and options.no_local)]
        entitlement = None
        if taking_part:
            entitlement = Entitlement(
                max(qos for qos, _ in taking_part),
                any(options.retain_as_published for _, options in taking_part),
                tuple(sorted(options.identifier for _, options in taking_part if options.identifier)),
            )
        if len(topic) <= _LONGEST_KEPT_TOPIC:
            if len(self._entitlements) >= _GRANTED_CACHE_ENTRIES:
                self._entitlements.clear()
            self._entitlements[key] = entitlement
        return entitlement

    def _matching(self, topic: str) -> list[tuple[str, int]]:
        """Filter and QoS of each subscription that matches a topic and that the access list still allows."""
        if not self.rights.may_receive(topic):
            return []
        matching = self._filters.of(topic, self.subscriptions, self.rights.may_subscribe)
        return [(each, self.subscriptions[each]) for each in matching]

    def grant(self, topic_filter: str, qos: int, options: GrantedOptions = NO_OPTIONS) -> None:
        """Adds a subscription, or replaces its QoS and options."""
        if topic_filter not in self.subscriptions:
            self._charge(topic_filter)
        self.subscriptions[topic_filter] = qos
        self.options.pop(topic_filter, None)
        if options != NO_OPTIONS:
            self.options[topic_filter] = options
        self.unsaved.add(topic_filter)
        self._filters.add(topic_filter, self.rights.may_subscribe)
        self._forget_grants()

    def load_subscription(self, topic_filter: str, row: SubscriptionRow) -> None:
        """Adds a subscription of the store."""
        self._charge(topic_filter)
        self.subscriptions[topic_filter] = row.qos
        options = GrantedOptions(*row[1:])
        if options != NO_OPTIONS:
            self.options[topic_filter] = options

    def revoke(self, topic_filter: str) -> None:
        if self.subscriptions.pop(topic_filter, None) is not None:
            self._charge(topic_filter, -1)
            self.unsaved.add(topic_filter)
        self.options.pop(topic_filter, None)
        self._filters.remove(topic_filter)
        self._forget_grants()

    def _forget_grants(self) -> None:
        self._granted.clear()
        self._entitlements.clear()

    def join(self, correl_id: bytes, shared: SharedSubscription) -> None:
        """Adds its membership in the group with that CorrelId, or replaces its QoS and options."""
        if correl_id not in self.shared:
            self._charge(shared.topic_filter)
            self.account.charge(Amount.SHARED_GROUPS)
        self.shared[correl_id] = shared

    def leave(self, correl_id: bytes) -> None:
        """Ends its membership in a group, if it has one."""
        left = self.shared.pop(correl_id, None)
        if left is not None:
            self._charge(left.topic_filter, -1)
            self.account.charge(Amount.SHARED_GROUPS, -1)

    def _charge(self, topic_filter: str, count: int = 1) -> None:
        """Charges a filter with its levels; -1 releases it."""
        self.account.charge(Amount.SUBSCRIPTIONS, count)
        self.account.charge(Amount.LEVELS, count * levels_of(topic_filter))

    def belong_to(self, user: str | None, rights: Rights) -> None:
        """Gives the session to a user."""
        self.user = user
        self.rights = rights
        self._filters.forget()
        self._forget_grants()

    def forget_access(self) -> None:
        """The access list has changed: forgets decisions by the old rules."""
        self.rights.forget()
        self._filters.forget()
        self._forget_grants()

    def row(self) -> SessionRow:
        """Its row for the store."""
        return SessionRow(
            epoch=self.epoch,
            level=self.level,
            clean_session=self.mqtt.clean_session,
            connected=self.connected,
            will=self.will,
            subscriptions={},
            user=self.user,
            registered=self._registrations(),
            expiry_s=self.expiry_s,
            expires_us=self.expires_us,
            will_due_us=self.will_due_us,
            options={},
            network=self.network,
            parted_us=self.parted_us,
        )

    def _registrations(self) -> StoredRegistrations:
        if self.stored_registrations is not None:
            return self.stored_registrations
        return {key: (number, list(self.emitted.get(key, ()))) for key, number in self.generations.items()}


class Sessions:
    """Every session of the gateway, connected or not, by client identifier."""

    def __init__(self, engine: Engine, limits: MqttLimits, *, access: Access) -> None:
        self._engine = engine
        self._access = access
        self.budgets = Budgets(limits)
        self._maximum_in_flight = limits.maximum_in_flight
        #: 0: as long as each client asks.
        self._maximum_session_expiry_s = limits.maximum_session_expiry_s
        self._by_client: dict[str, ClientSession] = {}
        self._by_correl_id: dict[bytes, ClientSession] = {}

    def __len__(self) -> int:
        return len(self._by_client)

    def __iter__(self) -> Iterator[ClientSession]:
        return iter(tuple(self._by_client.values()))

    @property
    def held(self) -> int:
        """How many PUBLISHes of QoS 2 all of them hold."""
        return sum(len(session.held) for session in self)

    @property
    def refused_topics(self) -> RefusedTopics:
        """What clients were refused, and the trail does not have yet."""
        return self._access.refused

    def get(self, client: str) -> ClientSession | None:
        return self._by_client.get(client)

    def of_correl_id(self, correl_id: bytes) -> ClientSession | None:
        return self._by_correl_id.get(correl_id)

    def unused_client(self) -> str:
        """A new client identifier for a client that sent none."""
        while (client := f"rfhbridge-{self._engine.number():x}") in self._by_client:
            continue
        return client

    def create(self, client: str, *, level: int, clean_session: bool, owner: Owner = NOBODY) -> ClientSession:
        """A new session; `save` makes it durable."""
        return self._add(client, self._engine.number(), level=level, clean_session=clean_session, owner=owner)

    def may_leave(self, will: Will, user: str | None, client: str) -> bool:
        """Whether a client may have that will, whether or not it has a session."""
        return self._access.rights_of(user, client).may_publish(will.topic)

    def give(self, session: ClientSession, owner: Owner) -> None:
        """Gives a session to an owner, with all that is charged to it; `save` makes the change durable."""
        if owner == Owner(session.user, session.network):
            return
        self.budgets.move(session.account, owner)
        session.network = owner.network
        if owner.user != session.user:
            session.belong_to(owner.user, self._access.rights_of(owner.user, session.client))

    def longest_expiry_s(self, asked_s: int) -> int:
        """The seconds for which a session may outlive its connection, if its client asks for so many."""
        return min(asked_s, self._maximum_session_expiry_s) if self._maximum_session_expiry_s else asked_s

    def save(self, unit: UnitOfWork, session: ClientSession) -> None:
        """Writes the row of a session, if it has changed, and the rows of the subscriptions that have changed."""
        packed = session.row().pack()
        written = hashlib.blake2b(packed, digest_size=16).digest()
        if written != session.written:
            unit.set_state(StateKind.SESSION, session.client.encode(), packed)
            session.written = written
        for topic_filter in session.unsaved:
            key = SubscriptionRow.key(session.epoch, topic_filter)
            qos = session.subscriptions.get(topic_filter)
            if qos is None:
                unit.delete_state(StateKind.SESSION_SUBSCRIPTION, key)
            else:
                row = SubscriptionRow(qos, *session.options.get(topic_filter, NO_OPTIONS))
                unit.set_state(StateKind.SESSION_SUBSCRIPTION, key, row.pack())
        session.unsaved.clear()

    def end(self, unit: UnitOfWork, session: ClientSession) -> None:
        """Forgets a session, and what it has sent at QoS 2 and not released."""
        unit.delete_state(StateKind.SESSION, session.client.encode())
        for topic_filter in session.unsaved.union(session.subscriptions):
            key = SubscriptionRow.key(session.epoch, topic_filter)
            unit.delete_state(StateKind.SESSION_SUBSCRIPTION, key)
        if session.held:
            unit.count(PublicationCounter.DROPPED, len(session.held))
        for packet_identifier in session.held:
            unit.delete_state(StateKind.SESSION_INCOMING, flow_key(session, packet_identifier))
        self._by_correl_id.pop(session.correl_id, None)
        if self._by_client.get(session.client) is session:
            del self._by_client[session.client]
            self.budgets.close(session.account)

    def load(self) -> None:
        """Loads every session as it was last committed.

        Its filters are the broker's topics, each once in memory.
        """
        for key, value in self._engine.each_state(StateKind.SESSION):
            row = SessionRow.unpack(value)
            session = self._add(
                key.decode(),
                row.epoch,
                level=row.level,
                clean_session=row.clean_session,
                owner=Owner(row.user, row.network),
            )
            session.connected = row.connected
            session.may_be_registered = True
            session.will = row.will
            session.expiry_s, session.expires_us, session.will_due_us = row.expiry_s, row.expires_us, row.will_due_us
            session.parted_us = row.parted_us
            session.stored_registrations = row.registered
            for topic_filter, qos in row.subscriptions.items():  # a row before version 6
                session.grant(
                    sys.intern(topic_filter), qos, GrantedOptions._make(row.options.get(topic_filter, NO_OPTIONS))
                )
        self._load_subscriptions()
        for session in self:
            if session.unsaved:
                self._engine.submit(self._saved(session))

    def _load_subscriptions(self) -> None:
        by_epoch = self.by_epoch()
        for key, value in self._engine.each_state(StateKind.SESSION_SUBSCRIPTION):
            epoch, topic_filter = SubscriptionRow.read_key(key)
            session, row = by_epoch.get(epoch), SubscriptionRow.unpack(value)
            if session is not None:
                session.load_subscription(sys.intern(topic_filter), row)

    def _saved(self, session: ClientSession) -> UnitOfWork:
        unit = self._engine.begin()
        self.save(unit, session)
        return unit

    def by_epoch(self) -> dict[int, ClientSession]:
        return {session.epoch: session for session in self._by_client.values()}

    def _add(self, client: str, epoch: int, *, level: int, clean_session: bool, owner: Owner) -> ClientSession:
        session = ClientSession(
            OutgoingFlows(client, clean_session=clean_session, maximum_in_flight=self._maximum_in_flight),
            epoch=epoch,
            level=level,
            correl_id=session_correl_id(self._engine.identity, client, epoch),
            first_exchange=self._engine.number(),
            rights=self._access.rights_of(owner.user, client),
            owner=owner,
            account=self.budgets.open(client, owner),
        )
        self._by_client[client] = session
        self._by_correl_id[session.correl_id] = session
        return session


def flow_key(session: ClientSession, packet_identifier: int) -> bytes:
    """Key of a QoS flow's state: epoch (8 bytes, big-endian) and packet identifier (2)."""
    return _FLOW_KEY.pack(session.epoch, packet_identifier)

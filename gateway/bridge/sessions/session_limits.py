"""The limits that the bridge checks before it takes something from a client: one `ClientLimits` asks all of them.

A refusal is counted here. The caller answers it: level 5 is told the reason code, an earlier level what MQTT 3.1.1
allows. Two limits need more than a comparison:

Retained messages (`RetainedPlaces`). The gateway accepts some messages long before they are retained: a PUBLISH of
QoS 2 before its PUBREL, a will at CONNECT, and many PUBLISHes in one read. Each of them takes a place in
`maximum_retained_messages` as soon as it is accepted. So many messages at once cannot pass the limit.

Memory for QoS 2 messages between PUBLISH and PUBREL, and for wills (`HeldBytes`). PUBREC has acknowledged the message
and CONNACK the will, so the gateway never gives them up. Past the limit it accepts no more. A client that holds nothing
may still hold one small message and one small will, until twice the limit is reached. So clients that fill the memory
do not keep others from QoS 2. The second bound is needed because sessions outlive their connections: one client with
ever new identifiers could hold a small message in each of `maximum_sessions`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Protocol

from gateway.bridge.sessions.filter_shapes import FilterShapes, KnownShapes
from gateway.bridge.sessions.links import MqttLink
from gateway.bridge.sessions.retained_copies import RetainedCopies
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.config.routes import Registration, Routes
from gateway.limits.admission import Admission
from gateway.limits.budgets import Amount
from gateway.limits.owner import Owner
from gateway.limits.refusals import LimitReached, reached
from gateway.limits.topics import FineTopics, TopicLimits, levels_of
from gateway.mqtt.errors import LimitExceeded, PeerError
from gateway.mqtt.events import ConnectReceived, PublishReceived, Will
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import SHARED
from mappings.commands.command import Dialect
from mappings.topics.topics import TopicError
from mq_adapters.broker.broker import Broker

#: The most topics to remember, at some 60 bytes each. Then those that are retained by now are forgotten.
_REMEMBERED: Final = 10_000


class RetainedStore(Protocol):
    """The number of retained messages here, and whether a PUBLISH on a topic would replace one."""

    def __len__(self) -> int: ...

    def __contains__(self, topic: object, /) -> bool: ...


class RetainedPlaces:
    """Gives places to retained messages. Call `tick` several times a second, not while a read is carried out."""

    def __init__(
        self, maximum: int, retained: RetainedStore, sessions: Sessions, *, is_for_target: Callable[[str], bool]
    ) -> None:
        """`maximum` 0: no limit. `is_for_target`: whether a topic is published, and retained, at a target."""
        self._maximum = maximum
        self._retained = retained
        self._sessions = sessions
        self._is_for_target = is_for_target
        #: Hashes of the topics on which sessions will retain a message; not known yet after a start.
        self._promised: set[int] = set()
        self._is_known = False
        #: Topics that got a place since the last tick; and hashes of earlier ones, back to the last `_look`.
        self._lately: set[str] = set()
        self._before: set[int] = set()
        #: The number of retained messages at the last `_look`.
        self._retained_then = 0
        self._may_look = True

    def tick(self) -> None:
        """By now each message with a place is retained, or stands in a session."""
        self._may_look = True
        self._before.update(map(hash, self._lately))
        self._lately.clear()
        if len(self._before) > _REMEMBERED:
            self._look()

    def takes(self, topic: str) -> bool:
        """Whether a message may be retained on a topic. If so, it has its place now."""
        if not self._maximum or self._is_for_target(topic) or topic in self._lately:
            return True
        if not self._is_known or self._is_full:
            self._look()
        if self._is_full:
            return hash(topic) in self._promised or topic in self._retained
        self._lately.add(topic)
        return True

    def gives_back(self, topic: str) -> None:
        """The retained message of a topic is deleted."""
        self._lately.discard(topic)

    @property
    def _is_full(self) -> bool:
        given = len(self._promised) + len(self._before) + len(self._lately)
        return len(self._retained) + given >= self._maximum

    def _look(self) -> None:
        """Forgets places whose messages are retained. Asks the sessions at most once a tick: there may be many."""
        if self._may_look:
            self._may_look, self._is_known = False, True
            self._promised = {
                hash(topic)
                for topic in self._of_sessions()
                if not self._is_for_target(topic) and topic not in self._retained
            }
            self._before.clear()
        if len(self._retained) != self._retained_then:
            self._retained_then = len(self._retained)
            self._lately = {topic for topic in self._lately if topic not in self._retained}

    def _of_sessions(self) -> Iterator[str]:
        """The topics on which wills, and PUBLISHes before their PUBREL, will retain a message."""
        for session in self._sessions:
            if session.will is not None and session.will.retain and session.will.payload:
                yield session.will.topic
            for held in session.held.values():
                if held.retain and held.payload:
                    yield held.topic


#: Memory of a held QoS 2 PUBLISH beside its payload, in bytes (measured: 560 with a short topic).
OVERHEAD_BYTES: Final = 600
#: Bytes that a client may hold past the limit: 8,192 such clients hold as much as the default limit.
SMALL_BYTES: Final = 65_536


class HeldBytes:
    """Counts the bytes that sessions hold. Call `tick` several times a second."""

    def __init__(self, maximum_bytes: int, sessions: Sessions) -> None:
        self._maximum_bytes = maximum_bytes
        self._sessions = sessions
        #: The last count plus all that was taken since: never less than the bytes that sessions hold.
        self._at_most_bytes = maximum_bytes
        self._may_sum = True

    def tick(self) -> None:
        """Allows another count. A count goes over all sessions, which may be many."""
        self._may_sum = True

    def takes(self, size_bytes: int, *, is_first: bool) -> bool:
        """Whether a session may hold this many more bytes; then they count. `is_first`: it holds none of this kind."""
        size = size_bytes + OVERHEAD_BYTES
        if self._at_most_bytes + size > self._maximum_bytes and self._may_sum:
            self._may_sum = False
            self._at_most_bytes = sum(
                each.held_bytes + OVERHEAD_BYTES * len(each.held) + each.will_bytes for each in self._sessions
            )
        is_small = is_first and size <= SMALL_BYTES
        if self._at_most_bytes + size > self._maximum_bytes * (1 + is_small):
            return False
        self._at_most_bytes += size
        return True


#: The limit that a client passed, by the reason code that it is told.
_LIMITS_OF_CONNECTION: Final = {
    ReasonCode.PACKET_TOO_LARGE: Limit.PACKET_BYTES,
    ReasonCode.RECEIVE_MAXIMUM_EXCEEDED: Limit.RECEIVE_MAXIMUM,
    ReasonCode.TOPIC_ALIAS_INVALID: Limit.TOPIC_ALIASES,
    ReasonCode.QUOTA_EXCEEDED: Limit.PROPERTIES,
}


#: Characters of filters, and bytes of a will, that a session may have while the disk is short of space.
_LITTLE: Final = 4_096


class BrokerRetained:
    """The broker's retained publications on the gateway's stream."""

    def __init__(self, broker: Broker, stream: str, header: Dialect) -> None:
        self._broker = broker
        self._stream = stream
        self._header = header

    def __len__(self) -> int:
        return self._broker.retained_publications

    def __contains__(self, topic: object, /) -> bool:
        return isinstance(topic, str) and self._broker.retains(self._stream, topic, self._header)


class Ticking(Protocol):
    """A part of the bridge with work to do several times a second."""

    def tick(self, now_us: int) -> None: ...


class ClientLimits:
    """The limits on sessions and on their messages. Its `tick` also ticks `admission` and `queues`."""

    def __init__(
        self,
        limits: MqttLimits,
        sessions: Sessions,
        *,
        admission: Admission,
        queues: Ticking,
        retained: RetainedStore,
        retained_copies: RetainedCopies | None = None,
        routes: Routes,
        shapes: KnownShapes | None = None,
    ) -> None:
        """`routes` say which topics are published, and retained, at a target, and which topics MQ can carry.

        `shapes`: of the filters at the embedded broker; None: they are not limited.
        """
        self._limits = limits
        self._budgets = sessions.budgets
        self.admission = admission
        self._refusals = admission.refusals
        self._queues = queues
        self._retained_copies = retained_copies
        self._retained_places = RetainedPlaces(
            limits.maximum_retained_messages, retained, sessions, is_for_target=routes.is_for_target
        )
        self._held_bytes = HeldBytes(limits.maximum_held_bytes_in_all, sessions)
        self._topics = TopicLimits(limits)
        self.shapes = None if shapes is None else FilterShapes(limits, shapes, admission.refusals)
        #: The disk has less free space than its mark. Publishers are paused, and other requests that fill the disk are
        #: refused: a client that may not publish could fill the disk otherwise, and a full disk stops the gateway.
        self.disk_is_short = False
        self._routes = routes
        #: Topics within all limits: a PUBLISH without RETAIN on one of them needs no check.
        self.fine_topics = FineTopics()
        #: How many topics were new since `take_new_topics`.
        self.new_topics = 0

    def tick(self, now_us: int) -> None:
        """Several times a second."""
        self._queues.tick(now_us)
        self._refusals.tick(now_us)
        self.admission.connection_log.tick()
        self._retained_places.tick()
        if self._retained_copies is not None:
            self._retained_copies.tick()
        self._held_bytes.tick()
        if self.shapes is not None:
            self.shapes.tick()

    def of_publish(self, event: PublishReceived) -> LimitReached | None:
        """The limit that a PUBLISH would pass. At QoS 2 `of_hold` checks the memory too."""
        return self._counted(self._of_name(event.topic) or self._of_retained(event))

    def of_hold(self, session: ClientSession, event: PublishReceived) -> LimitReached | None:
        """The limit because of which a PUBLISH of QoS 2 cannot wait for its PUBREL."""
        packet_bytes = len(event.header) + len(event.payload)
        size = session.held_bytes + packet_bytes + OVERHEAD_BYTES * (len(session.held) + 1)
        if session.held and size > self._limits.maximum_held_bytes:
            return self._counted(reached(Limit.HELD_BYTES))
        if self._held_bytes.takes(packet_bytes, is_first=not session.held):
            return None
        return self._counted(reached(Limit.HELD_BYTES_IN_ALL))

    def _of_will(self, will: Will) -> LimitReached | None:
        """The limit that a will would pass. A will stays in memory as long as its session."""
        if self.disk_is_short and will.kept_bytes > _LITTLE:
            text = f"the disk is short of space, and a will has more than {_LITTLE} bytes"
            return reached(Limit.HELD_BYTES_IN_ALL, text=text)
        if self._held_bytes.takes(will.kept_bytes, is_first=True):
            return None
        return reached(Limit.HELD_BYTES_IN_ALL)

    def of_filter(
        self, session: ClientSession, topic_filter: str, asked: str, known: Collection[str]
    ) -> LimitReached | None:
        """The limit that a filter of a session would pass. `known`: its filters, granted or asked for.

        `asked`: the part of the filter that topics match; without `$share/GROUP/` for a shared subscription.
        """
        found = None if topic_filter in known else self._of_new_filter(session, topic_filter, known)
        if found is None and topic_filter != asked and topic_filter not in known:
            found = self._of_group(session, known)
        return self._counted(found or self._topics.of_filter(topic_filter, asked))

    def _of_group(self, session: ClientSession, known: Iterable[str]) -> LimitReached | None:
        """The limit that a session's membership in one more group of a shared subscription would pass."""
        groups = 1 + sum(each.startswith(SHARED) for each in known)
        return self._budgets.refusal(
            session.account, Amount.SHARED_GROUPS, groups - session.account.amounts[Amount.SHARED_GROUPS]
        )

    def _of_new_filter(self, session: ClientSession, topic_filter: str, known: Collection[str]) -> LimitReached | None:
        asked_for = 1 + len(known) - session.account.amounts[Amount.SUBSCRIPTIONS]
        found = self._budgets.refusal(session.account, Amount.SUBSCRIPTIONS, asked_for)
        if found is not None:
            return found
        levels = levels_of(topic_filter) + sum(map(levels_of, known)) - session.account.amounts[Amount.LEVELS]
        if (found := self._budgets.refusal(session.account, Amount.LEVELS, levels)) is not None:
            return found
        characters = sum(map(len, known)) + len(topic_filter)
        if characters > self._limits.maximum_subscription_characters:
            return reached(Limit.SUBSCRIPTION_CHARACTERS)
        if self.disk_is_short and characters > _LITTLE:
            text = f"the disk is short of space, and the session's filters would have more than {_LITTLE} characters"
            return reached(Limit.SUBSCRIPTION_CHARACTERS, text=text)
        return None

    def of_shapes(self, session: ClientSession, wanted: Iterable[Registration]) -> LimitReached | None:
        """The limit that a filter would pass by a new shape; `wanted`: its registrations."""
        return None if self.shapes is None else self._counted(self.shapes.refuses(session, wanted))

    def of_filter_that_mq_cannot_carry(self) -> LimitReached:
        """The refusal of a topic filter that no header of MQ can carry to one of its destinations."""
        found = _not_carried("no MQ header can hold the topic filter", ReasonCode.TOPIC_FILTER_INVALID)
        self._refusals.count(found)
        return found

    def of_connect(
        self, link: object, event: ConnectReceived, owner: Owner, existing: ClientSession | None, expiry_s: int
    ) -> LimitReached | None:
        """The limit that a CONNECT would pass with its session, its will, or its user's connections.

        `existing`: the session that the client has already. `expiry_s`: seconds for which the session outlives the
        connection.
        """
        will = event.will
        found = self._of_session(owner, existing, expiry_s)
        if will is not None:
            found = found or self._of_name(will.topic) or self._of_retained(will) or self._of_will(will)
        if found is not None:
            return self._counted(found)
        replaced = existing.link or existing.pending_link if existing is not None else None
        return self.admission.authenticated(link, owner.user, instead_of=replaced)

    def violated(self, error: PeerError) -> Limit | None:
        """Counts a packet past a fixed limit, or past a limit that CONNACK announced. Returns the limit."""
        limit = _LIMITS_OF_CONNECTION.get(error.reason_code) if isinstance(error, LimitExceeded) else None
        if limit is not None:
            self._refusals.add(limit, error.reason_code)
        return limit

    # -- inside --------------------------------------------------------------------------------------------------------

    def _of_session(self, owner: Owner, existing: ClientSession | None, expiry_s: int) -> LimitReached | None:
        """The limit on sessions. A session that ends with its connection only counts as a connection."""
        is_kept_already = existing is not None and existing.expiry_s
        if not expiry_s or is_kept_already:
            return None
        if self.disk_is_short:
            text = "the disk is short of space, and a new session may not outlive its connection"
            return reached(Limit.SESSIONS, text=text)
        return self._budgets.refusal_of_session(owner, None if existing is None else existing.account)

    def _of_name(self, topic: str) -> LimitReached | None:
        if topic in self.fine_topics:
            return None
        if (found := self._topics.of_name(topic)) is not None:
            return found
        try:
            self._routes.check_name(topic)
        except TopicError as error:
            return _not_carried(str(error), ReasonCode.TOPIC_NAME_INVALID)
        self.fine_topics.keep(topic)
        self.new_topics += 1
        return None

    def take_new_topics(self) -> int:
        taken, self.new_topics = self.new_topics, 0
        return taken

    def too_fast(self, link: MqttLink, found: LimitReached) -> None:
        """Disconnects a client that is further ahead of its budget than slow reading allows."""
        self._refusals.count(found)
        link.close(found.text, found.reason_code, found.told)

    def _of_retained(self, event: PublishReceived | Will) -> LimitReached | None:
        if not event.retain:
            return None
        if not event.payload:
            if isinstance(event, PublishReceived) and event.qos <= 1:  # at QoS 2 nothing is deleted before PUBREL
                self._retained_places.gives_back(event.topic)
            return None
        if self._retained_places.takes(event.topic):
            return None
        return reached(Limit.RETAINED_MESSAGES)

    def _counted(self, found: LimitReached | None) -> LimitReached | None:
        if found is not None:
            self._refusals.count(found)
        return found


def _not_carried(text: str, reason_code: ReasonCode) -> LimitReached:
    return reached(Limit.TOPIC_CHARACTERS, reason_code, text)

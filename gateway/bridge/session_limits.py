"""Room for retained messages: what is retained, and what will be without anybody being asked again.

A PUBLISH of QoS 2 is taken long before its PUBREL, a will at CONNECT, and what one read brings before any of it is
retained. All of them have their place in `maximum_retained_messages` from then on: whoever sends many at once, or wills
from many clients, does not come past it.

Room for what sessions keep in memory: QoS 2 messages between PUBLISH and PUBREL, and wills.

A message was acknowledged with PUBREC, and a will with CONNACK, so neither is ever given up; past the limit no more is
taken. A client that holds nothing may still hold one small message, so that those who fill the room keep nobody else
from publishing at QoS 2; and a small will. That ends at twice the limit: sessions outlive their connections, and one
client that comes under ever new identifiers would otherwise hold a small one in each of `maximum_sessions`.

What the bridge asks before it takes something from a client: is there a limit in the way?

One object for all limits that the bridge knows, so that its rooms need to know none. What is refused is counted here,
and answered by who asked: at level 5 with the reason code, before it as MQTT 3.1.1 allows.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final, Protocol

from gateway.bridge.sessions import ClientSession, Sessions
from gateway.config.limits import Limit, MqttLimits
from gateway.config.routes import Routes
from gateway.limits.admission import Admission
from gateway.limits.refusals import LimitReached, reached
from gateway.limits.topics import FineTopics, TopicLimits
from gateway.mqtt.errors import LimitExceeded, PeerError
from gateway.mqtt.events import ConnectReceived, PublishReceived, Will
from gateway.mqtt.reason_codes import ReasonCode
from mappings.commands.command import Dialect
from mappings.topics.topics import TopicError
from mq_adapters.broker.broker import Broker

#: Topics that are remembered before it is looked which of them are retained by now, at some 60 bytes each.
_REMEMBERED: Final = 10_000


class RetainedStore(Protocol):
    """What is retained here: how many, and whether a PUBLISH on a topic would replace one."""

    def __len__(self) -> int: ...

    def __contains__(self, topic: object, /) -> bool: ...


class RetainedRoom:
    """Gives places away. Call `tick` several times a second, not within a turn."""

    def __init__(
        self, maximum: int, retained: RetainedStore, sessions: Sessions, *, is_for_target: Callable[[str], bool]
    ) -> None:
        """`maximum` 0: no limit. `is_for_target`: whether a topic is published elsewhere, and retained there."""
        self._maximum = maximum
        self._retained = retained
        self._sessions = sessions
        self._is_for_target = is_for_target
        #: Hashes of the topics that sessions will retain something on; after a start it is not known which.
        self._promised: set[int] = set()
        self._is_known = False
        #: Topics that were given a place since the last tick, and hashes of those from before, back to the last look.
        self._lately: set[str] = set()
        self._before: set[int] = set()
        #: How many were retained when those of this tick were looked through.
        self._retained_then = 0
        self._may_look = True

    def tick(self) -> None:
        """What was given a place before is retained by now, or stands in a session."""
        self._may_look = True
        self._before.update(map(hash, self._lately))
        self._lately.clear()
        if len(self._before) > _REMEMBERED:
            self._look()

    def takes(self, topic: str) -> bool:
        """Whether something may be retained on a topic; then it has its place."""
        if not self._maximum or self._is_for_target(topic) or topic in self._lately:
            return True
        if not self._is_known or self._is_full:
            self._look()
        if self._is_full:
            return hash(topic) in self._promised or topic in self._retained
        self._lately.add(topic)
        return True

    def gives_back(self, topic: str) -> None:
        """What is retained on a topic is deleted."""
        self._lately.discard(topic)

    @property
    def _is_full(self) -> bool:
        given = len(self._promised) + len(self._before) + len(self._lately)
        return len(self._retained) + given >= self._maximum

    def _look(self) -> None:
        """Forgets places that are taken. Sessions are asked once a tick: there may be many."""
        if self._may_look:
            self._may_look, self._is_known = False, True
            wanted = (topic for topic in self._of_sessions() if not self._is_for_target(topic))
            self._promised = {hash(topic) for topic in wanted if topic not in self._retained}
            self._before.clear()
        if len(self._retained) != self._retained_then:
            self._retained_then = len(self._retained)
            self._lately = {topic for topic in self._lately if topic not in self._retained}

    def _of_sessions(self) -> Iterator[str]:
        """What wills and PUBLISHes between PUBLISH and PUBREL will retain."""
        for session in self._sessions:
            if session.will is not None and session.will.retain and session.will.payload:
                yield session.will.topic
            for held in session.held.values():
                if held.retain and held.payload:
                    yield held.topic


#: What a held QoS 2 PUBLISH costs beside its payload, in bytes (measured: 560 with a short topic).
OVERHEAD_BYTES: Final = 600
#: What a client may hold past the limit, bytes: 8,192 of them together as much as the limit is by default.
SMALL_BYTES: Final = 65_536


class HeldRoom:
    """Gives room away. Call `tick` several times a second."""

    def __init__(self, maximum_bytes: int, sessions: Sessions) -> None:
        self._maximum_bytes = maximum_bytes
        self._sessions = sessions
        #: What was held when it was summed up, and all that was taken since: never less than what is held.
        self._at_most_bytes = maximum_bytes
        self._may_sum = True

    def tick(self) -> None:
        """It may be summed up again: there may be many sessions."""
        self._may_sum = True

    def takes(self, size_bytes: int, *, is_first: bool) -> bool:
        """Whether a session may hold that much more; then it counts. `is_first`: it holds nothing of the kind."""
        size = size_bytes + OVERHEAD_BYTES
        if self._at_most_bytes + size > self._maximum_bytes and self._may_sum:
            self._may_sum = False
            held = (each.held_bytes + OVERHEAD_BYTES * len(each.held) + each.will_bytes for each in self._sessions)
            self._at_most_bytes = sum(held)
        is_small = is_first and size <= SMALL_BYTES
        if self._at_most_bytes + size > self._maximum_bytes * (1 + is_small):
            return False
        self._at_most_bytes += size
        return True


#: What the peer broke, by the reason code that it is told.
_LIMITS_OF_CONNECTION: Final = {
    ReasonCode.PACKET_TOO_LARGE: Limit.PACKET_BYTES,
    ReasonCode.RECEIVE_MAXIMUM_EXCEEDED: Limit.RECEIVE_MAXIMUM,
    ReasonCode.TOPIC_ALIAS_INVALID: Limit.TOPIC_ALIASES,
    ReasonCode.QUOTA_EXCEEDED: Limit.PROPERTIES,
}


#: What a session may have of filters (characters) and as its will (bytes) while the disk is short.
_LITTLE: Final = 4_096


class BrokerRetained:
    """The retained publications of the broker, as the gateway publishes them."""

    def __init__(self, broker: Broker, stream: str, header: Dialect) -> None:
        self._broker = broker
        self._stream = stream
        self._header = header

    def __len__(self) -> int:
        return self._broker.retained_publications

    def __contains__(self, topic: object, /) -> bool:
        return isinstance(topic, str) and self._broker.retains(self._stream, topic, self._header)


class Ticking(Protocol):
    """Something that looks after itself several times a second."""

    def tick(self, now_us: int) -> None: ...


class Quotas:
    """The limits on sessions and what they publish; `admission` and `backlogs` are asked and ticked by the bridge."""

    def __init__(
        self,
        limits: MqttLimits,
        sessions: Sessions,
        *,
        admission: Admission,
        backlogs: Ticking,
        retained: RetainedStore,
        routes: Routes,
    ) -> None:
        """`routes`: which topic is published elsewhere, and retained there if at all; what MQ can say of one."""
        self._limits = limits
        self._sessions = sessions
        self.admission = admission
        self._refusals = admission.refusals
        self._backlogs = backlogs
        self._retained_room = RetainedRoom(
            limits.maximum_retained_messages, retained, sessions, is_for_target=routes.is_for_target
        )
        self._held_room = HeldRoom(limits.maximum_held_bytes_in_all, sessions)
        self._topics = TopicLimits(limits)
        #: Below the disk's mark publishers are held back, and what else fills it is refused: else who may not publish
        #: could fill it all the same, and a full disk stops the gateway.
        self.disk_is_short = False
        self._routes = routes
        #: A PUBLISH without RETAIN on one of these needs no look.
        self.fine_topics = FineTopics()

    def tick(self, now_us: int) -> None:
        """Several times a second."""
        self._backlogs.tick(now_us)
        self._refusals.tick(now_us)
        self.admission.connection_log.tick()
        self._retained_room.tick()
        self._held_room.tick()

    def of_publish(self, event: PublishReceived) -> LimitReached | None:
        """Why a PUBLISH is not taken, apart from what is held at QoS 2."""
        return self._counted(self._of_name(event.topic) or self._of_retained(event))

    def of_hold(self, session: ClientSession, event: PublishReceived) -> LimitReached | None:
        """Why a PUBLISH of QoS 2 cannot wait for its PUBREL; a single small one always can."""
        packet_bytes = len(event.header) + len(event.payload)
        size = session.held_bytes + packet_bytes + OVERHEAD_BYTES * (len(session.held) + 1)
        if session.held and size > self._limits.maximum_held_bytes:
            return self._counted(reached(Limit.HELD_BYTES))
        if self._held_room.takes(packet_bytes, is_first=not session.held):
            return None
        return self._counted(reached(Limit.HELD_BYTES_IN_ALL))

    def _of_will(self, will: Will) -> LimitReached | None:
        """Why a will is not kept: it is in memory as long as its session."""
        if self.disk_is_short and will.kept_bytes > _LITTLE:
            text = f"the disk is short of space, and a will has more than {_LITTLE} bytes"
            return reached(Limit.HELD_BYTES_IN_ALL, text=text)
        if self._held_room.takes(will.kept_bytes, is_first=True):
            return None
        return reached(Limit.HELD_BYTES_IN_ALL)

    def of_filter(self, topic_filter: str, asked: str, known: Collection[str]) -> LimitReached | None:
        """Why a session that has the known filters, granted or asked for, may not subscribe to a further one.

        `asked` is the part of a shared subscription's filter that topics match, of others the whole.
        """
        if len(known) >= self._limits.maximum_subscriptions:
            return self._counted(reached(Limit.SUBSCRIPTIONS))
        characters = sum(map(len, known)) + len(topic_filter)
        if characters > self._limits.maximum_subscription_characters:
            return self._counted(reached(Limit.SUBSCRIPTION_CHARACTERS))
        if self.disk_is_short and characters > _LITTLE:
            text = f"the disk is short of space, and the session's filters would have more than {_LITTLE} characters"
            return self._counted(reached(Limit.SUBSCRIPTION_CHARACTERS, text=text))
        return self._counted(self._topics.of_filter(topic_filter, asked))

    def of_unsayable_filter(self) -> LimitReached:
        """A topic filter means nothing at one of its destinations, because a header of MQ cannot say it."""
        found = _unsayable("no MQ header can hold the topic filter", ReasonCode.TOPIC_FILTER_INVALID)
        self._refusals.count(found)
        return found

    def of_connect(
        self, link: object, event: ConnectReceived, user: str | None, existing: ClientSession | None, expiry_s: int
    ) -> LimitReached | None:
        """Why a CONNECT is not accepted: its will, its session, which outlives the connection by `expiry_s`, its user.

        `existing`: the session that the client has already.
        """
        will = event.will
        found = self._of_session(existing, expiry_s)
        if will is not None:
            found = found or self._of_name(will.topic) or self._of_retained(will) or self._of_will(will)
        if found is not None:
            return self._counted(found)
        replaced = existing.link or existing.pending_link if existing is not None else None
        return self.admission.authenticated(link, user, instead_of=replaced)

    def violated(self, error: PeerError) -> None:
        """A connection went past what it was told: that is a refusal too."""
        if isinstance(error, LimitExceeded) and (limit := _LIMITS_OF_CONNECTION.get(error.reason_code)):
            self._refusals.add(limit, error.reason_code)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _of_session(self, existing: ClientSession | None, expiry_s: int) -> LimitReached | None:
        """A session that ends with its connection is bounded by the connections there are."""
        is_kept_already = existing is not None and existing.expiry_s
        others = len(self._sessions) - (existing is not None)
        if not expiry_s or is_kept_already:
            return None
        if self.disk_is_short:
            text = "the disk is short of space, and a new session may not outlive its connection"
            return reached(Limit.SESSIONS, text=text)
        return reached(Limit.SESSIONS) if others >= self._limits.maximum_sessions else None

    def _of_name(self, topic: str) -> LimitReached | None:
        if topic in self.fine_topics:
            return None
        if (found := self._topics.of_name(topic)) is not None:
            return found
        try:
            self._routes.check_name(topic)
        except TopicError as error:
            return _unsayable(str(error), ReasonCode.TOPIC_NAME_INVALID)
        self.fine_topics.keep(topic)
        return None

    def _of_retained(self, event: PublishReceived | Will) -> LimitReached | None:
        if not event.retain:
            return None
        if not event.payload:
            if isinstance(event, PublishReceived) and event.qos <= 1:  # at QoS 2 nothing is deleted before PUBREL
                self._retained_room.gives_back(event.topic)
            return None
        if self._retained_room.takes(event.topic):
            return None
        return reached(Limit.RETAINED_MESSAGES)

    def _counted(self, found: LimitReached | None) -> LimitReached | None:
        if found is not None:
            self._refusals.count(found)
        return found


def _unsayable(text: str, reason_code: ReasonCode) -> LimitReached:
    return reached(Limit.TOPIC_CHARACTERS, reason_code, text)

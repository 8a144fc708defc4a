"""What the bridge asks before it takes something from a client: is there a limit in the way?

One object for all limits that the bridge knows, so that its rooms need to know none. What is refused is counted here,
and answered by who asked: at level 5 with the reason code, before it as MQTT 3.1.1 allows.
"""

from collections.abc import Collection
from typing import Final, Protocol

from gateway.bridge.held_room import OVERHEAD_BYTES, HeldRoom
from gateway.bridge.retained_room import RetainedRoom, RetainedStore
from gateway.bridge.routes import Routes
from gateway.bridge.sessions import ClientSession, Sessions
from gateway.config.limits import MqttLimits
from gateway.limits.admission import Admission
from gateway.limits.limit import Limit, LimitReached
from gateway.limits.topics import FineTopics, TopicLimits
from gateway.mqtt.errors import LimitExceeded, PeerError
from gateway.mqtt.events import ConnectReceived, PublishReceived, Will
from gateway.mqtt.reason_codes import ReasonCode
from mappings.command import Dialect
from mappings.topics import TopicError
from mq_adapters.broker.broker import Broker

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
        self.admission.strangers.tick()
        self._retained_room.tick()
        self._held_room.tick()

    def of_publish(self, event: PublishReceived) -> LimitReached | None:
        """Why a PUBLISH is not taken, apart from what is held at QoS 2."""
        return self._counted(self._of_name(event.topic) or self._of_retained(event))

    def of_hold(self, session: ClientSession, event: PublishReceived) -> LimitReached | None:
        """Why a PUBLISH of QoS 2 cannot wait for its PUBREL; a single small one always can."""
        packet_bytes = len(event.header) + len(event.payload)
        size = session.held_bytes + packet_bytes + OVERHEAD_BYTES * (len(session.held) + 1)
        limit, maximum = Limit.HELD_BYTES, self._limits.maximum_held_bytes
        if not session.held or size <= maximum:
            if self._held_room.takes(packet_bytes, is_first=not session.held):
                return None
            limit, maximum = Limit.HELD_BYTES_IN_ALL, self._limits.maximum_held_bytes_in_all
        text = f"more than {maximum} bytes of QoS 2 wait for their PUBREL"
        return self._counted(LimitReached(limit=limit, reason_code=ReasonCode.QUOTA_EXCEEDED, text=text))

    def _of_will(self, will: Will) -> LimitReached | None:
        """Why a will is not kept: it is in memory as long as its session."""
        if self.disk_is_short and will.kept_bytes > _LITTLE:
            text = f"the disk is short of space, and a will has more than {_LITTLE} bytes"
            return LimitReached(limit=Limit.HELD_BYTES_IN_ALL, reason_code=ReasonCode.QUOTA_EXCEEDED, text=text)
        if self._held_room.takes(will.kept_bytes, is_first=True):
            return None
        text = f"more than {self._limits.maximum_held_bytes_in_all} bytes of wills and QoS 2 are kept"
        return LimitReached(limit=Limit.HELD_BYTES_IN_ALL, reason_code=ReasonCode.QUOTA_EXCEEDED, text=text)

    def of_filter(self, topic_filter: str, asked: str, known: Collection[str]) -> LimitReached | None:
        """Why a session that has the known filters, granted or asked for, may not subscribe to a further one.

        `asked` is the part of a shared subscription's filter that topics match, of others the whole.
        """
        maximum, characters = self._limits.maximum_subscriptions, self._limits.maximum_subscription_characters
        if self.disk_is_short:
            characters = min(characters, _LITTLE)
        text = ""
        if len(known) >= maximum:
            text = f"a session has more than {maximum} topic filters"
        elif sum(map(len, known)) + len(topic_filter) > characters:
            text = f"the topic filters of a session have more than {characters} characters"
        if text:
            reached = LimitReached(limit=Limit.SUBSCRIPTIONS, reason_code=ReasonCode.QUOTA_EXCEEDED, text=text)
            return self._counted(reached)
        return self._counted(self._topics.of_filter(topic_filter, asked))

    def of_unsayable_filter(self) -> LimitReached:
        """A topic filter means nothing at one of its destinations, because a header of MQ cannot say it."""
        reached = _unsayable("a header of MQ cannot say a topic filter", ReasonCode.TOPIC_FILTER_INVALID)
        self._refusals.count(reached)
        return reached

    def of_connect(
        self, link: object, event: ConnectReceived, user: str | None, existing: ClientSession | None, expiry_s: int
    ) -> LimitReached | None:
        """Why a CONNECT is not accepted: its will, its session, which outlives the connection by `expiry_s`, its user.

        `existing`: the session that the client has already.
        """
        will = event.will
        reached = self._of_session(existing, expiry_s)
        if will is not None:
            reached = reached or self._of_name(will.topic) or self._of_retained(will) or self._of_will(will)
        if reached is not None:
            return self._counted(reached)
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
            text = "the disk is short of space, and no session is begun that would stay on it"
        elif others >= self._limits.maximum_sessions:
            text = f"there are {self._limits.maximum_sessions} sessions, as many as may be"
        else:
            return None
        return LimitReached(limit=Limit.SESSIONS, reason_code=ReasonCode.QUOTA_EXCEEDED, text=text)

    def _of_name(self, topic: str) -> LimitReached | None:
        if topic in self.fine_topics:
            return None
        if (reached := self._topics.of_name(topic)) is not None:
            return reached
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
        text = f"there are {self._limits.maximum_retained_messages} retained messages, as many as may be"
        return LimitReached(limit=Limit.RETAINED_MESSAGES, reason_code=ReasonCode.QUOTA_EXCEEDED, text=text)

    def _counted(self, reached: LimitReached | None) -> LimitReached | None:
        if reached is not None:
            self._refusals.count(reached)
        return reached


def _unsayable(text: str, reason_code: ReasonCode) -> LimitReached:
    return LimitReached(limit=Limit.TOPIC_CHARACTERS, reason_code=reason_code, text=text)

"""A SUBSCRIBE or UNSUBSCRIBE whose filters are not all decided, and the answer that it gets (subscribe.py)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.deliver.shared_groups import SharedGroup
from gateway.bridge.sessions.session_filters import RetainedMark
from gateway.bridge.sessions.sessions import ClientSession
from gateway.bridge.sessions.subscriber import Subscriber
from gateway.bridge.sessions.subscription import GrantedOptions
from gateway.config.routes import Destination, Registration
from gateway.limits.refusals import LimitReached
from gateway.mqtt.levels import LEVELS, PacketType
from gateway.mqtt.reason_codes import ReasonCode
from mq_adapters.embedded.unit_of_work import Note, UnitOfWork

#: SUBACK return code for a subscription that failed (MQTT 3.1.1 section 3.9.3).
FAILURE: Final = 0x80


#: Why a filter is refused, for the trail (field `rule` of its records), beside limits and rules of access.
NOT_CARRIED: Final = "MQ cannot carry it"
TARGET_IS_FULL: Final = "the target's queue is full"
NO_ANSWER: Final = "no answer in time"


class FilterRefused(NamedTuple):
    """A topic filter is refused: the reason code, the rule for the trail, and what the client is told beside it."""

    reason_code: ReasonCode
    rule: str
    told: str = ""

    @classmethod
    def at_limit(cls, reached: LimitReached) -> Self:
        """The filter is past a limit."""
        return cls(reached.reason_code, reached.limit.label, reached.told)


class CodesOfAnswer(NamedTuple):
    """The codes of a SUBACK or UNSUBACK, and what its client is told of them beside their meaning, by code."""

    codes: bytes
    told: Mapping[int, str] = MappingProxyType({})


Answered = Callable[[ClientSession, int, CodesOfAnswer], None]


class PendingPacket:
    """A SUBSCRIBE or UNSUBSCRIBE that waits for answers, with the state of each of its filters."""

    __slots__ = (
        "answered",
        "deadline_us",
        "failed",
        "groups",
        "mark",
        "options",
        "packet_identifier",
        "refused_at",
        "registered",
        "rules",
        "session",
        "subscriptions",
        "told",
        "topic_filters",
        "unit",
        "unsubscribed",
        "waiting",
        "wanted",
    )

    def __init__(
        self,
        session: ClientSession,
        packet_identifier: int,
        subscriptions: tuple[tuple[str, int], ...],
        answered: Answered,
        deadline_us: int,
    ) -> None:
        self.session = session
        #: The unit of work with the commands of the packet, until it is submitted.
        self.unit: UnitOfWork | None = None
        self.packet_identifier = packet_identifier
        self.subscriptions = subscriptions
        #: QoS by filter. For a filter with several entries the last one counts.
        self.wanted = dict(subscriptions)
        self.answered = answered
        self.deadline_us = deadline_us
        #: Filter and destination of each command under way, by its MsgId.
        self.waiting: dict[bytes, tuple[str, Destination]] = {}
        #: The registrations of each filter, until it is granted or given up.
        self.registered: dict[str, tuple[Registration, ...]] = {}
        #: The groups of shared subscriptions, by the filter that names them.
        self.groups: dict[str, SharedGroup] = {}
        #: The reason code of each filter that was refused, and the rule.
        self.failed: dict[str, ReasonCode] = {}
        self.rules: dict[str, str] = {}
        #: What the client is told of refused filters at level 5, by reason code: the first text of each.
        self.told: dict[int, str] = {}
        #: The filters of an UNSUBSCRIBE, and their reason codes.
        self.topic_filters: tuple[str, ...] = ()
        self.unsubscribed: list[ReasonCode] = []
        #: Options of level 5 beside the QoS, by filter.
        self.options: dict[str, GrantedOptions] = {}
        self.refused_at: set[tuple[str, Destination]] = set()
        #: Tells which retained copies are for this SUBSCRIBE.
        self.mark: RetainedMark | None = None

    def subscriber(self, topic_filter: str) -> Subscriber:
        """The session or group for which a filter is registered."""
        return self.groups.get(topic_filter, self.session)

    def wants_nothing_retained(self, topic_filter: str) -> bool:
        return self.mark is not None and topic_filter not in (self.mark.filters or ())

    def fail(self, topic_filter: str, refused: FilterRefused) -> None:
        """A filter is refused; the last refusal counts."""
        self.failed[topic_filter], self.rules[topic_filter] = refused.reason_code, refused.rule
        if refused.told:
            self.told.setdefault(refused.reason_code, refused.told)

    def code_of(self, refused: FilterRefused) -> int:
        """The code of SUBACK for a refused filter; 0: there is no SUBACK."""
        level = LEVELS[self.session.level]
        if level.has_reason_codes:
            return refused.reason_code
        return FAILURE if level.suback_can_refuse else 0

    def note(self, now_us: int) -> Note:
        """The audit note of its answer."""
        session = self.session
        who = (NoteKind.ANSWERED, now_us, session.client, session.epoch)
        if self.unsubscribed:
            codes = bytes(self.unsubscribed) if LEVELS[session.level].has_reason_codes else b""
            return (*who, int(PacketType.UNSUBACK), self.packet_identifier, self.topic_filters, b"", codes, ())
        topic_filters = tuple(topic_filter for topic_filter, _ in self.subscriptions)
        refused = tuple(
            (str(place), self.rules[each]) for place, each in enumerate(topic_filters, start=1) if each in self.failed
        )
        asked = bytes(qos for _, qos in self.subscriptions)
        suback = int(PacketType.SUBACK)
        return (*who, suback, self.packet_identifier, topic_filters, asked, self._return_codes, refused)

    @property
    def answer(self) -> CodesOfAnswer:
        return CodesOfAnswer(self._return_codes, self.told)

    @property
    def _return_codes(self) -> bytes:
        """One code for each entry: the granted QoS, or failure; level 5 is told the reason of a failure."""
        if self.unsubscribed:
            return bytes(self.unsubscribed)
        codes = self.failed if LEVELS[self.session.level].has_reason_codes else dict.fromkeys(self.failed, FAILURE)
        return bytes(codes.get(topic_filter, qos) for topic_filter, qos in self.subscriptions)

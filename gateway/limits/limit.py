"""The limits by name, what a refusal at one of them says, and how often each refused somebody."""

import logging
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.mqtt.reason_codes import ReasonCode

_log = logging.getLogger(__name__)

#: How often the log tells what was refused since, microseconds.
_INTERVAL_US: Final = 10_000_000


class Limit(StrEnum):
    """What there is a limit of; the name is the label in the metrics, and mostly the end of a key of [mqtt]."""

    CONNECTIONS = "connections"
    CONNECTIONS_OF_LISTENER = "connections_of_listener"
    CONNECTIONS_PER_USER = "connections_per_user"
    CONNECTIONS_PER_ADDRESS = "connections_per_address"
    WAITING_CONNECTIONS = "waiting_connections"
    CONNECTION_RATE = "connection_rate"
    CONNECTION_RATE_PER_ADDRESS = "connection_rate_per_address"
    CONNECT_TIMEOUT = "connect_timeout"
    PACKET_BYTES = "packet_bytes"
    RECEIVE_MAXIMUM = "receive_maximum"
    TOPIC_ALIASES = "topic_aliases"
    PROPERTIES = "properties"
    HELD_BYTES = "held_bytes"
    HELD_BYTES_IN_ALL = "held_bytes_in_all"
    TOPIC_BYTES = "topic_bytes"
    #: Not a key: what a header of MQ can say of a topic (bridge/routes.py).
    TOPIC_CHARACTERS = "topic_characters"
    TOPIC_LEVELS = "topic_levels"
    SUBSCRIPTIONS = "subscriptions"
    SESSIONS = "sessions"
    QUEUED_MESSAGES = "queued_messages"
    QUEUED_BYTES = "queued_bytes"
    QUEUED_AGE = "queued_age"
    DEAD_LETTERS = "dead_letters"
    RETAINED_MESSAGES = "retained_messages"
    UNSENT_BYTES_IN_ALL = "unsent_bytes_in_all"
    UNFINISHED_BYTES_IN_ALL = "unfinished_bytes_in_all"
    SLOW_READER = "slow_reader"


#: What a client of MQTT 5 is told at each limit; who has sent no CONNECT is told nothing.
REASONS: Final = {
    Limit.CONNECTIONS: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.CONNECTIONS_OF_LISTENER: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.CONNECTIONS_PER_USER: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.CONNECTIONS_PER_ADDRESS: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.WAITING_CONNECTIONS: (ReasonCode.SERVER_BUSY,),
    Limit.CONNECTION_RATE: (ReasonCode.CONNECTION_RATE_EXCEEDED,),
    Limit.CONNECTION_RATE_PER_ADDRESS: (ReasonCode.CONNECTION_RATE_EXCEEDED,),
    Limit.CONNECT_TIMEOUT: (ReasonCode.MAXIMUM_CONNECT_TIME,),
    Limit.PACKET_BYTES: (ReasonCode.PACKET_TOO_LARGE,),
    Limit.RECEIVE_MAXIMUM: (ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,),
    Limit.TOPIC_ALIASES: (ReasonCode.TOPIC_ALIAS_INVALID,),
    Limit.PROPERTIES: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.HELD_BYTES: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.HELD_BYTES_IN_ALL: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.TOPIC_BYTES: (ReasonCode.TOPIC_NAME_INVALID, ReasonCode.TOPIC_FILTER_INVALID),
    Limit.TOPIC_CHARACTERS: (ReasonCode.TOPIC_NAME_INVALID, ReasonCode.TOPIC_FILTER_INVALID),
    Limit.TOPIC_LEVELS: (ReasonCode.TOPIC_NAME_INVALID, ReasonCode.TOPIC_FILTER_INVALID),
    Limit.SUBSCRIPTIONS: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.SESSIONS: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.QUEUED_MESSAGES: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.QUEUED_BYTES: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.QUEUED_AGE: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.DEAD_LETTERS: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.RETAINED_MESSAGES: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.UNSENT_BYTES_IN_ALL: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.UNFINISHED_BYTES_IN_ALL: (ReasonCode.QUOTA_EXCEEDED,),
    Limit.SLOW_READER: (ReasonCode.QUOTA_EXCEEDED,),
}


#: The same in words (Reason String). They say what the client can do about it, and nothing of the others.
REASON_STRINGS: Final = {
    Limit.CONNECTIONS: "there are as many connections as may be: try again later",
    Limit.CONNECTIONS_OF_LISTENER: "there are as many connections on this port as may be: try again later",
    Limit.CONNECTIONS_PER_USER: "the user has as many connections as may be",
    Limit.CONNECTIONS_PER_ADDRESS: "the address has as many connections as may be",
    Limit.WAITING_CONNECTIONS: "there are too many connections without a CONNECT: send it at once",
    Limit.CONNECTION_RATE: "connections are made too fast: try again later",
    Limit.CONNECTION_RATE_PER_ADDRESS: "connections from this address are made too fast: try again later",
    Limit.CONNECT_TIMEOUT: "the CONNECT was not decided in time",
    Limit.PACKET_BYTES: "a packet is larger than CONNACK allowed",
    Limit.RECEIVE_MAXIMUM: "more messages are unanswered than CONNACK allowed",
    Limit.TOPIC_ALIASES: "there is no such topic alias, or CONNACK did not allow it",
    Limit.PROPERTIES: "a packet has too many properties",
    Limit.HELD_BYTES: "more of QoS 2 waits for its PUBREL than may: send PUBREL first",
    Limit.HELD_BYTES_IN_ALL: "there is no room for more of QoS 2 or for a will: try again later",
    Limit.TOPIC_BYTES: "the topic has too many bytes",
    Limit.TOPIC_CHARACTERS: "MQ cannot say the topic: it has too many characters, or one that its headers cannot hold",
    Limit.TOPIC_LEVELS: "the topic has too many levels",
    Limit.SUBSCRIPTIONS: "the session has as many topic filters as may be",
    Limit.SESSIONS: "there is no room for another session that outlives its connection",
    Limit.QUEUED_MESSAGES: "as many messages wait for the session as may be",
    Limit.QUEUED_BYTES: "as much waits for the session as may be",
    Limit.QUEUED_AGE: "a message has waited for the session as long as it may",
    Limit.RETAINED_MESSAGES: "there are as many retained messages as may be",
    Limit.DEAD_LETTERS: "as many dead letters wait as may be",
    Limit.UNSENT_BYTES_IN_ALL: "the client does not take what is sent",
    Limit.UNFINISHED_BYTES_IN_ALL: "there is no room for packets whose end does not come",
    Limit.SLOW_READER: "the client does not take what is sent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """Why something is refused: the limit, what a client of MQTT 5 is told, and the words for the log."""

    limit: Limit
    reason_code: ReasonCode
    text: str

    @property
    def told(self) -> str:
        """What a client of MQTT 5 is told in words; the log's may say what is not the client's to know."""
        return REASON_STRINGS[self.limit]


class Refusals:
    """How often each limit refused, by limit and by what the peer was told; one for the gateway."""

    def __init__(self) -> None:
        self.totals: Counter[tuple[Limit, ReasonCode]] = Counter()
        self._told: Counter[tuple[Limit, ReasonCode]] = Counter()
        self._due_us = 0

    def count(self, reached: LimitReached) -> None:
        self.totals[reached.limit, reached.reason_code] += 1

    def add(self, limit: Limit, reason_code: ReasonCode, count: int = 1) -> None:
        self.totals[limit, reason_code] += count

    def tick(self, now_us: int) -> None:
        """Tells what is new, at most every ten seconds: no line for each, or an attack would fill the log."""
        if self._due_us - _INTERVAL_US <= now_us < self._due_us or self.totals == self._told:
            return
        self._due_us = now_us + _INTERVAL_US
        for key, total in self.totals.items():
            if total > self._told[key]:
                limit, reason_code = key
                _log.warning(
                    "limit reached limit=%s answer=%s count=%s total=%s",
                    limit.value,
                    reason_code.name,
                    total - self._told[key],
                    total,
                )
        self._told = Counter(self.totals)

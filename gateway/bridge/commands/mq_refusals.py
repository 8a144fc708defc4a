"""Refusals by MQ as MQTT reports them: one table by IBM's reason codes, for subscriptions and for publications.

    level 5    SUBACK, PUBACK and PUBREC say the reason code of the table
    level 4    SUBACK says 80 hex. If a queue here refuses a message, the gateway closes the connection. If the broker
               refuses it after the put, the message is acknowledged and becomes a dead letter, whole, with the reason
    level 3    as level 4, but a refused SUBSCRIBE closes the connection: MQTT 3.1 has no code for it

A target's broker answers after PUBACK, and sometimes after SUBACK. Its refusal then goes to the dead-letter queue and
the audit at every level. Source: MQTT 5.0 tables 3-4, 3-5 and 3-8; IBM MQ, "API completion and reason codes", "PCF
reason codes".
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from gateway.mqtt.reason_codes import ReasonCode
from mappings.commands.command import Dialect
from mappings.reasons import Reason
from mq_adapters.broker.broker import Broker
from mq_adapters.reasons import ReasonCode as Mqrc


class RefusalCodes(NamedTuple):
    """Two reason codes: of a SUBACK, and of a PUBACK or PUBREC."""

    subscription: ReasonCode
    publication: ReasonCode


_NOT_AUTHORIZED: Final = RefusalCodes(ReasonCode.NOT_AUTHORIZED, ReasonCode.NOT_AUTHORIZED)
_NO_TOPIC: Final = RefusalCodes(ReasonCode.TOPIC_FILTER_INVALID, ReasonCode.TOPIC_NAME_INVALID)
_NO_ROOM: Final = RefusalCodes(ReasonCode.QUOTA_EXCEEDED, ReasonCode.QUOTA_EXCEEDED)
#: For reasons that the client cannot change: a queue is missing or closed, or a command is not understood.
_OTHERWISE: Final = RefusalCodes(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)

ANSWERS: Final[Mapping[int, RefusalCodes]] = {
    Mqrc.MQRC_NOT_AUTHORIZED: _NOT_AUTHORIZED,
    Mqrc.MQRC_SECURITY_ERROR: _NOT_AUTHORIZED,
    Mqrc.MQRC_SUPPRESSED_BY_EXIT: _NOT_AUTHORIZED,
    Reason.MQRC_UNKNOWN_ENTITY: _NOT_AUTHORIZED,
    Reason.MQRC_PUBSUB_INHIBITED: _NOT_AUTHORIZED,
    Reason.MQRCCF_NOT_AUTHORIZED: _NOT_AUTHORIZED,
    Reason.MQRCCF_WRONG_USER: _NOT_AUTHORIZED,
    Reason.MQRCCF_PUBSUB_INHIBITED: _NOT_AUTHORIZED,
    Reason.MQRCCF_TOPIC_ERROR: _NO_TOPIC,
    Mqrc.MQRC_Q_FULL: _NO_ROOM,
    Mqrc.MQRC_Q_SPACE_NOT_AVAILABLE: _NO_ROOM,
    Mqrc.MQRC_STORAGE_NOT_AVAILABLE: _NO_ROOM,
    Mqrc.MQRC_RESOURCE_PROBLEM: _NO_ROOM,
    Mqrc.MQRC_MSG_TOO_BIG_FOR_Q: _NO_ROOM,
    Mqrc.MQRC_MSG_TOO_BIG_FOR_Q_MGR: _NO_ROOM,
    Reason.MQRCCF_MSG_LENGTH_ERROR: _NO_ROOM,
}


def refused_subscription(reason_code: int) -> ReasonCode:
    """The reason code in SUBACK for a refused RegSub; `reason_code` 0: the refusal has no reason."""
    return ANSWERS.get(reason_code, _OTHERWISE).subscription


def refused_publication(reason_code: int) -> ReasonCode:
    """The reason code in PUBACK and PUBREC for a refused Publish."""
    return ANSWERS.get(reason_code, _OTHERWISE).publication


_NAMES: Final = {int(each): each.name for names in (Reason, Mqrc) for each in names}


def name_of_refusal(reason_code: int) -> str:
    """IBM's name of a reason, which the trail tells as the rule of a refusal."""
    return _NAMES.get(reason_code, f"MQRC_{reason_code}")


class ClosedTopics(Protocol):
    """Topics that topic objects close to everybody; false if no topic is closed."""

    def __len__(self) -> int: ...

    def __contains__(self, topic: object, /) -> bool: ...


class BrokerClosedTopics:
    """The topics on which topic objects of the embedded queue manager stop the gateway's publications."""

    def __init__(self, broker: Broker, stream: str, header: Dialect) -> None:
        self._broker = broker
        self._stream = stream
        self._header = header

    def __len__(self) -> int:
        """How many topic objects close topics."""
        return self._broker.closing_topic_objects

    def __contains__(self, topic: object, /) -> bool:
        return isinstance(topic, str) and self._broker.is_closed(self._stream, topic, self._header)

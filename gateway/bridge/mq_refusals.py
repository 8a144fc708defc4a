"""What MQ refuses, in the words of MQTT: one table by IBM's reason codes, for subscriptions and for publications.

    level 5    SUBACK, PUBACK and PUBREC say the reason code of the table
    level 4    SUBACK says 80 hex; what may not be put here closes the connection, and what the broker refuses after it
               was put is acknowledged and goes to the dead-letter queue, whole and with its reason
    level 3    the same, and a refused SUBSCRIBE closes the connection: MQTT 3.1 has no code for it

A target's broker answers after PUBACK, and sometimes after SUBACK: then the dead-letter queue and the audit have it at
every level. Source: MQTT 5.0 tables 3-4, 3-5 and 3-8; IBM MQ, "API completion and reason codes", "PCF reason codes".
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from gateway.mqtt.reason_codes import ReasonCode
from mappings.commands.command import Dialect
from mappings.reasons import Reason
from mq_adapters.broker.broker import Broker
from mq_adapters.reasons import ReasonCode as Mqrc


class Answer(NamedTuple):
    """The reason code of a SUBACK, and that of a PUBACK or PUBREC."""

    subscription: ReasonCode
    publication: ReasonCode


_NOT_AUTHORIZED: Final = Answer(ReasonCode.NOT_AUTHORIZED, ReasonCode.NOT_AUTHORIZED)
_NO_TOPIC: Final = Answer(ReasonCode.TOPIC_FILTER_INVALID, ReasonCode.TOPIC_NAME_INVALID)
_NO_ROOM: Final = Answer(ReasonCode.QUOTA_EXCEEDED, ReasonCode.QUOTA_EXCEEDED)
#: Nothing that the client could do differently: a queue that is missing or closed, a command that is not understood.
_OTHERWISE: Final = Answer(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)

ANSWERS: Final[Mapping[int, Answer]] = {
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
    """What SUBACK says of a RegSub that was refused; 0: without a reason."""
    return ANSWERS.get(reason_code, _OTHERWISE).subscription


def refused_publication(reason_code: int) -> ReasonCode:
    """What PUBACK and PUBREC say of a Publish that was refused."""
    return ANSWERS.get(reason_code, _OTHERWISE).publication


class ClosedTopics(Protocol):
    """Topics that are closed to everybody by topic objects; false where there is none of them."""

    def __len__(self) -> int: ...

    def __contains__(self, topic: object, /) -> bool: ...


class BrokerClosedTopics:
    """What the topic objects of the embedded queue manager close to what the gateway publishes."""

    def __init__(self, broker: Broker, stream: str, header: Dialect) -> None:
        self._broker = broker
        self._stream = stream
        self._header = header

    def __len__(self) -> int:
        """How many topic objects close something."""
        return self._broker.closing_topic_objects

    def __contains__(self, topic: object, /) -> bool:
        return isinstance(topic, str) and self._broker.is_closed(self._stream, topic, self._header)

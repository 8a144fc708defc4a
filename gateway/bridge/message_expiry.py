"""Message expiry of MQTT 5 as MQMD.Expiry: seconds there, tenths of a second here; both count what is left.

Source: MQTT 5.0 section 3.3.2.3.3; IBM MQ, "Expiry (MQLONG)".
"""

from typing import Final

from gateway.mqtt.properties import PublishProperties, WillProperties
from mq_adapters.message import MQEI_UNLIMITED, Message

_TENTHS: Final = 10
_TENTH_US: Final = 100_000
_SECOND_US: Final = 1_000_000
#: An MQLONG holds no more; what lasts longer, some seven years, does not expire.
_LONGEST_TENTHS: Final = 2**31 - 1


def expiry_of(properties: PublishProperties | WillProperties | None) -> int:
    """MQMD.Expiry of a PUBLISH or will with these properties; at least a tenth, which an expiry of 0 s becomes."""
    if properties is None or properties.message_expiry_s is None:
        return MQEI_UNLIMITED
    tenths = properties.message_expiry_s * _TENTHS
    return max(1, tenths) if tenths <= _LONGEST_TENTHS else MQEI_UNLIMITED


def expires_us(expiry: int, now_us: int) -> int:
    """When what has that MQMD.Expiry now expires, microseconds since 1970; 0: never."""
    return 0 if expiry == MQEI_UNLIMITED else now_us + expiry * _TENTH_US


def expiry_until(due_us: int, now_us: int) -> int:
    """MQMD.Expiry of what expires then (0: never); at least a tenth."""
    return MQEI_UNLIMITED if not due_us else max(1, (due_us - now_us) // _TENTH_US)


def remaining_s(message: Message, now_us: int) -> int | None:
    """Seconds that are left of a message, rounded up; None where it does not expire."""
    if not message.expires_us:
        return None
    return max(0, -((now_us - message.expires_us) // _SECOND_US))

"""The events that `client.ClientConnection` gives, in the order of arrival.

`HeartbeatAsked` and `Violated` are those of events.py: they are the same on both sides.
"""

from dataclasses import dataclass, field
from typing import Any

from mq_adapters.client_channel.events import HeartbeatAsked, Violated
from mq_adapters.client_channel.initial_data import InitialData
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.client_channel.status import StatusData
from mq_adapters.client_channel.verbs import ApiHeader


@dataclass(frozen=True, slots=True)
class InitialDataAnswered:
    """The queue manager takes the connection: send `assert_user`, then `authenticate` or `call` with MQCONN."""

    answer: InitialData


@dataclass(frozen=True, slots=True)
class AuthenticationAnswered:
    """User and password have arrived. Only the reply to MQCONN says whether they are right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The reply to the call. `parameters` is what `verbs.VERBS` says; `NOTHING` where the call was refused."""

    verb: SegmentType
    header: ApiHeader
    parameters: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered:
    """The queue manager is there."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The queue manager ends or refuses the connection. It is the last event: close. `status` says why."""

    status: StatusData


ClientEvent = (
    InitialDataAnswered | AuthenticationAnswered | Replied | HeartbeatAsked | HeartbeatAnswered | Ended | Violated
)

"""The settings of a channel. A comment beside each number says where it comes from."""

from dataclasses import dataclass, field

from mq_adapters.channel.retry import RetrySchedule
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """Of every channel. A batch ends at `batch_messages`, at `batch_bytes` of bodies, or `batch_idle_s` later.

    `channel` is its name, at most 48 characters: `<TARGET>.OUT.<n>` or `<TARGET>.IN.<queue>`.
    """

    channel: str
    local_state_queue: str = CHANNEL_STATE_QUEUE
    batch_messages: int = 500
    batch_bytes: int = 4 * 1024 * 1024
    batch_idle_s: float = 0.01
    retry: RetrySchedule = field(default_factory=RetrySchedule)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundSettings(ChannelSettings):
    """Of a channel that empties a transmission queue of the store.

    `remote_state_queue` is for this channel alone. `look_again_s` is how often an idle channel looks at it.
    `protected_queues` are queues there that take no message of this one, whoever has put it: state queues of others.
    """

    transmission_queue: str
    remote_state_queue: str
    look_again_s: float = 30.0
    protected_queues: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundSettings(ChannelSettings):
    """Of a channel that brings what arrives on a queue of the other queue manager to a queue of the store."""

    remote_queue: str
    local_queue: str

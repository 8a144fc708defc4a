"""The settings of a channel. A comment beside each number says where it comes from."""

from dataclasses import dataclass, field

from mq_adapters.channel.retry import RetrySchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """Settings of every channel. A batch ends at `batch_messages`, at `batch_bytes` of bodies, or after `batch_idle_s`.

    `channel` is its name, at most 48 characters: `<TARGET>.OUT.<n>` or `<TARGET>.IN.<queue>`.
    """

    channel: str
    batch_messages: int = 500
    batch_bytes: int = 4 * 1024 * 1024
    batch_idle_s: float = 0.01
    retry: RetrySchedule = field(default_factory=RetrySchedule)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundSettings(ChannelSettings):
    """Settings of a channel that empties a transmission queue of the store.

    `remote_state_queue` is for this channel alone. An idle channel looks at it every `look_again_s`. `protected_queues`
    are state queues of other channels at the target. This channel puts no message on them.
    """

    transmission_queue: str
    remote_state_queue: str
    look_again_s: float = 30.0
    protected_queues: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundSettings(ChannelSettings):
    """Settings of a channel that brings messages from a queue of the other queue manager to a queue of the store."""

    remote_queue: str
    local_queue: str

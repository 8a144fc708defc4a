"""Names of a target's queues and channels here, for the daemon, its channel process and commands that open no store."""

import zlib


def shard_of(client: str, shards: int) -> int:
    """The shard of an MQTT client, from 0: always the same one for the same number of shards."""
    return zlib.crc32(client.encode()) % shards


def transmission_queue_name(target: str, shard: int) -> str:
    """The local queue on which messages for one shard of a target wait."""
    return f"RFHBRIDGE.XMIT.{target}.{shard}"


def sent_queue_name(target: str) -> str:
    """The local queue that keeps what was delivered for a while: a broker refuses after the put has succeeded."""
    return f"RFHBRIDGE.SENT.{target}"


def state_queue_name(prefix: str, shard: int) -> str:
    """The queue there that says what a shard's channel has delivered; `prefix` is the target's `state_queue`."""
    return f"{prefix}.{shard}"


def outbound_channel(target: str, shard: int) -> str:
    """The channel that empties the transmission queue of a shard."""
    return f"{target}.OUT.{shard}"


def subscriber_channel(target: str) -> str:
    """The channel that gets the publications which the target's broker puts for the gateway."""
    return f"{target}.IN.SUBSCRIBER"


def reply_channel(target: str) -> str:
    """The channel that gets the broker's answers."""
    return f"{target}.IN.REPLY"


def channel_names(target: str, shards: int) -> tuple[str, ...]:
    """Every channel of a target."""
    outbound = (outbound_channel(target, shard) for shard in range(shards))
    return (*outbound, subscriber_channel(target), reply_channel(target))

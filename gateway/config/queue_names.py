"""Names of the gateway's queues, here and at a target, and the shard in which a client's messages wait."""

import zlib
from typing import Final

#: The queue on which the gateway gets its publications, here and at a target.
SUBSCRIBER_QUEUE: Final = "RFHBRIDGE.SUBSCRIBER"
#: The queue on which a broker answers the gateway, here and at a target.
REPLY_QUEUE: Final = "RFHBRIDGE.REPLY"


def shard_of(client: str, shards: int) -> int:
    """The shard of an MQTT client, from 0. It is always the same for the same number of shards."""
    return zlib.crc32(client.encode()) % shards


def transmission_queue_name(target: str, shard: int) -> str:
    """The local queue on which messages for one shard of a target wait."""
    return f"RFHBRIDGE.XMIT.{target}.{shard}"


def sent_queue_name(target: str) -> str:
    """The local queue that keeps delivered messages for a while, because a broker may refuse one after its put."""
    return f"RFHBRIDGE.SENT.{target}"


def state_queue_name(prefix: str, shard: int) -> str:
    """The queue at a target with the state of a shard's channel; `prefix` is the target's `state_queue`."""
    return f"{prefix}.{shard}"

"""Names of a target's channels, for the daemon, its channel process and commands that open no store."""


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

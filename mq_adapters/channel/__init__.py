"""Channels: messages between the gateway's store and another queue manager, each exactly once, through any outage.

Plain blocking code on the port (mq_adapters/queue_manager.py) on both sides. `Outbound` empties a transmission queue of
the store into the other queue manager, `Inbound` a queue there into the store. Each runs in a thread of its own:

    channel = Outbound(settings, connect_local=..., connect_remote=..., listener=...)
    channel.run(stop)        # returns when `stop` is set, the store has gone, or the channel must not go on

Messages move exactly once without XA. Outbound, the unit of work that puts a batch also replaces a message on a state
queue of the other side. After any doubt the channel reads that message again, behind a fence (in_doubt.py). Inbound,
the unit of work that stores a batch stores its MsgIds too. The channel drops a message that comes again with one of
these MsgIds.
"""

from mq_adapters.channel.in_doubt import StartAction
from mq_adapters.channel.inbound import Inbound
from mq_adapters.channel.local_state import LocalStates
from mq_adapters.channel.outbound import Outbound
from mq_adapters.channel.resolve import Resolution, ResolutionRefused, resolve
from mq_adapters.channel.retry import RetrySchedule
from mq_adapters.channel.settings import InboundSettings, OutboundSettings
from mq_adapters.channel.state_message import LocalState, RemoteState
from mq_adapters.channel.status import ChannelListener, ChannelProblem, ChannelState, ChannelStatus

__all__ = [
    "ChannelListener",
    "ChannelProblem",
    "ChannelState",
    "ChannelStatus",
    "Inbound",
    "InboundSettings",
    "LocalState",
    "LocalStates",
    "Outbound",
    "OutboundSettings",
    "RemoteState",
    "Resolution",
    "ResolutionRefused",
    "RetrySchedule",
    "StartAction",
    "resolve",
]

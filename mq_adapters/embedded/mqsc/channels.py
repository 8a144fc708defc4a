"""DISPLAY CHSTATUS, START, STOP and RESOLVE CHANNEL: the channels that a gateway runs, for its operator.

A queue manager without a gateway has no channels. The gateway makes its channels known in Objects.channels.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from mq_adapters.embedded.mqsc.display import Shown, matches
from mq_adapters.mqsc import MqscCommand

#: The attributes that DISPLAY CHSTATUS shows, by IBM MQ's names if it has them.
CHANNEL_KEYWORDS: Final = (
    "CHSTATUS",
    "CHLTYPE",
    "STATUS",
    "SINCE",
    "RQMNAME",
    "QMID",
    "QUEUE",
    "CURDEPTH",
    "CURBYTES",
    "BATCHES",
    "MSGS",
    "BYTES",
    "DEADMSGS",
    "DUPMSGS",
    "INDOUBT",
    "DOUBTMSGS",
    "REASON",
    "PROBLEM",
    "RETRYTIM",
    "RESOLVED",
)
#: ACTION of RESOLVE CHANNEL: the batch in doubt was delivered, it was not, or the channel begins anew.
RESOLUTIONS: Final = ("COMMIT", "BACKOUT", "RESET")
_VERBS: Final = ("START", "STOP", "RESOLVE")


class ChannelCommandRefused(Exception):
    """A command on a channel that is not carried out. The text says why, and what to do first."""


class ChannelAdministration(Protocol):
    """The runner of the channels. It accepts a command at once, and carries it out soon after."""

    def names(self) -> Iterable[str]: ...
    def shown(self, name: str) -> Shown:
        """Every keyword of CHANNEL_KEYWORDS for one channel."""
        ...

    def start(self, name: str) -> None: ...
    def stop(self, name: str) -> None: ...
    def resolve(self, name: str, resolution: str) -> None:
        """`resolution` is one of RESOLUTIONS. Raises ChannelCommandRefused if the channel runs."""
        ...


def statuses(channels: ChannelAdministration | None, pattern: str) -> list[Shown]:
    """The channels with that name, or that generic name. Raises ChannelCommandRefused if there is none."""
    names = () if channels is None else channels.names()
    found = [channels.shown(name) for name in sorted(names) if matches(name, pattern)] if channels is not None else []
    if not found:
        raise _not_found(pattern)
    return found


def carry_out(channels: ChannelAdministration | None, verb: str, name: str, command: MqscCommand) -> str:
    """START, STOP or RESOLVE of one channel; returns the answer. Raises ChannelCommandRefused."""
    if verb not in _VERBS:
        raise refusal(verb)
    if channels is None or name not in channels.names():
        raise _not_found(name)
    if verb == "RESOLVE":
        channels.resolve(name, _resolution(command))
        return f"AMQ8025I: Resolution of channel {name} accepted; see DISPLAY CHSTATUS({name}) RESOLVED."
    if command.parameters:
        raise ChannelCommandRefused(f"AMQ8405E: {command.parameters[0].keyword} is not supported here.")
    if verb == "START":
        channels.start(name)
        return f"AMQ8018I: Start of channel {name} accepted."
    channels.stop(name)
    return f"AMQ8019I: Stop of channel {name} accepted."


def refusal(verb: str) -> ChannelCommandRefused:
    """The refusal of a verb that no channel understands."""
    return ChannelCommandRefused(
        f"AMQ8405E: {verb} CHANNEL is not supported: the configuration has the channels; START, STOP and RESOLVE "
        "are, and DISPLAY CHSTATUS."
    )


def _resolution(command: MqscCommand) -> str:
    actions = [parameter for parameter in command.parameters if parameter.keyword == "ACTION"]
    if len(actions) != 1 or len(command.parameters) != 1 or actions[0].text not in RESOLUTIONS:
        raise ChannelCommandRefused(f"AMQ8405E: RESOLVE CHANNEL needs ACTION({'|'.join(RESOLUTIONS)}).")
    return actions[0].text


def _not_found(name: str) -> ChannelCommandRefused:
    return ChannelCommandRefused(
        f"AMQ8420I: Channel status of {name} not found: 'rfhbridge channel list' names those of a running gateway."
    )

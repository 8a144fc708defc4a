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
    """The channels with that name, or that generic name."""
    if channels is None:
        return []
    return [channels.shown(name) for name in sorted(channels.names()) if matches(name, pattern)]


def carry_out(channels: ChannelAdministration | None, verb: str, name: str, command: MqscCommand) -> str:
    """START, STOP or RESOLVE of one channel; returns the answer. Raises ChannelCommandRefused."""
    if verb not in _VERBS:
        raise refusal(verb)
    if channels is None:
        raise no_gateway(verb, name)
    if name not in channels.names():
        raise ChannelCommandRefused(f"AMQ8147E: There is no channel {name}.")
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


def no_gateway(verb: str, name: str) -> ChannelCommandRefused:
    """The refusal of a command that only a running gateway can carry out."""
    return ChannelCommandRefused(f"AMQ8405E: {verb} CHANNEL({name}) needs a running gateway, and none runs here.")


def no_status(channels: ChannelAdministration | None, pattern: str, *, is_defined: bool) -> ChannelCommandRefused:
    """The answer to DISPLAY CHSTATUS if no channel runs. `is_defined`: MQ clients have a channel of that name."""
    if channels is None:
        why = "no gateway runs here"
    elif is_defined:
        why = "no program is connected through it"
    elif not pattern.endswith("*"):
        why = "there is no such channel"
    elif pattern == "*":
        why = "the configuration names no target, and no program is connected"
    else:
        why = "no target has a channel of such a name, and no program is connected through one"
    return ChannelCommandRefused(f"AMQ8420I: Channel status of {pattern} not found: {why}")

"""DISPLAY CHSTATUS and CONN, START and STOP CHANNEL for server-connection channels: the MQ clients of a gateway.

A channel is an object, which DEFINE CHANNEL makes. It runs once for each connection. STOP ends its connections and
admits no more, until START or until the gateway starts again. The gateway makes its listeners known in
Objects.server_connections. Source: IBM MQ, "STOP CHANNEL", "DISPLAY CHSTATUS", "DISPLAY CONN".
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Protocol

from mq_adapters.embedded.mqsc.channels import ChannelAdministration, ChannelCommandRefused, no_gateway
from mq_adapters.embedded.mqsc.display import Shown
from mq_adapters.mqsc import MqscCommand

#: The attributes that DISPLAY CHSTATUS shows of each connection, by IBM MQ's names.
CONNECTION_KEYWORDS: Final = (
    "CHSTATUS",
    "CHLTYPE",
    "STATUS",
    "CONNAME",
    "MCAUSER",
    "RAPPLTAG",
    "CURSHCNV",
    "SINCE",
    "BYTSRCVD",
    "BYTSSENT",
    "MSGS",
    "SSLPEER",
)


#: The attributes that DISPLAY CONN shows of each program, by IBM MQ's names.
PROGRAM_KEYWORDS: Final = ("CONN", "TYPE", "CHANNEL", "CONNAME", "APPLTAG", "USERID", "UOWSTATE", "OBJECTS")


class StopMode(StrEnum):
    """MODE of STOP CHANNEL: after the call under way, at once, or without another word to the client."""

    QUIESCE = "QUIESCE"
    FORCE = "FORCE"
    TERMINATE = "TERMINATE"


class ServerConnectionAdministration(Protocol):
    """The listeners of MQ clients. They accept a command at once, and carry it out soon after."""

    def shown(self, name: str) -> Iterable[Shown]:
        """Every keyword of CONNECTION_KEYWORDS for each connection of one channel.

        A stopped channel without connections has one row, with the first three.
        """
        ...

    def programs(self) -> Iterable[Shown]:
        """Every keyword of PROGRAM_KEYWORDS for each connected program, the name in CONN first."""
        ...

    def start(self, name: str) -> None:
        """The channel admits connections again."""
        ...

    def stop(self, name: str, mode: StopMode) -> None:
        """The channel admits no connections, and those that it has end."""
        ...


def carry_out(
    connections: ServerConnectionAdministration | None,
    channels: ChannelAdministration | None,
    name: str,
    command: MqscCommand,
) -> str:
    """START or STOP of one channel; returns the answer. Raises ChannelCommandRefused.

    `channels` are those to targets. Every gateway has them, though there may be none.
    """
    if connections is None and channels is None:
        raise no_gateway(command.verb, name)
    if connections is None:
        raise ChannelCommandRefused(f"AMQ8405E: nothing listens for MQ clients; {name} needs an [[mq_listener]].")
    if command.verb == "START":
        _refuse(command, allowed=())
        connections.start(name)
        return f"AMQ8018I: Start of channel {name} accepted."
    if command.verb != "STOP":
        raise ChannelCommandRefused(
            f"AMQ8405E: {command.verb} CHANNEL is not for SVRCONN channels: START and STOP are."
        )
    connections.stop(name, _mode(command))
    return f"AMQ8019I: Stop of channel {name} accepted."


def _mode(command: MqscCommand) -> StopMode:
    _refuse(command, allowed=("MODE",))
    given = [each.text for each in command.parameters]
    if not given:
        return StopMode.QUIESCE
    if len(given) > 1 or given[0] not in list(StopMode):
        raise ChannelCommandRefused(f"AMQ8405E: STOP CHANNEL takes one MODE({'|'.join(StopMode)}).")
    return StopMode(given[0])


def _refuse(command: MqscCommand, *, allowed: tuple[str, ...]) -> None:
    for each in command.parameters:
        if each.keyword not in allowed:
            raise ChannelCommandRefused(f"AMQ8405E: {each.keyword} is not supported here.")

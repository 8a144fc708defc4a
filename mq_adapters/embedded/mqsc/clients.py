"""DISPLAY CHSTATUS, STOP and PURGE CHANNEL with CHLTYPE(MQTT): the MQTT clients of a gateway, for its operator.

IBM MQ's telemetry service takes the same commands. Its channel is the listener; here the channel is always MQTT. STOP
ends a client's connection, and PURGE ends its session too. PURGE with IDLE(seconds), which IBM MQ does not have, ends
the session only if the client has had no connection for so long. A queue manager without a gateway has no clients. The
gateway makes its clients known in Objects.clients. Source: IBM MQ, "DISPLAY CHSTATUS (MQTT)", "STOP CHANNEL (MQTT)",
"PURGE CHANNEL".
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Protocol

from mq_adapters.embedded.mqsc.channels import ChannelCommandRefused
from mq_adapters.embedded.mqsc.display import Shown
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.mqsc import MqscCommand, Parameter

#: The channel name that stands for every listener.
CHANNEL_NAME: Final = "MQTT"
#: The attributes that DISPLAY CHSTATUS shows, by IBM MQ's names if it has them.
CLIENT_KEYWORDS: Final = (
    "CHSTATUS",
    "CHLTYPE",
    "CLIENTID",
    "STATUS",
    "PROTOCOL",
    "CLIENTUSER",
    "LISTENER",
    "CONNAME",
    "SINCE",
    "AUTHEND",
    "KAINT",
    "EXPIRY",
    "EXPIRES",
    "INDOUBTIN",
    "INDOUBTOUT",
    "PENDING",
    "PENDBYTE",
    "SUBCOUNT",
    "SUBS",
    "WILL",
    "WILLTOPIC",
    "WILLQOS",
    "WILLRETN",
    "WILLBYTE",
    "WILLDLAY",
)
#: The most clients in one answer without CLIENTID. A client takes about 600 bytes in the memory of the reader.
MAXIMUM_SHOWN: Final = 1_000
#: Digits of the longest IDLE: 300 years.
_LONGEST_NUMBER: Final = 10
_ANY_CHANNEL: Final = (CHANNEL_NAME, "*")
_OWN_KEYWORDS: Final = ("CHLTYPE", "CLIENTID")


class ClientAdministration(Protocol):
    """The server of MQTT clients. It accepts a command at once, and has it on the disk soon after."""

    def clients(self) -> Iterator[str]:
        """The client identifiers of all sessions."""
        ...

    def has(self, client: str) -> bool:
        """Whether a client has a session."""
        ...

    def shown(self, client: str, *, subscriptions: bool) -> Shown:
        """Every keyword of CLIENT_KEYWORDS for one client; SUBS only if `subscriptions` asks for it."""
        ...

    def is_idle(self, client: str, for_s: int) -> bool:
        """Whether a client has had no connection for so many seconds."""
        ...

    def disconnect(self, client: str, act: OperatorsAct) -> bool:
        """Ends the client's connection, but not its session; False if it has no connection."""
        ...

    def expire(self, client: str, act: OperatorsAct) -> None:
        """Ends the client's session, and its connection first."""
        ...


def are_meant(command: MqscCommand) -> bool:
    """Whether a command about channels is about MQTT clients."""
    return any(each.keyword == "CHLTYPE" and each.text == CHANNEL_NAME for each in command.parameters)


def other_parameters(command: MqscCommand) -> tuple[Parameter, ...]:
    """The parameters except those that name the clients."""
    return tuple(each for each in command.parameters if each.keyword not in _OWN_KEYWORDS)


def statuses(clients: ClientAdministration | None, name: str, command: MqscCommand) -> list[Shown]:
    """The client of a command, or all clients.

    Raises ChannelCommandRefused if there is none, or if there are too many.
    """
    client = _client(command)
    if clients is None or name not in _ANY_CHANNEL or (client is not None and not clients.has(client)):
        raise _not_found(clients, client)
    if client is not None:
        return [clients.shown(client, subscriptions=True)]
    found = sorted(clients.clients())
    if not found:
        raise _not_found(clients, client)
    if len(found) > MAXIMUM_SHOWN:
        raise ChannelCommandRefused(f"AMQ8405E: there are {len(found)} clients: name one by CLIENTID('...').")
    return [clients.shown(each, subscriptions=False) for each in found]


def carry_out(
    clients: ClientAdministration | None, verb: str, name: str, command: MqscCommand, act: OperatorsAct
) -> str:
    """STOP or PURGE of one client; returns the answer. Raises ChannelCommandRefused."""
    client = _client(command)
    if verb not in ("STOP", "PURGE"):
        raise refusal(verb)
    if client is None:
        raise ChannelCommandRefused(f"AMQ8405E: {verb} CHANNEL with CHLTYPE(MQTT) needs CLIENTID('...').")
    idle_s = _idle_s(command) if verb == "PURGE" else None
    other = [each for each in other_parameters(command) if idle_s is None or each.keyword != "IDLE"]
    if other:
        raise ChannelCommandRefused(f"AMQ8405E: {other[0].keyword} is not supported here.")
    if clients is None or name not in _ANY_CHANNEL or not clients.has(client):
        raise _not_found(clients, client)
    if idle_s is not None and not clients.is_idle(client, idle_s):
        raise ChannelCommandRefused(f"AMQ9533W: Client '{client}' was connected in the last {idle_s} seconds.")
    if verb == "PURGE":
        clients.expire(client, replace(act, subject=client))
        return f"AMQ8019I: End of the session of client '{client}' accepted."
    if not clients.disconnect(client, replace(act, subject=client)):
        raise ChannelCommandRefused(f"AMQ9533W: Client '{client}' is not connected.")
    return f"AMQ8019I: Stop of client '{client}' accepted."


def refusal(verb: str) -> ChannelCommandRefused:
    """The refusal of a verb that does nothing to clients."""
    return ChannelCommandRefused(f"AMQ8405E: {verb} CHANNEL with CHLTYPE(MQTT) is not supported: STOP and PURGE are.")


def _client(command: MqscCommand) -> str | None:
    """CLIENTID of a command, exactly as written; None if it has none."""
    named = [each for each in command.parameters if each.keyword == "CLIENTID"]
    if not named:
        return None
    if len(named) > 1 or len(named[0].items or ()) != 1:
        raise ChannelCommandRefused("AMQ8405E: CLIENTID names one client: CLIENTID('...').")
    return (named[0].items or ("",))[0]


def _idle_s(command: MqscCommand) -> int | None:
    """IDLE of a command, in seconds; None if it has none."""
    named = [each for each in command.parameters if each.keyword == "IDLE"]
    if not named:
        return None
    digits = named[0].text or ""
    if len(named) > 1 or not (digits.isascii() and digits.isdigit()) or len(digits) > _LONGEST_NUMBER:
        raise ChannelCommandRefused("AMQ8405E: IDLE is a number of seconds: IDLE(3600).")
    return int(digits)


def _not_found(clients: ClientAdministration | None, client: str | None) -> ChannelCommandRefused:
    named = "" if client is None else f" '{client}'"
    nobody = "no gateway runs here, and only a running one can be asked"
    why = nobody if clients is None else "a running gateway has one for each session"
    return ChannelCommandRefused(f"AMQ8420I: MQTT client{named} not found: {why}.")

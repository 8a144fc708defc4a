"""`rfhbridge channel`: the channels of a running gateway, to its targets and for MQ programs, for the operator."""

import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.connection import connected
from gateway.cli.examples import epilog
from gateway.cli.settings_options import ConfigOption, DataOption, JsonOption, folder_with_store
from gateway.cli.terminal import Json, write_json, write_line, write_table
from mq_adapters.mqsc import MqscAnswer, quoted, read_command
from mq_adapters.queue_manager import QueueAdministration

#: Seconds for which `stop` and `resolve` wait for their effect, and seconds between two looks.
_WAIT_S: Final = 15.0
_LOOK_AGAIN_S: Final = 0.1
#: The attributes that DISPLAY CHSTATUS shows of a channel to a target, by their names in `--json`.
_OF_TARGETS: Final = {
    "channel": "CHSTATUS",
    "type": "CHLTYPE",
    "state": "STATUS",
    "since": "SINCE",
    "queue_manager": "RQMNAME",
    "queue_manager_identifier": "QMID",
    "queue": "QUEUE",
    "waiting_messages": "CURDEPTH",
    "waiting_bytes": "CURBYTES",
    "batch": "BATCHES",
    "messages": "MSGS",
    "bytes": "BYTES",
    "dead_letters": "DEADMSGS",
    "repeated_messages": "DUPMSGS",
    "is_in_doubt": "INDOUBT",
    "messages_in_doubt": "DOUBTMSGS",
    "reason_code": "REASON",
    "problem": "PROBLEM",
    "next_retry": "RETRYTIM",
    "resolution": "RESOLVED",
}
#: The same of a connection of MQ programs.
_OF_PROGRAMS: Final = {
    "channel": "CHSTATUS",
    "type": "CHLTYPE",
    "state": "STATUS",
    "since": "SINCE",
    "peer": "CONNAME",
    "user": "MCAUSER",
    "application": "RAPPLTAG",
    "certificate": "SSLPEER",
    "conversations": "CURSHCNV",
    "calls": "MSGS",
    "received_bytes": "BYTSRCVD",
    "sent_bytes": "BYTSSENT",
}
_NUMBERS: Final = frozenset(
    (
        "waiting_messages",
        "waiting_bytes",
        "batch",
        "messages",
        "bytes",
        "dead_letters",
        "repeated_messages",
        "reason_code",
        "conversations",
        "calls",
        "received_bytes",
        "sent_bytes",
    )
)
#: The columns of `channel list`, with their headings.
_COLUMNS_OF_TARGETS: Final = {
    "channel": "channel",
    "state": "state",
    "queue_manager": "queue manager",
    "waiting_messages": "waiting",
    "waiting_bytes": "bytes",
    "is_in_doubt": "in doubt",
    "problem": "problem",
}
_COLUMNS_OF_PROGRAMS: Final = {
    "channel": "channel",
    "state": "state",
    "application": "application",
    "user": "user",
    "peer": "peer",
    "conversations": "conversations",
    "calls": "calls",
}
#: The name for every channel, and the answer of DISPLAY CHSTATUS if there is none.
_ALL: Final = "*"
_AT_REST: Final = ("stopped", "failed")
_NOT_FOUND: Final = "AMQ8420I"
_PROGRAM: Final = "program"
_TYPES: Final = {"SDR": "outbound", "RCVR": "inbound", "SVRCONN": _PROGRAM}

ChannelName = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="Name of the channel as in `channel list`, for example CENTRAL.OUT.0.")
]
Status = dict[str, Json]

channel = typer.Typer(
    help="Look after the channels of a running gateway.",
    epilog=epilog("rfhbridge channel list", "rfhbridge channel stop CENTRAL.OUT.0"),
    rich_markup_mode=None,
)


class Decision(StrEnum):
    """An operator's decision about a batch that the channel cannot decide itself."""

    COMMIT = "commit"
    BACKOUT = "backout"
    RESET = "reset"


@channel.command("list", epilog=epilog("rfhbridge channel list", "rfhbridge channel list --json"))
def list_channels(data: DataOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the channels, waiting messages and problems.

    A channel for MQ programs is listed once for each connection, and once if it is stopped.
    """
    with connected(folder_with_store(config, data)) as queue_manager:
        answer = _ask(queue_manager, _ALL)
    found = _statuses_of(answer)
    if as_json:
        write_json(found)
        return
    if not found:
        write_line(f"no channel runs, because {answer.lines[0].partition('not found: ')[2]}")
        return
    of_programs = [status for status in found if status["type"] == _PROGRAM]
    to_targets = [status for status in found if status["type"] != _PROGRAM]
    if to_targets:
        _write_channels(to_targets, _COLUMNS_OF_TARGETS)
    if to_targets and of_programs:
        write_line("")
    if of_programs:
        _write_channels(of_programs, _COLUMNS_OF_PROGRAMS)


@channel.command(epilog=epilog("rfhbridge channel show CENTRAL.OUT.0", "rfhbridge channel show CENTRAL.OUT.0 --json"))
def show(name: ChannelName, data: DataOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show one channel, and what to do about its problem.

    Of a channel for MQ programs it shows every connection; with --json as a list.
    """
    with connected(folder_with_store(config, data)) as queue_manager:
        found = statuses(queue_manager, name)
    if as_json:
        write_json([*found] if found[0]["type"] == _PROGRAM else found[0])
        return
    for number, status in enumerate(found):
        if number:
            write_line("")
        width = max(map(len, status))
        for key, value in status.items():
            write_line(f"{key.replace('_', ' '):<{width}}  {_words(value)}".rstrip())


@channel.command(epilog=epilog("rfhbridge channel start CENTRAL.OUT.0"))
def start(name: ChannelName, data: DataOption = None, config: ConfigOption = None) -> None:
    """Start a channel.

    It starts at once, and at every start of the gateway. Use this after 'channel stop', or after solving a problem that
    the channel cannot solve itself. A channel for MQ programs admits programs again.
    """
    with connected(folder_with_store(config, data)) as queue_manager:
        _carry_out(queue_manager, f"START CHANNEL({quoted(name)})")
    write_line(f"started {name}")


@channel.command(epilog=epilog("rfhbridge channel stop CENTRAL.OUT.0"))
def stop(name: ChannelName, data: DataOption = None, config: ConfigOption = None) -> None:
    """Stop a channel.

    Messages for a target wait, and its channel stays stopped after a restart of the gateway. A channel for MQ programs
    ends its connections and admits no program until 'channel start' or a restart of the gateway.
    """
    with connected(folder_with_store(config, data)) as queue_manager:
        _carry_out(queue_manager, f"STOP CHANNEL({quoted(name)})")
        is_at_rest = _wait_for(lambda: all(each["state"] in _AT_REST for each in statuses(queue_manager, name)))
        is_of_programs = not is_at_rest and _status(queue_manager, name)["type"] == _PROGRAM
    if not is_at_rest:
        why = "a call of a program is under way" if is_of_programs else "the target does not answer"
        raise CommandFailed(f"{name} has not stopped yet: {why} (see 'rfhbridge channel show {name}')")
    write_line(f"stopped {name}")


@channel.command(epilog=epilog("rfhbridge channel resolve CENTRAL.OUT.0 --action commit"))
def resolve(
    name: ChannelName,
    action: Annotated[Decision, typer.Option("--action", help="commit, backout or reset, as above.")],
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Decide about a batch in doubt.

    Stop the channel first. commit: the batch was delivered, so its messages are removed here. backout: it was not
    delivered, so its messages are delivered again. reset: no batch is in doubt, and the channel ignores the message on
    the target's state queue.
    """
    with connected(folder_with_store(config, data)) as queue_manager:
        _carry_out(queue_manager, f"RESOLVE CHANNEL({quoted(name)}) ACTION({action.value})")
        _wait_for(lambda: bool(_status(queue_manager, name)["resolution"]))
        outcome, _, words = str(_status(queue_manager, name)["resolution"]).partition(": ")
    if outcome != "done":
        raise CommandFailed(f"{name} was not resolved: {words or 'its process does not answer'}")
    write_line(f"resolved {name}: {words}")


# -- inside ------------------------------------------------------------------------------------------------------------


def _carry_out(queue_manager: QueueAdministration, command: str) -> tuple[str, ...]:
    """The answer to an MQSC command. CommandFailed with the answer if it was refused."""
    return _lines_of(queue_manager.mqsc(command))


def _lines_of(answer: MqscAnswer) -> tuple[str, ...]:
    if not answer.succeeded:
        raise CommandFailed(" ".join(answer.lines))
    return answer.lines


def _status(queue_manager: QueueAdministration, name: str) -> Status:
    return statuses(queue_manager, name)[0]


def statuses(queue_manager: QueueAdministration, pattern: str) -> list[Status]:
    """Channels as DISPLAY CHSTATUS shows them. For `*` the list may be empty."""
    answer = _ask(queue_manager, pattern)
    if pattern != _ALL:
        _lines_of(answer)
    return _statuses_of(answer)


def _ask(queue_manager: QueueAdministration, pattern: str) -> MqscAnswer:
    return queue_manager.mqsc(f"DISPLAY CHSTATUS({quoted(pattern)})")


def _statuses_of(answer: MqscAnswer) -> list[Status]:
    """One list of attributes stands behind each heading. The list is empty if no channel runs."""
    if not answer.succeeded and answer.lines[0].startswith(_NOT_FOUND):
        return []
    shown: list[list[str]] = []
    for line in _lines_of(answer):
        if line.startswith(" "):
            shown[-1].append(line)
        else:
            shown.append([])
    return [_status_of(lines) for lines in shown]


def _status_of(lines: list[str]) -> Status:
    """The attributes of one channel, which are written like parameters of an MQSC command."""
    parameters = read_command("DISPLAY CHSTATUS " + " ".join(lines)).parameters
    values = {parameter.keyword: (parameter.items or ("",))[0] for parameter in parameters}
    kind = _TYPES[values["CHLTYPE"]]
    fields = _OF_PROGRAMS if kind == _PROGRAM else _OF_TARGETS
    status: Status = {name: values.get(keyword, "").strip() for name, keyword in fields.items()}
    status |= {name: int(values.get(keyword, "0")) for name, keyword in fields.items() if name in _NUMBERS}
    status["type"] = kind
    status["state"] = values["STATUS"].lower()
    if "is_in_doubt" in status:
        status["is_in_doubt"] = values["INDOUBT"] == "YES"
    return status


def _write_channels(channels: Sequence[Status], columns: Mapping[str, str]) -> None:
    write_table([*columns.values()], [[_words(status[column]) for column in columns] for status in channels])


def _wait_for(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true in time."""
    deadline_s = time.monotonic() + _WAIT_S
    while not (holds := condition()) and time.monotonic() < deadline_s:
        time.sleep(_LOOK_AGAIN_S)
    return holds


def _words(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)

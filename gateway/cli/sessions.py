"""`rfhbridge sessions`: the MQTT sessions of a gateway, and registrations without a session."""

import time
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.connection import connected
from gateway.cli.durations import seconds_of
from gateway.cli.examples import epilog
from gateway.cli.files import read_input
from gateway.cli.session_status import carry_out, lines_of, purge_idle, session_status
from gateway.cli.settings_options import (
    ConfigOption,
    DataOption,
    JsonOption,
    check_store,
    folder_with_store,
    settings_for,
)
from gateway.cli.terminal import Json, counted, write_json, write_line, write_table
from gateway.config import Settings, TargetSettings
from gateway.mqtt.levels import LEVELS
from mq_adapters.queue_manager import QueueAdministration
from mq_adapters.reasons import QueueManagerError, ReasonCode

_US: Final = 1_000_000
_DISPLAY: Final = "DISPLAY SUB(*) ALL"
#: The answer to DISPLAY SUB without a subscription. It stands for an empty list.
_NONE_FOUND: Final = "AMQ8147"


def client_identifier(text: str) -> str:
    """A name that a session can have. A client that sends an empty one gets another name."""
    if not text:
        raise typer.BadParameter("a client identifier has at least one character (see 'rfhbridge sessions list')")
    return text


_CLIENT_HELP: Final = "Client identifier of the session, for example pump-7 (see sessions list)."
Client = Annotated[str, typer.Argument(metavar="CLIENT", callback=client_identifier, help=_CLIENT_HELP)]
OptionalClient = Annotated[
    str | None,
    typer.Argument(
        metavar="CLIENT",
        callback=lambda text: None if text is None else client_identifier(text),
        help=f"{_CLIENT_HELP} Leave it out with --idle.",
    ),
]
sessions = typer.Typer(
    help="Look after the MQTT sessions of a gateway.",
    epilog=epilog("rfhbridge sessions list", "rfhbridge sessions show pump-7"),
    rich_markup_mode=None,
)


@sessions.command("list", epilog=epilog("rfhbridge sessions list", "rfhbridge sessions list --json"))
def list_sessions(data: DataOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the sessions, and the subscriptions of each at targets."""
    from gateway.operations.sweep import sessions_of

    folder = folder_with_store(config, data)
    _, found = sessions_of(folder)
    runs = _gateway_runs(folder)  # without a gateway, the store has the sessions as they were when it stopped
    if as_json:
        write_json(
            [
                {
                    "client": each.client,
                    "connected": each.is_connected and runs,
                    "version": LEVELS[each.level].version,
                    "user": each.user,
                    "correl_id": each.correl_id.hex(),
                    "targets": {destination: list(patterns) for destination, patterns in each.patterns.items()},
                }
                for each in found
            ]
        )
        return
    rows = [
        (
            each.client,
            "yes" if each.is_connected and runs else "no",
            LEVELS[each.level].version,
            each.user or "-",
            each.correl_id.hex(),
            ", ".join(f"{key}: {len(those)}" for key, those in each.patterns.items()),
        )
        for each in found
    ]
    columns = ("client", "connected", "version", "user", "correlation identifier", "patterns at targets")
    write_table(columns, rows)


@sessions.command(epilog=epilog("rfhbridge sessions show pump-7", "rfhbridge sessions show pump-7 --json"))
def show(client: Client, data: DataOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show a session of a running gateway.

    It shows the connection, subscriptions and will, the waiting messages, and the messages on their way to and from the
    client.
    """
    with connected(folder_with_store(config, data)) as queue_manager:
        status = session_status(queue_manager, client)
    if as_json:
        write_json(status)
        return
    for line in lines_of(status):
        write_line(line)


@sessions.command(epilog=epilog("rfhbridge sessions disconnect pump-7", "rfhbridge sessions disconnect pump-7 --json"))
def disconnect(
    client: Client, data: DataOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """End a client's connection; its session stays.

    A client of MQTT 5 gets reason code 98 hex (administrative action). The client's will is published. The client may
    connect again; 'rfhbridge user' and the access list can prevent that.
    """
    _act("STOP", "disconnected", client, folder_with_store(config, data), as_json=as_json)


@sessions.command(
    epilog=epilog(
        "rfhbridge sessions expire pump-7",
        "rfhbridge sessions expire --idle 30d --user plant --dry-run",
        "rfhbridge sessions expire --idle 30d --json",
    )
)
def expire(
    client: OptionalClient = None,
    idle_s: Annotated[
        int | None,
        typer.Option(
            "--idle",
            parser=seconds_of,
            metavar="TIME",
            help="End all sessions without a connection for this long: 30d, 12h, 45m or 90s.",
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="End only the sessions of this user.")
    ] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only show which sessions would end.")] = False,
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a session and its connection, or many idle sessions.

    All its subscriptions are deregistered, and its will is published. Messages that wait for it or are on their way to
    it are destroyed, each with a record in the audit trail.
    """
    folder = folder_with_store(config, data)
    if idle_s is not None and client is None:
        _expire_idle(folder, idle_s, user, dry=dry, as_json=as_json)
    elif client is None or idle_s is not None or user is not None or dry:
        raise typer.BadParameter("give either CLIENT or --idle; --user and --dry-run belong to --idle")
    else:
        _act("PURGE", "expired", client, folder, as_json=as_json)


@sessions.command(
    epilog=epilog(
        "rfhbridge sessions sweep --dry-run",
        "echo 'DISPLAY SUB(*) ALL' | runmqsc QM1 | rfhbridge sessions sweep --registrations - --config rfhbridge.toml",
    )
)
def sweep(
    registrations: Annotated[
        str | None,
        typer.Option("--registrations", metavar="FILE|-", help="Output of DISPLAY SUB(*) ALL at a target."),
    ] = None,
    target_name: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="TARGET", help="Target that wrote the output; needed if there are several targets."
        ),
    ] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only show which registrations would end.")] = False,
    as_json: JsonOption = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """End registrations without a session.

    Without options the command looks at the embedded broker. It cannot ask the broker of a target, so --registrations
    names a file with that broker's registrations. The command ends only registrations with a queue of the gateway. For
    a target, it puts a DeregSub for each on the transmission queue.
    """
    from gateway.operations.sweep import (
        NoRegistrations,
        end_at_target,
        groups_of,
        registrations_in,
        sessions_of,
        without_session,
    )

    settings = settings_for(config, data)
    check_store(settings.data)
    if registrations is None and target_name is not None:
        raise typer.BadParameter("give the registrations of the target with --registrations", param_hint="'--target'")
    target = None if registrations is None else _target(settings, target_name)
    with connected(settings.data) as queue_manager:
        lines = _own_registrations(queue_manager) if registrations is None else _lines(registrations)
        queue_name = settings.subscribe.queue if target is None else target.subscriber_queue
        try:
            found = tuple(registrations_in(lines))
        except NoRegistrations as error:
            raise CommandFailed(str(error)) from None
        incarnation, known = sessions_of(settings.data)
        orphans = without_session(found, queue_name, (*known, *groups_of(settings.data)))
        if orphans and not dry and target is None:
            for orphan in orphans:
                queue_manager.mqsc(f"DELETE SUB SUBID('{orphan.sub_id}')")
        elif orphans and not dry and target is not None:
            end_at_target(queue_manager, settings, target, orphans, incarnation=incarnation)
    if as_json:
        ended: list[Json] = [{"topic": each.topic, "correl_id": each.correl_id} for each in orphans]
        write_json({"dry_run": dry, "registrations": len(found), "sessions": len(known), "ended": ended})
        return
    for orphan in orphans:
        write_line(f"{orphan.correl_id} {orphan.topic}")
    verb = "would end" if dry else "ended"
    write_line(f"{verb} {counted(len(orphans), 'registration')} of {len(found)}; sessions: {len(known)}")


def _act(verb: str, done: str, client: str, folder: Path, *, as_json: bool) -> None:
    with connected(folder) as queue_manager:
        carry_out(queue_manager, verb, client)
    if as_json:
        write_json({"client": client, "done": done})
    else:
        write_line(f"{done} {client}")


def _expire_idle(folder: Path, idle_s: int, user: str | None, *, dry: bool, as_json: bool) -> None:
    """Ends the sessions without a connection for so long. The gateway looks again at each, which may be back by now."""
    from gateway.operations.sweep import sessions_of

    before_us = time.time_ns() // 1_000 - idle_s * _US
    _, known = sessions_of(folder)
    found = [
        each.client
        for each in known
        if not each.is_connected and 0 < each.parted_us <= before_us and user in (None, each.user)
    ]
    ended = found
    if found and not dry:
        with connected(folder) as queue_manager:
            ended = [client for client in found if purge_idle(queue_manager, client, idle_s)]
    if as_json:
        write_json({"dry_run": dry, "sessions": len(known), "expired": list[Json](ended)})
        return
    for client in ended:
        write_line(client)
    write_line(f"{'would end' if dry else 'ended'} {counted(len(ended), 'session')} of {len(known)}")


def _gateway_runs(folder: Path) -> bool:
    """Whether any gateway serves the data folder, even that of another user."""
    from mq_adapters.embedded.socket.socket_file import connected_socket

    try:
        connected_socket(folder).close()
    except QueueManagerError as error:
        return error.reason_code != ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE
    return True


def _target(settings: Settings, name: str | None) -> TargetSettings:
    """The target of that name, or the only one."""
    found = [target for target in settings.target if name in (None, target.name)]
    if len(found) != 1:
        if not settings.target:
            raise typer.BadParameter("the configuration has no target; name another one", param_hint="'--config'")
        known = ", ".join(target.name for target in settings.target)
        raise typer.BadParameter(f"name one of the configuration's targets: {known}", param_hint="'--target'")
    return found[0]


def _own_registrations(queue_manager: QueueAdministration) -> tuple[str, ...]:
    answer = queue_manager.mqsc(_DISPLAY)
    if answer.succeeded or answer.lines[0].startswith(_NONE_FOUND):
        return answer.lines if answer.succeeded else ()
    raise CommandFailed(" ".join(answer.lines))


def _lines(name: str) -> list[str]:
    return read_input(name).decode(errors="replace").splitlines()

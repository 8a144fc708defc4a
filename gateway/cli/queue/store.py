"""`rfhbridge queue verify`, `backup`, `compact` and `accept-rollback`: the store behind the queues."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.application import CommandFailed, ExitCode
from gateway.cli.connection import connected, tell_act
from gateway.cli.settings_options import (
    ConfigOption,
    DataOption,
    JsonOption,
    check_store,
    folder_with_store,
    settings_for,
)
from gateway.cli.terminal import write_json, write_line
from mq_adapters.queue_manager import Compaction, QueueAdministration


def verify(
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    sets_aside: Annotated[
        bool, typer.Option("--set-aside", help="Take damaged messages off their queues; the gateway must be stopped.")
    ] = False,
) -> None:
    """Check the store: its file, checksums and agreements.

    A gateway may be running. With --set-aside damaged messages leave their queues; they stay in the store's file, in
    its table damaged. Exit code 1 if something is wrong.
    """
    from gateway.operations.rollback import verify as verify_store
    from mq_adapters.embedded.store.verification import set_aside

    folder = folder_with_store(config, data)
    moved = set_aside(folder) if sets_aside else ()
    if moved:
        reason = f"in table damaged of the store: {'; '.join(moved)}"
        tell_act(folder, "queue verify --set-aside", messages=len(moved), reason=reason)
    found = verify_store(folder)
    if as_json:
        write_json(
            {
                "layout_version": found.layout_version,
                "queues": found.queues,
                "messages": found.messages,
                "count": found.count,
                "findings": found.findings,
                "set_aside": moved,
            }
        )
    else:
        for sentence in moved:
            write_line(f"set aside: {sentence}")
        for finding in found.findings:
            write_line(finding)
        verdict = "the store is sound" if found.is_sound else f"the store is not sound, findings: {found.count}"
        write_line(f"layout {found.layout_version}, queues {found.queues}, messages {found.messages}: {verdict}")
    if not found.is_sound:
        raise typer.Exit(ExitCode.FAILED)


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file for the copy.")],
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy the store to a file while it is in use.

    To restore the copy, put it into an empty data folder as queue_manager.sqlite. Then accept that later messages are
    missing: rfhbridge queue accept-rollback.
    """
    from mq_adapters.embedded.store.backup import back_up

    found = back_up(folder_with_store(config, data), file)
    write_line(f"backed up {found.queues} queues and {found.messages} messages to {file}")
    if not found.is_sound:
        raise CommandFailed(f"the store is not sound, findings: {found.count} (see 'rfhbridge queue verify')")


def accept_rollback(
    data: DataOption = None,
    config: ConfigOption = None,
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    is_forced: Annotated[
        bool,
        typer.Option(
            "--force", help="Accept it although nothing in the data folder shows it: the whole folder went back."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Go on with a store that went back.

    Restore newer files first, if there are any. Everything in the store stays. A new incarnation begins, so no number
    and no MsgId is used a second time, and messages that a target has taken are not sent again. The trail records the
    loss, and the person who accepted it. The gateway must be stopped.
    """
    from gateway.operations.rollback import accept, contradictions
    from mq_adapters.embedded.socket.peer import own_user

    settings = settings_for(config, data)
    found = contradictions(settings.data)
    if not found:
        check_store(settings.data)
    if not found and not is_forced:
        raise CommandFailed(
            "nothing in the data folder shows that the store went back (--force, if you know that it did)"
        )
    found = found or ("the operator says that the whole data folder went back",)
    _confirm_rollback(found, is_sure=is_sure)
    done = accept(settings.data, operator=own_user(), findings=found, is_audited=settings.audit.enabled)
    if as_json:
        write_json(
            {
                "accepted": found,
                "incarnation_before": done.before.incarnation.hex(),
                "incarnation": done.incarnation.hex(),
                "kept_journal": done.kept_journal,
            }
        )
        return
    for finding in found:
        write_line(f"accepted: {finding}")
    if done.kept_journal:
        write_line(f"the damaged journal is kept as {done.kept_journal}")
    follows = f"incarnation {done.incarnation.hex()} follows {done.before.incarnation.hex()}"
    write_line(f"{follows}: the gateway can be started")


def _confirm_rollback(found: tuple[str, ...], *, is_sure: bool) -> None:
    """Asks on a terminal. Elsewhere --yes is needed."""
    if is_sure:
        return
    for finding in found:
        write_line(finding)
    if not sys.stdin.isatty():
        raise CommandFailed("not done: this gives the missing messages up for good (--yes does it)")
    if not typer.confirm("Give up the missing messages for good?"):
        raise CommandFailed("nothing was changed")


def compact(
    as_json: JsonOption = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Give free room inside the store back to the disk.

    A gateway may be running; it works between the steps. A step needs a few megabytes of the disk for a moment. Error
    2056 says how many are missing. The first time, the command writes the store of an earlier version anew. That needs
    as much room as its messages. If they have more than 64 MiB, the gateway must be stopped (error 2042).
    """
    with connected(folder_with_store(config, data)) as queue_manager:
        before, after = _run(queue_manager)
    given_back = max(0, before.size_bytes - after.size_bytes)
    if as_json:
        write_json({"given_back_bytes": given_back, "size_bytes": after.size_bytes, "free_bytes": after.free_bytes})
    else:
        write_line(f"gave {given_back} bytes back to the disk; the store has {after.size_bytes}")


def _run(queue_manager: QueueAdministration) -> tuple[Compaction, Compaction]:
    """The store before and after, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        before = step = queue_manager.compaction()
        task = progress.add_task("giving back", total=before.free_bytes)
        while not step.is_done:
            step = queue_manager.compact_some()
            progress.update(task, completed=max(0, before.free_bytes - step.free_bytes))
    return before, step

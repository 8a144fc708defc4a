"""`rfhbridge queue compact`: room inside the store goes back to the disk."""

from typing import Annotated

import typer

from gateway.cli.connection import connected
from gateway.cli.settings_options import ConfigOption, DataOption, folder_with_store
from gateway.cli.terminal import write_json, write_line
from mq_adapters.queue_manager import Compaction, QueueAdministration


def compact(
    as_json: Annotated[bool, typer.Option("--json", help="For a program: JSON.")] = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Give the room that the store has inside back to the disk.

    A gateway may be running: it goes on between the steps. What is moved needs a few megabytes for a moment; error 2056
    says how many are missing. A store that an earlier version made is written anew the first time, which needs as much
    room as its messages; past 64 MiB of them the gateway must be stopped (error 2042).
    """
    with connected(folder_with_store(config, data)) as queue_manager:
        before, after = _run(queue_manager)
    given_back = max(0, before.size_bytes - after.size_bytes)
    if as_json:
        write_json({"given_back_bytes": given_back, "size_bytes": after.size_bytes, "free_bytes": after.free_bytes})
    else:
        write_line(f"gave {given_back} bytes back to the disk; the store has {after.size_bytes}")


def _run(queue_manager: QueueAdministration) -> tuple[Compaction, Compaction]:
    """The store before and after, with a progress bar where a person looks on."""
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

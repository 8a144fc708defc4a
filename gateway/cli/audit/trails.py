"""Which trails an audit command reads: of data folders (`--data`, repeated), or folders that are trails (`--trail`)."""

from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.audit.pending_notes import export_pending
from gateway.cli.settings_options import data_folder, settings_for
from spark_audit.options import DATA, TRAIL

#: The data folder where neither data folders nor trails are named.
CONFIGURED: Final = "the configured folder, var"

DataFoldersOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--data",
        parser=data_folder,
        metavar="DIR",
        help=f"{DATA.help} Default: {CONFIGURED}.",
    ),
]
TrailFoldersOption = Annotated[
    list[Path] | None,
    typer.Option("--trail", parser=data_folder, metavar="DIR", help=TRAIL.help),
]


def trail_folders(data: list[Path] | None, trails: list[Path] | None, config: Path | None) -> tuple[Path, ...]:
    """The folders of the trails; what waits on the audit queues of data folders is written to theirs first.

    Raises CommandFailed where a folder is not there, or is named twice.
    """
    from gateway.audit_trail.exporter import TRAIL_FOLDER

    folders = tuple(trails or ())
    for folder in data_folders(data, trails, config):
        export_pending(folder)
        folders += (folder / TRAIL_FOLDER,)
    return folders


def data_folders(data: list[Path] | None, trails: list[Path] | None, config: Path | None) -> tuple[Path, ...]:
    """The data folders that are named; the configured one where neither they nor trails are. Raises CommandFailed."""
    named = tuple(data or (() if trails else (settings_for(config, None).data,)))
    _check_there(named, "data folder", "name the gateway's with --data")
    _check_there(tuple(trails or ()), "trail", "name a folder of segments with --trail")
    return named


def _check_there(folders: tuple[Path, ...], noun: str, what_to_do: str) -> None:
    for folder in folders:
        if not folder.is_dir():
            raise CommandFailed(f"there is no {noun} {folder} ({what_to_do})")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise CommandFailed(f"a {noun} is named twice (name each once)")

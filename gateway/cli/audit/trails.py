"""The trails that an audit command reads: those of data folders (`--data`), or folders of segments (`--trail`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.audit.pending_notes import export_pending
from gateway.cli.settings_options import folder_here, settings_for
from spark_audit.location import UnknownLocation, local_path
from spark_audit.options import DATA, TRAIL

#: The data folder if neither data folders nor trails are named.
CONFIGURED: Final = "the configured folder, var"


def location(text: str) -> str:
    """The path of a folder of this machine, or a URI of another one. An empty text is an error."""
    try:
        here = local_path(text)
    except UnknownLocation as error:
        raise typer.BadParameter(str(error)) from None
    return text if here is None else str(here)


DataFoldersOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--data",
        parser=folder_here,
        metavar="DIR",
        help=f"{DATA.help} Default: {CONFIGURED}.",
    ),
]
TrailFoldersOption = Annotated[
    list[Path] | None,
    typer.Option("--trail", parser=folder_here, metavar="DIR", help=TRAIL.help),
]


def trail_folders(data: list[Path] | None, trails: list[Path] | None, config: Path | None) -> tuple[Path, ...]:
    """The folders of the trails. Notes that wait on the audit queues of data folders are written to the trails first.

    Raises CommandFailed if a folder does not exist, or is named twice.
    """
    folders = tuple(trails or ())
    for folder in data_folders(data, trails, config):
        export_pending(folder)
        folders += (trail_of(folder),)
    return folders


def trail_of(folder: Path) -> Path:
    """The trail in a data folder. Raises CommandFailed if there is none."""
    from gateway.audit_trail.exporter import TRAIL_FOLDER

    trail = folder / TRAIL_FOLDER
    if not trail.is_dir():
        raise CommandFailed(f"there is no trail {trail} (name the gateway's data folder with --data)")
    return trail


def data_folders(data: list[Path] | None, trails: Sequence[Path | str] | None, config: Path | None) -> tuple[Path, ...]:
    """The named data folders; the configured one if no folder and no trail is named. Raises CommandFailed.

    Trails on other machines are not looked for here.
    """
    named = tuple(data or (() if trails else (settings_for(config, None).data,)))
    _check_there(named, "data folder", "name the gateway's with --data")
    here = (local_path(str(trail)) for trail in trails or ())
    _check_there(tuple(path for path in here if path is not None), "trail", "name a folder of segments with --trail")
    return named


def _check_there(folders: tuple[Path, ...], noun: str, what_to_do: str) -> None:
    for folder in folders:
        if not folder.is_dir():
            raise CommandFailed(f"there is no {noun} {folder} ({what_to_do})")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise CommandFailed(f"a {noun} is named twice (name each one once)")

"""The sources of a command's settings: `--config`, and `--data`, which overrides it."""

import errno
import os
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.application import CommandFailed, UnreadableConfiguration
from gateway.config import Settings
from spark_audit.location import UnknownLocation, local_folder


def folder_here(text: str) -> Path:
    """A folder of this machine. A URI of another one, and an empty text, are errors."""
    try:
        return local_folder(text)
    except UnknownLocation as error:
        raise typer.BadParameter(str(error)) from None


def configuration_file(text: str) -> Path:
    """A file that can be read. It is not opened here, because a pipe can be read only once."""
    path = Path(text)
    if path.is_dir():
        problem = errno.EISDIR
    elif os.access(path, os.R_OK):
        return path
    else:
        problem = errno.EACCES if path.exists() else errno.ENOENT
    raise UnreadableConfiguration(
        f"{text!r} cannot be read: {os.strerror(problem)} (name a readable file with --config)"
    )


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        parser=configuration_file,
        metavar="FILE",
        help="Configuration file (TOML). Default: no file, and the default of each key.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        parser=folder_here,
        metavar="DIR",
        help="Data folder of the gateway. Default: the configured folder, var.",
    ),
]


def settings_for(config: Path | None, data: Path | None) -> Settings:
    """The settings of a command that works on a data folder. Raises ConfigurationError."""
    return Settings.load(config, {"data": data})


def folder_with_store(config: Path | None, data: Path | None) -> Path:
    """The data folder of a command that makes no store. Raises CommandFailed if there is none."""
    folder = settings_for(config, data).data
    check_store(folder)
    return folder


def check_store(folder: Path) -> None:
    """Raises CommandFailed if a data folder has no store."""
    if not has_store(folder):
        raise CommandFailed(f"there is no store in {folder} (name the gateway's folder with --data)")


def has_store(folder: Path) -> bool:
    """Whether a gateway, or a command that puts or defines, has ever worked on a data folder.

    Raises CommandFailed if nobody may look there, and OSError.
    """
    from mq_adapters.embedded.store.store import FILE_NAME

    try:
        return (folder / FILE_NAME).is_file()
    except PermissionError as error:
        raise CommandFailed(f"{folder}: {error.strerror} (run this as the gateway's user)") from None

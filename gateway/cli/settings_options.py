"""Where the settings of a command come from: `--config`, and `--data` which goes before it."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.config import Settings

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Configuration file (TOML). Without one, the defaults hold."),
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Data folder of the gateway. Without it: the configured one, var."),
]


def settings_for(config: Path | None, data: Path | None) -> Settings:
    """The settings of a command that works on a data folder. Raises ConfigurationError."""
    return Settings.load(config, {"data": data})

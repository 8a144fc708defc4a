"""`rfhbridge check`: the configuration and the packaged tables, before anything starts."""

import sys
from typing import Annotated

import typer

from gateway.cli.settings_options import ConfigOption
from gateway.cli.terminal import write_json, write_line
from gateway.config import Settings, example_toml


def check(
    config: ConfigOption = None,
    example: Annotated[bool, typer.Option("--example", help="Print every key with its default, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The effective settings as one JSON object.")] = False,
) -> None:
    """Validate configuration and mapping tables.

    An unknown key is an error that names the nearest known one. Exit code 1 when something is wrong.
    """
    if example:
        sys.stdout.write(example_toml())
        return
    settings = Settings.load(config)
    from mappings.table import FIELD_ROWS, OPTION_ROWS, TABLE_VERSION

    if as_json:
        write_json(
            {
                "settings": settings.model_dump(mode="json", by_alias=True),
                "configuration_sha256": settings.configuration_sha256,
                "table_version": TABLE_VERSION,
            }
        )
        return
    source = "the defaults" if config is None else str(config)
    write_line(f"configuration: {source}, valid, SHA-256 {settings.configuration_sha256}")
    write_line(f"mapping tables: version {TABLE_VERSION}, {len(FIELD_ROWS)} fields, {len(OPTION_ROWS)} options, valid")

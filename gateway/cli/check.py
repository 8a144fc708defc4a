"""`rfhbridge check`: the configuration, the files that it names and the packaged tables, before anything starts."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.settings_options import ConfigOption
from gateway.cli.terminal import Json, counted, write_json, write_line
from gateway.config import Settings, example_toml
from gateway.config.tables import AccessSettings


def check(
    config: ConfigOption = None,
    example: Annotated[bool, typer.Option("--example", help="Print every key with its default, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The effective settings as one JSON object.")] = False,
) -> None:
    """Validate configuration and mapping tables.

    The password file and the access list that the configuration names are read too. An unknown key is an error that
    names the nearest known one. A route that can be published to and not subscribed to is named. Exit code 1 when
    something is wrong.
    """
    if example:
        sys.stdout.write(example_toml())
        return
    settings = Settings.load(config)
    found = _access_files(settings.access)
    from mappings.table import FIELD_ROWS, OPTION_ROWS, TABLE_VERSION

    if as_json:
        write_json(
            {
                "settings": settings.model_dump(mode="json", by_alias=True),
                "configuration_sha256": settings.configuration_sha256,
                "table_version": TABLE_VERSION,
                "warnings": _routes_without_subscribers(settings),
            }
        )
        return
    source = "the defaults" if config is None else str(config)
    write_line(f"configuration: {source}, valid, SHA-256 {settings.configuration_sha256}")
    for line in found:
        write_line(line)
    for warning in _routes_without_subscribers(settings):
        write_line(f"warning: {warning}")
    write_line(f"mapping tables: version {TABLE_VERSION}, {len(FIELD_ROWS)} fields, {len(OPTION_ROWS)} options, valid")


def _routes_without_subscribers(settings: Settings) -> list[Json]:
    """Routes that publications can take, and whose topics no client can subscribe to, not even with a `#`."""
    from gateway.bridge.routes import Routes

    return [
        f"route to {destination.target.name}, stream {destination.stream}: every SUBSCRIBE that concerns its topics is"
        f" refused: {destination.why_nobody_can_subscribe}"
        for destination in Routes(settings.routes, settings.target).destinations
        if destination.target is not None and destination.why_nobody_can_subscribe
    ]


def _access_files(access: AccessSettings) -> list[str]:
    """What is in the password file and in the access list, where they are named. Raises ConfigurationError."""
    from gateway.access.access_list import AccessList
    from gateway.access.users import Users

    lines = []
    if access.password_file:
        users = Users.read(Path(access.password_file))
        lines.append(f"password file: {access.password_file}, {counted(len(users.hashes), 'user')}, valid")
    if access.access_file:
        rules = AccessList.read(Path(access.access_file))
        lines.append(f"access list: {access.access_file}, {counted(len(rules.rules), 'rule')}, valid")
    return lines

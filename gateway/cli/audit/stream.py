"""`rfhbridge audit stream`: closed segments audited as they come, in a process of its own."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.audit.spark_process import (
    MEMORY,
    MasterOption,
    MemoryOption,
    PersonalKeyOption,
    PolicyOption,
    RemoteOption,
    exit_code_of,
    spark_command,
    spark_environment,
)
from gateway.cli.audit.trails import DataFoldersOption, TrailFoldersOption, data_folders
from gateway.cli.settings_options import ConfigOption


def stream(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A folder for each batch goes there.")],
    checkpoint: Annotated[
        Path, typer.Option("--checkpoint", metavar="DIR", help="What has been read and told; a folder of its own.")
    ],
    data: DataFoldersOption = None,
    trail: TrailFoldersOption = None,
    once: Annotated[bool, typer.Option("--once", help="End when there is no more.")] = False,
    every_s: Annotated[
        int, typer.Option("--every-s", min=1, metavar="N", help="Look for closed segments so often, seconds.")
    ] = 10,
    history_hours: Annotated[
        int,
        typer.Option("--history-hours", min=1, metavar="N", help="What began before this is pending, hours."),
    ] = 6,
    policy: PolicyOption = None,
    personal_key: PersonalKeyOption = None,
    master: MasterOption = "",
    remote: RemoteOption = "",
    memory: MemoryOption = MEMORY,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each batch.")] = False,
) -> None:
    """Judge closed segments as they come, on Spark.

    The controls of `audit run`, batch after batch: DIR/NNNNNNNN/findings.jsonl and result.json. After a restart, or a
    kill, the same command goes on where it was and tells nothing twice. Exit code 0 no violation, 1 violations, 2 not
    evaluable, 3 wrong use.
    """
    environment = spark_environment(remote)
    command = spark_command(
        "stream",
        *(("--data", folder) for folder in data_folders(data, trail, config)),
        *(("--trail", folder) for folder in trail or ()),
        ("--out", out),
        ("--checkpoint", checkpoint),
        ("--every-s", every_s),
        ("--history-hours", history_hours),
        ("--policy", policy),
        ("--personal-key", personal_key),
        ("--master", master),
        ("--remote", remote),
        ("--memory", "" if memory == MEMORY else memory),
        flags=(("--once",) if once else ()) + (("--json",) if as_json else ()),
    )
    raise typer.Exit(exit_code_of(command, environment))

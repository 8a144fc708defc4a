"""`rfhbridge audit ingest`: trails to Parquet, in a process of its own."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.audit.pending_notes import export_pending
from gateway.cli.audit.spark_process import (
    MEMORY,
    MasterOption,
    MemoryOption,
    RemoteOption,
    exit_code_of,
    spark_command,
    spark_environment,
)
from gateway.cli.audit.trails import DataFoldersOption, TrailFoldersOption, data_folders
from gateway.cli.settings_options import ConfigOption


def ingest(
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Folder of the Parquet, of its own.")],
    data: DataFoldersOption = None,
    trail: TrailFoldersOption = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Leave no two small files of one date and gateway, not only eight.")
    ] = False,
    master: MasterOption = "",
    remote: RemoteOption = "",
    memory: MemoryOption = MEMORY,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was done as one JSON object.")] = False,
) -> None:
    """Bring closed segments into Parquet, each once.

    By date and gateway, sorted by sequence; `audit run --parquet DIR` audits from it. A segment that is there already
    is read and compared, not ingested again. Exit code 0 done, 1 violation: a segment was changed after it was
    ingested, 2 not evaluable: nothing that could be ingested, 3 wrong use.
    """
    environment = spark_environment(remote)
    folders = data_folders(data, trail, config)
    for folder in folders:
        export_pending(folder)
    flags = (("--compact",) if compact else ()) + (("--json",) if as_json else ())
    command = spark_command(
        "ingest",
        *(("--data", folder) for folder in folders),
        *(("--trail", folder) for folder in trail or ()),
        ("--to", to),
        ("--master", master),
        ("--remote", remote),
        ("--memory", "" if memory == MEMORY else memory),
        flags=flags,
    )
    raise typer.Exit(exit_code_of(command, environment))

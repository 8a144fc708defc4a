"""`rfhbridge audit bulk`: an archive of captured messages, judged on Spark in a process of its own."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.audit.spark_process import (
    MEMORY,
    MasterOption,
    MemoryOption,
    RemoteOption,
    audited,
    spark_command,
    spark_environment,
)
from mappings.conversion.report import Mode
from mappings.table import Dialect


def bulk(
    source: Annotated[
        Path,
        typer.Option(
            "--in",
            metavar="DIR",
            help="Messages: one a file, or Parquet with path or id, data, format, ccsid, encoding.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for result.json and the reports.")],
    converted: Annotated[
        Path | None,
        typer.Option(
            "--converted",
            metavar="DIR",
            help="What was made of them, under the same names. Without it: column converted, where there is one.",
        ),
    ] = None,
    to: Annotated[
        Dialect | None, typer.Option("--to", help="Format that was wanted. Without it: the one that a message has not.")
    ] = None,
    mode: Annotated[
        Mode, typer.Option("--mode", help="strict: the nine mapped fields; extended: the subscription's names too.")
    ] = Mode.STRICT,
    master: MasterOption = "",
    remote: RemoteOption = "",
    memory: MemoryOption = MEMORY,
    as_json: Annotated[bool, typer.Option("--json", help="Print result.json instead of the summary.")] = False,
) -> None:
    """Judge an archive of captured messages.

    Its messages never passed the gateway. What is malformed, cannot be said in the other format or would lose fields
    there is found, with IBM's reason codes; conversions are performed again and compared byte for byte. Writes what
    `audit run` writes. An archive that is empty, half-written or none of messages is not evaluable. Exit code 0 clean,
    1 violations, 2 not evaluable, 3 wrong use.
    """
    command = spark_command(
        "bulk",
        ("--in", source),
        ("--out", out),
        ("--converted", converted),
        ("--to", "" if to is None else to.value),
        ("--mode", mode.value),
        ("--master", master),
        ("--remote", remote),
        ("--memory", "" if memory == MEMORY else memory),
        flags=("--json",) if as_json else (),
    )
    raise typer.Exit(audited(command, spark_environment(remote), out))

"""`rfhbridge audit run`: every control on Spark, in a process of its own."""

from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.cli.audit.pending_notes import export_pending
from gateway.cli.audit.spark_process import (
    MEMORY,
    MasterOption,
    MemoryOption,
    PersonalKeyOption,
    PolicyOption,
    RemoteOption,
    audited,
    spark_command,
    spark_environment,
)
from gateway.cli.audit.trails import DataFoldersOption, TrailFoldersOption, data_folders
from gateway.cli.audit.verify import PublicKeyOption
from gateway.cli.settings_options import ConfigOption

#: Under the data folder, unless --out says otherwise.
_REPORT_FOLDER: Final = "report"


def run(
    data: DataFoldersOption = None,
    trail: TrailFoldersOption = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="DIR", help="What `audit ingest` made, in place of trails.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for result.json and the reports. Without it: DATA/report."),
    ] = None,
    policy: PolicyOption = None,
    from_time: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Findings of this time or later (ISO 8601, with its zone).")
    ] = "",
    until_time: Annotated[str, typer.Option("--until", metavar="TIME", help="Findings before this time.")] = "",
    public_key: PublicKeyOption = None,
    digests: Annotated[
        Path | None, typer.Option("--digests", metavar="DIR", help="The digests, as they were copied elsewhere.")
    ] = None,
    personal_key: PersonalKeyOption = None,
    master: MasterOption = "",
    remote: RemoteOption = "",
    memory: MemoryOption = MEMORY,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print result.json instead of the summary.")] = False,
) -> None:
    """Judge trails by every control, on Spark.

    Every conversion is performed again. Writes result.json, report.html, junit.xml, audit.sarif and every violation as
    exceptions.parquet. What still waits on the audit queue is written to the trail first, by the gateway where one
    runs. A period also reads the day around it; what is open at its edges is pending. Exit code 0 clean, 1 violations,
    2 not evaluable, 3 wrong use.
    """
    environment = spark_environment(remote)
    if parquet is not None and (data or trail):
        raise typer.BadParameter("name --parquet or trails, not both")
    folders = () if parquet else data_folders(data, trail, config)
    if out is None and (trail or len(folders) != 1):
        raise typer.BadParameter("say with --out where the report goes")
    for folder in folders:
        export_pending(folder)
    report_folder = folders[0] / _REPORT_FOLDER if out is None else out
    command = spark_command(
        "run",
        *(("--data", folder) for folder in folders),
        *(("--trail", folder) for folder in trail or ()),
        ("--parquet", parquet),
        ("--out", report_folder),
        ("--policy", policy),
        ("--from", from_time),
        ("--until", until_time),
        ("--public-key", public_key),
        ("--digests", digests),
        ("--personal-key", personal_key),
        ("--master", master),
        ("--remote", remote),
        ("--memory", "" if memory == MEMORY else memory),
        flags=("--json",) if as_json else (),
    )
    raise typer.Exit(audited(command, environment, report_folder))

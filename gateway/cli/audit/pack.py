"""`rfhbridge audit pack`: the evidence of a trail in one archive, for an auditor without this program."""

import hashlib
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.cli.application import CommandFailed, version
from gateway.cli.audit.pending_notes import export_pending
from gateway.cli.audit.trails import trail_of
from gateway.cli.settings_options import ConfigOption, DataOption, JsonOption, folder_here, settings_for
from gateway.cli.terminal import counted, write_json, write_line

#: The folder in the data folder to which `audit run` writes.
REPORT_FOLDER: Final = "report"


def pack(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="New archive; its name ends in .zip or .tar.gz.")],
    data: DataOption = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="FILE", help="Policy of the audit, to pack it too.")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            parser=folder_here,
            metavar="DIR",
            help="Folder that `audit run` wrote, or a batch of `audit stream`. Default: DATA/report.",
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pack the evidence into one archive.

    The archive holds trail, digests, public key, policy, every file of the report, and a README that says how to check
    them without this program. A report that is of another trail, or was changed, is refused. The same files give the
    same bytes; the command prints their SHA-256. `audit verify FILE` checks the archive. Exit code 0: written; 2: not
    written; 3: wrong use.
    """
    from spark_audit.pack import PackContents, PackError, lacks, write_pack

    folder = settings_for(config, data).data
    if not folder.is_dir():
        raise CommandFailed(f"there is no data folder {folder} (name the gateway's with --data)")
    if results is not None and not results.is_dir():
        raise CommandFailed(f"there is no folder {results} (name the folder that `audit run` wrote with --results)")
    export_pending(folder)
    contents = PackContents(
        trail=trail_of(folder),
        policy=policy,
        results=folder / REPORT_FOLDER if results is None else results,
        code_version=version(),
    )
    try:
        count = write_pack(contents, out)
    except PackError as error:
        raise CommandFailed(str(error)) from None
    with out.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if as_json:
        write_json({"pack": str(out), "files": count, "sha256": sha256, "lacks": list(lacks(contents))})
    else:
        write_line(f"{out}: {counted(count, 'file')}, SHA-256 {sha256}")
        for what in lacks(contents):
            typer.echo(f"the pack lacks something: {what}", err=True)

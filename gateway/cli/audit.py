"""`rfhbridge audit`: the audit on Spark, in a process of its own, and the trail's integrity without Spark."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from gateway.cli.application import AuditExitCode, CommandFailed
from gateway.cli.examples import epilog
from gateway.cli.settings_options import ConfigOption, DataOption, settings_for
from gateway.cli.terminal import Json, write_json, write_line
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: Under the data folder, unless --out says otherwise.
_REPORT_FOLDER: Final = "report"
_RESULT: Final = "result.json"
#: Where the set-up of this project notes a Java that it installed beside the environment.
_JAVA_HOME_NOTE: Final = "java-home"

audit = typer.Typer(
    help="Prove what the gateway did, from its trail. Exit 0 clean, 1 violations, 2 not evaluable.",
    epilog=epilog("rfhbridge audit run --data var --out report", "rfhbridge audit verify --data var"),
    rich_markup_mode=None,
)


@audit.command(epilog=epilog("rfhbridge audit run --data var --out report"))
def run(
    data: DataOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for result.json and report.html. Without it: DATA/report."),
    ] = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print result.json instead of the summary.")] = False,
) -> None:
    """Re-perform every conversion on Spark.

    Writes result.json and report.html. What still waits on the audit queue is written to the trail first, by the
    gateway where one runs.
    """
    environment = _spark_environment()
    data_folder = settings_for(config, data).data
    _export_pending(data_folder)
    report_folder = data_folder / _REPORT_FOLDER if out is None else out
    command = [sys.executable, "-m", "spark_audit", "run", "--data", str(data_folder), "--out", str(report_folder)]
    if as_json:
        command.append("--json")
    raise typer.Exit(_audited(command, environment, report_folder / _RESULT))


@audit.command(epilog=epilog("rfhbridge audit verify --data var", "rfhbridge audit verify --json"))
def verify(
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Check the trail without Spark.

    Every hash, link and number. Exit code 0 intact, 1 violated, 2 not evaluable.
    """
    from gateway.audit_trail.exporter import TRAIL_FOLDER
    from spark_audit.verify import verify as verify_trail

    verification = verify_trail(settings_for(config, data).data / TRAIL_FOLDER)
    if as_json:
        write_json(cast(Json, verification.as_dict()))
    else:
        write_line(f"{verification.verdict}: {verification.reason}")
        for problem in verification.problems:
            write_line(f"  {problem}")
        write_line(f"{verification.segments} segments, {verification.records} records, head {verification.head}")
        write_line(verification.limits)
    raise typer.Exit(verification.verdict.exit_code)


def _export_pending(data_folder: Path) -> None:
    """Writes what waits on the audit queue to the trail; a gateway that runs does so itself."""
    from gateway.audit_trail.exporter import TRAIL_FOLDER, export_pending
    from mq_adapters.embedded.direct import Direct

    if not data_folder.is_dir():
        raise CommandFailed(f"there is no data folder {data_folder} (name the gateway's with --data)")
    try:
        queue_manager = Direct(data_folder)
    except QueueManagerError as error:
        if error.reason_code == ReasonCode.MQRC_OBJECT_IN_USE:
            return
        raise
    with queue_manager:
        export_pending(queue_manager, data_folder / TRAIL_FOLDER, close_segment=True)


def _spark_environment() -> dict[str, str]:
    """The environment of the Spark process. CommandFailed where PySpark or Java is missing."""
    if importlib.util.find_spec("pyspark") is None:
        raise CommandFailed("PySpark is not installed (make audit installs it, or: pip install 'rfhbridge[audit]')")
    environment = dict(os.environ)
    noted = Path(sys.prefix) / _JAVA_HOME_NOTE
    if "JAVA_HOME" not in environment and noted.is_file():
        environment["JAVA_HOME"] = noted.read_text(encoding="utf-8").strip()
    home = environment.get("JAVA_HOME")
    java = shutil.which("java") if home is None else shutil.which("java", path=str(Path(home) / "bin"))
    if java is None:
        where = "on the path" if home is None else f"in JAVA_HOME {home}"
        raise CommandFailed(f"there is no Java {where} (make audit installs Java 17, or set JAVA_HOME)")
    return environment


def _audited(command: list[str], environment: dict[str, str], result: Path) -> int:
    """Runs the Spark process. Its exit code counts only with a new result: a Python that fails ends with 1 too."""
    before_ns = result.stat().st_mtime_ns if result.exists() else 0
    return_code = subprocess.run(command, env=environment, check=False).returncode
    after_ns = result.stat().st_mtime_ns if result.exists() else 0
    if return_code in (AuditExitCode.CLEAN, AuditExitCode.VIOLATIONS) and after_ns == before_ns:
        raise CommandFailed(f"the audit left no new {result} (what it printed says why)")
    codes = [code.value for code in AuditExitCode]
    return return_code if return_code in codes else AuditExitCode.NOT_EVALUABLE

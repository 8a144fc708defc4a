"""`rfhbridge audit`: the group of its commands, and the audit on Spark, in a process of its own."""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway import log
from gateway.cli.application import INTERRUPTED, AuditExitCode, CommandFailed
from gateway.cli.audit_explain import explain
from gateway.cli.audit_key import key
from gateway.cli.audit_pack import pack
from gateway.cli.audit_prove import prove
from gateway.cli.audit_verify import verify
from gateway.cli.examples import epilog
from gateway.cli.pending_notes import export_pending
from gateway.cli.settings_options import ConfigOption, DataOption, settings_for

#: Under the data folder, unless --out says otherwise.
_REPORT_FOLDER: Final = "report"
_RESULT: Final = "result.json"
#: Where the set-up of this project notes a Java that it installed beside the environment.
_JAVA_HOME_NOTE: Final = "java-home"
#: How long an interrupted audit may take to end by itself, and once it was told, seconds; Spark stops in about one.
_TERMINAL_WAIT_S: Final = 2.0
_STOP_WAIT_S: Final = 10.0

audit = typer.Typer(
    help="Prove what the gateway did, from its trail. Exit code 0 clean, 1 violations, 2 not evaluable, 3 wrong use.",
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
    gateway where one runs. Exit code 0 clean, 1 violations, 2 not evaluable, 3 wrong use.
    """
    environment = _spark_environment()
    data_folder = settings_for(config, data).data
    if not data_folder.is_dir():
        raise CommandFailed(f"there is no data folder {data_folder} (name the gateway's with --data)")
    export_pending(data_folder)
    report_folder = data_folder / _REPORT_FOLDER if out is None else out
    command = [sys.executable, "-m", "spark_audit", "run", "--data", str(data_folder), "--out", str(report_folder)]
    if as_json:
        command.append("--json")
    if log.is_json():
        command += ("--log-format", "json")
    raise typer.Exit(_audited(command, environment, report_folder / _RESULT))


audit.command(
    epilog=epilog(
        "rfhbridge audit verify --data var", "rfhbridge audit verify --public-key gateway.pub --digests copies"
    )
)(verify)
audit.command(epilog=epilog("rfhbridge audit prove 524648420102030405060708090a0b0c0000000000000001 --out proof.json"))(
    prove
)
audit.command(epilog=epilog("rfhbridge audit pack --data var --out evidence.tar.gz"))(pack)
audit.command(epilog=epilog("rfhbridge audit explain 524648420102030405060708090a0b0c0000000000000001 --data var"))(
    explain
)
audit.add_typer(key, name="key")


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
    return_code = _ended(command, environment)
    if return_code == INTERRUPTED:
        raise KeyboardInterrupt
    after_ns = result.stat().st_mtime_ns if result.exists() else 0
    if return_code in (AuditExitCode.CLEAN, AuditExitCode.VIOLATIONS) and after_ns == before_ns:
        raise CommandFailed(f"the audit left no new {result} (what it printed says why)")
    codes = [code.value for code in AuditExitCode]
    return return_code if return_code in codes else AuditExitCode.NOT_EVALUABLE


def _ended(command: list[str], environment: dict[str, str]) -> int:
    """The exit code of a process. An interruption is passed on, so that it stops Spark and removes what it wrote."""
    with subprocess.Popen(command, env=environment) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            _let_end(process)
            raise


def _let_end(process: "subprocess.Popen[bytes]") -> None:
    """A terminal interrupts both processes; where somebody else did, this tells the other. At last it is killed."""
    for wait_s in (_TERMINAL_WAIT_S, _STOP_WAIT_S):
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(wait_s)
            return
        process.send_signal(signal.SIGINT)
    process.kill()

"""Commands on Spark or DuckDB run `python -m spark_audit` as a process of its own.

The gateway's process never loads Spark.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Final

from gateway import compiled, log
from gateway.cli.application import INTERRUPTED, AuditExitCode, CommandFailed
from spark_audit.options import RECEIPT, words_of

#: The file in which the set-up of this project notes the Java that it installed.
_JAVA_HOME_NOTE: Final = "java-home"
#: With this option neither the audit nor Spark's workers import anything from the working folder.
_SAFE_PATH: Final = "PYTHONSAFEPATH"
#: Seconds for an interrupted audit to end by itself, and again after it was told to. Spark needs about one.
_TERMINAL_WAIT_S: Final = 2.0
_STOP_WAIT_S: Final = 10.0


def spark_environment(remote: str = "") -> dict[str, str]:
    """The environment of the Spark process. Raises CommandFailed if PySpark is missing, or Java without a remote."""
    if importlib.util.find_spec("pyspark") is None:
        raise CommandFailed(
            "PySpark is not installed (make audit, or pip install '.[audit]', in a clone of the repository)"
        )
    environment = _safe_environment()
    noted = Path(sys.prefix) / _JAVA_HOME_NOTE
    if "JAVA_HOME" not in environment and noted.is_file():
        environment["JAVA_HOME"] = noted.read_text(encoding="utf-8").strip()
    home = environment.get("JAVA_HOME")
    java = shutil.which("java") if home is None else shutil.which("java", path=str(Path(home) / "bin"))
    if java is None and not remote:
        where = "on the path" if home is None else f"in JAVA_HOME {home}"
        raise CommandFailed(f"there is no Java {where} (make audit installs Java 17, or set JAVA_HOME)")
    return environment


def duckdb_environment() -> dict[str, str]:
    """The environment of an audit on DuckDB, which needs no Java. Raises CommandFailed if DuckDB is missing."""
    if importlib.util.find_spec("duckdb") is None:
        raise CommandFailed(
            "DuckDB is not installed (make audit, or pip install '.[audit]', in a clone of the repository)"
        )
    return _safe_environment()


def _safe_environment() -> dict[str, str]:
    """The environment of any audit, with the build that its processes take. Raises CommandFailed."""
    try:
        return os.environ | {_SAFE_PATH: "1"} | compiled.for_processes()
    except compiled.NotCompiled as error:
        raise CommandFailed(str(error)) from None


def spark_command(name: str, values: Mapping[str, object]) -> list[str]:
    """The command line of a Spark process with these values of its options."""
    command = [sys.executable, "-P", "-m", "spark_audit", name, *words_of(name, values)]
    return [*command, "--log-format", "json"] if log.is_json() else command


def audited(command: list[str], environment: dict[str, str]) -> int:
    """Runs the Spark process.

    Its exit code counts only if it wrote a result, because a failing Python also ends with 1.
    """
    with tempfile.TemporaryDirectory(prefix="rfhbridge-audit-") as folder:
        receipt = Path(folder) / "receipt"
        exit_code = exit_code_of(command, environment | {RECEIPT: str(receipt)})
        if exit_code in (AuditExitCode.CLEAN, AuditExitCode.VIOLATIONS) and not receipt.exists():
            raise CommandFailed("the audit wrote no new result (its lines above say why)")
        return exit_code


def exit_code_of(command: list[str], environment: dict[str, str]) -> int:
    """Runs the Spark process. If it died, the audit is not evaluable. Raises KeyboardInterrupt."""
    return_code = ended(command, environment)
    if return_code == INTERRUPTED:
        raise KeyboardInterrupt
    codes = [code.value for code in AuditExitCode]
    return return_code if return_code in codes else AuditExitCode.NOT_EVALUABLE


def ended(command: list[str], environment: dict[str, str]) -> int:
    """The exit code of a process. An interruption is passed on, so that it stops Spark and removes what it wrote.

    The process inherits a blocked SIGINT and listens once it is loaded. Otherwise Python would print a long traceback.
    """
    with _termination_as_interruption():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = subprocess.Popen(command, env=environment)
        except BaseException:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            raise
        with process:
            try:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                return process.wait()
            except KeyboardInterrupt:
                let_end(process)
                raise


@contextlib.contextmanager
def _termination_as_interruption() -> Iterator[None]:
    """Makes SIGTERM do what Ctrl-C does. Otherwise it would end this process alone, and Spark would go on."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def let_end(process: "subprocess.Popen[bytes]") -> None:
    """Tells the other process to end, unless a terminal has interrupted both, and kills it in the end."""
    for wait_s in (_TERMINAL_WAIT_S, _STOP_WAIT_S):
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(wait_s)
            return
        process.send_signal(signal.SIGINT)
    process.kill()

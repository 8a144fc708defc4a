"""Commands that need Spark run `python -m spark_audit` as a process of its own: the gateway's never loads it."""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Final

from gateway import log
from gateway.cli.application import INTERRUPTED, AuditExitCode, CommandFailed
from spark_audit.options import words_of

#: Where the set-up of this project notes a Java that it installed beside the environment.
_JAVA_HOME_NOTE: Final = "java-home"
#: Python then imports nothing from the working folder: neither the audit, nor the workers that Spark starts for it.
_SAFE_PATH: Final = "PYTHONSAFEPATH"
#: What an audit writes last.
_RESULT: Final = "result.json"
#: How long an interrupted audit may take to end by itself, and once it was told, seconds; Spark stops in about one.
_TERMINAL_WAIT_S: Final = 2.0
_STOP_WAIT_S: Final = 10.0


def spark_environment(remote: str = "") -> dict[str, str]:
    """The environment of the Spark process. CommandFailed where PySpark or, without a remote, Java is missing."""
    if importlib.util.find_spec("pyspark") is None:
        raise CommandFailed("PySpark is not installed (make audit installs it, or: pip install 'rfhbridge[audit]')")
    environment = os.environ | {_SAFE_PATH: "1"}
    noted = Path(sys.prefix) / _JAVA_HOME_NOTE
    if "JAVA_HOME" not in environment and noted.is_file():
        environment["JAVA_HOME"] = noted.read_text(encoding="utf-8").strip()
    home = environment.get("JAVA_HOME")
    java = shutil.which("java") if home is None else shutil.which("java", path=str(Path(home) / "bin"))
    if java is None and not remote:
        where = "on the path" if home is None else f"in JAVA_HOME {home}"
        raise CommandFailed(f"there is no Java {where} (make audit installs Java 17, or set JAVA_HOME)")
    return environment


def spark_command(name: str, values: Mapping[str, object]) -> list[str]:
    """The command line of a Spark process with these values of its options."""
    command = [sys.executable, "-P", "-m", "spark_audit", name, *words_of(name, values)]
    return [*command, "--log-format", "json"] if log.is_json() else command


def audited(command: list[str], environment: dict[str, str], report_folder: Path) -> int:
    """Runs the Spark process. Its exit code counts only with a new result: a Python that fails ends with 1 too."""
    result = report_folder / _RESULT
    before_ns = result.stat().st_mtime_ns if result.exists() else 0
    exit_code = exit_code_of(command, environment)
    after_ns = result.stat().st_mtime_ns if result.exists() else 0
    if exit_code in (AuditExitCode.CLEAN, AuditExitCode.VIOLATIONS) and after_ns == before_ns:
        raise CommandFailed(f"the audit wrote no new {result} (its lines above say why)")
    return exit_code


def exit_code_of(command: list[str], environment: dict[str, str]) -> int:
    """Runs the Spark process; one that died could not evaluate anything. Raises KeyboardInterrupt."""
    return_code = ended(command, environment)
    if return_code == INTERRUPTED:
        raise KeyboardInterrupt
    codes = [code.value for code in AuditExitCode]
    return return_code if return_code in codes else AuditExitCode.NOT_EVALUABLE


def ended(command: list[str], environment: dict[str, str]) -> int:
    """The exit code of a process. An interruption is passed on, so that it stops Spark and removes what it wrote.

    The process inherits that SIGINT is held back, and listens once it is loaded: Python would tell at length where it
    was.
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
    """SIGTERM does what Ctrl-C does: it would end this process alone, and Spark would go on without anybody."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def let_end(process: "subprocess.Popen[bytes]") -> None:
    """A terminal interrupts both processes; where somebody else did, this tells the other. At last it is killed."""
    for wait_s in (_TERMINAL_WAIT_S, _STOP_WAIT_S):
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(wait_s)
            return
        process.send_signal(signal.SIGINT)
    process.kill()

"""The files of a report. A reader never sees half a file. result.json, which names the others, comes last."""

import shutil
import tempfile
from pathlib import Path
from typing import Final

from spark_audit.report.junit import junit
from spark_audit.report.page import html
from spark_audit.report.sarif import sarif
from spark_audit.result import EXCEPTIONS_FOLDER, AuditResult

RESULT_FILE: Final = "result.json"
REPORT_FILE: Final = "report.html"
JUNIT_FILE: Final = "junit.xml"
SARIF_FILE: Final = "audit.sarif"
_FILES: Final = (REPORT_FILE, JUNIT_FILE, SARIF_FILE, RESULT_FILE)


def check_report_folder(folder: Path) -> None:
    """Makes the folder. OSError if `write_report` would fail there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        if (folder / name).exists():
            (folder / name).open("r+b").close()
    with tempfile.TemporaryFile(dir=folder):
        return


def write_report(result: AuditResult, folder: Path) -> tuple[Path, ...]:
    """Writes the files and returns their paths. OSError if the folder cannot be written.

    If this audit wrote no violations, those of an earlier audit are removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not result.exceptions and (folder / EXCEPTIONS_FOLDER).is_dir():
        shutil.rmtree(folder / EXCEPTIONS_FOLDER)
    texts = {
        REPORT_FILE: html(result),
        JUNIT_FILE: junit(result),
        SARIF_FILE: sarif(result),
        RESULT_FILE: result.as_json(),
    }
    for name, text in texts.items():
        _write(folder / name, text)
    return tuple(folder / name for name in texts)


def _write(path: Path, text: str) -> None:
    """Replaces a file as a whole. The old one stays until then."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)

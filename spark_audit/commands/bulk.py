"""`bulk`: an archive of captured messages through the controls of archives; reports and summary."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spark_audit.commands.engines import EngineFailed, place_of, scratch_folder, spark_session
from spark_audit.commands.report import show_result
from spark_audit.commands.terminal import USAGE, Tell, not_written, tell_of
from spark_audit.interruption import Interruption
from spark_audit.options import repeatable
from spark_audit.report.destination import destination_of
from spark_audit.result import AuditResult, Subject, counted

if TYPE_CHECKING:
    from spark_audit.archive.audit import ArchiveToAudit


def bulk(options: argparse.Namespace, interruption: Interruption) -> int:
    """Runs the command; returns the exit code."""
    tell = tell_of("bulk", options.log_format)
    for folder in (options.source, options.converted):
        if folder is not None and not folder.is_dir():
            tell(f"{folder} is not a folder", "error")
            return USAGE
    with destination_of(options.out) as destination:
        try:
            destination.check()
        except OSError as error:
            return not_written(options.out, error, tell)
        command = repeatable("bulk", vars(options))
        result = _result(options, destination.folder, tell, interruption)
        return show_result(replace(result, subject=Subject.ARCHIVE, command=command), destination, options, tell)


def _result(options: argparse.Namespace, out: Path, tell: Tell, interruption: Interruption) -> AuditResult:
    """The result. It is `not evaluable` if the archive cannot be read, or is no archive."""
    from spark_audit.archive.audit import ArchiveToAudit
    from spark_audit.archive.files import ArchiveError
    from spark_audit.audit import not_evaluable

    try:
        archive = ArchiveToAudit.of(options.source, options.converted)
        return _audited(options, archive, out, tell, interruption)
    except (ArchiveError, EngineFailed) as error:
        return not_evaluable(str(error))
    except OSError as error:
        return not_evaluable(f"{error.filename or options.source} cannot be read: {error.strerror or error}")


def _audited(
    options: argparse.Namespace, archive: "ArchiveToAudit", out: Path, tell: Tell, interruption: Interruption
) -> AuditResult:
    from spark_audit.archive.audit import audit_archive
    from spark_audit.reperform.captured import AskedConversion

    asked = AskedConversion(target=options.to, mode=options.mode)
    with scratch_folder() as scratch:
        tell("starting Spark")
        with spark_session(scratch, archive.size_bytes, place_of(options), interruption) as spark:
            tell(f"reading {counted(archive.messages.count, 'file')}, {archive.size_bytes / 1e6:.1f} MB")
            return audit_archive(spark, archive, asked, tell, out)

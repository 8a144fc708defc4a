"""`convert`: an archive of messages on Spark. Exit 0: all converted; 1: some could not be; 2: Spark could not."""

import argparse
import sys
from pathlib import Path
from typing import Final

from spark_audit.commands.engines import EngineFailed, scratch_folder, spark_session
from spark_audit.commands.terminal import NOT_EVALUABLE, USAGE, tell_of
from spark_audit.interruption import Interruption

_SOME_FAILED: Final = 1


def convert(options: argparse.Namespace, interruption: Interruption) -> int:
    """Runs the command; returns the exit code."""
    source: Path = options.source
    target: Path = options.out
    if not source.is_dir() or target.exists():
        return _failed(f"{target} is there already" if source.is_dir() else f"{source} is not a folder", USAGE)
    from spark_audit.archive.files import ArchiveError
    from spark_audit.bulk import convert_archive
    from spark_audit.spark_session import HERE

    size_bytes = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    try:
        with scratch_folder() as scratch:
            tell_of("convert", "text")("starting Spark")
            with spark_session(scratch, size_bytes, HERE, interruption) as spark:
                archive = convert_archive(spark, source, target, to=options.to, mode=options.mode)
    except ArchiveError as error:
        return _failed(str(error), USAGE)
    except EngineFailed as error:
        return _failed(str(error), NOT_EVALUABLE)
    except OSError as error:
        return _failed(f"{error.filename or source} cannot be read: {error.strerror}", NOT_EVALUABLE)
    print(f"{archive.messages} messages, {archive.failed} could not be converted, {target}")
    return _SOME_FAILED if archive.failed else 0


def _failed(reason: str, exit_code: int) -> int:
    print(f"python -m spark_audit: {reason}", file=sys.stderr)
    return exit_code

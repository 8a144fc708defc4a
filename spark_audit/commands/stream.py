"""`stream`: audits each closed segment when it comes. Exit 0: no violation; 1: violations; 2: nothing to judge."""

import argparse
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import orjson

from spark_audit.commands.engines import EngineFailed, place_of, scratch_folder, spark_session
from spark_audit.commands.run import WrongUse, personal_key_of, policy_of, trail_folders
from spark_audit.commands.terminal import (
    DONE,
    NOT_EVALUABLE,
    USAGE,
    VIOLATIONS,
    Tell,
    not_written,
    tell_of,
)
from spark_audit.interruption import Interruption
from spark_audit.location import Location, LocationFailed
from spark_audit.result import AuditResult, Verdict
from spark_audit.verify.segment_forms import DamagedSegment
from spark_audit.verify.source import LineTooLong

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_audit.ingest.ingestion import NewSegments
    from spark_audit.ingest.manifest import Manifest
    from spark_audit.ingest.segments import Measuring
    from spark_audit.stream import Reported, Stream

#: Bytes of text of one batch. A larger segment is a batch by itself.
_BATCH_BYTES: Final = 256 * 1024**2
#: Spark is prepared for the text that exists at its start, but at most for this: a batch and some history.
_MOST_PREPARED_FOR_BYTES: Final = 2 * _BATCH_BYTES


def stream(options: argparse.Namespace, interruption: Interruption) -> int:
    """Runs the command; returns the exit code. Without --once it ends by an interruption or an error."""
    from spark_audit.ingest.ingestion import ChangedSegment
    from spark_audit.ingest.manifest import UnusableManifest
    from spark_audit.ingest.warehouse import Damaged, InUse

    tell = tell_of("stream", options.log_format)
    try:
        with ExitStack() as resources:
            return _Streaming.begin(options, tell, interruption, resources).run()
    except WrongUse as error:
        reason, exit_code = str(error), USAGE
    except ChangedSegment as error:
        reason, exit_code = str(error), VIOLATIONS
    except (Damaged, InUse, UnusableManifest, EngineFailed, LocationFailed) as error:
        reason, exit_code = str(error), NOT_EVALUABLE
    except OSError as error:
        return not_written(options.out, error, tell, "--out or --checkpoint")
    tell(reason, "error")
    return exit_code


@dataclass(slots=True)
class _Streaming:
    """One stream, from the progress in its checkpoint to its end."""

    options: argparse.Namespace
    tell: Tell
    interruption: Interruption
    resources: ExitStack
    stream: "Stream"
    folders: tuple[Location, ...]
    manifest: "Manifest"
    reported: "Reported"
    measuring: "Measuring"
    verdicts: set[Verdict] = field(default_factory=set)
    _spark: "SparkSession | None" = None

    @classmethod
    def begin(
        cls, options: argparse.Namespace, tell: Tell, interruption: Interruption, resources: ExitStack
    ) -> "_Streaming":
        """Reads the named trails and the checkpoint. Raises an error that says why one cannot be used."""
        from spark_audit.ingest.segments import Measuring
        from spark_audit.ingest.warehouse import writing_to
        from spark_audit.stream import Reported, Stream

        folders = trail_folders(options)
        stream = Stream(
            checkpoint=options.checkpoint,
            out=options.out,
            history_hours=options.history_hours,
            policy=policy_of(options.policy),
            personal_key=personal_key_of(options.personal_key),
            progress=lambda _line: None,
        )
        options.out.mkdir(parents=True, exist_ok=True)
        return cls(
            options=options,
            tell=tell,
            interruption=interruption,
            resources=resources,
            stream=stream,
            folders=folders,
            manifest=resources.enter_context(writing_to(options.checkpoint)),
            reported=Reported.load(options.checkpoint),
            measuring=Measuring(),
        )

    def run(self) -> int:
        """Reports batch after batch; with --once until there is no more.

        Raises an error that says why it cannot go on.
        """
        told = ""
        while True:
            problem = self._turn()
            if problem and problem != told:
                self.tell(problem, "error")
            told = problem
            if self.options.once:
                return self._exit_code(problem)
            time.sleep(self.options.every_s)

    def _turn(self) -> str:
        """Handles everything that exists now; returns sentences about unreadable parts."""
        from spark_audit.ingest.ingestion import ingested

        if self.reported.segments < len(self.manifest.segments):  # a kill came before the report
            self._report()
        while True:
            news, problem = self._news()
            if not news:
                return problem
            session = self._session(sum(segment.size_bytes for new in news for segment in new.segments))
            batches = ingested(session, self.options.checkpoint, self.manifest, news, _BATCH_BYTES)
            self.manifest = next(batches)
            self._report()
            self.manifest = self.stream.tidied(session, self.manifest)

    def _news(self) -> "tuple[list[NewSegments], str]":
        """The new segments of the trails, and the faults of unreadable ones. Raises ChangedSegment."""
        from spark_audit.ingest.ingestion import NotATrail, copy_digests, new_segments

        news: list[NewSegments] = []
        problem = ""
        for folder in self.folders:
            try:
                new = new_segments(folder, self.manifest, self.measuring)
            except NotATrail as error:
                problem = str(error)
            except (DamagedSegment, LineTooLong) as error:
                problem = f"{folder} cannot be judged: {error}"
            except OSError as error:
                problem = f"{error.filename or folder} cannot be read: {error.strerror}"
            else:
                copy_digests(self.options.checkpoint, new)
                news += [new] if new.segments else []
        return news, problem

    def _report(self) -> None:
        self.reported, result = self.stream.report(self._session(), self.manifest, self.reported)
        self.verdicts.add(result.verdict)
        self._say(result)

    def _say(self, result: AuditResult) -> None:
        batch = self.reported.batches
        if self.options.as_json:
            told = {"batch": batch, "verdict": result.verdict.value, "reason": result.reason}
            sys.stdout.write(orjson.dumps({**told, "records": result.scope.records}).decode() + "\n")
        else:
            print(f"batch {batch}: {result.verdict.value}: {result.reason}")
        sys.stdout.flush()

    def _session(self, new_bytes: int = 0) -> "SparkSession":
        """Spark, started at its first use, for so many bytes of text beside those that exist already."""
        if self._spark is None:
            self.tell("starting Spark")
            scratch = self.resources.enter_context(scratch_folder())
            there = sum(segment.size_bytes for segment in self.manifest.segments)
            text_bytes = min(there + new_bytes, _MOST_PREPARED_FOR_BYTES)
            session = spark_session(scratch, text_bytes, place_of(self.options), self.interruption)
            self._spark = self.resources.enter_context(session)
        return self._spark

    def _exit_code(self, problem: str) -> int:
        if Verdict.VIOLATIONS in self.verdicts:
            return VIOLATIONS
        return NOT_EVALUABLE if problem or Verdict.NOT_EVALUABLE in self.verdicts else DONE

"""`stream`: audits each closed segment when it comes. Exit 0: no violation; 1: violations; 2: nothing to judge."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import orjson

from spark_audit.commands.engines import EngineFailed, duck_engine, place_of, scratch_folder, spark_session
from spark_audit.commands.run import WrongUse, personal_key_of, policy_of, signer_of, trail_folders
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_audit.engines.engine import Engine
    from spark_audit.stream import News

#: Java is prepared for the first batch of text, but at most for this: a batch and what its state carries.
_MOST_PREPARED_FOR_BYTES: Final = 512 * 1024**2


def stream(options: argparse.Namespace, interruption: Interruption) -> int:
    """Runs the command; returns the exit code. Without --once it ends by an interruption or an error."""
    from spark_audit.increments.checkpoint import UnusableCheckpoint
    from spark_audit.increments.state import UnusableState
    from spark_audit.ingest.warehouse import InUse

    tell = tell_of("stream", options.log_format)
    try:
        with ExitStack() as resources:
            return _Streaming(options, tell, interruption, resources).run()
    except WrongUse as error:
        reason, exit_code = str(error), USAGE
    except _Rewritten as error:
        reason, exit_code = str(error), VIOLATIONS
    except (UnusableCheckpoint, InUse, UnusableState, EngineFailed, LocationFailed) as error:
        reason, exit_code = str(error), NOT_EVALUABLE
    except OSError as error:
        return not_written(options.out, error, tell, "--out or --checkpoint")
    tell(reason, "error")
    return exit_code


class _Rewritten(Exception):
    """Trails do not go on where the stream has judged them. The text says why, and what to do."""


class _Streaming:
    """One stream, from the state in its checkpoint to its end. Raises an error that says why something is unusable."""

    def __init__(
        self, options: argparse.Namespace, tell: Tell, interruption: Interruption, resources: ExitStack
    ) -> None:
        from spark_audit.increments.checkpoint import Checkpoint
        from spark_audit.increments.state import Rules
        from spark_audit.stream import Stream

        self.options, self.tell = options, tell
        self.folders = trail_folders(options)
        self._engines = _Engines(options, tell, interruption, resources)
        policy, signer = policy_of(options.policy), signer_of(options.sign)
        personal_key = personal_key_of(options.personal_key)
        options.out.mkdir(parents=True, exist_ok=True)
        opened = Checkpoint.opened(
            options.checkpoint, options.out, self.folders, Rules.of(policy.controls(), policy.sha256), signer
        )
        self.stream = Stream(
            checkpoint=resources.enter_context(opened),
            policy=policy,
            personal_key=personal_key,
            engine_of=self._engines.engine,
            progress=tell,
        )
        self._verdicts: set[Verdict] = set()
        #: Of each trail, why it cannot be judged now; and the last segment when nothing in its new ones could be.
        self._problems: dict[Location, str] = {}
        self._unjudged: dict[Location, str] = {}

    def run(self) -> int:
        """Reports batch after batch; with --once until there is no more. Raises as the whole."""
        while True:
            self._turn()
            if self.options.once:
                return self._exit_code()
            time.sleep(self.options.every_s)

    def _turn(self) -> None:
        """Handles everything that exists now, a batch of each trail by turns."""
        from spark_audit.increments.trails import OtherTrail

        rewritten: list[str] = []
        waiting = list(self.folders)
        while waiting:
            judged: list[Location] = []
            for folder in waiting:
                try:
                    judged += [folder] if self._went_on(folder) else []
                except OtherTrail as error:
                    rewritten.append(str(error))
            waiting = judged
        if rewritten:
            hint = "audit verify says more; to go on from the trail as it is, begin a new checkpoint folder"
            raise _Rewritten(f"{'; '.join(rewritten)} ({hint})")

    def _went_on(self, folder: Location) -> bool:
        """Whether a batch of a trail was reported. Raises OtherTrail."""
        try:
            news = self.stream.news(folder)
        except OSError as error:
            self._cannot(folder, f"{error.filename or folder} cannot be read: {error.strerror or error}")
            return False
        if news is None:
            is_begun = self.stream.checkpoint.state_of(folder) is not None
            self._cannot(folder, "" if is_begun else f"{folder} cannot be judged: no closed segment holds a line")
            return False
        return self._unjudged.get(folder) != news.last and self._is_reported(news)

    def _is_reported(self, news: "News") -> bool:
        try:
            result = self.stream.report(news)
        except LocationFailed as error:  # retention may remove what was listed
            self._cannot(news.trail, f"{news.trail} cannot be judged: {error}")
            return False
        if not result.controls:
            self._unjudged[news.trail] = news.last
            self._cannot(news.trail, f"{news.trail} cannot be judged from {news.first} on: {result.reason}")
            return False
        self._cannot(news.trail, "")
        self._verdicts.add(result.verdict)
        self._say(result)
        return True

    def _cannot(self, folder: Location, why: str) -> None:
        """Says once why a trail cannot be judged; "": it can."""
        if why and why != self._problems.get(folder):
            self.tell(why, "error")
        self._problems[folder] = why

    def _say(self, result: AuditResult) -> None:
        batch = self.stream.checkpoint.batches
        if self.options.as_json:
            told = {"batch": batch, "verdict": result.verdict.value, "reason": result.reason}
            sys.stdout.write(orjson.dumps({**told, "records": result.scope.records}).decode() + "\n")
        else:
            print(f"batch {batch}: {result.verdict.value}: {result.reason}")
        sys.stdout.flush()

    def _exit_code(self) -> int:
        if Verdict.VIOLATIONS in self._verdicts:
            return VIOLATIONS
        has_problem = any(self._problems.values())
        return NOT_EVALUABLE if has_problem or Verdict.NOT_EVALUABLE in self._verdicts else DONE


@dataclass(slots=True)
class _Engines:
    """An engine for each batch. Spark starts with the first one, and stays."""

    options: argparse.Namespace
    tell: Tell
    interruption: Interruption
    resources: ExitStack
    _spark: list["SparkSession"] = field(default_factory=list)

    @contextmanager
    def engine(self, text_bytes: int) -> Iterator["Engine"]:
        """An engine for about so many bytes of text. Raises EngineFailed."""
        if self.options.engine == "duckdb":
            with scratch_folder() as scratch, duck_engine(scratch, self.options.memory, text_bytes) as engine:
                yield engine
            return
        from spark_audit.engines.spark import SparkEngine
        from spark_audit.spark_session import resize

        session = self._session(text_bytes)
        resize(session, text_bytes)
        with (
            scratch_folder() as scratch,
            closing(SparkEngine(session, scratch if place_of(self.options).is_here else None)) as spark,
        ):
            yield spark

    def _session(self, text_bytes: int) -> "SparkSession":
        if not self._spark:
            self.tell("starting Spark")
            scratch = self.resources.enter_context(scratch_folder())
            size_bytes = min(text_bytes, _MOST_PREPARED_FOR_BYTES)
            session = spark_session(scratch, size_bytes, place_of(self.options), self.interruption)
            self._spark.append(self.resources.enter_context(session))
        return self._spark[0]

"""A stream as the command runs it, on DuckDB, and what it tells beside what one audit tells."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from spark_audit.engines.engine import Engine
from spark_audit.increments.checkpoint import Checkpoint
from spark_audit.increments.state import Rules
from spark_audit.policy import Policy
from spark_audit.result import AuditResult
from spark_audit.stream import Stream
from tests.spark_audit.increments.conftest import Told, duck, told_of_whole, write_segment


class Streaming:
    """A stream as the command runs it, on DuckDB; each run is a new process."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        self.folder, self.out, self.policy = folder, folder / "out", policy
        self.said: list[str] = []
        self.engines = 0

    def run(self, *trails: Path) -> list[AuditResult]:
        """Everything that is there now; the results. Raises OtherTrail."""
        self.out.mkdir(exist_ok=True)
        rules = Rules.of(self.policy.controls(), self.policy.sha256)
        with Checkpoint.opened(self.folder / "checkpoint", self.out, trails, rules) as checkpoint:
            stream = Stream(
                checkpoint=checkpoint,
                policy=self.policy,
                personal_key=None,
                engine_of=self._engine,
                progress=self.said.append,
            )
            return [result for trail in trails for result in self._results(stream, trail)]

    @contextmanager
    def _engine(self, _text_bytes: int) -> Iterator[Engine]:
        self.engines += 1
        with closing(duck(Path(tempfile.mkdtemp(dir=self.folder)))) as engine:
            yield engine

    @staticmethod
    def _results(stream: Stream, trail: Path) -> Iterator[AuditResult]:
        while (news := stream.news(trail)) is not None:
            result = stream.report(news)
            yield result
            if not result.controls:
                return

    def findings(self) -> list[tuple[int, str, int]]:
        """Batch, control and sequence of everything that was told."""
        return [(told["batch"], told["control"], told["sequence"]) for told in told_in(self.out)]

    def batches(self) -> dict[str, dict[str, bytes]]:
        """The files of the batches that are there."""
        return {
            folder.name: {path.name: path.read_bytes() for path in folder.iterdir()} for folder in self.out.glob("0*")
        }


def told_in(out: Path) -> list[dict[str, Any]]:
    """The findings of all batches."""
    return [
        json.loads(line) for path in sorted(out.glob("0*/findings.jsonl")) for line in path.read_text().splitlines()
    ]


def _identity(told: dict[str, Any]) -> Told:
    return told["control"], told["gateway"], told["sequence"], told["subject"]


def told_by_stream(parts: Sequence[Sequence[bytes]], scratch: Path, policy: Policy | None = None) -> tuple[int, bool]:
    """Streams a trail in parts, each a batch, and holds it against audits of the whole as it was then.

    How often the trail was read from its beginning, and whether anything was found. Raises AssertionError.
    """
    streaming = Streaming(Path(tempfile.mkdtemp(dir=scratch)), policy or Policy())
    trail = streaming.folder / "trail"
    before: set[Told] = set()
    for number, lines in enumerate(parts, start=1):
        write_segment(trail, number, lines)
        streaming.run(trail)
        told = {_identity(each) for each in told_in(streaming.out) if each["batch"] == number}
        whole = told_of_whole([trail], streaming.folder)
        assert told == whole - before, number
        before |= whole
    return sum("is read from its beginning" in line for line in streaming.said), bool(before)

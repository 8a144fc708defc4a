"""Closed segments, audited when they come: each batch of them goes on from the state of the one before.

A batch is an increment (increments/): the closed segments of one trail behind the state in the checkpoint, about as
many as a bound of bytes allows, and everything that was open. So nothing is read twice, and what takes days is judged
as what takes seconds. Two things have a trail read from its beginning, and what was told is not told again:

    a record names what had ended before the state    everything up to the end of the batch is read at once
    the program, policy or rules are others           everything is judged once more, in batches

A batch whose lines tell nothing that could be judged is not reported: the next segments are added to it. The results of
a batch have a seal (seal.py) by the key of the checkpoint.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from spark_audit.audit import Progress, audit
from spark_audit.audit_input import AuditInput
from spark_audit.engines.engine import Engine
from spark_audit.increments.checkpoint import Checkpoint
from spark_audit.increments.given import NamedBefore
from spark_audit.increments.state import State
from spark_audit.increments.trails import check_head, input_of_batch, state_behind
from spark_audit.location import Location
from spark_audit.policy import Policy
from spark_audit.read import TrailFiles, trail_files
from spark_audit.report.files import RESULT_FILE
from spark_audit.result import AuditResult, counted
from spark_audit.seal import SEAL, seal_of

FINDINGS_FILE: Final = "findings.jsonl"
#: Bytes of text of one batch. A larger segment is a batch by itself.
BATCH_BYTES: Final = 256 * 1024**2
_TOLD: Final = ("gateway", "sequence", "subject", "detail")

#: An engine for about so many bytes of text.
EngineOf = Callable[[int], AbstractContextManager[Engine]]


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What of a trail is not judged yet: its closed segments behind the state, from which the next batch goes on.

    `once_more` says why the whole trail is judged again, "" where it is not.
    """

    trail: Location
    files: TrailFiles
    state: State
    once_more: str = ""

    @property
    def first(self) -> str:
        """The name of the first segment."""
        return self.files.segments[0].name.partition(".")[0]

    @property
    def last(self) -> str:
        """That of the last one."""
        return self.files.segments[-1].name.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The part that stays the same from batch to batch."""

    checkpoint: Checkpoint
    policy: Policy
    personal_key: bytes | None
    engine_of: EngineOf
    progress: Progress
    #: Of each trail the segment with which its state ends, and whether it was there when the trail was checked.
    _checked: dict[Location, tuple[str, bool]] = field(default_factory=dict)

    def news(self, trail: Location) -> News | None:
        """What of a trail is to be judged; None if nothing is new. Raises OtherTrail, OSError."""
        rules = self.checkpoint.rules
        state = self.checkpoint.state_of(trail) or State(rules=rules)
        (head,) = state.trails or (None,)
        files = trail_files(trail, None, behind="" if head is None else head.segment)
        if head is not None:
            looks = head.segment, head.segment in files.passed_over
            if files.segments or self._checked.get(trail) != looks:
                check_head(trail, head)
                self._checked[trail] = looks
        if why := rules.why_others(state.rules):
            state, files = replace(state.forgotten(), rules=rules), trail_files(trail, None)
        return News(trail=trail, files=files, state=state, once_more=why) if files.size_bytes else None

    def report(self, news: News) -> AuditResult:
        """Audits the next batch of a trail, and reports it unless nothing in it can be judged.

        Raises EngineFailed, UnusableState, OSError.
        """
        if news.once_more:
            self.progress(f"the state of {news.trail} does not fit: {news.once_more}: the whole trail is judged again")
        most_bytes = BATCH_BYTES
        while True:
            files = news.files.first(most_bytes)
            result = self._reported(replace(news, files=files))
            if result.scope.records or len(files.segments) == len(news.files.segments):
                return result
            most_bytes *= 2

    def _reported(self, batch: News) -> AuditResult:
        try:
            return self._audited(batch.trail, input_of_batch(batch.files, batch.state, self._salt))
        except NamedBefore as error:
            files = trail_files(batch.trail, None, up_to=batch.last)
            self.progress(
                f"records name {error} from before the state, which had ended: {batch.trail} is read from its"
                f" beginning, {counted(len(files.segments), 'segment')}"
            )
            return self._audited(batch.trail, input_of_batch(files, batch.state.forgotten(), self._salt))

    @property
    def _salt(self) -> bytes:
        return self.checkpoint.signer.secret("numbers of a state")

    def _audited(self, trail: Location, made: AuditInput) -> AuditResult:
        """Raises NamedBefore."""
        assert made.since is not None
        policy = self.policy
        with self.engine_of(made.text_bytes) as engine:
            result = audit(
                engine,
                made,
                lambda _line: None,
                policy=policy,
                personal_key=self.personal_key,
                before=made.since.table("told"),
            )
            result = replace(result, policy=policy.name, policy_sha256=policy.sha256, policy_text=policy.text)
            if result.controls:
                state = state_behind(engine, made, self.checkpoint.rules)
                unfinished = self._write(trail, result, engine, state)
                self.checkpoint.finish(trail, state, unfinished)
        return result

    def _write(self, trail: Location, result: AuditResult, engine: Engine, state: State) -> Path:
        """Writes the folder of the next batch, beside its place, with its seal. Raises OSError."""
        place = self.checkpoint.next_folder
        unfinished = place.with_name(f".{place.name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        _write_file(unfinished / FINDINGS_FILE, _findings(int(place.name), trail, result, engine))
        _write_file(unfinished / RESULT_FILE, (result.as_json().encode(),))
        trails = (each.sealed() for each in state.trails)
        seal = seal_of(unfinished, (unfinished,), trails, self.checkpoint.signer)
        _write_file(unfinished / SEAL, (seal.to_bytes(),))
        return unfinished


def _write_file(path: Path, parts: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def _findings(batch: int, trail: Location, result: AuditResult, engine: Engine) -> Iterator[bytes]:
    """Every finding as a line of JSON, in ASCII."""
    severities = {control.identifier: control.severity for control in result.controls if control.violations}
    if not severities:
        return
    for row in engine.each("SELECT control, gateway, sequence, subject, detail FROM told ORDER BY control"):
        told = {"batch": batch, "trail": str(trail), "control": row["control"], "severity": severities[row["control"]]}
        yield json.dumps(told | {name: row[name] for name in _TOLD}).encode() + b"\n"

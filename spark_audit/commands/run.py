"""`run`: trails, or the Parquet of `ingest`, through every control; reports and summary."""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_audit.commands.engines import EngineFailed, duck_engine, place_of, scratch_folder, spark_engine
from spark_audit.commands.report import show_result
from spark_audit.commands.terminal import NOT_EVALUABLE, USAGE, Tell, not_written, tell_of
from spark_audit.interruption import Interruption
from spark_audit.location import Location, LocationFailed
from spark_audit.options import repeatable
from spark_audit.period import Period, moment_of
from spark_audit.personal import PersonalKey, UnusablePersonalKey
from spark_audit.report.destination import destination_of
from spark_audit.report.integrity import integrity_of_all
from spark_audit.result import AuditResult, Integrity, Verdict, counted
from spark_audit.seal import SealedTrail, write_seal
from spark_audit.trail.signature import KeySigner, UnusableKey, signer_of_pem
from spark_audit.verify import Anchor, UnusableAnchor, Verification, verify
from spark_audit.verify import Verdict as VerifyVerdict

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from spark_audit.audit_input import AuditInput
    from spark_audit.engines.engine import Engine
    from spark_audit.increments.state import State
    from spark_audit.policy import Policy
    from spark_audit.read import TrailFiles

    #: A description for people, and the audit input.
    _Source = tuple[str, AuditInput]

TRAIL_FOLDER: Final = "trail"
_FULL_AUDIT: Final = "audit the whole trail once, with --with-state"
#: The most audits of a trail that a gateway's retention changes meanwhile, or of Parquet that an ingest changes, if the
#: result is not clean.
_ATTEMPTS: Final = 3


class NothingToRead(Exception):
    """The named trails hold nothing that could be judged."""


class WrongUse(Exception):
    """Something that was named cannot be used. The text says what and why."""


def run(options: argparse.Namespace, interruption: Interruption) -> int:
    """Runs the command; returns the exit code."""
    tell = tell_of("run", options.log_format)
    with destination_of(options.out) as destination:
        try:
            command = _Run(options, destination.folder, tell, interruption)
        except (WrongUse, UnusableAnchor) as error:
            tell(str(error), "error")
            return USAGE
        except OSError as error:
            tell(f"{error.filename} cannot be read: {error.strerror}", "error")
            return NOT_EVALUABLE if isinstance(error, LocationFailed) else USAGE
        try:
            destination.check()  # now, and not after Spark's work
        except OSError as error:
            return not_written(options.out, error, tell)
        return show_result(command.result(), destination, options, tell, command.seal)


def trail_folders(options: argparse.Namespace) -> tuple[Location, ...]:
    """The folders of the named trails. Raises WrongUse if one does not exist, or is named twice; LocationFailed."""
    named: tuple[Location, ...] = (*options.data, *options.trail)
    for folder in named:
        if not folder.is_dir():
            raise WrongUse(f"{folder} is not a folder" + ("" if isinstance(folder, Path) else ", or holds nothing"))
    folders = tuple(folder / TRAIL_FOLDER for folder in options.data) + tuple(options.trail)
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise WrongUse("a trail is named twice")
    return folders


class _Run:
    """One audit, whose inputs are read and checked. Raises an error that says why one cannot be used."""

    def __init__(self, options: argparse.Namespace, out: Path, tell: Tell, interruption: Interruption) -> None:
        self.options, self.out, self.tell, self.interruption = options, out, tell, interruption
        self.folders = trail_folders(options)
        self.period = Period(from_us=_moment_us(options.from_time), until_us=_moment_us(options.until_time))
        self.place = place_of(options)
        self.policy = policy_of(options.policy)
        self.anchor = Anchor.read(public_key_file=options.public_key, digests=options.digests)
        self.personal_key = personal_key_of(options.personal_key)
        self.is_on_duckdb = options.engine == "duckdb"
        self.signer = signer_of(options.sign)
        self.since = self._state()
        #: The state behind this audit; None where none is kept, or nothing could be judged.
        self.state: State | None = None
        #: Of the trails, as they were when the last attempt began.
        self.verifications: tuple[Verification, ...] = ()

    def result(self) -> AuditResult:
        """The whole result. It is `not evaluable` if an engine does not start, or a trail cannot be read."""
        with scratch_folder() as scratch:
            for _attempt in range(_ATTEMPTS - 1):
                there = self._files()
                result = self._once(scratch)
                if result.verdict is Verdict.CLEAN or there <= self._files():
                    return result
                self.tell("files were compressed, merged or removed meanwhile: the audit begins again")
            return self._once(scratch)

    def seal(self, files: Iterable[Path]) -> None:
        """Says of which trails the files are, and signs it where a key was named. Raises OSError."""
        trails = tuple(map(SealedTrail.of, self.verifications))
        if not trails and self.state is not None:
            trails = tuple(each.sealed() for each in self.state.trails)
        write_seal(self.out, (*files, *self._write_state()), trails, self.signer)

    def _state(self) -> "State | None":
        """The state from which the audit goes on, an empty one to begin with; None where none is kept."""
        from spark_audit.increments.state import Rules, State, UnusableState

        path: Path | None = self.options.since_state
        if self.signer is None or (path is None and not self.options.with_state):
            return None
        rules = Rules.of(self.policy.controls(), self.policy.sha256)
        try:
            return State(rules=rules) if path is None else State.read(path, self.signer, rules)
        except UnusableState as error:
            raise WrongUse(f"{path} cannot be gone on with: {error}: {_FULL_AUDIT}") from None

    def _write_state(self) -> Iterator[Path]:
        """Writes the state, and gives its file. An audit that goes on from none removes that of an earlier one."""
        from spark_audit.increments.state import STATE_FILE, UnusableState

        path = self.out / STATE_FILE
        if self.state is not None and self.signer is not None:
            try:
                data = self.state.to_bytes(self.signer)
            except UnusableState as error:
                self.tell(str(error), "error")
                return
            unfinished = path.with_name(f"{STATE_FILE}.part")
            unfinished.write_bytes(data)
            unfinished.replace(path)
            self.tell(f"wrote {STATE_FILE}: {counted(self.state.table('records').num_rows, 'record')} carried")
            yield path
        elif self.options.since_state is None:
            path.unlink(missing_ok=True)

    def _files(self) -> set[Location]:
        """The present files of closed segments, or those of Parquet."""
        from spark_audit.read import closed_segments

        if self.options.parquet:
            from spark_audit.ingest.warehouse import parquet_files

            with suppress(OSError):
                return set(parquet_files(self.options.parquet))
            return set()
        return {path for folder in self.folders for path in closed_segments(folder)}

    def _once(self, scratch: Path) -> AuditResult:
        from spark_audit.increments.given import NamedBefore

        if self.since is None or not self.since.trails:
            return self._of_everything(scratch, self.since)
        try:
            return self._of_increment(scratch, self.since)
        except NamedBefore as error:
            self.tell(f"records name {error} from before the state, which had ended: the whole trail is read")
            return self._of_everything(scratch, self.since.forgotten())

    def _of_increment(self, scratch: Path, since: "State") -> AuditResult:
        """Raises NamedBefore."""
        self.verifications = ()
        result = self._result(scratch, lambda: self._trails_since(since, ()))
        integrity = Integrity(reason="an increment does not read what was judged before: `rfhbridge audit verify` does")
        if result.verdict is Verdict.NOT_EVALUABLE:
            return self._told(result, integrity)
        return self._told(replace(result, reason=f"{result.reason}; behind the state of an earlier audit"), integrity)

    def _of_everything(self, scratch: Path, since: "State | None") -> AuditResult:
        rule = replace(self.policy.rule, now_us=time.time_ns() // 1_000)
        verifications = tuple(
            verify(folder, self.anchor, accepted=self.policy.accepted, rule=rule) for folder in self.folders
        )
        self.verifications = verifications
        result = self._result(scratch, lambda: self._source(scratch, since, verifications))
        integrity = integrity_of_all(tuple(map(str, self.folders)), verifications)
        is_unruly = any(each.of_rule for each in verifications)
        verdict = Verdict.VIOLATIONS if is_unruly and result.verdict is Verdict.CLEAN else result.verdict
        return self._told(replace(result, verdict=verdict, reason=_with_integrity(result, integrity)), integrity)

    def _result(self, scratch: Path, source: Callable[[], "_Source"]) -> AuditResult:
        """Raises NamedBefore."""
        from spark_audit.audit import not_evaluable

        self.state = None
        try:
            return self._judged(scratch, *source())
        except (NothingToRead, EngineFailed) as error:
            return not_evaluable(str(error))
        except OSError as error:
            return not_evaluable(f"{error.filename or 'a file'} cannot be read: {error.strerror or error}")

    def _told(self, result: AuditResult, integrity: Integrity) -> AuditResult:
        return replace(
            result,
            integrity=integrity,
            command=repeatable("run", vars(self.options)),
            policy=self.policy.name,
            policy_sha256=self.policy.sha256,
            policy_text=self.policy.text,
        )

    def _source(self, scratch: Path, since: "State | None", verifications: tuple[Verification, ...]) -> "_Source":
        """Raises NothingToRead."""
        if self.options.parquet:
            return self._parquet()
        if since is not None:
            return self._trails_since(since, verifications)
        return self._trails(scratch, verifications)

    def _trails_since(self, since: "State", verifications: tuple[Verification, ...]) -> "_Source":
        """The closed segments behind a state. Raises NothingToRead, OSError."""
        from spark_audit.increments.trails import OtherTrail, files_since, heads_of, input_since

        assert self.signer is not None
        try:
            heads = heads_of(since, self.folders)
            trails = [files_since(folder, head) for folder, head in zip(self.folders, heads, strict=True)]
        except OtherTrail as error:
            raise NothingToRead(f"{error}; audit the whole trail, without --since-state") from None
        if not any(files.size_bytes for files in trails):
            behind = "since the state was made" if since.trails else "yet"
            raise NothingToRead(f"no segment was closed {behind}: there is nothing to judge")
        salt = self.signer.secret("numbers of a state")
        made = input_since(trails, since, salt, anchor=self.anchor, verifications=verifications)
        return _reading(trails), made

    def _trails(self, scratch: Path, verifications: tuple[Verification, ...]) -> "_Source":
        """A description of trails for people, and the audit input. Raises NothingToRead."""
        from spark_audit.audit_input import input_of_trails

        is_here = self.is_on_duckdb or self.place.is_here
        trails = [_files_of(folder, scratch, self.period, with_open=is_here) for folder in self.folders]
        made = input_of_trails(trails, period=self.period, anchor=self.anchor, verifications=verifications)
        return _reading(trails), made

    def _parquet(self) -> "_Source":
        """The same for Parquet. Raises NothingToRead."""
        from spark_audit.ingest.audit_input import input_of_parquet, selected
        from spark_audit.ingest.manifest import UnusableManifest
        from spark_audit.ingest.warehouse import Damaged

        folder: Location = self.options.parquet
        try:
            selection = selected(folder, self.period)
            made = input_of_parquet(folder, selection)
        except (Damaged, UnusableManifest) as error:
            raise NothingToRead(str(error)) from None
        except OSError as error:
            raise NothingToRead(f"{error.filename or folder} cannot be read: {error.strerror}") from None
        return f"reading {counted(len(selection.files), 'file')} of Parquet", made

    def _judged(self, scratch: Path, words: str, audit_input: "AuditInput") -> AuditResult:
        """Raises EngineFailed, NamedBefore."""
        from spark_audit.audit import audit
        from spark_audit.increments.trails import state_behind

        with self._engine(scratch, audit_input.text_bytes) as engine:
            self.tell(words)
            since = audit_input.since
            result = audit(
                engine,
                audit_input,
                self.tell,
                policy=self.policy,
                report_folder=self.out,
                personal_key=self.personal_key,
                before=None if since is None else since.table("told"),
            )
            if since is not None and result.verdict is not Verdict.NOT_EVALUABLE:
                self.tell("keeping the state")
                self.state = state_behind(engine, audit_input, since.rules)
            return result

    def _engine(self, scratch: Path, text_bytes: int) -> "AbstractContextManager[Engine]":
        if self.is_on_duckdb:
            return duck_engine(scratch, self.place.memory, text_bytes)
        self.tell("starting Spark")
        return spark_engine(scratch, text_bytes, self.place, self.interruption)


def _with_integrity(result: AuditResult, integrity: Integrity) -> str:
    """Adds the integrity of the trail to the reason of the verdict, even for a clean period or a mild policy."""
    if result.verdict is not Verdict.CLEAN or integrity.verdict != VerifyVerdict.VIOLATED.value:
        return result.reason
    return f"{result.reason}; the trail as a whole does not hold: {integrity.reason}"


def _files_of(folder: Location, scratch: Path, period: Period, *, with_open: bool) -> "TrailFiles":
    """The files to read of a trail. Raises NothingToRead."""
    from spark_audit.read import trail_files

    try:
        files = trail_files(folder, scratch if with_open else None, period=period)
        has_lines = files.size_bytes > 0
    except OSError as error:
        raise NothingToRead(f"{error.filename or folder} cannot be read: {error.strerror}") from None
    if not has_lines:
        closed = "" if with_open else " in a closed segment (only Spark on this machine reads open ones)"
        within = "" if period.is_everything else " of the period or the day around it"
        raise NothingToRead(f"{folder} holds no whole line{closed}{within}: it is empty, or this is not a trail")
    return files


def _reading(trails: "list[TrailFiles]") -> str:
    segments = counted(sum(len(files.segments) for files in trails), "segment")
    of_trails = f" of {counted(len(trails), 'trail')}" if len(trails) > 1 else ""
    return f"reading {segments}{of_trails}, {sum(files.size_bytes for files in trails) / 1e6:.1f} MB"


def policy_of(path: Path | None) -> "Policy":
    """The policy in a file, or the standard one. Raises WrongUse."""
    from spark_audit.policy import Policy, PolicyError

    try:
        return Policy() if path is None else Policy.load(path)
    except PolicyError as error:
        raise WrongUse(str(error)) from None
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror}") from None


def personal_key_of(path: Path | None) -> bytes | None:
    """The key in a file, which decrypts headers. Raises WrongUse."""
    if path is None:
        return None
    try:
        PersonalKey.read(path)
        return path.read_bytes()
    except UnusablePersonalKey as error:
        raise WrongUse(f"{path}: {error}") from None
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror}") from None


def signer_of(path: Path | None) -> KeySigner | None:
    """The key in a file that signs the results. Raises WrongUse."""
    try:
        return None if path is None else signer_of_pem(path.read_bytes())
    except UnusableKey as error:
        raise WrongUse(f"{path} {error}") from None
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror}") from None


def _moment_us(text: str) -> int:
    return moment_of(text) if text else 0

"""A trail that is audited as a whole, and segment by segment, each audit going on from the state of the one before."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from spark_audit.audit import audit
from spark_audit.audit_input import AuditInput, input_of_trails
from spark_audit.engines.duck import DuckEngine
from spark_audit.engines.engine import Engine
from spark_audit.facts.reading import Reading
from spark_audit.increments.given import NamedBefore, check_names, give
from spark_audit.increments.state import Rules, State
from spark_audit.increments.trails import files_since, heads_of, input_since, state_behind
from spark_audit.policy import Policy
from spark_audit.trail.signature import KeySigner
from tests.spark_audit.conftest import signing_key

SIGNER = KeySigner(signing_key(9))
#: Control, gateway, sequence and subject.
Told = tuple[str, str, int, str]
#: Lines of trails by the names of their folders.
Trails = Mapping[str, Sequence[bytes]]
#: Said of a file, whose lines are numbered within what was read of it.
OF_FILES = "integrity.lines"


def write_segment(folder: Path, number: int, lines: Sequence[bytes]) -> None:
    """Writes a closed segment of a trail."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number:012d}-20261120T{6 + number:02d}.jsonl").write_bytes(b"".join(lines))


def duck(scratch: Path) -> Engine:
    """A new engine."""
    return DuckEngine(Path(tempfile.mkdtemp(dir=scratch)), "1g")


@dataclass(slots=True)
class Increments:
    """Audits of trails in folders, to which segments come between two of them. Each gets the file of the one before.

    `is_patient`: where records name what had ended before the state, the whole trail is read, as the command does.
    """

    folders: Sequence[Path]
    scratch: Path
    engine: Callable[[Path], Engine] = duck
    policy: Policy = field(default_factory=Policy)
    is_patient: bool = True
    data: bytes = b""
    #: What was named so, and how many records each state carries.
    named: list[str] = field(default_factory=list)
    carried: list[int] = field(default_factory=list)

    @property
    def rules(self) -> Rules:
        return Rules.of(self.policy.controls(), self.policy.sha256)

    def state(self) -> State:
        """The last state, an empty one before the first audit."""
        return State.parse(self.data, SIGNER, self.rules) if self.data else State(rules=self.rules)

    def audit(self) -> set[Told]:
        """What the next audit tells."""
        since = self.state()
        try:
            return self._audit(since)
        except NamedBefore as error:
            if not self.is_patient:
                raise
            self.named.append(str(error))
            return self._audit(since.forgotten())

    def check_names(self) -> None:
        """Only looks what the next records name. Raises NamedBefore."""
        made = self._input(self.state())
        assert made.since is not None
        with closing(self.engine(self.scratch)) as engine:
            engine.read(made.pieces, Reading(cut=made.cut, salt=made.salt), made.text_bytes)
            give(engine, made.since)
            check_names(engine)

    def _input(self, since: State) -> AuditInput:
        heads = heads_of(since, self.folders)
        files = [files_since(each, head) for each, head in zip(self.folders, heads, strict=True)]
        return input_since(files, since, SIGNER.secret("test"))

    def _audit(self, since: State) -> set[Told]:
        made = self._input(since)
        with closing(self.engine(self.scratch)) as engine:
            audit(engine, made, lambda _line: None, policy=self.policy, before=since.table("told"))
            told, state = _told(engine), state_behind(engine, made, self.rules)
        self.carried.append(state.table("records").num_rows)
        self.data = state.to_bytes(SIGNER)
        return told


def _told(engine: Engine) -> set[Told]:
    rows = engine.rows("SELECT control, gateway, sequence, subject FROM told")
    return {(row["control"], row["gateway"], row["sequence"], row["subject"]) for row in rows}


def told_of_whole(folders: Sequence[Path], scratch: Path) -> set[Told]:
    """What one audit of whole trails tells, without a state."""
    with closing(duck(scratch)) as engine:
        made = input_of_trails([files_since(each, None) for each in folders])
        audit(engine, made, lambda _line: None)
        return _told(engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class InParts:
    """What was told of trails in parts: `told` by each audit; `set_aside` are trails that named what had ended."""

    told: Sequence[set[Told]]
    carried: Sequence[int]
    set_aside: frozenset[str]

    def of_all(self) -> set[Told]:
        return set().union(*self.told)

    def is_told_twice(self) -> bool:
        return sum(map(len, self.told)) > len(self.of_all())


def in_parts(trails: Trails, cuts: Mapping[str, Sequence[int]], scratch: Path) -> InParts:
    """Audits trails, each of the gateway that is its name, with segments that end behind these lines.

    A trail that names what had ended would have all of them read again. It is set aside, and the rest begins anew.
    """
    set_aside: frozenset[str] = frozenset()
    while True:
        root = Path(tempfile.mkdtemp(dir=scratch))
        rest = {name: list(_parts(lines, cuts[name])) for name, lines in trails.items() if name not in set_aside}
        audits = Increments([root / name for name in rest], root, is_patient=False)
        told = []
        try:
            for number in range(max(map(len, rest.values()))):
                for name, parts in rest.items():
                    write_segment(root / name, number + 1, parts[number])
                told.append(audits.audit())
        except NamedBefore as error:
            set_aside |= error.gateways
            continue
        return InParts(told=told, carried=audits.carried, set_aside=set_aside)


def _parts(lines: Sequence[bytes], cuts: Sequence[int]) -> Iterator[Sequence[bytes]]:
    for begin, end in zip((0, *cuts), (*cuts, len(lines)), strict=True):
        yield lines[begin:end]

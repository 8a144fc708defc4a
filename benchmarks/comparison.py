"""Two commits, measured in turns on the same machine: is one faster than the other, and how sure is that?

Both are checked out in a temporary folder, with the packages of this environment and the benchmarks of this working
tree, so that only the product differs. They are measured A B, B A, A B and so on: what the machine does meanwhile hits
both alike. Each pair gives one ratio of each measure. Reported are the geometric mean of these ratios, and the interval
that holds the true ratio with a confidence of 95 % (Student's t over the logarithms).
"""

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Measure
from benchmarks.load.wire import BenchmarkError
from benchmarks.servers import ALONE
from gateway import compiled

ROOT: Final = Path(__file__).resolve().parents[1]
#: What is compared where nothing is named: the three jobs of a gateway.
COMPARED: Final = ("qos1_offline", "one_to_one", "latency")
LEAST_PAIRS: Final = 2
#: 97.5 % of Student's t with 1, 2, ... degrees of freedom are below; beyond the last, that of the last is a bit wide.
_STUDENT_T: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
#: Measures in such units are better when they are higher, all others when they are lower.
_PER_SECOND: Final = "/s"
_SHOWN_DIGITS: Final = 8


class UnknownRevision(Exception):
    """The user has named something that is no commit of this repository."""


class Key(NamedTuple):
    """One figure of one benchmark."""

    benchmark: str
    subject: str
    case: str
    measure: str
    unit: str


Values = dict[Key, float]
"""The figures of one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How a figure of the new commit stands to that of the old one: new / old, between `low` and `high`.

    `old` and `new` are the medians of all runs.
    """

    key: Key
    old: float
    new: float
    ratio: float
    low: float
    high: float

    @property
    def gain(self) -> tuple[float, float]:
        """The interval turned so that above 1 is better."""
        return (self.low, self.high) if self.key.unit.endswith(_PER_SECOND) else (1 / self.high, 1 / self.low)

    @property
    def verdict(self) -> str:
        """What the interval allows to say."""
        worst, best = self.gain
        return "better" if worst > 1 else "worse" if best < 1 else "no difference shown"

    def as_dict(self) -> dict[str, object]:
        return asdict(self) | {"key": self.key._asdict(), "verdict": self.verdict}


def commit_of(revision: str, repository: Path = ROOT) -> str:
    """The full name of a commit. UnknownRevision where there is none."""
    found = _git(repository, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if found.returncode:
        raise UnknownRevision(f"{revision} is no commit of this repository")
    return found.stdout.strip()


def is_changed(repository: Path = ROOT) -> bool:
    """Whether the working tree has what no commit has; that is not measured."""
    return bool(_git(repository, "status", "--porcelain").stdout)


@contextmanager
def checked_out(commits: Sequence[str], repository: Path = ROOT) -> Iterator[list[Path]]:
    """A worktree of each commit, with the benchmarks of this one, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="rfhbench") as folder:
        trees = [Path(folder) / f"{place}-{commit[:_SHOWN_DIGITS]}" for place, commit in enumerate(commits)]
        try:
            for tree, commit in zip(trees, commits, strict=True):
                made = _git(repository, "worktree", "add", "--detach", str(tree), commit)
                if made.returncode:
                    raise BenchmarkError(f"git cannot check {commit} out: {made.stderr.strip()}")
                shutil.rmtree(tree / "benchmarks", ignore_errors=True)
                shutil.copytree(ROOT / "benchmarks", tree / "benchmarks")
            yield trees
        finally:
            for tree in trees:
                _git(repository, "worktree", "remove", "--force", str(tree))


def turns(pairs: int) -> Iterator[tuple[int, int]]:
    """The places of the two commits in the order of measuring, pair by pair: 0 1, 1 0, 0 1 and so on."""
    for pair in range(pairs):
        yield (0, 1) if pair % 2 == 0 else (1, 0)


def measured(tree: Path, arguments: Sequence[str]) -> Values:
    """One run of the benchmarks in a worktree, without peers. BenchmarkError where it fails."""
    figures = tree / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--json", str(figures), *arguments]
    environment = os.environ | {"PYTHONPATH": str(tree), ALONE: "1"}
    environment.setdefault(compiled.VARIABLE, "0")  # a build of one of them alone would win
    run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise BenchmarkError(f"{tree.name}: {run.stderr.strip().rpartition(chr(10))[2]}")
    return {
        Key(report["name"], row["subject"], row["case"], measure["name"], measure["unit"]): measure["value"]
        for report in json.loads(figures.read_text())["reports"]
        for row in report["rows"]
        for measure in row["measures"]
    }


def differences(old: Sequence[Values], new: Sequence[Values]) -> list[Difference]:
    """Of all measures that every run of both has; `old` and `new` are pairs by their place, at least two.

    A measure that was 0 in a run has no ratio, and is left out.
    """
    common = [key for key in old[0] if all(values.get(key, 0) > 0 for values in (*old, *new))]
    return [_difference(key, [each[key] for each in old], [each[key] for each in new]) for key in common]


def _difference(key: Key, old: Sequence[float], new: Sequence[float]) -> Difference:
    logarithms = [math.log(after / before) for before, after in zip(old, new, strict=True)]
    mean = fmean(logarithms)
    freedom = len(logarithms) - 1
    reach = _STUDENT_T[min(freedom, len(_STUDENT_T)) - 1] * stdev(logarithms) / math.sqrt(len(logarithms))
    return Difference(
        key=key,
        old=median(old),
        new=median(new),
        ratio=math.exp(mean),
        low=math.exp(mean - reach),
        high=math.exp(mean + reach),
    )


def compare(old: str, new: str, arguments: Sequence[str], pairs: int, console: Console) -> list[Difference]:
    """Measures both commits in turns, and says which run is under way."""
    found: tuple[list[Values], list[Values]] = ([], [])
    with checked_out((old, new)) as trees:
        for pair, places in enumerate(turns(pairs), start=1):
            for place in places:
                console.print(f"pair {pair} of {pairs}: {trees[place].name[2:]}", highlight=False)
                found[place].append(measured(trees[place], arguments))
    return differences(*found)


def print_differences(found: Sequence[Difference], old: str, new: str, console: Console) -> None:
    """One row for each measure."""
    table = Table(title=f"{new[:_SHOWN_DIGITS]} against {old[:_SHOWN_DIGITS]}", title_justify="left")
    for heading in ("benchmark", "measure"):
        table.add_column(heading, overflow="fold")
    for heading in (old[:_SHOWN_DIGITS], new[:_SHOWN_DIGITS], "ratio", "95 % interval"):
        table.add_column(heading, justify="right")
    table.add_column("that is", overflow="fold")
    for each in found:
        key = each.key
        figures = [Measure(name=key.measure, value=value, unit=key.unit) for value in (each.old, each.new)]
        table.add_row(
            ", ".join(filter(None, (key.benchmark, key.case))),
            figures[0].column,
            *(figure.text for figure in figures),
            f"{each.ratio:.3f}",
            f"{each.low:.3f} to {each.high:.3f}",
            each.verdict,
        )
    console.print(table)


def fallen_under(found: Sequence[Difference], limit: float) -> list[Difference]:
    """The measures that are worse than so many times the old one, with 95 % confidence."""
    return [each for each in found if each.gain[1] < limit]


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=False)

"""A differential fuzzer of the two builds: the sources and what `make compile` made of them agree on every input.

    .venv/bin/python -m tests.fuzz.two_builds 300               for so many seconds, every subject in turns
    .venv/bin/python -m tests.fuzz.two_builds 300 store rows    these subjects
    .venv/bin/python -m tests.fuzz.two_builds --seed 7 300      another run; the same seed begins alike again
    .venv/bin/python -m tests.fuzz.two_builds var/fuzz/two_builds/store-...    compares a finding again

Two processes (one_build.py) read the same inputs of each subject (subjects.py), and say what came of each. Inputs are
seeds, what `make fuzz` has kept, and mutations of them (gateway_readers.py). An input whose outcome has a word that no
outcome had before is kept as one to start from. The first difference of each kind is printed. The inputs that show it
are in var/fuzz/two_builds then, a line of hexadecimal digits each: a reader may remember what came before. The run goes
on, and ends with exit code 1.
"""

import argparse
import hashlib
import itertools
import multiprocessing
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from gateway import compiled
from tests.compiled_build import can_build, why_no_build
from tests.fuzz.gateway_readers import PROJECT, mutated
from tests.fuzz.subjects import SUBJECTS
from tests.processes.forked import fresh

FOUND: Final = PROJECT / "var" / "fuzz" / "two_builds"
#: Inputs of other fuzzers, by subject.
_CORPORA: Final = {"connection": "connections", "bridge": "bridge", "bridge_of_mqrfh": "bridge"}
#: Inputs from which mutations start, at most for each subject.
_MOST_KEPT: Final = 3_000
_LONGEST_BYTES: Final = 1_024
_WORD: Final = re.compile(r"[A-Za-z_]{4,24}")
_SHOWN_CHARACTERS: Final = 300
DEFAULT_SEED: Final = 1
#: The last outcome of a batch in which a process died, and those before it.
_ENDED: Final = "the process ended"
_UNKNOWN: Final = "nobody knows"


class Build:
    """A process with one build of the gateway. `modules`: whether each loaded module of the table is compiled."""

    def __init__(self, *, is_compiled: bool, planted: str = "") -> None:
        self._is_compiled = is_compiled
        self._planted = [planted] if planted else []
        self._begin()

    def _begin(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        environment = {**os.environ, compiled.VARIABLE: str(int(self._is_compiled)), "PYTHONHASHSEED": "0"}
        self._place = os.memfd_create("place")
        numbers = theirs.fileno(), self._place
        self._process: subprocess.Popen[str] = fresh(
            "tests.fuzz.one_build", *map(str, numbers), *self._planted, pass_fds=numbers, env=environment
        )
        theirs.close()
        self._connection = ours
        self.modules: dict[str, bool] = ours.recv()

    def give(self, name: str, inputs: Sequence[bytes]) -> None:
        """Sends the inputs of a batch; `outcomes` answers."""
        self._connection.send((name, list(inputs)))

    def outcomes(self) -> list[str]:
        """What came of each input, and of the end of the batch. If the process dies, that is the last."""
        try:
            found: list[str] = self._connection.recv()
        except (EOFError, ConnectionResetError):
            exit_code = self._process.wait()
            before = int.from_bytes(os.pread(self._place, 8, 0), "big")
            self._end()
            self._begin()
            return [_UNKNOWN] * before + [f"{_ENDED} with exit code {exit_code}"]
        return found

    def close(self) -> None:
        self._end()
        self._process.wait()

    def _end(self) -> None:
        self._connection.close()
        os.close(self._place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The inputs of a batch, and the two outcomes of the last of them. No process may die, not even both."""

    subject: str
    inputs: tuple[bytes, ...]
    outcomes: tuple[str, str]

    @property
    def place(self) -> int:
        """Where the outcomes part."""
        pairs = enumerate(zip(*self.outcomes, strict=False))
        return next((place for place, (one, other) in pairs if one != other), min(map(len, self.outcomes)))

    @property
    def kind(self) -> str:
        """Differences of one kind have one cause, most likely: the words where the outcomes part."""
        parts = [outcome[max(0, self.place - 60) : self.place + 40] for outcome in self.outcomes]
        return " ".join([self.subject, *(word for part in parts for word in _WORD.findall(part))])

    def __str__(self) -> str:
        begin = max(0, self.place - _SHOWN_CHARACTERS // 3)
        first, second = (outcome[begin : begin + _SHOWN_CHARACTERS] for outcome in self.outcomes)
        inputs = f"{self.subject}: the outcomes of {len(self.inputs)} inputs part at character {self.place}"
        return f"{inputs}\n    one:   ...{first}\n    other: ...{second}"

    def save(self, folder: Path) -> Path:
        """The file with its inputs."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.subject}-{hashlib.sha256(self.kind.encode()).hexdigest()[:12]}"
        file.write_text("".join(f"{data.hex()}\n" for data in self.inputs), encoding="ascii")
        return file


class Comparison:
    """Two builds that read the same."""

    def __init__(self, first: Build, second: Build) -> None:
        self._builds = first, second
        #: How many inputs both have read.
        self.compared = 0

    def outcomes(self, subject: str, inputs: Sequence[bytes]) -> tuple[list[str], list[str]]:
        """What came of each input of a batch, and of its end, by build."""
        self.compared += len(inputs)
        for build in self._builds:
            build.give(subject, inputs)
        first, second = (build.outcomes() for build in self._builds)
        return first, second

    def difference(self, subject: str, inputs: Sequence[bytes]) -> Difference | None:
        """The first difference of a batch; None if the builds agree."""
        return _difference(subject, inputs, self.outcomes(subject, inputs))

    def shortest(self, found: Difference) -> Difference:
        """The same with fewer inputs, where fewer show a difference."""
        length = len(found.inputs)
        for number in (1, 2, length // 8, length // 4, length // 2):
            if 0 < number < length:
                again = self.difference(found.subject, found.inputs[-number:])
                if again is not None:
                    return again
        return found


def _difference(subject: str, inputs: Sequence[bytes], outcomes: tuple[list[str], list[str]]) -> Difference | None:
    for place, (one, other) in enumerate(itertools.zip_longest(*outcomes, fillvalue="nothing")):
        has_died = one.startswith(_ENDED) or other.startswith(_ENDED)
        if has_died or (one != other and _UNKNOWN not in (one, other)):
            return Difference(subject=subject, inputs=tuple(inputs[: place + 1]), outcomes=(one, other))
    return None


class Pool:
    """The inputs from which mutations of a subject start."""

    def __init__(self, subject: str, chance: random.Random, *, with_corpora: bool) -> None:
        self._inputs = list(SUBJECTS[subject].seeds())
        folder = PROJECT / "var" / "fuzz" / _CORPORA.get(subject, "nothing") / "corpus"
        if with_corpora and folder.is_dir():
            self._inputs += [path.read_bytes() for path in sorted(folder.iterdir())[:_MOST_KEPT]]
        self._fresh = list(self._inputs)
        self._words: set[str] = set()
        self._chance = chance
        #: How many inputs it has given.
        self.given = 0

    def batch(self, number: int) -> list[bytes]:
        """Inputs that were not read yet, then mutations."""
        self.given += number
        made, self._fresh = self._fresh[:number], self._fresh[number:]
        pick = self._chance.choice
        made += [
            mutated(pick(self._inputs), pick(self._inputs), self._chance)[:_LONGEST_BYTES]
            for _ in range(number - len(made))
        ]
        return made

    def learn(self, inputs: Sequence[bytes], outcomes: Sequence[str]) -> None:
        """Keeps inputs whose outcome has a new word."""
        for data, outcome in zip(inputs, outcomes, strict=False):
            words = set(_WORD.findall(outcome))
            if len(self._inputs) < _MOST_KEPT and not words <= self._words:
                self._inputs.append(data)
            self._words |= words


def campaign(
    comparison: Comparison,
    subjects: Sequence[str],
    *,
    seed: int,
    goes_on: Callable[[int], bool],
    with_corpora: bool = False,
) -> Iterator[Difference]:
    """Compares a batch of each subject in turns, while `goes_on` says so of the number of inputs of the least.

    Gives the first difference of each kind.
    """
    pools = {name: Pool(name, random.Random(f"{seed} {name}"), with_corpora=with_corpora) for name in subjects}
    kinds: set[str] = set()
    while goes_on(min(pool.given for pool in pools.values())):
        for name, pool in pools.items():
            inputs = pool.batch(SUBJECTS[name].batch)
            outcomes = comparison.outcomes(name, inputs)
            found = _difference(name, inputs, outcomes)
            if found is not None and found.kind not in kinds:
                kinds.add(found.kind)
                yield comparison.shortest(found)
            pool.learn(inputs, outcomes[0])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.two_builds", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="begins another run")
    parser.add_argument("given", nargs="*", default=["600"], help="seconds and subjects, or files of findings")
    arguments = parser.parse_args()
    if reason := why_no_build():
        print(f"two_builds: nothing to compare: {reason}")
        return int(can_build())
    first, *others = arguments.given
    if first.isdecimal() and not set(others) <= SUBJECTS.keys():
        parser.error(f"the subjects are {', '.join(SUBJECTS)}")
    missing = [] if first.isdecimal() else [name for name in arguments.given if not Path(name).is_file()]
    if missing:
        parser.error(f"{missing[0]} is neither a number of seconds nor a file of findings")
    with Build(is_compiled=False) as sources, Build(is_compiled=True) as built:
        comparison = Comparison(sources, built)
        if not first.isdecimal():
            found = [read_again(comparison, Path(name)) for name in arguments.given]
            return int(any(found))
        deadline_s, differences = time.monotonic() + float(first), 0
        for difference in campaign(
            comparison,
            others or list(SUBJECTS),
            seed=arguments.seed,
            goes_on=lambda _least: time.monotonic() < deadline_s,
            with_corpora=True,
        ):
            differences += 1
            print(f"{difference}\n    {difference.save(FOUND)}", flush=True)
        print(f"{comparison.compared} inputs, {differences} differences")
        return int(differences > 0)


def read_again(comparison: Comparison, file: Path) -> bool:
    """Whether the builds still differ on the inputs of a finding."""
    inputs = [bytes.fromhex(line) for line in file.read_text(encoding="ascii").splitlines()]
    found = comparison.difference(file.name.rpartition("-")[0], inputs)
    print(found or f"{file.name}: the builds agree")
    return found is not None


if __name__ == "__main__":
    sys.exit(main())

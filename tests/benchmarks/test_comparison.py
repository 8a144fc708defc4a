"""Two commits are measured in turns, each by its own code, and the interval says what may be said."""

import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks import comparison
from benchmarks.__main__ import main
from benchmarks.comparison import Difference, Key, UnknownRevision, Values, checked_out, commit_of, differences, turns
from benchmarks.load.wire import BenchmarkError

ROOT = Path(__file__).resolve().parents[2]
RATE = Key("qos1_offline", "rfhbridge", "", "rate", "messages/s")
CPU = Key("qos1_offline", "rfhbridge", "", "CPU", "us/message")
in_a_repository = pytest.mark.skipif(
    bool(subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=False).returncode),
    reason="no history here: an unpacked archive",
)


def _difference(key: Key, ratios: Sequence[float]) -> Difference:
    (found,) = differences([{key: 10.0}] * len(ratios), [{key: 10.0 * ratio} for ratio in ratios])
    return found


def test_pairs_are_measured_in_turns() -> None:
    assert list(turns(4)) == [(0, 1), (1, 0), (0, 1), (1, 0)]


def test_the_interval_is_students_t_over_the_logarithms_of_the_ratios() -> None:
    """Ratios 1.1, 1.2 and 1.3: the mean of the logarithms is 0.17999, their deviation 0.083559, t 4.303 for two
    degrees of freedom, so the interval reaches 0.20759 to both sides.
    """
    found = _difference(RATE, (1.1, 1.2, 1.3))
    assert found.ratio == pytest.approx((1.1 * 1.2 * 1.3) ** (1 / 3))
    assert (found.low, found.high) == pytest.approx(
        (math.exp(0.17999 - 0.20759), math.exp(0.17999 + 0.20759)), rel=1e-4
    )
    assert (found.old, found.new) == (10, 12)


def test_equal_runs_have_an_interval_without_width() -> None:
    found = _difference(RATE, (1.0, 1.0))
    assert (found.low, found.ratio, found.high) == (1, 1, 1)
    assert found.verdict == "no difference shown"


@pytest.mark.parametrize("pairs", [2, 31, 40])
def test_any_number_of_pairs_has_an_interval(pairs: int) -> None:
    found = _difference(RATE, [1.0, 1.1] * pairs)
    assert found.low < found.ratio < found.high


@pytest.mark.parametrize(
    ("key", "ratios", "verdict"),
    [
        (RATE, (1.20, 1.21, 1.22), "better"),
        (RATE, (0.80, 0.81, 0.82), "worse"),
        (CPU, (1.20, 1.21, 1.22), "worse"),
        (CPU, (0.80, 0.81, 0.82), "better"),
        (RATE, (0.80, 1.21, 1.02), "no difference shown"),
    ],
)
def test_a_rate_is_better_when_it_is_higher_and_a_cost_when_it_is_lower(
    key: Key, ratios: Sequence[float], verdict: str
) -> None:
    assert _difference(key, ratios).verdict == verdict


def test_a_measure_that_was_nothing_in_a_run_or_is_not_in_all_has_no_ratio() -> None:
    assert differences([{RATE: 1.0, CPU: 0.0}, {RATE: 1.0, CPU: 1.0}], [{RATE: 1.0, CPU: 1.0}] * 2)[0].key == RATE
    assert differences([{RATE: 1.0, CPU: 1.0}] * 2, [{RATE: 1.0}] * 2)[0].key == RATE


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], list[str]]:
    """Replaces real runs: the new commit has so many times the rate and the CPU of the old one."""

    def replaced(rate: float, cpu: float) -> list[str]:
        order: list[str] = []

        def measured(tree: Path, _arguments: Sequence[str]) -> Values:
            order.append(tree.name[0])
            noise = 1 + len(order) / 10_000
            return {RATE: noise * (rate if tree.name[0] == "1" else 1), CPU: cpu if tree.name[0] == "1" else 1}

        monkeypatch.setattr(comparison, "measured", measured)
        return order

    return replaced


@in_a_repository
@pytest.mark.parametrize(
    ("rate", "cpu", "limit", "code"),
    [
        (0.5, 2.0, [], 0),
        (0.5, 1.0, ["0.9"], 1),
        (1.0, 2.0, ["0.9"], 1),
        (0.95, 1.05, ["0.9"], 0),
        (2.0, 0.5, ["0.9"], 0),
    ],
)
def test_only_with_a_limit_a_slower_commit_fails(
    runs: Callable[[float, float], list[str]],
    rate: float,
    cpu: float,
    limit: list[str],
    code: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    order = runs(rate, cpu)
    fail = ["--fail-under", *limit] if limit else []
    assert main(["--against", "HEAD", "--pairs", "3", "--json", str(tmp_path / "f.json"), *fail]) == code
    said = capsys.readouterr()
    assert order == ["0", "1", "1", "0", "0", "1"]
    assert f"{rate:.3f}" in said.out
    assert [each["new"] / each["old"] for each in json.loads((tmp_path / "f.json").read_text())["differences"]] == (
        pytest.approx([rate, cpu], rel=0.01)
    )
    named = [name for name, worse in (("rate", rate < 0.9), ("CPU", cpu > 1.2)) if worse and limit]
    assert [line.split(":")[0] for line in said.err.splitlines()] == [f"qos1_offline, {name}" for name in named]


@in_a_repository
def test_a_revision_that_is_none_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--against", "no-such-revision"]) == 2
    said = capsys.readouterr()
    assert said.err == "python -m benchmarks: no-such-revision is no commit of this repository\n"
    assert said.out == ""


@pytest.mark.parametrize("revision", ["--help", "", "HEAD:README.md"])
def test_what_git_could_take_for_something_else_is_no_revision(revision: str) -> None:
    with pytest.raises(UnknownRevision):
        commit_of(revision)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fail-under", "0.9"], "--fail-under needs --against"),
        (["--against", "HEAD", "--fail-under", "0"], "0 is not a ratio above 0"),
        (["--against", "HEAD", "--fail-under", "slow"], "slow is not a ratio above 0"),
        (["--against", "HEAD", "--pairs", "1"], "1 is not a number of pairs from 2 on"),
    ],
)
def test_a_wrong_argument_exits_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_of:
        main(arguments)
    assert exit_of.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_worktree_is_measured_by_its_own_code(tmp_path: Path) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway/__init__.py").touch()
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/__init__.py").touch()
    (tmp_path / "benchmarks/__main__.py").write_text(
        "import json, os, sys, pathlib, gateway\n"
        "measures = [{'name': 'rate', 'value': 2.0, 'unit': os.environ['RFHBRIDGE_COMPILED']}]\n"
        "subject = sys.argv[-1] + os.environ['PYTHONPATH']\n"
        "rows = [{'subject': subject, 'case': gateway.__file__, 'measures': measures}]\n"
        "pathlib.Path(sys.argv[2]).write_text(json.dumps({'reports': [{'name': 'headers', 'rows': rows}]}))\n"
    )
    values = comparison.measured(tmp_path, ["--seconds", "1"])
    assert values == {Key("headers", f"1{tmp_path}", str(tmp_path / "gateway/__init__.py"), "rate", "0"): 2.0}
    (tmp_path / "benchmarks/__main__.py").write_text("import sys\nsys.exit('headers: no luck')\n")
    with pytest.raises(BenchmarkError, match=f"{tmp_path.name}: headers: no luck"):
        comparison.measured(tmp_path, [])


def _repository(folder: Path) -> list[str]:
    """Two commits, whose file `product` says 1 and 2."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", str(folder)], check=True)
    commits = []
    for text in "12":
        (folder / "product").write_text(text)
        (folder / "benchmarks").mkdir(exist_ok=True)
        (folder / "benchmarks" / f"old{text}").touch()
        subprocess.run([*git, "add", "."], cwd=folder, check=True)
        subprocess.run([*git, "commit", "-qm", text], cwd=folder, check=True)
        commits.append(commit_of("HEAD", folder))
    return commits


def test_each_commit_is_checked_out_with_the_benchmarks_of_this_tree_and_removed(tmp_path: Path) -> None:
    commits = _repository(tmp_path)
    with checked_out(commits, tmp_path) as trees:
        assert [(tree / "product").read_text() for tree in trees] == ["1", "2"]
        for tree in trees:
            assert (tree / "benchmarks/__main__.py").read_text() == (ROOT / "benchmarks/__main__.py").read_text()
            assert not (tree / "benchmarks/old1").exists()
    assert not any(tree.exists() for tree in trees)
    listed = subprocess.run(["git", "worktree", "list"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1


@in_a_repository
def test_a_commit_is_compared_with_itself() -> None:
    asked = ["--against", "HEAD", "--pairs", "2", "--seconds", "0.01", "headers"]
    command = [sys.executable, "-m", "benchmarks", *asked]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "pair 2 of 2: " in run.stdout
    assert "95 % interval" in run.stdout

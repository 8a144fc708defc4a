"""A branch that refuses forced pushes keeps every digest; a remote that lets itself be rewritten is no witness."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.audit_trail.digests import read_digest
from gateway.audit_trail.housekeeper import Housekeeper
from gateway.audit_trail.plan import TrailPlan, WitnessPlan
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.witnesses.git_repository import GitRepository
from gateway.audit_trail.witnesses.witness import WitnessError, Witnessing, WorthlessWitness
from mq_adapters.plausible_clock import PlausibleClock
from spark_audit.trail.digest import DIGEST_FOLDER, digest_name
from spark_audit.trail.receipt import GitReceipt, parse_receipt, receipt_path
from spark_audit.trail.witness_note import note_path, read_note
from spark_audit.verify import Anchor, Finding, Verdict, verify
from tests.gateway.audit_trail.conftest import batches, clock, folder  # noqa: F401

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def _git(*words: object) -> str:
    return subprocess.run(["git", *map(str, words)], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A repository that refuses forced pushes and deletions."""
    path = tmp_path / "remote.git"
    _git("init", "--quiet", "--bare", path)
    for key in ("denyNonFastForwards", "denyDeletes"):
        _git("-C", path, "config", f"receive.{key}", "true")
    return path


def _close(trail: Trail, batches, count: int = 1) -> None:  # noqa: F811
    for _ in range(count):
        trail.append(*batches())
        trail.close_segment()


def _witnessing(trail: Trail, remote: Path, name: str = "office") -> Witnessing:
    repository = GitRepository(
        name, trail.folder.parent / f"{name}.git", trail.folder, remote=str(remote), branch="plant"
    )
    return Witnessing(repository, trail.folder, trail.digests)


def _digest_at(remote: Path, number: int) -> bytes:
    path = f"plant:digests/{number // 1000:09d}/{number:012d}.digest"
    return subprocess.run(["git", "-C", remote, "cat-file", "blob", path], check=True, capture_output=True).stdout


def test_every_digest_goes_to_the_branch_as_it_is(folder, clock, batches, remote) -> None:  # noqa: F811
    with Trail.open(folder, now=clock) as trail:
        _close(trail, batches, 3)
        task = _witnessing(trail, remote)
        while task.step():
            pass
        for number in (1, 2, 3):
            assert _digest_at(remote, number) == read_digest(trail.digests.folder, number)[1]
        note = read_note(note_path(folder, "office"))
        assert note is not None
        assert (note.number, note.failure, note.risk) == (3, "", "")
        assert note.digest_at_us == read_digest(trail.digests.folder, 3)[0].until_us
        receipt = parse_receipt(receipt_path(folder, "office").read_bytes())
        assert isinstance(receipt, GitReceipt)
        assert (receipt.number, receipt.ref) == (3, "refs/heads/plant")
        commit = subprocess.run(["git", "-C", remote, "cat-file", "commit", "plant"], check=True, capture_output=True)
        assert receipt.commit == commit.stdout


def test_a_kill_before_the_note_repeats_nothing_that_the_remote_has(folder, clock, batches, remote) -> None:  # noqa: F811
    with Trail.open(folder, now=clock) as trail:
        _close(trail, batches)
        first = _witnessing(trail, remote)
        assert first.step()
        before = _git("-C", remote, "rev-parse", "plant")
        note_path(folder, "office").unlink()
        shutil.rmtree(folder.parent / "office.git")
        assert not _witnessing(trail, remote).step()
        assert _git("-C", remote, "rev-parse", "plant") == before
        _close(trail, batches)
        assert _witnessing(trail, remote).step()
        assert _digest_at(remote, 2)


@pytest.mark.parametrize(
    ("key", "way"), [("denyNonFastForwards", "forced push"), ("denyDeletes", "deletion")], ids=["force", "delete"]
)
def test_a_remote_that_can_be_rewritten_gets_no_digest(folder, clock, batches, remote, key, way) -> None:  # noqa: F811
    _git("-C", remote, "config", f"receive.{key}", "false")
    with Trail.open(folder, now=clock) as trail:
        _close(trail, batches)
        with pytest.raises(WorthlessWitness, match=way):
            _witnessing(trail, remote).step()
        assert "digests" not in _git("-C", remote, "ls-tree", "--name-only", "plant")
        note = read_note(note_path(folder, "office"))
        assert note is not None
        assert note.number == 0
        assert way in note.risk


def test_a_history_that_was_rewritten_is_told(folder, clock, batches, remote, tmp_path) -> None:  # noqa: F811
    with Trail.open(folder, now=clock) as trail:
        _close(trail, batches)
        assert _witnessing(trail, remote).step()
        tree = _git("-C", remote, "rev-parse", "plant^{tree}")
        forger = ("-c", "user.name=f", "-c", "user.email=f@localhost")
        forged = _git("-C", remote, *forger, "commit-tree", tree, "-m", "forged")
        _git("-C", remote, "update-ref", "refs/heads/plant", forged)
        with pytest.raises(WitnessError, match="rewritten"):
            _witnessing(trail, remote).step()
        _git("-C", remote, "update-ref", "-d", "refs/heads/plant")
        with pytest.raises(WitnessError, match="took digests away"):
            _witnessing(trail, remote).step()


def test_a_digest_of_another_trail_is_told(folder, clock, batches, remote, tmp_path) -> None:  # noqa: F811
    other = tmp_path / "other" / "trail"
    other.mkdir(parents=True)
    with Trail.open(other, now=clock) as trail:
        _close(trail, batches, 2)
        assert _witnessing(trail, remote).step()
    with Trail.open(folder, now=clock) as trail:
        _close(trail, batches, 1)
        with pytest.raises(WitnessError, match="the trail went back"):
            _witnessing(trail, remote).step()
        _close(trail, batches, 1)
        with pytest.raises(WitnessError, match="not the one of this trail"):
            _witnessing(trail, remote).step()


def test_a_remote_that_is_away_is_tried_again_later(folder, clock, batches, remote) -> None:  # noqa: F811
    moments = [0.0]
    with Trail.open(folder, now=clock) as trail:
        _close(trail, batches)
        away = remote.rename(remote.with_name("away"))
        repository = GitRepository("office", folder.parent / "office.git", folder, remote=str(remote), branch="plant")
        task = Witnessing(repository, folder, trail.digests, monotonic=lambda: moments[0])
        with pytest.raises(WitnessError, match="git ls-remote"):
            task.step()
        assert task.note.failure
        away.rename(remote)
        assert not task.step(), "it is too early"
        moments[0] = 31.0
        assert task.step()
        assert replace(task.note, checked_at_us=0).failure == ""


def test_a_remote_that_never_answers_is_given_up(folder, clock, batches, tmp_path) -> None:  # noqa: F811
    settings = tmp_path / "git-settings"
    settings.write_text('[core]\nsshCommand = "sleep 600 #"\n')
    repository = GitRepository(
        "office",
        tmp_path / "o.git",
        tmp_path,
        remote="ssh://localhost/x",
        branch="b",
        git_settings_file=str(settings),
        timeout_s=0.5,
    )
    with Trail.open(folder, now=clock) as trail:
        _close(trail, batches)
        with pytest.raises(WitnessError, match=r"took more than 0\.5 s"):
            Witnessing(repository, folder, trail.digests).step()


ASK_FOR_EVER = """
import sys
from pathlib import Path
from gateway.audit_trail.witnesses import git_repository
git_repository._AFTER_US_S = 0.1
folder, settings = Path(sys.argv[1]), sys.argv[2]
git_repository.GitRepository(
    "office", folder, folder, remote="ssh://localhost/x", branch="b", git_settings_file=settings, timeout_s=1.0
).last()
"""


def test_git_does_not_outlive_its_time_where_the_exporter_is_killed(tmp_path) -> None:
    os.mkfifo(tmp_path / "held")
    settings = tmp_path / "git-settings"
    settings.write_text(f'[core]\nsshCommand = "exec 9>{tmp_path}/held; echo hangs >&9; sleep 600 #"\n')
    exporter = subprocess.Popen([sys.executable, "-c", ASK_FOR_EVER, tmp_path / "o.git", settings])
    with exporter, (tmp_path / "held").open("rb") as held:
        assert held.readline() == b"hangs\n"
        exporter.kill()
        assert held.read() == b"", "everybody who could write has ended"


def _clone_with(trail: Trail, remote: Path, clone: Path) -> Anchor:
    """What an auditor has who clones the witness's repository."""
    task = _witnessing(trail, remote)
    while task.step():
        pass
    _git("clone", "--quiet", "--branch", "plant", remote, clone)
    return Anchor.read(digests=clone)


def test_a_clone_anchors_a_trail_and_names_the_digest_that_was_changed_or_cut_off(
    folder,  # noqa: F811
    clock,  # noqa: F811
    batches,  # noqa: F811
    remote,
    tmp_path,
) -> None:
    with Trail.open(folder, now=clock) as trail:
        _close(trail, batches, 3)
        anchor = _clone_with(trail, remote, tmp_path / "clone")
    assert verify(folder, anchor).verdict is Verdict.ANCHORED
    last = folder / DIGEST_FOLDER / digest_name(3)
    data = last.read_bytes()
    last.unlink()
    assert Finding.MISSING_DIGEST in {problem.finding for problem in verify(folder, anchor).problems}
    last.write_bytes(data.replace(b'"code_version":"', b'"code_version":"9'))
    assert Finding.UNLIKE_COPY in {problem.finding for problem in verify(folder, anchor).problems}


def test_a_witness_that_hangs_delays_neither_the_trail_nor_copies_nor_another_witness(
    folder,  # noqa: F811
    clock,  # noqa: F811
    batches,  # noqa: F811
    remote,
    tmp_path,
    monkeypatch,
) -> None:
    monkeypatch.setattr("gateway.audit_trail.housekeeper.END_WAIT_S", 30.0)
    settings = tmp_path / "git-settings"
    settings.write_text('[core]\nsshCommand = "sleep 600 #"\n')
    hanging = WitnessPlan(
        name="away", type="git", remote="ssh://localhost/x", branch="b", git_settings_file=str(settings), timeout_s=20.0
    )
    here = replace(hanging, name="office", remote=str(remote), branch="plant", git_settings_file="")
    plan = replace(TrailPlan.standard(folder), witnesses=(hanging, here), copy_folder=str(tmp_path / "copy"))
    (tmp_path / "copy").mkdir()
    with Trail.open(folder, now=clock) as trail:
        keeper = Housekeeper.of(plan, trail, lambda: pytest.fail("no target"), PlausibleClock(0))
        away, office = keeper._witnesses
        with keeper:
            _close(trail, batches, 2)
            keeper.wake()
            keeper._is_ending = office._is_ending = True
            for each in (keeper, office):
                each._woken.set()
                each._thread.join(60)
                assert not each._thread.is_alive()
            assert away._thread.is_alive(), "git hangs still"
            note = read_note(note_path(folder, "office"))
            assert note is not None
            assert note.number == 2
            assert note_path(folder, "away").exists() is False
            assert sorted(path.name for path in (tmp_path / "copy").rglob("*.digest")) == [
                digest_name(1),
                digest_name(2),
            ]
            monkeypatch.setattr("gateway.audit_trail.housekeeper.END_WAIT_S", 0.05)

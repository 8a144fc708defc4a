"""The checkpoint of a stream is for one process, one key and one version, and a batch is whole or not at all."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from spark_audit.increments.checkpoint import Checkpoint, UnusableCheckpoint
from spark_audit.increments.state import Rules, State
from spark_audit.ingest.warehouse import InUse
from spark_audit.policy import Policy
from spark_audit.trail.signature import KeySigner
from tests.every_case import for_every
from tests.spark_audit.conftest import signing_key

RULES = Rules.of(Policy().controls(), Policy().sha256)
Opened = Callable[..., AbstractContextManager[Checkpoint]]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Opens the checkpoint of a stream over one trail."""
    (tmp_path / "out").mkdir()
    (tmp_path / "trail").mkdir()

    def of(signer: KeySigner | None = None, rules: Rules = RULES) -> AbstractContextManager[Checkpoint]:
        return Checkpoint.opened(tmp_path / "checkpoint", tmp_path / "out", [tmp_path / "trail"], rules, signer)

    return of


def _finished(checkpoint: Checkpoint, trail: Path) -> None:
    """A batch without anything in it."""
    unfinished = checkpoint.out / "unfinished"
    unfinished.mkdir()
    checkpoint.finish(trail, State(rules=checkpoint.rules), unfinished)


def test_a_stream_has_a_key_of_its_own_and_goes_on(opened: Opened, tmp_path: Path) -> None:
    trail = tmp_path / "trail"
    with opened() as checkpoint:
        assert (checkpoint.batches, checkpoint.state_of(trail)) == (0, None)
        _finished(checkpoint, trail)
        key = checkpoint.signer.public_key
    with opened() as checkpoint:
        state = checkpoint.state_of(trail)
        assert state is not None
        assert (checkpoint.batches, state.batch, state.rules) == (1, 1, RULES)
        assert checkpoint.signer.public_key == key
    assert (tmp_path / "checkpoint" / "key.pem").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["00000001"]


def test_a_second_process_is_refused(opened: Opened) -> None:
    with opened(), pytest.raises(InUse, match="another process uses"), opened():
        pass


def test_another_key_is_refused(opened: Opened, tmp_path: Path) -> None:
    with opened(KeySigner(signing_key(3))) as checkpoint:
        _finished(checkpoint, tmp_path / "trail")
    with (
        pytest.raises(UnusableCheckpoint, match="has not signed it: name the one that has"),
        opened(KeySigner(signing_key(4))),
    ):
        pass
    with pytest.raises(UnusableCheckpoint, match="signed by a key that is not in it: name that key"), opened():
        pass
    assert not (tmp_path / "checkpoint" / "key.pem").exists()


def test_of_other_rules_the_place_in_the_trail_remains(opened: Opened, tmp_path: Path) -> None:
    others = replace(RULES, program="9.9")
    with opened(rules=others) as checkpoint:
        _finished(checkpoint, tmp_path / "trail")
    with opened() as checkpoint:
        state = checkpoint.state_of(tmp_path / "trail")
        assert state is not None
        assert (state.rules, state.batch, checkpoint.batches) == (others, 1, 1)


def test_a_next_state_counts_if_the_folder_of_its_batch_is_there(opened: Opened, tmp_path: Path) -> None:
    with opened() as checkpoint:
        _finished(checkpoint, tmp_path / "trail")
    (state,) = (tmp_path / "checkpoint" / "states").iterdir()
    following = state.with_name(f"{state.name}.next")
    state.rename(following)
    with opened() as checkpoint:
        assert checkpoint.batches == 1
    assert (state.exists(), following.exists()) == (True, False)
    state.rename(following)
    (tmp_path / "out" / "00000001").rmdir()
    with opened() as checkpoint:
        assert (checkpoint.batches, checkpoint.state_of(tmp_path / "trail")) == (0, None)
    assert (state.exists(), following.exists()) == (False, False)


def test_a_batch_is_on_the_disk_before_its_folder_has_its_name(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut takes away what was not synced."""
    steps: list[str] = []
    fsync, rename = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        steps.append("sync " + Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        steps.append("name " + target.name)
        return rename(path, target)

    with opened() as checkpoint:
        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(Path, "replace", renamed)
        _finished(checkpoint, tmp_path / "trail")
    (state,) = (path.name for path in (tmp_path / "checkpoint" / "states").iterdir())
    next_state = [f"sync {state}.next.part", f"name {state}.next", "sync states"]
    assert steps == ["sync unfinished", *next_state, "name 00000001", "sync out", f"name {state}", "sync states"]


_REFUSED = {
    "version 1, whole": ("reported.json", "{}", "checkpoint of an earlier version of the stream: begin a new"),
    "version 1, not reported yet": ("manifest.json", "{}", "checkpoint of an earlier version of the stream"),
    "a later version": ("stream.json", '{"version":3}', "no checkpoint of version 2 of the stream: begin a new"),
    "no object": ("stream.json", "[]", "no checkpoint of version 2"),
    "no JSON": ("stream.json", "", "no checkpoint of version 2"),
    "something else": ("letter.txt", "", "holds 'letter.txt' and no stream.json"),
    "a key that is none": ("key.pem", "x", "holds 'key.pem' and no stream.json"),
}


@for_every(_REFUSED)
def test_a_folder_that_is_no_checkpoint_is_refused(case: tuple[str, str, str], tmp_path: Path, opened: Opened) -> None:
    name, text, said = case
    folder = tmp_path / "checkpoint"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    with pytest.raises(UnusableCheckpoint, match=said), opened():
        pass
    assert {path.name for path in folder.iterdir()} == {name}
    (folder / name).unlink()


def test_a_key_that_is_none_is_told(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "stream.json").write_text(json.dumps({"version": 2}))
    (tmp_path / "checkpoint" / "key.pem").write_text("x")
    with pytest.raises(UnusableCheckpoint, match="is not an Ed25519 or P-256 private key"), opened():
        pass

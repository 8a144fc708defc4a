"""kill -9 at every step of writing, closing, signing, copying, compressing and removing: the trail is whole after it.

A child process exports, and dies at its n-th call that changes the disk; the next life ends the work. Each record is
there once, each segment has one digest, and what is in the second place is the trail.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest

from gateway.audit_trail.exporter import Exporter
from gateway.audit_trail.housekeeper import Housekeeper
from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.plan import TrailPlan
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.segment_files import segment_files
from mq_adapters.embedded.direct import Direct
from mq_adapters.plausible_clock import PlausibleClock
from mq_adapters.system_queues import AUDIT_QUEUE
from spark_audit.trail.digest import DigestKind, parse_digest
from spark_audit.verify import Verdict, verify
from tests.gateway.audit_trail.conftest import NOTE_TAKER, Store

AT = 1_795_158_000_000_000
BATCHES, RECORDS_PER_BATCH = 6, 3
#: Calls that change the disk: in front of each of them the process may die.
STEPS = ("write", "pwrite", "fsync", "fdatasync", "rename", "replace", "unlink", "truncate", "link", "mkdir")
#: A step in so many is tried where the proof is short.
STRIDE = 9


def _plan(data: Path, keep_days: float) -> TrailPlan:
    return TrailPlan(
        signing_key=str(data / "trail-key.pem"),
        segment_bytes=2_000,  # two batches
        copy_folder=str(data.parent / "second"),
        keep_days=keep_days,
    )


def _life(data: Path, keep_days: float) -> None:
    """What an exporter does from its start to its end, its housekeeper's work included."""
    plan = _plan(data, keep_days)
    with (
        Direct(data, rights=NOTE_TAKER) as queue_manager,
        Trail.open(data / "trail", limits=plan.limits, signing_key=Path(plan.signing_key)) as trail,
    ):
        housekeeper = Housekeeper.of(plan, trail, lambda: nullcontext(queue_manager), PlausibleClock())
        Exporter(queue_manager, trail).drain()
        trail.finish(queue_manager.incarnation.hex())
        housekeeper.turn()


@contextmanager
def _dying_at(step: int) -> Iterator[None]:
    """The process kills itself in front of its n-th step. For a child process: nothing is put back."""
    taken = 0

    def counted(call: Callable[..., object], *arguments: object, **options: object) -> object:
        nonlocal taken
        taken += 1
        if taken == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **options)

    for name in STEPS:
        setattr(os, name, partial(counted, getattr(os, name)))
    yield


def killed_at(step: int, life: Callable[[], None]) -> bool:
    """Whether a child that lives that life was killed at that step; False where it came to its end before."""
    child = os.fork()
    if child == 0:
        try:
            with _dying_at(step):
                life()
            os._exit(0)
        except BaseException:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A folder with a store whose batches wait, and an empty second place."""
    ready = tmp_path / "ready"
    with Direct(ready / "data") as queue_manager:
        store = Store(queue_manager, ready / "data" / "trail")
        for batch in range(BATCHES):
            clients = (f"{batch}-{number}" for number in range(RECORDS_PER_BATCH))
            store.commit(*((NoteKind.SESSION, AT, client, 1, "opened", 4, True) for client in clients))
    (ready / "second").mkdir()
    return ready


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("keep_days", [0, 1e-9], ids=["kept", "removed"])
def test_an_exporter_that_dies_anywhere_leaves_a_trail_that_the_next_one_completes(
    ready: Path, tmp_path: Path, proof_scale: str, keep_days: float
) -> None:
    step, stride = 1, 1 if proof_scale == "full" else STRIDE
    while True:
        world = tmp_path / "world"
        shutil.copytree(ready, world)
        killed = killed_at(step, partial(_life, world / "data", keep_days))
        _life(world / "data", keep_days)
        _check(world, is_kept=keep_days == 0)
        shutil.rmtree(world)
        if not killed:
            break
        step += stride
    assert step > 80, "the life has fewer steps than it should"


def _check(world: Path, *, is_kept: bool) -> None:
    data, second = world / "data", world / "second"
    verification = verify(data / "trail")
    assert verification.verdict is Verdict.INTACT, verification
    with Direct(data) as queue_manager:
        assert queue_manager.depth(AUDIT_QUEUE) == 0
    digests = [parse_digest(path.read_bytes()) for path in sorted((data / "trail" / "digests").iterdir())]
    segments = [digest for digest in digests if digest.kind == DigestKind.SEGMENT]
    assert len({digest.segment for digest in segments}) == len(segments)
    assert sum(digest.records for digest in segments) == BATCHES, "a line for each batch"
    here = segment_files(data / "trail")
    assert [file.suffix for file in here] == [".jsonl.zst"] * len(here)
    assert len(here) == (len(segments) if is_kept else 1)
    assert not list(world.rglob("*.part"))
    copied = verify(second)
    assert (copied.verdict, copied.records) == (Verdict.INTACT, BATCHES * RECORDS_PER_BATCH), copied

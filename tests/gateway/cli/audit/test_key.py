"""`rfhbridge audit key`: the public key for the outside anchor, and a hand-over that the trail itself proves."""

import fcntl
import os
from datetime import UTC, datetime
from pathlib import Path

import ormsgpack
import pytest

from gateway.audit_trail.keys.signing_key import next_key_path
from gateway.audit_trail.segment import SIGNING_KEY_NAME, Trail
from mq_adapters.embedded.direct import Direct
from mq_adapters.system_queues import AUDIT_QUEUE
from spark_audit.verify import Anchor, Verdict, verify

GATEWAY = "0102030405060708090a0b0c"


def _now() -> datetime:
    return datetime(2026, 11, 20, 7, tzinfo=UTC)


@pytest.fixture
def trail(data_folder) -> Path:
    """A trail in which nothing was written yet but the digest of a quiet time."""
    folder = data_folder / "trail"
    with Trail.open(folder, now=_now) as opened:
        opened.finish(GATEWAY)
    return folder


def _shown(rfhbridge, data_folder) -> str:
    ended = rfhbridge("audit", "key", "show", "--data", data_folder)
    assert (ended.exit_code, ended.stderr) == (0, "")
    return ended.text.strip()


def test_key_that_is_shown_anchors_the_trail(rfhbridge, data_folder, trail, tmp_path):
    path = tmp_path / "gateway.pub"
    path.write_bytes(rfhbridge("audit", "key", "show", "--data", data_folder).stdout)
    assert verify(trail, Anchor.read(public_key_file=path)).verdict is Verdict.ANCHORED


def test_new_key_takes_over_and_the_old_one_has_countersigned_it(rfhbridge, data_folder, trail):
    first, old = _shown(rfhbridge, data_folder), (data_folder / "trail-key.pub").read_text().strip()
    ended = rfhbridge("audit", "key", "rotate", "--data", data_folder)
    new = ended.text.strip()
    assert (ended.exit_code, len(new), new != old) == (0, 64, True)
    assert old in ended.stderr
    assert _shown(rfhbridge, data_folder) == first, "an auditor needs no other key"
    assert verify(trail, Anchor(public_key=old)).verdict is Verdict.ANCHORED
    with Trail.open(trail, now=lambda: _now().replace(year=2100)) as opened:
        opened.finish(GATEWAY)
    assert verify(trail, Anchor(public_key=new)).public_keys == (old, new)
    names = {path.name for path in data_folder.iterdir()}
    assert names == {"trail", "trail-chain", SIGNING_KEY_NAME, "trail-key.pub"}


def test_a_rotation_is_told_with_both_keys_where_there_is_a_store(rfhbridge, data_folder, trail):
    old = (data_folder / "trail-key.pub").read_text().strip()
    assert rfhbridge("queue", "define", "ORDERS", "--data", data_folder).exit_code == 0
    new = rfhbridge("audit", "key", "rotate", "--data", data_folder).text.strip()
    with Direct(data_folder) as queue_manager:
        batches = [ormsgpack.unpackb(message.body) for message in queue_manager.browse(AUDIT_QUEUE)]
    notes = [note for _, _, packed, _ in batches for note in ormsgpack.unpackb(packed)]
    assert [note[3] for note in notes] == ["queue define", "audit key rotate"]
    assert notes[-1][7] == f"{old} hands over to {new}"


def test_rotation_waits_for_a_gateway_that_has_the_trail(rfhbridge, data_folder, trail, monkeypatch):
    monkeypatch.setattr("gateway.cli.audit.key.ROTATION_WAIT_S", 0.2)
    lock = os.open(trail, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ended = rfhbridge("audit", "key", "rotate", "--data", data_folder)
    assert ended.exit_code == 2
    assert "has not signed the new key within 0.2 s" in ended.stderr
    os.close(lock)
    following = next_key_path(data_folder / SIGNING_KEY_NAME).read_bytes()
    assert rfhbridge("audit", "key", "rotate", "--data", data_folder).exit_code == 0
    assert (data_folder / SIGNING_KEY_NAME).read_bytes() == following, "the key that was made first has taken over"


@pytest.mark.parametrize("command", ["show", "rotate"])
def test_without_a_trail_there_is_no_key(rfhbridge, data_folder, command):
    ended = rfhbridge("audit", "key", command, "--data", data_folder)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert "there is no trail" in ended.stderr
    (data_folder / "trail").mkdir(parents=True)
    assert rfhbridge("audit", "key", command, "--data", data_folder).exit_code == 2


def test_key_is_shown_before_the_first_digest_and_stays(rfhbridge, data_folder):
    with Trail.open(data_folder / "trail", now=_now) as opened:
        first = _shown(rfhbridge, data_folder)
        for _ in range(3):
            opened.digests.add_interval(GATEWAY, from_us=1, until_us=2)
    assert _shown(rfhbridge, data_folder) == first
    assert verify(data_folder / "trail", Anchor(public_key=first)).verdict is Verdict.ANCHORED

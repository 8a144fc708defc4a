"""Receipts of a real Git repository, and made ones of a bucket: in a trail and in packs, true and wrong."""

import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import cast

import pytest

from gateway.audit_trail.segment import Trail
from gateway.audit_trail.witnesses.git_repository import GitRepository
from spark_audit.pack import PackContents, write_pack
from spark_audit.trail.digest import DIGEST_FOLDER, digest_name, digest_place
from spark_audit.trail.receipt import (
    BucketReceipt,
    GitReceipt,
    Receipt,
    parse_receipt,
    receipt_bytes,
    receipt_path,
    receipts_in,
)
from spark_audit.verify import Anchor, Finding, Verdict, Verification, verify, verify_pack
from spark_audit.verify.packed_trail import UnusablePack, packed_receipts
from spark_audit.verify.receipts import MOST_RECEIPTS, digest_in, with_receipts
from tests.gateway.audit_trail.conftest import batches, clock, folder  # noqa: F401
from tests.processes.forked import rfhbridge

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
_LAST = 3


@pytest.fixture(params=["sha1", "sha256"])
def trail(request: pytest.FixtureRequest, folder, clock, batches, tmp_path) -> Path:  # noqa: F811
    """A trail with three digests that a repository and a bucket have."""
    remote = tmp_path / "remote.git"
    subprocess.run(
        ["git", "init", "--quiet", "--bare", f"--object-format={request.param}", str(remote)], check=True, timeout=60
    )
    beside = tmp_path / "beside.git"
    subprocess.run(
        ["git", "init", "--quiet", "--bare", f"--object-format={request.param}", str(beside)], check=True, timeout=60
    )
    with Trail.open(folder, now=clock) as opened:
        for _ in range(_LAST):
            opened.append(*batches())
            opened.close_segment()
        digests = {number: _digest(folder, number) for number in range(1, _LAST + 1)}
        repository = GitRepository("office", beside, folder, remote=str(remote), branch="plant")
        repository.submit({1: digests[1]})
        repository.submit({2: digests[2], 3: digests[3]})
        commit = subprocess.run(
            ["git", "-C", remote, "rev-parse", "plant"], check=True, capture_output=True, text=True, timeout=60
        )
    (tmp_path / "commit").write_text(commit.stdout.strip())
    receipt_path(folder, "vault").write_bytes(receipt_bytes(_bucket(folder)))
    return cast(Path, folder)


def _digest(folder: Path, number: int) -> bytes:  # noqa: F811
    return (folder / DIGEST_FOLDER / digest_name(number)).read_bytes()


def _bucket(folder: Path, number: int = _LAST) -> BucketReceipt:  # noqa: F811
    return BucketReceipt(
        number=number,
        sha256=sha256(_digest(folder, number)).hexdigest(),
        endpoint="",
        bucket="vault",
        key=f"plant-7/{digest_place(number)}",
        version_id="v1",
        locked_until="2036-11-29T10:00:00Z",
    )


def _of_folder(trail: Path) -> Verification:
    return with_receipts(verify(trail, Anchor()), receipts_in(trail), partial(digest_in, trail))


def _of_pack(trail: Path, suffix: str) -> Verification:
    pack = trail.parent / f"pack{suffix}"
    write_pack(PackContents(trail=trail, code_version="1"), pack)
    receipts, digests = packed_receipts(pack)
    return with_receipts(verify_pack(pack, Anchor()), receipts, digests.get)


_WAYS: dict[str, Callable[[Path], Verification]] = {
    "folder": _of_folder,
    "zip": partial(_of_pack, suffix=".zip"),
    "tar.gz": partial(_of_pack, suffix=".tar.gz"),
}


@pytest.mark.parametrize("way", _WAYS)
def test_true_receipts_say_what_to_ask_the_witness(trail: Path, way: str, tmp_path: Path) -> None:
    found = _WAYS[way](trail)
    assert (found.verdict, found.problems) == (Verdict.INTACT, ())
    commit = (tmp_path / "commit").read_text()
    office, vault = found.notes[-2:]
    assert office.startswith(f"witness office: commit {commit} has digest 3; see whether refs/heads/plant")
    assert "digest 3 is version v1 of plant-7/digests/000000000/000000000003.digest in bucket vault" in vault
    assert "2036-11-29" in vault


def _write(trail: Path, name: str, receipt: Receipt) -> None:
    receipt_path(trail, name).write_bytes(receipt_bytes(receipt))


def _git(trail: Path) -> GitReceipt:
    receipt = parse_receipt(receipt_path(trail, "office").read_bytes())
    assert isinstance(receipt, GitReceipt)
    return receipt


def _another_tree(trail: Path, place: int) -> None:
    receipt = _git(trail)
    tree = bytearray(receipt.trees[place])
    tree[-1] ^= 1
    trees = [*receipt.trees[:place], bytes(tree), *receipt.trees[place + 1 :]]
    _write(trail, "office", replace(receipt, trees=tuple(trees)))


def _of_digest_2(trail: Path) -> None:
    """The commit has that one too, but its folder is another one, and its way leads to another name."""
    older = sha256(_digest(trail, 2) + b" ").hexdigest()
    _write(trail, "office", replace(_git(trail), number=2, sha256=older))


def _cut_end(trail: Path) -> None:
    """Somebody cut the last digest and its segment off."""
    (trail / DIGEST_FOLDER / digest_name(_LAST)).unlink()
    next(trail.glob(f"{_LAST:012d}-*")).unlink()


def _rewritten(trail: Path) -> None:
    """A receipt of a digest that was written anew."""
    _write(trail, "vault", replace(_bucket(trail), sha256="1" * 64))
    receipt_path(trail, "office").unlink()


_WRONG: dict[str, tuple[Callable[[Path], None], int]] = {
    "the end of the trail was cut off": (_cut_end, 2),
    "the digest is another one": (_rewritten, 1),
    "the receipt is of another digest": (_of_digest_2, 1),
    "a tree of the repository is another one": (lambda trail: _another_tree(trail, 0), 1),
    "a folder of the repository is another one": (lambda trail: _another_tree(trail, 2), 1),
    "a tree is missing": (lambda t: _write(t, "office", replace(_git(t), trees=_git(t).trees[:-1])), 1),
    "a tree cannot be read": (lambda t: _write(t, "office", _unreadable(_git(t))), 1),
    "the commit is none": (lambda t: _write(t, "office", replace(_git(t), commit=b"nothing")), 1),
    "the key is that of another digest": (lambda t: _write(t, "vault", replace(_bucket(t), key="x")), 1),
    "it is no receipt": (lambda t: receipt_path(t, "vault").write_bytes(b"{}") and None, 1),
}


def _unreadable(receipt: GitReceipt) -> GitReceipt:
    tree, algorithm = b"100644 digests", "sha1" if len(receipt.commit.split(b"\n")[0]) == 45 else "sha256"
    name = hashlib.new(algorithm, b"tree %d\0%b" % (len(tree), tree)).hexdigest()
    rest = receipt.commit.partition(b"\n")[2]
    return replace(receipt, commit=f"tree {name}\n".encode() + rest, trees=(tree, *receipt.trees[1:]))


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("case", _WRONG)
def test_a_wrong_receipt_is_a_violation(trail: Path, case: str, way: str) -> None:
    change, count = _WRONG[case]
    change(trail)
    found = _WAYS[way](trail)
    assert found.verdict is Verdict.VIOLATED
    assert [each.finding for each in found.problems].count(Finding.WRONG_RECEIPT) == count


def test_many_receipts_and_one_behind_a_digest_are_refused(trail: Path, tmp_path: Path) -> None:
    for number in range(MOST_RECEIPTS + 3):
        _write(trail, f"vault-{number}", _bucket(trail))
    for way in _WAYS.values():
        assert "more than" in str(way(trail).problems[-1])
    pack = tmp_path / "late.tar.gz"
    with tarfile.open(pack, "w:gz", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(trail / DIGEST_FOLDER / digest_name(1), f"trail/{DIGEST_FOLDER}/{digest_name(1)}")
        tar.add(receipt_path(trail, "vault"), "trail/receipts/vault.json")
    with pytest.raises(UnusablePack, match="behind a digest"):
        packed_receipts(pack)


def test_the_command_tells_and_judges_receipts(trail: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack.tar.gz"
    assert rfhbridge("audit", "pack", "--data", trail.parent, "--out", pack).returncode == 0
    told = rfhbridge("audit", "verify", pack)
    assert told.returncode == 0, told.stdout
    assert f"witness office: commit {(tmp_path / 'commit').read_text()} has digest 3" in told.stdout
    _cut_end(trail)
    told = rfhbridge("audit", "verify", trail)
    assert told.returncode == 1
    assert "digest 3, which the witness was given, is not there" in told.stdout

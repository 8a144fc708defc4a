"""Receipts of witnesses, held against the digests of a trail (spark_audit/trail/receipt.py), without a network.

Of Git the whole way from the commit's name to the digest is computed anew: a commit names its tree, a tree the folders
in it, and a folder the hash of each file. Of a bucket there is nothing to compute. What remains to be asked the witness
is said.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from spark_audit.trail.digest import DIGEST_FOLDER, LARGEST_DIGEST_BYTES, digest_name, digest_place
from spark_audit.trail.receipt import (
    RECEIPTS_FOLDER,
    BucketReceipt,
    GitReceipt,
    MalformedReceipt,
    Receipt,
    parse_receipt,
)
from spark_audit.verify.verdict import Finding, Findings, Verdict, Verification, in_order

#: Witnesses of one trail.
MOST_RECEIPTS: Final = 20
#: The hash of a repository, by the digits of its names.
_HASHES: Final = {40: "sha1", 64: "sha256"}


class WrongReceipt(ValueError):
    """A receipt does not hold for the digests of this trail."""


def digest_in(trail: Path, number: int) -> bytes | None:
    """The bytes of a digest of the trail in a folder, None if it is not there. Raises OSError."""
    path = trail / DIGEST_FOLDER / digest_name(number)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(LARGEST_DIGEST_BYTES + 1)


def with_receipts(
    verification: Verification, receipts: Iterable[tuple[str, bytes]], digest_of: Callable[[int], bytes | None]
) -> Verification:
    """A verification, and what the receipts say. `digest_of` gives the bytes of a digest, None if it is not there."""
    findings, notes = Findings(), []
    for count, (name, data) in enumerate(receipts, start=1):
        if count > MOST_RECEIPTS:
            findings.add(Finding.WRONG_RECEIPT, RECEIPTS_FOLDER, f"there are more than {MOST_RECEIPTS}")
            break
        try:
            receipt = parse_receipt(data)
            notes.append(f"witness {name}: {_said(receipt, digest_of(receipt.number))}")
        except (WrongReceipt, MalformedReceipt) as error:
            findings.add(Finding.WRONG_RECEIPT, f"{RECEIPTS_FOLDER}/{name}.json", f"it does not hold: {error}")
    if verification.verdict is Verdict.NOT_EVALUABLE:
        return verification
    is_first = findings.count and verification.verdict is not Verdict.VIOLATED
    return replace(
        verification,
        verdict=Verdict.VIOLATED if findings.count else verification.verdict,
        reason=str(findings.told[0]) if is_first else verification.reason,
        problems=in_order((*verification.problems, *findings.told)),
        problem_count=verification.problem_count + findings.count,
        notes=(*verification.notes, *notes),
    )


def _said(receipt: Receipt, digest: bytes | None) -> str:
    """What a receipt shows. Raises WrongReceipt."""
    if digest is None:
        raise WrongReceipt(f"digest {receipt.number}, which the witness was given, is not there")
    if hashlib.sha256(digest).hexdigest() != receipt.sha256:
        raise WrongReceipt(f"digest {receipt.number} is another one than the witness was given")
    return _said_of_git(receipt, digest) if isinstance(receipt, GitReceipt) else _said_of_bucket(receipt)


def _said_of_bucket(receipt: BucketReceipt) -> str:
    key = digest_place(receipt.number)
    if receipt.key != key and not receipt.key.endswith(f"/{key}"):
        raise WrongReceipt(f"its key {receipt.key} is not that of digest {receipt.number}")
    return (
        f"digest {receipt.number} is version {receipt.version_id} of {receipt.key} in bucket {receipt.bucket}, locked"
        f" until {receipt.locked_until}, as the gateway says; ask the bucket"
    )


def _said_of_git(receipt: GitReceipt, digest: bytes) -> str:
    first, _, rest = receipt.commit.partition(b"\n")
    word, _, tree = first.decode("ascii", "replace").partition(" ")
    algorithm = _HASHES.get(len(tree), "")
    if word != "tree" or not algorithm or not rest:
        raise WrongReceipt("its commit names no tree")
    names = digest_place(receipt.number).split("/")
    if len(receipt.trees) != len(names):
        raise WrongReceipt(f"it has {len(receipt.trees)} trees, and the way to the digest {len(names)}")
    wanted = tree
    for name, data in zip(names, receipt.trees, strict=True):
        if _name_of("tree", data, algorithm) != wanted:
            raise WrongReceipt(f"the tree with {name} is another one than is named above it")
        wanted = dict(_entries(data, len(tree) // 2)).get(name, "")
    if _name_of("blob", digest, algorithm) != wanted:
        raise WrongReceipt(f"its commit has another digest {receipt.number}, or none")
    commit = _name_of("commit", receipt.commit, algorithm)
    return f"commit {commit} has digest {receipt.number}; see whether {receipt.ref} of the repository has the commit"


def _name_of(kind: str, data: bytes, algorithm: str) -> str:
    """The name of an object of Git (gitformat-loose: kind, length and a zero in front of its bytes)."""
    return hashlib.new(algorithm, b"%b %d\0%b" % (kind.encode(), len(data), data), usedforsecurity=False).hexdigest()


def _entries(tree: bytes, hash_bytes: int) -> Iterator[tuple[str, str]]:
    """Name and hash of each entry of a tree: mode, blank, name, zero, hash."""
    place = 0
    while place < len(tree):
        blank, zero = tree.find(b" ", place), tree.find(b"\0", place)
        end = zero + 1 + hash_bytes
        if not place < blank < zero or end > len(tree):
            raise WrongReceipt("a tree cannot be read")
        yield tree[blank + 1 : zero].decode("utf-8", "replace"), tree[zero + 1 : end].hex()
        place = end

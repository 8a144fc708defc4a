"""Somebody has everything on the disk at a moment, both keys among it, and rewrites what was signed before.

He has this program too. What an auditor keeps elsewhere is one public key, or the copy of a digest. Each rewriting is
found by a key that had signed before the break-in, and by a copy of the last digest; none by the configured key alone.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.audit_trail.keys import key_chain
from gateway.audit_trail.keys.key_chain import chain_folder
from gateway.audit_trail.segment import SIGNING_KEY_NAME, Trail
from mq_adapters.embedded.direct import Direct
from spark_audit.record import line_hashes
from spark_audit.trail.digest import (
    Digest,
    DigestKind,
    SegmentMeasure,
    anchor_key_of,
    digest_hash,
    digest_name,
    parse_digest,
)
from spark_audit.trail.signature import KeySigner, public_key_of, signer_of_pem
from spark_audit.verify import Anchor, AuditorsRule, Finding, Verdict, verify
from tests.every_case import for_every
from tests.gateway.audit_trail.conftest import GATEWAY, NOON_US
from tests.gateway.audit_trail.test_trail_head import hashed_anew

SEGMENTS = 4
#: The segment that is rewritten; its digest has the same number.
REWRITTEN = 2
HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Loot:
    """What the thief has: a copy of the data folder, and the keys in it."""

    data: Path

    @property
    def trail(self) -> Path:
        return self.data / "trail"

    @property
    def configured(self) -> KeySigner:
        return signer_of_pem((self.data / SIGNING_KEY_NAME).read_bytes())

    @property
    def living(self) -> Ed25519PrivateKey:
        key = key_chain._read(chain_folder(self.trail), len(self.digests()) + 1)
        assert key is not None
        return key

    def digests(self) -> list[Digest]:
        return [parse_digest(path.read_bytes()) for path in sorted((self.trail / "digests").iterdir())]


@pytest.fixture
def data(tmp_path: Path, clock, batches) -> Path:
    """A gateway's data folder: four segments in two hours, an open one, a store."""
    data = tmp_path / "data"
    with Direct(data):
        pass
    with Trail.open(data / "trail", now=clock) as trail:
        for _ in range(SEGMENTS):
            trail.append(*batches())
            clock.now += timedelta(minutes=30)
            trail.close_segment()
        trail.append(*batches())
        trail.sync()
    return data


def _rewritten_lines(trail: Path) -> Iterator[tuple[Digest, bytes]]:
    """Another history from a segment on, whose hashes and links hold; each with the digest that it had."""
    head = ""
    for path in sorted((trail / "digests").iterdir()):
        digest = parse_digest(path.read_bytes())
        place = trail / f"{digest.segment}.jsonl"
        if digest.number >= REWRITTEN:
            place.write_bytes(hashed_anew(place.read_bytes().replace(b'"session"', b'"dropped"'), head))
        hashes = line_hashes(place.read_bytes().splitlines()[-1])
        assert hashes is not None
        head = hashes[0]
        yield digest, place.read_bytes()


Sign = Callable[[Loot, Digest], Digest]


def _signed_anew(loot: Loot, sign: Sign, *, first: int = REWRITTEN, last: int = SEGMENTS) -> None:
    """Every digest from one on fits the new lines, and is signed as the thief thinks best."""
    previous = "0" * 64
    for digest, lines in _rewritten_lines(loot.trail):
        place = loot.trail / "digests" / digest_name(digest.number)
        if first <= digest.number <= last:
            measure = SegmentMeasure()
            measure.add(lines)
            head = line_hashes(lines.splitlines()[-1])
            assert head is not None
            of_lines = {"sha256": measure.sha256(), "merkle_root": measure.merkle_root(), "head": head[0]}
            told = replace(digest, size_bytes=measure.size_bytes, previous=previous, **of_lines)
            place.write_bytes(sign(loot, told).to_bytes())
        elif digest.number > last:
            place.unlink()
            (loot.trail / f"{digest.segment}.jsonl").unlink()
        previous = digest_hash(place.read_bytes()) if place.exists() else previous
    for path in loot.trail.glob("*.open"):
        path.unlink()


def _forged_key(number: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def _by_new_keys(loot: Loot, digest: Digest) -> Digest:
    """With keys of his own, and the countersignature of the true configured key where there was one, or he begins."""
    key = _forged_key(digest.number)
    following = public_key_of(_forged_key(digest.number + 1))
    told = replace(digest, public_key=public_key_of(key), next_public_key=following, countersignature="")
    return told.countersigned(loot.configured).signed(key)


def _by_the_living_key(loot: Loot, digest: Digest) -> Digest:
    told = replace(digest, public_key=public_key_of(loot.living), countersignature="")
    return told.countersigned(loot.configured).signed(loot.living)


def _by_the_configured_key(loot: Loot, digest: Digest) -> Digest:
    key = loot.configured.key
    assert isinstance(key, Ed25519PrivateKey)
    told = replace(digest, public_key=public_key_of(key), countersignature="")
    return told.countersigned(loot.configured).signed(key)


def _in_version_1(loot: Loot, digest: Digest) -> Digest:
    """As if the gateway had never had a chain of keys."""
    key = loot.configured.key
    assert isinstance(key, Ed25519PrivateKey)
    bare = {"next_public_key": "", "countersigner": "", "countersignature": ""}
    return replace(digest, version=1, **bare).signed(key)


def _unsigned(_loot: Loot, digest: Digest) -> Digest:
    """Its old signature, and the key that is named, over other bytes."""
    return digest


def _insert_renewal(loot: Loot) -> None:
    """The trail is cut before the segment, a renewal says that a key was lost, and another history follows."""
    _signed_anew(loot, _unsigned, last=REWRITTEN - 1)
    before = (loot.trail / "digests" / digest_name(REWRITTEN - 1)).read_bytes()
    last = parse_digest(before)
    of_segment = {"segment": "", "sha256": "", "merkle_root": "", "records": 0, "size_bytes": 0}
    numbers = {"number": REWRITTEN, "first_sequence": 0, "last_sequence": 0}
    renewal = replace(last, kind=DigestKind.RENEWAL, previous=digest_hash(before), **of_segment, **numbers)
    path = loot.trail / "digests" / digest_name(REWRITTEN)
    path.write_bytes(_by_new_keys(loot, renewal).to_bytes())


ATTACKS: dict[str, Callable[[Loot], None]] = {
    "with keys of his own from the segment on": lambda loot: _signed_anew(loot, _by_new_keys),
    "with keys of his own from the beginning": lambda loot: _signed_anew(loot, _by_new_keys, first=1),
    "with the living key": lambda loot: _signed_anew(loot, _by_the_living_key),
    "with the living key, from the beginning": lambda loot: _signed_anew(loot, _by_the_living_key, first=1),
    "with the configured key": lambda loot: _signed_anew(loot, _by_the_configured_key),
    "in version 1, from the segment on": lambda loot: _signed_anew(loot, _in_version_1),
    "in version 1, from the beginning": lambda loot: _signed_anew(loot, _in_version_1, first=1),
    "with the old signatures": lambda loot: _signed_anew(loot, _unsigned),
    "with a renewal in the place of the segment": _insert_renewal,
}
#: What somebody finds who has the configured key alone: these look as if a gateway had written them.
UNSEEN_BY_THE_CONFIGURED_KEY = {"with keys of his own from the beginning", "in version 1, from the beginning"}


@dataclass(frozen=True, slots=True)
class Kept:
    """What auditors have from before the break-in."""

    first_key: str
    last_key: str
    configured: str
    copies: Path


@pytest.fixture
def kept(data: Path, tmp_path: Path) -> Kept:
    digests = Loot(data).digests()
    copies = tmp_path / "auditor"
    copies.mkdir()
    name = digest_name(SEGMENTS)
    shutil.copyfile(data / "trail" / "digests" / name, copies / name)
    return Kept(
        first_key=anchor_key_of(data / "trail" / "digests"),
        last_key=digests[-1].public_key,
        configured=digests[-1].countersigner,
        copies=copies,
    )


@for_every(ATTACKS)
def test_what_was_signed_before_a_break_in_cannot_be_rewritten_behind_it(
    attack: Callable[[Loot], None], data: Path, kept: Kept, tmp_path_factory: pytest.TempPathFactory
) -> None:
    anchors = [Anchor(public_key=kept.first_key), Anchor(public_key=kept.last_key), Anchor.read(digests=kept.copies)]
    for anchor in anchors:
        assert verify(data / "trail", anchor).verdict is Verdict.ANCHORED
    loot = Loot(Path(shutil.copytree(data, tmp_path_factory.mktemp("loot") / "data")))
    attack(loot)
    for anchor in anchors:
        result = verify(loot.trail, anchor)
        assert result.verdict is Verdict.VIOLATED, (anchor, result.reason)


def test_the_configured_key_alone_does_not_show_a_trail_that_its_thief_wrote_from_the_beginning(
    data: Path, kept: Kept, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = set()
    for name, attack in ATTACKS.items():
        loot = Loot(Path(shutil.copytree(data, tmp_path_factory.mktemp("loot") / "data")))
        attack(loot)
        if verify(loot.trail, Anchor(public_key=kept.configured)).verdict is Verdict.ANCHORED:
            content.add(name)
    assert content == UNSEEN_BY_THE_CONFIGURED_KEY, "the documents say which"


def test_a_trail_that_is_cut_at_a_digest_cannot_go_on_and_its_age_tells(data: Path, kept: Kept) -> None:
    loot = Loot(data)
    for number in range(REWRITTEN, SEGMENTS + 1):
        (loot.trail / "digests" / digest_name(number)).unlink()
    for path in sorted(loot.trail.glob("*-*"))[REWRITTEN - 1 :]:
        path.unlink()
    anchor, now_us = Anchor(public_key=kept.first_key), NOON_US + 5 * HOUR_US
    assert verify(loot.trail, anchor).verdict is Verdict.ANCHORED, "a key does not show what was cut off"
    rule = AuditorsRule(not_older_than_us=2 * HOUR_US, now_us=now_us)
    assert [each.finding for each in verify(loot.trail, anchor, rule=rule).problems] == [Finding.STALE_TRAIL]
    with Trail.open(loot.trail) as trail:  # with the program, the living key, and the configured one
        trail.finish(GATEWAY)
    found = {each.finding for each in verify(loot.trail, anchor).problems}
    assert Finding.RENEWED_CHAIN in found


def test_without_anything_elsewhere_a_new_trail_is_consistent(data: Path) -> None:
    loot = Loot(data)
    _signed_anew(loot, _by_new_keys, first=1)
    assert verify(loot.trail).verdict is Verdict.INTACT

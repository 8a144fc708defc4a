"""A key signs one digest and is gone; a kill between any two steps changes nothing; a lost key is told."""

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gateway.audit_trail.digests import Digests
from gateway.audit_trail.keys import key_chain
from gateway.audit_trail.keys.key_chain import KeyChain, chain_folder
from gateway.audit_trail.segment import SIGNING_KEY_NAME, Trail
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store.backup import back_up
from spark_audit.pack import PackContents, write_pack
from spark_audit.trail.digest import DIGEST_VERSION, digest_hash, parse_digest
from spark_audit.trail.signature import public_key_of
from spark_audit.verify import Anchor, Finding, Verdict, verify
from tests.gateway.audit_trail.conftest import GATEWAY, NOON
from tests.gateway.audit_trail.test_kill_at_every_step import killed_at

KEPT = Path(__file__).with_name("kept") / "first_digests"
#: The configured keys of the trail in KEPT: RFC 8032, section 7.1, TEST 1 and TEST 2.
KEPT_SECRET = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
KEPT_PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def _numbers(folder: Path) -> list[int]:
    """The numbers of the digests whose keys are there, by the files' bytes."""
    files = sorted(path.read_bytes() for path in chain_folder(folder).iterdir())
    return [int.from_bytes(data[:8], "big") for data in files]


def _secret(folder: Path, number: int) -> bytes:
    """The private key of a digest to come."""
    data = (chain_folder(folder) / f"{number % 2}.key").read_bytes()
    assert (len(data), int.from_bytes(data[:8], "big")) == (48, number)
    return data[8:40]


def _everywhere(place: Path, secret: bytes) -> list[Path]:
    """The files that hold a key, as bytes or as hex."""
    files = (path for path in place.rglob("*") if path.is_file())
    return [path for path in files if secret in (data := path.read_bytes()) or secret.hex().encode() in data]


def test_each_digest_has_a_key_of_its_own_that_is_gone_when_it_has_signed(folder, clock, batches) -> None:
    spent = []
    with Trail.open(folder, now=clock) as trail:
        for number in (1, 2, 3):
            assert _numbers(folder) == [number, number + 1]
            spent.append(_secret(folder, number))
            trail.append(*batches())
            trail.close_segment()
    assert {path.stat().st_mode & 0o777 for path in chain_folder(folder).iterdir()} == {0o600}
    digests = [parse_digest(path.read_bytes()) for path in sorted((folder / "digests").iterdir())]
    publics = [public_key_of(Ed25519PrivateKey.from_private_bytes(each)) for each in (*spent, _secret(folder, 4))]
    assert [each.public_key for each in digests] == publics[:3]
    assert [each.next_public_key for each in digests] == publics[1:]
    assert _everywhere(folder.parent, _secret(folder, 4)), "the search finds a key"
    assert not any(_everywhere(folder.parent, each) for each in spent)
    assert verify(folder, Anchor(public_key=publics[0])).verdict is Verdict.ANCHORED


def test_a_key_is_overwritten_in_its_place(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail, (chain_folder(folder) / "1.key").open("rb") as held:
        trail.append(*batches())
        trail.close_segment()
        assert held.read() == (chain_folder(folder) / "1.key").read_bytes(), "the same file, whoever had it open"


def test_the_configured_key_countersigns_the_first_digest_and_one_an_hour(folder, clock) -> None:
    with Trail.open(folder, now=clock) as trail:
        for _ in range(10):
            clock.now += timedelta(minutes=15)
            trail.note_quiet(GATEWAY)
    digests = [parse_digest(path.read_bytes()) for path in sorted((folder / "digests").iterdir())]
    assert [bool(each.countersignature) for each in digests] == [at in (0, 4, 8) for at in range(10)]
    with Trail.open(folder, now=clock) as trail:
        clock.now += timedelta(minutes=15)
        trail.note_quiet(GATEWAY)
    last = parse_digest(sorted((folder / "digests").iterdir())[-1].read_bytes())
    assert not last.countersignature, "a start begins no new hour"
    assert verify(folder).verdict is Verdict.INTACT


def test_the_first_key_waits_for_the_first_digest_over_starts(folder, clock) -> None:
    with Trail.open(folder, now=clock):
        first = _secret(folder, 1)
    with Trail.open(folder, now=clock):
        assert _secret(folder, 1) == first


# -- lost keys ---------------------------------------------------------------------------------------------------------


def _closed(folder: Path, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()


@pytest.mark.parametrize(
    "how", ["removed", "overwritten", "cut", "an older one", "of another digest", "of another trail"]
)
def test_a_lost_key_is_told_by_a_renewal_that_an_auditor_has_to_accept(folder, clock, batches, caplog, how) -> None:
    _closed(folder, clock, batches)
    path = chain_folder(folder) / "1.key"
    older = path.read_bytes()
    _closed(folder, clock, batches)
    data = {
        "overwritten": bytes(48),
        "cut": path.read_bytes()[:-1],
        "an older one": older[:8] + b"s" * 32 + older[40:],
        "of another digest": (chain_folder(folder) / "0.key").read_bytes(),
        "of another trail": key_chain._packed(3, Ed25519PrivateKey.generate()),
    }
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes(data[how])
    _closed(folder, clock, batches)
    assert "chain of keys begun anew digest=3" in caplog.text
    result = verify(folder)
    assert [problem.finding for problem in result.problems] == [Finding.RENEWED_CHAIN], result.problems
    renewal = folder / "digests" / f"{3:012d}.digest"
    assert parse_digest(renewal.read_bytes()).is_countersigned()
    accepted = frozenset({digest_hash(renewal.read_bytes())})
    assert verify(folder, accepted=accepted).verdict is Verdict.INTACT
    assert _numbers(folder) == [5, 6]


def test_a_key_that_has_signed_is_overwritten_by_the_next_start(folder, clock, batches) -> None:
    """A kill behind a digest, or a copy of the data folder from before it, leaves the key that signed it."""
    with Trail.open(folder, now=clock):
        spent = (chain_folder(folder) / "1.key").read_bytes()
    _closed(folder, clock, batches)
    (chain_folder(folder) / "1.key").write_bytes(spent)
    with Trail.open(folder, now=clock):
        assert _numbers(folder) == [2, 3]
    assert not _everywhere(folder.parent, spent[8:40])
    assert verify(folder).verdict is Verdict.INTACT


def test_no_backup_and_no_pack_has_the_living_key(tmp_path: Path, clock, batches) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    out.mkdir()
    with Direct(data):
        pass
    _closed(data / "trail", clock, batches)
    living, configured = _secret(data / "trail", 2), (data / SIGNING_KEY_NAME).read_bytes()
    back_up(data, out / "backup.sqlite")
    evidence = PackContents(trail=data / "trail", results=data / "report", code_version="0.1.0")
    for name in ("pack.zip", "pack.tar.gz"):
        write_pack(evidence, out / name)
        shutil.unpack_archive(out / name, out / f"of {name}", filter="data" if name.endswith("gz") else None)
    assert _everywhere(data, living), "the search finds a key"
    assert _everywhere(out, living) == []
    assert _everywhere(out, configured.splitlines()[1]) == []
    assert not list(out.rglob("*.key"))


# -- a kill at each step -----------------------------------------------------------------------------------------------


@pytest.fixture
def before(folder, clock, batches) -> Path:
    """A data folder whose trail has one digest, and an open segment."""
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
        trail.append(*batches())
        trail.sync()
    return folder.parent


def _signing(data: Path) -> None:
    """A life that signs three digests."""
    with Trail.open(data / "trail", now=lambda: NOON) as trail:
        trail.close_segment()
        for minutes in (1, 2):
            trail.digests.add_interval(GATEWAY, from_us=0, until_us=minutes)


def _complaints(before: Path, place: Path) -> Iterator[str]:
    """What is wrong after a kill at each step of a life, and the life behind it."""
    step, killed = 0, True
    while killed:
        step += 1
        world = place / f"world-{step}"
        shutil.copytree(before, world)
        killed = killed_at(step, partial(_signing, world))
        _signing(world)
        result = verify(world / "trail")
        if result.verdict is not Verdict.INTACT:
            yield f"killed at step {step}: {result.reason}"
        keys = _numbers(world / "trail")
        if keys != [result.digests + 1, result.digests + 2]:
            yield f"killed at step {step}: keys {keys} of {result.digests} digests"
    assert step > 20, "the life has fewer steps than it should"


def test_a_kill_between_any_two_steps_of_a_digest_and_its_key_changes_nothing(before: Path, tmp_path_factory) -> None:
    assert list(_complaints(before, tmp_path_factory.mktemp("killed"))) == []


def _destroyed_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is destroyed before the digest that it signs is on the disk."""
    write = Digests._write

    def hasty(self, digest) -> None:
        self._chain._make(digest.number + 2)
        write(self, digest)

    monkeypatch.setattr(Digests, "_write", hasty)


def _made_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next key is on the disk only behind the digest that names it."""
    make, step = KeyChain._make, KeyChain.step
    waiting: dict[int, Ed25519PrivateKey] = {}

    def make_in_memory(self, number: int) -> Ed25519PrivateKey:
        if number == self._number:
            return make(self, number)
        waiting[number] = Ed25519PrivateKey.generate()
        return waiting[number]

    def late(self) -> None:
        number = self._number + 1
        if number in waiting:
            with monkeypatch.context() as patch:
                patch.setattr(Ed25519PrivateKey, "generate", lambda: waiting.pop(number))
                make(self, number)
        step(self)

    monkeypatch.setattr(KeyChain, "_make", make_in_memory)
    monkeypatch.setattr(KeyChain, "step", late)


def _never_destroyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next keys go to files of their own."""
    path = key_chain._path
    monkeypatch.setattr(
        key_chain, "_path", lambda folder, number: path(folder, number) if number < 4 else folder / f"{number}.key"
    )


FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "a key is destroyed before its digest is there": (_destroyed_early, "begins a new chain of keys"),
    "the next key is made behind the digest that names it": (_made_late, "begins a new chain of keys"),
    "a spent key stays": (_never_destroyed, "keys [2, 3"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_steps_in_a_wrong_order_are_found_by_the_kills(
    before: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    plant, found = FAULTS[fault]
    plant(monkeypatch)
    complaints = _complaints(before, tmp_path_factory.mktemp("killed"))
    assert any(found in complaint for complaint in complaints)


# -- a trail of the version before -------------------------------------------------------------------------------------


def _kept(tmp_path: Path) -> Path:
    """A trail that the code before there was a chain of keys wrote, and its configured key."""
    folder = Path(shutil.copytree(KEPT, tmp_path / "data" / "trail"))
    key = Ed25519PrivateKey.from_private_bytes(KEPT_SECRET)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "data" / SIGNING_KEY_NAME).write_bytes(pem)
    (tmp_path / "data" / SIGNING_KEY_NAME).chmod(0o600)
    return folder


def test_a_trail_of_version_1_is_read_as_it_is(tmp_path: Path) -> None:
    result = verify(_kept(tmp_path), Anchor(public_key=KEPT_PUBLIC))
    assert (result.verdict, result.digests, result.records, result.chains) == (Verdict.ANCHORED, 4, 6, ())


def test_a_trail_of_version_1_goes_on_in_the_newest_version(tmp_path: Path, clock) -> None:
    folder = _kept(tmp_path)
    clock.now += timedelta(hours=1)
    with Trail.open(folder, now=clock) as trail:
        trail.finish(GATEWAY)
        trail.note_quiet(GATEWAY)
    digests = [parse_digest(path.read_bytes()) for path in sorted((folder / "digests").iterdir())]
    assert [each.version for each in digests] == [1, 1, 1, 1, DIGEST_VERSION]
    assert digests[4].is_countersigned()
    for key in (KEPT_PUBLIC, digests[4].public_key):
        result = verify(folder, Anchor(public_key=key))
        assert (result.verdict, result.chains) == (Verdict.ANCHORED, (digests[4].public_key,)), result

"""Time-stamps of digests: what a right one says, and that no other passes for one."""

import io
import random
import tarfile
import time
import zipfile
from itertools import product
from pathlib import Path

import pytest
from cryptography.x509 import load_pem_x509_certificate

from gateway.audit_trail.segment import Trail
from spark_audit.pack import PackContents, write_pack
from spark_audit.trail.digest import DIGEST_FOLDER, STAMPS_FOLDER, digest_name, stamp_name, stamp_numbers
from spark_audit.verify import Anchor, Finding, Verdict, Verification, verify, verify_pack
from spark_audit.verify.packed_trail import UnusablePack, packed_stamps
from spark_audit.verify.time_stamp import (
    LARGEST_STAMP_BYTES,
    MOST_WITNESSES,
    UnusableAuthority,
    WrongTimeStamp,
    check_stamp,
    read_authority,
    stamped_digests,
    with_time_stamps,
)
from tests.time_stamping import POLICY, StampingAuthority, needs_openssl_ts

pytestmark = needs_openssl_ts
GATEWAY = "a" * 24
SECOND_US = 1_000_000
DATA = b"a digest\n"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> StampingAuthority:
    return StampingAuthority(tmp_path_factory.mktemp("time") / "ours")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> StampingAuthority:
    return StampingAuthority(tmp_path_factory.mktemp("time") / "theirs")


@pytest.fixture(scope="module")
def stamp(ours: StampingAuthority) -> bytes:
    return ours.stamp(DATA)


def _trusted(authority: StampingAuthority):
    return read_authority(authority.root)


def test_a_time_stamp_says_when_by_whom_and_how_exactly(ours: StampingAuthority, stamp: bytes) -> None:
    told = check_stamp(stamp, DATA, _trusted(ours), policy=POLICY)
    assert abs(told.at_us - time.time_ns() // 1000) < 600 * SECOND_US
    assert (told.accuracy_us, told.policy, told.by) == (1_500_000, POLICY, "CN=Stamps of ours")
    assert told.serial_number > 0


def test_nothing_else_passes_for_a_time_stamp(ours, theirs, stamp) -> None:
    trusted = _trusted(ours)
    cases = {
        "other bytes": (stamp, DATA + b" ", trusted, ""),
        "other root": (stamp, DATA, _trusted(theirs), ""),
        "no root": (stamp, DATA, (), ""),
        "other policy": (stamp, DATA, trusted, "1.2.3"),
        "another hash": (ours.stamp(DATA, "-sha512", "-cert"), DATA, trusted, ""),
        "without its certificate": (ours.stamp(DATA, "-sha256"), DATA, trusted, ""),
        "by a certificate that stamps": (
            stamp,
            DATA,
            (load_pem_x509_certificate((theirs.folder / "tsa.pem").read_bytes()),),
            "",
        ),
    }
    for name, (reply, data, authority, policy) in cases.items():
        with pytest.raises(WrongTimeStamp):
            pytest.fail(f"{name}: {check_stamp(reply, data, authority, policy=policy)}")
    with pytest.raises(WrongTimeStamp, match="longer than"):
        check_stamp(stamp + bytes(LARGEST_STAMP_BYTES), DATA, trusted)
    with pytest.raises(WrongTimeStamp, match="nonce"):
        check_stamp(stamp, DATA, trusted, nonce=1)


def test_a_time_stamp_that_is_cut_or_changed_anywhere_ends_in_our_error(ours, stamp) -> None:
    """Bits that nothing signs may change, such as those of the certificates' order: what it says stays the same."""
    trusted, chance = _trusted(ours), random.Random(3161)
    right = check_stamp(stamp, DATA, trusted)
    for length in range(0, len(stamp), 7):
        with pytest.raises(WrongTimeStamp):
            check_stamp(stamp[:length], DATA, trusted)
    for _ in range(600):
        place = chance.randrange(len(stamp))
        changed = stamp[:place] + bytes((stamp[place] ^ 1 << chance.randrange(8),)) + stamp[place + 1 :]
        try:
            assert check_stamp(changed, DATA, trusted) == right
        except WrongTimeStamp:
            continue
    for _ in range(300):
        with pytest.raises(WrongTimeStamp):
            check_stamp(chance.randbytes(chance.randrange(200)), DATA, trusted)


def test_a_second_certificate_that_claims_to_have_signed_is_refused(ours: StampingAuthority) -> None:
    """openssl puts its certificate in twice. Nobody signs the list of them, so a false one could lend its name."""
    stamp, subject = ours.stamp(DATA, "-sha256", "-cert"), b"Stamps of ours"
    places = [place for place in range(len(stamp)) if stamp.startswith(subject, place)]
    for place, letter in product(places, b"tuvwxyz"):  # DER sorts a set: false ones stand behind
        forged = stamp[:place] + b"Stamps of our" + bytes((letter,)) + stamp[place + len(subject) :]
        with pytest.raises(WrongTimeStamp):
            pytest.fail(f"byte {place}: {check_stamp(forged, DATA, _trusted(ours))}")


def test_a_file_without_a_certificate_is_no_authority(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("nothing")
    with pytest.raises(UnusableAuthority):
        read_authority(tmp_path / "a.pem")


# -- a trail with time-stamps ------------------------------------------------------------------------------------------


class Stamped:
    """A trail with digests of quiet times, stamped by an authority."""

    def __init__(self, folder: Path, authority: StampingAuthority, *, ended_us: int) -> None:
        self.folder = folder / "trail"
        self.folder.mkdir()
        self.stamps = self.folder / STAMPS_FOLDER / "clock"
        self.stamps.mkdir(parents=True)
        with Trail.open(self.folder) as trail:
            for number in range(1, 5):
                trail.digests.add_interval(GATEWAY, from_us=ended_us, until_us=ended_us + number)
        for number in (2, 4):
            self.stamp(number).write_bytes(authority.stamp(self.digest(number).read_bytes()))

    def stamp(self, number: int) -> Path:
        return self.stamps / stamp_name(number)

    def digest(self, number: int) -> Path:
        return self.folder / DIGEST_FOLDER / digest_name(number)


@pytest.fixture
def trail(tmp_path: Path, ours: StampingAuthority) -> Stamped:
    return Stamped(tmp_path, ours, ended_us=time.time_ns() // 1000 - 7200 * SECOND_US)


FORMS = ("folder", "pack.zip", "pack.tar.gz")


def _judged(trail: Stamped, form: str, authority: StampingAuthority) -> Verification:
    """What verify says of the trail, or of a pack of it."""
    if form == "folder":
        return with_time_stamps(verify(trail.folder), stamped_digests(trail.folder), authority.root)
    pack = trail.folder.with_name(form)
    write_pack(PackContents(trail=trail.folder, code_version="1"), pack)
    return with_time_stamps(verify_pack(pack, Anchor()), packed_stamps(pack), authority.root)


@pytest.mark.parametrize("form", FORMS)
def test_verify_tells_which_digest_existed_when_and_by_whom(trail: Stamped, ours: StampingAuthority, form: str) -> None:
    told = _judged(trail, form, ours)
    assert told.verdict is Verdict.INTACT
    (note,) = [note for note in told.notes if "witness clock" in note]
    assert "2 time-stamps: digest 4 existed at 20" in note
    assert "by CN=Stamps of ours" in note
    late_s = int(note.rpartition("later than ")[2].partition(" s")[0].replace(",", ""))
    assert 7190 <= late_s < 7800, "the time-stamps came two hours behind their digests"


def _swap(trail: Stamped) -> None:
    first, second = trail.stamp(2).read_bytes(), trail.stamp(4).read_bytes()
    trail.stamp(2).write_bytes(second)
    trail.stamp(4).write_bytes(first)


FORGERIES = {
    "swapped": _swap,
    "damaged": lambda trail: trail.stamp(4).write_bytes(b"x"),
    "of a digest that is not there": lambda trail: trail.stamp(4).rename(trail.stamp(9)),
    "of a digest that was cut off": lambda trail: trail.digest(4).unlink(),
    "of a digest that was taken out": lambda trail: trail.digest(2).unlink(),
    "of a digest that was changed": lambda trail: trail.digest(4).write_bytes(trail.digest(3).read_bytes()),
    "none left": lambda trail: [trail.stamp(number).unlink() for number in stamp_numbers(trail.stamps)],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_each_forgery_is_found(trail: Stamped, ours: StampingAuthority, forge, form: str) -> None:
    forge(trail)
    told = _judged(trail, form, ours)
    assert told.verdict is Verdict.VIOLATED
    assert Finding.WRONG_TIME_STAMP in {problem.finding for problem in told.problems}


@pytest.mark.parametrize("form", FORMS)
def test_a_time_stamp_by_another_authority_shows_nothing(trail: Stamped, theirs: StampingAuthority, form: str) -> None:
    told = _judged(trail, form, theirs)
    assert told.verdict is Verdict.VIOLATED
    assert told.problem_count == 2
    assert any("no time-stamp that holds" in note for note in told.notes)


def test_a_digest_of_a_time_behind_its_own_time_stamp_is_found(tmp_path: Path, ours: StampingAuthority) -> None:
    trail = Stamped(tmp_path, ours, ended_us=time.time_ns() // 1000 + 7200 * SECOND_US)
    told = with_time_stamps(verify(trail.folder), stamped_digests(trail.folder), ours.root)
    assert "speaks of a time up to" in told.reason


def test_time_stamps_are_no_other_files_of_a_pack_however_many(trail: Stamped, monkeypatch) -> None:
    monkeypatch.setattr("spark_audit.verify.packed_trail.MOST_OTHER_MEMBERS", 2)
    pack = trail.folder.with_name("pack.tar.gz")
    write_pack(PackContents(trail=trail.folder, code_version="1"), pack)
    assert verify_pack(pack, Anchor()).verdict is Verdict.INTACT


def _tar(path: Path, *members: tuple[str, bytes]) -> Path:
    with tarfile.TarFile.open(path, "w:gz", format=tarfile.USTAR_FORMAT) as file:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    return path


def test_a_pack_with_time_stamps_in_another_order_or_of_very_many_witnesses_is_refused(tmp_path: Path) -> None:
    names = {
        "behind a later time-stamp": [f"trail/time-stamps/clock/{number:012d}.tsr" for number in (2, 1)],
        "or twice": [f"trail/time-stamps/clock/{number:012d}.tsr" for number in (2, 2)],
        "more than 100 witnesses": [
            f"trail/time-stamps/w{number}/{1:012d}.tsr" for number in range(MOST_WITNESSES + 1)
        ],
    }
    for words, told in names.items():
        pack = _tar(tmp_path / "pack.tar.gz", *((name, b"") for name in told))
        assert words in verify_pack(pack, Anchor()).reason
        with pytest.raises(UnusablePack, match=words):
            list(packed_stamps(pack))


def test_a_huge_time_stamp_in_a_pack_is_read_no_further_than_one_may_be(tmp_path: Path) -> None:
    pack = _tar(tmp_path / "pack.tar.gz", ("trail/time-stamps/clock/000000000001.tsr", bytes(64 * LARGEST_STAMP_BYTES)))
    ((_, reply),) = [(each.number, each.replies["clock"]) for each in packed_stamps(pack)]
    assert len(reply) == LARGEST_STAMP_BYTES + 1


def test_a_zip_or_a_trail_with_very_many_witnesses_is_told(trail: Stamped, ours: StampingAuthority) -> None:
    pack = trail.folder.with_name("pack.zip")
    names = [f"w{number}/{1:012d}.tsr" for number in range(MOST_WITNESSES + 1)]
    with zipfile.ZipFile(pack, "w") as file:
        for name in names:
            file.writestr(f"trail/time-stamps/{name}", b"")
    assert "more than 100 witnesses" in verify_pack(pack, Anchor()).reason
    with pytest.raises(UnusablePack, match="more than 100 witnesses"):
        list(packed_stamps(pack))
    for name in names:
        path = trail.folder / STAMPS_FOLDER / name
        path.parent.mkdir()
        path.write_bytes(b"")
    told = _judged(trail, "folder", ours)
    assert told.verdict is Verdict.VIOLATED
    assert told.problem_count > MOST_WITNESSES, "that there are more is told too"


def test_a_link_is_no_time_stamp_of_a_pack(trail: Stamped, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    trail.stamp(3).symlink_to(secret)
    (trail.folder / STAMPS_FOLDER / "other").symlink_to(tmp_path)
    pack = tmp_path / "pack.zip"
    write_pack(PackContents(trail=trail.folder, code_version="1"), pack)
    with zipfile.ZipFile(pack) as file:
        stamps = [name for name in file.namelist() if STAMPS_FOLDER in name]
    assert stamps == [f"trail/time-stamps/clock/{stamp_name(number)}" for number in (2, 4)]

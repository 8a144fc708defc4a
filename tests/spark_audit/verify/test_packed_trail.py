"""Packs from hostile hands: each way to harm its reader ends in one clear line and the verdict `not evaluable`."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_audit.pack import PackContents, write_pack
from spark_audit.verify import Anchor, Verdict, Verification, packed_trail, source, verify_pack

SEGMENT = "trail/000000000001-20261120T07.jsonl"


@pytest.fixture
def pack(signed, tmp_path: Path) -> Callable[[str], Path]:
    """Packs two closed segments, one of them compressed: `pack("zip")`, `pack("tar.gz")`."""
    for _ in range(2):
        signed.records(4)
        signed.close()
    signed.compress(2)

    def packed(ending: str) -> Path:
        path = tmp_path / f"evidence.{ending}"
        write_pack(PackContents(trail=signed.folder, code_version="0.1.0"), path)
        return path

    return packed


def _check(path: Path) -> Verification:
    result = verify_pack(path, Anchor())
    assert (result.verdict, result.verdict.exit_code) == (Verdict.NOT_EVALUABLE, 2)
    return result


def _zip_with(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members:
            file.writestr(name, data)
    return path


def _tar_with(path: Path, *members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> Path:
    with tarfile.open(path, "w:gz", format=form) as file:
        for member, data in members:
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    return path


ELSEWHERE = ["../trail/x.jsonl", "trail/../../etc/passwd", "/etc/passwd", "C:/x", "trail\\x", "a//b", "a/./b", "a\tb"]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name: str) -> None:
    for path in (
        _zip_with(tmp_path / "evidence.zip", (name, b"x")),
        _tar_with(tmp_path / "evidence.tar.gz", (tarfile.TarInfo(name), b"x")),
    ):
        assert "leads out of the pack" in _check(path).reason


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(tmp_path) -> None:
    path = _zip_with(tmp_path / "evidence.zip", (SEGMENT, b"x"), (SEGMENT, b"y"))
    assert "comes twice" in _check(path).reason
    for name in (SEGMENT, "trail/digests/000000000001.digest", "README.md"):
        path = _tar_with(tmp_path / "evidence.tar.gz", (tarfile.TarInfo(name), b""), (tarfile.TarInfo(name), b""))
        assert "twice" in _check(path).reason


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path, kind: bytes) -> None:
    member = tarfile.TarInfo(SEGMENT)
    member.type, member.linkname = kind, "etc/passwd"
    assert "is no plain file" in _check(_tar_with(tmp_path / "evidence.tar.gz", (member, b""))).reason


def test_a_link_in_a_zip_is_refused(tmp_path) -> None:
    member = zipfile.ZipInfo(SEGMENT)
    member.external_attr = 0o120777 << 16
    assert "is a link" in _check(_zip_with(tmp_path / "evidence.zip", (member, b"/etc/passwd"))).reason


def test_extended_headers_of_a_tar_are_refused_before_they_are_read(tmp_path) -> None:
    path = _tar_with(tmp_path / "a.tar.gz", (tarfile.TarInfo("trail/" + "x" * 300), b""), form=tarfile.PAX_FORMAT)
    assert "is no plain file" in _check(path).reason


@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_a_pack_cut_anywhere_is_never_clean(pack, tmp_path, ending: str) -> None:
    data = pack(ending).read_bytes()
    path = tmp_path / f"cut.{ending}"
    for length in range(0, len(data) - 1, max(1, len(data) // 150)):
        path.write_bytes(data[:length])
        assert verify_pack(path, Anchor()).verdict is not Verdict.ANCHORED
        assert verify_pack(path, Anchor()).verdict is not Verdict.INTACT, length


@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_a_changed_bit_anywhere_ends_in_a_verdict(pack, signed, tmp_path, ending: str) -> None:
    data = pack(ending).read_bytes()
    path = tmp_path / f"changed.{ending}"
    for place in range(0, len(data), max(1, len(data) // 150)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        result = verify_pack(path, Anchor())
        assert result.verdict is not Verdict.INTACT or result.head == signed.trail.head, place


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"text\n", b"PK\x03\x04", b"\x1f\x8b", gzip.compress(b"no tar" * 200, mtime=0)]
)
def test_what_is_no_pack_is_not_evaluable(tmp_path, data: bytes) -> None:
    path = tmp_path / "evidence"
    path.write_bytes(data)
    assert str(path) in _check(path).reason or "there is no segment" in _check(path).reason


def test_a_pack_that_is_not_there_is_not_evaluable(tmp_path) -> None:
    assert "cannot be read: No such file" in _check(tmp_path / "evidence.zip").reason


def test_an_archive_of_something_else_has_no_trail(tmp_path) -> None:
    path = _zip_with(tmp_path / "evidence.zip", ("photos/cat.jpg", b"x"), ("trail/notes.txt", b"y"))
    assert "there is no segment" in _check(path).reason


@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_a_bomb_of_one_endless_line_takes_bounded_memory(tmp_path, monkeypatch, ending: str) -> None:
    monkeypatch.setattr(source, "LONGEST_LINE_BYTES", 1_000_000)
    data = b"a" * 20_000_000
    if ending == "zip":
        path = _zip_with(tmp_path / "bomb.zip", (SEGMENT, data))
    else:
        path = _tar_with(tmp_path / "bomb.tar.gz", (tarfile.TarInfo(SEGMENT), data))
    _check(path)


def test_a_bomb_within_a_compressed_segment_takes_bounded_memory(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(source, "LONGEST_LINE_BYTES", 1_000_000)
    bomb = gzip.compress(b"a" * 20_000_000)
    _check(_zip_with(tmp_path / "bomb.zip", (f"{SEGMENT}.gz", bomb)))


def test_a_directory_that_would_fill_the_memory_is_not_read(tmp_path, monkeypatch) -> None:
    path = _zip_with(tmp_path / "evidence.zip", *((f"results/{number}", b"") for number in range(200)))
    monkeypatch.setattr(packed_trail, "LARGEST_DIRECTORY_BYTES", 5_000)
    assert "the directory of the zip has more than 5000 bytes" in _check(path).reason


def test_a_tar_of_very_many_other_files_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(packed_trail, "MOST_OTHER_MEMBERS", 10)
    members = [(tarfile.TarInfo(f"results/{number}"), b"") for number in range(11)]
    assert "one of more than 10 other files" in _check(_tar_with(tmp_path / "evidence.tar.gz", *members)).reason


def test_a_tar_in_another_order_is_refused(pack, signed, tmp_path) -> None:
    members = [
        (tarfile.TarInfo(f"trail/{path.relative_to(signed.folder)}"), path.read_bytes())
        for path in sorted(signed.folder.glob("0*"), reverse=True)
    ]
    assert "comes behind a later segment" in _check(_tar_with(tmp_path / "a.tar.gz", *members)).reason


def test_an_encrypted_zip_is_not_evaluable(pack, tmp_path) -> None:
    data = bytearray(pack("zip").read_bytes())
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.find(magic)
        while start >= 0:
            data[start + flags] |= 1
            start = data.find(magic, start + 4)
    path = tmp_path / "encrypted.zip"
    path.write_bytes(data)
    assert "cannot be read" in _check(path).reason

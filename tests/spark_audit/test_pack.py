"""PackContents packs: the same files give the same bytes, `verify` takes them, and so do the lines of their README."""

import hashlib
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from spark_audit import pack
from spark_audit.audit_input import input_of_trails
from spark_audit.pack import PackContents, PackError, lacks, write_pack
from spark_audit.policy import Policy
from spark_audit.read import trail_files
from spark_audit.report import write_report
from spark_audit.seal import SealedTrail, write_seal
from spark_audit.verify import Anchor, Verdict, verify, verify_pack
from tests.spark_audit.conftest import audited, policy_text_of, signing_key

FORMS = ["evidence.zip", "evidence.tar.gz"]


@pytest.fixture
def evidence(signed, other_key, tmp_path: Path) -> PackContents:
    """A trail with a compressed, a closed and an open segment, torn bytes, a rotated key; results and a policy."""
    for _ in range(2):
        signed.records(4)
        signed.close()
    signed.compress(1)
    signed.rotate(other_key)
    signed.records(2)
    signed.write(".open")
    (signed.folder / "000000000003-20261120T09-99.torn").write_bytes(b'{"ver')
    results = tmp_path / "report"
    (results / "exceptions").mkdir(parents=True)
    (results / "result.json").write_text("{}")
    (results / "exceptions" / "part-0.parquet").write_bytes(bytes(1000))
    (results / "link").symlink_to("/etc/hostname")
    _seal(results, signed.folder)
    policy = tmp_path / "strict.toml"
    policy.write_text("[scope]\n")
    return PackContents(trail=signed.folder, policy=policy, results=results, code_version="0.1.0")


def _seal(results: Path, trail: Path) -> None:
    files = [path for path in results.iterdir() if not path.is_symlink()]
    write_seal(results, files, [SealedTrail.of(verify(trail))], None)


NAMES = [
    "README.md",
    "public-key.txt",
    "policy.toml",
    "results/exceptions/part-0.parquet",
    "results/result.json",
    "results/seal.json",
    "trail/digests/000000000001.digest",
    "trail/000000000001-20261120T07.jsonl.zst",
    "trail/digests/000000000002.digest",
    "trail/000000000002-20261120T08.jsonl",
    "trail/digests/000000000003.digest",
    "trail/000000000003-20261120T09.open",
    "trail/000000000003-20261120T09-99.torn",
]


def _names(path: Path) -> list[str]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    with tarfile.open(path) as archive:
        return archive.getnames()


def _unpacked(path: Path, folder: Path) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    else:
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_a_pack_has_all_that_an_auditor_needs_in_a_fixed_order(evidence, tmp_path, form: str) -> None:
    assert write_pack(evidence, tmp_path / form) == len(NAMES)
    assert _names(tmp_path / form) == NAMES


@pytest.mark.parametrize("form", FORMS)
def test_the_same_files_give_the_same_bytes(evidence, tmp_path, form: str) -> None:
    (tmp_path / "again").mkdir()
    write_pack(evidence, tmp_path / form)
    write_pack(evidence, tmp_path / "again" / form)
    hashes = {hashlib.sha256((folder / form).read_bytes()).hexdigest() for folder in (tmp_path, tmp_path / "again")}
    assert len(hashes) == 1


@pytest.mark.parametrize("form", FORMS)
def test_files_come_out_as_they_went_in(evidence, tmp_path, form: str) -> None:
    write_pack(evidence, tmp_path / form)
    unpacked = _unpacked(tmp_path / form, tmp_path / "unpacked") / "trail"
    for path in evidence.trail.rglob("*.*"):
        assert (unpacked / path.relative_to(evidence.trail)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("form", FORMS)
def test_verify_takes_a_pack(evidence, signed, tmp_path, form: str) -> None:
    write_pack(evidence, tmp_path / form)
    result = verify_pack(tmp_path / form, Anchor())
    assert (result.verdict, result.records, result.records_without_digest) == (Verdict.INTACT, 10, 2)
    assert result.torn_files == ("000000000003-20261120T09-99.torn",)
    assert verify_pack(tmp_path / form, Anchor.read(digests=signed.digests)).verdict is Verdict.ANCHORED


@pytest.mark.parametrize("form", FORMS)
def test_a_touched_segment_is_found_in_its_pack(evidence, tmp_path, form: str) -> None:
    path = evidence.trail / "000000000002-20261120T08.jsonl"
    path.write_bytes(path.read_bytes().replace(b"boiler", b"cooler", 1))
    write_pack(evidence, tmp_path / form)
    result = verify_pack(tmp_path / form, Anchor())
    assert (result.verdict, result.problems[0].segment, result.problems[0].line) == (Verdict.VIOLATED, path.name, 1)


def test_the_key_in_a_pack_is_the_one_that_signs_now(evidence, signed, tmp_path) -> None:
    write_pack(evidence, tmp_path / "evidence.zip")
    folder = _unpacked(tmp_path / "evidence.zip", tmp_path / "unpacked")
    assert (folder / "public-key.txt").read_text() == f"{signed.public_key}\n"
    assert f"    {signed.public_key}\n" in (folder / "README.md").read_text()


def _run_examples(folder: Path) -> list[subprocess.CompletedProcess[str]]:
    examples = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    quiet = [sys.executable, "-W", "ignore::ResourceWarning", "-c"]
    return [
        subprocess.run([*quiet, code], cwd=folder, capture_output=True, text=True, check=False) for code in examples
    ]


def test_the_lines_of_the_readme_check_a_pack(evidence, signed, tmp_path) -> None:
    write_pack(evidence, tmp_path / "evidence.zip")
    lines, digests = _run_examples(_unpacked(tmp_path / "evidence.zip", tmp_path / "unpacked"))
    assert lines.stdout == f"every link holds; the hash of the last record is {signed.trail.head}\n", lines.stderr
    assert f"the last digest has hash {signed.previous}" in digests.stdout, digests.stderr


def _chained_pack(chained, tmp_path: Path) -> Path:
    for _ in range(3):
        chained.records(2)
        chained.close()
    chained.rotate(signing_key(2))
    chained.digest("interval", countersign=True)
    write_pack(PackContents(trail=chained.folder, code_version="0.1.0"), tmp_path / "chained.zip")
    return _unpacked(tmp_path / "chained.zip", tmp_path / "chained")


def test_the_lines_of_the_readme_check_a_chain_of_keys(chained, tmp_path) -> None:
    folder = _chained_pack(chained, tmp_path)
    assert (folder / "public-key.txt").read_text() == f"{chained.public_key_of(1)}\n"
    _, digests = _run_examples(folder)
    first, configured = chained.public_key_of(1), chained.public_key
    assert digests.stdout.endswith(f"the first key of the chain is {first} and the configured key now {configured}\n")
    path = folder / "trail/digests/000000000002.digest"
    data = path.read_bytes()
    path.write_bytes(data.replace(chained.public_key_of(3).encode(), chained.public_key_of(4).encode()))
    _, digests = _run_examples(folder)
    assert "InvalidSignature" in digests.stderr
    path.write_bytes(data)
    last = folder / "trail/digests/000000000005.digest"
    chained.number, chained.previous = (
        4,
        hashlib.sha256((folder / "trail/digests/000000000004.digest").read_bytes()).hexdigest(),
    )
    last.write_bytes(chained.digest("interval", signer=signing_key(9)).read_bytes())
    _, digests = _run_examples(folder)
    assert "AssertionError" in digests.stderr


def test_the_lines_of_the_readme_find_a_touch(evidence, tmp_path) -> None:
    for name, old, new in (
        ("000000000002-20261120T08.jsonl", b"boiler", b"cooler"),
        ("digests/000000000002.digest", b'"records":4', b'"records":5'),
    ):
        path = evidence.trail / name
        path.write_bytes(path.read_bytes().replace(old, new, 1))
    write_pack(replace(evidence, results=None), tmp_path / "evidence.zip")
    lines, digests = _run_examples(_unpacked(tmp_path / "evidence.zip", tmp_path / "unpacked"))
    assert "AssertionError" in lines.stderr
    assert "InvalidSignature" in digests.stderr


@pytest.fixture
def reported(signed, tmp_path: Path) -> PackContents:
    """A trail with every file that an audit of it writes."""
    signed.records(3)
    signed.close()
    policy = tmp_path / "policy.toml"
    policy.write_text(policy_text_of("integrity.hash"))
    out = tmp_path / "report"
    audit_input = input_of_trails([trail_files(signed.folder, tmp_path)])
    result = audited(audit_input, tmp_path, policy=Policy.load(policy), report_folder=out)
    write_report(result, out)
    _seal(out, signed.folder)
    return PackContents(trail=signed.folder, policy=policy, results=out, code_version="0.1.0")


def test_every_file_of_a_report_is_packed_and_the_pack_still_holds(reported: PackContents, tmp_path: Path) -> None:
    for form in FORMS:
        write_pack(reported, tmp_path / form)
        assert verify_pack(tmp_path / form, Anchor()).verdict is Verdict.INTACT
        results = _unpacked(tmp_path / form, tmp_path / f"unpacked {form}") / "results"
        assert {path.name for path in results.iterdir()} == {
            *("audit.sarif", "exceptions.parquet", "junit.xml", "report.html", "result.json", "seal.json"),
        }
        for path in filter(Path.is_file, results.rglob("*")):
            assert path.read_bytes() == (tmp_path / "report" / path.relative_to(results)).read_bytes()
        assert any((results / "exceptions.parquet").glob("*.parquet"))


def test_results_that_are_not_of_the_trail_are_refused_and_what_is_missing_is_told(evidence, tmp_path) -> None:
    assert lacks(evidence) == ("nobody signed its results (rfhbridge audit run --sign KEY)",)
    without = replace(evidence, results=tmp_path / "nowhere")
    assert lacks(without) == ("it has no results (rfhbridge audit run writes them)",)
    (evidence.results / "result.json").write_text('{"verdict":"clean"}')
    with pytest.raises(PackError, match=r"do not belong to .*: result\.json was changed"):
        write_pack(evidence, tmp_path / "evidence.zip")
    assert not (tmp_path / "evidence.zip").exists()


def test_a_name_that_says_no_form_is_refused(evidence, tmp_path) -> None:
    with pytest.raises(PackError, match=r"must end in \.zip or \.tar\.gz"):
        write_pack(evidence, tmp_path / "evidence.rar")


def test_a_pack_needs_a_folder_that_is_there(evidence, tmp_path) -> None:
    with pytest.raises(PackError, match="there is no folder"):
        write_pack(evidence, tmp_path / "nowhere" / "evidence.zip")


def test_without_a_trail_there_is_no_pack(tmp_path) -> None:
    with pytest.raises(PackError, match="there is no trail"):
        write_pack(PackContents(trail=tmp_path / "trail", code_version="0.1.0"), tmp_path / "evidence.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_pack_lacks_no_segment_that_was_removed_while_it_was_written(evidence, signed, tmp_path, monkeypatch) -> None:
    anchor_key_of = pack.anchor_key_of

    def removed_meanwhile(digests: Path) -> str:
        (digests.parent / f"{signed.segments[0]}.jsonl.zst").unlink()
        return anchor_key_of(digests)

    monkeypatch.setattr(pack, "anchor_key_of", removed_meanwhile)
    with pytest.raises(PackError, match=r"000000000001-20261120T07\.jsonl\.zst was removed while the trail was packed"):
        write_pack(evidence, tmp_path / "pack.zip")
    assert not (tmp_path / "pack.zip").exists()


def test_a_pack_that_fails_leaves_the_old_one(evidence, tmp_path) -> None:
    out = tmp_path / "evidence.tar.gz"
    out.write_bytes(b"old")
    long = evidence.results / ("a" * 90) / ("b" * 90) / ("c" * 120)
    long.parent.mkdir(parents=True)
    long.touch()
    (evidence.results / "seal.json").unlink()
    _seal(evidence.results, evidence.trail)
    with pytest.raises(PackError, match="does not fit into a tar"):
        write_pack(evidence, out)
    assert out.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

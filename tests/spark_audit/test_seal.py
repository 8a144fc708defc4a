"""A seal ties results to their trail: those of another one, of a changed one, or with a changed file do not belong."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spark_audit.seal import MalformedSeal, Seal, SealedTrail, parse_seal, read_seal, why_not_of, write_seal
from spark_audit.trail.signature import KeySigner
from spark_audit.verify import verify
from tests.every_case import for_every
from tests.spark_audit.conftest import ChainedTrail, TrailBuilder, signing_key

SIGNER = KeySigner(signing_key(5))
OF_ANOTHER = "they are of another trail"


@pytest.fixture
def results(chained, tmp_path: Path) -> Path:
    """Results of a trail with two digests, signed."""
    for _ in range(2):
        chained.records(2)
        chained.close()
    folder = tmp_path / "report"
    (folder / "exceptions.parquet").mkdir(parents=True)
    for name in ("result.json", "exceptions.parquet/part-0.parquet"):
        (folder / name).write_text(name)
    _seal(folder, chained.folder)
    return folder


def _seal(folder: Path, *trails: Path, signer: KeySigner | None = SIGNER) -> None:
    files = [folder / "result.json", folder / "exceptions.parquet"]
    write_seal(folder, files, (SealedTrail.of(verify(trail)) for trail in trails), signer)


def _another(tmp_path: Path, *, digests: int = 2) -> Path:
    other = ChainedTrail(TrailBuilder(tmp_path / "other" / "trail"), signing_key(2))
    other.records(2, topic="other")
    for _ in range(digests):
        other.close()
        other.records(2)
    other.write(".open")
    return other.folder


def test_results_belong_to_their_trail_and_to_what_it_grows_to(chained, results) -> None:
    assert why_not_of(results, chained.folder) == ""
    chained.records(2)
    chained.close()
    assert why_not_of(results, chained.folder) == ""
    chained.countersign = True
    chained.remove(1)
    assert why_not_of(results, chained.folder) == "", "the digests of what was removed are there"


def test_results_of_several_trails_belong_to_each_of_them(chained, results, tmp_path) -> None:
    other = _another(tmp_path)
    assert OF_ANOTHER in why_not_of(results, other)
    _seal(results, other, chained.folder)
    assert why_not_of(results, chained.folder) == why_not_of(results, other) == ""


def test_results_of_a_trail_without_a_digest_are_known_by_its_last_record(signed, results, tmp_path) -> None:
    shutil.rmtree(signed.folder)
    signed.records(3)
    signed.write(".open")
    _seal(results, signed.folder)
    assert why_not_of(results, signed.folder) == ""
    assert OF_ANOTHER in why_not_of(results, _another(tmp_path, digests=0))


def _edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace(old, new))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a changed file": (_edit("result.json", "result", "RESULT"), "result.json was changed"),
    "a file more": (lambda folder: (folder / "notes.txt").touch(), "notes.txt is not a file of the audit"),
    "a file less": (
        lambda folder: (folder / "exceptions.parquet/part-0.parquet").unlink(),
        "exceptions.parquet/part-0.parquet is missing",
    ),
    "no seal": (lambda folder: (folder / "seal.json").unlink(), "there is no seal.json"),
    "half a seal": (lambda folder: (folder / "seal.json").write_bytes(b'{"version":1'), "seal.json: it is no seal"),
    "another digest": (_edit("seal.json", '"digests":2', '"digests":1'), "the signature in seal.json is not that of"),
    "another signature": (
        lambda folder: (folder / "seal.json").write_bytes(replace(read_seal(folder), signature="0" * 128).to_bytes()),
        "the signature in seal.json is not that of",
    ),
}


@for_every(CHANGES)
def test_what_was_changed_behind_the_seal_is_told(change, chained, results, tmp_path_factory) -> None:
    touch, words = change
    folder = Path(shutil.copytree(results, tmp_path_factory.mktemp("changed") / "report"))
    touch(folder)
    assert words in why_not_of(folder, chained.folder)


def test_a_trail_that_was_changed_or_cut_since_is_told(chained, results) -> None:
    path = chained.digests / "000000000002.digest"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"records":2', b'"records":3'))
    assert OF_ANOTHER in why_not_of(results, chained.folder)
    path.unlink()
    assert OF_ANOTHER in why_not_of(results, chained.folder)


def test_a_seal_is_one_object_in_one_form_and_its_signature_is_over_the_rest() -> None:
    seal = Seal(trails=(SealedTrail(digests=1, digest_head="1" * 64, head="2" * 64),), files={"a": "3" * 64})
    text = (
        '{"files":{"a":"' + "3" * 64 + '"},"public_key":"","signature":"","trails":[{"digest_head":"' + "1" * 64
        + '","digests":1,"head":"' + "2" * 64 + '"}],"version":1}\n'
    )  # fmt: skip
    assert (seal.to_bytes(), parse_seal(text.encode())) == (text.encode(), seal)
    signed = seal.signed(SIGNER)
    told = json.loads(signed.to_bytes())
    signature = told.pop("signature")
    assert signature == SIGNER.sign(json.dumps(told, sort_keys=True, separators=(",", ":")).encode())
    assert signed.is_signed()
    assert not seal.is_signed()
    for broken in (
        b"",
        b"[]",
        b"{}",
        b'{"version":2}',
        text.encode()[:-1],
        text.replace('"files"', '"Files"').encode(),
    ):
        with pytest.raises(MalformedSeal):
            parse_seal(broken)

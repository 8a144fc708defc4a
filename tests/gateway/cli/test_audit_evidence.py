"""`rfhbridge audit verify`, `prove` and `pack`: what an auditor types, on a trail of two signed segments."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from spark_audit.seal import SealedTrail, write_seal
from spark_audit.trail.digest import Digest, SegmentMeasure, digest_hash, digest_name
from spark_audit.trail.signature import public_key_of
from spark_audit.trail.witness_note import WitnessNote, note_path
from spark_audit.verify import verify
from tests.certificate_authority import Authority

GATEWAY = "0102030405060708090a0b0c"
MESSAGE = "52464842" + "a" * 40
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def _lines(first: int, count: int, head: str) -> tuple[list[bytes], str]:
    lines = []
    for sequence in range(first, first + count):
        record = {"version": 1, "sequence": sequence, "batch": sequence, "gateway": GATEWAY, "kind": "put"}
        record |= {
            "at_us": 1_795_158_000_000_000,
            "client": "pump",
            "command": "Publish",
            "topic": "plant/boiler",
            "message_id": MESSAGE if sequence == 2 else f"{sequence:048x}",
            "prev": head,
        }
        text = json.dumps(record, separators=(",", ":")).encode()
        head = hashlib.sha256(text).hexdigest()
        lines.append(text[:-1] + b',"hash":"' + head.encode() + b'"}\n')
    return lines, head


@pytest.fixture
def trail(data_folder) -> Path:
    """Two closed segments of three records each, with digests; no store beside it."""
    folder = data_folder / "trail"
    (folder / "digests").mkdir(parents=True)
    head = previous = "0" * 64
    for number in (1, 2):
        lines, head = _lines(3 * number - 2, 3, head)
        stem = f"{number:012d}-20261120T{number:02d}"
        (folder / f"{stem}.jsonl").write_bytes(b"".join(lines))
        measure = SegmentMeasure()
        measure.add(b"".join(lines))
        digest = Digest(
            version=1,
            number=number,
            kind="segment",
            gateway=GATEWAY,
            segment=stem,
            first_sequence=3 * number - 2,
            last_sequence=3 * number,
            records=3,
            size_bytes=measure.size_bytes,
            sha256=measure.sha256(),
            merkle_root=measure.merkle_root(),
            head=head,
            previous=previous,
            from_us=1,
            until_us=2,
            code_version="0.1.0",
            table_version="1",
            configuration_sha256="",
        ).signed(KEY)
        (folder / "digests" / digest_name(number)).write_bytes(digest.to_bytes())
        previous = digest_hash(digest.to_bytes())
    return folder


@pytest.fixture
def key_file(tmp_path) -> Path:
    """The public key, as an auditor keeps it."""
    path = tmp_path / "gateway.pub"
    path.write_text(public_key_of(KEY) + "\n")
    return path


def test_trail_is_consistent_and_with_a_key_anchored(rfhbridge, data_folder, trail, key_file):
    ended = rfhbridge("audit", "verify", "--data", data_folder)
    assert (ended.exit_code, ended.text.splitlines()[0].partition(":")[0]) == (0, "consistent, not anchored")
    assert "2 segments, 6 records, 2 digests, head " in ended.text
    ended = rfhbridge("audit", "verify", "--data", data_folder, "--public-key", key_file)
    assert (ended.exit_code, ended.text.partition(":")[0]) == (0, "anchored")


def test_copied_digests_show_what_was_cut_off(rfhbridge, data_folder, trail, tmp_path):
    copies = shutil.copytree(trail / "digests", tmp_path / "copies")
    assert rfhbridge("audit", "verify", "--data", data_folder, "--digests", copies).text.startswith("anchored: ")
    (trail / "digests" / "000000000002.digest").unlink()
    (trail / "000000000002-20261120T02.jsonl").unlink()
    ended = rfhbridge("audit", "verify", "--data", data_folder, "--digests", copies)
    assert ended.exit_code == 1
    assert "digests/000000000002.digest: it is missing, though there is a copy of it" in ended.text


def test_an_auditors_own_rule_finds_an_old_trail_and_is_no_rule_for_a_proof(rfhbridge, data_folder, trail, tmp_path):
    ended = rfhbridge("audit", "verify", "--data", data_folder, "--keep-at-least", "365d")
    assert (ended.exit_code, "of 1970-01-01T00:00:00Z, signed by" in ended.text) == (0, True)
    ended = rfhbridge("audit", "verify", "--data", data_folder, "--not-older-than", "1h", "--json")
    said = json.loads(ended.stdout)
    assert (ended.exit_code, said["problems"][0]["finding"], said["last_digest_at_us"]) == (1, "stale trail", 2)
    for wrong in (["--proof", tmp_path / "proof.json"], ["--keep-at-least", "0d"], ["--keep-at-least", "a year"]):
        ended = rfhbridge("audit", "verify", "--not-older-than", "1h", *wrong)
        assert (ended.exit_code, ended.stdout) == (3, b""), ended.stderr
        assert "--keep-at-least" in ended.stderr


def test_verification_as_json_names_each_problem(rfhbridge, data_folder, trail):
    path = trail / "000000000002-20261120T02.jsonl"
    path.write_bytes(path.read_bytes().replace(b"boiler", b"cooler", 1))
    ended = rfhbridge("audit", "verify", "--data", data_folder, "--json")
    said = json.loads(ended.stdout)
    assert (ended.exit_code, said["verdict"], said["problem_count"]) == (1, "violated", 2)
    assert [(each["finding"], each["segment"], each["line"], each["offset"]) for each in said["problems"]] == [
        ("changed line", path.name, 1, 0),
        ("segment unlike digest", path.name, 0, 0),
    ]


@pytest.mark.parametrize("name", ["evidence.zip", "evidence.tar.gz"])
def test_pack_is_verified_like_its_trail(rfhbridge, data_folder, trail, key_file, tmp_path, name):
    pack = tmp_path / name
    ended = rfhbridge("audit", "pack", "--data", data_folder, "--out", pack)
    sha256 = hashlib.sha256(pack.read_bytes()).hexdigest()
    assert (ended.exit_code, ended.text) == (0, f"{pack}: 6 files, SHA-256 {sha256}\n")
    assert rfhbridge("audit", "verify", pack).text.startswith("consistent, not anchored: 6 records")
    assert rfhbridge("audit", "verify", pack, "--public-key", key_file).text.startswith("anchored: 6 records")


def test_pack_as_json_tells_its_hash(rfhbridge, data_folder, trail, tmp_path):
    pack = tmp_path / "evidence.zip"
    said = json.loads(rfhbridge("audit", "pack", "--data", data_folder, "--out", pack, "--json").stdout)
    sha256 = hashlib.sha256(pack.read_bytes()).hexdigest()
    lacks = ["it has no results (rfhbridge audit run writes them)"]
    assert said == {"pack": str(pack), "files": 6, "sha256": sha256, "lacks": lacks}


def test_copied_trail_and_unpacked_pack_are_verified_as_folders(rfhbridge, data_folder, trail):
    for folder in (data_folder, trail):
        assert rfhbridge("audit", "verify", folder).text.startswith("consistent, not anchored: 6 records")


def test_pack_takes_results_and_policy(rfhbridge, data_folder, trail, tmp_path):
    report = data_folder / "report"
    report.mkdir()
    (report / "result.json").write_text("{}")
    write_seal(report, [report / "result.json"], [SealedTrail.of(verify(trail))], None)
    policy = tmp_path / "policy.toml"
    policy.write_text("[scope]\n")
    ended = rfhbridge("audit", "pack", "--data", data_folder, "--policy", policy, "--out", tmp_path / "a.tar.gz")
    assert (ended.exit_code, ended.text.split(": ")[1].split(",")[0]) == (0, "9 files")
    assert ended.stderr == "the pack lacks something: nobody signed its results (rfhbridge audit run --sign KEY)\n"


def test_pack_refuses_results_that_are_not_of_its_trail(rfhbridge, data_folder, trail, tmp_path):
    report = data_folder / "report"
    report.mkdir()
    (report / "result.json").write_text("{}")
    pack = ("audit", "pack", "--data", data_folder, "--out", tmp_path / "a.zip")
    ended = rfhbridge(*pack)
    assert (ended.exit_code, (tmp_path / "a.zip").exists()) == (2, False)
    assert "there is no seal.json that says of which trail they are" in ended.stderr
    of_another = SealedTrail(digests=2, digest_head="f" * 64, head="f" * 64)
    write_seal(report, [report / "result.json"], [of_another], None)
    ended = rfhbridge(*pack)
    assert (ended.exit_code, "they are of another trail" in ended.stderr) == (2, True)


def test_policy_asks_how_long_a_trail_is_kept_and_how_fresh_it_is(rfhbridge, data_folder, trail, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("[trail]\nnot_older_than_hours = 2\n")
    asked = ("audit", "verify", "--data", data_folder, "--policy", policy)
    ended = rfhbridge(*asked)
    assert (ended.exit_code, "the last digest is of 1970-01-01T00:00:00Z" in ended.text) == (1, True)
    assert rfhbridge(*asked, "--not-older-than", "99999d").exit_code == 0, "an option goes before the policy"
    policy.write_text("[trail]\nnot_older_than_s = 2\n")
    assert "trail has no key not_older_than_s" in rfhbridge(*asked).stderr


def test_message_is_proven_to_a_third_party(rfhbridge, data_folder, trail, key_file, tmp_path):
    proof = tmp_path / "proof.json"
    ended = rfhbridge("audit", "prove", MESSAGE.upper(), "--data", data_folder, "--out", proof)
    assert (ended.exit_code, ended.stderr) == (0, "proved 1 record\n")
    shutil.rmtree(data_folder)
    ended = rfhbridge("audit", "verify", "--proof", proof, "--public-key", key_file)
    first, key, *words, record = ended.text.splitlines()
    assert first.startswith("anchored: 1 record is in the trail, each in its place; anchored by the public key")
    assert (json.loads(record)["message_id"], key) == (MESSAGE, f"signed by {public_key_of(KEY)}")
    assert words == [
        "proved: accepted from pump 2026-11-20 07:00:00.000Z: topic plant/boiler, QoS 0",
        f"proved: put 2026-11-20 07:00:00.000Z as message {MESSAGE}",
        "not in the proof: a copy for a subscriber",
    ]
    said = json.loads(rfhbridge("audit", "verify", "--proof", proof, "--json").stdout)
    assert said["verdict"] == "consistent, not anchored"


def test_message_is_proven_from_a_pack(rfhbridge, data_folder, trail, key_file, tmp_path):
    for pack in (tmp_path / "evidence.zip", tmp_path / "evidence.tar.gz"):
        rfhbridge("audit", "pack", "--data", data_folder, "--out", pack)
        proof = tmp_path / "proof.json"
        proof.write_bytes(rfhbridge("audit", "prove", MESSAGE, "--pack", pack).stdout)
        assert rfhbridge("audit", "verify", "--proof", proof, "--public-key", key_file).exit_code == 0


def test_edited_proof_is_a_violation(rfhbridge, data_folder, trail, key_file, tmp_path):
    proof = tmp_path / "proof.json"
    rfhbridge("audit", "prove", MESSAGE, "--data", data_folder, "--out", proof)
    proof.write_bytes(proof.read_bytes().replace(b"boiler", b"cooler"))
    assert rfhbridge("audit", "verify", "--proof", proof, "--public-key", key_file).exit_code == 1


def test_trail_that_contradicts_its_digests_proves_nothing(rfhbridge, data_folder, trail):
    path = trail / "000000000001-20261120T01.jsonl"
    path.write_bytes(path.read_bytes().replace(b"boiler", b"cooler", 1))
    ended = rfhbridge("audit", "prove", MESSAGE, "--data", data_folder)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "is not what digest 1 says" in ended.stderr


NOT_EVALUABLE = {
    "a message that is not there": ("prove", "f" * 48, "--data", "DATA"),
    "a proof that is none": ("verify", "--proof", "KEY"),
    "a key that is none": ("verify", "--data", "DATA", "--public-key", "DATA/trail/digests/000000000001.digest"),
    "a key that is not there": ("verify", "--data", "DATA", "--public-key", "nowhere.pub"),
    "copies that are none": ("verify", "--data", "DATA", "--digests", "."),
    "a time-stamping authority that is none": ("verify", "--data", "DATA", "--time-stamps", "KEY"),
    "a pack that is none": ("verify", "KEY"),
    "a pack that is not there": ("prove", "f" * 48, "--pack", "nowhere.zip"),
    "a pack to prove from that is none": ("prove", "f" * 48, "--pack", "KEY"),
    "a pack of no form": ("pack", "--data", "DATA", "--out", "evidence.rar"),
    "a pack of nothing": ("pack", "--data", "nowhere", "--out", "evidence.zip"),
    "a pack of results that are not there": ("pack", "--data", "DATA", "--results", "nowhere", "--out", "evidence.zip"),
    "a pack of a policy that is not there": ("pack", "--data", "DATA", "--policy", "nowhere", "--out", "evidence.zip"),
}


@pytest.mark.parametrize("case", NOT_EVALUABLE)
def test_what_cannot_be_judged_is_exit_code_2(rfhbridge_process, data_folder, trail, key_file, tmp_path, case):
    words = {"DATA": str(data_folder), "KEY": str(key_file)}
    arguments = [words.get(each, each.replace("DATA/", f"{data_folder}/")) for each in NOT_EVALUABLE[case]]
    ended = rfhbridge_process("audit", *arguments, cwd=tmp_path)
    assert ended.exit_code == 2
    assert "fault of this program" not in ended.stderr


WRONG_USE = [
    ("prove", "abc"),
    ("prove", "52464842", "--data", "var"),
    ("prove", "f" * 48, "--data", "var", "--pack", "a.zip"),
    ("verify", "a.zip", "--data", "var"),
    ("verify", "--proof", "p.json", "--digests", "copies"),
    ("verify", "--proof", "p.json", "--time-stamps", "root.pem"),
    ("verify", "--proof", "p.json", "--data", "var"),
    ("pack", "--data", "var"),
]


@pytest.mark.parametrize("arguments", WRONG_USE, ids=" ".join)
def test_wrong_use_is_exit_code_3(rfhbridge, arguments):
    ended = rfhbridge("audit", *arguments)
    assert (ended.exit_code, ended.stdout) == (3, b"")


def test_a_folder_without_a_trail_is_not_evaluable_and_every_command_says_what_to_do(rfhbridge, data_folder, tmp_path):
    data_folder.mkdir()
    for command in (("prove", MESSAGE), ("pack", "--out", tmp_path / "evidence.zip"), ("key", "rotate")):
        ended = rfhbridge("audit", *command, "--data", data_folder)
        assert (ended.exit_code, ended.stdout) == (2, b"")
        assert "there is no trail" in ended.stderr
        assert "(name the gateway's data folder with --data)" in ended.stderr
    ended = rfhbridge("audit", "verify", "--data", data_folder)
    assert ended.exit_code == 2
    assert ended.text.splitlines()[1:] == [
        "name the gateway's data folder with --data, or a pack or the folder of a copied trail"
    ]


def test_a_trail_without_time_stamps_is_told_where_they_are_asked_for(rfhbridge, data_folder, trail, tmp_path):
    authority = tmp_path / "root.pem"
    Authority(tmp_path, "root")
    ended = rfhbridge("audit", "verify", "--data", data_folder, "--time-stamps", authority)
    assert ended.exit_code == 1
    assert "there is none, and time-stamps were asked for" in ended.text


@pytest.mark.parametrize("name", ["evidence.zip", "evidence.tar.gz"])
def test_a_pack_has_the_time_stamps_of_its_trail(rfhbridge, data_folder, trail, tmp_path, name):
    authority = tmp_path / "root.pem"
    Authority(tmp_path, "root")
    stamp = trail / "time-stamps" / "clock" / f"{1:012d}.tsr"
    stamp.parent.mkdir(parents=True)
    stamp.write_bytes(b"no time-stamp")
    assert rfhbridge("audit", "pack", "--data", data_folder, "--out", tmp_path / name).exit_code == 0
    ended = rfhbridge("audit", "verify", tmp_path / name, "--time-stamps", authority)
    assert ended.exit_code == 1
    assert f"time-stamps/clock/{1:012d}.tsr: it shows nothing of digest 1" in ended.text
    assert rfhbridge("audit", "verify", tmp_path / name).exit_code == 0


def test_the_notes_of_witnesses_are_told_with_the_verdict(rfhbridge, data_folder, trail):
    path = note_path(trail, "office")
    path.parent.mkdir()
    path.write_bytes(WitnessNote(name="office", kind="git", failure="it is away").to_bytes())
    ended = rfhbridge("audit", "verify", "--data", data_folder)
    assert ended.exit_code == 0
    assert "witness office has no digest, as the gateway says; ask it yourself (it is away)" in ended.text

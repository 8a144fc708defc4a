"""Trails, Parquet and reports in a bucket: commands say the same of them as of local folders."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_audit import remote_location, spark_session
from spark_audit.__main__ import main
from spark_audit.facts.pieces import SegmentPiece, pieces_of
from spark_audit.ingest.manifest import RECORDS, Manifest
from spark_audit.options import RECEIPT
from spark_audit.remote_location import location_of
from tests.spark_audit.conftest import SignedTrail, policy_text_of
from tests.spark_audit.s3_server import Bucket

#: What differs from run to run: when, how long, from where.
_OF_THE_RUN = ("audited_at", "seconds", "command", "auditor")
IN = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 3, "qos": 1}
#: Of the controls those that read everything in a trail: on Spark all of them take long.
SOME = ("integrity.lines", "integrity.hash", "integrity.chain", "integrity.digests", "integrity.agreement", "qos.1")


@pytest.fixture
def forms(signed: SignedTrail) -> SignedTrail:
    """A trail with a violation in a segment of each form: plain, Zstandard, gzip, open."""
    for _segment in range(4):
        signed.trail.add("accepted", exchange=1 + signed.trail.sequence, **IN)
        signed.trail.add("confirmed", exchanges=[[99, 99]], **(IN | {"packet_type": 4}))
        if len(signed.segments) < 3:
            signed.close()
        else:
            signed.write(".open")
    signed.compress(1)
    signed.compress(2, ending=".jsonl.gz")
    return signed


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.toml"
    path.write_text(policy_text_of(*SOME))
    return str(path)


@pytest.fixture
def in_this_spark(spark, monkeypatch) -> None:
    """Commands use the session of the tests, which goes on afterwards."""
    monkeypatch.setattr(spark_session, "start_session", lambda *_values, **_named: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _session: None)


def _result(text: str, *places: str) -> dict[str, Any]:
    """A result without what differs from run to run, and with one name for the places of its trail."""
    for place in places:
        text = text.replace(place, "PLACE")
    return {name: value for name, value in json.loads(text).items() if name not in _OF_THE_RUN}


def test_duckdb_finds_in_a_bucket_what_it_finds_in_a_folder(forms, bucket: Bucket, tmp_path: Path, capsys) -> None:
    uri = bucket.upload(forms.folder, "forms").replace("s3://", "s3a://")
    command = ["run", "--engine", "duckdb", "--public-key", str(tmp_path / "key.pub"), "--trail"]
    (tmp_path / "key.pub").write_text(forms.public_key)
    assert main([*command, str(forms.folder), "--out", str(tmp_path / "of-folder")]) == 1
    assert main([*command, uri, "--out", str(tmp_path / "of-bucket")]) == 1
    capsys.readouterr()
    of_folder = (tmp_path / "of-folder" / "result.json").read_text()
    of_bucket = (tmp_path / "of-bucket" / "result.json").read_text()
    result = _result(of_folder, str(forms.folder))
    assert _result(of_bucket, uri) == result
    assert {each["identifier"]: each["violations"] for each in result["controls"]}["qos.1"] == 4
    assert result["integrity"]["verdict"] == "anchored"
    assert json.loads(of_bucket)["command"].count(uri) == 1


def test_a_stream_goes_on_from_segment_to_segment_in_a_bucket(
    bucket: Bucket, signed: SignedTrail, tmp_path: Path, policy: str, capsys
) -> None:
    told = ["--policy", policy, "--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint"), "--json"]
    for number in (1, 2):
        signed.records(number)
        signed.close()
        uri = bucket.upload(signed.folder, "stream")
        for records in ([number], []):
            assert main(["stream", "--once", "--engine", "duckdb", "--trail", uri, *told]) == 0
            assert [json.loads(line)["records"] for line in capsys.readouterr().out.splitlines()] == records


@pytest.mark.usefixtures("in_this_spark")
def test_workers_of_spark_find_in_a_bucket_what_they_find_in_a_folder(
    forms, bucket: Bucket, tmp_path: Path, policy: str, capsys
) -> None:
    uri = bucket.for_workers(bucket.upload(forms.folder, "workers"))
    results = []
    for trail, out in ((str(forms.folder), str(tmp_path / "out")), (uri, bucket.uri("report-of-spark"))):
        assert main(["run", "--policy", policy, "--json", "--trail", trail, "--out", out]) == 1
        results.append(_result(capsys.readouterr().out, trail))
    assert results[0] == results[1]
    assert bucket.names("report-of-spark") >= {"result.json", "seal.json"}


def _exceptions(bucket: Bucket, path: str) -> set[str]:
    return {name for name in bucket.names(path) if name.startswith("exceptions.parquet/")}


def test_a_report_goes_into_a_bucket_and_takes_the_place_of_the_one_before(
    forms, bucket: Bucket, tmp_path: Path, monkeypatch
) -> None:
    receipt = tmp_path / "receipt"
    monkeypatch.setenv(RECEIPT, str(receipt))
    command = ["run", "--engine", "duckdb", "--trail", str(forms.folder), "--out", bucket.uri("report")]
    assert main(command) == 1
    assert receipt.exists()
    names = {"result.json", "report.html", "junit.xml", "audit.sarif", "seal.json"}
    assert bucket.names("report") == names | _exceptions(bucket, "report")
    before = _exceptions(bucket, "report")
    assert any("control=qos.1" in name for name in before)
    seal = json.loads(bucket.read("report/seal.json"))
    assert set(seal["files"]) == bucket.names("report") - {"seal.json"}
    (tmp_path / "policy.toml").write_text(policy_text_of("integrity.hash"))
    assert main([*command, "--policy", str(tmp_path / "policy.toml")]) == 0
    after = _exceptions(bucket, "report")
    assert len(after) == 1
    assert not after & before
    assert json.loads(bucket.read("report/result.json"))["verdict"] == "clean"


@pytest.mark.usefixtures("in_this_spark")
def test_lines_are_ingested_into_a_bucket_and_audited_there(
    forms, bucket: Bucket, tmp_path: Path, policy: str, capsys
) -> None:
    (forms.folder / f"{forms.segments[3]}.open").unlink()
    trail = bucket.for_workers(bucket.upload(forms.folder, "to-ingest"))
    lake = bucket.for_workers(bucket.uri("lake", "s3a"))
    bucket.write("lake/records/date=2026-11-20/gateway_id=unknown/left.parquet", b"of an ingest that was killed")
    for segments, known in ((3, 0), (0, 3)):
        assert main(["ingest", "--trail", trail, "--to", lake, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["segments"], told["known"], told["lines"], told["files"]) == (segments, known, 2 * segments, 1)
    digests = {f"digests/{forms.gateway}/{number:012d}.digest" for number in (1, 2, 3)}
    (file,) = Manifest.load(location_of(lake)).files
    assert bucket.names("lake") == digests | {"manifest.json", file.path}
    command = ["run", "--policy", policy, "--json", "--engine", "duckdb"]
    results = []
    for source in (["--trail", str(forms.folder)], ["--parquet", lake]):
        assert main([*command, *source, "--out", str(tmp_path / "out")]) == 1
        results.append(json.loads(capsys.readouterr().out))
    found = [{each["identifier"]: each["violations"] for each in result["controls"]} for result in results]
    assert found[0] == found[1]
    assert results[1]["scope"]["records"] == 6
    bucket.write(f"lake/{file.path}", b"PAR1")
    assert main([*command, "--parquet", lake, "--out", str(tmp_path / "out")]) == 2
    assert "is not as it was written" in json.loads(capsys.readouterr().out)["reason"]


@pytest.mark.usefixtures("in_this_spark")
def test_small_files_in_a_bucket_become_one(signed, bucket: Bucket, capsys) -> None:
    lake = bucket.for_workers(bucket.uri("compacted"))
    for table_format in ("delta", "parquet"):
        signed.records(2), signed.close()
        assert main(["ingest", "--trail", str(signed.folder), "--to", lake, "--table-format", table_format]) == 0
    assert main(["ingest", "--trail", str(signed.folder), "--to", lake, "--compact", "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["compacted"], told["files"]) == (2, 1)
    (file,) = Manifest.load(location_of(lake)).files
    assert {name for name in bucket.names("compacted") if name.endswith(".parquet")} == {file.path}
    assert file.rows == 4
    table = DeltaTable(bucket.uri(f"compacted/{RECORDS}"), storage_options=bucket.storage_options)
    assert (table.version(), len(table.file_uris()), table.to_pyarrow_table().num_rows) == (3, 1, 4)


@pytest.mark.usefixtures("in_this_spark")
def test_of_two_ingests_into_a_bucket_at_the_same_time_one_fails(signed, bucket: Bucket, monkeypatch, capsys) -> None:
    lake = bucket.for_workers(bucket.uri("contended"))
    signed.records(2), signed.close()
    save = Manifest.save

    def another_was_faster(manifest: Manifest, folder: Any) -> None:
        monkeypatch.setattr(Manifest, "save", save)
        Manifest(next_number=2).save(folder)
        save(manifest, folder)

    monkeypatch.setattr(Manifest, "save", another_was_faster)
    assert main(["ingest", "--trail", str(signed.folder), "--to", lake]) == 2
    assert f"another process ingested into {lake} meanwhile" in capsys.readouterr().err
    assert Manifest.load(location_of(lake)).segments == ()
    assert main(["ingest", "--trail", str(signed.folder), "--to", lake]) == 0


# -- what fails --------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_short(monkeypatch) -> Iterator[None]:
    for name in ("CONNECT_S", "REQUEST_S", "ATTEMPTS"):
        monkeypatch.setattr(remote_location, name, 1)
    remote_location.forget_file_systems()
    yield
    remote_location.forget_file_systems()


AWAY = "endpoint_override=http://127.0.0.1:1"


@pytest.mark.usefixtures("in_short")
@pytest.mark.parametrize(
    ("told", "exit_code", "why"),
    [
        (["run", "--trail", f"s3://trails/t?{AWAY}", "--out", "OUT"], 2, "(check the endpoint and the network)"),
        (["run", "--trail", "TRAIL", "--out", f"s3://trails/t?{AWAY}"], 2, "(name another folder with --out)"),
        (["run", "--trail", "s3://nobodys/t", "--out", "OUT"], 3, "s3://nobodys/t is not a folder, or holds nothing"),
        (["run", "--trail", "TRAIL", "--out", "s3://nobodys/t"], 2, "(check the name of the bucket)"),
        (["ingest", "--trail", f"s3://trails/t?{AWAY}", "--to", "OUT"], 2, "(check the endpoint and the network)"),
        (["ingest", "--trail", "TRAIL", "--to", "s3://nobodys/t"], 2, "(check the name of the bucket)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_place_that_cannot_be_used_is_told_in_one_line(
    signed, bucket: Bucket, tmp_path: Path, capsys, told: list[str], exit_code: int, why: str
) -> None:
    signed.records(1), signed.close()
    names = {"TRAIL": str(signed.folder), "OUT": str(tmp_path / "out")}
    assert main([names.get(word, word) for word in told]) == exit_code
    said = capsys.readouterr().err
    assert (said.count("\n"), why in said) == (1, True), said


@pytest.mark.usefixtures("in_short")
def test_parquet_out_of_reach_is_not_evaluable(tmp_path: Path, bucket: Bucket, capsys) -> None:
    for place in (f"s3://trails/lake?{AWAY}", "s3://trails/nowhere"):
        assert main(["run", "--parquet", place, "--out", str(tmp_path / "out"), "--json"]) == 2
        result = json.loads(capsys.readouterr().out)
        assert (result["verdict"], place.partition("?")[0] in result["reason"]) == ("not evaluable", True)


@pytest.mark.usefixtures("in_this_spark", "in_short")
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_a_worker_that_cannot_reach_a_trail_says_so(
    signed, bucket: Bucket, tmp_path: Path, policy: str, capsys, monkeypatch, engine: str
) -> None:
    """The driver has the key, and workers have none."""
    signed.records(2), signed.close()
    uri = bucket.upload(signed.folder, "of-the-driver")

    def out_of_reach(trail: str, paths: Any) -> list[SegmentPiece]:
        return [SegmentPiece(trail=trail, path=location_of(f"{path}?{AWAY}")) for path in paths]

    monkeypatch.setattr("spark_audit.audit_input.pieces_of", out_of_reach)
    command = ["run", "--engine", engine, "--policy", policy, "--trail", uri, "--json"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    reason = json.loads(capsys.readouterr().out)["reason"]
    assert f"{uri}/{signed.segments[0]}.jsonl" in reason
    assert reason.endswith("(check the endpoint and the network)")


@pytest.mark.usefixtures("in_this_spark")
@pytest.mark.parametrize(("engine", "is_here"), [("duckdb", True), ("duckdb", False), ("spark", False)])
def test_segments_that_vanish_each_time_the_trail_is_read_are_told(
    signed, bucket: Bucket, tmp_path: Path, policy: str, capsys, monkeypatch, engine: str, *, is_here: bool
) -> None:
    for _segment in range(3):
        signed.records(2), signed.close()
    uri = str(signed.folder) if is_here else bucket.for_workers(bucket.upload(signed.folder, f"vanishing-{engine}"))
    to_vanish = [location_of(uri) / f"{stem}.jsonl" for stem in signed.segments]
    gone = list(to_vanish)

    def vanishing(trail: str, paths: Any) -> list[SegmentPiece]:
        pieces = pieces_of(trail, paths)
        to_vanish.pop(0).unlink()
        return pieces

    monkeypatch.setattr("spark_audit.audit_input.pieces_of", vanishing)
    command = ["run", "--engine", engine, "--policy", policy, "--trail", uri, "--out", str(tmp_path / "out"), "--json"]
    assert main(command) == 2
    told = capsys.readouterr()
    result = json.loads(told.out)
    assert f"{gone[2]}" in result["reason"]
    assert "it was removed while the trail was read (read it once more)" in result["reason"]
    assert told.err.count("removed meanwhile: the audit begins again") == 2


def test_a_segment_that_vanished_once_is_missed_by_its_digest(
    signed, tmp_path: Path, policy: str, capsys, monkeypatch
) -> None:
    for _segment in range(3):
        signed.records(2), signed.close()
    segment = signed.folder / f"{signed.segments[1]}.jsonl"

    def vanishing(trail: str, paths: Any) -> list[SegmentPiece]:
        pieces = pieces_of(trail, paths)
        segment.unlink(missing_ok=True)
        return pieces

    monkeypatch.setattr("spark_audit.audit_input.pieces_of", vanishing)
    command = ["run", "--engine", "duckdb", "--policy", policy, "--trail", str(signed.folder), "--json"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr()
    assert told.err.count("removed meanwhile: the audit begins again") == 1
    found = {each["identifier"]: each["violations"] for each in json.loads(told.out)["controls"]}
    assert found["integrity.digests"] == 1


@pytest.mark.parametrize(
    "told",
    [
        ["run", "--trail", "s3://key:secret@trails/t", "--out", "OUT"],
        ["run", "--trail", "ftp://host/t", "--out", "OUT"],
        ["run", "--data", "s3://trails/data", "--out", "OUT"],
        ["stream", "--trail", "TRAIL", "--out", "OUT", "--checkpoint", "s3a://trails/checkpoint"],
        ["stream", "--trail", "TRAIL", "--out", "s3a:/trails/checkpoint", "--checkpoint", "C"],
        ["bulk", "--in", "s3://trails/archive", "--out", "OUT"],
        ["convert", "--in", "IN", "--to", "mqrfh", "--out", "s3a://trails/converted"],
    ],
    ids=lambda told: " ".join(told[:3]),
)
def test_a_uri_where_none_is_taken_is_wrong_use_and_makes_no_folder(
    tmp_path: Path, capsys, monkeypatch, told: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(told)
    assert (ended.value.code, list(tmp_path.iterdir())) == (3, [])
    said = capsys.readouterr().err
    assert (said.count("\n"), "secret" in said) == (1, False)

"""A bucket with object lock (moto's server) keeps each digest; one that lets itself be rewritten is no witness."""

import http.server
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.audit_trail.housekeeper import Housekeeper
from gateway.audit_trail.plan import TrailPlan, WitnessPlan
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.witnesses.s3_bucket import S3Bucket
from gateway.audit_trail.witnesses.s3_objects import Bucket, BucketError, S3Objects, fetch_digests
from gateway.audit_trail.witnesses.witness import Witnessed, WitnessError, Witnessing, WorthlessWitness
from mq_adapters.plausible_clock import PlausibleClock
from spark_audit.trail.digest import digest_name, digest_place
from spark_audit.trail.receipt import BucketReceipt, parse_receipt, receipt_path
from spark_audit.trail.witness_note import note_path, read_note
from spark_audit.verify import Anchor, Verdict, verify
from tests.gateway.audit_trail.conftest import batches, clock, folder  # noqa: F401
from tests.object_lock import LocalS3, local_s3

PREFIX = "plant-7"
KEEP_DAYS = 400


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalS3]:
    with local_s3(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def place(server: LocalS3) -> Bucket:
    name = f"digests-{secrets.token_hex(8)}"
    return Bucket(
        bucket=server.bucket(name),
        prefix=PREFIX,
        endpoint=server.endpoint,
        region="us-east-1",
        credentials_file=str(server.credentials),
        keep_days=KEEP_DAYS,
        timeout_s=30,
    )


@pytest.fixture
def trail(folder, clock) -> Iterator[Trail]:  # noqa: F811
    with Trail.open(folder, now=clock) as opened:
        yield opened


@pytest.fixture
def close(trail: Trail, batches) -> Callable[[int], None]:  # noqa: F811
    """Closes so many segments, each with its digest."""

    def closed(count: int = 1) -> None:
        for _ in range(count):
            trail.append(*batches())
            trail.close_segment()

    return closed


def _digest(trail: Trail, number: int) -> bytes:
    return (trail.digests.folder / digest_name(number)).read_bytes()


def _key(number: int) -> str:
    return f"{PREFIX}/{digest_place(number)}"


def test_each_digest_is_an_object_that_nobody_removes_before_its_time(trail, close, place, server) -> None:
    close(2)
    before = datetime.now(UTC)
    task = Witnessing(S3Bucket("vault", place, trail.folder), trail.folder, trail.digests)
    assert task.step()
    assert not task.step()
    close()
    assert task.step()
    versions = server.versions(place.bucket)
    assert sorted(versions) == [_key(1), _key(2), _key(3), f"{PREFIX}/lock-probe"]
    for number in (1, 2, 3):
        (version,) = versions[_key(number)]
        assert server.read(place.bucket, _key(number), version) == _digest(trail, number)
        told = server.client.head_object(Bucket=place.bucket, Key=_key(number), VersionId=version)
        assert told["ObjectLockMode"] == "COMPLIANCE"
        left = told["ObjectLockRetainUntilDate"] - before
        assert timedelta(days=KEEP_DAYS) - timedelta(seconds=1) <= left < timedelta(days=KEEP_DAYS, hours=1)
        with pytest.raises(Exception, match="AccessDenied"):
            server.client.delete_object(
                Bucket=place.bucket, Key=_key(number), VersionId=version, BypassGovernanceRetention=True
            )
        assert server.read(place.bucket, _key(number), version) == _digest(trail, number)
    note = read_note(note_path(trail.folder, "vault"))
    assert note is not None
    assert (note.kind, note.number, note.failure, note.risk) == ("s3", 3, "", "")
    receipt = parse_receipt(receipt_path(trail.folder, "vault").read_bytes())
    assert isinstance(receipt, BucketReceipt)
    assert (receipt.number, receipt.bucket, receipt.key) == (3, place.bucket, _key(3))
    assert receipt.version_id == versions[_key(3)][0]
    told = server.client.head_object(Bucket=place.bucket, Key=receipt.key, VersionId=receipt.version_id)
    locked_until = datetime.fromisoformat(receipt.locked_until)
    assert abs(told["ObjectLockRetainUntilDate"] - locked_until) < timedelta(seconds=2)


def test_its_program_takes_no_code_from_the_folder_that_the_gateway_runs_in(place, tmp_path, monkeypatch) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "__init__.py").write_text("raise SystemExit('a stranger has put this here')")
    monkeypatch.chdir(tmp_path)
    S3Bucket("vault", place, tmp_path).check()


def test_the_first_version_counts_whatever_was_put_over_it_or_deleted(trail, close, place, server, tmp_path) -> None:
    close(3)
    witness = S3Bucket("vault", place, trail.folder)
    assert Witnessing(witness, trail.folder, trail.digests).step()
    server.client.put_object(Bucket=place.bucket, Key=_key(3), Body=b"forged")
    server.client.put_object(Bucket=place.bucket, Key=_key(2), Body=b"forged")
    server.client.delete_object(Bucket=place.bucket, Key=_key(1))
    server.client.put_object(Bucket=place.bucket, Key=f"{PREFIX}/digests/000000000/notes.txt", Body=b"?")
    assert witness.last() == Witnessed(number=3, data=_digest(trail, 3))
    assert fetch_digests(place, tmp_path / "copies") == (3, 3)
    for number in (1, 2, 3):
        assert (tmp_path / "copies" / digest_name(number)).read_bytes() == _digest(trail, number)
    result = verify(trail.folder, Anchor.read(digests=tmp_path / "copies"))
    assert result.verdict is Verdict.ANCHORED
    close()
    assert Witnessing(witness, trail.folder, trail.digests).step()
    assert fetch_digests(place, tmp_path / "copies") == (4, 1)


def test_a_trail_that_was_written_anew_is_found_by_the_bucket(trail, close, place, tmp_path) -> None:
    close(2)
    assert Witnessing(S3Bucket("vault", place, trail.folder), trail.folder, trail.digests).step()
    fetch_digests(place, tmp_path / "copies")
    (trail.digests.folder / digest_name(2)).unlink()
    result = verify(trail.folder, Anchor.read(digests=tmp_path / "copies"))
    assert result.verdict is Verdict.VIOLATED
    assert "there is a copy of it" in result.reason


def test_a_bucket_without_object_lock_gets_no_digest(trail, close, place, server) -> None:
    close()
    open_bucket = server.bucket(f"{place.bucket}-open", is_locking=False)
    task = Witnessing(S3Bucket("vault", replace(place, bucket=open_bucket), trail.folder), trail.folder, trail.digests)
    with pytest.raises(WorthlessWitness, match="has no object lock"):
        task.step()
    assert server.versions(open_bucket) == {}
    assert task.note.risk


class _Forgetful:
    """A client of a store that says it locks, and removes what it is asked to remove."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_object(self, **values: Any) -> Any:
        return self._client.put_object(**{name: value for name, value in values.items() if "Lock" not in name})


def test_a_store_that_removes_or_shortens_what_it_has_locked_is_found(trail, close, place) -> None:
    close()
    objects = S3Objects(place)
    assert objects.problem() == ""
    objects._client = _Forgetful(objects._client)
    assert objects.problem() == "the bucket lets a locked version be removed"
    with pytest.raises(BucketError, match=r"has not locked digests/000000000/000000000001\.digest in COMPLIANCE mode"):
        objects.put({1: _digest(trail, 1)})


def test_a_lock_that_ends_too_early_is_found(trail, close, place, monkeypatch) -> None:
    close()
    objects = S3Objects(place)
    put = objects._client.put_object
    early = timedelta(days=KEEP_DAYS - 1)

    def shortened(**values: Any) -> Any:
        return put(**values | {"ObjectLockRetainUntilDate": datetime.now(UTC) + early})

    monkeypatch.setattr(objects._client, "put_object", shortened)
    with pytest.raises(BucketError, match="has not locked"):
        objects.put({1: _digest(trail, 1)})


def test_a_repeated_submission_does_no_harm_and_one_in_the_middle_goes_on(trail, close, place) -> None:
    close(3)
    witness = S3Bucket("vault", place, trail.folder)
    witness.submit({1: _digest(trail, 1), 2: _digest(trail, 2)})
    witness.submit({2: _digest(trail, 2)})
    task = Witnessing(witness, trail.folder, trail.digests)
    assert task.step()
    assert witness.last().number == 3


def test_the_digest_after_a_thousand_is_the_last_one(place) -> None:
    objects = S3Objects(place)
    objects.put({number: b"%d" % number for number in (7, 999, 1_000, 2_001)})
    assert objects.last() == (2_001, b"2001")
    assert set(objects.earliest()) == {7, 999, 1_000, 2_001}


def test_more_versions_than_a_page_has_are_all_looked_at(place, server, monkeypatch) -> None:
    objects = S3Objects(place)
    objects.put({1: b"first", 2: b"second"})
    for _ in range(4):
        server.client.put_object(Bucket=place.bucket, Key=_key(2), Body=b"forged")
    listed = objects._client.list_object_versions
    monkeypatch.setattr(objects._client, "list_object_versions", lambda **values: listed(**{"MaxKeys": 2} | values))
    assert objects.last() == (2, b"second")
    monkeypatch.setattr("gateway.audit_trail.witnesses.s3_objects._MOST_PAGES", 2)
    with pytest.raises(BucketError, match="more than 2 pages of versions: somebody keeps adding some"):
        objects.last()


AWAY = {
    "nobody listens": ({"endpoint": "http://127.0.0.1:1"}, "Could not connect"),
    "no such bucket": ({"bucket": "nobody-made-it"}, "NoSuchBucket"),
    "no credentials": ({"credentials_file": "/nowhere"}, "credentials"),
}


@pytest.mark.parametrize("case", AWAY)
def test_a_bucket_that_is_away_delays_nothing_and_its_freshness_falls(trail, close, place, monkeypatch, case) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    close()
    changed, words = AWAY[case]
    task = Witnessing(S3Bucket("vault", replace(place, **changed), trail.folder), trail.folder, trail.digests)
    with pytest.raises(WitnessError, match=words):
        task.step()
    assert (task.note.number, bool(task.note.failure)) == (0, True)
    close()


class _Flood(http.server.BaseHTTPRequestHandler):
    """Answers without an end."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b" " * 1024 * 1024)
        except OSError:
            return

    def log_message(self, *_words: object) -> None:
        return


def test_an_answer_without_an_end_costs_bounded_memory_and_time(place, tmp_path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Flood)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        flooded = replace(place, endpoint=f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(WitnessError, match=r"the answer is too long|took more than"):
            S3Bucket("vault", flooded, tmp_path).last()
    finally:
        server.shutdown()
        server.server_close()


def test_the_housekeeper_shows_digests_to_a_bucket(trail, close, place, server) -> None:
    close()
    witness = WitnessPlan(
        name="vault",
        type="s3",
        timeout_s=30,
        bucket=place.bucket,
        prefix=PREFIX,
        endpoint=place.endpoint,
        region=place.region,
        credentials_file=place.credentials_file,
        keep_days=KEEP_DAYS,
    )
    plan = TrailPlan(signing_key=str(Path(trail.folder.parent) / "trail-key.pem"), witnesses=(witness,))
    with Housekeeper.of(plan, trail, lambda: pytest.fail("nobody connects"), PlausibleClock()):
        while _key(1) not in server.versions(place.bucket):  # the test has a limit of time itself
            threading.Event().wait(0.05)

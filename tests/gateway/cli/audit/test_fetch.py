"""`rfhbridge audit fetch` copies the first versions of a bucket's digests, and says what it did not get."""

import os
from pathlib import Path

from gateway.audit_trail.witnesses.s3_objects import Bucket, S3Objects
from tests.gateway.cli.conftest import Command
from tests.object_lock import local_s3


def test_the_first_versions_are_copied_and_what_is_there_stays(rfhbridge: Command, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with local_s3(tmp_path) as server:
        name = server.bucket(f"fetched-{os.getpid()}")
        of_server = ("--endpoint", server.endpoint, "--credentials", server.credentials)
        place, to = f"s3://{name}/plant-7", tmp_path / "copies"
        nothing = rfhbridge("audit", "fetch", place, to, *of_server)
        assert (nothing.exit_code, f"{place} has no digest" in nothing.stderr) == (2, True)
        bucket = Bucket(
            bucket=name, prefix="plant-7", endpoint=server.endpoint, credentials_file=str(server.credentials)
        )
        S3Objects(bucket).put({1: b"one", 2: b"two"})
        server.client.put_object(Bucket=name, Key="plant-7/digests/000000000/000000000002.digest", Body=b"forged")
        ended = rfhbridge("audit", "fetch", f"{place}/", to, *of_server)
        assert (ended.exit_code, ended.text) == (0, f"2 digests, 2 of them new, in {to}\n"), ended.stderr
        assert [path.read_bytes() for path in sorted(to.iterdir())] == [b"one", b"two"]
        again = rfhbridge("audit", "fetch", place, to, *of_server)
        assert again.text == f"2 digests, 0 of them new, in {to}\n"
    away = rfhbridge("audit", "fetch", place, to, *of_server)
    assert (away.exit_code, "Could not connect" in away.stderr) == (2, True)
    wrong = rfhbridge("audit", "fetch", "plant-digests", to)
    assert (wrong.exit_code, "write s3://BUCKET/PREFIX" in wrong.stderr) == (3, True)

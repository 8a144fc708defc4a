"""A local S3 server for tests: moto's, in this process, on the loopback alone. It has versions and object locks."""

import configparser
import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

KEY_ID, SECRET = "plant-7", "not a secret"


class LocalS3:
    """The server's address, and a client of it for what a test asks and forges."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        from botocore.session import Session

        self.endpoint = endpoint
        self.credentials = folder / "credentials"
        written = configparser.ConfigParser()
        written["default"] = {"aws_access_key_id": KEY_ID, "aws_secret_access_key": SECRET}
        with self.credentials.open("w") as file:
            written.write(file)
        self.credentials.chmod(0o600)
        self.client: Any = Session().create_client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
        )

    def bucket(self, name: str, *, is_locking: bool = True) -> str:
        """Makes a bucket."""
        self.client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=is_locking)
        return name

    def versions(self, bucket: str) -> dict[str, list[str]]:
        """The versions of each object, the newest first."""
        found: dict[str, list[str]] = {}
        for each in self.client.list_object_versions(Bucket=bucket).get("Versions", []):
            found.setdefault(each["Key"], []).append(each["VersionId"])
        return found

    def read(self, bucket: str, key: str, version: str) -> bytes:
        data: bytes = self.client.get_object(Bucket=bucket, Key=key, VersionId=version)["Body"].read()
        return data


@contextlib.contextmanager
def local_s3(folder: Path) -> Iterator[LocalS3]:
    """The server, while it runs; the test is skipped where moto is not installed."""
    pytest.importorskip("moto", reason="moto is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of moto's own imports
        from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield LocalS3(f"http://{host}:{port}", folder)
    finally:
        server.stop()

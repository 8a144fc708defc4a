"""An S3 server on loopback that is not ours (moto), with one bucket, for tests of places that a URI names."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

BUCKET = "trails"
#: What moto takes as long as nobody asks it to look at keys.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "a-test",
    "AWS_SECRET_ACCESS_KEY": "a-secret-of-a-test",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket of a server, as its operator sees it."""

    endpoint: str

    def _files(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            endpoint_override=self.endpoint,
            region="us-east-1",
            access_key=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
            secret_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
            allow_bucket_creation=True,
        )

    def make(self) -> None:
        self._files().create_dir(BUCKET)

    def uri(self, path: str, scheme: str = "s3") -> str:
        """The URI of a folder, without the endpoint."""
        return f"{scheme}://{BUCKET}/{path}"

    def for_workers(self, uri: str) -> str:
        """A URI with the endpoint: the Spark of the tests began before there was one."""
        return f"{uri}?endpoint_override={self.endpoint}"

    @property
    def storage_options(self) -> dict[str, str]:
        """What deltalake needs to find it."""
        return ENVIRONMENT | {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}

    def upload(self, folder: Path, path: str) -> str:
        """Copies a folder; returns its URI."""
        fs.copy_files(str(folder), f"{BUCKET}/{path}", destination_filesystem=self._files())
        return self.uri(path)

    def names(self, path: str) -> set[str]:
        """The files in a folder and below it, relative to it."""
        place = f"{BUCKET}/{path}"
        found = self._files().get_file_info(fs.FileSelector(place, recursive=True, allow_not_found=True))
        return {info.path.removeprefix(f"{place}/") for info in found if info.type == fs.FileType.File}

    def read(self, path: str) -> bytes:
        with self._files().open_input_stream(f"{BUCKET}/{path}", compression=None) as file:
            return bytes(file.read())

    def write(self, path: str, data: bytes) -> None:
        with self._files().open_output_stream(f"{BUCKET}/{path}", compression=None) as file:
            file.write(data)

    def remove(self, path: str) -> None:
        self._files().delete_file(f"{BUCKET}/{path}")


@contextmanager
def running_server() -> Iterator[Bucket]:
    """A server with an empty bucket, until the end."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        _host, port = server.get_host_and_port()
        bucket = Bucket(endpoint=f"http://127.0.0.1:{port}")
        bucket.make()
        yield bucket
    finally:
        server.stop()

"""Places that a URI names: they are read and written like folders, and what fails is told in bounded time."""

import gzip
import io
import os
import pickle
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

import pytest

from spark_audit import remote_location
from spark_audit.location import LocationFailed, UnknownLocation
from spark_audit.remote_location import RemoteLocation, forget_file_systems, location_of
from tests.spark_audit.s3_server import Bucket


@pytest.mark.parametrize(
    "text", ["s3://bucket/a/b", "s3a://bucket/a%20b?region=eu-west-1&scheme=http", "gs://bucket", "hdfs://host:8020/a"]
)
def test_a_uri_stays_the_same(text: str) -> None:
    place = RemoteLocation.of(text)
    assert str(place) == text
    assert str(pickle.loads(pickle.dumps(place))) == text
    assert (place / "c" / "d").parent.parent == place
    assert str(place / "c").partition("?")[0] == text.partition("?")[0] + "/c"


def test_one_place_has_one_identity_whatever_its_scheme_is_called_and_a_listing_knows() -> None:
    assert len({location_of("s3://bucket/a"), location_of("s3a://bucket//a/")}) == 1
    assert location_of("s3://bucket/a") != location_of("s3://bucket/b")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s3://key:secret@bucket/trail", "everybody could read it"),
        ("s3://key@bucket/trail", "credentials come from AWS_ACCESS_KEY_ID"),
        ("abfss://container:secret@account.dfs.core.windows.net/trail", "credentials come from AZURE_CLIENT_ID"),
        ("s3://bucket/trail?access_key=secret", "takes these parameters: endpoint_override, region, scheme"),
        ("s3://bucket/trail#secret", "takes these parameters"),
        ("abfss://container@account/trail?account_key=secret", "takes these parameters: none"),
        ("s3a:/bucket/trail", "names no place of S3: write s3a://BUCKET/FOLDER"),
        ("hdfs:///trail", "names no place of HDFS: write hdfs://HOST:PORT/FOLDER"),
        ("s3://key:sec/secret@bucket/trail", "names no place of S3"),
        ("gs://[secret/trail", "this URI is malformed"),
        ("s3://bucket/trail?endpoint_override=http://key:secret@host", "everybody could read it"),
        ("abfss://account.dfs.core.windows.net/secret", "write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net"),
        ("https://host/trail?X-Amz-Signature=secret", "name a folder of this machine, or a URI of"),
        (
            "ftp://key:secret@host/trail",
            "name a folder of this machine, or a URI of s3, s3a, abfss, abfs, gs, hdfs or file",
        ),
    ],
)
def test_what_tells_a_secret_or_names_nothing_is_refused_and_the_secret_is_not_repeated(text: str, why: str) -> None:
    with pytest.raises(UnknownLocation) as refused:
        location_of(text)
    assert why in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_container_of_azure_stands_before_its_account() -> None:
    place = RemoteLocation.of("abfss://container@account.dfs.core.windows.net/trail")
    assert place._place() == "container/trail"


def test_files_are_written_listed_read_and_removed(bucket: Bucket) -> None:
    folder = location_of(bucket.uri("methods"))
    assert not folder.exists()
    assert list(folder.files_below()) == []
    with pytest.raises(FileNotFoundError):
        list(folder.iterdir())
    (folder / "sub" / "b").write_bytes(b"bb")
    (folder / "a").write_bytes(b"a")
    assert sorted((each.name, each.is_dir()) for each in folder.iterdir()) == [("a", False), ("sub", True)]
    assert sorted(each.relative_to(folder) for each in folder.files_below()) == ["a", "sub/b"]
    assert {each.name: each.stat().st_size for each in folder.files_below()} == {"a": 1, "b": 2}
    assert (folder / "a").stat().st_size == 1
    assert (folder / "sub" / "b").read_bytes() == b"bb"
    (folder / "a").unlink()
    for missing in (folder / "a").read_bytes, (folder / "a").stat:
        with pytest.raises(FileNotFoundError) as gone:
            missing()
        assert gone.value.filename == bucket.uri("methods/a")


def test_a_file_is_read_from_any_offset_by_other_libraries(bucket: Bucket) -> None:
    data = bytes(range(256)) * 40_000
    place = location_of(bucket.uri("large.gz"))
    place.write_bytes(gzip.compress(data, 1))
    with place.open("rb") as file, gzip.open(file) as text:
        assert text.read() == data
    with place.open("rb") as file:
        end = file.seek(0, io.SEEK_END)
        file.seek(end - 4)
        assert int.from_bytes(file.read(), "little") == len(data)


def test_an_endpoint_may_stand_in_the_uri(bucket: Bucket, monkeypatch) -> None:
    bucket.write("named/a", b"a")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    place = location_of(f"{bucket.uri('named')}?endpoint_override={bucket.endpoint}")
    assert [each.read_bytes() for each in place.iterdir()] == [b"a"]


# -- what fails --------------------------------------------------------------------------------------------------------


def _told(place: RemoteLocation) -> set[str]:
    """What reading, listing and writing say, each in a line."""
    told = set()
    for use in (lambda: list(place.iterdir()), place.is_dir, place.read_bytes, lambda: place.write_bytes(b"")):
        try:
            with suppress(FileNotFoundError):
                use()
        except LocationFailed as error:
            told.add(str(error))
    assert all(line.startswith(f"{place}: ") and "\n" not in line for line in told)
    return told


def test_a_wrong_bucket_is_named(bucket: Bucket) -> None:
    told = _told(location_of("s3://nobodys-bucket/trail"))
    assert len(told) == 2  # S3 tells a missing file and a missing bucket alike
    assert all("NO_SUCH_BUCKET" in line and line.endswith("(check the name of the bucket)") for line in told)


@pytest.fixture
def strict(bucket: Bucket) -> Iterator[Bucket]:
    """The server looks at keys, of which it knows none."""

    def ask(requests: str) -> None:
        told = {"data": requests.encode(), "headers": {"Content-Type": "text/plain"}}
        urllib.request.urlopen(urllib.request.Request(f"{bucket.endpoint}/moto-api/reset-auth", **told)).close()

    ask("0")
    yield bucket
    ask("inf")


def test_a_wrong_key_is_told_with_where_keys_come_from(strict: Bucket) -> None:
    told = _told(location_of(strict.uri("trail")))
    assert told
    assert all("(check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in line for line in told)
    assert not any(os.environ["AWS_SECRET_ACCESS_KEY"] in line for line in told)


@pytest.fixture
def in_short(monkeypatch) -> Iterator[None]:
    """A second in the place of the seconds that a server has for an answer."""
    for name in ("CONNECT_S", "REQUEST_S", "ATTEMPTS"):
        monkeypatch.setattr(remote_location, name, 1)
    forget_file_systems()
    yield
    forget_file_systems()


@pytest.mark.usefixtures("bucket", "in_short")
def test_a_server_that_is_away_or_never_answers_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (1, silent.getsockname()[1]):
            told = _told(location_of(f"s3://trails/trail?endpoint_override=http://127.0.0.1:{port}"))
            assert len(told) == 4
            assert all(line.endswith("(check the endpoint and the network)") for line in told)


def test_a_file_that_is_removed_while_it_is_read_is_told(bucket: Bucket) -> None:
    place = location_of(bucket.uri("half"))
    place.write_bytes(bytes(1_000))
    with place.open("rb") as file:
        bucket.remove("half")
        with pytest.raises(LocationFailed):
            file.read()

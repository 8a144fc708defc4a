"""Places of other machines: S3 and servers like it, Azure, Google Cloud Storage and HDFS, through pyarrow.

    s3://BUCKET/PREFIX, s3a://...      ?region=, ?endpoint_override=, ?scheme= (http or https)
    abfss://CONTAINER@ACCOUNT.../...   abfs:// is the same
    gs://BUCKET/PREFIX                 ?endpoint_override=, ?scheme=
    hdfs://HOST:PORT/FOLDER            needs Hadoop's libhdfs on this machine and on Spark's workers

Credentials come from the environment or the files of each cloud's own library, in every process that reads. Everybody
can read a URI in lists of processes and in reports, so a URI with a password is refused. S3 takes its endpoint also
from AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, and its region from AWS_REGION or AWS_DEFAULT_REGION.

A file is written as a whole under its name, because object stores do not rename. Requests to S3 and to Google Cloud
Storage have bounded time. The libraries of Azure and Hadoop have limits of their own.
"""

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, Self, cast
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode

from spark_audit.location import Location, LocationFailed, UnknownLocation, gone, local_path, parts_of, scheme_of

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

#: Seconds for a connection, and for the next byte of an answer.
CONNECT_S: Final = 10
REQUEST_S: Final = 20
#: Attempts before a request has failed.
ATTEMPTS: Final = 3
#: Bytes that are fetched together, because each request costs a round trip.
_FETCHED_BYTES: Final = 4 * 1024 * 1024
_AWS_REGION: Final = "us-east-1"
#: Characters that are kept of an error of pyarrow.
_LONGEST_REASON: Final = 300


def location_of(text: str) -> Location:
    """The place that a text names. Nothing is looked for yet. Raises UnknownLocation."""
    path = local_path(text)
    return path if path is not None else RemoteLocation.of(text)


@dataclass(frozen=True, slots=True)
class Status:
    """Size and time of a file, from a listing."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True, slots=True)
class RemoteLocation:
    """A place that a URI names, with the methods of Location. Processes hand it to each other, without credentials.

    `path` begins with the bucket or container where there is one. `query` is that of the URI.
    """

    scheme: str
    authority: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    _status: Status | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        """The place of a URI. Raises UnknownLocation."""
        kind = _KINDS.get(scheme_of(text))
        if kind is None:
            raise UnknownLocation(f"name a folder of this machine, or a URI of {', '.join(_KINDS)} or file")
        parts = parts_of(text)
        _check(parts, kind)
        path = "/".join(filter(None, unquote(parts.path).split("/")))
        query = tuple(parse_qsl(parts.query, keep_blank_values=True))
        return cls(scheme_of(text), parts.netloc, path, query)

    # size and time from a listing are no part of its identity
    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteLocation) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        return _KINDS[self.scheme], self.authority, self.path, self.query

    def __str__(self) -> str:
        """The URI."""
        place = f"{self.scheme}://{self.authority}/{quote(self.path, safe='/=')}".rstrip("/")
        return f"{place}?{urlencode(self.query, safe=':/')}" if self.query else place

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> Self:
        return replace(self, path=self.path.rpartition("/")[0], _status=None)

    def __truediv__(self, key: str, /) -> Self:
        return replace(self, path=f"{self.path}/{key}" if self.path else key, _status=None)

    def with_name(self, name: str, /) -> Self:
        return self.parent / name

    def resolve(self) -> Self:
        """The same place: only disks have links."""
        return self

    def relative_to(self, folder: "RemoteLocation") -> str:
        """The path of this place within a folder above it."""
        return self.path.removeprefix(folder.path).lstrip("/")

    # -- what is there -------------------------------------------------------------------------------------------------

    def iterdir(self) -> Iterator[Self]:
        """The files and folders in a folder. Raises FileNotFoundError, LocationFailed."""
        return (each for each, _is_file in self._listed())

    def files_below(self) -> Iterator[Self]:
        """The files in a folder and in those below it; none if it is not there. Raises LocationFailed."""
        return (each for each, is_file in self._listed(is_recursive=True) if is_file)

    def _listed(self, *, is_recursive: bool = False) -> Iterator[tuple[Self, bool]]:
        from pyarrow.fs import FileSelector, FileType

        place = self._place()
        with self._told():
            selector = FileSelector(place, recursive=is_recursive, allow_not_found=is_recursive)
            found: list[FileInfo] = self._files().get_file_info(selector)
        for info in found:
            path = self.path + info.path[len(place.rstrip("/")) :]
            status = Status(info.size or 0, info.mtime_ns or 0)
            yield replace(self, path=path.strip("/"), _status=status), info.type == FileType.File

    def _info(self) -> "FileInfo":
        with self._told():
            return self._files().get_file_info(self._place())

    def exists(self) -> bool:
        """Raises LocationFailed."""
        from pyarrow.fs import FileType

        return bool(self._info().type != FileType.NotFound)

    def is_dir(self) -> bool:
        """Raises LocationFailed."""
        from pyarrow.fs import FileType

        return bool(self._info().type == FileType.Directory)

    def stat(self) -> Status:
        """Raises FileNotFoundError, LocationFailed."""
        if self._status is not None:
            return self._status
        from pyarrow.fs import FileType

        info = self._info()
        if info.type == FileType.NotFound:
            raise gone(self)
        return Status(info.size or 0, info.mtime_ns or 0)

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def open(self, mode: Literal["rb"], /, buffering: int = _FETCHED_BYTES) -> BinaryIO:
        """A file, for reading. Raises FileNotFoundError, LocationFailed, also while it is read."""
        with self._told():
            opened = _RemoteFile(self, self._files().open_input_file(self._place()))
        return cast(BinaryIO, io.BufferedReader(opened, buffering) if buffering else opened)

    def read_bytes(self) -> bytes:
        """Raises FileNotFoundError, LocationFailed."""
        with self.open("rb") as file:
            return file.read()

    def write_bytes(self, data: bytes, /) -> int:
        """Writes a file as a whole. It is there when this returns. Raises LocationFailed."""
        with self.writing() as file:
            file.write(data)
        return len(data)

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A file of pyarrow that is there as a whole at the end. Raises LocationFailed."""
        with self._told():
            self._make_folder()
            with self._files().open_output_stream(self._place(), compression=None) as file:
                yield file

    def unlink(self) -> None:
        """Raises FileNotFoundError, LocationFailed."""
        with self._told():
            self._files().delete_file(self._place())

    def _make_folder(self) -> None:
        """Makes the folder of a file where folders are real."""
        if _KINDS[self.scheme].has_folders:
            self._files().create_dir(self.parent._place(), recursive=True)

    # -- pyarrow -------------------------------------------------------------------------------------------------------

    def _files(self) -> "FileSystem":
        return _file_system(self.scheme, self.authority, self.query)

    def _place(self) -> str:
        return _KINDS[self.scheme].place(self.authority, self.path)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turns errors of pyarrow into ours."""
        try:
            yield
        except LocationFailed:
            raise
        except FileNotFoundError:
            raise gone(self) from None
        except (OSError, ValueError, NotImplementedError, ImportError) as error:
            raise LocationFailed(str(self), _reason(error, _KINDS[self.scheme])) from None


class _RemoteFile(io.RawIOBase):
    """A file of pyarrow as one of Python, whose errors name the place."""

    def __init__(self, location: RemoteLocation, file: Any) -> None:
        self._location, self._file = location, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        with self._location._told():
            return int(self._file.readinto(buffer))

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()
        super().close()


# -- kinds of places ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of places: how to make its file system, and advice for an operator."""

    name: str
    make: Callable[[str, Mapping[str, str]], "FileSystem"]
    #: Where it looks for credentials.
    credentials: str
    #: The form of the part after `scheme://`, and an example for people.
    authority: re.Pattern[str] = re.compile(r"[A-Za-z0-9._-]+")
    example: str = "BUCKET/FOLDER"
    parameters: frozenset[str] = frozenset()
    #: Whether paths begin with the authority.
    has_bucket: bool = True
    has_folders: bool = False

    def place(self, authority: str, path: str) -> str:
        """A path as pyarrow takes it."""
        if not self.has_bucket:
            return f"/{path}"
        bucket = authority.partition("@")[0]
        return f"{bucket}/{path}" if path else bucket


def _check(parts: SplitResult, kind: _Kind) -> None:
    """Refuses a URI that would tell a secret, or with parts that nothing reads. Messages repeat no possible secret."""
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    has_user = parts.username is not None and kind is not _AZURE
    if parts.password is not None or has_user or any("@" in value for _, value in parameters):
        raise UnknownLocation(
            f"a URI of {kind.name} must not have a user or a password before @: everybody could read it"
            f" (credentials come from {kind.credentials})"
        )
    if not kind.authority.fullmatch(parts.netloc):
        raise UnknownLocation(f"this URI names no place of {kind.name}: write {parts.scheme}://{kind.example}")
    if parts.fragment or any(name not in kind.parameters for name, _ in parameters):
        known = ", ".join(sorted(kind.parameters)) or "none"
        raise UnknownLocation(f"a URI of {kind.name} takes these parameters: {known}")


def _s3(_authority: str, query: Mapping[str, str]) -> "FileSystem":
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    environment = os.environ.get
    endpoint = query.get("endpoint_override") or environment("AWS_ENDPOINT_URL_S3") or environment("AWS_ENDPOINT_URL")
    region = query.get("region") or environment("AWS_REGION") or environment("AWS_DEFAULT_REGION")
    if not region:
        region = _AWS_REGION if endpoint else _region_of(_authority)
    return S3FileSystem(
        region=region,
        endpoint_override=endpoint,
        scheme=query.get("scheme"),
        connect_timeout=CONNECT_S,
        request_timeout=REQUEST_S,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


def _region_of(bucket: str) -> str:
    from pyarrow.fs import resolve_s3_region

    return str(resolve_s3_region(bucket))


def _gcs(_authority: str, query: Mapping[str, str]) -> "FileSystem":
    from pyarrow.fs import GcsFileSystem

    return GcsFileSystem(
        endpoint_override=query.get("endpoint_override"),
        scheme=query.get("scheme"),
        retry_time_limit=timedelta(seconds=ATTEMPTS * REQUEST_S),
    )


def _azure(authority: str, _query: Mapping[str, str]) -> "FileSystem":
    from pyarrow.fs import FileSystem

    return FileSystem.from_uri(f"abfss://{authority}/")[0]


def _hdfs(authority: str, _query: Mapping[str, str]) -> "FileSystem":
    from pyarrow.fs import FileSystem

    return FileSystem.from_uri(f"hdfs://{authority}/")[0]


_S3: Final = _Kind(
    name="S3",
    make=_s3,
    parameters=frozenset(("region", "endpoint_override", "scheme")),
    credentials="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile of AWS, or the machine's role",
)
_AZURE: Final = _Kind(
    name="Azure",
    make=_azure,
    credentials="AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, `az login`, or the machine's identity",
    authority=re.compile(r"[^@:]+@[^@:]+"),
    example="CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER",
)
_GCS: Final = _Kind(
    name="Google Cloud Storage",
    make=_gcs,
    parameters=frozenset(("endpoint_override", "scheme")),
    credentials="GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth`, or the machine's account",
)
_HDFS: Final = _Kind(
    name="HDFS",
    make=_hdfs,
    has_bucket=False,
    has_folders=True,
    credentials="Hadoop's configuration and Kerberos tickets",
    authority=re.compile(r".+"),
    example="HOST:PORT/FOLDER",
)
_KINDS: Final[Mapping[str, _Kind]] = {
    "s3": _S3,
    "s3a": _S3,
    "abfss": _AZURE,
    "abfs": _AZURE,
    "gs": _GCS,
    "hdfs": _HDFS,
}


@lru_cache(maxsize=16)
def _file_system(scheme: str, authority: str, query: tuple[tuple[str, str], ...]) -> "FileSystem":
    return _KINDS[scheme].make(authority, dict(query))


def forget_file_systems() -> None:
    """Makes the next use look at the environment anew."""
    _file_system.cache_clear()


#: Words in errors of pyarrow, and what to do.
_ADVICE: Final = {
    "NO_SUCH_BUCKET": "check the name of the bucket",
    "NETWORK_CONNECTION": "check the endpoint and the network",
    "Timeout": "check the endpoint and the network",
    "NO_SUCH_UPLOAD": "try again",
}


def _reason(error: Exception, kind: _Kind) -> str:
    """What failed and what to do, in a line."""
    said = " ".join(str(error).partition("(Request ID")[0].split())[:_LONGEST_REASON].rstrip(" :;.")
    advice = next((advice for words, advice in _ADVICE.items() if words in said), f"check {kind.credentials}")
    return f"{said} ({advice})"

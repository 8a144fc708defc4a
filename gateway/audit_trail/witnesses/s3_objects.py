"""Digests as objects in a bucket with object lock, which nobody removes before their time: put there, and read back.

    PREFIX/digests/NNNNNNNNN/NNNNNNNNNNNN.digest    in folders of a thousand
    PREFIX/lock-probe                               an object whose removal was tried

Overwriting or deleting an object of such a bucket adds a version, and the first one stays. In COMPLIANCE mode nobody
can remove a version before its time, not even the owner of the account. So the earliest version of a digest counts.

A witness runs this module as a program of its own, which ends with each call: botocore takes 50 MB, and reads answers
whole however long they are. The program may have so much memory and no more.

    python -P -m gateway.audit_trail.witnesses.s3_objects

Standard input has one JSON object: `place` (the fields of Bucket), `call` (check, last or put) and for put `digests`, a
list of numbers and texts. The output is one, too: `number` and `data` for last, `problem` for check ("": none), and for
put `key`, `version_id` and `locked_until` of the last digest.
Source: Amazon S3 API Reference (PutObject, ListObjectVersions, GetObjectLockConfiguration).
"""

import resource
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from spark_audit.trail.digest import DIGEST_FOLDER, LARGEST_DIGEST_BYTES, digest_name, digest_number, digest_place

#: Address space of the program: botocore with TLS takes 0.4 GB of it.
_MOST_MEMORY_BYTES: Final = 1536 * 1024 * 1024
#: Pages of a thousand versions that one folder may have: a digest was put again 19 times then, each of them.
_MOST_PAGES: Final = 20
_PROBE: Final = "lock-probe"
_PROBE_LOCK: Final = timedelta(days=1)
#: How much earlier than asked a lock may end: servers keep whole seconds.
_ROUNDED: Final = timedelta(seconds=2)
_COMPLIANCE: Final = "COMPLIANCE"
_NO_LOCK: Final = "ObjectLockConfigurationNotFoundError"


class BucketError(Exception):
    """The bucket is away, refuses, or gives an impossible answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A place for digests. `endpoint`: address of the server, "" for Amazon's; `credentials_file`: "" for the
    library's own environment; `keep_days`: how long a digest is locked."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    credentials_file: str = ""
    keep_days: float = 1
    timeout_s: float = 60.0


class S3Objects:
    """The digests in a bucket. Raises BucketError."""

    def __init__(self, place: Bucket) -> None:
        self._place = place
        self._client = _client(place)

    def problem(self) -> str:
        """Why nobody can rely on the bucket; "" if a locked version stayed when its removal was tried."""
        try:
            told = self._call("get_object_lock_configuration")
        except BucketError as error:
            if _NO_LOCK not in str(error):
                raise
            told = {}
        if told.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") != "Enabled":
            return "the bucket has no object lock, so anybody who may write to it can change its digests"
        until = datetime.now(UTC) + _PROBE_LOCK
        version = self._put(self._key(_PROBE), b"a try to remove this must fail", until)
        with suppress(BucketError):
            self._call("delete_object", Key=self._key(_PROBE), VersionId=version)
        return "" if self._is_locked(_PROBE, version, until) else "the bucket lets a locked version be removed"

    def put(self, digests: Mapping[int, bytes]) -> dict[str, str]:
        """Puts digests one after the other, each under its lock. What was put before an error stays.

        Returns key, version_id and locked_until of the last one, as a receipt has them.
        """
        until = datetime.now(UTC) + timedelta(days=self._place.keep_days)
        version = ""
        for number in sorted(digests):
            version = self._put(self._key(digest_place(number)), digests[number], until)
        last = digest_place(max(digests))
        if not self._is_locked(last, version, until):
            raise BucketError(f"the bucket has not locked {last} in {_COMPLIANCE} mode until {until:%Y-%m-%d}")
        return {"key": self._key(last), "version_id": version, "locked_until": f"{until:%Y-%m-%dT%H:%M:%SZ}"}

    def last(self) -> tuple[int, bytes]:
        """Number and bytes of the last digest, by its earliest version; 0 if there is none."""
        folders = f"{self._key(DIGEST_FOLDER)}/"
        names = [each["Prefix"] for page in self._pages(folders, "/") for each in page.get("CommonPrefixes", ())]
        found = self._earliest(max(names), _MOST_PAGES) if names else {}
        if not found:
            return 0, b""
        number = max(found)
        return number, self.read(number, found[number])

    def earliest(self) -> dict[int, str]:
        """The earliest version of each digest, by its number."""
        return self._earliest(f"{self._key(DIGEST_FOLDER)}/", None)

    def read(self, number: int, version: str) -> bytes:
        """The bytes of a version of a digest, one more than a digest may have at most."""
        with _ours():
            answer = self._client.get_object(
                Bucket=self._place.bucket, Key=self._key(digest_place(number)), VersionId=version
            )
            with answer["Body"] as body:
                data: bytes = body.read(LARGEST_DIGEST_BYTES + 1)
        return data

    # -- inside --------------------------------------------------------------------------------------------------------

    def _key(self, name: str) -> str:
        return f"{self._place.prefix}/{name}" if self._place.prefix else name

    def _put(self, key: str, data: bytes, until: datetime) -> str:
        answer = self._call(
            "put_object", Key=key, Body=data, ObjectLockMode=_COMPLIANCE, ObjectLockRetainUntilDate=until
        )
        version = answer.get("VersionId")
        if not isinstance(version, str):
            raise BucketError("the bucket keeps no versions")
        return version

    def _is_locked(self, name: str, version: str, until: datetime) -> bool:
        """Whether a version is there, and locked as long as was asked."""
        try:
            told = self._call("head_object", Key=self._key(name), VersionId=version)
        except BucketError:
            return False
        locked_until = told.get("ObjectLockRetainUntilDate")
        is_long = isinstance(locked_until, datetime) and locked_until >= until - _ROUNDED
        return told.get("ObjectLockMode") == _COMPLIANCE and is_long

    def _earliest(self, folder: str, most_pages: int | None) -> dict[int, str]:
        """Versions are listed by key, and of each key the newest first."""
        found: dict[int, str] = {}
        for page_number, page in enumerate(self._pages(folder)):
            if most_pages is not None and page_number >= most_pages:
                raise BucketError(f"{folder} has more than {most_pages} pages of versions: somebody keeps adding some")
            for each in page.get("Versions", ()):
                number = digest_number(each["Key"].rpartition("/")[2])
                if number and each["Key"] == self._key(digest_place(number)):
                    found[number] = each["VersionId"]
        return found

    def _pages(self, prefix: str, delimiter: str = "") -> Iterator[dict[str, Any]]:
        markers: dict[str, str] = {"Delimiter": delimiter} if delimiter else {}
        while True:
            page = self._call("list_object_versions", Prefix=prefix, **markers)
            yield page
            if not page.get("IsTruncated"):
                return
            for ours, theirs in (("KeyMarker", "NextKeyMarker"), ("VersionIdMarker", "NextVersionIdMarker")):
                markers |= {ours: page[theirs]} if theirs in page else {}

    def _call(self, name: str, **values: object) -> dict[str, Any]:
        with _ours():
            answer: dict[str, Any] = getattr(self._client, name)(Bucket=self._place.bucket, **values)
        return answer


def _client(place: Bucket) -> Any:
    try:
        from botocore.config import Config
        from botocore.session import Session
    except ImportError:
        raise BucketError("botocore is not installed (pip install '.[s3]' in a clone of the repository)") from None
    with _ours():
        session = Session()
        if place.credentials_file:
            session.set_config_variable("credentials_file", place.credentials_file)
        return session.create_client(
            "s3",
            endpoint_url=place.endpoint or None,
            region_name=place.region or None,
            config=Config(
                connect_timeout=place.timeout_s,
                read_timeout=place.timeout_s,
                retries={"total_max_attempts": 1},
                s3={"addressing_style": "path" if place.endpoint else "auto"},
            ),
        )


@contextmanager
def _ours() -> Iterator[None]:
    """Errors of the library as BucketError, and answers that nobody can read."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        told = error.response.get("Error", {})
        raise BucketError(f"{error.operation_name}: {told.get('Code')}: {told.get('Message')}") from None
    except (BotoCoreError, OSError, ValueError, KeyError) as error:
        if isinstance(getattr(error, "kwargs", {}).get("error"), MemoryError):  # the library has caught it
            raise MemoryError from None
        raise BucketError(str(error) or type(error).__name__) from None


# -- for auditors ------------------------------------------------------------------------------------------------------


def fetch_digests(place: Bucket, folder: Path) -> tuple[int, int]:
    """Copies the earliest version of each digest into a folder; how many there are, and how many of them are new.

    A digest that is there already stays as it is. Raises BucketError, OSError.
    """
    objects = S3Objects(place)
    there, new = objects.earliest(), 0
    folder.mkdir(parents=True, exist_ok=True)
    for number in sorted(there):
        path = folder / digest_name(number)
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_bytes(objects.read(number, there[number]))
            part.rename(path)
            new += 1
    return len(there), new


# -- the program -------------------------------------------------------------------------------------------------------

Call = Literal["check", "last", "put"]


def answer_to(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the program to its call. Raises BucketError."""
    objects = S3Objects(Bucket(**request["place"]))
    call: Call = request["call"]
    if call == "check":
        return {"problem": objects.problem()}
    if call == "put":
        return dict(objects.put({number: text.encode() for number, text in request["digests"]}))
    number, data = objects.last()
    return {"number": number, "data": data.decode(errors="replace")}


def main() -> int:
    """The program. Exit code 0: it has answered; 1: standard error says why not."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    try:
        sys.stdout.buffer.write(orjson.dumps(answer_to(orjson.loads(sys.stdin.buffer.read()))))
    except BucketError as error:
        sys.stderr.write(str(error))
        return 1
    except MemoryError:
        sys.stderr.write("the answer is too long")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Receipts: written and read again, and nothing else is taken for one."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from spark_audit.trail.receipt import (
    LARGEST_RECEIPT_BYTES,
    BucketReceipt,
    GitReceipt,
    MalformedReceipt,
    parse_receipt,
    receipt_bytes,
    receipt_path,
    receipts_in,
)

_GIT = GitReceipt(
    number=7, sha256="0f" * 32, ref="refs/heads/plant", commit=b"tree 00\n\xff", trees=(b"\0one", b"", b"three")
)
_BUCKET = BucketReceipt(
    number=7,
    sha256="0f" * 32,
    endpoint="",
    bucket="vault",
    key="plant-7/digests/000000000/000000000007.digest",
    version_id="3HL4kqtJvjVBH40Nrjfkd",
    locked_until="2036-11-29T10:00:00Z",
)


@pytest.mark.parametrize("receipt", [_GIT, _BUCKET])
def test_a_receipt_is_read_as_it_was_written(receipt: GitReceipt | BucketReceipt) -> None:
    assert parse_receipt(receipt_bytes(receipt)) == receipt


def _changed(**fields: object) -> bytes:
    return orjson.dumps(orjson.loads(receipt_bytes(_BUCKET)) | fields)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"null", b'"receipt"', b"\xff", b"{}"),
        receipt_bytes(_GIT)[:-3],
        *(_changed(number=each) for each in (0, -1, True, "7", 10**12, 7.0, None)),
        *(_changed(sha256=each) for each in ("", "0F" * 32, "0f" * 33, 7, None)),
        *(_changed(bucket=each) for each in (7, None, ["vault"], "x" * 3_000, "two\nlines", "\x1b[2J")),
        *(_changed(version=each) for each in (0, 2, "1", None)),
        *(_changed(kind=each) for each in ("git", "tape", 7, None, ["s3"])),
        _changed(further=1),
        orjson.dumps(orjson.loads(receipt_bytes(_GIT)) | {"commit": "no base64!"}),
        orjson.dumps(orjson.loads(receipt_bytes(_GIT)) | {"commit": ["AAAA"]}),
        orjson.dumps(orjson.loads(receipt_bytes(_GIT)) | {"trees": "AAAA"}),
        orjson.dumps(orjson.loads(receipt_bytes(_GIT)) | {"trees": [7]}),
        b" " * (LARGEST_RECEIPT_BYTES + 1),
    ],
)
def test_nothing_else_is_a_receipt(data: bytes) -> None:
    with pytest.raises(MalformedReceipt):
        parse_receipt(data)


def test_receipts_of_a_trail_are_plain_files_in_its_folder(tmp_path: Path) -> None:
    assert list(receipts_in(tmp_path)) == []
    place: Callable[[str], Path] = lambda name: receipt_path(tmp_path, name)  # noqa: E731
    place("vault").parent.mkdir()
    place("vault").write_bytes(receipt_bytes(_BUCKET))
    place("office").write_bytes(b"x" * (LARGEST_RECEIPT_BYTES + 100))
    place("link").symlink_to(place("vault"))
    place("folder").mkdir()
    assert [(name, len(data)) for name, data in receipts_in(tmp_path)] == [
        ("office", LARGEST_RECEIPT_BYTES + 1),
        ("vault", len(receipt_bytes(_BUCKET))),
    ]

"""The evidence pack: one file with all that an auditor needs to judge a trail without the gateway that wrote it.

    README.md          the purpose of the pack, and how to check it with a few lines of any language
    public-key.txt     the first key of the chain of keys; an anchor only after a comparison with one from elsewhere
    policy.toml        the audit's policy, if there is one
    results/           the files that the audit on Spark wrote, if they are of this trail (seal.py)
    trail/             receipts of witnesses, then segments, digests, time-stamps and torn bytes; each digest stands in
                       front of its time-stamps and of its segment

The same files give the same bytes: names in a fixed order, no clock, no owner. Members are copied piece by piece.
"""

import gzip
import io
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import BinaryIO, Final, Self

from spark_audit.seal import read_seal, why_not_of
from spark_audit.trail.digest import DIGEST_FOLDER, STAMPS_FOLDER, anchor_key_of, digest_name, stamp_name, stamp_numbers
from spark_audit.trail.receipt import RECEIPTS_FOLDER, receipts_in
from spark_audit.trail.segment_forms import COMPRESSED
from spark_audit.verify.source import DigestFile, SegmentFile, TrailFolder

README: Final = "README.md"
PUBLIC_KEY: Final = "public-key.txt"
POLICY: Final = "policy.toml"
RESULTS: Final = "results"
TRAIL: Final = "trail"
ZIP_SUFFIX: Final = ".zip"
TAR_SUFFIX: Final = ".tar.gz"
_README_TEMPLATE: Final = Path(__file__).with_name("pack_readme.md")
_COMPRESSION_LEVEL: Final = 6
_MODE: Final = 0o644
_COPY_BYTES: Final = 1024 * 1024
#: The most bytes of a zip member without ZIP64 (2 GiB less one).
_ZIP32_BYTES: Final = 2**31 - 1


class PackError(ValueError):
    """The pack cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackContents:
    """The contents of a pack. None means that the pack lacks it."""

    trail: Path
    policy: Path | None = None
    results: Path | None = None
    code_version: str


def write_pack(contents: PackContents, out: Path) -> int:
    """Writes a pack, zip or tar.gz by its name, whole or not at all; returns its number of files.

    Raises PackError if there is no trail or if the name ends in neither, and OSError.
    """
    if not out.name.endswith((ZIP_SUFFIX, TAR_SUFFIX)):
        raise PackError(f"the name {out} must end in {ZIP_SUFFIX} or {TAR_SUFFIX}")
    if not contents.trail.is_dir():
        raise PackError(f"there is no trail {contents.trail}")
    if not out.parent.is_dir():
        raise PackError(f"there is no folder {out.parent} (make it, or name another place)")
    results = contents.results
    if results is not None and _files_of(results) and (why := why_not_of(results, contents.trail)):
        raise PackError(f"the results in {contents.results} do not belong to {contents.trail}: {why}")
    descriptor, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name[:64]}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            count = _fill(contents, file, is_zip=out.name.endswith(ZIP_SUFFIX))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(out)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return count


def lacks(contents: PackContents) -> tuple[str, ...]:
    """What a pack that was written would need to prove more, in words. Raises OSError."""
    told = []
    if not anchor_key_of(contents.trail / DIGEST_FOLDER):
        told.append("nothing in the trail is signed yet")
    if contents.results is None or not _files_of(contents.results):
        told.append("it has no results (rfhbridge audit run writes them)")
    elif not read_seal(contents.results).signature:
        told.append("nobody signed its results (rfhbridge audit run --sign KEY)")
    return tuple(told)


def _fill(contents: PackContents, file: BinaryIO, *, is_zip: bool) -> int:
    count = 0
    with _ZipWriter(file) if is_zip else _TarWriter(file) as writer:
        for name, content in _members(contents):
            count += 1
            with ExitStack() as opened:
                data = io.BytesIO(content) if isinstance(content, bytes) else opened.enter_context(content)
                writer.add(name, data, _size_of(data))
    return count


def _members(contents: PackContents) -> Iterator[tuple[str, bytes | AbstractContextManager[BinaryIO]]]:
    """Names and contents, in the order of the pack."""
    stamps = _Stamps(contents.trail)  # they are listed before digests: each one has its digest, unless that was removed
    source = TrailFolder(contents.trail)
    key = anchor_key_of(contents.trail / DIGEST_FOLDER)
    yield README, _readme(contents, key).encode()
    if key:
        yield PUBLIC_KEY, f"{key}\n".encode()
    if contents.policy is not None:
        yield POLICY, contents.policy.open("rb")
    for path in _files_of(contents.results):
        yield f"{RESULTS}/{path.relative_to(contents.results or path).as_posix()}", path.open("rb")
    # a receipt stands in front of its digest, and is not of a later one: a digest may come while the trail is packed
    for name, data in receipts_in(contents.trail):
        yield f"{TRAIL}/{RECEIPTS_FOLDER}/{name}.json", data
    for entry in source.entries():
        if isinstance(entry, DigestFile):
            yield from stamps.up_to(entry.number - 1)
            yield f"{TRAIL}/{DIGEST_FOLDER}/{digest_name(entry.number)}", entry.data
            yield from stamps.up_to(entry.number)
        else:
            yield _segment_member(entry)
    yield from stamps.up_to(sys.maxsize)
    if source.gone:
        raise PackError(f"{source.gone[0]} was removed while the trail was packed (pack it again)")
    for name in source.torn_files:
        yield f"{TRAIL}/{name}", (contents.trail / name).open("rb")


class _Stamps:
    """The time-stamps of a trail, in the order of their digests. One without a digest is evidence too."""

    def __init__(self, trail: Path) -> None:
        folders = [path for path in (trail / STAMPS_FOLDER).glob("*") if path.is_dir() and not path.is_symlink()]
        self._left = deque(sorted((number, each.name, each) for each in folders for number in stamp_numbers(each)))

    def up_to(self, number: int) -> Iterator[tuple[str, AbstractContextManager[BinaryIO]]]:
        """Those that were not given yet, up to a digest's number."""
        while self._left and self._left[0][0] <= number:
            stamped, name, folder = self._left.popleft()
            path = folder / stamp_name(stamped)
            if path.is_file() and not path.is_symlink():
                yield f"{TRAIL}/{STAMPS_FOLDER}/{name}/{path.name}", path.open("rb")


def _segment_member(segment: SegmentFile) -> tuple[str, AbstractContextManager[BinaryIO]]:
    return f"{TRAIL}/{segment.name}", segment.open_file()


def _files_of(folder: Path | None) -> list[Path]:
    """The plain files below a folder, sorted. Links are no evidence."""
    if folder is None or not folder.is_dir():
        return []
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _readme(contents: PackContents, key: str) -> str:
    template = Template(_README_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(code_version=contents.code_version, public_key=key or "none: nothing is signed yet")


def _size_of(file: BinaryIO) -> int:
    """The bytes of a file that go into the pack. An open segment may grow meanwhile."""
    return len(file.getbuffer()) if isinstance(file, io.BytesIO) else os.fstat(file.fileno()).st_size


class _ZipWriter:
    """A zip without a clock. It stores compressed segments as they are."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._zip.close()

    def add(self, name: str, file: BinaryIO, size: int) -> None:
        member = zipfile.ZipInfo(name)  # of 1 January 1980
        member.create_system = 3  # Unix, for the modes below
        member.external_attr = (0o100000 | _MODE) << 16
        member.compress_type = zipfile.ZIP_STORED if name.endswith(COMPRESSED) else zipfile.ZIP_DEFLATED
        member.file_size = size
        with self._zip.open(member, "w", force_zip64=size > _ZIP32_BYTES) as target:
            shutil.copyfileobj(_Beginning(name, file, size), target, _COPY_BYTES)


class _TarWriter:
    """A ustar file in gzip, without a clock and without owners."""

    def __init__(self, file: BinaryIO) -> None:
        self._gzip = gzip.GzipFile(filename="", mode="wb", compresslevel=_COMPRESSION_LEVEL, fileobj=file, mtime=0)
        self._tar = tarfile.TarFile(fileobj=self._gzip, mode="w", format=tarfile.USTAR_FORMAT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._tar.close()
        self._gzip.close()

    def add(self, name: str, file: BinaryIO, size: int) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, _MODE
        try:
            self._tar.addfile(member, _Beginning(name, file, size))
        except ValueError as error:
            raise PackError(
                f"{name} does not fit into a tar: {error} (name a pack that ends in {ZIP_SUFFIX})"
            ) from None


class _Beginning(io.RawIOBase):
    """The first `size` bytes of a file, for a copy. Raises PackError if the file is shorter."""

    def __init__(self, name: str, file: BinaryIO, size: int) -> None:
        super().__init__()
        self._name, self._file, self._left = name, file, size

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size, self._left) if size >= 0 else self._left)
        if self._left and not data:
            raise PackError(f"{self._name} was cut while it was packed (pack it again)")
        self._left -= len(data)
        return data

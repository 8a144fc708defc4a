"""A trail within an evidence pack (zip or tar.gz), read where it is: nothing is ever unpacked.

A pack comes from outside. Names that lead elsewhere, links, names that come twice, members that cannot be decompressed
and directories that would fill the memory are refused as UnusablePack; what a trail in it says is checked as any other.
"""

import gzip
import io
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, cast

from spark_audit.trail.digest import DIGEST_FOLDER, LARGEST_DIGEST_BYTES, STAMPS_FOLDER, digest_number
from spark_audit.trail.receipt import LARGEST_RECEIPT_BYTES, RECEIPTS_FOLDER, MalformedReceipt, parse_receipt
from spark_audit.verify.anchor import Anchor
from spark_audit.verify.auditors_rule import NO_RULE, AuditorsRule
from spark_audit.verify.receipts import MOST_RECEIPTS
from spark_audit.verify.source import BLOCK_BYTES, TORN, DigestFile, Entry, SegmentFile, in_checking_order, segment_file
from spark_audit.verify.time_stamp import LARGEST_STAMP_BYTES, MOST_WITNESSES, StampedDigest
from spark_audit.verify.trail import not_evaluable, verify_source
from spark_audit.verify.verdict import Verification

TRAIL: Final = "trail/"
_DIGESTS: Final = f"{TRAIL}{DIGEST_FOLDER}/"
#: The directory of a zip is held in memory, about ten times as large; a member has about 100 bytes in it.
LARGEST_DIRECTORY_BYTES: Final = 32 * 1024 * 1024
#: Members that are not of the trail; their names are kept, so that none comes twice.
MOST_OTHER_MEMBERS: Final = 10_000
#: A time-stamp: the name of the witness, and the number of the digest.
_STAMP: Final = re.compile(rf"{TRAIL}{STAMPS_FOLDER}/([a-z0-9_-]{{1,32}})/([0-9]{{12}})\.tsr")
#: A receipt: the name of the witness.
_RECEIPT: Final = re.compile(rf"{TRAIL}{RECEIPTS_FOLDER}/([a-z0-9_-]{{1,32}})\.json")
_TOO_MANY_WITNESSES: Final = f"it has time-stamps of more than {MOST_WITNESSES} witnesses"
_TAR_BLOCK: Final = 512
#: A tar is filled up to a multiple of 10,240 bytes, or as many as `tar -b` says.
_LARGEST_TAR_END_BYTES: Final = 1024 * 1024
_PLAIN_FILES: Final = (b"0", b"\0")
_FOLDER: Final = b"5"
_ELSEWHERE: Final = re.compile(r"(^|/)\.\.?(/|$)|^/|^[A-Za-z]:|[\\\x00-\x1f\x7f]|//")
_ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_ZIP_END: Final = b"PK\x05\x06"
_ZIP_END_BYTES: Final = 22
#: More members than 16 bits can tell: ZIP64 has their number.
_COUNTED_ELSEWHERE: Final = 0xFFFF
_GZIP_MAGIC: Final = b"\x1f\x8b"


class UnusablePack(ValueError):
    """A file that is no evidence pack, or one that was made to do harm."""


def verify_pack(
    path: Path, anchor: Anchor, *, accepted: frozenset[str] = frozenset(), rule: AuditorsRule = NO_RULE
) -> Verification:
    """Checks the trail in a pack. Never raises for what it holds; what is no pack is not evaluable."""
    try:
        with path.open("rb") as file:
            return verify_source(open_pack(file), anchor, accepted, rule)
    except UnusablePack as error:
        return not_evaluable(f"{path} is not a pack that can be judged: {error}")
    except OSError as error:
        return not_evaluable(f"{error.filename or path} cannot be read: {error.strerror or error}")


def packed_stamps(path: Path) -> Iterator[StampedDigest]:
    """Every digest of a pack, or that a time-stamp in it names, ascending. Raises UnusablePack and OSError."""
    with path.open("rb") as file:
        yield from open_pack(file).stamped()


def packed_receipts(path: Path) -> tuple[list[tuple[str, bytes]], dict[int, bytes]]:
    """Witness and bytes of each receipt in a pack, and the digests that they name. Raises UnusablePack and OSError."""
    with path.open("rb") as file:
        return open_pack(file).receipts()


def open_pack(file: BinaryIO) -> "ZipPack | TarPack":
    """The trail in an open file, from its beginning. Raises UnusablePack."""
    file.seek(0)
    magic = file.read(4)
    file.seek(0)
    if magic in _ZIP_MAGICS:
        return ZipPack(file)
    if magic.startswith(_GZIP_MAGIC):
        return TarPack(file)
    raise UnusablePack("it is neither a zip nor a tar.gz")


class ZipPack:
    """A trail in a zip: a TrailSource."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._zip = zipfile.ZipFile(cast(BinaryIO, _Bounded(file)))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise UnusablePack(f"the directory of the zip cannot be read: {error}") from None
        members = [member for member in self._zip.infolist() if not member.is_dir()]
        _check_names(members)
        _check_count(file, len(self._zip.infolist()))
        self._members = {member.filename: member for member in members}
        self._stamps = [(found, name) for name in self._members if (found := _STAMP.fullmatch(name))]
        if len({found[1] for found, _ in self._stamps}) > MOST_WITNESSES:
            raise UnusablePack(_TOO_MANY_WITNESSES)
        self.torn_files = tuple(sorted(_torn(self._members)))

    def entries(self) -> Iterator[Entry]:
        """See TrailSource."""
        return in_checking_order(self._digests(), self._segments())

    def stamped(self) -> Iterator[StampedDigest]:
        """See packed_stamps."""
        replies: dict[int, dict[str, str]] = {}
        for found, name in self._stamps:
            replies.setdefault(int(found[2]), {})[found[1]] = name
        digests = {number: name for name in self._members if (number := _digest_number(name))}
        for number in sorted(replies.keys() | digests.keys()):
            data = self._beginning(digests[number], LARGEST_DIGEST_BYTES + 1) if number in digests else None
            told = replies.get(number, {}).items()
            read = {who: self._beginning(member, LARGEST_STAMP_BYTES + 1) for who, member in told}
            yield StampedDigest(number=number, data=data, replies=read)

    def receipts(self) -> tuple[list[tuple[str, bytes]], dict[int, bytes]]:
        """See packed_receipts."""
        named = sorted((found[1], name) for name in self._members if (found := _RECEIPT.fullmatch(name)))
        read = [(who, self._beginning(name, LARGEST_RECEIPT_BYTES + 1)) for who, name in named[: MOST_RECEIPTS + 1]]
        wanted = {_number_in(data) for _, data in read}
        digests = {number: name for name in self._members if (number := _digest_number(name)) in wanted and number}
        return read, {number: self._beginning(name, LARGEST_DIGEST_BYTES + 1) for number, name in digests.items()}

    def _beginning(self, name: str, size: int) -> bytes:
        with self._opened(name) as file:
            return file.read(size)

    def _digests(self) -> Iterator[DigestFile]:
        for name in sorted(self._members):
            number = _digest_number(name)
            if number:
                with self._opened(name) as file:
                    yield DigestFile(number=number, data=file.read(LARGEST_DIGEST_BYTES + 1))

    def _segments(self) -> Iterator[SegmentFile]:
        for name in sorted(self._members):
            if segment := _segment(name, partial(self._opened, name)):
                yield segment

    @contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO]:
        try:
            with self._zip.open(self._members[name]) as file:
                yield cast(BinaryIO, file)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise UnusablePack(f"{name} cannot be read: {error}") from None


class TarPack:
    """A trail in a tar.gz, read once from the front: digests and segments must come in the order of `audit pack`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = gzip.GzipFile(fileobj=file)
        self._torn: list[str] = []

    @property
    def torn_files(self) -> tuple[str, ...]:
        """See TrailSource."""
        return tuple(self._torn)

    def entries(self) -> Iterator[Entry]:
        """See TrailSource."""
        last_digest, last_segment, others = 0, "", set[str]()
        stamps = _StampOrder()
        for name, member in _tar_members(self._file):
            if stamps.take(name):
                continue
            number = _digest_number(name)
            segment = _segment(name, partial(_as_context, member))
            if number:
                if number <= last_digest:
                    raise UnusablePack(f"{name} comes behind a later digest, or twice")
                last_digest = number
                yield DigestFile(number=number, data=member.read(LARGEST_DIGEST_BYTES + 1))
            elif segment is not None:
                if segment.name <= last_segment:
                    raise UnusablePack(f"{name} comes behind a later segment, or twice")
                last_segment = segment.name
                yield segment
            elif name in others or len(others) >= MOST_OTHER_MEMBERS:
                raise UnusablePack(f"{name} comes twice, or is one of more than {MOST_OTHER_MEMBERS} other files")
            else:
                others.add(name)
                self._torn += _torn([name])

    def stamped(self) -> Iterator[StampedDigest]:
        """See packed_stamps: the time-stamps over a digest stand behind it."""
        stamps, current = _StampOrder(), StampedDigest(number=0, data=None, replies={})
        for name, member in _tar_members(self._file):
            number = _digest_number(name)
            if found := stamps.take(name):
                who, number = found
                reply = {who: member.read(LARGEST_STAMP_BYTES + 1)}
                if number == current.number:
                    current = replace(current, replies={**current.replies, **reply})
                    continue
                following = StampedDigest(number=number, data=None, replies=reply)
            elif number:
                following = StampedDigest(number=number, data=member.read(LARGEST_DIGEST_BYTES + 1), replies={})
            else:
                continue
            if current.number:
                yield current
            current = following
        if current.number:
            yield current

    def receipts(self) -> tuple[list[tuple[str, bytes]], dict[int, bytes]]:
        """See packed_receipts: receipts stand in front of all digests."""
        read: list[tuple[str, bytes]] = []
        digests: dict[int, bytes] = {}
        wanted: set[int | None] | None = None
        for name, member in _tar_members(self._file):
            if found := _RECEIPT.fullmatch(name):
                if wanted is not None:
                    raise UnusablePack(f"{name} comes behind a digest")
                if len(read) <= MOST_RECEIPTS:
                    read.append((found[1], member.read(LARGEST_RECEIPT_BYTES + 1)))
            elif number := _digest_number(name):
                wanted = {_number_in(data) for _, data in read} if wanted is None else wanted
                if number in wanted:
                    digests[number] = member.read(LARGEST_DIGEST_BYTES + 1)
        return read, digests


class _StampOrder:
    """Time-stamps in a tar come ascending, those of each witness for itself, so none comes twice."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def take(self, name: str) -> tuple[str, int] | None:
        """Witness and number of the digest; None for a member that is no time-stamp. Raises UnusablePack."""
        found = _STAMP.fullmatch(name)
        if found is None:
            return None
        witness, number = found[1], int(found[2])
        if number <= self._last.get(witness, 0):
            raise UnusablePack(f"{name} comes behind a later time-stamp, or twice")
        if witness not in self._last and len(self._last) >= MOST_WITNESSES:
            raise UnusablePack(_TOO_MANY_WITNESSES)
        self._last[witness] = number
        return witness, number


class _TarMember(io.RawIOBase):
    """The bytes of one member of a tar."""

    def __init__(self, name: str, file: gzip.GzipFile, size: int) -> None:
        super().__init__()
        self._name, self._file, self._left = name, file, size
        self.padding = -size % _TAR_BLOCK

    def read(self, size: int = -1) -> bytes:
        data = _decompressed(self._file, min(size, self._left) if size >= 0 else self._left)
        if self._left and size and not data:
            raise UnusablePack(f"it ends within {self._name}")
        self._left -= len(data)
        return data

    def skip(self) -> None:
        """Passes over what nobody read, and over the blocks' rest."""
        while self._left:
            self.read(BLOCK_BYTES)
        _decompressed(self._file, self.padding)


def _decompressed(file: gzip.GzipFile, size: int) -> bytes:
    try:
        return file.read(size)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UnusablePack(f"it cannot be decompressed to its end: {error}") from None


def _tar_members(file: gzip.GzipFile) -> Iterator[tuple[str, _TarMember]]:
    """Name and bytes of each plain file (POSIX ustar header: name at 0, size at 124, checksum at 148, type at 156)."""
    while header := _decompressed(file, _TAR_BLOCK):
        if not header.strip(b"\0"):
            _check_end(file)
            return
        if len(header) < _TAR_BLOCK or _octal(header[148:156]) != _checksum(header):
            raise UnusablePack("it is no tar, or is damaged: the checksum of a member is wrong")
        name = _tar_name(header)
        kind = header[156:157]
        if kind == _FOLDER:
            continue
        if kind not in _PLAIN_FILES:
            raise UnusablePack(f"{name} is no plain file, but of type {kind!r}: a link, or of another program")
        _check_name(name)
        member = _TarMember(name, file, _octal(header[124:136]))
        yield name, member
        member.skip()
    raise UnusablePack("it has no end: it was cut")


def _check_end(file: gzip.GzipFile) -> None:
    """Behind the first block of zeros stand some more, to the end of the file and its checksum."""
    if _decompressed(file, _LARGEST_TAR_END_BYTES + 1).strip(b"\0") or _decompressed(file, 1):
        raise UnusablePack("bytes stand behind its end")


def _tar_name(header: bytes) -> str:
    parts = [part.rstrip(b"\0").decode("utf-8", "replace") for part in (header[345:500], header[:100])]
    return "/".join(part for part in parts if part)


def _octal(field: bytes) -> int:
    digits = field.strip(b"\0 ")
    if not digits or digits.strip(b"01234567"):
        raise UnusablePack("it is no tar, or is damaged: a number of a member cannot be read")
    return int(digits, 8)


def _checksum(header: bytes) -> int:
    return sum(header) - sum(header[148:156]) + 8 * ord(" ")


def _as_context(member: _TarMember) -> AbstractContextManager[BinaryIO]:
    return nullcontext(cast(BinaryIO, member))


class _Bounded(io.RawIOBase):
    """A file of which no more is read at once than a zip's directory may have."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._size = file.seek(0, io.SEEK_END)
        file.seek(0)

    def read(self, size: int = -1) -> bytes:
        wanted = size if size >= 0 else self._size - self._file.tell()
        if wanted > LARGEST_DIRECTORY_BYTES:
            raise UnusablePack(
                f"the directory of the zip has more than {LARGEST_DIRECTORY_BYTES} bytes (pack a tar.gz)"
            )
        return self._file.read(wanted)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


def _check_count(file: BinaryIO, count: int) -> None:
    """The end of a zip (22 bytes, number of members at 10) agrees with its directory, of which a part may be lost."""
    file.seek(-_ZIP_END_BYTES, io.SEEK_END)
    end = file.read(_ZIP_END_BYTES)
    told = int.from_bytes(end[10:12], "little")
    if not end.startswith(_ZIP_END) or told not in (count, _COUNTED_ELSEWHERE):
        raise UnusablePack("the directory of the zip is damaged, or a comment was put behind it")


def _check_names(members: list[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    for member in members:
        _check_name(member.orig_filename)
        if member.filename in seen:
            raise UnusablePack(f"{member.filename} comes twice")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise UnusablePack(f"{member.filename} is a link")
        seen.add(member.filename)


def _check_name(name: str) -> None:
    """Names stay within the pack, whoever unpacks it."""
    if not name or _ELSEWHERE.search(name):
        raise UnusablePack(f"the name {name[:200]!r} leads out of the pack")


def _digest_number(name: str) -> int | None:
    return digest_number(name.removeprefix(_DIGESTS)) if name.startswith(_DIGESTS) else None


def _number_in(receipt: bytes) -> int | None:
    """The number of the digest that a receipt names; None if it cannot be read."""
    try:
        return parse_receipt(receipt).number
    except MalformedReceipt:
        return None


def _segment(name: str, opened: Callable[[], AbstractContextManager[BinaryIO]]) -> SegmentFile | None:
    return segment_file(name.removeprefix(TRAIL), opened) if name.startswith(TRAIL) else None


def _torn(names: Iterable[str]) -> list[str]:
    return [name.removeprefix(TRAIL) for name in names if name.startswith(TRAIL) and name.endswith(TORN)]

"""The head of the trail: how far it reaches, as the store keeps it with the notes that have left the audit queue.

The exporter writes and syncs lines, and then commits the get of their notes with the head that the trail has by then.
So the store knows the last line of each unit of work by its hash, and that hash pins every line before it. After a
crash the trail may be ahead of the store, by lines whose batches come again. It is never behind it, and never
different, unless somebody touched it. A store knows its trail from its creation on: an empty one by EMPTY_HEAD.
"""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import orjson

from gateway.audit_trail.digests import read_digest, segment_number
from gateway.audit_trail.segment_files import linked_lines, read_segment, segment_file, segment_files
from mq_adapters.embedded.unit_of_work import TRAIL_HEAD
from mq_adapters.reasons import StoreError
from spark_audit.record import ZERO_HASH
from spark_audit.trail.digest import DIGEST_FOLDER, Digest, DigestKind, digest_numbers

if TYPE_CHECKING:  # the exporter has no engine
    from mq_adapters.embedded.engine import Engine

_VERSION: Final = 1
_PREVIOUS: Final = re.compile(rb'"prev":"([0-9a-f]{64})"')


class TrailChanged(StoreError):
    """The trail is not as the store, or its writer, knows it. Nothing more is signed before an operator accepts it."""

    def __init__(self, operation: str, cause: str) -> None:
        hint = (
            "keep the trail as it is, as evidence; put the right files back, or stop the gateway and go on"
            " with what is there: rfhbridge queue accept-rollback"
        )
        super().__init__(operation, cause, hint)


class AnotherBatch(StoreError):
    """The trail has a batch that the store does not have under its number."""

    def __init__(self, gateway: str, batch: int) -> None:
        super().__init__(
            f"write batch {batch} of gateway {gateway} to the trail",
            "the trail has another batch under this number: the store went back, or the trail belongs to another store",
            "put the newest copies of store and trail back, or stop the gateway and go on without what is missing:"
            " rfhbridge queue accept-rollback --force",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailHead:
    """How far a trail reaches: its last segment, the lines and bytes of that, and the hash of the last line.

    `gateway` and `batch` say which batch of which store the last line is of; "" and 0 where that is not known.
    """

    segment: str
    lines: int
    size_bytes: int
    head: str
    gateway: str = ""
    batch: int = 0

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """The head that a store has kept; None if it has kept none. StoreError if the text is no head."""
        if not text:
            return None
        try:
            said = orjson.loads(text)
            if said.pop("version") != _VERSION:
                raise ValueError("it has another version")
            return cls(**said)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            hint = "use the program that wrote it"
            raise StoreError("read the head of the trail in the store", str(error), hint) from error

    def to_text(self) -> str:
        return orjson.dumps({"version": _VERSION, **asdict(self)}).decode()

    def bytes_of(self, segment: str) -> int:
        """How many bytes of an open segment it pins."""
        return self.size_bytes if segment == self.segment else 0

    def covers(self, segment: str, lines: int) -> bool:
        """Whether the first so many lines of a segment are among those that it pins."""
        return (segment, lines) <= (self.segment, self.lines)


#: The head of a trail without a line: whatever is there then has to be confirmed by batches that wait.
EMPTY_HEAD: Final = TrailHead(segment="", lines=0, size_bytes=0, head=ZERO_HASH)


def known_by(engine: "Engine") -> TrailHead | None:
    """The head that the store of an engine keeps; None if it keeps none. StoreError if the row is no head."""
    return TrailHead.from_text((engine.state(*TRAIL_HEAD) or b"").decode(errors="replace"))


def keep_from_creation(engine: "Engine", trail: Path) -> None:
    """A store that has never noted anything is told, with its first commit, how far the trail beside it reaches.

    There is a trail already where it was another store's. Raises OSError.
    """
    if engine.reach.batch or known_by(engine) is not None:
        return
    unit = engine.begin()
    unit.set_state(*TRAIL_HEAD, (head_of_trail(trail) or EMPTY_HEAD).to_text().encode())
    engine.submit(unit)


def head_of_trail(trail: Path) -> TrailHead | None:
    """How far the trail in a folder reaches by its own files; None if it has no line. Raises OSError."""
    for file in reversed(segment_files(trail) if trail.is_dir() else []):
        digest = _digest_of(trail, file.stem)
        if digest is not None:
            return head_by_digest(digest)
        data = file.read()
        size, head = linked_lines(data, _link_of(data))
        if size:
            return TrailHead(segment=file.stem, lines=data.count(b"\n", 0, size), size_bytes=size, head=head)
    return None


def head_by_digest(digest: Digest) -> TrailHead:
    """The head at the end of a segment that has a digest."""
    return TrailHead(segment=digest.segment, lines=digest.records, size_bytes=digest.size_bytes, head=digest.head)


def difference(trail: Path, known: TrailHead) -> str:
    """How a trail differs from the head that the store knows, in a sentence; "" if it agrees, or is ahead.

    A folder without any file of a trail makes no difference: a trail that begins late says so in its first record.
    """
    if not known.segment or not (trail.is_dir() and (segment_files(trail) or digest_numbers(trail / DIGEST_FOLDER))):
        return ""
    digest = _digest_of(trail, known.segment)
    if digest is not None and digest.records <= known.lines:
        swears = (digest.records, digest.size_bytes, digest.head)
        as_known = swears == (known.lines, known.size_bytes, known.head)
        return "" if as_known else f"the digest of segment {known.segment} is not that of the lines that were written"
    if segment_file(trail, known.segment) is None:
        gone = f"segment {known.segment} with its lines 1 to {known.lines} is not in the trail: it was cut or replaced"
        return "" if digest is not None else gone
    return _difference_of_lines(read_segment(trail, known.segment), known)


def _difference_of_lines(data: bytes, known: TrailHead) -> str:
    lines = data.splitlines(keepends=True)[: known.lines]
    first = b"".join(line for line in lines if line.endswith(b"\n"))
    size, head = linked_lines(first, _link_of(first))
    sound = first.count(b"\n", 0, size)
    if size < len(first):
        return f"line {sound + 1} of segment {known.segment} was changed: its hash or its link is wrong"
    if sound < known.lines:
        return f"segment {known.segment} ends with line {sound}, but {known.lines} were written: it was cut"
    if (size, head) != (known.size_bytes, known.head):
        last = f"line {known.lines} has hash {head}, but {known.head} was written"
        return f"lines up to {known.lines} of segment {known.segment} were changed, and hashed anew: {last}"
    return ""


def _link_of(data: bytes) -> str:
    """What the first line names as the hash before it."""
    found = _PREVIOUS.search(data[: data.find(b"\n") + 1][-200:])
    return found[1].decode() if found else ZERO_HASH


def _digest_of(trail: Path, stem: str) -> Digest | None:
    """The digest of a segment; None where it has none that can be read."""
    folder = trail / DIGEST_FOLDER
    for number in reversed(digest_numbers(folder)):
        try:
            digest, _ = read_digest(folder, number)
        except StoreError:
            continue
        if digest.kind == DigestKind.SEGMENT and segment_number(digest.segment) <= segment_number(stem):
            return digest if digest.segment == stem else None
    return None

"""An index of closed segments, kept by a reader of trails, so that its next search opens only the segments concerned.

A person who can write an index can hide records: if it lacks a client, a search skips the segment. A hash of the
segment within it would not help, for a forger writes that too. So an index is no part of the trail, and nobody gets it
from elsewhere. A reader makes it in a folder of its own, which nobody else may write (UnsafeIndex), and `verify` and
the audit never use it.

    key             32 random bytes of this folder
    SHA256          what the segment holds whose stored file has this SHA-256, and an HMAC of name and contents

The file of a segment is hashed at each search, so one that was changed in any way is read again. What is absent or has
a wrong HMAC is made anew. Names stand there as 4 bytes of a keyed hash: nobody can read them, and a name that collides
with another one costs a look into a segment in which it is not.
"""

import hashlib
import hmac
import os
import stat
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, cast

import orjson

from spark_audit.personal import has_keyed
from spark_audit.record.batch_line import records_of
from spark_audit.trail.segment_forms import OPEN
from spark_audit.verify.source import SegmentFile

#: Raised when an entry changes its meaning; an entry of another version is made anew.
_VERSION: Final = 1
_KEY_NAME: Final = "key"
_KEY_BYTES: Final = 32
_MAC_BYTES: Final = 32
_NAME_BYTES: Final = 4
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
#: Levels of a topic at which a search with a wildcard finds it.
_MOST_LEVELS: Final = 8
#: More names than a segment of 64 MiB has. A segment with more of them is read at each search.
_MOST_NAMES: Final = 2_000_000
_WILDCARDS: Final = ("+", "#")
#: The fields by which a message, or the lane of its subscriber, is followed.
_IDENTIFIERS: Final = ("message_id", "source_message_id", "dead_letter_id", "target_message_id", "correlation_id")
#: Beyond every number that JSON text can have here.
_LARGEST: Final = 2**64 - 1
_SMALLEST: Final = -(2**63)
_NATIVE: Final = "I" if array("I").itemsize == _NAME_BYTES else "L"


class UnsafeIndex(Exception):
    """Somebody else may write the folder of an index, so it could hide records."""


@dataclass(slots=True, kw_only=True)
class Contents:
    """What a segment holds. Times and numbers are those of records that have them; without any, first is above last."""

    key: bytes
    lines: int = 0
    #: Lines that are no records.
    foreign: int = 0
    first_us: int = _LARGEST
    last_us: int = _SMALLEST
    first_sequence: int = _LARGEST
    last_sequence: int = _SMALLEST
    has_keyed_clients: bool = False
    has_keyed_topics: bool = False
    #: There are more names than can be kept: any name may be there.
    has_any_name: bool = False
    names: "array[int]" = field(default_factory=lambda: array(_NATIVE))

    def has_kind(self, *kinds: str) -> bool:
        """Whether a record may be of one of these kinds."""
        return any(self._has("kind", kind) for kind in kinds)

    def has_command(self, command: str) -> bool:
        """Whether a record may have this command."""
        return self._has("command", command)

    def has_client(self, clients: Iterable[str]) -> bool:
        """Whether a record may be of one of these clients."""
        return any(self._has("client", client) for client in clients)

    def has_identifier(self, identifiers: Iterable[str]) -> bool:
        """Whether a record may have one of these MsgIds or CorrelIds."""
        return any(self._has("identifier", identifier) for identifier in identifiers)

    def has_topic(self, begins: Iterable[str]) -> bool:
        """Whether a record may have a topic that is, or begins with the levels of, one of `topic_beginning`'s."""
        return any(self._has("topic", beginning) for beginning in begins)

    def has_time(self, since_us: int, until_us: int) -> bool:
        """Whether a record may be of a time. 0: no limit."""
        return (not since_us or self.last_us >= since_us) and (not until_us or self.first_us < until_us)

    def _has(self, kind: str, name: str) -> bool:
        if self.has_any_name:
            return True
        wanted = _number(self.key, kind, name)
        place = bisect_left(self.names, wanted)
        return place < len(self.names) and self.names[place] == wanted


def topic_beginning(topic_filter: str) -> str | None:
    """What `Contents.has_topic` asks for a topic filter: the levels before its first wildcard. None: any topic fits."""
    levels = topic_filter.split("/")
    literal = next((place for place, level in enumerate(levels) if level in _WILDCARDS), None)
    if literal is None:
        return topic_filter
    return "/".join(levels[: min(literal, _MOST_LEVELS)]) if literal else None


class SegmentIndex:
    """The index in a folder, which is made. Raises UnsafeIndex, OSError."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.geteuid() or status.st_mode & _WRITABLE_BY_OTHERS:
            raise UnsafeIndex(f"{folder} may be written by somebody else, who could hide records from you")
        self._folder = folder
        self._key = _key_in(folder)

    def contents_of(self, segment: SegmentFile) -> Contents | None:
        """What a closed segment holds, by its index, which is made where there is none; None for an open segment.

        Its file is then as before, to be read from its beginning. Raises what reading the segment raises.
        """
        if segment.ending == OPEN:
            return None
        with segment.open_file() as file:
            sha256 = hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()
            file.seek(0)
            path = self._folder / sha256
            contents = self._read(path)
            if contents is None:
                contents = _contents_of(segment, self._key)
                file.seek(0)
                self._write(path, contents)
        return contents

    def _read(self, path: Path) -> Contents | None:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        mac, data = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(path, data)):
            return None
        head, _, packed = data.partition(b"\n")
        version, *numbers = orjson.loads(head)
        if version != _VERSION:
            return None
        names = array(_NATIVE)
        names.frombytes(packed)
        return Contents(**dict(zip(_FACTS, numbers, strict=True)), key=self._key, names=names)

    def _write(self, path: Path, contents: Contents) -> None:
        head = orjson.dumps([_VERSION, *(getattr(contents, name) for name in _FACTS)])
        data = head + b"\n" + contents.names.tobytes()
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_bytes(self._mac(path, data) + data)
        part.replace(path)

    def _mac(self, path: Path, data: bytes) -> bytes:
        return hmac.digest(self._key, path.name.encode() + data, "sha256")


#: What an entry says beside the names.
_FACTS: Final = (
    "lines",
    "foreign",
    "first_us",
    "last_us",
    "first_sequence",
    "last_sequence",
    "has_keyed_clients",
    "has_keyed_topics",
    "has_any_name",
)


def _key_in(folder: Path) -> bytes:
    path = folder / _KEY_NAME
    if not path.exists():
        part = path.with_name(f"{_KEY_NAME}.{os.getpid()}")
        part.write_bytes(os.urandom(_KEY_BYTES))
        part.chmod(0o600)
        part.replace(path)
    return path.read_bytes()


def _number(key: bytes, kind: str, name: str) -> int:
    text = f"{kind} {name}".encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=_NAME_BYTES, key=key).digest(), "little")


def _contents_of(segment: SegmentFile, key: bytes) -> Contents:
    contents, found, pairs = Contents(key=key), set[int](), set[tuple[str, str]]()
    for block in segment.blocks():
        contents.has_keyed_clients |= has_keyed(block, "client")
        contents.has_keyed_topics |= has_keyed(block, "topic")
        for line in block.removesuffix(b"\n").split(b"\n"):
            contents.lines += 1
            records = records_of(line)
            if records is None:
                contents.foreign += 1
                continue
            for record in records:
                _measure(contents, record)
                pairs.update(_names_in(record))
        found.update(_number(key, *pair) for pair in pairs)
        pairs.clear()
        contents.has_any_name |= len(found) > _MOST_NAMES
        if contents.has_any_name:
            found.clear()
    contents.names = array(_NATIVE, sorted(found))
    return contents


def _measure(contents: Contents, record: dict[str, Any]) -> None:
    at_us, sequence = record.get("at_us"), record.get("sequence")
    if isinstance(at_us, int):
        contents.first_us, contents.last_us = min(contents.first_us, at_us), max(contents.last_us, at_us)
    if isinstance(sequence, int):
        contents.first_sequence = min(contents.first_sequence, sequence)
        contents.last_sequence = max(contents.last_sequence, sequence)


def _names_in(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The names by which a search may look for a record, each with what it names."""
    yield "kind", str(record.get("kind"))
    yield "client", str(record.get("client"))
    if "command" in record:
        yield "command", str(record["command"])
    for name in _IDENTIFIERS:
        if name in record:
            yield "identifier", str(record[name])
    topics = record.get("topics")
    for topic in (record.get("topic"), *(topics if isinstance(topics, list) else ())):
        if isinstance(topic, str):
            yield "topic", topic
            levels = topic.split("/")
            yield from (("topic", "/".join(levels[:count])) for count in range(1, min(len(levels), _MOST_LEVELS + 1)))

"""`rfhbridge audit show`: any part of a trail as JSON lines, as they stand in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
import typer

from gateway.cli.application import AuditExitCode, CommandFailed, forget_standard_output
from gateway.cli.audit.filters import (
    ClientOption,
    IndexOption,
    PersonalKeyOption,
    SinceOption,
    TopicOption,
    UntilOption,
    hidden_names,
    index_in,
    personal_key_in,
    wanted_of,
)
from gateway.cli.audit.trails import DataFoldersOption, TrailFoldersOption, trail_folders
from gateway.cli.files import write_output
from gateway.cli.settings_options import ConfigOption
from gateway.cli.terminal import counted
from spark_audit.personal import PersonalKey, UnusablePersonalKey, has_keyed, opened_record
from spark_audit.record import Kind, line_hashes

if TYPE_CHECKING:
    from spark_audit.fates import Wanted
    from spark_audit.segment_index import Contents, SegmentIndex
    from spark_audit.verify.source import SegmentFile

_SEQUENCES: Final = re.compile(r"([0-9]{1,18})(-([0-9]{1,18})?)?")
_SEGMENT: Final = re.compile(r"([0-9]{1,12})|([0-9]{12}-[0-9]{8}T[0-9]{2})(\..*)?")
_NUMBER_DIGITS: Final = 12
_LARGEST: Final = 2**63 - 1


def sequences(text: str) -> range:
    """Sequence numbers: 7, 7-9 or 7-."""
    found = _SEQUENCES.fullmatch(text)
    first = int(found[1]) if found else 0
    last = first if found and not found[2] else int(found[3]) if found and found[3] else _LARGEST
    if not found or last < first:
        raise typer.BadParameter(f"{text!r} is no sequence number and no range (write 7, 7-9 or 7-)")
    return range(first, last + 1)


def segment_name(text: str) -> str:
    """The beginning of the name of a segment: its number, or the name up to its first dot."""
    found = _SEGMENT.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no segment (write its number, or 000000000007-20261120T06)")
    return f"{found[1].zfill(_NUMBER_DIGITS)}-" if found[1] else found[2]


def show(
    segment: Annotated[
        list[str] | None,
        typer.Option("--segment", metavar="SEGMENT", parser=segment_name, help="Only this file: its number or name."),
    ] = None,
    sequence: Annotated[
        range | None,
        typer.Option("--sequence", metavar="N[-N]", parser=sequences, help="Only these sequence numbers."),
    ] = None,
    client: ClientOption = "",
    topic: TopicOption = None,
    since_us: SinceOption = None,
    until_us: UntilOption = None,
    kind: Annotated[
        list[Kind] | None, typer.Option("--kind", metavar="KIND", help="Only records of this kind, for example put.")
    ] = None,
    data: DataFoldersOption = None,
    trail: TrailFoldersOption = None,
    personal_key: PersonalKeyOption = None,
    index: IndexOption = None,
    config: ConfigOption = None,
) -> None:
    """Print records of a trail as JSON lines.

    Each line is printed as it stands in the trail, whether its file is open, closed or compressed. The command prints
    only records that fit all options; --segment and --kind may come several times. With --personal-key encrypted fields
    are in clear, so `hash` is not that of the printed line. Lines that are no records, and records that were changed,
    are named on standard error. Exit code 0: shown; 1: a record was changed, or a line is no record; 2: not evaluable,
    because there is no such record, or no trail; 3: wrong use.
    """
    key = personal_key_in(personal_key)
    selection = Selection(
        wanted=wanted_of(client, topic or "", since_us or 0, until_us or 0, key),
        segments=tuple(segment or ()),
        sequences=sequence,
        kinds=frozenset(kind or ()),
    )
    printing = Printing(selection, key, index_in(index))
    try:
        for folder in trail_folders(data, trail, config):
            printing.print_trail(folder)
    except BrokenPipeError:  # the reader needs no more
        forget_standard_output()
        raise typer.Exit(AuditExitCode.CLEAN) from None
    hidden = hidden_names(
        client,
        topic or "",
        key,
        has_keyed_clients=printing.has_keyed_clients,
        has_keyed_topics=printing.has_keyed_topics,
    )
    raise typer.Exit(printing.ended(hidden))


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The records that are asked for. `segments` are beginnings of names; none: every segment."""

    wanted: "Wanted"
    segments: tuple[str, ...]
    sequences: range | None
    kinds: frozenset[str]

    def concerns(self, stem: str) -> bool:
        """Whether a segment may have such records, by its name."""
        return not self.segments or stem.startswith(self.segments)

    def holds(self, record: dict[str, Any]) -> bool:
        """Whether a record is one of them."""
        sequence = record.get("sequence")
        return (
            (self.sequences is None or (isinstance(sequence, int) and sequence in self.sequences))
            and (not self.kinds or record.get("kind") in self.kinds)
            and (not self.wanted.clients or record.get("client") in self.wanted.clients)
            and any(self.wanted.fits(record, topic) for topic in _topics_of(record))
        )

    def may_be_in(self, contents: "Contents") -> bool:
        """Whether a segment may have such records, by its index."""
        numbers = self.sequences
        return (
            (numbers is None or (contents.first_sequence < numbers.stop and contents.last_sequence >= numbers.start))
            and (not self.kinds or contents.has_kind(*self.kinds))
            and self.wanted.may_be_in(contents)
        )


@dataclass(slots=True)
class Printing:
    """Prints the records of trails one after the other, and counts. Memory holds a block of lines."""

    selection: Selection
    key: PersonalKey | None
    index: "SegmentIndex | None"
    printed: int = 0
    segments: int = 0
    lines: int = 0
    foreign: int = 0
    changed: int = 0
    gone: list[str] = field(default_factory=list)
    has_keyed_clients: bool = False
    has_keyed_topics: bool = False

    def print_trail(self, folder: Path) -> None:
        """Prints the records of a trail that fit. Raises CommandFailed for unreadable segments, and BrokenPipeError."""
        from spark_audit.trail.segment_forms import DamagedSegment
        from spark_audit.verify.source import LineTooLong, TrailFolder, each_segment

        source = TrailFolder(folder)
        for segment in each_segment(source):
            if not self.selection.concerns(segment.stem):
                continue
            self.segments += 1
            try:
                contents = self.index.contents_of(segment) if self.index is not None else None
                if contents is None or contents.foreign or self.selection.may_be_in(contents):
                    self._print_segment(segment)
                else:
                    self.lines += contents.lines
                    self.has_keyed_clients |= contents.has_keyed_clients
                    self.has_keyed_topics |= contents.has_keyed_topics
            except (DamagedSegment, LineTooLong) as error:
                raise CommandFailed(f"{segment.name} cannot be read to its end: {error}") from None
        self.gone += source.gone

    def _print_segment(self, segment: "SegmentFile") -> None:
        for block in segment.blocks():
            self.has_keyed_clients |= has_keyed(block, "client")
            self.has_keyed_topics |= has_keyed(block, "topic")
            chosen = b"".join(self._chosen(block, segment))
            if chosen:
                write_output(chosen)

    def _chosen(self, block: bytes, segment: "SegmentFile") -> Iterator[bytes]:
        from spark_audit.record.batch_line import records_of
        from spark_audit.trail.segment_forms import OPEN

        *lines, rest = block.split(b"\n")
        if rest and segment.ending != OPEN:  # the last line of an open one is still being written
            lines.append(rest)
        self.lines += len(lines)
        for line in lines:
            records = records_of(line)
            if records is None:
                self.foreign += 1
                continue
            hashes = line_hashes(line)
            is_changed = hashes is None or hashes[0] != hashes[1]
            for record in records:
                if self.selection.holds(record):
                    self.changed += is_changed
                    self.printed += 1
                    yield self._text(record, line)
                    yield b"\n"

    def _text(self, record: dict[str, Any], line: bytes) -> bytes:
        from spark_audit.record.batch_line import is_of_batch, text_of

        if self.key is not None:
            return self._opened(record, self.key)
        return text_of(record) if is_of_batch(line) else line

    def _opened(self, record: dict[str, Any], key: PersonalKey) -> bytes:
        try:
            return orjson.dumps(opened_record(record, key))
        except UnusablePersonalKey as error:
            raise CommandFailed(f"record {record.get('sequence')}: {error}") from None

    def ended(self, hidden: list[str]) -> AuditExitCode:
        """Tells faults and gaps on standard error. Raises CommandFailed if no line was printed."""
        searched = f"{counted(self.lines, 'line')} in {counted(self.segments, 'segment')}"
        if not self.printed:
            raise CommandFailed(f"no record fits ({'; '.join((searched, *hidden))})")
        told = [*hidden, *(f"{name} was removed before it could be read" for name in self.gone)]
        told += [f"CHANGED: {counted(self.changed, 'record')} with another hash than that of the bytes"] * bool(
            self.changed
        )
        told += [f"{counted(self.foreign, 'line')} without a record ('rfhbridge audit verify' tells where)"] * bool(
            self.foreign
        )
        for text in told:
            typer.echo(f"rfhbridge: {text}", err=True)
        return AuditExitCode.VIOLATIONS if self.changed or self.foreign else AuditExitCode.CLEAN


def _topics_of(record: dict[str, Any]) -> list[object]:
    """The topics of a record; a text that is no topic if it has none."""
    topics = record.get("topics")
    return [record.get("topic"), *(topics if isinstance(topics, list) else ())]

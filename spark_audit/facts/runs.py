"""Runs: lines that follow each other without a fault. Numbers, links and times are compared only where one begins."""

from typing import Any, Final

from spark_audit.facts.lines import Line, Record
from spark_audit.facts.tables import TABLES
from spark_audit.personal import NAME_PREFIX
from spark_audit.record import RECORD_VERSION, Kind

_KEYED_LENGTH: Final = len(NAME_PREFIX) + 32
_NAMES: Final = tuple(TABLES["runs"])
_RESTORED: Final = str(Kind.RESTORED)
_NO_PIECE: Final = ("", "", -1)


class Run:
    """A run, with the columns of its row."""

    def __init__(self, line: Line, *, is_cut: bool) -> None:
        self.trail = line.trail
        self.segment = line.segment
        self.block = line.block
        self.place = line.place
        self.is_record = line.record is not None
        self.is_fresh = True
        self.is_cut = is_cut
        self.line: str | None = None
        self.gateway: str | None = None
        self.first_sequence: int | None = None
        self.first_batch: int | None = None
        self.first_at_us: int | None = None
        self.first_prev: str | None = None
        self.is_restored = False
        self.begins_late = False
        self.first_missing_batch: int | None = None
        self.last_missing_batch: int | None = None
        self.last_sequence = 0
        self.last_batch = 0
        self.last_at_us: int | None = None
        self.last_hash: str | None = None
        self.last_line_hash: str | None = None
        self.lowest_at_us: int | None = None
        self.highest_at_us: int | None = None
        self.lines = 0
        self.records = 0
        self.other_versions = 0
        self.sealed = 0
        self.counted = 0
        self.plain = 0
        self.keyed = 0

    def goes_on_with(self, line: Line, record: Record, at_us: int | None, backwards_us: int) -> bool:
        """Whether a record follows the last one without a fault."""
        last_at_us = self.last_at_us
        return (
            self.is_record
            and line.place == self.place + self.records
            and line.block == self.block
            and line.segment == self.segment
            and line.trail == self.trail
            and record["gateway"] == self.gateway
            and record["sequence"] == self.last_sequence + 1
            and record.get("prev") == self.last_hash
            and 0 <= record["batch"] - self.last_batch <= 1
            and record["kind"] != _RESTORED
            and at_us is not None
            and last_at_us is not None
            and last_at_us - at_us <= backwards_us
        )

    def begin(self, record: Record, at_us: int | None) -> None:
        """Takes over what the first record says."""
        self.gateway, self.first_prev = record["gateway"], record.get("prev")
        self.first_sequence, self.first_batch, self.first_at_us = record["sequence"], record["batch"], at_us
        self.lowest_at_us = self.highest_at_us = at_us
        if record["kind"] == _RESTORED:
            self.is_restored = True
            self.begins_late = record.get("event") == "trail_begun_late" and record["sequence"] == 1
            self.first_missing_batch = record.get("first_missing_batch")
            self.last_missing_batch = record.get("last_missing_batch")

    def row(self) -> tuple[Any, ...]:
        """Its row of the table."""
        return tuple([getattr(self, name) for name in _NAMES])


class Runs:
    """Puts lines into runs, in their order. A run that has ended waits to become a row: what is counted may change."""

    def __init__(self, cut: frozenset[str], backwards_us: int) -> None:
        self._cut = cut
        self._backwards_us = backwards_us
        self._run: Run | None = None
        self._ended: list[Run] = []
        #: The piece of the last line and its number there: the records of a line count it once.
        self._piece = _NO_PIECE
        self._line_number = -1

    def take_foreign(self, line: Line) -> None:
        """Takes a line that is no record. It is a run by itself."""
        self._end()
        run = self._run = self._begun(line)
        run.line, run.lines, run.last_line_hash = line.text, 1, line.actual_hash

    def take(self, line: Line, record: Record, at_us: int | None, *, is_counted: bool) -> Run:
        """Puts a record into the run that it goes on with, or into a new one. Returns the run."""
        run = self._run
        if run is None or not run.goes_on_with(line, record, at_us, self._backwards_us):
            self._end()
            run = self._run = self._begun(line)
            run.begin(record, at_us)
        elif at_us is not None:
            lowest, highest = run.lowest_at_us, run.highest_at_us
            if lowest is None or at_us < lowest:
                run.lowest_at_us = at_us
            if highest is None or at_us > highest:
                run.highest_at_us = at_us
        run.last_sequence, run.last_batch, run.last_at_us = record["sequence"], record["batch"], at_us
        run.last_hash, run.last_line_hash = record.get("hash"), line.actual_hash
        run.records += 1
        if line.line_number != self._line_number:
            run.lines += 1
            self._line_number = line.line_number
        if record["version"] != RECORD_VERSION:
            run.other_versions += 1
        if is_counted:
            run.counted += 1
            client: str | None = record.get("client")
            if client is None:
                return run
            if client.startswith(NAME_PREFIX) and len(client) == _KEYED_LENGTH:
                run.keyed += 1
            else:
                run.plain += 1
        return run

    def _begun(self, line: Line) -> Run:
        piece = line.trail, line.segment, line.block
        if piece != self._piece:
            self._piece, self._line_number = piece, -1
        return Run(line, is_cut=line.trail in self._cut)

    def end(self) -> None:
        """The next line begins a new run, and is another line than the last one even if it stands in the same place."""
        self._end()
        self._piece, self._line_number = _NO_PIECE, -1

    def _end(self) -> None:
        if self._run is not None:
            self._ended.append(self._run)
            self._run = None

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the runs that have ended; they are given once."""
        rows = [run.row() for run in self._ended]
        self._ended = []
        return rows

"""Packed batches become the lines of the trail, as the tables in spark_audit/record say.

What a header context says is made into text once and used by all of its notes, so that a record costs a few joins and
one SHA-256. The exporter (exporter.py) is the only caller, away from the hot path.
"""

import hashlib
from bisect import bisect
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

import ormsgpack

from gateway.audit_trail.disclosure import Disclosure, InClear
from gateway.audit_trail.fragments import KEPT_ENTRIES, LONGEST_KEPT, Fragment, Fragments
from spark_audit.record import RECORD_VERSION
from spark_audit.record.header_contexts import HEADER_CONTEXTS, HeaderContext, Part
from spark_audit.record.notes import BATCH_VERSION, FIELD_PLACES, NOTES, Note

#: The beginning of each name under which a header carries data of one message (gateway/bridge/messages/usr_folder.py).
_CARRIED: Final = b"rfhb"
_IN_CLEAR: Final = InClear()
#: Texts of a header context that stand together in a record: for packets before level 5, and from level 5 on.
_Runs = tuple[tuple[str, ...], tuple[str, ...]]


class MalformedBatch(Exception):
    """A message on the audit queue is no batch that this program can read: of another version, or damaged."""


class Expander:
    """Expands the batches of one gateway. `expand` gives each record without its first two and its last two fields."""

    def __init__(self, gateway: str, shown: Disclosure = _IN_CLEAR) -> None:
        self.gateway = gateway
        fragments = Fragments(gateway, shown)
        self._contexts = {name: _ContextTexts(context, fragments) for name, context in HEADER_CONTEXTS.items()}
        self._notes = {int(note.kind): _NoteTexts(note, fragments) for note in NOTES}
        self._known: dict[bytes, _Runs] = {}

    def expand(self, packed: bytes) -> tuple[int, list[str]]:
        """Number of the batch and its records. Raises MalformedBatch; then nothing of the batch is to be written."""
        try:
            version, batch, packed_notes, contexts = ormsgpack.unpackb(packed)
            if version != BATCH_VERSION:
                raise MalformedBatch(f"the batch has version {version!r}, this program reads {BATCH_VERSION}")
            start = f',"batch":{int(batch)},"gateway":"{self.gateway}","kind":"'
            runs = [self._runs(facts) for facts in contexts]
            records: list[str] = []
            notes = self._notes
            for note in ormsgpack.unpackb(packed_notes):
                notes[note[0]].expand(note, runs, start, records)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise MalformedBatch(f"the batch cannot be read ({type(error).__name__}: {error})") from error
        return batch, records

    def _runs(self, facts: list[Any]) -> _Runs:
        key = ormsgpack.packb(facts)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KEPT_ENTRIES:
                self._known.clear()
            texts = self._contexts[facts[0]]
            found = texts.runs(facts)
            if len(key) <= LONGEST_KEPT and not texts.is_of_one_message(facts):
                self._known[key] = found
        return found


class _ContextTexts:
    """Texts of one kind of header context, joined between the places where a note puts texts of its own."""

    def __init__(self, context: HeaderContext, fragments: Fragments) -> None:
        self._items = ("name", *context.facts)
        self._required = 1 + context.required
        self._from_5 = self._of(context, context.parts, fragments)
        plain, earlier = context.before_level_5
        parts = [_with_item(part, earlier, plain) for part in context.parts]
        self._before_5 = self._of(context, parts, fragments) if plain else None

    def _of(self, context: HeaderContext, parts: Sequence[Part], fragments: Fragments) -> list[list[Fragment]]:
        return [[fragments.of(part, self._items) for part in run] for run in runs_of(context, parts)]

    def runs(self, facts: list[Any]) -> _Runs:
        if not self._required <= len(facts) <= len(self._items):
            raise ValueError(f"a header context has {len(facts)} items")
        values = facts + [None] * (len(self._items) - len(facts))
        from_5 = _joined(self._from_5, values)
        return (_joined(self._before_5, values) if self._before_5 else from_5), from_5

    def is_of_one_message(self, facts: list[Any]) -> bool:
        """Whether its header carries what only one message has, so that no other batch will bring it again."""
        told = dict(zip(self._items, facts, strict=False))
        if told["name"] == "translation" and told["command"] != "Publish":
            return False
        if told.get("destination") or told.get("source_exchange"):
            return True
        return any(isinstance(value, bytes) and _CARRIED in value for value in facts)


class _NoteTexts:
    """Texts of one kind of note, each made once, and the places of those that its records are joined of."""

    __slots__ = ("_context", "_fragments", "_length", "_level", "_missing", "_records")

    def __init__(self, note: Note, fragments: Fragments) -> None:
        items = ("kind", "at_us", *note.items, *note.optional)
        self._length = len(items)
        self._missing = [0] * len(note.optional)
        contexts = [items.index(name) for name in note.items if name in HEADER_CONTEXTS]
        self._context = contexts[0] if contexts else 0
        self._level = items.index("protocol_level") if "protocol_level" in note.optional else 0
        parts = list(dict.fromkeys(part for record in note.records for part in record.parts))
        self._fragments: tuple[Fragment, ...] = tuple(fragments.of(part, items) for part in parts)
        self._records: list[tuple[str, Callable[[Sequence[str]], tuple[str, ...]]]] = []
        for record in note.records:
            places = {_place(part): parts.index(part) for part in record.parts}
            if record.context:
                runs = runs_of(record.context, record.context.parts)
                places |= {_place(run[0]): len(parts) + number for number, run in enumerate(runs)}
            self._records.append((f'{record.kind}","at_us":', itemgetter(*(places[key] for key in sorted(places)))))

    def expand(self, note: list[Any], runs: Sequence[_Runs], start: str, records: list[str]) -> None:
        missing = self._length - len(note)
        if missing:
            if not 0 < missing <= len(self._missing):
                raise ValueError(f"a note has {len(note)} items")
            note += self._missing[:missing]
        texts = [fragment(note) for fragment in self._fragments]
        if self._context:
            texts += runs[note[self._context]][note[self._level] > 0 if self._level else 1]
        for kind, chosen in self._records:
            records.append(f"{start}{kind}{note[1]}{''.join(chosen(texts))}")


def runs_of(context: HeaderContext, parts: Sequence[Part]) -> list[list[Part]]:
    """The parts of a header context, cut where a note that uses it puts a part of its own."""
    records = [record for note in NOTES for record in note.records if record.context is context]
    cuts = sorted({_place(part) for record in records for part in record.parts})
    runs: dict[int, list[Part]] = {}
    for part in sorted(parts, key=_place):
        runs.setdefault(bisect(cuts, _place(part)), []).append(part)
    return list(runs.values())


def _joined(runs: list[list[Fragment]], values: list[Any]) -> tuple[str, ...]:
    return tuple(["".join([part(values) for part in run]) for run in runs])


def _place(part: Part) -> int:
    """Where a part stands in a line."""
    return FIELD_PLACES[part.fields[0]]


def _with_item(part: Part, item: str, instead_of: str) -> Part:
    return Part(part.rule, part.fields, (item,)) if part.items == (instead_of,) else part


class Chain:
    """Numbers records and links them by hash: the last step before the disk."""

    def __init__(self, *, sequence: int, head: str) -> None:
        self.sequence = sequence
        self.head = head

    def seal(self, records: list[str]) -> bytes:
        """The lines of these records, each with its sequence, the hash before and its own."""
        sequence, head = self.sequence, self.head
        lines: list[bytes] = []
        for record in records:
            sequence += 1
            text = f'{{"version":{RECORD_VERSION},"sequence":{sequence}{record},"prev":"{head}"'.encode()
            digest = hashlib.sha256(text)
            digest.update(b"}")
            head = digest.hexdigest()
            lines += (text, b',"hash":"', head.encode(), b'"}\n')
        self.sequence, self.head = sequence, head
        return b"".join(lines)

"""Packed batches become records, as the tables of notes and header contexts say.

What a header context says is made once and used by all of its notes. A batch stands by itself: to read it nothing is
needed that another one says.
"""

from collections.abc import Sequence
from typing import Any, Final

import ormsgpack

from spark_audit.record.disclosure import IN_CLEAR, Disclosure
from spark_audit.record.header_contexts import HEADER_CONTEXTS, HeaderContext, Part
from spark_audit.record.line import RECORD_VERSION
from spark_audit.record.notes import BATCH_VERSION, NOTES, Note
from spark_audit.record.record_parts import KEPT_ENTRIES, LONGEST_KEPT, Record, RecordParts, Setter

#: The largest number of a record.
LARGEST: Final = 2**63 - 1
#: The beginning of each name under which a header carries data of one message (gateway/bridge/messages/usr_folder.py).
_CARRIED: Final = b"rfhb"
#: The fields of a header context: for packets before level 5, and from level 5 on.
_Told = tuple[Record, Record]


class MalformedBatch(Exception):
    """Bytes are no batch that this program can read: of another version, or damaged."""


class Expander:
    """Expands the batches of one gateway. `shown` is how personal data stands in the records."""

    def __init__(self, gateway: str, shown: Disclosure = IN_CLEAR) -> None:
        self.gateway = gateway
        parts = RecordParts(gateway, shown)
        self._contexts = {name: _ContextFields(context, parts) for name, context in HEADER_CONTEXTS.items()}
        self._notes = {int(note.kind): _NoteFields(note, parts) for note in NOTES}
        self._known: dict[bytes, _Told] = {}

    def expand(
        self, packed: bytes, sequence: int = 1, most_records: int = LARGEST, most_told_bytes: int = LARGEST
    ) -> tuple[int, list[Record]]:
        """Number of the batch and its records, without `prev` and `hash`; the first has this sequence.

        Raises MalformedBatch, also for more records than that, or more bytes of header contexts in all records.
        """
        try:
            version, batch, packed_notes, contexts = ormsgpack.unpackb(packed)
            if version != BATCH_VERSION:
                raise MalformedBatch(f"the batch has version {version!r}, this program reads {BATCH_VERSION}")
            keys = [ormsgpack.packb(facts) for facts in contexts]
            told = [self._told(key, facts) for key, facts in zip(keys, contexts, strict=True)]
            records: list[Record] = []
            notes, told_bytes = self._notes, 0
            for note in ormsgpack.unpackb(packed_notes):
                fields = notes[note[0]]
                if fields.context:
                    told_bytes += len(keys[note[fields.context]])
                if len(records) > most_records or told_bytes > most_told_bytes:
                    raise MalformedBatch("the batch has more than a line may have")
                fields.expand(note, told, sequence, int(batch), self.gateway, records)
            if len(records) > most_records:
                raise MalformedBatch("the batch has more than a line may have")
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            raise MalformedBatch(f"the batch cannot be read ({type(error).__name__}: {error})") from error
        return int(batch), records

    def _told(self, key: bytes, facts: list[Any]) -> _Told:
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KEPT_ENTRIES:
                self._known.clear()
            fields = self._contexts[facts[0]]
            found = fields.told(facts)
            if len(key) <= LONGEST_KEPT and not fields.is_of_one_message(facts):
                self._known[key] = found
        return found


class _ContextFields:
    """What one kind of header context puts into records."""

    def __init__(self, context: HeaderContext, parts: RecordParts) -> None:
        self._items = ("name", *context.facts)
        self._required = 1 + context.required
        self._from_5 = [parts.of(part, self._items) for part in context.parts]
        plain, earlier = context.before_level_5
        before = [_with_item(part, earlier, plain) for part in context.parts]
        self._before_5 = [parts.of(part, self._items) for part in before] if plain else None

    def told(self, facts: list[Any]) -> _Told:
        if not self._required <= len(facts) <= len(self._items):
            raise ValueError(f"a header context has {len(facts)} items")
        values = facts + [None] * (len(self._items) - len(facts))
        from_5 = _made(self._from_5, values)
        return from_5 if self._before_5 is None else _made(self._before_5, values), from_5

    def is_of_one_message(self, facts: list[Any]) -> bool:
        """Whether its header carries what only one message has, so that no other batch will bring it again."""
        told = dict(zip(self._items, facts, strict=False))
        if told["name"] == "translation" and told["command"] != "Publish":
            return False
        if told.get("destination") or told.get("source_exchange"):
            return True
        return any(isinstance(value, bytes) and _CARRIED in value for value in facts)


class _NoteFields:
    """What one kind of note puts into its records."""

    def __init__(self, note: Note, parts: RecordParts) -> None:
        items = ("kind", "at_us", *note.items, *note.optional)
        self._length = len(items)
        self._missing = [0] * len(note.optional)
        contexts = [items.index(name) for name in note.items if name in HEADER_CONTEXTS]
        self.context = contexts[0] if contexts else 0
        self._level = items.index("protocol_level") if "protocol_level" in note.optional else 0
        first, *others = note.records
        common = [part for part in first.parts if others and not [each for each in others if part not in each.parts]]
        self._common = [parts.of(part, items) for part in common]
        self._records = [
            (
                str(record.kind),
                record.context is not None,
                [parts.of(part, items) for part in record.parts if part not in common],
            )
            for record in note.records
        ]

    def expand(
        self, note: list[Any], told: Sequence[_Told], sequence: int, batch: int, gateway: str, records: list[Record]
    ) -> None:
        missing = self._length - len(note)
        if missing:
            if not 0 < missing <= len(self._missing):
                raise ValueError(f"a note has {len(note)} items")
            note += self._missing[:missing]
        common = _made(self._common, note)
        for kind, has_context, setters in self._records:
            record: Record = {
                "version": RECORD_VERSION,
                "sequence": sequence + len(records),
                "batch": batch,
                "gateway": gateway,
                "kind": kind,
                "at_us": note[1],
            }
            if common:
                record.update(common)
            if has_context:
                record.update(told[note[self.context]][note[self._level] > 0 if self._level else 1])
            for setter in setters:
                setter(note, record)
            records.append(record)


def _made(setters: Sequence[Setter], values: Sequence[Any]) -> Record:
    record: Record = {}
    for setter in setters:
        setter(values, record)
    return record


def _with_item(part: Part, item: str, instead_of: str) -> Part:
    return Part(part.rule, part.fields, (item,)) if part.items == (instead_of,) else part

"""The report of a conversion: what became of every field of the input, and why."""

from dataclasses import dataclass
from enum import StrEnum

from mappings.table import TABLE_VERSION, Dialect


class Mode(StrEnum):
    """STRICT copies the nine mapped names; EXTENDED also SubName, SubIdentity and SubUserData, and moves Local."""

    STRICT = "strict"
    EXTENDED = "extended"


class Folders(StrEnum):
    """What becomes of the folders beside psc (mcd, usr, jms, ...) on the way to MQRFH, which has no place for them."""

    DROPPED = "dropped"
    KEPT = "kept"  # they follow the MQRFH in an MQRFH2 of their own


class Outcome(StrEnum):
    """What became of one field."""

    COPIED = "copied"  # under the same name
    RENAMED = "renamed"  # under the name of the other format
    MOVED = "moved"  # to another field of the other format
    EXPANDED = "expanded"  # a number to tokens, or a pattern to the patterns of the other scheme
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOutcome:
    """One field of the input; `target` is what it became, with its value where that changed, and None when dropped."""

    name: str
    value: str
    outcome: Outcome
    target: str | None
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionReport:
    """All fields of the input in order; empty when the input was in the wanted format already."""

    source_format: str
    target_format: str
    mode: Mode
    table_version: str = TABLE_VERSION
    fields: tuple[FieldOutcome, ...] = ()

    @property
    def dropped(self) -> tuple[FieldOutcome, ...]:
        """The fields that the new header does not have."""
        return tuple(field for field in self.fields if field.outcome is Outcome.DROPPED)

    def as_dict(self) -> dict[str, object]:
        """The report as plain values, for JSON."""
        return {
            "source_format": self.source_format,
            "target_format": self.target_format,
            "mode": self.mode.value,
            "table_version": self.table_version,
            "fields": [
                {
                    "name": field.name,
                    "value": field.value,
                    "outcome": field.outcome.value,
                    "target": field.target,
                    "reason": field.reason,
                    "source": field.source,
                }
                for field in self.fields
            ],
        }


def empty_report(dialect: Dialect, mode: Mode) -> ConversionReport:
    """The report of a header that was in the wanted format already."""
    return ConversionReport(source_format=dialect.value, target_format=dialect.value, mode=mode)

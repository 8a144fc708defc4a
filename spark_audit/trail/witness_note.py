"""What the gateway notes of each witness of its digests: how far the witness has come, and what keeps it.

`trail-witnesses/NAME.json` beside the folder of the trail: one JSON object with the fields of WitnessNote. A note is
the gateway's own word, good for an alarm. An auditor asks the witness itself.

`trail-countersignature.json` has the same form for a token or agent that countersigns: its digest is the last one that
has a countersignature, and the time is that of the digest which brought it.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import orjson

from spark_audit.period import second_text

NOTES_FOLDER: Final = "trail-witnesses"
_SUFFIX: Final = ".json"
_COUNTERSIGNATURE_NOTE: Final = "trail-countersignature.json"
#: Name and kind in that note.
SIGNING_TOKEN: Final = "signing token"
_VERSION: Final = 1
_SECOND_US: Final = 1_000_000
_LARGEST_NOTE_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessNote:
    """One note. Times are microseconds since 1970 UTC; 0 and "" mean that there is none."""

    name: str
    kind: str
    #: The last digest that the witness has, and the end of the time that it speaks of.
    number: int = 0
    digest_at_us: int = 0
    #: When the witness was looked at last, and what makes it worth less than it should be.
    checked_at_us: int = 0
    risk: str = ""
    #: Why the last attempt failed; "" where it did not.
    failure: str = ""

    def to_bytes(self) -> bytes:
        """The bytes of the file."""
        return orjson.dumps({"version": _VERSION, **asdict(self)}) + b"\n"

    def age_s(self, now_us: int) -> float:
        """How old the last digest is that the witness has, seconds; endless where it has none."""
        return max(0, now_us - self.digest_at_us) / _SECOND_US if self.number else math.inf

    def __str__(self) -> str:
        """What the gateway says of its witness, for `verify`."""
        has = (
            f"has digests up to {self.number}, of {second_text(self.digest_at_us)}" if self.number else "has no digest"
        )
        why = self.risk or self.failure
        return f"witness {self.name} {has}, as the gateway says; ask it yourself" + (f" ({why})" if why else "")


def note_path(trail: Path, name: str) -> Path:
    """Where the note of a witness lies, for the trail in a folder."""
    return trail.parent / NOTES_FOLDER / f"{name}{_SUFFIX}"


def countersignature_note_path(trail: Path) -> Path:
    """Where the note of a token or agent lies, for the trail in a folder."""
    return trail.parent / _COUNTERSIGNATURE_NOTE


def countersignature_age_s(trail: Path, now_us: int) -> float:
    """How old the last countersignature of a token or agent is, seconds; endless where there is none."""
    note = read_note(countersignature_note_path(trail))
    return math.inf if note is None else note.age_s(now_us)


def read_note(path: Path) -> WitnessNote | None:
    """The note in a file; None where there is none, or it cannot be read."""
    try:
        with path.open("rb") as file:
            said: Any = orjson.loads(file.read(_LARGEST_NOTE_BYTES))
    except (OSError, orjson.JSONDecodeError):
        return None
    names = {field.name: field.type for field in fields(WitnessNote)}
    if not isinstance(said, dict) or said.pop("version", None) != _VERSION or said.keys() != names.keys():
        return None
    if not all(
        type(value) is (int if name.endswith("_us") or name == "number" else str) for name, value in said.items()
    ):
        return None
    return WitnessNote(**said)


def notes_beside(trail: Path) -> tuple[WitnessNote, ...]:
    """The notes of all witnesses of a trail, by name."""
    folder = trail.parent / NOTES_FOLDER
    found = (read_note(path) for path in sorted(folder.glob(f"*{_SUFFIX}")))
    return tuple(note for note in found if note is not None)


def ages_s(trail: Path, names: Iterable[str], now_us: int) -> dict[str, float]:
    """How old the last digest is that each of these witnesses has, seconds; endless where one has none."""
    notes = {note.name: note for note in notes_beside(trail)}
    return {name: notes[name].age_s(now_us) if name in notes else math.inf for name in names}

"""Reads and checks two tables: `fields.toml` (which name becomes which) and `options.toml` (tokens and numbers).

Both are packaged with the code and read once, at import. A fault in them is ours, so the import fails with TableError
before any message is read.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from itertools import groupby


class TableError(Exception):
    """A packaged table contradicts itself: our own fault."""


class Dialect(StrEnum):
    """The two header formats in which a command can be written."""

    MQRFH = "mqrfh"
    MQRFH2 = "mqrfh2"


class Standing(StrEnum):
    """What happens to a name when a header is converted; the values of `standing` in fields.toml."""

    MAPPED = "mapped"
    EXTENDED = "extended"
    RESPONSE = "response"
    DROPPED = "dropped"
    REFUSED = "refused"


VERBS = ("Publish", "DeletePub", "RegSub", "DeregSub", "ReqUpdate", "RegPub", "DeregPub")
OPTION_KINDS = ("registration", "publication", "delete")
MAPPED_NAMES = 9  # the table of the message format page has nine rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """One row of fields.toml; a name is None where that format has none.

    `commands` take the parameter, and it may stand more than once in those of `repeats`.
    """

    mqrfh: str | None
    mqrfh2: str | None
    standing: Standing
    repeats: frozenset[str]
    commands: frozenset[str]
    reason: str
    source: str

    @property
    def key(self) -> str:
        """The name without a format: that of psc, or else that of MQRFH without MQPS."""
        return self.mqrfh2 or (self.mqrfh or "").removeprefix("MQPS")

    def name_in(self, dialect: Dialect) -> str | None:
        """The name of the field in one of the formats."""
        return self.mqrfh if dialect is Dialect.MQRFH else self.mqrfh2


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRow:
    """One row of options.toml; `member` is the name in the flag class, `number` the value of IBM's constant.

    `needs` is the key of the parameter without which the option means nothing, None for most.
    """

    kind: str
    token: str
    member: str
    constant: str
    number: int
    formats: frozenset[Dialect]
    commands: frozenset[str]
    notes: tuple[int, ...]
    needs: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Why a folder or an unlisted name is not copied."""

    reason: str
    source: str


Row = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class JmsRow:
    """An element of a folder that makes a message of JMS of a publication; `holds` is what it tells of it."""

    folder: str
    element: str
    holds: str
    reason: str
    source: str


def _rows(document: Row, key: str) -> list[Row]:
    rows = document.get(key)
    if not isinstance(rows, list):
        raise TableError(f"the table has no [[{key}]] rows")
    return rows


def _text(row: Row, key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise TableError(f"{key} is missing or not a text in {row}")
    return value


def _optional_text(row: Row, key: str) -> str | None:
    return _text(row, key) if key in row else None


def _texts(row: Row, key: str) -> frozenset[str]:
    values = row.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TableError(f"{key} is not a list of texts in {row}")
    return frozenset(values)


def _commands(row: Row) -> frozenset[str]:
    commands = _texts(row, "commands")
    if not commands <= set(VERBS):
        raise TableError(f"unknown command in {row}")
    return commands


def _repeats(row: Row) -> frozenset[str]:
    """The commands in which a parameter may stand more than once: true is every command, false none."""
    if isinstance(row.get("repeats"), bool):
        return frozenset(VERBS) if row["repeats"] else frozenset()
    repeats = _texts(row, "repeats")
    if not repeats <= _commands(row):
        raise TableError(f"a command repeats what it does not take in {row}")
    return repeats


def read_field_rows(document: Row) -> tuple[FieldRow, ...]:
    """The rows of fields.toml, checked: nine mapped names, no name twice."""
    rows = tuple(
        FieldRow(
            mqrfh=_optional_text(row, "mqrfh"),
            mqrfh2=_optional_text(row, "mqrfh2"),
            standing=Standing(_text(row, "standing")),
            repeats=_repeats(row),
            commands=_commands(row),
            reason=_text(row, "reason"),
            source=_text(row, "source"),
        )
        for row in _rows(document, "field")
    )
    _refuse_repeats(row.mqrfh for row in rows if row.mqrfh)
    _refuse_repeats(row.mqrfh2 for row in rows if row.mqrfh2)
    if sum(row.standing is Standing.MAPPED for row in rows) != MAPPED_NAMES:
        raise TableError(f"fields.toml must have {MAPPED_NAMES} mapped names")
    return rows


def read_option_rows(document: Row) -> tuple[OptionRow, ...]:
    """The rows of options.toml, checked: known kinds, one bit a number, no token twice in a kind, known parameters."""
    rows = tuple(_option_row(row) for row in _rows(document, "option"))
    unknown = {row.needs for row in rows if row.needs is not None} - set(ROWS_BY_KEY)
    if unknown:
        raise TableError(f"options.toml has options that need {sorted(unknown)}, which fields.toml does not have")
    _refuse_repeats(f"{row.kind} {row.token}" for row in rows)
    _refuse_repeats(f"{row.kind} {row.number}" for row in rows)
    return rows


def read_jms_rows(document: Row) -> tuple[JmsRow, ...]:
    """The rows of the folders of JMS, checked: no element twice, and those of a folder side by side."""
    names = ("folder", "element", "holds", "reason", "source")
    rows = tuple([JmsRow(**{name: _text(row, name) for name in names}) for row in _rows(document, "jms")])
    _refuse_repeats([f"{row.folder}.{row.element}" for row in rows])
    _refuse_repeats([folder for folder, _ in groupby(rows, key=lambda row: row.folder)])
    return rows


def _option_row(row: Row) -> OptionRow:
    number, notes = row.get("number"), row.get("notes")
    if not isinstance(number, int) or number.bit_count() != 1 or row.get("kind") not in OPTION_KINDS:
        raise TableError(f"an option needs a known kind and a number of one bit: {row}")
    if not isinstance(notes, list):
        raise TableError(f"notes is not a list in {row}")
    return OptionRow(
        kind=_text(row, "kind"),
        token=_text(row, "token"),
        member=_text(row, "member"),
        constant=_text(row, "constant"),
        number=number,
        formats=frozenset(Dialect(name) for name in _texts(row, "formats")),
        commands=_commands(row),
        notes=tuple(int(note) for note in notes),
        needs=_optional_text(row, "needs"),
    )


def read_support_notes(document: Row, rows: tuple[OptionRow, ...]) -> dict[int, str]:
    """The numbered notes under the support table. TableError where an option has a note that is missing."""
    notes = document.get("notes")
    if not isinstance(notes, dict) or not all(isinstance(text, str) for text in notes.values()):
        raise TableError("options.toml has no [notes] of texts")
    numbered = {int(number): str(text) for number, text in notes.items()}
    missing = {note for row in rows for note in row.notes} - set(numbered)
    if missing:
        raise TableError(f"options.toml has no text for the notes {sorted(missing)}")
    return numbered


def _refuse_repeats(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(f"{name} stands twice in a table")
        seen.add(name)


def _omissions(document: Row, key: str, name: str) -> dict[str, Omission]:
    return {
        _text(row, name): Omission(reason=_text(row, "reason"), source=_text(row, "source"))
        for row in _rows(document, key)
    }


def _packaged(name: str) -> Row:
    return tomllib.loads(files("mappings").joinpath(name).read_text("utf-8"))


_FIELDS = _packaged("fields.toml")
_OPTIONS = _packaged("options.toml")

TABLE_VERSION: str = _text(_FIELDS, "version")
FIELD_ROWS = read_field_rows(_FIELDS)
ROWS_BY_KEY: dict[str, FieldRow] = {row.key: row for row in FIELD_ROWS}
JMS_ROWS = read_jms_rows(_FIELDS)
OPTION_ROWS = read_option_rows(_OPTIONS)
SUPPORT_NOTES = read_support_notes(_OPTIONS, OPTION_ROWS)
FOLDER_OMISSIONS = _omissions(_FIELDS, "folder", "name")
OTHER_OMISSIONS = _omissions(_FIELDS, "other", "kind")

ROWS_BY_NAME: dict[Dialect, dict[str, FieldRow]] = {
    dialect: {name: row for row in FIELD_ROWS if (name := row.name_in(dialect)) is not None} for dialect in Dialect
}

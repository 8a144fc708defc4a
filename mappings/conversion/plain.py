"""The fast path of `chain`: converts a plain header whose fields get another name and nothing else.

Step 7a on the way of a PUBLISH. Where the table knows every field, and copies or drops its value, the new header and
the report follow from the table alone. A number to expand, an option that the other format lacks, a pattern or a value
to escape needs more: then there is no plain conversion, and `chain` works field by field. Both give the same bytes and
the same report; tests compare them on any bytes.
"""

import re
from typing import Final, NamedTuple

from mappings.commands.options import OPTION_FIELDS
from mappings.commands.parameters import MQRFH_ONLY_VERBS
from mappings.conversion.report import FieldOutcome, Outcome
from mappings.headers.charset import ascii_based_codec
from mappings.headers.name_value import NameValues
from mappings.headers.plain import PlainHeader, write_plain_mqrfh, write_plain_mqrfh2
from mappings.table import OPTION_ROWS, ROWS_BY_NAME, VERBS, Dialect, FieldRow, Standing

#: What a value must not hold to be the same text in both formats: escapes, wildcards, markup, quotes, references.
_SPECIAL: Final = re.compile('[%*?+#&<>"\U00010000-\U0010ffff]')


class PlainConversion(NamedTuple):
    """The new header, and what became of each field."""

    header: bytes
    outcomes: tuple[FieldOutcome, ...]


class _Field(NamedTuple):
    """A field with its value in the new header: the text (empty when dropped), and its outcome."""

    text: str
    outcome: FieldOutcome


class _Rename(NamedTuple):
    """What becomes of one name whatever its value: the text around it in the new header, and the outcome."""

    before: str
    after: str
    repeats: frozenset[str]
    outcome: Outcome
    name: str
    target: str | None
    reason: str
    source: str


class _Direction(NamedTuple):
    """The table of one direction: commands and options ready made, because they are few, and other names."""

    commands: dict[tuple[str, str], _Field]
    options: dict[tuple[str, str], _Field]
    names: dict[str, _Rename]


def plain_to_mqrfh2(header: PlainHeader, encoding: int) -> PlainConversion | None:
    """The command of a plain MQRFH as an MQRFH2; None where a field needs more than another name, in either mode."""
    texts: list[str] = []
    outcomes = _convert_fields(header.pairs, _TO_MQRFH2, texts)
    if outcomes is None:
        return None
    folder = f"<psc>{''.join(texts)}</psc>".encode()
    return PlainConversion(write_plain_mqrfh2(folder, header, encoding), outcomes)


def plain_to_mqrfh(header: PlainHeader, coded_char_set_id: int, encoding: int) -> PlainConversion | None:
    """The command of a plain MQRFH2 as an MQRFH in the page of the MQMD; None where a field needs more."""
    texts: list[str] = []
    outcomes = _convert_fields(header.pairs, _TO_MQRFH, texts)
    if outcomes is None:
        return None
    try:
        string = " ".join(texts).encode(ascii_based_codec(coded_char_set_id) or "ascii")
    except UnicodeEncodeError:
        return None
    return PlainConversion(write_plain_mqrfh(string, header, encoding), outcomes)


def _convert_fields(pairs: NameValues, direction: _Direction, texts: list[str]) -> tuple[FieldOutcome, ...] | None:
    """The outcomes of the fields in order, the command first; their texts are added to `texts`.

    None when a field is not plain, or is repeated against the rules.
    """
    command = direction.commands.get(pairs[0]) if pairs else None
    if command is None:
        return None
    _, verb = pairs[0]
    texts.append(command.text)
    outcomes = [command.outcome]
    seen: set[str] = set()
    for pair in pairs[1:]:
        option = direction.options.get(pair)
        if option is not None:
            texts.append(option.text)
            outcomes.append(option.outcome)
            continue
        name, value = pair
        rename = direction.names.get(name)
        if rename is None or not value or not value.isprintable() or _SPECIAL.search(value):
            return None
        once = value if verb in rename.repeats else name
        if once in seen:
            return None
        seen.add(once)
        if rename.before:
            texts.append(_text(rename, value))
        outcomes.append(_outcome(rename, value))
    return tuple(outcomes)


def _text(rename: _Rename, value: str) -> str:
    if rename.after or " " not in value:
        return f"{rename.before}{value}{rename.after}"
    return f'{rename.before}"{value}"'


def _outcome(rename: _Rename, value: str) -> FieldOutcome:
    return FieldOutcome(
        name=rename.name,
        value=value,
        outcome=rename.outcome,
        target=rename.target,
        reason=rename.reason,
        source=rename.source,
    )


def _ready_made(rename: _Rename, value: str) -> _Field:
    return _Field(text=_text(rename, value), outcome=_outcome(rename, value))


def _rename(row: FieldRow, source: Dialect) -> _Rename:
    dropped = row.standing is Standing.DROPPED
    to_mqrfh2 = source is Dialect.MQRFH
    before, after = (f"<{row.key}>", f"</{row.key}>") if to_mqrfh2 else (f"{row.mqrfh} ", "")
    return _Rename(
        before="" if dropped else before,
        after="" if dropped else after,
        repeats=row.repeats,
        outcome=Outcome.DROPPED if dropped else Outcome.RENAMED,
        name=row.name_in(source) or row.key,
        target=None if dropped else row.key if to_mqrfh2 else row.mqrfh,
        reason=row.reason,
        source=row.source,
    )


def _direction(source: Dialect) -> _Direction:
    """The table of one direction, without what depends on the mode: Local, and all that strict mode drops."""
    rows = {
        name: row for name, row in ROWS_BY_NAME[source].items() if row.standing in (Standing.MAPPED, Standing.DROPPED)
    }
    verbs = [verb for verb in VERBS if verb not in MQRFH_ONLY_VERBS]
    tokens = [
        (option.kind, option.token)
        for option in OPTION_ROWS
        if option.formats == frozenset(Dialect) and option.token != "Local" and option.needs is None
    ]
    return _Direction(
        commands={
            (name, verb): _ready_made(_rename(row, source), verb)
            for name, row in rows.items()
            for verb in verbs
            if row.key == "Command"
        },
        options={
            (name, token): _ready_made(_rename(row, source), token)
            for name, row in rows.items()
            for kind, token in tokens
            if kind == OPTION_FIELDS.get(row.key)
        },
        names={
            name: _rename(row, source)
            for name, row in rows.items()
            if row.key not in OPTION_FIELDS and row.key != "Command"
        },
    )


_TO_MQRFH2: Final = _direction(Dialect.MQRFH)
_TO_MQRFH: Final = _direction(Dialect.MQRFH2)

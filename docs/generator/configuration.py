"""The page of the configuration file: every table and key, from the settings' own fields."""

import typing
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Final

from annotated_types import Ge, Gt, Le, MaxLen
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from docs.generator.markdown import code, sentence, table
from gateway.config.example import toml_value
from gateway.config.settings import TABLE_ARRAYS, Settings
from gateway.config.values import Table

INTRODUCTION: Final = """
The gateway reads one TOML file, which `--config` names. Without a file each key has its default.
A relative path begins at the folder in which the gateway was started.

- `rfhbridge check --config FILE` says what is wrong, and on which line.
- `rfhbridge check --example` prints a file with every key, its default and its meaning.
- An unknown key is an error. The error names the nearest known key.
- No value is converted from another type: `"1"` is not a number. A whole number is a valid decimal number.
- `[[name]]` may stand in the file any number of times, `[name]` once.
""".strip()

#: Kinds of texts, by the name of the function that checks them; the others are called as their function is.
_KINDS: Final = {
    "listen": "address `HOST:PORT` or `[IPV6]:PORT`",
    "address": "address `HOST:PORT` or `[IPV6]:PORT`",
    "mq_name": "MQ name",
    "dollar_filter": "topic filter that begins with `$`",
    "user_identifier": "user identifier, at most 12 characters",
    "connection_name": "`HOST(PORT)`",
    "network": "address or network",
    "channel_pattern": "name of a channel, or its beginning and `*`",
    "checked_user_pattern": "name of a user, or its beginning and `*`",
}
#: Units, by the end of a key.
_UNITS: Final = ("bytes", "characters", "days", "hours", "minutes", "ms", "s")
_UNIT_NAMES: Final = {"ms": "milliseconds", "s": "seconds"}


def lines() -> list[str]:
    """The page, without its title."""
    return [
        *INTRODUCTION.splitlines(),
        "",
        "## At the head of the file",
        "",
        *_keys("", Settings),
        *(line for path, inner in _tables(Settings, "") for line in _section(path, inner)),
    ]


def _tables(holder: type[Table], parent: str) -> Iterator[tuple[str, type[Table]]]:
    """Every table in the order of the file, with its path."""
    for name, field in holder.model_fields.items():
        path = parent + (field.alias or name)
        inner = _table_of(path, field)
        if inner is not None:
            yield path, inner
            yield from _tables(inner, f"{path}.")


def _table_of(path: str, field: FieldInfo) -> type[Table] | None:
    return TABLE_ARRAYS.get(path) or (type(field.default) if isinstance(field.default, Table) else None)


def _section(path: str, inner: type[Table]) -> list[str]:
    title = f"[[{path}]]" if path in TABLE_ARRAYS else f"[{path}]"
    return ["", f"## `{title}`", "", sentence(inner.__doc__ or ""), "", *_keys(f"{path}.", inner)]


def _keys(parent: str, holder: type[Table]) -> list[str]:
    """The table of the keys that are no tables themselves."""
    named = [(field.alias or name, field) for name, field in holder.model_fields.items()]
    rows = [
        (code(key), value_of(key, field), _default(field), sentence(field.description or ""))
        for key, field in named
        if _table_of(parent + key, field) is None
    ]
    return table(["Key", "Value", "Default", "Meaning"], rows)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "none: required"
    may_be_written = field.default != () or not field.examples
    return code(toml_value(field.default)) if may_be_written else "none"


def value_of(key: str, field: FieldInfo) -> str:
    """The values that a key may have: kind, unit and range."""
    return _kind(key, field.annotation, tuple(field.metadata))


def _kind(key: str, annotation: Any, metadata: tuple[Any, ...]) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _kind(key, arguments[0], arguments[1:])
    if origin is typing.Literal:
        return " or ".join(code(toml_value(value)) for value in arguments)
    if origin in {typing.Union, UnionType}:
        return " or ".join(_kind(key, each, ()) for each in arguments)
    if origin is tuple:
        return f"array of: {_kind(key, arguments[0], ())}"
    if origin is dict:
        return f"table: {_kind(key, arguments[0], ())} = {_kind(key, arguments[1], ())}"
    if annotation is bool:
        return "`true` or `false`"
    if annotation in {int, float}:
        return _number(key, annotation, metadata)
    return "path" if annotation is Path else _text(metadata)


def _number(key: str, annotation: type, metadata: tuple[Any, ...]) -> str:
    """Unit and range; a number that may have decimals says so where its unit does not."""
    ending = next((unit for unit in _UNITS if f"_{unit}_" in f"{key}_"), "")
    kind = _UNIT_NAMES.get(ending, ending) or ("number" if annotation is int else "decimal number")
    least = next((f"{each.ge:,}" for each in metadata if isinstance(each, Ge)), "")
    above = next((f"more than {each.gt:,}" for each in metadata if isinstance(each, Gt)), "")
    most = next((f"{each.le:,}" for each in metadata if isinstance(each, Le)), "")
    if least and most:
        return f"{kind}, {least} to {most}"
    bounds = [above, least and f"{least} or more", most and f"at most {most}"]
    return ", ".join(each for each in (kind, *bounds) if each)


def _text(metadata: tuple[Any, ...]) -> str:
    checks = [each.func.__name__.removeprefix("_checked_") for each in metadata if isinstance(each, AfterValidator)]
    kind = _KINDS.get(checks[-1], checks[-1].replace("_", " ")) if checks else "text"
    longest = next((each.max_length for each in metadata if isinstance(each, MaxLen)), None)
    return f"{kind}, at most {longest} characters" if longest else kind

"""The example of a configuration file: every key with its meaning and its default."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic.fields import FieldInfo

from gateway.config.settings import TABLE_ARRAYS, Settings
from gateway.config.values import Table


def example_toml() -> str:
    """A configuration file that has every key with its meaning and its default."""
    lines = ["# rfhbridge: every key with its default"]
    tables = {name: field for name, field in Settings.model_fields.items() if isinstance(field.default, Table)}
    for name, field in Settings.model_fields.items():
        if name not in tables and name not in TABLE_ARRAYS:
            lines += ["", f"# {field.description}", f"{name} = {toml_value(field.default)}"]
    for name, field in tables.items():
        lines += ["", f"[{name}]", *_example_table(name, type(field.default))]
    for name, table in TABLE_ARRAYS.items():
        if name in Settings.model_fields:
            lines += ["", f"# {Settings.model_fields[name].description}; remove the first # of each line"]
            lines += [f"# {line}" for line in (f"[[{name}]]", *_example_table(name, table))]
    return "\n".join(lines) + "\n"


#: Values of keys that have no default.
_EXAMPLE_VALUES: Final = {
    "from": "ORDERS.MQRFH",
    "to": "ORDERS.MQRFH2",
    "header": "mqrfh2",
    "name": "PLANT",
    "target": "PLANT",
}


def _example_table(name: str, table: type[Table]) -> Iterator[str]:
    """The keys of a table, and then the tables in it."""
    inner: list[str] = []
    for key, field in table.model_fields.items():
        written = field.alias or key
        path = f"{name}.{written}"
        if path in TABLE_ARRAYS:
            lines = [f"# {field.description}", f"[[{path}]]", *_example_table(path, TABLE_ARRAYS[path])]
            is_in_a_row = name.partition(".")[0] in TABLE_ARRAYS  # whose lines are all behind a # already
            inner += lines if is_in_a_row else [f"# {line}" for line in lines]
        elif isinstance(field.default, Table):
            inner += [f"[{path}]", *_example_table(path, type(field.default))]
        else:
            yield f"# {field.description}"
            yield f"{written} = {toml_value(_example_value(written, field))}"
    yield from inner


def _example_value(key: str, field: FieldInfo) -> object:
    if field.examples and (field.is_required() or field.default == ()):  # some arrays may not be written empty
        return field.examples[0]
    return _EXAMPLE_VALUES[key] if field.is_required() else field.default


def toml_value(value: object) -> str:
    """A value as TOML writes it. TOML writes strings, numbers, booleans and arrays of our kind as JSON does."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return json.dumps(str(value) if isinstance(value, Path) else value)

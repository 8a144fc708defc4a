"""The configuration file with every key, its default, and what it is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.config.settings import TABLE_ARRAYS, Settings
from gateway.config.values import Table


def example_toml() -> str:
    """A configuration file with every key, its default, and what it is."""
    lines = ["# rfhbridge: every key with its default"]
    tables = {name: field for name, field in Settings.model_fields.items() if isinstance(field.default, Table)}
    for name, field in Settings.model_fields.items():
        if name not in (*tables, *TABLE_ARRAYS):
            lines += ["", f"# {field.description}", f"{name} = {_toml_value(field.default)}"]
    for name, field in tables.items():
        lines += ["", f"[{name}]", *_example_table(type(field.default))]
    for name, table in TABLE_ARRAYS.items():
        lines += ["", f"# {Settings.model_fields[name].description}; remove the first # of each line", f"# [[{name}]]"]
        lines += [f"# {line}" for line in _example_table(table)]
    return "\n".join(lines) + "\n"


#: What the example says where a key has no default.
_EXAMPLE_VALUES: Final = {
    "from": "ORDERS.MQRFH",
    "to": "ORDERS.MQRFH2",
    "header": "mqrfh2",
    "name": "PLANT",
    "target": "PLANT",
}


def _example_table(table: type[Table]) -> Iterator[str]:
    for key, field in table.model_fields.items():
        name = field.alias or key
        yield f"# {field.description}"
        yield f"{name} = {_toml_value(_EXAMPLE_VALUES[name] if field.is_required() else field.default)}"


def _toml_value(value: object) -> str:
    """TOML writes strings, numbers, booleans and arrays of our kind as JSON does."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return json.dumps(str(value) if isinstance(value, Path) else value)

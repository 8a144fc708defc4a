"""Errors in a configuration file, as sentences for its author."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic_core import ErrorDetails

#: Words for errors of pydantic whose own words are about Python instead of TOML.
_IN_TOML_TERMS: Final = {
    "model_type": "must be a table",
    "tuple_type": "must be an array",
    "is_instance_of": "must be text",
}
#: Of the 64 bits of an integer of TOML 1.0 one is its sign.
_INTEGER_BITS: Final = 63
#: The beginning of a sentence, here and in checks.py.
_KEY: Final = re.compile(r"unknown key '([^']+)'|([\w.#-]+): ")


def sentence(problem: ErrorDetails, known_keys: tuple[str, ...]) -> str:
    """The sentence of a problem that pydantic found, with its key.

    For an unknown key it names the nearest known one.
    """
    path = _path(problem["loc"])
    without_index = ".".join(part for part in problem["loc"] if isinstance(part, str))
    if problem["type"] == "extra_forbidden":
        return f"unknown key {path!r}{_nearest(without_index, known_keys)}"
    if problem["type"] == "value_error":
        words = problem["msg"].removeprefix("Value error, ")
        return f"{path}: {words}" if path else words
    if problem["type"] == "missing":
        return f"{path}: is missing"
    if problem["type"] == "too_short":
        return f"{path}: must not be empty"
    holds_tables = any(key.startswith(f"{without_index}.") for key in known_keys)
    if problem["type"] == "tuple_type" and isinstance(problem["input"], dict) and holds_tables:
        return f"{path}: must be an array of tables: write [[{without_index}]]"
    message = _IN_TOML_TERMS.get(problem["type"]) or problem["msg"].replace("Input should be", "must be")
    if problem["type"] == "literal_error":
        message = message.replace("True, False", "true, false")
    value = problem["input"]
    return f"{path}: {message}, not {str(value).lower() if isinstance(value, bool) else repr(value)}"


def unusable_values(tables: Mapping[str, object]) -> Iterator[str]:
    """Problems of values that tomllib reads but nothing can use: integers beyond 64 bits, texts with U+0000."""
    values: list[tuple[str, object]] = list(tables.items())
    for path, value in values:  # a list that grows, because keys with dots may be deeper than calls
        if isinstance(value, dict):
            values += [(f"{path}.{key}", inner) for key, inner in value.items()]
        elif isinstance(value, list):
            values += [(f"{path}#{number}", inner) for number, inner in enumerate(value, 1)]
        elif isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
            yield f"{path}: does not fit into the 64 bits of an integer"
        elif isinstance(value, str) and "\0" in value:
            yield f"{path}: has the character U+0000"


def key_of(problem: str) -> str:
    """The key at the beginning of a sentence, or the unknown key; "" if the sentence names no key."""
    found = _KEY.match(problem)
    return "" if found is None else found[1] or found[2]


def path_of(problem: str) -> tuple[str | int, ...]:
    """The same as names and indices from 0, as pydantic has them."""
    parts: list[str | int] = []
    for part in filter(None, key_of(problem).split(".")):
        name, _, number = part.partition("#")
        parts += [name, int(number) - 1] if number.isdecimal() else [name]
    return tuple(parts)


def _path(location: tuple[str | int, ...]) -> str:
    """Names between dots; the second of several tables or items has #2 behind it, as readers of the file count."""
    return ".".join(part if isinstance(part, str) else f"#{part + 1}" for part in location).replace(".#", "#")


def _nearest(path: str, keys: tuple[str, ...]) -> str:
    """The known key that is most like an unknown one: by its full path, else by its last name."""
    close = difflib.get_close_matches(path, keys, n=1, cutoff=0.6)
    if not close:
        last = path.rpartition(".")[2]
        names = difflib.get_close_matches(last, [key.rpartition(".")[2] for key in keys], n=1, cutoff=0.0)
        close = [key for key in keys if key.rpartition(".")[2] == names[0]]
    return f", the nearest known key is {close[0]!r}"

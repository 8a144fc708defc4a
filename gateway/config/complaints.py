"""What is wrong with a configuration file, in sentences for its author."""

import difflib
from typing import Final

from pydantic_core import ErrorDetails

#: Pydantic's kinds of error whose own words speak of Python instead of TOML.
_IN_TOML_TERMS: Final = {
    "model_type": "must be a table",
    "tuple_type": "must be an array",
    "is_instance_of": "must be text",
    "too_short": "must hold something",
}


def sentence(problem: ErrorDetails, known_keys: tuple[str, ...]) -> str:
    """One problem that pydantic found, with the key; for an unknown key the nearest known one."""
    path = _path(problem["loc"])
    if problem["type"] == "extra_forbidden":
        without_index = ".".join(part for part in problem["loc"] if isinstance(part, str))
        return f"unknown key {path!r}{_nearest(without_index, known_keys)}"
    if problem["type"] == "value_error":
        words = problem["msg"].removeprefix("Value error, ")
        return f"{path}: {words}" if path else words
    if problem["type"] == "missing":
        return f"{path}: is missing"
    message = _IN_TOML_TERMS.get(problem["type"]) or problem["msg"].replace("Input should be", "must be")
    if problem["type"] == "literal_error":
        message = message.replace("True, False", "true, false")
    value = problem["input"]
    return f"{path}: {message}, not {str(value).lower() if isinstance(value, bool) else repr(value)}"


def _path(location: tuple[str | int, ...]) -> str:
    """Names between dots; the second of several tables or items has #2 behind it, as whoever reads the file counts."""
    return ".".join(part if isinstance(part, str) else f"#{part + 1}" for part in location).replace(".#", "#")


def _nearest(path: str, keys: tuple[str, ...]) -> str:
    """The known key that looks most like an unknown one: by its full path, else by its last name."""
    close = difflib.get_close_matches(path, keys, n=1, cutoff=0.6)
    if not close:
        last = path.rpartition(".")[2]
        names = difflib.get_close_matches(last, [key.rpartition(".")[2] for key in keys], n=1, cutoff=0.0)
        close = [key for key in keys if key.rpartition(".")[2] == names[0]]
    return f", the nearest known key is {close[0]!r}"

"""The lines of a TOML file by the paths of its values, which tomllib does not tell.

The file is read again line by line, and a path belongs to the line where it first exists. So tomllib's grammar of TOML
alone counts. Only files with a problem are read again.
"""

import tomllib
from collections.abc import Iterator
from typing import Final

Path = tuple[str | int, ...]
#: Files with more lines get no places, because each line is read with all lines before it.
_MOST_LINES: Final = 2_000


def lines_of(text: str, paths: list[Path]) -> list[int]:
    """The line (from 1) of each path. It is that of the table if the path is missing, and 0 if no line is known."""
    found: dict[Path, int] = {}
    wanted = {path[:length] for path in paths for length in range(1, len(path) + 1)}
    for line, tables in _beginnings(text):
        for path in [path for path in wanted if path not in found and _is_there(tables, path)]:
            found[path] = line
    return [_nearest(found, path) for path in paths]


def _beginnings(text: str) -> Iterator[tuple[int, dict[str, object]]]:
    """The tables up to the end of each statement, with the line where the statement begins."""
    lines = text.split("\n")
    begins = 1
    for number in range(1, len(lines) + 1 if len(lines) <= _MOST_LINES else 1):
        try:
            tables = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue  # inside a value of several lines
        yield begins, tables
        begins = number + 1


def _is_there(tables: object, path: Path) -> bool:
    for part in path:
        if isinstance(part, str):
            if not (isinstance(tables, dict) and part in tables):
                return False
            tables = tables[part]
        elif isinstance(tables, list) and part < len(tables):
            tables = tables[part]
        else:
            return False
    return True


def _nearest(found: dict[Path, int], path: Path) -> int:
    held = (found.get(path[:length], 0) for length in range(len(path), 0, -1))
    return next((line for line in held if line), 0)

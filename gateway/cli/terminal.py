"""The output of commands: rich on a terminal; in a pipe plain lines that are not wrapped."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from gateway.cli.files import write_output

#: JSON as commands write it: text, numbers, lists and objects.
Json = str | int | float | bool | None | Sequence["Json"] | dict[str, "Json"]

_JSON_INDENT: Final = 2
#: Blanks between two columns of a rich table.
_GAP: Final = 2


def write_line(text: str = "") -> None:
    """Writes one line of text. Control characters, which may come from a message, are shown as escapes."""
    write_output(f"{printable(text)}\n".encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def json_text(value: Json) -> str:
    """A value as JSON: indented on a terminal, else on one line."""
    if sys.stdout.isatty():
        return json.dumps(value, ensure_ascii=False, indent=_JSON_INDENT)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_json(value: Json) -> None:
    """A value as JSON in UTF-8, and a line end."""
    write_output(f"{json_text(value)}\n".encode("utf-8", "backslashreplace"))


def write_json_array(values: Iterable[Json]) -> None:
    """Writes an array, each element as it comes."""
    separator = "["
    for value in values:
        write_output(f"{separator}\n{json_text(value)}".encode("utf-8", "backslashreplace"))
        separator = ","
    write_output(b"[]\n" if separator == "[" else b"\n]\n")


def write_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under headings: a rich table on a terminal, else columns of blanks."""
    if sys.stdout.isatty():
        _write_rich_table(columns, rows)
        return
    lines = [columns, *([printable(text) for text in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    for line in lines:
        write_line("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 byte, 2 bytes."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(text: str) -> str:
    """Text that moves no cursor and rings no bell. Characters that are not printable become escapes."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _write_rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Folds only the last column. If a terminal is too narrow for the others, the terminal wraps the lines."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [[printable(text) for text in row] for row in rows]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, name in enumerate(columns[:-1]):
        width = max(cell_len(text) for text in (name, *(row[number] for row in shown)))
        table.add_column(name, width=width, no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    needed = sum((column.width or 0) + _GAP for column in table.columns[:-1]) + cell_len(columns[-1])
    for row in shown:
        table.add_row(*(Text(text) for text in row))
    console = Console()
    console.width = max(console.width, needed)
    console.print(table)

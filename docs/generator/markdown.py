"""Pieces of Markdown: tables and blocks."""

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; a bar inside a cell is escaped."""
    lines = [_row(titles), _row(["---"] * len(titles))]
    return [*lines, *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    """One line; a bar, and an angle bracket that is not in code, stand for themselves."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def block(language: str, lines: Iterable[str]) -> list[str]:
    """A block of code."""
    return [f"```{language}", *lines, "```"]


def code(text: str) -> str:
    """Code in a sentence or a cell; nothing for nothing."""
    return f"`{text}`" if text else ""


def sentence(text: str) -> str:
    """A text of the code as a sentence: with a full stop, and a capital where it begins with a word."""
    text = text.strip()
    first = text.split(" ", 1)[0].rstrip(",.:;")
    capital = text[:1].upper() if first.isalpha() or "-" in first else text[:1]
    return capital + text[1:] + ("" if text.endswith((".", "?", ":")) else ".")

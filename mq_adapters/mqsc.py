"""MQSC as text: commands out of lines, and each command's verb, object, name and parameters.

A line that begins with `*` is a comment. A line that ends with `+` goes on at the first character of the next line that
is not blank, one that ends with `-` at the first column of it. Names and values that are not in quotes are folded to
upper case; in quotes everything is kept, and two quotes stand for one. Nothing here knows an object or an attribute.
Source: IBM MQ, "Rules for using MQSC commands".
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_CONTINUATIONS: Final = ("+", "-")
#: 32,762 characters with continuations: IBM MQ, "Rules for using MQSC commands".
MAXIMUM_COMMAND_CHARACTERS: Final = 32_762
_WORD: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)")
_OPEN: Final = re.compile(r"\s*\(\s*")
_ITEM: Final = re.compile(r"""'((?:[^']|'')*)'|"((?:[^"]|"")*)"|([^\s,()'"]+)""")
_SEPARATOR: Final = re.compile(r"\s*,\s*|\s+(?!\))")
_SEPARATORS: Final = re.compile(r"[\s,]*")
_CLOSE: Final = re.compile(r"\s*\)")


class MqscSyntaxError(Exception):
    """A command that is not MQSC; the text quotes the segment at which reading ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A keyword in upper case and its values; `items` is None for a keyword alone."""

    keyword: str
    items: tuple[str, ...] | None

    @property
    def text(self) -> str:
        """The values with commas between them."""
        return ",".join(self.items or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class MqscCommand:
    """One command: DEFINE QLOCAL(ORDERS) MAXDEPTH(5000) has verb DEFINE and the object's keyword and name apart."""

    verb: str
    target: Parameter
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MqscAnswer:
    """The answer of a command server to one command."""

    lines: tuple[str, ...]
    succeeded: bool


def commands_of(lines: Iterable[str]) -> Iterator[str]:
    """The commands of an input, each as one line without its continuations. An unfinished one at the end is given."""
    gathered: list[str] = []
    keeps_blanks = False
    for line in lines:
        text = line.rstrip("\r\n")
        if not gathered and (text.startswith("*") or not text.strip()):
            continue
        if gathered and text.startswith("*"):
            continue
        stripped = text.rstrip()
        part = stripped if keeps_blanks else stripped.lstrip()
        if part.endswith(_CONTINUATIONS):
            keeps_blanks = part[-1] == "-"
            gathered.append(part[:-1])
            continue
        yield "".join((*gathered, part))
        gathered, keeps_blanks = [], False
    if gathered:
        yield "".join(gathered)


def read_command(text: str, *, maximum_characters: int = MAXIMUM_COMMAND_CHARACTERS) -> MqscCommand:
    """A command from its one line; MqscSyntaxError where it is none."""
    if len(text) > maximum_characters:
        raise MqscSyntaxError(f"a command of {len(text)} characters, at most {maximum_characters} are allowed")
    verb, at = _word(text, 0)
    target, at = _parameter(text, at)
    parameters: list[Parameter] = []
    end = len(text.rstrip().removesuffix(";").rstrip())
    while (at := _SEPARATORS.match(text, at, end).end()) < end:  # type: ignore[union-attr]  # it matches nothing too
        parameter, at = _parameter(text, at)
        parameters.append(parameter)
    return MqscCommand(verb=verb, target=target, parameters=tuple(parameters))


def quoted(text: str) -> str:
    """A value as MQSC shows it: in quotes where it could be misread without."""
    if text and all(letter.isascii() and (letter.isalnum() or letter in "./_%*") for letter in text):
        return text if text == text.upper() else f"'{text}'"
    return "'" + text.replace("'", "''") + "'" if text else " "


def _word(text: str, at: int) -> tuple[str, int]:
    found = _WORD.match(text, at)
    if found is None:
        raise MqscSyntaxError(text[: at + 1].strip() or "an empty command")
    return found[1].upper(), found.end()


def _parameter(text: str, at: int) -> tuple[Parameter, int]:
    keyword, at = _word(text, at)
    opened = _OPEN.match(text, at)
    if opened is None:
        return Parameter(keyword=keyword, items=None), at
    at = opened.end()
    items: list[str] = []
    while (closed := _CLOSE.match(text, at)) is None:
        item = _ITEM.match(text, at)
        if item is None:
            raise MqscSyntaxError(text[: at + 1])
        items.append(_value(item))
        at = item.end()
        separator = _SEPARATOR.match(text, at)
        at = separator.end() if separator is not None else at
        if separator is None and _CLOSE.match(text, at) is None:
            raise MqscSyntaxError(text[: at + 1])
    return Parameter(keyword=keyword, items=tuple(items)), closed.end()


def _value(item: re.Match[str]) -> str:
    single, double, bare = item.groups()
    if single is not None:
        return str(single).replace("''", "'")
    return str(double).replace('""', '"') if double is not None else str(bare).upper()

"""The page of the commands: the help of each, from the tree of commands itself."""

import re
from collections.abc import Iterator
from typing import Any, Final

from docs.generator.markdown import block, code, table
from gateway.cli.application import AuditExitCode, ExitCode
from gateway.cli.commands import application

INTRODUCTION: Final = """
`--help` behind a command prints the same.
""".strip()
#: Stands before a paragraph of help whose lines stay as they are.
_AS_IT_IS: Final = "\b\n"


#: What typer shows for a value without a name of its own.
_TYPE: Final = re.compile(r" <(str|int range|float range|path|Path)>")


def lines() -> list[str]:
    """The page, without its title."""
    root = application
    commands = list(_walk(root, ("rfhbridge",)))
    everywhere = _paragraphs(root.epilog)[-1].splitlines()[1:]
    return [
        *INTRODUCTION.splitlines(),
        "",
        "Every command takes these options:",
        "",
        *table(["Option", "Meaning"], (_split(line) for line in everywhere)),
        "",
        "How a command ends:",
        "",
        *table(
            ["Exit code", "Commands", "`rfhbridge audit` and its commands"],
            (
                (str(number), _outcome(ExitCode, number), _outcome(AuditExitCode, number))
                for number in sorted({*ExitCode, *AuditExitCode})
            ),
        ),
        "",
        *table(
            ["Command", "What it does"],
            ((f"[`{_name(path)}`](#{_anchor(path)})", _summary(each)) for path, each in commands if _is_leaf(each)),
        ),
        *(line for path, each in commands if _is_leaf(each) for line in _section(path, each)),
    ]


def _shown(found: re.Match[str]) -> str:
    """A value of an option as N or TEXT; an argument's name says it already."""
    if not found.string.startswith("-"):
        return ""
    return " N" if "range" in found[1] else " TEXT"


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _walk(child, (*path, name))


def _is_leaf(command: Any) -> bool:
    return not getattr(command, "commands", {})


def _name(path: tuple[str, ...]) -> str:
    return " ".join(path)


def _anchor(path: tuple[str, ...]) -> str:
    return "-".join(path)


def _outcome(codes: Any, number: int) -> str:
    return codes(number).name.lower().replace("_", " ") if number in set(codes) else ""


def _split(line: str) -> tuple[str, str]:
    option, _, meaning = line.strip().partition("  ")
    return code(option), meaning.strip()


def _paragraphs(text: str | None) -> list[str]:
    return [each.strip("\n").replace(_AS_IT_IS, "") for each in (text or "").split("\n\n")]


def _summary(command: Any) -> str:
    return " ".join(_paragraphs(command.help)[0].split())


def _section(path: tuple[str, ...], command: Any) -> list[str]:
    context = command.context_class(command, info_name=path[-1])
    usage = _name((*path, *command.collect_usage_pieces(context)))
    examples = [f"$ {line.strip()}" for line in _paragraphs(command.epilog)[0].splitlines()[1:]]
    records = [record for each in command.params if (record := each.get_help_record(context)) is not None]
    return [
        "",
        f"## `{_name(path)}`",
        "",
        *(line for paragraph in (command.help or "").split("\n\n") for line in [*_paragraph(paragraph), ""]),
        *block("text", [usage]),
        "",
        *(
            table(
                ["Argument, option", "Meaning"], ((code(_TYPE.sub(_shown, name)), meaning) for name, meaning in records)
            )
        ),
        "",
        *block("console", examples),
    ]


def _paragraph(text: str) -> list[str]:
    if text.startswith(_AS_IT_IS):
        return block("text", text.removeprefix(_AS_IT_IS).splitlines())
    return text.splitlines()

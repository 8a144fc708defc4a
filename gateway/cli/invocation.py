"""The options that may stand before or after any sub-command: `--log-level`, `--log-format`, `--version`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, get_args

import typer

from gateway import log

_LEVELS: Final[tuple[log.Level, ...]] = get_args(log.Level)
_FORMATS: Final[tuple[log.Format, ...]] = get_args(log.Format)
_CHOICES: Final[dict[str, tuple[str, ...]]] = {"--log-level": _LEVELS, "--log-format": _FORMATS}
_VERSION: Final = "--version"
_END_OF_OPTIONS: Final = "--"

Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A command line without those options, and their values; None if one was not given."""

    arguments: tuple[str, ...]
    log_level: log.Level | None = None
    log_format: log.Format | None = None
    shows_version: bool = False


def invocation_of(arguments: Sequence[str]) -> Invocation:
    """Takes the options out of a command line, up to a `--`. typer.BadParameter for a wrong value."""
    end = arguments.index(_END_OF_OPTIONS) if _END_OF_OPTIONS in arguments else len(arguments)
    found: dict[str, str] = {}
    kept: list[str] = []
    waiting = list(reversed(arguments[:end]))
    while waiting:
        argument = waiting.pop()
        name, equals, value = argument.partition("=")
        if argument == _VERSION:
            found[_VERSION] = ""
        elif name in _CHOICES:
            found[name] = value if equals else waiting.pop() if waiting else ""
        else:
            kept.append(argument)
    return Invocation(
        arguments=(*kept, *arguments[end:]),
        log_level=_chosen(found, "--log-level", _LEVELS),
        log_format=_chosen(found, "--log-format", _FORMATS),
        shows_version=_VERSION in found,
    )


def _chosen(found: dict[str, str], name: str, choices: tuple[Choice, ...]) -> Choice | None:
    if name not in found:
        return None
    for choice in choices:
        if choice == found[name]:
            return choice
    raise typer.BadParameter(f"{found[name]!r} is not one of {', '.join(choices)}", param_hint=f"'{name}'")

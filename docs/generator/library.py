"""The page of the library: a table of its names, then what autodoc says of each."""

import inspect
from typing import Any, Final, get_args

import rfhbridge
from docs.generator.markdown import block, code, table

INTRODUCTION: Final = """
`import rfhbridge` is the library. Programs read, write, convert and check the headers of publish/subscribe messages
with it, and connect to queues. The names on this page keep their meaning from one version to the next.

`help(rfhbridge)` prints the same. Every name is typed.
""".strip()


def lines() -> list[str]:
    """The page, without its title."""
    things = {name: getattr(rfhbridge, name) for name in rfhbridge.__all__}
    sections: dict[str, dict[str, Any]] = {
        "Functions": {name: each for name, each in things.items() if inspect.isroutine(each)},
        "Classes": {name: each for name, each in things.items() if inspect.isclass(each) and not _is_error(each)},
        "Errors": {name: each for name, each in things.items() if _is_error(each)},
    }
    told = {name for section in sections.values() for name in section}
    constants = {name: each for name, each in things.items() if name not in told}
    example = [line[4:] for line in (rfhbridge.__doc__ or "").splitlines() if not line or line.startswith("    ")]
    return [
        *INTRODUCTION.splitlines(),
        "",
        *block("python", "\n".join(example).strip().splitlines()),
        *(line for title, section in sections.items() for line in _section(title, section)),
        "",
        "## Constants",
        "",
        *table(["Name", "Value"], ((code(name), _value(each)) for name, each in constants.items())),
    ]


def _value(constant: Any) -> str:
    """A constant. A cell keeps no blanks at the end of a name, so their number is said."""
    if isinstance(constant, bytes):
        return f"{code(repr(constant.rstrip()))}, with blanks up to {len(constant)} bytes"
    members = get_args(constant)
    return " or ".join(code(each.__name__) for each in members) if members else code(repr(constant))


def _is_error(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Exception)


def _section(title: str, things: dict[str, Any]) -> list[str]:
    """On a forge the table stands alone; Sphinx puts signatures, members and docstrings behind it."""
    directive = "autofunction" if title == "Functions" else "autoexception" if title == "Errors" else "autoclass"
    options = [] if title == "Functions" else ["   :members:", "   :undoc-members:"]
    options += ["   :show-inheritance:"] if title == "Errors" else []
    documented = [line for name in things for line in (f".. {directive}:: rfhbridge.{name}", *options, "")]
    return [
        "",
        f"## {title}",
        "",
        *table(["Name", "Meaning"], ((code(name), _summary(each)) for name, each in things.items())),
        "",
        *block("{eval-rst}", documented[:-1]),
    ]


def _summary(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())

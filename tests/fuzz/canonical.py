"""A value as text that is the same in both builds where the value is: no addresses, and no class of a build's own.

A compiled function turns a member of an IntEnum into its number, so members are numbers here. It turns True into 1
likewise, which a stored or audited value would show, so they differ here. An error of ours has its text, which an
operator reads. Of an error of the interpreter, and of one that is the cause of ours, only the kind counts, because each
build complains in its own words.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Set
from enum import Enum
from typing import Final

from mq_adapters.message import KnownHeader, Message

_PLAIN: Final = (bytes, float, type(None), bool)
#: Values of an error, beside its text, that somebody acts on.
_FACTS: Final = ("reason_code", "offset", "parameter")
_WRONG_TYPE: Final = re.compile(r"a bytes-like object is required, not '\w+'|\b\w{1,20} object expected; got \w+")


class Outcome(str):
    """What came of a call, which is canonical already."""

    __slots__ = ()


def canonical(value: object) -> str:
    """The text of a value. Objects that it does not know have their type alone."""
    if type(value) in _PLAIN:
        return repr(value)
    if isinstance(value, int):
        return format(int(value))
    if type(value) is Outcome:
        return value
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value) if each.repr)
        return f"{type(value).__name__}({_named(shown)})"
    return f"<{type(value).__name__}>"


def raised(error: BaseException) -> Outcome:
    """An error as an outcome."""
    kind = type(error)
    if kind.__module__ == "builtins":
        return Outcome(f"raises {kind.__name__}")
    facts = _named((name, getattr(error, name)) for name in _FACTS if hasattr(error, name))
    text, cause = str(error), error.__context__  # a compiled `raise ... from` sets no cause
    if type(cause).__module__ == "builtins" and str(cause):
        text = text.replace(str(cause), "...")
    return Outcome(f"raises {kind.__name__}: {without_types(text)} {facts}")


def without_types(text: str) -> str:
    """A text without what each build says of a value of a wrong type."""
    return _WRONG_TYPE.sub("(a wrong type)", text)


def attempted(call: Callable[[], object]) -> Outcome:
    """What a call gives, or raises."""
    try:
        return Outcome(canonical(call()))
    except Exception as error:
        return raised(error)


def _named(pairs: Iterable[tuple[object, object]]) -> str:
    return ", ".join(f"{name}={canonical(value)}" for name, value in pairs)


def _of_tuple(value: tuple[object, ...]) -> str:
    names = getattr(value, "_fields", None)
    if names is not None:
        return f"{type(value).__name__}({_named(zip(names, value, strict=True))})"
    return f"({', '.join(map(canonical, value))})"


def _of_message(message: Message) -> str:
    facts = ("sequence", "put_us", "expires_us", "backout_count", "origin", "body", "msg_id", "is_persistent")
    shown = _named((name, getattr(message, name)) for name in facts)
    return f"Message({canonical(message.descriptor)}, {shown}, written={canonical(message.written)})"


def _of_header(header: KnownHeader) -> str:
    facts = ("data", "format", "coded_char_set_id", "encoding", "verb", "command", "fields", "echo", "response")
    return (
        f"{type(header).__name__}({_named((name, getattr(header, name)) for name in facts if hasattr(header, name))})"
    )


_WRITERS: Final[tuple[tuple[type | tuple[type, ...], Callable[..., str]], ...]] = (
    (Message, _of_message),
    (KnownHeader, _of_header),
    (BaseException, raised),
    (Enum, lambda member: f"{type(member).__name__}.{member.name}"),
    (tuple, _of_tuple),
    (Mapping, lambda value: "{" + ", ".join(f"{canonical(k)}: {canonical(v)}" for k, v in value.items()) + "}"),
    (Set, lambda value: "{" + ", ".join(sorted(map(canonical, value))) + "}"),
    (list, lambda value: f"[{', '.join(map(canonical, value))}]"),
    (str, lambda value: repr(without_types(str(value)))),
    ((bytes, bytearray, memoryview), lambda value: f"{type(value).__name__} {bytes(value)!r}"),
)

"""DISPLAY: the attributes of objects, generic names, WHERE, and two columns as runmqsc writes them."""

import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from mq_adapters.attributes import (
    ATTRIBUTES,
    QUEUE_TYPES,
    SYNONYMS,
    Attribute,
    Choice,
    Definition,
    ObjectType,
    queue_manager_identifier,
)
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.values import syntax_error
from mq_adapters.mqsc import Parameter, quoted

#: Attributes as text, by keyword.
Shown = dict[str, str]

_US: Final = 1_000_000
_INDENTATION: Final = "   "
#: Where runmqsc's second column begins.
_COLUMN_CHARACTERS: Final = 40
#: Attributes that DISPLAY shows and nobody can set.
READ_ONLY: Final[Mapping[ObjectType, tuple[str, ...]]] = {
    ObjectType.QLOCAL: ("TYPE", "CURDEPTH", "DEFTYPE", "OWNER"),
    ObjectType.QALIAS: ("TYPE",),
    ObjectType.QREMOTE: ("TYPE",),
    ObjectType.QMODEL: ("TYPE",),
    ObjectType.TOPIC: (),
    ObjectType.NAMELIST: (),
    ObjectType.CHANNEL: (),
    ObjectType.QMGR: ("QMNAME", "QMID", "CCSID", "MAXPRTY", "SYNCPT", "CLOCK", "CLOCKOFF"),
}
_SECOND_US: Final = 1_000_000
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "GT": operator.gt,
    "LE": operator.le,
    "GE": operator.ge,
}


def matches(name: str, pattern: str) -> bool:
    """Whether a name matches a pattern, in which a final `*` stands for anything."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def shown(engine: Engine, definition: Definition) -> Shown:
    """Every attribute of an object, the read-only ones first."""
    kind = definition.object_type
    values: Shown = {}
    if kind in QUEUE_TYPES:
        values = {"QUEUE": quoted(definition.name), "TYPE": kind.name}
    elif kind != ObjectType.QMGR:
        values = {kind.name: quoted(definition.name)}
    if kind == ObjectType.QLOCAL:
        queue = engine.queue(definition.name)
        values |= {"CURDEPTH": str(queue.depth), "DEFTYPE": "TEMPDYN" if queue.is_temporary else "PREDEFINED"}
        values["OWNER"] = str(engine.owner(queue)) or " "
    if kind == ObjectType.QMGR:
        identifier = queue_manager_identifier(engine.incarnation)
        values = {"QMNAME": quoted(engine.name), "QMID": quoted(identifier), "CCSID": "1208", "MAXPRTY": "9"}
        values["SYNCPT"] = ""
        values["CLOCK"] = engine.clock.state.name
        values["CLOCKOFF"] = str(engine.clock.doubt_us // _SECOND_US)
    for keyword, attribute in ATTRIBUTES[kind].items():
        value = definition[keyword]
        if isinstance(value, tuple):
            values[keyword] = ",".join(map(quoted, value)) or " "
        elif isinstance(value, int):
            values[keyword] = str(value)
        else:
            values[keyword] = value if isinstance(attribute, Choice) else quoted(value)
    return values


def wanted_keywords(parameters: tuple[Parameter, ...], known: set[str]) -> tuple[str, ...] | None:
    """The attributes that DISPLAY names, None for all. MqscRefused names those that no object of the kind has."""
    wanted: list[str] = []
    unknown: list[str] = []
    for parameter in parameters:
        if parameter.keyword in ("ALL", "WHERE"):
            continue
        keyword = SYNONYMS.get(parameter.keyword, parameter.keyword)
        is_known = keyword in known and parameter.items is None
        (wanted if is_known else unknown).append(keyword if is_known else parameter.keyword)
    if unknown:
        named, verb = ("attribute", "is") if len(unknown) == 1 else ("attributes", "are")
        raise syntax_error(f"{named} {', '.join(unknown)} {verb} not supported here.")
    return tuple(wanted) or None


def filtered(rows: Iterator[Shown], parameters: tuple[Parameter, ...], known: set[str]) -> Iterator[Shown]:
    """The rows that match WHERE. A row without the attribute does not match."""
    condition = next((parameter for parameter in parameters if parameter.keyword == "WHERE"), None)
    if condition is None:
        yield from rows
        return
    items = condition.items or ()
    if len(items) != 3 or items[0].upper() not in known:
        raise syntax_error(f"WHERE({' '.join(items)}) is not supported here.")
    keyword, comparison, value = items[0].upper(), items[1].upper(), items[2]
    for row in rows:
        if keyword in row and _holds(row[keyword].strip("' "), comparison, value):
            yield row


def columns(row: Shown, keywords: tuple[str, ...] | None, headings: int, kinds: Mapping[str, Attribute]) -> list[str]:
    """A row as lines of two columns: its headings, then the wanted attributes by name."""
    names = list(row)
    rest = names[headings:] if keywords is None else [name for name in keywords if name in names[headings:]]
    cells = [_cell(name, row[name], kinds.get(name)) for name in (*names[:headings], *sorted(rest))]
    lines: list[str] = []
    left = ""
    for cell in cells:
        if left and len(left) < _COLUMN_CHARACTERS > len(cell):
            lines.append(f"{_INDENTATION}{left:<{_COLUMN_CHARACTERS}}{cell}")
            left = ""
            continue
        if left:
            lines.append(_INDENTATION + left)
        left = cell
    if left:
        lines.append(_INDENTATION + left)
    return lines


def _cell(name: str, value: str, attribute: Attribute | None) -> str:
    if isinstance(attribute, Choice) and attribute.is_flag:
        return value
    return f"{name}({value})" if value else name


def _holds(value: str, comparison: str, wanted: str) -> bool:
    if comparison in ("LK", "NL"):
        return matches(value, wanted) is (comparison == "LK")
    if comparison not in _COMPARISONS:
        raise syntax_error(f"operator {comparison} is not supported here.")
    if value.isdecimal() and wanted.isdecimal():
        return _COMPARISONS[comparison](int(value), int(wanted))
    if comparison not in ("EQ", "NE"):
        return False
    return (value == wanted) is (comparison == "EQ")


def time_text(at_us: int) -> str:
    """The time in UTC to the second; "" for never. `at_us`: microseconds since 1970."""
    return datetime.fromtimestamp(at_us // _US, UTC).isoformat() if at_us else ""

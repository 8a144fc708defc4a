"""MQINQ: the attributes of queues and of the queue manager by their selectors.

Selectors below 2000 give integers, the others characters of a fixed length, blank padded.
Source: IBM MQ, "MQINQ - Inquire object attributes"; numbers as in cmqc.h.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from mq_adapters.attributes import Definition, ObjectType, Value, queue_manager_identifier
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.open_object import OpenObject
from mq_adapters.embedded.mqi.options import ObjectKind
from mq_adapters.embedded.mqi.properties import PROPERTY_CONTROL
from mq_adapters.message import UTF_8
from mq_adapters.reasons import QueueManagerError, ReasonCode

_FIRST_OF_CHARACTERS: Final = 2001
_LAST_SELECTOR: Final = 4000
#: The most selectors of one call (MQINQ, SelectorCount).
MAXIMUM_SELECTORS: Final = 256
_NAME, _DESCRIPTION, _GROUP = 48, 64, 4
#: MQIAV_NOT_APPLICABLE: the object has no such attribute.
_NOT_APPLICABLE: Final = -1

#: MQCMDL_LEVEL_945, MQPL_UNIX, MQSP_AVAILABLE, MQPSM_ENABLED.
_COMMAND_LEVEL: Final = 945
_PLATFORM_UNIX: Final = 3
_AVAILABLE: Final = 1
_PUBLISH_SUBSCRIBE_ENABLED: Final = 2
_HIGHEST_PRIORITY: Final = 9
#: The most handles of one connection, as MQIA_MAX_HANDLES says.
MAXIMUM_HANDLES: Final = 256

#: MQSC's words as the MQI's numbers.
_NUMBERS: Final[Mapping[str, int]] = {
    "YES": 1,
    "NO": 0,
    "ENABLED": 0,
    "DISABLED": 1,
    "PRIORITY": 0,
    "FIFO": 1,
    "HARDENBO": 1,
    "NOHARDENBO": 0,
    "NORMAL": 0,
    "XMITQ": 1,
}
#: MQQT_*: the type of a queue.
_QUEUE_TYPES: Final = {
    ObjectType.QLOCAL: 1,
    ObjectType.QMODEL: 2,
    ObjectType.QALIAS: 3,
    ObjectType.QREMOTE: 6,
}
#: MQQDT_PREDEFINED and MQQDT_TEMPORARY_DYNAMIC.
_PREDEFINED, _TEMPORARY = 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquired:
    """The attributes in the order of their selectors. With `is_partial` some do not belong to this object (2068)."""

    integers: tuple[int, ...]
    characters: bytes
    is_partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What is inquired about, and where more can be found."""

    engine: Engine
    application: Application
    opened: OpenObject
    definition: Definition


_Integer = Callable[[_Subject], int]
_Text = Callable[[_Subject], str]


def _number(keyword: str) -> _Integer:
    def read(subject: _Subject) -> int:
        value: Value = subject.definition[keyword]
        return value if isinstance(value, int) else _NUMBERS[str(value)]

    return read


def _word(keyword: str) -> _Text:
    return lambda subject: subject.definition.text(keyword)


def _definition_type(subject: _Subject) -> int:
    queue = subject.opened.queue
    return _TEMPORARY if queue is not None and queue.is_temporary else _PREDEFINED


def _open_for_input(subject: _Subject) -> int:
    queue = subject.opened.queue
    users = subject.engine.objects.users
    return 0 if queue is None else sum(user.is_getting_from(queue) for user in users)


_QUEUE_INTEGERS: Final[Mapping[int, _Integer]] = {
    3: lambda subject: 0 if subject.opened.queue is None else subject.opened.queue.depth,  # MQIA_CURRENT_Q_DEPTH
    4: lambda _subject: 2,  # MQIA_DEF_INPUT_OPEN_OPTION: MQOO_INPUT_SHARED
    5: _number("DEFPSIST"),
    6: _number("DEFPRTY"),
    7: _definition_type,
    8: _number("HARDENBO"),
    9: _number("GET"),
    10: _number("PUT"),
    12: _number("USAGE"),
    13: _number("MAXMSGL"),
    15: _number("MAXDEPTH"),
    16: _number("MSGDLVSQ"),
    17: _open_for_input,
    20: lambda subject: _QUEUE_TYPES[subject.definition.object_type],
    22: _number("BOTHRESH"),
    23: lambda _subject: 1,  # MQIA_SHAREABILITY: MQQA_SHAREABLE
    24: lambda _subject: 0,  # MQIA_TRIGGER_CONTROL: MQTC_OFF
    190: lambda subject: PROPERTY_CONTROL[str(subject.definition["PROPCTL"])],
}
_QUEUE_TEXTS: Final[Mapping[int, tuple[int, _Text]]] = {
    2002: (_NAME, _word("TARGET")),
    2013: (_DESCRIPTION, _word("DESCR")),
    2016: (_NAME, lambda subject: subject.definition.name),
    2017: (_NAME, _word("RQMNAME")),
    2018: (_NAME, _word("RNAME")),
    2019: (_NAME, _word("BOQNAME")),
    2024: (_NAME, _word("XMITQ")),
}
_QUEUE_MANAGER_INTEGERS: Final[Mapping[int, _Integer]] = {
    2: lambda _subject: UTF_8,
    11: lambda _subject: MAXIMUM_HANDLES,
    13: _number("MAXMSGL"),
    14: lambda _subject: _HIGHEST_PRIORITY,
    30: lambda _subject: _AVAILABLE,
    31: lambda _subject: _COMMAND_LEVEL,
    32: lambda _subject: _PLATFORM_UNIX,
    33: _number("MAXUMSGS"),
    34: lambda _subject: 0,  # MQIA_DIST_LISTS: MQDL_NOT_SUPPORTED
    187: lambda _subject: _PUBLISH_SUBSCRIBE_ENABLED,
    273: lambda _subject: 0,  # MQIA_ADVANCED_CAPABILITY: MQCAP_NOT_SUPPORTED
}
_QUEUE_MANAGER_TEXTS: Final[Mapping[int, tuple[int, _Text]]] = {
    2003: (_NAME, lambda _subject: ""),
    2006: (_NAME, _word("DEADQ")),
    2014: (_DESCRIPTION, _word("DESCR")),
    2015: (_NAME, lambda subject: subject.engine.name),
    2032: (_NAME, lambda subject: queue_manager_identifier(subject.engine.incarnation)),
    2040: (_GROUP, lambda _subject: ""),
}
_TABLES: Final = {
    ObjectKind.Q: (_QUEUE_INTEGERS, _QUEUE_TEXTS),
    ObjectKind.Q_MGR: (_QUEUE_MANAGER_INTEGERS, _QUEUE_MANAGER_TEXTS),
}
_ALL_TEXTS: Final = {**_QUEUE_TEXTS, **_QUEUE_MANAGER_TEXTS}


def inquired(engine: Engine, application: Application, opened: OpenObject, selectors: Sequence[int]) -> Inquired:
    """The attributes of an open object. 2065 for too many selectors, 2067 for a number that is no selector."""
    operation = f"inquire {opened.name or 'the queue manager'}"
    if len(selectors) > MAXIMUM_SELECTORS:
        raise QueueManagerError(ReasonCode.MQRC_SELECTOR_COUNT_ERROR, operation)
    subject = _Subject(
        engine=engine, application=application, opened=opened, definition=_definition(engine, opened, operation)
    )
    integers, texts = _TABLES[opened.kind]
    number_of = cache(lambda selector: integers[selector](subject))  # a selector may be there 256 times
    numbers: list[int] = []
    characters: list[bytes] = []
    is_partial = False
    for selector in selectors:
        if not 0 < selector <= _LAST_SELECTOR:
            raise QueueManagerError(ReasonCode.MQRC_SELECTOR_ERROR, f"{operation}: selector {selector}")
        try:
            if selector < _FIRST_OF_CHARACTERS:
                numbers.append(number_of(selector))
            else:
                length, read = texts[selector]
                characters.append(read(subject).encode().ljust(length))
        except KeyError:  # the object has no such attribute
            is_partial = True
            if selector < _FIRST_OF_CHARACTERS:
                numbers.append(_NOT_APPLICABLE)
            else:
                characters.append(b"*" * _ALL_TEXTS.get(selector, (_NAME, None))[0])
    return Inquired(integers=tuple(numbers), characters=b"".join(characters), is_partial=is_partial)


def _definition(engine: Engine, opened: OpenObject, operation: str) -> Definition:
    if opened.kind == ObjectKind.Q_MGR:
        return engine.objects.queue_manager
    if (opened.is_own or opened.subscription is not None) and opened.queue is not None:
        return opened.queue.definition
    found = engine.objects.find_queue(opened.name)
    if found is None:
        raise QueueManagerError(ReasonCode.MQRC_OBJECT_CHANGED, operation)
    return found

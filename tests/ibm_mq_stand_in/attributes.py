"""MQINQ and MQSET: attributes by selectors, of the queue manager and of queues.

Selectors, lengths and values: IBM MQ, "MQINQ - Inquire object attributes", "Attributes for queues", "Attributes for the
queue manager". Numbers of MQIA_* selectors are up to 2000, of MQCA_* above.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.queue_administration import alter
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT
from mq_adapters.reasons import QueueManagerError
from tests.ibm_mq_stand_in.open_object import OpenObject
from tests.ibm_mq_stand_in.options import MQOO, Reason
from tests.ibm_mq_stand_in.state import State
from tests.ibm_mq_stand_in.wire import MQCC_WARNING, Answer, number_field

LAST_NUMBER: Final = 2000
LAST_CHARACTERS: Final = 4000
#: A level that has everything the gateway asks for: 9.4.
COMMAND_LEVEL: Final = 940
#: The same as MQCA_VERSION says it: version, release, modification, fix pack.
_VERSION: Final = "09040000"
MQPL_UNIX: Final = 3
MQIA_INHIBIT_GET: Final = 9
MQIA_INHIBIT_PUT: Final = 10
_IBM_MAXIMUM_BYTES: Final = 100 * 1024 * 1024
_QUEUE_TYPES: Final = {ObjectType.QLOCAL: 1, ObjectType.QMODEL: 2, ObjectType.QALIAS: 3, ObjectType.QREMOTE: 6}
_SHARED: Final = 2
_EXCLUSIVE: Final = 4

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquired:
    """The object that is asked about."""

    state: State
    definition: Definition
    queue: Queue | None


def _is(keyword: str, word: str) -> Callable[[Inquired], int]:
    return lambda asked: int(asked.definition[keyword] == word)


def _number(keyword: str) -> Callable[[Inquired], int]:
    return lambda asked: asked.definition.number(keyword)


def _text(keyword: str, length: int) -> tuple[int, Callable[[Inquired], str]]:
    return length, lambda asked: asked.definition.text(keyword)


def _name(asked: Inquired) -> str:
    return asked.definition.name


_QUEUE_NUMBERS: Final[dict[int, Callable[[Inquired], int]]] = {
    3: lambda asked: asked.queue.depth if asked.queue is not None else 0,  # CURRENT_Q_DEPTH
    4: lambda asked: (
        _EXCLUSIVE if asked.state.open_queues.sharing(asked.definition.name).is_exclusive_by_default else _SHARED
    ),  # DEF_INPUT_OPEN_OPTION
    5: lambda asked: MQPER_PERSISTENT if asked.definition["DEFPSIST"] == "YES" else MQPER_NOT_PERSISTENT,
    6: _number("DEFPRTY"),
    7: lambda asked: 3 if asked.queue is not None and asked.queue.is_temporary else 1,  # DEFINITION_TYPE
    8: _is("HARDENBO", "HARDENBO"),
    MQIA_INHIBIT_GET: _is("GET", "DISABLED"),
    MQIA_INHIBIT_PUT: _is("PUT", "DISABLED"),
    12: _is("USAGE", "XMITQ"),
    13: lambda asked: min(asked.definition.number("MAXMSGL"), _IBM_MAXIMUM_BYTES),  # MAX_MSG_LENGTH
    15: _number("MAXDEPTH"),
    16: _is("MSGDLVSQ", "FIFO"),
    17: lambda asked: asked.state.open_queues.input_count(asked.definition.name),  # OPEN_INPUT_COUNT
    18: lambda asked: asked.state.open_queues.output_count(asked.definition.name),  # OPEN_OUTPUT_COUNT
    20: lambda asked: _QUEUE_TYPES[asked.definition.object_type],  # Q_TYPE
    22: _number("BOTHRESH"),
    23: lambda asked: int(asked.state.open_queues.sharing(asked.definition.name).is_shareable),  # SHAREABILITY
}
_QUEUE_TEXTS: Final[dict[int, tuple[int, Callable[[Inquired], str]]]] = {
    2002: _text("TARGET", 48),
    2013: _text("DESCR", 64),
    2016: (48, _name),
    2017: _text("RQMNAME", 48),
    2018: _text("RNAME", 48),
    2019: _text("BOQNAME", 48),
    2024: _text("XMITQ", 48),
}
_MANAGER_NUMBERS: Final[dict[int, Callable[[Inquired], int]]] = {
    2: lambda _asked: 1208,  # CODED_CHAR_SET_ID
    13: lambda asked: min(asked.definition.number("MAXMSGL"), _IBM_MAXIMUM_BYTES),  # MAX_MSG_LENGTH
    14: lambda _asked: 9,  # MAX_PRIORITY
    30: lambda _asked: 1,  # SYNCPOINT: available
    31: lambda _asked: COMMAND_LEVEL,
    32: lambda _asked: MQPL_UNIX,
    33: _number("MAXUMSGS"),
}
_MANAGER_TEXTS: Final[dict[int, tuple[int, Callable[[Inquired], str]]]] = {
    2006: _text("DEADQ", 48),
    2014: _text("DESCR", 64),
    2015: (48, lambda asked: asked.state.engine.name),
    2032: (48, lambda asked: asked.state.identifier),
    2120: (8, lambda _asked: _VERSION),
}
#: A selector of characters that this type of object has not.
_NO_TEXT: Final[tuple[int, Callable[[Inquired], str | None]]] = (48, lambda _asked: None)


def inquire(
    state: State, opened: OpenObject, selectors: Sequence[int], most_numbers: int, most_characters: int
) -> Answer:
    """The answer to MQINQ. What the object's type has not is filled in as -1 or `*`, with the warning 2068."""
    opened.require(MQOO.INQUIRE, Reason.MQRC_NOT_OPEN_FOR_INQUIRE)
    asked = _inquired(state, opened)
    numbers: list[int] = []
    texts: list[bytes] = []
    is_complete = True
    for selector in selectors:
        if 0 < selector <= LAST_NUMBER:
            read_number = (_MANAGER_NUMBERS if opened.is_queue_manager else _QUEUE_NUMBERS).get(selector)
            number = None if read_number is None else _asked_for(read_number, asked)
            numbers.append(-1 if number is None else number)
            is_complete = is_complete and number is not None
        elif LAST_NUMBER < selector <= LAST_CHARACTERS:
            length, read_text = (_MANAGER_TEXTS if opened.is_queue_manager else _QUEUE_TEXTS).get(selector, _NO_TEXT)
            text = _asked_for(read_text, asked)
            texts.append(b"*" * length if text is None else text.encode().ljust(length)[:length])
            is_complete = is_complete and text is not None
        else:
            raise QueueManagerError(Reason.MQRC_SELECTOR_ERROR, f"inquire {selector}")
    return _fitted(numbers, b"".join(texts), most_numbers, most_characters, is_complete)


def _asked_for(read: Callable[[Inquired], Value], asked: Inquired) -> Value | None:
    """The value, or None where an object of this type has none."""
    try:
        return read(asked)
    except KeyError:
        return None


def _inquired(state: State, opened: OpenObject) -> Inquired:
    objects = state.engine.objects
    if opened.is_queue_manager:
        return Inquired(state=state, definition=objects.queue_manager, queue=None)
    definition = objects.find_queue(opened.name)
    if definition is None:
        definition = opened.get_queue().definition
    return Inquired(state=state, definition=definition, queue=objects.queues.get(opened.name))


def _fitted(numbers: list[int], texts: bytes, most_numbers: int, most_characters: int, is_complete: bool) -> Answer:
    """As much as the program has room for; the reason is that of the first thing that is wrong."""
    reason = 0 if is_complete else int(Reason.MQRC_SELECTOR_NOT_FOR_TYPE)
    if len(texts) > most_characters:
        reason = Reason.MQRC_CHAR_ATTRS_TOO_SHORT
    if len(numbers) > most_numbers:
        reason = Reason.MQRC_INT_ATTR_COUNT_TOO_SMALL
    numbers, texts = numbers[:most_numbers], texts[:most_characters]
    fields = number_field(len(numbers)) + number_field(len(texts)) + b"".join(map(number_field, numbers)) + texts
    return Answer(fields=fields, comp_code=MQCC_WARNING if reason else 0, reason=reason)


def set_attributes(state: State, opened: OpenObject, selectors: Sequence[int], numbers: Sequence[int]) -> None:
    """MQSET: only INHIBIT_GET and INHIBIT_PUT of a local queue."""
    opened.require(MQOO.SET, Reason.MQRC_NOT_OPEN_FOR_SET)
    keywords = {MQIA_INHIBIT_GET: "GET", MQIA_INHIBIT_PUT: "PUT"}
    changes: dict[str, str] = {}
    for selector, number in zip(selectors, numbers, strict=False):
        if selector not in keywords:
            raise QueueManagerError(Reason.MQRC_SELECTOR_ERROR, f"set {selector}")
        if number not in (0, 1):
            raise QueueManagerError(Reason.MQRC_INHIBIT_VALUE_ERROR, f"set {selector} to {number}")
        changes[keywords[selector]] = "DISABLED" if number else "ENABLED"
    if len(changes) != len(selectors):
        raise QueueManagerError(Reason.MQRC_SELECTOR_ERROR, "set attributes without values")
    alter(state.engine, opened.get_queue().definition.altered(changes))
    state.wake_waiting_gets()

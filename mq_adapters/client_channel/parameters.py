"""Parameters of calls: structures, integers and data behind one another, as a table of parts says.

A class of parameters is a dataclass whose fields are made by `structure`, `number`, `message_data` and `rest`, in their
order on the wire. What a client leaves behind the last part is the rest of a buffer, and is not read.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar

from mq_adapters.client_channel.fields import BodyReader, write_integers
from mq_adapters.client_channel.segments import ByteOrder, padded

_PART: Final = "part"


class Content(Protocol):
    """What stands in a call behind its header: it is read by what says how, and written the same way."""

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads it at the reader's position. Raises ChannelProtocolError."""

    def write(self, byte_order: ByteOrder) -> bytes:
        """Its bytes. Raises UsageError for a value that has no place."""


Structured = TypeVar("Structured", bound=Content)


class _Part(NamedTuple):
    read: Callable[[BodyReader], Any]
    write: Callable[[Any, ByteOrder], bytes]


def structure(of: type[Structured]) -> Structured:
    """A structure."""
    made: Structured = field(metadata={_PART: _Part(of.read, lambda value, byte_order: value.write(byte_order))})
    return made


def number(default: int = 0) -> int:
    """A signed integer of four bytes."""
    part = _Part(lambda body: body.integer("a call"), lambda value, byte_order: write_integers(byte_order, value))
    return field(default=default, metadata={_PART: part})


def message_data() -> bytes:
    """The data of a message behind their length. IBM's client fills them up to a multiple of four bytes."""
    return field(default=b"", repr=False, metadata={_PART: _Part(_read_data, _write_data)})


def rest() -> bytes:
    """All the other bytes, which are not read, or need no length."""
    return field(default=b"", repr=False, metadata={_PART: _Part(lambda body: body.rest(), lambda value, _: value)})


def _read_data(body: BodyReader) -> bytes:
    return body.take(body.integer("a length of data"), "message data")


def _write_data(data: bytes, byte_order: ByteOrder) -> bytes:
    return write_integers(byte_order, len(data)) + padded(data)


_TABLES: Final[dict[type, tuple[tuple[str, _Part], ...]]] = {}


def _parts_of(parameters: type["Parameters"]) -> tuple[tuple[str, _Part], ...]:
    if parameters not in _TABLES:
        _TABLES[parameters] = tuple((each.name, each.metadata[_PART]) for each in fields(parameters))
    return _TABLES[parameters]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a call has behind its header."""

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads the parts in their order. Raises ChannelProtocolError."""
        return cls(**{name: part.read(body) for name, part in _parts_of(cls)})

    def write(self, byte_order: ByteOrder) -> bytes:
        """The bytes of the parts. Raises UsageError for a value that has no place."""
        return b"".join(part.write(getattr(self, name), byte_order) for name, part in _parts_of(type(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing(Parameters):
    """A call without parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Parameters):
    """The parameters of a call that is not known here: answer it with MQRC_FUNCTION_NOT_SUPPORTED."""

    data: bytes = rest()


NOTHING: Final = Nothing()

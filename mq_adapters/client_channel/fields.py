"""Tables of fields: a record says once what it is made of, and is read and written from that, in both byte orders.

A record is a dataclass whose fields are made by `integer`, `text`, `octets` and the like, in their order on the wire.
Bytes that are not what the table says end in ChannelProtocolError. A value that has no place in its field is a
UsageError. Texts are ISO 8859-1 (CCSID 819), blank padded, and end at the first NUL.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple, NoReturn, Self

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode, UsageError
from mq_adapters.client_channel.segments import ByteOrder

_WIRE: Final = "wire"
_TEXT_ENCODING: Final = "iso-8859-1"


def invalid(what: str) -> NoReturn:
    """Raises the error for bytes that have the right length and no meaning."""
    raise ChannelProtocolError(StatusCode.PROTOCOL_INVALID_DATA, what)


class BodyReader:
    """Reads the body of a segment or call from front to back, and never past its end."""

    __slots__ = ("byte_order", "data", "end", "position")

    def __init__(self, data: bytes, byte_order: ByteOrder, position: int = 0) -> None:
        self.data = data
        self.byte_order = byte_order
        self.position = position
        self.end = len(data)

    @property
    def left(self) -> int:
        """How many bytes are still unread."""
        return self.end - self.position

    def take(self, length: int, what: str) -> bytes:
        """The next `length` bytes. Where they are not there, the error says that `what` ends too early."""
        if not 0 <= length <= self.left:
            raise ChannelProtocolError(
                StatusCode.PROTOCOL_LENGTH_ERROR, f"{what} needs {length} bytes, and {self.left} are left"
            )
        start = self.position
        self.position = start + length
        return self.data[start : self.position]

    def rest(self) -> bytes:
        """All that is unread."""
        return self.take(self.left, "the rest")

    def integer(self, what: str) -> int:
        """A signed integer of four bytes."""
        number: int = _INTEGERS[self.byte_order].unpack(self.take(4, what))[0]
        return number

    def integers(self, count: int, what: str) -> tuple[int, ...]:
        """So many signed integers of four bytes."""
        data = self.take(4 * count, what)
        return struct.unpack(f"{self.byte_order.code}{count}i", data)

    def eye_catcher(self, struc_id: bytes) -> None:
        """Four bytes that must be these."""
        found = self.take(len(struc_id), struc_id.decode())
        if found != struc_id:
            invalid(f"{struc_id.decode().rstrip()} begins with {found.hex()}")


_INTEGERS: Final = {order: struct.Struct(order.code + "i") for order in ByteOrder}


def write_integers(byte_order: ByteOrder, *numbers: int) -> bytes:
    """Signed integers of four bytes each."""
    try:
        return struct.pack(f"{byte_order.code}{len(numbers)}i", *numbers)
    except struct.error as error:
        raise UsageError(f"{numbers}: {error}") from error


class _Wire(NamedTuple):
    """One field: its code in the language of `struct`, the first version that has it, and how it is converted."""

    code: str
    since: int = 1
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None
    must_be_zero: bool = False
    is_string: bool = False


def integer(default: int = 0, *, since: int = 1, must_be_zero: bool = False) -> int:
    """A signed integer of four bytes (MQLONG)."""
    return field(default=default, metadata={_WIRE: _Wire("i", since, must_be_zero=must_be_zero)})


def unsigned(default: int = 0) -> int:
    """An integer of four bytes without a sign, such as the number of a conversation."""
    return field(default=default, metadata={_WIRE: _Wire("I")})


def short(default: int = 0) -> int:
    """An integer of two bytes without a sign."""
    return field(default=default, metadata={_WIRE: _Wire("H")})


def byte(default: int = 0, *, behind: int = 0) -> int:
    """One byte, as a number, `behind` so many bytes that are not read, and written as zeros."""
    return field(default=default, metadata={_WIRE: _Wire(f"{behind}xB")})


def long(default: int = 0, *, since: int = 1) -> int:
    """A signed integer of eight bytes (MQINT64)."""
    return field(default=default, metadata={_WIRE: _Wire("q", since)})


def text(length: int, *, since: int = 1) -> str:
    """A text of at most `length` bytes, blank padded (MQCHARn)."""
    return field(
        default="", metadata={_WIRE: _Wire(f"{length}s", since, _read_text, lambda value: _padded(value, length))}
    )


def octets(length: int, default: bytes = b"", *, since: int = 1, secret: bool = False) -> bytes:
    """Bytes of this number (MQBYTEn); zeros unless said otherwise. What is secret is never shown."""
    wire = _Wire(f"{length}s", since, None, lambda value: _exactly(value, length))
    return field(default=default.ljust(length, b"\0"), repr=not secret, metadata={_WIRE: wire})


def reserved(length: int, *, since: int = 1) -> bytes:
    """Bytes whose meaning is not known. They are kept, because a reply returns them as they came."""
    return field(default=bytes(length), repr=False, metadata={_WIRE: _Wire(f"{length}s", since)})


def string_field(default: Any, length: int, *, since: int) -> Any:
    """A string of any length, which stands elsewhere; its structure converts the bytes of this field."""
    return field(default=default, metadata={_WIRE: _Wire(f"{length}s", since, is_string=True)})


def _read_text(value: bytes) -> str:
    return value.partition(b"\0")[0].rstrip(b" ").decode(_TEXT_ENCODING)


def _padded(value: str, length: int) -> bytes:
    try:
        return _exactly(value.encode(_TEXT_ENCODING).ljust(length), length)
    except UnicodeEncodeError as error:
        raise UsageError(f"{value!r} is not in ISO 8859-1") from error


def _exactly(value: bytes, length: int) -> bytes:
    if len(value) != length:
        raise UsageError(f"a value of {len(value)} bytes in a field of {length}")
    return value


_NO_STRINGS: Final[Mapping[str, bytes]] = {}


class Table:
    """The fields of one record at one version, in their order."""

    def __init__(self, record: type["Record"], version: int) -> None:
        named = [(each.name, each.metadata[_WIRE]) for each in fields(record) if _WIRE in each.metadata]
        rows = [(name, wire) for name, wire in named if wire.since <= version]
        self.what = record.__name__
        names = [name for name, _ in rows]
        self._rows = tuple(rows)
        self.strings = tuple(name for name, wire in rows if wire.is_string)
        self._values_of = attrgetter(*names, names[0])  # a name more, because one alone gives no tuple
        self._structs = {
            order: struct.Struct(order.code + "".join(wire.code for _, wire in rows)) for order in ByteOrder
        }
        self.length = self._structs[ByteOrder.BIG_ENDIAN].size

    def read(self, body: BodyReader) -> dict[str, Any]:
        """The values by their names."""
        layout = self._structs[body.byte_order]
        values = layout.unpack(body.take(self.length, self.what))
        return {name: self._value(name, wire, value) for (name, wire), value in zip(self._rows, values, strict=True)}

    def _value(self, name: str, wire: _Wire, value: Any) -> Any:
        if wire.must_be_zero and value:
            invalid(f"{self.what} has {name} {value}, which is not read here")
        return value if wire.read is None else wire.read(value)

    def write(self, record: "Record", byte_order: ByteOrder, strings: Mapping[str, bytes] = _NO_STRINGS) -> bytes:
        """The bytes of a record's fields; `strings` has those of its strings, by their names."""
        pairs = zip(self._rows, self._values_of(record), strict=False)
        values = [
            strings[name] if wire.is_string else value if wire.write is None else wire.write(value)
            for (name, wire), value in pairs
        ]
        try:
            return self._structs[byte_order].pack(*values)
        except struct.error as error:
            raise UsageError(f"{self.what}: {error}") from error


_TABLES: Final[dict[tuple[type["Record"], int], Table]] = {}


def table_of(record: type["Record"], version: int = 1) -> Table:
    """The table of a record at a version, made once."""
    key = (record, version)
    if key not in _TABLES:
        _TABLES[key] = Table(record, version)
    return _TABLES[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Bytes of a fixed length: an eye-catcher, if it has one, and the fields of its table."""

    STRUC_ID: ClassVar[bytes] = b""

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads the record at the reader's position. Raises ChannelProtocolError."""
        body.eye_catcher(cls.STRUC_ID)
        return cls(**table_of(cls).read(body))

    def write(self, byte_order: ByteOrder) -> bytes:
        """The bytes of the record. Raises UsageError for a value that has no place."""
        return self.STRUC_ID + table_of(type(self)).write(self, byte_order)

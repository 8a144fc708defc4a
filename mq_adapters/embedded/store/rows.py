"""Messages as rows of the store: written with a checksum, and read only if the checksum still holds."""

from collections.abc import Iterable
from typing import Any, Final

from mq_adapters.embedded.store.checksums import descriptor_checksum, message_checksum, state_checksum
from mq_adapters.embedded.store.errors import damage
from mq_adapters.message import MQCI_NONE, MQMI_NONE, Message, MessageDescriptor, unpack_descriptor

#: The columns of table `message` in their order: see layout.py.
COLUMNS: Final = "sequence, queue, correl_id, msg_id, put_us, expires_us, descriptor, origin, body, priority, checksum"
MessageRow = tuple[int, int, bytes | None, bytes | None, int, int, bytes, bytes, bytes, int, int]

#: How damage to a row without a message shows.
OTHER_CHECKSUM: Final = "is not as it was written: its checksum is another"
_DESCRIPTOR_CACHE_ENTRIES = 4_096
#: Errors of columns whose types have changed.
_NOT_READABLE: Final = (ValueError, TypeError, IndexError, AttributeError, OverflowError)


_Index = tuple[bytes, bytes | None, int]
_KnownDescriptor = tuple[MessageDescriptor, int, _Index]


class DamagedRow(Exception):
    """A row that has changed since it was written. The text says how the change shows."""


class RowReader:
    """Reads rows. It unpacks equal descriptors once."""

    def __init__(self) -> None:
        self._known: dict[bytes, _KnownDescriptor] = {}

    def message(self, row: tuple[Any, ...]) -> Message:
        """The message of a row. Raises DamagedRow if its checksum, its descriptor or its index does not fit.

        The columns are those of MessageRow, but damage may have changed their types. They are checked in here: a
        function that is compiled checks its arguments before it begins.
        """
        sequence, queue, correl_id, msg_id, put_us, expires_us, packed, origin, body, priority, checksum = row
        known = self._known.get(packed)
        try:
            shared = descriptor_checksum(packed) if known is None else known[1]
            if message_checksum(shared, sequence ^ queue ^ put_us ^ expires_us, origin, body) != checksum:
                raise DamagedRow("is not as it was put: its checksum is another")
            descriptor, _, index = self._unpacked(packed) if known is None else known
        except _NOT_READABLE as error:
            raise DamagedRow(f"is not readable: {error}") from error
        if (correl_id, msg_id, priority) != index:
            raise DamagedRow("has an index that differs from its descriptor")
        message = Message(descriptor, body, origin)
        message.sequence, message.put_us, message.expires_us = sequence, put_us, expires_us
        return message

    def _unpacked(self, packed: bytes) -> _KnownDescriptor:
        if len(self._known) >= _DESCRIPTOR_CACHE_ENTRIES:
            self._known.clear()
        descriptor = unpack_descriptor(packed)
        known = self._known[packed] = descriptor, descriptor_checksum(packed), _index_of(descriptor)
        return known


def rows_of(puts: Iterable[tuple[int, Message]]) -> list[MessageRow]:
    """The rows of persistent messages, each with the number of its queue."""
    rows: list[MessageRow] = []
    last: MessageDescriptor | None = None
    correl_id, msg_id, packed, priority, shared = MQCI_NONE, None, b"", 0, 0
    #: By the id of a descriptor, which lives as long as its message.
    known: dict[int, tuple[bytes, bytes | None, bytes, int, int]] = {}
    for queue, message in puts:
        descriptor = message.descriptor
        if descriptor is not last:  # many messages share one, and copies for several subscribers share several in turn
            last = descriptor
            found = known.get(id(descriptor))
            if found is None:
                packed = descriptor.pack()
                (correl_id, msg_id, priority), shared = _index_of(descriptor), descriptor_checksum(packed)
                known[id(descriptor)] = correl_id, msg_id, packed, priority, shared
            else:
                correl_id, msg_id, packed, priority, shared = found
        sequence, put_us, expires_us = message.sequence, message.put_us, message.expires_us
        origin, body = message.origin, message.body
        checksum = message_checksum(shared, sequence ^ queue ^ put_us ^ expires_us, origin, body)
        rows.append((sequence, queue, correl_id, msg_id, put_us, expires_us, packed, origin, body, priority, checksum))
    return rows


def _index_of(descriptor: MessageDescriptor) -> _Index:
    """The columns that repeat a descriptor's fields: CorrelId, MsgId if the putter chose it, and priority."""
    chosen = None if descriptor.msg_id == MQMI_NONE else descriptor.msg_id
    return descriptor.correl_id, chosen, descriptor.priority


def checked_state(kind: int, row: tuple[Any, ...]) -> tuple[bytes, bytes]:
    """Key and value of a row of state, as they were written. Its types may have changed, as those of a message."""
    key, value, checksum = row
    try:
        is_sound = state_checksum(kind, key, value) == checksum
    except TypeError:  # a value that is no bytes any more
        is_sound = False
    if not is_sound:
        raise damage(f"read state {int(kind)} {key!r:.80}", OTHER_CHECKSUM)
    return key, value

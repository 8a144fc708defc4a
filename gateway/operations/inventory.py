"""Inventories: once a day, and when retention cuts the trail, the trail tells of everything that lasts.

That is each session, each filter of a session, each registration of the broker and each retained publication. So
custody can begin in the middle: whoever reads on from the record `begun` knows the state where `complete` stands. Each
entry is true at its own place in the trail, for it is read between two commits. What changes later has a record of its
own.

The rows of the store are read a page at a time, one page in each tick, in the order of their keys. So the loop goes on
meanwhile, and nothing is kept in memory. When an inventory was last complete stands in the store (StateKind.GATEWAY,
`inventory`: microseconds since 1970, 8 bytes, big-endian; 0 where one is due). A gateway that ends meanwhile begins
anew.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.audit_trail.notes.application_work import payload_offset
from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.retention import ORDER
from gateway.bridge.sessions.session_store import SessionRow, SubscriptionRow
from mq_adapters.broker.retained import unpack_retained
from mq_adapters.broker.subscription import Subscription
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Note, StateKind, UnitOfWork

INTERVAL_US: Final = 24 * 3_600_000_000
#: Rows of one page, which is one record, and bytes of keys and values after which a page ends.
PAGE_ROWS: Final = 200
PAGE_BYTES: Final = 256 * 1024
_LAST_ROW: Final = b"inventory"
_TIME_BYTES: Final = 8

#: The kinds of rows that last.
LASTING: Final = (
    StateKind.SESSION,
    StateKind.SESSION_SUBSCRIPTION,
    StateKind.BROKER_SUBSCRIPTION,
    StateKind.BROKER_RETAINED,
)

Entry = tuple[object, ...]
ReadSubscription = Callable[[bytes, bytes], Subscription]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the inventory: the event of its records, the kind of its rows, and how an entry is made of a row."""

    event: str
    kind: StateKind
    entry: Callable[[bytes, bytes], Entry]


class Inventory:
    """The inventories of a gateway. `read_subscription` makes a subscription of a row (Broker.read_subscription).

    `gateway_name` stands in the first record of each, so that the audit of any day finds it.
    """

    def __init__(self, engine: Engine, read_subscription: ReadSubscription, gateway_name: str = "") -> None:
        self._engine = engine
        self._gateway_name = gateway_name
        self._read_subscription = read_subscription
        self._parts = tuple(
            _Part(*row)
            for row in zip(
                ("sessions", "filters", "registrations", "retained"),
                LASTING,
                (_session, _filter, self._registration, self._retained),
                strict=True,
            )
        )
        #: The part that is being told, and the key of its last row; None while there is no inventory.
        self._place: tuple[int, bytes] | None = None
        self._entries = 0
        self._is_reading = False
        last = engine.state(StateKind.GATEWAY, _LAST_ROW)
        self._last_us = int.from_bytes(last or b"", "big")
        if last is None:
            self._remember_time()
        engine.on_application_unit.append(self._watch)

    def tick(self) -> None:
        """Begins an inventory that is due, or tells a page of the one under way. Call it several times a second."""
        if self._is_reading or self._engine.failed is not None:
            return
        if self._place is None:
            if self._engine.now_us() - self._last_us < INTERVAL_US:
                return
            self._place, self._entries = (0, b""), 0
            self._tell(lambda: [(*self._note("begun", 0), self._gateway_name)])
        else:
            self._tell(self._page)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _watch(self, unit: UnitOfWork) -> None:
        """The keeper of the trail is about to remove segments: the next inventory is due, after a kill too."""
        if any(note[0] == NoteKind.OPERATED and note[3] == ORDER for note in unit.notes):
            self._last_us = 0
            unit.set_state(StateKind.GATEWAY, _LAST_ROW, bytes(_TIME_BYTES))

    def _tell(self, make: Callable[[], list[Note]]) -> None:
        """Adds notes between two commits: what they tell is committed, and nothing else is."""
        self._is_reading = True

        def told() -> list[Note]:
            self._is_reading = False
            return make()

        self._engine.note_first(told)

    def _page(self) -> list[Note]:
        assert self._place is not None, "an inventory is under way"
        number, after = self._place
        part = self._parts[number]
        rows = self._rows(part.kind, after)
        notes: list[Note] = []
        if rows:
            self._place = number, rows[-1][0]
            self._entries += len(rows)
            notes.append(self._note(part.event, len(rows), [part.entry(key, value) for key, value in rows]))
        elif number + 1 < len(self._parts):
            self._place = number + 1, b""
        else:
            self._place = None
            notes.append(self._note("complete", self._entries))
            self._remember_time()
        return notes

    def _rows(self, kind: StateKind, after: bytes) -> list[tuple[bytes, bytes]]:
        """The next rows of a kind behind a key, at least one if there is one."""
        rows: list[tuple[bytes, bytes]] = []
        size_bytes = 0
        found = self._engine.each_state(kind, start=after + b"\0")
        while len(rows) < PAGE_ROWS and size_bytes < PAGE_BYTES and (row := next(found, None)) is not None:
            rows.append(row)
            size_bytes += len(row[0]) + len(row[1])
        return rows

    def _note(self, event: str, count: int, entries: Sequence[Entry] = ()) -> Note:
        lists = [tuple(entries) if each.event == event else () for each in self._parts]
        return (int(NoteKind.INVENTORY), self._engine.now_us(), event, count, *lists)

    def _remember_time(self) -> None:
        self._last_us = self._engine.now_us()
        unit = self._engine.begin()
        unit.set_state(StateKind.GATEWAY, _LAST_ROW, self._last_us.to_bytes(_TIME_BYTES, "big"))
        self._engine.submit(unit)

    def _registration(self, key: bytes, value: bytes) -> Entry:
        found = self._read_subscription(key, value)
        identity, interest = found.identity, found.interest
        wanted = (found.stream_name, found.topic, interest.point, interest.filter, int(found.options))
        return (identity.queue_name, identity.correl_id or bytes(24), *wanted)

    def _retained(self, key: bytes, value: bytes) -> Entry:
        space, _, rest = key.decode().partition("\0")
        topic, _, point = rest.partition("\0")
        message = unpack_retained(value, self._engine.incarnation).message
        payload = memoryview(message.body)[payload_offset(message) :]
        return (space, topic, point, message.sequence, len(payload), hashlib.sha256(payload).digest())


def _session(key: bytes, value: bytes) -> Entry:
    row = SessionRow.unpack(value)
    return (key.decode(), row.epoch, row.user or "", row.level, "connected" if row.connected else "away")


def _filter(key: bytes, value: bytes) -> Entry:
    epoch, topic_filter = SubscriptionRow.read_key(key)
    return (epoch, topic_filter, SubscriptionRow.unpack(value).qos)

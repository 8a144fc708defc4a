"""What clients have sent, were told and received, in order, each with the number of changes that were made before it.

A client of the matrix keeps nothing else: from the ledger up to some change it goes on as the real one would have, had
the power gone there.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that happened to `who`. `at`: so many changes had been begun by then."""

    at: int
    who: str
    what: str
    payload: bytes = b""
    topic: str = ""
    qos: int = 0
    identifier: int = 0
    retain: bool = False


#: A PUBLISH was sent; its PUBREC, or its PUBACK or PUBCOMP, has come.
SENT, RECEIVED, ACKNOWLEDGED = "sent", "received", "acknowledged"
#: A message was delivered; a message of QoS 2 was released by PUBREL.
DELIVERED, RELEASED = "delivered", "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A PUBLISH that is not acknowledged yet."""

    entry: Entry
    is_received: bool


class Ledger:
    """The entries of one run."""

    def __init__(self, count: Callable[[], int], entries: Iterable[Entry] = ()) -> None:
        """`count` tells how many changes have been begun."""
        self._count = count
        self.entries: Final = list(entries)

    def note(self, who: str, what: str, **more: object) -> None:
        self.entries.append(Entry(at=self._count(), who=who, what=what, **more))  # type: ignore[arg-type]

    def until(self, number: int) -> "Ledger":
        """What had happened when that change was the last one."""
        return Ledger(lambda: number, (entry for entry in self.entries if entry.at <= number))

    def of(self, what: str, who: str | None = None) -> list[Entry]:
        return [entry for entry in self.entries if entry.what == what and who in (None, entry.who)]

    # -- the state of a client -----------------------------------------------------------------------------------------

    def in_flight(self, who: str) -> dict[int, InFlight]:
        """By packet identifier, in the order of sending."""
        found: dict[int, InFlight] = {}
        for entry in self.entries:
            if entry.who != who:
                continue
            if entry.what == SENT and entry.qos:
                found[entry.identifier] = InFlight(entry=entry, is_received=False)
            elif entry.what == RECEIVED:
                found[entry.identifier] = InFlight(entry=found[entry.identifier].entry, is_received=True)
            elif entry.what == ACKNOWLEDGED:
                del found[entry.identifier]
        return found

    def held(self, who: str) -> set[int]:
        """Identifiers of messages of QoS 2 that were delivered and not released."""
        found: set[int] = set()
        for entry in self.entries:
            if entry.who == who and entry.what == DELIVERED and entry.qos == 2:
                found.add(entry.identifier)
            elif entry.who == who and entry.what == RELEASED:
                found.discard(entry.identifier)
        return found

    def delivered(self, *who: str) -> Counter[bytes]:
        """How often each payload was delivered to any of these."""
        return Counter(entry.payload for entry in self.of(DELIVERED) if entry.who in who)

"""SUBSCRIBE and UNSUBSCRIBE in small shares: each turn of the event loop carries out a few filters, whoever asks.

A filter costs as much as some ten publications: it becomes a command, which the broker answers. A client that asks for
thousands at once, or many that do so together, would hold up all others; so a request of many filters is cut into
parts, and who asks when a turn has had its share waits in line, a part at a time (`holding_back`). Its SUBACK leaves
when the last part is decided.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from gateway.mqtt.events import Event, SubscribeReceived, UnsubscribeReceived

#: Our choice: a millisecond or two with the broker's side; the largest request is 400 parts, as many as a session has
#: marks.
FILTERS_AT_ONCE: Final = 5
#: Stands for the line among the names of targets, which have no small letters.
LINE: Final = "line"


class Codes:
    """The return codes of a request in parts."""

    def __init__(self, parts: int) -> None:
        self._codes: list[bytes | None] = [None] * parts

    def add(self, place: int, codes: bytes) -> bytes | None:
        """All codes when they are complete; else None."""
        self._codes[place] = codes
        known = [each for each in self._codes if each is not None]
        return b"".join(known) if len(known) == len(self._codes) else None


class Part(NamedTuple):
    """Some filters of a SUBSCRIBE or UNSUBSCRIBE."""

    event: SubscribeReceived | UnsubscribeReceived
    place: int
    codes: Codes

    def whole(self, codes: bytes) -> bytes | None:
        """What is to be answered when this part has these codes; None: not yet."""
        return self.codes.add(self.place, codes)


Asked = Event | Part
Whole = Callable[[bytes], bytes | None]
"""The return codes of a part to those of its request; None while some are missing."""


def as_they_are(codes: bytes) -> bytes | None:
    """The codes of a request in one part."""
    return codes


def in_parts(event: Asked) -> Iterator[Asked]:
    """A request of many filters in its parts; anything else as it is."""
    if not isinstance(event, SubscribeReceived | UnsubscribeReceived) or len(event.entries) <= FILTERS_AT_ONCE:
        yield event
        return
    starts = range(0, len(event.entries), FILTERS_AT_ONCE)
    codes = Codes(len(starts))
    for place, start in enumerate(starts):
        share = slice(start, start + FILTERS_AT_ONCE)
        if isinstance(event, SubscribeReceived):
            yield Part(
                event._replace(
                    subscriptions=event.subscriptions[share], entries=event.entries[share], options=event.options[share]
                ),
                place,
                codes,
            )
        else:
            yield Part(
                event._replace(topic_filters=event.topic_filters[share], entries=event.entries[share]), place, codes
            )


class Shares:
    """What is left of this turn of the loop's share; in the next one those go on who wait in line."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], next_goes_on: Callable[[], bool]) -> None:
        """`next_goes_on` lets the first in line go on; False where nobody waits."""
        self._call_soon = call_soon
        self._next_goes_on = next_goes_on
        self._left = FILTERS_AT_ONCE
        self._is_due = False

    def take(self, event: Asked) -> bool:
        """Whether it may be carried out now. False: it is to wait in line, in parts."""
        request = event.event if isinstance(event, Part) else event
        if not isinstance(request, SubscribeReceived | UnsubscribeReceived):
            return True
        may = self._left > 0 and len(request.entries) <= FILTERS_AT_ONCE
        if may:
            self._left -= len(request.entries)
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._renew)
        return may

    def _renew(self) -> None:
        self._is_due = False
        self._left = FILTERS_AT_ONCE
        while self._left > 0 and self._next_goes_on():
            continue

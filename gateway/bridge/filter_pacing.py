"""SUBSCRIBE and UNSUBSCRIBE in small shares: every other turn of the event loop carries out a few filters, no more.

A filter costs as much as some ten publications: it becomes a command, which the broker answers. A client that asks for
thousands at once, or many that do so together, would hold up all others; so a request of many filters is cut into
parts (`long_requests`), and who asks when a turn has had its share waits in line, a part at a time (`holding_back`).
Its SUBACK leaves when the last part is decided.

A SUBSCRIBE or UNSUBSCRIBE of many filters, in parts that are cut out while it is carried out (`shares`).

One packet may name a quarter of a million filters. To look for those that stand there several times, or to cut all of
them at once, would take others' time as much as to carry them out, so both are done a little at a time.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from gateway.bridge.sessions import ClientSession
from gateway.bridge.subscribe import FAILURE
from gateway.mqtt.events import Event, SubscribeReceived, UnsubscribeReceived, entries_memory_bytes

#: Our choice: half a millisecond with the broker's side.
FILTERS_AT_ONCE: Final = 2
#: The same where nobody has published in so many turns: a fleet that subscribes anew holds up nobody.
_FILTERS_AMONG_THEMSELVES: Final = 10
_TURNS_OF_SILENCE: Final = 20
#: Stands for the line among the names of targets, which have no small letters.
LINE: Final = "line"


class Shares:
    """What is left of this turn of the loop's share; in the one after the next those go on who wait in line."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        commit_now: Callable[[], None],
        next_goes_on: Callable[[], bool],
        published: Callable[[], int],
    ) -> None:
        """`commit_now` answers what others have asked for; `next_goes_on` lets the first in line go on, if any.

        `published` counts the PUBLISHes that were taken.
        """
        self._call_soon = call_soon
        self._commit_now = commit_now
        self._next_goes_on = next_goes_on
        self._published = published
        self._published_before = published()
        #: Turns in which nobody has published.
        self._silence = 0
        self._left = FILTERS_AT_ONCE
        self._is_due = False

    def take(self, filters: int) -> bool:
        """Whether so many filters, no more than FILTERS_AT_ONCE, may be carried out now; False: they wait in line."""
        may = self._left > 0
        if may:
            self._left -= filters
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._rest)
        return may

    def _rest(self) -> None:
        """Every other turn is for everybody else, and takes no time where nobody else has sent anything."""
        self._call_soon(self._renew)

    def _renew(self) -> None:
        self._is_due = False
        self._listen()
        self._left = FILTERS_AT_ONCE if self._silence < _TURNS_OF_SILENCE else _FILTERS_AMONG_THEMSELVES
        self._commit_now()
        while self._left > 0 and self._next_goes_on():
            continue

    def _listen(self) -> None:
        published = self._published()
        self._silence = self._silence + 1 if published == self._published_before else 0
        self._published_before = published


#: Filters that are looked at in the time that carrying out a part takes, at half a microsecond each.
LOOKED_AT_ONCE: Final = 500

Request = SubscribeReceived | UnsubscribeReceived
Whole = Callable[[bytes], bytes | None]
"""The return codes of a part to those of its request; None while some are missing."""


def as_they_are(codes: bytes) -> bytes:
    """The codes of a request in one part."""
    return codes


class Part(NamedTuple):
    """Some filters of a request; `whole` is called with their codes, once."""

    event: Request
    whole: Whole


class LongRequest:
    """What is left of a request, and the codes of what is decided; until all is, the session is sent nothing."""

    def __init__(self, event: Request) -> None:
        self._event = event
        #: What it takes at the most, with what is noted of its filters.
        self.memory_bytes = entries_memory_bytes(len(event.entries), sum(map(len, event.entries)))
        self._session: ClientSession | None = None
        #: One for each entry: granted where the others do not say otherwise.
        self._codes = bytearray() if isinstance(event, SubscribeReceived) else bytearray(len(event.entries))
        #: The place of the entry that counts for each filter; all places of those that stand there several times, and
        #: of these the place of the entry that says whether what is retained is sent.
        self._last: dict[str, int] = {}
        self._places: dict[str, list[int]] = {}
        self._decisive: dict[str, int] = {}
        self._rest: Iterator[int] = iter(range(len(self._codes)))
        #: Entries that are not cut out, and those that are not decided.
        self._uncut = self._undecided = len(self._codes)

    @property
    def is_over(self) -> bool:
        """Whether every part has been cut out."""
        return not self._uncut and len(self._codes) == len(self._event.entries)

    def next_part(self, session: ClientSession) -> Part | None:
        """The next filters; None where this call has looked at some of them instead."""
        if isinstance(self._event, SubscribeReceived) and len(self._codes) < len(self._event.entries):
            self._look_at_some(self._event)
            return None
        if self._session is None:
            self._session = session
            session.pending_answers += 1
        places = tuple(islice(self._rest, FILTERS_AT_ONCE))
        self._uncut -= len(places)
        return Part(self._cut(places), lambda codes: self._add(places, codes))

    def end(self) -> None:
        """All is decided, or the rest is given up."""
        if self._session is not None:
            self._session.pending_answers -= 1
            self._session = None

    def _look_at_some(self, event: SubscribeReceived) -> None:
        """One entry of each filter is carried out, the last: all of them would bring all retained again."""
        first = len(self._codes)
        for place, (topic_filter, qos) in enumerate(event.subscriptions[first : first + LOOKED_AT_ONCE], start=first):
            self._codes.append(qos)
            if topic_filter in self._last:
                self._note_repeated(event, topic_filter, place)
            self._last[topic_filter] = place
        if len(self._codes) == len(event.entries):
            self._uncut = self._undecided = len(self._last)
            self._rest = iter(self._last.values())

    def _note_repeated(self, event: SubscribeReceived, topic_filter: str, place: int) -> None:
        """What is retained is sent where any entry asks for it always, or the first, as of several SUBSCRIBEs.

        Source: MQTT-3.8.4-5.
        """
        self._places.setdefault(topic_filter, [self._last[topic_filter]]).append(place)
        decisive = self._decisive.setdefault(topic_filter, self._last[topic_filter])
        if not event.options or (event.options[place].retain_handling == 0 and event.options[decisive].retain_handling):
            self._decisive[topic_filter] = place

    def _cut(self, places: tuple[int, ...]) -> Request:
        event = self._event
        if not isinstance(event, SubscribeReceived):
            some = slice(places[0], places[-1] + 1)
            return event._replace(topic_filters=event.topic_filters[some], entries=event.entries[some])
        subscriptions = tuple(event.subscriptions[place] for place in places)
        decisive = [self._decisive.get(each[0], place) for each, place in zip(subscriptions, places, strict=True)]
        options = tuple(
            event.options[place]._replace(retain_handling=event.options[telling].retain_handling)
            for place, telling in zip(places, decisive, strict=True)
            if event.options
        )
        entries = tuple(event.entries[place] for place in decisive)
        return event._replace(subscriptions=subscriptions, entries=entries, options=options)

    def _add(self, places: tuple[int, ...], codes: bytes) -> bytes | None:
        """A filter that is refused is so at each of its places; one that is granted has there what was asked there."""
        for place, code in zip(places, codes, strict=True):
            if not isinstance(self._event, SubscribeReceived):
                self._codes[place] = code
            elif code >= FAILURE:
                for each in self._places.get(self._event.subscriptions[place][0], (place,)):
                    self._codes[each] = code
        self._undecided -= len(places)
        if self._undecided:
            return None
        self.end()
        return bytes(self._codes)


Asked = Event | LongRequest

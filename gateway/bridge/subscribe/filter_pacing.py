"""Pacing of filters: every other turn of the event loop carries out a few filters of SUBSCRIBE and UNSUBSCRIBE.

A filter costs as much as some ten publications: it becomes a command, which the broker answers. A client that asks for
thousands of filters, or many clients that subscribe together, would delay all others. So `FilterPacing` allows a few
filters a turn, and fewer if they take long: a filter may have hundreds of levels, or bring a large retained message. A
client with more waits in line (paused_publishers.py). `LongRequest` cuts a packet of many filters, or of several long
ones, into parts; its SUBACK leaves when the last part is decided.

One packet may name a quarter of a million filters. To find repeated filters, or to cut all parts, takes as long as to
carry the filters out, so both are done a little at a time too.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from gateway.bridge.sessions.sessions import ClientSession
from gateway.bridge.subscribe.pending_packet import FAILURE, CodesOfAnswer
from gateway.mqtt.events import (
    Event,
    SubscribeReceived,
    UnsubscribeReceived,
    entries_memory_bytes,
    with_retain_handling,
)

#: Filters in one turn. This number is our choice: two filters take half a millisecond with the broker.
FILTERS_AT_ONCE: Final = 2
#: Filters in one turn after some turns without a PUBLISH: then a fleet that subscribes again delays nobody.
_FILTERS_AMONG_THEMSELVES: Final = 10
_TURNS_OF_SILENCE: Final = 20
#: No filter begins in a turn that has carried out filters for so long, seconds: twice the time of FILTERS_AT_ONCE usual
#: ones, and that of _FILTERS_AMONG_THEMSELVES. So a turn takes so long and the time of one filter, or of
#: FILTERS_AT_ONCE that are carried out together. Who publishes first after a silence waits for one such turn.
_MOST_S: Final = 0.001
_MOST_AMONG_THEMSELVES_S: Final = 0.0025
#: A filter of more bytes is long: it may have a hundred levels, and take as long as three usual ones.
LONG_BYTES: Final = 200
#: The line's name among the places (paused_publishers.py).
LINE: Final = "line"


class FilterPacing:
    """Counts the filters that this turn may still carry out. Clients in line go on in the turn after the next."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        commit_now: Callable[[], None],
        next_goes_on: Callable[[], bool],
        published: Callable[[], int],
        now_s: Callable[[], float],
    ) -> None:
        """`commit_now` commits what other clients have sent, so that it is answered first.

        `next_goes_on` lets the first client in line go on, and returns False if none waits. `published` counts
        PUBLISHes. `now_s`: a clock that never goes back.
        """
        self._call_soon = call_soon
        self._commit_now = commit_now
        self._next_goes_on = next_goes_on
        self._published = published
        self._now_s = now_s
        self._published_before = published()
        #: Turns without a PUBLISH.
        self._silence = 0
        self._left = FILTERS_AT_ONCE
        #: When this turn began to carry out filters, and for how long it may begin further ones.
        self._began_s = 0.0
        self._most_s = _MOST_S
        self._is_due = False

    def take(self, filters: int) -> bool:
        """Whether this many filters (at most FILTERS_AT_ONCE) may be carried out now. If not, they wait in line.

        The first ones of a turn always may. So somebody goes on in each, also where this process gets no core for long.
        """
        is_first = self._begin_turn()
        if is_first:
            self._began_s = self._now_s()
        may = is_first or self._may_begin()
        if may:
            self._left -= filters
        return may

    def _begin_turn(self) -> bool:
        """Sees that those in line go on in the turn after the next. Returns whether nothing had seen to it yet."""
        if self._is_due:
            return False
        self._is_due = True
        self._call_soon(self._rest)
        return True

    def _may_begin(self) -> bool:
        return self._left > 0 and self._now_s() <= self._began_s + self._most_s

    def _rest(self) -> None:
        """Leaves every other turn to all other clients. If they have sent nothing, that turn takes no time."""
        self._call_soon(self._renew)

    def _renew(self) -> None:
        self._is_due = False
        self._listen()
        if self._silence < _TURNS_OF_SILENCE:
            self._left, self._most_s = FILTERS_AT_ONCE, _MOST_S
        else:
            self._left, self._most_s = _FILTERS_AMONG_THEMSELVES, _MOST_AMONG_THEMSELVES_S
        self._commit_now()
        self._began_s = self._now_s()
        while self._next_goes_on():  # the first in line, however late it is
            if not self._may_begin():
                self._begin_turn()
                return

    def _listen(self) -> None:
        published = self._published()
        self._silence = self._silence + 1 if published == self._published_before else 0
        self._published_before = published


#: Filters that are compared in the time of one part, at half a microsecond each.
LOOKED_AT_ONCE: Final = 500

Request = SubscribeReceived | UnsubscribeReceived


def is_long(request: Request) -> bool:
    """Whether a request is carried out in parts."""
    entries = request.entries
    return len(entries) > FILTERS_AT_ONCE or (len(entries) > 1 and any(len(each) > LONG_BYTES for each in entries))


Whole = Callable[[CodesOfAnswer], CodesOfAnswer | None]
"""Takes the return codes of a part. Returns the codes of the whole request, or None while some are missing."""


def as_they_are(answer: CodesOfAnswer) -> CodesOfAnswer:
    """The codes of a request that has one part."""
    return answer


class Part(NamedTuple):
    """Some filters of a request. The caller must call `whole` once, with their codes."""

    event: Request
    whole: Whole


class LongRequest:
    """A request of many filters. Its session is sent nothing until all filters are decided."""

    def __init__(self, event: Request) -> None:
        self._event = event
        #: The most memory that it takes, with the notes on its filters.
        self.memory_bytes = entries_memory_bytes(len(event.entries), sum(map(len, event.entries)))
        self._session: ClientSession | None = None
        #: The codes of the entries that are decided.
        self._codes = bytearray() if isinstance(event, SubscribeReceived) else bytearray(len(event.entries))
        #: What the client is told of refused filters, by reason code.
        self._told: dict[int, str] = {}
        #: For each filter the place of the entry that counts. For each repeated filter also all its places, and the
        #: place of the entry that decides whether retained messages are sent.
        self._last: dict[str, int] = {}
        self._places: dict[str, list[int]] = {}
        self._decisive: dict[str, int] = {}
        self._rest: Iterator[int] = iter(range(len(self._codes)))
        #: How many entries are in no part yet, and how many are not decided.
        self._uncut = self._undecided = len(self._codes)

    @property
    def is_over(self) -> bool:
        """Whether every part has been cut."""
        return not self._uncut and len(self._codes) == len(self._event.entries)

    def next_part(self, session: ClientSession) -> Part | None:
        """The next part; None where this call has compared some filters instead."""
        if isinstance(self._event, SubscribeReceived) and len(self._codes) < len(self._event.entries):
            self._look_at_some(self._event)
            return None
        if self._session is None:
            self._session = session
            session.pending_answers += 1
        places = self._next_places()
        self._uncut -= len(places)
        return Part(self._cut(places), lambda answer: self._add(places, answer))

    def _next_places(self) -> tuple[int, ...]:
        """The places of a few entries, or of one that is long."""
        first = next(self._rest)
        few = 1 if len(self._event.entries[first]) > LONG_BYTES else FILTERS_AT_ONCE
        return (first, *islice(self._rest, few - 1))

    def end(self) -> None:
        """Ends the request: all filters are decided, or the rest is given up."""
        if self._session is not None:
            self._session.pending_answers -= 1
            self._session = None

    def _look_at_some(self, event: SubscribeReceived) -> None:
        """Compares some filters. Only the last entry of a repeated filter counts, so retained messages come once."""
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
        """Chooses the entry that decides on retained messages: one that asks for them always, or else the first.

        Many SUBSCRIBEs with one filter each would have the same effect (MQTT-3.8.4-5).
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
        entries = tuple(
            with_retain_handling(event.entries[place], event.entries[telling])
            for place, telling in zip(places, decisive, strict=True)
        )
        return event._replace(subscriptions=subscriptions, entries=entries, options=options)

    def _add(self, places: tuple[int, ...], answer: CodesOfAnswer) -> CodesOfAnswer | None:
        """Writes the codes: a refused filter has one code at all its places, a granted one the QoS asked at each."""
        self._told = {**answer.told, **self._told}
        for place, code in zip(places, answer.codes, strict=True):
            if not isinstance(self._event, SubscribeReceived):
                self._codes[place] = code
            elif code >= FAILURE:
                for each in self._places.get(self._event.subscriptions[place][0], (place,)):
                    self._codes[each] = code
        self._undecided -= len(places)
        if self._undecided:
            return None
        self.end()
        return CodesOfAnswer(bytes(self._codes), self._told)


Asked = Event | LongRequest

"""SUBSCRIBE and UNSUBSCRIBE in small shares: every other turn of the event loop carries out a few filters, no more.

A filter costs as much as some ten publications: it becomes a command, which the broker answers. A client that asks for
thousands at once, or many that do so together, would hold up all others; so a request of many filters is cut into
parts, and who asks when a turn has had its share waits in line, a part at a time (`holding_back`). Its SUBACK leaves
when the last part is decided.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from gateway.bridge.sessions import ClientSession
from gateway.bridge.subscriptions import FAILURE
from gateway.mqtt.events import Event, SubscribeReceived, UnsubscribeReceived

#: Our choice: half a millisecond with the broker's side.
FILTERS_AT_ONCE: Final = 2
#: The same where nobody has published in so many turns: a fleet that subscribes anew holds up nobody.
_FILTERS_AMONG_THEMSELVES: Final = 10
_TURNS_OF_SILENCE: Final = 20
#: Stands for the line among the names of targets, which have no small letters.
LINE: Final = "line"


Request = SubscribeReceived | UnsubscribeReceived


class Codes:
    """The return codes of a request in parts; while some are missing the session is sent nothing, as with one part."""

    def __init__(self, parts: int, of_request: Callable[[bytes], bytes]) -> None:
        """`of_request` makes the codes of the request of those of all parts."""
        self._codes = [b""] * parts
        self._missing = parts
        self._of_request = of_request
        self._session: ClientSession | None = None

    def begin(self, session: ClientSession) -> None:
        """The first part is carried out."""
        self._session = session
        session.pending_answers += 1

    def end(self) -> None:
        """All is decided, or the rest is given up."""
        if self._session is not None:
            self._session.pending_answers -= 1
            self._session = None

    def add(self, place: int, codes: bytes) -> bytes | None:
        """All codes when they are complete; else None. Each part is decided once."""
        self._codes[place] = codes
        self._missing -= 1
        if self._missing:
            return None
        self.end()
        return self._of_request(b"".join(self._codes))


class Part(NamedTuple):
    """Some filters of a SUBSCRIBE or UNSUBSCRIBE."""

    event: Request
    place: int
    codes: Codes

    @property
    def is_first(self) -> bool:
        return self.place == 0

    def whole(self, codes: bytes) -> bytes | None:
        """What is to be answered when this part has these codes; None: not yet."""
        return self.codes.add(self.place, codes)


Asked = Event | Part
Whole = Callable[[bytes], bytes | None]
"""The return codes of a part to those of its request; None while some are missing."""


def as_they_are(codes: bytes) -> bytes:
    """The codes of a request in one part."""
    return codes


def in_parts(event: Asked) -> Iterator[Asked]:
    """A request of many filters in its parts; anything else as it is."""
    if not isinstance(event, SubscribeReceived | UnsubscribeReceived) or len(event.entries) <= FILTERS_AT_ONCE:
        yield event
        return
    of_request: Callable[[bytes], bytes] = as_they_are
    if isinstance(event, SubscribeReceived):
        event, of_request = _without_repeated(event)
    starts = range(0, len(event.entries), FILTERS_AT_ONCE)
    codes = Codes(len(starts), of_request)
    for place, start in enumerate(starts):
        yield Part(_some(event, slice(start, start + FILTERS_AT_ONCE)), place, codes)


def _some(event: Request, share: slice) -> Request:
    if isinstance(event, SubscribeReceived):
        return event._replace(
            subscriptions=event.subscriptions[share], entries=event.entries[share], options=event.options[share]
        )
    return event._replace(topic_filters=event.topic_filters[share], entries=event.entries[share])


def _without_repeated(event: SubscribeReceived) -> tuple[SubscribeReceived, Callable[[bytes], bytes]]:
    """One entry for each filter, the last: all of them would bring all retained again.

    It is asked for where any entry asks for it always, or the first, as of several SUBSCRIBEs (MQTT-3.8.4-5).
    """
    last = {topic_filter: place for place, (topic_filter, _) in enumerate(event.subscriptions)}
    if len(last) == len(event.subscriptions):
        return event, as_they_are
    decisive = _of_retained(event) if event.options else last

    def of_request(codes: bytes) -> bytes:
        """A filter that is refused is so at each of its places; one that is granted has there what was asked there."""
        code_of = dict(zip(last, codes, strict=True))
        granted = ((code_of[topic_filter], qos) for topic_filter, qos in event.subscriptions)
        return bytes(code if code >= FAILURE else qos for code, qos in granted)

    once = event._replace(
        subscriptions=tuple(event.subscriptions[place] for place in last.values()),
        entries=tuple(event.entries[decisive[topic_filter]] for topic_filter in last),
        options=tuple(
            event.options[place]._replace(retain_handling=event.options[decisive[topic_filter]].retain_handling)
            for topic_filter, place in last.items()
        )
        if event.options
        else (),
    )
    return once, of_request


def _of_retained(event: SubscribeReceived) -> dict[str, int]:
    """The place of the entry of each filter that says whether what is retained is sent."""
    decisive: dict[str, int] = {}
    for place, (topic_filter, _) in enumerate(event.subscriptions):
        is_always = event.options[place].retain_handling == 0
        if topic_filter not in decisive or (is_always and event.options[decisive[topic_filter]].retain_handling):
            decisive[topic_filter] = place
    return decisive


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

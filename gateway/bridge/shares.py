"""SUBSCRIBE and UNSUBSCRIBE in small shares: every other turn of the event loop carries out a few filters, no more.

A filter costs as much as some ten publications: it becomes a command, which the broker answers. A client that asks for
thousands at once, or many that do so together, would hold up all others; so a request of many filters is cut into
parts (`long_requests`), and who asks when a turn has had its share waits in line, a part at a time (`holding_back`).
Its SUBACK leaves when the last part is decided.
"""

from collections.abc import Callable
from typing import Final

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

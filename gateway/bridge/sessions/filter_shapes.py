"""The shapes of topic filters: how many there may be, who brought which, and whether one more may come.

To find the subscriptions of a new topic takes a step for each shape of the filters (mappings/topics/level_index.py). So
the limit on shapes bounds the work of a PUBLISH, whatever filters and topics clients choose. A shape is the number of a
filter's levels, the places of its `+`, and whether `#` ends it. A filter without a wildcard has none. Filters of a
known shape are always taken, so honest clients feel nothing: a fleet of any size has some twenty shapes.

A new shape is charged to the user who brings it, and for a client without a user to the prefix of its address, as long
as the broker has a filter of that shape. The broker's index knows the shapes that there are now, with those of MQ
applications and of a store from before the limit. Nothing has to be given back here when a filter or a session ends:
what is gone from the index is forgotten when the next new shape comes.
"""

import logging
from collections.abc import Container, Iterable
from typing import Final, Protocol

from gateway.bridge.sessions.sessions import ClientSession
from gateway.config.limit_row import Scope
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import SessionLimits
from gateway.config.routes import EMBEDDED, Registration
from gateway.limits.budgets import Key
from gateway.limits.refusals import LimitReached, reached
from mappings.commands.command import Dialect
from mappings.topics.shapes import Shape
from mq_adapters.broker.broker import Broker

_log = logging.getLogger(__name__)

#: A user with so much weight of shapes or less is a newcomer. A quarter of all shapes is kept for newcomers.
NEWCOMER: Final = 8
_KEPT_FOR_NEWCOMERS: Final = 4
_PAYERS: Final = (Scope.USER, Scope.PREFIX)


class KnownShapes(Container[Shape], Protocol):
    """The shapes of an index of filters as it is now."""

    @property
    def weight(self) -> int:
        """The weight of all of them."""
        ...

    def of(self, pattern: str) -> Shape | None:
        """The shape that a pattern has or would have there."""
        ...


class BrokerShapes:
    """The shapes of the broker's subscriptions on the stream on which MQTT clients subscribe."""

    def __init__(self, broker: Broker, header: Dialect) -> None:
        self._broker = broker
        self._header = header

    @property
    def weight(self) -> int:
        return self._broker.shapes.weight

    def of(self, pattern: str) -> Shape | None:
        return self._broker.shape(pattern, self._header)

    def __contains__(self, shape: object, /) -> bool:
        return shape in self._broker.shapes


class FilterShapes:
    """Decides on filters of new shapes; one for the gateway."""

    def __init__(self, limits: SessionLimits, known: KnownShapes) -> None:
        self._most_of_user = limits.maximum_filter_shapes_per_user
        self._most = limits.maximum_filter_shapes_in_all
        self._known = known
        #: Who brought a shape.
        self._brought: dict[Shape, Key] = {}
        #: Shapes that were allowed since the last tick: a filter may still be on its way to the broker.
        self._lately: set[Shape] = set()

    def load(self, sessions: Iterable[ClientSession]) -> None:
        """Charges the shapes of a store to its users. Whatever is past the limit stays."""
        for session in sessions:
            for shape in filter(None, map(self._known.of, session.emitted.get(EMBEDDED.key, ()))):
                self._brought.setdefault(shape, _payer(session))
        if self._known.weight > self._most:
            _log.warning(
                "filter shapes past the limit shapes=%s limit=%s: subscriptions stay, and new topics take longer",
                self._known.weight,
                self._most,
            )

    def tick(self) -> None:
        """By now each filter that was allowed is in the index, or was refused."""
        self._lately.clear()

    def refuses(self, session: ClientSession, wanted: Iterable[Registration]) -> LimitReached | None:
        """The limit that the new shapes of a filter would pass. If there is none, they count from now on."""
        patterns = (pattern for each in wanted if each.destination == EMBEDDED for pattern in each.patterns)
        shapes = {shape for shape in map(self._known.of, patterns) if shape is not None}
        new = {shape for shape in shapes if shape not in self._known and shape not in self._lately}
        if not new:
            return None
        self._forget_gone()
        payer, weight = _payer(session), _weight(new)
        of_user = weight + _weight(shape for shape, who in self._brought.items() if who == payer)
        if of_user > self._most_of_user:
            return reached(Limit.FILTER_SHAPES_PER_USER)
        kept = 0 if of_user <= NEWCOMER else self._most // _KEPT_FOR_NEWCOMERS
        under_way = _weight(shape for shape in self._lately if shape not in self._known)
        if self._known.weight + under_way + weight > self._most - kept:
            return reached(Limit.FILTER_SHAPES_IN_ALL)
        self._brought.update(dict.fromkeys(new, payer))
        self._lately |= new
        return None

    def _forget_gone(self) -> None:
        living = (shape for shape in self._brought if shape in self._known or shape in self._lately)
        self._brought = {shape: self._brought[shape] for shape in living}


def _weight(shapes: Iterable[Shape]) -> int:
    return sum(shape.weight for shape in shapes)


def _payer(session: ClientSession) -> Key:
    """A user, or the prefix of a client without a user."""
    return next(each.key for each in session.account.line() if each.scope in _PAYERS)

"""The shapes of topic filters: how many there may be, who brought which, and whether one more may come.

To find the subscriptions of a new topic takes a step for each shape of the filters (mappings/topics/level_index.py). So
the limit on shapes bounds the work of a PUBLISH, whatever filters and topics clients choose. A shape is the number of a
filter's levels, the places of its `+`, and whether `#` ends it. A filter without a wildcard has none. Filters of a
known shape are always taken, and so are those of an ordinary shape: up to eight levels and at most one `+`. So honest
clients feel nothing, even while strangers bring shapes from many networks: a fleet of any size has some twenty shapes,
and most of them are ordinary.

Every other new shape is charged to the user who brings it, and for a client without a user to the prefix of its
address, as long as the broker has a filter of that shape. The broker's index knows the shapes that there are now, with
those of MQ applications and of a store from before the limit. Nothing has to be given back here when a filter or a
session ends: what is gone from the index is forgotten when the next new shape comes.

A RegSub of an MQ application, in either format, asks here too, and so does DEFINE SUB. It is charged to the
UserIdentifier of its MQMD, in the index of its stream and subscription point, and refused with 2102. An application
with a role cannot choose that identifier. One that may do everything can.

Subscriptions of a store past the limit stay. What they cost is bounded nevertheless (mappings/topics/crowd_index.py).
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from gateway.bridge.sessions.sessions import ClientSession
from gateway.config.limit_row import Scope
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import SessionLimits
from gateway.config.routes import EMBEDDED, Registration
from gateway.limits.budgets import Key
from gateway.limits.refusals import LimitReached, Refusals, reached
from mappings.commands.command import Dialect
from mappings.topics.shapes import Shape, Shapes
from mq_adapters.broker.broker import Broker
from mq_adapters.broker.subscriptions import MayAdd

_log = logging.getLogger(__name__)

#: A user with so much weight of shapes or less is a newcomer. A quarter of all shapes is kept for newcomers.
NEWCOMER: Final = 8
_KEPT_FOR_NEWCOMERS: Final = 4
_PAYERS: Final = (Scope.USER, Scope.PREFIX)


class KnownShapes(Protocol):
    """The shapes of the index in which MQTT sessions have their filters, as it is now."""

    @property
    def shapes(self) -> Shapes: ...

    def of(self, pattern: str) -> Shape | None:
        """The shape that a pattern of a session has or would have there."""
        ...

    def of_applications(self) -> Iterable[tuple[str, Shapes, Shape]]:
        """The shapes that MQ applications have here and in other indexes: user identifier, all shapes there, shape."""
        ...

    def ask(self, may_add: MayAdd) -> None:
        """From now on `may_add` is asked before an MQ application brings a new shape."""
        ...


class BrokerShapes:
    """The shapes of the broker's subscriptions on the stream on which MQTT clients subscribe."""

    def __init__(self, broker: Broker, header: Dialect) -> None:
        self._broker = broker
        self._header = header

    @property
    def shapes(self) -> Shapes:
        return self._broker.shapes

    def of(self, pattern: str) -> Shape | None:
        return self._broker.shape(pattern, self._header)

    def of_applications(self) -> Iterator[tuple[str, Shapes, Shape]]:
        return self._broker.shapes_of_applications()

    def ask(self, may_add: MayAdd) -> None:
        self._broker.limit_shapes(may_add)


class _User(NamedTuple):
    """The UserIdentifier of an MQ application. An MQTT user may have the same name and is another one."""

    identifier: str


_Payer = Key | _User
_Place = tuple[Shapes, Shape]
"""A shape in the index that has these shapes."""


class FilterShapes:
    """Decides on filters of new shapes; one for the gateway."""

    def __init__(self, limits: SessionLimits, known: KnownShapes, refusals: Refusals) -> None:
        """`refusals` counts those of MQ applications; the caller counts all others."""
        self._most_of_user = limits.maximum_filter_shapes_per_user
        self._most = limits.maximum_filter_shapes_in_all
        self._known = known
        self._refusals = refusals
        #: Who brought a shape.
        self._brought: dict[_Place, _Payer] = {}
        #: Shapes that were allowed since the last tick: a filter may still be on its way to the broker.
        self._lately: set[_Place] = set()

    def load(self, sessions: Iterable[ClientSession]) -> None:
        """Charges the shapes of a store to its users, and begins to ask. Whatever is past the limit stays."""
        self._known.ask(self.may_add)
        shapes = self._known.shapes
        for session in sessions:
            for shape in filter(None, map(self._known.of, session.emitted.get(EMBEDDED.key, ()))):
                self._charge(shapes, shape, _payer(session))
        for user, others, shape in self._known.of_applications():
            self._charge(others, shape, _User(user))
        for each in dict.fromkeys((shapes, *(others for others, _ in self._brought))):
            if each.unusual_weight > self._most:
                _log.warning(
                    "filter shapes past the limit shapes=%s limit=%s: subscriptions stay, and new topics take longer",
                    each.unusual_weight,
                    self._most,
                )

    def _charge(self, shapes: Shapes, shape: Shape, payer: _Payer) -> None:
        if not shape.is_ordinary:
            self._brought.setdefault((shapes, shape), payer)

    def tick(self) -> None:
        """By now each filter that was allowed is in the index, or was refused."""
        self._lately.clear()

    def refuses(self, session: ClientSession, wanted: Iterable[Registration]) -> LimitReached | None:
        """The limit that the new shapes of a filter would pass. If there is none, they count from now on."""
        patterns = (pattern for each in wanted if each.destination == EMBEDDED for pattern in each.patterns)
        return self._refuses(_payer(session), self._known.shapes, filter(None, map(self._known.of, patterns)))

    def may_add(self, user: str, shapes: Shapes, new: Iterable[Shape]) -> bool:
        """Whether an application's RegSub may bring new shapes to an index. If so, they count from now on."""
        found = self._refuses(_User(user), shapes, new)
        if found is not None:
            self._refusals.count(found)
        return found is None

    def _refuses(self, payer: _Payer, shapes: Shapes, wanted: Iterable[Shape]) -> LimitReached | None:
        new = {(shapes, each) for each in wanted if not each.is_ordinary and each not in shapes} - self._lately
        if not new:
            return None
        self._forget_gone()
        weight = _weight(new)
        of_user = weight + _weight(place for place, who in self._brought.items() if who == payer)
        if of_user > self._most_of_user:
            return reached(Limit.FILTER_SHAPES_PER_USER)
        kept = 0 if of_user <= NEWCOMER else self._most // _KEPT_FOR_NEWCOMERS
        under_way = _weight(place for place in self._lately if place[0] is shapes and place[1] not in shapes)
        if shapes.unusual_weight + under_way + weight > self._most - kept:
            return reached(Limit.FILTER_SHAPES_IN_ALL)
        self._brought.update(dict.fromkeys(new, payer))
        self._lately |= new
        return None

    def _forget_gone(self) -> None:
        living = (place for place in self._brought if place[1] in place[0] or place in self._lately)
        self._brought = {place: self._brought[place] for place in living}


def _weight(places: Iterable[_Place]) -> int:
    return sum(shape.weight for _, shape in places)


def _payer(session: ClientSession) -> Key:
    """A user, or the prefix of a client without a user; the client itself if an old row does not say its network."""
    line = tuple(session.account.line())
    return next((each.key for each in line if each.scope in _PAYERS), line[0].key)

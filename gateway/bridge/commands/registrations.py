"""Registrations: the patterns of each session, counted by destination, and the commands that change them.

Several topic filters may share one pattern, because MQRFH has coarser wildcards. So patterns are counted, and DeregSub
goes out when the last filter of a pattern goes. All commands of one client are on one queue to its target, so a
DeregSub undoes the RegSub in front of it, even if the RegSub has no answer yet.

The row of a session lists its registrations at targets, and the generation of each target's queue manager. A new queue
manager has none of them, so the gateway registers everything there again, some sessions at a time. At the start the
gateway compares the rows with subscriptions and routes, and corrects differences that a crash or another configuration
has left.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import ormsgpack

from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.commands.replies import Replies
from gateway.bridge.commands.requests import PacketPart, Requests
from gateway.bridge.sessions.session_store import read_row
from gateway.bridge.sessions.subscriber import Subscriber, Subscribers
from gateway.channels.target import Target
from gateway.config import RouteSettings
from gateway.config.routes import EMBEDDED, Destination, Registration, Routes, route_of
from gateway.limits.log_rate import LogRate
from gateway.mqtt.levels import PacketType
from mappings.commands.command import Completion, RegisterSubscriber, Response
from mappings.errors import MappingError
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork
from mq_adapters.reasons import QueueManagerError

_log = logging.getLogger(__name__)

_GENERATION_KEY: Final = b"registrations:"
_GENERATION_VERSION: Final = 1
#: Sessions that one unit of work registers at a new queue manager.
_SESSIONS_AT_ONCE: Final = 10
#: The most patterns in one RegSub that no SUBSCRIBE asked for.
_PATTERNS_AT_ONCE: Final = 50
#: Stands for the packet where none asked for a command: a SUBSCRIBE without bytes.
_NO_SUBSCRIBE: Final = (int(PacketType.SUBSCRIBE), 0, b"")
_NO_UNSUBSCRIBE: Final = (int(PacketType.UNSUBSCRIBE), 0, b"")


class _Generation:
    """The queue manager of a target that gets the registrations: a number, and its identifier once it is known."""

    __slots__ = ("identifier", "number")

    def __init__(self, number: int, identifier: str) -> None:
        self.number = number
        self.identifier = identifier


class Registrations:
    """Registers and deregisters sessions at every destination, and counts their patterns there."""

    def __init__(
        self,
        engine: Engine,
        subscribers: Subscribers,
        requests: Requests,
        replies: Replies,
        *,
        routes: Routes,
        targets: Iterable[Target] = (),
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._engine = engine
        self._subscribers = subscribers
        self._requests = requests
        self._replies = replies
        self._routes = routes
        self._targets = {target.name: target for target in targets}
        self._call_soon = call_soon
        self._destinations = {each.key: each for each in routes.destinations}
        self._generations = {name: self._known_generation(target) for name, target in self._targets.items()}
        #: Sessions whose rows and registrations differ and must be made equal.
        self._due: deque[Subscriber] = deque()
        self._is_renewing = False
        self._inexpressible = LogRate(_log, "topic filters not expressible client=%s count=%s")
        for target in self._targets.values():
            target.on_new_queue_manager.append(self._on_new_queue_manager(target))

    def of(self, topic_filter: str) -> tuple[Registration, ...]:
        """The registration of a filter at each destination; empty if one of them cannot express the filter."""
        try:
            return self._routes.registrations(topic_filter)
        except MappingError as error:
            event = "topic filter not expressible filter=%s reason=%s"
            self._inexpressible.tell("", "anybody", event, topic_filter, str(error))
            return ()

    def target_of(self, destination: Destination) -> Target | None:
        return None if destination.target is None else self._targets[destination.target.name]

    # -- for packets ---------------------------------------------------------------------------------------------------

    def register(
        self,
        unit: UnitOfWork,
        subscriber: Subscriber,
        wanted: tuple[Registration, ...],
        packet: PacketPart,
        now_us: int,
        *,
        new_only: bool = False,
    ) -> list[tuple[bytes, Destination]]:
        """Puts a RegSub for each destination; returns their MsgIds and destinations. It counts until `let_go`.

        `new_only`: the RegSub does not ask for retained messages. Raises MappingError for a filter that MQ cannot
        express, and QueueManagerError if a queue here refuses the command. Then nothing is registered.
        """
        asked: list[tuple[bytes, Destination]] = []
        self._hold(subscriber, wanted)
        try:
            for each in wanted:
                msg_id = self._requests.register(unit, subscriber, each, packet, now_us, new_only=new_only)
                asked.append((msg_id, each.destination))
                if not new_only:
                    self._requests.request_updates(unit, subscriber, each, packet, now_us)
        except (MappingError, QueueManagerError):
            told = {destination for _, destination in asked}
            unneeded = self.let_go(subscriber, wanted)
            self.deregister(unit, subscriber, [each for each in unneeded if each.destination in told], packet, now_us)
            raise
        return asked

    def let_go(self, subscriber: Subscriber, wanted: Iterable[Registration]) -> list[Registration]:
        """Takes one count off each pattern. Returns the patterns without a count, which the caller deregisters."""
        unneeded = []
        for each in wanted:
            counts = subscriber.emitted.get(each.destination.key, {})
            last = tuple(pattern for pattern in each.patterns if _count_down(counts, pattern))
            if last:
                unneeded.append(
                    Registration(destination=each.destination, topic_filters=each.topic_filters, patterns=last)
                )
        return unneeded

    def deregister(
        self,
        unit: UnitOfWork,
        subscriber: Subscriber,
        unneeded: Iterable[Registration],
        packet: PacketPart,
        now_us: int,
    ) -> list[tuple[bytes, Destination]]:
        """Puts a DeregSub for each destination; returns MsgId and destination of each that a queue here has taken."""
        told: list[tuple[bytes, Destination]] = []
        for each in unneeded:
            with _staying_registered(subscriber, each.destination):
                told.append((self._requests.deregister(unit, subscriber, each, packet, now_us), each.destination))
        return told

    def undo(self, unit: UnitOfWork, subscriber: Subscriber, unneeded: Iterable[Registration]) -> None:
        """Puts a DeregSub that no UNSUBSCRIBE asked for."""
        for msg_id, destination in self.deregister(unit, subscriber, unneeded, _NO_UNSUBSCRIBE, self._engine.now_us()):
            if destination.target is None:
                self._replies.expect(msg_id, lambda _response: None)

    def end(self, unit: UnitOfWork, subscriber: Subscriber, packet_type: int, now_us: int) -> None:
        """The session or group ends: puts a DeregSub with DeregAll for each place where it may be registered."""
        if subscriber.may_be_registered:
            with _staying_registered(subscriber, EMBEDDED):
                self._requests.deregister_all(unit, subscriber, packet_type, now_us, EMBEDDED)
        ended: set[tuple[str, str | None]] = set()
        for key in subscriber.generations:
            destination = self._destination(key)
            if destination is None or destination.target is None:
                continue
            space = (destination.target.name, destination.stream_name)
            if space not in ended:
                ended.add(space)
                with _staying_registered(subscriber, destination):
                    self._requests.deregister_all(unit, subscriber, packet_type, now_us, destination)

    # -- at the start, and for another queue manager -------------------------------------------------------------------

    def restore(self, subscriber: Subscriber, topic_filters: Iterable[str]) -> None:
        """Counts the patterns of a loaded subscriber's filters; `reconcile` does the rest.

        `topic_filters` has a filter as often as it counts.
        """
        stored = subscriber.stored_registrations or {}
        for topic_filter in topic_filters:
            self._hold(subscriber, self.of(topic_filter))
        for key, (generation, _) in stored.items():
            subscriber.generations[key] = generation
        has_other_patterns = any(
            set(stored.get(key, (0, []))[1]) != set(subscriber.emitted.get(key, ())) for key in subscriber.generations
        )
        if has_other_patterns or self._is_behind(subscriber):
            self._due.append(subscriber)
        else:
            subscriber.stored_registrations = None

    def reconcile(self) -> None:
        """Registers and deregisters where rows and subscriptions differ. Call it after every session was restored.

        A command that a queue here refuses then is tried again later.
        """
        if self._due:
            _log.info("registrations due sessions=%s", len(self._due))
            self._renew()

    def end_surplus(self) -> None:
        """Ends registrations at the embedded broker without a subscription. Call it after every session was restored.

        A crash between RegSub and the row of the session leaves such a registration. It was not granted yet.
        """
        attached = self._engine.objects.publish_subscribe
        known = {subscriber.correl_id: subscriber for subscriber in self._subscribers}
        surplus: dict[Subscriber, list[str]] = {}
        for found in attached().subscriptions() if attached is not None else ():
            subscriber = known.get(found.identity.correl_id or b"")
            if subscriber is not None and found.topic not in subscriber.emitted.get(EMBEDDED.key, {}):
                surplus.setdefault(subscriber, []).append(found.topic)
        unit = self._engine.begin()
        for subscriber, topics in surplus.items():
            _log.warning(
                "registration without a subscription ended client=%s patterns=%s", subscriber.client, len(topics)
            )
            for patterns in _portions(topics):
                self.undo(unit, subscriber, [Registration(destination=EMBEDDED, topic_filters=(), patterns=patterns)])
        self._engine.submit(unit)

    def _on_new_queue_manager(self, target: Target) -> Callable[[UnitOfWork], None]:
        def changed(unit: UnitOfWork) -> None:
            generation = self._generations[target.name]
            if generation.identifier == target.queue_manager_identifier:
                return
            is_first = not generation.identifier  # it gets the registrations that wait for the target
            generation.identifier = target.queue_manager_identifier
            generation.number += not is_first
            packed = ormsgpack.packb([_GENERATION_VERSION, generation.number, generation.identifier])
            unit.set_state(StateKind.GATEWAY, _GENERATION_KEY + target.name.encode(), packed)
            if not is_first:
                self._due.extend(each for each in self._subscribers if self._is_behind(each))
                _log.warning("subscriptions due anew target=%s sessions=%s", target.name, len(self._due))
                self._renew()

        return changed

    def _renew(self) -> None:
        if not self._is_renewing:
            self._is_renewing = True
            self._call_soon(self._renew_some)

    def _renew_some(self) -> None:
        """Renews some sessions in one unit of work; the next ones follow after its commit."""
        self._is_renewing = False
        if not self._due or self._engine.failed is not None:
            return
        unit = self._engine.begin()
        for _ in range(min(_SESSIONS_AT_ONCE, len(self._due))):
            subscriber = self._due.popleft()
            if self._subscribers.knows(subscriber) and not self._is_renewed(unit, subscriber):
                self._due.appendleft(subscriber)
                self._engine.submit(unit)
                return
        self._engine.submit(unit, lambda _unit: self._renew())

    def _is_renewed(self, unit: UnitOfWork, subscriber: Subscriber) -> bool:
        """Renews a session. False if a queue here refuses a command; the next try may repeat those that were put."""
        before = dict(subscriber.generations), subscriber.stored_registrations
        try:
            self._renew_session(unit, subscriber)
        except QueueManagerError as error:
            subscriber.generations, subscriber.stored_registrations = before
            _log.error(
                "registrations not renewed client=%s sessions=%s reason=%s", subscriber.client, len(self._due), error
            )
            return False
        return True

    def _renew_session(self, unit: UnitOfWork, subscriber: Subscriber) -> None:
        """Registers missing patterns, deregisters surplus ones, and writes both into the session's row."""
        now_us = self._engine.now_us()
        stored, subscriber.stored_registrations = subscriber.stored_registrations, None
        for key in {**subscriber.emitted, **subscriber.generations}:
            destination = self._destination(key)
            if destination is None or destination.target is None:
                subscriber.generations.pop(key, None)
                continue
            current = self._generations[destination.target.name].number
            known: list[str] = []
            if subscriber.generations.get(key) == current:
                if stored is None:
                    continue  # the row says what is registered
                known = stored.get(key, (current, []))[1]
            subscriber.generations[key] = current
            self._repair(unit, subscriber, destination, known, now_us)
        self._subscribers.save(unit, subscriber)

    def _repair(
        self,
        unit: UnitOfWork,
        subscriber: Subscriber,
        destination: Destination,
        known: list[str],
        now_us: int,
    ) -> None:
        wanted = subscriber.emitted.get(destination.key, {})
        for patterns in _portions([pattern for pattern in wanted if pattern not in known]):
            missing = Registration(destination=destination, topic_filters=(), patterns=patterns)
            msg_id = self._requests.register(unit, subscriber, missing, _NO_SUBSCRIBE, now_us, new_only=True)
            self._replies.expect(msg_id, self.late_refusal(subscriber, " ".join(patterns)))
        for patterns in _portions([pattern for pattern in known if pattern not in wanted]):
            surplus = Registration(destination=destination, topic_filters=(), patterns=patterns)
            self._requests.deregister(unit, subscriber, surplus, _NO_UNSUBSCRIBE, now_us)

    def late_refusal(self, subscriber: Subscriber, topic_filter: str) -> Callable[[Response | None], None]:
        """Takes the answer to a registration that was granted already. It can only report a refusal."""

        def answered(response: Response | None) -> None:
            if response is not None and response.completion is not Completion.FAILED:
                return
            reason_code = response.reasons[0].reason_code if response is not None and response.reasons else 0
            _log.warning(
                "granted subscription refused client=%s filter=%s reason_code=%s",
                subscriber.client,
                topic_filter,
                reason_code,
            )
            unit = self._engine.begin()
            who = (self._engine.now_us(), subscriber.client, subscriber.epoch, 0)
            reason = f"{topic_filter}, which was granted before the answer was there"
            unit.notes.append((NoteKind.REFUSED, *who, RegisterSubscriber.verb, 0, reason_code, reason))
            self._engine.submit(unit)

        return answered

    # -- inside --------------------------------------------------------------------------------------------------------

    def _hold(self, subscriber: Subscriber, wanted: Iterable[Registration]) -> None:
        for each in wanted:
            counts = subscriber.emitted.setdefault(each.destination.key, {})
            for pattern in each.patterns:
                counts[pattern] = counts.get(pattern, 0) + 1
            if each.destination.target is not None:
                current = self._generations[each.destination.target.name].number
                subscriber.generations.setdefault(each.destination.key, current)

    def _is_behind(self, subscriber: Subscriber) -> bool:
        """Whether a registration is at an earlier queue manager of its target, or at a target not configured now."""
        for key, generation in subscriber.generations.items():
            destination = self._destination(key)
            if destination is None or destination.target is None:
                return True
            if generation != self._generations[destination.target.name].number:
                return True
        return False

    def _destination(self, key: str) -> Destination | None:
        """The destination of that key, even if no route uses it now; None if its target is not configured."""
        found = self._destinations.get(key)
        if found is None and key:
            name, stream = key.split(" ", 1)
            target = self._targets.get(name)
            if target is not None:
                found = route_of(RouteSettings(target=name, stream=stream), target.settings).destination
        return found

    def _known_generation(self, target: Target) -> _Generation:
        packed = self._engine.state(StateKind.GATEWAY, _GENERATION_KEY + target.name.encode())
        if packed is None:
            return _Generation(1, target.queue_manager_identifier)
        _, (number, identifier) = read_row("what is registered at a target", packed, _GENERATION_VERSION)
        return _Generation(number, identifier)


@contextmanager
def _staying_registered(subscriber: Subscriber, destination: Destination) -> Iterator[None]:
    """Lets a session end without its DeregSub: a queue here refused it, or the present header cannot express it.

    Later publications for the session are discarded.
    """
    try:
        yield
    except (MappingError, QueueManagerError) as error:
        where = destination.key or "here"
        _log.error("deregistration not put client=%s destination=%r reason=%s", subscriber.client, where, str(error))


def _count_down(counts: dict[str, int], pattern: str) -> bool:
    """Takes one count off a pattern, and returns whether it was the last."""
    counts[pattern] = counts.get(pattern, 1) - 1
    if counts[pattern] > 0:
        return False
    del counts[pattern]
    return True


def _portions(patterns: list[str]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(patterns), _PATTERNS_AT_ONCE):
        yield tuple(patterns[start : start + _PATTERNS_AT_ONCE])

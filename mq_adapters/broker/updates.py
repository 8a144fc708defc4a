"""Sends retained publications after a RegSub or ReqUpdate, a little in each turn of the event loop.

A subscription may match all retained publications, and each copy costs as much as a publication. So the broker prepares
more than a few copies over several turns, and puts some of them in each unit of work. The answer is in the last unit.
The subscription is valid from the first unit on. If a new publication comes on a topic, the broker first sends the
retained one that still waits, so nobody gets an older publication behind a newer one. Small commands take turns as they
come. A few large commands take turns too, one of each identity, and the others wait in line.

If a limit on copies is reached (`may_copy`), the broker refuses the command with MQRC_Q_SPACE_NOT_AVAILABLE. The
command's subscriptions stay, as after a warning: the subscriber decides whether it wants only new publications.

Stored form of a command that is not answered yet (space BROKER_UPDATE): the key is a number, 8 bytes, big-endian; the
value is a msgpack list: version, numbers of the subscriptions, whether it is ReqUpdate, psc fields and warnings
[reason code, fields] of the answer, and nil or sequence, put time, expiry time, packed descriptor, private origin and
body of the command. After a restart the command begins anew, so a subscriber without an answer may get a copy twice.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, cast

import ormsgpack

from mappings.commands.response import ResponseReason
from mappings.reasons import Reason
from mq_adapters.broker.deliveries import DeliveryPlan
from mq_adapters.broker.distributor import Distributor, RetainedPlan
from mq_adapters.broker.received import received_command
from mq_adapters.broker.responses import CommandRefusal, Responder
from mq_adapters.broker.retained import Retained, RetainedPublications
from mq_adapters.broker.subscribers import Done
from mq_adapters.broker.subscription import Identity, Subscription
from mq_adapters.broker.subscriptions import SubscriptionRegistry
from mq_adapters.broker.topic_spaces import TopicSpaces
from mq_adapters.command_header import CommandHeader
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork
from mq_adapters.message import IDENTIFIER_TAG, Message, unpack_descriptor
from mq_adapters.reasons import ReasonCode, StoreError
from mq_adapters.system_queues import CONTROL_QUEUE

_VERSION: Final = 1
#: The most copies that a command brings in its own unit of work.
_COPIES_AT_ONCE: Final = 3
#: Seconds for which one turn makes copies ready, and at least one; and its most steps in the index.
_MOST_S: Final = 0.0005
_STEPS_IN_A_TURN: Final = 200
#: The most copies that one unit of work puts, at some 20 microseconds each; and its most bytes of bodies.
_COPIES_IN_A_UNIT: Final = 40
_BYTES_IN_A_UNIT: Final = 64 * 1024
#: A command is a large one if it brings more copies than that, or takes more steps than a turn has.
_MOST_COPIES_OF_A_SMALL_ONE: Final = 64
#: Large commands that take turns at one time. Each remembers the copies that it has sent, some 60 bytes a copy.
_LARGE_ONES_IN_TURN: Final = 4
_NOT_PARSED: Final = ResponseReason(reason_code=Reason.MQRC_CONTENT_ERROR)

CallSoon = Callable[[Callable[[], None]], object]
MayCopy = Callable[[bytes | None, int], bool]
"""Whether a subscriber with a CorrelId may have one more retained copy, whose row has so many bytes."""


class _Found(NamedTuple):
    """A publication that is retained on a routing topic, and a subscription that gets it."""

    subscription: Subscription
    topic: str
    kept: Retained


class _Update:
    """A command that asks for retained publications, and its progress."""

    __slots__ = (
        "bound",
        "copies",
        "done",
        "has_ended",
        "is_over",
        "is_parsed",
        "is_refused",
        "key",
        "message",
        "ready",
        "ready_bytes",
        "received",
        "sent",
        "steps",
    )

    def __init__(self, done: Done, message: Message | None, received: CommandHeader | None, bound: int) -> None:
        self.done = done
        #: The command to answer, if there is one.
        self.message = message
        self.received = received
        #: Later publications (by Retained.order) were sent when they were published.
        self.bound = bound
        #: The durable key of the command; b"" while it has none.
        self.key = b""
        #: The steps through the unchecked topics, and whether all topics are checked.
        self.steps: Iterator[_Found | None] = iter(())
        self.has_ended = False
        #: Copies that are ready to be put, and the bytes of their bodies.
        self.ready: list[tuple[_Found, RetainedPlan]] = []
        self.ready_bytes = 0
        #: Numbers of the publications that were sent.
        self.sent: set[int] = set()
        self.copies = 0
        self.is_parsed = True
        #: Whether a limit on copies stopped the command.
        self.is_refused = False
        #: The command has been answered: all is sent, or a later command for the same subscriptions sends the rest.
        self.is_over = False

    @property
    def identity(self) -> Identity:
        return self.done.to_update[0].identity

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(subscription.number for subscription in self.done.to_update)

    @property
    def is_due(self) -> bool:
        """Whether the ready copies should be put now."""
        return self.has_ended or len(self.ready) >= _COPIES_IN_A_UNIT or self.ready_bytes >= _BYTES_IN_A_UNIT

    def pack(self) -> bytes:
        done, message = self.done, self.message
        command = None
        if message is not None:
            times = (message.sequence, message.put_us, message.expires_us)
            command = [*times, message.descriptor.pack(), message.origin, message.body]
        warnings = [[int(warning.reason_code), warning.fields] for warning in done.warnings]
        return ormsgpack.packb([_VERSION, self.numbers, done.is_requested, done.fields, warnings, command])


class Updates:
    """Carries out and answers commands that ask for retained publications, a little in each turn of an event loop.

    Without `call_soon` of an event loop it carries out each command at once.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        spaces: TopicSpaces,
        registry: SubscriptionRegistry,
        retained: RetainedPublications,
        distributor: Distributor,
        responder: Responder,
        call_soon: CallSoon | None,
    ) -> None:
        self._engine = engine
        self._spaces = spaces
        self._registry = registry
        self._retained = retained
        self._distributor = distributor
        self._responder = responder
        self._call_soon = call_soon
        #: Commands under way, the next one first. Small and large ones of an identity take turns with other identities.
        self._in_turn: dict[tuple[Identity, bool], deque[_Update]] = {}
        #: Large commands that wait, by identity and the numbers of their subscriptions, in the order of arrival.
        self._line: dict[Identity, dict[tuple[int, ...], _Update]] = {}
        #: Identities in line without a large command among those that take turns, and identities with one there.
        self._next: deque[Identity] = deque()
        self._busy: set[Identity] = set()
        #: Small commands, by the numbers of their subscriptions.
        self._small: dict[tuple[int, ...], _Update] = {}
        #: All unanswered commands by the number of a subscription, and the MsgIds of these commands.
        self._of_number: dict[int, list[_Update]] = {}
        self._unanswered: set[bytes] = set()
        self._is_called = False
        self._is_stopping = False
        #: `Updates` asks this before it puts each copy.
        self.may_copy: MayCopy = lambda _correl_id, _size_bytes: True

    def begin(self, unit: UnitOfWork, done: Done, message: Message | None, received: CommandHeader | None) -> None:
        """Sends retained publications to the subscriptions of a command, and answers the command if there is one."""
        update = _Update(done, message, received, self._retained.kept)
        if self._call_soon is None:
            update.steps = self._steps(update)
            self._carry_out(unit, update)
            return
        looked_at = list(islice(self._steps(update), _STEPS_IN_A_TURN + 1))
        found = sorted((step for step in looked_at if step is not None), key=_age)
        is_small = len(looked_at) <= _STEPS_IN_A_TURN and len(found) <= _MOST_COPIES_OF_A_SMALL_ONE
        if is_small:
            update.steps = iter(found)
            if len(found) <= _COPIES_AT_ONCE:
                self._carry_out(unit, update)
                return
        update.key = self._engine.number().to_bytes(8, "big")
        unit.set_state(StateKind.BROKER_UPDATE, update.key, update.pack())
        self._remember(update)
        self._replace(unit, self._small.pop(update.numbers, None))
        if is_small:
            self._small[update.numbers] = update
            self._in_turn.setdefault((update.identity, True), deque()).append(update)
        else:
            self._stand_in_line(unit, update)
        self._want_turn()

    def load(self) -> None:
        """Begins the commands anew that the queue manager had not answered when it ended."""
        waiting = self._engine.states(StateKind.BROKER_UPDATE)
        by_number = {found.number: found for found in self._registry.everyone()} if waiting else {}
        unit = self._engine.begin()
        for key, packed in waiting:
            update = _unpack(packed, by_number, IDENTIFIER_TAG + self._engine.incarnation)
            update.key = key
            if self._call_soon is None or not update.done.to_update:
                update.steps = self._steps(update)
                self._carry_out(unit, update)
            else:
                self._remember(update)
                self._stand_in_line(unit, update)
        self._engine.submit(unit)
        self._want_turn()

    def stop(self) -> None:
        """The queue manager is about to end. Publications that are not sent yet wait for its next start."""
        self._is_stopping = True

    def is_unanswered(self, msg_id: bytes) -> bool:
        """Whether the command with that MsgId has no answer yet because there is more to send."""
        return msg_id in self._unanswered

    # -- inside: turns -------------------------------------------------------------------------------------------------

    def _carry_out(self, unit: UnitOfWork, update: _Update) -> None:
        """Carries out all of a command at once."""
        while not update.has_ended:
            self._make_ready(update)
            self._put(unit, update)
        self._answer(unit, update)

    def _stand_in_line(self, unit: UnitOfWork, update: _Update) -> None:
        """Puts a command at the end of the line. It replaces an earlier one for the same subscriptions."""
        identity = update.identity
        if identity not in self._line:
            self._line[identity] = {}
            if identity not in self._busy:
                self._next.append(identity)
        waiting = self._line[identity]
        self._replace(unit, waiting.pop(update.numbers, None))
        waiting[update.numbers] = update

    def _replace(self, unit: UnitOfWork, earlier: _Update | None) -> None:
        """Answers an earlier command, because a later one for the same subscriptions sends the rest."""
        if earlier is not None:
            self._forget(earlier)
            self._answer(unit, earlier)

    def _want_turn(self) -> None:
        if self._call_soon is not None and (self._line or self._in_turn) and not self._is_called:
            self._is_called = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        """Carries out a little of the next command. After a unit of work the next turn waits for the commit."""
        self._is_called = False
        may_go_on = self._engine.failed is None and not self._is_stopping
        update = self._next_in_turn() if may_go_on else None
        if update is None:
            return
        if not update.is_due:
            self._make_ready(update)
            self._want_turn()
            return
        unit = self._engine.begin()
        self._put(unit, update)
        if update.has_ended:
            place, others = self._in_turn.popitem()  # the last ones, see `_next_in_turn`
            others.popleft()
            if others:
                self._in_turn[place] = others
            self._end(unit, update)
        self._is_called = True
        self._engine.submit(unit, lambda _unit: self._committed())

    def _committed(self) -> None:
        self._is_called = False
        self._want_turn()

    def _next_in_turn(self) -> _Update | None:
        """The next command. The commands of the same identity move to the end of the line."""
        while self._next and len(self._busy) < _LARGE_ONES_IN_TURN:
            identity = self._next.popleft()
            self._in_turn[identity, False] = deque((self._first_of(identity),))
        while self._in_turn:
            place = next(iter(self._in_turn))
            updates = self._in_turn.pop(place)
            while updates and updates[0].is_over:
                updates.popleft()
            if updates:
                self._in_turn[place] = updates
                return updates[0]
        return None

    def _first_of(self, identity: Identity) -> _Update:
        """Takes the first large command of an identity out of the line."""
        waiting = self._line[identity]
        update = waiting.pop(next(iter(waiting)))
        if not waiting:
            del self._line[identity]
        self._busy.add(identity)
        update.steps = self._steps(update)
        return update

    def _end(self, unit: UnitOfWork, update: _Update) -> None:
        if self._small.get(update.numbers) is update:
            del self._small[update.numbers]
        else:
            self._busy.discard(update.identity)
            if update.identity in self._line:
                self._next.append(update.identity)
        self._forget(update)
        self._answer(unit, update)

    def _remember(self, update: _Update) -> None:
        for number in update.numbers:
            self._of_number.setdefault(number, []).append(update)
        if update.message is not None:
            self._unanswered.add(update.message.msg_id)
        self._distributor.before = self._hurry

    def _forget(self, update: _Update) -> None:
        update.is_over = True
        for number in update.numbers:
            self._of_number[number].remove(update)
            if not self._of_number[number]:
                del self._of_number[number]
        if update.message is not None:
            self._unanswered.discard(update.message.msg_id)
        if not self._of_number:
            self._distributor.before = None

    # -- inside: copies ------------------------------------------------------------------------------------------------

    def _steps(self, update: _Update) -> Iterator[_Found | None]:
        for subscription in update.done.to_update:
            interest = subscription.interest
            steps = self._retained.steps(subscription.space, interest.point, interest.pattern, subscription.scheme)
            for step in steps:
                is_found = step is not None and not self._spaces.spans_streams(interest.pattern, step[0])
                yield _Found(subscription, *step) if step is not None and is_found else None

    def _make_ready(self, update: _Update) -> None:
        """Makes copies of the next publications ready, as many as a turn may take."""
        ends_s = time.perf_counter() + _MOST_S
        for place, found in enumerate(update.steps, 1):
            if found is not None and self._is_due_to(update, found):
                message = self._retained.publication(found.kept).message
                update.ready.append((found, self._distributor.plan_retained(message, found.subscription)))
                update.ready_bytes += len(message.body)
                if update.is_due or time.perf_counter() > ends_s:
                    return
            if place >= _STEPS_IN_A_TURN:
                return
        update.has_ended = True

    def _put(self, unit: UnitOfWork, update: _Update) -> None:
        """Puts the ready copies, oldest first, without publications or subscriptions that have gone meanwhile."""
        ready, update.ready, update.ready_bytes = update.ready, [], 0
        for found, planned in sorted(ready, key=lambda each: _age(each[0])):
            if not update.is_refused and self._is_due_to(update, found):
                self._send(unit, update, found, planned)
        if update.is_refused:
            update.has_ended = True

    def _is_due_to(self, update: _Update, found: _Found) -> bool:
        """Whether a publication is still retained, is older than the command, and was not sent for the command yet."""
        subscription, topic, kept = found
        is_new = kept.order > update.bound or kept.sequence in update.sent
        if is_new or kept.has_expired(self._engine.now_us()):
            return False
        return self._retained.get(subscription.space, subscription.interest.point, topic) is kept

    def _send(self, unit: UnitOfWork, update: _Update, found: _Found, planned: RetainedPlan | None = None) -> None:
        """Sends a publication to a subscription as it is now, if it is still there."""
        meant = found.subscription
        current = self._registry.space(meant.space).find(meant.identity, meant.interest)
        if current is None or current.number != meant.number:
            return
        changes = self._engine.objects.changes
        if planned is None or current is not meant or planned.object_changes != changes:
            planned = self._distributor.plan_retained(self._retained.publication(found.kept).message, current)
        if update.is_refused or not self.may_copy(current.identity.correl_id, found.kept.size_bytes):
            update.is_refused = True
            return
        update.sent.add(found.kept.sequence)
        update.copies += self._distributor.send_retained(unit, planned, current)
        update.is_parsed = update.is_parsed and planned.is_parsed

    def _hurry(self, unit: UnitOfWork, plan: DeliveryPlan) -> None:
        """Before a publication: sends the retained ones on its topics to the subscriptions that still wait for them."""
        for subscription in plan.candidates if plan.routing_topics else ():
            for update in self._of_number.get(subscription.number, ()):
                for topic in plan.routing_topics:
                    kept = self._retained.get(subscription.space, subscription.interest.point, topic)
                    if kept is not None and self._is_due_to(update, found := _Found(subscription, topic, kept)):
                        self._send(unit, update, found)

    # -- inside: answers -----------------------------------------------------------------------------------------------

    def _answer(self, unit: UnitOfWork, update: _Update) -> None:
        """Answers when all is sent: 3077 if a ReqUpdate brought no copy, a warning if a filter could not be checked."""
        if update.key:
            unit.delete_state(StateKind.BROKER_UPDATE, update.key)
        done, message, received = update.done, update.message, update.received
        if message is None or received is None:
            return
        if update.is_refused:
            refusal = CommandRefusal(ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE, ("QName", update.identity.queue_name))
            self._responder.refuse(unit, message, received, refusal, CONTROL_QUEUE)
            return
        warnings = done.warnings if update.is_parsed else (*done.warnings, _NOT_PARSED)
        if done.is_requested and update.is_parsed and not update.copies:
            topics = [("Topic", subscription.topic) for subscription in done.to_update]
            refusal = CommandRefusal(Reason.MQRCCF_NO_RETAINED_MSG, *topics)
            self._responder.refuse(unit, message, received, refusal, CONTROL_QUEUE)
            return
        if done.is_requested:
            self._responder.applications.tell(unit, message, received, CONTROL_QUEUE, warnings)
        if warnings:
            self._responder.warn(unit, message, received, warnings, done.fields)
        else:
            self._responder.accept(unit, message, received, done.fields)


def _unpack(packed: bytes, by_number: dict[int, Subscription], identifier_prefix: bytes) -> _Update:
    """A command from its durable value; StoreError for another version or for damage."""
    try:
        version, numbers, is_requested, fields, warnings, command = cast(list[Any], ormsgpack.unpackb(packed))
        if version != _VERSION:
            raise ValueError(f"stored version {version}, this program reads {_VERSION}")
        done = Done(
            fields=_pairs(fields),
            warnings=tuple(ResponseReason(reason_code=code, fields=_pairs(said)) for code, said in warnings),
            to_update=tuple(by_number[number] for number in numbers if number in by_number),
            is_requested=is_requested,
        )
        if command is None:
            return _Update(done, None, None, 0)
        sequence, put_us, expires_us, descriptor, origin, body = command
        message = Message(unpack_descriptor(descriptor), body, origin)
    except (ValueError, TypeError) as error:
        raise StoreError("read a command", str(error), "use the program that wrote it, or a backup") from error
    message.sequence, message.put_us, message.expires_us = sequence, put_us, expires_us
    message.identifier_prefix = identifier_prefix
    received = received_command(message)
    assert isinstance(received, CommandHeader)  # the broker had read the command before it stored it
    return _Update(done, message, received, 0)


def _age(found: _Found) -> int:
    return found.kept.sequence


def _pairs(rows: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in rows)

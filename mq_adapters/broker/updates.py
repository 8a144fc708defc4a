"""What is retained, sent to who asks for it by RegSub or ReqUpdate: a little in each turn of the event loop.

A subscription may match all that is retained, and each copy costs as much as a publication. So what a command asks for
beyond a few copies is sent in pieces, each in a unit of work after the commit of the one before, and the answer is in
the unit of the last one. The subscription holds from the first unit on: what is retained on a topic and was not sent
yet goes out in front of the first publication there, so nobody gets an older one behind a newer one, and what has taken
its place since has been sent as it was published. A few commands are carried out in turn, one of each identity; the
others wait in line.

Stored form of a command that is not answered yet (space BROKER_UPDATE): the key is a number, 8 bytes, big-endian; the
value is a msgpack list: version, numbers of the subscriptions, whether it is ReqUpdate, psc fields and warnings
[reason code, fields] of the answer, and nil or sequence, put time, expiry time, packed descriptor, private origin and
body of the command. After a restart it begins anew: who has no answer yet may get a copy a second time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

import ormsgpack

from mappings.reasons import Reason
from mappings.response import ResponseReason
from mq_adapters.broker.deliveries import Plan
from mq_adapters.broker.distributor import Distributor
from mq_adapters.broker.received import CommandHeader, read_received
from mq_adapters.broker.responses import Refusal, Responder
from mq_adapters.broker.retained import Retained, RetainedPublications
from mq_adapters.broker.subscribers import Done
from mq_adapters.broker.subscription import Identity, Subscription
from mq_adapters.broker.subscriptions import SubscriptionRegistry
from mq_adapters.broker.topic_spaces import TopicSpaces
from mq_adapters.embedded.engine import CONTROL_QUEUE, Engine
from mq_adapters.embedded.unit_of_work import StateSpace, UnitOfWork
from mq_adapters.message import IDENTIFIER_TAG, Message, unpack_descriptor
from mq_adapters.reasons import StoreError

_VERSION: Final = 1
#: A piece: so many copies, at some 20 microseconds each with their commit, or bytes of bodies, or steps in the index.
_COPIES_AT_ONCE: Final = 16
_BYTES_AT_ONCE: Final = 64 * 1024
_STEPS_AT_ONCE: Final = 200
#: Commands that are carried out in turn: each remembers what it has sent, about 60 bytes a copy.
_COMMANDS_AT_ONCE: Final = 4
_NOT_PARSED: Final = ResponseReason(reason_code=Reason.MQRC_CONTENT_ERROR)

CallSoon = Callable[[Callable[[], None]], object]
_Step = tuple[Subscription, Retained] | None


class _Update:
    """A command that asks for what is retained, and how far it has come."""

    __slots__ = ("bound", "copies", "done", "is_parsed", "key", "message", "received", "sent", "steps")

    def __init__(self, done: Done, message: Message | None, received: CommandHeader | None, bound: int) -> None:
        self.done = done
        #: The command that is to be answered, if one is.
        self.message = message
        self.received = received
        #: What was kept later (Retained.order) has been sent as it was published.
        self.bound = bound
        self.copies = 0
        self.is_parsed = True
        #: Numbers of the publications that were sent.
        self.sent: set[int] = set()
        #: What is left to be looked at; None while it waits in line.
        self.steps: Iterator[_Step] | None = None
        #: Its durable key; b"" while it has none.
        self.key = b""

    @property
    def identity(self) -> Identity:
        return self.done.to_update[0].identity

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(subscription.number for subscription in self.done.to_update)

    def pack(self) -> bytes:
        done, message = self.done, self.message
        command = None
        if message is not None:
            times = (message.sequence, message.put_us, message.expires_us)
            command = [*times, message.descriptor.pack(), message.origin, message.body]
        warnings = [[int(warning.reason_code), warning.fields] for warning in done.warnings]
        return ormsgpack.packb([_VERSION, self.numbers, done.is_requested, done.fields, warnings, command])


class Updates:
    """Carries such commands out and answers them; without `call_soon`, that of an event loop, each at once."""

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
        #: Those that wait, by identity and in the order of arrival; one for the same subscriptions waits once.
        self._line: dict[Identity, dict[tuple[int, ...], _Update]] = {}
        #: Identities in line of which none is carried out.
        self._next: deque[Identity] = deque()
        self._in_turn: deque[_Update] = deque()
        #: All that are not answered yet, by the number of a subscription, and the MsgIds of their commands.
        self._of_number: dict[int, list[_Update]] = {}
        self._unanswered: set[bytes] = set()
        self._is_due = False

    def begin(self, unit: UnitOfWork, done: Done, message: Message | None, received: CommandHeader | None) -> None:
        """Sends what is retained to the subscriptions that a command names, and answers it where there is one."""
        update = _Update(done, message, received, self._retained.kept)
        update.steps = self._steps(update)
        is_last = self._send_piece(unit, update)
        while not is_last and self._call_soon is None:
            is_last = self._send_piece(unit, update)
        if is_last:
            self._answer(unit, update)
            return
        update.steps = None
        update.key = self._engine.number().to_bytes(8, "big")
        unit.set_state(StateSpace.BROKER_UPDATE, update.key, update.pack())
        self._stand_in_line(unit, update)
        self._want_turn()

    def load(self) -> None:
        """Takes up the commands that were not answered when the queue manager ended, and begins them anew."""
        by_number = {found.number: found for found in self._registry.everyone()}
        unit = self._engine.begin()
        for key, packed in self._engine.states(StateSpace.BROKER_UPDATE):
            update = _unpack(packed, by_number, IDENTIFIER_TAG + self._engine.incarnation)
            update.key = key
            if update.done.to_update:
                self._stand_in_line(unit, update)
            else:
                self._answer(unit, update)
        if self._call_soon is None:
            while self._line or self._in_turn:
                self._carry_on(unit)
        self._engine.submit(unit)
        self._want_turn()

    def is_unanswered(self, msg_id: bytes) -> bool:
        """Whether the command with that MsgId has been taken, and is not answered because there is more to be sent."""
        return msg_id in self._unanswered

    # -- inside: turns -------------------------------------------------------------------------------------------------

    def _stand_in_line(self, unit: UnitOfWork, update: _Update) -> None:
        """At the end of the line, in the place of an earlier one for the same: what it brings serves both."""
        identity = update.identity
        waiting = self._line.get(identity)
        if waiting is None:
            waiting = self._line[identity] = {}
            if all(each.identity != identity for each in self._in_turn):
                self._next.append(identity)
        earlier = waiting.pop(update.numbers, None)
        if earlier is not None:
            self._forget(earlier)
            self._answer(unit, earlier)
        waiting[update.numbers] = update
        for number in update.numbers:
            self._of_number.setdefault(number, []).append(update)
        if update.message is not None:
            self._unanswered.add(update.message.msg_id)
        self._distributor.before = self._hurry

    def _want_turn(self) -> None:
        if self._call_soon is not None and (self._line or self._in_turn) and not self._is_due:
            self._is_due = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        """A piece in a unit of work of its own; the next one after its commit."""
        self._is_due = False
        if self._engine.failed is not None or not (self._line or self._in_turn):
            return
        unit = self._engine.begin()
        self._carry_on(unit)
        self._is_due = True
        self._engine.submit(unit, lambda _unit: self._committed())

    def _committed(self) -> None:
        self._is_due = False
        self._want_turn()

    def _carry_on(self, unit: UnitOfWork) -> None:
        """The next piece of the command whose turn it is."""
        while self._next and len(self._in_turn) < _COMMANDS_AT_ONCE:
            self._in_turn.append(self._first_of(self._next.popleft()))
        update = self._in_turn.popleft()
        if not self._send_piece(unit, update):
            self._in_turn.append(update)
            return
        if update.identity in self._line:
            self._next.append(update.identity)
        self._forget(update)
        self._answer(unit, update)

    def _first_of(self, identity: Identity) -> _Update:
        waiting = self._line[identity]
        update = waiting.pop(next(iter(waiting)))
        if not waiting:
            del self._line[identity]
        update.steps = self._steps(update)
        return update

    def _forget(self, update: _Update) -> None:
        for number in update.numbers:
            self._of_number[number].remove(update)
            if not self._of_number[number]:
                del self._of_number[number]
        if update.message is not None:
            self._unanswered.discard(update.message.msg_id)
        if not self._of_number:
            self._distributor.before = None

    # -- inside: copies ------------------------------------------------------------------------------------------------

    def _steps(self, update: _Update) -> Iterator[_Step]:
        for subscription in update.done.to_update:
            interest = subscription.interest
            found = self._retained.steps(subscription.space, interest.point, interest.pattern, subscription.scheme)
            for step in found:
                is_found = step is not None and not self._spaces.spans_streams(interest.pattern, step[0])
                yield (subscription, step[1]) if step is not None and is_found else None

    def _send_piece(self, unit: UnitOfWork, update: _Update) -> bool:
        """Sends the next publications, the oldest of them first; whether nothing is left after them."""
        found: list[tuple[Subscription, Message]] = []
        found_bytes = 0
        assert update.steps is not None
        is_last = True
        for place, step in enumerate(update.steps, 1):
            if step is not None and self._is_due_to(update, step[1]):
                found.append((step[0], self._taken(update, step[1])))
                found_bytes += len(found[-1][1].body)
            if place >= _STEPS_AT_ONCE or len(found) >= _COPIES_AT_ONCE or found_bytes >= _BYTES_AT_ONCE:
                is_last = False
                break
        for subscription, message in sorted(found, key=lambda each: each[1].sequence):
            current = self._registry.space(subscription.space).find(subscription.identity, subscription.interest)
            if current is not None and current.number == subscription.number:
                self._send(unit, update, current, message)
        return is_last

    def _is_due_to(self, update: _Update, kept: Retained) -> bool:
        is_new = kept.order > update.bound or kept.sequence in update.sent
        return not is_new and not kept.has_expired(self._engine.now_us())

    def _taken(self, update: _Update, kept: Retained) -> Message:
        """A publication that is sent for this command now, and not again."""
        update.sent.add(kept.sequence)
        return self._retained.publication(kept).message

    def _send(self, unit: UnitOfWork, update: _Update, subscription: Subscription, message: Message) -> None:
        copies, is_parsed = self._distributor.send_retained(unit, (message,), subscription)
        update.copies += copies
        update.is_parsed = update.is_parsed and is_parsed

    def _hurry(self, unit: UnitOfWork, plan: Plan) -> None:
        """In front of a publication: what is retained on its topics, for subscriptions that have not got it yet."""
        for subscription in plan.candidates if plan.routing_topics else ():
            for update in self._of_number.get(subscription.number, ()):
                for topic in plan.routing_topics:
                    kept = self._retained.get(subscription.space, subscription.interest.point, topic)
                    if kept is not None and self._is_due_to(update, kept):
                        self._send(unit, update, subscription, self._taken(update, kept))

    # -- inside: answers -----------------------------------------------------------------------------------------------

    def _answer(self, unit: UnitOfWork, update: _Update) -> None:
        """Everything is sent: 3077 for a ReqUpdate that brought nothing, and a warning where filters could not tell."""
        if update.key:
            unit.delete_state(StateSpace.BROKER_UPDATE, update.key)
        done, message, received = update.done, update.message, update.received
        if message is None or received is None:
            return
        warnings = done.warnings if update.is_parsed else (*done.warnings, _NOT_PARSED)
        if done.is_requested and update.is_parsed and not update.copies:
            topics = (("Topic", subscription.topic) for subscription in done.to_update)
            refusal = Refusal(Reason.MQRCCF_NO_RETAINED_MSG, *topics)
            self._responder.refuse(unit, message, received, refusal, CONTROL_QUEUE)
        elif warnings:
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
    received = read_received(message)
    assert isinstance(received, CommandHeader)  # it was read when it came
    return _Update(done, message, received, 0)


def _pairs(rows: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in rows)

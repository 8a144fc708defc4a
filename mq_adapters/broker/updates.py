"""Sends retained publications after a RegSub or ReqUpdate, a little in each turn of the event loop.

A subscription may match all retained publications, and each copy costs as much as a publication. So the broker looks
for more than a few over several turns, and puts some copies in each unit of work, the oldest publication first. The
subscription is valid from the first unit on. If a new publication comes on a topic, the broker first sends the retained
one that still waits, so nobody gets an older publication behind a newer one. Small commands take turns as they come. A
few large commands take turns too, one of each identity, and the others wait in line.

An MQTT session has its answer at once, in the unit of work of its RegSub, and the copies follow. The same unit stores
that they are due (update.py), so a crash loses none. An application has its answer in the unit with the last copy.

If a limit on copies is reached (`CopyLimit`), the broker refuses the command with MQRC_Q_SPACE_NOT_AVAILABLE. The
command's subscriptions stay, as after a warning: the subscriber decides whether it wants only new publications. Who has
an answer cannot be refused, so a session has it at once only if the limit promises all copies. Else it waits for them.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, Protocol

from mappings.commands.response import ResponseReason
from mappings.reasons import Reason
from mq_adapters.broker.deliveries import DeliveryPlan
from mq_adapters.broker.distributor import Distributor, RetainedPlan
from mq_adapters.broker.responses import CommandRefusal, Responder
from mq_adapters.broker.retained import Retained, RetainedPublications
from mq_adapters.broker.subscribers import Done
from mq_adapters.broker.subscription import Identity, Subscription
from mq_adapters.broker.subscriptions import SubscriptionRegistry
from mq_adapters.broker.topic_spaces import TopicSpaces
from mq_adapters.broker.update import Found, Update, stored_updates
from mq_adapters.command_header import CommandHeader
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork
from mq_adapters.message import IDENTIFIER_TAG, Message
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import CONTROL_QUEUE

#: The most copies that a command brings in its own unit of work.
_COPIES_AT_ONCE: Final = 3
#: Seconds for which one turn makes copies ready, and at least one; and its most steps in the index.
_MOST_S: Final = 0.0005
_STEPS_IN_A_TURN: Final = 200
#: A command is a large one if it brings more copies than that, or takes more steps than a turn has.
_MOST_COPIES_OF_A_SMALL_ONE: Final = 64
#: Large commands that take turns at one time. Each remembers what it has found, some 70 bytes a publication.
_LARGE_ONES_IN_TURN: Final = 4
_NOT_PARSED: Final = ResponseReason(reason_code=Reason.MQRC_CONTENT_ERROR)

CallSoon = Callable[[Callable[[], None]], object]


class CopyLimit(Protocol):
    """Decides about retained copies for the subscriber with a CorrelId. Bytes are those of the publications' rows."""

    def promise(self, correl_id: bytes | None, size_bytes: int) -> bool:
        """Whether copies of so many bytes may be put in later units. Each is then taken, or released."""
        ...

    def take(self, correl_id: bytes | None, size_bytes: int) -> bool:
        """Whether one more copy may be put."""
        ...

    def keep_promise(self, correl_id: bytes | None, size_bytes: int, copies: int) -> None:
        """So many copies are put that were promised, by this limit or before a restart."""
        ...

    def release(self, correl_id: bytes | None, size_bytes: int) -> None:
        """Copies that were promised are not put."""
        ...


class NoCopyLimit:
    """Every copy may be put."""

    def promise(self, correl_id: bytes | None, size_bytes: int) -> bool:
        return True

    def take(self, correl_id: bytes | None, size_bytes: int) -> bool:
        return True

    def keep_promise(self, correl_id: bytes | None, size_bytes: int, copies: int) -> None:
        pass

    def release(self, correl_id: bytes | None, size_bytes: int) -> None:
        pass


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
        self._in_turn: dict[tuple[Identity, bool], deque[Update]] = {}
        #: Large commands that wait, by identity and the numbers of their subscriptions, in the order of arrival.
        self._line: dict[Identity, dict[tuple[int, ...], Update]] = {}
        #: Identities in line without a large command among those that take turns, and identities with one there.
        self._next: deque[Identity] = deque()
        self._busy: set[Identity] = set()
        #: Small commands, by the numbers of their subscriptions.
        self._small: dict[tuple[int, ...], Update] = {}
        #: All unanswered commands by the number of a subscription, and the MsgIds of these commands.
        self._of_number: dict[int, list[Update]] = {}
        self._unanswered: set[bytes] = set()
        #: All commands that have something to send in later units, by name.
        self._under_way: dict[bytes, Update] = {}
        self._is_called = False
        self._is_stopping = False
        self.limit: CopyLimit = NoCopyLimit()
        #: Called with CorrelId and name of a command when the unit of work with its last copies is made.
        self.on_end: Callable[[bytes | None, bytes], None] = lambda _correl_id, _name: None

    def begin(self, unit: UnitOfWork, done: Done, message: Message | None, received: CommandHeader | None) -> None:
        """Sends retained publications to the subscriptions of a command, and answers the command if there is one."""
        update = Update(done, message, received, self._retained.kept)
        if self._call_soon is None:
            update.steps = self._steps(update)
            self._carry_out(unit, update)
            return
        looked_at = list(islice(self._steps(update), _STEPS_IN_A_TURN + 1))
        found = [step for step in looked_at if step is not None]
        is_small = len(looked_at) <= _STEPS_IN_A_TURN and len(found) <= _MOST_COPIES_OF_A_SMALL_ONE
        if is_small:
            update.gather(found)
            update.arrange()
            if len(found) <= _COPIES_AT_ONCE:
                self._carry_out(unit, update)
                return
        update.number = self._engine.number()
        update.is_lasting = self._is_lasting(update.identity)
        if _is_of_session(update) and self._promises(update, found if is_small else None):
            self._answer(unit, update)
            update.message = update.received = None
        update.store(unit)
        self._remember(update)
        self._replace(unit, self._small.pop(update.numbers, None))
        if is_small:
            self._small[update.numbers] = update
            self._in_turn.setdefault((update.identity, True), deque()).append(update)
        else:
            self._stand_in_line(unit, update)
        self._want_turn()

    def load(self) -> None:
        """Goes on with the commands that were under way when the queue manager ended."""
        waiting = self._engine.states(StateKind.BROKER_UPDATE)
        by_number = {found.number: found for found in self._registry.everyone()} if waiting else {}
        prefix = IDENTIFIER_TAG + self._engine.incarnation
        unit = self._engine.begin()
        for update in stored_updates(waiting, by_number, prefix, self._retained.kept):
            if self._call_soon is None or not update.done.to_update:
                update.steps = self._steps(update)
                self._carry_out(unit, update)
            else:
                self._remember(update)
                self._stand_in_line(unit, update)
        self._engine.submit(unit)
        self._want_turn()

    def under_way(self) -> list[tuple[bytes | None, bytes]]:
        """CorrelId and name of each command that has something to send in later units."""
        return [(update.identity.correl_id, name) for name, update in self._under_way.items()]

    def is_under_way(self, name: bytes) -> bool:
        """Whether a command has something to send in later units."""
        return name in self._under_way

    def stop(self) -> None:
        """The queue manager is about to end. Publications that are not sent yet wait for its next start."""
        self._is_stopping = True

    def is_unanswered(self, msg_id: bytes) -> bool:
        """Whether the command with that MsgId has no answer yet because there is more to send."""
        return msg_id in self._unanswered

    # -- inside: turns -------------------------------------------------------------------------------------------------

    def _carry_out(self, unit: UnitOfWork, update: Update) -> None:
        """Carries out all of a command at once."""
        while not update.has_ended:
            self._make_ready(update)
            self._put(unit, update)
        update.delete(unit)
        self._answer(unit, update)

    def _stand_in_line(self, unit: UnitOfWork, update: Update) -> None:
        """Puts a command at the end of the line. It replaces an earlier one for the same subscriptions."""
        identity = update.identity
        if identity not in self._line:
            self._line[identity] = {}
            if identity not in self._busy:
                self._next.append(identity)
        waiting = self._line[identity]
        self._replace(unit, waiting.pop(update.numbers, None))
        waiting[update.numbers] = update

    def _replace(self, unit: UnitOfWork, earlier: Update | None) -> None:
        """Ends an earlier command, because a later one for the same subscriptions sends the rest."""
        if earlier is not None:
            self._forget(unit, earlier)
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

    def _next_in_turn(self) -> Update | None:
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

    def _first_of(self, identity: Identity) -> Update:
        """Takes the first large command of an identity out of the line."""
        waiting = self._line[identity]
        update = waiting.pop(next(iter(waiting)))
        if not waiting:
            del self._line[identity]
        self._busy.add(identity)
        update.steps = self._steps(update)
        return update

    def _end(self, unit: UnitOfWork, update: Update) -> None:
        if self._small.get(update.numbers) is update:
            del self._small[update.numbers]
        else:
            self._busy.discard(update.identity)
            if update.identity in self._line:
                self._next.append(update.identity)
        self._forget(unit, update)
        self._answer(unit, update)

    def _remember(self, update: Update) -> None:
        self._under_way[update.name] = update
        for number in update.numbers:
            self._of_number.setdefault(number, []).append(update)
        if update.message is not None:
            self._unanswered.add(update.message.msg_id)
        self._distributor.before = self._hurry

    def _forget(self, unit: UnitOfWork, update: Update) -> None:
        update.is_over = True
        update.delete(unit)
        if self._under_way.get(update.name) is update:  # applications may give two commands the same MsgId
            del self._under_way[update.name]
        if update.promised_bytes:
            self.limit.release(update.identity.correl_id, update.promised_bytes)
        self.on_end(update.identity.correl_id, update.name)
        for number in update.numbers:
            self._of_number[number].remove(update)
            if not self._of_number[number]:
                del self._of_number[number]
        if update.message is not None:
            self._unanswered.discard(update.message.msg_id)
        if not self._of_number:
            self._distributor.before = None

    # -- inside: copies ------------------------------------------------------------------------------------------------

    def _steps(self, update: Update) -> Iterator[Found | None]:
        for meant in update.done.to_update:
            subscription = self._current(meant) or meant  # a repeated RegSub leaves the earlier one
            interest = subscription.interest
            steps = self._retained.steps(subscription.space, interest.point, interest.pattern, subscription.scheme)
            for step in steps:
                is_found = step is not None and not self._spaces.spans_streams(interest.pattern, step[0])
                yield Found(subscription, *step) if step is not None and is_found else None

    def _make_ready(self, update: Update) -> None:
        """Looks for some more publications, or makes copies of the next ones ready, as many as a turn may take.

        A command whose subscriptions have gone has nothing more to send.
        """
        if not any(map(self._current, update.done.to_update)):
            update.has_ended = True
            return
        if not update.is_arranged:
            self._look(update)
            return
        if not update.ready:
            update.seen_changes = self._retained.changes
        ends_s = time.perf_counter() + _MOST_S
        while (found := update.upcoming) is not None:
            update.go_on()
            if self._is_due_to(update, found):
                message = self._retained.publication(found.kept).message
                update.ready.append((found, self._distributor.plan_retained(message, found.subscription)))
                update.ready_bytes += len(message.body)
            if update.is_due or time.perf_counter() > ends_s:
                break
        update.has_ended = update.upcoming is None

    def _look(self, update: Update) -> None:
        """Gathers what some steps find."""
        steps = list(islice(update.steps, _STEPS_IN_A_TURN))
        update.gather([step for step in steps if step is not None and not update.was_sent(step.kept)])
        if len(steps) < _STEPS_IN_A_TURN:
            update.arrange()

    def _put(self, unit: UnitOfWork, update: Update) -> None:
        """Puts the ready copies, oldest first, without publications or subscriptions that have gone meanwhile."""
        ready, update.ready, update.ready_bytes = update.ready, [], 0
        sent = 0
        is_as_it_was = update.seen_changes == self._retained.changes
        for found, planned in ready:
            if update.is_refused:
                break
            sequence, may_expire = found.kept.sequence, found.kept.expires_us > 0
            is_due = (is_as_it_was and not may_expire) or self._is_due_to(update, found)
            if sequence != sent and is_due and self._send(unit, update, found, planned):
                sent = sequence
        if update.is_refused:
            update.has_ended = True
        self._keep_promise(update)
        if ready:
            update.advance(unit, ready[-1][0].kept.sequence)

    def _is_due_to(self, update: Update, found: Found) -> bool:
        """Whether a publication is still retained, is older than the command, and was not sent for the command yet."""
        subscription, topic, kept = found
        if update.was_sent(kept) or kept.has_expired(self._engine.now_us()):
            return False
        return self._retained.get(subscription.space, subscription.interest.point, topic) is kept

    def _current(self, meant: Subscription) -> Subscription | None:
        """A subscription as it is now; None: it has ended."""
        current = self._registry.space(meant.space).find(meant.identity, meant.interest)
        return current if current is not None and current.number == meant.number else None

    def _send(self, unit: UnitOfWork, update: Update, found: Found, planned: RetainedPlan | None = None) -> bool:
        """Sends a publication to a subscription as it is now. Returns whether it is still there."""
        meant = found.subscription
        current = self._current(meant)
        if current is None:
            return False
        changes = self._engine.objects.changes
        if planned is None or current is not meant or planned.object_changes != changes:
            planned = self._distributor.plan_retained(self._retained.publication(found.kept).message, current)
        if update.is_refused or not self._takes(update, found.kept):
            update.is_refused = True
            return False
        update.copies += self._distributor.send_retained(unit, planned, current)
        update.is_parsed = update.is_parsed and planned.is_parsed
        return True

    def _takes(self, update: Update, kept: Retained) -> bool:
        """Whether the limit lets one more copy pass. One that was promised is charged with the others of its unit."""
        if update.message is not None:
            return self.limit.take(update.identity.correl_id, kept.size_bytes)
        update.kept_bytes += kept.size_bytes
        update.kept_copies += 1
        return True

    def _keep_promise(self, update: Update) -> None:
        """Charges the copies that were promised and are put now."""
        if update.kept_copies:
            update.promised_bytes = max(0, update.promised_bytes - update.kept_bytes)
            self.limit.keep_promise(update.identity.correl_id, update.kept_bytes, update.kept_copies)
            update.kept_bytes = update.kept_copies = 0

    def _promises(self, update: Update, found: list[Found] | None) -> bool:
        """Whether the limit lets all copies pass. `found`: what they are of; None: perhaps of everything."""
        size_bytes = self._retained.size_bytes
        if found is not None:
            size_bytes = sum([each.kept.size_bytes for each in found])
        if not self.limit.promise(update.identity.correl_id, size_bytes):
            return False
        update.promised_bytes = size_bytes
        return True

    def _is_lasting(self, identity: Identity) -> bool:
        """Whether the copies for a subscriber survive this process."""
        try:
            queue = self._engine.queue(identity.queue_name)
        except QueueManagerError:
            return True
        return identity.correl_id not in queue.memory_lanes

    def _hurry(self, unit: UnitOfWork, message: Message, plan: DeliveryPlan) -> None:
        """Before a publication: sends the retained ones on its topics to the subscriptions that still wait for them.

        An application may have put it in a unit of work before the command came: then it is as good as sent.
        """
        for subscription in plan.candidates if plan.routing_topics else ():
            for update in self._of_number.get(subscription.number, ()):
                for topic in plan.routing_topics:
                    kept = self._retained.get(subscription.space, subscription.interest.point, topic)
                    if kept is not None and self._is_due_to(update, found := Found(subscription, topic, kept)):
                        update.send_ahead(unit, kept.sequence)
                        self._send(unit, update, found)
                        self._keep_promise(update)
                if plan.retains and message.sequence < update.number:
                    update.send_ahead(unit, message.sequence)

    # -- inside: answers -----------------------------------------------------------------------------------------------

    def _answer(self, unit: UnitOfWork, update: Update) -> None:
        """Answers when all is sent: 3077 if a ReqUpdate brought no copy, a warning if a filter could not be checked."""
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


def _is_of_session(update: Update) -> bool:
    """Whether a command is the gateway's own RegSub for an MQTT session: only such messages have an origin."""
    message = update.message
    return message is not None and bool(message.origin) and not update.done.is_requested

"""One application's view of the engine: its open unit of work, and the calls of the port with call-backs.

The socket server keeps one for each connection; embedded/direct.py keeps one for a command that owns the store itself.
So both sides of the port behave alike. `done` is called at once inside a unit of work, and after the commit outside of
one. If the store fails, it is never called, and Engine.failed says why.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from mappings.headers.chain import FORMAT_DEAD_LETTER
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.departures import tell_apart
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.objects import PutTarget
from mq_adapters.embedded.operators_act import OperatorsAct, tell_alone, tell_removals
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.queue_administration import check_not_in_doubt, destroying
from mq_adapters.embedded.redrive import check_redriven
from mq_adapters.embedded.rights import EVERY_QUEUE, EVERYTHING, ContextRight, Right, Rights
from mq_adapters.embedded.unit_of_work import TRAIL_HEAD, ApplicationIdentity, Departure, StateKind, UnitOfWork
from mq_adapters.message import MQMT_REQUEST, MQPER_PERSISTENCE_AS_Q_DEF, Message
from mq_adapters.queue_manager import Compaction, QueueStatus
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.reports import ANY_REPORT, MQFB_COA, MQFB_COD, ReportOption, has_unknown_options
from mq_adapters.system_queues import is_closed_to_applications

#: The most bytes of bodies in one unit of work, which is in memory until it commits. A larger message may be alone.
MAXIMUM_UNIT_BYTES: Final = 256 * 1024 * 1024
#: Temporary queues of all programs of a user together. Each is listed, and gets each publication that it subscribes to.
MAXIMUM_DYNAMIC_QUEUES: Final = 1_000
#: PutApplName has 28 bytes (MQMD).
_APPLICATION_NAME_BYTES: Final = 28

_CONFIRMATIONS: Final = int(ReportOption.CONFIRM_ON_ARRIVAL | ReportOption.CONFIRM_ON_DELIVERY)

Done = Callable[[], None]


class Application:
    """A connected application. Not thread-safe: it lives in the engine's thread."""

    def __init__(
        self,
        engine: Engine,
        name: str = "",
        *,
        user: str = "",
        operator: str = "",
        rights: Rights = EVERYTHING,
        program: int = 0,
    ) -> None:
        """`user` is the UserIdentifier of messages that have none, `operator` the same in full, `program` a number."""
        self.name = name.encode(errors="replace")[:_APPLICATION_NAME_BYTES].decode(errors="ignore")
        self.user = user
        self.operator = operator or user
        self.program = program
        self.rights = rights
        self._identity = ApplicationIdentity(self.name, self.operator, rights is EVERYTHING, program)
        self._engine = engine
        self._unit: UnitOfWork | None = None
        self._unit_bytes = 0
        #: The operator's act that the open unit of work is, if it is one.
        self._act: OperatorsAct | None = None
        self._is_compacting = False
        self._dynamic_queues: list[Queue] = []
        self._held_queues: list[Queue] = []
        #: The broker made dead letters of the application's messages, and they found no room.
        self._has_held_letters = False
        #: The queue at which a get without a handle waits. The socket has one such get at a time.
        self.awaited_queue: Queue | None = None
        #: The queues that the application reads, by an object that tells one reading from another.
        self.read_queues: dict[int, Queue] = {}
        #: The queues that the application has open for input, by handle.
        self.input_queues: dict[int, Queue] = {}
        #: The managed queues of its open subscriptions, one for each.
        self.subscribed_queues: list[str] = []
        #: Called with each unit of work that was submitted.
        self.on_submitted: Callable[[UnitOfWork], None] = lambda _unit: None
        engine.objects.users.add(self)

    # -- units of work -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Opens a unit of work; 2128 if one is open."""
        if self._unit is not None:
            raise QueueManagerError(ReasonCode.MQRC_UOW_IN_PROGRESS, "begin a unit of work")
        self._unit = self._engine.begin()
        self._unit.is_explicit = True
        self._unit_bytes, self._act = 0, None

    @property
    def has_unit(self) -> bool:
        """Whether a unit of work is open."""
        return self._unit is not None

    @contextmanager
    def outside_unit(self) -> Iterator[None]:
        """Puts and gets in this block do not belong to the open unit of work (MQPMO_NO_SYNCPOINT)."""
        unit, self._unit = self._unit, None
        try:
            yield
        finally:
            self._unit = unit

    def operate(self, command: str, reason: str = "") -> None:
        """Marks the open unit of work as an operator's act; its commit notes the act. 2255 without a unit of work."""
        self.check_everything(command)
        if self._unit is None:
            raise QueueManagerError(ReasonCode.MQRC_UOW_NOT_AVAILABLE, command)
        self._act = self.act(command, reason=reason)

    def keep_trail_head(self, head: str) -> None:
        """Keeps how far the trail reaches, with the commit of the open unit of work; 2255 without one."""
        self.rights.check_writes_trail("keep the head of the trail")
        if self._unit is None:
            raise QueueManagerError(ReasonCode.MQRC_UOW_NOT_AVAILABLE, "keep the head of the trail")
        self._unit.set_state(*TRAIL_HEAD, head.encode())

    def set_state(self, kind: StateKind, key: bytes, value: bytes | None) -> None:
        """Keeps or deletes a state of this process with the commit of the open unit of work."""
        assert self._unit is not None, "a unit of work is open"
        self._unit.states.append((kind, key, value))

    def trail_head(self, done: Callable[[str], None]) -> None:
        """How far the trail reaches, as last committed, "" where nothing was kept; behind all commits under way."""
        self.rights.check_writes_trail("read the head of the trail")
        engine = self._engine
        engine.submit(engine.begin(), lambda _unit: done((engine.state(*TRAIL_HEAD) or b"").decode(errors="replace")))

    def act(self, command: str, *, reason: str = "") -> OperatorsAct:
        """An act of the user that the application runs as."""
        return OperatorsAct(operator=self.operator, command=command, reason=reason)

    def commit(self, done: Done) -> None:
        """Commits the open unit of work, if there is one. A unit that cannot be committed is backed out."""
        unit, act, self._unit, self._act = self._unit, self._act, None, None
        if unit is None:
            done()
            return
        if act is not None:
            tell_removals(self._engine, unit, act)
        self._submit(unit, done)

    def back_out(self) -> None:
        """Backs out the open unit of work, if there is one."""
        unit, self._unit = self._unit, None
        if unit is not None and self._engine.failed is None:
            self._engine.back_out(unit)

    def is_using(self, queue: Queue) -> bool:
        """Whether the application holds or reads the queue, or its open unit of work puts on it or gets from it."""
        unit = self._unit
        is_put_on = unit is not None and any(found is queue for found, _ in unit.puts)
        is_open = is_put_on or queue.exclusive_holder is self or self.is_getting_from(queue)
        return is_open or any(read is queue for read in self.read_queues.values())

    def is_getting_from(self, queue: Queue) -> bool:
        """Whether a get waits at the queue, it is open for input, or the open unit of work gets from it."""
        unit = self._unit
        is_open = self.awaited_queue is queue or any(each is queue for each in self.input_queues.values())
        return is_open or (unit is not None and any(found is queue for found, _, _ in unit.removals))

    def close(self) -> None:
        """The application has gone. Backs out, gives up its queues, and deletes its temporary queues."""
        self.back_out()
        self.read_queues.clear()
        self.input_queues.clear()
        self._engine.objects.users.discard(self)
        while self._held_queues:
            self.release(self._held_queues[-1].name)
        for queue in tuple(self._dynamic_queues):
            self.end_dynamic(queue)

    # -- messages ----------------------------------------------------------------------------------------------------

    def put(self, queue_name: str, message: Message, done: Done) -> None:
        """Puts a message that nobody else holds; its `msg_id` is known on return."""
        self.check(Right.PUT, queue_name, f"put on {queue_name}")
        self.put_unchecked(queue_name, message, done)

    def put_unchecked(self, queue_name: str, message: Message, done: Done) -> None:
        """Puts a message that this process has made for the application, whatever its rights on queues are."""
        message.written = None  # the broker must read an application's header, whatever the application says of it
        message.payload_sha256 = b""
        target = self.complete(queue_name, message)
        self._check_limit(len(message.body), f"put on {queue_name}")
        if target.queue.lacks_space:
            raise QueueManagerError(ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE, f"put on {queue_name}")
        if target.queue.is_put_inhibited or target.queue.is_paused:
            raise QueueManagerError(ReasonCode.MQRC_PUT_INHIBITED, f"put on {queue_name}")
        if self._has_held_letters and target.queue.handler is not None:
            self._check_held_letters(f"put on {queue_name}")
        unit = self._unit if self._unit is not None else self._engine.begin()
        self._engine.reporter.put(unit, target, message)
        if message.descriptor.report & _CONFIRMATIONS and not target.remote_queue:
            self._confirm_arrival(unit, target.queue, message)
        if unit is self._unit:
            self._unit_bytes += len(message.body)
            done()
        else:
            self._submit(unit, done)

    def complete(self, queue_name: str, message: Message) -> PutTarget:
        """Completes a message for the queue that it reaches. 2027, 2031, 2035, 2051 or 2061 if no wait helps."""
        target, operation = self._engine.objects.putting(queue_name), f"put on {queue_name}"
        self._complete_descriptor(message, target, operation)
        self._check_reply_queue(message)
        if is_closed_to_applications(target.queue.name):
            raise QueueManagerError(ReasonCode.MQRC_PUT_INHIBITED, operation)
        return target

    def getting(self, queue_name: str) -> Queue:
        """The queue to get from. 2035 without the right to get."""
        self.check(Right.GET, queue_name, f"get from {queue_name}")
        return self._engine.objects.getting(queue_name)

    def take(self, queue: Queue, correl_id: bytes | None, msg_id: bytes | None) -> Message | None:
        """Takes the first message that matches. It is not removed yet: `remove` or `give_back` must follow."""
        self.check_getting(queue)
        return self._engine.take(queue, correl_id, msg_id)

    def take_number(self, queue: Queue, sequence: int) -> Message:
        """Takes the message with that sequence number, as `take` does; 2034 if it has gone."""
        self.check_getting(queue)
        message = self._engine.take_number(queue, sequence)
        if message is None:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_UNDER_CURSOR, f"get from {queue.name}")
        return message

    def remove(self, queue: Queue, message: Message, done: Done) -> None:
        """Destroys a taken message: with the open unit of work, or at once without one."""
        unit = self._unit if self._unit is not None else self._engine.begin()
        unit.remove(queue, message, Departure.TAKEN)
        if message.descriptor.report & ReportOption.CONFIRM_ON_DELIVERY:
            self._engine.reporter.send(unit, message, ReportOption.CONFIRM_ON_DELIVERY, MQFB_COD)
        if unit is self._unit:
            self._unit_bytes += len(message.body)
            done()
        else:
            self._submit(unit, done)

    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> list[Message]:
        """Takes the oldest messages, at least one if there is one, into the open unit of work; 2255 without a unit."""
        queue = self.getting(queue_name)
        if self._unit is None:
            raise QueueManagerError(ReasonCode.MQRC_UOW_NOT_AVAILABLE, f"take a batch from {queue_name}")
        self.check_getting(queue)
        batch, batch_bytes = list[Message](), 0
        while len(batch) < max(1, most_messages) and (message := self._engine.take(queue)) is not None:
            batch_bytes += len(message.body)
            if batch and (batch_bytes > most_bytes or self._is_full(len(message.body))):
                self._engine.give_back([(queue, message)])
                break
            self.remove(queue, message, lambda: None)
            batch.append(message)
        return batch

    def browse(self, queue_name: str, correl_id: bytes | None, msg_id: bytes | None) -> Iterator[Message]:
        self.check(Right.BROWSE, queue_name, f"browse {queue_name}")
        return iter(self._engine.browse(self._engine.objects.getting(queue_name), correl_id, msg_id))

    # -- queues ------------------------------------------------------------------------------------------------------

    def check(self, right: Right, queue_name: str, operation: str) -> None:
        """2035 without the right. A program may do everything with a temporary queue that its user has made.

        It may get from the managed queues of the subscriptions that it has open.
        """
        is_subscribed = queue_name in self.subscribed_queues and right in (Right.GET, Right.BROWSE)
        if not (self.rights.has(right, queue_name) or is_subscribed or self._is_of_own_user(queue_name)):
            self.rights.check(right, queue_name, operation)

    def _is_of_own_user(self, queue_name: str) -> bool:
        queue = self._engine.objects.queues.get(queue_name)
        return queue is not None and queue.is_temporary and self.user != "" and queue in self._made_by_user()

    def _made_by_user(self) -> list[Queue]:
        return [queue for each in self._engine.objects.users for queue in each.made(self.user)]

    def made(self, user: str) -> list[Queue]:
        """The temporary queues that this application has made, if it runs as that user."""
        return self._dynamic_queues if self.user == user else []

    def hold(self, queue_name: str, done: Callable[[str], None]) -> None:
        """Holds a queue exclusively, until `release` or `close`; 2042 while somebody else gets from it or holds it.

        `done` is called with the local queue's name when all earlier units are committed. So the new holder sees all
        changes of the last one.
        """
        queue = self.getting(queue_name)
        self.rights.check_open(queue.name, f"open queue {queue_name} exclusively")
        users = self._engine.objects.users
        if queue.exclusive_holder is not None or any(user.is_getting_from(queue) for user in users):
            raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, f"open queue {queue_name} exclusively")
        queue.exclusive_holder = self
        self._held_queues.append(queue)
        self._engine.submit(self._engine.begin(), lambda _unit: done(queue.name))

    def release(self, queue_name: str) -> None:
        """Gives up a queue, if the application holds it."""
        for queue in [held for held in self._held_queues if held.name == queue_name]:
            self._held_queues.remove(queue)
            queue.exclusive_holder = None

    def create_dynamic(self, model_name: str, name: str) -> str:
        """Makes a temporary dynamic queue, which lives as long as this application; returns its full name.

        The application needs the right to get from the model. It may then get from the new queue too.
        """
        for each in (model_name, name):
            self.rights.check(Right.GET, each, f"open model queue {model_name} as {name}")
        return self.create_managed(model_name, name).name

    def create_managed(self, model_name: str, name: str) -> Queue:
        """The same for a queue that this process uses for the program, whatever its rights are. 2017 for too many."""
        if self.rights is not EVERYTHING and len(self._made_by_user()) >= MAXIMUM_DYNAMIC_QUEUES:
            raise QueueManagerError(ReasonCode.MQRC_HANDLE_NOT_AVAILABLE, f"open model queue {model_name} as {name}")
        queue = self._engine.objects.create_dynamic(model_name, name)
        self._dynamic_queues.append(queue)
        return queue

    def end_dynamic(self, queue: Queue) -> None:
        """Deletes a temporary dynamic queue that this application made, if it has not ended yet."""
        if queue in self._dynamic_queues:
            self._dynamic_queues.remove(queue)
        if not queue.is_deleted and self._engine.failed is None:
            if queue.depth:
                self._engine.on_temporary_end(queue)
            self._engine.objects.delete_queue(queue)

    def hand_over(self, queue: Queue, other: "Application") -> None:
        """Another application has a temporary queue of this one from now on."""
        if queue in self._dynamic_queues:
            other._dynamic_queues.append(self._dynamic_queues.pop(self._dynamic_queues.index(queue)))

    def inquire(self, name: str) -> Definition:
        """The attributes of a queue; for an alias, those of the local queue behind it; for '', of the queue manager."""
        objects = self._engine.objects
        if not name:
            return objects.queue_manager
        self.check_known(name)
        found = objects.find_queue(name)
        is_alias = found is None or found.object_type == ObjectType.QALIAS
        return self._engine.queue(name).definition if found is None or is_alias else found

    def clear_some(self, queue_name: str, done: Callable[[int], None]) -> None:
        """Destroys the oldest CLEAR_MESSAGES, in a unit of their own; `done` is called with their number.

        2042 if somebody holds the queue, or messages on it are in doubt.
        """
        operation = f"clear queue {queue_name}"
        self.rights.check(Right.ADMIN, queue_name, operation)
        queue = self._engine.queue(queue_name)
        self.rights.check_open(queue.name, operation)
        self._check_holder(queue, operation)
        unit = destroying(self._engine, queue, self.act("queue clear"))
        self._submit(unit, lambda: done(len(unit.removals)))

    def define(self, queue_name: str, description: str) -> None:
        """Defines a local queue, durably."""
        self.rights.check(Right.ADMIN, queue_name, f"define queue {queue_name}")
        self._engine.define(queue_name, description=description)
        reason = f"DESCR({description})" if description else ""
        tell_alone(self._engine, self.act("queue define", reason=reason).on_queue(queue_name))

    def compact_some(self) -> Compaction:
        """Makes a step of a compaction. The first step of one notes the operator's act."""
        self.check_everything("compact the store")
        step = self._engine.maintenance.compact_some()
        if not self._is_compacting:
            tell_alone(self._engine, self.act("queue compact"))
        self._is_compacting = not step.is_done
        return step

    def depth(self, queue_name: str) -> int:
        self.check_known(queue_name)
        return self._engine.queue(queue_name).depth

    def check_known(self, queue_name: str) -> None:
        """2035 for a queue that the application may not know of."""
        if not self.rights.has_any(queue_name):
            self.check(Right.BROWSE, queue_name, f"inquire {queue_name}")

    def check_everything(self, operation: str) -> None:
        """2035 unless the application may change every queue."""
        self.rights.check(Right.ADMIN, EVERY_QUEUE, operation)

    def queues(self) -> tuple[QueueStatus, ...]:
        """The queues that the application may know of."""
        return tuple(
            QueueStatus(
                name=queue.name,
                depth=queue.depth,
                oldest_put_us=self._engine.oldest_put_us(queue),
                description=queue.description,
            )
            for queue in self._engine.queues()
            if self.rights.has_any(queue.name)
        )

    # -- inside ------------------------------------------------------------------------------------------------------

    def _complete_descriptor(self, message: Message, target: PutTarget, operation: str) -> None:
        """Fills in the fields that the putter left open: defaults of the queue, and blank context fields."""
        descriptor = message.descriptor
        is_letter = target.queue.takes_letters and descriptor.format == FORMAT_DEAD_LETTER
        if len(message.body) > self._engine.objects.maximum_message_bytes and not is_letter:
            raise QueueManagerError(ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q_MGR, operation)
        if descriptor.report and has_unknown_options(descriptor.report, is_transmitted=bool(target.remote_queue)):
            raise QueueManagerError(ReasonCode.MQRC_REPORT_OPTIONS_ERROR, operation)
        changes: dict[str, object] = {}
        if descriptor.priority < 0:
            changes["priority"] = target.default_priority
        if descriptor.persistence == MQPER_PERSISTENCE_AS_Q_DEF:
            changes["persistence"] = target.default_persistence
        if self.name and not descriptor.put_appl_name:
            changes["put_appl_name"] = self.name
        may_name_another = self.rights is EVERYTHING or self.rights.context is not ContextRight.NONE
        if self.user and (not descriptor.user_identifier or not may_name_another):
            changes["user_identifier"] = self.user
        if descriptor.reply_to_q and not descriptor.reply_to_q_mgr:
            changes["reply_to_q_mgr"] = self._engine.name
        if not descriptor.reply_to_q and (descriptor.msg_type == MQMT_REQUEST or descriptor.report & ANY_REPORT):
            raise QueueManagerError(ReasonCode.MQRC_MISSING_REPLY_TO_Q, operation)
        if changes:
            message.descriptor = descriptor.replace(**changes)

    def _check_reply_queue(self, message: Message) -> None:
        """2035 if the queue manager would put reports on a queue that the application may not use."""
        descriptor = message.descriptor
        is_here = descriptor.reply_to_q_mgr in ("", self._engine.name)
        if descriptor.report & ANY_REPORT and not (is_here and self.rights.has(Right.GET, descriptor.reply_to_q)):
            self.rights.check(Right.PUT, descriptor.reply_to_q, f"have reports put on {descriptor.reply_to_q}")

    def _confirm_arrival(self, unit: UnitOfWork, queue: Queue, message: Message) -> None:
        """Puts COA. On a served queue it puts COD too, because the broker gets the message in this unit of work."""
        if message.descriptor.report & ReportOption.CONFIRM_ON_ARRIVAL:
            self._engine.reporter.send(unit, message, ReportOption.CONFIRM_ON_ARRIVAL, MQFB_COA)
        if message.descriptor.report & ReportOption.CONFIRM_ON_DELIVERY and queue.handler is not None:
            self._engine.reporter.send(unit, message, ReportOption.CONFIRM_ON_DELIVERY, MQFB_COD)

    def check_getting(self, queue: Queue) -> None:
        """2016, 2024, 2035, 2042 or 2052 if the application may not take messages off the queue now."""
        operation = f"get from {queue.name}"
        self.rights.check_open(queue.name, operation)
        if queue.is_deleted:
            raise QueueManagerError(ReasonCode.MQRC_Q_DELETED, operation)
        if queue.is_get_inhibited:
            raise QueueManagerError(ReasonCode.MQRC_GET_INHIBITED, operation)
        self._check_holder(queue, operation)
        self._check_limit(0, operation)

    def _check_holder(self, queue: Queue, operation: str) -> None:
        """Checks that nobody else holds the queue, and that only its holder takes messages in doubt."""
        if queue.exclusive_holder not in (None, self):
            raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, operation)
        if queue.exclusive_holder is None:
            check_not_in_doubt(self._engine, queue, operation)

    def _submit(self, unit: UnitOfWork, done: Done) -> None:
        """Submits a unit. If the broker refuses to carry it out, the messages that it took go back."""
        unit.application = self._identity
        if unit.removals:
            tell_apart(unit)
        try:
            check_redriven(self._engine, unit)
            for watch in self._engine.on_application_unit:
                watch(unit)
            self._engine.submit(unit, lambda _unit: done())
            self._has_held_letters = self._has_held_letters or unit.holds_letters
            self.on_submitted(unit)
        except QueueManagerError:
            self._engine.back_out(unit)
            raise

    def _check_held_letters(self, operation: str) -> None:
        """Refuses puts for the broker while dead letters of the application wait for room."""
        self._has_held_letters = self._engine.dead_letters.depth > 0
        if self._has_held_letters:
            hint = "the dead-letter queue is full, and dead letters of this application wait for room"
            raise QueueManagerError(ReasonCode.MQRC_Q_FULL, operation, hint)

    def _check_limit(self, body_bytes: int, operation: str) -> None:
        if self._is_full(body_bytes):
            raise QueueManagerError(ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED, operation)

    def _is_full(self, body_bytes: int) -> bool:
        unit = self._unit
        if unit is None:
            return False
        messages = len(unit.puts) + len(unit.removals)
        return messages >= self._engine.objects.maximum_unit_messages or (
            self._unit_bytes > 0 and self._unit_bytes + body_bytes > MAXIMUM_UNIT_BYTES
        )

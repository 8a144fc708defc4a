"""One connection handle (MQHCONN): the MQI's calls on the embedded queue manager, by object handles.

The calls of a connection are carried out one after another, as an application of its own: units of work, rights and
records are those of Application. A program that connects over a channel has one for each conversation.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Final

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.browse_cursor import BrowseCursor
from mq_adapters.embedded.mqi.command_rights import CommandRights
from mq_adapters.embedded.mqi.consuming import Listening
from mq_adapters.embedded.mqi.context import (
    check_open_for_context,
    context_of,
    granted_options,
    open_options_of_put,
)
from mq_adapters.embedded.mqi.deferred_puts import DeferredPuts
from mq_adapters.embedded.mqi.getting import Answered, GetRequest, Getter, Got, Later, soon
from mq_adapters.embedded.mqi.inquiry import MAXIMUM_HANDLES, Inquired, inquired
from mq_adapters.embedded.mqi.open_object import ObjectName, Opened, OpenObject
from mq_adapters.embedded.mqi.options import (
    INPUT,
    CloseOption,
    ObjectKind,
    OpenOption,
    PutOption,
    SubOption,
    check_options,
)
from mq_adapters.embedded.mqi.properties import PROPERTY_CONTROL, delivery_time_ms
from mq_adapters.embedded.mqi.scan import Scan
from mq_adapters.embedded.mqi.selection import selected
from mq_adapters.embedded.mqi.subscribing import Subscription, Subscriptions
from mq_adapters.embedded.mqi.subscription_request import SubscriptionRequest
from mq_adapters.embedded.mqi.topics import Topics
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.rights import NO_TOPICS, Right, TopicRights, check_system_queue
from mq_adapters.message import (
    IDENTIFIER_BYTES,
    MQAT_UNIX,
    MQMI_NONE,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    Message,
)
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from mq_adapters.reports import ANY_REPORT
from mq_adapters.selection.conditions import Condition
from mq_adapters.system_queues import DEFAULT_STREAM

#: The first handle. 0 and -1 stand for none (MQHO_NONE, MQHO_UNUSABLE_HOBJ).
_FIRST_HANDLE: Final = 2
_US_OF_A_MS: Final = 1_000
_DEFAULT_DYNAMIC_NAME: Final = "AMQ.*"
_RIGHTS: Final = (
    (INPUT, Right.GET),
    (OpenOption.BROWSE, Right.BROWSE),
    (OpenOption.OUTPUT, Right.PUT),
)

Done = Callable[[], None]
Refused = Callable[[QueueManagerError], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSubscription:
    """The answer to MQSUB: the handle of the queue, and `number`, which is that of the subscription."""

    handle: int
    number: int
    subscription: Subscription


class Connection:
    """One connection. Not thread-safe: it lives in the engine's thread."""

    def __init__(
        self,
        engine: Engine,
        application: Application,
        *,
        application_type: int = MQAT_UNIX,
        topics: TopicRights = NO_TOPICS,
        stream: str = DEFAULT_STREAM,
        later: Later = soon,
    ) -> None:
        """`application_type` is the PutApplType of the program's messages (MQAT_*).

        `topics` are the program's rights on topics, and `stream` is the queue on which its publications are put.
        `later` calls what it is given when it is the program's turn again.
        """
        self._later = later
        self._engine = engine
        self._application_type = application_type
        self._application = application
        self._getter = Getter(engine, application, later)
        self._topics = Topics(engine, topics, stream=stream)
        self._subscribing = Subscriptions(
            engine,
            application,
            topics,
            self._topics.topic_of,
            check_queue=self._check_system_queue,
            stream=stream,
        )
        self._subscriptions: dict[int, Subscription] = {}
        self._deferred = DeferredPuts(engine, application)
        self._command_rights = CommandRights(engine, application, topics)
        self._handles: dict[int, OpenObject] = {}
        self._next_handle = _FIRST_HANDLE
        self._is_ended = False

    @property
    def has_unit(self) -> bool:
        """Whether a unit of work is open."""
        return self._application.has_unit

    @property
    def handle_count(self) -> int:
        """The number of objects and subscriptions that are open."""
        return len(self._handles) + len(self._subscriptions)

    # -- handles -------------------------------------------------------------------------------------------------------

    def open(self, wanted: ObjectName, options: int, opened: Callable[[Opened], None]) -> None:
        """MQOPEN. Raises QueueManagerError: 2017, 2035, 2042, 2043, 2045, 2046, 2085, 2087 and others."""
        operation = f"open {wanted.name or 'the queue manager'}"
        granted = granted_options(OpenOption, self._application.rights.context) if wanted.kind == ObjectKind.Q else 0
        check_options(OpenOption, options, operation, granted=granted)
        if len(self._handles) >= MAXIMUM_HANDLES:
            raise QueueManagerError(ReasonCode.MQRC_HANDLE_NOT_AVAILABLE, operation)
        if wanted.kind not in (ObjectKind.Q, ObjectKind.Q_MGR, ObjectKind.TOPIC):
            raise QueueManagerError(ReasonCode.MQRC_OBJECT_TYPE_ERROR, f"{operation}: type {wanted.kind}")
        if wanted.selector.strip() and (wanted.kind != ObjectKind.Q or not options & (INPUT | OpenOption.BROWSE)):
            raise QueueManagerError(ReasonCode.MQRC_SELECTOR_INVALID_FOR_TYPE, operation)
        if wanted.queue_manager not in ("", self._engine.name):
            raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_REMOTE_Q_MGR, operation)
        if wanted.kind == ObjectKind.TOPIC:
            topic = self._topics.topic_of(wanted.name, wanted.topic, operation)
            found = self._topics.open(topic, OpenOption(options), operation)
            opened(Opened(handle=self._keep(found), name=""))
            return
        if wanted.kind == ObjectKind.Q_MGR:
            self._open_queue_manager(OpenOption(options), operation, opened)
            return
        self._open_queue(wanted, OpenOption(options), operation, opened)

    def _open_queue_manager(self, options: OpenOption, operation: str, opened: Callable[[Opened], None]) -> None:
        if options & (INPUT | OpenOption.BROWSE | OpenOption.OUTPUT):
            raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, operation)
        found = OpenObject(kind=ObjectKind.Q_MGR, name="", options=options)
        opened(Opened(handle=self._keep(found), name=""))

    def _open_queue(
        self, wanted: ObjectName, options: OpenOption, operation: str, opened: Callable[[Opened], None]
    ) -> None:
        if not options & (INPUT | OpenOption.BROWSE | OpenOption.OUTPUT | OpenOption.INQUIRE):
            raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, operation)
        condition = selected(wanted.selector, operation)
        definition = self._engine.objects.find_queue(wanted.name)
        if definition is None:
            raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_OBJECT_NAME, operation)
        name, is_own = wanted.name, definition.object_type == ObjectType.QMODEL
        dynamic = wanted.dynamic_name or _DEFAULT_DYNAMIC_NAME
        self._check_rights(dynamic if is_own else name, options, operation)
        if is_own:
            self._check_system_queue(Right.GET, dynamic, operation)
            name = self._application.create_dynamic(wanted.name, dynamic)
        found = OpenObject(kind=ObjectKind.Q, name=name, options=options, is_own=is_own)
        found.queue = self._queue_of(name, definition, options)
        if definition.object_type != ObjectType.QREMOTE:
            found.property_control = definition.text("PROPCTL")
        is_persistent = definition["DEFPSIST"] == "YES" and not is_own
        persistence = MQPER_PERSISTENT if is_persistent else MQPER_NOT_PERSISTENT

        def keep(_name: str = "") -> None:
            if not self._is_ended:  # while the queue was to be held
                handle = self._keep(found, condition)
                opened(
                    Opened(
                        handle=handle,
                        name=name,
                        default_persistence=persistence,
                        property_control=PROPERTY_CONTROL[found.property_control],
                    )
                )

        if not options & OpenOption.INPUT_EXCLUSIVE:
            self._check_not_held(found, operation)
            keep()
            return
        try:
            self._application.hold(name, keep)
        except QueueManagerError:
            if is_own and found.queue is not None:
                self._application.end_dynamic(found.queue)
            raise

    def _queue_of(self, name: str, definition: Definition, options: OpenOption) -> Queue | None:
        """The local queue behind a name. A queue of another queue manager has none, and cannot be got from."""
        if definition.object_type == ObjectType.QREMOTE and not options & (INPUT | OpenOption.BROWSE):
            return None
        return self._engine.objects.base_queue(name)

    def _check_rights(self, name: str, options: OpenOption, operation: str) -> None:
        for option, right in _RIGHTS:
            if options & option:
                self._application.check(right, name, operation)
                self._check_system_queue(right, name, operation)
        self._application.check_known(name)

    def _check_system_queue(self, right: Right, name: str, operation: str) -> None:
        """2035 for a queue of the queue manager's own, unless a pattern that covers it names its kind."""
        check_system_queue(self._application.rights, right, name, operation)

    def _check_not_held(self, found: OpenObject, operation: str) -> None:
        queue = found.queue
        is_held = queue is not None and queue.exclusive_holder not in (None, self._application)
        if found.options & INPUT and is_held:
            raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, operation)

    def _keep(self, found: OpenObject, condition: Condition | None = None) -> int:
        handle, self._next_handle = self._next_handle, self._next_handle + 1
        self._handles[handle] = found
        if found.queue is not None:
            if condition is not None and found.options & INPUT:
                found.scan = Scan(self._engine, found.queue, condition)
            if found.options & OpenOption.BROWSE:
                scan = None if condition is None else Scan(self._engine, found.queue, condition)
                found.cursor = BrowseCursor(self._engine, self._application, found.name, found.queue, scan)
            self._application.read_queues[handle] = found.queue
            if found.options & INPUT:
                self._application.input_queues[handle] = found.queue
        return handle

    def _object(self, handle: int, operation: str) -> OpenObject:
        found = self._handles.get(handle)
        if found is None:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, f"{operation}: handle {handle}")
        return found

    def close(self, handle: int, options: int = 0) -> None:
        """MQCLOSE. A queue that MQOPEN made from a model is deleted; 2019, 2035, 2045, 2046, 2429."""
        operation = "close"
        subscription = self._subscriptions.get(handle)
        if subscription is not None:
            self._subscribing.close(subscription, options)
            del self._subscriptions[handle]
            return
        found = self._object(handle, operation)
        options &= ~int(CloseOption.QUIESCE)  # nothing is read ahead that the program would still have to get
        if options & ~int(CloseOption.DELETE | CloseOption.DELETE_PURGE):
            raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, operation)
        if options and not found.is_own:
            raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, operation)
        self._forget(handle)

    def _forget(self, handle: int) -> None:
        found = self._handles.pop(handle)
        self._application.read_queues.pop(handle, None)
        self._application.input_queues.pop(handle, None)
        for each in (found.cursor, found.scan):
            if each is not None:
                each.close()
        if found.queue is None:
            return
        if found.options & OpenOption.INPUT_EXCLUSIVE:
            self._application.release(found.queue.name)
        if found.is_own:
            self._application.end_dynamic(found.queue)
        if found.subscription is not None:
            self._subscribing.end_queue(found.subscription)

    # -- messages ------------------------------------------------------------------------------------------------------

    def put(self, handle: int, message: Message, options: int, done: Done) -> None:
        """MQPUT. The message's identifiers and its descriptor are complete when this returns."""
        operation = "put"
        found = self._object(handle, operation)
        found.check_open_for(OpenOption.OUTPUT, f"{operation} on {found.name}")
        self._put(found, message, options, done)

    def put_one(self, wanted: ObjectName, message: Message, options: int, done: Done) -> None:
        """MQPUT1: opens, puts and closes."""
        operation = f"put on {wanted.name}"
        handles: list[int] = []
        self.open(wanted, open_options_of_put(options), lambda opened: handles.append(opened.handle))
        try:
            self._put(self._object(handles[0], operation), message, options, done)
        finally:
            self._forget(handles[0])

    def _put(self, found: OpenObject, message: Message, options: int, done: Done) -> None:
        is_topic = found.kind == ObjectKind.TOPIC
        operation = f"put on {found.name}"
        granted = granted_options(PutOption, self._application.rights.context)
        check_options(PutOption, options & ~PutOption.RETAIN if is_topic else options, operation, granted=granted)
        check_open_for_context(found.options, options, operation)
        self._check_reports(message, operation)
        if delivery_time_ms(message) > self._engine.now_us() // _US_OF_A_MS:
            why = f"{operation}: no message is held back until its delivery time"
            raise QueueManagerError(ReasonCode.MQRC_FUNCTION_NOT_SUPPORTED, why)
        self._complete(message, options)
        self._check_command(found, message)
        application = self._application
        is_in_unit = bool(options & PutOption.SYNCPOINT)
        if is_in_unit and not application.has_unit:
            application.begin()
        with nullcontext() if is_in_unit else application.outside_unit():
            if is_topic:
                self._publish(found.name, message, options, done)
            else:
                application.put(found.name, message, done)

    def _check_reports(self, message: Message, operation: str) -> None:
        if message.descriptor.report & ANY_REPORT:
            self._check_system_queue(Right.PUT, message.descriptor.reply_to_q, f"{operation}: reports")

    def _check_command(self, found: OpenObject, message: Message) -> None:
        """2035 if a message on a queue of the broker is a command that the program may not give."""
        if found.queue is not None and (found.queue.handler is not None or found.queue.resting_handler is not None):
            self._command_rights.check(message, f"put on {found.name}")

    def _publish(self, topic: str, message: Message, options: int, done: Done) -> None:
        """Publishes a message. The program is told the MsgId of the publication as that of its message."""
        publication = self._topics.publication(topic, message, options)

        def put() -> None:
            message.descriptor = message.descriptor.replace(msg_id=publication.msg_id)
            done()

        self._application.put_unchecked(self._topics.stream, publication, put)

    def _complete(self, message: Message, options: int) -> None:
        """Makes the identifiers that are asked for, and the context that the program may not set or does not."""
        changes = context_of(
            options,
            user=self._application.user,
            application_type=self._application_type,
            application_name=self._application.name,
        )
        message.backout_count = 0  # the queue manager counts, whatever the descriptor says (MQMD, BackoutCount)
        if options & PutOption.NEW_MSG_ID:
            changes["msg_id"] = MQMI_NONE
        if options & PutOption.NEW_CORREL_ID:
            changes["correl_id"] = secrets.token_bytes(IDENTIFIER_BYTES)
        message.descriptor = message.descriptor.replace(**changes)

    def get(self, handle: int, request: GetRequest, answered: Answered) -> None:
        """MQGET, also with browse options."""
        self._getter.get(self._object(handle, "get"), request, answered)

    def listen(
        self,
        handle: int,
        request: GetRequest,
        *,
        may_get: Callable[[], bool],
        wake: Callable[[], None],
        deliver: Callable[[Got], None],
        failed: Callable[[QueueManagerError], None],
    ) -> Listening:
        """A listener at a handle, which gets nothing before it is started; see Listening."""
        opened = self._object(handle, "listen")
        return Listening(
            Getter(self._engine, self._application, self._later),
            opened,
            request,
            may_get=may_get,
            wake=wake,
            deliver=deliver,
            failed=failed,
        )

    def put_deferred(self, handle: int, message: Message, options: int, done: Done) -> None:
        """Stores a message for the queue of a handle, until it is activated or the connection ends (SPI PUT)."""
        operation = "put a deferred message"
        found = self._object(handle, operation)
        found.check_open_for(OpenOption.OUTPUT, operation)
        if found.kind != ObjectKind.Q or found.queue is None or found.queue.is_temporary:
            raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, operation)
        check_options(PutOption, options, operation)
        if options & PutOption.SYNCPOINT:
            raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, f"{operation}: in a unit of work")
        self._check_reports(message, operation)
        self._complete(message, options)
        self._check_command(found, message)
        self._deferred.put(found.name, message, done)

    def activate(self, msg_id: bytes, done: Done, *, is_wanted: bool) -> None:
        """Puts a deferred message on its queue, or throws it away (SPI ACTIVATE). 2033 for none of this connection."""
        if is_wanted:
            self._deferred.release(msg_id, done)
        else:
            self._deferred.throw_away(msg_id, done)

    # -- topics --------------------------------------------------------------------------------------------------------

    def subscribe(
        self, request: SubscriptionRequest, subscribed: Callable[[OpenedSubscription], None], refused: Refused
    ) -> None:
        """MQSUB, with the handle of the program's own queue or with a managed one."""

        def ended(result: Subscription | QueueManagerError) -> None:
            if self._is_ended:
                return
            if isinstance(result, QueueManagerError):
                refused(result)
                return
            handle = self._queue_handle(result) if own_queue is None else request.destination
            number, self._next_handle = self._next_handle, self._next_handle + 1
            self._subscriptions[number] = result
            subscribed(OpenedSubscription(handle=handle, number=number, subscription=result))

        if self.handle_count + 1 >= MAXIMUM_HANDLES:
            raise QueueManagerError(ReasonCode.MQRC_HANDLE_NOT_AVAILABLE, "subscribe")
        own_queue = None
        if request.destination and not request.options & SubOption.MANAGED:
            own_queue = self._object(request.destination, "subscribe").local_queue("subscribe")
            self._check_system_queue(Right.PUT, own_queue.name, "subscribe")
        self._subscribing.subscribe(request, own_queue, ended)

    def _queue_handle(self, subscription: Subscription) -> int:
        """A handle for the queue of a subscription."""
        queue = subscription.queue
        found = OpenObject(
            kind=ObjectKind.Q,
            name=queue.name,
            options=OpenOption.INPUT_SHARED | OpenOption.BROWSE | OpenOption.INQUIRE,
            queue=queue,
            subscription=subscription,
        )
        return self._keep(found)

    def request_publications(self, handle: int, requested: Callable[[int], None], refused: Refused) -> None:
        """MQSUBRQ: `requested` is called with the number of retained publications when they have been sent. 2019."""
        subscription = self._subscriptions.get(handle)
        if subscription is None:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, f"request publications: handle {handle}")

        def ended(error: QueueManagerError | None) -> None:
            if error is not None:
                refused(error)
            else:
                requested(number)

        number = self._subscribing.retained_copies(subscription)
        self._subscribing.request_publications(subscription, ended)

    # -- the rest ------------------------------------------------------------------------------------------------------

    def inquire(self, handle: int, selectors: Sequence[int]) -> Inquired:
        """MQINQ."""
        found = self._object(handle, "inquire")
        found.check_open_for(OpenOption.INQUIRE, f"inquire {found.name}")
        return inquired(self._engine, self._application, found, selectors)

    def commit(self, done: Done) -> None:
        """MQCMIT: `done` is called when the unit of work is on the disk."""
        self._application.commit(done)

    def back_out(self) -> None:
        """MQBACK."""
        self._application.back_out()

    def disconnect(self, done: Done) -> None:
        """MQDISC: commits the open unit of work, then gives everything up."""

        def committed() -> None:
            self.end()
            done()

        self._application.commit(committed)

    def end_wait(self, reason_code: ReasonCode) -> None:
        """Ends a get that waits, with that reason."""
        self._getter.end_wait(reason_code)

    def end(self) -> None:
        """The program has gone: backs out, closes every handle, deletes its temporary queues."""
        self._is_ended = True
        self._getter.close()
        self._subscribing.end()
        subscriptions, self._subscriptions = self._subscriptions, {}
        for subscription in subscriptions.values():
            with suppress(QueueManagerError, StoreError):  # else it ends when the broker finds its queue gone
                self._subscribing.close(subscription)
        for handle in tuple(self._handles):
            self._forget(handle)
        self._deferred.release_all()
        self._application.close()

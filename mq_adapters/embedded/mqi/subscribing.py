"""MQSUB and MQSUBRQ: subscriptions of one connection, durable or not, on a managed queue or the program's own.

A subscription is made by a RegSub on the broker's control queue (broker_commands.py), so its facts are the broker's.
Each has a CorrelId, by which its publications are told from others on the same queue. A durable subscription stays
until it is removed or expires, and a program that resumes it by its name finds what came meanwhile. What a program may
subscribe to is a right of its own (`TopicRights`); a right to get from a queue gives it nobody.
"""

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from mappings.commands.command import DeregisterSubscriber, RegisterSubscriber, RequestUpdate
from mappings.commands.options import RegistrationOption
from mq_adapters.attributes import ObjectType
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.broker_commands import BrokerCommands, Ended, NoAnswer
from mq_adapters.embedded.mqi.options import CloseOption, SubOption
from mq_adapters.embedded.mqi.subscription_request import (
    MQPRI_PRIORITY_AS_Q_DEF,
    SubscriptionRequest,
    check_request,
    check_taken_up,
    is_managed,
    topic_string,
)
from mq_adapters.embedded.mqsc.publish_subscribe import PublishSubscribe, RegisteredSubscription
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.rights import MissingRight, Right, RightMissing, TopicRights
from mq_adapters.message import IDENTIFIER_BYTES, IDENTIFIER_TAG, MQEI_UNLIMITED, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from mq_adapters.subscription_mark import MqsubMark, marked_command
from mq_adapters.system_queues import (
    DEFAULT_MODEL_QUEUE,
    DEFAULT_STREAM,
    DURABLE_MODEL_QUEUE,
    MANAGED_DURABLE,
    MANAGED_NOT_DURABLE,
)

#: Durable subscriptions of one application. Each keeps a queue, and gets each publication that it subscribes to.
MAXIMUM_DURABLE_SUBSCRIPTIONS: Final = 1_000
_DESCRIPTION: Final = "publications of a durable subscription"
_TENTH_US: Final = 100_000
_NO_OPTIONS: Final = RegistrationOption(0)
_OPTIONS: Final = {
    SubOption.NEW_PUBLICATIONS_ONLY: RegistrationOption.NEW_PUBLICATIONS_ONLY,
    SubOption.PUBLICATIONS_ON_REQUEST: RegistrationOption.PUBLISH_ON_REQUEST_ONLY,
    SubOption.ANY_USERID: RegistrationOption.VARIABLE_USER_ID,
}
#: What an alteration may change of the options of a registration.
_ALTERABLE: Final = RegistrationOption.PUBLISH_ON_REQUEST_ONLY | RegistrationOption.VARIABLE_USER_ID

FindTopic = Callable[[str, str, str], str]
"""The whole topic string of a topic object and a string, for an operation."""
CheckQueue = Callable[[Right, str, str], None]
"""Refuses a queue that the program's right does not open, for an operation; the right itself is checked before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subscription:
    """A subscription that a program has open, and the queue that its publications come to.

    `filter` is its selector as the broker keeps it. `has_own_queue` tells that the queue is the program's, and
    `is_of_other` that another application owns the subscription.
    """

    topic: str
    queue: Queue
    correl_id: bytes
    name: str = ""
    user_data: str = ""
    expiry: int = MQEI_UNLIMITED
    is_durable: bool = False
    has_own_queue: bool = False
    is_of_other: bool = False
    filter: str = ""


#: Takes the end of MQSUB: the subscription, or why there is none.
Subscribed = Callable[[Subscription | QueueManagerError], None]


class Subscriptions:
    """The subscriptions of one connection."""

    def __init__(
        self,
        engine: Engine,
        application: Application,
        rights: TopicRights,
        find_topic: FindTopic,
        *,
        check_queue: CheckQueue,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        self._engine = engine
        self._application = application
        self._rights = rights
        self._find_topic = find_topic
        self._check_queue = check_queue
        self._stream = stream
        self._commands = BrokerCommands(engine, application)
        #: Those that the broker is asked for.
        self._asked: set[Subscription] = set()

    def end(self) -> None:
        """The connection is gone: nobody is answered any more, and nobody has what was asked for."""
        self._commands.close()
        asked, self._asked = self._asked, set()
        for subscription in asked:
            with suppress(QueueManagerError, StoreError):  # else it ends when the broker finds its queue gone
                self.close(subscription)
            if not subscription.is_durable:
                self.end_queue(subscription)

    # -- MQSUB ---------------------------------------------------------------------------------------------------------

    def subscribe(self, request: SubscriptionRequest, own_queue: Queue | None, subscribed: Subscribed) -> None:
        """MQSUB. `subscribed` is called once, now or when the broker has answered.

        `own_queue` is the queue of the request's destination. Raises QueueManagerError.
        """
        check_request(request)
        operation = request.operation
        is_to_topic = bool(request.topic or request.object_name or request.has(SubOption.CREATE))
        topic = self._topic(request) if is_to_topic else ""
        existing = self._broker(operation).named(self._stream, request.name) if request.name else None
        if existing is not None:
            self._take_up(request, existing, topic, own_queue, subscribed)
            return
        if not request.has(SubOption.CREATE):
            raise QueueManagerError(ReasonCode.MQRC_NO_SUBSCRIPTION, operation)
        self._check_topic(topic, operation)
        self._create(request, topic, own_queue, subscribed)

    def _topic(self, request: SubscriptionRequest) -> str:
        topic = topic_string(request.topic, request.options, request.operation) if request.topic else ""
        return self._find_topic(request.object_name, topic, request.operation)

    def _check_topic(self, topic: str, operation: str) -> None:
        if not self._rights.may_subscribe(topic):
            why = f"{operation}: no right to subscribe to {topic!r}"
            raise RightMissing(MissingRight.SUBSCRIBE, topic, why)

    def _broker(self, operation: str) -> PublishSubscribe:
        broker = self._engine.objects.publish_subscribe
        if broker is None:
            raise QueueManagerError(ReasonCode.MQRC_PUBSUB_INHIBITED, operation)
        return broker()

    # -- a new one -----------------------------------------------------------------------------------------------------

    def _create(
        self, request: SubscriptionRequest, topic: str, own_queue: Queue | None, subscribed: Subscribed
    ) -> None:
        is_durable = request.has(SubOption.DURABLE)
        if is_durable:
            self._check_number(request.operation)
        queue = self._new_queue(is_durable) if request.has(SubOption.MANAGED) else self._checked(own_queue, request)
        subscription = Subscription(
            topic=topic,
            queue=queue,
            correl_id=request.correl_id if request.has(SubOption.SET_CORREL_ID) else _new_correl_id(),
            name=request.name,
            user_data=request.user_data,
            expiry=request.expiry,
            is_durable=is_durable,
            has_own_queue=not request.has(SubOption.MANAGED),
            filter=request.filter,
        )
        self._open(subscription, request)
        try:
            self._check_place(subscription, request.operation)
            self._ask(subscription, request, _options(request, queue), subscribed, self._take_back)
        except QueueManagerError:
            self._forget(subscription)
            raise

    def _ask(
        self,
        subscription: Subscription,
        request: SubscriptionRequest,
        options: RegistrationOption,
        subscribed: Subscribed,
        give_up: Callable[[Subscription, QueueManagerError], None],
    ) -> None:
        """Has the broker register a subscription that is open. `give_up` is called if it refuses later."""

        def answered(error: QueueManagerError | None) -> None:
            self._asked.discard(subscription)
            if error is not None:
                give_up(subscription, error)
            subscribed(subscription if error is None else error)

        command, descriptor = self._registration(subscription, options), self._descriptor(subscription, request)
        self._asked.add(subscription)
        try:
            self._commands.ask(command, descriptor, request.operation, answered)
        except QueueManagerError:
            self._asked.discard(subscription)
            raise

    def _check_number(self, operation: str) -> None:
        """2102 for a durable subscription more than an application may have."""
        if self._broker(operation).durable_of_user(self._application.user) >= MAXIMUM_DURABLE_SUBSCRIPTIONS:
            why = f"{operation}: the application has {MAXIMUM_DURABLE_SUBSCRIPTIONS} durable subscriptions"
            raise QueueManagerError(ReasonCode.MQRC_RESOURCE_PROBLEM, why)

    def _new_queue(self, is_durable: bool) -> Queue:
        if not is_durable:
            return self._application.create_managed(DEFAULT_MODEL_QUEUE, MANAGED_NOT_DURABLE + "*")
        objects = self._engine.objects
        name = f"{MANAGED_DURABLE}{self._engine.number():016X}"
        model = objects.definition(ObjectType.QMODEL, DURABLE_MODEL_QUEUE).altered({"DESCR": _DESCRIPTION})
        objects.define(model.named(name, object_type=ObjectType.QLOCAL))
        return objects.base_queue(name)

    def _checked(self, queue: Queue | None, request: SubscriptionRequest) -> Queue:
        """The program's own queue, if publications may come to it: 2019, 2035, 2522."""
        if queue is None:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, f"{request.operation}: no queue")
        if request.has(SubOption.DURABLE) and queue.is_temporary:
            raise QueueManagerError(ReasonCode.MQRC_INVALID_DESTINATION, f"{request.operation}: a temporary queue")
        self._application.check(Right.PUT, queue.name, request.operation)
        return queue

    def _check_place(self, subscription: Subscription, operation: str) -> None:
        """2432 if the program's queue has a subscription to that topic with that CorrelId."""
        there = self._broker(operation).of(self._stream, subscription.queue.name, subscription.correl_id)
        if any(each.topic == subscription.topic for each in there):
            raise QueueManagerError(ReasonCode.MQRC_SUB_ALREADY_EXISTS, operation)

    def _forget(self, subscription: Subscription) -> None:
        """There is no such subscription after all."""
        self._closed(subscription)
        self.end_queue(subscription)

    def _take_back(self, subscription: Subscription, error: QueueManagerError) -> None:
        """Ends a new subscription that the program does not get, though the broker may have it."""
        if isinstance(error, NoAnswer):
            with suppress(QueueManagerError, StoreError):  # else it ends when the broker finds its queue gone
                self._deregister(subscription)
        self._forget(subscription)

    # -- one that is there ---------------------------------------------------------------------------------------------

    def _take_up(
        self,
        request: SubscriptionRequest,
        existing: RegisteredSubscription,
        topic: str,
        own_queue: Queue | None,
        subscribed: Subscribed,
    ) -> None:
        """Resumes a subscription, and alters it if that is asked for and anything differs."""
        check_taken_up(request, existing, topic)
        self._check_topic(existing.topic, request.operation)
        queue = self._queue_of(request, existing, own_queue)
        self._check_user(request, existing)
        self._engine.objects.open_subscriptions.check(request.name, is_shared=request.is_shared)
        is_altered = request.has(SubOption.ALTER) and self._differs(request, existing, queue)
        if is_altered and not self._owns(existing):
            raise QueueManagerError(ReasonCode.MQRC_IDENTITY_MISMATCH, request.operation)
        assert existing.identity.correl_id is not None, "check_taken_up has seen it"
        left = MQEI_UNLIMITED
        if existing.expires_us:
            left = max(1, (existing.expires_us - self._engine.now_us()) // _TENTH_US)
        subscription = Subscription(
            topic=existing.topic,
            queue=queue,
            correl_id=existing.identity.correl_id,
            name=existing.name,
            user_data=request.user_data if is_altered else existing.user_data,
            expiry=request.expiry if is_altered else left,
            is_durable=existing.is_durable,
            has_own_queue=not is_managed(existing),
            is_of_other=not self._owns(existing),
            filter=existing.interest.filter,
        )
        self._open(subscription, request)
        if not is_altered:
            subscribed(subscription)
            return
        # What is retained came when the subscription was made.
        options = _options(request, queue) | RegistrationOption.NEW_PUBLICATIONS_ONLY
        try:
            self._ask(subscription, request, options, subscribed, lambda each, _error: self._closed(each))
        except QueueManagerError:
            self._closed(subscription)
            raise

    def _queue_of(
        self, request: SubscriptionRequest, existing: RegisteredSubscription, own_queue: Queue | None
    ) -> Queue:
        """The queue of a subscription; 2435 for another one of the program's own."""
        queue = self._engine.queue(existing.identity.queue_name)
        if own_queue is not None and own_queue is not queue:
            raise QueueManagerError(ReasonCode.MQRC_ALTER_SUB_ERROR, f"{request.operation}: its queue stays")
        if own_queue is None and not is_managed(existing):
            self._application.check(Right.GET, queue.name, request.operation)
            self._check_queue(Right.GET, queue.name, request.operation)
        return queue

    def _check_user(self, request: SubscriptionRequest, existing: RegisteredSubscription) -> None:
        """2434 and 2035 for the subscription of another application.

        With MQSO_ANY_USERID an application that may get from its queue may resume it, and nobody else may alter it.
        """
        if self._owns(existing):
            return
        if RegistrationOption.VARIABLE_USER_ID not in existing.options:
            raise QueueManagerError(ReasonCode.MQRC_IDENTITY_MISMATCH, request.operation)
        self._application.rights.check(Right.GET, existing.identity.queue_name, request.operation)
        self._check_queue(Right.GET, existing.identity.queue_name, request.operation)

    def _owns(self, existing: RegisteredSubscription) -> bool:
        return existing.user_identifier == self._application.user

    def _differs(self, request: SubscriptionRequest, existing: RegisteredSubscription, queue: Queue) -> bool:
        wanted = _options(request, queue) & _ALTERABLE, request.user_data, _priority(request, queue)
        has_expiry = request.expiry != MQEI_UNLIMITED or existing.expires_us
        return bool(has_expiry) or wanted != (existing.options & _ALTERABLE, existing.user_data, existing.priority)

    # -- MQSUBRQ and MQCLOSE -------------------------------------------------------------------------------------------

    def retained_copies(self, subscription: Subscription) -> int:
        """How many retained publications MQSUBRQ would send."""
        return self._broker("request publications").retained_copies(self._stream, subscription.topic)

    def request_publications(self, subscription: Subscription, ended: Ended) -> None:
        """MQSUBRQ: sends what is retained again. 2437 if there is nothing."""
        operation = f"request publications on {subscription.topic}"
        command = RequestUpdate(
            topics=(subscription.topic,),
            registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY,
            stream_name=self._stream_name,
            queue_name=subscription.queue.name,
            filter=subscription.filter or None,
        )
        self._commands.ask(command, MessageDescriptor(correl_id=subscription.correl_id), operation, ended)

    def close(self, subscription: Subscription, options: int = 0) -> None:
        """MQCLOSE of a subscription handle: a durable one stays, unless it is removed. 2045, 2046.

        Its queue stays until its own handle is closed.
        """
        check_close(subscription, options)
        if options & CloseOption.REMOVE_SUB and subscription.is_of_other:
            raise RightMissing(MissingRight.OWNER, subscription.name, f"close {subscription.name}")
        is_shared = bool(self._others(subscription))
        if options & CloseOption.REMOVE_SUB and is_shared:
            raise QueueManagerError(ReasonCode.MQRC_SUBSCRIPTION_IN_USE, f"close {subscription.name}")
        self._closed(subscription)
        is_kept = is_shared or (subscription.is_durable and not options & CloseOption.REMOVE_SUB)
        if not is_kept:
            self._deregister(subscription)

    def _deregister(self, subscription: Subscription) -> None:
        command = DeregisterSubscriber(
            topics=(subscription.topic,),
            registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY,
            stream_name=self._stream_name,
            queue_name=subscription.queue.name,
            filter=subscription.filter or None,
        )
        descriptor = MessageDescriptor(correl_id=subscription.correl_id)
        self._commands.tell(command, descriptor, f"unsubscribe from {subscription.topic}")

    def end_queue(self, subscription: Subscription) -> None:
        """The program closes the queue of a subscription, which ends if that has ended or ends with it."""
        queue, others = subscription.queue, self._others(subscription)
        if queue.name in self._application.subscribed_queues:
            self._application.subscribed_queues.remove(queue.name)
        if queue.is_temporary and others:
            self._application.hand_over(queue, others[0])
        elif queue.is_temporary and not subscription.has_own_queue:
            self._application.end_dynamic(queue)
        elif subscription.is_durable and not subscription.has_own_queue:
            self._broker("close").end_queue(queue)

    # -- inside --------------------------------------------------------------------------------------------------------

    @property
    def _stream_name(self) -> str | None:
        return None if self._stream == DEFAULT_STREAM else self._stream

    def _open(self, subscription: Subscription, request: SubscriptionRequest) -> None:
        if not subscription.has_own_queue:
            self._application.subscribed_queues.append(subscription.queue.name)
        if subscription.name:
            openings = self._engine.objects.open_subscriptions
            openings.add(subscription.name, subscription, self._application, is_shared=request.is_shared)

    def _closed(self, subscription: Subscription) -> None:
        self._engine.objects.open_subscriptions.remove(subscription.name, subscription)

    def _others(self, subscription: Subscription) -> list[Application]:
        return self._engine.objects.open_subscriptions.others(subscription.name, subscription)

    def _registration(self, subscription: Subscription, options: RegistrationOption) -> RegisterSubscriber:
        return RegisterSubscriber(
            topics=(subscription.topic,),
            registration_options=options,
            stream_name=self._stream_name,
            queue_name=subscription.queue.name,
            filter=subscription.filter or None,
            subscription_name=subscription.name or None,
            subscription_user_data=subscription.user_data or None,
        )

    def _descriptor(self, subscription: Subscription, request: SubscriptionRequest) -> MessageDescriptor:
        descriptor = MessageDescriptor(correl_id=subscription.correl_id, expiry=request.expiry)
        mark = MqsubMark(_priority(request, subscription.queue), subscription.is_durable)
        return marked_command(descriptor, mark)


def check_close(subscription: Subscription, options: int) -> None:
    """Refuses options of MQCLOSE that a subscription does not have: 2046, and 2045 to keep what is not durable."""
    operation = f"close {subscription.name or subscription.topic}"
    if options & ~int(CloseOption.KEEP_SUB | CloseOption.REMOVE_SUB) or options.bit_count() > 1:
        raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, operation)
    if options & CloseOption.KEEP_SUB and not subscription.is_durable:
        raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, operation)


def _options(request: SubscriptionRequest, queue: Queue) -> RegistrationOption:
    options = RegistrationOption.CORREL_ID_AS_IDENTITY
    if not request.has(SubOption.GROUP_SUB):
        options |= RegistrationOption.DUPLICATES_OK
    if queue.is_temporary:
        options |= RegistrationOption.NON_PERSISTENT
    for option, said in _OPTIONS.items():
        options |= said if request.has(option) else _NO_OPTIONS
    return options


def _priority(request: SubscriptionRequest, queue: Queue) -> int:
    """The priority of copies. What is left to the queue is as the queue says now."""
    return queue.definition.number("DEFPRTY") if request.priority == MQPRI_PRIORITY_AS_Q_DEF else request.priority


def _new_correl_id() -> bytes:
    return IDENTIFIER_TAG + secrets.token_bytes(IDENTIFIER_BYTES - len(IDENTIFIER_TAG))

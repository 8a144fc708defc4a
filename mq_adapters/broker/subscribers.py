"""RegSub, DeregSub and ReqUpdate.

All checks come before the first change, so that a command is carried out whole or refused whole; only a DeregSub of
some topics that are registered and some that are not is carried out with a warning. Sources: IBM MQ, the pages of the
queued publish/subscribe commands; WebSphere MQ V6 Publish/Subscribe User's Guide.
"""

from typing import Final

from mappings.command import DeregisterSubscriber, RegisterSubscriber, RequestUpdate
from mappings.name_value import NameValues
from mappings.options import RegistrationOption, tokens_of
from mappings.reasons import Reason
from mappings.response import ResponseReason
from mappings.table import Dialect
from mq_adapters.broker.publish import Distributor
from mq_adapters.broker.responses import Refusal
from mq_adapters.broker.retained import RetainedPublications
from mq_adapters.broker.subscriptions import Identity, StreamSubscriptions, Subscription, SubscriptionRegistry
from mq_adapters.embedded.engine import AUDIT_QUEUE, DEFAULT_STREAM, Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQCI_NONE, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: Options of shared and named subscriptions, which this broker refuses (3083), as Message Broker V6 did.
_UNSUPPORTED: Final = (
    RegistrationOption.ADD_NAME
    | RegistrationOption.JOIN_SHARED
    | RegistrationOption.JOIN_EXCLUSIVE
    | RegistrationOption.LEAVE_ONLY
)
_PERSISTENCE_TOKENS: Final = frozenset({"NonPers", "Pers", "PersAsPub", "PersAsQueue"})
#: With one of these a RegSub is not followed by the publications that are retained.
_WITHOUT_RETAINED: Final = RegistrationOption.NEW_PUBLICATIONS_ONLY | RegistrationOption.PUBLISH_ON_REQUEST_ONLY

SubscriberCommand = RegisterSubscriber | DeregisterSubscriber | RequestUpdate


class Subscribers:
    """Carries out the commands of subscribers. `stream_names` are the streams that this broker serves."""

    def __init__(
        self,
        engine: Engine,
        *,
        stream_names: frozenset[str],
        registry: SubscriptionRegistry,
        retained: RetainedPublications,
        distributor: Distributor,
    ) -> None:
        self._engine = engine
        self._stream_names = stream_names
        self._registry = registry
        self._retained = retained
        self._distributor = distributor

    def check_stream(self, stream_name: str | None) -> str:
        """The stream that a command works on; 3082 for one that this broker does not serve."""
        name = stream_name or DEFAULT_STREAM
        if name not in self._stream_names:
            raise Refusal(Reason.MQRCCF_UNKNOWN_STREAM, ("StreamName", name))
        return name

    def register(self, unit: UnitOfWork, message: Message, command: RegisterSubscriber, dialect: Dialect) -> NameValues:
        """RegSub: adds or updates the subscriptions and sends what is retained; returns what FullResp asks for."""
        stream_name = self.check_stream(command.stream_name)
        identity = self._identity(message.descriptor, command)
        _check_registration(command)
        self._check_queue(identity)
        stream = self._registry.stream(stream_name)
        self._check_owner(stream.of(identity), message.descriptor, command, Reason.MQRCCF_DUPLICATE_IDENTITY)
        self._check_name(stream, identity, command)
        registered = [
            self._registered(unit, message, command, dialect, identity, stream_name, topic)
            for topic in dict.fromkeys(command.topics)
        ]
        if not command.registration_options & _WITHOUT_RETAINED:
            self._send_retained(unit, registered)
        return _full_response(registered, command)

    def deregister(
        self, unit: UnitOfWork, message: Message, command: DeregisterSubscriber
    ) -> tuple[NameValues, tuple[ResponseReason, ...]]:
        """DeregSub: ends subscriptions; 3073 where there are none, as a warning where there are some."""
        stream = self._registry.stream(self.check_stream(command.stream_name))
        identity = self._identity(message.descriptor, command)
        _check_unsupported(command)
        if command.topics:
            found, missing = _find(stream, identity, command)
        else:
            found, missing = list(stream.of(identity)), []
        if not found:
            raise Refusal(Reason.MQRCCF_NOT_REGISTERED, *(("Topic", topic) for topic in missing))
        self._check_owner(found, message.descriptor, command, Reason.MQRCCF_WRONG_USER)
        for subscription in found:
            self._registry.remove(unit, subscription)
        warnings = tuple(
            ResponseReason(reason_code=Reason.MQRCCF_NOT_REGISTERED, fields=(("Topic", topic),)) for topic in missing
        )
        return _full_response(found, command), warnings

    def request_update(self, unit: UnitOfWork, message: Message, command: RequestUpdate) -> None:
        """ReqUpdate: sends what is retained for one subscription; 3073 without the subscription, 3077 without any."""
        stream = self._registry.stream(self.check_stream(command.stream_name))
        identity = self._identity(message.descriptor, command)
        _check_filter(command)
        found, missing = _find(stream, identity, command)
        if not found:
            raise Refusal(Reason.MQRCCF_NOT_REGISTERED, *(("Topic", topic) for topic in missing))
        self._check_owner(found, message.descriptor, command, Reason.MQRCCF_DUPLICATE_IDENTITY)
        if not self._send_retained(unit, found):
            raise Refusal(Reason.MQRCCF_NO_RETAINED_MSG, *(("Topic", topic) for topic in command.topics))

    def _identity(self, descriptor: MessageDescriptor, command: SubscriberCommand) -> Identity:
        """QMgrName and QName, by default the reply queue, and the CorrelId with CorrelAsId; 3074, 3076 or 3080."""
        correlated = RegistrationOption.CORREL_ID_AS_IDENTITY in command.registration_options
        if correlated and descriptor.correl_id == MQCI_NONE:
            raise Refusal(Reason.MQRCCF_CORREL_ID_ERROR)
        queue_manager_name = command.queue_manager_name
        if queue_manager_name is None:
            queue_manager_name = descriptor.reply_to_q_mgr.rstrip()
        if queue_manager_name not in ("", self._engine.name):
            raise Refusal(Reason.MQRCCF_Q_MGR_NAME_ERROR, ("QMgrName", queue_manager_name))
        queue_name = command.queue_name or descriptor.reply_to_q.rstrip()
        if not queue_name:
            raise Refusal(Reason.MQRCCF_Q_NAME_ERROR)
        return Identity(
            queue_manager_name=self._engine.name,
            queue_name=queue_name,
            correl_id=descriptor.correl_id if correlated else None,
        )

    def _check_queue(self, identity: Identity) -> None:
        """3076 for a queue that is not defined, and for those on which copies would go round in a circle."""
        name = identity.queue_name
        try:
            queue = self._engine.queue(name)
        except QueueManagerError as error:
            raise Refusal(
                Reason.MQRCCF_Q_NAME_ERROR, ("ErrorId", str(int(error.reason_code))), ("QName", name)
            ) from None
        if queue.handler is not None or name == AUDIT_QUEUE:
            error_id = str(int(ReasonCode.MQRC_PUT_INHIBITED))
            raise Refusal(Reason.MQRCCF_Q_NAME_ERROR, ("ErrorId", error_id), ("QName", name))

    def _check_owner(
        self,
        subscriptions: tuple[Subscription, ...] | list[Subscription],
        descriptor: MessageDescriptor,
        command: SubscriberCommand,
        reason: Reason,
    ) -> None:
        """Only the user who registered may act on a subscription, unless both sides say VariableUserId."""
        option = RegistrationOption.VARIABLE_USER_ID
        for subscription in subscriptions:
            if subscription.user_identifier == descriptor.user_identifier:
                continue
            if option not in subscription.options or option not in command.registration_options:
                raise Refusal(reason, ("UserId", descriptor.user_identifier))

    def _check_name(self, stream: StreamSubscriptions, identity: Identity, command: RegisterSubscriber) -> None:
        """3152 where the SubName belongs to another subscription, or would belong to two."""
        name = command.subscription_name
        if name is None:
            return
        holder = stream.named(name)
        topics = dict.fromkeys(command.topics)
        point = command.subscription_point or ""
        if len(topics) > 1 or (holder is not None and holder is not stream.find(identity, point, command.topics[0])):
            raise Refusal(Reason.MQRCCF_DUPLICATE_SUBSCRIPTION, ("SubName", name))

    def _registered(
        self,
        unit: UnitOfWork,
        message: Message,
        command: RegisterSubscriber,
        dialect: Dialect,
        identity: Identity,
        stream_name: str,
        topic: str,
    ) -> Subscription:
        point = command.subscription_point or ""
        existing = self._registry.stream(stream_name).find(identity, point, topic)
        if existing is not None and RegistrationOption.NO_ALTERATION in command.registration_options:
            return existing
        descriptor = message.descriptor
        subscription = Subscription(
            number=existing.number if existing is not None else self._registry.next_number(),
            identity=identity,
            stream_name=stream_name,
            topic=topic,
            dialect=dialect,
            options=command.registration_options,
            subscription_point=point,
            subscription_name=command.subscription_name or "",
            subscription_user_data=command.subscription_user_data or "",
            user_identifier=descriptor.user_identifier,
            accounting_token=descriptor.accounting_token,
            appl_identity_data=descriptor.appl_identity_data,
            expires_us=message.expires_us,
        )
        self._registry.put(unit, subscription)
        return subscription

    def _send_retained(self, unit: UnitOfWork, subscriptions: list[Subscription]) -> bool:
        """Sends what is retained for subscriptions of one identity, each publication once; whether there was any."""
        now_us = self._engine.now_us()
        found = [
            kept
            for wanted in subscriptions
            if not wanted.subscription_point
            for kept in self._retained.matching(wanted.stream_name, wanted.topic, wanted.scheme, now_us).values()
        ]
        if found:
            self._distributor.send_retained(unit, found, subscriptions[0])
        return bool(found)


def _check_registration(command: RegisterSubscriber) -> None:
    _check_unsupported(command)
    _check_filter(command)
    persistence = [token for token in tokens_of(command.registration_options) if token in _PERSISTENCE_TOKENS]
    if len(persistence) > 1:
        raise Refusal(Reason.MQRCCF_REG_OPTIONS_ERROR, ("RegOpt", persistence[1]))


def _check_unsupported(command: SubscriberCommand) -> None:
    unsupported = tokens_of(command.registration_options & _UNSUPPORTED)
    if unsupported:
        raise Refusal(Reason.MQRCCF_REG_OPTIONS_ERROR, ("RegOpt", unsupported[0]))


def _check_filter(command: SubscriberCommand) -> None:
    """2551: a content filter that nobody here can evaluate must not be ignored, which would widen the subscription."""
    if command.filter is not None:
        raise Refusal(Reason.MQRC_SELECTION_NOT_AVAILABLE, ("Filter", command.filter))


def _find(
    stream: StreamSubscriptions, identity: Identity, command: DeregisterSubscriber | RequestUpdate
) -> tuple[list[Subscription], list[str]]:
    """The subscriptions to exactly the command's topics, and the topics that have none.

    No subscription has a Filter, so a command that names one finds nothing. A SubName must be that of the subscription.
    """
    found: list[Subscription] = []
    missing: list[str] = []
    for topic in dict.fromkeys(command.topics):
        subscription = stream.find(identity, command.subscription_point or "", topic)
        named = command.subscription_name in (None, subscription.subscription_name if subscription else None)
        if subscription is None or command.filter is not None or not named:
            missing.append(topic)
        else:
            found.append(subscription)
    return found, missing


def _full_response(subscriptions: list[Subscription], command: SubscriberCommand) -> NameValues:
    """What FullResp returns of the subscriptions, under psc names; nothing without FullResp."""
    if RegistrationOption.FULL_RESPONSE not in command.registration_options:
        return ()
    first = subscriptions[0]
    fields = [("Topic", subscription.topic) for subscription in subscriptions]
    fields += [("QMgrName", first.identity.queue_manager_name), ("QName", first.identity.queue_name)]
    if first.identity.correl_id is not None:
        fields.append(("CorrelId", first.identity.correl_id.hex()))
    fields.append(("UserId", first.user_identifier))
    fields += [("RegOpt", token) for token in tokens_of(first.options)]
    if first.subscription_name:
        fields.append(("SubName", first.subscription_name))
    if first.subscription_user_data:
        fields.append(("SubUserData", first.subscription_user_data))
    return tuple(fields)

"""RegSub, DeregSub and ReqUpdate.

All checks come before the first change, so a command is carried out whole or refused whole. There is one exception: if
only some topics of a DeregSub are registered, it is carried out with a warning. `registration` decides the effect of a
RegSub on an existing subscription. Sources: IBM MQ, the pages of the queued publish/subscribe commands; WebSphere MQ V6
Publish/Subscribe User's Guide.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from mappings.commands.command import (
    DeregisterPublisher,
    DeregisterSubscriber,
    RegisterPublisher,
    RegisterSubscriber,
    RequestUpdate,
)
from mappings.commands.options import RegistrationOption, tokens_of
from mappings.commands.response import ResponseReason
from mappings.headers.name_value import NameValues
from mappings.reasons import Reason
from mappings.table import Dialect
from mq_adapters.broker.full_response import full_response
from mq_adapters.broker.registered_filter import check_filter
from mq_adapters.broker.registration import JOIN, CheckedRegistration, attributes_of, check_name, registration
from mq_adapters.broker.responses import CommandRefusal
from mq_adapters.broker.subscription import Identity, Interest, Subscription
from mq_adapters.broker.subscriptions import Owner, SpaceSubscriptions, SubscriptionRegistry
from mq_adapters.broker.topic_permissions import TopicPermissions, subscribe_refusal
from mq_adapters.broker.topic_spaces import SCHEME_OF, TopicSpaces
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQCI_NONE, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.selection.conditions import FilterError, UnavailableFilterError
from mq_adapters.subscription_mark import MQPRI_PRIORITY_AS_PUBLISHED, mark_of_command
from mq_adapters.system_queues import is_closed_to_applications

_PERSISTENCE_TOKENS: Final = frozenset({"NonPers", "Pers", "PersAsPub", "PersAsQueue"})
#: With one of these options a RegSub brings no retained publications.
_WITHOUT_RETAINED: Final = RegistrationOption.NEW_PUBLICATIONS_ONLY | RegistrationOption.PUBLISH_ON_REQUEST_ONLY

SubscriberCommand = RegisterSubscriber | DeregisterSubscriber | RequestUpdate
PublisherCommand = RegisterPublisher | DeregisterPublisher


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that was carried out, except for retained publications: fields of the full response, and warnings.

    `to_update`: the subscriptions, of one identity, that get retained publications; `is_requested`: by a ReqUpdate.
    """

    fields: NameValues = ()
    warnings: tuple[ResponseReason, ...] = ()
    to_update: tuple[Subscription, ...] = ()
    is_requested: bool = False


DONE: Final = Done()


class SubscriberCommands:
    """Carries out the commands of subscribers."""

    def __init__(
        self,
        engine: Engine,
        *,
        spaces: TopicSpaces,
        registry: SubscriptionRegistry,
    ) -> None:
        self._engine = engine
        self._spaces = spaces
        self._registry = registry
        self._permissions = TopicPermissions(engine.objects)

    def end_expired(self, unit: UnitOfWork) -> None:
        """Ends expired subscriptions, so that no command acts on one."""
        self._registry.remove_expired(unit, self._engine.now_us())

    def check_publisher(self, message: Message, command: PublisherCommand) -> None:
        """RegPub and DeregPub: 3082, 3080 or 3076 for an impossible publisher. Nothing is registered."""
        self._spaces.stream_of_command(command.stream_name)
        _check_correl_id(message.descriptor, command)
        if not (command.queue_name or message.descriptor.reply_to_q.rstrip()):
            raise CommandRefusal(Reason.MQRCCF_Q_NAME_ERROR, ("QName", ""))

    def register(self, unit: UnitOfWork, message: Message, command: RegisterSubscriber, dialect: Dialect) -> Done:
        """RegSub: adds or updates the subscriptions."""
        stream_name = self._spaces.stream_of_command(command.stream_name)
        named = self._joined_by_name(stream_name, command)
        if named is not None:
            return self._join(unit, named, message.descriptor, command)
        identity = self._identity(message.descriptor, command)
        self._spaces.check_patterns(command.topics, dialect)
        self._check_permission(stream_name, command.topics, dialect)
        _check_persistence(command)
        _check_filter(command)
        queue = self._checked_queue(identity)
        space = self._registry.space(self._spaces.space(stream_name))
        _check_owners(space.owners(identity), message.descriptor, command, Reason.MQRCCF_DUPLICATE_IDENTITY)
        registrations = [
            self._registration(space, replace(wanted, is_on_temporary_queue=queue.is_temporary), command)
            for wanted in self._wanted(message, command, dialect, identity, stream_name)
        ]
        registered = [found.subscription for found in registrations]
        self._check_shapes(space, message.descriptor, registered)
        for subscription in registered:
            if space.find(identity, subscription.interest) is not subscription:
                self._registry.put(unit, subscription)
        warnings = [
            ResponseReason(reason_code=Reason.MQRCCF_ALREADY_JOINED, fields=(("Topic", found.subscription.topic),))
            for found in registrations
            if found.has_joined_before
        ]
        return Done(
            fields=full_response(registered, command),
            warnings=tuple(warnings),
            to_update=() if command.registration_options & _WITHOUT_RETAINED else tuple(registered),
        )

    def _joined_by_name(self, stream_name: str, command: RegisterSubscriber) -> Subscription | None:
        """The subscription that a SubIdentity joins by its SubName, whatever else the command says; None: none.

        IBM's JMS client takes hold of a durable subscription so, to end it: its command has a topic that nobody uses.
        """
        options, name = command.registration_options, command.subscription_name
        if name is None or not (options & RegistrationOption.NO_ALTERATION and options & JOIN):
            return None
        return self._registry.space(self._spaces.space(stream_name)).named(name)

    def _join(
        self, unit: UnitOfWork, existing: Subscription, descriptor: MessageDescriptor, command: RegisterSubscriber
    ) -> Done:
        _check_owners((existing.owner,), descriptor, command, Reason.MQRCCF_DUPLICATE_IDENTITY)
        checked = registration(existing, existing, command)
        if checked.subscription is not existing:
            self._registry.put(unit, checked.subscription)
        already = ResponseReason(reason_code=Reason.MQRCCF_ALREADY_JOINED, fields=(("Topic", existing.topic),))
        return Done(
            fields=full_response([checked.subscription], command),
            warnings=(already,) if checked.has_joined_before else (),
        )

    def deregister(self, unit: UnitOfWork, message: Message, command: DeregisterSubscriber, dialect: Dialect) -> Done:
        """DeregSub: ends subscriptions, or takes a SubIdentity off them; 3073, as a warning if some were there."""
        _check_filter(command)
        found, missing = self._found(message, command, dialect)
        _check_owners((each.owner for each in found), message.descriptor, command, Reason.MQRCCF_WRONG_USER)
        remaining = {subscription: _after_leaving(subscription, command) for subscription in found}
        strangers = [subscription for subscription, after in remaining.items() if after is subscription]
        if strangers and (len(strangers) == len(found) or not _is_for_all(command)):
            raise CommandRefusal(Reason.MQRCCF_SUB_IDENTITY_ERROR, ("SubIdentity", command.subscription_identity or ""))
        for subscription, after in remaining.items():
            if after is None:
                self._registry.remove(unit, subscription)
            elif after is not subscription:
                self._registry.put(unit, after)
        warnings = tuple(
            ResponseReason(reason_code=Reason.MQRCCF_NOT_REGISTERED, fields=(("Topic", topic),)) for topic in missing
        )
        return Done(fields=full_response(found, command), warnings=warnings)

    def request_update(self, message: Message, command: RequestUpdate, dialect: Dialect) -> Done:
        """ReqUpdate: finds the subscription that gets retained publications; 3073 if there is none."""
        _check_filter(command)
        found, _ = self._found(message, command, dialect)
        named = command.subscription_name is not None
        reason = Reason.MQRCCF_WRONG_USER if named else Reason.MQRCCF_DUPLICATE_IDENTITY
        _check_owners((each.owner for each in found), message.descriptor, command, reason)
        for subscription in found:
            self._check_permission(subscription.stream_name, (subscription.topic,), subscription.dialect)
        return Done(to_update=tuple(found), is_requested=True)

    # -- inside: identities and their subscriptions --------------------------------------------------------------------

    def _identity(self, descriptor: MessageDescriptor, command: SubscriberCommand) -> Identity:
        """QMgrName and QName, by default the reply queue, and the CorrelId with CorrelAsId; 3074, 3076 or 3080."""
        _check_correl_id(descriptor, command)
        correlated = RegistrationOption.CORREL_ID_AS_IDENTITY in command.registration_options
        queue_manager_name = command.queue_manager_name
        if queue_manager_name is None:
            queue_manager_name = descriptor.reply_to_q_mgr.rstrip()
        if queue_manager_name not in ("", self._engine.name):
            raise CommandRefusal(Reason.MQRCCF_Q_MGR_NAME_ERROR, ("QMgrName", queue_manager_name))
        queue_name = command.queue_name or descriptor.reply_to_q.rstrip()
        if not queue_name:
            raise CommandRefusal(Reason.MQRCCF_Q_NAME_ERROR, ("QName", ""))
        return Identity(
            queue_manager_name=self._engine.name,
            queue_name=queue_name,
            correl_id=descriptor.correl_id if correlated else None,
        )

    def _checked_queue(self, identity: Identity) -> Queue:
        """The subscriber's queue. 3076 if it is not defined, or if copies on it would come back to the broker."""
        name = identity.queue_name
        try:
            queue = self._engine.queue(name)
        except QueueManagerError as error:
            raise CommandRefusal(
                Reason.MQRCCF_Q_NAME_ERROR, ("ErrorId", str(int(error.reason_code))), ("QName", name)
            ) from None
        if queue.handler is not None or is_closed_to_applications(queue.name):
            error_id = str(int(ReasonCode.MQRC_PUT_INHIBITED))
            raise CommandRefusal(Reason.MQRCCF_Q_NAME_ERROR, ("ErrorId", error_id), ("QName", name))
        return queue

    def _found(
        self, message: Message, command: DeregisterSubscriber | RequestUpdate, dialect: Dialect
    ) -> tuple[list[Subscription], list[str]]:
        """The subscriptions to which a command refers, and the topics that have none; 3073 if it refers to none.

        A SubName decides before all other fields; then only the user is compared. 3153 if the other fields refer to a
        subscription without a name.
        """
        stream_name = self._spaces.stream_of_command(command.stream_name)
        space = self._registry.space(self._spaces.space(stream_name))
        named = space.named(command.subscription_name) if command.subscription_name is not None else None
        if named is not None:
            return [named], []
        if command.subscription_name is not None and not command.topics and not _is_for_all(command):
            raise CommandRefusal(Reason.MQRCCF_NOT_REGISTERED, ("SubName", command.subscription_name))
        identity = self._identity(message.descriptor, command)
        if _is_for_all(command):
            chosen = self._chosen(space.of(identity), command, dialect, stream_name)
            if not chosen:
                raise CommandRefusal(Reason.MQRCCF_NOT_REGISTERED, ("QName", identity.queue_name))
            return chosen, []
        found: list[Subscription] = []
        missing: list[str] = []
        for topic in dict.fromkeys(command.topics):
            subscription = space.find(identity, self._interest(command, dialect, stream_name, topic))
            if subscription is None:
                missing.append(topic)
            else:
                found.append(subscription)
        if command.subscription_name is not None and any(not subscription.name for subscription in found):
            raise CommandRefusal(Reason.MQRCCF_SUB_NAME_ERROR, ("SubName", command.subscription_name))
        if command.subscription_name is not None or not found:
            raise CommandRefusal(
                Reason.MQRCCF_NOT_REGISTERED, *(("Topic", topic) for topic in dict.fromkeys(command.topics))
            )
        return found, missing

    def _chosen(
        self,
        subscriptions: Iterable[Subscription],
        command: DeregisterSubscriber | RequestUpdate,
        dialect: Dialect,
        stream_name: str,
    ) -> list[Subscription]:
        """For DeregAll: the subscriptions with those topics, that point and that filter which the command names."""
        patterns = {self._spaces.routing_pattern(stream_name, topic, dialect) for topic in command.topics}
        return [
            found
            for found in subscriptions
            if (not patterns or found.interest.pattern in patterns)
            and command.subscription_point in (None, found.interest.point)
            and command.filter in (None, found.interest.filter)
        ]

    def _interest(self, command: SubscriberCommand, dialect: Dialect, stream_name: str, topic: str) -> Interest:
        return Interest(
            pattern=self._spaces.routing_pattern(stream_name, topic, dialect),
            point=command.subscription_point or "",
            filter=command.filter or "",
        )

    def _check_permission(self, stream_name: str, topics: Iterable[str], dialect: Dialect) -> None:
        """Raises 3081 for topics to which nobody may subscribe."""
        space = self._spaces.space(stream_name)
        refused = [
            topic
            for topic in topics
            if not self._permissions.may_subscribe_to(
                space, self._spaces.routing_pattern(stream_name, topic, dialect), SCHEME_OF[dialect]
            )
        ]
        if refused:
            raise subscribe_refusal(refused)

    # -- inside: registering -------------------------------------------------------------------------------------------

    def _wanted(
        self, message: Message, command: RegisterSubscriber, dialect: Dialect, identity: Identity, stream_name: str
    ) -> Iterable[Subscription]:
        """The subscriptions that the command describes, one for each of its topics."""
        descriptor = message.descriptor
        mark = mark_of_command(descriptor)
        return (
            Subscription(
                number=0,
                identity=identity,
                stream_name=stream_name,
                topic=topic,
                space=self._spaces.space(stream_name),
                interest=self._interest(command, dialect, stream_name, topic),
                dialect=dialect,
                options=attributes_of(command.registration_options),
                user_data=command.subscription_user_data or "",
                user_identifier=descriptor.user_identifier,
                accounting_token=descriptor.accounting_token,
                appl_identity_data=descriptor.appl_identity_data,
                expires_us=message.expires_us,
                is_of_mqsub=mark is not None,
                priority=MQPRI_PRIORITY_AS_PUBLISHED if mark is None else mark.priority,
                is_durable=mark is None or mark.is_durable,
            )
            for topic in dict.fromkeys(command.topics)
        )

    def _check_shapes(
        self, space: SpaceSubscriptions, descriptor: MessageDescriptor, registered: Iterable[Subscription]
    ) -> None:
        """Raises 2102 for topics whose shapes would make the search for subscriptions too long."""
        by_point: dict[str, list[Subscription]] = {}
        for each in registered:
            if space.find(each.identity, each.interest) is None:
                by_point.setdefault(each.interest.point, []).append(each)
        for point, wanted in by_point.items():
            new = space.new_shapes(point, wanted)
            if new and not self._registry.may_add(descriptor.user_identifier, space.index(point).shapes, new):
                raise CommandRefusal(Reason.MQRC_RESOURCE_PROBLEM, *(("Topic", each.topic) for each in wanted))

    def _registration(
        self, space: SpaceSubscriptions, wanted: Subscription, command: RegisterSubscriber
    ) -> CheckedRegistration:
        existing = space.find(wanted.identity, wanted.interest)
        name = command.subscription_name
        if name is not None:
            check_name(name)
            holder = space.named(name)
            if len(set(command.topics)) > 1 or (holder is not None and holder is not existing):
                raise CommandRefusal(Reason.MQRCCF_DUPLICATE_SUBSCRIPTION, ("SubName", name))
        number = existing.number if existing is not None else self._registry.next_number()
        return registration(existing, replace(wanted, number=number), command)


def _is_for_all(command: DeregisterSubscriber | RequestUpdate) -> bool:
    """Whether DeregAll is set and counts. It is ignored if topic, subscription point and filter are all given."""
    named = (command.topics, command.subscription_point, command.filter)
    is_asked = RegistrationOption.DEREGISTER_ALL in command.registration_options
    return is_asked and not all(named)


def _after_leaving(subscription: Subscription, command: DeregisterSubscriber) -> Subscription | None:
    """The subscription after a SubIdentity has left; None: it ends. The same object if that had not joined."""
    identity = command.subscription_identity
    if identity is None:
        return None
    if identity not in subscription.joined:
        return subscription
    joined = tuple(held for held in subscription.joined if held != identity)
    if not joined and RegistrationOption.LEAVE_ONLY not in command.registration_options:
        return None
    return replace(subscription, joined=joined, is_exclusive=False)


def _check_owners(
    owners: Iterable[Owner], descriptor: MessageDescriptor, command: SubscriberCommand, reason: Reason
) -> None:
    """Only the user who registered may act on a subscription, unless both sides say VariableUserId."""
    is_variable = RegistrationOption.VARIABLE_USER_ID in command.registration_options
    for user_identifier, takes_others in owners:
        if user_identifier != descriptor.user_identifier and not (takes_others and is_variable):
            raise CommandRefusal(reason, ("UserId", descriptor.user_identifier))


def _check_correl_id(descriptor: MessageDescriptor, command: SubscriberCommand | PublisherCommand) -> None:
    correlated = RegistrationOption.CORREL_ID_AS_IDENTITY in command.registration_options
    if correlated and descriptor.correl_id == MQCI_NONE:
        raise CommandRefusal(Reason.MQRCCF_CORREL_ID_ERROR, ("CorrelId", MQCI_NONE.hex()))


def _check_persistence(command: RegisterSubscriber) -> None:
    persistence = [token for token in tokens_of(command.registration_options) if token in _PERSISTENCE_TOKENS]
    if len(persistence) > 1:
        raise CommandRefusal(Reason.MQRCCF_REG_OPTIONS_ERROR, ("RegOpt", persistence[1]))


def _check_filter(command: SubscriberCommand) -> None:
    """Raises 3150 for a malformed content filter, and 2551 for one that cannot be evaluated here."""
    if command.filter is None:
        return
    try:
        check_filter(command.filter)
    except FilterError:
        raise CommandRefusal(Reason.MQRCCF_FILTER_ERROR, ("Filter", command.filter)) from None
    except UnavailableFilterError:
        raise CommandRefusal(Reason.MQRC_SELECTION_NOT_AVAILABLE, ("Filter", command.filter)) from None

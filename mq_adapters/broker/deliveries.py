"""Decides the recipients of a publication, and the header of each copy, once for each published header.

Step 7a on the way of a PUBLISH. A `DeliveryPlan` holds the published header and a ready `Copy` for each recipient.
Publications with the same header differ only in the body. A plan is valid until the subscriptions of its stream change.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Final

from mappings.commands.command import Publish
from mappings.commands.options import PublicationOption, RegistrationOption
from mappings.errors import MappingError
from mappings.headers.charset import ENCODING_REVERSED, UTF_8
from mappings.table import Dialect
from mq_adapters.broker.delivered_header import DeliveredHeader, WantedHeader, delivered_header, unchanged_header
from mq_adapters.broker.responses import PUT_APPL_NAME_CHARACTERS
from mq_adapters.broker.subscription import Identity, Subscription
from mq_adapters.broker.subscriptions import recipients
from mq_adapters.command_header import FORMAT_OF_DIALECT, CommandHeader, WrittenCommand
from mq_adapters.delivery_listener import Delivery
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import (
    IDENTIFIER_TAG,
    MQAT_BROKER,
    MQEI_UNLIMITED,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENCE_AS_Q_DEF,
    MQPER_PERSISTENT,
    KnownHeader,
    Message,
    MessageDescriptor,
)
from mq_adapters.reasons import QueueManagerError
from mq_adapters.subscription_mark import COPY_MARK
from mq_adapters.weighted_cache import WeightedCache

#: Descriptors kept for sharing; about 1 KiB each.
_KEPT_DESCRIPTORS: Final = 65_536
#: The most weight of all plans, copies and headers in a cache, in units of about 2 KiB.
_KEPT_WEIGHT: Final = 65_536
#: Bytes of a header that weigh as much as a copy: a plan holds its header in several forms.
_WEIGHT_BYTES: Final = 256
#: A header longer than this (bytes) would fill the cache, so it is read anew for each publication.
LONGEST_KEPT_HEADER: Final = 4_096

_PERSISTENCE_OF_OPTION: Final = (
    (RegistrationOption.NON_PERSISTENT, MQPER_NOT_PERSISTENT),
    (RegistrationOption.PERSISTENT, MQPER_PERSISTENT),
    (RegistrationOption.PERSISTENT_AS_Q, MQPER_PERSISTENCE_AS_Q_DEF),
)

#: The most choices of recipients that a cache keeps for one header with content filters. Past it, it starts anew.
KEPT_CHOICES: Final = 64

PlanKey = tuple[bytes, bytes, int, int, int, int, int]


@dataclass(slots=True, kw_only=True, eq=False)
class Copy:
    """The copy of one recipient. `header` replaces the published header; None: the published bytes stay.

    `written` is the new header as its writer knows it (Message.written). A copy does not change. It is not frozen,
    because it would take twice as long to make.
    """

    subscription: Subscription
    queue: Queue
    descriptor: MessageDescriptor
    header: bytes | None
    written: KnownHeader | None
    delivery: Delivery


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failure:
    """A recipient that cannot be served: its queue is gone, or its format cannot express the header.

    `descriptor` and `header` belong to the copy that the recipient should have had; None if no copy is possible.
    """

    queue_name: str
    reason_code: int
    descriptor: MessageDescriptor | None = None
    header: bytes = b""


@dataclass(slots=True, kw_only=True, eq=False)
class DeliveryPlan:
    """A publication's header, its recipients and their copies.

    It is valid while three conditions hold. The index has `generation` (the plan is renewed if a change leaves its
    candidates the same). The objects are those of `object_changes`. The time is before `valid_until_us` (microseconds
    since 1970; 0: for ever), when the first of the subscriptions ends.

    `is_correlated`, `excludes_publisher` and `retains` are the publication's CorrelAsId, OtherSubsOnly and RetainPub.
    `candidates` are the subscriptions that match its topics. `refused_topics` are topics on which nobody may publish;
    `routing_topics` does not have them. If some candidates have a content filter (`is_filtered`), the plan has no
    copies, and `choices` has a plan for each set of recipients.
    """

    published: CommandHeader
    command: Publish
    is_correlated: bool
    excludes_publisher: bool
    retains: bool
    is_filtered: bool
    routing_topics: tuple[str, ...]
    candidates: tuple[Subscription, ...]
    copies: tuple[Copy, ...]
    failures: tuple[Failure, ...]
    refused_topics: tuple[str, ...]
    generation: int
    object_changes: int
    valid_until_us: int
    choices: dict[tuple[Subscription, ...], "DeliveryPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """The inputs for copies beside the header: MQMD fields, subscription point, and whether the publication was stored.
    `return_address` is as in `WantedHeader`."""

    published_as: "PublishedAs"
    point: str = ""
    is_retained: bool = False
    return_address: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedAs:
    """The fields that copies take from the publication's MQMD; `expiry` is the rest of its life."""

    persistence: int
    priority: int
    expiry: int


class _RetainedWay:
    """What the copies of stored publications have in common, for one subscription and one kind of publication."""

    __slots__ = ("descriptor", "is_as_queue", "object_changes", "published", "queue", "subscription", "wanted")

    def __init__(
        self,
        subscription: Subscription,
        published: MessageDescriptor,
        object_changes: int,
        *,
        wanted: WantedHeader,
        queue: Queue,
        descriptor: MessageDescriptor,
    ) -> None:
        self.subscription = subscription
        self.published = published
        self.object_changes = object_changes
        self.wanted = wanted
        self.queue = queue
        self.descriptor = descriptor
        self.is_as_queue = descriptor.persistence == MQPER_PERSISTENCE_AS_Q_DEF

    def serves(self, subscription: Subscription, published: MessageDescriptor, object_changes: int) -> bool:
        """Whether the copy of another publication is made in the same way."""
        return (
            subscription is self.subscription
            and object_changes == self.object_changes
            and published.persistence == self.published.persistence
            and published.priority == self.published.priority
        )


class DeliveryMaker:
    """Makes the plans of publications, and shares their common parts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._way: _RetainedWay | None = None
        self._descriptors: dict[tuple[Subscription, PublishedAs, bytes, int, int], MessageDescriptor] = {}

    def plan(
        self,
        published: CommandHeader,
        candidates: tuple[Subscription, ...],
        occasion: Occasion,
        *,
        routing_topics: tuple[str, ...] = (),
        refused_topics: tuple[str, ...] = (),
        generation: int = 0,
        object_changes: int = 0,
        earlier: DeliveryPlan | None = None,
    ) -> DeliveryPlan:
        """The plan for the matching subscriptions. It has no copies if some have content filters.

        `earlier` is a plan for the same header and occasion, with the same objects, and other candidates.
        """
        command = published.command
        assert isinstance(command, Publish)
        options = command.publication_options
        is_filtered = any(found.interest.filter for found in candidates)
        copies: tuple[Copy, ...] = ()
        failures: tuple[Failure, ...] = ()
        if not is_filtered:
            known = {copy.subscription: copy for copy in earlier.copies} if earlier is not None else {}
            copies, failures = self.copies(published, recipients(candidates), occasion, known)
        return DeliveryPlan(
            published=published,
            command=command,
            is_correlated=PublicationOption.CORREL_ID_AS_IDENTITY in options
            or RegistrationOption.CORREL_ID_AS_IDENTITY in command.registration_options,
            excludes_publisher=PublicationOption.OTHER_SUBSCRIBERS_ONLY in options,
            retains=PublicationOption.RETAIN_PUBLICATION in options,
            is_filtered=is_filtered,
            routing_topics=routing_topics,
            candidates=candidates,
            copies=copies,
            failures=failures,
            refused_topics=refused_topics,
            generation=generation,
            object_changes=object_changes,
            valid_until_us=min((found.expires_us for found in candidates if found.expires_us), default=0),
            choices={},
        )

    def choice(self, plan: DeliveryPlan, passed: tuple[Subscription, ...], occasion: Occasion) -> DeliveryPlan:
        """The plan for the candidates whose filters let a publication pass."""
        found = plan.choices.get(passed)
        if found is None:
            copies, failures = self.copies(plan.published, recipients(passed), occasion, {})
            if len(plan.choices) >= KEPT_CHOICES:
                plan.choices.clear()
            found = replace(plan, is_filtered=False, copies=copies, failures=failures, choices={})
            if not failures:
                plan.choices[passed] = found
        return found

    def copies(
        self,
        published: CommandHeader,
        chosen: tuple[Subscription, ...],
        occasion: Occasion,
        known: dict[Subscription, Copy],
    ) -> tuple[tuple[Copy, ...], tuple[Failure, ...]]:
        """For each recipient a copy, or the reason why there is none. `known` has copies that were made before.

        Subscribers of one topic mostly want the same header, so that is decided anew only where one differs.
        """
        copies: list[Copy] = []
        failures: list[Failure] = []
        headers: dict[WantedHeader, DeliveredHeader | MappingError] = {}
        header: DeliveredHeader | MappingError | None = None
        persistence = MQPER_NOT_PERSISTENT
        last: Subscription | None = None
        for subscription in chosen:
            made: Copy | Failure | None = known.get(subscription)
            if made is None:
                if header is None or last is None or not _wants_the_same(subscription, last):
                    wanted = _wanted_by(subscription, occasion)
                    if wanted not in headers:
                        headers[wanted] = _header(published, wanted)
                    header, persistence = headers[wanted], _persistence(subscription, occasion.published_as.persistence)
                    last = subscription
                made = self._copy(subscription, published, header, persistence, occasion)
            if isinstance(made, Copy):
                copies.append(made)
            elif made is not None:
                failures.append(made)
        return tuple(copies), tuple(failures)

    def retained_copy(self, message: Message, subscription: Subscription) -> Copy | None:
        """The copy of a stored publication whose header this process wrote and does not change; None: make a plan.

        A SUBSCRIBE may bring ten thousand of them, each on a topic of its own.
        """
        published = message.written
        if message.expires_us or not isinstance(published, WrittenCommand) or KnownHeader.of(message) is None:
            return None
        if subscription.interest.filter or published.dialect is not subscription.dialect:
            return None
        changes, way = self._engine.objects.changes, self._way
        if way is None or not way.serves(subscription, message.descriptor, changes):
            way = self._way = self._retained_way(message.descriptor, subscription, changes)
        header = unchanged_header(published, way.wanted) if way is not None else None
        if way is None or header is None:
            return None
        is_same = header is published
        return Copy(
            subscription=subscription,
            queue=way.queue,
            descriptor=way.descriptor,
            header=None if is_same else header.data,
            written=None if is_same else header,
            delivery=Delivery(
                queue_name=way.queue.name,
                correl_id=way.descriptor.correl_id,
                topics=header.command.topics,
                input_format=published.format,
                input_coded_char_set_id=published.coded_char_set_id,
                input_encoding=published.encoding,
                input_header=published.data,
                output_format=header.format,
                output_coded_char_set_id=header.coded_char_set_id,
                output_encoding=header.encoding,
                output_header=header.data,
                is_retained=True,
                dropped=(),
                default_persistence=1 + way.queue.default_persistence if way.is_as_queue else 0,
            ),
        )

    def _retained_way(
        self, published: MessageDescriptor, subscription: Subscription, object_changes: int
    ) -> _RetainedWay | None:
        """None where the queue is gone."""
        try:
            queue = self._engine.queue(subscription.identity.queue_name)
        except QueueManagerError:
            return None
        as_published = PublishedAs(
            persistence=published.persistence, priority=published.priority, expiry=MQEI_UNLIMITED
        )
        wanted = _wanted_by(
            subscription, Occasion(published_as=as_published, point=subscription.interest.point, is_retained=True)
        )
        header = DeliveredHeader(
            format=FORMAT_OF_DIALECT[subscription.dialect],
            coded_char_set_id=UTF_8,
            encoding=ENCODING_REVERSED,
            data=b"",
            dropped=(),
        )
        persistence = _persistence(subscription, published.persistence)
        descriptor = self._descriptor(subscription, as_published, header, persistence)
        return _RetainedWay(subscription, published, object_changes, wanted=wanted, queue=queue, descriptor=descriptor)

    def _copy(
        self,
        subscription: Subscription,
        published: CommandHeader,
        header: DeliveredHeader | MappingError,
        persistence: int,
        occasion: Occasion,
    ) -> Copy | Failure | None:
        """The copy for one subscription. None if its temporary queue is gone, because the subscription ends with it."""
        queue_name = subscription.identity.queue_name
        if isinstance(header, MappingError):
            return Failure(queue_name=queue_name, reason_code=header.reason_code)
        descriptor = self._descriptor(subscription, occasion.published_as, header, persistence)
        try:
            queue = self._engine.queue(queue_name)
        except QueueManagerError as error:
            if subscription.is_on_temporary_queue:
                return None
            return Failure(
                queue_name=queue_name, reason_code=error.reason_code, descriptor=descriptor, header=header.data
            )
        return Copy(
            subscription=subscription,
            queue=queue,
            descriptor=descriptor,
            header=None if header.data is published.data else header.data,
            written=header.written,
            delivery=_delivery(published, header, queue, subscription, descriptor, is_retained=occasion.is_retained),
        )

    def _descriptor(
        self, subscription: Subscription, published_as: PublishedAs, header: DeliveredHeader, persistence: int
    ) -> MessageDescriptor:
        """MQMD of the copies for a subscription (IBM MQ, "Message descriptor for publications")."""
        key = (subscription, published_as, header.format, header.coded_char_set_id, header.encoding)
        found = self._descriptors.get(key)
        if found is None:
            if len(self._descriptors) >= _KEPT_DESCRIPTORS:
                self._descriptors.clear()
            found = self._descriptors[key] = MessageDescriptor(
                expiry=published_as.expiry,
                encoding=header.encoding,
                coded_char_set_id=header.coded_char_set_id,
                format=header.format,
                priority=published_as.priority if subscription.priority < 0 else subscription.priority,
                persistence=persistence,
                correl_id=_correl_id(subscription.identity),
                reply_to_q_mgr=self._engine.name,
                user_identifier=subscription.user_identifier,
                accounting_token=subscription.accounting_token,
                appl_identity_data=subscription.appl_identity_data,
                put_appl_type=MQAT_BROKER,
                put_appl_name=self._engine.name[:PUT_APPL_NAME_CHARACTERS],
                appl_origin_data=COPY_MARK if subscription.is_of_mqsub else "",
            )
        return found


class PlanCache(WeightedCache[PlanKey, DeliveryPlan]):
    """Plans by published header and MQMD."""

    def __init__(self) -> None:
        super().__init__(_weight, _KEPT_WEIGHT)


def _weight(key: PlanKey, plan: DeliveryPlan) -> int:
    """The weight of a plan: its copies, and the length of its header, which it holds in several forms."""
    return 1 + len(plan.copies) + len(key[0]) // _WEIGHT_BYTES


def _wanted_by(subscription: Subscription, occasion: Occasion) -> WantedHeader:
    options = subscription.options
    named = subscription.dialect is Dialect.MQRFH and RegistrationOption.INCLUDE_STREAM_NAME in options
    return WantedHeader(
        dialect=subscription.dialect,
        marks_retained=occasion.is_retained and RegistrationOption.INFORM_IF_RETAINED in options,
        stream_name=subscription.stream_name if named and subscription.has_stream_of_its_own else None,
        point=occasion.point,
        user_data=subscription.user_data,
        return_address=occasion.return_address,
    )


def _wants_the_same(one: Subscription, other: Subscription) -> bool:
    """Whether two subscriptions of one space want the same header and persistence (`_wanted_by`, `_persistence`)."""
    return (
        one.dialect is other.dialect
        and one.options == other.options
        and one.user_data == other.user_data
        and one.stream_name == other.stream_name
    )


def _header(published: CommandHeader, wanted: WantedHeader) -> DeliveredHeader | MappingError:
    try:
        return delivered_header(published, wanted)
    except MappingError as error:
        return error


def _delivery(
    published: CommandHeader,
    header: DeliveredHeader,
    queue: Queue,
    subscription: Subscription,
    descriptor: MessageDescriptor,
    *,
    is_retained: bool,
) -> Delivery:
    assert isinstance(published.command, Publish)
    is_as_queue = descriptor.persistence == MQPER_PERSISTENCE_AS_Q_DEF
    return Delivery(
        queue_name=subscription.identity.queue_name,
        correl_id=descriptor.correl_id,
        topics=published.command.topics,
        input_format=published.format,
        input_coded_char_set_id=published.coded_char_set_id,
        input_encoding=published.encoding,
        input_header=published.data,
        output_format=header.format,
        output_coded_char_set_id=header.coded_char_set_id,
        output_encoding=header.encoding,
        output_header=header.data,
        is_retained=is_retained,
        dropped=header.dropped,
        default_persistence=1 + queue.default_persistence if is_as_queue else 0,
    )


def _persistence(subscription: Subscription, published: int) -> int:
    """The persistence of copies: as published, unless the subscription says otherwise."""
    return next((wanted for option, wanted in _PERSISTENCE_OF_OPTION if option in subscription.options), published)


def _correl_id(identity: Identity) -> bytes:
    """The subscriber's CorrelId, or one that the broker chooses: never zero, and the same for all of its copies."""
    if identity.correl_id is not None:
        return identity.correl_id
    return IDENTIFIER_TAG + b"SUBS" + hashlib.blake2b(str(identity).encode(), digest_size=16).digest()

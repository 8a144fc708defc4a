"""A subscription: one registered topic of one subscriber, and its durable form.

Stored form (space BROKER_SUBSCRIPTION): the key is stream, identity, subscription point, topic and, where there is a
content filter, that, joined by NUL; the value is a msgpack list that begins with its version. Version 2 has the filter,
the joint identities and the kind of queue at its end; version 1 ends before them and is still read. To change the form,
raise `_VERSION` and keep reading the earlier versions.
"""

from dataclasses import dataclass
from typing import Final

import ormsgpack

from mappings.commands.options import RegistrationOption
from mappings.table import Dialect
from mappings.topics.topics import Scheme
from mq_adapters.broker.topic_spaces import SCHEME_OF, TopicSpaces
from mq_adapters.reasons import StoreError

_VERSION: Final = 2
_VERSION_WITHOUT_JOINT_IDENTITIES: Final = 1
#: Fields that version 1 lacks: filter, joint identities, whether one excludes the others, kind of queue.
_NOT_IN_VERSION_1: Final = ("", (), False, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A subscriber or publisher: `QMgr:Queue[:CorrelId]`; `correl_id` is None unless CorrelAsId was set."""

    queue_manager_name: str
    queue_name: str
    correl_id: bytes | None

    def __str__(self) -> str:
        name = f"{self.queue_manager_name}:{self.queue_name}"
        return name if self.correl_id is None else f"{name}:{self.correl_id.hex()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """The part that tells a subscriber's subscriptions apart: routing pattern, subscription point, content filter."""

    pattern: str
    point: str = ""
    filter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subscription:
    """One registered topic of one subscriber.

    `number` counts registrations and gives the order of copies; `dialect` is that of the RegSub, in which publications
    are delivered; `space` and `interest.pattern` are what `stream_name` and `topic` mean in the broker's dialect;
    the user fields are those of the RegSub's MQMD; `joined` are the SubIdentities that share the subscription, one
    alone where `is_exclusive`; `expires_us` is microseconds since 1970, 0 for never. On a temporary dynamic queue it
    ends with the queue.
    """

    number: int
    identity: Identity
    stream_name: str
    topic: str
    space: str
    interest: Interest
    dialect: Dialect
    options: RegistrationOption
    name: str = ""
    user_data: str = ""
    joined: tuple[str, ...] = ()
    is_exclusive: bool = False
    user_identifier: str = ""
    accounting_token: bytes = b""
    appl_identity_data: str = ""
    expires_us: int = 0
    is_on_temporary_queue: bool = False

    @property
    def scheme(self) -> Scheme:
        """The wildcard scheme of `topic`."""
        return SCHEME_OF[self.dialect]

    @property
    def has_stream_of_its_own(self) -> bool:
        """Whether its stream is a topic space. If the stream is a prefix, no stream name is delivered."""
        return self.space == self.stream_name

    @property
    def is_indexed(self) -> bool:
        """Whether new publications reach it. With PubOnReqOnly they do not."""
        return not self.options & RegistrationOption.PUBLISH_ON_REQUEST_ONLY

    @property
    def key(self) -> bytes:
        """The durable key."""
        interest = self.interest
        names = [self.stream_name, str(self.identity), interest.point, self.topic]
        return "\0".join([*names, interest.filter] if interest.filter else names).encode()

    def pack(self) -> bytes:
        """The durable value."""
        identity = self.identity
        return ormsgpack.packb(
            [
                _VERSION,
                self.number,
                identity.queue_manager_name,
                identity.queue_name,
                identity.correl_id,
                self.stream_name,
                self.topic,
                self.dialect.value,
                int(self.options),
                self.interest.point,
                self.name,
                self.user_data,
                self.user_identifier,
                self.accounting_token,
                self.appl_identity_data,
                self.expires_us,
                self.interest.filter,
                list(self.joined),
                self.is_exclusive,
                self.is_on_temporary_queue,
            ]
        )


def unpack_subscription(packed: bytes, spaces: TopicSpaces) -> Subscription:
    """A subscription from its durable value; StoreError for another version or for damage."""
    try:
        version, number, queue_manager_name, queue_name, correl_id, *fields = ormsgpack.unpackb(packed)
        if version == _VERSION_WITHOUT_JOINT_IDENTITIES:
            fields += _NOT_IN_VERSION_1
        elif version != _VERSION:
            raise ValueError(f"stored version {version}, this program reads {_VERSION}")
        stream_name, topic, name_of_dialect, options, point, name, user_data, *rest = fields
        user_identifier, accounting_token, appl_identity_data, expires_us, content_filter, *rest = rest
        joined, is_exclusive, is_on_temporary_queue = rest
        dialect = Dialect(name_of_dialect)
        return Subscription(
            number=number,
            identity=Identity(queue_manager_name=queue_manager_name, queue_name=queue_name, correl_id=correl_id),
            stream_name=stream_name,
            topic=topic,
            space=spaces.space(stream_name),
            interest=Interest(
                pattern=spaces.routing_pattern(stream_name, topic, dialect), point=point, filter=content_filter
            ),
            dialect=dialect,
            options=RegistrationOption(options),
            name=name,
            user_data=user_data,
            joined=tuple(joined),
            is_exclusive=is_exclusive,
            user_identifier=user_identifier,
            accounting_token=accounting_token,
            appl_identity_data=appl_identity_data,
            expires_us=expires_us,
            is_on_temporary_queue=is_on_temporary_queue,
        )
    except (ValueError, TypeError) as error:
        raise StoreError("read a subscription", str(error), "use the program that wrote it, or a backup") from error

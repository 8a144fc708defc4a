"""A subscription: one registered topic of one subscriber, and its durable form.

Stored form (space BROKER_SUBSCRIPTION): the key is stream, identity, subscription point, topic and the content filter,
if any, joined by NUL. The value is a msgpack list that begins with its version. Version 3 repeats no name of the key,
so a long topic stands in the store once. Versions 1 and 2 repeat the names, and version 1 ends before the filter, the
joint identities and the kind of queue. This program still reads both. Version 4 is version 3 with the priority of the
copies behind it and whether it is durable, and only subscriptions of MQSUB have it. To change the form, raise the
version and keep reading the earlier ones.

Topics and identities are shared in memory: thousands of subscriptions may have one identity, and the session of an MQTT
client has the same topic.
"""

import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import ormsgpack

from mappings.commands.options import RegistrationOption
from mappings.table import Dialect
from mappings.topics.topics import Scheme
from mq_adapters.broker.topic_spaces import SCHEME_OF, TopicSpaces
from mq_adapters.reasons import StoreError
from mq_adapters.subscription_mark import MQPRI_PRIORITY_AS_PUBLISHED, MqsubMark

_VERSION: Final = 3
_VERSION_OF_MQSUB: Final = 4
_VERSION_WITH_NAMES_IN_THE_VALUE: Final = 2
_VERSION_WITHOUT_JOINT_IDENTITIES: Final = 1
#: Identities that are remembered while the rows are read. The rows of one subscriber come one after another.
_REMEMBERED_IDENTITIES: Final = 16
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


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class Subscription:
    """One registered topic of one subscriber.

    `number` counts registrations and gives the order of copies. `dialect` is that of the RegSub, and publications are
    delivered in it. `space` and `interest.pattern` are the meaning of `stream_name` and `topic` in the broker's
    dialect. The user fields are those of the RegSub's MQMD. `joined` are the SubIdentities that share the subscription;
    if `is_exclusive`, there is one. `expires_us` is microseconds since 1970, 0 for never. A subscription on a temporary
    dynamic queue ends with the queue. `is_of_mqsub` tells that MQSUB made it: its copies are read as messages with
    properties, and `priority` is theirs, 0 to 9 or as published. One that is not durable ends with its program.
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
    is_of_mqsub: bool = False
    priority: int = MQPRI_PRIORITY_AS_PUBLISHED
    is_durable: bool = True

    @property
    def scheme(self) -> Scheme:
        """The wildcard scheme of `topic`."""
        return SCHEME_OF[self.dialect]

    @property
    def owner(self) -> tuple[str, bool]:
        """The user that registered it, and whether commands of other users may change it.

        MQSUB decides by itself which programs may use its subscriptions (MQSO_ANY_USERID), so no command may.
        """
        is_variable = RegistrationOption.VARIABLE_USER_ID in self.options and not self.is_of_mqsub
        return self.user_identifier, is_variable

    @property
    def has_stream_of_its_own(self) -> bool:
        """Whether its stream is a topic space. If the stream is a prefix, no stream name is delivered."""
        return self.space == self.stream_name

    @property
    def is_indexed(self) -> bool:
        """Whether new publications reach the subscription. With PubOnReqOnly only requested ones do."""
        return not self.options & RegistrationOption.PUBLISH_ON_REQUEST_ONLY

    @property
    def key(self) -> bytes:
        """The durable key."""
        interest = self.interest
        key = durable_key(self.stream_name, self.identity, interest.point, self.topic)
        return b"\0".join((key, interest.filter.encode())) if interest.filter else key

    def pack(self) -> bytes:
        """The durable value. The key has the rest."""
        return ormsgpack.packb(
            [
                _VERSION_OF_MQSUB if self.is_of_mqsub else _VERSION,
                self.number,
                self.dialect.value,
                int(self.options),
                self.name,
                self.user_data,
                self.user_identifier,
                self.accounting_token,
                self.appl_identity_data,
                self.expires_us,
                list(self.joined),
                self.is_exclusive,
                self.is_on_temporary_queue,
                *((self.priority, self.is_durable) if self.is_of_mqsub else ()),
            ]
        )


def durable_key(stream_name: str, identity: Identity, point: str, topic: str) -> bytes:
    """The durable key of a subscription without a content filter."""
    return "\0".join((stream_name, str(identity), point, topic)).encode()


def unpack_subscription(key: bytes, packed: bytes, spaces: TopicSpaces) -> Subscription:
    """A subscription from its durable key and value; StoreError for another version or for damage."""
    try:
        version, number, *fields = ormsgpack.unpackb(packed)
        mark = None
        if version == _VERSION_OF_MQSUB:
            *fields, priority, is_durable = fields
            mark = MqsubMark(priority, is_durable)
        if version in (_VERSION, _VERSION_OF_MQSUB):
            stream_name, identity, point, topic, *rest = key.decode().split("\0", 4)
            names = (stream_name, _identity(identity), point, topic, rest[0] if rest else "")
        else:
            names, fields = _names_of_earlier_version(version, fields)
        return _made(number, names, fields, spaces, mark)
    except (ValueError, TypeError) as error:
        raise StoreError("read a subscription", str(error), "use the program that wrote it, or a backup") from error


#: Stream, identity, subscription point, topic and content filter.
_Names = tuple[str, Identity, str, str, str]


def _made(number: int, names: _Names, fields: list[Any], spaces: TopicSpaces, mark: MqsubMark | None) -> Subscription:
    stream_name, identity, point, topic, content_filter = names
    name_of_dialect, options, name, user_data, user_identifier, accounting_token, *rest = fields
    appl_identity_data, expires_us, joined, is_exclusive, is_on_temporary_queue = rest
    dialect, topic = Dialect(name_of_dialect), sys.intern(topic)
    return Subscription(
        number=number,
        identity=identity,
        stream_name=sys.intern(stream_name),
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
        is_of_mqsub=mark is not None,
        priority=MQPRI_PRIORITY_AS_PUBLISHED if mark is None else mark.priority,
        is_durable=mark is None or mark.is_durable,
    )


def _names_of_earlier_version(version: int, fields: list[Any]) -> tuple[_Names, list[Any]]:
    """The names in a value of version 1 or 2, and its other fields as in version 3. ValueError for other versions."""
    if version == _VERSION_WITHOUT_JOINT_IDENTITIES:
        fields = [*fields, *_NOT_IN_VERSION_1]
    elif version != _VERSION_WITH_NAMES_IN_THE_VALUE:
        raise ValueError(f"stored version {version}, this program reads {_VERSION}")
    queue_manager_name, queue_name, correl_id, stream_name, topic, dialect, options, point, *rest = fields
    *described, content_filter, joined, is_exclusive, is_on_temporary_queue = rest
    identity = Identity(queue_manager_name=queue_manager_name, queue_name=queue_name, correl_id=correl_id)
    fields = [dialect, options, *described, joined, is_exclusive, is_on_temporary_queue]
    return (stream_name, identity, point, topic, content_filter), fields


@lru_cache(maxsize=_REMEMBERED_IDENTITIES)
def _identity(text: str) -> Identity:
    """The identity that `Identity.__str__` wrote. Names of MQ have no colon. Raises ValueError for other text."""
    queue_manager_name, queue_name, *rest = text.split(":")
    correl_id = bytes.fromhex(rest[0]) if rest else None
    return Identity(queue_manager_name=queue_manager_name, queue_name=queue_name, correl_id=correl_id)

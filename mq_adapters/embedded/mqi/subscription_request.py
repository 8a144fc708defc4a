"""What a program asks for with MQSUB, and the reasons why it cannot have it.

Pure: a request, and the subscription of that name if there is one. Source: IBM MQ, "MQSUB", "MQSD - Subscription
descriptor", and the reason codes that they name.
"""

from dataclasses import dataclass
from typing import Final

from mappings.commands.options import RegistrationOption
from mappings.errors import MappingError
from mappings.topics.wildcards import literal_prefix
from mq_adapters.embedded.mqi.options import SubOption, check_options
from mq_adapters.embedded.mqi.selection import filter_of
from mq_adapters.embedded.mqsc.publish_subscribe import RegisteredSubscription
from mq_adapters.message import MQCI_NONE, MQEI_UNLIMITED
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.subscription_mark import MQPRI_PRIORITY_AS_PUBLISHED
from mq_adapters.system_queues import MANAGED_DURABLE, MANAGED_NOT_DURABLE

MQPRI_PRIORITY_AS_Q_DEF: Final = -1
#: Bytes of a SubName, of a topic string and of SubUserData (MQ_SUB_NAME_LENGTH, MQ_TOPIC_STR_LENGTH).
_MOST_BYTES: Final = 10_240
_HIGHEST_PRIORITY: Final = 9
_ONLY_LEVEL: Final = 1
_ACCESS: Final = SubOption.CREATE | SubOption.RESUME | SubOption.ALTER
_LEVEL_WILDCARDS: Final = frozenset({"+", "#"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRequest:
    """MQSD as far as it is used. `object_name` is the name of a topic object, whose string comes first.

    `expiry` is in tenths of a second, -1 for ever. `destination` is the handle of the program's own queue; 0: none.
    Programs that share a subscription get its publications in turn (JMS: createSharedConsumer).
    """

    options: int
    object_name: str
    topic: str
    selector: str = ""
    name: str = ""
    user_data: str = ""
    correl_id: bytes = MQCI_NONE
    expiry: int = MQEI_UNLIMITED
    priority: int = MQPRI_PRIORITY_AS_PUBLISHED
    level: int = _ONLY_LEVEL
    destination: int = 0
    is_shared: bool = False

    def has(self, option: SubOption) -> bool:
        """Whether it has one of these options."""
        return bool(self.options & option)

    @property
    def filter(self) -> str:
        """The selector as the broker keeps it; "" without one."""
        return filter_of(self.selector, self.operation)

    @property
    def operation(self) -> str:
        return f"subscribe to {self.topic}" if self.topic else f"subscribe as {self.name}"


def check_request(request: SubscriptionRequest) -> None:
    """Refuses a request that is wrong in itself: 2013, 2046, 2050, 2207, 2431, 2440, 2459, 2512, 2519, 2551, 2562."""
    operation = request.operation
    check_options(SubOption, request.options, operation)
    if not request.has(_ACCESS):
        raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, f"{operation}: it says not what to do")
    if not request.name and (request.has(SubOption.DURABLE) or not request.has(SubOption.CREATE)):
        raise QueueManagerError(ReasonCode.MQRC_SUB_NAME_ERROR, f"{operation}: no name")
    if len(request.name.encode()) > _MOST_BYTES or "\0" in request.name:
        raise QueueManagerError(ReasonCode.MQRC_SUB_NAME_ERROR, f"{operation}: no such name can be kept")
    if len(request.user_data.encode()) > _MOST_BYTES or "\0" in request.user_data:
        raise QueueManagerError(ReasonCode.MQRC_SUB_USER_DATA_ERROR, operation)
    filter_of(request.selector, operation)
    _check_grouping(request)
    if request.has(SubOption.SET_CORREL_ID) and request.correl_id == MQCI_NONE:
        why = f"{operation}: the CorrelId of each publication cannot be kept"
        raise QueueManagerError(ReasonCode.MQRC_CORREL_ID_ERROR, why)
    if request.expiry != MQEI_UNLIMITED and request.expiry < 1:
        raise QueueManagerError(ReasonCode.MQRC_EXPIRY_ERROR, operation)
    others = (MQPRI_PRIORITY_AS_PUBLISHED, MQPRI_PRIORITY_AS_Q_DEF)
    if not 0 <= request.priority <= _HIGHEST_PRIORITY and request.priority not in others:
        raise QueueManagerError(ReasonCode.MQRC_PRIORITY_ERROR, operation)
    if request.level != _ONLY_LEVEL:
        raise QueueManagerError(ReasonCode.MQRC_SUBLEVEL_NOT_ALTERABLE, f"{operation}: SubLevel {request.level}")


def _check_grouping(request: SubscriptionRequest) -> None:
    is_wrong = request.has(SubOption.MANAGED) or not request.has(SubOption.SET_CORREL_ID)
    if request.has(SubOption.GROUP_SUB) and is_wrong:
        raise QueueManagerError(ReasonCode.MQRC_GROUPING_NOT_ALLOWED, request.operation)


def topic_string(topic: str, options: int, operation: str) -> str:
    """The same topics in the topic scheme, which is the broker's for these subscriptions.

    In the character scheme (MQSO_WILDCARD_CHAR) a wildcard may stand for the rest of the topic string only, behind a
    `/`. 2425 for every other one, and for a literal `+` or `#`, because the topic scheme has no such pattern.
    """
    if not options & SubOption.WILDCARD_CHAR:
        return topic
    if topic == "*":
        return "#"
    try:
        text, is_whole = literal_prefix(topic)
    except MappingError as error:
        raise QueueManagerError(ReasonCode.MQRC_TOPIC_STRING_ERROR, f"{operation}: {error}") from error
    is_rest = not is_whole and text.endswith("/") and topic.endswith("/*") and topic.count("*") == 1
    if not (is_whole or is_rest) or "?" in topic.replace("%?", "") or not _LEVEL_WILDCARDS.isdisjoint(text.split("/")):
        raise QueueManagerError(ReasonCode.MQRC_TOPIC_STRING_ERROR, f"{operation}: no pattern by levels says that")
    return text if is_whole else f"{text}+/#"


def check_taken_up(request: SubscriptionRequest, existing: RegisteredSubscription, topic: str) -> None:
    """Refuses to resume or alter a subscription as another one: 2432, 2509, 2510, 2515, 2523, 2524, 2533, 2435.

    `topic` is what the request says of the topic; "": nothing.
    """
    operation = request.operation
    if not request.has(SubOption.RESUME | SubOption.ALTER):
        raise QueueManagerError(ReasonCode.MQRC_SUB_ALREADY_EXISTS, operation)
    if not existing.is_of_mqsub or existing.identity.correl_id is None:
        raise QueueManagerError(ReasonCode.MQRC_INVALID_SUBSCRIPTION, f"{operation}: MQSUB has not made it")
    if request.has(SubOption.DURABLE) != existing.is_durable:
        raise QueueManagerError(ReasonCode.MQRC_DURABILITY_NOT_ALTERABLE, operation)
    if topic not in ("", existing.topic):
        raise QueueManagerError(ReasonCode.MQRC_TOPIC_NOT_ALTERABLE, f"{operation}: it is to {existing.topic}")
    if request.has(SubOption.MANAGED) != is_managed(existing):
        raise QueueManagerError(ReasonCode.MQRC_DEST_CLASS_NOT_ALTERABLE, operation)
    if request.has(SubOption.ALTER) and request.has(SubOption.GROUP_SUB) != is_grouped(existing):
        raise QueueManagerError(ReasonCode.MQRC_GROUPING_NOT_ALTERABLE, operation)
    is_said = bool(request.selector.strip()) or request.has(SubOption.CREATE)
    if is_said and request.filter != existing.interest.filter:
        raise QueueManagerError(ReasonCode.MQRC_SELECTOR_NOT_ALTERABLE, operation)
    sets_correl_id = request.has(SubOption.ALTER) and request.has(SubOption.SET_CORREL_ID)
    if sets_correl_id and request.correl_id != existing.identity.correl_id:
        raise QueueManagerError(ReasonCode.MQRC_ALTER_SUB_ERROR, f"{operation}: its CorrelId stays")


def is_managed(subscription: RegisteredSubscription) -> bool:
    """Whether the queue manager made the queue of a subscription of MQSUB."""
    return subscription.identity.queue_name.startswith((MANAGED_DURABLE, MANAGED_NOT_DURABLE))


def is_grouped(subscription: RegisteredSubscription) -> bool:
    """Whether a subscription has no copy beside that of another in its group (MQSO_GROUP_SUB)."""
    return not subscription.options & RegistrationOption.DUPLICATES_OK

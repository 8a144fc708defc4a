"""The plan of a publication that differs from an earlier one only in its topic.

Step 7a on the way of a PUBLISH. Where sensors publish on ever new topics, one subscription to all of them has the same
copy each time, except for the header's bytes. To decide that anew for each topic takes most of a plan's time.
"""

from typing import Final

from mappings.commands.command import Publish
from mq_adapters.broker.delivered_header import is_shown_whole
from mq_adapters.broker.deliveries import Copy, DeliveryPlan, PlanKey
from mq_adapters.broker.subscription import Subscription
from mq_adapters.command_header import CommandHeader, WrittenCommand
from mq_adapters.delivery_listener import Delivery
from mq_adapters.message import MQEI_UNLIMITED

#: Patterns of one input queue. Past it, it starts anew.
_KEPT: Final = 64
#: Copies of a pattern, which stay in memory with it. With more of them the plan of its own costs little beside.
_MOST_COPIES: Final = 64

#: The MQMD fields of a PlanKey, without its header and expiry; the publication options; and the first candidate's id.
_Kind = tuple[bytes, int, int, int, int, int, int]


class Patterns:
    """The latest plan of each kind of publication, as a pattern for other topics."""

    def __init__(self) -> None:
        self._of_kind: dict[_Kind, DeliveryPlan] = {}

    def plan(
        self,
        key: PlanKey,
        published: CommandHeader,
        candidates: tuple[Subscription, ...],
        routing_topics: tuple[str, ...],
        *,
        generation: int,
        object_changes: int,
    ) -> DeliveryPlan | None:
        """The plan of a publication on topics that nobody refuses; None where no kept plan is like it."""
        command = published.command
        assert isinstance(command, Publish)
        pattern = self._of_kind.get(_kind(key, command, candidates))
        if (
            pattern is None
            or len(routing_topics) != 1
            or object_changes != pattern.object_changes
            or candidates != pattern.candidates
            or not isinstance(published, WrittenCommand)
            or published.dialect is not pattern.published.dialect
            or not is_shown_whole(published)
            or not _is_ordinary(key, command)
        ):
            return None
        return DeliveryPlan(
            published=published,
            command=command,
            is_correlated=False,
            excludes_publisher=pattern.excludes_publisher,
            retains=pattern.retains,
            is_filtered=False,
            routing_topics=routing_topics,
            candidates=candidates,
            copies=tuple([_similar_copy(copy, published, command.topics) for copy in pattern.copies]),
            failures=(),
            refused_topics=(),
            generation=generation,
            object_changes=object_changes,
            valid_until_us=pattern.valid_until_us,
            choices={},
        )

    def keep(self, key: PlanKey, plan: DeliveryPlan) -> None:
        """Keeps a plan if each of its copies has the header as this process wrote it, whole."""
        published = plan.published
        if (
            not isinstance(published, WrittenCommand)
            or not is_shown_whole(published)
            or len(plan.routing_topics) != 1
            or plan.is_filtered
            or plan.is_correlated
            or plan.failures
            or plan.refused_topics
            or len(plan.copies) > _MOST_COPIES
            or not _is_ordinary(key, plan.command)
        ):
            return
        for copy in plan.copies:
            if copy.header is not None:
                return
        if len(self._of_kind) >= _KEPT:
            self._of_kind.clear()
        self._of_kind[_kind(key, plan.command, plan.candidates)] = plan


def _is_ordinary(key: PlanKey, command: Publish) -> bool:
    """Whether a publication has neither an expiry nor registration options.

    Each remaining time would be a kind of its own. The options bring the publisher's identity into the plan.
    """
    return key[-1] == MQEI_UNLIMITED and not command.registration_options


def _kind(key: PlanKey, command: Publish, candidates: tuple[Subscription, ...]) -> _Kind:
    _, format, coded_char_set_id, encoding, persistence, priority, _ = key
    first = id(candidates[0]) if candidates else 0
    return format, coded_char_set_id, encoding, persistence, priority, int(command.publication_options), first


def _similar_copy(copy: Copy, published: WrittenCommand, topics: tuple[str, ...]) -> Copy:
    delivery = copy.delivery
    return Copy(
        subscription=copy.subscription,
        queue=copy.queue,
        descriptor=copy.descriptor,
        header=None,
        written=None,
        delivery=Delivery(
            queue_name=delivery.queue_name,
            correl_id=delivery.correl_id,
            topics=topics,
            input_format=delivery.input_format,
            input_coded_char_set_id=delivery.input_coded_char_set_id,
            input_encoding=delivery.input_encoding,
            input_header=published.data,
            output_format=delivery.output_format,
            output_coded_char_set_id=delivery.output_coded_char_set_id,
            output_encoding=delivery.output_encoding,
            output_header=published.data,
            is_retained=False,
            dropped=(),
            default_persistence=delivery.default_persistence,
        ),
    )

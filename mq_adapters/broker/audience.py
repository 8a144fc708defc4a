"""Finds the subscribers of a publication without publishing it.

Beside step 7a on the way of a PUBLISH: the PUBACK of MQTT 5.0 may say that nobody subscribes (section 3.4.2.1).
"""

from collections.abc import Iterator

from mappings.table import Dialect
from mq_adapters.broker.subscription import Subscription
from mq_adapters.broker.subscriptions import SubscriptionRegistry
from mq_adapters.broker.topic_spaces import TopicSpaces
from mq_adapters.embedded.engine import Engine


class SubscriptionAudience:
    """The subscriptions that match a Publish on one input queue, if the Publish names no stream.

    Content filters are ignored, because they need more than the topic. The index of subscriptions remembers the matches
    of a topic until a subscription changes, so a second call costs one look-up.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        spaces: TopicSpaces,
        registry: SubscriptionRegistry,
        queue_name: str,
        point: str,
        header: Dialect,
    ) -> None:
        self._engine = engine
        self._spaces = spaces
        self._stream_name = spaces.stream_of_publication(None, queue_name, header)
        self._index = registry.space(spaces.space(queue_name)).index(point)

    def of(self, topic: str) -> Iterator[Subscription]:
        """The matching subscriptions that have not ended, in any order."""
        (routing_topic,) = self._spaces.routing_topics(self._stream_name, (topic,))
        for found in self._index.match(routing_topic):
            if found.expires_us and found.expires_us <= self._engine.now_us():
                continue
            if not self._spaces.spans_streams(found.interest.pattern, routing_topic):
                yield found

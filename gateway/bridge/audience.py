"""Whether anybody subscribes to what a client publishes: reason code 10 of PUBACK (MQTT 5.0 section 3.4.2.1).

Beside step 3 on the way of a PUBLISH. What the embedded broker registers for the gateway's own clients may match more
than their topic filters (mappings.topics), so these have the last word; any other subscription is an MQ application's.
A filter that matches counts, whatever No Local or a content filter makes of the message: 10 is said only where it is
certain. What goes to a target is matched there, later, and never gets it.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from gateway.bridge.routes import Routes
from gateway.bridge.sessions import Sessions
from gateway.bridge.shared_groups import SharedGroups
from mappings.topics import Scheme, matches
from mq_adapters.broker.subscription import Subscription

SubscriptionsTo = Callable[[str], Iterable[Subscription]]
"""The subscriptions of the embedded broker that match a topic (mq_adapters.broker.audience.Audience.of)."""


class Audience(Protocol):
    """Who listens."""

    def is_known_empty(self, topic: str) -> bool:
        """Whether it is certain that nobody subscribes to a topic at this moment."""
        ...


class EmbeddedAudience:
    """Who gets what is published at the embedded broker."""

    def __init__(
        self,
        subscriptions_to: SubscriptionsTo,
        *,
        routes: Routes,
        sessions: Sessions,
        groups: SharedGroups,
        subscriber_queue: str,
    ) -> None:
        self._subscriptions_to = subscriptions_to
        self._routes = routes
        self._sessions = sessions
        self._groups = groups
        self._subscriber_queue = subscriber_queue

    def is_known_empty(self, topic: str) -> bool:
        if self._routes.has_targets and self._routes.of(topic).target is not None:
            return False
        return not any(self._wants(subscription, topic) for subscription in self._subscriptions_to(topic))

    def _wants(self, subscription: Subscription, topic: str) -> bool:
        """Whether a subscription that the broker found matches by the client's own filters; an application's does."""
        identity = subscription.identity
        if identity.queue_name != self._subscriber_queue or identity.correl_id is None:
            return True
        session = self._sessions.of_correl_id(identity.correl_id)
        if session is not None:
            return session.pending_answers > 0 or session.granted_qos(topic) is not None
        group = self._groups.of_correl_id(identity.correl_id)
        return group is not None and matches(group.topic_filter, topic, Scheme.MQTT)

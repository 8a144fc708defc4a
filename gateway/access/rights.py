"""Rights: the topics that a client may publish and subscribe. Step 3 on the way of a PUBLISH.

Topics that begin with `$` are reserved unless they are opened (dollar_topics.py). For all others two things must allow
the topic: the filters of the configuration, which hold for all clients, and the access list, if there is one. Each
session has its `Rights`, which remember their decisions: a PUBLISH on a known topic costs one lookup.
"""

from collections.abc import Iterable
from typing import Final

from gateway.access.access_list import AccessList
from gateway.access.dollar_topics import ALL_RESERVED, DollarTopics
from gateway.access.filters import covers, touches
from mappings.topics.topics import Scheme, matches

#: Characters of topics that one session's rights remember before they forget all; Python takes one to four bytes for
#: each.
_KEPT_CHARACTERS: Final = 32_768
#: The cost of a remembered topic beside its characters, in the same measure.
_KEPT_OVERHEAD: Final = 64
#: Longer topics, in characters, are decided anew each time.
_LONGEST_KEPT_TOPIC: Final = 1_024


class Access:
    """The filters for all clients, and the access list; one for the gateway.

    The default filter `#` covers all that is not reserved. Without an access list (None) the filters alone decide.
    """

    def __init__(
        self,
        *,
        publish: Iterable[str],
        subscribe: Iterable[str],
        access_list: AccessList | None = None,
        dollar_topics: DollarTopics = ALL_RESERVED,
    ) -> None:
        self.publish = tuple(publish)
        self.subscribe = tuple(subscribe)
        self.access_list = access_list
        self.dollar_topics = dollar_topics

    def rights_of(self, user: str | None, client: str) -> "Rights":
        """The rights of a session; they follow this access, see `Rights.forget`."""
        return Rights(self, user, client)

    def may_publish(self, topic: str) -> bool:
        """Whether the filters for all clients allow a topic."""
        if not self.dollar_topics.may_publish(topic):
            return False
        return any(allowed == "#" or matches(allowed, topic, Scheme.MQTT) for allowed in self.publish)

    def may_subscribe(self, topic_filter: str) -> bool:
        """Whether one of the filters for all clients covers all of a topic filter."""
        if not self.dollar_topics.may_subscribe(topic_filter):
            return False
        asked = topic_filter.split("/")
        return any(allowed == "#" or covers(allowed.split("/"), asked) for allowed in self.subscribe)


class _Resolved:
    """The rules of the access list for one client: filters as lists of levels."""

    __slots__ = ("deny_publish", "deny_subscribe", "publish", "subscribe")

    def __init__(self, access_list: AccessList, user: str | None, client: str) -> None:
        rules = access_list.rules_for(user, client)
        publish = (each.allowing(user, client) for rule in rules for each in rule.publish)
        subscribe = (each.allowing(user, client) for rule in rules for each in rule.subscribe)
        self.publish = tuple("/".join(levels) for levels in publish if levels is not None)
        self.subscribe = tuple(levels for levels in subscribe if levels is not None)
        self.deny_publish = tuple("/".join(each.denying(user, client)) for rule in rules for each in rule.deny_publish)
        self.deny_subscribe = tuple(each.denying(user, client) for rule in rules for each in rule.deny_subscribe)


class Rights:
    """The rights of one client."""

    __slots__ = ("_access", "_client", "_kept", "_kept_characters", "_resolved", "_user", "allows_every_plain_publish")

    def __init__(self, access: Access, user: str | None, client: str) -> None:
        self._access = access
        self._user = user
        self._client = client
        #: Allowed topics. A refused topic is not remembered: it mostly ends the connection.
        self._kept: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """Forgets all decisions: the access list has changed."""
        #: Whether the client may publish on every topic that does not begin with `$`.
        self.allows_every_plain_publish = self._access.access_list is None and "#" in self._access.publish
        self._resolved: _Resolved | None = None
        self._kept.clear()
        self._kept_characters = 0

    def may_publish(self, topic: str) -> bool:
        """Whether the client may publish on a topic."""
        if topic in self._kept:
            return True
        if not self._is_publish_allowed(topic):
            return False
        self._keep(topic)
        return True

    def may_subscribe(self, topic_filter: str) -> bool:
        """Whether the client may subscribe: one filter must allow all of `asked`, and none may deny a part of it."""
        if not self._access.may_subscribe(topic_filter):
            return False
        resolved = self._rules()
        if resolved is None:
            return True
        asked = topic_filter.split("/")
        is_allowed = any(covers(levels, asked) for levels in resolved.subscribe)
        return is_allowed and not any(touches(levels, asked) for levels in resolved.deny_subscribe)

    def may_receive(self, topic: str) -> bool:
        """Whether messages on a topic may be sent to the client, if it subscribes to it."""
        return self._access.dollar_topics.may_receive(topic)

    def _is_publish_allowed(self, topic: str) -> bool:
        if not self._access.may_publish(topic):
            return False
        resolved = self._rules()
        if resolved is None:
            return True
        is_allowed = any(matches(pattern, topic, Scheme.MQTT) for pattern in resolved.publish)
        return is_allowed and not any(matches(pattern, topic, Scheme.MQTT) for pattern in resolved.deny_publish)

    def _rules(self) -> _Resolved | None:
        """The rules that concern the client, looked up once; None without an access list."""
        access_list = self._access.access_list
        if self._resolved is None and access_list is not None:
            self._resolved = _Resolved(access_list, self._user, self._client)
        return self._resolved

    def _keep(self, topic: str) -> None:
        if len(topic) > _LONGEST_KEPT_TOPIC:
            return
        self._kept_characters += len(topic) + _KEPT_OVERHEAD
        if self._kept_characters > _KEPT_CHARACTERS:
            self._kept.clear()
            self._kept_characters = len(topic) + _KEPT_OVERHEAD
        self._kept.add(topic)

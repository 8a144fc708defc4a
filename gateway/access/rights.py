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
from gateway.access.refused_topics import Asked, RefusedTopics
from mappings.topics.topics import Scheme, matches

#: Characters of topics that one session's rights remember before they forget all; Python takes one to four bytes for
#: each.
_KEPT_CHARACTERS: Final = 32_768
#: The cost of a remembered topic beside its characters, in the same measure.
_KEPT_OVERHEAD: Final = 64
#: Longer topics, in characters, are decided anew each time.
_LONGEST_KEPT_TOPIC: Final = 1_024
#: What refuses a topic that is reserved, and one that no rule of the access list allows.
_RESERVED: Final = "mqtt.dollar_topics"
_NO_RULE: Final = "no rule"


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
        #: What clients were refused, for the audit trail.
        self.refused = RefusedTopics()
        self.publish = tuple(publish)
        self.subscribe = tuple(subscribe)
        self.access_list = access_list
        self.dollar_topics = dollar_topics

    def rights_of(self, user: str | None, client: str) -> "Rights":
        """The rights of a session; they follow this access, see `Rights.forget`."""
        return Rights(self, user, client)

    def publish_refused_by(self, topic: str) -> str:
        """What refuses a topic to all clients: a key of the configuration; "": nothing does."""
        if not self.dollar_topics.may_publish(topic):
            return _RESERVED
        is_allowed = any(allowed == "#" or matches(allowed, topic, Scheme.MQTT) for allowed in self.publish)
        return "" if is_allowed else "access.publish"

    def subscribe_refused_by(self, topic_filter: str) -> str:
        """What refuses a topic filter, which one of the filters for all clients must cover; "": nothing does."""
        if not self.dollar_topics.may_subscribe(topic_filter):
            return _RESERVED
        asked = topic_filter.split("/")
        is_allowed = any(allowed == "#" or covers(allowed.split("/"), asked) for allowed in self.subscribe)
        return "" if is_allowed else "access.subscribe"


class _Resolved:
    """The rules of the access list for one client: filters as lists of levels; of what is denied the rule's place."""

    __slots__ = ("deny_publish", "deny_subscribe", "publish", "subscribe")

    def __init__(self, access_list: AccessList, user: str | None, client: str) -> None:
        rules = access_list.rules_for(user, client)
        denied = [(rule.place, each) for rule in rules for each in rule.deny_publish]
        publish = (each.allowing(user, client) for rule in rules for each in rule.publish)
        subscribe = (each.allowing(user, client) for rule in rules for each in rule.subscribe)
        self.publish = tuple("/".join(levels) for levels in publish if levels is not None)
        self.subscribe = tuple(levels for levels in subscribe if levels is not None)
        self.deny_publish = tuple((place, "/".join(each.denying(user, client))) for place, each in denied)
        denied = [(rule.place, each) for rule in rules for each in rule.deny_subscribe]
        self.deny_subscribe = tuple((place, each.denying(user, client)) for place, each in denied)


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
        return not self.publish_refused_by(topic)

    def publish_refused_by(self, topic: str) -> str:
        """What refuses a topic: a key of the configuration, or the place of a rule; "": nothing does."""
        if topic in self._kept:
            return ""
        if refused_by := self._access.publish_refused_by(topic) or self._denied_publish(topic):
            return refused_by
        self._keep(topic)
        return ""

    def may_subscribe(self, topic_filter: str) -> bool:
        """Whether the client may subscribe: one filter must allow all of `asked`, and none may deny a part of it."""
        return not self.subscribe_refused_by(topic_filter)

    def subscribe_refused_by(self, topic_filter: str) -> str:
        """What refuses a topic filter; "": the client may subscribe it."""
        if refused_by := self._access.subscribe_refused_by(topic_filter):
            return refused_by
        resolved = self._rules()
        if resolved is None:
            return ""
        asked = topic_filter.split("/")
        if not any(covers(levels, asked) for levels in resolved.subscribe):
            return _NO_RULE
        return next((place for place, levels in resolved.deny_subscribe if touches(levels, asked)), "")

    def count_refusal(self, asked: Asked, topic: str, rule: str, now_us: int, code: int = 0) -> None:
        """The client is refused a topic or a topic filter, for the audit trail. `code`: the one that it is told."""
        refused, client, user = self._access.refused, self._client, self._user
        refused.count(asked, topic, client=client, user=user, rule=rule, code=code, now_us=now_us)

    def may_receive(self, topic: str) -> bool:
        """Whether messages on a topic may be sent to the client, if it subscribes to it."""
        return self._access.dollar_topics.may_receive(topic)

    def _denied_publish(self, topic: str) -> str:
        resolved = self._rules()
        if resolved is None:
            return ""
        if not any(matches(pattern, topic, Scheme.MQTT) for pattern in resolved.publish):
            return _NO_RULE
        return next((place for place, denied in resolved.deny_publish if matches(denied, topic, Scheme.MQTT)), "")

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

"""The findings that a policy asks for: those of a period, of some gateways, of some topics.

Every control reads the whole trail, because a window would cut exchanges and make gaps. The scope is about the record
that a finding names. If neither the record nor its exchange or message has a known topic, the finding is reported,
because a scope must not hide findings that it cannot place. Faults of digests and lines have no record, and are always
reported.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_GATEWAY: Final = re.compile("[0-9a-f]{24}")
#: Characters that may have a meaning in a regular expression.
_PUNCTUATION: Final = re.compile(r"[!-/:-@\[-^`{-~]")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyScope:
    """Times are microseconds since 1970 UTC, 0 for no limit; no gateways or no topics means all of them."""

    from_us: int = 0
    until_us: int = 0
    gateways: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    @property
    def is_everything(self) -> bool:
        return self == PolicyScope()

    def problem(self) -> str:
        """The fault of this scope, in words that begin with the key; empty if there is none."""
        for gateway in self.gateways:
            if _GATEWAY.fullmatch(gateway) is None:
                return f"gateways has {gateway[:60]!r}: write the 24 hex digits that records have"
        for topic_filter in self.topics:
            levels = topic_filter.split("/")
            if not topic_filter or ("#" in topic_filter and (levels[-1] != "#" or topic_filter.count("#") > 1)):
                return f"topics has {topic_filter[:60]!r}: `#` stands alone on the last level (MQTT 3.1.1 section 4.7)"
            if any("+" in level and level != "+" for level in levels):
                return f"topics has {topic_filter[:60]!r}: `+` stands alone on its level (MQTT 3.1.1 section 4.7)"
        return ""

    def asks_for(self, topic: str) -> bool:
        """Whether a topic is within this scope."""
        return not self.topics or _matcher(self.topics)(topic) is not None

    def outside(self) -> str:
        """A query for gateway and sequence of the records with a violation that are outside of this scope."""
        conditions = ["NOT coalesce(told.is_asked, of_exchange.is_asked, of_message.is_asked, true)"]
        if self.from_us:
            conditions.append(f"told.at_us < {self.from_us}")
        if self.until_us:
            conditions.append(f"told.at_us >= {self.until_us}")
        if self.gateways:
            conditions.append(f"told.gateway NOT IN ({', '.join(map(repr, self.gateways))})")
        return f"{_WITH_TOPICS} WHERE {' OR '.join(conditions)}"


#: Records with a violation, their exchanges and messages.
_WITH_TOPICS: Final = """
SELECT DISTINCT told.gateway, told.sequence
FROM records AS told
SEMI JOIN violations AS found ON found.gateway = told.gateway AND found.sequence = told.sequence
LEFT JOIN exchanges AS of_exchange ON of_exchange.gateway = told.gateway AND of_exchange.client = told.client
  AND of_exchange.session_epoch = told.session_epoch AND of_exchange.exchange = told.exchange
  AND of_exchange.side = told.direction
LEFT JOIN messages AS of_message ON of_message.gateway = told.gateway AND of_message.message_id = told.message_id
"""


@lru_cache(maxsize=16)
def _matcher(topics: tuple[str, ...]) -> Callable[[str], object]:
    patterns = "|".join(f"(?:{_expression(topic_filter)})" for topic_filter in topics)
    return re.compile(patterns, re.DOTALL).fullmatch


def _expression(topic_filter: str) -> str:
    """A regular expression for the topics that a filter matches. Filters of subscriptions are compared as text."""
    levels = topic_filter.split("/")
    has_tree = levels[-1] == "#"
    kept = levels[:-1] if has_tree else levels
    first = "(?!\\$)" if levels[0] in ("+", "#") else ""
    base = "/".join("[^/]*" if level == "+" else _PUNCTUATION.sub(r"\\\g<0>", level) for level in kept)
    if not has_tree:
        return first + base
    return f"{first}{base}(?:/.*)?" if kept else f"{first}.*"

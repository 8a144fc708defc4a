"""Commands that the other format cannot express: the conversion would lose a part that decides their effect.

Only MQRFH has RegPub and DeregPub. A subscription by content filter or subscription point would receive more without
it. A command that names its subscription only by SubName has no meaning without extended mode. Nobody can check a
DeletePub again, so its pattern must not become wider. ReqUpdate takes one topic: a pattern that becomes two is refused,
and so is a second topic. A DeregSub with LeaveOnly takes one identity off a shared subscription; without LeaveOnly the
subscription ends. Source: "Message formats" (file aq19780_).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spark_audit.reperform.comparison import Reason
from spark_audit.reperform.meaning import Meaning

_ONLY_MQRFH_COMMANDS: Final = frozenset({"RegPub", "DeregPub"})
#: A subscription that depends on these must not be converted, because it would receive more. A default value does not
#: count.
_NARROWING: Final = frozenset({"Filter", "SubPoint"})
_DEFAULT_POINTS: Final = frozenset({"", "SYSTEM.BROKER.DEFAULT.SUBPOINT"})
#: Commands that may name their subscription only by SubName.
_BY_NAME: Final = frozenset({"DeregSub", "ReqUpdate"})
_ESCAPED: Final = re.compile("%.", re.DOTALL)
_WILDCARD: Final = re.compile("[*?]")
_PREFIX: Final = "MQPS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a command must not be converted; `how` continues the words "RegSub was converted"."""

    reason: Reason
    how: str


def refusals(source: Meaning, version: int, *, is_extended: bool) -> Iterator[Refusal]:
    """All reasons against giving a command a header of the other version."""
    if version == 2 and source.command in _ONLY_MQRFH_COMMANDS:
        yield Refusal(reason=Reason.MQRC_RFH_COMMAND_ERROR, how=", though MQRFH2 does not have it")
    elif version == 1 and source.command != "Publish":
        for name, value in source.unmapped:
            if name in _NARROWING and not (name == "SubPoint" and value in _DEFAULT_POINTS):
                how = f" without its {name}, and receives more than was asked for"
                yield Refusal(reason=Reason.MQRC_RFH_PARM_ERROR, how=how)
    if not is_extended and source.command == "DeregSub" and "LeaveOnly" in source.options("RegOpt"):
        how = " without its LeaveOnly, and ends the subscription for everybody"
        yield Refusal(reason=Reason.MQRC_RFH_PARM_ERROR, how=how)
    yield from _of_topics(source, version)
    if not is_extended and _is_nameless(source):
        how = " without its SubName, which alone says what it means"
        yield Refusal(reason=Reason.MQRC_RFH_PARM_MISSING, how=how)


def _of_topics(source: Meaning, version: int) -> Iterator[Refusal]:
    """Refusals of topics whose patterns in the other scheme are wider, or more than one."""
    topics = source.values("Topic")
    if source.command == "ReqUpdate" and version == 1 and any(_needs_two(topic) for topic in topics[:1]):
        yield Refusal(reason=Reason.MQRCCF_TOPIC_ERROR, how=", though it takes one topic and needs two")
    if source.command == "ReqUpdate" and len(topics) > 1:
        yield Refusal(reason=Reason.MQRC_RFH_DUPLICATE_PARM, how=f", though it takes one topic and has {len(topics)}")
    if source.command == "DeletePub":
        for topic in topics:
            if "+" in topic.split("/") if version == 1 else _widens(topic, topics):
                yield Refusal(reason=Reason.MQRCCF_TOPIC_ERROR, how=f", and deletes more than {topic!r}")


def _needs_two(topic_filter: str) -> bool:
    """Whether a filter needs two patterns. `a/#` is `a` and `a/*`. `#` and a filter that ends with `+/#` need one."""
    levels = topic_filter.split("/")
    return len(levels) > 1 and levels[-1] == "#" and levels[-2] != "+"


def _widens(pattern: str, topics: tuple[str, ...]) -> bool:
    """Whether no filter matches exactly the topics of a character pattern.

    `*` has a filter, and so has `a/*` beside `a`.
    """
    bare = _ESCAPED.sub("", pattern)
    if pattern == "*" or not _WILDCARD.search(bare):
        return False
    return bool(_WILDCARD.search(bare.removesuffix("/*"))) or pattern.removesuffix("/*") not in topics


def _is_nameless(source: Meaning) -> bool:
    is_named = any(name.removeprefix(_PREFIX) == "SubName" for name, _ in source.unmapped)
    says_which = bool(source.values("Topic")) or "DeregAll" in source.options("RegOpt")
    return source.command in _BY_NAME and is_named and not says_which

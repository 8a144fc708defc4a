"""What the other format cannot say: a command of which something would be lost that decides what it does.

RegPub and DeregPub are of MQRFH alone. A subscription by content filter or subscription point would receive more
without it. Without extended mode, a command that says by SubName alone which subscription it means says nothing. What
DeletePub deletes nobody can check again, so its pattern must not become wider. ReqUpdate takes one topic: a pattern
that becomes two cannot be said, and a second topic is a parameter too many. A DeregSub with LeaveOnly takes one
identity off a subscription that others share; without it the subscription ends.
Source: "Message formats" (file aq19780_).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.outcome import Reason

_ONLY_MQRFH_COMMANDS: Final = frozenset({"RegPub", "DeregPub"})
#: A subscription that depends on these is not to be converted, since it would receive more; a default is none.
_NARROWING: Final = frozenset({"Filter", "SubPoint"})
_DEFAULT_POINTS: Final = frozenset({"", "SYSTEM.BROKER.DEFAULT.SUBPOINT"})
#: These may say by SubName alone which subscription they mean.
_BY_NAME: Final = frozenset({"DeregSub", "ReqUpdate"})
_ESCAPED: Final = re.compile("%.", re.DOTALL)
_WILDCARD: Final = re.compile("[*?]")
_PREFIX: Final = "MQPS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a command is not to be converted; `how` goes on after "RegSub was converted"."""

    reason: Reason
    how: str


def refusals(source: Meaning, version: int, *, is_extended: bool) -> Iterator[Refusal]:
    """Everything that stands against giving a command a header of the other version."""
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
    """Topics whose patterns in the other scheme are more, or more than one."""
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
    """`a/#` is `a` and `a/*`; `#` is `*`, and so is what ends with `+/#`."""
    levels = topic_filter.split("/")
    return len(levels) > 1 and levels[-1] == "#" and levels[-2] != "+"


def _widens(pattern: str, topics: tuple[str, ...]) -> bool:
    """Whether a character pattern has no filter that matches just as much: `*` has one, and `a/*` beside `a`."""
    bare = _ESCAPED.sub("", pattern)
    if pattern == "*" or not _WILDCARD.search(bare):
        return False
    return bool(_WILDCARD.search(bare.removesuffix("/*"))) or pattern.removesuffix("/*") not in topics


def _is_nameless(source: Meaning) -> bool:
    is_named = any(name.removeprefix(_PREFIX) == "SubName" for name, _ in source.unmapped)
    says_which = bool(source.values("Topic")) or "DeregAll" in source.options("RegOpt")
    return source.command in _BY_NAME and is_named and not says_which

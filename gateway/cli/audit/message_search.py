"""The messages of a client, a topic, a time, and what became of them, as `audit explain` shows them: a line each."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import typer

from gateway.cli.application import AuditExitCode, CommandFailed
from gateway.cli.audit.moments import clock, moment
from gateway.cli.terminal import Json, counted, write_json, write_line, write_table
from mappings.topics.wildcards import Scheme, matches
from mq_adapters.reasons import ReasonCode
from spark_audit.personal import PersonalKey

if TYPE_CHECKING:
    from spark_audit.fates import Branch, Fate, Fates, Wanted

_WILDCARDS: Final = ("+", "#")
#: Ways of a message that its line tells one by one; of more it has their numbers.
_MOST_TOLD: Final = 4
#: The gateway's last answer to a PUBLISH, by its QoS.
ANSWERS: Final = {1: "PUBACK", 2: "PUBCOMP"}
_COLUMNS: Final = ("time", "client", "topic", "MsgId", "what became of it")


def wanted_of(client: str, topic: str, since_us: int, until_us: int, key: PersonalKey | None) -> "Wanted":
    """What to search for. With a key, names are also compared with their keyed hashes."""
    from spark_audit.fates import Wanted

    if until_us and since_us >= until_us:
        raise typer.BadParameter("--until must be later than --since")
    hashed = {key.name(topic)} if key is not None and topic and not _has_wildcards(topic) else set()
    return Wanted(
        clients=frozenset({client, key.name(client)} if key is not None and client else {client} - {""}),
        matches=partial(_matches, topic, frozenset(hashed)) if topic else None,
        since_us=since_us,
        until_us=until_us,
    )


def _matches(topic_filter: str, hashes: frozenset[str], topic: str) -> bool:
    return topic in hashes or matches(topic_filter, topic, Scheme.MQTT)


def _has_wildcards(topic: str) -> bool:
    return any(level in _WILDCARDS for level in topic.split("/"))


def fates_in(wanted: "Wanted", trails: tuple[Path, ...]) -> "Fates":
    """What became of the messages that are wanted. Raises CommandFailed if none is found."""
    from spark_audit.fates import fates_of
    from spark_audit.verify.segment_forms import DamagedSegment
    from spark_audit.verify.source import LineTooLong, TrailFolder

    try:
        return fates_of(wanted, (TrailFolder(folder) for folder in trails))
    except (DamagedSegment, LineTooLong) as error:
        raise CommandFailed(f"a segment cannot be read to its end: {error} (audit verify names it)") from None
    except OSError as error:
        raise CommandFailed(f"{error.filename} cannot be read: {error.strerror}") from None


def write_fates(found: "Fates", client: str, topic: str, key: PersonalKey | None, *, as_json: bool) -> AuditExitCode:
    """Shows the messages that were found. The exit code says whether a record was changed."""
    hidden = _hidden_names(found, client, topic, key)
    if not found.messages:
        raise CommandFailed(f"no message fits ({'; '.join((_searched(found), *hidden))})")
    if as_json:
        write_json(cast(Json, found.as_dict()))
    else:
        names = {} if key is None else {key.name(name): name for name in (client, topic) if name}
        write_table(_COLUMNS, [_row(fate, names) for fate in found.messages])
        write_line()
        for note in _notes(found, hidden):
            write_line(note)
    is_changed = any(fate.is_changed for fate in found.messages)
    return AuditExitCode.VIOLATIONS if is_changed else AuditExitCode.CLEAN


def _hidden_names(found: "Fates", client: str, topic: str, key: PersonalKey | None) -> list[str]:
    """What could not be compared, because names stand in the trail as keyed hashes."""
    hidden = []
    if client and found.has_keyed_clients and key is None:
        hidden.append("the trail names clients by keyed hashes: --personal-key FILE finds yours")
    if topic and found.has_keyed_topics and key is None:
        hidden.append("the trail has topics as keyed hashes: --personal-key FILE finds one")
    elif topic and found.has_keyed_topics and _has_wildcards(topic):
        hidden.append("the trail has topics as keyed hashes, which no wildcard can match: give a whole topic")
    return hidden


def _notes(found: "Fates", hidden: list[str]) -> Iterator[str]:
    yield f"{counted(len(found.messages), 'message')} ({_searched(found)})"
    if found.is_cut:
        yield "there are more messages or copies than these: give a shorter time, or a client and a topic"
    if any(fate.is_changed for fate in found.messages):
        yield "CHANGED: of messages that are marked so, a record does not match its hash"
    yield from hidden


def _searched(found: "Fates") -> str:
    searched = f"{counted(found.lines, 'line')} in {counted(found.segments, 'segment')}"
    return f"{searched}; {counted(found.skipped, 'segment')} of another time not read" if found.skipped else searched


def _row(fate: "Fate", names: dict[str, str]) -> tuple[str, ...]:
    client = names.get(fate.client, fate.client) or "-"
    return (
        moment(fate.at_us),
        f"to {client}" if fate.is_delivery else client,
        names.get(fate.topic, fate.topic),
        fate.message_id or "-",
        _told(fate, names),
    )


def _told(fate: "Fate", names: dict[str, str]) -> str:
    """What became of a message, in words."""
    branches = fate.branches
    if not fate.message_id:
        words = ["stored; its PUBREL has not come"]
    elif not branches:
        words = ["nobody had subscribed"]
    elif len(branches) <= _MOST_TOLD:
        words = [way_in_words(branch, names) for branch in branches]
    else:
        states = [branch.state for branch in branches]
        counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
        words = [f"{len(branches)} copies: {', '.join(counts)}"]
    if fate.qos in ANSWERS and not fate.is_delivery and fate.client:
        answer = ANSWERS[fate.qos]
        words.append(f"{answer} {clock(fate.confirmed_us)}" if fate.confirmed_us else f"no {answer} yet")
    return "; ".join((*["CHANGED"] * fate.is_changed, *words))


def way_in_words(branch: "Branch", names: dict[str, str]) -> str:
    """One way of a message and its end so far. `names` are clients in clear by their keyed hashes."""
    from spark_audit.fates import State

    client = names.get(branch.client, branch.client)
    to = client or branch.target or f"queue {branch.queue}"
    match branch.state:
        case State.WAITS:
            return f"waits for {to}" if client or branch.target else f"put on {to}"
        case State.DELIVERED:
            answer = ", not acknowledged" if branch.qos else ""
            return f"delivered to {to} {clock(branch.delivered_us)}{answer}"
        case State.ACKNOWLEDGED:
            return f"delivered to {to} {clock(branch.delivered_us)}, acknowledged {clock(branch.ended_us)}"
        case State.TAKEN:
            return f"taken from {to} {clock(branch.ended_us)} by {branch.reason or 'an application'}"
        case State.FORWARDED:
            return f"handed to {branch.reason} {clock(branch.ended_us)}"
        case _:
            return f"{branch.state} {clock(branch.ended_us)} for {to}: {_reason(branch.reason)}"


def _reason(reason: str) -> str:
    """A reason code with its name; words as they are."""
    if not reason.isdecimal():
        return reason or "no reason told"
    try:
        return f"{reason} {ReasonCode(int(reason)).name}"
    except ValueError:
        return reason

"""The messages of a client, a topic, a time, and what became of them, as `audit explain` shows them: a line each."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from gateway.cli.application import AuditExitCode, CommandFailed
from gateway.cli.audit.filters import hidden_names
from gateway.cli.audit.moments import clock, moment
from gateway.cli.terminal import Json, counted, write_json, write_line, write_table
from mq_adapters.reasons import ReasonCode
from spark_audit.personal import PersonalKey

if TYPE_CHECKING:
    from spark_audit.fates import Branch, Fate, Fates, Wanted
    from spark_audit.segment_index import SegmentIndex

#: Copies of a message that its line tells one by one. Of more copies it tells the numbers.
_MOST_TOLD: Final = 4
#: The gateway's last answer to a PUBLISH, by its QoS.
ANSWERS: Final = {1: "PUBACK", 2: "PUBCOMP"}
_COLUMNS: Final = ("time", "client", "topic", "MsgId", "what became of it")


def fates_in(wanted: "Wanted", trails: tuple[Path, ...], index: "SegmentIndex | None") -> "Fates":
    """The fates of the messages that fit. Raises CommandFailed if a trail cannot be read."""
    from spark_audit.fates import fates_of
    from spark_audit.trail.segment_forms import DamagedSegment
    from spark_audit.verify.source import LineTooLong, TrailFolder

    try:
        return fates_of(wanted, (TrailFolder(folder) for folder in trails), index)
    except (DamagedSegment, LineTooLong) as error:
        raise CommandFailed(f"a segment cannot be read to its end: {error} (audit verify names it)") from None
    except OSError as error:
        raise CommandFailed(f"{error.filename} cannot be read: {error.strerror}") from None


def write_fates(found: "Fates", client: str, topic: str, key: PersonalKey | None, *, as_json: bool) -> AuditExitCode:
    """Shows the messages that were found. The exit code says whether a record was changed."""
    hidden = hidden_names(
        client, topic, key, has_keyed_clients=found.has_keyed_clients, has_keyed_topics=found.has_keyed_topics
    )
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


def _notes(found: "Fates", hidden: list[str]) -> Iterator[str]:
    yield f"{counted(len(found.messages), 'message')} ({_searched(found)})"
    if found.is_cut:
        yield "there are more messages or copies than these: give a shorter time, or a client and a topic"
    if any(fate.is_changed for fate in found.messages):
        yield "CHANGED: a record of each message marked so does not match its hash"
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

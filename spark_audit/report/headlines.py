"""The findings of an audit in the words of its first page: how many, of whom, on what, from when to when.

A control has a phrase here where its title, which is a question, does not say what was found. Counts are of all
findings; clients, topics and times are those of the sample, which is the beginning.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spark_audit.report.text import moment
from spark_audit.result import ControlResult, Violation

#: What one finding of a control is, and what several are.
_PHRASES: Final = {
    "qos.1": ("acknowledged message was never put", "acknowledged messages were never put"),
    "qos.2": ("QoS 2 message was not put exactly once", "QoS 2 messages were not put exactly once"),
    "qos.committed": ("message was acknowledged before its commit", "messages were acknowledged before their commit"),
    "qos.identifiers": ("packet identifier was used again too early", "packet identifiers were used again too early"),
    "delivery.qos1": ("message never reached its client", "messages never reached their client"),
    "delivery.qos2": ("QoS 2 message was delivered more than once", "QoS 2 messages were delivered more than once"),
    "delivery.acknowledged": (
        "acknowledgement came for a message that was not delivered so",
        "acknowledgements came for messages that were not delivered so",
    ),
    "payload": ("message has another payload than was accepted", "messages have other payloads than were accepted"),
    "passages": ("message did not go over its channel once", "messages did not go over their channels once"),
    "timeliness": ("step took too long", "steps took too long"),
    "integrity.lines": ("line of the trail is no record", "lines of the trail are no records"),
    "integrity.hash": ("record was changed", "records were changed"),
    "integrity.chain": ("record does not follow the one before it", "records do not follow the ones before them"),
    "integrity.sequence": ("gap or double in the numbers of records", "gaps or doubles in the numbers of records"),
    "integrity.batch": ("group commit is missing", "group commits are missing"),
    "conversion.reperformance": (
        "conversion has another result when it is performed again",
        "conversions have other results when they are performed again",
    ),
    "records.bytes": ("record does not say what its bytes say", "records do not say what their bytes say"),
    "operators.acts": ("order of an operator", "orders of operators"),
}
#: Clients and topics that a headline names; more are counted.
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Headline:
    """A sentence on a control's findings. `clients` and `topics` are names of strangers, `others` how many more."""

    control: str
    is_error: bool
    what: str
    clients: tuple[str, ...]
    other_clients: int
    topics: tuple[str, ...]
    other_topics: int
    when: str


def headlines(controls: tuple[ControlResult, ...]) -> list[Headline]:
    """One for each control that found something, errors first, then by their number."""
    found = [control for control in controls if control.violations]
    found.sort(key=lambda control: (control.severity != "error", -control.violations))
    return [_headline(control) for control in found]


def _headline(control: ControlResult) -> Headline:
    one, several = _PHRASES.get(control.identifier, ("finding", "findings"))
    noun = one if control.violations == 1 else several
    what = f"{control.violations:,} {noun}"
    if control.identifier not in _PHRASES:
        what += f" on \u201c{control.title}\u201d"
    clients, topics = _most(each.client for each in control.sample), _most(each.topic for each in control.sample)
    return Headline(
        control=control.identifier,
        is_error=control.severity == "error",
        what=what,
        clients=clients[:_NAMED],
        other_clients=len(clients[_NAMED:]),
        topics=topics[:_NAMED],
        other_topics=len(topics[_NAMED:]),
        when=_when(control.sample),
    )


def _most(names: Iterable[str]) -> tuple[str, ...]:
    """The names, the most frequent first."""
    return tuple(name for name, _count in Counter(filter(None, names)).most_common())


def _when(sample: tuple[Violation, ...]) -> str:
    """From the first to the last of the sample, a day once: 2026-11-20 10:02:03 to 10:04:00."""
    times = sorted(found.at_us for found in sample if found.at_us)
    if not times:
        return ""
    first, last = moment(times[0])[:19], moment(times[-1])[:19]
    if first == last:
        return first
    return f"{first} to {last[11:] if first[:10] == last[:10] else last}"

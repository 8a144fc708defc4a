"""The facts that a proof shows, in words, and those that it does not show: from its records alone."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gateway.cli.audit.message_search import ANSWERS, way_in_words
from gateway.cli.audit.moments import moment

if TYPE_CHECKING:
    from spark_audit.fates import Branch, Fate


def proof_in_words(records: Sequence[str]) -> tuple[list[str], list[str]]:
    """The facts that the records of a proof tell, and those that they do not."""
    from spark_audit.fates import Wanted, fates_of
    from spark_audit.verify.source import TrailLines

    proved: list[str] = []
    missing: list[str] = []
    for fate in fates_of(Wanted(), [TrailLines(records)]).messages:
        for is_proved, words in _facts(fate):
            (proved if is_proved else missing).append(words)
    return proved, missing


def _facts(fate: "Fate") -> Iterator[tuple[bool, str]]:
    """Facts of a message in the order of its way, and whether the proof has them."""
    if fate.is_delivery:
        yield False, "the publication that this message was copied from"
    elif fate.client:
        yield True, f"accepted from {fate.client} {moment(fate.at_us)}: topic {fate.topic}, QoS {fate.qos}"
    else:
        yield True, f"published by an application {moment(fate.at_us)}: topic {fate.topic}"
    if not fate.is_delivery:
        put = f"put {moment(fate.put_us)} as message {fate.message_id}" if fate.put_us else "its put on a queue"
        yield bool(fate.put_us), put
    if fate.client and not fate.is_delivery and (answer := ANSWERS.get(fate.qos)):
        at = f"acknowledged to {fate.client} {moment(fate.confirmed_us)}, by {answer}"
        yield bool(fate.confirmed_us), at if fate.confirmed_us else f"an acknowledgement to {fate.client} ({answer})"
    if not fate.branches and fate.put_us:
        yield False, "a copy for a subscriber"
    for branch in fate.branches:
        yield from _facts_of_branch(branch)


def _facts_of_branch(branch: "Branch") -> Iterator[tuple[bool, str]]:
    from spark_audit.fates import State

    what = f"message {branch.message_id}"
    if branch.state is State.WAITS:
        yield True, f"{what}: put on queue {branch.queue}"
        yield False, f"a delivery of {what}"
    else:
        yield True, f"{what}: {way_in_words(branch, {}).partition(', not acknowledged')[0]}"
    if branch.state is State.DELIVERED and branch.qos:
        yield False, f"an acknowledgement by {branch.client} of {what}"

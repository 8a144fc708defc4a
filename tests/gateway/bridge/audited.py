"""What the audit says of everything that a gateway has converted: its notes become records, each performed again."""

import base64
from collections.abc import Iterable
from typing import Any

from gateway.audit_trail.notes.notes import pack_batch
from spark_audit.record.expansion import Expander
from spark_audit.reperform.comparison import Comparison, Status
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.performance import reperform
from spark_audit.reperform.rules import broken_rules
from tests.gateway.bridge.conftest import World

_TEXTS = ("conversion", "command", "topic", "queue", "input_format", "output_format", "destination", "stream")
_MORE_TEXTS = ("stream_style", "user", "client", "correlation_id")
_NUMBERS = ("packet_type", "protocol_level", "granted_qos", "published_qos", "payload_bytes", "exchange")
_MORE_NUMBERS = ("input_ccsid", "input_encoding", "output_ccsid", "output_encoding", "at_us", "sent_bytes")


def records(world: World) -> list[dict[str, Any]]:
    """The lines of the trail so far, without sequence and hashes."""
    world.engine.tick()
    world.run()
    _, records = Expander("gateway").expand(pack_batch(1, world.notes))
    return records


def judged(told: Iterable[dict[str, Any]]) -> list[tuple[str, Comparison]]:
    """Of each conversion its kind, and what performing it again says; what breaks a single rule fails at once."""
    outcomes = []
    for record in told:
        if "conversion" in record:
            facts = _facts(record)
            assert broken_rules(facts) == (), record
            outcomes.append((record["conversion"], reperform(facts)))
    assert outcomes
    return outcomes


def assert_every_conversion_is_as_the_audit_predicts(world: World) -> None:
    """To the byte."""
    for conversion, comparison in judged(records(world)):
        assert (comparison.status, comparison.same_bytes) == (Status.MATCH, True), (conversion, comparison)


def _facts(record: dict[str, Any]) -> Facts:
    return Facts(
        **{name: record.get(name, "") for name in (*_TEXTS, *_MORE_TEXTS)},
        **{name: record.get(name, -1) for name in (*_NUMBERS, *_MORE_NUMBERS)},
        topic_filters=tuple(record.get("topic_filters", ())),
        is_retained=record.get("is_retained", False),
        dropped_fields=tuple((name, reason) for name, reason in record.get("dropped_fields", ())),
        input=base64.b64decode(record.get("input", "")),
        output=base64.b64decode(record.get("output", "")),
    )

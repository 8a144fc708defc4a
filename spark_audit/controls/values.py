"""Records hold what their kind must hold: without it they would slip past every other control.

A line whose fields are of the wrong type is no record at all (integrity.lines). Here are the right types with values
that do not exist: an unknown kind, QoS 3, number 0, a hash that is none; and fields that are missing.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, gateway_subject, violations
from spark_audit.record import EVENTS, ConversionKind, Kind

_SESSION: Final = ("client", "session_epoch")
_IN_SESSION: Final = ("direction", *_SESSION)
#: The fields without which a record of a kind says nothing.
_REQUIRED: Final = {
    Kind.STARTED: ("code_version", "table_version", "configuration_sha256"),
    Kind.SESSION: (*_SESSION, "event"),
    Kind.ACCEPTED: (*_IN_SESSION, "exchange", "packet_type", "qos"),
    Kind.PUT: ("message_id", "queue", "conversion"),
    Kind.DELIVERED: (*_IN_SESSION, "exchange", "packet_type", "qos", "message_id"),
    Kind.ACKNOWLEDGED: (*_IN_SESSION, "exchange", "packet_type"),
    Kind.CONFIRMED: (*_IN_SESSION, "exchanges", "packet_type"),
    Kind.REFUSED: ("command",),
    Kind.DEAD_LETTERED: ("queue", "dead_letter_id"),
    Kind.DROPPED: ("queue",),
    Kind.FORWARDED: ("message_id", "target_message_id", "queue", "queue_manager", "channel"),
    Kind.RECEIVED: ("message_id", "target_message_id", "queue", "queue_manager", "channel"),
    Kind.REDRIVEN: ("message_id", "dead_letter_id", "queue"),
    Kind.REPEATED: (*_IN_SESSION, "exchange", "packet_type", "qos", "event"),
    Kind.OPERATED: ("command", "operator", "messages"),
    Kind.CLOCK_JUMPED: ("event", "jump_us"),
    Kind.RESTORED: ("event",),
}
_BOUNDS: Final = {
    "sequence": (1, 2**63 - 1),
    "batch": (1, 2**63 - 1),
    "at_us": (0, 253_402_300_799_999_999),  # the end of the year 9999
    "session_epoch": (0, 2**63 - 1),
    "exchange": (1, 2**63 - 1),
    "packet_type": (0, 14),
    "packet_identifier": (1, 65_535),
    "protocol_level": (3, 5),
    "qos": (0, 2),
    "published_qos": (0, 2),
    "granted_qos": (0, 2),
    "payload_bytes": (0, 268_435_455),  # MQTT 3.1.1 section 2.2.3; MQ's MAXMSGL ends below it
    "messages": (0, 2**63 - 1),
    "first_missing": (1, 2**63 - 1),
    "last_missing": (1, 2**63 - 1),
    "first_missing_batch": (1, 2**63 - 1),
    "last_missing_batch": (1, 2**63 - 1),
}
_WORDS: Final = {
    "kind": tuple(Kind),
    "conversion": tuple(ConversionKind),
    "direction": ("in", "out"),
    "event": tuple(event for events in EVENTS.values() for event in events),
}
#: Hex digits of each field that is hex.
_HEX: Final = {
    "gateway": 24,
    "message_id": 48,
    "correlation_id": 48,
    "source_message_id": 48,
    "dead_letter_id": 48,
    "gateway_before": 24,
    "target_message_id": 48,
    "payload_sha256": 64,
    "configuration_sha256": 64,
}


def find(records: DataFrame) -> DataFrame:
    wrong = sf.concat_ws(", ", *_wrong_values(), *_missing_fields())
    told = records.select("gateway", "sequence", "kind", wrong.alias("wrong")).where(sf.col("wrong") != "")
    detail = sf.concat(sf.col("kind"), sf.lit(": "), sf.col("wrong"))
    return violations(told, subject=gateway_subject(), detail=sf.substring(detail, 1, 400))


def _wrong_values() -> list[Column]:
    bounded = [_told(~sf.col(name).between(*bounds), name) for name, bounds in _BOUNDS.items()]
    worded = [_told(~sf.col(name).isin(*words), name) for name, words in _WORDS.items()]
    hex_digits = [_told(~sf.col(name).rlike(f"^[0-9a-f]{{{length}}}$"), name) for name, length in _HEX.items()]
    return [*bounded, *worded, *hex_digits]


def _told(is_wrong: Column, name: str) -> Column:
    """The field with its value where that is wrong; null where it is right or left out."""
    value = sf.substring(sf.col(name).cast("string"), 1, 64)
    return sf.when(is_wrong, sf.concat(sf.lit(f"{name} is "), value))


def _missing_fields() -> list[Column]:
    """For each field the kinds that need it."""
    kinds: dict[str, list[Kind]] = {}
    for kind, names in _REQUIRED.items():
        for name in names:
            kinds.setdefault(name, []).append(kind)
    return [
        sf.when(sf.col(name).isNull() & sf.col("kind").isin(*needing), sf.lit(f"{name} is missing"))
        for name, needing in kinds.items()
    ]


CONTROL = Control(
    identifier="integrity.values",
    title="Each record holds what its kind must hold",
    severity=Severity.ERROR,
    source="spark_audit/record.py: FIELDS",
    scope=Scope.RECORDS,
    rule=find,
)

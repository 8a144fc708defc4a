"""The tables of facts that a reader makes, and their columns.

    records         a record, without its bytes: what rules join and count
    confirmations   an exchange that the gateway confirmed; the ranges of a record are spelled out
    runs            lines that follow each other without a fault: number, link, group commit and time go on
    findings        what is wrong with one record by itself, by the control that tells it
    evidence        the bytes of a conversion that is not right
    dropped_fields  fields that conversions left out, counted

A line of the trail is in exactly one run. So numbers, links and times need to be compared only where a run begins.
"""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from spark_audit.custody.commands import TOLD

#: Longest header, in bytes, that is held whole: a topic of 65,535 bytes and the elements around it. A multiple of 3, so
#: that its base64 can be cut there.
BYTES_SHOWN: Final = 96 * 1024
CHARACTERS_SHOWN: Final = BYTES_SHOWN // 3 * 4
TEXT, NUMBER, FLAG = pa.string(), pa.int64(), pa.bool_()

#: Where a record stands: file, byte offset of the piece, its number in it (from 0). `trail` is "" for one alone.
_PLACE: Final = {"trail": TEXT, "segment": TEXT, "block": NUMBER, "place": NUMBER}
#: Fields of a record that are columns as they are.
FIELD_COLUMNS: Final = {
    **dict.fromkeys(("gateway", "kind", "direction", "client", "topic", "command", "queue", "message_id"), TEXT),
    **dict.fromkeys(("correlation_id", "source_message_id", "dead_letter_id", "target_message_id"), TEXT),
    **dict.fromkeys(("queue_manager", "destination", "conversion", "event", "hash", "channel"), TEXT),
    **dict.fromkeys(("gateway_name", "code_version", "table_version", "configuration_sha256"), TEXT),
    **dict.fromkeys(("output_format", "completion", "codes", "requested_qos", "operator"), TEXT),
    **dict.fromkeys(("sequence", "batch", "session_epoch", "exchange", "packet_type", "qos"), NUMBER),
    **dict.fromkeys(("payload_bytes", "messages", "jump_us", "packet_identifier", "published_qos"), NUMBER),
    **dict.fromkeys(("granted_qos", "protocol_level", "reason_code", "queues", "subscribers", "program"), NUMBER),
    **dict.fromkeys(("retain", "is_retained", "persistent", "default_persistent", "in_memory", "is_in_use"), FLAG),
}
#: Numbers that are the same for the same: SHA-256 of a payload; that and its length; topic, RETAIN flag and payload;
#: client of an end; what records of an exchange say again; topic; queue; queue and CorrelId.
STAND_INS: Final = ("payload_sum", "payload", "publication", "who", "said", "topic_number", "queue_number", "lane")
TABLES: Final[Mapping[str, Mapping[str, pa.DataType]]] = {
    "records": {
        **_PLACE,
        "line_number": NUMBER,
        **FIELD_COLUMNS,
        "at_us": NUMBER,
        # numbers that stand for texts, because engines sum numbers faster than texts (reader.py)
        **dict.fromkeys(STAND_INS, NUMBER),
        "is_destroyed": FLAG,
        "is_counted": FLAG,
        "is_asked": FLAG,
        "status": TEXT,
        "same_bytes": FLAG,
        # of a command or a stock-take, what the replay of custody reads of it (custody/commands.py)
        **dict(zip(TOLD, (TEXT, TEXT, NUMBER, NUMBER, TEXT, FLAG, TEXT), strict=True)),
    },
    "confirmations": {
        **dict.fromkeys(("gateway", "client"), TEXT),
        **dict.fromkeys(("session_epoch", "exchange", "packet_type", "sequence", "at_us"), NUMBER),
        "is_counted": FLAG,
    },
    "runs": {
        **_PLACE,
        "gateway": TEXT,
        **dict.fromkeys(("lines", "records"), NUMBER),
        **dict.fromkeys(("is_record", "is_cut", "is_fresh", "is_restored", "begins_late"), FLAG),
        **{f"{which}_{name}": NUMBER for name in ("sequence", "batch", "at_us") for which in ("first", "last")},
        **dict.fromkeys(("lowest_at_us", "highest_at_us", "first_missing_batch", "last_missing_batch"), NUMBER),
        **dict.fromkeys(("first_prev", "last_hash", "last_line_hash"), TEXT),
        # records among them: of another version, with encrypted headers, counted, with a client in clear or keyed
        **dict.fromkeys(("other_versions", "sealed", "counted", "plain", "keyed"), NUMBER),
        "line": TEXT,
    },
    "findings": {
        **dict.fromkeys(("control", "gateway", "subject", "detail", "hash"), TEXT),
        "sequence": NUMBER,
    },
    "evidence": {
        "gateway": TEXT,
        "sequence": NUMBER,
        # base64, cut; and how many bytes there are
        **dict.fromkeys(("input", "output", "expected"), TEXT),
        **dict.fromkeys(("input_bytes", "output_bytes", "expected_bytes", "byte_offset"), NUMBER),
    },
    "dropped_fields": {"name": TEXT, "reason": TEXT, "times": NUMBER},
}


def schema_of(table: str) -> pa.Schema:
    """The columns of a table, for Arrow."""
    return pa.schema(list(TABLES[table].items()))

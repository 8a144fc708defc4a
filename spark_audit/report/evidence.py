"""Where the record of a finding stands, whose it is, and the bytes of its conversion: for the sample of a result."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from spark_audit.engines.engine import Engine, Row
from spark_audit.result import ControlResult, Evidence, Violation

_SIDES: Final = ("input", "output", "expected")
#: How a control names a line that is no record.
_PLACE: Final = re.compile(r"([0-9]{12}-[0-9]{8}T[0-9]{2}\.[a-z.]+), line ([0-9]{1,12})")


def with_evidence(controls: Sequence[ControlResult], engine: Engine) -> tuple[ControlResult, ...]:
    """The same results, with file, line and bytes in their samples. Without a sample the engine is not asked."""
    wanted = sorted({_identity(found) for control in controls for found in control.sample if found.sequence})
    facts = _facts(wanted, engine) if wanted else {}
    return tuple(
        replace(control, sample=tuple(_shown(found, facts.get(_identity(found))) for found in control.sample))
        for control in controls
    )


def _identity(found: Violation) -> tuple[str, int]:
    return found.gateway, found.sequence


#: The number of a line in its file: all lines of the blocks before its own are before it.
_PLACES: Final = """
SELECT told.gateway, told.sequence, told.segment, b.lines_before + told.line_number + 1 AS number, told.conversion,
  told.client, told.topic, told.message_id, told.at_us, e.input, e.input_bytes, e.output, e.output_bytes, e.expected,
  e.expected_bytes, e.byte_offset
FROM records AS told
JOIN wanted ON wanted.gateway = told.gateway AND wanted.sequence = told.sequence
JOIN (
  SELECT trail, segment, block, sum(lines) OVER (
    PARTITION BY trail, segment ORDER BY block ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) - lines AS lines_before
  FROM (SELECT trail, segment, block, sum(lines) AS lines FROM runs GROUP BY trail, segment, block) AS blocks
) AS b ON b.trail = told.trail AND b.segment = told.segment AND b.block = told.block
LEFT JOIN evidence AS e ON e.gateway = told.gateway AND e.sequence = told.sequence
ORDER BY told.trail, told.segment, number, e.byte_offset, e.output
"""


def _facts(wanted: Sequence[tuple[str, int]], engine: Engine) -> dict[tuple[str, int], Row]:
    """For each wanted record: segment, line number, conversion and bytes. Of a doubled record, the first.

    A forged trail may have a number that another trail has too: then the first of the first trail.
    """
    gateways, sequences = zip(*wanted, strict=True)
    engine.give("wanted", pa.table({"gateway": pa.array(gateways), "sequence": pa.array(sequences, pa.int64())}))
    facts: dict[tuple[str, int], Row] = {}
    for row in engine.rows(_PLACES):
        facts.setdefault((row["gateway"], row["sequence"]), row)
    return facts


def _shown(found: Violation, fact: Mapping[str, Any] | None) -> Violation:
    if fact is None:
        named = _PLACE.fullmatch(found.subject) if not found.sequence else None
        return replace(found, segment=named[1], line=int(named[2])) if named else found
    return replace(
        found,
        segment=fact["segment"],
        line=fact["number"],
        client=fact["client"] or "",
        topic=fact["topic"] or "",
        message_id=fact["message_id"] or "",
        at_us=fact["at_us"] or 0,
        evidence=_evidence(fact),
    )


def _evidence(fact: Mapping[str, Any]) -> Evidence | None:
    if not fact["conversion"] or fact["byte_offset"] is None:
        return None
    sides = {name: str(fact[name] or "") for name in _SIDES}
    offset = -1 if fact["byte_offset"] is None or not sides["expected"] else fact["byte_offset"]
    return Evidence(
        conversion=fact["conversion"],
        message_id=fact["message_id"] or "",
        input=sides["input"],
        input_bytes=fact["input_bytes"] or 0,
        output=sides["output"],
        output_bytes=fact["output_bytes"] or 0,
        expected=sides["expected"],
        expected_bytes=fact["expected_bytes"] or 0,
        byte_offset=offset,
        written_byte=_byte_at(sides["output"], offset),
        expected_byte=_byte_at(sides["expected"], offset),
    )


def _byte_at(encoded: str, offset: int) -> str:
    try:
        data = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return ""
    return data[offset : offset + 1].hex() if offset >= 0 else ""

"""Where the record of a finding stands, and the bytes of its conversion: for the sample that a result shows."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.result import ControlResult, Evidence, Violation

#: Longest header, in bytes, that a result holds whole: a topic of 65,535 bytes and the elements around it. A multiple
#: of 3, so that its base64 can be cut there.
BYTES_SHOWN: Final = 96 * 1024
_CHARACTERS: Final = BYTES_SHOWN // 3 * 4
_IDENTITY: Final = ("gateway", "sequence")
_SIDES: Final = ("input", "output", "expected")
#: How a control names a line that is no record.
_PLACE: Final = re.compile(r"([0-9]{12}-[0-9]{8}T[0-9]{2}\.[a-z.]+), line ([0-9]{1,12})")


def with_evidence(
    controls: Sequence[ControlResult], lines: DataFrame, outcomes: DataFrame
) -> tuple[ControlResult, ...]:
    """The same results, with file, line and bytes in their samples. Without a sample Spark is not asked."""
    wanted = sorted({_identity(found) for control in controls for found in control.sample if found.sequence})
    facts = _facts(wanted, lines, outcomes) if wanted else {}
    return tuple(
        replace(control, sample=tuple(_shown(found, facts.get(_identity(found))) for found in control.sample))
        for control in controls
    )


def _identity(found: Violation) -> tuple[str, int]:
    return found.gateway, found.sequence


def _facts(
    wanted: Sequence[tuple[str, int]], lines: DataFrame, outcomes: DataFrame
) -> dict[tuple[str, int], Mapping[str, Any]]:
    """For each wanted record: segment, line number, conversion and bytes. Of a doubled record, the first."""
    keys = sf.broadcast(lines.sparkSession.createDataFrame(list(wanted), "gateway string, sequence long"))
    identity = list(_IDENTITY)
    file: list[str] = [name for name in ("trail", "segment") if name in lines.columns]  # several trails have like names
    concerned = lines.join(keys, identity, "left_semi").select(*file).distinct()
    order = Window.partitionBy(*file).orderBy("block", "place")
    numbered = (
        lines.join(concerned, file, "left_semi")
        .select(*_IDENTITY, "segment", sf.row_number().over(order).alias("number"))
        .join(keys, identity, "left_semi")
    )
    records = lines.where("is_record").join(keys, identity, "left_semi")
    converted = records.select(*_IDENTITY, "conversion", "message_id", *_side("input"), *_side("output"))
    judged = outcomes.join(keys, identity, "left_semi").select(*_IDENTITY, "byte_offset", *_side("expected"))
    joined = numbered.join(converted, identity, "left").join(judged, identity, "left")
    facts: dict[tuple[str, int], Mapping[str, Any]] = {}
    for row in joined.orderBy("segment", "number").limit(2 * len(wanted)).collect():
        facts.setdefault((row["gateway"], row["sequence"]), row.asDict())
    return facts


def _side(name: str) -> tuple[Column, Column]:
    """Base64 text, cut, and the number of bytes that all of it stands for (null where it is no base64)."""
    length = sf.octet_length(sf.try_to_binary(sf.col(name), sf.lit("base64")))
    return sf.substring(name, 1, _CHARACTERS).alias(name), length.alias(f"{name}_bytes")


def _shown(found: Violation, fact: Mapping[str, Any] | None) -> Violation:
    if fact is None:
        named = _PLACE.fullmatch(found.subject) if not found.sequence else None
        return replace(found, segment=named[1], line=int(named[2])) if named else found
    return replace(found, segment=fact["segment"], line=fact["number"], evidence=_evidence(fact))


def _evidence(fact: Mapping[str, Any]) -> Evidence | None:
    if not fact["conversion"]:
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

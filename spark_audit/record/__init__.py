"""The audit record: one line of the trail says one fact. The gateway writes by these tables; the audit reads by them.

    fields           every field of a record: form, meaning, unit, allowed values, the version that it came with
    kinds            every kind of record: meaning, events, fields that it must have
    header_contexts  what many notes say of one header
    notes            what the gateway notes of each fact, and the records that its exporter makes of a note
    line             a line of the trail: how a record is hashed and linked

A field, a kind or a note is added in these tables and nowhere else: packing, expanding, the Parquet schema, the control
of values and the reference of the record format read them. Nothing here needs Spark.
"""

from spark_audit.record.fields import FIELDS, ConversionKind, Field, Form, HashedBy, LoginProof, StreamRules
from spark_audit.record.kinds import EVENTS, KINDS, Kind, RecordKind
from spark_audit.record.line import (
    HASH_SUFFIX_BYTES,
    RECORD_VERSION,
    ZERO_HASH,
    hash_of_body,
    line_hashes,
    parsed_record,
)

__all__ = [
    "EVENTS",
    "FIELDS",
    "HASH_SUFFIX_BYTES",
    "KINDS",
    "RECORD_VERSION",
    "ZERO_HASH",
    "ConversionKind",
    "Field",
    "Form",
    "HashedBy",
    "Kind",
    "LoginProof",
    "RecordKind",
    "StreamRules",
    "hash_of_body",
    "line_hashes",
    "parsed_record",
]

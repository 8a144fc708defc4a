"""Records with encrypted headers in clear, for re-performance by whoever has the key of the personal data.

What is encrypted in a field of names (client, topic, user) are hashes, and stay so. A header for a target carries names
that are compared with those fields, so these headers stay closed: they cannot be performed again, and that is told.
"""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.personal import SEALED_BYTES, PersonalKey, UnusablePersonalKey, is_sealed, opened_record


def opening_with(key: bytes) -> Callable[[DataFrame], DataFrame]:
    """A function from records to those of conversions, in clear where that key opens them."""

    def open_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        personal_key = PersonalKey(key)
        for batch in batches:
            yield _opened(batch, personal_key)

    def opened(records: DataFrame) -> DataFrame:
        conversions = records.where(sf.col("conversion").isNotNull())
        return conversions.mapInArrow(open_batches, conversions.schema)

    return opened


def _opened(batch: pa.RecordBatch, key: PersonalKey) -> pa.RecordBatch:
    columns = {name: batch.column(name).to_pylist() for name in (*SEALED_BYTES, "destination")}
    for row, destination in enumerate(columns["destination"]):
        clear = {} if destination else _in_clear({name: columns[name][row] for name in SEALED_BYTES}, key)
        for name, value in clear.items():
            columns[name][row] = value
    for name in SEALED_BYTES:
        place = batch.schema.get_field_index(name)
        field = batch.schema.field(place)
        batch = batch.set_column(place, field, pa.array(columns[name], field.type))
    return batch


def _in_clear(record: dict[str, str], key: PersonalKey) -> dict[str, str]:
    """The bytes in clear; as they are where another key is needed."""
    if not any(map(is_sealed, record.values())):
        return {}
    try:
        return opened_record(record, key)
    except UnusablePersonalKey:
        return {}

"""Records with encrypted headers in clear, for re-performance by whoever has the key of the personal data.

What is encrypted in a field of names (client, topic, user) are hashes. Where re-performance compares such a name with a
header, it is recognised in it (recognition.py). A header in which it cannot be stays closed: its conversion cannot be
performed again, and that is told.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.personal import SEALED_BYTES, PersonalKey, UnusablePersonalKey, is_sealed, opened_record
from spark_audit.recognition import CIRCUMSTANCES, NAMES, Unrecognised, recognised

_CHANGED: Final = (*SEALED_BYTES, *NAMES)
#: MQTT 5, where an alias may stand for a topic in the packet.
_LEVEL_WITH_ALIASES: Final = 5


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
    columns = {name: batch.column(name).to_pylist() for name in (*_CHANGED, *CIRCUMSTANCES, "protocol_level")}
    for row in range(batch.num_rows):
        for name, value in in_clear({name: values[row] for name, values in columns.items()}, key).items():
            columns[name][row] = value
    for name in _CHANGED:
        place = batch.schema.get_field_index(name)
        field = batch.schema.field(place)
        batch = batch.set_column(place, field, pa.array(columns[name], field.type))
    return batch


def in_clear(record: Mapping[str, Any], key: PersonalKey) -> dict[str, Any]:
    """What changes of a record that is opened: its bytes, and the names that these are compared with.

    Nothing where it is not encrypted, or stays closed.
    """
    sealed = {name: record[name] for name in SEALED_BYTES}
    if not any(map(is_sealed, sealed.values())):
        return {}
    try:
        clear = opened_record(sealed, key)
        if record["destination"] or (record["protocol_level"] or 0) >= _LEVEL_WITH_ALIASES:
            clear |= recognised({**record, **clear}, key)
    except (UnusablePersonalKey, Unrecognised):
        return {}
    return clear

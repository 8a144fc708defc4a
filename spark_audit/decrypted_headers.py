"""Decrypted headers: the records of conversions in clear, for re-performance with the personal key.

Names (client, topic, user) stand in a record as hashes. If re-performance compares such a name with a header, this
module looks for the name in the header (keyed_names.py). A record whose header lacks it stays encrypted. Its conversion
cannot be performed again, and the audit says so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.keyed_names import CIRCUMSTANCES, NAMES, UnknownName, names_in_clear
from spark_audit.personal import SEALED_BYTES, PersonalKey, UnusablePersonalKey, is_sealed, opened_record

_CHANGED: Final = (*SEALED_BYTES, *NAMES)
#: MQTT 5, in which an alias may stand for a topic in the packet.
_LEVEL_WITH_ALIASES: Final = 5


def decryption_with(key: bytes) -> Callable[[DataFrame], DataFrame]:
    """A function from records to those of conversions, in clear if that key decrypts them."""

    def decrypt_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        personal_key = PersonalKey(key)
        for batch in batches:
            yield _decrypted(batch, personal_key)

    def decrypted(records: DataFrame) -> DataFrame:
        conversions = records.where(sf.col("conversion").isNotNull())
        return conversions.mapInArrow(decrypt_batches, conversions.schema)

    return decrypted


def _decrypted(batch: pa.RecordBatch, key: PersonalKey) -> pa.RecordBatch:
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
    """The fields of a record that change when it is decrypted: its bytes, and the names to compare with them.

    Empty if the record is not encrypted, or cannot be decrypted.
    """
    sealed = {name: record[name] for name in SEALED_BYTES}
    if not any(map(is_sealed, sealed.values())):
        return {}
    try:
        clear = opened_record(sealed, key)
        if record["destination"] or (record["protocol_level"] or 0) >= _LEVEL_WITH_ALIASES:
            clear |= names_in_clear({**record, **clear}, key)
    except (UnusablePersonalKey, UnknownName):
        return {}
    return clear

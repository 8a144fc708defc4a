"""Decrypted headers: the records of conversions in clear, for re-performance with the personal key.

Names (client, topic, user) stand in a record as hashes. If re-performance compares such a name with a header, this
module looks for the name in the header (keyed_names.py). A record whose header lacks it stays encrypted. Its conversion
cannot be performed again, and the audit says so.
"""

from collections.abc import Mapping
from typing import Any, Final

from spark_audit.keyed_names import UnknownName, names_in_clear
from spark_audit.personal import SEALED_BYTES, PersonalKey, UnusablePersonalKey, is_sealed, opened_record

#: MQTT 5, in which an alias may stand for a topic in the packet.
_LEVEL_WITH_ALIASES: Final = 5


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

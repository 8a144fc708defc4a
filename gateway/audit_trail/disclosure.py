"""Personal data under a key: names as keyed hashes, headers and words encrypted (spark_audit/personal.py)."""

from pathlib import Path

from gateway.audit_trail.keys.personal_key import read_personal_key
from spark_audit.personal import PersonalKey
from spark_audit.record.disclosure import IN_CLEAR, Disclosure


class UnderKey:
    """Names as keyed hashes, headers and words encrypted."""

    def __init__(self, key: PersonalKey) -> None:
        self._key = key

    def name(self, text: str) -> str:
        """See Disclosure."""
        return self._key.name(text)

    def words(self, text: str) -> str:
        """See Disclosure."""
        return self._key.sealed(text.encode(errors="replace"))

    def header(self, data: bytes) -> str:
        """See Disclosure."""
        return self._key.sealed(data)

    def identifier(self, identifier: bytes) -> str:
        """See Disclosure."""
        return self._key.identifier(identifier).hex()


def disclosure_of(personal_key: str) -> Disclosure:
    """How personal data stands in the lines of a trail. `personal_key` is the file of the key, "" for in clear.

    Raises ConfigurationError for a key that cannot be used.
    """
    return UnderKey(read_personal_key(Path(personal_key))) if personal_key else IN_CLEAR

"""The restores that an auditor's policy names: gaps that the trail tells, and that are no finding any more.

    [[restore]]
    record = "<hash of the record of kind restored, or of the digest of kind renewal, 64 hex digits>"
    because = "the disk of the pump house was replaced, ticket 4711"

`rfhbridge audit verify` prints the hash. Nothing here needs Spark, so that it can read a policy too.
"""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

RESTORE_KEYS: Final = ("record", "because")
LARGEST_POLICY_BYTES: Final = 1024 * 1024
_HASH: Final = re.compile("[0-9a-f]{64}")


class UnusableRestore(ValueError):
    """What a policy says of a restore cannot be used: it names the key and what to write instead."""


def accepted_restores(tables: dict[str, Any]) -> frozenset[str]:
    """The hashes in the tables of a policy. Raises UnusableRestore."""
    listed = tables.get("restore", [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise UnusableRestore("restore is not a list of tables: write [[restore]]")
    return frozenset(_record_of(number, table) for number, table in enumerate(listed, start=1))


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a policy file, for callers that need no control. Raises UnusableRestore, OSError."""
    with path.open("rb") as file:
        data = file.read(LARGEST_POLICY_BYTES + 1)
    if len(data) > LARGEST_POLICY_BYTES:
        raise UnusableRestore(f"it has more than {LARGEST_POLICY_BYTES} bytes")
    try:
        return tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnusableRestore(f"it is not TOML: {error}") from None


def _record_of(number: int, table: dict[str, Any]) -> str:
    if unknown := sorted(set(table) - set(RESTORE_KEYS)):
        raise UnusableRestore(f"restore #{number} has no key {unknown[0]}: write {' and '.join(RESTORE_KEYS)}")
    record, because = table.get("record"), table.get("because", "")
    if not isinstance(record, str) or _HASH.fullmatch(record) is None:
        raise UnusableRestore(f"restore #{number}.record is {record!r:.60}: write the record's hash, 64 hex digits")
    if not isinstance(because, str):
        raise UnusableRestore(f"restore #{number}.because is {because!r:.60}: write a text")
    return record

"""A line of the trail: one JSON object (RFC 8259), sealed by its own hash and linked to the line before.

The fields stand in the order of the table (fields.py), without blanks; a field that does not apply is left out. `prev`
and `hash` are the last two. So a line, without its line feed, ends in 149 bytes of one form:

    ,"prev":"    9 bytes
    64           hex digits, lower case: the hash of the line before; 64 zeros in the first line of a trail
    ","hash":"   10 bytes
    64           hex digits, lower case: the hash of this line
    "}           2 bytes

The hash of a line is the SHA-256 of its bytes without the last 75, `,"hash":"..."}`, and with `}` (7D) behind them.
Texts are escaped only where JSON must: `"`, `\\` and the bytes below 20.
"""

import hashlib
from typing import Any, Final

import orjson

#: Raised when a field changes its meaning. A reader refuses a version that it does not know.
RECORD_VERSION: Final = 1
ZERO_HASH: Final = "0" * 64

#: A line ends in `,"hash":"`, 64 hex digits and `"}`: 75 bytes.
HASH_FIELD: Final = b',"hash":"'
HASH_SUFFIX_BYTES: Final = len(HASH_FIELD) + 64 + len(b'"}')
_NO_BYTES: Final = hashlib.sha256()


def line_hashes(line: bytes) -> tuple[str, str] | None:
    """The hash that a line (without its line feed) carries, and the hash of its bytes; None where it carries none."""
    body, suffix = line[:-HASH_SUFFIX_BYTES], line[-HASH_SUFFIX_BYTES:]
    if not body or not suffix.startswith(HASH_FIELD) or not suffix.endswith(b'"}'):
        return None
    carried = suffix[len(HASH_FIELD) : -2].decode("latin-1")
    return carried, hash_of_body(body)


def hash_of_body(body: bytes) -> str:
    """The hash of a line with this body: its bytes without the last 75."""
    digest = _NO_BYTES.copy()  # in less time than a new one
    digest.update(body + b"}")
    return digest.hexdigest()


def parsed_record(line: bytes) -> dict[str, Any] | None:
    """The record in a line; None if the line is no JSON object."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None

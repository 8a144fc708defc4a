"""Batches become the lines of the trail: the last step before the disk.

A batch is one line (spark_audit/record/batch_line.py), so the exporter makes no record of it. Where personal data is
keyed, and for a batch beyond the bounds of such a line, each record is a line.
"""

import hashlib
from collections.abc import Sequence

from spark_audit.record.batch_line import (
    LARGEST_PACKED_BYTES,
    MOST_RECORDS,
    MOST_TOLD_BYTES,
    Record,
    Summary,
    text_of,
    text_of_batch,
)


def fits_in_one_line(packed: bytes, summary: Summary) -> bool:
    """Whether a batch is within the bounds of a line."""
    return (
        len(packed) <= LARGEST_PACKED_BYTES
        and summary.records <= MOST_RECORDS
        and summary.told_bytes <= MOST_TOLD_BYTES
    )


class Chain:
    """Numbers lines and links them by hash."""

    def __init__(self, *, sequence: int, head: str) -> None:
        self.sequence = sequence
        self.head = head

    def copy(self) -> "Chain":
        """Another one at the same place, for lines that may not be written."""
        return Chain(sequence=self.sequence, head=self.head)

    def seal_batch(self, packed: bytes, summary: Summary, gateway: str) -> bytes:
        """The line of a batch."""
        text = text_of_batch(packed, summary, gateway, self.sequence + 1, self.head)
        self.sequence += summary.records
        return self._sealed(text)

    def seal(self, records: Sequence[Record]) -> bytes:
        """The lines of these records, each with its sequence, the hash before and its own."""
        lines: list[bytes] = []
        for record in records:
            self.sequence += 1
            lines.append(self._sealed(text_of(record | {"sequence": self.sequence, "prev": self.head})[:-1]))
        return b"".join(lines)

    def _sealed(self, text: bytes) -> bytes:
        digest = hashlib.sha256(text)
        digest.update(b"}")
        self.head = digest.hexdigest()
        return b'%b,"hash":"%b"}\n' % (text, self.head.encode())

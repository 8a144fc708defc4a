"""Which digest speaks of a segment, as far as the digests can be read."""

from collections.abc import Iterator

from gateway.audit_trail.digests import Digests, read_digest, segment_number
from gateway.audit_trail.segment_files import SegmentFile
from mq_adapters.reasons import StoreError
from spark_audit.trail.digest import Digest, DigestKind


class SegmentDigests:
    """The digests of segments and of their removal. `read` looks for new ones."""

    def __init__(self, digests: Digests) -> None:
        self._digests = digests
        #: Numbers of segments and of their digests.
        self._numbers: dict[int, int] = {}
        self._read_through = 0
        #: Segments up to this number may go, or are gone.
        self.removed_through = 0

    def read(self) -> None:
        """Reads digests that came since the last time. Raises OSError."""
        for digest in self._unread():
            if digest.kind == DigestKind.SEGMENT:
                self._numbers[segment_number(digest.segment)] = digest.number
            elif digest.kind == DigestKind.RETENTION:
                self.removed_through = segment_number(digest.segment)

    def of(self, file: SegmentFile) -> Digest | None:
        """The digest of a segment; None where there is none that can be read. Raises OSError, StoreError."""
        number = self._numbers.get(file.number)
        return None if number is None else read_digest(self._digests.folder, number)[0]

    def _unread(self) -> Iterator[Digest]:
        for number in range(self._read_through + 1, self._digests.last_number + 1):
            self._read_through = number
            try:
                yield read_digest(self._digests.folder, number)[0]
            except StoreError:
                continue  # a digest that somebody damaged: its segment stays as it is, for `verify`

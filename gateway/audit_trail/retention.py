"""Closed segments are removed when their time is over and every digest and copy is safe.

A segment goes with all older ones, once each has its digest and, where there is a second place, is there.
A record of the trail, and then a signed digest of kind retention, say so before the first of them goes; a crash behind
them only delays the rest. The newest segment always stays: it says where the trail goes on.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.audit_trail.digests import Digests
from gateway.audit_trail.segment_digests import SegmentDigests
from gateway.audit_trail.segment_files import SegmentFile, segment_files
from mq_adapters.embedded.store.files import sync_folder
from mq_adapters.plausible_clock import wall_us
from spark_audit.trail.segment_forms import CLOSED, COMPRESSED

#: What the record says that the keeper of the trail does.
ORDER: Final = "trail retention"
_HOUR_US: Final = 3_600_000_000
_DAY_US: Final = 24 * _HOUR_US
#: Segments are removed together, so that not each of them costs a digest: how often, microseconds.
REMOVAL_INTERVAL_US: Final = _HOUR_US


class Retention:
    """Removes closed segments of a trail. Raises OSError, and StoreError for digests that cannot be read.

    `may_remove` says of a digest's number whether it, and its segment, is safe elsewhere; `is_time_sure` whether the
    clock is in no doubt: until then nothing is removed because of its age. `tell` adds the record: it is given the
    newest segment that goes, and why.
    """

    def __init__(
        self,
        trail: Path,
        digests: Digests,
        segments: SegmentDigests,
        *,
        keep_days: float,
        may_remove: Callable[[int], bool],
        now_us: Callable[[], int] = wall_us,
        is_time_sure: Callable[[], bool] = lambda: True,
        tell: Callable[[str, str], None] = lambda _segment, _reason: None,
    ) -> None:
        self._trail = trail
        self._digests = digests
        self._keep_us = int(keep_days * _DAY_US)
        self._allowed_by = f"audit.keep_days = {keep_days:g}"
        self._may_remove = may_remove
        self._now_us = now_us
        self._is_time_sure = is_time_sure
        self._tell = tell
        self._removal_due_us = 0
        self._segments = segments
        #: A retention digest may be there whose segments are not all gone: at the start, and when it was just written.
        self._is_removing = True

    def step(self) -> bool:
        """Removes what is to go, oldest first; False where nothing is due. First of all it ends an earlier removal."""
        self._segments.read()
        now_us = self._now_us()
        if self._keep_us and now_us >= self._removal_due_us and self._is_time_sure():
            self._removal_due_us = now_us + REMOVAL_INTERVAL_US
            last = self._last_to_remove(now_us)
            if last is not None:
                self._tell(last.stem, f"keep_days is {self._keep_us / _DAY_US:g}")
                self._digests.add_retention(
                    last.stem, now_us=now_us, keep_us=self._keep_us, allowed_by=self._allowed_by
                )
                self._segments.removed_through, self._is_removing = last.number, True
        if not self._is_removing:
            return False
        gone = [file for file in segment_files(self._trail) if file.number <= self._segments.removed_through]
        for file in gone:
            for suffix in (*COMPRESSED, CLOSED):
                (self._trail / (file.stem + suffix)).unlink(missing_ok=True)
        if gone:
            sync_folder(self._trail)
        self._is_removing = False
        return bool(gone)

    def _last_to_remove(self, now_us: int) -> SegmentFile | None:
        """The newest segment of those that are old enough and safe, from the oldest on without a gap."""
        last = None
        for file in segment_files(self._trail)[:-1]:
            digest = self._segments.of(file)
            if digest is None or now_us - digest.until_us < self._keep_us or not self._may_remove(digest.number):
                break
            last = file
        return last

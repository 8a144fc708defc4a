"""Maintenance of a store beside its units of work: it looks at the disk, gives room back, and tells the status."""

from pathlib import Path

from mq_adapters.embedded.group_commit import GroupCommit
from mq_adapters.embedded.store.checkpoint import StoreStatus
from mq_adapters.embedded.store.store import Store
from mq_adapters.queue_manager import Compaction
from mq_adapters.reasons import StoreError


class StoreMaintenance:
    """For the thread of one engine. A failure here stops the queue manager, as a failed commit does."""

    def __init__(self, store: Store, commits: GroupCommit, *, has_loop: bool) -> None:
        self._store = store
        self._commits = commits
        self._has_loop = has_loop

    def look(self) -> None:
        """Checks the store while nobody commits. Call it about once a second."""
        if self._commits.has_failed:
            return
        try:
            self._store.look()
        except StoreError as error:
            self._commits.stop(error)

    def watch(self, folder: Path, *, suffix: str) -> None:
        """Looks at a folder beside the store too. If it is gone, its files with that suffix are rescued."""
        self._store.files.watch(folder, suffix=suffix)

    def status(self) -> StoreStatus:
        """The present status of the store."""
        return self._store.status()

    def room_bytes(self) -> int:
        """Free bytes inside the file. Below 0: bytes of the disk that present messages still need."""
        if self._commits.has_failed:
            return 0
        try:
            return self._store.free_pages.room_bytes
        except StoreError as error:  # an unreadable store is as bad as an unwritable one
            self._commits.stop(error)
            return 0

    def settle(self) -> None:
        """Makes the store take that room of the disk soon."""
        self._store.free_pages.settle()

    def give_back_when_idle(self) -> None:
        """Gives a little room back to the disk, if the file has much free room and nobody commits."""
        free_pages = self._store.free_pages
        try:
            if self._commits.is_resting() and free_pages.are_many():
                self._commits.do_between(free_pages.give_back_some)
        except StoreError as error:
            self._commits.stop(error)

    def compaction(self) -> Compaction:
        """How far the store is compacted."""
        return self._store.free_pages.compaction()

    def compact_some(self) -> Compaction:
        """Gives more room back. Call it between two commits, until it is done. See FreePages.compact_some."""
        try:
            return self._store.free_pages.compact_some(may_stand_still=not self._has_loop)
        except StoreError as error:
            self._commits.stop(error)
            raise

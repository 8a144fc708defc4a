"""Maintenance of a store beside its units of work: looks at its disk, gives room back, and tells its status."""

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
        """Sees whether the store is as it must be while nobody commits; call about once a second."""
        if self._commits.has_failed:
            return
        try:
            self._store.look()
        except StoreError as error:
            self._commits.stop(error)

    def watch(self, folder: Path, *, suffix: str) -> None:
        """Looks at a folder beside the store too; its files with that suffix are rescued when it is gone."""
        self._store.files.watch(folder, suffix=suffix)

    def status(self) -> StoreStatus:
        """How the store is now, for whoever shows it."""
        return self._store.status()

    def room_bytes(self) -> int:
        """Free bytes inside the file. Below 0: bytes of the disk that present messages still need."""
        if self._commits.has_failed:
            return 0
        try:
            return self._store.free_pages.room_bytes
        except StoreError as error:  # a store that cannot be read is as bad as one that cannot be written
            self._commits.stop(error)
            return 0

    def settle(self) -> None:
        """Has the store take that soon."""
        self._store.free_pages.settle()

    def give_back_when_idle(self) -> None:
        """Gives a little of the room inside back to the disk, where there is much and nobody commits."""
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
        """Gives more of it back; call it between two commits, until it is done. As FreePages.compact_some."""
        try:
            return self._store.free_pages.compact_some(may_stand_still=not self._has_loop)
        except StoreError as error:
            self._commits.stop(error)
            raise

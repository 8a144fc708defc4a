"""The thread that copies a grown WAL back into the database, so that no commit has to wait for it."""

import threading
from pathlib import Path
from typing import Final

import apsw

#: What a commit can copy back without being noticed, in pages.
_FEW_PAGES: Final = 100
#: Each pass copies what was written during the one before, and syncs; where that does not get less, this many are made.
_MOST_PASSES: Final = 4


class CheckpointThread(threading.Thread):
    """Copies the WAL back into the database when it is told that it has grown. Its failures surface at the writer."""

    def __init__(self, path: Path) -> None:
        super().__init__(name="store-checkpoint", daemon=True)
        self._path = path
        self._stopping = False
        self._is_busy = False
        self._wanted = threading.Event()
        #: Set when the WAL has been copied back; whoever begins it anew clears it.
        self.copied = threading.Event()
        self.start()

    def want(self) -> None:
        """Asks for a copy, unless one is under way or waits to be made use of: the WAL begins anew while this rests."""
        if not (self._is_busy or self.copied.is_set()):
            self._is_busy = True
            self._wanted.set()

    def run(self) -> None:
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.pragma("schema_version")  # before it has read, it knows of no WAL and copies nothing
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._stopping:
                break
            try:
                if self._copy(connection):
                    self.copied.set()
            except apsw.Error:
                pass  # the next commit asks again
            self._is_busy = False
        connection.close()

    @staticmethod
    def _copy(connection: apsw.Connection) -> bool:
        """Copies, and then what has come meanwhile, until that is little: who begins the WAL anew copies the rest.

        False where that cannot be done yet: somebody reads the store as it was, and nothing newer may be copied.
        """
        before = 0
        for _ in range(_MOST_PASSES):
            pages, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if copied < pages:
                return False
            if copied - before <= _FEW_PAGES:
                break
            before = copied
        return True

    def stop(self) -> None:
        self._stopping = True
        self._wanted.set()
        self.join()

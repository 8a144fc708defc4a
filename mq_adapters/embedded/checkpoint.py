"""The thread that copies a grown WAL back into the database, so that no commit has to wait for it."""

import threading
from pathlib import Path

import apsw


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
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                self.copied.set()
            except apsw.Error:
                pass  # the next commit asks again
            self._is_busy = False
        connection.close()

    def stop(self) -> None:
        self._stopping = True
        self._wanted.set()
        self.join()

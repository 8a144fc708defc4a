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
        self.wanted = threading.Event()
        self.copied = threading.Event()
        self.start()

    def run(self) -> None:
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.pragma("schema_version")  # before it has read, it knows of no WAL and copies nothing
        while True:
            self.wanted.wait()
            self.wanted.clear()
            if self._stopping:
                break
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.Error:
                continue
            self.copied.set()
        connection.close()

    def stop(self) -> None:
        self._stopping = True
        self.wanted.set()
        self.join()

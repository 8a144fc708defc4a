"""Takes up changes of the operator's files (password file, access list, certificates) while the gateway runs.

A changed file is read once it stays the same from one look to the next (a second); SIGHUP reads at once. A thread looks
and reads, so a slow disk delays nobody. A wrong file changes nothing: the earlier state stays in force, and the log
says why, once for each state of the file. An unreadable file is tried again at every look, because a right to read it
may come later, which does not change the file.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from gateway.access.text_file import UnreadableFile
from gateway.config.error import ConfigurationError

_log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0

#: A state of a file: device, inode, size, time of change in ns. None: it is missing.
_State = tuple[int, int, int, int] | None
#: Is told the paths that were read, in a thread, and returns what is done on the event loop.
OnRead = Callable[[tuple[Path, ...]], Callable[[], None]]


def _told_to_nobody(_paths: tuple[Path, ...]) -> Callable[[], None]:
    return lambda: None


class WatchedFile:
    """A file whose changes are taken up. Make it before the first reading of the file.

    `also`: files that are read with it, as the key is with its certificate.

    `read` runs in a thread, raises ConfigurationError for a wrong file, and returns what is then done on the event
    loop.
    """

    def __init__(self, path: Path, read: Callable[[], Callable[[], None]], *, also: tuple[Path, ...] = ()) -> None:
        self.path = path
        self._paths = (path, *also)
        self._read = read
        #: The state that was read last, and the one that was seen last.
        self._known = self._seen = self._state()
        #: The state that was refused last, and the reason.
        self._refused: tuple[list[_State], str] | None = None

    async def look(self, *, at_once: bool = False, on_read: OnRead = _told_to_nobody) -> None:
        """Reads the file if it has changed and stays the same; `at_once`: in any case."""
        state = await asyncio.to_thread(self._state)
        stands_still, self._seen = state == self._seen, state
        if not at_once and (state == self._known or not stands_still):
            return
        before, self._known = self._known, state
        try:
            take_up = await asyncio.to_thread(self._read)
        except ConfigurationError as error:
            if isinstance(error, UnreadableFile):
                self._known = before
            self._tell_refused(state, error, again=at_once)
            return
        tell = await asyncio.to_thread(on_read, self._paths)
        if await asyncio.to_thread(self._state) != state:  # it may be told as what it was not when it was read
            self._known = before
            return
        self._refused = None
        take_up()
        tell()
        _log.info("file read again file=%s", str(self.path))

    def _tell_refused(self, state: list[_State], error: ConfigurationError, *, again: bool) -> None:
        before, self._refused = self._refused, (state, str(error))
        if again or self._refused != before:
            _log.error("file refused file=%s reason=%s", error.source, "; ".join(error.problems))

    def _state(self) -> list[_State]:
        return [_state_of(path) for path in self._paths]


class Reloading:
    """Looks at the files once a second."""

    def __init__(self, files: Iterable[WatchedFile]) -> None:
        self._files = tuple(files)
        self._is_asked = asyncio.Event()
        #: Called in a thread with the paths that were just read; what it returns is called when they are taken up.
        self.on_read: OnRead = _told_to_nobody

    def ask(self) -> None:
        """Reads every file now."""
        self._is_asked.set()

    async def run(self) -> None:
        """Looks and reads, until it is cancelled."""
        while self._files:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_asked.wait(), LOOK_EVERY_S)
            at_once = self._is_asked.is_set()
            self._is_asked.clear()
            for file in self._files:
                try:
                    await file.look(at_once=at_once, on_read=self.on_read)
                except Exception as error:  # a fault of this program must not end the looking: a user who goes must go
                    kind = type(error).__name__  # its text may hold what stands in the file
                    _log.error("file not taken up file=%s error=%s", str(file.path), kind)


def _state_of(path: Path) -> _State:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

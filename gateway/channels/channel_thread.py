"""One channel in a thread of its own. It rests while the operator has stopped it, and runs otherwise."""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from mq_adapters.channel import ChannelState, ChannelStatus

_log = logging.getLogger(__name__)


class Runnable(Protocol):
    """A channel: mq_adapters.channel.Outbound or Inbound."""

    name: str

    @property
    def status(self) -> ChannelStatus: ...
    def run(self, stop: threading.Event) -> None: ...


class ChannelThread:
    """Runs a channel. Another thread calls its methods, and none of them waits.

    The channel's thread calls `on_store_lost` when the channel ended by a defect, or because the store is gone. Then
    the whole process must end, and the gateway, if it still runs, starts another.
    """

    def __init__(self, channel: Runnable, *, is_stopped: bool, on_store_lost: Callable[[], None]) -> None:
        self.channel = channel
        self._on_store_lost = on_store_lost
        self._changed = threading.Condition()
        self._may_run = not is_stopped
        #: The operator started the channel after a failure, perhaps before its thread has come to rest.
        self._is_started_again = False
        self._has_ended = False
        self._stop = threading.Event()
        # A call of IBM's library may hang for ever. A daemon thread does not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name=channel.name, daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def start(self) -> None:
        """The channel may run, from now on or again."""
        with self._changed:
            self._may_run = True
            self._is_started_again = self.channel.status.state is ChannelState.FAILED
            self._changed.notify()

    def stop(self) -> None:
        """The channel ends soon, and rests."""
        with self._changed:
            self._may_run = self._is_started_again = False
            self._stop.set()

    def end(self) -> None:
        """The channel ends soon, and its thread with it."""
        with self._changed:
            self._has_ended = True
            self._stop.set()
            self._changed.notify()

    def has_ended(self, wait_s: float) -> bool:
        """Whether the thread has come to its end, at the latest after `wait_s` seconds."""
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    @property
    def is_running(self) -> bool:
        """Whether the channel runs, or is about to."""
        return self._may_run or self.channel.status.state not in (ChannelState.STOPPED, ChannelState.FAILED)

    def _run(self) -> None:
        while self._wait_for_start():
            try:
                self.channel.run(self._stop)
            except Exception:
                _log.exception("channel broke channel=%s", self.channel.name)
                self._on_store_lost()
                return
            if self._stop.is_set():
                continue
            if self.channel.status.state is not ChannelState.FAILED:
                self._on_store_lost()
                return
            with self._changed:
                self._may_run = self._is_started_again

    def _wait_for_start(self) -> bool:
        """Waits until the channel may run; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._may_run or self._has_ended)
            self._stop.clear()
            self._is_started_again = False
            return not self._has_ended

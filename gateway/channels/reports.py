"""Reports of channels to the daemon: each change of state at once, counts once a second."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gateway.channels.protocol import Report, line_of
from mq_adapters.channel import ChannelState, ChannelStatus, StartAction
from mq_adapters.channel.state_message import Batch

#: A channel in one of these states has no connection that it goes on with.
_WITHOUT_CONNECTION: Final = frozenset(
    (ChannelState.WAITING, ChannelState.IN_DOUBT, ChannelState.STOPPED, ChannelState.FAILED)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundQueueManager:
    """A queue manager's own data; `maximum_message_bytes` by queue name."""

    name: str
    identifier: str
    maximum_message_bytes: Mapping[str, int]


class Reports:
    """The listener of every channel of the process (mq_adapters.channel.ChannelListener). For several threads."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        #: The store's incarnation: messages in doubt are told by their numbers in it.
        self.gateway = b""
        self._write = write
        self._lock = threading.Lock()
        self._latest: dict[str, ChannelStatus] = {}
        self._untold: set[str] = set()
        self._found: dict[str, FoundQueueManager] = {}

    def status_changed(self, status: ChannelStatus) -> None:
        with self._lock:
            before = self._latest.get(status.channel)
            self._latest[status.channel] = status
            if status.state in _WITHOUT_CONNECTION:
                self._found.pop(status.channel, None)
            if before is not None and _standing(before) == _standing(status):
                self._untold.add(status.channel)
                return
            if status.state is ChannelState.RUNNING:
                self._tell_queue_manager(status.channel)
            self._tell(status)

    def queue_manager_changed(self, channel: str, *, before: str, now: str) -> None:
        """The daemon hears of it when the channel runs. It knows the earlier identifier."""

    def action_taken(self, channel: str, action: StartAction, *, batch: int, messages: int) -> None:
        """Does nothing, because the channel has logged it."""

    def found(self, channel: str, queue_manager: FoundQueueManager) -> bool:
        """A channel has connected. False if the target's other channels are connected to another queue manager."""
        with self._lock:
            others = {found.identifier for other, found in self._found.items() if other != channel}
            if others and queue_manager.identifier not in others:
                return False
            self._found[channel] = queue_manager
            return True

    def stands(self, channel: str, status: ChannelStatus, in_doubt: Batch | None) -> None:
        """Reports the state of a channel before it runs, as the store knows it."""
        self.status_changed(replace(status, channel=channel, in_doubt=in_doubt))

    def resolved(self, channel: str, *, succeeded: bool, text: str) -> None:
        """The outcome of an operator's resolution. After a success no batch is in doubt."""
        with self._lock:
            status = self._latest.get(channel)
            if succeeded and status is not None:
                self._latest[channel] = status = replace(status, in_doubt=None, problem=None)
                self._tell(status)
            self._write(line_of(report=Report.RESOLVED, channel=channel, succeeded=succeeded, text=text))

    def flush(self) -> None:
        """Tells the counts that changed; call it about once a second."""
        with self._lock:
            untold, self._untold = self._untold, set()
            for channel in sorted(untold):
                self._tell(self._latest[channel])

    # -- inside, with the lock held ------------------------------------------------------------------------------------

    def _tell(self, status: ChannelStatus) -> None:
        self._untold.discard(status.channel)
        self._write(line_of(report=Report.STATUS, **status.as_dict(self.gateway)))

    def _tell_queue_manager(self, channel: str) -> None:
        found = self._found.get(channel)
        if found is not None:
            limits = dict(found.maximum_message_bytes)
            self._write(
                line_of(
                    report=Report.QUEUE_MANAGER,
                    name=found.name,
                    identifier=found.identifier,
                    maximum_message_bytes=limits,
                )
            )


def _standing(status: ChannelStatus) -> tuple[object, ...]:
    """The parts of a status whose change is reported at once."""
    return status.state, status.identifier, status.problem, status.in_doubt

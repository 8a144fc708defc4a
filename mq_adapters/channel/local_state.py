"""The channels' own queue in the store: one state message for each channel, found by its CorrelId.

Only a process that has read the message can replace it. So two processes that run the same channel cannot both go on.
"""

from typing import Final

from mq_adapters.channel.state_message import (
    LocalState,
    MalformedState,
    read_local_state,
    state_correl_id,
)
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE

#: The unit of work of a killed process may hide a state message for so many seconds.
_HIDDEN_S: Final = 1.0


class StateChanged(Exception):
    """Another process or an operator has changed the channel's state meanwhile. Nothing was done.

    Read the state again.
    """


class LocalStates:
    """The states of all channels of a store, for commands that show them."""

    def __init__(self, queue_manager: QueueManager) -> None:
        self._queue_manager = queue_manager

    def all(self) -> tuple[LocalState, ...]:
        """The state of each channel by its name. Raises MalformedState, QueueManagerError 2085 without the queue."""
        found = [read_local_state(message) for message in self._queue_manager.browse(CHANNEL_STATE_QUEUE)]
        return tuple(sorted(found, key=lambda state: state.channel))

    def of(self, channel: str) -> LocalState | None:
        """The state of one channel; None if it never ran."""
        return next((state for state in self.all() if state.channel == channel), None)


class StateRecord:
    """One channel's state message, for the process that changes it."""

    def __init__(self, channel: str, *, gateway: bytes) -> None:
        self.state = LocalState(channel=channel, gateway=gateway)
        self._correl_id = state_correl_id(channel)
        self._fresh = self.state
        self._msg_id: bytes | None = None
        self._next: tuple[LocalState, bytes] | None = None

    def load(self, queue_manager: QueueManager) -> None:
        """Reads the message again. A channel without one has never run. Raises MalformedState.

        A process that was just killed may hide the message. So if there is none, this waits for it.
        """
        self.look(queue_manager)
        if self._msg_id is None and self._appears(queue_manager):
            self.look(queue_manager)

    def look(self, queue_manager: QueueManager) -> None:
        """Reads the message without waiting: for the status, before the channel works."""
        self.state, self._msg_id, self._next = self._fresh, None, None
        found = tuple(queue_manager.browse(CHANNEL_STATE_QUEUE, correl_id=self._correl_id))
        if len(found) > 1:
            raise MalformedState(f"{CHANNEL_STATE_QUEUE} has {len(found)} states of channel {self._fresh.channel}")
        for message in found:
            state = read_local_state(message)
            if (state.channel, state.gateway) != (self._fresh.channel, self._fresh.gateway):
                raise MalformedState(f"it is that of channel {state.channel} of gateway {state.gateway.hex()}")
            self.state, self._msg_id = state, message.msg_id

    def _appears(self, queue_manager: QueueManager) -> bool:
        """Whether the message appears after a wait, because a unit of work had hidden it."""
        queue_manager.begin()
        try:
            queue_manager.get(CHANNEL_STATE_QUEUE, correl_id=self._correl_id, wait_s=_HIDDEN_S)
        except QueueManagerError as error:
            if error.reason_code != ReasonCode.MQRC_NO_MSG_AVAILABLE:
                raise
            return False
        finally:
            queue_manager.back_out()
        return True

    def replace(self, queue_manager: QueueManager, state: LocalState) -> None:
        """Puts another state in the open unit of work. Call `committed` after its commit. Raises StateChanged."""
        correl_id = self._correl_id if self._msg_id is None else None
        try:
            queue_manager.get(CHANNEL_STATE_QUEUE, msg_id=self._msg_id, correl_id=correl_id)
            was_there = True
        except QueueManagerError as error:
            if error.reason_code != ReasonCode.MQRC_NO_MSG_AVAILABLE:
                raise
            was_there = False
        if was_there is (self._msg_id is None):
            raise StateChanged(f"channel {state.channel} is run or resolved by somebody else")
        self._next = state, queue_manager.put(CHANNEL_STATE_QUEUE, state.to_message())

    def committed(self) -> None:
        """The unit of work of the last `replace` is committed."""
        assert self._next is not None, "replace comes first"
        (self.state, self._msg_id), self._next = self._next, None

    def write(self, queue_manager: QueueManager, state: LocalState) -> None:
        """Writes another state in a unit of work of its own."""
        queue_manager.begin()
        try:
            self.replace(queue_manager, state)
        except StateChanged:
            queue_manager.back_out()
            raise
        queue_manager.commit()
        self.committed()

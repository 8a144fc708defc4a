"""The work of both kinds of channels: connect, fence, begin, move batches until something fails, and try again.

The store's queue manager is local, the other one remote. Local calls raise QueueManagerError, as the port says. Remote
calls stand in `at_remote`, which turns that error into RemoteTrouble. So the type of an error tells which side refused.
At the first trouble a channel gives its connection up. The store has a note of the batch in doubt, and the channel
looks at it after the next fence.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final, Generic, Protocol, TypeVar

from mq_adapters.channel.batch import LONGEST_WAIT_S, BatchSize, most_messages, take
from mq_adapters.channel.clock import SYSTEM_CLOCK, Clock
from mq_adapters.channel.in_doubt import Mismatch
from mq_adapters.channel.local_state import StateChanged, StateRecord
from mq_adapters.channel.retry import Retry
from mq_adapters.channel.settings import ChannelSettings
from mq_adapters.channel.state_message import MalformedState
from mq_adapters.channel.status import ChannelListener, ChannelProblem, ChannelState, ChannelStatus, StatusBoard
from mq_adapters.exclusive_queue import ExclusiveQueue
from mq_adapters.message import Message
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import Action, QueueManagerError, ReasonCode, what_to_do
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE

T = TypeVar("T")
Settings = TypeVar("Settings", bound=ChannelSettings)

#: Local reasons that mean that the gateway is going away. It starts its channels again when it is back.
_STORE_IS_GONE: Final = (Action.OUTCOME_UNKNOWN, Action.RECONNECT, Action.DEFECT)
#: Reasons that need an operator, so the channel tries again at its slowest rate.
_NEEDS_AN_OPERATOR: Final = (Action.CONFIGURATION, Action.ALARM, Action.DEFECT)


class LocalQueueManager(QueueManager, Protocol):
    """A connection to the store: `incarnation` is the 12 random bytes made with it."""

    incarnation: bytes


class RemoteTrouble(Exception):
    """The other queue manager refused a call.

    `is_in_doubt`: the call was a commit, which may have taken place all the same.
    """

    def __init__(self, error: QueueManagerError, *, is_in_doubt: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.is_in_doubt = is_in_doubt


class MismatchFound(Exception):
    """The two state messages do not fit together."""

    def __init__(self, mismatch: Mismatch) -> None:
        super().__init__(str(mismatch))
        self.mismatch = mismatch


class Stopping(Exception):
    """The channel was told to stop in the middle of its work. That work is backed out."""


@contextmanager
def at_remote() -> Iterator[None]:
    """For calls of the other queue manager, never for local ones."""
    try:
        yield
    except QueueManagerError as error:
        raise RemoteTrouble(error) from error


class Channel(ABC, Generic[Settings]):
    """A channel, for one thread. Call `run` there; any thread may read `status`."""

    def __init__(
        self,
        settings: Settings,
        *,
        connect_local: Callable[[], LocalQueueManager],
        connect_remote: Callable[[], QueueManager],
        listener: ChannelListener,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.name = settings.channel
        self._settings = settings
        self._size = BatchSize(settings.batch_messages)
        self._retry = Retry(settings.retry, now_s=clock.monotonic_s)
        self._connect_local = connect_local
        self._connect_remote = connect_remote
        self._clock = clock
        self._board = StatusBoard(self.name, listener, clock)
        self._stop = threading.Event()
        self._local: LocalQueueManager
        self._record: StateRecord
        self._remote: QueueManager

    @property
    def status(self) -> ChannelStatus:
        return self._board.status

    def run(self, stop: threading.Event) -> None:
        """Runs until `stop` is set, the store goes away, or only an operator can help. `status` says which.

        After a stop no batch is in doubt, unless the connection broke at the very end. A channel may run again.
        """
        self._stop = stop
        self._board.begin()
        self._board.enter(ChannelState.CONNECTING)
        try:
            self._run_on_store()
        except QueueManagerError as error:
            self._end(ChannelState.STOPPED, ChannelProblem(reason_code=error.reason_code, text=f"the store: {error}"))
        except MalformedState as error:
            text = f"the channel's state on {CHANNEL_STATE_QUEUE} cannot be read: {error}"
            self._end(ChannelState.FAILED, ChannelProblem(reason_code=0, text=text))
        except MismatchFound as found:
            cause = found.mismatch.cause.value
            self._end(ChannelState.FAILED, ChannelProblem(reason_code=0, text=str(found), cause=cause))
        else:
            self._end(ChannelState.STOPPED, None)

    # -- what each kind does its own way -------------------------------------------------------------------------------

    @abstractmethod
    def _hold_local_queue(self) -> AbstractContextManager[object]:
        """Opens the queue of the store that only one channel may empty.

        Raises 2042 while another channel has it open.
        """

    @abstractmethod
    def _fenced_queue(self) -> str:
        """The remote queue that only one channel may have open."""

    @abstractmethod
    def _begin(self, fence: ExclusiveQueue) -> None:
        """Finds out where to go on, after connection and fence. Raises MismatchFound."""

    @abstractmethod
    def _turn(self) -> None:
        """Moves one batch, or waits a second for one. Ends with no unit of work open."""

    @abstractmethod
    def _finish(self) -> None:
        """Ends the work between two batches, while both connections are there."""

    # -- connections ---------------------------------------------------------------------------------------------------

    def _run_on_store(self) -> None:
        with self._connect_local() as self._local:
            gateway = self._local.incarnation
            self._record = StateRecord(self.name, gateway=gateway)
            while not self._stop.is_set():
                delay_s = self._try()
                if delay_s:
                    self._clock.wait(self._stop, delay_s)

    def _try(self) -> float:
        """Works over one connection as long as it lives. Returns the seconds to wait before the next one."""
        try:
            self._work_behind_local_fence()
        except RemoteTrouble as trouble:
            return self._wait_after(trouble.error, "")
        except StateChanged as changed:
            return self._wait(ChannelProblem(reason_code=0, text=str(changed)), self._retry.delay_s())
        except QueueManagerError as error:
            if what_to_do(error.reason_code) in _STORE_IS_GONE:
                raise
            return self._wait_after(error, "the store: ")
        except MismatchFound as found:
            if found.mismatch.is_final:
                raise
            return self._wait(ChannelProblem(reason_code=0, text=str(found)), self._retry.delay_s())
        return 0.0

    def _work_behind_local_fence(self) -> None:
        held = self._fence(self._hold_local_queue)
        if held is None:
            return
        with held:
            try:
                self._record.look(self._local)
                self._connect_and_work()
            finally:
                self._back_out_local()

    def _connect_and_work(self) -> None:
        self._board.enter(ChannelState.CONNECTING, in_doubt=self._record.state.doubtful)
        with at_remote():
            self._remote = self._connect_remote()
        try:
            self._board.connected(self._remote.name, self._remote.identifier, batch=self._record.state.batch)
            fence = self._fence(self._remote_fence)
            if fence is not None:
                self._begin_and_work(fence)
        finally:
            self._leave_remote()

    def _begin_and_work(self, fence: ExclusiveQueue) -> None:
        self._record.load(self._local)
        with at_remote():
            there = self._remote.inquire("").number("MAXUMSGS")
        self._size.connected(most_messages(self._local.inquire("").number("MAXUMSGS"), there))
        with suppress(Stopping):
            self._begin(fence)
            self._board.enter(ChannelState.RUNNING)
            while not self._stop.is_set():
                self._turn()
            self._finish()

    def _pin(self) -> None:
        """Notes that the channel goes on at this queue manager. No batch is in doubt."""
        before, now = self._record.state.queue_manager, self._remote.identifier
        if before != now:
            self._board.queue_manager_changed(before, now)
            self._record.write(self._local, self._record.state.pinned_to(now))

    def _take(self, queue_manager: QueueManager, queue_name: str) -> list[Message]:
        """Takes the next batch of a queue in a new unit of work. If none comes in time, there is no unit of work."""
        limits = self._size.limits(bytes=self._settings.batch_bytes, idle_s=self._settings.batch_idle_s)
        return take(queue_manager, queue_name, limits, stop=self._stop, clock=self._clock)

    def _remote_fence(self) -> ExclusiveQueue:
        with at_remote():
            return self._remote.open_exclusively(self._fenced_queue(), wait_s=LONGEST_WAIT_S)

    def _fence(self, open_queue: Callable[[], T]) -> T | None:
        """Opens a queue exclusively, and waits for others as long as needed; None after a stop."""
        while not self._stop.is_set():
            try:
                return open_queue()
            except (RemoteTrouble, QueueManagerError) as trouble:
                error = trouble.error if isinstance(trouble, RemoteTrouble) else trouble
                if error.reason_code != ReasonCode.MQRC_OBJECT_IN_USE:
                    raise
                self._board.enter(ChannelState.FENCING, problem=_problem(error), in_doubt=self._record.state.doubtful)
        return None

    def _leave_remote(self) -> None:
        """Closes a connection that is given up, even if the close fails."""
        with suppress(QueueManagerError):
            self._remote.back_out()
        with suppress(QueueManagerError):
            self._remote.close()

    def _back_out_local(self) -> None:
        """Gives taken messages back to the store. A store that has gone has backed them out itself."""
        with suppress(QueueManagerError):
            self._local.back_out()

    # -- waiting and ending --------------------------------------------------------------------------------------------

    def _wait_after(self, error: QueueManagerError, side: str) -> float:
        needs_operator = what_to_do(error.reason_code) in _NEEDS_AN_OPERATOR
        delay_s = self._settings.retry.longest_s if needs_operator else self._retry.delay_s()
        return self._wait(_problem(error, side), delay_s)

    def _wait(self, problem: ChannelProblem, delay_s: float) -> float:
        doubtful = self._record.state.doubtful
        state = ChannelState.WAITING if doubtful is None else ChannelState.IN_DOUBT
        self._board.enter(state, problem=problem, delay_s=delay_s, in_doubt=doubtful)
        return delay_s

    def _end(self, state: ChannelState, problem: ChannelProblem | None) -> None:
        record = getattr(self, "_record", None)
        self._board.enter(state, problem=problem, in_doubt=record.state.doubtful if record is not None else None)


def _problem(error: QueueManagerError, side: str = "") -> ChannelProblem:
    return ChannelProblem(reason_code=error.reason_code, text=f"{side}{error}")

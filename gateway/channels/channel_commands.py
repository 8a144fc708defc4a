"""The channels as their operator sees them: DISPLAY CHSTATUS, START, STOP and RESOLVE CHANNEL.

The gateway's side of mq_adapters/embedded/mqsc/channels.py. A stopped channel stays stopped over a restart.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

from gateway.channels.names import outbound_channel, subscriber_channel
from gateway.channels.protocol import Order
from gateway.channels.supervisor import TargetProcess
from mq_adapters.embedded.mqsc.channels import ChannelCommandRefused
from mq_adapters.embedded.mqsc.display import Shown, time_text
from mq_adapters.embedded.queue import Queue
from mq_adapters.mqsc import quoted

#: States in which a batch in doubt may be resolved.
_AT_REST: Final = ("stopped", "failed")
#: Characters that are shown of the ranges of message numbers in doubt: a batch may have 10,000 messages.
_LONGEST_LIST_CHARACTERS: Final = 1_000
_US: Final = 1_000_000


class ChannelCommands:
    """mq_adapters.embedded.mqsc.channels.ChannelAdministration of a gateway."""

    def __init__(self, processes: Iterable[TargetProcess], *, subscriber_queue: Queue, reply_queue: Queue) -> None:
        self._processes = tuple(processes)
        self._subscriber_queue = subscriber_queue
        self._reply_queue = reply_queue

    def names(self) -> Iterator[str]:
        for process in self._processes:
            yield from process.names

    def start(self, name: str) -> None:
        process = self._process(name)
        process.target.set_stopped(name, stopped=False)
        process.order(Order.START, name)

    def stop(self, name: str) -> None:
        process = self._process(name)
        process.target.set_stopped(name, stopped=True)
        process.order(Order.STOP, name)

    def resolve(self, name: str, resolution: str) -> None:
        process = self._process(name)
        state = process.statuses.get(name, {}).get("state")
        if state is None:
            raise ChannelCommandRefused(
                f"AMQ8148E: The channel process of {process.target.name} is starting; try again."
            )
        if state not in _AT_REST:
            raise ChannelCommandRefused(f"AMQ8148E: Channel {name} is {state}: STOP CHANNEL({name}) first.")
        process.resolutions.pop(name, None)
        process.order(Order.RESOLVE, name, resolution=resolution.lower())

    def shown(self, name: str) -> Shown:
        process = self._process(name)
        queue = self._queue(process, name)
        status: dict[str, Any] = process.statuses.get(name, {})
        doubtful = status.get("in_doubt") or {"batch": 0, "messages": []}
        problem = status.get("problem") or {"reason_code": 0, "text": ""}
        state = status.get("state", "stopped" if process.target.is_stopped(name) else "starting")
        return {
            "CHSTATUS": quoted(name),
            "CHLTYPE": "SDR" if queue in process.target.transmission_queues else "RCVR",
            "STATUS": quoted(state.upper()),
            "SINCE": quoted(time_text(status.get("since_us", 0))),
            "RQMNAME": quoted(status.get("queue_manager") or process.target.queue_manager_name),
            "QMID": quoted(status.get("identifier", "")),
            "QUEUE": quoted(queue.name),
            "CURDEPTH": str(queue.depth),
            "CURBYTES": str(queue.waiting_bytes),
            "BATCHES": str(status.get("batch", 0)),
            "MSGS": str(status.get("messages", 0)),
            "BYTES": str(status.get("message_bytes", 0)),
            "DEADMSGS": str(status.get("dead_letters", 0)),
            "DUPMSGS": str(status.get("dropped", 0)),
            "INDOUBT": "YES" if doubtful["batch"] else "NO",
            "DOUBTMSGS": quoted(_ranges(doubtful["messages"])),
            "REASON": str(problem["reason_code"]),
            "PROBLEM": quoted(" ".join(problem["text"].split())),
            "RETRYTIM": quoted(time_text(status.get("next_retry_us", 0))),
            "RESOLVED": quoted(process.resolutions.get(name, "")),
        }

    # -- inside --------------------------------------------------------------------------------------------------------

    def _process(self, name: str) -> TargetProcess:
        return next(process for process in self._processes if name in process.names)

    def _queue(self, process: TargetProcess, name: str) -> Queue:
        """The queue here that the channel gets from or puts on."""
        target = process.target
        for shard, queue in enumerate(target.transmission_queues):
            if name == outbound_channel(target.name, shard):
                return queue
        return self._subscriber_queue if name == subscriber_channel(target.name) else self._reply_queue


def _ranges(messages: list[int | str]) -> str:
    """Numbers as ranges, such as 4709-4711 4720. MsgIds of others stay as they are."""
    numbers = sorted(message for message in messages if isinstance(message, int))
    starts = [number for before, number in pairwise([-1, *numbers]) if number != before + 1]
    ends = [number for number, after in pairwise([*numbers, 0]) if after != number + 1]
    ranges = [str(first) if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True)]
    text = " ".join([*ranges, *(message for message in messages if isinstance(message, str))])
    return text if len(text) <= _LONGEST_LIST_CHARACTERS else text[:_LONGEST_LIST_CHARACTERS] + " ..."

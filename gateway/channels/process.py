"""The channel process of one target: `python -m gateway.channels`, started by the daemon.

It is a process of its own so that a crash or a hang in IBM's library never touches a sensor. It reaches the store as
any application does, over the socket, and the target's queue manager through mq_adapters.ibm_mq: one channel, one
thread, one connection there. The settings are the first line on standard input (protocol.py). The process ends when its
input is closed, when the daemon is gone, or at SIGTERM. Then no batch is in doubt, unless a call to the queue manager
hangs.
"""

import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from gateway import log
from gateway.channels.asking import tell_states
from gateway.channels.channel_thread import ChannelThread
from gateway.channels.connections import Connections, ConnectRemote, connect_ibm_mq
from gateway.channels.names import outbound_channel, reply_channel, subscriber_channel
from gateway.channels.protocol import LONGEST_LINE_BYTES, Order, ProcessSettings, object_of
from gateway.channels.reports import Reports
from gateway.config.queue_names import state_queue_name, transmission_queue_name
from gateway.private_process import forbid_inspection
from mq_adapters.channel import (
    Inbound,
    InboundSettings,
    LocalStates,
    Outbound,
    OutboundSettings,
    Resolution,
    ResolutionRefused,
    RetrySchedule,
    resolve,
)
from mq_adapters.channel.clock import Clock
from mq_adapters.channel.state_message import Batch, MalformedState
from mq_adapters.plausible_clock import BOUND_US, PlausibleClock
from mq_adapters.reasons import QueueManagerError

#: How long a process that is told to end waits for its channels, seconds.
END_WAIT_S: Final = 4.0
#: Time between two reports of counts, and between two checks that the daemon lives, seconds.
_TURN_S: Final = 1.0
_READ_BYTES: Final = 65_536

_log = logging.getLogger(__name__)


class Process:
    """The channels of one target, and the operator's orders to them."""

    def __init__(self, settings: ProcessSettings, reports: Reports, connect: ConnectRemote) -> None:
        self._settings = settings
        self._reports = reports
        self._connections = Connections(settings, reports, connect)
        self._clock = Clock(now_us=PlausibleClock(settings.now_us, late_us=BOUND_US).now_us)
        #: Set by a channel that has lost the store.
        self.is_over = threading.Event()
        self._transmission_queues = {
            outbound_channel(settings.target.name, shard): transmission_queue_name(settings.target.name, shard)
            for shard in range(settings.shards)
        }
        channels: tuple[Outbound | Inbound, ...] = (*self._outbound(), *self._inbound())
        self._threads = {
            channel.name: ChannelThread(
                channel, is_stopped=channel.name in settings.stopped, on_store_lost=self.is_over.set
            )
            for channel in channels
        }

    def begin(self) -> None:
        """Reports the state of each channel, and starts those that may run. QueueManagerError 2059 without a store."""
        with self._connections.local() as store:
            self._reports.gateway = store.incarnation
            doubtful = _doubtful(LocalStates(store))
            for name, thread in self._threads.items():
                self._reports.stands(name, thread.channel.status, doubtful.get(name))
        for thread in self._threads.values():
            thread.begin()

    def obey(self, line: bytes) -> None:
        """Carries out one order. Any other line is a defect of the daemon, and is logged."""
        try:
            said = object_of(line)
            order, thread = Order(said["order"]), self._threads[said["channel"]]
            resolution = Resolution(said["resolution"]) if order is Order.RESOLVE else None
        except (ValueError, KeyError, TypeError) as error:
            _log.error("order not understood reason=%s", repr(error))
            return
        if order is Order.START:
            thread.start()
        elif order is Order.STOP:
            thread.stop()
        elif resolution is not None:
            self._resolve(thread, resolution)

    def end(self) -> bool:
        """Ends every channel. False if one did not end in time because a call hangs."""
        for thread in self._threads.values():
            thread.end()
        deadline_s = time.monotonic() + END_WAIT_S
        left = [
            name
            for name, thread in self._threads.items()
            if not thread.has_ended(max(0.0, deadline_s - time.monotonic()))
        ]
        for name in left:
            _log.warning("channel left behind channel=%s waited_s=%s", name, END_WAIT_S)
        return not left

    # -- inside --------------------------------------------------------------------------------------------------------

    def _resolve(self, thread: ChannelThread, resolution: Resolution) -> None:
        name = thread.channel.name
        if thread.is_running:
            self._reports.resolved(name, succeeded=False, text="the channel runs; stop it first")
            return
        try:
            with self._connections.local() as store:
                transmission_queue = self._transmission_queues.get(name, "")
                _, removed = resolve(store, resolution, channel=name, transmission_queue=transmission_queue)
        except (ResolutionRefused, MalformedState, QueueManagerError) as error:
            self._reports.resolved(name, succeeded=False, text=str(error))
            return
        _log.warning("channel resolved channel=%s resolution=%s removed=%s", name, resolution.value, len(removed))
        text = f"{resolution.value}, {len(removed)} messages removed from the transmission queue"
        self._reports.resolved(name, succeeded=True, text=text)

    def _outbound(self) -> Iterator[Outbound]:
        target = self._settings.target
        state_queues = [state_queue_name(target.state_queue, shard) for shard in range(self._settings.shards)]
        for state_queue, (name, transmission_queue) in zip(
            state_queues, self._transmission_queues.items(), strict=True
        ):
            settings = OutboundSettings(
                channel=name,
                transmission_queue=transmission_queue,
                remote_state_queue=state_queue,
                protected_queues=frozenset(state_queues),
                batch_messages=target.batch_messages,
                batch_bytes=target.batch_bytes,
                batch_idle_s=target.batch_idle_ms / 1000,
                retry=RetrySchedule(delays_s=target.retry_s),
            )
            yield Outbound(
                settings,
                connect_local=self._connections.local,
                connect_remote=partial(self._connections.remote, name),
                listener=self._reports,
                clock=self._clock,
            )

    def _inbound(self) -> Iterator[Inbound]:
        target = self._settings.target
        queues = (
            (subscriber_channel(target.name), target.subscriber_queue, self._settings.subscriber_queue),
            (reply_channel(target.name), target.reply_queue, self._settings.reply_queue),
        )
        for name, remote_queue, local_queue in queues:
            settings = InboundSettings(
                channel=name,
                remote_queue=remote_queue,
                local_queue=local_queue,
                batch_messages=target.batch_messages,
                batch_bytes=target.batch_bytes,
                batch_idle_s=target.batch_idle_ms / 1000,
                retry=RetrySchedule(delays_s=target.retry_s),
            )
            yield Inbound(
                settings,
                connect_local=self._connections.local,
                connect_remote=partial(self._connections.remote, name),
                listener=self._reports,
                clock=self._clock,
            )


class Lines:
    """Lines of standard input, as they come; None at its end. A signal, too, ends a wait for them."""

    def __init__(self) -> None:
        self.is_asked_to_end = False
        self._input = sys.stdin.fileno()
        self._pending = b""
        self._wake, wake_writer = os.pipe()
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal also sends it to the gateway, which ends this process

    def wait(self, seconds: float) -> list[bytes] | None:
        """The lines that came within that time; None if no more will come, or if the process should end."""
        ready, _, _ = select.select([self._input, self._wake], [], [], seconds)
        if self.is_asked_to_end:
            return None
        if self._input not in ready:
            return []
        data = os.read(self._input, _READ_BYTES)
        if not data or len(self._pending) > LONGEST_LINE_BYTES:
            return None
        *lines, self._pending = (self._pending + data).split(b"\n")
        return lines

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.is_asked_to_end = True


def _doubtful(states: LocalStates) -> Mapping[str, Batch | None]:
    """The batches in doubt by channel. A channel itself reports a state that cannot be read."""
    try:
        return {state.channel: state.doubtful for state in states.all()}
    except MalformedState:
        return {}


def run(connect: ConnectRemote = connect_ibm_mq) -> int:
    """The process. Exit 0: it was told to end; 1: the store has gone, or there were no settings."""
    forbid_inspection()  # the settings name passwords of queue managers
    parent = os.getppid()
    lines = Lines()
    received = _first(lines)
    if not received:
        return 0
    try:
        settings = ProcessSettings.from_line(received[0])
    except ValueError as error:
        _log.error("settings not understood reason=%s", str(error))
        return 1
    log.configure(settings.log_level, settings.log_format)
    if settings.ask_s:
        return tell_states(settings, connect, _writer())
    reports = Reports(_writer())
    process = Process(settings, reports, connect)
    try:
        process.begin()
    except QueueManagerError as error:
        _log.warning("store not reached target=%s reason=%s", settings.target.name, str(error))
        return 1
    _serve(process, reports, lines, received[1:], parent)
    has_ended = process.end()
    reports.flush()
    if not has_ended:
        os._exit(1)  # a normal exit would wait for a thread whose call hangs
    return int(process.is_over.is_set())


def _first(lines: Lines) -> list[bytes]:
    """The first lines; none if the end comes before them."""
    while (received := lines.wait(_TURN_S)) is not None:
        if received:
            return received
    return []


def _serve(process: Process, reports: Reports, lines: Lines, orders: list[bytes], parent: int) -> None:
    received: list[bytes] | None = orders
    while received is not None and not process.is_over.is_set() and os.getppid() == parent:
        for line in received:
            process.obey(line)
        reports.flush()
        received = lines.wait(_TURN_S)


def _writer() -> Callable[[bytes], None]:
    """Writes to standard output. If nobody reads it any more, the process is about to end, so errors are ignored."""
    output = sys.stdout.fileno()

    def write(line: bytes) -> None:
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(output, view) :]
        except OSError:
            return

    return write

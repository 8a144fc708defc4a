"""A channel in its thread: it runs while it may, rests when it is stopped, and tells when the store has gone."""

import threading
from collections.abc import Callable, Iterator

import pytest

from gateway.channels.channel_thread import ChannelThread
from mq_adapters.channel import ChannelState, ChannelStatus

STEP_S = 60.0


class Channel:
    """A channel that runs until it is stopped, or told how to end."""

    name = "CENTRAL.OUT.0"

    def __init__(self) -> None:
        self.status = ChannelStatus(channel=self.name)
        self.began = threading.Semaphore(0)
        self.rested = threading.Semaphore(0)
        self.ends_with: ChannelState | None = None
        self.error: Exception | None = None
        #: What happens between the status that tells its end and that end.
        self.last: Callable[[], None] = lambda: None

    def run(self, stop: threading.Event) -> None:
        self.status = ChannelStatus(channel=self.name, state=ChannelState.RUNNING)
        self.began.release()
        if self.error is not None:
            raise self.error
        if self.ends_with is None:
            stop.wait(STEP_S)
        self.status = ChannelStatus(channel=self.name, state=self.ends_with or ChannelState.STOPPED)
        self.last()
        self.rested.release()


@pytest.fixture
def lost() -> threading.Event:
    return threading.Event()


@pytest.fixture
def thread_of(lost: threading.Event) -> Iterator[Callable[..., ChannelThread]]:
    threads: list[ChannelThread] = []

    def begun(channel: Channel, *, is_stopped: bool = False) -> ChannelThread:
        threads.append(ChannelThread(channel, is_stopped=is_stopped, on_store_lost=lost.set))
        threads[-1].begin()
        return threads[-1]

    yield begun
    for thread in threads:
        thread.end()
        assert thread.has_ended(STEP_S)


def test_a_channel_is_stopped_and_started_again(thread_of, lost):
    channel = Channel()
    thread = thread_of(channel)
    assert channel.began.acquire(timeout=STEP_S)
    thread.stop()
    assert channel.rested.acquire(timeout=STEP_S)
    assert not thread.is_running
    thread.start()
    assert channel.began.acquire(timeout=STEP_S)
    assert thread.is_running
    assert not lost.is_set()


def test_a_channel_that_the_operator_stopped_does_not_begin(thread_of):
    channel = Channel()
    thread = thread_of(channel, is_stopped=True)
    assert not thread.is_running
    thread.start()
    assert channel.began.acquire(timeout=STEP_S)


def test_a_channel_that_must_not_go_on_rests_until_it_is_started(thread_of, lost):
    channel = Channel()
    channel.ends_with = ChannelState.FAILED
    thread = thread_of(channel)
    assert channel.rested.acquire(timeout=STEP_S)
    assert channel.began.acquire(timeout=STEP_S)
    assert not channel.began.acquire(timeout=0.05)
    assert not lost.is_set()
    thread.start()
    assert channel.rested.acquire(timeout=STEP_S)


def test_a_channel_that_is_started_when_its_failure_is_known_runs_again_once(thread_of):
    channel = Channel()
    channel.ends_with = ChannelState.FAILED
    threads: list[ChannelThread] = []
    is_known = threading.Event()

    def start_once() -> None:
        assert is_known.wait(STEP_S)
        if len(threads) == 1:
            threads.pop().start()

    channel.last = start_once
    threads.append(thread_of(channel))
    is_known.set()
    for _ in range(2):
        assert channel.rested.acquire(timeout=STEP_S)
    assert not channel.rested.acquire(timeout=0.05)


def test_a_channel_that_ends_by_itself_has_lost_the_store(thread_of, lost):
    channel = Channel()
    channel.ends_with = ChannelState.STOPPED
    thread_of(channel)
    assert lost.wait(STEP_S)


def test_a_channel_that_breaks_ends_the_process(thread_of, lost):
    channel = Channel()
    channel.error = ZeroDivisionError("a defect")
    thread_of(channel)
    assert lost.wait(STEP_S)

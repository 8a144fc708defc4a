"""The status of a channel. Its runner can read it, and the log has each change."""

import logging
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from mq_adapters.channel.clock import Clock
from mq_adapters.channel.in_doubt import StartAction
from mq_adapters.channel.state_message import Batch, own_sequence

_log = logging.getLogger(__name__)
_US_OF_A_SECOND = 1_000_000


class ChannelState(StrEnum):
    """The state of a channel, in an operator's words."""

    CONNECTING = "connecting"
    #: Waits until nobody else has the exclusive queue open.
    FENCING = "fencing"
    RUNNING = "running"
    #: Tries again later.
    WAITING = "waiting"
    #: Tries again later. Nobody knows yet whether the last batch took place.
    IN_DOUBT = "in doubt"
    STOPPED = "stopped"
    #: Does not try again, because an operator must act.
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelProblem:
    """Why a channel does not run. `reason_code` is an MQRC_* number; 0 if the channel itself refuses to go on.

    `cause` is the cause of that mismatch (in_doubt.MismatchCause), "" for any other problem.
    """

    reason_code: int
    text: str
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelStatus:
    """A channel at one moment. Times are microseconds since 1970, UTC.

    `batch` is the last settled one; `messages`, `message_bytes`, `dead_letters` and `dropped` count since `run` began.
    `problem` is the last one, even if it is over. `next_retry_us` is 0 if no retry is due.
    """

    channel: str
    state: ChannelState = ChannelState.STOPPED
    since_us: int = 0
    queue_manager: str = ""
    identifier: str = ""
    batch: int = 0
    messages: int = 0
    message_bytes: int = 0
    #: Messages that were refused for good: dead letters here, and inbound also messages that were put aside there.
    dead_letters: int = 0
    #: Messages of a doubtful batch that came again, on the way in.
    dropped: int = 0
    in_doubt: Batch | None = None
    problem: ChannelProblem | None = None
    next_retry_us: int = 0

    def as_dict(self, gateway: bytes = b"") -> dict[str, object]:
        """The fields of a line of JSON. Messages in doubt are sequence numbers of that incarnation, or hex digits."""
        doubtful, problem = self.in_doubt, self.problem
        return {
            "channel": self.channel,
            "state": self.state.value,
            "since_us": self.since_us,
            "queue_manager": self.queue_manager,
            "identifier": self.identifier,
            "batch": self.batch,
            "messages": self.messages,
            "message_bytes": self.message_bytes,
            "dead_letters": self.dead_letters,
            "dropped": self.dropped,
            "in_doubt": None
            if doubtful is None
            else {
                "batch": doubtful.number,
                "messages": [own_sequence(each, gateway) or each.hex() for each in doubtful.messages],
            },
            "problem": None
            if problem is None
            else {"reason_code": problem.reason_code, "text": problem.text, "cause": problem.cause},
            "next_retry_us": self.next_retry_us,
        }


class ChannelListener(Protocol):
    """The runner of a channel. The channel's thread calls it. Its methods must be quick, and must not raise."""

    def status_changed(self, status: ChannelStatus) -> None:
        """Called for each new state, and for each batch."""
        ...

    def queue_manager_changed(self, channel: str, *, before: str, now: str) -> None:
        """The channel is about to go on at another queue manager, by its identifier; `before` is blank the first time.

        Subscriptions and retained publications are missing there, so the runner registers all of them again. This call
        comes before the note in the store, so it may come again after a crash.
        """
        ...

    def action_taken(self, channel: str, action: StartAction, *, batch: int, messages: int) -> None:
        """The batch that was in doubt is settled, because the channel began again.

        Outbound, `messages` were removed from the transmission queue. Inbound, so many are dropped when they come
        again.
        """
        ...


class StatusBoard:
    """Holds a channel's status, tells the listener of each change, and logs a state or problem once."""

    def __init__(self, channel: str, listener: ChannelListener, clock: Clock) -> None:
        self.status = ChannelStatus(channel=channel)
        self._listener = listener
        self._clock = clock
        self._logged: tuple[ChannelState, int, str] | None = None

    def begin(self) -> None:
        """Begins the status of a new run. Its counts begin at 0."""
        self.status = ChannelStatus(channel=self.status.channel)

    def enter(
        self,
        state: ChannelState,
        *,
        problem: ChannelProblem | None = None,
        delay_s: float = 0.0,
        in_doubt: Batch | None = None,
    ) -> None:
        now_us = self._clock.now_us()
        is_new = state is not self.status.state
        self._change(
            state=state,
            since_us=now_us if is_new else self.status.since_us,
            problem=problem or self.status.problem,
            next_retry_us=now_us + int(delay_s * _US_OF_A_SECOND) if delay_s else 0,
            in_doubt=in_doubt,
        )
        if state is not ChannelState.CONNECTING:
            self._log_once(state, problem)

    def connected(self, queue_manager: str, identifier: str, *, batch: int) -> None:
        self._change(queue_manager=queue_manager, identifier=identifier, batch=batch)

    def settled(self, batch: int, *, messages: int, message_bytes: int, dead_letters: int = 0) -> None:
        status = self.status
        self._change(
            batch=batch,
            messages=status.messages + messages,
            message_bytes=status.message_bytes + message_bytes,
            dead_letters=status.dead_letters + dead_letters,
        )

    def counted(self, *, dead_letters: int, dropped: int) -> None:
        """Counts the messages of a batch that ended elsewhere. Without messages it tells nobody."""
        status = self.status
        if dead_letters or dropped:
            self._change(dead_letters=status.dead_letters + dead_letters, dropped=status.dropped + dropped)

    def started(self, action: StartAction, *, batch: int, messages: int) -> None:
        text = "channel_started channel=%s action=%r batch=%d messages=%d"
        _log.info(text, self.status.channel, action.value, batch, messages)
        self._listener.action_taken(self.status.channel, action, batch=batch, messages=messages)

    def queue_manager_changed(self, before: str, now: str) -> None:
        _log.info("channel pinned channel=%s before=%r now=%r", self.status.channel, before, now)
        self._listener.queue_manager_changed(self.status.channel, before=before, now=now)

    def _change(self, **changes: object) -> None:
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]  # the fields of ChannelStatus
        self._listener.status_changed(self.status)

    def _log_once(self, state: ChannelState, problem: ChannelProblem | None) -> None:
        """Logs a state or reason only when it changes, so a channel that tries for hours logs once."""
        news = state, problem.reason_code if problem else 0, problem.text if problem and not problem.reason_code else ""
        if news == self._logged:
            return
        self._logged = news
        level = logging.INFO if problem is None else logging.WARNING
        text = "" if problem is None else problem.text
        _log.log(level, "channel_state_changed channel=%s state=%r problem=%r", self.status.channel, state.value, text)

"""One socket to a queue manager: what is asked is sent, and what answers it is waited for.

One thread asks. Between its calls another thread sends a heartbeat now and then, so that the queue manager knows that
the client lives, and the client notices a queue manager that does not. All bytes pass under one lock.
"""

import contextlib
import logging
import socket
import threading
import weakref
from collections import deque
from time import monotonic
from typing import Final

from mq_adapters.client_channel.client import ClientConnection, ClientPhase
from mq_adapters.client_channel.client_events import ClientEvent, Ended, HeartbeatAnswered
from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.client_channel.events import HeartbeatAsked, Violated
from mq_adapters.native.refusal import Refusal, reason_of
from mq_adapters.reasons import ReasonCode

#: The longest that anything is waited for, in seconds, heartbeats or not. No get waits longer than a second
#: (mq_adapters/ibm_mq/getting.py), and a commit is a matter of milliseconds.
LONGEST_CALL_S: Final = 300.0
_PIECE_BYTES: Final = 65_536
_SILENT: Final = "the queue manager does not answer"
#: A heartbeat that is agreed as never, or as more than this many seconds, is sent after this time.
_MOST_HEARTBEAT_S: Final = 60.0

_log = logging.getLogger(__name__)


class Line:
    """A socket and the protocol on it. Raises Refusal 2009 once it is lost, and from then on."""

    def __init__(self, connected: socket.socket, protocol: ClientConnection) -> None:
        self.protocol = protocol
        self._socket = connected
        self._lock = threading.Lock()
        self._events: deque[ClientEvent] = deque()
        self._why_lost = ""
        #: Seconds of silence after which the queue manager is asked whether it is there, and until that is answered.
        self._patience_s = _MOST_HEARTBEAT_S
        self._pulse: _Pulse | None = None
        weakref.finalize(self, connected.close)

    def ask(self, data: bytes, *, limit_s: float = LONGEST_CALL_S) -> ClientEvent:
        """Sends these bytes, and gives the event that answers them. Raises Refusal."""
        with self._lock:
            self._send(data)
            deadline = monotonic() + limit_s
            while (event := self._next_event(deadline)) is None:
                pass
            return event

    def tell(self, data: bytes) -> None:
        """Sends what has no answer. Raises Refusal."""
        with self._lock:
            self._send(data)

    def begin_heartbeats(self, heartbeat_s: float) -> None:
        """From now on the line is never silent for longer than this."""
        self._patience_s = min(heartbeat_s, _MOST_HEARTBEAT_S) or _MOST_HEARTBEAT_S
        self._pulse = _Pulse(weakref.ref(self), self._patience_s)

    def beat(self) -> bool:
        """Asks for a sign of life if no call is under way; False once the line is lost."""
        if not self._lock.acquire(blocking=False):
            return True
        try:
            if not self._why_lost:
                self._exchange_heartbeats()
        except Refusal as error:
            _log.warning("connection lost between calls reason=%s", str(error))
        finally:
            self._lock.release()
        return not self._why_lost

    def take_what_came(self) -> None:
        """Goes through what came behind the last answer. Raises Refusal if the queue manager has ended the line."""
        with self._lock:
            while self._events:
                self._next_event(monotonic())

    def close(self, goodbye: bytes = b"") -> None:
        """Says goodbye, if the line still stands, and closes it."""
        if self._pulse is not None:
            self._pulse.end()
        with self._lock:
            if goodbye and not self._why_lost:
                with contextlib.suppress(Refusal):
                    self._send(goodbye)
            self._why_lost = self._why_lost or "it is closed"
            self.protocol.close()
            self._socket.close()

    # -- inside, under the lock ----------------------------------------------------------------------------------------

    def _next_event(self, deadline: float) -> ClientEvent | None:
        """The next event that answers a call; None for one that was only between the two sides."""
        if not self._events:
            self._await_bytes(deadline)
            return None
        event = self._events.popleft()
        if isinstance(event, HeartbeatAsked):
            self._send(event.answer)
            return None
        if isinstance(event, Ended):
            raise self._ended(event)
        if isinstance(event, Violated):
            self._violated(event)
        return None if isinstance(event, HeartbeatAnswered) else event

    def _await_bytes(self, deadline: float) -> None:
        """Reads what comes. A long silence is broken by a heartbeat, and one that goes on loses the line."""
        if self._read(min(self._patience_s, deadline - monotonic())):
            return
        if monotonic() >= deadline or self.protocol.phase is not ClientPhase.OPEN:
            raise self._lost(_SILENT)
        self._send(self.protocol.heartbeat())
        if not self._read(min(self._patience_s, deadline - monotonic())):
            raise self._lost(_SILENT)

    def _exchange_heartbeats(self) -> None:
        self._send(self.protocol.heartbeat())
        deadline = monotonic() + self._patience_s
        is_answered = False
        while not is_answered:
            if not self._events and not self._read(deadline - monotonic()):
                raise self._lost(_SILENT)
            while self._events:
                is_answered = is_answered or isinstance(self._events[0], HeartbeatAnswered)
                self._next_event(deadline)

    def _read(self, limit_s: float) -> bool:
        """Reads once; False if nothing came within this time."""
        if limit_s <= 0:
            return False
        try:
            self._socket.settimeout(limit_s)
            data = self._socket.recv(_PIECE_BYTES)
        except TimeoutError:
            return False
        except OSError as error:
            raise self._lost(str(error)) from error
        if not data:
            raise self._lost("the queue manager has closed it")
        self._events += self.protocol.receive(data)
        return True

    def _send(self, data: bytes) -> None:
        if self._why_lost:
            raise Refusal(ReasonCode.MQRC_CONNECTION_BROKEN, self._why_lost)
        view = memoryview(data)
        try:
            self._socket.settimeout(self._patience_s)
            for start in range(0, len(view), _PIECE_BYTES):  # each piece has its time, as a slow network needs it
                self._socket.sendall(view[start : start + _PIECE_BYTES])
        except OSError as error:  # a TimeoutError too
            raise self._lost(str(error)) from error

    def _ended(self, event: Ended) -> Refusal:
        code = event.status.code
        name = next((each.name for each in StatusCode if each == code), "none")
        refusal = self._lost(f"the queue manager ended it, status {code} ({name})")
        is_set_up = self._pulse is not None
        return refusal if is_set_up else Refusal(reason_of(code), str(refusal))

    def _violated(self, event: Violated) -> None:
        if event.answer:
            self._send(event.answer)
        raise self._lost(f"the queue manager broke the protocol: {event.error}")

    def _lost(self, why: str) -> Refusal:
        self._why_lost = why
        self.protocol.close()
        self._socket.close()
        return Refusal(ReasonCode.MQRC_CONNECTION_BROKEN, why)


class _Pulse:
    """The thread that sends heartbeats. It does not keep its line alive: a line that is forgotten is closed."""

    def __init__(self, line: "weakref.ref[Line]", interval_s: float) -> None:
        self._line = line
        self._interval_s = interval_s
        self._is_over = threading.Event()
        threading.Thread(target=self._run, name="mq heartbeats", daemon=True).start()

    def end(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(self._interval_s):
            line = self._line()
            if line is None or not line.beat():
                return
            del line

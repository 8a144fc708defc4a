"""MQGET: takes and browses messages, whole, with their properties as an MQRFH2 in front.

A long wait consists of short ones, because neither a signal nor the end of the program interrupts a waiting MQGET. The
adapter has a buffer of its own, which grows with the messages. The packages find the right length with a second call,
which can meet another message. Data is never converted; the reader of the headers knows their character set.
"""

from collections.abc import Iterator
from time import monotonic
from typing import Any, Final

from mq_adapters.ibm_mq.constants import (
    MQGMO_BROWSE_FIRST,
    MQGMO_BROWSE_NEXT,
    MQGMO_FAIL_IF_QUIESCING,
    MQGMO_NO_SYNCPOINT,
    MQGMO_PROPERTIES_FORCE_MQRFH2,
    MQGMO_SYNCPOINT,
    MQGMO_VERSION_3,
    MQGMO_WAIT,
    MQMD_VERSION_2,
    MQMO_MATCH_CORREL_ID,
    MQMO_MATCH_MSG_ID,
    MQMO_NONE,
    MQOO_BROWSE,
    MQOO_INPUT_AS_Q_DEF,
    MQOO_INPUT_EXCLUSIVE,
    MQOO_INPUT_SHARED,
)
from mq_adapters.ibm_mq.hconn import HConn, MqiWarning
from mq_adapters.message import Message
from mq_adapters.mqmd import checked_identifier, read_delivered_mqmd
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: The longest single MQGET, in milliseconds.
LONGEST_WAIT_MS: Final = 1_000
#: The buffer of the first MQGET, in bytes. Telemetry fits, and a longer message makes it grow once.
FIRST_BUFFER_BYTES: Final = 64 * 1024
#: Open options of a queue for gets, beside the usual ones.
HELD_FOR_INPUT: Final = (MQOO_INPUT_EXCLUSIVE, MQOO_INPUT_SHARED)

_ALWAYS: Final = MQGMO_FAIL_IF_QUIESCING | MQGMO_PROPERTIES_FORCE_MQRFH2

Match = tuple[bytes | None, bytes | None]


def checked_match(msg_id: bytes | None, correl_id: bytes | None) -> Match:
    """The identifiers to match, or None for any; 2026 if an identifier does not have 24 bytes."""
    return checked_identifier(msg_id), checked_identifier(correl_id)


class Getter:
    """Gets from the queues of one connection."""

    def __init__(self, hconn: HConn) -> None:
        self._hconn = hconn
        self._buffer_bytes = FIRST_BUFFER_BYTES
        #: Handles of abandoned browses. Any thread may abandon one at any moment.
        self._abandoned: list[Any] = []

    def get(self, queue_name: str, match: Match, *, wait_s: float, in_unit: bool) -> Message:
        """The first message that matches; 2033 if none comes in time."""
        syncpoint = MQGMO_SYNCPOINT if in_unit else MQGMO_NO_SYNCPOINT
        deadline = monotonic() + wait_s
        while True:
            left_ms = max(0, round(min(deadline - monotonic(), LONGEST_WAIT_MS / 1000) * 1000))
            try:
                return self._get(queue_name, syncpoint, match, wait_ms=left_ms, most_bytes=None)
            except QueueManagerError as error:
                if error.reason_code != ReasonCode.MQRC_NO_MSG_AVAILABLE or monotonic() >= deadline:
                    raise

    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> tuple[Message, ...]:
        """Takes messages that are there now, in the unit of work. The first one may have any length."""
        batch: list[Message] = []
        left_bytes = most_bytes
        while len(batch) < max(1, most_messages) and (not batch or left_bytes >= 0):
            try:
                limit = left_bytes if batch else None
                message = self._get(queue_name, MQGMO_SYNCPOINT, (None, None), wait_ms=0, most_bytes=limit)
            except QueueManagerError as error:
                if error.reason_code == ReasonCode.MQRC_NO_MSG_AVAILABLE or (batch and _ends_a_batch(error)):
                    break
                raise
            batch.append(message)
            left_bytes -= len(message.body)
        return tuple(batch)

    def browse(self, queue_name: str, match: Match) -> Iterator[Message]:
        """Opens the queue now. The iteration reads the matching messages one by one."""
        while self._abandoned:
            self._hconn.close_handle(self._abandoned.pop())
        return self._browsed(queue_name, self._hconn.open(queue_name, MQOO_BROWSE), match)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _browsed(self, queue_name: str, handle: Any, match: Match) -> Iterator[Message]:
        is_read = False
        step = MQGMO_BROWSE_FIRST
        try:
            while True:
                try:
                    message = self._called(f"browse {queue_name}", handle, step | MQGMO_NO_SYNCPOINT, match)
                except QueueManagerError as error:
                    if error.reason_code != ReasonCode.MQRC_NO_MSG_AVAILABLE:
                        raise
                    break
                yield message
                step = MQGMO_BROWSE_NEXT
            is_read = True
            self._hconn.close_handle(handle)
        finally:
            if not is_read:
                self._abandoned.append(handle)

    def _get(self, queue_name: str, syncpoint: int, match: Match, *, wait_ms: int, most_bytes: int | None) -> Message:
        options = next((each for each in HELD_FOR_INPUT if self._hconn.is_held(queue_name, each)), MQOO_INPUT_AS_Q_DEF)
        return self._hconn.use(
            queue_name,
            options,
            lambda handle: self._called(
                f"get from {queue_name}", handle, syncpoint, match, wait_ms=wait_ms, most_bytes=most_bytes
            ),
        )

    def _called(
        self,
        operation: str,
        handle: Any,
        options: int,
        match: Match,
        *,
        wait_ms: int = 0,
        most_bytes: int | None = None,
    ) -> Message:
        """One MQGET, repeated with a larger buffer if it was too small; 2080 for more than `most_bytes`."""
        while True:
            buffer_bytes = self._buffer_bytes if most_bytes is None else min(self._buffer_bytes, most_bytes)
            mqmd, gmo = self._structures(options, match, wait_ms)
            try:
                body = self._hconn.call(operation, handle.get, buffer_bytes, mqmd, gmo)
            except MqiWarning as warning:
                if warning.reason_code != ReasonCode.MQRC_TRUNCATED_MSG_FAILED:
                    body = warning.body  # the message was taken
                elif most_bytes is not None and warning.original_length > most_bytes:
                    raise
                else:
                    self._grow(warning.original_length)
                    continue
            return read_delivered_mqmd(mqmd.pack(), body)

    def _structures(self, options: int, match: Match, wait_ms: int) -> tuple[Any, Any]:
        """A new MQMD and MQGMO, because the next get would match the fields that the last one returned in them."""
        library = self._hconn.library
        msg_id, correl_id = match
        mqmd = library.MD(Version=MQMD_VERSION_2)
        match_options = MQMO_NONE
        if msg_id is not None:
            mqmd.set(MsgId=msg_id)
            match_options |= MQMO_MATCH_MSG_ID
        if correl_id is not None:
            mqmd.set(CorrelId=correl_id)
            match_options |= MQMO_MATCH_CORREL_ID
        wait = MQGMO_WAIT if wait_ms else 0
        gmo = library.GMO(
            Version=MQGMO_VERSION_3,
            Options=options | wait | _ALWAYS,
            WaitInterval=wait_ms,
            MatchOptions=match_options,
        )
        return mqmd, gmo

    def _grow(self, original_length: int) -> None:
        """Makes the buffer long enough for a message, as a power of two. Properties may make it longer than MAXMSGL."""
        self._buffer_bytes = 1 << max(original_length, self._buffer_bytes + 1).bit_length()


def _ends_a_batch(error: QueueManagerError) -> bool:
    """Whether the next message is too long for the rest of the batch, or the unit of work is full."""
    ends = (ReasonCode.MQRC_TRUNCATED_MSG_FAILED, ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED)
    return error.reason_code in ends

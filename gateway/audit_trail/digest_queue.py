"""Digests as messages on a queue of another queue manager: an anchor that nobody on this machine can change.

A message holds the digest's bytes as text (MQSTR, UTF-8) and is persistent. Like every message for a target it waits
behind an MQXQH on the target's transmission queue. Its MsgId is made from its bytes. A file beside the trail says which
digests were sent; a crash between the commit and that file sends some a second time, with the same MsgIds.
"""

import hashlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from gateway.audit_trail.digests import Digests, read_digest
from gateway.audit_trail.durable_file import put_in_place
from mq_adapters.message import MQPER_PERSISTENT, UTF_8, Message, MessageDescriptor
from mq_adapters.transmission import transmission_message

SENT_NAME: Final = "trail-digests.sent"
#: Digests of one unit of work.
UNIT_DIGESTS: Final = 100
_FORMAT_STRING: Final = b"MQSTR   "
_TAG: Final = b"RFHB"
_HASH_BYTES: Final = 20


class TransmissionQueue(Protocol):
    """What this module needs of a queue manager."""

    name: str

    def begin(self) -> None: ...
    def put(self, queue_name: str, message: Message) -> bytes: ...
    def commit(self) -> None: ...


Connect = Callable[[], AbstractContextManager[TransmissionQueue]]


class DigestQueue:
    """Sends the digests of a trail to a queue at a target. Raises QueueManagerError, StoreError, OSError."""

    def __init__(self, trail: Path, digests: Digests, *, transmission_queue: str, queue: str, connect: Connect) -> None:
        self._digests = digests
        self._transmission_queue = transmission_queue
        self._queue = queue
        self._connect = connect
        self._note = trail.with_name(SENT_NAME)
        self._sent = _number_in(self._note)

    def has(self, digest_number: int) -> bool:
        """Whether a digest is on its way, in the store."""
        return digest_number <= self._sent

    def step(self) -> bool:
        """Sends the next digests, at most a unit of work; False if none is left."""
        until = min(self._digests.last_number, self._sent + UNIT_DIGESTS)
        if until <= self._sent:
            return False
        with self._connect() as queue_manager:
            queue_manager.begin()
            for number in range(self._sent + 1, until + 1):
                _, data = read_digest(self._digests.folder, number)
                queue_manager.put(self._transmission_queue, self._message(data, queue_manager.name))
            queue_manager.commit()
        self._sent = until
        put_in_place(self._note, (f"{until}\n".encode(),))
        return True

    def _message(self, data: bytes, own_name: str) -> Message:
        descriptor = MessageDescriptor(
            persistence=MQPER_PERSISTENT,
            format=_FORMAT_STRING,
            coded_char_set_id=UTF_8,
            msg_id=_TAG + hashlib.sha256(data).digest()[:_HASH_BYTES],
        )
        return transmission_message(
            Message(descriptor, data.rstrip(b"\n")),
            queue_name=self._queue,
            queue_manager_name="",
            own_name=own_name,
            now_us=time.time_ns() // 1000,
        )


def _number_in(path: Path) -> int:
    """The number in the note; 0 if there is no note, or it cannot be read."""
    try:
        return int(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return 0

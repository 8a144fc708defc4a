"""Countersignatures by a key that lies elsewhere, made in a thread while the trail goes on.

The writer of the trail asks for a countersignature of its last digest, and takes it when it is there (digests.py). If
the key is away, it is asked again after a pause, for the last digest at that time. A note beside the trail says which
digest was countersigned last, and why the key does not answer (its form: spark_audit/trail/witness_note.py).
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from gateway.audit_trail.durable_file import put_in_place
from gateway.audit_trail.keys.remote_key import KeyAway, RemoteKey
from spark_audit.trail.digest import late_input
from spark_audit.trail.signature import is_signature_of
from spark_audit.trail.witness_note import SIGNING_TOKEN, WitnessNote, countersignature_note_path, read_note

#: A key that failed is asked again after this, then after twice as long, up to the longest, seconds.
FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 600.0

_log = logging.getLogger(__name__)


class LateSignature(NamedTuple):
    """A countersignature (hex) of the digest with a number."""

    number: int
    signature: str


class LateSigning:
    """Asks the key of a trail, whose public half (hex) is known. The caller never waits; a thread waits for the key."""

    def __init__(
        self, key: RemoteKey, public_key: str, trail: Path, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.public_key = public_key
        self._key = key
        self._monotonic = monotonic
        self._path = countersignature_note_path(trail)
        self._note = read_note(self._path) or WitnessNote(name=SIGNING_TOKEN, kind=SIGNING_TOKEN)
        self._made: LateSignature | None = None
        self._thread: threading.Thread | None = None
        self._pause_s, self._ask_at_s = FIRST_PAUSE_S, monotonic()
        self._is_away = False

    def ask(self, number: int, sha256: str) -> None:
        """Asks for the countersignature of a digest, unless one is being made, or it is too early after a failure."""
        if self._thread is not None and not self._thread.is_alive() and self._made is None:
            self._thread = None
        if self._thread is None and self._monotonic() >= self._ask_at_s:
            self._thread = threading.Thread(target=self._sign, args=(number, sha256), name="countersigner", daemon=True)
            self._thread.start()

    def take(self) -> LateSignature | None:
        """The countersignature that was made since the last call; None if there is none."""
        made, self._made = self._made, None
        if made is not None:
            self._thread = None
        return made

    def wait(self, timeout_s: float) -> None:
        """Returns when the key has answered or failed, or the time is over."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def note(self, number: int, at_us: int) -> None:
        """The trail now has a digest with the countersignature of another digest, of that time."""
        self._keep(WitnessNote(name=SIGNING_TOKEN, kind=SIGNING_TOKEN, number=number, digest_at_us=at_us))

    def _sign(self, number: int, sha256: str) -> None:
        data = late_input(number, sha256)
        try:
            signature = self._key.sign(data)
            if not is_signature_of(self.public_key, signature, data):
                raise KeyAway(f"its signature is not that of the key {self.public_key}")
        except Exception as error:
            self._put_off(number, error)
            return
        if self._is_away:
            _log.info("countersignature made up digest=%s", number)
        self._pause_s, self._is_away = FIRST_PAUSE_S, False
        self._made = LateSignature(number, signature)

    def _put_off(self, number: int, error: Exception) -> None:
        if not self._is_away:
            _log.warning("countersignature put off digest=%s reason=%s", number, error)
        self._is_away = True
        self._ask_at_s = self._monotonic() + self._pause_s
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)
        self._keep(replace(self._note, failure=str(error)))

    def _keep(self, note: WitnessNote) -> None:
        self._note = note
        try:
            put_in_place(self._path, (note.to_bytes(),))
        except OSError:
            return  # it serves an alarm alone, and a full disk has other alarms

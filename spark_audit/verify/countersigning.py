"""The countersignatures of a trail that are there or missing, digest after digest (spark_audit/trail/digest.py).

A key in a file countersigns in the place: a digest without the countersignature that is due is wrong at once. A key in
a token or behind an agent may be away, so its countersignature comes later:

    the first one   at the latest an hour after the first digest of its chain of keys, or after the rotation that
                    brought the key. Until it comes nothing ties the chain to the key, so nothing anchors the trail.
    each other one  may come later still, because it speaks for all digests before it. The end is judged: an hour after
                    one was due it is missing.

The hour is measured by the times of the trail's digests, up to the latest one. A clock that goes back changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from spark_audit.period import second_text
from spark_audit.result import counted
from spark_audit.trail.digest import (
    COUNTERSIGNED_EVERY_US,
    KEY_IN_A_FILE,
    Digest,
    DigestKind,
    is_countersignature_due,
)

#: The last digests that a late countersignature may be of. The gateway asks for one of its last digest, and waits for
#: it for at most 600 s (audit.signing_token.timeout_s).
RECENT_DIGESTS: Final = 10_000
_MINUTE_US: Final = 60_000_000


class Flaw(NamedTuple):
    """What is wrong with a countersignature; `record` (hex) is what an auditor's policy may name, "" for nothing."""

    what: str
    is_missing: bool = False
    record: str = ""


@dataclass(slots=True)
class Countersigning:
    """What is known of the countersignatures of the digests of version 2 and later that went by."""

    #: Of the last digest that has a countersignature; None where a chain of keys, or a configured key, begins.
    last_us: int | None = None
    #: Since when a countersignature is due that comes later, and the number of the digest; None where none is.
    open_us: int | None = None
    open_number: int = 0
    #: Whether none has come yet of this key over this chain of keys.
    is_first: bool = True
    #: Countersignatures that were more than an hour late, and the latest of them.
    late: int = 0
    latest_us: int = 0
    #: The key of the digest before, and its place.
    _key: str = ""
    _place: str = ""
    #: Time and number of a rotation, until a digest says where the new key lies.
    _rotated: tuple[int, int] | None = None
    #: The latest time of a digest so far.
    _furthest_us: int = 0
    #: Hashes of the last digests that a late countersignature may still be of, by number.
    _hashes: dict[int, str] = field(default_factory=dict)

    def flaws(self, digest: Digest, sha256: str) -> Iterator[Flaw]:
        """What is wrong with the countersignature of the next digest, whose file has a hash (hex)."""
        yield from self._flaws_of_place(digest)
        if self._rotated is not None and digest.key_place != KEY_IN_A_FILE:
            self.open_us, self.open_number = self._rotated
        self._rotated = None
        if digest.kind == DigestKind.RENEWAL:
            self.is_first = True
        self._furthest_us = max(self._furthest_us, digest.until_us)
        covered = self._hashes.get(digest.countersigned_number, "")
        self._remember(digest.number, sha256)
        if digest.countersignature:
            yield from self._flaws_of_countersignature(digest, covered, sha256)
        elif is_countersignature_due(digest.kind, digest.until_us, self.last_us):
            if digest.key_place == KEY_IN_A_FILE or digest.kind == DigestKind.ROTATION:
                yield Flaw(f"it has no countersignature of {digest.countersigner}, and one is due", is_missing=True)
            elif self.open_us is None:
                self.open_us, self.open_number = digest.until_us, digest.number
        if digest.kind == DigestKind.ROTATION:
            self.is_first, self.open_us, self._rotated = True, None, (digest.until_us, digest.number)

    def at_the_end(self) -> Flaw | None:
        """What is wrong with digest `open_number`, where no more digests come."""
        if self.open_us is None or self._waited_us < COUNTERSIGNED_EVERY_US:
            return None
        return Flaw(
            f"not countersigned since {second_text(self.open_us)}: one is due, and an hour later there is none",
            is_missing=True,
        )

    @property
    def is_unbound(self) -> bool:
        """Whether nothing ties the last chain of keys to its configured key: the first countersignature is awaited."""
        return self.is_first and self.open_us is not None

    def __str__(self) -> str:
        """What is no problem and should be known; "" for nothing."""
        parts = []
        if self.open_us is not None:
            since = f"not countersigned since {second_text(self.open_us)} (digest {self.open_number})"
            parts.append(f"{since}: the token or agent was away, or somebody took countersignatures out")
        if self.late:
            minutes = counted(self.latest_us // _MINUTE_US, "minute")
            parts.append(f"{counted(self.late, 'countersignature')} came more than an hour late, the latest {minutes}")
        return "; ".join(parts)

    @property
    def _waited_us(self) -> int:
        return 0 if self.open_us is None else self._furthest_us - self.open_us

    def _flaws_of_place(self, digest: Digest) -> Iterator[Flaw]:
        """A key does not move: else a forger could say of a key in a file that it comes later."""
        if digest.countersigner == self._key and digest.key_place != self._place:
            yield Flaw(f"it says that its key lies in {digest.key_place}, and the digest before it {self._place}")
        self._key, self._place = digest.countersigner, digest.key_place

    def _flaws_of_countersignature(self, digest: Digest, covered: str, sha256: str) -> Iterator[Flaw]:
        is_late = digest.kind == DigestKind.COUNTERSIGNATURE
        is_valid = bool(covered or not is_late) and digest.is_countersigned(covered)
        if not is_valid:
            of = f"digest {digest.countersigned_number}" if is_late else "its bytes"
            yield Flaw(f"its countersignature is not that of {digest.countersigner} over {of}")
            if is_late:
                return
        if is_late and self._waited_us >= COUNTERSIGNED_EVERY_US:
            self.late += 1
            self.latest_us = max(self.latest_us, self._waited_us)
            if self.is_first:
                yield self._too_late(digest, sha256)
        signed = digest.countersigned_number or digest.number - 1  # the key behind a rotation countersigns it too
        self._hashes = {number: each for number, each in self._hashes.items() if number > signed}
        self.last_us, self.open_us, self.is_first = digest.countersigned_us, None, False

    def _too_late(self, digest: Digest, sha256: str) -> Flaw:
        minutes = counted(self._waited_us // _MINUTE_US, "minute")
        what = (
            f"not countersigned since {second_text(self.open_us or 0)}: the first countersignature of"
            f" {digest.countersigner} came {minutes} after digest {self.open_number}, and an hour is allowed; anybody"
            f' who could write here before it may have written all of it; until a policy names it: record = "{sha256}"'
        )
        return Flaw(what, is_missing=True, record=sha256)

    def _remember(self, number: int, sha256: str) -> None:
        self._hashes[number] = sha256
        if len(self._hashes) > RECENT_DIGESTS:
            del self._hashes[next(iter(self._hashes))]

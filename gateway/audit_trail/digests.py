"""The signed digests of one trail: each names the one before. The writer of the trail writes them too.

spark_audit/trail/digest.py defines a digest, and keys/key_chain.py keeps the keys that sign one each. The last digest
is read when the trail is opened; `verify` reads the others.
Threads of one process may add digests; they get their numbers in the order of the calls.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from gateway.audit_trail.durable_file import PART_SUFFIX, put_in_place
from gateway.audit_trail.keys.key_chain import KeyChain, chain_folder
from gateway.audit_trail.keys.late_signing import LateSigning
from gateway.audit_trail.keys.remote_key import KeyAway, KeyPlace, RemoteSigner, remote_key
from gateway.audit_trail.keys.signing_key import (
    check_place,
    check_token,
    next_key_path,
    owner_of,
    read_key,
    ready_key,
    take_over,
)
from gateway.config import ConfigurationError
from mq_adapters.embedded.store.files import make_folder
from mq_adapters.kernel_clock import read_clock
from mq_adapters.reasons import StoreError
from spark_audit.record import ZERO_HASH
from spark_audit.trail.digest import (
    DIGEST_FOLDER,
    KEY_IN_A_FILE,
    Digest,
    DigestKind,
    MalformedDigest,
    digest_hash,
    digest_name,
    digest_numbers,
    is_countersignature_due,
    parse_digest,
)
from spark_audit.trail.signature import Signer, public_key_of

_SEGMENT_NUMBER: Final = slice(0, 12)
#: Seconds for which a gateway that ends waits for the first countersignature of a token, as for a witness.
_FIRST_WAIT_S: Final = 10.0
#: How long a start waits for a token that hands over, seconds.
_HAND_OVER_WAIT_S: Final = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The writer: version of the program, version of the field-mapping table, SHA-256 of the configuration."""

    code_version: str = ""
    table_version: str = ""
    configuration_sha256: str = ""


NO_PROVENANCE: Final = Provenance()


def segment_number(stem: str) -> int:
    """The number of a segment, which its name begins with."""
    return int(stem[_SEGMENT_NUMBER])


def read_digest(folder: Path, number: int) -> tuple[Digest, bytes]:
    """A digest and the bytes of its file. Raises StoreError if the file holds no digest."""
    path = folder / digest_name(number)
    try:
        data = path.read_bytes()
        return parse_digest(data), data
    except (OSError, MalformedDigest) as error:
        hint = "put a copy of it there that was kept elsewhere; `rfhbridge audit verify` says what else is wrong"
        raise StoreError(f"read digest {path}", str(error), hint) from error


def key_in_force(trail: Path) -> str | None:
    """The configured key (hex) that countersigns in a trail from now on; None before a digest. Raises StoreError."""
    numbers = digest_numbers(trail / DIGEST_FOLDER)
    if not numbers:
        return None
    last, _ = read_digest(trail / DIGEST_FOLDER, numbers[-1])
    return last.key_after


def place_in_force(trail: Path) -> str:
    """The place of the configured key, as the last digest says; "" if no digest names the place of the key in force."""
    numbers = digest_numbers(trail / DIGEST_FOLDER)
    last = read_digest(trail / DIGEST_FOLDER, numbers[-1])[0] if numbers else None
    return "" if last is None or last.kind == DigestKind.ROTATION else last.key_place


class Digests:
    """The digests of the trail in a folder, to be added to. Raises StoreError, and ConfigurationError for the key.

    If the key for the next digest is lost, a digest of kind renewal says so, of the time `now_us`. `former`: the place
    of a key that hands over to that of `token`.
    """

    def __init__(
        self,
        trail: Path,
        signing_key: Path,
        provenance: Provenance,
        *,
        now_us: int,
        token: KeyPlace | None = None,
        former: KeyPlace | None = None,
    ) -> None:
        self.folder = trail / DIGEST_FOLDER
        self._provenance = provenance
        self._key_path = signing_key
        self._lock = threading.Lock()
        self._last: Digest | None = None
        self._last_bytes = b""
        #: Why a next key was not taken, in the words of the log.
        self._refusal = ""
        make_folder(self.folder)
        for left in self.folder.glob(f"*{PART_SUFFIX}"):
            left.unlink()
        self._numbers = digest_numbers(self.folder)
        if self._numbers:
            self._last, self._last_bytes = read_digest(self.folder, self._numbers[-1])
        #: The configured key in a file; None if it is in a token.
        self._signer: Signer | None = None
        self._key_place = KEY_IN_A_FILE if token is None else token.type
        self._late = None if token is None else LateSigning(remote_key(token), token.public_key, trail)
        self.last_segment_number = next(
            (segment_number(each.segment) for each in self.backwards() if each.kind == DigestKind.SEGMENT), 0
        )
        due = "" if self._last is None else self._last.next_public_key
        self._chain = KeyChain(chain_folder(trail), self.last_number + 1, due)
        #: Time of the last digest with a countersignature; None if a chain of keys, or a configured key, begins.
        self._countersigned_us: int | None = None
        #: Whether a countersignature is due that comes later.
        self._is_awaited = False
        if due:
            self._look_for_countersignatures()
        in_force = key_in_force(trail)
        if token is not None and former is not None and in_force == former.public_key != token.public_key:
            self._hand_over_between(former, token, trail, now_us)
        elif token is None:
            self._signer = ready_key(signing_key, in_force)
            self._countersigner = self._signer.public_key
        else:
            self._countersigner = token.public_key
            self._hand_over_to(token.public_key, in_force, now_us)
        check_place(self._countersigner, self._key_place, in_force, place_in_force(trail))
        if self._chain.is_broken and self._last is not None:
            _log.warning("chain of keys begun anew digest=%s reason=its key is not there", self.last_number + 1)
            self._add_of_moment(DigestKind.RENEWAL, now_us, {})

    @property
    def head(self) -> str:
        """Hash of the last record that a digest covers."""
        return ZERO_HASH if self._last is None else self._last.head

    @property
    def until_us(self) -> int:
        """The end of the time that the last digest covers, microseconds since 1970; 0 before the first."""
        return 0 if self._last is None else self._last.until_us

    @property
    def last_number(self) -> int:
        """The number of the last digest; 0 before the first."""
        return 0 if self._last is None else self._last.number

    def backwards(self) -> Iterator[Digest]:
        """Every digest, the newest first. Damaged ones are left out: `verify` finds them."""
        for number in reversed(self._numbers.copy()):
            try:
                yield read_digest(self.folder, number)[0]
            except StoreError:
                continue

    # -- adding --------------------------------------------------------------------------------------------------------

    def add_segment(self, facts: dict[str, Any]) -> None:
        """A segment is about to be closed; `facts` are the fields of its digest."""
        with self._lock:
            self._add(DigestKind.SEGMENT, facts)
            self.last_segment_number = segment_number(facts["segment"])

    def add_interval(self, gateway: str, *, from_us: int, until_us: int) -> None:
        """Nothing was written in that time."""
        facts = {"gateway": gateway, "from_us": from_us, "until_us": max(from_us, until_us), "head": self.head}
        with self._lock:
            self._add(DigestKind.INTERVAL, facts)

    def add_retention(self, segment: str, *, now_us: int, keep_us: int, allowed_by: str) -> None:
        """That segment and the older ones are about to be removed. A setting allows it after `keep_us`."""
        with self._lock:
            self._add_of_moment(
                DigestKind.RETENTION, now_us, {"segment": segment, "keep_us": keep_us, "allowed_by": allowed_by}
            )

    def countersign_late(self, now_us: int) -> None:
        """Asks a token for the countersignature that is due, and adds it when it is there; waits for nothing."""
        if self._late is None:
            return
        with self._lock:
            if (made := self._late.take()) is not None:
                facts = {"countersigned_number": made.number, "countersignature": made.signature}
                self._add_of_moment(DigestKind.COUNTERSIGNATURE, now_us, facts)
                self._late.note(made.number, now_us)
            if self._is_awaited and self._last is not None:
                self._late.ask(self._last.number, digest_hash(self._last_bytes))

    def await_first_countersignature(self, now_us: Callable[[], int]) -> None:
        """Waits a short time for a token's first countersignature, without which the trail is bound to no key.

        A gateway that ends soon signs its first digest at its end. The next start may come too late.
        """
        if self._late is not None and self._is_awaited and self._countersigned_us is None:
            self.countersign_late(now_us())
            self._late.wait(_FIRST_WAIT_S)
            self.countersign_late(now_us())

    def _hand_over_to(self, public_key: str, in_force: str | None, now_us: int) -> None:
        """The key in a file countersigns, once, that the token's key takes over. Raises ConfigurationError."""
        if in_force not in (None, public_key):
            self._signer = check_token(self._key_path, public_key, in_force)
            self._countersigner, place, self._key_place = str(in_force), self._key_place, KEY_IN_A_FILE
            facts = {"new_public_key": public_key, "allowed_by": "audit.signing_token"}
            self._add_of_moment(DigestKind.ROTATION, now_us, facts)
            self._signer, self._countersigner, self._key_place = None, public_key, place

    def _hand_over_between(self, former: KeyPlace, token: KeyPlace, trail: Path, now_us: int) -> None:
        """A token countersigns that another one takes over. If it is away, it stays in force until the next start."""
        asked = replace(former, timeout_s=min(former.timeout_s, _HAND_OVER_WAIT_S))
        self._countersigner, self._key_place = former.public_key, former.type
        try:
            if self._chain.is_broken:
                raise KeyAway("the chain of keys begins anew first")
            self._signer = RemoteSigner(remote_key(asked), former.public_key)
            facts = {"new_public_key": token.public_key, "allowed_by": "audit.former_signing_token"}
            self._add_of_moment(DigestKind.ROTATION, now_us, facts)
            self._countersigner, self._key_place = token.public_key, token.type
        except KeyAway as error:
            _log.warning("hand-over put off key=%s reason=%s", former.public_key, error)
            self._late = LateSigning(remote_key(former), former.public_key, trail)
        finally:
            self._signer = None

    def rotate_if_asked(self, now_us: int) -> bool:
        """Hands over to the next key beside the one in force. Returns whether there was a usable next key."""
        following = None if self._signer is None else self._following_key()
        if following is None:
            return False
        with self._lock:
            if self._last is not None and following.public_key != self._countersigner:
                operator = owner_of(next_key_path(self._key_path))
                facts = {"new_public_key": following.public_key, "allowed_by": operator}
                self._add_of_moment(DigestKind.ROTATION, now_us, facts)
            self._signer = take_over(self._key_path)
            self._countersigner = self._signer.public_key
        return True

    def _following_key(self) -> Signer | None:
        """The next key. If it cannot be used, the log says so once, and the trail goes on with the key in force."""
        path = next_key_path(self._key_path)
        if not path.exists():
            return None
        try:
            following = read_key(path)
            problem = "" if os.access(path.parent, os.W_OK) else f"{path.parent} cannot be written"
        except ConfigurationError as error:
            problem = str(error)
        if problem and problem != self._refusal:
            _log.error("signing key not handed over reason=%s", problem)
        self._refusal = problem
        return None if problem else following

    def _look_for_countersignatures(self) -> None:
        """Time of the last countersignature, and whether one has been due since."""
        since: list[Digest] = []
        for each in self.backwards():
            if each.countersignature:
                self._countersigned_us = each.countersigned_us
                self._is_awaited = each.kind == DigestKind.ROTATION
                break
            since.append(each)
        for each in since:
            self._is_awaited |= is_countersignature_due(each.kind, each.until_us, self._countersigned_us)

    def _add_of_moment(self, kind: DigestKind, now_us: int, facts: dict[str, Any]) -> None:
        assert self._last is not None, "it speaks of digests before it"
        said = {"gateway": self._last.gateway, "from_us": now_us, "until_us": now_us, "head": self.head}
        self._add(kind, said | facts)

    def _add(self, kind: DigestKind, facts: dict[str, Any]) -> None:
        """Signs a digest with a key of its own, which is destroyed (keys/key_chain.py says in which steps)."""
        provenance, clock = self._provenance, read_clock()
        digest = Digest(
            number=self.last_number + 1,
            kind=kind,
            previous=digest_hash(self._last_bytes) if self._last_bytes else ZERO_HASH,
            code_version=provenance.code_version,
            table_version=provenance.table_version,
            configuration_sha256=provenance.configuration_sha256,
            clock_state=clock.state,
            clock_maximum_error_us=clock.maximum_error_us,
            clock_estimated_error_us=clock.estimated_error_us,
            public_key=public_key_of(self._chain.key),
            next_public_key=self._chain.following,
            countersigner=self._countersigner,
            key_place=self._key_place,
            **facts,
        )
        is_due = is_countersignature_due(kind, digest.until_us, self._countersigned_us)
        if is_due and self._signer is not None:
            digest = digest.countersigned(self._signer)
        digest = digest.signed(self._chain.key)
        self._write(digest)
        if digest.countersignature:
            self._countersigned_us, self._is_awaited = digest.countersigned_us, kind == DigestKind.ROTATION
        else:
            self._is_awaited |= is_due
        with _writing("destroy the key of a digest"):
            self._chain.step()

    def _write(self, digest: Digest) -> None:
        data = digest.to_bytes()
        with _writing("write a digest of the trail"):
            put_in_place(self.folder / digest_name(digest.number), (data,))
        self._last, self._last_bytes = digest, data
        self._numbers.append(digest.number)


@contextmanager
def _writing(operation: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "make room or mend the disk; the trail goes on from there"
        raise StoreError(operation, f"{error.strerror}: {error.filename or ''}", hint) from error

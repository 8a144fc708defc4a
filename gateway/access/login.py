"""Who may connect: the decision between CONNECT and CONNACK.

A password is checked in a thread (hashing), once for each new connection at most: a login that has succeeded is
remembered by a keyed digest until the user's line in the password file changes, so that a fleet that comes back after
a failure of the network is let in at once, also while somebody tries passwords.
"""

import hashlib
import hmac
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from gateway.access.hashing import HashingThreads
from gateway.access.password_hash import PasswordHash
from gateway.access.users import Users
from gateway.mqtt.events import ConnectReceived

#: Between a user name and the rest of a client identifier that is bound to it; no user name of the file holds it.
IDENTIFIER_SEPARATOR: Final = ":"


class Refusal(Enum):
    """Why a client is not let in; the bridge knows the code of each protocol level for it."""

    WRONG_CREDENTIALS = auto()
    NOT_ALLOWED = auto()
    WRONG_IDENTIFIER = auto()
    BUSY = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The client may connect, as this user; None: as nobody."""

    user: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The client may not connect; `reason` is for the log."""

    refusal: Refusal
    reason: str


Decision = Admitted | Refused
_ANONYMOUS: Final = Admitted(user=None)
_BUSY: Final = Refused(refusal=Refusal.BUSY, reason="too many logins wait for their check")
_IMPOSSIBLE: Final = Refused(refusal=Refusal.BUSY, reason="the password could not be checked")
_WRONG: Final = "the user name or the password is wrong"


class Login:
    """Decides who may connect; one for the gateway. Without users (None) everybody may, as nobody."""

    def __init__(
        self,
        users: Users | None = None,
        *,
        allows_anonymous: bool = True,
        binds_client_identifier: bool = False,
        threads: HashingThreads | None = None,
    ) -> None:
        #: The password file as it holds now; see `replace`.
        self.users = users
        self._allows_anonymous = allows_anonymous
        self._binds_client_identifier = binds_client_identifier
        self._threads = threads
        self._key = os.urandom(32)
        #: Keyed digest of the password that was right last, by user.
        self._remembered: dict[str, bytes] = {}

    def decide(
        self, connect: ConnectReceived, is_wanted: Callable[[], bool], decided: Callable[[Decision], None]
    ) -> None:
        """Calls `decided` once: at once, or after the check of a password, on the event loop.

        A check that has not begun when `is_wanted` (asked in the thread) is false is left out, and the login refused.
        """
        if self.users is None or (connect.user_name is None and self._allows_anonymous):
            decided(_ANONYMOUS)
        elif connect.user_name is None:
            decided(Refused(refusal=Refusal.NOT_ALLOWED, reason="a user name is required"))
        else:
            self._check(self.users, connect.user_name, connect, is_wanted, decided)

    def may_have_session(self, user: str | None, owner: str | None) -> bool:
        """Whether a user may take over the session of an owner; one that was made by nobody is free to all."""
        return self.users is None or owner is None or owner == user

    def replace(self, users: Users, changed: Iterable[str]) -> None:
        """Another state of the password file holds from now on; `changed`: whose line is not the same any more."""
        for name in changed:
            self._remembered.pop(name, None)
        self.users = users

    def close(self) -> None:
        """Gives up what is being checked."""
        if self._threads is not None:
            self._threads.close()

    def _check(
        self,
        users: Users,
        user: str,
        connect: ConnectReceived,
        is_wanted: Callable[[], bool],
        decided: Callable[[Decision], None],
    ) -> None:
        password = connect.password or b""
        entry = users.hashes.get(user)
        if entry is not None and self._is_remembered(user, entry, password):
            decided(self._admit(user, connect))
            return
        compared = entry or users.decoy(user)

        def done(is_right: bool | None) -> None:
            if is_right is None:
                decided(_IMPOSSIBLE)
                return
            if entry is None or not is_right or not self._still_holds(user, entry):
                shown = "an unknown user" if entry is None else f"user {user!r}"  # an unknown one may be a password
                decided(Refused(refusal=Refusal.WRONG_CREDENTIALS, reason=f"{_WRONG} ({shown})"))
                return
            self._remembered[user] = self._digest(entry, password)
            decided(self._admit(user, connect))

        assert self._threads is not None, "users need threads that check their passwords"
        if not self._threads.submit(lambda: is_wanted() and compared.is_of(password), done):
            decided(_BUSY)

    def _admit(self, user: str, connect: ConnectReceived) -> Decision:
        client = connect.client_identifier
        if self._binds_client_identifier and client and client.partition(IDENTIFIER_SEPARATOR)[0] != user:
            return Refused(
                refusal=Refusal.WRONG_IDENTIFIER,
                reason=f"client identifier {client!r} is not user {user!r}, alone or with ':' and more behind it",
            )
        return Admitted(user=user)

    def _still_holds(self, user: str, entry: PasswordHash) -> bool:
        """False where the file was read again while a password was checked, and says something else now."""
        return self.users is not None and self.users.hashes.get(user) == entry

    def _is_remembered(self, user: str, entry: PasswordHash, password: bytes) -> bool:
        remembered = self._remembered.get(user)
        return remembered is not None and hmac.compare_digest(remembered, self._digest(entry, password))

    def _digest(self, entry: PasswordHash, password: bytes) -> bytes:
        """The key never leaves this process, which gets the passwords themselves anyway."""
        return hashlib.blake2b(entry.salt + entry.digest + password, key=self._key).digest()

"""Login: decides between CONNECT and CONNACK whether a client may connect.

A password is checked in a thread (hashing). A successful login is remembered by a keyed digest until the user's line in
the password file changes. So a fleet that comes back after a network failure is let in at once, even while somebody
tries passwords. After a restart those who logged in lately are checked first (recent_logins). A token is checked at
once (tokens). TLS has checked a certificate before the CONNECT came.
"""

import hashlib
import hmac
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from gateway.access.client_identifiers import Binding, why_refused
from gateway.access.external_users import TokenCheck, TokenRefused, is_user_name, looks_like_token
from gateway.access.hashing import HashingThreads
from gateway.access.password_hash import PasswordHash
from gateway.access.recent_logins import RecentLogins
from gateway.access.refused_logins import LoginRefusal, RefusedLogins, UserClass
from gateway.access.users import Users
from gateway.config.limits import Limit
from gateway.limits.addresses import network_of_peer
from gateway.mqtt.events import ConnectReceived
from spark_audit.record import LoginProof


class Claim(Protocol):
    """What a client says of itself: a CONNECT, or the credentials of an MQ program, which has no client identifier."""

    @property
    def user_name(self) -> str | None: ...
    @property
    def password(self) -> bytes | None: ...
    @property
    def client_identifier(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """What the listener knows of a client.

    `certificate_user`: the user that a client certificate names, where the listener takes its users from certificates;
    "": it names none. `allows_anonymous`: the listener's own rule; None: as [access] says. `peer`: the client's
    address, HOST:PORT.
    """

    certificate_user: str = ""
    allows_anonymous: bool | None = None
    peer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The client may connect, as this user; None: without a user. `proof` says what proved it.

    With a token, `until_us` is its end (microseconds since 1970; 0: none), and `fingerprint` that of its key.
    """

    user: str | None
    proof: LoginProof
    until_us: int = 0
    fingerprint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The client may not connect; `reason` is for the log, `told` for a client of MQTT 5 (None: its code's meaning)."""

    refusal: LoginRefusal
    reason: str
    told: str | None = None


Decision = Admitted | Refused
_NAMES_ARE_NOTHING: Final = Refused(
    refusal=LoginRefusal.NOT_ALLOWED, reason="anonymous clients may not connect here, and nothing tells users apart"
)
_NAMELESS: Final = Refused(refusal=LoginRefusal.NOT_ALLOWED, reason="a user name is required")
_TOLD_BUSY: Final = Limit.WAITING_LOGINS.value.told
_BUSY: Final = Refused(refusal=LoginRefusal.BUSY, reason="too many logins wait for their check", told=_TOLD_BUSY)
_IMPOSSIBLE: Final = Refused(refusal=LoginRefusal.BUSY, reason="the password could not be checked", told=_TOLD_BUSY)
_WRONG: Final = "the user name or the password is wrong"
_WHOEVER_COMES: Final = Entrance()
_DAY_US: Final = 86_400_000_000
#: User names that a client with a token may send beside the token's (MQTT 3.1.1 has no password without one).
_NO_USER_NAMES: Final = frozenset({None, "", "jwt"})


class Login:
    """Decides on logins; one for the gateway. Without users (None) and tokens all clients may connect."""

    def __init__(
        self,
        users: Users | None = None,
        *,
        tokens: TokenCheck | None = None,
        allows_anonymous: bool = True,
        binding: Binding = False,
        has_certificate_users: bool = False,
        threads: HashingThreads | None = None,
    ) -> None:
        #: The current password file; see `replace`.
        self.users = users
        #: The current keys of tokens.
        self.tokens = tokens
        self._allows_anonymous = allows_anonymous
        self._binding: Binding = binding
        self._has_certificate_users = has_certificate_users
        self._threads = threads
        self.refused = RefusedLogins()
        #: Who logged in lately; the daemon puts those of the last run in its place.
        self.recent = RecentLogins()
        #: The time, microseconds since 1970, and whether a user has a session; the bridge knows better.
        self.now_us: Callable[[], int] = lambda: time.time_ns() // 1_000
        self.has_session: Callable[[str], bool] = lambda _user: False
        self._key = os.urandom(32)
        #: Keyed digest of the last right password, by user.
        self._remembered: dict[str, bytes] = {}

    def decide(
        self,
        connect: ConnectReceived,
        is_wanted: Callable[[], bool],
        decided: Callable[[Decision], None],
        entrance: Entrance = _WHOEVER_COMES,
    ) -> None:
        """Calls `decided` once: at once, or after the check of a password, on the event loop.

        A check that has not begun when `is_wanted` (asked in the thread) is false is left out, and the login refused.
        It is also left out where the same password of the same user was right since the login came.
        """

        def counted(decision: Decision) -> None:
            if isinstance(decision, Refused) and is_wanted():
                self.count_refusal(decision.refusal, connect, entrance)
            decided(decision)

        self._decide(connect, is_wanted, counted, entrance)

    def prove(
        self, claim: Claim, is_wanted: Callable[[], bool], decided: Callable[[Decision], None], entrance: Entrance
    ) -> None:
        """`decide` for a client that does not speak MQTT. Whoever asks counts its refusals."""
        self._decide(claim, is_wanted, decided, entrance)

    @property
    def has_users(self) -> bool:
        """Whether a password can prove a user, by the password file or as a token."""
        return self.users is not None or self.tokens is not None

    @property
    def waiting(self) -> int:
        """Passwords that wait for their check, or are being checked."""
        return 0 if self._threads is None else self._threads.unfinished

    def may_have_session(self, user: str | None, owner: str | None) -> bool:
        """Whether a user may take over the session of `owner`; everybody may if it has no owner."""
        return not self._knows_users or owner is None or owner == user

    def count_refusal(self, refusal: LoginRefusal, connect: ConnectReceived, entrance: Entrance) -> None:
        """A client is refused; the bridge says so of clients that were let in and ask for what they may not have."""
        self.refused.count(refusal, self.class_of(connect, entrance), entrance.peer, self.now_us(), connect.level)

    def replace(self, users: Users, changed: Iterable[str]) -> None:
        """Takes a new state of the password file. `changed`: the users whose lines have changed or gone."""
        for name in changed:
            self._remembered.pop(name, None)
        self.users = users

    def close(self) -> None:
        """Gives up the checks that are under way."""
        if self._threads is not None:
            self._threads.close()

    def _decide(
        self,
        connect: Claim,
        is_wanted: Callable[[], bool],
        decided: Callable[[Decision], None],
        entrance: Entrance,
    ) -> None:
        """Asks the certificate first, then the token, then the password file."""
        if entrance.certificate_user:
            decided(self._certified(entrance, connect))
        elif self.tokens is not None and connect.password is not None and looks_like_token(connect.password):
            decided(self._let_in_by_token(self.tokens, connect.password, connect, entrance))
        elif connect.user_name is None or (self.users is None and self.tokens is None):
            decided(self._unnamed(connect, entrance))
        elif self.users is None:
            decided(Refused(refusal=LoginRefusal.WRONG_CREDENTIALS, reason="a token is required"))
        else:
            self._check(self.users, connect.user_name, connect, is_wanted, decided, entrance)

    def _unnamed(self, connect: Claim, entrance: Entrance) -> Decision:
        """A client without a user: it sends no user name, or the gateway knows no users."""
        is_by_listener = entrance.allows_anonymous is not None
        if not (entrance.allows_anonymous if is_by_listener else self._allows_anonymous):
            return _NAMELESS if connect.user_name is None else _NAMES_ARE_NOTHING
        if reason := why_refused(self._binding, None, connect.client_identifier, self._is_known):
            return Refused(refusal=LoginRefusal.WRONG_IDENTIFIER, reason=reason)
        return Admitted(user=None, proof=LoginProof.LISTENER if is_by_listener else LoginProof.NONE)

    def _certified(self, entrance: Entrance, connect: Claim) -> Decision:
        """A client whose certificate names the user; its password is ignored."""
        user = entrance.certificate_user
        if not is_user_name(user):
            return Refused(
                refusal=LoginRefusal.WRONG_CREDENTIALS, reason="the certificate has a name that no user can have"
            )
        if connect.user_name and connect.user_name != user:
            reason = f"the user name is not that of the certificate, {user!r}"
            return Refused(refusal=LoginRefusal.WRONG_CREDENTIALS, reason=reason)
        return self._admit(user, connect, entrance, LoginProof.CERTIFICATE)

    def _let_in_by_token(self, tokens: TokenCheck, token: bytes, connect: Claim, entrance: Entrance) -> Decision:
        """A client whose password is a token."""
        try:
            external = tokens.check(token)
        except TokenRefused as refused:
            return Refused(refusal=LoginRefusal.WRONG_CREDENTIALS, reason=f"the token {refused}")
        if connect.user_name not in _NO_USER_NAMES and connect.user_name != external.user:
            reason = f"the user name is not that of the token, {external.user!r}"
            return Refused(refusal=LoginRefusal.WRONG_CREDENTIALS, reason=reason)
        decision = self._admit(external.user, connect, entrance, LoginProof.TOKEN)
        if isinstance(decision, Refused):
            return decision
        return replace(decision, until_us=external.until_us, fingerprint=external.fingerprint)

    def _check(
        self,
        users: Users,
        user: str,
        connect: Claim,
        is_wanted: Callable[[], bool],
        decided: Callable[[Decision], None],
        entrance: Entrance,
    ) -> None:
        password = connect.password or b""
        entry = users.hashes.get(user)
        if entry is not None and self._is_remembered(user, entry, password):
            decided(self._admit(user, connect, entrance))
            return
        compared = entry or users.decoy(user)

        def check() -> bool | None:
            if not is_wanted():
                return None
            if entry is not None and self._is_remembered(user, entry, password):
                return True
            return compared.is_of(password) and entry is not None

        def done(is_right: bool | None) -> None:
            if is_right is None:
                decided(_IMPOSSIBLE)
                return
            if entry is None or not is_right or not self._still_holds(user, entry):
                shown = "an unknown user" if entry is None else f"user {user!r}"  # an unknown one may be a password
                decided(Refused(refusal=LoginRefusal.WRONG_CREDENTIALS, reason=f"{_WRONG} ({shown})"))
                return
            self._remembered[user] = self._digest(entry, password)
            decided(self._admit(user, connect, entrance))

        origin = network_of_peer(entrance.peer)
        is_lately = entry is not None and self.recent.knows(user, origin, self._day())
        assert self._threads is not None, "users need threads that check their passwords"
        if not self._threads.submit(check, done, origin=origin, user=user, is_lately=is_lately):
            decided(_BUSY)

    def _admit(
        self, user: str, connect: Claim, entrance: Entrance, proof: LoginProof = LoginProof.PASSWORD
    ) -> Decision:
        if reason := why_refused(self._binding, user, connect.client_identifier, self._is_known):
            return Refused(refusal=LoginRefusal.WRONG_IDENTIFIER, reason=reason)
        self.recent.add(user, network_of_peer(entrance.peer), self._day(), is_external=proof is not LoginProof.PASSWORD)
        return Admitted(user=user, proof=proof)

    @property
    def _knows_users(self) -> bool:
        """Whether anything tells users apart."""
        return self.users is not None or self.tokens is not None or self._has_certificate_users

    def _is_known(self, user: str) -> bool:
        """Whether there is a user of that name: in the password file, with a session, or with a recent token or
        certificate, whose issuers cannot be asked for all of theirs.
        """
        if self.users is not None and user in self.users.hashes:
            return True
        return self._knows_users and (self.has_session(user) or self.recent.knows_external(user, self._day()))

    def class_of(self, connect: Claim, entrance: Entrance) -> UserClass:
        """What is known of the user of a client that is refused."""
        is_token = self.tokens is not None and connect.password is not None and looks_like_token(connect.password)
        if entrance.certificate_user or is_token:
            return UserClass.EXTERNAL
        if connect.user_name is None:
            return UserClass.NONE
        is_known = self.users is not None and connect.user_name in self.users.hashes
        return UserClass.KNOWN if is_known else UserClass.UNKNOWN

    def _day(self) -> int:
        """Today, in days since 1970."""
        return self.now_us() // _DAY_US

    def _still_holds(self, user: str, entry: PasswordHash) -> bool:
        """False if the password file was read again during the check, and the user's line has changed."""
        return self.users is not None and self.users.hashes.get(user) == entry

    def _is_remembered(self, user: str, entry: PasswordHash, password: bytes) -> bool:
        remembered = self._remembered.get(user)
        return remembered is not None and hmac.compare_digest(remembered, self._digest(entry, password))

    def _digest(self, entry: PasswordHash, password: bytes) -> bytes:
        """The key never leaves this process, which gets the passwords anyway."""
        return hashlib.blake2b(entry.salt + entry.digest + password, key=self._key).digest()

"""Who an MQ client is: its name and password decide, or the channel's MCAUSER; never the user that it asserts.

A program is an [[application]] of the configuration. Its password is the application's token, or that of a user of
[access] who is the application (access_users). Without a password it is the application that MCAUSER of its channel
names, and nobody without MCAUSER. What the tables of the channel say of users counts in each case.
"""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from gateway.access.login import Decision, Entrance, Login, Refused
from gateway.access.refused_logins import LoginRefusal, UserClass
from gateway.access.refused_programs import ProgramRefusal, ProgramRefused
from gateway.limits.addresses import network_of
from gateway.listener.mq.channel_rules import ChannelRule
from mq_adapters.attributes import Definition
from mq_adapters.client_channel.events import AuthenticationAsked
from mq_adapters.embedded.socket.applications import AdmittedApplication, Applications
from mq_adapters.message import UTF_8
from mq_adapters.reasons import QueueManagerError
from spark_audit.record import LoginProof

_CONNECT: Final = "connect to the gateway"
_REFUSALS: Final = {
    LoginRefusal.WRONG_CREDENTIALS: ProgramRefusal.WRONG_CREDENTIALS,
    LoginRefusal.BUSY: ProgramRefusal.BUSY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The name and the password that a client sent. `is_protected` tells that nobody on the way could read them."""

    user: str
    password: str = field(repr=False)
    is_protected: bool

    @classmethod
    def of(cls, event: AuthenticationAsked, *, is_protected: bool) -> Self:
        """What a client has sent, in UTF-8 if it says so, else in ISO 8859-1."""
        said, encoding = event.credentials, "utf-8" if event.ccsid == UTF_8 else "iso-8859-1"
        user, password = (each.decode(encoding, errors="replace") for each in (said.user, said.password))
        return cls(user=user, password=password, is_protected=is_protected)


class _Claim(NamedTuple):
    """Credentials as Login reads them."""

    user_name: str
    password: bytes
    client_identifier: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Where a program connects: its channel, the table of its listener that decides about it, and its address.

    `peer` is HOST:PORT. `certificate_counts` tells that the channel lets in nobody without a certificate.
    """

    channel: Definition
    rule: ChannelRule | None
    address: str
    peer: str
    plain_passwords: bool = False
    certificate_counts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """Who a program is: the user that was proved, and the application that this user is.

    With a token of [access], `until_us` is its end (microseconds since 1970; 0: none), and `fingerprint` that of its
    key.
    """

    application: AdmittedApplication
    user: str
    proof: LoginProof
    until_us: int = 0
    fingerprint: str = ""


#: Takes who a program is, or why it may not connect.
Done = Callable[[Identified | QueueManagerError], None]


class ProgramLogin:
    """Decides who programs are; one for the gateway."""

    def __init__(self, applications: Applications, login: Login) -> None:
        self._applications = applications
        self._login = login

    def identify(self, shown: Credentials | None, door: Door, is_wanted: Callable[[], bool], done: Done) -> None:
        """Calls `done` once: at once, or after the check of a password, unless `is_wanted` is false by then."""

        def checked(found: Identified) -> None:
            rule = door.rule
            if rule is not None and not rule.admits_user(found.user):
                why = f"{_CONNECT} as {found.user!r} over channel {door.channel.name}"
                done(_not_allowed(why, "name the user in users of this table", f"{rule.key}.users"))
                return
            done(found)

        try:
            _check_door(door)
            if shown is None:
                checked(self._unnamed(door))
            elif (by_token := self._by_token(shown, door)) is not None:
                checked(by_token)
            else:
                self._by_password(shown, door, is_wanted, checked, done)
        except QueueManagerError as error:
            done(error)

    def class_of(self, shown: Credentials | None) -> tuple[UserClass, str]:
        """What is known of a program that is refused, and its user's name, which is left out if it is unknown.

        An unknown name may be a password.
        """
        if shown is None:
            return UserClass.NONE, ""
        if self._applications.has(shown.user):
            return UserClass.KNOWN, shown.user
        claim = _Claim(shown.user, shown.password.encode(errors="replace"))
        user_class = self._login.class_of(claim, Entrance())
        return user_class, shown.user if user_class is UserClass.KNOWN else ""

    def _unnamed(self, door: Door) -> Identified:
        user = door.channel.text("MCAUSER")
        if not user:
            why, hint = f"{_CONNECT} without a password over channel {door.channel.name}", "send one, or set MCAUSER"
            raise _not_allowed(why, hint, "MCAUSER")
        try:
            application = self._applications.without_password(user, door.peer, network_of(door.address))
        except QueueManagerError as error:
            raise _not_allowed(error.operation, "MCAUSER names an [[application]]", "MCAUSER") from None
        proof = LoginProof.CERTIFICATE if door.certificate_counts else LoginProof.CHANNEL
        return Identified(application=application, user=user, proof=proof)

    def _by_token(self, shown: Credentials, door: Door) -> Identified | None:
        """The application whose token it has sent; None if it has sent none."""
        if not (shown.is_protected or door.plain_passwords):
            why = f"{_CONNECT} with a password in clear from another machine"
            raise _not_allowed(why, "use TLS, or allow it with mq_listener.plain_passwords", "plain_passwords")
        application = self._applications.with_token(shown.password, door.peer)
        if application is None:
            return None
        if application.role != shown.user:
            why = f"{_CONNECT} with the token of another application"
            raise ProgramRefused(ProgramRefusal.WRONG_CREDENTIALS, why, "the user is the application's name")
        return Identified(application=application, user=application.role, proof=LoginProof.APPLICATION_TOKEN)

    def _by_password(
        self,
        shown: Credentials,
        door: Door,
        is_wanted: Callable[[], bool],
        checked: Callable[[Identified], None],
        done: Done,
    ) -> None:
        """A user of [access]. Its password is not looked at where no application has such users."""
        if not (self._login.has_users and self._applications.has_access_users):
            why = f"{_CONNECT} with a token that no application has"
            raise ProgramRefused(ProgramRefusal.WRONG_CREDENTIALS, why, "'rfhbridge user token add' makes a token")

        def decided(decision: Decision) -> None:
            if isinstance(decision, Refused):
                refusal = _REFUSALS.get(decision.refusal, ProgramRefusal.NOT_ALLOWED)
                done(ProgramRefused(refusal, f"{_CONNECT}: {decision.reason}"))
                return
            user = decision.user or ""
            try:
                application = self._applications.of_access_user(user, door.peer)
            except QueueManagerError as error:
                hint = "name the user in access_users of an [[application]]"
                done(_not_allowed(error.operation, hint, "access_users"))
                return
            checked(
                Identified(
                    application=application,
                    user=user,
                    proof=decision.proof,
                    until_us=decision.until_us,
                    fingerprint=decision.fingerprint,
                )
            )

        claim = _Claim(shown.user, shown.password.encode(errors="replace"))
        self._login.prove(claim, is_wanted, decided, Entrance(peer=door.peer))


def printable(name: str) -> str:
    """A program's own name without what would move an operator's terminal."""
    return "".join(each if each.isprintable() else "?" for each in name)


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def _check_door(door: Door) -> None:
    """ProgramRefused for a channel or an address that the listener does not let in."""
    if door.rule is None:
        why = f"{_CONNECT} over channel {door.channel.name}, which no table of the listener names"
        raise _not_allowed(why, "add an [[mq_listener.channel]] for it", "channel")
    if not door.rule.admits_address(door.address):
        why = f"{_CONNECT} over channel {door.channel.name} from {door.address}"
        raise _not_allowed(why, "name the address in addresses of this table", f"{door.rule.key}.addresses")


def _not_allowed(why: str, hint: str, rule: str) -> ProgramRefused:
    return ProgramRefused(ProgramRefusal.NOT_ALLOWED, why, hint, rule=rule)

"""Who comes in at one listener: its channels' tables, logins of programs, and what is said of those it refuses."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from gateway.access.refused_programs import ProgramRefusal, ProgramRefused
from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.mq_listeners import MqListenerSettings
from gateway.listener.client_certificates import ShownCertificate
from gateway.listener.mq.channel_rules import ChannelRules
from gateway.listener.mq.identity import Credentials, Done, Door, Identified
from gateway.listener.mq.server_connections import ChannelRefused, asks_for_certificate
from gateway.listener.mq.waiting_room import WaitingRoom
from mq_adapters.attributes import Definition
from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.embedded.rights import RightMissing
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.reasons import QueueManagerError, ReasonCode

if TYPE_CHECKING:
    from gateway.listener.mq.listener import MqHouse

_REFUSED: Final = "program refused listener=%s channel=%s peer=%s rule=%s reason=%s"
_RIGHT_REFUSED: Final = (
    "right refused listener=%s channel=%s peer=%s user=%s application=%s program=%s right=%s object=%s reason=%s"
)
_CLOSED: Final = "connection closed listener=%s channel=%s peer=%s reason=%s"
#: Of the name of an object or a topic, and of a reason with that name, the beginning is logged.
_LONGEST_LOGGED_CHARACTERS: Final = 300


class Visitor(Protocol):
    """A connection, as its doorkeeper sees it."""

    @property
    def address(self) -> str: ...
    @property
    def peer(self) -> str: ...
    @property
    def certificate(self) -> ShownCertificate | None: ...


class Program(Protocol):
    """A program that has connected, as the trail tells of it."""

    @property
    def who(self) -> Identified | None: ...
    @property
    def application_name(self) -> str: ...
    @property
    def program_number(self) -> int: ...


class Doorkeeper:
    """One for each listener."""

    def __init__(self, settings: MqListenerSettings, house: "MqHouse") -> None:
        self._settings = settings
        self._house = house
        self._rules = ChannelRules(settings.channel)
        self.waiting_room = WaitingRoom(house.wait_s)

    def admits(self, channel: str, address: str) -> bool:
        """Whether programs of an address may use a channel here, whoever they are."""
        rule = self._rules.of(channel)
        return rule is not None and rule.admits_address(address)

    def identify(
        self,
        visitor: Visitor,
        channel: Definition,
        shown: Credentials | None,
        is_wanted: Callable[[], bool],
        done: Done,
    ) -> None:
        """Calls `done` once with who a program is, or with 2035, unless `is_wanted` is false by then.

        A program waits first if its account is ahead of its rate.
        """

        def identified(result: Identified | QueueManagerError) -> None:
            if isinstance(result, Identified):
                self.waiting_room.enter(result, is_wanted, lambda is_proved: come_in(result, is_proved))
                return
            if isinstance(result, ProgramRefused) and is_wanted():
                self._refused(visitor, channel, shown, result)
            done(result)

        def come_in(who: Identified, is_proved: bool) -> None:
            if is_proved:
                done(who)
            else:
                self.identify(visitor, channel, shown, is_wanted, done)

        door = Door(
            channel=channel,
            rule=self._rules.of(channel.name),
            address=visitor.address,
            peer=visitor.peer,
            plain_passwords=self._settings.plain_passwords,
            certificate_counts=asks_for_certificate(channel) and visitor.certificate is not None,
        )
        self._house.login.identify(shown, door, is_wanted, identified)

    def refuse_channel(self, visitor: Visitor, channel: str, refused: ChannelRefused) -> str:
        """A channel has not admitted a connection. Returns its name, "" if there is no such channel."""
        known = "" if refused.status_code is StatusCode.NO_CHANNEL else channel
        self._count(
            ProgramRefusal.CHANNEL,
            visitor.address,
            rule=refused.status_code.name.lower(),
            channel=known,
            reason=str(refused),
        )
        return known

    def refuse_call(self, visitor: Visitor, channel: str, program: Program, error: QueueManagerError) -> None:
        """A call was refused. Only a missing right is told, and another queue manager's name at MQCONN."""
        where = self._settings.name, channel, visitor.peer
        if error.reason_code == ReasonCode.MQRC_Q_MGR_NAME_ERROR:
            self._house.refusals[ReasonCode.MQRC_Q_MGR_NAME_ERROR] += 1
            self._house.refused.totals[ProgramRefusal.QUEUE_MANAGER] += 1
            self._house.connection_log.refused(visitor.address, _REFUSED, *where, "queue_manager.name", str(error))
        elif isinstance(error, RightMissing) and (who := program.who) is not None:
            self._house.refused.rights[error.right] += 1
            named = who.user, who.application.user, program.application_name
            missing = error.right, error.name[:_LONGEST_LOGGED_CHARACTERS], str(error)[:_LONGEST_LOGGED_CHARACTERS]
            self._house.connection_log.right_refused(who.user, _RIGHT_REFUSED, *where, *named, *missing)

    def closed(self, visitor: Visitor, channel: str, why: str) -> None:
        """The gateway has ended a connection."""
        told = self._settings.name, channel, visitor.peer, why
        self._house.connection_log.refused(visitor.address, _CLOSED, *told)

    def refuse_connection(self, address: str, limit: str) -> None:
        """A connection would pass a limit; `limit` is its key of the configuration."""
        self._house.refusals[ReasonCode.MQRC_MAX_CONNS_LIMIT_REACHED] += 1
        self._count(ProgramRefusal.LIMIT, address, rule=limit)

    def tell(self, visitor: Visitor, channel: str, program: Program, event: str, reason: str = "") -> UnitOfWork | None:
        """Notes that a program has connected or is gone. None: the store has failed."""
        engine, who = self._house.engine, program.who
        if engine.failed is not None or who is None:
            return None
        certificate = visitor.certificate.subject if visitor.certificate is not None else ""
        where = (visitor.address, self._settings.name, certificate, channel)
        of_application = (program.application_name, who.user, str(who.proof))
        admitted = who.application
        named = (program.program_number, event, admitted.operator, admitted.user)
        unit = engine.begin()
        unit.notes.append((NoteKind.PROGRAM, engine.now_us(), *named, *of_application, *where, reason))
        unit.notes_are_due = True
        engine.submit(unit)
        return unit

    def _refused(
        self, visitor: Visitor, channel: Definition, shown: Credentials | None, refused: ProgramRefused
    ) -> None:
        self._house.refusals[ReasonCode(refused.reason_code)] += 1
        told = self._settings.name, channel.name, visitor.peer, refused.rule, str(refused)
        self._house.connection_log.refused(visitor.address, _REFUSED, *told)
        user_class, user = self._house.login.class_of(shown)
        self._count(
            refused.refusal,
            visitor.address,
            rule=refused.rule,
            channel=channel.name,
            user_class=user_class,
            user=user,
            reason_code=refused.reason_code,
            reason=refused.operation,
        )

    def _count(self, refusal: ProgramRefusal, address: str, *, rule: str, **told: Any) -> None:
        now_us, listener = self._house.engine.now_us(), self._settings.name
        self._house.refused.count(refusal, rule=rule, address=address, listener=listener, now_us=now_us, **told)

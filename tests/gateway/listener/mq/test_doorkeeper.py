"""What a listener lets in, and what it says of those it refuses."""

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.access.login import Login
from gateway.access.refused_programs import ProgramRefusal, RefusedPrograms
from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.mq_listeners import MqChannelSettings, MqListenerSettings
from gateway.listener.client_certificates import ShownCertificate
from gateway.listener.mq.doorkeeper import Doorkeeper
from gateway.listener.mq.identity import Identified, ProgramLogin
from gateway.listener.mq.listener import MqHouse
from gateway.listener.mq.server_connections import ChannelRefused
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.embedded.rights import MissingRight, RightMissing, Rights
from mq_adapters.embedded.socket.applications import ApplicationRole, Applications
from mq_adapters.embedded.unit_of_work import Note, UnitOfWork
from mq_adapters.reasons import QueueManagerError, ReasonCode
from spark_audit.record import LoginProof

AT = 1_800_000_000_000_000
CERTIFICATE = ShownCertificate(ends_s=9e9, subject="CN=orders-1", user="")
MUTUAL = {"MCAUSER": "billing", "SSLCIPH": "ANY_TLS12_OR_HIGHER", "SSLCAUTH": "REQUIRED"}


@dataclass(eq=False)
class Visitor:
    address: str = "192.0.2.7"
    certificate: ShownCertificate | None = None

    @property
    def peer(self) -> str:
        return f"{self.address}:40000"


@dataclass
class Desk:
    """A doorkeeper, and what it has counted and logged."""

    tables: tuple[MqChannelSettings, ...] = ()
    refusals: Counter[ReasonCode] = field(default_factory=Counter)
    lines: list[tuple[object, ...]] = field(default_factory=list)
    refused: RefusedPrograms = field(default_factory=RefusedPrograms)
    notes: list[Note] = field(default_factory=list)

    def __post_init__(self) -> None:
        login = ProgramLogin(Applications((ApplicationRole(name="billing", rights=Rights()),)), Login())
        log = SimpleNamespace(
            refused=lambda *said: self.lines.append(said), right_refused=lambda *said: self.lines.append(said)
        )
        engine = SimpleNamespace(
            now_us=lambda: AT, failed=None, begin=UnitOfWork, submit=lambda unit: self.notes.extend(unit.notes)
        )
        house = SimpleNamespace(
            engine=engine,
            login=login,
            refusals=self.refusals,
            refused=self.refused,
            connection_log=log,
            wait_s=lambda _account: 0.0,
        )
        settings = MqListenerSettings(listen="127.0.0.1:1414", channel=self.tables)
        self.doorkeeper = Doorkeeper(settings, cast(MqHouse, house))

    def told(self) -> list[tuple[object, ...]]:
        """The notes of refusals that the next unit of work has, behind their time."""
        unit = UnitOfWork()
        self.refused.write(unit, AT)
        return [note[2:] for note in unit.notes]

    def identify(self, visitor: Visitor, *, is_there: bool = True, **said: Any) -> Identified | QueueManagerError:
        results: list[Identified | QueueManagerError] = []
        channel = Definition(object_type=ObjectType.CHANNEL, name="APP", said=said)
        self.doorkeeper.identify(visitor, channel, None, lambda: is_there, results.append)
        (result,) = results
        return result


def test_a_certificate_proves_a_program_where_its_channel_asks_for_one() -> None:
    proofs = {}
    for visitor, said in ((Visitor(certificate=CERTIFICATE), MUTUAL), (Visitor(), {"MCAUSER": "billing"})):
        found = Desk().identify(visitor, **said)
        assert isinstance(found, Identified)
        proofs[found.proof] = found.user
    assert proofs == {LoginProof.CERTIFICATE: "billing", LoginProof.CHANNEL: "billing"}


def test_a_refused_program_is_counted_and_logged_once() -> None:
    desk = Desk()
    assert isinstance(desk.identify(Visitor()), QueueManagerError)
    assert desk.refusals == {ReasonCode.MQRC_NOT_AUTHORIZED: 1}
    assert desk.refused.totals == {ProgramRefusal.NOT_ALLOWED: 1}
    ((refusal, user_class, *_numbers, user, network, listener, channel, rule, code, reason),) = desk.told()
    assert (refusal, user_class, user, rule, code) == ("not_allowed", "none", "", "MCAUSER", 2035)
    assert (network, listener, channel) == ("192.0.2.0/24", "mq", "APP")
    assert "without a password" in str(reason)
    ((address, event, *told),) = desk.lines
    assert (address, event) == ("192.0.2.7", "program refused listener=%s channel=%s peer=%s rule=%s reason=%s")
    assert told[:4] == ["mq", "APP", "192.0.2.7:40000", "MCAUSER"]
    assert "without a password" in str(told[4])


def test_the_log_names_the_table_that_refuses() -> None:
    desk = Desk((MqChannelSettings(name="A"), MqChannelSettings(name="APP", users=("orders",))))
    assert isinstance(desk.identify(Visitor(), MCAUSER="billing"), QueueManagerError)
    ((_address, _event, *told),) = desk.lines
    assert told[3] == "channel#2.users"


def test_a_program_that_has_gone_meanwhile_is_no_refusal() -> None:
    desk = Desk()
    assert isinstance(desk.identify(Visitor(), is_there=False), QueueManagerError)
    assert (desk.refused.totals, desk.lines) == ({}, [])


@pytest.mark.parametrize(
    ("channel", "address", "expected"), [("APP", "192.0.2.7", True), ("APP", "::1", False), ("B", "192.0.2.7", False)]
)
def test_a_channel_is_open_to_the_addresses_of_its_table(channel: str, address: str, expected: bool) -> None:
    desk = Desk((MqChannelSettings(name="APP", addresses=("192.0.2.0/24",)),))
    assert desk.doorkeeper.admits(channel, address) is expected


@pytest.mark.parametrize(
    ("status_code", "channel"),
    [(StatusCode.NO_CHANNEL, ""), (StatusCode.PEER_NAME, "APP"), (StatusCode.CIPHER_SPEC, "APP")],
)
def test_a_channel_that_refuses_is_told_by_its_name_if_there_is_one(status_code: StatusCode, channel: str) -> None:
    desk = Desk()
    assert desk.doorkeeper.refuse_channel(Visitor(), "APP", ChannelRefused(status_code, "why")) == channel
    ((refusal, *_rest, told, rule, code, reason),) = desk.told()
    assert (refusal, told, rule, code, reason) == ("channel", channel, status_code.name.lower(), 0, "why")


def test_too_many_connections_are_a_refusal() -> None:
    desk = Desk()
    desk.doorkeeper.refuse_connection("192.0.2.7", "mq_listener.maximum_connections")
    assert desk.refusals == {ReasonCode.MQRC_MAX_CONNS_LIMIT_REACHED: 1}
    ((refusal, *_rest, rule, code, _reason),) = desk.told()
    assert (refusal, rule, code) == ("limit", "mq_listener.maximum_connections", 0)


def test_a_program_is_told_with_all_that_is_known_of_it() -> None:
    desk = Desk()
    visitor = Visitor(certificate=CERTIFICATE)
    who = desk.identify(visitor, **MUTUAL)
    assert isinstance(who, Identified)
    program = SimpleNamespace(who=who, application_name="Orders", program_number=7)
    assert desk.doorkeeper.tell(visitor, "APP", program, "ended", "it was silent") is not None
    said = (
        "billing (192.0.2.7:40000)",
        "billing",
        "Orders",
        "billing",
        "certificate",
        "192.0.2.7",
        "mq",
        "CN=orders-1",
    )
    assert desk.notes == [(NoteKind.PROGRAM, AT, 7, "ended", *said, "APP", "it was silent")]


def test_a_missing_right_is_logged_with_who_lacks_it_and_counted() -> None:
    desk = Desk()
    who = desk.identify(Visitor(certificate=CERTIFICATE), **MUTUAL)
    program = SimpleNamespace(who=who, application_name="Orders", program_number=7)
    error = RightMissing(MissingRight.PUT, "STOCK" * 100, "open: no right")
    desk.doorkeeper.refuse_call(Visitor(), "APP", program, error)
    ((user, event, *told),) = desk.lines
    assert (user, event.split()[:3]) == ("billing", ["right", "refused", "listener=%s"])
    assert told[:6] == ["mq", "APP", "192.0.2.7:40000", "billing", "billing", "Orders"]
    assert (told[6], len(str(told[7]))) == ("put", 300)
    assert event.count("%s") == len(told)
    assert desk.refused.rights == {MissingRight.PUT: 1}


def test_another_queue_managers_name_is_a_refusal_and_no_other_fault_of_a_call_is() -> None:
    desk = Desk()
    program = SimpleNamespace(who=None, application_name="", program_number=0)
    for code in (ReasonCode.MQRC_Q_MGR_NAME_ERROR, ReasonCode.MQRC_NO_MSG_AVAILABLE, ReasonCode.MQRC_NOT_AUTHORIZED):
        desk.doorkeeper.refuse_call(Visitor(), "APP", program, QueueManagerError(code, "connect to 'OTHER'"))
    assert desk.refusals == {ReasonCode.MQRC_Q_MGR_NAME_ERROR: 1}
    assert desk.refused.totals == {ProgramRefusal.QUEUE_MANAGER: 1}
    ((address, event, *told),) = desk.lines
    assert (address, event.split()[:2]) == ("192.0.2.7", ["program", "refused"])
    assert "connect to 'OTHER': 2058" in str(told[-1])
    assert event.count("%s") == len(told)
    assert desk.told() == []

"""Which connections a listener of MQ clients keeps, and which limit it names for the others."""

from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.access.refused_programs import ProgramRefusal, RefusedPrograms
from gateway.config.mq_listeners import MqListenerSettings
from gateway.listener.mq import listener as listener_module
from gateway.listener.mq.link import MqLink
from gateway.listener.mq.listener import MqHouse, MqListener
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.reasons import ReasonCode

AT = 1_800_000_000_000_000
RATE = "mqtt.connection_rate_per_address"


@dataclass(eq=False)
class Caller:
    """A new connection; links are compared by identity."""

    address: str
    calls: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0


class Door:
    """A listener, and the rates that its connections ask."""

    def __init__(self, **limits: int) -> None:
        self.passed = ""
        self.asked: list[str] = []
        self.refused = RefusedPrograms()
        self.refusals: Counter[ReasonCode] = Counter()
        house = SimpleNamespace(
            engine=SimpleNamespace(now_us=lambda: AT),
            refusals=self.refusals,
            refused=self.refused,
            passed_rate=self._passed_rate,
            wait_s=lambda _account: 0.0,
        )
        settings = MqListenerSettings.model_validate({"listen": "127.0.0.1:0", **limits})
        self.listener = MqListener(settings, cast(MqHouse, house))

    def _passed_rate(self, address: str) -> str:
        self.asked.append(address)
        return self.passed

    def admit(self, address: str) -> MqLink | None:
        link = cast(MqLink, Caller(address))
        return link if self.listener.admit(link) else None

    def rules(self) -> list[object]:
        """The limits that the records of refusals name."""
        unit = UnitOfWork()
        self.refused.write(unit, AT)
        return [note[-3] for note in unit.notes]


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        ({"maximum_connections": 1}, "mq_listener.maximum_connections"),
        ({"maximum_connections_per_address": 1}, "mq_listener.maximum_connections_per_address"),
    ],
)
def test_a_refusal_names_the_limit_that_is_passed(limits: dict[str, int], rule: str) -> None:
    door = Door(**limits)
    assert door.admit("192.0.2.7") is not None
    assert door.admit("192.0.2.7") is None
    assert door.rules() == [rule]
    assert door.refusals == {ReasonCode.MQRC_MAX_CONNS_LIMIT_REACHED: 1}


def test_a_refusal_by_a_rate_has_a_record_and_is_counted() -> None:
    door = Door()
    door.passed = RATE
    assert door.admit("192.0.2.7") is None
    assert door.rules() == [RATE]
    assert door.refused.totals == {ProgramRefusal.LIMIT: 1}
    assert door.refusals == {ReasonCode.MQRC_MAX_CONNS_LIMIT_REACHED: 1}


def test_a_connection_that_finds_no_room_is_charged_to_the_rates() -> None:
    door = Door(maximum_connections=1)
    assert door.admit("192.0.2.7") is not None
    for _ in range(3):
        assert door.admit("192.0.2.8") is None
    assert door.asked == ["192.0.2.7", *["192.0.2.8"] * 3]


def test_each_network_has_its_own_number_and_a_connection_that_has_gone_makes_room() -> None:
    door = Door(maximum_connections_per_address=1)
    first, other = door.admit("2001:db8::1"), door.admit("192.0.2.7")
    assert first is not None
    assert other is not None
    assert door.admit("2001:db8::2") is None, "the same /64"
    for _ in range(2):
        door.listener.forget(first)
    assert door.admit("2001:db8::2") is not None
    door.listener.forget(other)
    assert door.listener._of_network == {bytes.fromhex("20010db800000000"): 1}


def test_room_is_looked_for_without_a_look_at_each_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(maximum_connections_per_address=2)
    for number in range(100):
        assert door.admit(f"192.0.2.{number}") is not None
    looked: list[str] = []
    network_of: Any = listener_module.network_of
    monkeypatch.setattr(listener_module, "network_of", lambda address: looked.append(address) or network_of(address))
    assert door.admit("198.51.100.1") is not None
    assert set(looked) == {"198.51.100.1"}

"""When a connection without a connected program ends."""

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.listener.mq import link as link_module
from gateway.listener.mq.link import MqLink


@dataclass
class Talk:
    """A conversation whose calls are refused."""

    is_connected: bool = False
    is_busy: bool = False
    who: Any = None
    calls: int = 0

    def call(self, _event: object) -> None:
        self.calls += 1

    def end(self, _event: str, _reason: str) -> None:
        """It has nothing to end."""


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.time = time.time

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(link_module, "time", made)
    return made


def link_with(talk: Talk) -> MqLink:
    """A connection that may take ten seconds to connect."""
    house = SimpleNamespace(
        engine=SimpleNamespace(now_us=lambda: 1),
        charge=lambda _account, _unit: 0.0,
        turns=SimpleNamespace(leave=lambda _link: None),
        channels=SimpleNamespace(forget=lambda _link: None),
    )
    settings = SimpleNamespace(connect_timeout_s=10.0, name="mq")
    doorkeeper = SimpleNamespace(tell=lambda *_said: None, closed=lambda *_said: None)
    listener = SimpleNamespace(house=house, settings=settings, doorkeeper=doorkeeper)
    link = MqLink(cast(Any, listener))
    link._conversations[1] = cast(Any, talk)
    return link


def test_calls_give_a_program_no_more_time_to_connect(clock: Clock) -> None:
    talk = Talk()
    link = link_with(talk)
    for _ in range(3):
        clock.now_s += 4
        link._call(cast(Any, SimpleNamespace(conversation=1)))
        link.tick(clock.now_s - 2.5)
    assert (talk.calls, link.is_open) == (3, True)
    link.tick(clock.now_s)
    assert not link.is_open


def test_a_connection_whose_last_program_has_gone_has_that_time_again(clock: Clock) -> None:
    talk = Talk()
    link = link_with(talk)
    clock.now_s += 1_000
    link.program_changed(cast(Any, talk), "disconnected")
    clock.now_s += 9.5
    link.tick(clock.now_s)
    assert link.is_open
    clock.now_s += 1
    link.tick(clock.now_s)
    assert not link.is_open

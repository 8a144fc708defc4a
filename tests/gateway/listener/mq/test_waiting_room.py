"""Programs whose account is ahead of its rate wait for the answer to MQCONN, in line."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from gateway.listener.mq import waiting_room
from gateway.listener.mq.identity import Identified
from gateway.listener.mq.waiting_room import WaitingRoom
from mq_adapters.embedded.rights import Rights
from mq_adapters.embedded.socket.applications import AdmittedApplication
from mq_adapters.embedded.socket.pace import ApplicationAccount
from spark_audit.record import LoginProof


def program(user: str) -> Identified:
    application = AdmittedApplication(user=user, operator=user, rights=Rights(), account=ApplicationAccount(user))
    return Identified(application=application, user=user, proof=LoginProof.CHANNEL)


ORDERS, BILLING = program("orders"), program("billing")


class Ahead:
    """Lets the account of orders wait for so many questions, and writes who has come in."""

    def __init__(self, questions: int) -> None:
        self.questions = questions
        self.room = WaitingRoom(self._wait_s)
        self.said: list[str] = []

    def _wait_s(self, account: ApplicationAccount) -> float:
        if account.name != "orders" or self.questions <= 0:
            return 0.0
        self.questions -= 1
        return 0.001

    def enter(self, who: Identified, name: str, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self.room.enter(who, is_wanted, lambda is_proved: self.said.append(f"{name} {is_proved}"))

    async def until_empty(self) -> None:
        async with asyncio.timeout(20):
            while len(self.room):
                await asyncio.sleep(0)


def in_a_loop(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_who_is_not_ahead_comes_in_at_once_and_others_wait_in_line() -> None:
    async def scenario() -> None:
        ahead = Ahead(4)
        for name in ("first", "second"):
            ahead.enter(ORDERS, name)
        ahead.enter(BILLING, "other")
        assert (ahead.said, len(ahead.room)) == (["other True"], 2)
        await ahead.until_empty()
        ahead.enter(ORDERS, "third")
        assert ahead.said == ["other True", "first True", "second True", "third True"]

    in_a_loop(scenario())


def test_the_one_who_comes_in_may_make_the_next_wait_again() -> None:
    async def scenario() -> None:
        ahead = Ahead(1)

        def come_in(_is_proved: bool) -> None:
            ahead.said.append("first")
            ahead.questions = 1_000_000

        ahead.room.enter(ORDERS, lambda: True, come_in)
        ahead.enter(ORDERS, "second")
        await asyncio.sleep(0.01)
        while not ahead.said:
            await asyncio.sleep(0)
        assert (ahead.said, len(ahead.room)) == (["first"], 1)
        ahead.questions = 0
        await ahead.until_empty()
        assert ahead.said == ["first", "second True"]

    in_a_loop(scenario())


def test_who_has_gone_is_forgotten_though_its_account_is_far_ahead(monkeypatch: Any) -> None:
    monkeypatch.setattr(waiting_room, "_LOOK_S", 0.001)

    async def scenario() -> None:
        ahead = Ahead(1_000_000)
        wanted = {"is": True}
        ahead.room = WaitingRoom(lambda _account: 1_000.0)
        for number in range(100):
            ahead.enter(ORDERS, str(number), lambda: wanted["is"])
        assert len(ahead.room) == 100
        wanted["is"] = False
        await ahead.until_empty()
        assert ahead.said == []

    in_a_loop(scenario())


def test_what_no_longer_counts_at_the_end_of_a_wait_must_be_proved_again() -> None:
    async def scenario() -> None:
        ahead = Ahead(2)
        for name in ("first", "second"):
            ahead.enter(ORDERS, name)
        ahead.room.doubt(lambda who: who.user == "billing")
        await ahead.until_empty()
        assert ahead.said == ["first True", "second True"]
        ahead.questions = 1
        ahead.enter(ORDERS, "third")
        ahead.room.doubt(lambda who: who.user == "orders")
        await ahead.until_empty()
        assert ahead.said[-1] == "third False"

    in_a_loop(scenario())


def test_a_program_whose_entrance_fails_keeps_nobody_behind_it_waiting() -> None:
    async def scenario() -> None:
        ahead, faults = Ahead(1), []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, told: faults.append(told["exception"]))

        def fail(_is_proved: bool) -> None:
            raise ZeroDivisionError

        ahead.room.enter(ORDERS, lambda: True, fail)
        ahead.enter(ORDERS, "second")
        await ahead.until_empty()
        assert (ahead.said, [type(each) for each in faults]) == (["second True"], [ZeroDivisionError])

    in_a_loop(scenario())

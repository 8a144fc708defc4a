"""Connections with work in line, by a clock that only their work moves on."""

import asyncio
from collections.abc import Callable

from gateway.listener.mq.turns import TURN_S, Turns


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0


class Digger:
    """Does pieces of work that take some time each, and writes its name at each."""

    def __init__(self, name: str, pieces: int, clock: Clock, done: list[str], *, takes_s: float = TURN_S / 4) -> None:
        self.name, self.left, self.takes_s = name, pieces, takes_s
        self._clock, self._done = clock, done

    def work(self) -> bool:
        self._clock.now_s += self.takes_s
        self._done.append(self.name)
        self.left -= 1
        return self.left > 0


def in_a_loop(check: Callable[[Turns, Clock, list[str]], Callable[[], None]]) -> None:
    """Begins a check in a loop; what it returns runs after the next turn of the loop."""

    async def run() -> None:
        clock = Clock()
        then = check(Turns(now_s=lambda: clock.now_s), clock, [])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        then()

    asyncio.run(run())


def test_work_that_takes_long_goes_on_in_the_next_turn_of_the_loop() -> None:
    def check(turns: Turns, clock: Clock, done: list[str]) -> Callable[[], None]:
        digger = Digger("a", 6, clock, done)
        turns.join(digger)
        turns.serve()
        assert done == ["a"] * 4
        assert turns.has(digger)

        def then() -> None:
            assert done == ["a"] * 6
            assert not turns.has(digger)

        return then

    in_a_loop(check)


def test_connections_take_turns_after_each_piece() -> None:
    def check(turns: Turns, clock: Clock, done: list[str]) -> Callable[[], None]:
        turns.join(Digger("a", 3, clock, done))
        turns.join(Digger("b", 1, clock, done))
        turns.serve()
        assert done == ["a", "b", "a", "a"]
        return lambda: None

    in_a_loop(check)


def test_a_connection_that_has_gone_works_no_more() -> None:
    def check(turns: Turns, clock: Clock, done: list[str]) -> Callable[[], None]:
        digger = Digger("a", 3, clock, done)
        turns.join(digger)
        turns.leave(digger)
        turns.serve()
        assert done == []
        return lambda: None

    in_a_loop(check)


def test_a_piece_of_work_sees_whether_the_turn_has_time() -> None:
    def check(turns: Turns, clock: Clock, done: list[str]) -> Callable[[], None]:
        seen: list[bool] = []

        class Looking(Digger):
            def work(self) -> bool:
                seen.append(turns.has_time)
                more = super().work()
                seen.append(turns.has_time)
                return more

        turns.join(Looking("a", 1, clock, done, takes_s=TURN_S * 1.5))
        assert not turns.has_time
        turns.serve()
        assert seen == [True, False]
        return lambda: None

    in_a_loop(check)


def test_work_that_asks_for_work_does_not_begin_inside_itself() -> None:
    def check(turns: Turns, clock: Clock, done: list[str]) -> Callable[[], None]:
        other = Digger("b", 1, clock, done)

        class Asking(Digger):
            def work(self) -> bool:
                turns.join(other)
                turns.serve()
                return super().work()

        turns.join(Asking("a", 1, clock, done))
        turns.serve()
        assert done == ["a", "b"]
        return lambda: None

    in_a_loop(check)

"""The moments at which something falls due for sessions, against a plain list."""

import random

import pytest

from gateway.bridge.connect.disconnect import DueTimes
from tests.gateway.bridge.conftest import World


@pytest.mark.parametrize("seed", range(5))
def test_what_is_due_is_taken_in_its_order_and_once(world: World, seed: int) -> None:
    dice = random.Random(seed)
    sessions = [world.sessions.create(f"c{number}", level=5, clean_session=False) for number in range(10)]
    due_times, expected = DueTimes(), dict.fromkeys(sessions[:0], 0)
    for now_us in range(1, 2_000):
        session = dice.choice(sessions)
        if dice.random() < 0.5:
            expected[session] = now_us + dice.randrange(1, 50)
            due_times.set(session, expected[session])
        elif dice.random() < 0.2:
            expected.pop(session, None)
            due_times.discard(session)
        taken = []
        while (found := due_times.take(now_us)) is not None:
            taken.append(expected.pop(found))
        assert taken == sorted(taken)
        assert all(moment <= now_us for moment in taken)
        assert all(moment > now_us for moment in expected.values())
        assert len(due_times) == len(expected)


def test_sessions_that_come_and_go_leave_no_entries_behind(world: World) -> None:
    session = world.sessions.create("self", level=5, clean_session=False)
    due_times = DueTimes()
    for moment in range(100_000):
        due_times.set(session, moment)
        due_times.discard(session)
    assert len(due_times._heap) < 100

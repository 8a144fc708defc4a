"""The plausible time beside clocks that the test sets: jumps, sleep, starts without a clock chip, who is believed."""

import pytest

from mq_adapters.plausible_clock import (
    BOUND_US,
    START_BOUND_US,
    STEADY_US,
    SYNCHRONISED_US,
    ClockState,
    PlausibleClock,
    boot_us,
    wall_us,
)

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOON = 1_795_158_000 * SECOND


class Machine:
    """Both clocks of a machine, and whether NTP is content."""

    def __init__(self, wall_us: int = NOON) -> None:
        self.wall_us, self.boot_us, self.is_synchronised = wall_us, 500 * SECOND, False

    def clock(self, newest_us: int = 0) -> PlausibleClock:
        return PlausibleClock(
            newest_us,
            wall_us=lambda: self.wall_us,
            boot_us=lambda: self.boot_us,
            is_synchronised=lambda: self.is_synchronised,
        )

    def passes(self, us: int) -> None:
        self.wall_us += us
        self.boot_us += us


def steps(machine: Machine, clock: PlausibleClock, us: int, step: int = SECOND) -> None:
    """Lets time pass while somebody asks for it again and again."""
    for _ in range(us // step):
        machine.passes(step)
        clock.now_us()


def test_time_passes_as_on_the_wall_and_sleep_is_no_jump() -> None:
    machine = Machine()
    clock = machine.clock(newest_us=NOON - 10 * SECOND)
    assert clock.now_us() == NOON
    machine.passes(3 * DAY)  # CLOCK_BOOTTIME counts what the machine slept
    assert clock.now_us() == NOON + 3 * DAY
    assert (clock.state, clock.events(), clock.doubt_us) == (ClockState.SETTLED, [], 0)


@pytest.mark.parametrize(("jump", "state"), [(100 * DAY, ClockState.AHEAD), (-100 * DAY, ClockState.BEHIND)])
def test_a_short_wrong_clock_is_not_followed(jump: int, state: ClockState) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall_us += jump
    steps(machine, clock, 4 * SECOND)
    assert clock.now_us() == NOON + 4 * SECOND, "neither early nor stopped"
    assert clock.state is state
    assert clock.doubt_us == jump
    machine.wall_us -= jump
    machine.passes(SECOND)
    assert clock.now_us() == NOON + 5 * SECOND
    (left, back) = clock.events()
    assert (left.state, left.jump_us) == (state, jump)
    assert (back.state, back.reason) == (ClockState.SETTLED, "the wall clock is plausible again")


def test_what_is_asked_between_a_jump_and_the_next_look_is_plausible_too() -> None:
    machine = Machine()
    clock = machine.clock()
    clock.now_us()
    machine.wall_us += DAY
    machine.boot_us += 1_000
    assert clock.now_us() == NOON + 1_000


def test_a_clock_that_is_slewed_is_followed_and_one_that_creeps_is_not() -> None:
    machine = Machine()
    clock = machine.clock()
    for _ in range(600):
        machine.passes(SECOND)
        machine.wall_us += 500
        clock.now_us()
    assert clock.now_us() == machine.wall_us
    for _ in range(60):
        machine.passes(SECOND)
        machine.wall_us += SECOND
        clock.now_us()
    assert clock.state is ClockState.AHEAD
    assert clock.now_us() <= NOON + 660 * SECOND + 2 * BOUND_US


def test_ntp_is_believed_when_it_has_been_content_for_a_minute() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall_us += DAY
    machine.is_synchronised = True
    steps(machine, clock, SYNCHRONISED_US // 2)
    machine.is_synchronised = False
    steps(machine, clock, 2 * SECOND)
    machine.is_synchronised = True
    steps(machine, clock, SYNCHRONISED_US)
    assert clock.state is ClockState.AHEAD
    steps(machine, clock, 3 * SECOND)
    assert clock.state is ClockState.SETTLED
    assert clock.now_us() == machine.wall_us
    assert clock.events()[-1].reason == "NTP calls the wall clock synchronised"


def test_a_clock_that_keeps_its_new_course_is_believed_after_hours() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall_us -= 40 * DAY
    steps(machine, clock, STEADY_US - 60 * SECOND, 30 * SECOND)
    assert clock.state is ClockState.BEHIND
    machine.wall_us += 20 * DAY  # another jump: the hours begin anew
    steps(machine, clock, STEADY_US - 60 * SECOND, 30 * SECOND)
    assert clock.state is ClockState.BEHIND
    steps(machine, clock, 120 * SECOND, 30 * SECOND)
    assert (clock.state, clock.now_us()) == (ClockState.SETTLED, machine.wall_us)


def test_an_operator_is_believed_at_once() -> None:
    machine = Machine()
    clock = machine.clock()
    assert not clock.believe("anna")
    machine.wall_us += DAY
    machine.passes(SECOND)
    clock.now_us()
    assert clock.believe("anna")
    assert clock.now_us() == NOON + DAY + SECOND
    assert clock.events()[-1] == (ClockState.SETTLED, DAY, "anna")


@pytest.mark.parametrize("year_1970", [0, 60 * SECOND])
def test_a_device_without_a_clock_chip_goes_on_where_it_was(year_1970: int) -> None:
    machine = Machine(wall_us=year_1970)
    clock = machine.clock(newest_us=NOON)
    machine.passes(10 * SECOND)
    assert clock.now_us() == NOON + 10 * SECOND
    assert clock.state is ClockState.BEHIND
    machine.wall_us = NOON + 3600 * SECOND  # somebody has set it to a time that would have been believed at the start
    machine.passes(SECOND)
    assert clock.now_us() == machine.wall_us
    assert clock.events()[-1] == (ClockState.SETTLED, 3590 * SECOND, "the wall clock is plausible again")


def test_a_device_that_was_off_for_a_year_waits_for_ntp() -> None:
    machine = Machine(wall_us=0)
    clock = machine.clock(newest_us=NOON)
    machine.wall_us, machine.is_synchronised = NOON + 365 * DAY, True
    steps(machine, clock, SYNCHRONISED_US)
    assert clock.state is ClockState.AHEAD
    steps(machine, clock, 3 * SECOND)
    assert (clock.state, clock.now_us()) == (ClockState.SETTLED, machine.wall_us)


def test_a_start_far_ahead_waits_and_one_after_a_night_does_not() -> None:
    machine = Machine()
    assert machine.clock(newest_us=NOON - START_BOUND_US).state is ClockState.SETTLED
    assert machine.clock(newest_us=NOON + BOUND_US).state is ClockState.SETTLED
    late = machine.clock(newest_us=NOON - START_BOUND_US - 1)
    assert (late.state, late.now_us()) == (ClockState.AHEAD, NOON - START_BOUND_US - 1)
    assert machine.clock().state is ClockState.SETTLED, "nothing is kept, so nothing contradicts"


def test_the_newest_time_that_is_kept_decides() -> None:
    machine = Machine()
    clock = machine.clock(newest_us=NOON - 40 * DAY)
    clock.not_before(NOON - 50 * DAY)
    assert clock.now_us() == NOON - 40 * DAY
    clock.not_before(NOON - 3600 * SECOND)
    assert (clock.state, clock.now_us(), clock.events()) == (ClockState.SETTLED, NOON, [])


def test_the_machines_own_clocks_are_read() -> None:
    clock = PlausibleClock()
    before, now, after = wall_us(), clock.now_us(), wall_us()
    assert before - BOUND_US <= now <= after + BOUND_US
    assert boot_us() > 0

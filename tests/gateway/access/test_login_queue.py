"""The queue of passwords that wait for their check: turns, debts, who gives way; under sieges, simulated (siege.py)."""

from random import Random

import pytest

from gateway.access.login_queue import (
    MAXIMUM_DEBT_S,
    NEWCOMERS_SHARE,
    WRONG_PASSWORD_S,
    Debts,
    LoginQueue,
    WaitingLogin,
)
from gateway.limits.addresses import network_of
from tests.gateway.access.siege import Siege, attackers, fleet, newcomers, share_in


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


class Queue:
    """A queue of named logins."""

    def __init__(self, places: int = 100) -> None:
        self.clock = Clock()
        self.queue: LoginQueue[str] = LoginQueue(places, now_s=self.clock, random=Random(7))

    def offer(self, name: str, address: str, *, user: str = "u", is_lately: bool = False) -> str | None:
        """The name of the login that gives way."""
        login = WaitingLogin(name, network=network_of(address), user=user, is_lately=is_lately)
        loser = self.queue.offer(login)
        return None if loser is None else loser.asked

    def check(self, is_right: bool | None = None) -> str:
        """The name of the next login, whose check ends so."""
        login = self.queue.take()
        assert login is not None
        self.queue.finished(login, is_right)
        return login.asked

    def check_all(self) -> list[str]:
        return [self.check() for _ in range(self.queue.waiting)]


# -- sieges ------------------------------------------------------------------------------------------------------------


def test_newcomers_get_in_while_600_addresses_try_passwords() -> None:
    """At once when most attackers have a debt. In turns of addresses alone half of them took 13 seconds."""
    random = Random(150)
    devices = newcomers(number=40, begins_s=0, each_s=1)
    Siege(random=random).run([*attackers(random, addresses=600, rate=150, until_s=45), *devices], 45)
    assert share_in(devices, 0.5) >= 0.6
    assert share_in(devices[20:], 0.5) >= 0.95
    assert share_in(devices[:35], 10) >= 0.95


@pytest.mark.parametrize("is_lately", [True, False], ids=["known", "memory lost"])
def test_a_fleet_behind_one_address_comes_back_under_siege_and_keeps_nobody_out(is_lately: bool) -> None:
    """Its 400 passwords take ten seconds of checks; it has all but a share of what there is."""
    random = Random(3)
    pumps = fleet(random, number=400, begins_s=2, is_lately=is_lately, pause_s=5)
    devices = newcomers(number=10, begins_s=20, each_s=1)
    Siege(random=random).run([*attackers(random, addresses=600, rate=150, until_s=45), *pumps, *devices], 45)
    assert share_in(pumps, 35) == 1
    assert share_in(devices, 15) == 1


def test_a_fleet_is_told_from_attackers_behind_the_same_load_balancer() -> None:
    random = Random(5)
    pumps = fleet(random, number=200, begins_s=5, is_lately=True, pause_s=5)
    guesses = attackers(random, addresses=1, rate=150, until_s=30)
    for guess in guesses:
        guess.network = pumps[0].network
    Siege(random=random).run([*guesses, *pumps], 30)
    assert share_in(pumps, 20) == 1


def test_guesses_at_one_known_user_delay_that_user_alone() -> None:
    random = Random(6)
    pumps = fleet(random, number=200, begins_s=5, is_lately=True, pause_s=5)
    guesses = attackers(random, addresses=1, rate=150, until_s=30, user="pump 0")
    for guess in guesses:
        guess.network, guess.is_lately = pumps[0].network, True
    Siege(random=random).run([*guesses, *pumps], 30)
    assert share_in(pumps[1:], 20) == 1


# -- turns -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("crowd", "other"),
    [
        ([f"10.1.{number}.9" for number in range(9)], "10.2.0.9"),
        ([f"10.1.1.{number}" for number in range(9)], "10.1.2.9"),
        (["10.1.1.1"] * 9, "10.1.1.2"),
        ([f"2001:db8:1:{number}::9" for number in range(9)], "2001:db8:2::9"),
        ([f"2001:db8:1:1::{number}" for number in range(9)], "2001:db8:1:2::9"),
    ],
    ids=["/16", "/24", "address", "/48", "/64"],
)
def test_at_each_level_those_of_one_prefix_share_its_turns(crowd: list[str], other: str) -> None:
    queue = Queue()
    for number, address in enumerate(crowd):
        queue.offer(f"crowd {number}", address)
    queue.offer("other", other)
    queue.offer("other again", other)
    assert queue.check_all()[:4] == ["crowd 0", "other", "crowd 1", "other again"]


def test_users_behind_one_address_take_turns() -> None:
    queue = Queue()
    for number in range(3):
        queue.offer(f"loud {number}", "10.0.0.1", user="loud")
    queue.offer("quiet", "10.0.0.1", user="quiet")
    assert queue.check_all() == ["loud 0", "quiet", "loud 1", "loud 2"]


def test_who_logged_in_lately_goes_first_and_newcomers_have_every_eighth_check() -> None:
    queue = Queue()
    for number in range(20):
        queue.offer(f"new {number}", f"10.{number}.0.1")
        queue.offer(f"known {number}", f"10.{number}.0.1", is_lately=True)
    order = queue.check_all()
    assert [name.split()[0] for name in order[: 2 * NEWCOMERS_SHARE]] == (["known"] * 7 + ["new"]) * 2
    assert len(set(order)) == 40


# -- debts -------------------------------------------------------------------------------------------------------------


def test_a_wrong_password_is_a_debt_of_its_prefixes_and_a_right_one_pays_it() -> None:
    queue = Queue()
    queue.offer("wrong", "10.1.1.1")
    queue.check(is_right=False)
    for neighbour in ("10.1.1.1", "10.1.1.2", "10.1.2.1"):
        queue.offer("neighbour", neighbour)
        queue.offer("other", "10.2.0.1")
        assert queue.check_all() == ["other", "neighbour"], neighbour
    queue.offer("right", "10.1.1.1")
    queue.check(is_right=True)
    queue.offer("neighbour", "10.1.1.1")
    queue.offer("other", "10.2.0.1")
    assert queue.check_all() == ["neighbour", "other"]


def test_a_debt_is_over_after_its_time_and_never_longer_than_the_longest() -> None:
    queue = Queue()
    for _ in range(100):
        queue.offer("wrong", "10.1.1.1")
        queue.check(is_right=False)
    path = WaitingLogin("", network=network_of("10.1.1.1")).path
    queue.clock.now_s += MAXIMUM_DEBT_S - 1
    assert queue.queue.debts.has(path)
    queue.clock.now_s += 2
    assert not queue.queue.debts.has(path)


def test_a_check_that_was_not_made_is_no_debt() -> None:
    queue = Queue()
    queue.offer("gone", "10.1.1.1")
    queue.check(is_right=None)
    assert len(queue.queue.debts) == 0


def test_debts_take_bounded_memory() -> None:
    debts = Debts(Clock())
    for number in range(20_000):
        address = number.to_bytes(4)
        debts.add((address[:2], address[:3], address, address + b"/user"), WRONG_PASSWORD_S)
    assert len(debts) < 4 * 8_200
    assert debts.has(((19_999).to_bytes(4)[:2],))


# -- who gives way -----------------------------------------------------------------------------------------------------


def test_in_a_full_queue_the_largest_crowd_gives_way_its_newest_first() -> None:
    queue = Queue(places=10)
    for number in range(10):
        assert queue.offer(f"crowd {number}", f"10.1.{number}.1") is None
    assert queue.offer("other", "10.2.0.1") not in (None, "other")
    queue = Queue(places=3)
    for number in range(3):
        assert queue.offer(f"crowd {number}", "10.1.1.1") is None
    assert queue.offer("other", "10.2.0.1") == "crowd 2"


def test_whoever_has_a_debt_gives_way_to_whoever_has_none() -> None:
    queue = Queue(places=20)
    for number in range(10):
        queue.offer("wrong", f"10.{number}.0.1")
        queue.check(is_right=False)
    for number in range(10):
        queue.offer(f"debtor {number}", f"10.{number}.0.1")
    losers = [queue.offer(f"fleet {number}", "192.0.2.1") for number in range(18)]
    assert losers[:10] == [None] * 10
    assert sum((loser or "").startswith("debtor") for loser in losers[10:]) >= 6


def test_debtors_are_refused_early_and_others_only_in_a_full_queue() -> None:
    """In three quarters of the places half of the debtors stay; which ones is drawn by lot."""
    queue = Queue(places=400)
    for number in range(200):
        queue.offer("wrong", f"10.{number}.0.1")
        queue.check(is_right=False)
    for number in range(300):
        assert queue.offer("clean", f"172.{number % 256}.{number // 256}.1") is None
    refused = sum(queue.offer("debtor", f"10.{number}.0.1") == "debtor" for number in range(40))
    assert 10 <= refused <= 34


def test_places_are_kept_for_newcomers_and_the_rest_is_for_those_who_were_here_lately() -> None:
    queue = Queue(places=80)
    for number in range(80):
        assert queue.offer("known", f"10.{number}.0.1", is_lately=True) is None
    for number in range(10):
        assert queue.offer("new", f"172.{number}.0.1") == "known"
    assert queue.offer("new", "172.99.0.1") == "new"
    queue = Queue(places=80)
    for number in range(80):
        queue.offer("new", f"172.{number}.0.1")
    for number in range(70):
        assert queue.offer("known", f"10.{number}.0.1", is_lately=True) == "new"
    assert queue.offer("known", "10.99.0.1", is_lately=True) == "known"


def test_whatever_comes_each_login_ends_once_and_the_places_are_never_passed() -> None:
    random = Random(11)
    queue: LoginQueue[int] = LoginQueue(16, now_s=Clock(), random=random)
    left: set[int] = set()
    under_way: list[WaitingLogin[int]] = []
    for number in range(3_000):
        if random.random() < 0.6:
            left.add(number)
            network = bytes(random.randrange(3) for _ in range(random.choice((0, 4, 8))))
            login = WaitingLogin(number, network=network, user=str(number % 3), is_lately=random.random() < 0.5)
            if (loser := queue.offer(login)) is not None:
                left.remove(loser.asked)
        elif (taken := queue.take()) is not None:
            left.remove(taken.asked)
            under_way.append(taken)
        if len(under_way) > random.randrange(4):
            queue.finished(under_way.pop(), random.choice((True, False, None)))
        assert queue.waiting == len(left)
        assert queue.unfinished == len(left) + len(under_way) <= 16
    queue.clear()
    assert queue.take() is None

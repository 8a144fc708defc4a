"""Budgets nest: what is charged to a client counts for its user or address, for the prefix, and for everybody."""

import random
from collections import Counter

import pytest

from gateway.config.limit_row import Scope
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.addresses import prefixes_of
from gateway.limits.budgets import KEPT_TIMES, LIMITS, RATES, Account, Amount, Budgets
from gateway.limits.owner import Owner
from gateway.limits.refusals import LimitReached
from mq_adapters.embedded.socket.pace import ApplicationAccount

ANN, BOB = Owner("ann"), Owner("bob")
HERE, BESIDE, ELSEWHERE = (Owner(None, bytes((192, 0, 2, last))) for last in (1, 2, 3))
FAR = Owner(None, bytes((198, 51, 100, 1)))
NEAR_6, WIDE_6 = (Owner(None, bytes.fromhex(f"20010db8000100{last:02x}")) for last in (1, 2))


def budgets(**limits: int) -> Budgets:
    return Budgets(MqttLimits.model_validate(limits))


def limit_of(found: LimitReached | None) -> Limit | None:
    return None if found is None else found.limit


def sizes(account: Account, amount: Amount) -> list[int]:
    return [each.amounts[amount] for each in account.line()]


def test_a_charge_counts_for_the_client_and_for_everybody_around_it() -> None:
    world = budgets()
    of_user, of_address = world.open("a", ANN), world.open("b", HERE)
    of_user.charge(Amount.SUBSCRIPTIONS, 5)
    of_address.charge(Amount.SUBSCRIPTIONS, 2)
    assert [each.scope for each in of_user.line()] == [Scope.CLIENT, Scope.USER, Scope.ALL]
    assert [each.scope for each in of_address.line()] == [
        Scope.CLIENT,
        Scope.ADDRESS,
        Scope.PREFIX,
        Scope.PREFIX,
        Scope.ALL,
    ]
    assert sizes(of_user, Amount.SUBSCRIPTIONS) == [5, 5, 7]
    assert sizes(of_address, Amount.SUBSCRIPTIONS) == [2, 2, 2, 2, 7]
    of_user.charge(Amount.SUBSCRIPTIONS, -1)
    assert sizes(of_user, Amount.SUBSCRIPTIONS) == [4, 4, 6]


@pytest.mark.parametrize(
    ("key", "limit", "owner"),
    [
        ("maximum_subscriptions", Limit.SUBSCRIPTIONS, ANN),
        ("maximum_subscriptions_per_user", Limit.SUBSCRIPTIONS_PER_USER, ANN),
        ("maximum_subscriptions_per_address", Limit.SUBSCRIPTIONS_PER_ADDRESS, HERE),
        ("maximum_subscriptions_per_prefix", Limit.SUBSCRIPTIONS_PER_PREFIX, HERE),
        ("maximum_subscriptions_in_all", Limit.SUBSCRIPTIONS_IN_ALL, HERE),
    ],
)
def test_the_limit_of_every_scope_holds(key: str, limit: Limit, owner: Owner) -> None:
    world = budgets(**{key: 3})
    account = world.open("a", owner)
    assert world.refusal(account, Amount.SUBSCRIPTIONS, 3) is None
    account.charge(Amount.SUBSCRIPTIONS, 2)
    assert world.refusal(account, Amount.SUBSCRIPTIONS) is None
    assert limit_of(world.refusal(account, Amount.SUBSCRIPTIONS, 2)) is limit


@pytest.mark.parametrize(
    ("first", "second", "limits"),
    [
        (ANN, ANN, {"maximum_subscriptions_per_user": 4}),
        (HERE, HERE, {"maximum_subscriptions_per_address": 4}),
        (HERE, BESIDE, {"maximum_subscriptions_per_prefix": 4}),
        (NEAR_6, WIDE_6, {"maximum_subscriptions_per_prefix": 4}),
        (HERE, FAR, {"maximum_subscriptions_in_all": 4}),
    ],
)
def test_a_new_identifier_brings_no_new_budget(first: Owner, second: Owner, limits: dict[str, int]) -> None:
    world = budgets(**limits)
    world.open("a", first).charge(Amount.SUBSCRIPTIONS, 4)
    assert world.refusal(world.open("b", second), Amount.SUBSCRIPTIONS) is not None


@pytest.mark.parametrize(
    ("first", "second", "limits"),
    [
        (ANN, BOB, {"maximum_subscriptions_per_user": 4}),
        (ANN, HERE, {"maximum_subscriptions_per_address": 4}),
        (HERE, BESIDE, {"maximum_subscriptions_per_address": 4}),
        (HERE, FAR, {"maximum_subscriptions_per_prefix": 4}),
        (Owner(None), HERE, {"maximum_subscriptions_per_prefix": 4}),
    ],
)
def test_others_feel_nothing(first: Owner, second: Owner, limits: dict[str, int]) -> None:
    world = budgets(**limits)
    world.open("a", first).charge(Amount.SUBSCRIPTIONS, 4)
    assert world.refusal(world.open("b", second), Amount.SUBSCRIPTIONS, 4) is None


def test_a_user_without_a_limit_has_the_budget_of_some_clients_and_more_with_many_sessions() -> None:
    world = budgets(maximum_subscriptions=10)
    account = world.open("0", ANN)
    account.charge(Amount.SUBSCRIPTIONS, 2)
    world.open("1", ANN).charge(Amount.SUBSCRIPTIONS, 156)
    assert world.refusal(account, Amount.SUBSCRIPTIONS, 2) is None
    assert limit_of(world.refusal(account, Amount.SUBSCRIPTIONS, 3)) is Limit.SUBSCRIPTIONS_PER_USER
    for number in range(2, 20 * 17):
        world.open(str(number), ANN)
    assert world.refusal(account, Amount.SUBSCRIPTIONS, 8) is None, "340 sessions have the budget of 17 clients"


def test_ten_thousand_sensors_of_one_user_are_within_the_defaults() -> None:
    world = budgets()
    for number in range(10_000):
        account = world.open(f"sensor-{number}", ANN)
        assert world.refusal_of_session(ANN) is None
        assert world.refusal(account, Amount.SUBSCRIPTIONS, 10) is None
        account.charge(Amount.SUBSCRIPTIONS, 10)


def test_the_last_tenth_is_kept_for_those_who_have_little() -> None:
    world = budgets(maximum_sessions=1_000, maximum_subscriptions_in_all=1_000, maximum_subscriptions_per_user=1_000)
    account = world.open("a", ANN)
    account.charge(Amount.SUBSCRIPTIONS, 900)
    newcomer = world.open("b", BOB)
    assert limit_of(world.refusal(account, Amount.SUBSCRIPTIONS)) is Limit.SUBSCRIPTIONS_IN_ALL
    assert world.refusal(newcomer, Amount.SUBSCRIPTIONS, 10) is None
    assert limit_of(world.refusal(newcomer, Amount.SUBSCRIPTIONS, 11)) is Limit.SUBSCRIPTIONS_IN_ALL


def test_a_new_identifier_of_a_user_who_has_much_is_no_newcomer() -> None:
    world = budgets(maximum_sessions=100)
    for number in range(90):
        assert world.refusal_of_session(HERE) is None
        world.open(str(number), HERE)
    assert limit_of(world.refusal_of_session(HERE)) is Limit.SESSIONS
    assert limit_of(world.refusal_of_session(BESIDE)) is Limit.SESSIONS, "the same prefix"
    assert world.refusal_of_session(FAR) is None
    assert world.refusal_of_session(ANN) is None


def test_a_session_that_is_there_needs_no_new_place() -> None:
    world = budgets(maximum_sessions=1, maximum_sessions_per_user=1)
    account = world.open("a", ANN)
    assert world.refusal_of_session(ANN, account) is None
    assert limit_of(world.refusal_of_session(ANN)) is Limit.SESSIONS_PER_USER
    assert limit_of(world.refusal_of_session(BOB)) is Limit.SESSIONS


def test_who_has_less_than_the_average_of_its_user_has_not_overdrawn_its_account() -> None:
    world = budgets(maximum_queued_bytes_per_user=100)
    much, little = world.open("a", ANN), world.open("b", ANN)
    much.charge(Amount.QUEUED_BYTES, 90)
    little.charge(Amount.QUEUED_BYTES, 10)
    assert world.overdrawn(much, Amount.QUEUED_BYTES) is None
    much.charge(Amount.QUEUED_BYTES)
    assert world.overdrawn(much, Amount.QUEUED_BYTES) is Limit.QUEUED_BYTES_PER_USER
    assert world.overdrawn(little, Amount.QUEUED_BYTES) is None


def test_a_session_takes_its_amounts_to_its_new_owner() -> None:
    world = budgets()
    account, other = world.open("a", HERE), world.open("b", HERE)
    account.charge(Amount.SUBSCRIPTIONS, 3)
    world.move(account, ANN)
    assert sizes(account, Amount.SUBSCRIPTIONS) == [3, 3, 3]
    assert sizes(other, Amount.SUBSCRIPTIONS) == [0, 0, 0, 0, 3]
    world.close(account)
    world.close(other)
    assert (len(world), world.everybody.amounts) == (0, [0] * len(Amount))


def test_everything_is_released_when_a_session_ends() -> None:
    world = budgets()
    account, other = world.open("a", HERE), world.open("b", BESIDE)
    account.charge(Amount.SUBSCRIPTIONS, 3)
    other.charge(Amount.SUBSCRIPTIONS, 1)
    world.close(account)
    assert sizes(other, Amount.SUBSCRIPTIONS) == [1, 1, 1, 1, 1]
    assert len(world) == 4, "a client, its address and its two prefixes"


def test_who_only_asks_leaves_nothing_behind() -> None:
    world = budgets()
    for number in range(1_000):
        world.refusal_of_session(Owner(f"user-{number}"))
        world.refusal_of_session(Owner(None, number.to_bytes(4, "big")))
    assert len(world) == 0


def test_a_long_identifier_costs_no_more_memory_than_a_short_one() -> None:
    account = budgets().open("x" * 65_535, Owner("y" * 65_535))
    assert max(len(each.key[1]) for each in account.line()) <= 64


def test_sums_are_right_whatever_happens() -> None:
    """Against a plain model: a dictionary of each client's owner and amounts."""
    chance, world = random.Random(4), budgets()
    owners = [ANN, BOB, HERE, BESIDE, ELSEWHERE, FAR, NEAR_6, WIDE_6]
    model: dict[str, tuple[Account, Owner, int]] = {}
    for _ in range(5_000):
        client = f"client-{chance.randrange(40)}"
        account, owner, count = model.pop(client, (None, chance.choice(owners), 0))
        if account is None:
            model[client] = (world.open(client, owner), owner, 0)
            continue
        step = chance.randrange(4)
        if step == 0:
            world.close(account)
            continue
        if step == 1:
            world.move(account, owner := chance.choice(owners))
        else:
            more = chance.randrange(-count, 5)
            account.charge(Amount.SUBSCRIPTIONS, more)
            count += more
        model[client] = (account, owner, count)
        expected = Counter[Owner]()
        for _, whose, has in model.values():
            expected[whose] += has
        for each, whose, has in model.values():
            assert sizes(each, Amount.SUBSCRIPTIONS)[:2] == [has, expected[whose]]
        assert world.everybody.amounts[:2] == [len(model), sum(expected.values())]
    networks = [owner.network for _, owner, _ in model.values() if not owner.user]
    prefixes = {prefix for network in networks for prefix in prefixes_of(network)[:-1]}
    assert len(world) == len(model) + len({owner for _, owner, _ in model.values()}) + len(prefixes)


def test_every_amount_has_limits() -> None:
    assert set(LIMITS) == set(Amount)


# -- rates -------------------------------------------------------------------------------------------------------------


def spend_all(world: Budgets, account: Account, messages: int, now_s: float, *, read: int = 10) -> float:
    """Sends messages in reads as a client does that waits for each pause. Returns when the last was read."""
    for _ in range(messages // read):
        now_s += max(0.0, world.spend(account, read, 0, 0, now_s))
    return now_s


def test_what_comes_after_a_quiet_time_is_free_and_the_rest_comes_at_the_rate() -> None:
    world = budgets(message_rate=100)
    account = world.open("a", ANN)
    assert spend_all(world, account, 1_000, 500.0) == pytest.approx(500.0)
    assert spend_all(world, account, 1_000, 500.0) == pytest.approx(510.0)
    assert world.spend(account, 500, 0, 0, 515.0) == pytest.approx(0.0, abs=1e-9), "half of the free time has come back"
    assert world.spend(account, 1, 0, 0, 515.0) == pytest.approx(0.01)


def test_a_backlog_gets_through_at_the_rate_and_never_gets_far_ahead() -> None:
    world = budgets(message_rate=100)
    account, now_s = world.open("a", HERE), 0.0
    for _ in range(86_400 // 100):
        wait_s = world.spend(account, 100, 0, 0, now_s)
        assert world.too_fast(account, 100, 0) is None
        now_s += max(0.0, wait_s)
    assert now_s == pytest.approx(864 - 10)


def test_one_large_read_is_only_slowed_down() -> None:
    world = budgets(message_rate=1)
    account = world.open("a", ANN)
    assert world.spend(account, 2_000, 0, 0, 50.0) == pytest.approx(1_990)
    assert world.too_fast(account, 2_000, 0) is None


@pytest.mark.parametrize(
    ("limits", "brings", "limit"),
    [
        ({"message_rate": 10}, (100, 1), Limit.MESSAGE_RATE),
        ({"byte_rate": 1_000}, (1, 10_000), Limit.BYTE_RATE),
    ],
)
def test_who_comes_again_and_again_is_far_ahead_at_last(
    limits: dict[str, int], brings: tuple[int, int], limit: Limit
) -> None:
    """Each connection brings one read before it waits: 10 seconds' worth."""
    world = budgets(**limits)
    found: list[Limit | None] = []
    for _ in range(9):
        account = world.open("a", ANN)
        world.spend(account, *brings, 0, 100.0)
        found.append(limit_of(world.too_fast(account, *brings)))
        world.close(account)
    assert found == [None] * 8 + [limit], "ten free seconds, and sixty more"


@pytest.mark.parametrize(
    ("owner", "key", "limit"),
    [
        (ANN, "message_rate_per_user", Limit.MESSAGE_RATE_PER_USER),
        (HERE, "message_rate_per_address", Limit.MESSAGE_RATE_PER_ADDRESS),
        (HERE, "message_rate_per_prefix", Limit.MESSAGE_RATE_PER_PREFIX),
    ],
)
def test_a_new_identifier_each_time_brings_no_new_rate(owner: Owner, key: str, limit: Limit) -> None:
    world = budgets(**{key: 10})
    for number in range(100):
        account = world.open(f"client-{number}", owner)
        world.spend(account, 10, 0, 0, 100.0)
        world.close(account)
    account = world.open("last", owner)
    assert world.spend(account, 10, 0, 0, 100.0) == pytest.approx(91.0)
    assert limit_of(world.too_fast(account, 10, 0)) is limit
    other = world.open("other", BOB)
    assert world.spend(other, 10, 0, 0, 100.0) == 0, "others feel nothing"


def test_new_topics_have_a_rate_of_a_minute() -> None:
    world = budgets(new_topic_rate=60)
    account = world.open("a", ANN)
    assert world.spend(account, 0, 0, 10, 100.0) == pytest.approx(0.0)
    assert world.spend(account, 0, 0, 1, 100.0) == pytest.approx(1.0)


def test_the_rate_of_a_user_grows_with_its_sessions() -> None:
    world = budgets(message_rate=10)
    accounts = [world.open(f"sensor-{number}", ANN) for number in range(20 * 32)]
    for account in accounts:
        wait_s = world.spend(account, 5, 0, 0, 100.0)
    assert wait_s == pytest.approx(0.0), "3,200 messages, ten seconds of the rate of 32 clients"
    for account in accounts[1:]:
        world.close(account)
    assert world.spend(accounts[0], 16, 0, 0, 100.0) == pytest.approx(0.1), "one session has the rate of 16 clients"


def test_without_a_limit_nothing_is_slow() -> None:
    world = budgets(message_rate=0, byte_rate=0, new_topic_rate=0)
    assert world.spend(world.open("a", ANN), 10**9, 10**12, 10**9, 100.0) == 0


def test_times_of_accounts_that_have_gone_fill_no_memory() -> None:
    """An attacker takes a new identifier, a new user and a new network each time."""
    world = budgets(message_rate=10)
    for number in range(KEPT_TIMES + 100):
        account = world.open(f"client-{number}", Owner(None, (number << 16).to_bytes(4, "big")))
        world.spend(account, 1_000, 0, 0, 100.0)
        world.close(account)
    assert (len(world), len(world._times)) == (0, KEPT_TIMES)
    account = world.open("last", ANN)
    world.spend(account, 1, 0, 0, 10_000.0)
    world.close(account)
    assert len(world._times) <= 2, "the client and its user: all others have come down to their rate"


def test_connections_of_an_application_have_one_account() -> None:
    world = budgets(trail_byte_rate_per_user=1_000)
    assert world.spend_application(ApplicationAccount("orders"), 20_000, 100.0) == 10.0
    assert world.spend_application(ApplicationAccount("orders"), 0, 100.0) == 10.0
    assert world.spend_application(ApplicationAccount("billing"), 0, 100.0) == 0.0


def test_an_application_that_anybody_may_be_has_an_account_for_each_network_and_its_prefixes() -> None:
    world = budgets(trail_byte_rate_per_address=1_000, trail_byte_rate_per_prefix=2_000)
    here, beside, far = (ApplicationAccount("orders", each.network) for each in (HERE, BESIDE, FAR))
    assert world.spend_application(here, 20_000, 100.0) == 10.0
    assert world.spend_application(beside, 0, 100.0) == 0.0
    assert world.spend_application(beside, 10_000, 100.0) == 5.0, "their prefix has 30,000 bytes"
    assert world.spend_application(far, 0, 100.0) == 0.0
    assert world.spend_application(ApplicationAccount("others", HERE.network), 0, 100.0) == 0.0
    assert world.spend(world.visit(HERE), 0, 0, 0, 100.0) == 0.0, "MQTT clients from there have caused nothing"


def test_each_rate_has_the_scope_that_its_row_says() -> None:
    assert all(limit.value.scope is scope for scope, limits in RATES.items() for limit in limits)

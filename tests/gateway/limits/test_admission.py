"""Who may have a connection: each limit alone, and what stays in memory when everybody has gone."""

import pytest

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.admission import Admission
from gateway.limits.budgets import Amount, Budgets
from gateway.limits.owner import Owner
from gateway.limits.refusals import Refusals
from gateway.mqtt.reason_codes import ReasonCode


class Visitor:
    """A connection that writes down that it was closed."""

    def __init__(self, address: str = "192.0.2.1") -> None:
        self.address = address
        self.is_closed = False

    def close(self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR) -> None:
        assert reason == "it waited longest of too many connections without a CONNECT"
        self.is_closed = True


class Door:
    """An admission whose clock stands still until `now_s` is set."""

    def __init__(self, **limits: int) -> None:
        self.now_s = 1_000.0
        self.refusals = Refusals()
        rates = dict.fromkeys(("connection_rate", "connection_rate_per_address", "connection_rate_per_prefix"), 0)
        values = MqttLimits.model_validate({**rates, **limits})
        self.budgets = Budgets(values)
        self.admission = Admission(values, self.refusals, self.budgets, now_s=lambda: self.now_s)

    def refused(self, visitor: Visitor) -> Limit | None:
        """The limit at which a new connection is refused; what CONNECT is answered with must be the same."""
        reached = self.admission.admit(visitor)
        assert self.admission.connect_received(visitor) is reached
        return None if reached is None else reached.limit


def test_connections_in_all_are_limited_and_a_place_becomes_free_again() -> None:
    door = Door(maximum_connections=2)
    first, second, third = Visitor(), Visitor("192.0.2.2"), Visitor("192.0.2.3")
    assert door.refused(first) is None
    assert door.refused(second) is None
    assert door.refused(third) is Limit.CONNECTIONS
    assert door.refusals.totals == {(Limit.CONNECTIONS, ReasonCode.QUOTA_EXCEEDED): 1}
    door.admission.release(third)
    assert door.refused(Visitor("192.0.2.4")) is Limit.CONNECTIONS, "the refused one had no place to give"
    door.admission.release(first)
    assert door.refused(Visitor("192.0.2.5")) is None


def test_connections_of_an_address_are_limited_and_others_feel_nothing() -> None:
    door = Door(maximum_connections_per_address=2)
    here = [Visitor("192.0.2.1") for _ in range(3)]
    assert [door.refused(each) for each in here] == [None, None, Limit.CONNECTIONS_PER_ADDRESS]
    assert door.refused(Visitor("192.0.2.2")) is None
    door.admission.release(here[0])
    assert door.refused(Visitor("192.0.2.1")) is None


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::9", True),  # one /64
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),  # IPv4 in IPv6 (RFC 4291 section 2.5.5.2)
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "", True),
    ],
)
def test_an_ipv6_address_counts_as_its_network(first: str, second: str, is_one: bool) -> None:
    door = Door(maximum_connections_per_address=1)
    assert door.refused(Visitor(first)) is None
    assert (door.refused(Visitor(second)) is not None) == is_one


def test_connections_of_a_user_are_limited_and_a_take_over_counts_once() -> None:
    door = Door(maximum_connections_per_user=1)
    first, second, other, nobody = Visitor(), Visitor(), Visitor(), Visitor()
    for visitor in (first, second, other, nobody):
        assert door.refused(visitor) is None
    assert door.admission.authenticated(first, "ada") is None
    reached = door.admission.authenticated(second, "ada")
    assert reached is not None
    assert (reached.limit, reached.reason_code) == (Limit.CONNECTIONS_PER_USER, ReasonCode.QUOTA_EXCEEDED)
    assert door.admission.authenticated(second, "ada", instead_of=first) is None
    assert door.admission.authenticated(other, "bob") is None
    assert door.admission.authenticated(nobody, None) is None
    door.admission.release(first)
    door.admission.release(second)
    third = Visitor()
    door.refused(third)
    assert door.admission.authenticated(third, "ada") is None


def test_who_was_taken_over_from_counts_no_more_while_it_lingers() -> None:
    """A device on a bad network comes back twice before its first connection is gone."""
    door = Door(maximum_connections_per_user=1)
    first, second, third, another = Visitor(), Visitor(), Visitor(), Visitor()
    for visitor in (first, second, third, another):
        assert door.refused(visitor) is None
    assert door.admission.authenticated(first, "ada") is None
    assert door.admission.authenticated(second, "ada", instead_of=first) is None
    assert door.admission.authenticated(third, "ada", instead_of=second) is None
    door.admission.release(first)
    door.admission.release(second)
    assert door.admission.authenticated(another, "ada") is not None, "the third is still there"
    door.admission.release(third)
    assert door.admission.authenticated(another, "ada") is None


def test_connections_of_an_address_are_limited_by_rate_and_come_back_with_time() -> None:
    door = Door(connection_rate_per_address=2)  # twenty at once
    refused = [door.refused(Visitor()) for _ in range(22)]
    assert refused == [None] * 20 + [Limit.CONNECTION_RATE_PER_ADDRESS] * 2
    assert door.refused(Visitor("192.0.2.2")) is None
    assert door.refusals.totals == {(Limit.CONNECTION_RATE_PER_ADDRESS, ReasonCode.CONNECTION_RATE_EXCEEDED): 2}
    door.now_s += 1.5
    assert [door.refused(Visitor()) for _ in range(4)] == [None] * 3 + [Limit.CONNECTION_RATE_PER_ADDRESS]
    door.now_s += 1_000_000
    assert [door.refused(Visitor()) for _ in range(21)][-2:] == [None, Limit.CONNECTION_RATE_PER_ADDRESS]


def test_a_connection_before_its_handshake_is_counted_once_and_a_refusal_of_it_too() -> None:
    door = Door(connection_rate_per_address=1)  # ten at once
    assert [door.admission.before_handshake("192.0.2.1") for _ in range(10)] == [None] * 10
    reached = door.admission.before_handshake("192.0.2.1")
    assert reached is not None
    assert reached.limit is Limit.CONNECTION_RATE_PER_ADDRESS
    assert door.admission.before_handshake("192.0.2.2") is None
    assert door.admission.admit(Visitor("192.0.2.1"), is_counted=True) is None
    assert door.refused(Visitor("192.0.2.1")) is Limit.CONNECTION_RATE_PER_ADDRESS
    assert door.refusals.totals == {
        (Limit.CONNECTION_RATE_PER_ADDRESS, ReasonCode.CONNECTION_RATE_EXCEEDED): 2,
    }


def test_connections_in_all_are_limited_by_rate() -> None:
    door = Door(connection_rate=1)
    refused = [door.refused(Visitor(f"192.0.2.{number}")) for number in range(11)]
    assert refused == [None] * 10 + [Limit.CONNECTION_RATE]


def test_who_waits_longest_without_a_connect_makes_room_for_who_comes() -> None:
    door = Door(maximum_waiting_connections=2)
    silent = [Visitor() for _ in range(4)]
    greeted = Visitor()
    door.refused(greeted)  # its CONNECT was read
    for visitor in silent:
        assert door.admission.admit(visitor) is None
    assert [visitor.is_closed for visitor in silent] == [True, True, False, False]
    assert not greeted.is_closed
    assert door.admission.waiting == 2
    assert door.refusals.totals == {(Limit.WAITING_CONNECTIONS, ReasonCode.SERVER_BUSY): 2}


def test_what_is_refused_counts_among_the_waiting_until_it_is_answered() -> None:
    door = Door(maximum_connections=1, maximum_waiting_connections=3)
    door.refused(Visitor())
    visitors = [Visitor() for _ in range(100)]
    for visitor in visitors:
        door.admission.admit(visitor)
    assert door.admission.waiting == 3
    assert sum(not visitor.is_closed for visitor in visitors) == 3
    assert door.admission.admitted == 1


def test_nothing_stays_of_many_addresses_but_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.limits.budgets.KEPT_TIMES", 100)
    door = Door(connection_rate_per_address=1_000, maximum_connections_per_address=5)
    for number in range(5_000):
        visitor = Visitor(f"2001:db8:{number // 256:x}:{number % 256:x}::1")
        assert door.refused(visitor) is None
        assert door.admission.authenticated(visitor, f"user {number}") is None
        door.admission.release(visitor)
        door.admission.release(visitor)  # twice is once
    admission = door.admission
    assert admission.admitted == admission.waiting == len(admission._counted) == len(door.budgets) == 0
    assert len(door.budgets._times) == 100


# -- networks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("addresses", "elsewhere"),
    [
        (("192.0.2.1", "192.0.2.2", "192.0.2.3"), "198.51.100.1"),  # one /24
        (("192.0.2.1", "192.0.3.1", "192.0.4.1"), "192.1.2.1"),  # one /16
        (("2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1"), "2001:db8:1::1"),  # one /48
    ],
)
def test_who_rents_a_network_has_no_more_connections_than_it(addresses: tuple[str, ...], elsewhere: str) -> None:
    door = Door(maximum_connections_per_prefix=2)
    assert [door.refused(Visitor(each)) for each in addresses] == [None, None, Limit.CONNECTIONS_PER_PREFIX]
    assert door.refused(Visitor(elsewhere)) is None
    assert door.refusals.totals == {(Limit.CONNECTIONS_PER_PREFIX, ReasonCode.QUOTA_EXCEEDED): 1}


@pytest.mark.parametrize(
    ("network", "elsewhere"), [("192.0.2.{}", "192.1.2.1"), ("192.0.{}.1", "192.1.2.1"), ("2001:db8:0:{}::1", "::1")]
)
def test_who_rents_a_network_makes_no_more_connections_a_second_than_it(network: str, elsewhere: str) -> None:
    door = Door(connection_rate_per_prefix=1)  # ten at once
    found = [door.refused(Visitor(network.format(number))) for number in range(12)]
    assert found == [None] * 10 + [Limit.CONNECTION_RATE_PER_PREFIX] * 2
    assert door.refused(Visitor(elsewhere)) is None
    door.now_s += 1
    assert door.refused(Visitor(network.format(1))) is None, "what was refused has cost nothing"
    assert door.refusals.totals == {(Limit.CONNECTION_RATE_PER_PREFIX, ReasonCode.CONNECTION_RATE_EXCEEDED): 2}


def test_a_flood_from_one_prefix_leaves_a_way_in_for_newcomers() -> None:
    door = Door(maximum_connections=1_000)
    flood = [door.refused(Visitor(f"192.0.{number % 256}.{number // 256}")) for number in range(1_000)]
    assert flood == [None] * 900 + [Limit.CONNECTIONS] * 100
    newcomers = [door.refused(Visitor(f"198.51.100.{number}")) for number in range(12)]
    assert newcomers == [None] * 10 + [Limit.CONNECTIONS] * 2, "who has a hundredth is no newcomer"
    assert [door.refused(Visitor(f"203.0.{number}.1")) for number in range(10)] == [None] * 10


def test_ten_thousand_sensors_behind_one_address_are_within_the_default() -> None:
    door = Door()
    assert {door.refused(Visitor()) for _ in range(10_000)} == {None}


def test_a_connection_of_a_user_counts_once_for_everybody() -> None:
    door, visitor = Door(), Visitor()
    door.refused(visitor)
    assert door.admission.authenticated(visitor, "ada") is None
    assert door.admission.admitted == 1
    account = door.budgets.open("a", Owner("ada"))
    door.budgets.close(account)
    assert door.budgets.everybody.amounts[Amount.CONNECTIONS] == 1, "the session took no connection along"
    door.admission.release(visitor)
    assert door.admission.admitted == len(door.budgets) == 0


def test_refusals_are_told_in_the_log_by_number(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for _ in range(1_000):
        refusals.add(Limit.CONNECTIONS, ReasonCode.QUOTA_EXCEEDED)
    refusals.tick(1_000_000_000)
    refusals.add(Limit.CONNECTIONS, ReasonCode.QUOTA_EXCEEDED)
    refusals.tick(1_000_100_000)
    refusals.tick(1_010_000_001)
    assert [record.getMessage() for record in caplog.records] == [
        "limit reached limit=connections answer=QUOTA_EXCEEDED count=1000 total=1000",
        "limit reached limit=connections answer=QUOTA_EXCEEDED count=1 total=1001",
    ]

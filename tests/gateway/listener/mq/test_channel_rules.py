"""Which table of a listener decides about a channel, and whom it lets in."""

import pytest

from gateway.config.mq_listeners import MqChannelSettings
from gateway.listener.mq.channel_rules import ChannelRules

TABLES = ChannelRules(
    (
        MqChannelSettings(name="APP.ONE", users=("billing",)),
        MqChannelSettings(name="APP.*", users=("pump-*", "anna"), addresses=("192.0.2.0/24", "2001:db8::/32")),
    )
)


def test_the_first_table_that_fits_decides_and_without_one_nobody_comes_in() -> None:
    keys = {name: rule.key for name in ("APP.ONE", "APP.TWO", "OTHER") if (rule := TABLES.of(name)) is not None}
    assert keys == {"APP.ONE": "channel#1", "APP.TWO": "channel#2"}


def test_without_tables_everybody_comes_in() -> None:
    rule = ChannelRules(()).of("ANY")
    assert rule is not None
    assert (rule.admits_user("anna"), rule.admits_address("198.51.100.7")) == (True, True)


@pytest.mark.parametrize(("user", "expected"), [("pump-7", True), ("anna", True), ("anna2", False), ("", False)])
def test_a_user_must_fit_a_pattern(user: str, expected: bool) -> None:
    rule = TABLES.of("APP.TWO")
    assert rule is not None
    assert rule.admits_user(user) is expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [("192.0.2.9", True), ("::ffff:192.0.2.9", True), ("2001:db8::1%eth0", True), ("198.51.100.7", False),
     ("::ffff:198.51.100.7", False), ("", False), ("somewhere", False)],
)  # fmt: skip
def test_an_address_must_be_in_a_network(address: str, expected: bool) -> None:
    rule = TABLES.of("APP.TWO")
    assert rule is not None
    assert rule.admits_address(address) is expected

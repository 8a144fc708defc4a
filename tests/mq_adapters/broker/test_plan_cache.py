"""What the broker remembers of publications that it has seen is bounded by its weight, not by their number alone."""

from types import SimpleNamespace
from typing import cast

import pytest

from mq_adapters.broker import deliveries
from mq_adapters.broker.deliveries import LONGEST_KEPT_HEADER, DeliveryPlan, PlanCache, PlanKey


def _key(number: int, header_bytes: int) -> PlanKey:
    return number.to_bytes(4, "big") + bytes(header_bytes - 4), b"MQHRF2  ", 1208, 546, 1, 0, -1


def _plan(copies: int) -> DeliveryPlan:
    return cast(DeliveryPlan, SimpleNamespace(copies=(None,) * copies))  # the cache asks for nothing else


@pytest.mark.parametrize(
    ("header_bytes", "copies", "kept"),
    [(200, 0, 100), (200, 3, 25), (1_024, 0, 20), (LONGEST_KEPT_HEADER, 0, 5)],
)
def test_a_cache_holds_fewer_plans_of_long_headers_and_of_many_copies(
    monkeypatch: pytest.MonkeyPatch, header_bytes: int, copies: int, kept: int
) -> None:
    monkeypatch.setattr(deliveries, "_KEPT_WEIGHT", 100)
    cache, plan = PlanCache(), _plan(copies)
    most = 0
    for number in range(500):
        cache.put(_key(number, header_bytes), plan)
        cache.put(_key(number, header_bytes), plan)  # in its own place
        held = sum(cache.get(_key(each, header_bytes)) is plan for each in range(number + 1))
        most = max(most, held)
    assert most == kept


def test_a_full_cache_lets_the_first_plan_go_and_keeps_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "_KEPT_WEIGHT", 10)
    cache = PlanCache()
    plans = [_plan(0) for _ in range(12)]
    for number, plan in enumerate(plans):
        cache.put(_key(number, 4), plan)
    assert [cache.get(_key(number, 4)) for number in range(12)] == [None, None, *plans[2:]]

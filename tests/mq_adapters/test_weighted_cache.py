"""A cache that holds so much weight: the oldest entries leave, a replaced entry weighs once, one entry always stays."""

from mq_adapters.weighted_cache import WeightedCache


def _cache(most: int) -> WeightedCache[str, int]:
    """Each entry weighs what its value is."""
    return WeightedCache(lambda _key, value: value, most)


def _held(cache: WeightedCache[str, int], keys: str) -> dict[str, int]:
    return {key: value for key in keys if (value := cache.get(key)) is not None}


def test_the_oldest_entries_leave_for_a_new_one() -> None:
    cache = _cache(10)
    for key, weight in (("a", 3), ("b", 3), ("c", 3), ("d", 5)):
        cache.put(key, weight)
    assert _held(cache, "abcd") == {"c": 3, "d": 5}


def test_an_entry_that_is_replaced_weighs_once_and_counts_as_new() -> None:
    cache = _cache(10)
    for key, weight in (("a", 4), ("b", 4), ("a", 6), ("c", 4)):
        cache.put(key, weight)
    assert _held(cache, "abc") == {"a": 6, "c": 4}


def test_one_entry_stays_however_much_it_weighs() -> None:
    cache = _cache(10)
    cache.put("a", 1)
    cache.put("b", 100)
    assert _held(cache, "ab") == {"b": 100}

"""Who may publish and subscribe what: allowed topic filters against topics and against other filters."""

import pytest

from gateway.access import Access


@pytest.mark.parametrize(
    ("allowed", "topic", "may"),
    [
        (["#"], "a/b", True),
        (["#"], "$SYS/a", True),
        ([], "a", False),
        (["a/+"], "a/b", True),
        (["a/+"], "a/b/c", False),
        (["a/#"], "a", True),
        (["a/#"], "ab", False),
        (["x", "a/b"], "a/b", True),
        (["A/b"], "a/b", False),
        (["+/#"], "$SYS/a", False),
    ],
)
def test_a_publish_is_allowed_where_an_allowed_filter_matches(allowed: list[str], topic: str, may: bool) -> None:
    access = Access(publish=allowed, subscribe=[])
    assert access.may_publish(topic) is may
    assert access.may_publish(topic) is may, "the second time it comes from the cache"


@pytest.mark.parametrize(
    ("allowed", "asked", "may"),
    [
        (["#"], "#", True),
        (["#"], "$SYS/#", True),
        (["a/#"], "a/#", True),
        (["a/#"], "a", True),
        (["a/#"], "a/+/c", True),
        (["a/#"], "#", False),
        (["a/#"], "+/b", False),
        (["a/+"], "a/+", True),
        (["a/+"], "a/b", True),
        (["a/+"], "a/#", False),
        (["a/+"], "a/+/c", False),
        (["a/+/c"], "a/+", False),
        (["a/b"], "a/+", False),
        (["a/b"], "a/b", True),
        (["+"], "+", True),
        ([], "a", False),
    ],
)
def test_a_subscription_is_allowed_where_one_allowed_filter_covers_all_of_it(
    allowed: list[str], asked: str, may: bool
) -> None:
    assert Access(publish=[], subscribe=allowed).may_subscribe(asked) is may


@pytest.mark.parametrize("asked", ["$SYS/a", "$SYS/#"])
def test_a_wildcard_at_the_start_does_not_cover_topics_that_start_with_a_dollar(asked: str) -> None:
    """MQTT 3.1.1 section 4.7.2; the whole `#` is the default that allows everything."""
    assert Access(publish=[], subscribe=["+/#"]).may_subscribe(asked) is False

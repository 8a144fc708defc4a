"""The limits by name: each has its answers, and so stands in the metrics before it ever refused anybody."""

import pytest

from gateway.limits.limit import REASONS, Limit


@pytest.mark.parametrize("limit", Limit)
def test_each_limit_says_what_its_peer_is_told(limit: Limit) -> None:
    assert REASONS[limit]

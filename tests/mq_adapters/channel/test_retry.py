"""When a channel tries again."""

import pytest

from mq_adapters.channel.retry import Retry, RetrySchedule


class Now:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def test_a_channel_tries_at_once_then_after_ten_seconds_then_every_minute():
    retry = Retry(RetrySchedule(), now_s=Now())
    assert [retry.delay_s() for _ in range(5)] == [0, 10, 60, 60, 60]


def test_after_a_success_it_begins_anew():
    retry = Retry(RetrySchedule(), now_s=Now())
    retry.delay_s()
    retry.delay_s()
    retry.succeeded()
    assert retry.delay_s() == 0


def test_a_failure_long_after_the_last_one_is_a_first_one():
    now = Now()
    retry = Retry(RetrySchedule(delays_s=(1, 5)), now_s=now)
    retry.delay_s()
    now.s = 10
    assert retry.delay_s() == 5
    now.s = 20.5
    assert retry.delay_s() == 1


@pytest.mark.parametrize("delays_s", [(), (0, -1)])
def test_a_schedule_without_a_delay_or_with_one_below_zero_is_refused(delays_s):
    with pytest.raises(ValueError, match="retry schedule"):
        RetrySchedule(delays_s=delays_s)

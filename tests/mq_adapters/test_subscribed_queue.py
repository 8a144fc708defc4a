"""A subscription in the hands of a program."""

import pytest

from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.subscribed_queue import SubscribedQueue


def test_it_is_closed_once_and_of_no_use_after_that() -> None:
    ends: list[int] = []
    subscription = SubscribedQueue(None, "Q", b"c" * 24, end=ends.append, request=lambda: 3)  # type: ignore[arg-type]
    assert subscription.request_publications() == 3
    with subscription:
        subscription.remove()
    assert ends == [8]
    again = SubscribedQueue(None, "Q", b"c" * 24, end=ends.append, request=lambda: 3)  # type: ignore[arg-type]
    again.close()
    again.remove()
    assert ends == [8, 0]
    for call in (subscription.get, subscription.request_publications):
        with pytest.raises(QueueManagerError) as error:
            call()
        assert error.value.reason_code == ReasonCode.MQRC_HOBJ_ERROR

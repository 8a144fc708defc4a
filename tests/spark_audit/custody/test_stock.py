"""The records of a stock-take must agree with each other: one that lacks a record would be compared with nothing."""

from collections.abc import Callable

from spark_audit.custody.findings import Custody
from spark_audit.custody.replay import replayed
from tests.every_case import for_every
from tests.spark_audit.custody.scenes import LANES, Record, Scene, connected, record

_RULES = {"stream_rules": "mq6"}


def _stock(*, queues: int = 1, messages: int = 3) -> list[Record]:
    """Two subscribers of one queue, with one and with two messages."""
    depths = [["01" * 24, "1", "0"], ["02" * 24, "2", "0"]]
    return [
        record("stock", event="queues", messages=messages, queues=queues),
        record("stock", event="queue", queue="ORDERS", messages=3, subscribers=2),
        record("stock", event="subscribers", queue="ORDERS", messages=3, depths=depths),
    ]


def _found(*records: Record, is_last: bool = False) -> list[Custody]:
    scene = connected("pump")
    scene.commit(*records)
    if not is_last:
        scene.commit(record("clock_jumped", event="settled"))
    return [each.control for each in replayed(scene.rows())]


def test_a_true_one_is_right() -> None:
    assert _found(*_stock()) == []
    assert _found(*_stock(), record("session", client="desk", session_epoch=1, event="opened")) == []


def _without(place: int) -> list[Record]:
    return [each for number, each in enumerate(_stock()) if number != place]


def _with(place: int, **fields: object) -> list[Record]:
    return [each | (fields if number == place else {}) for number, each in enumerate(_stock())]


def _twice(place: int) -> list[Record]:
    return [*_stock()[: place + 1], *_stock()[place:]]


@for_every(
    {
        "its sums are missing": lambda: _without(0),
        "a queue is missing": lambda: _without(1),
        "the subscribers of a queue are missing": lambda: _without(2),
        "its sums are there twice": lambda: _twice(0),
        "a queue is there twice": lambda: _twice(1),
        "subscribers are there twice": lambda: _twice(2),
        "there are more queues": lambda: _stock(queues=2),
        "there are more messages": lambda: _stock(messages=4),
        "a queue has another name": lambda: _with(1, queue="ORDERT"),
        "its subscribers are of another queue": lambda: _with(2, queue="ORDERT"),
        "a queue has more messages": lambda: _with(1, messages=4),
        "a queue has more subscribers": lambda: _with(1, subscribers=3),
        "subscribers have more messages": lambda: _with(2, messages=4),
        "a subscriber has more messages": lambda: _with(2, depths=[["01" * 24, "1", "0"], ["02" * 24, "3", "0"]]),
        "a row cannot be read": lambda: _with(2, depths=[["01" * 24, "1", "0"], ["02" * 24, "two", "0"]]),
    }
)
def test_a_record_less_or_another_is_found(case: Callable[[], list[Record]]) -> None:
    records = case()
    assert set(_found(*records)) == {Custody.STOCK}
    assert _found(*records, is_last=True) == [], "the trail may go on"


def test_a_list_that_is_full_says_how_much_it_leaves_out() -> None:
    queues = [record("stock", event="queue", queue=f"Q.{number}", messages=1, subscribers=0) for number in range(500)]
    rows = [[f"{number:048x}", "1", "0"] for number in range(2_000)]
    queues[0] |= {"messages": 2_001, "subscribers": 2_001}
    subscribers = [
        record("stock", event="subscribers", queue="Q.0", messages=200, depths=rows[first : first + 200])
        for first in range(0, 2_000, 200)
    ]
    for each in queues[1:]:
        each |= {"subscribers": 1}
        depths = [["01" * 24, "1", "0"]]
        subscribers.append(record("stock", event="subscribers", queue=each["queue"], messages=1, depths=depths))
    head = record("stock", event="queues", messages=9_000, queues=501)
    assert _found(head, *queues, *subscribers) == []
    assert set(_found(head, *queues[:-1], *subscribers)) == {Custody.STOCK}
    assert set(_found(head | {"messages": 7}, *queues, *subscribers)) == {Custody.STOCK}


def _started(*records: Record) -> list[Custody]:
    scene = Scene(is_whole=False)
    scene._sequence = 0
    scene.commit(record("started", **_RULES), *records)
    scene.commit(record("clock_jumped", event="settled"))
    return [each.control for each in replayed(scene.rows())]


def test_each_start_has_a_stock_take() -> None:
    assert _started(record("stock", event="queues", messages=0)) == []
    assert _started() == [Custody.STOCK]
    assert _started(record("dropped", queue=LANES, messages=1)) == [Custody.STOCK]


def test_after_a_gap_a_stock_take_may_lack_its_beginning() -> None:
    scene = connected("pump")
    scene._sequence += 7
    scene.commit(*_without(0))
    scene.commit(*_without(0))
    scene.commit(record("clock_jumped", event="settled"))
    assert [each.control for each in replayed(scene.rows())] == [Custody.STOCK]

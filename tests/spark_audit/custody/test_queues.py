"""What is on queues of applications: sums over records agree with stock-takes, and each planted fault is found."""

from collections.abc import Callable
from typing import Any

from spark_audit.custody.findings import Custody, Finding
from spark_audit.custody.replay import replayed
from tests.every_case import for_every
from tests.spark_audit.custody.scenes import Record, Scene, connected, record

_LETTERS = "SYSTEM.DEAD.LETTER.QUEUE"


class _Desk:
    """Applications that put and get, and a gateway that counts."""

    def __init__(self, *, is_whole: bool = True) -> None:
        self.scene = Scene(is_whole=is_whole)
        self.ids: list[str] = []

    def put(self, queue: str = "ORDERS", *, persistent: bool = True) -> "_Desk":
        self.ids.append(self.scene.number())
        return self.told("mqput", queue=queue, message_id=self.ids[-1], persistent=persistent)

    def got(self, place: int = 0, queue: str = "ORDERS") -> "_Desk":
        return self.told("mqget", queue=queue, message_id=self.ids[place])

    def told(self, kind: str, **fields: Any) -> "_Desk":
        self.scene.commit(record(kind, **fields))
        return self

    def served(self, place: int = 0) -> "_Desk":
        self.ids.append(self.scene.number())
        fields = {"message_id": self.ids[-1], "source_message_id": self.ids[place], "persistent": True}
        return self.told("put", conversion="service", queue="NEW", **fields)

    def buried(self, place: int = 0, queue: str = "ORDERS") -> "_Desk":
        buried = self.ids[place]
        self.ids.append(self.scene.number())
        return self.told("dead_lettered", queue=queue, message_id=buried, dead_letter_id=self.ids[-1], reason_code=2053)

    def redriven(self, queue: str = "ORDERS") -> "_Desk":
        letter = self.ids[-1]
        self.ids.append(self.scene.number())
        return self.told("redriven", queue=queue, dead_letter_id=letter, message_id=self.ids[-1])

    def counts(self, *, started: bool = False, **queues: int) -> "_Desk":
        rows: list[Record] = [record("started")] if started else []
        rows.append(record("stock", event="queues", messages=sum(queues.values()), queues=len(queues)))
        for name, number in queues.items():
            queue = {"LETTERS": _LETTERS, "HELD": "SYSTEM.RFHBRIDGE.HELD"}.get(name, name)
            rows.append(record("stock", event="queue", queue=queue, messages=number, subscribers=1))
            depths = [["00" * 24, str(number), "0"]]
            rows.append(record("stock", event="subscribers", queue=queue, messages=number, depths=depths))
        self.scene.commit(*rows)
        return self

    def found(self) -> list[Finding]:
        self.scene.commit(record("clock_jumped", event="settled"))
        return list(replayed(self.scene.rows()))


def _copies() -> _Desk:
    """An operator has made a subscription, and a copy waits on its queue."""
    desk = _Desk()
    desk.scene = connected("pump")
    desk.told("operated", command="DEFINE SUB", messages=0, reason="S DEST(HISTORY)")
    desk.scene.commit(*desk.scene.publish("pump", "plant/a", "queue:HISTORY"))
    return desk


TRUE: dict[str, Callable[[], _Desk]] = {
    "put and got": lambda: _Desk().put().put().got().counts(ORDERS=1).got(1).counts(),
    "converted": lambda: _Desk().put().put().served().counts(ORDERS=1, NEW=1),
    "a dead letter is put back": lambda: _Desk().put().buried().counts(LETTERS=1).redriven().counts(ORDERS=1),
    "a dead letter is held": lambda: _Desk().put().buried().counts(HELD=1).buried(-1).counts(LETTERS=1),
    "a dead letter is got": lambda: _Desk().put().buried().got(1, _LETTERS).counts(),
    "a copy waits": lambda: _copies().counts(HISTORY=1),
    "expired": lambda: _Desk().put().told("dropped", queue="ORDERS", message_id=f"52464842{1:040x}").counts(),
    "not persistent": lambda: _Desk().put(persistent=False).put().counts(ORDERS=2).counts(started=True, ORDERS=1),
    "a temporary queue ends": lambda: (
        _Desk().put("BRIEF", persistent=False).told("dropped", queue="BRIEF", messages=1).counts()
    ),
    "an operator gets": lambda: (
        _Desk().put().told("operated", command="queue get", queue="ORDERS", messages=1, message_ids=_IDS).counts()
    ),
    "an operator clears": lambda: (
        _Desk()
        .put()
        .told("operated", command="queue clear", queue="ORDERS", messages=1, message_ids=_IDS)
        .told("dropped", queue="ORDERS", message_id=_IDS[0])
        .counts()
    ),
    "damaged messages are set aside": lambda: (
        _Desk().put().told("operated", command="queue verify --set-aside", messages=1).counts()
    ),
    "a subscriber named an alias": lambda: (
        _copies()
        .put()
        .counts(ORDERS=2)
        .put()
        .counts(ORDERS=3)
        .told("mqget", queue="ORDERS", message_id=_COPY)
        .counts(ORDERS=2)
    ),
    "the gateway's own queues": lambda: _Desk().counts(**{"RFHBRIDGE.SENT.CENTRAL": 3, "OWN.REPLIES": 2}),
    "a trail that begins in the middle": lambda: (
        _Desk(is_whole=False).put().served().counts(ORDERS=4, NEW=2).put().got().got(-1).counts(ORDERS=3, NEW=2)
    ),
    "a command waited while its queue was closed": lambda: (
        _Desk()
        .put("STREAM")
        .told("commanded", queue="STREAM", command="Publish", message_id=_IDS[0], completion="ok")
        .counts()
    ),
}
#: The copy that `_copies` makes.
_COPY = f"52464842{2:040x}"
_IDS = [f"52464842{1:040x}"]

WRONG: dict[str, Callable[[], _Desk]] = {
    "one vanishes": lambda: _Desk().put().counts(),
    "one appears": lambda: _Desk().put().counts(ORDERS=2),
    "one vanishes that was counted before": lambda: _Desk(is_whole=False).counts(ORDERS=2).counts(ORDERS=1),
    "a persistent one vanishes with a stop": lambda: _Desk().put().counts(ORDERS=1).counts(started=True),
    "got and never put": lambda: _Desk().told("mqget", queue="ORDERS", message_id=_IDS[0]),
    "got twice": lambda: _Desk().put().got().got(),
    "got from another queue": lambda: _Desk().put().got(queue="OTHER"),
    "converted and never put": lambda: _Desk().put("ELSEWHERE").got(queue="ELSEWHERE").served().counts(NEW=1),
    "converted onto another queue": lambda: _Desk().put().served().counts(OTHER=1),
    "a conversion is lost": lambda: _Desk().put().counts(NEW=1),
    "a copy vanishes": lambda: _copies().counts(HISTORY=1).counts(),
    "a copy vanishes from a queue that an operator made": lambda: (
        _copies().told("operated", command="queue define", queue="HISTORY", messages=0).counts()
    ),
    "a dead letter without a record": lambda: _Desk().counts(LETTERS=1),
    "a dead letter is not there": lambda: _Desk().put().buried().counts(),
    "a dead letter is put back and stays": lambda: _Desk().put().buried().redriven().counts(LETTERS=1, ORDERS=1),
}


@for_every(list(TRUE.items()))
def test_a_true_trail_raises_no_alarm(case: tuple[str, Callable[[], _Desk]]) -> None:
    assert case[1]().found() == []


@for_every(list(WRONG.items()))
def test_a_planted_fault_is_found(case: tuple[str, Callable[[], _Desk]]) -> None:
    assert Custody.QUEUES in {each.control for each in case[1]().found()}


def test_a_difference_is_told_once() -> None:
    desk = _Desk().put().put().counts(ORDERS=1).counts(ORDERS=1).put().counts(ORDERS=2)
    assert [each.detail for each in desk.found()] == ["1 messages were counted, and by the records 2 are there"]


def test_behind_a_gap_the_next_count_is_where_the_sums_begin() -> None:
    desk = _Desk().put().told("restored", event="rolled_back").put().counts(ORDERS=9).put().counts(ORDERS=10)
    assert desk.found() == []
    assert len(desk.counts(ORDERS=9).found()) == 1

"""Sessions of MQ programs: a true trail raises no alarm, and each planted fault is found."""

from collections.abc import Callable
from typing import Any

from spark_audit.custody.findings import Custody
from spark_audit.custody.programs import KEPT_COMMITS, Programs
from spark_audit.custody.replay import replayed
from tests.every_case import for_every
from tests.spark_audit.custody.scenes import Scene, record

_WHO = {"operator": "billing (127.0.0.1:5)", "user_identifier": "billing", "proof": "application_token"}
_WHERE = {"listener": "mq", "channel": "APP"}


class _Gateway:
    """A gateway that tells of its MQ programs."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.told("started")

    def told(self, kind: str, **fields: Any) -> "_Gateway":
        self.scene.commit(record(kind, **fields))
        return self

    def program(self, event: str, number: int = 1, **fields: Any) -> "_Gateway":
        return self.told("program", event=event, program=number, **(_WHO | _WHERE | fields))

    def put(self, number: int = 1, operator: str = _WHO["operator"]) -> "_Gateway":
        said = {"queue": "ORDERS", "message_id": self.scene.number(), "persistent": True}
        return self.told("mqput", program=number or None, operator=operator, **said)

    def forgets(self) -> "_Gateway":
        """So many commits that a session which has ended is forgotten."""
        for _ in range(KEPT_COMMITS):
            self.told("mqput", program=None, queue="ORDERS", message_id=self.scene.number(), persistent=True)
        return self

    def refused(self, event: str, **fields: Any) -> "_Gateway":
        said = {"user_class": "unknown", "listener": "mq", "logins": 1, "since_us": 1}
        return self.told("programs_refused", event=event, **(said | fields))

    def loses_records(self) -> "_Gateway":
        self.scene.skip(5)
        return self


def _found(gateway: _Gateway) -> list[str]:
    return [each.detail for each in replayed(gateway.scene.rows()) if each.control is Custody.PROGRAMS]


TRUE: dict[str, Callable[[], _Gateway]] = {
    "a program works and goes": lambda: _Gateway().program("connected").put().program("disconnected"),
    "two programs work": lambda: _Gateway().program("connected").program("connected", 2).put().put(2),
    "a session ends with the run": lambda: _Gateway().program("connected").told("started").program("connected").put(),
    "work of an earlier version has no number": lambda: _Gateway().put(0),
    "records are missing": lambda: _Gateway().program("connected").loses_records().put().program("lost"),
    "the broker takes a command after the end": lambda: (
        _Gateway()
        .program("connected")
        .program("lost")
        .told("commanded", program=1, operator=_WHO["operator"], message_id="00" * 24, queue="S", completion="ok")
    ),
    "the broker takes a command when the session is forgotten": lambda: (
        _Gateway()
        .program("connected")
        .program("lost")
        .forgets()
        .told("commanded", program=1, operator=_WHO["operator"], message_id="00" * 24, queue="S", completion="ok")
    ),
    "a program works on while others are forgotten": lambda: (
        _Gateway().program("connected").program("connected", 2).program("lost", 2).forgets().put().program("lost")
    ),
    "one that connected before records were lost works on": lambda: (
        _Gateway().program("connected", 4).loses_records().program("connected", 9).put(4).program("lost", 4)
    ),
    "numbers begin anew after a loss and a start": lambda: (
        _Gateway().program("connected", 4).loses_records().told("started").program("connected")
    ),
    "refusals": lambda: (
        _Gateway()
        .refused("wrong_credentials", reason_code=2035)
        .refused("not_allowed", rule="channel#1.users", reason_code=2035)
        .refused("busy", reason_code=2035)
        .refused("channel", rule="no_channel")
        .refused("limit", rule="mq_listener.maximum_connections")
    ),
}


WRONG: dict[str, tuple[Callable[[], _Gateway], str]] = {
    "no record of the beginning": (lambda: _Gateway().put(), "no record tells that it connected"),
    "an end without a beginning": (lambda: _Gateway().program("lost"), "no record tells its beginning"),
    "work after the end": (
        lambda: _Gateway().program("connected").program("lost").put(),
        "it acts after the end of its session",
    ),
    "work long after the end": (
        lambda: _Gateway().program("connected").program("lost").forgets().put(),
        "no record tells that it connected, or it has ended",
    ),
    "work long after the end, where records were lost before": (
        lambda: _Gateway().loses_records().program("connected", 9).program("lost", 9).forgets().put(9),
        "no record tells that it connected, or it has ended",
    ),
    "a beginning long after the end": (
        lambda: _Gateway().program("connected").program("lost").forgets().program("connected"),
        "it has connected before",
    ),
    "an end long after the end": (
        lambda: _Gateway().program("connected").program("lost").forgets().program("lost"),
        "or it has ended before",
    ),
    "a command of a program that was never there": (
        lambda: (
            _Gateway()
            .program("connected")
            .told("commanded", program=2, operator=_WHO["operator"], message_id="00" * 24, queue="S", completion="ok")
        ),
        "no record tells that it connected",
    ),
    "two beginnings": (lambda: _Gateway().program("connected").program("connected"), "it has connected before"),
    "two ends": (
        lambda: _Gateway().program("connected").program("lost").program("ended"),
        "its session ends a second time",
    ),
    "work as somebody else": (
        lambda: _Gateway().program("connected").put(operator="payroll (127.0.0.1:5)"),
        "it acts as payroll (127.0.0.1:5), and it connected as billing (127.0.0.1:5)",
    ),
    "an end as somebody else": (
        lambda: _Gateway().program("connected").program("lost", operator="payroll"),
        "at its end it is somebody else",
    ),
    "work in the next run": (
        lambda: _Gateway().program("connected").told("started").put(),
        "no record tells that it connected",
    ),
    "a refusal without its answer": (
        lambda: _Gateway().refused("wrong_credentials"),
        "refused as wrong_credentials, and MQCONN is answered with nothing",
    ),
    "a refusal with another answer": (
        lambda: _Gateway().refused("busy", reason_code=2059),
        "refused as busy, and MQCONN is answered with 2059",
    ),
    "an answer where there was none": (
        lambda: _Gateway().refused("channel", rule="no_channel", reason_code=2035),
        "refused as channel, and MQCONN is answered with 2035",
    ),
    "a refusal without its rule": (
        lambda: _Gateway().refused("not_allowed", reason_code=2035),
        "refused as not_allowed, and the rule is none",
    ),
    "a rule that decides nothing": (
        lambda: _Gateway().refused("wrong_credentials", rule="channel#1.users", reason_code=2035),
        "refused as wrong_credentials, and the rule is channel#1.users",
    ),
}


@for_every(TRUE)
def test_a_true_trail_raises_no_alarm(make: Callable[[], _Gateway]) -> None:
    assert _found(make()) == []


@for_every(WRONG)
def test_a_planted_fault_is_found(case: tuple[Callable[[], _Gateway], str]) -> None:
    make, detail = case
    (found,) = _found(make())
    assert detail in found


def test_sessions_that_have_ended_are_forgotten_and_those_that_last_are_not() -> None:
    programs = Programs()
    programs.start()
    told = {"operator": "billing"}
    assert list(programs.change({"program": 1, "event": "connected", **told})) == []
    for number in range(2, 3 * KEPT_COMMITS):
        programs.begin()
        for event in ("connected", "disconnected"):
            assert list(programs.change({"program": number, "event": event, **told})) == []
    assert len(programs._of) == len(programs._ended) + 1 == KEPT_COMMITS + 1
    assert 1 in programs._of

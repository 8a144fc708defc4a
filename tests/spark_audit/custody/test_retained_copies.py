"""Copies of retained publications for applications: as many as RegSub and ReqUpdate ask for, and not one more."""

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from mq_adapters import connect as to_queue_manager
from mq_adapters.message import MQMT_DATAGRAM, MQPER_PERSISTENT, Message, MessageDescriptor
from spark_audit.custody.commands import row_of
from spark_audit.custody.findings import Custody
from spark_audit.custody.memory import Memory, replayed_from
from spark_audit.custody.replay import replayed
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.ibm_mq.target_gateway import wait_until
from tests.every_case import for_every
from tests.headers import mqrfh
from tests.spark_audit.custody.scenes import CONTROL, STREAM, Record, Scene, connected, record
from tests.trail_lines import trail_records

_SECOND_US = 1_000_000
_QUEUE = "HISTORY"
_MANY = 8


def _command(scene: Scene, verb: str, text: str = f"MQPSQName {_QUEUE} MQPSTopic plant/*", **fields: object) -> Record:
    said = {"operator": "o", "payload_bytes": 0, "payload_sha256": "0" * 64, "completion": "ok", "queue": CONTROL}
    topics = [part.split()[0] for part in text.split("MQPSTopic ")[1:]]
    header = mqrfh(f"MQPSCommand {verb} {text}")
    return record(
        "commanded",
        command=verb,
        topics=topics,
        input=header,
        input_format="MQHRF",
        message_id=scene.number(),
        **{**said, **fields},
    )


class _Desk:
    """A trail with an application that registers for plant/*, and so many retained publications before it."""

    def __init__(self, retained: int = 2, *, is_new_only: bool = False) -> None:
        self.scene = connected("pump")
        self.now_us = 1_000 * _SECOND_US
        self.puts = [self._retained(number) for number in range(retained)]
        option = "MQPSRegOpts NewPubsOnly " if is_new_only else ""
        regsub = _command(self.scene, "RegSub", f"{option}MQPSQName {_QUEUE} MQPSTopic plant/*")
        self.commit(regsub, *([] if is_new_only else self.copies()))

    def commit(self, *records: Record) -> "_Desk":
        self.scene.commit(*({"at_us": self.now_us} | each for each in records))
        return self

    def later(self, seconds: float) -> "_Desk":
        self.now_us += int(seconds * _SECOND_US)
        return self

    def _retained(self, number: int) -> Record:
        (put,) = self.scene.publish("pump", f"plant/{number}", retain=True)
        self.commit(put)
        return put

    def copies(self, *numbers: int) -> list[Record]:
        """Copies of these publications, or of all."""
        return [self.copy(each) for each in ([self.puts[number] for number in numbers] or self.puts)]

    def copy(self, put: Record) -> Record:
        made = self.scene.copy(put, f"queue:{_QUEUE}", is_retained=True)
        return made | {"output_format": "MQHRF"}

    def request(self, **fields: object) -> Record:
        return _command(self.scene, "ReqUpdate", **fields)

    def ended(self) -> Scene:
        self.commit(record("clock_jumped", event="settled"))
        return self.scene


def _asked_twice() -> _Desk:
    desk = _Desk()
    desk.commit(*desk.copies(), desk.request())
    return desk.commit(*desk.copies(), desk.request())


def _asked_for_many() -> _Desk:
    """The copies come over several commits, and the record of the ReqUpdate in the last one."""
    desk = _Desk(_MANY)
    for number in range(_MANY - 1):
        desk.later(1).commit(*desk.copies(number))
    return desk.later(1).commit(*desk.copies(_MANY - 1), desk.request()).later(700).commit(record("clock_jumped"))


def _asked_for_what_is_deleted_meanwhile() -> _Desk:
    desk = _Desk(_MANY)
    desk.later(1).commit(*desk.copies(0))
    for number in range(1, _MANY - 1):
        desk.commit(_deletion(desk.scene, f"plant/{number}"))
    return desk.later(1).commit(*desk.copies(_MANY - 1)).later(1).commit(desk.request())


def _deletion(scene: Scene, topic: str) -> Record:
    return _command(scene, "DeletePub", f"MQPSTopic {topic}", queue=STREAM)


def _refused_for_a_limit() -> _Desk:
    desk = _Desk(is_new_only=True)
    return desk.commit(*desk.copies(0), desk.request(completion="error", reason_code=2056))


def _goes_on_after_a_start() -> _Desk:
    desk = _Desk(_MANY)
    desk.later(1).commit(*desk.copies(0, 1)).commit(record("started"))
    return desk.commit(*desk.copies(2, 3)).later(700).commit(record("clock_jumped", event="settled"))


def _of_nobody_knows_whom() -> _Desk:
    """An operator defined a subscription for the queue."""
    desk = _Desk()
    desk.commit(record("operated", command="DEFINE SUB", messages=0, reason=f"S DEST({_QUEUE})"))
    return desk.commit(*desk.copies(0))


@for_every(
    [
        *(_Desk, _asked_twice, _asked_for_many, _asked_for_what_is_deleted_meanwhile, _refused_for_a_limit),
        *(_goes_on_after_a_start, _of_nobody_knows_whom),
    ]
)
def test_copies_that_were_asked_for_raise_no_alarm(case: Callable[[], _Desk]) -> None:
    assert [each for each in replayed(case().ended().rows()) if each.control is Custody.RETAINED] == []


def _unasked() -> _Desk:
    desk = _Desk()
    return desk.commit(*desk.copies(0))


def _once_too_often() -> _Desk:
    desk = _Desk()
    return desk.commit(*desk.copies(), desk.copy(desk.puts[0]), desk.request())


def _new_publications_only() -> _Desk:
    desk = _Desk(is_new_only=True)
    return desk.commit(*desk.copies(0))


def _of_another_topic_than_asked_for() -> _Desk:
    desk = _Desk(1)
    (put,) = desk.scene.publish("pump", "other", retain=True)
    desk.commit(put)
    return desk.commit(desk.copy(desk.puts[0]), desk.copy(put), desk.request())


def _unasked_among_many() -> _Desk:
    desk = _Desk(_MANY)
    return desk.commit(*desk.copies(0)).later(700).commit(record("clock_jumped", event="settled"))


def _for_nobody() -> _Desk:
    """Of a queue that nobody has registered for."""
    desk = _Desk(is_new_only=True)
    desk.commit(_command(desk.scene, "DeregSub"))
    return desk.commit(*desk.copies(0))


_WRONG = [
    *(_unasked, _once_too_often, _new_publications_only, _of_another_topic_than_asked_for),
    *(_unasked_among_many, _for_nobody),
]


@for_every(_WRONG)
def test_one_copy_too_many_is_found(case: Callable[[], _Desk]) -> None:
    found = [each.control for each in replayed(case().ended().rows()) if each.control is Custody.RETAINED]
    assert found == [Custody.RETAINED]


@for_every(_WRONG)
def test_an_audit_that_goes_on_finds_it_too(case: Callable[[], _Desk]) -> None:
    rows = list(case().ended().rows())
    for cut in range(2, rows[-1]["batch"] + 1):
        begun = [row for row in rows if row["batch"] <= cut]
        *first, memory = replayed_from(Memory(), begun)
        assert isinstance(memory, Memory)
        since = [row for row in rows if row["sequence"] > memory.sequence]
        told = [*first, *replayed_from(Memory.parse(memory.as_text()), since)]
        assert [each.control for each in dict.fromkeys(map(_of_finding, told)) if each] == [Custody.RETAINED]


def _of_finding(each: object) -> object:
    return None if isinstance(each, Memory) else each


def test_a_real_broker_sends_what_was_asked_for_and_a_copy_more_is_found(tmp_path: Path) -> None:
    """One application asks twice for few publications, and one for many."""
    with _gateway(tmp_path) as gateway, to_queue_manager(gateway.data) as application:
        for queue in ("FEW", "LOTS"):
            application.define(queue)
        for number in range(40):
            _send(application, STREAM, f"MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic lots/{number}")
        _send(application, STREAM, "MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic few/one")
        for queue, topic, copies in (("FEW", "few/*", 1), ("LOTS", "lots/*", 40)):
            text = f"MQPSQName {queue} MQPSTopic {topic}"
            for times, verb in enumerate(("RegSub", "ReqUpdate", "ReqUpdate"), start=1):
                _send(application, CONTROL, f"MQPSCommand {verb} {text}")
                wait_until(lambda q=queue, n=times * copies: application.depth(q) == n, "all copies are there")
        assert gateway.stop() == 0, gateway.log
        records = trail_records(gateway.data / "trail")
    assert [each["command"] for each in records if each["kind"] == "commanded"].count("ReqUpdate") == 4
    assert _found(records) == []
    copies = [each for each in records if each.get("is_retained")]
    assert len(copies) == 3 * 41
    few = next(each for each in copies if each["queue"] == "FEW")
    last = records.index([each for each in copies if each["queue"] == "FEW"][-1])
    more = few | {"batch": records[last + 2]["batch"], "message_id": "52464842" + "f" * 40}
    wrong = [*records[: last + 2], more, *records[last + 2 :]]
    assert Custody.RETAINED in {each.control for each in _found(wrong)}


def _found(records: list[Record]) -> list[object]:
    return list(replayed(row_of(each | {"sequence": number}) for number, each in enumerate(records, start=1)))


def _send(application: object, queue: str, command: str) -> None:
    descriptor = MessageDescriptor(msg_type=MQMT_DATAGRAM, format=b"MQHRF   ", persistence=MQPER_PERSISTENT)
    application.put(queue, Message(descriptor, mqrfh(command) + b"x"))  # type: ignore[attr-defined]


@contextmanager
def _gateway(folder: Path):  # type: ignore[no-untyped-def]
    gateway = Gateway(folder / "data").start()
    try:
        yield gateway
    finally:
        gateway.clean_up()

"""Deferred puts: stored, thrown away, and released with the end of their connection."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mq_adapters.embedded.mqi import deferred_puts
from mq_adapters.embedded.mqi.deferred_puts import release_what_was_left
from mq_adapters.embedded.mqi.options import OpenOption, PutOption
from mq_adapters.embedded.unit_of_work import ApplicationIdentity, StateKind, UnitOfWork
from mq_adapters.message import MQMT_REQUEST, Message, MessageDescriptor
from mq_adapters.reasons import ReasonCode, StoreError
from mq_adapters.reports import ReportOption
from tests.mq_adapters.embedded.mqi.program import refused
from tests.mq_adapters.embedded.mqi.subscriber import House, Subscriber


@pytest.fixture
def house(data_folder: Path) -> Iterator[House]:
    made = House(data_folder)
    made.engine.define("OWN")
    yield made
    made.close()


def defer(
    program: Subscriber, body: bytes = b"later", options: int = PutOption.NO_SYNCPOINT, **fields: object
) -> bytes:
    """The MsgId of a deferred message for OWN."""
    message = Message(MessageDescriptor(persistence=1).replace(**fields), body)
    ends: list[str] = []
    handle = program.open_queue("OWN", OpenOption.OUTPUT)
    program.connection.put_deferred(handle, message, options, lambda: ends.append("put"))
    assert ends == ["put"]
    return message.msg_id


def bodies(house: House) -> list[bytes]:
    return [each.body for each in house.engine.browse(house.engine.queue("OWN"))]


def rows(house: House) -> int:
    return len(house.engine.states(StateKind.DEFERRED_PUT))


def test_it_is_seen_when_it_is_activated(house: House) -> None:
    program = house.connect(put=("OWN",))
    key = defer(program)
    assert (bodies(house), rows(house)) == ([], 1)
    ends: list[str] = []
    program.connection.activate(key, lambda: ends.append("released"), is_wanted=True)
    (message,) = house.engine.browse(house.engine.queue("OWN"))
    assert (message.msg_id, message.body, message.descriptor.user_identifier) == (key, b"later", "billing")
    assert (ends, rows(house)) == (["released"], 0)
    assert refused(lambda: program.connection.activate(key, lambda: None, is_wanted=True)) == (
        ReasonCode.MQRC_NO_MSG_AVAILABLE
    )


def test_a_release_has_the_number_of_its_program_until_the_queue_manager_starts_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def puts_of(release: Callable[[], None]) -> list[ApplicationIdentity | None]:
        units: list[UnitOfWork] = []
        submit = house.engine.submit

        def submitted(unit: UnitOfWork, done: Callable[[UnitOfWork], None]) -> None:
            units.append(unit)
            submit(unit, done)

        with monkeypatch.context() as patched:
            patched.setattr(house.engine, "submit", submitted)
            release()
        return [each.application for each in units if each.puts]

    program = house.connect(put=("OWN",), number=7)
    key = defer(program)
    (activated,) = puts_of(lambda: program.connection.activate(key, lambda: None, is_wanted=True))
    defer(program)
    (ended,) = puts_of(program.connection.end)
    assert activated == ended == ApplicationIdentity("program", "billing", False, 7)
    defer(house.connect(put=("OWN",), number=8))
    house.restart()
    (left,) = puts_of(lambda: release_what_was_left(house.engine))
    assert left == ApplicationIdentity("program", "billing", False, 0), "numbers begin anew"


def test_it_is_thrown_away_by_its_own_program_alone(house: House) -> None:
    program, other = house.connect(put=("OWN",)), house.connect(put=("OWN",))
    key = defer(program)
    for is_wanted in (True, False):
        assert (
            refused(
                lambda asked=is_wanted: other.connection.activate(key, lambda: None, is_wanted=asked)  # type: ignore[misc]
            )
            == ReasonCode.MQRC_NO_MSG_AVAILABLE
        )
    program.connection.activate(key, lambda: None, is_wanted=False)
    program.connection.end()
    assert (bodies(house), rows(house)) == ([], 0)


def test_it_is_released_when_its_connection_ends(house: House) -> None:
    program = house.connect(put=("OWN",))
    defer(program, b"one")
    defer(program, b"two")
    program.connection.end()
    assert (bodies(house), rows(house)) == ([b"one", b"two"], 0)


def test_it_is_released_after_the_death_of_the_queue_manager(house: House) -> None:
    key = defer(house.connect(put=("OWN",)))
    house.restart()
    assert bodies(house) == []
    release_what_was_left(house.engine)
    release_what_was_left(house.engine)
    (message,) = house.engine.browse(house.engine.queue("OWN"))
    assert (message.msg_id, message.body, message.descriptor.user_identifier) == (key, b"later", "billing")
    assert rows(house) == 0


def test_a_queue_that_takes_nothing_now_gets_it_later_and_one_that_is_gone_never(house: House) -> None:
    program = house.connect(put=("OWN",))
    defer(program)
    house.mqsc("ALTER QLOCAL(OWN) PUT(DISABLED)")
    program.connection.end()
    release_what_was_left(house.engine)
    assert rows(house) == 1
    house.mqsc("ALTER QLOCAL(OWN) PUT(ENABLED)")
    release_what_was_left(house.engine)
    assert (bodies(house), rows(house)) == ([b"later"], 0)
    other = house.connect(put=("OWN",))
    defer(other)
    house.mqsc("DELETE QLOCAL(OWN) PURGE")
    other.connection.end()
    release_what_was_left(house.engine)
    assert rows(house) == 0


def test_what_could_never_be_released_is_refused_when_it_is_put(house: House) -> None:
    house.mqsc("ALTER QLOCAL(OWN) MAXMSGL(100)")
    program = house.connect(put=("OWN",))
    asked = {"report": int(ReportOption.CONFIRM_ON_ARRIVAL), "reply_to_q": "OTHERS"}
    assert refused(lambda: defer(program, msg_type=MQMT_REQUEST)) == ReasonCode.MQRC_MISSING_REPLY_TO_Q
    assert refused(lambda: defer(program, b"x" * 101)) == ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q
    assert refused(lambda: defer(program, format=b"MQSTR")) == ReasonCode.MQRC_MD_ERROR
    assert refused(lambda: defer(program, **asked)) == ReasonCode.MQRC_NOT_AUTHORIZED
    assert rows(house) == 0
    defer(program, b"x" * 100)
    program.connection.end()
    assert (bodies(house), rows(house)) == ([b"x" * 100], 0)


@pytest.mark.parametrize("dies", [False, True])
def test_a_report_comes_to_a_queue_that_the_putter_could_use(house: House, dies: bool) -> None:
    house.engine.define("REPORTS")
    program = house.connect(put=("OWN",), get=("REPORTS",))
    defer(program, report=int(ReportOption.CONFIRM_ON_ARRIVAL), reply_to_q="REPORTS")
    if dies:
        house.restart()
        release_what_was_left(house.engine)
    else:
        program.connection.end()
    assert (bodies(house), rows(house)) == ([b"later"], 0)
    assert house.engine.queue("REPORTS").depth == 1


@pytest.mark.parametrize("dies", [False, True])
def test_what_no_wait_helps_is_forgotten_and_told(house: House, dies: bool, caplog: pytest.LogCaptureFixture) -> None:
    program = house.connect(put=("OWN",))
    defer(program)
    house.mqsc("ALTER QLOCAL(OWN) MAXMSGL(2)")
    if dies:
        house.restart()
        release_what_was_left(house.engine)
    else:
        program.connection.end()
    assert (bodies(house), rows(house)) == ([], 0)
    assert caplog.messages == ["deferred message forgotten queue='OWN' user='billing' reason_code=2030"]


def test_a_message_for_a_full_queue_stays_with_its_connection(house: House) -> None:
    program = house.connect(put=("OWN",))
    key = defer(program)
    house.mqsc("ALTER QLOCAL(OWN) MAXDEPTH(0)")
    for _ in range(2):
        assert refused(lambda: program.connection.activate(key, lambda: None, is_wanted=True)) == (
            ReasonCode.MQRC_Q_FULL
        )
    house.mqsc("ALTER QLOCAL(OWN) MAXDEPTH(5)")
    program.connection.activate(key, lambda: None, is_wanted=True)
    program.connection.end()
    assert (bodies(house), rows(house)) == ([b"later"], 0)


def test_a_connection_may_defer_so_much_and_no_more(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_puts, "MAXIMUM_DEFERRED_PUTS", 2)
    monkeypatch.setattr(deferred_puts, "MAXIMUM_DEFERRED_BYTES", 10)
    program = house.connect(put=("OWN",))
    assert refused(lambda: defer(program, b"x" * 11)) == ReasonCode.MQRC_STORAGE_NOT_AVAILABLE
    defer(program)
    defer(program)
    assert refused(lambda: defer(program, b"")) == ReasonCode.MQRC_STORAGE_NOT_AVAILABLE
    assert rows(house) == 2


def test_a_unit_of_work_has_no_deferred_messages(house: House) -> None:
    program = house.connect(put=("OWN",))
    assert refused(lambda: defer(program, options=PutOption.SYNCPOINT)) == ReasonCode.MQRC_OPTIONS_ERROR
    topic = program.open("plant/1")
    message = Message(MessageDescriptor(), b"")
    assert refused(lambda: program.connection.put_deferred(topic, message, 0, lambda: None)) == (
        ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE
    )


@pytest.mark.parametrize("value", [b"", b"\xc0", b"\x91\x02", b"\x96\x02\xa1Q\xa1a\xa1u\xc4\x01\x01\xc4\x00"])
def test_a_row_that_cannot_be_read_is_told(house: House, value: bytes) -> None:
    unit = house.engine.begin()
    unit.set_state(StateKind.DEFERRED_PUT, b"k" * 24, value)
    house.engine.submit(unit)
    with pytest.raises(StoreError):
        release_what_was_left(house.engine)

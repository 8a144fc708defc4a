"""The balance: what came in is what went out, waits, or ended for a reason; and what vanishes shows."""

import shutil
from pathlib import Path

import apsw
import ormsgpack
import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.balance import FORMER_QUEUES, Balance, QueueBalance, read_balance, running_queues
from mq_adapters.embedded.counters import PUBLICATION_COUNTERS, QUEUE_COUNTERS, Counters
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.embedded.queue_administration import delete
from mq_adapters.embedded.store.store import FILE_NAME, Store
from mq_adapters.embedded.store.verification import set_aside
from mq_adapters.embedded.unit_of_work import Departure, PublicationCounter, StateKind
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import StoreError
from mq_adapters.system_queues import AUDIT_QUEUE
from mq_adapters.transmission import transmission_message

STORES = Path(__file__).parent / "stores"
ACT = OperatorsAct(operator="admin", command="DELETE QLOCAL(ORDERS) PURGE")
PERSISTENT, NOT_PERSISTENT = 1, 0


def message(persistence: int = PERSISTENT, body: bytes = b"body", **fields: object) -> Message:
    return Message(MessageDescriptor(persistence=persistence, **fields), body)


def balance_of(folder: Path) -> Balance:
    found = read_balance(folder)
    assert found is not None
    return found


def line(balance: Balance, name: str) -> QueueBalance:
    return next(queue for queue in balance.queues if queue.name == name)


def change(folder: Path, statement: str) -> None:
    connection = apsw.Connection(str(folder / FILE_NAME))
    connection.execute(statement)
    connection.close()


@pytest.fixture
def now_us() -> list[int]:
    return [1_000_000_000]


@pytest.fixture
def engine(data_folder, now_us):
    engine = Engine.open(data_folder, now_us=lambda: now_us[0])
    engine.define("ORDERS")
    engine.define("OTHERS")
    yield engine
    if not hasattr(engine, "is_closed"):
        engine.close()


def stop(engine: Engine) -> None:
    engine.close()
    engine.is_closed = True


@pytest.fixture
def application(engine):
    return Application(engine)


def put(application: Application, queue: str, *messages: Message) -> None:
    for each in messages:
        application.put(queue, each, lambda: None)


def take(application: Application, engine: Engine, queue: str) -> Message:
    found = application.take(engine.queue(queue), None, None)
    assert found is not None
    application.remove(engine.queue(queue), found, lambda: None)
    return found


# -- what became of messages -------------------------------------------------------------------------------------------


def test_each_reason_for_which_a_message_leaves_has_its_own_counter(engine, data_folder):
    queue = engine.queue("ORDERS")
    for departure in Departure:
        for persistence in (PERSISTENT, NOT_PERSISTENT):
            unit = engine.begin()
            engine.put(unit, queue, message(persistence))
            engine.submit(unit)
            unit = engine.begin()
            taken = engine.take(queue)
            unit.remove(queue, taken, departure)
            engine.submit(unit)
    engine.tick()
    found = line(balance_of(data_folder), "ORDERS")
    names = [counter.name for counter in QUEUE_COUNTERS if counter.name not in ("begin", "put", "gone_at_a_stop")]
    for counted in (found.persistent, found.not_persistent):
        assert [getattr(counted, name) for name in names] == [1] * len(Departure)
        assert (counted.put, counted.waiting, counted.difference) == (len(Departure), 0, 0)


def test_the_tables_of_counters_name_what_the_balance_says(data_folder, engine):
    engine.tick()
    found = balance_of(data_folder)
    names = [name for name in type(found.in_all.persistent).__slots__ if name != "waiting"]
    assert names == [counter.name for counter in QUEUE_COUNTERS]
    publications = [name for name in type(found.publications).__slots__ if name not in ("held", "in_hand")]
    assert publications == [counter.name for counter in PUBLICATION_COUNTERS]
    assert len(publications) == len(PublicationCounter) + 2


def test_an_expired_message_and_a_cleared_one_are_told_apart(engine, application, data_folder, now_us):
    put(application, "ORDERS", message(expiry=5), message(NOT_PERSISTENT, expiry=5), message())
    now_us[0] += 1_000_000
    engine.tick()
    application.clear_some("ORDERS", lambda _count: None)
    engine.tick()
    found = line(balance_of(data_folder), "ORDERS")
    assert (found.persistent.expired, found.not_persistent.expired) == (1, 1)
    assert (found.persistent.cleared, found.together.waiting) == (1, 0)
    assert found.adds_up


def test_what_is_backed_out_counts_nowhere(engine, application, data_folder):
    put(application, "ORDERS", message())
    application.begin()
    take(application, engine, "ORDERS")
    put(application, "OTHERS", message())
    application.back_out()
    found = balance_of(data_folder)
    assert line(found, "ORDERS").persistent.waiting == 1
    assert line(found, "OTHERS").persistent.put == 0
    assert found.adds_up


def test_a_dead_letter_that_an_application_makes_and_puts_back_is_told_from_what_is_taken(engine, application):
    put(application, "ORDERS", message(), message())
    take(application, engine, "ORDERS")
    application.begin()
    taken = take(application, engine, "ORDERS")
    letter = dead_letter(taken, queue_name="ORDERS", reason_code=2053, queue_manager_name="QM", now_us=0)
    letter.descriptor = letter.descriptor.replace(msg_id=taken.msg_id)
    put(application, "OTHERS", letter)
    application.commit(lambda: None)
    application.begin()
    back = take(application, engine, "OTHERS")
    put(application, "ORDERS", message(msg_id=back.msg_id))
    application.commit(lambda: None)
    found = running_queues(engine)
    assert (found["ORDERS"].taken, found["ORDERS"].dead_lettered, found["ORDERS"].waiting) == (1, 1, 1)
    assert (found["OTHERS"].redriven, found["OTHERS"].taken) == (1, 0)


def test_a_letter_that_goes_back_to_another_queue_manager_is_redriven_too(engine, application):
    engine.objects.alter(engine.queue("OTHERS").definition.altered({"USAGE": "XMITQ"}))
    inner = message(msg_id=b"m" * 24)
    letter = dead_letter(inner, queue_name="THERE", reason_code=2053, queue_manager_name="QM", now_us=0)
    put(application, "ORDERS", letter)
    application.begin()
    take(application, engine, "ORDERS")
    sent = transmission_message(inner, queue_name="THERE", queue_manager_name="", own_name="QM", now_us=0)
    put(application, "OTHERS", sent)
    application.commit(lambda: None)
    assert running_queues(engine)["ORDERS"].redriven == 1


def test_what_the_holder_of_a_transmission_queue_takes_is_forwarded_and_what_others_take_is_not(engine, application):
    engine.objects.alter(engine.queue("ORDERS").definition.altered({"USAGE": "XMITQ"}))
    put(application, "ORDERS", message(), message())
    take(application, engine, "ORDERS")
    application.hold("ORDERS", lambda _name: None)
    take(application, engine, "ORDERS")
    found = running_queues(engine)["ORDERS"]
    assert (found.taken, found.forwarded) == (1, 1)


# -- queues that end ---------------------------------------------------------------------------------------------------


def test_a_purged_queue_leaves_its_counters_with_those_of_all_that_are_gone(engine, application, data_folder):
    put(application, "ORDERS", message(), message(), message(NOT_PERSISTENT))
    take(application, engine, "ORDERS")
    delete(engine, engine.queue("ORDERS"), ACT, purge=True)
    found = balance_of(data_folder)
    assert "ORDERS" not in {queue.name for queue in found.queues}
    former = line(found, FORMER_QUEUES)
    assert (former.persistent.put, former.persistent.taken, former.persistent.cleared) == (2, 1, 1)
    assert former.not_persistent.cleared == 1
    assert found.adds_up
    engine.define("ORDERS")
    put(application, "ORDERS", message())
    assert line(balance_of(data_folder), "ORDERS").persistent.put == 1


def test_temporary_queues_count_together_and_what_ends_with_them_is_cleared(engine, data_folder):
    engine.objects.define(Definition(object_type=ObjectType.QMODEL, name="MODEL"))
    asker = Application(engine)
    name = asker.create_dynamic("MODEL", "REPLIES.*")
    put(asker, name, message(NOT_PERSISTENT), message(NOT_PERSISTENT), message(NOT_PERSISTENT))
    take(asker, engine, name)
    assert running_queues(engine)[FORMER_QUEUES].waiting == 2
    asker.close()
    engine.tick()
    former = line(balance_of(data_folder), FORMER_QUEUES).not_persistent
    assert (former.put, former.taken, former.cleared, former.waiting) == (3, 1, 2, 0)
    assert {each.difference for each in running_queues(engine).values()} == {0}


def test_messages_that_were_set_aside_as_damaged_count_as_cleared(engine, application, data_folder):
    put(application, "ORDERS", message(), message(), message())
    stop(engine)
    change(data_folder, "UPDATE message SET body = x'00' WHERE sequence = 2")
    change(data_folder, "UPDATE message SET queue = 999 WHERE sequence = 3")
    assert not balance_of(data_folder).adds_up
    assert len(set_aside(data_folder)) == 2
    found = balance_of(data_folder)
    assert (line(found, "ORDERS").persistent.cleared, line(found, "ORDERS").persistent.waiting) == (1, 1)
    assert found.in_all.adds_up


# -- stops and kills ---------------------------------------------------------------------------------------------------


def test_counters_go_on_after_a_restart_and_say_what_went_with_the_memory(engine, application, data_folder):
    put(application, "ORDERS", message(), message(NOT_PERSISTENT), message(NOT_PERSISTENT))
    take(application, engine, "ORDERS")
    stop(engine)
    assert balance_of(data_folder).adds_up
    again = Engine.open(data_folder)
    put(Application(again), "ORDERS", message(NOT_PERSISTENT))
    again.tick()
    found = line(balance_of(data_folder), "ORDERS")
    assert (found.persistent.put, found.persistent.taken) == (1, 1)
    assert (found.not_persistent.put, found.not_persistent.gone_at_a_stop, found.not_persistent.waiting) == (3, 2, 1)
    assert found.adds_up
    assert running_queues(again)["ORDERS"].difference == 0
    again.close()


def test_a_kill_may_lose_counts_of_what_was_in_memory_alone_and_the_balance_is_true(engine, application, data_folder):
    put(application, "ORDERS", message(NOT_PERSISTENT), message())
    put(application, "ORDERS", message(NOT_PERSISTENT))
    killed = data_folder.parent / "killed"
    shutil.copytree(data_folder, killed)
    assert line(balance_of(killed), "ORDERS").not_persistent.put == 1
    again = Engine.open(killed)
    again.tick()
    found = line(balance_of(killed), "ORDERS")
    assert (found.not_persistent.put, found.not_persistent.gone_at_a_stop, found.persistent.waiting) == (1, 1, 1)
    assert found.adds_up
    again.close()


def test_groups_without_anything_durable_are_counted_in_the_store_with_the_next_tick(engine, application, data_folder):
    put(application, "ORDERS", message(NOT_PERSISTENT))
    take(application, engine, "ORDERS")
    engine.tick()
    found = line(balance_of(data_folder), "ORDERS").not_persistent
    assert (found.put, found.taken) == (1, 1)
    before = engine.commit_times.sum_s
    engine.tick()
    assert engine.commit_times.sum_s == before  # nothing is new, so nothing is written


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_that_never_counted_begins_with_what_waits(data_folder, version):
    data_folder.mkdir(exist_ok=True)
    shutil.copy(STORES / f"version_{version}.sqlite", data_folder / FILE_NAME)
    assert read_balance(data_folder) is None
    with Direct(data_folder) as queue_manager:
        queue_manager.put("ORDERS", message())
    found = balance_of(data_folder)
    waiting = found.in_all.persistent.waiting
    assert found.in_all.persistent.begin == waiting - 1 > 0
    assert found.adds_up


def test_it_adds_up_while_a_thread_commits_and_a_queue_ends_meanwhile(data_folder, monkeypatch):
    monkeypatch.setattr("mq_adapters.embedded.group_commit.SLOW_COMMIT_S", -1.0)
    calls, held = [], []
    engine = Engine.open(data_folder, call_soon=calls.append, offload=lambda *call: held.append(call))
    engine.objects.define(Definition(object_type=ObjectType.QMODEL, name="MODEL"))
    application = Application(engine)
    engine.define("ORDERS")
    engine.define("OTHERS")

    def turn(*, until_committed: bool) -> None:
        while calls or (held and until_committed):
            if calls:
                calls.pop(0)()
            else:
                call, done = held.pop(0)
                call()
                done(None)

    def missing() -> set[int]:
        publications = engine.counters.running_publications()
        known = publications.counts[PublicationCounter.RECEIVED] - publications.counts[PublicationCounter.PUBLISHED]
        return {known, *(queue.difference for queue in running_queues(engine).values())}

    asker = Application(engine)
    temporary = asker.create_dynamic("MODEL", "REPLIES.*")
    put(asker, temporary, message(NOT_PERSISTENT), message(NOT_PERSISTENT))
    put(application, "ORDERS", message(), message(NOT_PERSISTENT))
    engine.counters.count(PublicationCounter.RECEIVED, 1)
    unit = engine.begin()
    unit.count(PublicationCounter.PUBLISHED)
    engine.submit(unit)
    turn(until_committed=False)
    assert held, "a thread is committing"
    assert missing() == {0}
    delete(engine, engine.queue("OTHERS"), ACT)
    turn(until_committed=True)
    put(application, "ORDERS", message())
    turn(until_committed=False)
    assert held
    asker.close()
    assert missing() == {0}
    turn(until_committed=True)
    engine.tick()
    turn(until_committed=True)
    found = balance_of(data_folder)
    assert missing() == {0}
    assert found.adds_up
    former = line(found, FORMER_QUEUES).not_persistent
    assert (former.put, former.cleared, former.waiting) == (2, 2, 0)
    engine.close()


def test_counters_of_a_later_version_are_refused_by_name():
    later = ormsgpack.packb([0, 0, 0, [0] * 40, [0] * 40])
    with pytest.raises(StoreError, match="a later version wrote them"):
        Counters().load([(b"qORDERS", later)])


def test_commands_that_open_the_store_themselves_count_too(data_folder):
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        queue_manager.put("ORDERS", message())
        queue_manager.put("ORDERS", message())
        queue_manager.get("ORDERS")
    with Direct(data_folder) as queue_manager:
        assert queue_manager.clear("ORDERS") == 1
    found = line(balance_of(data_folder), "ORDERS").persistent
    assert (found.put, found.taken, found.cleared, found.difference) == (2, 1, 1, 0)


def test_audit_notes_are_messages_on_a_queue_like_all_others(engine, data_folder):
    engine.seal_notes = lambda _batch, _notes: b"notes"
    unit = engine.begin()
    unit.notes.append((1,))
    unit.notes_are_due = True
    engine.submit(unit)
    found = line(balance_of(data_folder), AUDIT_QUEUE).persistent
    assert (found.put, found.waiting, found.difference) == (1, 1, 0)


# -- what vanishes shows -----------------------------------------------------------------------------------------------


def test_a_row_that_was_deleted_behind_the_queue_manager_is_missed_at_once_and_after_a_restart(
    engine, application, data_folder
):
    put(application, "ORDERS", message(), message())
    change(data_folder, "DELETE FROM message WHERE sequence = (SELECT min(sequence) FROM message)")
    found = balance_of(data_folder)
    assert line(found, "ORDERS").persistent.difference == 1
    assert (found.in_all.persistent.difference, found.adds_up) == (1, False)
    stop(engine)
    again = Engine.open(data_folder)
    assert running_queues(again)["ORDERS"].difference == 1
    again.close()


def test_a_row_that_comes_back_is_one_too_many(engine, application, data_folder):
    put(application, "ORDERS", message())
    change(data_folder, "CREATE TABLE kept AS SELECT * FROM message")
    take(application, engine, "ORDERS")
    change(data_folder, "INSERT INTO message SELECT * FROM kept")
    assert line(balance_of(data_folder), "ORDERS").persistent.difference == -1


def test_a_path_of_the_program_that_forgets_a_message_is_found(engine, application):
    put(application, "ORDERS", message(), message(NOT_PERSISTENT))
    engine.queue("ORDERS").empty()  # as a fault would, that drops a lane
    assert running_queues(engine)["ORDERS"].difference == 2


def test_a_commit_that_deletes_a_message_without_a_reason_is_found(engine, application, data_folder):
    put(application, "ORDERS", message())
    engine._store.write(puts=[], removals=[(message_number(data_folder),)], states=[], next_sequence=1, next_batch=1)
    engine._store.commit()
    assert line(balance_of(data_folder), "ORDERS").persistent.difference == 1


def message_number(folder: Path) -> int:
    connection = apsw.Connection(str(folder / FILE_NAME))
    number = connection.execute("SELECT max(sequence) FROM message").get
    connection.close()
    return number


def test_a_counter_that_the_disk_changed_is_an_error_and_no_balance(engine, application, data_folder):
    put(application, "ORDERS", message())
    stop(engine)
    change(data_folder, f"UPDATE state SET value = CAST(value || x'00' AS BLOB) WHERE space = {StateKind.BALANCE:d}")
    with pytest.raises(StoreError, match="not as they were written"):
        read_balance(data_folder)


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"\xc0", b"\x91\x01", b"\x95\x01\x01\x01\x01\x01", b"\x95\x00\x00\x00\x91\xa1x\x90"),
        *(b"\x95\xa1x\x00\x00\x90\x90", b"\x95\xc3\x00\x00\x90\x90", b"\x95\x00\x00\x00\x91\xc3\x91\xc3"),
    ],
)
def test_a_row_that_is_no_counter_ends_in_our_error(value):
    for key in (b"p", b"qORDERS"):
        with pytest.raises(StoreError, match="read the counters"):
            Counters().load([(key, value)])


# -- publications ------------------------------------------------------------------------------------------------------


def test_publications_are_counted_with_their_commit_and_what_was_in_hand_is_gone_after_a_stop(engine, data_folder):
    engine.counters.publications[PublicationCounter.RECEIVED] += 5
    engine.counters.in_hand = lambda: 2
    unit = engine.begin()
    unit.count(PublicationCounter.PUBLISHED, 2)
    unit.set_state(StateKind.SESSION_INCOMING, b"held", b"a PUBLISH of QoS 2")
    engine.submit(unit)
    found = balance_of(data_folder).publications
    assert (found.received, found.published, found.held, found.in_hand, found.difference) == (5, 2, 1, 2, 0)
    stop(engine)
    again = Engine.open(data_folder)
    again.tick()
    found = balance_of(data_folder).publications
    assert (found.gone_at_a_stop, found.in_hand, found.difference) == (2, 0, 0)
    again.close()


def test_a_publication_that_nobody_accounts_for_shows(engine, data_folder):
    engine.counters.publications[PublicationCounter.RECEIVED] += 1
    engine.tick()
    assert balance_of(data_folder).publications.difference == 1


def test_a_store_that_held_publications_of_qos_2_before_it_counted_begins_with_them(data_folder):
    store = Store.open(data_folder)
    states = [(StateKind.SESSION_INCOMING, b"held", b"a PUBLISH of QoS 2")]
    store.write(puts=[], removals=[], states=states, next_sequence=1, next_batch=1)
    store.commit()
    store.close()
    engine = Engine.open(data_folder)
    engine.tick()
    found = balance_of(data_folder).publications
    assert (found.begin, found.held, found.difference) == (1, 1, 0)
    engine.close()

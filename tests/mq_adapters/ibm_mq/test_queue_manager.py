"""The adapter for IBM MQ beside the port's contract: lost connections, threads, handles, quiescing, context."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import pytest

from mq_adapters.ibm_mq import IbmMq
from mq_adapters.ibm_mq.hconn import MAXIMUM_KEPT_HANDLES
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import Action, QueueManagerError, what_to_do
from tests.ibm_mq_stand_in.process import wait_until

ANY = MessageDescriptor()
IDENTITY = MessageDescriptor(user_identifier="keeper", accounting_token=b"\x01" * 32, appl_identity_data="boiler 7")
ALL = IDENTITY.replace(put_appl_type=28, put_appl_name="a program", appl_origin_data="orig")


def refusal(reason_code: int):
    return pytest.raises(QueueManagerError, match=str(reason_code))


def put(queue_manager: IbmMq, body: bytes, descriptor: MessageDescriptor = ANY) -> bytes:
    return queue_manager.put("ORDERS", Message(descriptor, body))


def watched_gets(queue_manager: IbmMq, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """Fields of the MQGMO of each MQGET from now on."""
    seen: list[dict[str, int]] = []
    queue = queue_manager._hconn.library.Queue
    get = queue.get

    def noting(self, length: int, mqmd: object, gmo: object) -> bytes:
        seen.append({name: getattr(gmo, name) for name in ("Version", "Options", "WaitInterval")})
        return get(self, length, mqmd, gmo)

    monkeypatch.setattr(queue, "get", noting)
    return seen


def bodies(queue_manager: IbmMq) -> list[bytes]:
    return [message.body for message in queue_manager.browse("ORDERS")]


# -- losses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["MQPUT", "MQGET", "MQOPEN"])
def test_a_connection_that_is_lost_stays_lost_and_asks_the_library_no_more(queue_manager, control, settings, verb):
    queue_manager.begin()
    control.plant(verb, 2009)
    call = {"MQPUT": lambda: put(queue_manager, b"never"), "MQGET": lambda: queue_manager.get("ORDERS", wait_s=60)}
    with pytest.raises(QueueManagerError) as lost:
        call.get(verb, lambda: queue_manager.browse("ORDERS"))()
    assert what_to_do(lost.value.reason_code) is Action.OUTCOME_UNKNOWN
    calls = control.calls()
    for call in (
        lambda: put(queue_manager, b"never"),
        lambda: queue_manager.get("ORDERS", wait_s=60),
        lambda: queue_manager.depth("ORDERS"),
        lambda: queue_manager.browse("ORDERS"),
        lambda: queue_manager.open_exclusively("ORDERS"),
        queue_manager.commit,
        queue_manager.back_out,
        queue_manager.begin,
    ):
        with refusal(2009):
            call()
    assert control.calls() == calls
    with IbmMq(settings) as again:
        assert bodies(again) == []


@pytest.mark.parametrize(("moment", "expected"), [("before", []), ("after", [b"one"])])
def test_after_a_commit_that_was_lost_both_is_possible(queue_manager, control, settings, moment, expected):
    control.plant("MQCMIT", 2009, moment)
    queue_manager.begin()
    put(queue_manager, b"one")
    with refusal(2009):
        queue_manager.commit()
    with IbmMq(settings) as again, again.open_exclusively("ORDERS", wait_s=10):
        assert bodies(again) == expected


@pytest.mark.parametrize("reason_code", [2003, 2102])
def test_a_commit_that_is_refused_leaves_nothing_open_and_the_connection_goes_on(queue_manager, control, reason_code):
    control.plant("MQCMIT", reason_code)
    queue_manager.begin()
    put(queue_manager, b"one")
    with refusal(reason_code):
        queue_manager.commit()
    queue_manager.begin()
    put(queue_manager, b"two")
    queue_manager.commit()
    assert bodies(queue_manager) == [b"two"]


def test_a_refused_call_leaves_the_unit_of_work_open(queue_manager, control):
    control.plant("MQPUT", 2053, nth=2)
    queue_manager.begin()
    put(queue_manager, b"one")
    with refusal(2053):
        put(queue_manager, b"two")
    queue_manager.commit()
    assert bodies(queue_manager) == [b"one"]


def test_closing_backs_out_and_never_commits(queue_manager, settings):
    queue_manager.begin()
    put(queue_manager, b"never")
    queue_manager.close()
    with IbmMq(settings) as again:
        assert bodies(again) == []


def test_a_connection_that_cannot_back_out_is_left_to_the_queue_manager(queue_manager, control, settings, caplog):
    queue_manager.begin()
    put(queue_manager, b"never")
    control.plant("MQBACK", 2102)
    queue_manager.close()
    assert "connection left open" in caplog.text
    assert "MQDISC" not in control.calls()
    control.drop_connections()
    with IbmMq(settings) as again, again.open_exclusively("ORDERS", wait_s=10):
        assert bodies(again) == []


@pytest.mark.parametrize("verb", ["MQBACK", "MQCMIT"])
def test_a_unit_of_work_whose_back_out_was_refused_is_not_committed_by_the_end(queue_manager, control, settings, verb):
    queue_manager.begin()
    put(queue_manager, b"never")
    control.plant("MQBACK", 2102)
    if verb == "MQCMIT":
        control.plant("MQCMIT", 2102)
    with refusal(2102):
        queue_manager.back_out() if verb == "MQBACK" else queue_manager.commit()
    queue_manager.close()
    with IbmMq(settings) as again:
        assert bodies(again) == []


def test_a_connection_that_is_forgotten_commits_nothing(control, settings):
    forgotten = IbmMq(settings)
    forgotten.begin()
    put(forgotten, b"never")
    del forgotten
    control.drop_connections()
    with IbmMq(settings) as again, again.open_exclusively("ORDERS", wait_s=10):
        assert bodies(again) == []


def test_a_queue_manager_that_quiesces_refuses_every_call_at_once(queue_manager, control):
    put(queue_manager, b"one")
    queue_manager.begin()
    put(queue_manager, b"two")
    control.quiesce()
    for call in (lambda: put(queue_manager, b"three"), lambda: queue_manager.get("ORDERS", wait_s=60)):
        with pytest.raises(QueueManagerError) as refused:
            call()
        assert what_to_do(refused.value.reason_code) is Action.RECONNECT
    queue_manager.back_out()


# -- threads -----------------------------------------------------------------------------------------------------------


def test_a_connection_refuses_every_thread_but_its_own(queue_manager):
    with ThreadPoolExecutor(1) as pool:
        for call in (lambda: put(queue_manager, b"never"), lambda: queue_manager.get("ORDERS"), queue_manager.begin):
            with refusal(2018):
                pool.submit(call).result(10)
    assert bodies(queue_manager) == []


def test_another_thread_may_close_and_what_was_open_is_backed_out(queue_manager, settings):
    queue_manager.begin()
    put(queue_manager, b"never")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(queue_manager.close).result(10)
    with IbmMq(settings) as again:
        assert bodies(again) == []


def test_a_get_that_waits_holds_up_no_other_thread(queue_manager, control, settings):
    def wait() -> bytes:
        with IbmMq(settings) as waiting:
            return waiting.get("ORDERS", wait_s=100, correl_id=b"n" * 24).body

    def has_opened_orders() -> bool:
        return ("MQOPEN", "ORDERS") in {(call["verb"], call["object_name"]) for call in control.trace()}

    with ThreadPoolExecutor(1) as pool:
        waited = pool.submit(wait)
        wait_until(lambda: has_opened_orders() and control.calls_under_way() == 1)
        for number in range(100):
            put(queue_manager, b"%d" % number)
            assert queue_manager.get("ORDERS").body == b"%d" % number
        assert not waited.done()
        put(queue_manager, b"the end", MessageDescriptor(correl_id=b"n" * 24))
        assert waited.result(60) == b"the end"


def test_a_long_wait_is_made_of_short_ones(queue_manager, control, monkeypatch):
    looks = count()
    monkeypatch.setattr("mq_adapters.ibm_mq.getting.monotonic", lambda: next(looks) / 64)
    gets = watched_gets(queue_manager, monkeypatch)
    monkeypatch.setattr("mq_adapters.ibm_mq.getting.LONGEST_WAIT_MS", 20)
    with refusal(2033):
        queue_manager.get("ORDERS", wait_s=8 / 64)
    assert [fields["WaitInterval"] for fields in gets] == [20, 20, 20, 16]


def test_a_wait_is_not_over_before_its_time(queue_manager):
    started = time.monotonic()
    with refusal(2033):
        queue_manager.get("ORDERS", wait_s=0.1)
    assert time.monotonic() - started >= 0.1


def test_an_interrupt_ends_a_wait_long_before_its_time(control, stand_in, package):
    code = (
        "from mq_adapters.ibm_mq import ConnectionSettings, IbmMq\n"
        f"with IbmMq(ConnectionSettings(package={package!r})) as queue_manager:\n"
        "    print('waiting', flush=True)\n"
        "    queue_manager.get('ORDERS', wait_s=1_000)\n"
    )
    environment = os.environ | stand_in.environment(package)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as waiting:
        assert waiting.stdout.readline() == "waiting\n"
        waiting.send_signal(signal.SIGINT)
        _, complaint = waiting.communicate(timeout=60)
    assert complaint.rstrip().endswith("KeyboardInterrupt")


def test_threads_with_a_connection_each_get_what_was_put_and_each_message_once(queue_manager, settings):
    expected = {b"%d" % number * 50: (b"%d" % number).ljust(24, b"\0") for number in range(400)}
    for body, correl_id in expected.items():
        put(queue_manager, body, MessageDescriptor(correl_id=correl_id, persistence=0))

    def drain() -> list[tuple[bytes, bytes]]:
        got = []
        with IbmMq(settings) as own:
            while len(got) < len(expected):
                try:
                    message = own.get("ORDERS")
                except QueueManagerError:
                    break
                got.append((message.body, message.descriptor.correl_id))
        return got

    with ThreadPoolExecutor(4) as pool:
        drained = [pair for done in [pool.submit(drain) for _ in range(4)] for pair in done.result(60)]
    assert len(drained) == len(expected)
    assert dict(drained) == expected


# -- handles -----------------------------------------------------------------------------------------------------------


def test_few_handles_are_kept_open(queue_manager, control):
    names = [f"MANY.{number}" for number in range(MAXIMUM_KEPT_HANDLES + 4)]
    control.mqsc(*(f"DEFINE QLOCAL({name})" for name in names))
    control.forget_calls()
    for name in (*names, *names[-4:]):
        queue_manager.put(name, Message(ANY, b""))
    calls = control.calls()
    assert calls["MQOPEN"] == len(names)  # the last ones are still open
    assert calls["MQOPEN"] - calls["MQCLOSE"] <= MAXIMUM_KEPT_HANDLES
    control.mqsc(*(f"DELETE QLOCAL({name}) PURGE" for name in names))


@pytest.mark.parametrize("reason_code", [2041, 2052])
def test_a_handle_that_is_out_of_date_is_opened_anew(queue_manager, control, reason_code):
    put(queue_manager, b"one")
    control.plant("MQPUT", reason_code)
    put(queue_manager, b"two")
    queue_manager.get("ORDERS")
    control.plant("MQGET", reason_code)
    assert queue_manager.get("ORDERS").body == b"two"


def test_a_queue_that_stays_deleted_is_refused(queue_manager, control):
    put(queue_manager, b"one")
    control.plant("MQPUT", 2052, times=0)
    with refusal(2052):
        put(queue_manager, b"two")


def test_a_name_that_would_be_cut_to_another_queues_never_reaches_the_library(queue_manager, control):
    longest = "L" * 48
    control.mqsc(f"DEFINE QLOCAL({longest})")
    queue_manager.put(longest, Message(ANY, b"one"))
    control.forget_calls()
    with refusal(2085):
        queue_manager.put(longest + "X", Message(ANY, b"two"))
    with refusal(2026):
        put(queue_manager, b"", MessageDescriptor(reply_to_q=longest + "X"))
    with refusal(2026):
        put(queue_manager, b"", MessageDescriptor(user_identifier="thirteen long"))
    assert control.calls() == {}
    assert queue_manager.depth(longest) == 1
    control.mqsc(f"DELETE QLOCAL({longest}) PURGE")


# -- messages ----------------------------------------------------------------------------------------------------------


def test_every_get_asks_for_properties_as_mqrfh2_and_never_waits_on_a_quiescing_queue_manager(
    queue_manager, monkeypatch
):
    put(queue_manager, b"one")
    seen = watched_gets(queue_manager, monkeypatch)
    next(queue_manager.browse("ORDERS"))
    queue_manager.begin()
    queue_manager.take_batch("ORDERS", most_messages=1, most_bytes=1)
    queue_manager.back_out()
    queue_manager.get("ORDERS", wait_s=1)
    assert len(seen) == 3
    for fields in seen:
        assert fields["Options"] & 0x0200_0000  # MQGMO_PROPERTIES_FORCE_MQRFH2
        assert fields["Options"] & 0x0000_2000  # MQGMO_FAIL_IF_QUIESCING
        assert bool(fields["Options"] & 0x2) is not bool(fields["Options"] & 0x4)  # MQGMO_SYNCPOINT or _NO_SYNCPOINT
        assert fields["WaitInterval"] <= 2_000
        assert fields["Version"] == 3


def test_a_message_longer_than_the_buffer_is_got_whole_browsed_whole_and_in_its_place(queue_manager):
    sizes = (1, 300_000, 2, 5_000_000, 70_000, 0)
    for size in sizes:
        put(queue_manager, b"x" * size)
    assert [len(body) for body in bodies(queue_manager)] == list(sizes)
    assert [len(queue_manager.get("ORDERS").body) for _ in sizes] == list(sizes)


def test_a_batch_ends_before_a_message_that_is_too_long_for_it(queue_manager):
    for size in (100_000, 10, 100_000):
        put(queue_manager, b"x" * size)
    queue_manager.begin()
    batch = queue_manager.take_batch("ORDERS", most_messages=9, most_bytes=100_020)
    assert [len(message.body) for message in batch] == [100_000, 10]
    batch = queue_manager.take_batch("ORDERS", most_messages=9, most_bytes=1)
    assert [len(message.body) for message in batch] == [100_000]
    queue_manager.commit()


@pytest.mark.parametrize(
    ("context", "denied", "kept"),
    [
        ("all", (), "all"),
        ("identity", (), "identity"),
        ("default", (), "default"),
        ("all", ("setall",), "identity"),
        ("all", ("setall", "setid"), "default"),
    ],
)
def test_context_is_kept_as_far_as_it_is_granted(control, settings, caplog, context, denied, kept):
    control.deny(*(("ORDERS", authority) for authority in denied))
    with IbmMq(replace(settings, context=context)) as queue_manager:
        for _ in range(3):
            put(queue_manager, b"", ALL)
        got = queue_manager.get("ORDERS").descriptor
    identity = (got.user_identifier, got.accounting_token, got.appl_identity_data)
    origin = (got.put_appl_type, got.put_appl_name, got.appl_origin_data)
    assert (identity == ("keeper", b"\x01" * 32, "boiler 7")) is (kept != "default")
    assert (origin == (28, "a program", "orig")) is (kept == "all")
    assert caplog.text.count("context not granted queue=ORDERS") == len(denied)


def test_a_message_without_context_gets_that_of_the_connection_without_asking_for_more(queue_manager, control):
    control.deny(("ORDERS", "setall"), ("ORDERS", "setid"))
    put(queue_manager, b"")
    assert queue_manager.get("ORDERS").descriptor.user_identifier != ""
    assert 2035 not in control.reasons()


def test_a_put_without_authority_is_2035(queue_manager, control):
    control.deny(("ORDERS", "put"), ("ORDERS", "setid"), ("ORDERS", "setall"))
    with refusal(2035):
        put(queue_manager, b"", ALL)

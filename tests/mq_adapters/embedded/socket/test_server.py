"""The socket: frames laid out by hand from frames.py, as a C program would send them, and what hostile ones come to."""

import asyncio
import contextlib
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mq_adapters import connect
from mq_adapters.attributes import ObjectType
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.rights import EXPORTER
from mq_adapters.embedded.socket import connection as connection_module
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.socket.server import Server
from mq_adapters.embedded.socket.socket_file import SOCKET_NAME, listening_socket
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, StoreError
from mq_adapters.system_queues import AUDIT_QUEUE
from tests.mq_adapters.gateway_thread import STEP_S
from tests.sleeping import when_this_thread_sleeps

HELLO, PUT, GET, BROWSE_OPEN, BROWSE_NEXT, BEGIN, COMMIT, DEPTH, HOLD, RELEASE = 1, 2, 3, 4, 5, 7, 8, 12, 19, 20
NAME = b"ORDERS".ljust(48)
NO_MATCH = bytes(49)
# An MQMD as CMQC's MQMD_DEFAULT has it, but version 2 and for a body in UTF-8.
MQMD = (
    struct.pack("<4s7i8sii", b"MD  ", 2, 0, 8, -1, 0, 546, 1208, b" " * 8, -1, 2)
    + bytes(48)
    + struct.pack("<i", 0)
    + b" " * 108
    + bytes(32)
    + b" " * 32
    + struct.pack("<i", 0)
    + b" " * 48
    + bytes(24)
    + struct.pack("<4i", 1, 0, 0, -1)
)
HELLO_FRAME = bytes.fromhex("11000000 01 07000000 01000000 04000000") + b"prog"


def request(verb: int, number: int, fields: bytes = b"") -> bytes:
    return struct.pack("<IBI", 5 + len(fields), verb, number) + fields


def put_request(number: int, body: bytes) -> bytes:
    return request(PUT, number, NAME + struct.pack("<I", 364 + len(body)) + MQMD + body)


class Peer:
    """A program that speaks the frames by itself."""

    def __init__(self, data_dir: Path, *, hello: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(data_dir / SOCKET_NAME))
        self.socket.settimeout(STEP_S)
        if hello:
            self.socket.sendall(HELLO_FRAME)
            self.answer()

    def read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def answer(self) -> tuple[int, int, int, int, bytes]:
        """Verb, request number, completion code, reason code and fields of the next answer."""
        (length,) = struct.unpack("<I", self.read(4))
        data = self.read(length)
        return *struct.unpack("<BIII", data[:13]), data[13:]

    def is_closed_by_the_gateway(self) -> bool:
        try:
            while True:
                self.answer()
        except (EOFError, ConnectionError):
            return True

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def peer(gateway) -> Iterator[Peer]:
    peer = Peer(gateway.data_dir)
    yield peer
    peer.close()


@pytest.fixture
def client(gateway) -> Iterator[SocketClient]:
    with SocketClient(gateway.data_dir) as client:
        yield client


def depth(gateway) -> int:
    return gateway.call(lambda: gateway.engine.queue("ORDERS").depth)


def wait_until(gateway, condition) -> None:
    """Asks the gateway's loop again and again, each time after it has had its turn."""
    deadline = time.monotonic() + STEP_S
    while not gateway.call(condition):
        assert time.monotonic() < deadline, "it did not come to pass"


def _adopt(gateway, rights) -> SocketClient:
    """The client at the other end of a socket pair that the gateway takes with these rights."""
    here, there = socket.socketpair()
    asyncio.run_coroutine_threadsafe(gateway.server.adopt(here, rights), gateway.loop).result(STEP_S)
    return SocketClient(there, application_name="inherited")


def _note(gateway, body: bytes) -> None:
    def put() -> None:
        engine = gateway.engine
        unit = engine.begin()
        engine.put(unit, engine.queue(AUDIT_QUEUE), Message(MessageDescriptor(format=b"RFHBAUD "), body))
        engine.submit(unit)

    gateway.call(put)


def test_only_who_inherited_the_exporters_connection_takes_audit_notes(gateway, client):
    """Whatever name another program of the same user gives itself."""
    _note(gateway, b"packed notes")
    wait_until(gateway, lambda: gateway.engine.queue(AUDIT_QUEUE).depth == 1)
    with SocketClient(gateway.data_dir, application_name="rfhbridge exporter") as other:
        other.begin()
        with pytest.raises(QueueManagerError, match="2035"):
            other.take_batch(AUDIT_QUEUE, most_messages=64, most_bytes=4_194_304)
    with _adopt(gateway, EXPORTER) as exporter:
        exporter.begin()
        batch = exporter.take_batch(AUDIT_QUEUE, most_messages=64, most_bytes=4_194_304)
        exporter.commit()
        assert [message.body for message in batch] == [b"packed notes"]
        with pytest.raises(QueueManagerError, match="2035"):
            exporter.get("ORDERS")
    assert client.depth(AUDIT_QUEUE) == 0


def test_notes_that_an_exporter_took_and_did_not_commit_go_back_when_it_dies(gateway, client):
    _note(gateway, b"packed notes")
    exporter = _adopt(gateway, EXPORTER)
    exporter.begin()
    assert len(exporter.take_batch(AUDIT_QUEUE, most_messages=64, most_bytes=4_194_304)) == 1
    exporter.close()
    wait_until(gateway, lambda: gateway.engine.queue(AUDIT_QUEUE).depth == 1)
    with _adopt(gateway, EXPORTER) as following:
        following.begin()
        assert len(following.take_batch(AUDIT_QUEUE, most_messages=64, most_bytes=4_194_304)) == 1
        following.commit()
    assert client.depth(AUDIT_QUEUE) == 0


def test_hello_names_the_queue_manager_and_its_store(gateway):
    peer = Peer(gateway.data_dir, hello=False)
    peer.socket.sendall(HELLO_FRAME)
    incarnation = gateway.engine.incarnation
    assert peer.answer() == (HELLO, 7, 0, 0, b"RFHBRIDGE".ljust(48) + incarnation)
    peer.close()


def test_a_program_puts_and_gets_with_frames_of_its_own(peer):
    peer.socket.sendall(put_request(21, b"hello"))
    verb, number, completion, reason, msg_id = peer.answer()
    assert (verb, number, completion, reason, len(msg_id)) == (PUT, 21, 0, 0, 24)
    peer.socket.sendall(request(DEPTH, 22, NAME))
    assert peer.answer() == (DEPTH, 22, 0, 0, struct.pack("<Q", 1))
    peer.socket.sendall(request(GET, 23, NAME + NO_MATCH + bytes(4)))
    verb, number, completion, reason, fields = peer.answer()
    assert (verb, number, completion, reason) == (GET, 23, 0, 0)
    assert fields[:4] == struct.pack("<I", 369)
    assert fields[4:8] == b"MD  "
    assert fields[4 + 48 : 4 + 72] == msg_id
    assert fields[4 + 276 : 4 + 304] == b"prog".ljust(28)
    assert fields[368:] == b"hello"


def test_a_refusal_carries_the_reason_code_and_a_text(peer):
    peer.socket.sendall(request(GET, 5, NAME + NO_MATCH + bytes(4)))
    text = b"get from ORDERS"
    assert peer.answer() == (GET, 5, 2, 2033, struct.pack("<I", len(text)) + text)


def test_frames_that_come_byte_by_byte_are_understood(peer):
    for byte in put_request(1, b"hello"):
        peer.socket.sendall(bytes((byte,)))
    assert peer.answer()[:4] == (PUT, 1, 0, 0)
    for byte in request(DEPTH, 2, NAME):
        peer.socket.sendall(bytes((byte,)))
    assert peer.answer() == (DEPTH, 2, 0, 0, struct.pack("<Q", 1))


def test_many_requests_may_be_sent_before_an_answer_is_read(gateway, peer):
    sender = threading.Thread(target=peer.socket.sendall, args=(b"".join(put_request(n, b"x") for n in range(3_000)),))
    sender.start()
    answers = [peer.answer() for _ in range(3_000)]
    sender.join()
    assert [answer[1] for answer in answers] == list(range(3_000))
    assert {answer[3] for answer in answers} == {0}
    assert depth(gateway) == 3_000


def test_requests_that_nobody_reads_the_answers_of_are_held_back(gateway, peer, client, monkeypatch):
    monkeypatch.setattr(connection_module, "MAXIMUM_OUTPUT_BYTES", 100_000)
    reader = Peer(gateway.data_dir)
    client.put("ORDERS", Message(MessageDescriptor(), bytes(50_000)))
    wanted = request(BROWSE_OPEN, 1, NAME + NO_MATCH)
    ask = b"".join(wanted + request(BROWSE_NEXT, n, struct.pack("<I", n)) for n in range(1, 61))
    reader.socket.sendall(ask)
    assert client.depth("ORDERS") == 1  # others are served meanwhile
    held = gateway.call(lambda: max(len(each._input) for each in gateway.server.connections))
    assert held > 0
    pages = [answer for answer in (reader.answer() for _ in range(120)) if answer[0] == BROWSE_NEXT]
    assert len(pages) == 60
    assert {len(page[4]) for page in pages} == {4 + 4 + 364 + 50_000}
    reader.close()


@pytest.mark.parametrize(
    ("complaint", "frames"),
    [
        ("verb 99 is unknown", HELLO_FRAME + request(99, 1)),
        ("verb 0 is unknown", HELLO_FRAME + request(0, 1)),
        ("HELLO comes first", request(DEPTH, 1, NAME)),
        ("HELLO comes first", HELLO_FRAME + HELLO_FRAME),
        ("protocol version 3", request(HELLO, 1, struct.pack("<II", 3, 0))),
        ("a frame of 4097 bytes", struct.pack("<I", 4097)),
        ("a frame of 4294967295 bytes", HELLO_FRAME + b"\xff\xff\xff\xff"),
        ("a frame ends at 0", HELLO_FRAME + bytes(4)),
        ("a frame ends at 4", HELLO_FRAME + struct.pack("<IBBBB", 4, 12, 0, 0, 0)),
        ("a frame of 6 bytes, whose fields end at 5", HELLO_FRAME + request(BEGIN, 1, b"x")),
        ("match is 4", HELLO_FRAME + request(GET, 1, NAME + b"\x04" + bytes(52))),
        ("a message of 363 bytes", HELLO_FRAME + request(PUT, 1, NAME + struct.pack("<I", 363) + bytes(363))),
        ("a text that is not UTF-8", request(HELLO, 1, struct.pack("<II", 1, 1) + b"\xff")),
    ],
)
def test_a_frame_against_the_rules_is_answered_and_the_connection_closed(gateway, client, complaint, frames):
    peer = Peer(gateway.data_dir, hello=False)
    peer.socket.sendall(frames)
    answer = peer.answer()
    if answer[3] == 0:
        answer = peer.answer()
    assert answer[2:4] == (2, 2195)
    assert complaint.encode() in answer[4]
    assert peer.is_closed_by_the_gateway()
    assert client.depth("ORDERS") == 0
    peer.close()


def test_a_descriptor_that_is_refused_leaves_the_connection_open(peer):
    broken = put_request(1, b"x").replace(b"MD  ", b"XX  ")
    peer.socket.sendall(broken + request(DEPTH, 2, NAME))
    assert peer.answer()[1:4] == (1, 2, 2026)
    assert peer.answer()[1:4] == (2, 0, 0)


def test_frames_cut_at_every_length_harm_nobody(gateway, client):
    whole = HELLO_FRAME + request(BEGIN, 1) + put_request(2, b"never") + request(COMMIT, 3)
    for length in range(len(whole)):
        peer = Peer(gateway.data_dir, hello=False)
        peer.socket.sendall(whole[:length])
        peer.close()
    assert client.put("ORDERS", Message(MessageDescriptor(), b"one"))
    wait_until(gateway, lambda: len(gateway.server.connections) == 1)
    assert [message.body for message in client.browse("ORDERS")] == [b"one"]


@pytest.fixture(scope="module")
def lasting_gateway(tmp_path_factory, gateway_class) -> Iterator[object]:
    """One gateway for many random frames."""
    gateway = gateway_class(tmp_path_factory.mktemp("gateway"))
    gateway.call(lambda: gateway.engine.define("ORDERS"))
    yield gateway
    gateway.stop()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 21), st.binary(max_size=120)), min_size=1, max_size=5), st.booleans())
def test_random_frames_end_in_answers_or_a_closed_connection(lasting_gateway, requests, named):
    peer = Peer(lasting_gateway.data_dir)
    frames = [
        request(verb, number, NAME * named + fields) for number, (verb, fields) in enumerate(requests) if verb != GET
    ]
    peer.socket.sendall(b"".join(frames))
    with contextlib.suppress(OSError):
        peer.socket.shutdown(socket.SHUT_WR)
    assert peer.is_closed_by_the_gateway()
    peer.close()
    with SocketClient(lasting_gateway.data_dir) as other:
        assert other.depth("ORDERS") >= 0


def test_a_get_waits_until_a_message_arrives(gateway, client):
    with ThreadPoolExecutor() as pool, SocketClient(gateway.data_dir) as waiter:
        waiting = pool.submit(waiter.get, "ORDERS", wait_s=float("inf"))
        wait_until(gateway, lambda: bool(gateway.engine.queue("ORDERS").listeners))
        client.put("ORDERS", Message(MessageDescriptor(), b"one"))
        assert waiting.result(STEP_S).body == b"one"
    assert gateway.engine.queue("ORDERS").listeners == {}
    assert client.depth("ORDERS") == 0


def test_a_get_by_correl_id_waits_for_its_own_message(gateway, client):
    pump = b"pump".ljust(24)
    with ThreadPoolExecutor() as pool, SocketClient(gateway.data_dir) as waiter:
        waiting = pool.submit(waiter.get, "ORDERS", wait_s=60, correl_id=pump)
        wait_until(gateway, lambda: bool(gateway.engine.queue("ORDERS").listeners))
        client.put("ORDERS", Message(MessageDescriptor(), b"another's"))
        client.put("ORDERS", Message(MessageDescriptor(correl_id=pump), b"own"))
        assert waiting.result(STEP_S).body == b"own"
    assert client.depth("ORDERS") == 1


def test_a_waiting_get_is_woken_by_a_back_out(gateway, client):
    client.put("ORDERS", Message(MessageDescriptor(), b"one"))
    client.begin()
    client.get("ORDERS")
    with ThreadPoolExecutor() as pool, SocketClient(gateway.data_dir) as waiter:
        waiting = pool.submit(waiter.get, "ORDERS", wait_s=60)
        wait_until(gateway, lambda: bool(gateway.engine.queue("ORDERS").listeners))
        client.back_out()
        assert waiting.result(STEP_S).backout_count == 1


def test_one_of_two_waiting_gets_has_the_message(gateway, client):
    with ThreadPoolExecutor() as pool, SocketClient(gateway.data_dir) as one, SocketClient(gateway.data_dir) as two:
        waiting = [pool.submit(each.get, "ORDERS", wait_s=60) for each in (one, two)]
        listeners = gateway.engine.queue("ORDERS").listeners
        wait_until(gateway, lambda: len(listeners.get(None, ())) == 2)
        client.put("ORDERS", Message(MessageDescriptor(), b"first"))
        wait_until(gateway, lambda: len(listeners.get(None, ())) == 1)
        client.put("ORDERS", Message(MessageDescriptor(), b"second"))
        assert {each.result(STEP_S).body for each in waiting} == {b"first", b"second"}


def test_a_get_that_waits_in_vain_gives_2033(client):
    started = time.monotonic()
    with pytest.raises(QueueManagerError, match="2033"):
        client.get("ORDERS", wait_s=0.05)
    assert time.monotonic() - started >= 0.025  # an event loop counts whole milliseconds, and some of them early


def test_while_a_get_waits_other_requests_are_refused(gateway, peer):
    forever = NAME + NO_MATCH + b"\xff\xff\xff\xff"
    peer.socket.sendall(request(GET, 1, forever) + request(DEPTH, 2, NAME))
    assert peer.answer()[1:4] == (2, 2, 2219)


def test_a_queue_is_held_until_it_is_released_or_its_holder_goes(gateway, peer, client):
    peer.socket.sendall(request(HOLD, 1, NAME))
    assert peer.answer() == (HOLD, 1, 0, 0, NAME)
    with pytest.raises(QueueManagerError, match="2042"):
        client.get("ORDERS")
    assert "in use" in str(client.mqsc("DELETE QLOCAL(ORDERS)"))
    peer.socket.sendall(request(RELEASE, 2, NAME))
    assert peer.answer() == (RELEASE, 2, 0, 0, b"")
    with pytest.raises(QueueManagerError, match="2033"):
        client.get("ORDERS")
    peer.socket.sendall(request(HOLD, 3, NAME))
    peer.answer()
    peer.close()
    client.open_exclusively("ORDERS", wait_s=STEP_S).close()


def test_a_queue_at_which_a_get_waits_cannot_be_held_until_the_wait_ends(gateway, peer, client):
    peer.socket.sendall(request(GET, 1, NAME + NO_MATCH + b"\xff\xff\xff\xff"))
    wait_until(gateway, lambda: bool(gateway.engine.queue("ORDERS").listeners))
    with pytest.raises(QueueManagerError, match="2042"):
        client.open_exclusively("ORDERS")
    client.put("ORDERS", Message(MessageDescriptor(), b"one"))
    assert peer.answer()[3] == 0
    client.open_exclusively("ORDERS").close()


def test_an_application_that_dies_has_its_unit_of_work_backed_out_at_once(gateway, client):
    client.put("ORDERS", Message(MessageDescriptor(), b"one"))
    with ThreadPoolExecutor() as pool:
        peer = Peer(gateway.data_dir)
        peer.socket.sendall(request(BEGIN, 1) + request(GET, 2, NAME + NO_MATCH + bytes(4)) + put_request(3, b"never"))
        assert [peer.answer()[3] for _ in range(3)] == [0, 0, 0]
        waiting = pool.submit(client.get, "ORDERS", wait_s=60)
        wait_until(gateway, lambda: bool(gateway.engine.queue("ORDERS").listeners))
        peer.close()
        again = waiting.result(STEP_S)
    assert (again.body, again.backout_count) == (b"one", 1)
    assert client.depth("ORDERS") == 0


def test_an_application_that_dies_while_it_waits_takes_nothing(gateway, client):
    peer = Peer(gateway.data_dir)
    peer.socket.sendall(request(GET, 1, NAME + NO_MATCH + b"\xff\xff\xff\xff"))
    wait_until(gateway, lambda: bool(gateway.engine.queue("ORDERS").listeners))
    peer.close()
    wait_until(gateway, lambda: not gateway.engine.queue("ORDERS").listeners)
    client.put("ORDERS", Message(MessageDescriptor(), b"one"))
    assert client.depth("ORDERS") == 1


def test_a_put_is_answered_after_its_commit(gateway, monkeypatch):
    commit, unanswered_at_commit = gateway.engine._store.commit, []

    def watched_commit() -> None:
        unanswered_at_commit.append(sum(each._unanswered for each in gateway.server.connections))
        commit()

    monkeypatch.setattr(gateway.engine._store, "commit", watched_commit)
    peer = Peer(gateway.data_dir)
    peer.socket.sendall(put_request(1, b"one"))
    assert peer.answer()[1:4] == (1, 0, 0)
    assert unanswered_at_commit == [1]
    peer.close()


def test_a_back_out_is_answered_after_the_commit_of_its_counts(gateway, client, monkeypatch):
    client.put("ORDERS", Message(MessageDescriptor(), b"one"))
    client.begin()
    client.get("ORDERS")
    commit, unanswered_at_commit = gateway.engine._store.commit, []

    def watched_commit() -> None:
        unanswered_at_commit.append(sum(each._unanswered for each in gateway.server.connections))
        commit()

    monkeypatch.setattr(gateway.engine._store, "commit", watched_commit)
    client.back_out()
    assert unanswered_at_commit == [1]


def test_a_clear_whose_alias_goes_meanwhile_is_answered(gateway, client, monkeypatch):
    monkeypatch.setattr("mq_adapters.embedded.queue_administration.CLEAR_MESSAGES", 1)
    for body in (b"one", b"two"):
        client.put("ORDERS", Message(MessageDescriptor(), body))
    assert client.mqsc("DEFINE QALIAS(WANTED) TARGET(ORDERS)").succeeded
    clear_some = Application.clear_some

    def clear_some_and_delete_the_alias(self: Application, queue_name: str, done: Callable[[int], None]) -> None:
        clear_some(self, queue_name, done)
        gateway.engine.objects.delete(gateway.engine.objects.find(ObjectType.QALIAS, "WANTED"))

    monkeypatch.setattr(Application, "clear_some", clear_some_and_delete_the_alias)
    with pytest.raises(QueueManagerError, match="2085"):
        client.clear("WANTED")
    assert client.depth("ORDERS") == 1


def test_two_applications_share_a_queue_and_each_message_is_got_once(gateway):
    def produce(name: str) -> None:
        with SocketClient(gateway.data_dir, application_name=name) as application:
            for number in range(100):
                application.put("ORDERS", Message(MessageDescriptor(persistence=0), f"{name} {number}".encode()))

    all_is_put = threading.Event()

    def consume() -> list[bytes]:
        got = []
        with SocketClient(gateway.data_dir) as application:
            while True:
                is_end = all_is_put.is_set()
                try:
                    got.append(application.get("ORDERS", wait_s=0.1).body)
                except QueueManagerError:
                    if is_end:
                        return got

    with ThreadPoolExecutor() as pool:
        consumers = [pool.submit(consume) for _ in range(2)]
        producers = [pool.submit(produce, name) for name in ("one", "two")]
        for producer in producers:
            producer.result(STEP_S)
        all_is_put.set()
        got = [consumer.result(STEP_S) for consumer in consumers]
    everything = sorted(got[0] + got[1])
    assert everything == sorted(f"{name} {number}".encode() for name in ("one", "two") for number in range(100))
    for consumed in got:
        of_one = [int(body.split()[1]) for body in consumed if body.startswith(b"one")]
        assert of_one == sorted(of_one)


def test_a_gateway_that_goes_away_is_2009_and_its_waiting_get_2162(gateway_class, data_folder):
    gateway = gateway_class(data_folder)
    gateway.call(lambda: gateway.engine.define("ORDERS"))
    with SocketClient(data_folder) as idle, SocketClient(data_folder) as waiter, ThreadPoolExecutor() as pool:
        waiting = pool.submit(waiter.get, "ORDERS", wait_s=60)
        wait_until(gateway, lambda: bool(gateway.engine.queue("ORDERS").listeners))
        gateway.stop()
        with pytest.raises(QueueManagerError, match="2162"):
            waiting.result(STEP_S)
        for _ in range(2):
            with pytest.raises(QueueManagerError, match="2009"):
                idle.depth("ORDERS")
    assert not (data_folder / SOCKET_NAME).exists()
    with pytest.raises(QueueManagerError, match="2059"):
        SocketClient(data_folder)


def test_a_unit_of_work_that_is_open_when_the_gateway_stops_counts_as_backed_out(gateway_class, data_folder):
    gateway = gateway_class(data_folder)
    gateway.call(lambda: gateway.engine.define("ORDERS"))
    with SocketClient(data_folder) as application:
        application.put("ORDERS", Message(MessageDescriptor(), b"one"))
        application.begin()
        application.get("ORDERS")
        gateway.stop()
    with Direct(data_folder) as queue_manager:
        assert queue_manager.get("ORDERS").backout_count == 1


def test_a_failed_store_ends_calls_with_2162(gateway, client):
    gateway.call(lambda: gateway.engine._fail(StoreError("write", "the disk is full", "make room")))
    with pytest.raises(QueueManagerError, match="2162"):
        client.put("ORDERS", Message(MessageDescriptor(), b"one"))
    with pytest.raises(QueueManagerError, match="2009"):
        client.depth("ORDERS")


def test_the_socket_is_its_owners_alone(gateway):
    assert stat.S_IMODE((gateway.data_dir / SOCKET_NAME).stat().st_mode) == 0o600


def test_the_socket_has_its_mode_before_it_has_its_name(data_folder, monkeypatch):
    data_folder.mkdir()
    seen = []
    replace = Path.replace

    def watched_replace(self, target):
        seen.append(stat.S_IMODE(self.stat().st_mode))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched_replace)
    listening_socket(data_folder).close()
    assert seen == [0o600]


def test_a_socket_file_that_a_killed_gateway_left_is_replaced(gateway_class, data_folder):
    data_folder.mkdir()
    listening_socket(data_folder).close()
    with pytest.raises(QueueManagerError, match="2059"):
        SocketClient(data_folder)
    gateway = gateway_class(data_folder)
    with SocketClient(data_folder) as client:
        assert client.name == "RFHBRIDGE"
    gateway.stop()


def test_a_long_data_path_works(gateway_class, tmp_path):
    long_folder = tmp_path / ("a" * 100) / ("b" * 100)
    gateway = gateway_class(long_folder)
    with SocketClient(long_folder) as client:
        client.define("ORDERS")
        client.put("ORDERS", Message(MessageDescriptor(), b"one"))
        assert client.depth("ORDERS") == 1
    gateway.stop()
    assert not (long_folder / SOCKET_NAME).exists()


def test_a_long_data_path_is_refused_in_words_where_there_is_no_proc(tmp_path, monkeypatch):
    monkeypatch.setattr("mq_adapters.embedded.socket.socket_file._OWN_DESCRIPTORS", tmp_path / "nothing")
    long_folder = tmp_path / ("a" * 100)
    long_folder.mkdir()
    with pytest.raises(StoreError, match="shorter data folder"):
        listening_socket(long_folder)
    with pytest.raises(QueueManagerError, match="2059"):
        SocketClient(long_folder)


def test_a_server_that_never_started_may_be_stopped(gateway):
    asyncio.run(Server(gateway.engine, gateway.data_dir).stop())
    assert (gateway.data_dir / SOCKET_NAME).exists()


# -- connect ---------------------------------------------------------------------------------------------------------


def test_connect_is_a_client_where_a_gateway_runs(gateway):
    with connect(gateway.data_dir) as queue_manager:
        assert isinstance(queue_manager, SocketClient)
        queue_manager.put("ORDERS", Message(MessageDescriptor(), b""))
        assert queue_manager.get("ORDERS").descriptor.put_appl_name == Path(sys.argv[0]).name[:28]


def test_connect_owns_the_store_where_no_gateway_runs(data_folder):
    with connect(str(data_folder), application_name="mine") as queue_manager:
        assert isinstance(queue_manager, Direct)
        assert [status.name for status in queue_manager.queues()][:1] == ["SYSTEM.BROKER.CONTROL.QUEUE"]


def test_connect_waits_for_the_socket_of_a_gateway_that_starts(gateway_class, data_folder, monkeypatch):
    owner = Direct(data_folder)
    started: list[object] = []

    def start_the_gateway() -> None:
        owner.close()
        started.append(gateway_class(data_folder))

    when_this_thread_sleeps(monkeypatch, start_the_gateway)
    with connect(data_folder) as queue_manager:
        assert isinstance(queue_manager, SocketClient)
    assert len(started) == 1
    started[0].stop()


def test_connect_gives_up_on_an_owner_that_opens_no_socket(data_folder, monkeypatch):
    monkeypatch.setattr("mq_adapters.STARTING_GATEWAY_WAIT_S", 0.0)
    with Direct(data_folder), pytest.raises(QueueManagerError, match="2042"):
        connect(data_folder)


def test_importing_the_package_loads_nothing_else():
    program = "import sys, typing; before = set(sys.modules); import mq_adapters; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["mq_adapters"]


def test_a_program_that_must_not_own_the_store_finds_no_gateway(tmp_path):
    with pytest.raises(QueueManagerError, match="2059"):
        connect(tmp_path, may_own=False)
    assert not (tmp_path / "queue_manager.sqlite").exists()


def test_a_program_that_must_not_own_the_store_is_a_client_of_the_gateway(gateway):
    with connect(gateway.data_dir, may_own=False) as queue_manager:
        queue_manager.define("READINGS")
        assert queue_manager.depth("READINGS") == 0

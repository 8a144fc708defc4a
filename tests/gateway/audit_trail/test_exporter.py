"""Each record is written exactly once, whatever dies in between, and nothing stops the ones behind it."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.audit_trail import exporter as exporter_module
from gateway.audit_trail.exporter import AUDIT_QUEUE, GATHER_S, Exporter, export_pending, run
from gateway.audit_trail.notes.notes import NoteKind, pack_batch
from gateway.audit_trail.records import Chain
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.termination import TerminationSignal
from gateway.audit_trail.trail_head import EMPTY_HEAD
from mq_adapters.embedded.direct import Direct
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from spark_audit.record.batch_line import is_of_batch, records_of
from spark_audit.record.expansion import Expander
from spark_audit.verify import Verdict, verify
from tests.gateway.audit_trail.conftest import NOTE_TAKER
from tests.trail_lines import trail_lines

AT = 1_795_158_000_000_000


class Power:
    """A queue manager whose commit of a get fails once: the moment between the written lines and that commit."""

    def __init__(self, queue_manager: Direct) -> None:
        self._queue_manager = queue_manager
        self.name = queue_manager.name
        self.incarnation = queue_manager.incarnation
        self.is_on = False
        self._has_taken = False

    def commit(self) -> None:
        if self._has_taken and not self.is_on:
            self._queue_manager.back_out()
            raise QueueManagerError(ReasonCode.MQRC_CONNECTION_BROKEN, "commit")
        self._queue_manager.commit()

    def begin(self) -> None:
        self._has_taken = False
        self._queue_manager.begin()

    def back_out(self) -> None:
        self._queue_manager.back_out()

    def put(self, queue_name: str, message: Message) -> bytes:
        return self._queue_manager.put(queue_name, message)

    def trail_head(self) -> str:
        return self._queue_manager.trail_head()

    def keep_trail_head(self, head: str) -> None:
        self._queue_manager.keep_trail_head(head)

    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> tuple[Message, ...]:
        self._has_taken = True
        return self._queue_manager.take_batch(queue_name, most_messages=most_messages, most_bytes=most_bytes)


def _session(client: str) -> tuple[object, ...]:
    return (NoteKind.SESSION, AT, client, 1, "opened", 4, True)


def _clients(store) -> list[object]:
    return [record["client"] for record in store.records()]


def test_what_waits_is_written_and_leaves_the_queue(store) -> None:
    store.commit(_session("a"), _session("b"))
    store.commit(_session("c"))
    assert export_pending(store.queue_manager, store.trail, close_segment=True) == 2
    assert _clients(store) == ["a", "b", "c"]
    assert store.queue_manager.depth(AUDIT_QUEUE) == 0
    assert {Path(name).suffix for name in store.names()} == {".jsonl"}  # two where an hour begins meanwhile
    assert verify(store.trail).verdict is Verdict.INTACT


def test_an_empty_queue_leaves_no_segment(store) -> None:
    assert export_pending(store.queue_manager, store.trail, close_segment=True) == 0
    assert store.names() == []


def test_the_gateway_of_a_record_is_the_store_that_its_message_came_from(store) -> None:
    store.commit(_session("a"))
    export_pending(store.queue_manager, store.trail, close_segment=True)
    assert store.records()[0]["gateway"] == store.gateway


def test_lines_whose_commit_was_lost_are_not_written_again(store) -> None:
    store.commit(_session("a"), _session("b"))
    power = Power(store.queue_manager)
    with pytest.raises(QueueManagerError):
        export_pending(power, store.trail, close_segment=True)
    assert _clients(store) == ["a", "b"]
    power.is_on = True
    store.commit(_session("c"))
    export_pending(power, store.trail, close_segment=True)
    assert _clients(store) == ["a", "b", "c"]
    assert verify(store.trail).verdict is Verdict.INTACT


@pytest.mark.parametrize("lost_bytes", [1, 40, 300])
def test_a_batch_cut_anywhere_is_completed_and_its_torn_bytes_are_kept(store, lost_bytes: int) -> None:
    store.commit(_session("a"))
    store.commit(_session("b"), _session("c"))
    power = Power(store.queue_manager)
    with pytest.raises(QueueManagerError):
        export_pending(power, store.trail, close_segment=True)
    (segment,) = store.trail.glob("*.open")
    whole = segment.read_bytes()
    os.truncate(segment, len(whole) - lost_bytes)
    power.is_on = True
    export_pending(power, store.trail, close_segment=True)
    assert b"".join(path.read_bytes() for path in sorted(store.trail.glob("*.jsonl"))) == whole
    (torn,) = store.trail.glob("*.torn")
    assert whole.find(torn.read_bytes()) > 0
    assert verify(store.trail).verdict is Verdict.INTACT


@pytest.mark.parametrize(("clients", "name_bytes"), [(60, 1_000), (1, 1)])
def test_a_unit_is_short_because_the_gateway_answers_nobody_else_while_it_is_taken(
    store, monkeypatch: pytest.MonkeyPatch, clients: int, name_bytes: int
) -> None:
    """Under an attack of large packets units of 4 MiB took 5 ms each of the gateway's event loop."""
    units: list[tuple[Message, ...]] = []
    take_batch = Direct.take_batch

    def noted(*arguments: object, **limits: int) -> tuple[Message, ...]:
        units.append(take_batch(*arguments, **limits))  # type: ignore[arg-type]  # passed on as they came
        return units[-1]

    monkeypatch.setattr(Direct, "take_batch", noted)
    for _ in range(100):
        store.commit(*(_session("c" * name_bytes) for _ in range(clients)))
    assert export_pending(store.queue_manager, store.trail, close_segment=True) == 100
    assert max(map(len, units)) <= 64
    assert max(sum(len(message.body) for message in unit) for unit in units) <= 512 * 1024
    assert len(units) <= 30, "nor are they so short that each sync of the trail has little to write"


@pytest.mark.parametrize("has_head", [True, False], ids=["the store knows its trail", "it does not"])
@pytest.mark.parametrize("written", [1, 2, 3])
def test_a_batch_that_an_earlier_version_began_is_completed(store, written: int, has_head: bool) -> None:
    """It wrote a line for each record, and was killed before the batch left the queue."""
    store.commit(_session("a"), _session("b"), _session("c"))
    store.commit(_session("d"))
    lines = Chain(sequence=0, head="0" * 64).seal(
        Expander(store.gateway).expand(pack_batch(1, [_session("a"), _session("b"), _session("c")]))[1]
    )
    store.trail.mkdir()
    whole = lines.splitlines(keepends=True)[:written]
    (store.trail / "000000000001-20261120T07.open").write_bytes(b"".join(whole))
    if has_head:
        store.queue_manager.begin()
        store.queue_manager.keep_trail_head(EMPTY_HEAD.to_text())
        store.queue_manager.commit()
    export_pending(store.queue_manager, store.trail, close_segment=True)
    assert _clients(store) == ["a", "b", "c", "d"]
    assert len(list(store.trail.glob("*.torn"))) == has_head, "what the store does not know is written anew"
    assert verify(store.trail).verdict is Verdict.INTACT


def test_a_batch_that_no_reader_can_expand_stops_no_exporter(store) -> None:
    """Only a fault of the gateway makes one. It comes again after a crash, and the batches behind it go on."""
    store.commit((NoteKind.ACCEPTED, AT, "c", 1, 1, b"", 0, b""))
    power = Power(store.queue_manager)
    with pytest.raises(QueueManagerError):
        export_pending(power, store.trail, close_segment=False)
    power.is_on = True
    store.commit(_session("b"))
    export_pending(power, store.trail, close_segment=True)
    assert [records_of(line) is None for line in trail_lines(store.trail)] == [True, False]
    assert store.queue_manager.depth(AUDIT_QUEUE) == 0


def test_a_batch_beyond_the_bounds_of_a_line_has_a_line_for_each_record(store, monkeypatch) -> None:
    monkeypatch.setattr("gateway.audit_trail.records.MOST_RECORDS", 2)
    store.commit(_session("a"), _session("b"))
    store.commit(_session("c"), _session("d"), _session("e"))
    export_pending(store.queue_manager, store.trail, close_segment=True)
    assert _clients(store) == ["a", "b", "c", "d", "e"]
    assert [is_of_batch(line) for line in trail_lines(store.trail)] == [True, False, False, False]
    assert verify(store.trail).verdict is Verdict.INTACT


def test_a_batch_that_came_again_later_in_one_life_is_skipped(store) -> None:
    store.commit(_session("a"))
    power = Power(store.queue_manager)
    with Trail.open(store.trail) as trail:
        exporter = Exporter(power, trail)
        with pytest.raises(QueueManagerError):
            exporter.step()
        power.is_on = True
        assert exporter.drain() == 1
    assert _clients(store) == ["a"]


def test_what_is_no_batch_goes_to_the_dead_letter_queue_whole(store) -> None:
    store.put(b"no batch")
    store.commit(_session("a"))
    export_pending(store.queue_manager, store.trail, close_segment=True)
    assert _clients(store) == ["a"]
    dead = store.queue_manager.get("SYSTEM.DEAD.LETTER.QUEUE")
    assert dead.descriptor.format == b"MQDEAD  "
    assert dead.body[:12] == b"DLH \x01\x00\x00\x00" + (2110).to_bytes(4, "little")
    assert dead.body[12:60].rstrip() == b"SYSTEM.RFHBRIDGE.AUDIT"
    assert dead.body[172:] == b"no batch"


def test_what_is_no_batch_is_held_where_the_dead_letter_queue_takes_nothing(store) -> None:
    assert store.queue_manager.mqsc("ALTER QLOCAL(SYSTEM.DEAD.LETTER.QUEUE) PUT(DISABLED)").succeeded
    store.put(b"no batch")
    store.commit(_session("a"))
    export_pending(store.queue_manager, store.trail, close_segment=True)
    assert _clients(store) == ["a"]
    assert store.queue_manager.get("SYSTEM.RFHBRIDGE.HELD").body[172:] == b"no batch"


def test_a_group_whose_notes_were_divided_is_exported_whole_and_in_order(store, monkeypatch) -> None:
    monkeypatch.setattr("mq_adapters.embedded.engine.AUDIT_MESSAGE_BYTES", 200)
    engine = store.queue_manager._engine
    engine.seal_notes = pack_batch
    clients = [f"client-{number:02}" for number in range(20)]
    unit = engine.begin()
    unit.notes += [_session(client) for client in clients]
    unit.notes_are_due = True
    engine.submit(unit)
    batches = store.queue_manager.depth(AUDIT_QUEUE)
    assert batches > 1
    assert export_pending(store.queue_manager, store.trail, close_segment=True) == batches
    assert _clients(store) == clients
    assert list(dict.fromkeys(record["batch"] for record in store.records())) == list(range(1, batches + 1))
    assert verify(store.trail).verdict is Verdict.INTACT


def test_another_store_continues_the_chain_with_its_own_numbers(store, tmp_path: Path) -> None:
    store.commit(_session("a"))
    export_pending(store.queue_manager, store.trail, close_segment=True)
    with Direct(tmp_path / "other", rights=NOTE_TAKER) as other:
        type(store)(other, store.trail).commit(_session("b"))
        export_pending(other, store.trail, close_segment=True)
    store.commit(_session("c"))
    export_pending(store.queue_manager, store.trail, close_segment=True)
    assert [(record["client"], record["sequence"], record["batch"]) for record in store.records()] == [
        ("a", 1, 1),
        ("b", 1, 1),
        ("c", 2, 2),
    ]
    assert verify(store.trail).verdict is Verdict.INTACT


def test_two_exporters_do_not_write_one_trail(store) -> None:
    with Trail.open(store.trail), pytest.raises(StoreError, match="another process writes it"):
        export_pending(store.queue_manager, store.trail, close_segment=True)


class Stop:
    """Asks for the end at the n-th look; commits another batch before that, as a draining gateway does."""

    def __init__(self, store, looks: int) -> None:
        self._store = store
        self._looks = looks

    def wait(self, seconds: float) -> bool:
        self._looks -= 1
        if self._looks == 0:
            self._store.commit(_session("last"))
        return self._looks < 0


def test_told_to_stop_it_writes_what_waits_and_closes_the_segment(store) -> None:
    store.commit(_session("first"))
    with Trail.open(store.trail) as trail:
        run(store.queue_manager, trail, Stop(store, 4))
    assert _clients(store) == ["first", "last"]
    assert {Path(name).suffix for name in store.names()} == {".jsonl"}  # two where an hour begins meanwhile


class Pauses(Stop):
    """Keeps how long the exporter wanted to wait."""

    def __init__(self, store, looks: int) -> None:
        super().__init__(store, looks)
        self.asked_s: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.asked_s.append(seconds)
        return super().wait(seconds)


@pytest.mark.parametrize(
    ("bound", "value", "pauses"),
    [("UNIT_BATCHES", 64, True), ("UNIT_BATCHES", 4, False), ("UNIT_BATCHES", 5, True), ("UNIT_BYTES", 100, False)],
)
def test_after_a_unit_of_few_batches_more_gather(
    store, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, pauses: bool
) -> None:
    monkeypatch.setattr(exporter_module, bound, value)
    for client in ("a", "b"):
        store.commit(_session(client))
    stop = Pauses(store, 4)
    with Trail.open(store.trail) as trail:
        run(store.queue_manager, trail, stop)
    assert (stop.asked_s[1] == GATHER_S) is pauses
    assert _clients(store) == ["a", "b", "last"]


def test_sigterm_ends_the_wait_at_once_and_sigint_is_ignored() -> None:
    terminate, interrupt = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    stop = TerminationSignal()
    try:
        assert not stop.wait(0)
        os.kill(os.getpid(), signal.SIGINT)
        assert not stop.wait(0)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(60)
    finally:
        signal.signal(signal.SIGTERM, terminate)
        signal.signal(signal.SIGINT, interrupt)
        stop.close()


def test_exporter_that_gives_up_says_why_in_the_log_of_its_gateway(tmp_path: Path) -> None:
    """The process that started it has gone before it could connect."""
    here, there = socket.socketpair()
    here.close()
    with there:
        number = there.fileno()
        command = [
            sys.executable,
            "-m",
            "gateway.audit_trail.exporter",
            "--data",
            str(tmp_path),
            "--log-format",
            "json",
        ]
        ended = subprocess.run(
            [*command, "--socket", str(number)],
            pass_fds=(number,),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    (line,) = map(json.loads, ended.stderr.splitlines())
    assert (line["level"], line["module"]) == ("error", "gateway.audit_trail.exporter")
    assert (line["event"], "2059 MQRC_Q_MGR_NOT_AVAILABLE" in line["reason"]) == ("exporter gave up", True)


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="the system shares no cores among sessions")
@pytest.mark.parametrize("has_own_session", [True, False])
def test_exporter_steps_back_with_its_own_session_and_never_with_that_of_others(
    tmp_path: Path, has_own_session: bool
) -> None:
    """Linux shares the cores among sessions first: there the niceness of a process alone means nothing."""
    here, there = socket.socketpair()
    with here, there:
        number = str(there.fileno())
        command = [sys.executable, "-m", "gateway.audit_trail.exporter", "--data", str(tmp_path), "--socket", number]
        process = subprocess.Popen(command, pass_fds=(there.fileno(),), start_new_session=has_own_session)
        try:
            assert here.recv(1)  # its first request, which comes after it has stepped back
            niceness = os.getpriority(os.PRIO_PROCESS, process.pid) - os.getpriority(os.PRIO_PROCESS, 0)
            group = Path(f"/proc/{process.pid}/autogroup").read_text()
        finally:
            process.kill()
            process.wait()
    assert niceness == min(10, 19 - os.getpriority(os.PRIO_PROCESS, 0))
    assert group.endswith(" nice 10\n") if has_own_session else group == Path("/proc/self/autogroup").read_text()


def test_exporter_loads_no_settings_no_store_and_no_readers_of_headers() -> None:
    """One starts with each gateway: what it does not need would be most of its start and of its memory."""
    program = (
        "import sys, gateway.audit_trail.exporter\n"
        "heavy = ('pydantic', 'gateway.config.settings', 'apsw', 'mq_adapters.embedded.engine', 'lxml', 'asyncio',\n"
        "  'importlib.metadata', 'mappings.table', 'mappings.topics.pattern_index', 'mq_adapters.transmission')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert loaded.stdout == "[]\n"

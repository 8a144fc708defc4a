"""The benchmarks run, count right, and fail loudly when a server does not answer as it must; no speed is asserted."""

import json
import os
import platform
import re
import subprocess
import sys
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from benchmarks import (
    attacks,
    channel,
    channel_ibm_mq,
    fan_out,
    growth,
    headers,
    idle,
    publishes,
    qos1_offline,
    rates,
    retained,
    sessions,
    sizes,
    subscriptions,
    ways,
)
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.disk_pauses import DiskPauses
from benchmarks.figures import Measure, Row, ratio_notes
from benchmarks.machine import built_with
from benchmarks.servers import KEPT_BEFORE_PUBACK, Gateway, cpu_s, resident_mib
from gateway.bridge.commands.requests import OwnCommands
from gateway.mqtt.wire import encode_text
from mappings.table import Dialect
from mq_adapters.command_header import WrittenCommand
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind
from tests.benchmarks.load_generator import needs_generator
from tests.ibm_mq_stand_in.process import BINDINGS, VARIABLE, Binding, needs_stand_in
from tests.processes.forked import Forked

ROOT = Path(__file__).resolve().parents[2]
START_OF_A_GATEWAY = ["-m", "gateway.cli", "run"]
needs_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads CPU time and memory from /proc")


@pytest.fixture
def forked_gateways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways of benchmarks start without their second of imports."""
    fresh = subprocess.Popen

    def begin(command: list[str], **how: Any) -> "Forked | subprocess.Popen[Any]":
        _, *words = command
        if words[:3] != START_OF_A_GATEWAY:
            return fresh(command, **how)
        return Forked(*words[1:], stdout=how["stdout"], stderr=how["stdout"])

    monkeypatch.setattr("benchmarks.servers.subprocess.Popen", begin)


def test_help_names_every_benchmark_and_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_of:
        main(["--help"])
    text = capsys.readouterr().out
    assert exit_of.value.code == 0
    assert all(name in text for name in BENCHMARKS)
    assert "example: python -m benchmarks" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["qos1"], "qos1"),
        (["--seconds", "0"], "0 is not a time in seconds above 0"),
        (["--seconds", "soon"], "soon is not a time in seconds above 0"),
        (["--records", "0"], "0 is not a number of records above 0"),
        (["--records", "many"], "many is not a number of records above 0"),
        (["--json", "nowhere/figures.json"], "nowhere/figures.json is no file that can be written"),
        (["--json", "/"], "/ is no file that can be written"),
    ],
)
def test_a_wrong_argument_exits_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_of:
        main(arguments)
    assert exit_of.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "error:" in last
    assert said in last


def test_figures_are_printed_and_written_with_the_machine(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--seconds", "0.05", "--json", str(tmp_path / "figures.json")]
    printed = subprocess.run([*command, headers.NAME], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert re.fullmatch(r"([0-9a-f]{8,}( with changes)?|unknown)", figures["machine"]["commit"])
    assert figures["machine"]["cores"] == len(os.sched_getaffinity(0))
    (report,) = figures["reports"]
    assert [row["subject"] for row in report["rows"]][:2] == ["rfhbridge, MQRFH2", "rfhbridge, MQRFH"]
    assert all(measure["value"] > 0 for row in report["rows"] for measure in row["measures"])
    assert "read_command" in printed
    assert f"CPython {platform.python_version()} ({platform.python_compiler()}, " in printed


@pytest.mark.parametrize(
    ("arguments", "built"),
    [
        ("", "GCC 12.2.0, no PGO, no LTO"),
        ("'--prefix=/opt/python' '--enable-shared'", "GCC 12.2.0, no PGO, no LTO"),
        ("'--enable-optimizations' '--with-lto'", "GCC 12.2.0, PGO, LTO"),
        ("'--enable-optimizations' '--with-lto=no'", "GCC 12.2.0, PGO, no LTO"),
        ("'--with-lto=thin'", "GCC 12.2.0, no PGO, LTO"),
    ],
)
def test_a_figure_names_how_its_interpreter_was_built(arguments: str, built: str) -> None:
    assert built_with("GCC 12.2.0", arguments) == built


@pytest.mark.parametrize("dialect", Dialect)
def test_the_gateway_writes_a_new_topic_by_the_call_that_is_measured(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figure of `headers` is of what a PUBLISH calls, and of a call that it makes once for each new topic."""
    measured, written = OwnCommands.write_publish, list[str]()

    def noted(commands: OwnCommands, topic: str, **given: Any) -> WrittenCommand:
        written.append(topic)
        return measured(commands, topic, **given)

    monkeypatch.setattr(OwnCommands, "write_publish", noted)
    with ways.opened_world(dialect) as world:
        link = world.connect("sensor", level=4)
        for topic in ("plant/1", "plant/2", "plant/1"):
            body = encode_text(topic) + b"\x00\x01payload"
            world.carry_out(link, bytes((0x32, len(body))) + body)
    assert written == ["plant/1", "plant/2"]
    written.clear()
    headers.measure(dialect, 0.01)
    assert len(written) > len(headers.TOPICS)  # each topic once for the headers that are read; the others were measured


def test_each_packet_of_a_way_is_carried_out_and_answered() -> None:
    """The gateway takes several turns for a long read, and sends what is retained only where something is."""
    rows = {row.case: {each.name: each.value for each in row.measures} for row in ways.measure(Dialect.MQRFH2, 0.001)}
    calls = [row["Python calls"] for row in rows.values()]
    assert calls == sorted(calls), list(rows)
    assert calls[-1] > 1.5 * calls[-2], "two retained messages more"
    assert min(row["CPU"] for row in rows.values()) > 5


def test_every_benchmark_stands_in_the_readme() -> None:
    table = (ROOT / "benchmarks" / "README.md").read_text()
    assert [name for name in BENCHMARKS if f"| `{name}` |" not in table] == []


def test_ratios_compare_the_first_subject_of_a_case_with_the_others() -> None:
    rows = tuple(
        Row(subject=subject, measures=(Measure(name="rate", value=rate, unit="messages/s"),))
        for subject, rate in (("ours", 30.0), ("theirs", 20.0))
    )
    assert list(ratio_notes(rows, "rate")) == ["ours has 1.50 times the rate of theirs."]


@needs_linux
def test_cpu_time_and_memory_of_a_process_are_read() -> None:
    assert cpu_s(os.getpid()) > 0
    assert 1 < resident_mib(os.getpid()) < 10_000


@needs_generator
def test_everything_that_the_gateway_acknowledges_is_on_the_queue() -> None:
    row, note = qos1_offline.measure_gateway(0.2)
    assert row.value("rate") > 0
    assert "all are there" in note


@needs_generator
@pytest.mark.usefixtures("forked_gateways")
@pytest.mark.parametrize(
    ("listener", "transport"), [("", "TCP"), ("tls", "TLS"), ("secure-websocket", "secure WebSocket")]
)
def test_idle_connections_are_measured_over_each_transport(listener: str, transport: str) -> None:
    row = idle.measure_gateway(listener, connections=20, active=5, seconds=0.1)
    assert row.case == transport
    assert row.value("rate") > 0


@needs_generator
@pytest.mark.usefixtures("forked_gateways")
def test_each_rate_and_each_size_is_measured_for_itself() -> None:
    with Gateway() as gateway:
        of_rate = rates.measure(gateway, 500, 0.2)
    with Gateway() as gateway:
        of_size = sizes.measure(gateway, 4_096, 0.2)
    assert (of_rate.case, of_size.case) == ("500/s", "4,096 B")
    assert of_size.value("payload") == pytest.approx(of_size.value("rate") / 256)
    assert of_rate.durable == of_size.durable == KEPT_BEFORE_PUBACK


@needs_generator
@pytest.mark.usefixtures("forked_gateways")
def test_every_retained_message_is_waited_for() -> None:
    with Gateway() as gateway:
        rows = list(retained.measure(gateway, 250))
    assert [row.case for row in rows] == ["QoS 0", "QoS 1", "QoS 1, a session that stays"]
    assert all(0 < row.value("SUBACK") < 250 / row.value("rate") * 1e3 for row in rows)


@needs_generator
@pytest.mark.usefixtures("forked_gateways")
def test_a_fan_out_counts_the_copies_of_all_subscribers() -> None:
    with Gateway() as gateway:
        row = fan_out.measure(gateway, 1, 0.1)
    assert row.case == "QoS 1"
    assert 0 < row.value("CPU") < 1e3
    assert row.value("way p50") > 0


@needs_generator
@pytest.mark.usefixtures("forked_gateways")
@pytest.mark.parametrize(("case", "copies"), [("a new topic each", 1), ("10 copies each", 10)])
def test_a_publish_that_costs_more_is_kept_for_each_subscriber(case: str, copies: int) -> None:
    with Gateway() as gateway:
        row = publishes.measure(gateway, case, 0.02)
        gateway.stop()
        with closing(Engine.open(gateway.data)) as engine:
            kept = engine.queue("RFHBRIDGE.SUBSCRIBER")
            lanes = [len(lane) for lane in kept.lanes.values()]
    assert row.value("rate") > 0
    assert len(lanes) == copies
    assert len({*lanes}) == 1, "each subscriber has the same messages"


@needs_linux
@pytest.mark.usefixtures("forked_gateways")
def test_every_session_that_is_made_stays() -> None:
    with Gateway() as gateway:
        row = sessions.measure(gateway, 10)
        gateway.stop()
        with closing(Engine.open(gateway.data)) as engine:
            clients = engine.states(StateKind.SESSION)
    assert row.value("time") > 0
    assert len(clients) == sessions.FIRST + 10


@needs_generator
@pytest.mark.usefixtures("forked_gateways")
def test_growth_is_measured_step_by_step_and_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in {"SESSIONS": 10, "TOPICS": 30, "RETAINED": 40}.items():
        monkeypatch.setattr(growth, name, number)
    with Gateway(growth.CONFIGURATION) as gateway:
        rows = [*growth.measure(gateway, 0.05, 1), growth.restarted(gateway, 0.05)]
        gateway.stop()
        with closing(Engine.open(gateway.data)) as engine:
            numbers = [len(engine.states(kind)) for kind in (StateKind.SESSION, StateKind.BROKER_RETAINED)]
    assert [row.case for row in rows][-2:] == ["40 retained messages", "after a restart"]
    assert numbers == [11, 40]
    assert rows[-1].value("start") > 0


@needs_linux
def test_the_memory_that_openssl_takes_is_measured_beside_them() -> None:
    assert 5 < idle.measure_openssl(connections=100).value("each") < 50


@needs_generator
@pytest.mark.usefixtures("forked_gateways")
@pytest.mark.parametrize("attack", ["handshakes", "exploding_matcher", "levels", "retained_copies", "login_siege"])
def test_an_attack_goes_on_while_others_are_measured(attack: str) -> None:
    row = attacks.measure(attack, 0.1, 3)
    assert row.case == f"{attack}, run 3"
    assert row.value("PUBACK p50") > 0
    aim_ms = 2 * row.value("normal p99") + 2
    assert row.value("p99 beyond the aim") == pytest.approx(max(0, row.value("PUBACK p99") - aim_ms))
    assert row.value("longest disk pause") > 0
    assert row.value("waited for a core") >= 0


@needs_generator
@pytest.mark.usefixtures("forked_gateways")
def test_an_attack_is_measured_with_the_data_in_memory_too() -> None:
    row = attacks.measure("noise", 0.1, 1, attacks.MEMORY)
    assert row.subject == "rfhbridge, data in memory"
    assert row.value("PUBACK p50") > 0


def test_the_longest_pause_of_the_disk_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seconds = chain((0.0, 0.001, 1.0, 1.008, 2.0, 2.002), repeat(3.0))
    monkeypatch.setattr("benchmarks.disk_pauses._INTERVAL_S", 0.0)
    monkeypatch.setattr("benchmarks.disk_pauses.perf_counter", lambda: next(seconds))
    with DiskPauses(tmp_path) as disk:
        while disk.longest_ms < 5:
            continue
    assert disk.longest_ms == pytest.approx(8)


@needs_linux
def test_a_broker_is_measured_with_some_subscriptions() -> None:
    row = subscriptions.measure(100, 0.02)
    assert min(measure.value for measure in row.measures if measure.unit.endswith("/s")) > 0


@needs_linux
def test_a_channel_is_measured_by_what_arrived() -> None:
    batches, one_by_one = channel.measure_channel(100, 0.1), channel.measure_one_by_one(0.1)
    assert (batches.case, one_by_one.subject) == ("batches of 100", "one by one")
    assert batches.value("delivered") > 0
    assert one_by_one.value("delivered") > 0


@needs_stand_in
@pytest.mark.parametrize("binding", BINDINGS)
def test_a_channel_over_ibms_packages_is_measured_by_what_arrived(
    binding: Binding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "nowhere")  # the benchmark says where; here it is forgotten again
    batches = channel_ibm_mq.measure_channel(binding, 100, 0.1)
    one_by_one = channel_ibm_mq.measure_one_by_one(binding, 0.1)
    assert (batches.subject, batches.case, one_by_one.case) == (binding, "batches of 100", "one by one")
    assert min(batches.value("delivered"), one_by_one.value("delivered")) > 0

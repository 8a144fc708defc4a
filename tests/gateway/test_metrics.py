"""What the metrics read: channels, targets and the lag of the trail, of a gateway that is not a process."""

import importlib.metadata
import math
import platform
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from gateway.access.login import Login
from gateway.access.refused_logins import LoginRefusal
from gateway.audit_trail.notes.notes import BrokerNotes
from gateway.channels.channel_commands import ChannelCommands
from gateway.channels.protocol import ProcessSettings
from gateway.channels.supervisor import TargetProcess
from gateway.channels.target import Target
from gateway.config import Settings, TargetSettings
from gateway.config.limits import Limit
from gateway.conversion.service import ConversionService, Outcome
from gateway.listener.listeners import Listeners
from gateway.metrics import GatewayCollector, MetricsPage
from gateway.mqtt.reason_codes import ReasonCode
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.broker.broker import Broker
from mq_adapters.embedded.store.checkpoint import PAGE_BYTES
from mq_adapters.message import Message, MessageDescriptor
from spark_audit.trail.witness_note import SIGNING_TOKEN, WitnessNote, countersignature_note_path, note_path
from tests.end_to_end.clients.certificates import make_certificates
from tests.gateway.bridge.conftest import REPLY_QUEUE, SUBSCRIBER_QUEUE, World

SECOND_US = 1_000_000
SETTINGS = Settings.model_validate({"subscribe": {"queue": SUBSCRIBER_QUEUE}})


@pytest.fixture
def world(data_folder: Path) -> Iterator[World]:
    made = World(data_folder, targets=(TargetSettings(name="PLANT"),))
    yield made
    made.close()


def _no_settings(_target: Target) -> ProcessSettings:
    raise AssertionError("no process is to be started")


def _values(
    world: World,
    login: Login | None = None,
    settings: Settings = SETTINGS,
    conversion: ConversionService | None = None,
) -> dict[str, float]:
    """What a scrape of a gateway without listeners says, by the line as it is written."""
    broker = Broker(world.engine, listener=BrokerNotes(lambda: world.now_us))
    collector = GatewayCollector(
        world.engine,
        world.bridge,
        broker,
        Listeners(world.bridge, settings),
        login=login or Login(),
        settings=settings,
        targets=world.targets.values(),
        conversion=conversion,
    )
    text = MetricsPage(collector).page("")[0].decode()
    return {
        " ".join((sample.name.removeprefix("rfhbridge_"), *sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_channels_and_targets_say_how_they_are(world: World, tmp_path: Path) -> None:
    values = _values(world)
    assert not any(name.startswith("channel_state") for name in values)
    assert (values["target_connected PLANT"], values["target_full PLANT"]) == (0, 0)
    assert values["store_behind PLANT"] == 0
    process = TargetProcess(world.targets["PLANT"], _no_settings, folder=tmp_path, command=())
    subscriber_queue, reply_queue = world.engine.queue(SUBSCRIBER_QUEUE), world.engine.queue(REPLY_QUEUE)
    world.engine.objects.channels = ChannelCommands(
        [process], subscriber_queue=subscriber_queue, reply_queue=reply_queue
    )
    outbound, subscriber, replies = process.names
    process.statuses = {outbound: {"state": "running"}, subscriber: {"state": "in doubt"}}
    world.targets["PLANT"].is_connected = True
    values = _values(world)
    assert {name: value for name, value in values.items() if name.startswith("channel_state") and value} == {
        f"channel_state {outbound} running": 1,
        f"channel_state {subscriber} in doubt": 1,
        f"channel_state {replies} starting": 1,
    }
    assert values["target_connected PLANT"] == 1


def test_the_trail_lags_by_the_age_of_its_oldest_batch(world: World) -> None:
    values = _values(world)
    waiting = values["audit_waiting_batches"]
    world.connect("self", flags="00")
    world.now_us += 90 * SECOND_US
    values = _values(world)
    assert values["audit_waiting_batches"] > waiting
    assert values["audit_lag_seconds"] == 90


def test_the_age_of_what_a_witness_has_rises_until_it_has_more(world: World, tmp_path: Path) -> None:
    rows = [{"name": name, "type": "git", "remote": "ssh://localhost/x"} for name in ("office", "bank")]
    settings = Settings.model_validate({"data": str(tmp_path), "audit": {"witness": rows}})
    note = WitnessNote(name="office", kind="git", number=3, digest_at_us=world.now_us - 60 * SECOND_US)
    path = note_path(tmp_path / "trail", "office")
    path.parent.mkdir()
    path.write_bytes(note.to_bytes())
    values = _values(world, settings=settings)
    assert (values["audit_witness_age_seconds office"], values["audit_witness_age_seconds bank"]) == (60, math.inf)
    world.now_us += 30 * SECOND_US
    assert _values(world, settings=settings)["audit_witness_age_seconds office"] == 90
    assert not any(name.startswith("audit_witness_age_seconds") for name in _values(world))


def test_the_age_of_the_last_countersignature_of_a_token_rises_until_there_is_another(
    world: World, tmp_path: Path
) -> None:
    token = {"type": "ssh-agent", "public_key": "d" * 64, "socket": "/nowhere"}
    settings = Settings.model_validate({"data": str(tmp_path), "audit": {"signing_token": token}})
    name = "audit_countersignature_age_seconds"
    assert _values(world, settings=settings)[name] == math.inf, "there is none"
    note = WitnessNote(name=SIGNING_TOKEN, kind=SIGNING_TOKEN, number=3, digest_at_us=world.now_us - 60 * SECOND_US)
    countersignature_note_path(tmp_path / "trail").write_bytes(note.to_bytes())
    assert _values(world, settings=settings)[name] == 60
    world.now_us += 30 * SECOND_US
    assert _values(world, settings=settings)[name] == 90
    assert _values(world)[name] == 0, "the key is in a file"


def test_what_limits_refuse_and_what_is_not_carried_on_stands_by_its_reason(world: World) -> None:
    assert _values(world)["refusals_total sessions quota_exceeded"] == 0
    world.refusals.add(Limit.SESSIONS, ReasonCode.QUOTA_EXCEEDED, 3)
    world.bridge.counts.add("a reason", 2)
    values = _values(world)
    assert values["refusals_total sessions quota_exceeded"] == 3
    assert values["not_carried_on_total a reason"] == 2
    assert values["publishers_held_back"] == values["store_failed"] == 0


def test_budgets_show_what_all_clients_together_have(world: World) -> None:
    link = world.connect("self", flags="00")
    world.receive(link, "82 0C 0001 0001 'a' 01 0003 'b/c' 01")
    values = _values(world)
    assert (values["budget_used sessions"], values["budget_used subscriptions"]) == (1, 2)
    assert values["budget_accounts"] == 4, "the client, its address and its two networks"
    assert values["slow_reads_total client"] == 0


def test_the_log_of_the_store_and_its_check_points_are_shown(world: World) -> None:
    values = _values(world)
    assert values["wal_bytes"] >= PAGE_BYTES
    assert values["wal_too_long"] == values["checkpoints_total held"] == 0
    world.engine._store._checkpoint.failed(OSError("a disk"))
    assert _values(world)["checkpoints_total failed"] == 1


def test_refused_logins_are_counted_by_reason_and_stand_there_before_the_first(world: World) -> None:
    login = Login()
    assert {name: value for name, value in _values(world, login).items() if name.startswith("logins")} == {
        "logins_refused_total wrong_credentials": 0,
        "logins_refused_total not_allowed": 0,
        "logins_refused_total wrong_identifier": 0,
        "logins_refused_total busy": 0,
        "logins_waiting": 0,
    }
    login.refused.totals[LoginRefusal.BUSY] += 3
    assert _values(world, login)["logins_refused_total busy"] == 3


def test_the_oldest_message_of_a_queue_has_an_age(world: World) -> None:
    queue = world.engine.ensure("ORDERS", "orders")
    for _ in range(2):
        unit = world.engine.begin()
        world.engine.put(unit, queue, Message(MessageDescriptor(), b"x"))
        world.engine.submit(unit)
        world.run()
        world.now_us += 30 * SECOND_US
    values = _values(world)
    assert (values["queue_oldest_seconds ORDERS"], values[f"queue_oldest_seconds {SUBSCRIBER_QUEUE}"]) == (60, 0)


def test_the_age_of_the_oldest_message_reads_no_body_and_asks_for_no_priority(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"MSGDLVSQ": "PRIORITY"}
    world.engine.objects.define(Definition(object_type=ObjectType.QLOCAL, name="ORDERS", said=said))
    queue = world.engine.queue("ORDERS")
    for priority in (0, 9):
        unit = world.engine.begin()
        world.engine.put(unit, queue, Message(MessageDescriptor(priority=priority), b"x"))
        world.engine.submit(unit)
        world.run()
        world.now_us += 30 * SECOND_US
    monkeypatch.setattr(type(world.engine), "browse", None)
    assert _values(world)["queue_oldest_seconds ORDERS"] == 60


def test_what_channels_moved_is_counted_and_a_batch_in_doubt_is_told(world: World, tmp_path: Path) -> None:
    process = TargetProcess(world.targets["PLANT"], _no_settings, folder=tmp_path, command=())
    queues = {"subscriber_queue": world.engine.queue(SUBSCRIBER_QUEUE), "reply_queue": world.engine.queue(REPLY_QUEUE)}
    world.engine.objects.channels = ChannelCommands([process], **queues)
    outbound, subscriber, _ = process.names
    counts = {"messages": 12, "message_bytes": 3_400, "dead_letters": 2, "dropped": 1}
    doubtful = {"batch": 7, "messages": [41, 42]}
    process.statuses = {outbound: {"state": "in doubt", "in_doubt": doubtful, **counts}}
    values = _values(world)
    names = ("channel_messages_total", "channel_bytes_total", "channel_dead_letters_total", "channel_repeated_total")
    assert [values[f"{name} {outbound}"] for name in names] == [12, 3_400, 2, 1]
    assert [values[f"{name} {subscriber}"] for name in names] == [0] * 4
    assert (values[f"channel_in_doubt {outbound}"], values[f"channel_in_doubt {subscriber}"]) == (1, 0)


def test_certificates_tell_their_end(world: World, tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    tls = {"certificate": str(made.certificate), "key": str(made.key)}
    settings = Settings.model_validate({"listener": [{"name": "secure", "listen": "127.0.0.1:0", "tls": tls}]})
    (end,) = [value for name, value in _values(world, settings=settings).items() if name.startswith("certificate_")]
    assert end == x509.load_pem_x509_certificate(made.certificate.read_bytes()).not_valid_after_utc.timestamp()
    assert not any(name.startswith("certificate_") for name in _values(world))


def test_the_conversion_service_tells_what_became_of_messages(world: World) -> None:
    conversion = cast(ConversionService, SimpleNamespace(counts=lambda: {("IN", "mqrfh2"): {Outcome.REFUSED: 3}}))
    assert _values(world, conversion=conversion)["conversions_total mqrfh2 refused IN"] == 3


def test_the_build_is_told(world: World) -> None:
    said = "false", platform.python_version(), importlib.metadata.version("rfhbridge")
    assert _values(world)[" ".join(("build_info", *said))] == 1

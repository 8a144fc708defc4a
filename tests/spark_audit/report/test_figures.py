"""The sums of a report: counted from a trail written line by line, with what a hostile or damaged one may hold."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from spark_audit.engines.engine import VIOLATION, Engine
from spark_audit.record import Kind
from spark_audit.report import figures
from spark_audit.report.evidence import with_evidence
from spark_audit.report.exceptions import COLUMNS, write_exceptions
from spark_audit.report.latency import latencies
from spark_audit.result import Count, DroppedField, Latency, PersonalData, Violation, Volume
from tests.spark_audit.conftest import GATEWAY, SEGMENT, Facts, TrailBuilder
from tests.spark_audit.report.conftest import control

SECOND_US = 1_000_000
#: A full minute of 2026-11-20.
NOON_US = 1_795_176_000_000_000
PUBACK, PUBREC, PUBCOMP = 4, 5, 7


@pytest.fixture
def story(trail: TrailBuilder, read: Callable[..., Facts]) -> Engine:
    """Three exchanges in, three out, a channel, a dropped field; a doubled, a missing and a foreign line."""
    at = {"at_us": NOON_US}
    who = {"direction": "in", "client": "boiler", "session_epoch": 1}
    out = {"direction": "out", "client": "screen", "session_epoch": 2}
    trail.add(Kind.STARTED, code_version="0.1.0", table_version="1", configuration_sha256="00" * 32, **at)
    for exchange, qos in ((1, 1), (2, 1), (3, 2)):
        trail.add(Kind.ACCEPTED, exchange=exchange, qos=qos, packet_type=3, **who, **at)
    for exchange, qos in ((1, 1), (3, 2)):
        trail.add(
            Kind.PUT,
            exchange=exchange,
            qos=qos,
            packet_type=3,
            message_id=f"{exchange:048x}",
            dropped_fields=[["MQPSStreamName", "no place"], ["MQPSUser", "a tie"]][:exchange],
            **who,
            **at,
        )
    confirmed = {"at_us": NOON_US + 2_000}
    trail.add(Kind.CONFIRMED, packet_type=PUBACK, exchanges=[[1, 1]], **who, **confirmed)
    trail.add(Kind.CONFIRMED, packet_type=PUBREC, exchanges=[[3, 3]], **who, **confirmed)
    trail.add(Kind.CONFIRMED, packet_type=PUBCOMP, exchanges=[[3, 3]], **who, at_us=NOON_US + 9_000)
    for exchange, qos, number in ((1, 1, 1), (2, 2, 3)):
        trail.add(
            Kind.DELIVERED,
            exchange=exchange,
            qos=qos,
            message_id=f"{number:048x}",
            at_us=NOON_US + 61 * SECOND_US,
            **out,
        )
    trail.add(Kind.DELIVERED, qos=0, message_id="ff" * 24, at_us=NOON_US + 61 * SECOND_US, **out)
    trail.add(Kind.ACKNOWLEDGED, exchange=1, packet_type=PUBACK, at_us=NOON_US + 62 * SECOND_US, **out)
    trail.add(Kind.ACKNOWLEDGED, exchange=2, packet_type=PUBREC, at_us=NOON_US + 62 * SECOND_US, **out)
    trail.add(Kind.FORWARDED, message_id=f"{1:048x}", at_us=NOON_US + 50_000)
    trail.add(
        Kind.CONFIRMED, packet_type=PUBACK, exchanges=[[5, -(2**63)], [9, 5], [1, 2**62], [1], []], **who, at_us=2**62
    )
    trail.lines.append(trail.lines[1])
    del trail.lines[7]
    trail.lines.append(b"nonsense\n")
    return read(trail.write()).engine


def test_scope_counts_lines_segments_gateways_and_what_is_missing(story: Engine) -> None:
    scope = figures.scope(story, size_bytes=7, torn_files=("a.torn",))
    assert (scope.lines, scope.records, scope.lines_set_aside, scope.bytes) == (17, 16, 1, 7)
    assert (scope.segment_count, scope.gateway_count, scope.torn_files) == (1, 1, ("a.torn",))
    (segment,) = scope.segments
    assert (segment.name, segment.lines, segment.records) == (SEGMENT, 17, 16)
    assert (segment.first_sequence, segment.last_sequence) == (1, 16)
    (coverage,) = scope.coverage
    assert (coverage.gateway, coverage.records, coverage.missing) == (GATEWAY, 16, 1)
    assert (scope.first_at_us, scope.last_at_us) == (NOON_US, 2**62)


def test_a_gateway_has_the_name_that_its_configuration_gave_it_last(
    trail: TrailBuilder, read: Callable[..., Facts]
) -> None:
    """Each start and each inventory says the name; a start without one takes it away."""
    trail.add(Kind.STARTED, gateway_name="north")
    trail.add(Kind.INVENTORY, event="begun", gateway_name="plant <north>")
    other, bare = "b" * 24, "c" * 24
    trail.add(Kind.STARTED, gateway_name="south", gateway=other)
    trail.add(Kind.STARTED, gateway_name="east", gateway=bare)
    trail.add(Kind.STARTED, gateway=bare)
    coverage = figures.coverage(read(trail.write()).engine)
    assert {each.gateway: each.name for each in coverage} == {GATEWAY: "plant <north>", other: "south", bare: ""}


def test_proofs_tell_the_ends_of_each_qos_in_both_directions(story: Engine) -> None:
    exchanges = (
        Count(group="1", what="put", count=1),
        Count(group="1", what="pending", count=1),
        Count(group="2", what="put", count=1),
    )
    nought, one, two = figures.qos_proofs(
        story, exchanges, (control("qos.1", violations=5), control("delivery.qos1", violations=2))
    )
    assert (nought.delivered, nought.completed, nought.unanswered) == (1, 0, 0)
    assert (one.accepted, one.put, one.pending, one.acknowledged, one.violations) == (2, 1, 1, 1, 7)
    assert (one.delivered, one.completed, one.unanswered) == (1, 1, 0)
    assert (two.accepted, two.put, two.pending, two.violations) == (1, 1, 0, 0)
    assert (two.delivered, two.completed, two.unanswered) == (1, 0, 1)


def test_latencies_are_taken_between_the_two_records_of_a_step(story: Engine) -> None:
    found = {(row.step, row.qos): row for row in latencies(story)}
    assert {key: (row.count, row.max_us) for key, row in found.items()} == {
        ("acknowledged after accepted", 1): (1, 2_000),
        ("acknowledged after accepted", 2): (1, 9_000),
        ("forwarded after put", -1): (1, 50_000),
        ("delivered after put", 1): (1, 61 * SECOND_US),
        ("delivered after put", 2): (1, 61 * SECOND_US),
    }
    assert found["forwarded after put", -1] == Latency(
        step="forwarded after put", qos=-1, count=1, p50_us=50_000, p90_us=50_000, p99_us=50_000, max_us=50_000
    )


def test_volumes_are_counted_by_the_minute(story: Engine) -> None:
    volumes = figures.volumes(story, NOON_US, NOON_US + 7_200 * SECOND_US)
    assert volumes.interval_s == 60
    assert volumes.intervals == (
        Volume(at_us=NOON_US, accepted=4, put=2, delivered=0, forwarded=1, ended_otherwise=0),
        Volume(at_us=NOON_US + 60 * SECOND_US, accepted=0, put=0, delivered=3, forwarded=0, ended_otherwise=0),
    )


def test_times_that_are_none_make_no_more_intervals_than_others(story: Engine) -> None:
    volumes = figures.volumes(story, -(2**63), 2**63 - 1)
    assert len(volumes.intervals) == 2
    assert sum(row.accepted for row in volumes.intervals) == 4


@pytest.mark.parametrize(
    ("period_s", "interval_s"),
    [
        (0, 1),
        (60, 1),
        (121, 5),
        (7_200, 60),
        (7_201, 120),
        (86_400, 900),
        (120 * 86_400, 86_400),
        (121 * 86_400, 172_800),
    ],
)
def test_an_interval_is_one_that_people_read_easily(period_s: int, interval_s: int) -> None:
    assert figures.interval_for(period_s) == interval_s


def test_dropped_fields_are_counted_by_name_and_reason(story: Engine) -> None:
    assert figures.dropped_fields(story) == (
        DroppedField(name="MQPSStreamName", reason="no place", count=2),
        DroppedField(name="MQPSUser", reason="a tie", count=1),
    )


@pytest.mark.parametrize(
    ("clients", "personal_data"),
    [
        (["boiler", "k:"], PersonalData.PLAIN),
        (["k:" + "0f" * 16] * 2, PersonalData.KEYED),
        (["boiler", "k:" + "0f" * 16], PersonalData.MIXED),
        ([None], PersonalData.UNKNOWN),
    ],
)
def test_whether_clients_are_keyed_is_seen_in_the_records(
    trail: TrailBuilder, read: Callable[..., Facts], clients: list[str | None], personal_data: PersonalData
) -> None:
    for client in clients:
        trail.add("session", client=client)
    assert figures.personal_data(read(trail.write()).engine) is personal_data


def _found(sequence: int, subject: str = "message") -> Violation:
    return Violation(gateway=GATEWAY, sequence=sequence, subject=subject, detail="wrong")


def test_a_finding_gets_its_file_and_line_and_one_without_a_record_what_it_names(story: Engine) -> None:
    place = Violation(gateway="", sequence=0, subject=f"{SEGMENT}, line 17", detail="no record")
    (result,) = with_evidence((control("any", _found(2), _found(6), _found(99), place),), story)
    told = [(found.client, found.message_id, found.at_us) for found in result.sample]
    assert told[:3] == [("boiler", "", NOON_US), ("boiler", f"{3:048x}", NOON_US), ("", "", 0)]
    (result,) = with_evidence((control("any", _found(2), _found(16), _found(99), place),), story)
    assert [(found.segment, found.line) for found in result.sample] == [
        (SEGMENT, 2),
        (SEGMENT, 15),
        ("", 0),
        (SEGMENT, 17),
    ]
    assert [found.evidence for found in result.sample] == [None] * 4


def _read_back(folder: Path) -> list[tuple[object, ...]]:
    names = ("control", "severity", "gateway", "sequence", "subject", "detail")
    partitioning = ds.partitioning(pa.schema([("control", pa.string())]), flavor="hive")
    rows = ds.dataset(folder, format="parquet", partitioning=partitioning).to_table().to_pylist()
    return sorted(tuple(row[name] for name in names) for row in rows)


def test_every_violation_is_written_by_control_not_only_the_sample(story: Engine, tmp_path: Path) -> None:
    many = [{"control": "qos.1", "gateway": GATEWAY, "sequence": n, "subject": "message"} for n in range(1, 61)]
    many.append(many[0] | {"control": "timeliness", "sequence": 7, "subject": "a/\u202e\x00b", "detail": "wrong"})
    rows = [{"detail": ""} | row for row in many]
    story.give("told", pa.Table.from_pylist(rows, schema=VIOLATION))
    results = (
        control("qos.1", _found(1), violations=60),
        control("timeliness", _found(7), severity="warning"),
        control("conservation"),
    )
    name = write_exceptions(story, results, tmp_path)
    written = _read_back(tmp_path / name)
    assert len(written) == 61
    assert written[0] == ("qos.1", "error", GATEWAY, 1, "message", "")
    assert written[-1] == ("timeliness", "warning", GATEWAY, 7, "a/\u202e\x00b", "wrong")
    assert sorted(path.name for path in (tmp_path / name).glob("control=*")) == ["control=qos.1", "control=timeliness"]


def test_a_violation_has_client_topic_message_and_time_of_its_record(story: Engine, tmp_path: Path) -> None:
    names = ("client", "topic", "message_id", "at_us")
    said = f"SELECT gateway, sequence, {', '.join(names)} FROM records"
    (shown,) = story.rows(f"{said} WHERE client IS NOT NULL AND message_id IS NOT NULL ORDER BY sequence LIMIT 1")
    told = {"control": "qos.1", "subject": "message", "detail": "wrong"}
    rows = [
        told | {"gateway": shown["gateway"], "sequence": shown["sequence"]},
        told | {"gateway": "", "sequence": 0},
    ]
    story.give("told", pa.Table.from_pylist(rows, schema=VIOLATION))
    folder = tmp_path / write_exceptions(story, [control("qos.1", _found(1), violations=2)], tmp_path)
    written = ds.dataset(folder, format="parquet").to_table().sort_by("sequence")
    assert set(written.column_names) | {"control"} == {each.name for each in COLUMNS}
    values = [tuple(row[name] for name in names) for row in written.to_pylist()]
    assert values == [("", "", "", 0), tuple(shown[name] or "" for name in names)]


def test_without_a_violation_the_data_set_is_there_and_empty(story: Engine, tmp_path: Path) -> None:
    story.give("told", VIOLATION.empty_table())
    write_exceptions(story, [control("qos.1", _found(1))], tmp_path)
    name = write_exceptions(story, [control("conservation")], tmp_path)
    assert _read_back(tmp_path / name) == []

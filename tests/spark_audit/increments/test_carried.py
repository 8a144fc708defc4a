"""Increments find what one audit of the whole trail finds, each finding once, and carry what is open and no more."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_audit.engines.spark import SparkEngine
from spark_audit.increments.state import TABLES
from tests.spark_audit.conftest import TrailBuilder
from tests.spark_audit.controls.conftest import Story, message
from tests.spark_audit.controls.test_controls import CASES
from tests.spark_audit.controls.test_stages import CASES as STAGES
from tests.spark_audit.custody import scenes
from tests.spark_audit.increments.conftest import (
    OF_FILES,
    Increments,
    Told,
    Trails,
    in_parts,
    told_of_whole,
    write_segment,
)


class _OfGateway:
    """A trail whose records are of a gateway unless they say another."""

    def __init__(self, trail: TrailBuilder, gateway: str) -> None:
        self.trail, self.gateway = trail, gateway

    def add(self, kind: str, **fields: object) -> int:
        return self.trail.add(kind, **{"gateway": self.gateway} | fields)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def planted() -> Trails:
    """The lines of a trail for each planted fault, each of a gateway of its own."""
    trails = {}
    for number, (_control, plant) in enumerate((*CASES.values(), *STAGES.values()), start=1):
        builder = TrailBuilder(Path())
        plant(Story(_OfGateway(builder, f"{number:024x}")))
        trails[f"{number:024x}"] = builder.lines
    return trails


def _but_of_files(told: set[Told]) -> set[Told]:
    return {each for each in told if each[0] != OF_FILES}


def test_two_audits_find_what_one_finds_in_every_planted_fault(planted: Trails, tmp_path: Path) -> None:
    chosen = random.Random(16)
    cuts = {name: [chosen.randrange(1, len(lines))] for name, lines in planted.items()}
    parts = in_parts(planted, cuts, tmp_path)
    rest = {name: lines for name, lines in planted.items() if name not in parts.set_aside}
    assert len(rest) > len(planted) // 2, "most trails go on from a state"
    for name, lines in rest.items():
        write_segment(tmp_path / "first" / name, 1, lines[: cuts[name][0]])
        write_segment(tmp_path / "whole" / name, 1, lines)
    first, whole = (
        _but_of_files(told_of_whole([tmp_path / folder / name for name in rest], tmp_path))
        for folder in ("first", "whole")
    )
    assert _but_of_files(parts.told[0]) == first
    assert _but_of_files(parts.told[1]) == whole - first


def test_a_first_audit_of_several_segments_finds_what_one_without_a_state_finds(tmp_path: Path) -> None:
    builder = TrailBuilder(tmp_path)
    story = Story(builder)
    story.started()
    write_segment(tmp_path / "trail", 1, builder.lines)
    wrong = story.confirmed(4, [1, 1])  # and nobody put it
    write_segment(tmp_path / "trail", 2, builder.lines[1:])
    told = Increments([tmp_path / "trail"], tmp_path).audit()
    assert told == told_of_whole([tmp_path / "trail"], tmp_path)
    assert ("qos.1", wrong) in {(control, sequence) for control, _, sequence, _ in told}


def _exchanged(story: Story, first: int, last: int) -> None:
    """Messages of QoS 1 that come from a client and go to another one, until nothing of them is open."""
    for number in range(first, last + 1):
        batch = story.trail.sequence + 1
        story.accepted(number, 1, batch=batch)
        story.put(number, 1, batch=batch, message_id=message(2 * number))
        story.copied(2 * number, 2 * number + 1, batch=batch, correlation_id="0c" * 24)
        story.confirmed(4, [number, number])
        story.delivered(number, 1, 2 * number + 1, correlation_id="0c" * 24)
        story.acknowledged(number, message_id=message(2 * number + 1))


def test_what_is_carried_does_not_grow_with_the_trail(tmp_path: Path) -> None:
    builder = TrailBuilder(tmp_path)
    story, folder = Story(builder), tmp_path / "trail"
    audits = Increments([folder], tmp_path)
    story.started()
    for number, (first, last) in enumerate(((1, 5), (6, 50), (51, 200)), start=1):
        before = len(builder.lines)
        _exchanged(story, first, last)
        write_segment(folder, number, builder.lines[before:] if number > 1 else builder.lines)
        audits.audit()
    assert audits.carried[0] == audits.carried[1] == audits.carried[2] < 20
    assert audits.named == []


def test_what_is_open_is_no_violation_until_it_is_one(tmp_path: Path) -> None:
    """QoS 2 between PUBREC and PUBREL; a subscription in front of the cut, and its publication behind it."""
    scene = scenes.connected("pump", "desk")
    scene.commit(*scene.subscribe("desk", "plant/#"))
    put, copy = scene.publish("pump", "plant/a", "desk")
    scene.commit(put, copy)
    cut = len(scene.records)
    scene.commit(scene.deliver(copy, "desk"))
    scene.commit(*scene.publish("pump", "plant/b"))  # and nobody gets it
    scene.commit(scenes.record("clock_jumped", event="settled"))
    told = _custody_of(scene, cut, tmp_path)
    assert told[0] == set()
    assert {(control, sequence) for control, _, sequence, _ in told[1]} == {("custody.copies", cut + 2)}


def test_a_will_behind_the_last_exchange_of_a_session_is_carried(tmp_path: Path) -> None:
    """It has a number of its session, and the next exchange is behind the cut."""
    builder = TrailBuilder(tmp_path)
    story = Story(builder)
    story.started(), story.session("opened", client="boiler", session_epoch=1)
    story.published(1, 1), story.confirmed(4, [1, 1])
    said = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 1, "command": "Publish"}
    story.add("put", **said, queue="STREAM", conversion="packet_to_header", message_id=message(2))
    story.session("lost", client="boiler", session_epoch=1)
    story.session("opened", client="other", session_epoch=3)  # its will is the last one on its topic
    other = said | {"client": "other", "session_epoch": 3}
    story.add("put", **other, queue="STREAM", conversion="packet_to_header", message_id=message(3))
    story.session("lost", client="other", session_epoch=3)
    story.session("resumed", client="other", session_epoch=3)
    cut = len(builder.lines)
    story.session("resumed", client="boiler", session_epoch=1)
    story.published(3, 1, message_id=message(13)), story.confirmed(4, [3, 3])
    story.published(5, 1, message_id=message(15)), story.confirmed(4, [5, 5])
    audits, told = Increments([tmp_path / "trail"], tmp_path), []
    for number, lines in enumerate((builder.lines[:cut], builder.lines[cut:]), start=1):
        write_segment(tmp_path / "trail", number, lines)
        told.append([subject for control, _, _, subject in audits.audit() if control == "exchanges"])
    assert told == [[], ["in: client boiler, session 1, exchange 5"]]
    assert audits.named == []


def _custody_of(scene: scenes.Scene, cut: int, scratch: Path) -> list[set[Told]]:
    builder = TrailBuilder(scratch)
    for record in scene.records:
        builder.add(**{name: value for name, value in record.items() if name not in ("sequence", "gateway")})
    audits = Increments([scratch / "trail"], scratch)
    told = []
    for number, lines in enumerate((builder.lines[:cut], builder.lines[cut:]), start=1):
        write_segment(scratch / "trail", number, lines)
        told.append({each for each in audits.audit() if each[0].startswith("custody")})
    assert audits.named == []
    return told


def test_a_record_that_names_what_had_ended_has_the_whole_trail_read(tmp_path: Path) -> None:
    builder = TrailBuilder(tmp_path)
    story, folder = Story(builder), tmp_path / "trail"
    audits = Increments([folder], tmp_path)
    story.started()
    _exchanged(story, 1, 3)
    write_segment(folder, 1, builder.lines)
    first, cut = audits.audit(), len(builder.lines)
    again = story.delivered(9, 2, 3, correlation_id="0c" * 24)  # it had been acknowledged
    story.started()
    write_segment(folder, 2, builder.lines[cut:])
    second = audits.audit()
    assert len(audits.named) == 1
    assert message(3) in audits.named[0]
    assert {each for each in second if each[2] == again}
    assert first | second == told_of_whole([folder], tmp_path)
    assert not first & second


#: Planted faults that name nothing that had ended when their trails are cut in the middle.
_GOES_ON = (1, 2, 4, 7, 12, 14, 22)


def test_spark_goes_on_from_a_state_of_duckdb_as_duckdb_does(
    spark: SparkSession, planted: Trails, tmp_path: Path
) -> None:
    """They find the same, and leave the same state."""
    names = [f"{number:024x}" for number in _GOES_ON]
    folders = [tmp_path / name for name in names]
    on_duckdb, on_spark = (Increments(folders, tmp_path, is_patient=False) for _ in range(2))
    on_spark.engine = lambda _scratch: SparkEngine(spark)
    for name in names:
        write_segment(tmp_path / name, 1, planted[name][: len(planted[name]) // 2])
    on_duckdb.audit()
    on_spark.data = on_duckdb.data
    for name in names:
        write_segment(tmp_path / name, 2, planted[name][len(planted[name]) // 2 :])
    told = on_duckdb.audit()
    assert on_spark.audit() == told
    assert _but_of_files(told)
    states = on_spark.state(), on_duckdb.state()
    for name in TABLES:
        one, other = (sorted(map(_row, each.table(name).to_pylist())) for each in states)
        assert one == other, name
    assert states[0].memories == states[1].memories


def _row(row: dict[str, object]) -> str:
    """A row without the names of folders."""
    return str({name: value for name, value in row.items() if name not in ("trail", "subject")})

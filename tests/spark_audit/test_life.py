"""The life of one message, from records written by hand: what belongs to it, and what of its neighbours does not."""

import gzip
from pathlib import Path

import pytest

from benchmarks.trail import made
from gateway.audit_trail.notes.notes import NoteKind, pack_batch
from gateway.audit_trail.records import Chain
from spark_audit import life as life_module
from spark_audit.life import Life, Needles, life_of
from spark_audit.record.batch_line import records_of, summary_of
from spark_audit.trail.segment_forms import DamagedSegment
from spark_audit.verify.source import TrailFolder
from tests.trail_lines import trail_lines, trail_records

PACKED = pack_batch(7, [(NoteKind.SESSION, 1_795_158_000_000_000, "boiler", 5, "ended", 4, True)])
IN = {"direction": "in", "client": "boiler", "session_epoch": 1}
OUT = {"direction": "out", "client": 'scr"een', "session_epoch": 2}
PUT, COPY, OTHER_COPY, LETTER, REDRIVEN = (f"{number:048x}" for number in range(100, 105))
THERE = "c3" * 24


def _life(trail, message_id: str) -> Life:
    folder = trail.write()
    return life_of(message_id, [("here", lambda: TrailFolder(folder))])


def _sequences(trail, message_id: str) -> list[int]:
    return [each.record["sequence"] for each in _life(trail, message_id).records]


@pytest.fixture
def published(trail):
    """A PUBLISH that is copied for two subscribers, beside others that have nothing to do with it."""
    trail.add("accepted", exchange=7, packet_type=3, **IN)  # 1
    trail.add("accepted", exchange=8, packet_type=3, **IN)  # 2: another exchange
    trail.add("accepted", exchange=7, packet_type=3, **(IN | {"client": "cooler"}))  # 3: another client
    trail.add("put", exchange=7, message_id=PUT, **IN)  # 4
    trail.add("put", message_id=COPY, source_message_id=PUT)  # 5
    trail.add("put", message_id=OTHER_COPY, source_message_id=PUT)  # 6
    trail.add("delivered", exchange=1, message_id=COPY, **OUT)  # 7
    trail.add("acknowledged", exchange=1, **OUT)  # 8
    trail.add("confirmed", exchanges=[[1, 3], [7, 7]], packet_type=4, **IN)  # 9
    trail.add("confirmed", exchanges=[[8, 8]], packet_type=4, **IN)  # 10
    trail.add("dropped", message_id=OTHER_COPY, reason="its session ended")  # 11
    return trail


def test_publication_leads_down_to_every_copy_and_up_to_its_exchange(published) -> None:
    assert _sequences(published, PUT) == [1, 4, 5, 6, 7, 8, 9, 11]


def test_copy_leads_up_to_its_publication_and_not_to_the_other_copies(published) -> None:
    assert _sequences(published, COPY) == [1, 4, 5, 7, 8, 9]


def test_repeats_of_the_publish_are_of_its_life(trail) -> None:
    trail.add("accepted", exchange=7, packet_type=3, **IN)
    trail.add("repeated", exchange=7, packet_type=3, event="repeat", **IN)
    trail.add("repeated", exchange=8, packet_type=3, event="identifier_reused", **IN)  # of another exchange
    trail.add("repeated", exchange=7, packet_type=3, event="identifier_reused", **IN)
    trail.add("put", exchange=7, message_id=PUT, **IN)
    assert _sequences(trail, PUT) == [1, 2, 4, 5]


def test_name_at_the_target_and_name_of_the_dead_letter_lead_to_the_message(trail) -> None:
    trail.add("put", message_id=PUT, destination="PLANT", exchange=1, **IN)
    trail.add("forwarded", message_id=PUT, target_message_id=THERE, channel="PLANT.OUT.0")
    trail.add("dead_lettered", message_id=PUT, dead_letter_id=LETTER, reason_code=2053)
    trail.add("redriven", message_id=REDRIVEN, dead_letter_id=LETTER)
    trail.add("delivered", exchange=4, message_id=REDRIVEN, **OUT)
    for name in (PUT, THERE, LETTER, REDRIVEN):
        assert _sequences(trail, name) == [1, 2, 3, 4, 5], name


def test_many_copies_and_clients_are_followed_as_few_are(trail) -> None:
    copies = [f"{number:048x}" for number in range(1_000, 1_040)]
    for number, copy in enumerate(copies):
        trail.add("put", message_id=copy, source_message_id=PUT)
        trail.add("put", message_id=f"{2_000 + number:048x}", source_message_id=OTHER_COPY)
    for number, copy in enumerate(copies):
        trail.add("delivered", exchange=1, message_id=copy, **(OUT | {"client": f'"{number}'}))
        trail.add("acknowledged", exchange=1, **(OUT | {"client": f'"{number}'}))
        trail.add("acknowledged", exchange=2, **(OUT | {"client": f'"{number}'}))
    kinds = [each.record["kind"] for each in _life(trail, PUT).records]
    assert [kinds.count(kind) for kind in ("put", "delivered", "acknowledged")] == [40, 40, 40]


def test_life_over_the_segments_of_several_trails_is_told_in_their_order(trail, tmp_path) -> None:
    trail.add("put", message_id=PUT, exchange=1, **IN)
    first = trail.write()
    trail.lines.clear()
    trail.add("delivered", message_id=PUT, exchange=1, **OUT)
    (first / "000000000002-20261120T08.jsonl.gz").write_bytes(gzip.compress(trail.lines[0]))
    trail.lines.clear()
    trail.add("received", message_id=COPY, target_message_id=PUT)
    trail.folder = tmp_path / "other"
    second = trail.write("000000000001-20261120T09.open")
    life = life_of(PUT, [("one", lambda: TrailFolder(first)), ("two", lambda: TrailFolder(second))])
    assert [(each.trail, each.segment, each.line, each.record["kind"]) for each in life.records] == [
        ("one", "000000000001-20261120T07.jsonl", 1, "put"),
        ("one", "000000000002-20261120T08.jsonl.gz", 1, "delivered"),
        ("two", "000000000001-20261120T09.open", 1, "received"),
    ]
    assert (life.segments, life.lines) == (3, 3)


def test_records_of_a_segment_that_is_compressed_between_two_scans_are_told_once(published) -> None:
    folder = published.write()
    (segment,) = folder.iterdir()
    sources = []

    def source() -> TrailFolder:
        if len(sources) == 1:
            segment.with_name(f"{segment.name}.gz").write_bytes(gzip.compress(segment.read_bytes()))
            segment.unlink()
        sources.append(TrailFolder(folder))
        return sources[-1]

    told = [each.record["sequence"] for each in life_of(PUT, [("here", source)]).records]
    assert (told, len(sources) > 1) == ([1, 4, 5, 6, 7, 8, 9, 11], True)


def test_changed_record_is_told_as_such(published) -> None:
    published.lines[3] = published.lines[3].replace(b'"put"', b'"got"')
    assert [each.record["sequence"] for each in _life(published, PUT).records if not each.is_unchanged] == [4]


@pytest.mark.parametrize(
    "line",
    [
        b'"%s"\n' % PUT.encode(),
        b'{"message_id":"%s"' % PUT.encode(),
        b'["%s"]\n' % PUT.encode(),
        b'{"kind":"put","message_id":{"x":"%s"}}\n' % PUT.encode(),
        b"\xff\n",
        b"",
    ],
)
def test_lines_that_are_no_records_belong_to_nothing(trail, line: bytes) -> None:
    trail.lines.append(line)
    assert _life(trail, PUT).records == ()


def test_hostile_fields_are_no_exchange(trail) -> None:
    for fields in ({"client": ["boiler"]}, {"exchange": "7"}, {"session_epoch": None}, {"exchanges": [[1], "x", 3]}):
        trail.add(
            "confirmed" if "exchanges" in fields else "put", **({"message_id": PUT, "exchange": 7, **IN} | fields)
        )
    assert _sequences(trail, PUT) == [1, 2, 3, 4]


def test_more_records_than_can_be_held_are_cut_and_it_says_so(published, monkeypatch) -> None:
    monkeypatch.setattr(life_module, "MOST_RECORDS", 3)
    life = _life(published, PUT)
    assert (len(life.records), life.is_cut) == (3, True)


def test_damaged_segment_is_not_passed_over_in_silence(published) -> None:
    folder = published.write()
    (folder / "000000000002-20261120T08.jsonl.gz").write_bytes(gzip.compress(b"{}\n")[:-5])
    with pytest.raises(DamagedSegment):
        life_of(PUT, [("here", lambda: TrailFolder(folder))])


# -- lines of batches --------------------------------------------------------------------------------------------------


@pytest.fixture
def batches(tmp_path: Path) -> Path:
    """A trail of thirty commits, in each of which some clients publish, and copies come, go and are acknowledged."""
    made.make_trail(tmp_path / "trail", 2_000)
    return tmp_path / "trail"


def test_in_lines_of_batches_a_search_finds_what_it_finds_without_looking_for_names(batches: Path, monkeypatch) -> None:
    records = trail_records(batches)
    wanted = [each["message_id"] for each in records if each["kind"] == "delivered"][:40:8]
    assert len({each["batch"] for each in records}) > 5
    sources = [("", lambda: TrailFolder(batches))]
    found = [life_of(message_id, sources) for message_id in wanted]
    kinds = {each.record["kind"] for life in found for each in life.records}
    assert kinds >= {"accepted", "put", "delivered", "acknowledged", "confirmed"}
    monkeypatch.setattr(life_module.Needles, "may_be_in", lambda _needles, _text: True)
    assert [life_of(message_id, sources) for message_id in wanted] == found


def test_lines_of_batches_without_the_name_are_not_made_into_records(batches: Path, monkeypatch) -> None:
    monkeypatch.setattr(life_module, "records_of", lambda _line: pytest.fail("it was read"))
    assert life_of("c3" * 24, [("", lambda: TrailFolder(batches))]).records == ()


@pytest.mark.parametrize("form", [b"\xcf" + (7).to_bytes(8), b"\xd2" + (7).to_bytes(4), b"\xcd\0\x07", b"\x07"])
def test_a_number_is_found_however_it_is_packed(form: bytes) -> None:
    summary = summary_of(PACKED)
    line = Chain(sequence=0, head="0" * 64).seal_batch(b"\xff" + form + b"\xff", summary, "0a" * 12)[:-1]
    name = b"52464842" + b"0a" * 12 + (7).to_bytes(8).hex().encode()
    assert Needles(names={name}).may_be_in(line)


@pytest.mark.parametrize("name", [b"no hex", b"\xff", b"5246484200"])
def test_a_name_that_is_no_identifier_is_looked_for_as_it_is(name: bytes) -> None:
    line = Chain(sequence=0, head="0" * 64).seal_batch(PACKED, summary_of(PACKED), "0a" * 12)
    assert not Needles(names={name}).may_be_in(line.replace(b"\n", b""))
    assert Needles(names={name}).may_be_in(b'{"message_id":"' + name + b'"}')


def test_a_record_of_a_batch_has_the_line_of_its_batch_and_its_hash(batches: Path) -> None:
    life = life_of(trail_records(batches)[60]["message_id"], [("", lambda: TrailFolder(batches))])
    lines = trail_lines(batches)
    assert life.records
    for each in life.records:
        assert each.record in records_of(lines[each.line - 1])
        assert each.is_unchanged

"""An index of segments never changes what a search tells, whatever is done to it, and spares it most segments."""

import gzip
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from mappings.topics.wildcards import Scheme, matches
from spark_audit import fates, life, segment_index
from spark_audit.fates import Wanted, fates_of
from spark_audit.life import life_of
from spark_audit.record import FIELDS, Form
from spark_audit.segment_index import SegmentIndex, UnsafeIndex, topic_beginning
from spark_audit.verify.source import SegmentFile, TrailFolder, each_segment
from tests.spark_audit.conftest import TrailBuilder

SEGMENTS = 12
EACH = 20
CLIENTS = ("pump", "panel", 'wall "2"', "k:" + "a" * 32)
TOPICS = ("plant/heat", "plant", "plant/a/b/c/d/e/f/g/h/i", "other", "/x", "k:" + "b" * 32)
FILTERS = ("plant/#", "plant/heat", "plant/a/+/c/#", "plant/a/b/c/d/e/f/g/h/+", "+", "/#", "none")


def _id(number: int) -> str:
    return f"{number:048x}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Segments of an hour each, in which messages live on beyond their segment; a line or two are no records."""
    trail, chance = TrailBuilder(tmp_path_factory.mktemp("data") / "trail"), random.Random(7)
    for number in range(1, SEGMENTS + 1):
        home = CLIENTS[number % 3 : number % 3 + 2]  # no segment has all clients
        for step in range(EACH):
            _one(trail, chance, chance.choice(home), number * EACH + step)
        if number == 5:
            trail.lines.append(b"no record\n")
        trail.write(f"{number:012d}-20261120T{6 + number:02d}.{'open' if number == SEGMENTS else 'jsonl'}")
        trail.lines.clear()
    plain = trail.folder / "000000000003-20261120T09.jsonl"
    plain.with_suffix(".jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return trail.folder


def _one(trail: TrailBuilder, chance: random.Random, client: str, number: int) -> None:
    at_us = 1_795_158_000_000_000 + number * 90_000_000
    said = {"at_us": at_us, "client": client, "session_epoch": 1, "qos": 1, "topic": chance.choice(TOPICS)}
    exchange, lane = {"exchange": number, "packet_type": 3, **said}, _id(900_000 + CLIENTS.index(client))
    earlier = _id(chance.randrange(max(1, number - 60), number + 1))
    match chance.randrange(9):
        case 0 | 1 | 2:
            trail.add("accepted", direction="in", **exchange)
            trail.add("put", direction="in", command="Publish", message_id=_id(number), **exchange)
        case 3:
            named = {"command": "Publish", "message_id": _id(100_000 + number), "source_message_id": earlier}
            trail.add(
                "put", conversion="header_to_header", correlation_id=lane, at_us=at_us, topic=said["topic"], **named
            )
        case 4:
            trail.add(
                "delivered", direction="out", message_id=_id(100_000 + number - 7), correlation_id=lane, **exchange
            )
        case 5:
            trail.add("confirmed", direction="in", packet_type=4, exchanges=[[number - 30, number]], **said)
        case 6:
            trail.add("put", command="RegSub", correlation_id=lane, **said)
        case 7:
            trail.add("dead_lettered", message_id=earlier, dead_letter_id=_id(500_000 + number), at_us=at_us)
        case _:
            trail.add(
                "commanded", command="Publish", message_id=_id(700_000 + number), topics=list(TOPICS[:2]), at_us=at_us
            )


def _searches() -> Iterator[Wanted]:
    times = [(0, 0), (1_795_158_000_000_000 + 200 * 90_000_000, 0), (1, 1_795_158_000_000_000 + 90 * 90_000_000)]
    for since_us, until_us in times:
        for client in ("", *CLIENTS, "nobody"):
            for topic in ("", *FILTERS):
                beginning = topic_beginning(topic) if topic else None
                yield Wanted(
                    clients=frozenset({client} - {""}),
                    matches=partial(_matches, topic) if topic else None,
                    topic_beginnings=None if beginning is None else frozenset({beginning}),
                    since_us=since_us,
                    until_us=until_us,
                )


def _matches(topic_filter: str, topic: str) -> bool:
    return matches(topic_filter, topic, Scheme.MQTT)


def _told(folder: Path, index: SegmentIndex | None) -> list[object]:
    """Everything that searches for clients, topics and times tell, and for messages."""
    told: list[object] = [fates_of(wanted, [TrailFolder(folder)], index) for wanted in _searches()]
    for number in (*range(EACH, (SEGMENTS + 1) * EACH, 37), 100_100, 500_101, 999_999):
        told.append(life_of(_id(number), [("", partial(TrailFolder, folder))], index))
    return told


@pytest.fixture(scope="module")
def without(folder: Path) -> list[object]:
    """What is told without an index."""
    return _told(folder, None)


def _nothing(_entries: list[Path]) -> None:
    """The index as it was made."""


def _emptied(entries: list[Path]) -> None:
    for path in entries:
        path.write_bytes(b"")


def _cut(entries: list[Path]) -> None:
    for path in entries:
        path.write_bytes(path.read_bytes()[:-4])


def _exchanged(entries: list[Path]) -> None:
    """Each segment has the entry of another one."""
    texts = [path.read_bytes() for path in entries]
    for path, text in zip(entries, texts[1:] + texts[:1], strict=True):
        path.write_bytes(text)


def _without_names(entries: list[Path]) -> None:
    """As a forger writes it who does not know the key."""
    for path in entries:
        data = path.read_bytes()
        path.write_bytes(data[: data.index(b"\n", 32) + 1])


def _of_another_version(entries: list[Path]) -> None:
    for path in entries:
        path.write_bytes(path.read_bytes().replace(b"[1,", b"[0,", 1))


HARM = (_nothing, _emptied, _cut, _exchanged, _without_names, _of_another_version)


@pytest.mark.parametrize("harm", HARM)
def test_a_wrong_or_missing_index_never_changes_what_is_told(
    folder: Path, without: list[object], tmp_path: Path, harm: Callable[[list[Path]], None]
) -> None:
    index = SegmentIndex(tmp_path / "index")
    fates_of(Wanted(since_us=1), [TrailFolder(folder)], index)
    entries = sorted(path for path in (tmp_path / "index").iterdir() if path.name != "key")
    assert len(entries) == SEGMENTS - 1  # the open one has none
    harm(entries)
    assert _told(folder, index) == without
    if harm is not _nothing:
        whole = [path.read_bytes() for path in entries]
        assert _told(folder, SegmentIndex(tmp_path / "index")) == without
        assert [path.read_bytes() for path in entries] == whole  # they were made anew once


def test_it_spares_segments(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = SegmentIndex(tmp_path / "index")
    fates_of(Wanted(since_us=1), [TrailFolder(folder)], index)
    read: list[str] = []
    blocks = SegmentFile.blocks
    monkeypatch.setattr(SegmentFile, "blocks", lambda segment: (read.append(segment.name), blocks(segment))[1])
    fates_of(Wanted(clients=frozenset({"nobody"})), [TrailFolder(folder)], index)
    life_of(_id(999_999), [("", partial(TrailFolder, folder))], index)
    assert read == ["000000000012-20261120T18.open"] * 2


def test_a_segment_that_was_changed_is_read_again(folder: Path, tmp_path: Path) -> None:
    trail = TrailBuilder(tmp_path / "trail")
    trail.add("accepted", client="pump", topic="plant/heat", exchange=1)
    path = trail.write() / "000000000001-20261120T07.jsonl"
    index = SegmentIndex(tmp_path / "index")
    wanted = Wanted(clients=frozenset({"pond"}))
    assert fates_of(wanted, [TrailFolder(trail.folder)], index).messages == ()
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"pump", b"pond"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    (found,) = fates_of(wanted, [TrailFolder(trail.folder)], index).messages
    assert found.is_changed


def test_it_names_nobody(folder: Path, tmp_path: Path) -> None:
    index = SegmentIndex(tmp_path / "index")
    fates_of(Wanted(since_us=1), [TrailFolder(folder)], index)
    text = b"".join(path.read_bytes() for path in (tmp_path / "index").iterdir())
    assert not [name for name in (*CLIENTS, *TOPICS[:3], _id(EACH)) if name.encode() in text]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o702])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index").chmod(mode)
    with pytest.raises(UnsafeIndex, match="who could hide records from you"):
        SegmentIndex(tmp_path / "index")


def test_a_segment_with_more_names_than_are_kept_is_always_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("spark_audit.segment_index._MOST_NAMES", 10)
    trail = TrailBuilder(tmp_path / "trail")
    for number in range(50):
        trail.add("accepted", client=f"pump-{number}", topic="plant/heat", exchange=1)
    trail.write()
    segments = each_segment(TrailFolder(trail.folder))  # each is open until the next is asked for
    segment = next(segments)
    contents = SegmentIndex(tmp_path / "index").contents_of(segment)
    assert contents is not None
    assert contents.has_client(["anybody"])


def test_every_field_by_which_a_search_follows_a_message_is_in_the_index() -> None:
    """A handler that reads another identifier needs it in the index too."""
    source = Path(fates.__file__).read_text() + Path(life.__file__).read_text()
    forms = (Form.MESSAGE_ID, Form.MESSAGE_IDS, Form.CORRELATION_ID)
    named = {each.name for each in FIELDS if each.form in forms or each.name.endswith("_id")}
    assert {name for name in named if f'"{name}"' in source} == set(segment_index._IDENTIFIERS)

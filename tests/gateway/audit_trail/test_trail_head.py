"""The store knows the last line of its trail: whatever touches lines that have no digest yet is told."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.audit_trail.exporter import Exporter, export_pending
from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.segment import SegmentLimits, Trail
from gateway.audit_trail.trail_head import (
    EMPTY_HEAD,
    AnotherBatch,
    TrailChanged,
    TrailHead,
    difference,
    head_of_trail,
    keep_from_creation,
    known_by,
)
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.unit_of_work import TRAIL_HEAD
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from spark_audit.verify import Verdict, verify
from tests.every_case import for_every
from tests.gateway.audit_trail.conftest import AUDIT_QUEUE, NOTE_TAKER, Store
from tests.gateway.audit_trail.test_exporter import Power
from tests.trail_lines import in_batch

AT = 1_795_158_000_000_000
CLIENTS = ("a", "b", "c", "d", "e", "f")
Rows = list[bytes]


def _session(client: str) -> tuple[object, ...]:
    return (NoteKind.SESSION, AT, client, 1, "opened", 4, True)


def hashed_anew(lines: bytes, head: str = "0" * 64) -> bytes:
    """The same records with links and hashes that hold: for that nobody needs a key."""
    anew = b""
    for line in lines.splitlines():
        record = json.loads(line)
        del record["hash"]
        text = json.dumps(record | {"prev": head}, separators=(",", ":")).encode()
        head = hashlib.sha256(text).hexdigest()
        anew += text[:-1] + b',"hash":"' + head.encode() + b'"}\n'
    return anew


def _write(store: Store, *clients: str) -> None:
    """An exporter that writes a batch for each client, and is killed with its segment open."""
    for client in clients:
        store.commit(_session(client))
    export_pending(store.queue_manager, store.trail, close_segment=False)


def _open_segment(store: Store) -> Path:
    (path,) = store.trail.glob("*.open")
    return path


def _known(store: Store) -> TrailHead:
    known = TrailHead.from_text(store.queue_manager.trail_head())
    assert known is not None
    return known


def _touch(change: Callable[[Rows], Rows], *, anew: bool) -> Callable[[Store], None]:
    def touch(store: Store) -> None:
        path = _open_segment(store)
        lines = b"".join(change(path.read_bytes().splitlines(keepends=True)))
        path.write_bytes(hashed_anew(lines) if anew else lines)

    return touch


def _three_lines(rows: Rows) -> Rows:
    return [in_batch(row, b"opened", b"closed") if 1 <= at <= 3 else row for at, row in enumerate(rows)]


def _replace_trail(store: Store) -> None:
    """The trail of another gateway in its place."""
    for path in (*store.trail.glob("digests/*"), *store.trail.glob("*.open")):
        path.unlink()
    with Direct(store.trail.parent.parent / "other", rights=NOTE_TAKER) as other:
        of_other = Store(other, store.trail)
        of_other.commit(_session("x"))
        export_pending(other, store.trail, close_segment=True)


def _close_by_hand(store: Store) -> None:
    """Lines are cut off, and what is left is named as if an early version of the program had closed it."""
    path = _open_segment(store)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    path.rename(path.with_suffix(".jsonl"))


ATTACKS: dict[str, tuple[Callable[[Store], object], str]] = {
    "three lines are changed and hashed anew": (_touch(_three_lines, anew=True), "lines up to 6 .* hashed anew"),
    "three lines are changed": (_touch(_three_lines, anew=False), "line 2 of segment .* was changed"),
    "the last line is cut off": (_touch(lambda rows: rows[:-1], anew=False), "ends with line 5, but 6 were written"),
    "a line is removed, and the rest hashed anew": (_touch(lambda rows: rows[1:], anew=True), "it was cut"),
    "a line is added in front, and the rest hashed anew": (
        _touch(lambda rows: [rows[0], *rows], anew=True),
        "hashed anew",
    ),
    "the segment is removed, and a digest is left": (
        lambda store: (_open_segment(store).unlink(), (store.trail / "digests" / f"{1:012d}.digest").touch()),
        "is not in the trail",
    ),
    "another trail is put in its place": (_replace_trail, "is not that of the lines|is not in the trail"),
    "it is cut, and closed by hand": (_close_by_hand, "ends with line 3, but 6 were written"),
}


@for_every(ATTACKS)
def test_an_open_segment_that_was_touched_is_told_and_not_signed(
    attack: tuple[Callable[[Store], object], str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    touch, told = attack
    data = tmp_path_factory.mktemp("attacked") / "data"
    with Direct(data, rights=NOTE_TAKER) as queue_manager:
        store = Store(queue_manager, data / "trail")
        _write(store, *CLIENTS)
        known = _known(store)
        assert not difference(store.trail, known)
        touch(store)
        digests = sorted(store.trail.glob("digests/*"))
        assert re.search(told, difference(store.trail, known))
        store.commit(_session("later"))
        with pytest.raises(TrailChanged, match=told):
            export_pending(queue_manager, store.trail, close_segment=True)
        assert sorted(store.trail.glob("digests/*")) == digests
        assert queue_manager.depth(AUDIT_QUEUE) == 1


def test_the_head_is_kept_with_the_notes_that_leave_the_queue(store: Store) -> None:
    _write(store, "a", "b")
    known, lines = _known(store), _open_segment(store).read_bytes()
    assert (known.segment, known.lines, known.size_bytes) == (_open_segment(store).stem, 2, len(lines))
    assert (known.gateway, known.batch) == (store.gateway, 2)
    assert known.head == json.loads(lines.splitlines()[-1])["hash"]
    power = Power(store.queue_manager)
    store.commit(_session("c"))
    with pytest.raises(QueueManagerError):
        export_pending(power, store.trail, close_segment=False)
    assert _known(store) == known
    assert len(_open_segment(store).read_bytes().splitlines()) == 3, "synced before the commit that was lost"


def _crashed(store: Store, *ahead: str) -> Power:
    """An exporter that died between lines and commit: the trail is ahead of the store by these batches."""
    _write(store, "a")
    for client in ahead:
        store.commit(_session(client))
    power = Power(store.queue_manager)
    with pytest.raises(QueueManagerError):
        export_pending(power, store.trail, close_segment=False)
    power.is_on = True
    return power


def _told(store: Store) -> list[object]:
    return [record["client"] for record in store.records()]


def test_lines_ahead_of_the_store_stay_when_their_batches_come_again(store: Store) -> None:
    power = _crashed(store, "b", "c")
    export_pending(power, store.trail, close_segment=True)
    assert _told(store) == ["a", "b", "c"]
    assert not list(store.trail.glob("*.torn"))
    assert verify(store.trail).verdict is Verdict.INTACT


def test_lines_ahead_of_the_store_that_say_something_else_are_set_aside_and_written_anew(store: Store, caplog) -> None:
    power = _crashed(store, "b", "c")
    path = _open_segment(store)
    first, second, third = path.read_bytes().splitlines()
    path.write_bytes(hashed_anew(b"\n".join((first, in_batch(second, b"\xa1b", b"\xa1x"), third))))
    forged = path.read_bytes().splitlines(keepends=True)[1:]
    export_pending(power, store.trail, close_segment=True)
    assert _told(store) == ["a", "b", "c"]
    assert "trail lines written anew" in caplog.text
    (torn,) = store.trail.glob("*.torn")
    assert torn.read_bytes() == b"".join(forged)
    assert verify(store.trail).verdict is Verdict.INTACT


def _add_line(store: Store, batch: int) -> None:
    """A line of a batch that the store has not committed, with a link and a hash that hold."""
    path = _open_segment(store)
    last = path.read_bytes().splitlines(keepends=True)[-1]
    record = json.loads(last) | {"batch": batch, "sequence": json.loads(last)["sequence"] + 1}
    path.write_bytes(hashed_anew(path.read_bytes() + json.dumps(record, separators=(",", ":")).encode() + b"\n"))


def test_lines_that_no_batch_has_are_not_signed(store: Store) -> None:
    _write(store, "a")
    whole = _open_segment(store).read_bytes()
    _add_line(store, batch=9)
    with pytest.raises(TrailChanged, match=r"lines 2 to 2 of segment .* belong to no waiting batch"):
        export_pending(store.queue_manager, store.trail, close_segment=True)
    store.commit(_session("b"))
    with pytest.raises(AnotherBatch):
        export_pending(store.queue_manager, store.trail, close_segment=True)
    assert not list(store.trail.glob("digests/*"))
    assert store.queue_manager.depth(AUDIT_QUEUE) == 1
    _open_segment(store).write_bytes(whole)
    export_pending(store.queue_manager, store.trail, close_segment=True)
    assert _told(store) == ["a", "b"]


def test_a_segment_whose_lines_are_to_be_confirmed_is_not_closed_by_the_clock(store: Store) -> None:
    power = _crashed(store, "b")
    known = _known(store)
    with Trail.open(store.trail, known=known) as trail:
        trail.close_segment()
        assert not trail.digests.last_number
        assert Exporter(power, trail).drain() == 1
        trail.close_segment()
        assert trail.digests.last_number == 1
    assert verify(store.trail).verdict is Verdict.INTACT


def test_a_segment_that_is_edited_while_it_is_written_is_not_signed(store: Store) -> None:
    for client in CLIENTS:
        store.commit(_session(client))
    with Trail.open(store.trail) as trail:
        Exporter(store.queue_manager, trail).drain()
        path = _open_segment(store)
        whole = path.read_bytes()
        anew = hashed_anew(b"".join(_three_lines(whole.splitlines(keepends=True))))
        for forged, told in ((anew, "hashed anew"), (whole[:-9], "it was cut"), (whole + b"{}", "are not the")):
            path.write_bytes(forged)
            with pytest.raises(TrailChanged, match=told):
                trail.close_segment()
        path.write_bytes(whole)
        trail.close_segment()
    assert verify(store.trail).verdict is Verdict.INTACT


def test_a_closed_segment_without_a_digest_is_signed_only_as_far_as_the_store_knows_it(store: Store, caplog) -> None:
    _write(store, "a", "b")
    _add_line(store, batch=3)
    path = _open_segment(store)
    path.rename(path.with_suffix(".jsonl"))
    with Trail.open(store.trail, known=_known(store)) as trail:
        assert trail.digests.last_number == 0
    assert "the store does not know its lines" in caplog.text


def test_a_store_of_an_earlier_version_is_told_its_trail_at_the_first_start(store: Store, caplog) -> None:
    caplog.set_level("INFO")
    _write(store, "a")
    engine = store.queue_manager._engine
    unit = engine.begin()
    unit.delete_state(*TRAIL_HEAD)
    engine.submit(unit)
    export_pending(store.queue_manager, store.trail, close_segment=False)
    assert "trail head kept for the first time" in caplog.text
    assert _known(store).lines == 1


def _died_at_the_first_unit(store: Store) -> Power:
    """The first exporter of a store died between lines and commit."""
    store.commit(_session("a"))
    power = Power(store.queue_manager)
    with pytest.raises(QueueManagerError):
        export_pending(power, store.trail, close_segment=False)
    power.is_on = True
    return power


def test_lines_of_a_brand_new_store_that_were_changed_before_its_first_unit_left_are_written_anew(
    store: Store, caplog
) -> None:
    power = _died_at_the_first_unit(store)
    path = _open_segment(store)
    path.write_bytes(hashed_anew(in_batch(path.read_bytes(), b"\xa1a", b"\xa1x")))
    export_pending(power, store.trail, close_segment=True)
    assert _told(store) == ["a"]
    assert "trail lines written anew" in caplog.text
    assert verify(store.trail).verdict is Verdict.INTACT


def test_lines_that_were_added_to_the_empty_trail_of_a_new_store_are_not_signed(store: Store) -> None:
    power = _died_at_the_first_unit(store)
    _add_line(store, batch=2)
    with pytest.raises(TrailChanged, match="belong to no waiting batch"):
        export_pending(power, store.trail, close_segment=True)
    assert not list(store.trail.glob("digests/*"))


def test_a_new_store_knows_from_its_creation_how_far_the_trail_beside_it_reaches(store: Store, tmp_path: Path) -> None:
    engine = store.queue_manager._engine
    keep_from_creation(engine, store.trail)
    assert known_by(engine) == EMPTY_HEAD
    _write(store, "a")
    keep_from_creation(engine, store.trail)
    assert known_by(engine) == replace(head_of_trail(store.trail), gateway=store.gateway, batch=1)
    with Direct(tmp_path / "other", rights=NOTE_TAKER) as other:
        keep_from_creation(other._engine, store.trail)
        assert known_by(other._engine) == head_of_trail(store.trail)


def test_a_trail_that_was_moved_away_begins_anew_at_every_crash(store: Store, caplog) -> None:
    _write(store, "a")
    store.trail.rename(store.trail.with_name("trail-before"))
    store.commit(_session("b"))
    with pytest.raises(QueueManagerError):
        export_pending(Power(store.queue_manager), store.trail, close_segment=False)
    assert "trail begins anew" in caplog.text
    export_pending(store.queue_manager, store.trail, close_segment=True)
    first, second = store.records()
    assert (first["event"], second["client"]) == ("trail_begun_late", "b")


def test_segments_that_were_signed_ahead_of_the_store_are_as_known(store: Store) -> None:
    _write(store, "a")
    known = _known(store)
    for client in CLIENTS:
        store.commit(_session(client))
    power = Power(store.queue_manager)
    with (
        Trail.open(store.trail, known=known, limits=SegmentLimits(size_bytes=1_500)) as trail,
        pytest.raises(QueueManagerError),
    ):
        Exporter(power, trail).step()
    assert len(list(store.trail.glob("digests/*"))) > 1
    assert not difference(store.trail, known)
    export_pending(store.queue_manager, store.trail, close_segment=True)
    assert _told(store) == ["a", *CLIENTS]
    assert verify(store.trail).verdict is Verdict.INTACT


def test_only_the_writer_of_the_trail_reads_and_keeps_its_head(tmp_path: Path) -> None:
    with Direct(tmp_path / "data") as application:
        for call in (application.trail_head, lambda: application.keep_trail_head("{}")):
            with pytest.raises(QueueManagerError) as refused:
                call()
            assert refused.value.reason_code == ReasonCode.MQRC_NOT_AUTHORIZED
    with Direct(tmp_path / "data", rights=NOTE_TAKER) as writer:
        with pytest.raises(QueueManagerError) as refused:
            writer.keep_trail_head("{}")
        assert refused.value.reason_code == ReasonCode.MQRC_UOW_NOT_AVAILABLE


def test_a_head_of_another_version_or_form_is_refused() -> None:
    for text in ("{", "1", "[]", "{}", '{"version":2}', '{"version":1,"segment":"a"}'):
        with pytest.raises(StoreError, match="the head of the trail"):
            TrailHead.from_text(text)
    assert TrailHead.from_text("") is None


def test_the_head_of_a_trail_is_that_of_its_last_line_or_digest(store: Store) -> None:
    assert head_of_trail(store.trail) is None
    _write(store, "a", "b")
    known = _known(store)
    kept = (known.segment, known.lines, known.size_bytes, known.head)
    for _ in ("open", "closed"):
        found = head_of_trail(store.trail)
        assert found is not None
        assert (found.segment, found.lines, found.size_bytes, found.head) == kept
        export_pending(store.queue_manager, store.trail, close_segment=True)

"""Each closed segment and each quiet time has one signed digest, whatever dies in between."""

import hashlib
import os
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gateway.audit_trail.digests import Provenance
from gateway.audit_trail.keys.signing_key import make_next_key, next_key_path, read_key
from gateway.audit_trail.records import Chain
from gateway.audit_trail.segment import SegmentLimits, Trail
from mq_adapters.kernel_clock import STATES, UNKNOWN, ClockReading
from mq_adapters.reasons import StoreError
from spark_audit.trail.digest import _CLOCK_STATE, Digest, parse_digest
from spark_audit.verify import Verdict, verify
from tests.gateway.audit_trail.conftest import GATEWAY, NOON, NOON_US

PROVENANCE = Provenance(code_version="1.2", table_version="7", configuration_sha256="c" * 64)
MINUTE_US = 60_000_000


def _digests(folder: Path) -> list[Digest]:
    return [parse_digest(path.read_bytes()) for path in sorted((folder / "digests").glob("*.digest"))]


def _kinds(folder: Path) -> list[tuple[str, str]]:
    return [(digest.kind, digest.segment) for digest in _digests(folder)]


def _root(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, word for word."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + _root(leaves[:split]) + _root(leaves[split:])).digest()


def test_a_digest_says_what_the_closed_segment_holds(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock, provenance=PROVENANCE) as trail:
        for _ in range(3):
            trail.append(*batches())
        clock.now += timedelta(minutes=3)
        trail.close_segment()
    (segment,) = folder.glob("*.jsonl")
    lines = segment.read_bytes().splitlines()
    (digest,) = _digests(folder)
    assert (digest.number, digest.kind, digest.gateway, digest.segment) == (1, "segment", GATEWAY, segment.stem)
    assert (digest.first_sequence, digest.last_sequence, digest.records) == (1, 6, 6)
    assert (digest.size_bytes, digest.sha256) == (
        segment.stat().st_size,
        hashlib.sha256(segment.read_bytes()).hexdigest(),
    )
    assert digest.merkle_root == _root(lines).hex()
    assert f'"hash":"{digest.head}"}}'.encode() in lines[-1]
    assert digest.previous == "0" * 64
    assert (digest.from_us, digest.until_us) == (NOON_US, NOON_US + 3 * MINUTE_US)
    assert (digest.code_version, digest.table_version, digest.configuration_sha256) == ("1.2", "7", "c" * 64)
    key = read_key(folder.parent / "trail-key.pem")
    assert digest.countersigner == key.public_key
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(digest.public_key)).verify(
        bytes.fromhex(digest.signature), digest.signing_input()
    )


def test_each_digest_says_what_the_kernel_said_of_its_clock(folder, clock, batches, monkeypatch) -> None:
    told = iter(
        (
            ClockReading(state="ok", maximum_error_us=21_000, estimated_error_us=340),
            ClockReading(state="error", maximum_error_us=16_000_000, estimated_error_us=16_000_000),
            ClockReading(),
        )
    )
    monkeypatch.setattr("gateway.audit_trail.digests.read_clock", lambda: next(told))
    with Trail.open(folder, now=clock) as trail:
        for _ in range(3):
            trail.append(*batches())
            trail.close_segment()
    clocks = [
        (digest.clock_state, digest.clock_maximum_error_us, digest.clock_estimated_error_us)
        for digest in _digests(folder)
    ]
    assert clocks == [("ok", 21_000, 340), ("error", 16_000_000, 16_000_000), ("unknown", 0, 0)]
    assert verify(folder).verdict is Verdict.INTACT
    of_one, of_other = "the clock was synchronised at 1 digest, at most 21 ms off", "the clock at 1 digest, the last of"
    (said,) = (note for note in verify(folder).notes if of_one in note)
    assert said == f"{of_one}, as the kernel says; nothing synchronised {of_other} them digest 2"
    assert said in verify(folder).notes


def test_every_state_of_the_kernel_is_one_that_a_digest_may_have() -> None:
    for state in (*STATES, UNKNOWN):
        assert _CLOCK_STATE.fullmatch(state)


def test_a_run_within_one_hour_size_and_quarter_is_one_segment_with_one_digest(folder, clock, batches) -> None:
    clock.now = NOON.replace(minute=0)
    with Trail.open(folder, now=clock) as trail:
        for _ in range(14):
            trail.append(*batches())
            trail.sync()
            clock.now += timedelta(minutes=1)
            trail.tend()
        trail.finish(GATEWAY)
    assert [path.name for path in folder.iterdir() if path.suffix == ".jsonl"] == ["000000000001-20261120T12.jsonl"]
    assert _kinds(folder) == [("segment", "000000000001-20261120T12")]
    assert verify(folder).records == 28


def test_a_quiet_time_has_a_digest_for_each_quarter_of_an_hour(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.note_quiet(GATEWAY)
        trail.close_segment()
        for _ in range(31):
            clock.now += timedelta(minutes=1)
            trail.note_quiet(GATEWAY)
    closed, first, second = _digests(folder)
    assert [digest.kind for digest in (closed, first, second)] == ["segment", "interval", "interval"]
    assert (first.from_us, first.until_us) == (NOON_US, NOON_US + 15 * MINUTE_US)
    assert (second.from_us, second.until_us) == (NOON_US + 15 * MINUTE_US, NOON_US + 30 * MINUTE_US)
    assert (second.records, second.merkle_root, second.head) == (0, "", closed.head)
    assert verify(folder).verdict is Verdict.INTACT


def test_an_orderly_end_leaves_no_time_without_a_digest(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.finish(GATEWAY)
        trail.finish(GATEWAY)
        clock.now += timedelta(minutes=4)
        trail.finish(GATEWAY)
    assert [digest.kind for digest in _digests(folder)] == ["segment", "interval"]


def test_the_time_while_no_gateway_ran_is_not_sworn_to_be_quiet(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.finish(GATEWAY)
    clock.now += timedelta(days=2)
    with Trail.open(folder, now=clock) as trail:
        clock.now += timedelta(minutes=15)
        trail.note_quiet(GATEWAY)
    assert _digests(folder)[-1].from_us == NOON_US + 2 * 24 * 60 * MINUTE_US


def test_each_digest_names_the_one_before(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        for _ in range(3):
            trail.append(*batches())
            trail.close_segment()
    files = sorted((folder / "digests").iterdir())
    assert [path.name for path in files] == [f"{number:012}.digest" for number in (1, 2, 3)]
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    assert [digest.previous for digest in _digests(folder)] == ["0" * 64, *hashes[:2]]


def test_a_crash_between_digest_and_name_is_mended_and_leaves_one_digest(folder, clock, batches, monkeypatch) -> None:
    def lost(_trail: Trail, _path: Path) -> None:
        raise OSError(5, "the machine went down")

    with monkeypatch.context() as crash, Trail.open(folder, now=clock) as trail:
        crash.setattr(Trail, "_name_closed", lost)
        trail.append(*batches())
        with pytest.raises(StoreError):
            trail.close_segment()
    assert [path.suffix for path in folder.iterdir() if path.is_file()] == [".open"]
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    assert [segment for _, segment in _kinds(folder)] == [path.stem for path in sorted(folder.glob("*.jsonl"))]
    assert verify(folder).verdict is Verdict.INTACT


def test_a_crash_before_the_digest_continues_the_segment(folder, clock, batches, monkeypatch) -> None:
    with monkeypatch.context() as crash, Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        crash.setattr("gateway.audit_trail.digests.put_in_place", _no_space)
        with pytest.raises(StoreError, match="No space left"):
            trail.close_segment()
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    (digest,) = _digests(folder)
    assert digest.records == 4
    assert verify(folder).verdict is Verdict.INTACT


def _no_space(*_arguments: object) -> None:
    raise OSError(28, "No space left on device")


def test_segments_of_a_version_without_digests_get_theirs(folder, clock, batches) -> None:
    for number in (1, 2):
        (folder / f"{number:012}-20261120T12.jsonl").write_bytes(batches()[0])
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    assert [(digest.first_sequence, digest.last_sequence) for digest in _digests(folder)] == [(1, 2), (3, 4), (5, 6)]
    assert verify(folder).verdict is Verdict.INTACT


def test_records_of_another_store_begin_a_segment(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        lines, head, gateway = batches()
        trail.append(lines, head, gateway)
        other = Chain(sequence=0, head=head)
        record = {"version": 1, "batch": 1, "gateway": "b" * 24, "kind": "session", "at_us": NOON_US}
        trail.append(other.seal([record]), other.head, "b" * 24)
        trail.close_segment()
    assert [(digest.gateway, digest.records) for digest in _digests(folder)] == [(GATEWAY, 2), ("b" * 24, 1)]
    assert verify(folder).verdict is Verdict.INTACT


def test_numbers_and_chain_go_on_where_every_segment_was_removed(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    (segment,) = folder.glob("*.jsonl")
    segment.unlink()
    with Trail.open(folder, now=clock) as trail:
        assert trail.head == _digests(folder)[0].head
        assert trail.end_of(GATEWAY).sequence == 2
        trail.append(*batches())
    assert [path.name for path in folder.glob("*.open")] == ["000000000002-20261120T12.open"]


def test_the_key_is_handed_over_by_a_digest_that_the_old_one_signs(folder, clock, batches) -> None:
    path = folder.parent / "trail-key.pem"
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
        old = read_key(path).public_key
        new = make_next_key(path).public_key
        trail.tend()
        trail.append(*batches())
        trail.close_segment()
    before, rotation, after = _digests(folder)
    assert (rotation.kind, rotation.countersigner, rotation.new_public_key) == ("rotation", old, new)
    assert rotation.is_countersigned()
    assert rotation.allowed_by.endswith(f"uid {os.getuid()})")
    assert (before.countersigner, after.countersigner) == (old, new)
    assert after.is_countersigned(), "the new key has signed something at once"
    assert not next_key_path(path).exists()
    assert read_key(path).public_key == new
    assert path.with_suffix(".pub").read_text() == new + "\n"
    assert verify(folder).verdict is Verdict.INTACT


def test_a_crash_between_the_rotation_and_the_new_keys_name_is_mended(folder, clock, batches, monkeypatch) -> None:
    path = folder.parent / "trail-key.pem"
    with monkeypatch.context() as crash, Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
        new = make_next_key(path).public_key
        crash.setattr("gateway.audit_trail.digests.take_over", _no_space)
        with pytest.raises(OSError, match="No space"):
            trail.tend()
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    assert [digest.kind for digest in _digests(folder)] == ["segment", "rotation", "segment"]
    assert read_key(path).public_key == new
    assert verify(folder).verdict is Verdict.INTACT


def test_a_next_key_that_cannot_be_used_is_told_once_and_stops_nothing(folder, clock, batches, caplog) -> None:
    path = folder.parent / "trail-key.pem"
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
        next_key_path(path).write_bytes(b"no key")
        next_key_path(path).chmod(0o600)
        for _ in range(3):
            trail.tend()
        trail.append(*batches())
        trail.close_segment()
    assert [digest.kind for digest in _digests(folder)] == ["segment", "segment"]
    assert [record.getMessage().partition(" reason")[0] for record in caplog.records] == ["signing key not handed over"]
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())


def test_a_segment_ends_at_its_size_with_a_digest(folder, clock, batches) -> None:
    first = batches()
    with Trail.open(folder, now=clock, limits=SegmentLimits(size_bytes=len(first[0]))) as trail:
        trail.append(*first)
        trail.append(*batches())
    assert [digest.records for digest in _digests(folder)] == [2]


def test_the_last_digest_damaged_stops_the_trail_with_what_to_do(folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    (path,) = (folder / "digests").iterdir()
    path.write_bytes(b"{}")
    with pytest.raises(StoreError, match="put a copy of it there"):
        Trail.open(folder, now=clock)

"""Digests against segments, copies and a key: each way to touch a trail is found by Spark, and by verify too."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from spark_audit.audit_input import input_of_trails
from spark_audit.controls import digests, integrity, timeliness
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.controls.control import Control
from spark_audit.controls.digests import segments_of
from spark_audit.engines.duck import DuckEngine
from spark_audit.judgement import Judgement
from spark_audit.period import AROUND_US, EVERYTHING, Period
from spark_audit.policy import Policy
from spark_audit.read import trail_files
from spark_audit.verify import Verdict, verify
from tests.spark_audit.conftest import ChainedTrail, Facts, SignedTrail, TrailBuilder, signing_key
from tests.spark_audit.verify.test_countersigning import LATE, late_trail

PER_SEGMENT = 3


def _filled(signed, other_key):
    """Three segments of three records, each with its digest; between them a new key (digest 2) and a quiet time (4)."""
    of_gateway = {"gateway": signed.gateway}
    signed.records(PER_SEGMENT, **of_gateway), signed.close(), signed.rotate(other_key)
    signed.records(PER_SEGMENT, **of_gateway), signed.close(), signed.digest("interval")
    signed.records(PER_SEGMENT, **of_gateway), signed.close()
    return signed


@pytest.fixture
def whole(signed, other_key):
    return _filled(signed, other_key)


def _segment(signed, number: int) -> Path:
    return signed.folder / f"{signed.segments[number - 1]}.jsonl"


def _digest(signed, number: int) -> Path:
    return signed.digests / f"{number:012d}.digest"


def _edited(signed) -> None:
    path = _segment(signed, 2)
    path.write_bytes(path.read_bytes().replace(b"boiler", b"cooler", 1))


def _cut_tail(signed) -> None:
    path = _segment(signed, 3)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _replaced(signed) -> None:
    """All lines anew, with a good chain and good numbers: only the digests remember."""
    builder = type(signed.trail)(signed.folder)
    for segment in signed.segments:
        builder.lines = []
        for _ in range(PER_SEGMENT):
            builder.add("accepted", gateway=signed.gateway, client="cooler")
        builder.write(f"{segment}.jsonl")


def _dropped(*segments: int, cut: tuple[int, ...] = ()) -> Callable[..., None]:
    def touch(signed) -> None:
        for number in segments:
            _segment(signed, number).unlink()
        for number in cut:
            _digest(signed, number).unlink()

    return touch


def _rewritten(number: int, old: bytes, new: bytes) -> Callable[..., None]:
    def touch(signed) -> None:
        data = _digest(signed, number).read_bytes()
        assert old in data
        _digest(signed, number).write_bytes(data.replace(old, new))

    return touch


def _by_a_strange_key(signed) -> None:
    """A digest more, well made, by the key that was handed over."""
    signed.key = Ed25519PrivateKey.from_private_bytes(bytes([9]) * 32)
    signed.digest("interval")


#: What is done to the trail, and words of what the control of digests then says; "" where it has nothing to say.
TOUCHES: dict[str, tuple[Callable[..., object], str]] = {
    "nothing": (lambda _signed: None, ""),
    "edit": (_edited, ""),
    "cut tail": (_cut_tail, "lines: its digest says 3, the segment 2"),
    "cut tail and its digest": (_dropped(3, cut=(5,)), ""),
    "a segment dropped": (_dropped(3), "it is missing: its digest is there"),
    "a segment in the middle dropped": (_dropped(2), "it is missing: its digest is there"),
    "all replaced": (_replaced, "head: its digest says"),
    "a digest dropped": (_dropped(cut=(2,)), "digest 2 was due"),
    "an old digest replayed": (
        lambda signed: shutil.copyfile(_digest(signed, 3), _digest(signed, 5)),
        "it holds digest 3",
    ),
    "a digest changed": (_rewritten(3, b'"0.1.0"', b'"0.2.0"'), "its signature is not that of its key"),
    "a strange key": (_by_a_strange_key, "a key that no rotation brought"),
    "no digest": (lambda signed: _digest(signed, 4).write_bytes(b'{"version":1}\n'), "its fields are not"),
    "a digest too long": (lambda signed: _digest(signed, 4).write_bytes(b" " * 5_000), "longer than 4096 bytes"),
    "digests in the middle dropped": (_dropped(cut=(3, 4)), "it has no digest, later ones have"),
}


def _details(facts: Facts, control: Control = digests.CONTROL, **changes: Any) -> list[str]:
    """What a control says, with something else in the audit input."""
    facts.audit_input = replace(facts.audit_input, **changes)
    return [f"{row['subject']}: {row['detail']}" for row in facts.found(control)]


def _of_segments(signed: SignedTrail, facts: Facts, *places: int, due: Period = EVERYTHING) -> list[str]:
    """What is found where only some segments are read."""
    there = segments_of(facts.engine).get("", {})
    read = {signed.segments[place - 1]: there[signed.segments[place - 1]] for place in places}
    trail = digests.TrailToJudge(name="", digests=digests.read_digests(signed.digests), segments=read, due=due)
    return sorted(f"{row['subject']}: {row['detail']}" for row in trail.findings())


def test_a_signed_trail_is_whole_with_a_rotation_and_a_quiet_time(whole, read) -> None:
    own = {"": digests.read_digests(whole.digests)}
    assert _details(read(whole.folder), copies=own, public_key=whole.public_key) == []


@pytest.fixture(scope="module")
def touched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of a trail for each touch, each of a gateway of its own."""
    folders: dict[str, Path] = {}
    for number, (touch, (change, _words)) in enumerate(TOUCHES.items(), start=1):
        folder = tmp_path_factory.mktemp("touched") / "trail"
        signed = _filled(SignedTrail(TrailBuilder(folder), signing_key(1), f"{number:024x}"), signing_key(2))
        change(signed)
        folders[touch] = folder
    return folders


@pytest.fixture(scope="module")
def told(touched: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], list[str]]]:
    """By touch: what the control of digests says of its trail, and those of hashes and links; all read together."""
    scratch = tmp_path_factory.mktemp("scratch")
    engine = DuckEngine(scratch, "1g")
    facts = Facts(engine, input_of_trails([trail_files(folder, scratch) for folder in touched.values()]))
    of_digests = _details(facts)
    of_lines = _details(facts, integrity.HASHES) + _details(facts, integrity.CHAIN)
    engine.close()
    for line in of_digests + of_lines:
        assert any(line.startswith(f"{folder}/") for folder in touched.values()), line
    return {
        touch: tuple([line for line in lines if line.startswith(f"{folder}/")] for lines in (of_digests, of_lines))
        for touch, folder in touched.items()
    }


@pytest.mark.parametrize("touch", TOUCHES)
def test_each_touch_is_found_by_spark_and_by_verify(touched, told, touch: str) -> None:
    _change, words = TOUCHES[touch]
    of_digests, of_lines = told[touch]
    assert any(words in line for line in of_digests) == bool(words), of_digests
    is_found = bool(of_digests or of_lines)
    assert is_found == (verify(touched[touch]).verdict is Verdict.VIOLATED)
    assert is_found == (touch not in ("nothing", "cut tail and its digest"))


ONES_PUBLIC = signing_key(1).public_key().public_bytes_raw().hex()
HOUR_US = 3_600_000_000
#: What the fourth digest of a chain of keys is, and words of what the control says; "" where it has nothing to say.
CHAINS: dict[str, tuple[dict[str, Any], str]] = {
    "a quiet time": ({}, ""),
    "a rotation": ({"kind": "rotation", "new_public_key": "f" * 64}, ""),
    "another key": ({"signer": signing_key(9)}, "the digest before it names another key"),
    "another configured key": ({"countersigner": "f" * 64}, "a key that no rotation brought"),
    "no countersignature after an hour": (
        {"until_us": 1_795_158_900_000_000 + HOUR_US, "countersign": False},
        "it has no countersignature of",
    ),
    "a countersignature after an hour": ({"until_us": 1_795_158_900_000_000 + HOUR_US, "countersign": True}, ""),
    "a renewal": ({"kind": "renewal", "signer": signing_key(9)}, "it begins a new chain of keys; until a policy"),
    "a countersignature of another key": (
        {"countersign": True, "countersigner": ONES_PUBLIC, "by": signing_key(9)},
        "its countersignature is not that of",
    ),
}


def _chained(folder: Path, number: int, fields: dict[str, Any]) -> ChainedTrail:
    chained = ChainedTrail(TrailBuilder(folder), signing_key(1), f"{number:024x}")
    for _ in range(3):
        chained.records(1, gateway=chained.gateway), chained.close()
    told = dict(fields)
    chained.key = told.pop("by", chained.key)
    chained.digest(told.pop("kind", "interval"), **told)
    return chained


def test_each_break_of_a_chain_of_keys_is_found_by_the_control_and_by_verify(read, tmp_path: Path) -> None:
    folders = {case: tmp_path / str(number) / "trail" for number, case in enumerate(CHAINS)}
    for number, (case, folder) in enumerate(folders.items(), start=1):
        _chained(folder, number, CHAINS[case][0])
    lines = _details(read(*folders.values()))
    for case, folder in folders.items():
        found = [line for line in lines if line.startswith(f"{folder}/")]
        words = CHAINS[case][1]
        assert any(words in line for line in found) == bool(words), (case, found)
        assert bool(found) == (verify(folder).verdict is Verdict.VIOLATED), (case, found)


def test_late_countersignatures_are_judged_as_verify_judges_them(read, tmp_path: Path) -> None:
    folders = {}
    for number, (case, (fields, _)) in enumerate(LATE.items()):
        folders[case] = late_trail(tmp_path / str(number) / "trail", fields).folder
    lines = _details(read(*folders.values()))
    for case, folder in folders.items():
        found = [line for line in lines if line.startswith(f"{folder}/")]
        assert len(found) == len(LATE[case][1]), (case, found)


def test_a_trail_that_leaves_its_chain_of_keys_is_found(read, tmp_path: Path) -> None:
    chained = _chained(tmp_path / "trail", 1, {})
    signed = SignedTrail(chained.trail, chained.key, chained.gateway)
    signed.number, signed.previous, signed.head = chained.number, chained.previous, chained.head
    signed.digest("interval")
    (told,) = _details(read(chained.folder))
    assert told == "digests/000000000005.digest: it leaves the chain of keys before it"


def test_a_renewal_that_the_policy_names_and_both_kinds_of_keys_are_known(read, tmp_path: Path) -> None:
    chained = _chained(tmp_path / "trail", 1, {"kind": "renewal", "signer": signing_key(9)})
    named = hashlib.sha256(_digest(chained, 4).read_bytes()).hexdigest()
    controls = Policy.parse(f'[[restore]]\nrecord = "{named}"\n'.encode()).controls()
    (control,) = (each for each in controls if each.identifier == digests.CONTROL.identifier)
    for key in (chained.public_key, chained.public_key_of(1), chained.public_key_of(3)):
        assert _details(read(chained.folder), control, public_key=key) == []
    told = _details(read(chained.folder), control, public_key=chained.public_key_of(7))
    assert told == ["digests: none is signed by the public key that was given"]


_OFF: dict[str, Any] = {"clock_state": "error", "clock_maximum_error_us": 16_000_000}
_FAR: dict[str, Any] = {"clock_maximum_error_us": 2_000_001}
_SILENT: dict[str, Any] = {"clock_state": "unknown", "clock_maximum_error_us": 0, "clock_estimated_error_us": 0}
#: What digests 4, 5 ... say of the clock, behind three by a clock that was right; what the control says, with a policy
#: that wants to know and may put up with another error.
CLOCKS: dict[str, tuple[list[dict[str, Any]], dict[str, int | bool], list[str]]] = {
    "right": ([{"clock_state": "ins"}, {"clock_maximum_error_us": 2_000_000}], {}, []),
    "off": ([_OFF, _OFF, {}, _OFF], {}, ["4: nothing synchronised", "7: nothing synchronised"]),
    "off by too much": ([_FAR, {}], {}, ["4: the clock could be off"]),
    "off by what is probable": ([{"clock_estimated_error_us": 2_000_001}], {}, ["4: the clock could be off"]),
    "off by what the policy allows": ([_FAR, {}], {"largest_error_ms": 2_001}, []),
    "first off by too much, then not steered": ([_FAR, _OFF], {}, ["4: the clock could be", "5: nothing synchr"]),
    "silent": ([_SILENT], {}, []),
    "silent where the policy wants to know": ([_SILENT], {"known": True}, ["4: nobody could say"]),
}


def test_a_digest_by_a_clock_that_nothing_steered_is_told_once_for_each_time(read, tmp_path: Path) -> None:
    for number, (case, (clocks, values, words)) in enumerate(CLOCKS.items(), start=1):
        chained = _chained(tmp_path / str(number) / "trail", number, clocks[0])
        for fields in clocks[1:]:
            chained.digest("interval", **fields)
        lines = _details(read(chained.folder), timeliness.SYNCHRONISED.with_values(values))
        assert len(lines) == len(words), (case, lines)
        for line, said in zip(sorted(lines), words, strict=True):
            assert line.startswith(f"digest {said}"), case


def test_digests_of_version_1_say_nothing_of_the_clock(whole, read) -> None:
    assert _details(read(whole.folder), timeliness.SYNCHRONISED) == []
    assert len(_details(read(whole.folder), timeliness.SYNCHRONISED.with_values({"known": True}))) == 1


def test_several_trails_that_are_read_together_are_told_apart(whole, read, tmp_path: Path) -> None:
    west = shutil.copytree(whole.folder, tmp_path / "west")
    (west / f"{whole.segments[1]}.jsonl").unlink()
    assert _details(read(whole.folder, west)) == [f"{west}/{whole.segments[1]}: it is missing: its digest is there"]


def test_a_tail_that_was_cut_with_its_digest_is_shown_by_the_copies(whole, read, tmp_path: Path) -> None:
    copies = shutil.copytree(whole.digests, tmp_path / "copies")
    _dropped(3, cut=(5,))(whole)
    told = _details(read(whole.folder), copies={"": digests.read_digests(copies)})
    assert told == ["digests/000000000005.digest: it is missing, though there is a copy of it"]


def test_a_trail_that_was_signed_by_another_is_shown_by_the_key(whole, read) -> None:
    told = _details(read(whole.folder), public_key=hashlib.sha256(b"another").hexdigest())
    assert told == ["digests: none is signed by the public key that was given"]


def test_what_retention_removed_is_not_missing_and_what_it_kept_is(whole, read) -> None:
    whole.remove(2)
    facts = read(whole.folder)
    assert _details(facts) == []
    assert verify(whole.folder).verdict is Verdict.INTACT
    (told,) = _of_segments(whole, facts)
    assert told == f"{whole.segments[2]}: it is missing: its digest is there"


def test_segments_outside_of_the_period_are_not_missing_and_those_within_are(whole, read) -> None:
    whole.records(1), whole.close(), whole.records(1), whole.close()
    facts = read(whole.folder)
    missing = "it is missing: its digest is there"
    eleven_us = 1_795_158_000_000_000 + 4 * 3_600_000_000
    ends_before_the_last = Period(from_us=eleven_us + AROUND_US, until_us=eleven_us - AROUND_US)
    assert _of_segments(whole, facts, 2, 4, due=ends_before_the_last) == [f"{whole.segments[2]}: {missing}"]
    with_the_last = Period(from_us=eleven_us + AROUND_US, until_us=eleven_us - AROUND_US + 1)
    assert _of_segments(whole, facts, 2, 4, due=with_the_last) == [
        f"{whole.segments[2]}: {missing}",
        f"{whole.segments[4]}: {missing}",
    ]


def test_a_trail_without_digests_is_a_violation_only_where_the_policy_wants_them(trail, read) -> None:
    trail.add("started")
    facts = read(trail.write())
    assert _details(facts) == []
    assert len(_details(facts, digests.CONTROL.with_values({"required": True}))) == 1


def test_a_segment_behind_the_last_digest_waits_for_its_own(whole, read) -> None:
    _dropped(cut=(5,))(whole)
    assert _details(read(whole.folder)) == []


#: What the controls find, and what verify finds; and whether the two disagree.
VERDICTS: tuple[tuple[str, Verdict, bool], ...] = (
    ("whole", Verdict.INTACT, False),
    ("cut", Verdict.VIOLATED, False),
    ("cut", Verdict.INTACT, True),
    ("whole", Verdict.VIOLATED, True),
)


@pytest.mark.parametrize(("state", "said", "is_told"), VERDICTS)
def test_two_verdicts_that_differ_are_told(whole, read, state: str, said: Verdict, is_told: bool) -> None:
    if state == "cut":
        _cut_tail(whole)
    facts = read(whole.folder)
    verification = replace(
        verify(whole.folder), verdict=said, reason="line 4", problem_count=int(said is Verdict.VIOLATED)
    )
    audit_input = replace(facts.audit_input, verifications=(verification,))
    judgement = Judgement(engine=facts.engine, audit_input=audit_input, controls=CONTROLS)
    (result,) = [each for each in judgement.results() if each.identifier == integrity.AGREEMENT.identifier]
    assert [(told.subject, "line 4" in told.detail) for told in result.sample] == [("trail trail", True)] * is_told
    assert result.tested == 1


def test_the_verdict_of_spark_is_that_of_all_controls_of_integrity() -> None:
    assert {integrity.LINES.identifier, digests.CONTROL.identifier} < set(integrity.OF_INTEGRITY)

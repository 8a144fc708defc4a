"""Each way to falsify a trail is found by `verify` and by the controls of integrity, with the same anchor."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_audit.audit_input import AuditInput, input_of_trails
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.controls.digests import read_digests
from spark_audit.controls.integrity import OF_INTEGRITY
from spark_audit.engines.duck import DuckEngine
from spark_audit.engines.engine import Engine
from spark_audit.engines.spark import SparkEngine
from spark_audit.judgement import Judgement
from spark_audit.read import trail_files
from spark_audit.verify import Anchor, Verdict, verify
from tests.spark_audit.conftest import Facts, SignedTrail, TrailBuilder, signing_key

PER_SEGMENT: Final = 4
#: No touch at all, and what only looks like an attack.
NOTHING: Final = "nothing"
HARMLESS: Final = "what only looks like an attack"

Rows = list[bytes]


def _fill(signed: SignedTrail, client: str = "boiler") -> SignedTrail:
    """Three segments with their digests, and a quiet time (digest 3) before the last."""
    for number in (1, 2, 3):
        for _ in range(PER_SEGMENT):
            message_id = f"{signed.trail.sequence + 1:048x}"
            signed.trail.add("accepted", gateway=signed.gateway, client=client, message_id=message_id)
        if number == 3:
            signed.digest("interval")
        signed.close()
    return signed


def _segment(signed: SignedTrail, number: int) -> Path:
    return signed.folder / f"{signed.segments[number - 1]}.jsonl"


def _lines(number: int, change: Callable[[Rows], Rows]) -> Callable[[SignedTrail], None]:
    """Changes the lines of a segment."""

    def touch(signed: SignedTrail) -> None:
        path = _segment(signed, number)
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return touch


def _dropped(segment: int, *digests: int) -> Callable[[SignedTrail], None]:
    def touch(signed: SignedTrail) -> None:
        _segment(signed, segment).unlink()
        for number in digests:
            (signed.digests / f"{number:012d}.digest").unlink()

    return touch


def _chain_anew(signed: SignedTrail) -> None:
    """Another history with a chain that holds, under the digests of the true one."""
    head = "0" * 64
    for number in (1, 2, 3):
        anew = b""
        for line in _segment(signed, number).read_bytes().replace(b"boiler", b"cooler").splitlines():
            record = json.loads(line)
            del record["hash"]
            text = json.dumps(record | {"prev": head}, separators=(",", ":")).encode()
            head = hashlib.sha256(text).hexdigest()
            anew += text[:-1] + b',"hash":"' + head.encode() + b'"}\n'
        _segment(signed, number).write_bytes(anew)


def _all_anew(key: int) -> Callable[[SignedTrail], None]:
    """Another history with all that belongs to it, signed with a key."""

    def touch(signed: SignedTrail) -> None:
        shutil.rmtree(signed.folder)
        _fill(SignedTrail(TrailBuilder(signed.folder), signing_key(key), signed.gateway), client="cooler")

    return touch


def _replayed(old: int, number: int) -> Callable[[SignedTrail], None]:
    def touch(signed: SignedTrail) -> None:
        shutil.copyfile(signed.digests / f"{old:012d}.digest", signed.digests / f"{number:012d}.digest")

    return touch


#: What is done, and what the auditor needs to have kept: nothing, the key, or the copies.
ATTACKS: dict[str, tuple[Callable[[SignedTrail], None], str]] = {
    "edit": (_lines(2, lambda rows: [*rows[:2], rows[2].replace(b"boiler", b"cooler"), rows[3]]), ""),
    "delete": (_lines(2, lambda rows: rows[:1] + rows[2:]), ""),
    "delete the first line of all": (_lines(1, lambda rows: rows[1:]), ""),
    "double": (_lines(2, lambda rows: [*rows[:2], *rows[1:]]), ""),
    "swap": (_lines(2, lambda rows: [rows[0], rows[2], rows[1], rows[3]]), ""),
    "cut the tail": (_lines(3, lambda rows: rows[:-1]), ""),
    "cut the tail within a line": (_lines(3, lambda rows: [*rows[:-1], rows[-1][:-20]]), ""),
    "drop the first segment": (_dropped(1), ""),
    "drop a segment in the middle": (_dropped(2), ""),
    "drop the last segment": (_dropped(3), ""),
    "drop a segment with its digest": (_dropped(2, 2), ""),
    "drop the last segment with its digest": (_dropped(3, 4), "copies"),
    "go back to an old state": (_dropped(3, 3, 4), "copies"),
    "replace all, with a chain anew": (_chain_anew, ""),
    "replace all, signed by another key, against the key": (_all_anew(2), "key"),
    "replace all, signed by another key, against the copies": (_all_anew(2), "copies"),
    "replace all, signed by the stolen key": (_all_anew(1), "copies"),
    "replay an old digest": (_replayed(1, 4), ""),
    "replay an old digest of a quiet time": (_replayed(3, 4), ""),
    "replay an old digest behind the last": (_replayed(4, 5), ""),
}


#: What the auditor needs to have kept, for each attack.
NEEDED: Final = {attack: needed for attack, (_touch, needed) in ATTACKS.items()}


def _harmless(signed: SignedTrail) -> None:
    """Compressed, removed by retention, a key handed over, torn bytes, and records behind the last digest."""
    signed.remove(1)
    signed.compress(2)
    signed.rotate(signing_key(2))
    signed.records(2, gateway=signed.gateway), signed.close()
    signed.records(1, gateway=signed.gateway), signed.write(".open")
    (signed.folder / "000000000005-20261120T11-40.torn").write_bytes(b'{"version":1')


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """A trail of a gateway of its own after an attack, and what the auditor kept elsewhere before it."""

    signed: SignedTrail
    anchors: dict[str, Anchor]

    def has(self, subject: str) -> bool:
        """Whether a violation is of this trail: its subject names a file there, or its gateway."""
        return subject.startswith(f"{self.signed.folder}/") or subject == f"gateway {self.signed.gateway}"

    def verdict(self, kept: str = "") -> Verdict:
        return verify(self.signed.folder, self.anchors[kept]).verdict


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Attacked]:
    """A trail for each attack, one that only looks attacked, and one that nobody touched."""
    touches = {attack: touch for attack, (touch, _needed) in ATTACKS.items()}
    touches |= {NOTHING: lambda _signed: None, HARMLESS: _harmless}
    trails: dict[str, Attacked] = {}
    for number, (name, touch) in enumerate(touches.items(), start=1):
        folder = tmp_path_factory.mktemp("attacked")
        signed = _fill(SignedTrail(TrailBuilder(folder / "trail"), signing_key(1), f"{number:024x}"))
        copies = Anchor.read(digests=shutil.copytree(signed.digests, folder / "kept"))
        key = Anchor(public_key=signed.public_key)
        touch(signed)
        trails[name] = Attacked(signed=signed, anchors={"": Anchor(), "key": key, "copies": copies})
    return trails


def _audit_input(trails: list[Attacked], scratch: Path, kept: str) -> AuditInput:
    """The audit input of several trails, each beside what was kept of it."""
    audit_input = input_of_trails(
        [trail_files(each.signed.folder, scratch) for each in trails],
        verifications=tuple(verify(each.signed.folder, each.anchors[kept]) for each in trails),
    )
    if kept == "key":
        return replace(audit_input, public_key=trails[0].signed.public_key)
    copies = {
        str(each.signed.folder): read_digests(folder, max(each.anchors[kept].numbers))
        for each in trails
        if (folder := each.anchors[kept].folder)
    }
    return replace(audit_input, copies=copies) if copies else audit_input


def _subjects(engine: Engine, audit_input: AuditInput) -> list[tuple[str, str]]:
    """Control and subject of every violation of integrity."""
    controls = [control for control in CONTROLS if control.identifier in OF_INTEGRITY]
    facts = Facts(engine, audit_input)
    Judgement(engine=engine, audit_input=facts.audit_input, controls=controls).results()
    rows = engine.rows("SELECT control, subject FROM told ORDER BY control, subject")
    return [(row["control"], row["subject"]) for row in rows]


@pytest.fixture(scope="module")
def found(attacked: dict[str, Attacked], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, set[str]]]:
    """By what was kept and by trail: the controls of integrity that find something, one audit for all the trails."""
    by_kept: dict[str, dict[str, set[str]]] = {}
    for kept in ("", "key", "copies"):
        asked = [name for name in attacked if kept in ("", NEEDED.get(name)) or name == NOTHING]
        of_kept = {name: attacked[name] for name in asked}
        scratch = tmp_path_factory.mktemp("scratch")
        audit_input = _audit_input(list(of_kept.values()), scratch, kept)
        with closing(DuckEngine(scratch, "1g")) as engine:
            subjects = _subjects(engine, audit_input)
        by_kept[kept] = {
            name: {identifier for identifier, subject in subjects if trail.has(subject)}
            for name, trail in of_kept.items()
        }
        assert all(any(trail.has(subject) for trail in of_kept.values()) for _identifier, subject in subjects)
    return by_kept


def test_spark_finds_the_same_attacks_as_duckdb(
    spark: SparkSession, attacked: dict[str, Attacked], tmp_path: Path
) -> None:
    audit_input = _audit_input(list(attacked.values()), tmp_path, "")
    with closing(SparkEngine(spark)) as on_spark, closing(DuckEngine(tmp_path, "1g")) as on_duckdb:
        assert _subjects(on_spark, audit_input) == _subjects(on_duckdb, audit_input)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_found_by_verify_and_by_spark(
    attacked: dict[str, Attacked], found: dict[str, dict[str, set[str]]], attack: str
) -> None:
    needed = NEEDED[attack]
    assert attacked[attack].verdict(needed) is Verdict.VIOLATED
    assert found[needed][attack]
    if needed:
        assert attacked[attack].verdict() is Verdict.INTACT, "without an anchor nothing can show it"
        assert not found[""][attack], "and Spark says the same"


@pytest.mark.parametrize("kept", ["", "key", "copies"])
def test_a_trail_that_nobody_touched_is_whole_to_both(
    attacked: dict[str, Attacked], found: dict[str, dict[str, set[str]]], kept: str
) -> None:
    assert attacked[NOTHING].verdict(kept) is (Verdict.ANCHORED if kept else Verdict.INTACT)
    assert not found[kept][NOTHING]


def test_what_only_looks_like_an_attack_is_none(
    attacked: dict[str, Attacked], found: dict[str, dict[str, set[str]]]
) -> None:
    assert attacked[HARMLESS].verdict() is Verdict.INTACT
    assert not found[""][HARMLESS]

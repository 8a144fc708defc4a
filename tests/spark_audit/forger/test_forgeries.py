"""Wrong trails that only their meaning gives away: a control finds each, or the table says why none does."""

import random
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from spark_audit.audit import audit
from spark_audit.audit_input import input_of_trails
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.controls.control import Severity
from spark_audit.engines.duck import DuckEngine
from spark_audit.engines.engine import Engine
from spark_audit.engines.spark import SparkEngine
from spark_audit.policy import Policy
from spark_audit.read import TrailFiles, trail_files
from spark_audit.result import ControlStatus
from spark_audit.verify import Anchor, Verdict, verify
from tests.ibm_mq_stand_in.process import why_unavailable
from tests.spark_audit.conftest import SignedTrail, audited, policy_of
from tests.spark_audit.forger import program_trails, stream_trails, true_trails
from tests.spark_audit.forger.forgery import Forgery, Record, forged, forgeries, sealed
from tests.spark_audit.increments.conftest import in_parts, told_of_whole, write_segment
from tests.spark_audit.streaming import told_by_stream

TRUE: dict[str, Callable[[Path], list[Record]]] = {
    "plant": true_trails.plant,
    "central": true_trails.central,
    "upgraded": true_trails.upgraded,
    "streams": stream_trails.streams,
    "prefixes": stream_trails.prefixes,
    "programs": program_trails.programs,
}
#: Their applications publish. The record of such a publication stands behind its copies, in their commit: an audit that
#: goes on from between the two reads the whole trail.
OF_APPLICATIONS = frozenset({"streams", "prefixes"})
#: What `verify` asks of each trail alone, and what the audit asks of it elsewhere (test_attacks.py).
OF_ONE_TRAIL = ("integrity.hash", "integrity.chain", "integrity.digests", "integrity.agreement")
#: Wrong trails that are cut in the short form of the proof.
_SAMPLE = 25
ERRORS = {each.identifier for each in CONTROLS if each.severity is Severity.ERROR}


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Record]]:
    """The records of true trails by their names."""
    folder = tmp_path_factory.mktemp("true")
    names = [name for name in TRUE if name != "central" or not why_unavailable()]
    return {name: TRUE[name](folder / name) for name in names}


@pytest.fixture(scope="module")
def rows(true: dict[str, list[Record]]) -> list[Forgery]:
    """The table's rows whose true trail can be made on this machine."""
    return [row for row in forgeries() if row.trail in true]


@pytest.fixture(scope="module")
def trails(
    true: dict[str, list[Record]], rows: list[Forgery], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, SignedTrail]:
    """Each of them sealed, as the trail of a gateway of its own: the true ones by their names, wrong ones by ids."""
    folder = tmp_path_factory.mktemp("forged")
    wrong = true | {row.identifier: forged(true[row.trail], row.change) for row in rows}
    return {
        name: sealed(records, folder / str(number), f"{number:024x}")
        for number, (name, records) in enumerate(wrong.items(), start=1)
    }


@pytest.fixture(scope="module")
def found(trails: dict[str, SignedTrail], tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """By trail the controls that find an error in it, on DuckDB."""
    with closing(DuckEngine(tmp_path_factory.mktemp("duck"), "1g")) as engine:
        return _found_on(engine, trails, tmp_path_factory.mktemp("audited"))


def _found_on(engine: Engine, trails: dict[str, SignedTrail], folder: Path) -> dict[str, set[str]]:
    """One audit reads all the segments, each of another gateway."""
    segments = []
    for number, signed in enumerate(trails.values(), start=1):
        (segment,) = signed.folder.glob("*.jsonl")
        segments.append(folder / f"{number:012d}-20261120T07.jsonl")
        segments[-1].hardlink_to(segment)
    files = TrailFiles(folder=folder, segments=tuple(segments), torn=())
    asked = policy_of(*(each.identifier for each in Policy().controls() if each.identifier not in OF_ONE_TRAIL))
    audit(engine, input_of_trails([files]), lambda _line: None, policy=asked)
    names = {signed.gateway: name for name, signed in trails.items()}
    by_trail: dict[str, set[str]] = {name: set() for name in trails}
    for row in engine.rows("SELECT DISTINCT gateway, control FROM told"):
        if row["control"] in ERRORS:
            by_trail[names[row["gateway"]]].add(row["control"])
    return by_trail


def test_every_trail_is_whole_and_signed_with_the_right_key(trails: dict[str, SignedTrail]) -> None:
    verdicts = {name: verify(each.folder, Anchor(public_key=each.public_key)) for name, each in trails.items()}
    assert {name: each.reason for name, each in verdicts.items() if each.verdict is not Verdict.ANCHORED} == {}


def test_the_true_trails_raise_no_alarm(true: dict[str, list[Record]], found: dict[str, set[str]]) -> None:
    assert {name: found[name] for name in true if found[name]} == {}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """The records of a true trail under a key."""
    return true_trails.keyed(tmp_path_factory.mktemp("keyed") / "keyed")


def test_under_a_key_a_true_trail_raises_no_alarm_and_no_match_of_topics_is_held(
    keyed: list[Record], tmp_path: Path
) -> None:
    """It is audited alone: an audit with encrypted headers judges no conversions, not even those of other trails."""
    signed = sealed(keyed, tmp_path / "sealed", "0a" * 12)
    asked = policy_of(*(each.identifier for each in Policy().controls() if each.identifier not in OF_ONE_TRAIL))
    result = audited(input_of_trails([trail_files(signed.folder, tmp_path)]), tmp_path, policy=asked)
    statuses = {each.identifier: each.status for each in result.controls}
    assert [each for each in ERRORS if statuses[each] is ControlStatus.VIOLATED] == []
    for each in ("custody.copies", "custody.retained", "custody.commands"):
        assert statuses[each] is ControlStatus.NOTHING_TO_TEST, each
    for each in ("custody.deliveries", "custody.sessions", "custody.order", "custody.stock", "custody.confirmations"):
        assert statuses[each] is ControlStatus.HELD, each


def test_under_a_key_a_lost_copy_is_found_where_filter_and_topic_are_equal(keyed: list[Record], tmp_path: Path) -> None:
    """Everything that names the copy is gone. Where a wildcard brought it, nobody can know."""
    filters = {_name_of(each) for each in keyed if each.get("command") == "RegSub"}
    copies = [each for each in keyed if each.get("conversion") == "header_to_header" and not each["is_retained"]]
    equal, others = ([each for each in copies if (_name_of(each) in filters) is has] for has in (True, False))
    assert len(equal) > 3
    lost = [*equal, others[0]]
    trails = [
        sealed([each for each in keyed if each.get("message_id") != copy["message_id"]], tmp_path / str(number), name)
        for number, (copy, name) in enumerate((each, f"{place:024x}") for place, each in enumerate(lost, start=1))
    ]
    read = [trail_files(each.folder, tmp_path) for each in trails]
    result = audited(input_of_trails(read), tmp_path, policy=policy_of("custody.copies"))
    (found,) = (each for each in result.controls if each.identifier == "custody.copies")
    assert [each.gateway for each in found.sample] == [each.gateway for each in trails[:-1]]


def _name_of(record: Record) -> tuple[str | None, str | None]:
    return record.get("correlation_id"), record.get("topic")


@pytest.mark.proof
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # it asks for Spark in full alone
def test_each_wrong_trail_is_found_by_its_control_or_by_none_as_the_table_says(
    rows: list[Forgery],
    found: dict[str, set[str]],
    trails: dict[str, SignedTrail],
    tmp_path: Path,
    proof_scale: str,
    request: pytest.FixtureRequest,
) -> None:
    missed = [
        f"{row.identifier}: {row.control} must find it; found by {sorted(found[row.identifier]) or 'none'}"
        for row in rows
        if row.control and row.control not in found[row.identifier]
    ]
    better = [
        f"{row.identifier}: {sorted(found[row.identifier])} find it: mark it found"
        for row in rows
        if row.not_found and found[row.identifier]
    ]
    assert missed + better == []
    if proof_scale == "full":
        with closing(SparkEngine(request.getfixturevalue("spark"))) as engine:
            assert _found_on(engine, trails, tmp_path) == found


@pytest.mark.proof
def test_two_audits_that_go_on_find_in_each_trail_what_one_finds(
    true: dict[str, list[Record]], trails: dict[str, SignedTrail], tmp_path: Path, proof_scale: str
) -> None:
    """Cut anywhere: the first one finds what a whole audit finds there, the second one the rest, and nothing twice."""
    chosen = random.Random(16)
    wrong = sorted(trails.keys() - true.keys())
    names = [*true, *(wrong if proof_scale == "full" else chosen.sample(wrong, _SAMPLE))]
    lines = {trails[name].gateway: _lines_of(trails[name]) for name in names}
    of_applications = {trails[name].gateway for name in true.keys() & OF_APPLICATIONS}
    cuts = {
        gateway: [_cut(each, chosen.randrange(1, len(each)), is_of_commits=gateway in of_applications)]
        for gateway, each in lines.items()
    }
    parts = in_parts(lines, cuts, tmp_path)
    rest = {gateway: each for gateway, each in lines.items() if gateway not in parts.set_aside}
    assert {trails[name].gateway for name in true} <= rest.keys(), "true trails name nothing that had ended"
    assert len(parts.set_aside) <= len(lines) // 5, "few of the wrong ones do"
    for gateway, each in rest.items():
        write_segment(tmp_path / "first" / gateway, 1, each[: cuts[gateway][0]])
        write_segment(tmp_path / "whole" / gateway, 1, each)
    first, whole = (
        told_of_whole([tmp_path / place / gateway for gateway in rest], tmp_path) for place in ("first", "whole")
    )
    of_digests = {each for each in first | whole if each[0] == "integrity.digests"}  # these trails have none
    assert parts.told[0] - of_digests == first - of_digests
    assert {each for each in parts.told[1] if each[0] != "integrity.digests"} == whole - first - of_digests


@pytest.mark.proof
def test_a_stream_finds_in_each_batch_what_an_audit_of_the_whole_finds_then(
    true: dict[str, list[Record]], trails: dict[str, SignedTrail], tmp_path: Path, proof_scale: str
) -> None:
    chosen = random.Random(17)
    wrong, batches = (3, 4) if proof_scale == "full" else (1, 2)
    for name in (*true, *chosen.sample(sorted(trails.keys() - true.keys()), wrong)):
        lines = _lines_of(trails[name])
        places = sorted(chosen.sample(range(1, len(lines)), batches - 1))
        cuts = [0, *(_cut(lines, each, is_of_commits=name in OF_APPLICATIONS) for each in places), len(lines)]
        parts = [lines[begin:end] for begin, end in pairwise(cuts)]
        read_again, _ = told_by_stream(parts, tmp_path)
        assert not (read_again and name in true), "true trails name nothing that had ended"


def _cut(lines: list[bytes], place: int, *, is_of_commits: bool) -> int:
    """Where a trail is cut: at a place, or at the end of the commit that has it."""
    while is_of_commits and place < len(lines) - 1 and _batch(lines[place]) == _batch(lines[place - 1]):
        place += 1
    return place


def _batch(line: bytes) -> int:
    return int(orjson.loads(line)["batch"])


def _lines_of(signed: SignedTrail) -> list[bytes]:
    (segment,) = signed.folder.glob("*.jsonl")
    return segment.read_bytes().splitlines(keepends=True)

"""What the audit finds of changes by chance: a share that may only rise, by what was done."""

import random
import tomllib
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from spark_audit.engines.duck import DuckEngine
from tests.spark_audit.forger import stream_trails, true_trails
from tests.spark_audit.forger.chance import ACTS, Record, Sort, changed
from tests.spark_audit.forger.forgery import sealed
from tests.spark_audit.forger.test_forgeries import _found_on

TRAILS: dict[str, Callable[[Path], list[Record]]] = {
    "streams": stream_trails.streams,
    "plant": true_trails.plant,
    "prefixes": stream_trails.prefixes,
}
#: Changes in the short form, of the first trail, and in full; and trails of one audit.
_CHANGES = {"short": 80, "full": 6_000}
_TRAILS = {"short": 1, "full": len(TRAILS)}
_TOGETHER = {"short": 80, "full": 200}
#: The least share that is found: of few changes, and of many by what was done.
FEW_FOUND = 0.5
FOUND: dict[str, float] = tomllib.loads(Path(__file__).with_name("chance.toml").read_text())["found"]


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory, proof_scale: str) -> dict[str, list[Record]]:
    folder = tmp_path_factory.mktemp("true")
    return {name: TRAILS[name](folder / name) for name in list(TRAILS)[: _TRAILS[proof_scale]]}


def test_a_change_changes_one_record_and_says_which(true: dict[str, list[Record]]) -> None:
    chance, records = random.Random(1), true["streams"]
    made = [changed(records, chance) for _ in range(300)]
    assert {each.sort.act for each in made} == set(ACTS) == set(FOUND)
    for each in made:
        assert each.sort.kind == records[each.place]["kind"]
        assert (each.sort.field == "") is (each.sort.act in ("drop", "double", "move"))
        rest = {"drop": -1, "double": 1}.get(each.sort.act, 0)
        assert len(each.records) == len(records) + rest
        assert each.sort.field != "at_us"


@pytest.mark.proof
def test_the_share_of_changes_by_chance_that_is_found_does_not_fall(
    true: dict[str, list[Record]], tmp_path: Path, proof_scale: str
) -> None:
    made, found = Counter[str](), Counter[str]()
    missed = Counter[Sort]()
    for first in range(0, _CHANGES[proof_scale], _TOGETHER[proof_scale]):
        chance = random.Random(first)
        wrong = [changed(true[name], chance) for name in chance.choices(list(true), k=_TOGETHER[proof_scale])]
        folder = tmp_path / str(first)
        for name in ("duck", "audited"):
            (folder / name).mkdir(parents=True)
        trails = {
            str(number): sealed(each.records, folder / str(number), f"{number:024x}")
            for number, each in enumerate(wrong, start=1)
        }
        with closing(DuckEngine(folder / "duck", "1g")) as engine:
            controls = _found_on(engine, trails, folder / "audited")
        for number, each in enumerate(wrong, start=1):
            made[each.sort.act] += 1
            found[each.sort.act] += bool(controls[str(number)])
            missed[each.sort] += not controls[str(number)]
    shares = {act: found[act] / made[act] for act in made}
    told = f"most of what was missed: {missed.most_common(40)}"
    assert found.total() / made.total() > FEW_FOUND, told
    if proof_scale == "full":
        worse = {act: f"{share:.2f}" for act, share in shares.items() if share < FOUND[act]}
        assert not worse, f"{worse}; {told}"

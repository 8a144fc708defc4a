"""The sources and what is compiled of them agree on inputs of every subject, and the comparison finds what differs.

In the short form some hundred inputs a subject; in full many more. `make fuzz` goes on for as long as it is told.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway import compiled
from tests.compiled_build import require_build
from tests.fuzz.gateway_readers import CORPUS
from tests.fuzz.subjects import SUBJECTS
from tests.fuzz.two_builds import Build, Comparison, campaign, main, read_again

#: Batches of each subject.
BATCHES = {"short": 2, "full": 200}


@pytest.fixture(scope="module")
def sources() -> Iterator[Build]:
    with Build(is_compiled=False) as sources:
        yield sources


@pytest.fixture(scope="module")
def builds(sources: Build) -> Iterator[tuple[Build, Build]]:
    require_build()
    with Build(is_compiled=True) as built:
        yield sources, built


def test_one_process_runs_the_sources_and_the_other_what_is_compiled(builds: tuple[Build, Build]) -> None:
    sources, built = builds
    assert sources.modules.keys() == built.modules.keys() == set(compiled.modules())
    assert not any(sources.modules.values())
    assert all(built.modules.values())


@pytest.mark.proof
@pytest.mark.parametrize("subject", SUBJECTS)
def test_both_builds_agree(builds: tuple[Build, Build], subject: str, proof_scale: str) -> None:
    number = BATCHES[proof_scale] * SUBJECTS[subject].batch
    found = campaign(Comparison(*builds), [subject], seed=1, goes_on=lambda least: least < number)
    assert "\n".join(map(str, found)) == ""


@pytest.mark.parametrize("file", sorted((CORPUS / "two_builds").iterdir()), ids=lambda file: file.name)
def test_what_was_once_a_difference_is_none(builds: tuple[Build, Build], file: Path) -> None:
    assert not read_again(Comparison(*builds), file)


@pytest.mark.parametrize(("given", "said"), [(["soon"], "soon is neither"), (["1", "soon"], "the subjects are")])
def test_a_wrong_argument_is_named(
    given: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_build()
    monkeypatch.setattr(sys, "argv", ["two_builds", *given])
    with pytest.raises(SystemExit):
        main()
    assert said in capsys.readouterr().err


def make_numbers_of_truths() -> None:
    from gateway.mqtt import receiver

    receiver._PUBLISH_FLAGS = tuple(tuple(map(int, each)) for each in receiver._PUBLISH_FLAGS)


def end_at_a_long_topic() -> None:
    from mappings.conversion import publication_template

    is_plain = publication_template._is_plain_in_string
    publication_template._is_plain_in_string = lambda topic: (len(topic) > 1_000 and os._exit(3)) or is_plain(topic)


@pytest.mark.parametrize(
    ("plant", "subject", "outcome"),
    [
        (make_numbers_of_truths, "connection", "retain=0, duplicate=0"),
        (end_at_a_long_topic, "header", "the process ended with exit code 3"),
    ],
)
def test_a_planted_difference_is_found_and_is_found_again_in_its_file(
    sources: Build,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    plant: Callable[[], None],
    subject: str,
    outcome: str,
) -> None:
    with Build(is_compiled=False, planted=f"{__name__}:{plant.__name__}") as differs:
        comparison = Comparison(sources, differs)
        found = next(campaign(comparison, [subject], seed=1, goes_on=lambda least: least < 2_000))
        assert outcome in str(found)
        assert len(found.inputs) == 1
        assert read_again(comparison, found.save(tmp_path))
        assert not read_again(Comparison(sources, sources), found.save(tmp_path))
    assert capsys.readouterr().out.splitlines()[-1].endswith(": the builds agree")

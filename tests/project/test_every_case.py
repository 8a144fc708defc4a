"""One test for all rows of a table tries every row, names each that fails, and gives the failure of the first."""

from pathlib import Path

import pytest

from tests.every_case import CASE_VARIABLE, for_every


def test_every_case_that_fails_is_named_and_stops_no_other() -> None:
    tried = []

    @for_every([1, 2, 3, 4], lambda number: f"the {number}")
    def is_odd(number: int) -> None:
        tried.append(number)
        assert number % 2, "is even"

    with pytest.raises(AssertionError) as caught:
        is_odd()
    assert tried == [1, 2, 3, 4]
    first, *others = str(caught.value).splitlines()
    assert first == "2 of 4 cases failed:"
    assert [line.split(":")[0].strip() for line in others] == ["the 2", "the 4"]
    assert all("AssertionError: is even" in line for line in others)
    assert str(caught.value.__cause__).startswith("is even")


@pytest.mark.parametrize("end", [pytest.fail.Exception, pytest.skip.Exception, ValueError])
def test_a_case_fails_by_whatever_it_raises(end: type[BaseException]) -> None:
    @for_every(["one"])
    def fails(_: str) -> None:
        raise end("for a reason")

    with pytest.raises(AssertionError, match=r"one: .*: for a reason"):
        fails()


def test_what_a_test_asks_for_beside_its_case_is_a_fixture(request: pytest.FixtureRequest) -> None:
    beside = request.getfixturevalue("tmp_path")

    @for_every("ab")
    def takes(letter: str, tmp_path: Path) -> None:
        assert tmp_path == beside
        (tmp_path / letter).write_text(letter)

    takes(tmp_path=beside)
    assert sorted(file.name for file in beside.iterdir()) == ["a", "b"]


@for_every("ab")
def test_pytest_gives_the_fixtures(letter: str, tmp_path: Path) -> None:
    (tmp_path / letter).write_text(letter)
    assert (tmp_path / "a").read_text() == "a"


def test_one_case_is_tried_alone_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    test = for_every(["left", "right", "upright"])(tried.append)
    monkeypatch.setenv(CASE_VARIABLE, "right")
    test()
    assert tried == ["right", "upright"]
    monkeypatch.setenv(CASE_VARIABLE, "below")
    with pytest.raises(pytest.skip.Exception, match="no case has 'below' in its name"):
        test()


def test_a_table_without_a_case_fails() -> None:
    test = for_every([])(lambda _: None)
    with pytest.raises(AssertionError, match="no case"):
        test()


def test_two_cases_of_one_name_are_refused() -> None:
    test = for_every([1, 1])(lambda _: None)
    with pytest.raises(AssertionError, match="same name"):
        test()


def test_a_mapping_names_its_cases_and_a_function_makes_them_when_the_test_runs() -> None:
    asked, tried = [], []

    def table() -> dict[str, int]:
        asked.append("table")
        return {"one": 1, "two": 2}

    test = for_every(table)(tried.append)
    assert not asked
    test()
    assert (asked, tried) == (["table"], [1, 2])

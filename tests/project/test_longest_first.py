"""Files of tests that take long are begun first, wherever they stand and however few tests they have."""

from pathlib import Path

from tests.longest_first import FIRST, longest_first

PROJECT = Path(__file__).parents[2]


def _ordered(*node_ids: str) -> list[str]:
    return [node_ids[place] for place in longest_first(node_ids)]


def test_a_file_that_takes_long_comes_before_one_of_many_tests() -> None:
    many, long = ["tests/a.py::one", "tests/a.py::two", "tests/a.py::three"], f"{FIRST[1]}::alone"
    assert _ordered(*many, long) == [long, *many]


def test_other_files_come_by_their_number_of_tests_and_each_in_its_own_order() -> None:
    ordered = _ordered("tests/b.py::z", "tests/a.py::z", "tests/b.py::a", "tests/c.py::one")
    assert ordered == ["tests/b.py::z", "tests/b.py::a", "tests/a.py::z", "tests/c.py::one"]


def test_what_takes_long_comes_in_the_order_of_the_table() -> None:
    wanted = [f"{start}test_x.py::one" if start.endswith("/") else f"{start}::one" for start in FIRST]
    assert _ordered(*reversed(wanted)) == wanted


def test_what_the_table_names_is_there() -> None:
    assert [start for start in FIRST if not (PROJECT / start).exists()] == []

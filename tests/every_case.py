"""One test for all rows of a table: it tries every case, and then names each that failed.

pytest spends some two milliseconds on a case, and each worker collects all. This is for tables whose cases take less.
"""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")
Table = Iterable[Case] | Mapping[str, Case]
Test = Callable[..., None]

#: Only cases whose name contains this text are tried: RFHBRIDGE_CASE="mqrfh: " pytest tests/mappings/test_vectors.py
CASE_VARIABLE = "RFHBRIDGE_CASE"


def for_every(
    cases: Table[Case] | Callable[[], Table[Case]], name: Callable[[Case], str] = str
) -> Callable[[Test], Test]:
    """Hand each case to the test as its first argument; what else it asks for are fixtures, which all cases share.

    A mapping gives the cases by their names. A function gives the table when the test runs, so that nobody waits for it
    who only collects tests. A case that fails stops no other. The error names all that failed, and its cause is the
    first of their failures. A case cannot be skipped, and a table without a case fails.
    """

    def for_every_case(test: Test) -> Test:
        signature = inspect.signature(test)

        @wraps(test)
        def try_all(**fixtures: Any) -> None:
            named = _named(cases() if callable(cases) else cases, name)
            failures: dict[str, BaseException] = {}
            for each in _chosen(named):
                try:
                    test(named[each], **fixtures)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as failure:
                    failures[each] = failure
            if failures:
                raise AssertionError(_told(failures, len(named))) from next(iter(failures.values()))

        _, *others = signature.parameters.values()
        try_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]  # for pytest
        return try_all

    return for_every_case


def _named(table: Table[Case], name: Callable[[Case], str]) -> Mapping[str, Case]:
    if isinstance(table, Mapping):
        return table
    cases = list(table)
    named = {name(case): case for case in cases}
    assert len(named) == len(cases), "two cases have the same name"
    return named


def _chosen(names: Iterable[str]) -> list[str]:
    """The names of the cases that are to be tried, at least one."""
    found = list(names)
    assert found, "the table has no case"
    wanted = os.environ.get(CASE_VARIABLE, "")
    return [name for name in found if wanted in name] or pytest.skip(f"no case has {wanted!r} in its name")


def _told(failures: dict[str, BaseException], cases: int) -> str:
    lines = [f"{len(failures)} of {cases} cases failed:"]
    for name, failure in failures.items():
        first, *_ = str(failure).splitlines() or [""]
        lines.append(f"  {name}: {type(failure).__name__}: {first}")
    return "\n".join(lines)

"""What `make prove` changes about a test: tests/conftest.py is asked as pytest asks it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import LIMIT_IN_FULL_S, PROOF_VARIABLE, pytest_itemcollected


@pytest.mark.proof
@pytest.mark.timeout(5)
def _proof() -> None: ...


@pytest.mark.proof
def _proof_without_a_limit() -> None: ...


@given(st.binary())
def _property(_data: bytes) -> None: ...


@pytest.mark.timeout(5)
def _other() -> None: ...


@pytest.mark.parametrize(
    ("function", "scale", "is_proof", "limit_s"),
    [
        (_proof, "short", True, 5),
        (_proof, "full", True, LIMIT_IN_FULL_S),
        (_proof_without_a_limit, "full", True, LIMIT_IN_FULL_S),
        (_property, "short", False, None),
        (_property, "full", True, LIMIT_IN_FULL_S),
        (_other, "full", False, 5),
    ],
)
def test_in_full_proofs_and_properties_have_an_hour(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    function: Callable[..., None],
    scale: str,
    is_proof: bool,
    limit_s: int | None,
) -> None:
    monkeypatch.setenv(PROOF_VARIABLE, scale)
    item = pytest.Function.from_parent(request.node.parent, name=function.__name__, callobj=function)
    pytest_itemcollected(item)
    limit = item.get_closest_marker("timeout")
    assert (item.get_closest_marker("proof") is not None) is is_proof
    assert (limit and limit.args[0]) == limit_s

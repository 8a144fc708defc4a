"""The table of limits: each row is a key of the configuration, and some module of the gateway enforces it."""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

import gateway
from gateway.config.limit_row import LimitRow, Scope
from gateway.config.limits import Limit
from gateway.config.listeners import ListenerSettings
from gateway.config.mqtt_limits import MqttLimits
from gateway.config.tables import AccessSettings
from gateway.limits.budgets import CONNECTION_RATES, LIMITS, RATES

GATEWAY = Path(gateway.__file__).parent
#: The limits that budgets read by the keys of their rows.
IN_BUDGETS = {limit.name for scopes in LIMITS.values() for limit in scopes.values()}
IN_BUDGETS |= {limit.name for limits in RATES.values() for limit in limits}
IN_BUDGETS |= {limit.name for limit in CONNECTION_RATES.values()}
ROW = LimitRow(key="maximum_moons", default=1, unit="moons", meaning="moons of a client", where="limits.admission")


@cache
def named_in(module: Path) -> frozenset[str]:
    """What the code of a module names."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
            found.add(f"{ast.unparse(node.value)}.{node.attr}")
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name):
            found.add(node.id)
    return frozenset(found)


def unenforced(limits: Iterable[Limit]) -> list[str]:
    """What is missing between a row and the code: a key that nothing reads, a limit that nothing refuses at."""
    modules = [path for path in GATEWAY.rglob("*.py") if path.parent != GATEWAY / "config" or "limit" not in path.stem]
    missing = []
    for limit in limits:
        row, key = limit.value, limit.value.key.rpartition(".")[2]
        if key and limit.name not in IN_BUDGETS and not any(key in named_in(module) for module in modules):
            missing.append(f"{limit.name}: nothing reads {key}")
        if row.answers and not any(f"Limit.{limit.name}" in named_in(module) for module in modules):
            missing.append(f"{limit.name}: nothing refuses at it")
        enforcing = GATEWAY.joinpath(*row.where.split(".")).with_suffix(".py")
        if not enforcing.exists() or not named_in(enforcing) & {key, f"Limit.{limit.name}", "LimitExceeded"}:
            missing.append(f"{limit.name}: {row.where} does not enforce it")
    return missing


def test_each_limit_is_enforced_where_its_row_says() -> None:
    assert unenforced(Limit) == []


@pytest.mark.parametrize(
    ("row", "missing"),
    [
        (ROW, ["MOONS: nothing reads maximum_moons", "MOONS: limits.admission does not enforce it"]),
        (
            Limit.CONNECTIONS.value._replace(where="limits.moons"),
            ["MOONS: nothing refuses at it", "MOONS: limits.moons does not enforce it"],
        ),
    ],
)
def test_a_limit_that_nothing_enforces_is_found(row: LimitRow, missing: list[str]) -> None:
    assert unenforced([SimpleNamespace(name="MOONS", value=row)]) == missing  # type: ignore[list-item]


def test_each_key_is_a_row_and_each_row_a_key() -> None:
    rows = {limit.key: limit.value for limit in Limit if limit.key}
    fields = dict(MqttLimits.model_fields)
    fields["listener.maximum_connections"] = ListenerSettings.model_fields["maximum_connections"]
    fields["access.maximum_waiting_logins"] = AccessSettings.model_fields["maximum_waiting_logins"]
    assert set(rows) == set(fields)
    for key, row in rows.items():
        assert (fields[key].default, fields[key].description) == (row.default, row.meaning), key


def test_each_budget_has_the_scope_that_its_row_says() -> None:
    for scopes in (*LIMITS.values(), CONNECTION_RATES):
        assert {limit: limit.value.scope for limit in scopes.values()} == {
            each: scope for scope, each in scopes.items()
        }


def test_a_row_for_a_wider_scope_says_whom_it_bounds() -> None:
    row = ROW._replace(told="the client has too many moons")
    found = [row.of(scope) for scope in Scope if scope is not Scope.CLIENT]
    assert [each.key for each in found] == [
        "maximum_moons_per_user",
        "maximum_moons_per_address",
        "maximum_moons_per_prefix",
        "maximum_moons_in_all",
    ]
    assert [each.told for each in found] == [
        "the user has too many moons",
        "this address has too many moons",
        "this network has too many moons",
        "the gateway has too many moons",
    ]
    assert found[3].meaning == "moons of all clients; 0: no limit"


def test_no_two_rows_are_one() -> None:
    """An enumeration takes two names of one value for one member."""
    assert len(Limit.__members__) == len(Limit)

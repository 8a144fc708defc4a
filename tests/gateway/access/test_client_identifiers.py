"""Whose a client identifier is, for each of the three settings."""

import time

import pytest

from gateway.access.client_identifiers import Binding, why_refused

USERS = {"pump", "pump:7", "ops", "urn:dev:os:1"}


def may_have(binding: Binding, user: str | None, client: str) -> bool:
    return not why_refused(binding, user, client, USERS.__contains__)


@pytest.mark.parametrize(
    ("user", "client", "where_reserved", "where_bound"),
    [
        ("pump", "pump", True, True),
        ("pump", "pump:1", True, True),
        ("pump", "pump:1:2", True, True),
        ("pump", "pump:", True, True),
        ("pump", "", True, True),
        ("pump", "pumps", True, False),
        ("pump", "panel-7", True, False),
        ("pump", "ops", False, False),
        ("pump", "ops:1", False, False),
        ("pump", "pump:7", False, False),
        ("pump", "pump:7:1", False, False),
        ("pump:7", "pump:7", True, True),
        ("pump:7", "pump:7:1", True, True),
        ("pump:7", "pump:8", False, False),
        ("pump:7", "pump", False, False),
        ("pump", "urn:dev:os:1", False, False),
        ("urn:dev:os:1", "urn:dev:os:1:a", True, True),
        ("new", "new:1", True, True),
        (None, "panel-7", True, True),
        (None, "", True, True),
        (None, "pump", False, False),
        (None, "pump:1", False, False),
        (None, ":pump", True, True),
    ],
)
def test_a_client_identifier_is_its_owners(
    user: str | None, client: str, where_reserved: bool, where_bound: bool
) -> None:
    assert may_have(False, user, client)
    assert may_have("reserved", user, client) is where_reserved
    assert may_have(True, user, client) is where_bound


def test_the_reason_names_the_owner() -> None:
    assert why_refused("reserved", "ops", "pump:1", USERS.__contains__) == (
        "client identifier 'pump:1' belongs to user 'pump'"
    )
    assert why_refused(True, "ops", "panel", USERS.__contains__) == (
        "client identifier 'panel' is not user 'ops', alone or with ':' and more behind it"
    )


def test_an_identifier_of_colons_costs_a_few_looks() -> None:
    asked: list[str] = []

    def is_known(user: str) -> bool:
        asked.append(user)
        return False

    begun_s = time.process_time()
    assert not why_refused("reserved", "ops", ":" * 65_535, is_known)
    assert len(asked) <= 17
    assert not why_refused("reserved", "ops", "x" * 65_535, is_known)
    assert time.process_time() - begun_s < 1

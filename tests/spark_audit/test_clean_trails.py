"""Trails of gateways that were killed, put back or stormed, and did nothing wrong: no control raises an alarm."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from spark_audit.audit import audit
from spark_audit.audit_input import input_of_trails
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.controls.control import Severity
from spark_audit.engines.spark import SparkEngine
from spark_audit.policy import Policy
from spark_audit.read import trail_files
from spark_audit.result import AuditResult, ControlStatus
from tests.spark_audit.conftest import audited
from tests.spark_audit.forger import rough_trails
from tests.trail_lines import trail_records

#: How each trail is made, its scale in the short form and in full, and the controls that an auditor has to settle.
TRAILS: dict[str, tuple[Callable[[Path, int], Path], int, int, frozenset[str]]] = {
    "killed": (rough_trails.killed, 2, 12, frozenset()),
    "restored": (rough_trails.restored, 1, 4, frozenset({"integrity.restored"})),
    "stormed": (rough_trails.stormed, 1, 6, frozenset()),
}


@pytest.mark.proof
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # it asks for Spark in full alone
@pytest.mark.parametrize("name", TRAILS)
def test_no_control_raises_a_false_alarm(
    name: str, tmp_path: Path, proof_scale: str, request: pytest.FixtureRequest
) -> None:
    make, short, full, settled = TRAILS[name]
    trail = make(tmp_path / name, full if proof_scale == "full" else short)
    records = trail_records(trail)
    assert Counter(each["kind"] for each in records)["put"] > 50
    asked = input_of_trails([trail_files(trail, tmp_path)])
    found = _violated(audited(asked, tmp_path))
    assert found.keys() == settled, found
    if proof_scale == "full":
        with closing(SparkEngine(request.getfixturevalue("spark"))) as engine:
            assert _violated(audit(engine, asked, lambda _line: None, policy=Policy())) == found


def _violated(result: AuditResult) -> dict[str, list[str]]:
    """The controls that find an error, with what they say. Of clients and of the machine's clock others warn."""
    errors = {each.identifier for each in CONTROLS if each.severity is Severity.ERROR}
    return {
        each.identifier: [f"{found.sequence} {found.subject}: {found.detail}" for found in each.sample]
        for each in result.controls
        if each.status is ControlStatus.VIOLATED and each.identifier in errors
    }

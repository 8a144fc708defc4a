"""The command of each night: `audit run --since-state`, from the first state to a trail that was rewritten."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from spark_audit.__main__ import main
from spark_audit.seal import SEAL, read_seal, why_not_of
from tests.spark_audit.conftest import SignedTrail, policy_text_of, signing_key
from tests.spark_audit.controls.conftest import Story, message

Night = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def night(tmp_path: Path, signed: SignedTrail, capsys: pytest.CaptureFixture[str]) -> Night:
    """Runs the command over the trail; gives its exit code and its result, or what it said instead."""
    key, policy = tmp_path / "auditor.pem", tmp_path / "policy.toml"
    key.write_bytes(signing_key(9).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    policy.write_text(policy_text_of("qos.1", "stages", "integrity.chain", "integrity.digests"))

    def run(*words: str, out: str = "report") -> tuple[int, dict[str, Any]]:
        told = ("--trail", signed.folder, "--out", tmp_path / out, "--sign", key, "--policy", policy, *words)
        code = main(["run", "--engine", "duckdb", "--json", *map(str, told)])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else {"said": said.err}

    return run


def _publish(signed: SignedTrail, exchange: int) -> None:
    """A PUBLISH whose PUBACK comes in the next segment."""
    story = Story(signed.trail)
    story.published(exchange, 1, message_id=message(exchange))


def _confirm(signed: SignedTrail, exchange: int) -> int:
    return Story(signed.trail).confirmed(4, [exchange, exchange])


def test_each_night_costs_its_own_records_and_tells_its_own_findings(
    night: Night, signed: SignedTrail, tmp_path: Path
) -> None:
    state = tmp_path / "report" / "state.zst"
    _publish(signed, 1)
    signed.close()
    assert night("--with-state")[0] == 0
    assert read_seal(tmp_path / "report").files.keys() >= {"state.zst", "result.json"}

    _confirm(signed, 1)
    _publish(signed, 2)
    lost = _confirm(signed, 3)
    signed.close()
    code, result = night("--since-state", str(state))
    assert code == 1
    assert result["scope"]["records"] == 4, "of the night alone"
    (found,) = [each for each in result["controls"] if each["violations"]]
    assert (found["identifier"], [each["sequence"] for each in found["sample"]]) == ("qos.1", [lost])
    assert result["reason"].endswith("; behind the state of an earlier audit")
    assert why_not_of(tmp_path / "report", signed.folder) == ""
    assert read_seal(tmp_path / "report").is_signed()

    kept = state.read_bytes()
    code, result = night("--since-state", str(state))
    assert (code, result["verdict"]) == (2, "not evaluable")
    assert result["reason"] == "no segment was closed since the state was made: there is nothing to judge"
    assert state.read_bytes() == kept, "the next night goes on from the same state"

    _confirm(signed, 2)
    signed.close()
    assert night("--since-state", str(state))[0] == 0, "nothing is told twice"


def test_a_record_that_names_what_had_ended_has_the_whole_trail_read(
    night: Night, signed: SignedTrail, tmp_path: Path
) -> None:
    state = tmp_path / "report" / "state.zst"
    for exchange in (1, 2):
        _publish(signed, exchange)
        _confirm(signed, exchange)
    signed.close()
    assert night("--with-state")[0] == 0
    again = Story(signed.trail).put(1, 1, message_id=message(1))
    signed.close()
    code, result = night("--since-state", str(state))
    assert (code, result["scope"]["records"]) == (1, 7)
    told = {each["identifier"]: [s["sequence"] for s in each["sample"]] for each in result["controls"]}
    assert told["stages"] == [again]


def test_a_trail_that_was_rewritten_is_not_gone_on_with(night: Night, signed: SignedTrail, tmp_path: Path) -> None:
    _publish(signed, 1)
    path = signed.close()
    night("--with-state")
    path.write_bytes(path.read_bytes().replace(b"boiler", b"cooler"))
    _confirm(signed, 1)
    signed.close()
    code, result = night("--since-state", str(tmp_path / "report" / "state.zst"), out="second")
    assert (code, result["verdict"]) == (2, "not evaluable")
    assert "the trail was rewritten; audit the whole trail, without --since-state" in result["reason"]
    assert not (tmp_path / "second" / "state.zst").exists()


def test_an_audit_without_a_state_removes_an_old_one(night: Night, signed: SignedTrail, tmp_path: Path) -> None:
    _publish(signed, 1)
    signed.close()
    night("--with-state")
    night()
    assert not (tmp_path / "report" / "state.zst").exists()
    assert "state.zst" not in (tmp_path / "report" / SEAL).read_text()


def test_a_state_that_does_not_fit_is_wrong_use(night: Night, signed: SignedTrail, tmp_path: Path) -> None:
    _publish(signed, 1)
    signed.close()
    state = tmp_path / "state.zst"
    code, told = night("--since-state", str(state))
    assert (code, told["said"]) == (3, f"rfhbridge audit run: {state} cannot be read: No such file or directory\n")
    for content in (b"", b"x" * 1_000):
        state.write_bytes(content)
        code, told = night("--since-state", str(state))
        assert (code, told["said"].count("\n")) == (3, 1)
        assert f"{state} cannot be gone on with: this audit's key has not signed it" in told["said"]
        assert "audit the whole trail once, with --with-state" in told["said"]

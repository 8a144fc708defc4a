"""A state is a file from outside: what the auditor's key has not signed, or does not fit, is refused in words."""

from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
import zstandard

from spark_audit.custody.memory import Memory
from spark_audit.increments import state as state_module
from spark_audit.increments.state import TABLES, OtherRules, Rules, State, TrailHead, UnusableState
from spark_audit.policy import Policy
from spark_audit.trail.signature import KeySigner, Signer
from tests.every_case import for_every
from tests.spark_audit.conftest import signing_key
from tests.spark_audit.increments.conftest import SIGNER

RULES = Rules.of(Policy().controls(), Policy().sha256)
HEAD = TrailHead(
    name="", segment="000000000001-20261120T07", head="0a" * 32, line="0a" * 32, digests=0, digest_head="", is_cut=False
)
STATE = State(
    rules=RULES,
    trails=(HEAD,),
    memories={"0b" * 12: Memory(sequence=7, retained=("0c" * 24,), parts={"": [1]})},
    tables={
        name: pa.Table.from_pylist([dict.fromkeys(schema.names)], schema=schema) for name, schema in TABLES.items()
    },
)


def _signed(told: object, signer: Signer = SIGNER) -> bytes:
    packed = zstandard.ZstdCompressor().compress(orjson.dumps(told))
    return signer.sign(b"state of an audit\n" + packed).encode() + b"\n" + packed


def _told(data: bytes) -> dict[str, object]:
    told = orjson.loads(zstandard.ZstdDecompressor().decompress(data[129:]))
    assert isinstance(told, dict)
    return told


def test_a_state_is_the_same_again(tmp_path: Path) -> None:
    path = tmp_path / "state.zst"
    path.write_bytes(STATE.to_bytes(SIGNER))
    assert State.read(path, SIGNER, RULES) == STATE


def _changed(name: str, value: object) -> bytes:
    return _signed(_told(STATE.to_bytes(SIGNER)) | {name: value})


_REFUSED = {
    "nothing": (b"", "has not signed it"),
    "no state": (b"x" * 1_000, "has not signed it"),
    "another key": (STATE.to_bytes(KeySigner(signing_key(8))), "this audit's key has not signed it"),
    "a byte was changed": (STATE.to_bytes(SIGNER)[:-1] + b"x", "has not signed it"),
    "it was cut": (STATE.to_bytes(SIGNER)[:-9], "has not signed it"),
    "another version": (_changed("version", 99), "it has version 99, and this program 3"),
    "another program": (_changed("rules", ["9.9", *_told(STATE.to_bytes(SIGNER))["rules"][1:]]), "rfhbridge 9.9"),  # type: ignore[index]
    "another policy": (replace(STATE, rules=replace(RULES, policy_sha256="0d")).to_bytes(SIGNER), "another policy"),
    "other rules": (replace(STATE, rules=replace(RULES, rules_sha256="0d")).to_bytes(SIGNER), "other rules"),
    "no object": (_signed([]), "cannot be read"),
    "no tables": (_changed("tables", {}), "cannot be read"),
    "a value of another type": (_changed("tables", {name: [{"gateway": 1}] for name in TABLES}), "cannot be read"),
    "a trail with less": (_changed("trails", [["", "x"]]), "cannot be read"),
}


@for_every(_REFUSED)
def test_what_is_no_state_of_this_audit_is_refused(case: tuple[bytes, str]) -> None:
    data, said = case
    with pytest.raises(UnusableState, match=said):
        State.parse(data, SIGNER, RULES)


def test_of_a_state_by_other_rules_its_place_and_what_was_told_remain() -> None:
    others = replace(STATE, rules=replace(RULES, program="9.9"), batch=12)
    with pytest.raises(OtherRules, match=r"made by rfhbridge 9\.9") as refused:
        State.parse(others.to_bytes(SIGNER), SIGNER, RULES)
    assert refused.value.remains == replace(others, memories={}, tables={"told": STATE.table("told")})


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = STATE.to_bytes(SIGNER)
    monkeypatch.setattr(state_module, "LARGEST_TEXT_BYTES", 100)
    with pytest.raises(UnusableState, match="holds more than 100 bytes"):
        State.parse(data, SIGNER, RULES)
    with pytest.raises(UnusableState, match="too much is open"):
        STATE.to_bytes(SIGNER)
    monkeypatch.setattr(state_module, "LARGEST_FILE_BYTES", len(data) - 1)
    with pytest.raises(UnusableState, match="it is longer than"):
        State.parse(data, SIGNER, RULES)


def test_a_threshold_or_severity_makes_other_rules() -> None:
    for text in (
        b'[control."delivery.qos1"]\novertaken_by_messages = 2\n',
        b'[control."stages"]\nseverity = "warning"\n',
    ):
        assert Rules.of(Policy.parse(text).controls(), "").rules_sha256 != RULES.rules_sha256

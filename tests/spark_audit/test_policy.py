"""The policy file: what it may say, how it is refused, and which findings its scope asks for."""

import hashlib
import tomllib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from spark_audit.audit_input import input_of_trails
from spark_audit.controls import integrity
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.controls.control import Rule, Severity
from spark_audit.engines.duck import DuckEngine
from spark_audit.facts.reading import Reading
from spark_audit.judgement import Judgement, make_tables
from spark_audit.policy import Policy, PolicyError
from spark_audit.policy_scope import PolicyScope
from spark_audit.read import trail_files

EXAMPLE = Path(__file__).parents[2] / "examples" / "audit-policy.toml"
AT = 1_795_158_000_000_000
SECOND = 1_000_000


def _control(policy: Policy, identifier: str):
    (found,) = (control for control in policy.controls() if control.identifier == identifier)
    return found


def test_there_are_at_least_fifteen_controls_with_names_of_their_own() -> None:
    assert len({control.identifier for control in CONTROLS}) == len(CONTROLS) >= 15
    for control in CONTROLS:
        assert control.title
        assert control.source
        assert all(parameter.unit and parameter.meaning for parameter in control.parameters)


def test_the_example_names_every_control_and_parameter_and_equals_the_defaults() -> None:
    policy = Policy.load(EXAMPLE)
    assert policy.controls() == Policy().controls() == CONTROLS
    assert policy.scope == PolicyScope()
    tables = tomllib.loads(EXAMPLE.read_text())["control"]
    named = {control.identifier: ["severity", *(each.name for each in control.parameters)] for control in CONTROLS}
    assert {identifier: list(table) for identifier, table in tables.items()} == named


def test_severities_and_thresholds_are_those_of_the_file_and_the_rest_stays(tmp_path: Path) -> None:
    data = (
        b'[control."timeliness"]\nseverity = "error"\nforwarded_within_s = 600\n[control."changes"]\nseverity = "off"\n'
    )
    path = tmp_path / "policy.toml"
    path.write_bytes(data)
    policy = Policy.load(path)
    timeliness = _control(policy, "timeliness")
    assert timeliness.severity is Severity.ERROR
    assert {each.name: each.value for each in timeliness.parameters} == {
        "acknowledged_within_s": 60,
        "forwarded_within_s": 600,
        "delivered_within_s": 60,
    }
    assert _control(policy, "changes").severity is Severity.OFF
    assert _control(policy, "qos.1") == _control(Policy(), "qos.1")
    assert [control.identifier for control in policy.controls()] == [control.identifier for control in CONTROLS]
    assert (policy.text, policy.sha256) == (data.decode(), hashlib.sha256(data).hexdigest())
    assert (Policy().text, Policy().sha256) == ("", "")


def test_the_scope_is_a_period_in_utc_gateways_and_topics() -> None:
    text = (
        "[scope]\nfrom = 2026-11-20\nuntil = 2026-11-20T08:00:00+01:00\n"
        'gateways = ["0102030405060708090a0b0c"]\ntopics = ["plant/+/#"]\n'
    )
    assert Policy.parse(text.encode()).scope == PolicyScope(
        from_us=1_795_132_800_000_000,
        until_us=1_795_132_800_000_000 + 7 * 3_600 * SECOND,
        gateways=("0102030405060708090a0b0c",),
        topics=("plant/+/#",),
    )


REFUSED = {
    "an unknown section": ("[scop]\n", "there is no key scop, did you mean scope?"),
    "an unknown key of the scope": ("[scope]\ntopic = []\n", "there is no key scope.topic, did you mean scope.topics?"),
    "an unknown control": (
        '[control."integrity.hashes"]\n',
        'there is no key control."integrity.hashes", did you mean control."integrity.hash"?',
    ),
    "an identifier without quotes": ("[control.qos.1]\n", 'identifiers with a dot stand in quotes: [control."qos.1"]'),
    "an unknown parameter": (
        '[control."timeliness"]\nforwarded_within = 1\n',
        'there is no key control."timeliness".forwarded_within, did you mean control."timeliness".forwarded_within_s?',
    ),
    "another severity": (
        '[control."qos.1"]\nseverity = "fatal"\n',
        "control.\"qos.1\".severity is 'fatal': write error, warning or off",
    ),
    "a severity that is a list": ('[control."qos.1"]\nseverity = ["off"]\n', "write error, warning or off"),
    "a text for a number": ('[control."timeliness"]\ndelivered_within_s = "60"\n', "write a whole number of seconds"),
    "a fraction": ('[control."timeliness"]\ndelivered_within_s = 0.5\n', "write a whole number of seconds"),
    "true for a number": ('[control."timeliness"]\ndelivered_within_s = true\n', "write a whole number of seconds"),
    "a number for true": ('[control."integrity.chain"]\nfrom_start = 1\n', "write true or false"),
    "a number that is too small": ('[control."delivery.qos1"]\novertaken_by_messages = 0\n', "a number from 1 to"),
    "a number that is too large": ('[control."timeliness"]\ndelivered_within_s = 9223372036854775808\n', "from 0 to"),
    "a value for a table": ("control = 1\n", "control is 1: write a table, [control]"),
    "a time without a zone": ("[scope]\nfrom = 2026-11-20T07:00:00\n", "a time with its zone"),
    "a time as text": ('[scope]\nfrom = "2026-11-20"\n', "without quotes"),
    "a period that ends before it begins": (
        "[scope]\nfrom = 2026-11-20\nuntil = 2026-11-20\n",
        "must be later than scope.from",
    ),
    "a gateway that is none": (
        '[scope]\ngateways = ["boiler"]\n',
        "scope.gateways has 'boiler': write the 24 hex digits",
    ),
    "one topic": ('[scope]\ntopics = "a"\n', "write a list of texts"),
    "a topic filter that is none": ('[scope]\ntopics = ["a/#/b"]\n', "scope.topics has 'a/#/b'"),
    "no TOML": ("[scope", "it is not TOML"),
    "nested too deep": ("a = " + "[" * 100_000, "it is not TOML"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_policy_cannot_mean_is_refused_with_the_key_and_what_to_write(case: str) -> None:
    text, words = REFUSED[case]
    with pytest.raises(PolicyError) as refused:
        Policy.parse(text.encode())
    assert words in str(refused.value)


@pytest.mark.parametrize("data", [b"\xff", b"#" * (1024 * 1024 + 1)], ids=["not UTF-8", "too long"])
def test_bytes_that_are_no_policy_are_refused_with_the_files_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(data)
    with pytest.raises(PolicyError, match=str(path)):
        Policy.load(path)


#: What a scope asks for of the records that _trail writes, by their sequence; 99 is a finding without a record.
SCOPES: dict[str, tuple[PolicyScope, set[int]]] = {
    "everything": (PolicyScope(), {1, 2, 3, 4, 5, 6, 7, 8, 9, 99}),
    "from": (PolicyScope(from_us=AT + 5 * SECOND), {5, 6, 7, 8, 9, 99}),
    "until": (PolicyScope(until_us=AT + 5 * SECOND), {1, 2, 3, 4, 99}),
    "gateways": (PolicyScope(gateways=("f" * 24,)), {9, 99}),
    "topics": (PolicyScope(topics=("plant/+/x", "other")), {1, 2, 5, 7, 9, 99}),
    "a tree": (PolicyScope(topics=("plant/#",)), {1, 2, 3, 4, 5, 6, 7, 9, 99}),
    "a topic with marks": (PolicyScope(topics=("plant/b/y.(z",)), {3, 4, 6, 7, 9, 99}),
    "all but those of the broker": (PolicyScope(topics=("#",)), {1, 2, 3, 4, 5, 6, 7, 9, 99}),
}


def _scoped_trail(trail) -> None:
    """Two exchanges and what became of them; a confirmation has no topic, nor has the start of another gateway."""

    def add(kind: str, **fields: object) -> None:
        trail.add(kind, at_us=AT + (trail.sequence + 1) * SECOND, **fields)

    boiler = {"client": "boiler", "session_epoch": 1, "direction": "in"}
    add("accepted", **boiler, exchange=1, topic="plant/a/x")
    add("put", **boiler, exchange=1, topic="plant/a/x", message_id="01")
    add("accepted", **boiler, exchange=2, topic="plant/b/y.(z")
    add("put", **boiler, exchange=2, topic="plant/b/y.(z", message_id="02")
    add("forwarded", message_id="01")
    add("refused", **boiler, exchange=2)
    add("confirmed", **boiler, packet_type=4, exchanges=[[1, 2]])
    add("put", message_id="03", topic="$SYS/broker")
    add("started", gateway="f" * 24)


def test_a_scope_asks_for_its_records_and_for_what_it_cannot_place(trail, tmp_path: Path) -> None:
    _scoped_trail(trail)
    every = replace(
        integrity.HASHES,
        rule=Rule(
            query="SELECT gateway, sequence, '' AS subject, '' AS detail FROM records UNION ALL SELECT '', 99, '', ''"
        ),
    )
    audit_input = input_of_trails([trail_files(trail.write(), tmp_path)])
    told: dict[str, set[int]] = {}
    for place, (case, (scope, _sequences)) in enumerate(SCOPES.items()):
        (scratch := tmp_path / str(place)).mkdir()
        with closing(DuckEngine(scratch, "1g")) as engine:
            engine.read(audit_input.pieces, Reading(scope=scope), audit_input.text_bytes)
            make_tables(engine)
            Judgement(engine=engine, audit_input=audit_input, controls=(every,), scope=scope).results()
            told[case] = {row["sequence"] for row in engine.rows("SELECT sequence FROM told")}
    assert told == {case: sequences for case, (_, sequences) in SCOPES.items()}

"""A trail with keyed personal data: performed again with the key, not judged without it, and its chain holds anyway."""

import base64
from pathlib import Path

import pytest

from spark_audit.audit_input import input_of_trails
from spark_audit.personal import PersonalKey
from spark_audit.read import trail_files
from spark_audit.result import AuditResult, ControlStatus, Verdict
from tests.spark_audit.conftest import audited, policy_of

KEY = bytes(range(32))
PUBLISH = bytes.fromhex("32 09 0003 612f62 000a")
#: A Publish of topic a/b in MQRFH2 by its byte layout: little-endian, UTF-8, Format of the body blank.
MQRFH2 = bytes.fromhex(
    "52464820 02000000 60000000 22020000 b8040000 2020202020202020 00000000 b8040000 38000000"
) + b"<psc><Command>Publish</Command><Topic>a/b</Topic></psc>".ljust(0x38)


def _put(trail, **fields: object) -> None:
    key = PersonalKey(KEY)
    put = {
        "direction": "in",
        "client": key.name("boiler"),
        "session_epoch": 1,
        "exchange": 1,
        "packet_type": 3,
        "qos": 1,
        "topic": key.name("a/b"),
        "command": "Publish",
        "queue": "SYSTEM.BROKER.DEFAULT.STREAM",
        "message_id": "01" * 24,
        "conversion": "packet_to_header",
        "input_format": "MQTT",
        "input": key.sealed(PUBLISH),
        "output_format": "MQHRF2",
        "output_ccsid": 1208,
        "output_encoding": 546,
        "output": key.sealed(MQRFH2),
        "payload_bytes": 2,
    }
    trail.add("put", **put | fields)


@pytest.fixture
def opened(trail, tmp_path: Path):
    """Audits what was put, with a key or without."""

    def run(key: bytes | None) -> AuditResult:
        audit_input = input_of_trails([trail_files(trail.write(), tmp_path)])
        controls = policy_of("integrity.chain", "conversion.reperformance", "conversion.reperformable")
        return audited(audit_input, tmp_path, policy=controls, personal_key=key)

    return run


def _status(result: AuditResult) -> dict[str, tuple[ControlStatus, int]]:
    return {each.identifier: (each.status, each.violations) for each in result.controls if each.severity != "off"}


def test_without_the_key_re_performance_is_not_evaluable_and_the_chain_holds(trail, opened) -> None:
    _put(trail)
    result = opened(None)
    assert result.verdict is Verdict.NOT_EVALUABLE
    assert "--personal-key" in result.reason
    status = _status(result)
    assert status["integrity.chain"] == (ControlStatus.HELD, 0)
    assert status["conversion.reperformance"][0] is ControlStatus.NOT_EVALUABLE


def test_what_is_not_encrypted_is_judged_beside_what_is(trail, opened) -> None:
    _put(trail)
    clear = {"input": base64.b64encode(PUBLISH).decode(), "output": base64.b64encode(MQRFH2).decode()}
    _put(trail, **clear)
    result = opened(None)
    assert result.verdict is Verdict.CLEAN
    assert "1 conversion performed again and 1 not" in result.reason
    status = _status(result)
    assert status["conversion.reperformance"] == (ControlStatus.HELD, 0)
    assert status["conversion.reperformable"] == (ControlStatus.VIOLATED, 1)
    assert {each.identifier: each.tested for each in result.controls if each.tested} == {
        "integrity.chain": 2,
        "conversion.reperformance": 1,
        "conversion.reperformable": 2,
    }
    _put(trail, **(clear | {"output": base64.b64encode(MQRFH2.replace(b"a/b", b"a/c")).decode()}))
    assert _status(opened(None))["conversion.reperformance"] == (ControlStatus.VIOLATED, 1)


def test_headers_are_opened_and_performed_again_with_the_key_alone(trail, opened) -> None:
    """What lies elsewhere, or is damaged, the key does not open; what was never sealed needs none."""
    _put(trail)
    _put(trail, output=PersonalKey(KEY).sealed(MQRFH2.replace(b"a/b", b"a/c")))
    _put(trail, destination="PLANT")
    _put(trail, input="e:damaged")
    _put(trail, input=base64.b64encode(PUBLISH).decode(), output=base64.b64encode(MQRFH2).decode())
    result = opened(KEY)
    assert _status(result)["conversion.reperformance"] == (ControlStatus.VIOLATED, 1)
    assert _status(result)["conversion.reperformable"] == (ControlStatus.VIOLATED, 2)
    (count,) = (each.count for each in result.conversions if each.status == "match")
    assert count == 2
    with_another = _status(opened(bytes(32)))
    assert with_another["conversion.reperformable"] == (ControlStatus.VIOLATED, 4)
    assert with_another["conversion.reperformance"] == (ControlStatus.HELD, 0)

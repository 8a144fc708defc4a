"""A result in which everything that a stranger can write is hostile, and the two conversions that it shows."""

import base64
import json
from collections.abc import Callable
from importlib.resources import files

import jsonschema
import pytest

from spark_audit.result import (
    EXCEPTIONS_FOLDER,
    AuditResult,
    Balances,
    ControlResult,
    ConversionCount,
    Count,
    Coverage,
    DroppedField,
    Evidence,
    Integrity,
    IntegrityGap,
    IntegrityProblem,
    Latency,
    ParameterInForce,
    PersonalData,
    ProgramStart,
    QosProof,
    Scope,
    Segment,
    Verdict,
    Violation,
    Volume,
    Volumes,
)

#: Markup, a terminal's escape, a template, the end of a CDATA section, and marks that turn the direction of a line.
HOSTILE = "</td><script>alert('x')</script>\x1b[31m{{ 7 * 7 }} ]]> \u202egnp.exe \u2066 [click](javascript:x)\ud800"
GATEWAY = "0102030405060708090a0b0c"
SEGMENT = "000000000001-20261120T07.jsonl"
AT = 1_795_158_000_000_000
HOUR_US = 3_600_000_000
#: A PUBLISH of a/b at QoS 1, packet identifier 10, and its header by the layout of MQRFH2.
PUBLISH = bytes.fromhex("32 09 0003 612f62 000a")
MQRFH2 = bytes.fromhex(
    "52464820 02000000 60000000 22020000 b8040000 2020202020202020 00000000 b8040000 38000000"
) + b"<psc><Command>Publish</Command><Topic>a/b</Topic></psc>".ljust(0x38)


def evidence_of(before: bytes, written: bytes, expected: bytes, offset: int) -> Evidence:
    """The evidence of a conversion whose output differs from `offset` on."""
    sides = [base64.b64encode(side).decode() for side in (before, written, expected)]
    return Evidence(
        conversion="packet_to_header",
        message_id="01" * 24,
        input=sides[0],
        input_bytes=len(before),
        output=sides[1],
        output_bytes=len(written),
        expected=sides[2],
        expected_bytes=len(expected),
        byte_offset=offset,
        written_byte=written[offset : offset + 1].hex(),
        expected_byte=expected[offset : offset + 1].hex(),
    )


def violation(sequence: int, subject: str, detail: str, evidence: Evidence | None = None) -> Violation:
    """A finding in a line of its own."""
    return Violation(
        gateway=GATEWAY,
        sequence=sequence,
        subject=subject,
        detail=detail,
        segment=SEGMENT,
        line=sequence,
        client=HOSTILE,
        topic=HOSTILE,
        message_id=HOSTILE,
        at_us=AT + sequence * 60_000_000,
        evidence=evidence,
    )


def control(identifier: str, *found: Violation, **changes: object) -> ControlResult:
    """The result of a control that found that, and no more."""
    fields: dict[str, object] = {
        "identifier": identifier,
        "title": f"The question of {identifier}",
        "severity": "error",
        "source": "QoS levels and flows (ac10850_)",
        "violations": len(found),
        "sample": found,
        "tested": 9,
        "items": "exchanges",
    }
    return ControlResult(**(fields | changes))  # type: ignore[arg-type]  # the fields are those of ControlResult


#: A trail that tells a gap which no policy names, and one that a policy does.
RESTORED = Integrity(
    verdict="restored",
    reason="restored at 2026-11-20T07:00:00Z, batches 1 to 4 missing",
    records=9,
    gaps=(
        IntegrityGap(
            record="ef" * 32,
            gateway="0a" * 12,
            what="restored at 2026-11-20T07:00:00Z, batches 1 to 4 missing",
            is_accepted=False,
        ),
        IntegrityGap(record="fe" * 32, gateway="0b" * 12, what="restored at 2026-11-19T07:00:00Z", is_accepted=True),
    ),
    gap_count=2,
)


@pytest.fixture
def result() -> AuditResult:
    """Violations of every shape."""
    wrong = MQRFH2.replace(b"a/b", b"a/c")
    long_topic = b"\x32" + b"plant/" * 10_922
    return AuditResult(
        verdict=Verdict.VIOLATIONS,
        reason=HOSTILE,
        audited_at="2026-11-20T10:11:12+00:00",
        scope=_scope(),
        integrity=Integrity(
            verdict="violated",
            reason=HOSTILE,
            segments=1,
            digests=2,
            records=9,
            head="ab" * 32,
            public_keys=("cd" * 32,),
            problems=(IntegrityProblem(finding="changed line", segment=SEGMENT, line=7, offset=900, what=HOSTILE),),
            problem_count=1,
        ),
        controls=(
            control(
                "qos.1",
                *(violation(7, subject, HOSTILE) for subject in (HOSTILE, "long/" * 13_000, "שלום/עולם")),
                violations=81_234,
                parameters=(
                    ParameterInForce(name="grace_s", value=60, unit="s", meaning="time"),
                    ParameterInForce(name="from_start", value=True, unit="yes or no", meaning="all of it"),
                ),
            ),
            control(
                "conversion.reperformance",
                violation(8, "message", HOSTILE, evidence_of(PUBLISH, wrong, MQRFH2, MQRFH2.index(b"a/b") + 2)),
                violation(9, "message", "cut", evidence_of(long_topic, long_topic, long_topic[:40_000], 40_000)),
            ),
            control("timeliness", violation(9, "message", "took 12 s"), severity="warning"),
            control("conversion.options", not_evaluable=HOSTILE),
            control("retained", severity="off"),
            control("conservation"),
            control("passages", tested=0),
        ),
        conversions=(ConversionCount(conversion=HOSTILE, status="match", same_bytes=False, count=3),),
        dropped_fields=(DroppedField(name=HOSTILE, reason=HOSTILE, count=12_345),),
        qos_proofs=(_proof(0), _proof(1), _proof(2)),
        balances=Balances(
            kinds=(Count(group="records", what=HOSTILE, count=1),),
            copies=(Count(group="A.QUEUE.WITH.A.NAME.OF.FORTY.EIGHT.CHARACTERS.IN.IT", what="delivered", count=1),),
        ),
        volumes=Volumes(interval_s=60, intervals=tuple(_volume(minute) for minute in (0, 1, 2, 30, 31))),
        latencies=(
            Latency(step="delivered after put", qos=1, count=9, p50_us=800, p90_us=1_500, p99_us=20_000, max_us=2**40),
        ),
        starts=(
            ProgramStart(
                gateway=GATEWAY, at_us=10**18, code_version=HOSTILE, table_version="1", configuration_sha256=HOSTILE
            ),
        ),
        personal_data=PersonalData.PLAIN,
        command=("rfhbridge", "audit", "run", "--data", "it's here"),
        auditor=HOSTILE,
        policy="policy.toml",
        policy_sha256="12" * 32,
        policy_text=f'[scope]\ntopics = ["plant/#"]  # {HOSTILE}\n',
        exceptions=EXCEPTIONS_FOLDER,
        engine="spark",
        seconds=(("reading", 1.0), ("judging", 0.5)),
        versions=(("rfhbridge", "0.1.0"), ("record", "1")),
        limits="What a chain does not show.",
    )


def _scope() -> Scope:
    extent = {"first_sequence": 1, "last_sequence": 10, "first_at_us": AT, "last_at_us": AT + HOUR_US}
    return Scope(
        segments=(Segment(name=SEGMENT, lines=9, records=9, **extent),),
        segment_count=12,
        bytes=9_000,
        lines=9,
        records=9,
        torn_files=(HOSTILE,),
        coverage=(Coverage(gateway=HOSTILE, name=HOSTILE, records=9, missing=1, **extent),),
        gateway_count=1,
        first_at_us=AT,
        last_at_us=AT + HOUR_US,
    )


def _proof(qos: int) -> QosProof:
    return QosProof(
        qos=qos,
        accepted=1_003,
        put=1_000,
        refused=1,
        dead_lettered=1,
        pending=1,
        acknowledged=1_002 if qos else 0,
        delivered=2_000,
        completed=1_999 if qos else 0,
        unanswered=1 if qos else 0,
        violations=81_234 if qos == 1 else 0,
    )


def _volume(minute: int) -> Volume:
    return Volume(
        at_us=AT + minute * 60_000_000, accepted=10 + minute, put=9, delivered=20, forwarded=0, ended_otherwise=1
    )


@pytest.fixture(scope="session")
def valid() -> Callable[[str], object]:
    """Reads result.json, after it has passed the schema in the package."""
    schema = json.loads((files("spark_audit.report") / "result.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    checker = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())

    def read(text: str) -> object:
        document = json.loads(text)
        checker.validate(document)
        return document

    return read

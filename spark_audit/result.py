"""The result of an audit: result.json as typed values. Raise RESULT_VERSION when a field changes its meaning.

Its JSON Schema stands in report/result.schema.json; a test holds the two together. Times are microseconds since 1970
UTC, 0 for none. Bytes are base64. Counts include everything that was read; samples are its beginning.
"""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

RESULT_VERSION: Final = 3
#: The folder beside result.json. Spark replaces it as a whole, so its name must have no other use.
EXCEPTIONS_FOLDER: Final = "exceptions.parquet"
SWITCHED_OFF: Final = "off"
NOT_CHECKED: Final = "not checked"


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 segment, 2 segments."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Verdict(StrEnum):
    """CLEAN: no control of severity error found anything. NOT_EVALUABLE: nothing could be judged."""

    CLEAN = "clean"
    VIOLATIONS = "violations"
    NOT_EVALUABLE = "not evaluable"

    @property
    def exit_code(self) -> int:
        return {Verdict.CLEAN: 0, Verdict.VIOLATIONS: 1, Verdict.NOT_EVALUABLE: 2}[self]


class Subject(StrEnum):
    """The subject of an audit: trails of gateways, or an archive of captured messages.

    For an archive, `records` counts messages, `segment_count` counts files, and unread files count as set aside.
    """

    TRAIL = "trail"
    ARCHIVE = "archive"


class ControlStatus(StrEnum):
    """HELD: something was tested, and nothing was found. NOTHING_TO_TEST: there was nothing that the control asks of.

    NOT_EVALUABLE: the control could not judge, and says why. OFF: the policy forbade it.
    """

    HELD = "held"
    NOTHING_TO_TEST = "nothing to test"
    VIOLATED = "violated"
    NOT_EVALUABLE = "not evaluable"
    OFF = "off"


class PersonalData(StrEnum):
    """The way in which the trail names clients and topics. KEYED: only keyed hashes; MIXED: some records each way."""

    PLAIN = "plain"
    KEYED = "keyed"
    MIXED = "mixed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The bytes of the conversion that a finding speaks of: `input` before it, `output` after it as the gateway wrote
    them, `expected` as the audit performs it.

    The bytes are base64 and may be cut; the lengths (bytes) are not. `byte_offset` is the first byte of `output` that
    differs from `expected`, -1 for none; the two bytes there are hex, "" past the end.
    """

    conversion: str
    message_id: str
    input: str
    input_bytes: int
    output: str
    output_bytes: int
    expected: str
    expected_bytes: int
    byte_offset: int
    written_byte: str
    expected_byte: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One finding: the record that shows it, its subject, its fault, and the place of the record.

    `sequence` is 0 if the line is no record. `segment` is "" and `line` 0 if the place is unknown; lines count from 1.
    `client`, `topic`, `message_id` and `at_us` are those of the record, "" and 0 if it has none. A record of a
    conversion has `evidence`.
    """

    gateway: str
    sequence: int
    subject: str
    detail: str
    segment: str = ""
    line: int = 0
    client: str = ""
    topic: str = ""
    message_id: str = ""
    at_us: int = 0
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterInForce:
    """A threshold with which a control judged."""

    name: str
    value: int | bool
    unit: str
    meaning: str

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return f"{self.name} = {'yes' if self.value else 'no'}"
        return f"{self.name} = {self.value} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlResult:
    """The findings of a control: `violations` counts all, and `sample` has the first.

    `tested` is the number of items that it looked at, and `items` their name: records, exchanges, messages ...
    `severity` is error, warning, or off. A control that is off did not run. `not_evaluable` says why it could not
    judge; "" if it did.
    """

    identifier: str
    title: str
    severity: str
    source: str
    violations: int
    sample: tuple[Violation, ...]
    tested: int = 0
    items: str = ""
    parameters: tuple[ParameterInForce, ...] = ()
    not_evaluable: str = ""

    @property
    def status(self) -> ControlStatus:
        if self.severity == SWITCHED_OFF:
            return ControlStatus.OFF
        if self.not_evaluable:
            return ControlStatus.NOT_EVALUABLE
        if self.violations:
            return ControlStatus.VIOLATED
        return ControlStatus.HELD if self.tested else ControlStatus.NOTHING_TO_TEST

    def as_dict(self) -> dict[str, object]:
        """For JSON, with the status."""
        return {**asdict(self), "status": self.status.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionCount:
    """The number of conversions of a kind with an outcome; `same_bytes`: the layout agreed too."""

    conversion: str
    status: str
    same_bytes: bool
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number of records, exchanges or copies, as `group` and `what` say."""

    group: str
    what: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedField:
    """A field that conversions did not copy, why, and how often."""

    name: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A file of the trail, and the records in it."""

    name: str
    lines: int
    records: int
    first_sequence: int
    last_sequence: int
    first_at_us: int
    last_at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The records of one gateway; `missing` counts sequence numbers without a record between the first and the last.

    `name` is the last one that its configuration gave it, "" for none.
    """

    gateway: str
    records: int
    first_sequence: int
    last_sequence: int
    missing: int
    first_at_us: int
    last_at_us: int
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The extent of the audit. `from_us` and `until_us` are the wanted period, 0 for no limit.

    `segments` and `coverage` are the first of them by name; `segment_count` and `gateway_count` are all.
    """

    segments: tuple[Segment, ...] = ()
    segment_count: int = 0
    bytes: int = 0
    lines: int = 0
    records: int = 0
    lines_set_aside: int = 0
    torn_files: tuple[str, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    gateway_count: int = 0
    first_at_us: int = 0
    last_at_us: int = 0
    from_us: int = 0
    until_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityProblem:
    """A fault in the trail's files; `finding` is its kind, as spark_audit.verify names it.

    `line` counts from 1, 0 speaks of the whole file; `offset` (bytes, uncompressed) is where the line begins.
    """

    finding: str
    segment: str
    line: int
    offset: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityGap:
    """A gap that the trail itself records: `record` is the hash of its record of kind restored.

    `is_accepted`: the policy names that record.
    """

    record: str
    gateway: str
    what: str
    is_accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrity:
    """The result of the check without Spark (spark_audit.verify), in its words; NOT_CHECKED if it did not run.

    `anchors`: things from outside the folder that the trail was compared with. `head` is the hash of the last record,
    `digest_head` that of the last digest, and `last_digest_at_us` its time: of several trails the oldest, 0 if one has
    no digest. `records_without_digest` are chained and not signed yet; `segments_removed`
    are known by their digests alone. `gaps` are the first of those that the trail tells, `gap_count` counts all.
    """

    verdict: str = NOT_CHECKED
    reason: str = ""
    anchors: tuple[str, ...] = ()
    segments: int = 0
    segments_removed: int = 0
    digests: int = 0
    records: int = 0
    records_without_digest: int = 0
    head: str = ""
    digest_head: str = ""
    last_digest_at_us: int = 0
    public_keys: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[IntegrityProblem, ...] = ()
    problem_count: int = 0
    gaps: tuple[IntegrityGap, ...] = ()
    gap_count: int = 0
    limits: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QosProof:
    """The ends of all exchanges of one QoS, from clients (`accepted` ...) and to clients (`delivered` ...).

    accepted = put + refused + dead_lettered + pending; delivered = completed + unanswered for QoS 1 and 2.
    `acknowledged`: those for which the gateway sent PUBACK or PUBCOMP. `violations`: of qos.N and delivery.qosN.
    """

    qos: int
    accepted: int
    put: int
    refused: int
    dead_lettered: int
    pending: int
    acknowledged: int
    delivered: int
    completed: int
    unanswered: int
    violations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Balances:
    """Sums: records by kind; exchanges by QoS, copies by queue, passages by target, with their ends."""

    kinds: tuple[Count, ...] = ()
    exchanges: tuple[Count, ...] = ()
    copies: tuple[Count, ...] = ()
    passages: tuple[Count, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """The records of an interval from `at_us` on. `ended_otherwise`: refused, dead-lettered or dropped."""

    at_us: int
    accepted: int
    put: int
    delivered: int
    forwarded: int
    ended_otherwise: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Volumes:
    """Volumes in intervals of `interval_s` seconds, in order; an interval without a record is left out."""

    interval_s: int = 0
    intervals: tuple[Volume, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The duration of one step, microseconds between two records. `qos` is -1 if it does not matter."""

    step: str
    qos: int
    count: int
    p50_us: int
    p90_us: int
    p99_us: int
    max_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStart:
    """A start of the gateway in the trail: its version, its table and its configuration."""

    gateway: str
    at_us: int
    code_version: str
    table_version: str
    configuration_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """The whole result of an audit. The reports and the summary use nothing else.

    `engine` names what ran the controls, and `seconds` the duration of each step. `command` repeats the audit, and
    `auditor` is the user of the operating system who ran it. `policy` names the policy file, `policy_sha256` is the
    hash of its bytes, and `policy_text` its text; all are "" without one. `exceptions` is the folder beside result.json
    with every violation as Parquet, "" if it was not written.
    """

    verdict: Verdict
    reason: str
    audited_at: str
    subject: Subject = Subject.TRAIL
    scope: Scope = Scope()
    integrity: Integrity = Integrity()
    controls: tuple[ControlResult, ...] = ()
    conversions: tuple[ConversionCount, ...] = ()
    dropped_fields: tuple[DroppedField, ...] = ()
    qos_proofs: tuple[QosProof, ...] = ()
    balances: Balances = Balances()
    volumes: Volumes = Volumes()
    latencies: tuple[Latency, ...] = ()
    starts: tuple[ProgramStart, ...] = ()
    personal_data: PersonalData = PersonalData.UNKNOWN
    command: tuple[str, ...] = ()
    auditor: str = ""
    policy: str = ""
    policy_sha256: str = ""
    policy_text: str = ""
    exceptions: str = ""
    engine: str = ""
    seconds: tuple[tuple[str, float], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    limits: str = ""
    result_version: int = RESULT_VERSION

    def as_dict(self) -> dict[str, object]:
        """For JSON; `versions` and `seconds` become objects."""
        controls = [control.as_dict() for control in self.controls]
        named = {"versions": dict(self.versions), "seconds": dict(self.seconds)}
        return {**asdict(self), "controls": controls, **named}

    def as_json(self) -> str:
        """result.json, in ASCII, so that a stranger's text steers no terminal, and a lone surrogate does no harm."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=True) + "\n"

"""The result of an audit: result.json as typed values. Raise RESULT_VERSION when a field changes its meaning."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

RESULT_VERSION: Final = 1


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 segment, 2 segments."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Verdict(StrEnum):
    """CLEAN: no control of severity error found anything. NOT_EVALUABLE: there was nothing that could be judged."""

    CLEAN = "clean"
    VIOLATIONS = "violations"
    NOT_EVALUABLE = "not evaluable"

    @property
    def exit_code(self) -> int:
        return {Verdict.CLEAN: 0, Verdict.VIOLATIONS: 1, Verdict.NOT_EVALUABLE: 2}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One finding: the record that shows it, what it speaks of, and what is wrong."""

    gateway: str
    sequence: int
    subject: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlResult:
    """What a control found: `violations` counts all, `sample` holds the first of them."""

    identifier: str
    title: str
    severity: str
    source: str
    violations: int
    sample: tuple[Violation, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionCount:
    """How many conversions of a kind had an outcome; `same_bytes` says whether layout agreed too."""

    conversion: str
    status: str
    same_bytes: bool
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A conversion that differs, with its bytes (base64) and the offset of the first byte that differs."""

    gateway: str
    sequence: int
    message_id: str
    conversion: str
    detail: str
    byte_offset: int
    input: str
    output: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number of records, exchanges or copies: `group` and `what` say of which."""

    group: str
    what: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What was read. Times are microseconds since 1970 UTC, 0 where nothing has a time."""

    segments: tuple[str, ...]
    bytes: int
    lines: int
    records: int
    lines_set_aside: int
    torn_files: tuple[str, ...]
    gateways: tuple[str, ...]
    first_at_us: int
    last_at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Volumes:
    """Sums: records by kind; exchanges by QoS, copies by queue, passages by target, with their ends."""

    kinds: tuple[Count, ...]
    exchanges: tuple[Count, ...]
    copies: tuple[Count, ...]
    passages: tuple[Count, ...]
    dropped_fields: tuple[Count, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStart:
    """A start of the gateway within the trail: what ran, by which table, with which configuration."""

    gateway: str
    at_us: int
    code_version: str
    table_version: str
    configuration_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """Everything an audit says; the report and the summary are made from this alone."""

    verdict: Verdict
    reason: str
    audited_at: str
    scope: Scope
    controls: tuple[ControlResult, ...] = ()
    conversions: tuple[ConversionCount, ...] = ()
    differences: tuple[Difference, ...] = ()
    volumes: Volumes = Volumes(kinds=(), exchanges=(), copies=(), passages=(), dropped_fields=())
    starts: tuple[ProgramStart, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    limits: str = ""
    result_version: int = RESULT_VERSION

    def as_dict(self) -> dict[str, object]:
        """For JSON; `versions` becomes an object."""
        return {**asdict(self), "versions": dict(self.versions)}

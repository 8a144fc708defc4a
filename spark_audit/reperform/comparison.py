"""The results of re-performing one conversion: its comparison, findings by rules, IBM's reason codes."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

# Typed from the header files cmqc.h and cmqcfc.h for the audit alone.


class Reason(IntEnum):
    """A reason code by IBM's name."""

    MQRC_SOURCE_CCSID_ERROR = 2111
    MQRC_SOURCE_INTEGER_ENC_ERROR = 2112
    MQRC_DLH_ERROR = 2141
    MQRC_RFH_ERROR = 2334
    MQRC_RFH_STRING_ERROR = 2335
    MQRC_RFH_COMMAND_ERROR = 2336
    MQRC_RFH_PARM_ERROR = 2337
    MQRC_RFH_DUPLICATE_PARM = 2338
    MQRC_RFH_PARM_MISSING = 2339
    MQRC_RFH_FORMAT_ERROR = 2421
    MQRCCF_TOPIC_ERROR = 3072


class Status(StrEnum):
    """MATCH: the same meaning; DIFFERENCE: another meaning; NOT_REPERFORMABLE: this reading cannot judge it."""

    MATCH = "match"
    DIFFERENCE = "difference"
    NOT_REPERFORMABLE = "not_reperformable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What was written, compared with what this reading writes.

    `same_bytes`: the output is byte for byte what this reading writes. If only the layout differs (padding, order of
    elements), the status is MATCH, and `offset` is the first differing byte; -1 means none.
    """

    status: Status
    detail: str = ""
    same_bytes: bool = True
    offset: int = -1
    expected: bytes = b""


class UnreadableBytes(ValueError):
    """Bytes do not have the expected structure, at byte `offset`; `reason` is IBM MQ's code for such bytes."""

    def __init__(self, what: str, offset: int = 0, reason: Reason = Reason.MQRC_RFH_ERROR) -> None:
        super().__init__(what, offset, reason)
        self.what = what
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.what} at byte {self.offset}"


def compared(expected: bytes, actual: bytes, differences: list[str]) -> Comparison:
    """Compares: from the expected bytes, the written bytes, and the differences in meaning."""
    offset = first_difference(expected, actual)
    if differences:
        return Comparison(
            status=Status.DIFFERENCE,
            detail="; ".join(differences),
            same_bytes=offset < 0,
            offset=offset,
            expected=expected,
        )
    if offset < 0:
        return Comparison(status=Status.MATCH)
    return Comparison(
        status=Status.MATCH, detail="the layout differs", same_bytes=False, offset=offset, expected=expected
    )


def first_difference(expected: bytes, actual: bytes) -> int:
    """Offset of the first byte that differs; -1 if all are equal."""
    if expected == actual:
        return -1
    shorter = min(len(expected), len(actual))
    return next((offset for offset in range(shorter) if expected[offset] != actual[offset]), shorter)


class Rule(StrEnum):
    """The rule that was broken."""

    FIELDS = "fields"
    SUPPORT = "support"
    REPORT = "report"
    RETAIN = "retain"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule, and a sentence about the way in which a conversion breaks it."""

    rule: Rule
    detail: str


def findings(rule: Rule, details: Iterable[str]) -> list[Finding]:
    """One finding for each."""
    return [Finding(rule=rule, detail=detail) for detail in details]

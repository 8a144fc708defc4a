"""What one rule of seed 003 or of MQTT says against one conversion, beside the comparison of the whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Rule(StrEnum):
    """Which rule was broken."""

    FIELDS = "fields"
    SUPPORT = "support"
    REPORT = "report"
    RETAIN = "retain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule and, in words, how a conversion breaks it."""

    rule: Rule
    detail: str


def findings(rule: Rule, details: Iterable[str]) -> list[Finding]:
    """One finding for each."""
    return [Finding(rule=rule, detail=detail) for detail in details]

"""One rule of "Message formats" (aq19780_) or of MQTT, and what it says against one conversion."""

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

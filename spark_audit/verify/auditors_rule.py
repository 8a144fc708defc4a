"""An auditor's own rule for a trail: how long it is kept, and how fresh its last digest is.

The gateway's configuration says how long segments are kept, and a digest of kind retention announces what is removed.
It says by which setting, and must keep to that. But a holder of the signing key can write such a digest at any time. So
an auditor judges removals by his own rule. A trail that was cut at a digest agrees with itself, and only its age tells.

Times of digests are the gateway's; `now_us` is the auditor's. A digest of a time to come counts as one of now.

A policy may hold the rule; options of `verify` go first:

    [trail]
    keep_at_least_days = 365
    not_older_than_hours = 2
"""

from dataclasses import dataclass, field
from typing import Any, Final

from spark_audit.period import second_text
from spark_audit.trail.digest import COUNTERSIGNED_EVERY_US, DIGEST_FOLDER, Digest, DigestKind, digest_name
from spark_audit.verify.digests import segment_number
from spark_audit.verify.verdict import Finding, Findings

_SECOND_US: Final = 1_000_000
_MOST: Final = 1_000_000
_UNITS_S: Final = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))
#: Keys of the table [trail] of a policy, and the seconds of their units.
RULE_KEYS: Final = {"keep_at_least_days": 86_400, "not_older_than_hours": 3_600}
#: How far the clocks of gateway and auditor may differ before a digest is one of a time to come.
CLOCKS_DIFFER_US: Final = 300 * _SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditorsRule:
    """Lengths of time in microseconds; 0: nothing is asked. `now_us`: microseconds since 1970 UTC."""

    keep_at_least_us: int = 0
    not_older_than_us: int = 0
    now_us: int = 0


NO_RULE: Final = AuditorsRule()


class UnusableRule(ValueError):
    """What a policy says of the trail cannot be used: it names the key and what to write instead."""


def rule_of(tables: dict[str, Any]) -> AuditorsRule:
    """The rule in the tables of a policy, without the time of now. Raises UnusableRule."""
    told = tables.get("trail", {})
    if not isinstance(told, dict):
        raise UnusableRule("trail is not a table: write [trail]")
    for name, value in told.items():
        if name not in RULE_KEYS:
            raise UnusableRule(f"trail has no key {name}: write {' and '.join(RULE_KEYS)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
            raise UnusableRule(f"trail.{name} is {value!r:.60}: write a number that is more than 0")
    keep_us, fresh_us = (int(told.get(name, 0) * unit_s * _SECOND_US) for name, unit_s in RULE_KEYS.items())
    return AuditorsRule(keep_at_least_us=keep_us, not_older_than_us=fresh_us)


@dataclass(slots=True)
class RuleCheck:
    """Holds digest after digest against a rule."""

    rule: AuditorsRule
    findings: Findings
    #: Number and time of the last digest; 0 where there is none.
    last_number: int = 0
    last_at_us: int = 0
    #: Problems that were found.
    count: int = 0
    #: When the records of a segment ended, by its number, while it is not announced as removed.
    _ended_us: dict[int, int] = field(default_factory=dict)

    def digest(self, digest: Digest) -> None:
        """The next digest of the trail."""
        self.last_number, self.last_at_us = digest.number, digest.until_us
        if digest.kind == DigestKind.SEGMENT:
            self._ended_us[segment_number(digest)] = digest.until_us
        elif digest.kind == DigestKind.RETENTION:
            self._judge_removal(digest)

    def finish(self, countersigned_until_us: int | None = None) -> None:
        """There are no more digests: how old is the last one?

        `countersigned_until_us`: since when a countersignature is awaited; None where none is.
        """
        rule, name = self.rule, f"{DIGEST_FOLDER}/{digest_name(self.last_number)}"
        if not rule.not_older_than_us:
            return
        if not self.last_number:
            what = "there is no digest that tells how fresh the trail is: a gateway writes its first in 15 minutes"
            self._add(Finding.STALE_TRAIL, DIGEST_FOLDER, what)
        elif self.last_at_us > rule.now_us + CLOCKS_DIFFER_US:
            what = f"the last digest is of {second_text(self.last_at_us)}, which is still to come: a clock is wrong"
            self._add(Finding.STALE_TRAIL, name, what)
        elif rule.now_us - self.last_at_us > rule.not_older_than_us:
            what = (
                f"the last digest is of {second_text(self.last_at_us)}, {_length(rule.now_us - self.last_at_us)} ago,"
                f" and {_length(rule.not_older_than_us)} may be: the gateway stood still, or the trail was cut here"
            )
            self._add(Finding.STALE_TRAIL, name, what)
        elif countersigned_until_us is not None and self._is_stale(countersigned_until_us):
            ago = _length(rule.now_us - countersigned_until_us)
            what = f"not countersigned since {second_text(countersigned_until_us)}, {ago} ago"
            self._add(Finding.STALE_TRAIL, name, what)

    def _is_stale(self, since_us: int) -> bool:
        """Whether a countersignature is awaited for too long by the auditor's clock; a gateway may wait for an hour."""
        return self.rule.now_us - since_us > max(self.rule.not_older_than_us, COUNTERSIGNED_EVERY_US)

    def _add(self, finding: Finding, name: str, what: str) -> None:
        self.count += 1
        self.findings.add(finding, name, what)

    def _judge_removal(self, digest: Digest) -> None:
        """A segment is removed too early where its last record was younger than the rule asks, or the digest itself."""
        asked_us = max(self.rule.keep_at_least_us, digest.keep_us)
        removed_us = min(digest.until_us, self.rule.now_us or digest.until_us)
        gone = [number for number in self._ended_us if number <= segment_number(digest)]
        ended_us = max((self._ended_us.pop(number) for number in gone), default=removed_us - asked_us)
        if removed_us - ended_us < asked_us:
            kept, asks = _length(max(0, removed_us - ended_us)), _length(asked_us)
            who = "the rule asks for" if asked_us > digest.keep_us else f"by its own words ({digest.allowed_by}) it is"
            what = f"it removed the segments up to {digest.segment} {kept} after the last record in them; {who} {asks}"
            self._add(Finding.REMOVED_TOO_EARLY, f"{DIGEST_FOLDER}/{digest_name(digest.number)}", what)


def _length(microseconds: int) -> str:
    """A length of time in its largest unit that gives at least 2, rounded down: a reader compares it at a glance."""
    seconds = microseconds // _SECOND_US
    name, unit_s = next((each for each in _UNITS_S if seconds >= 2 * each[1]), _UNITS_S[-1])
    count = seconds // unit_s
    return f"{count:,} {name if count != 1 else name[:-1]}"

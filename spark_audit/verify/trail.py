"""A trail, whole: one pass over its digests and segments, held against an anchor where there is one."""

from dataclasses import dataclass, field, replace
from typing import Final

from spark_audit.location import Location
from spark_audit.record import RECORD_VERSION
from spark_audit.result import counted
from spark_audit.trail.digest import DIGEST_FOLDER, digest_name
from spark_audit.verify.anchor import Anchor
from spark_audit.verify.auditors_rule import NO_RULE, AuditorsRule, RuleCheck
from spark_audit.verify.chain import MOST_RESTORATIONS, LineChain
from spark_audit.verify.completeness import Completeness
from spark_audit.verify.digests import DigestChain
from spark_audit.verify.source import LONGEST_LINE_BYTES, DigestFile, SegmentFile, TrailFolder, TrailSource
from spark_audit.verify.verdict import (
    RESTORATIONS_TOLD,
    Finding,
    Findings,
    Verdict,
    Verification,
    in_order,
)

#: How often a trail is read that changes under the check's hands (a gateway's retention) in a way that looks wrong.
_ATTEMPTS: Final = 3
_NO_ANCHOR: Final = Anchor()


def verify(
    trail_dir: Location,
    anchor: Anchor = _NO_ANCHOR,
    *,
    accepted: frozenset[str] = frozenset(),
    rule: AuditorsRule = NO_RULE,
) -> Verification:
    """Checks the trail in a folder; `accepted` are the restorations that a policy names, by hash.

    Never raises for what the files hold; what cannot be read is not evaluable.
    """
    for _attempt in range(_ATTEMPTS - 1):
        before = _names(trail_dir)
        verification = _verify_folder(trail_dir, anchor, accepted, rule)
        if verification.verdict is not Verdict.VIOLATED or _names(trail_dir) == before:
            return verification
    return _verify_folder(trail_dir, anchor, accepted, rule)


def verify_source(
    source: TrailSource,
    anchor: Anchor = _NO_ANCHOR,
    accepted: frozenset[str] = frozenset(),
    rule: AuditorsRule = NO_RULE,
) -> Verification:
    """Checks the trail that a source gives. Raises what the source raises."""
    check = _Check(anchor, accepted, rule)
    for entry in source.entries():
        if isinstance(entry, DigestFile):
            check.digest(entry)
        else:
            check.segment(entry)
    check.finish()
    return check.result(*check.verdict(), source.torn_files)


def not_evaluable(reason: str) -> Verification:
    """The result where nothing could be read."""
    return _Check(_NO_ANCHOR).result(Verdict.NOT_EVALUABLE, reason, ())


def _verify_folder(trail_dir: Location, anchor: Anchor, accepted: frozenset[str], rule: AuditorsRule) -> Verification:
    try:
        return verify_source(TrailFolder(trail_dir), anchor, accepted, rule)
    except OSError as error:
        return not_evaluable(f"{error.filename or trail_dir} cannot be read: {error.strerror}")


def _names(folder: Location) -> list[str]:
    """What is in a trail's folder and in that of its digests."""
    try:
        return sorted(path.name for place in (folder, folder / DIGEST_FOLDER) for path in place.iterdir())
    except OSError:
        return []


@dataclass(slots=True)
class _Check:
    """What is known while digests and segments go by."""

    anchor: Anchor
    #: Hashes of records of kind restored that the auditor's policy names.
    accepted: frozenset[str] = frozenset()
    rule: AuditorsRule = NO_RULE
    in_lines: Findings = field(default_factory=Findings)
    in_digests: Findings = field(default_factory=Findings)
    lines: LineChain = field(init=False)
    digests: DigestChain = field(init=False)
    completeness: Completeness = field(init=False)
    of_rule: RuleCheck = field(init=False)
    #: Index in anchor.numbers of the next copy that was not looked at.
    _copies_seen: int = 0

    def __post_init__(self) -> None:
        self.lines = LineChain(self.in_lines)
        self.digests = DigestChain(self.in_digests, self.accepted, self.anchor.public_key)
        self.completeness = Completeness(self.in_lines, self.lines)
        self.of_rule = RuleCheck(self.rule, self.in_digests)

    def digest(self, file: DigestFile) -> None:
        """A digest of the trail; copies of those before it that are not there go first."""
        self.completeness.give_up_before()
        while (number := self._next_copy()) and number < file.number:
            self._take_copy(number)
        copy = self.anchor.copy_of(file.number)
        if number == file.number:
            self._copies_seen += 1
        if copy is not None and copy != file.data:
            what = "it is not the digest that was copied under this number"
            self.in_digests.add(Finding.UNLIKE_COPY, _digest_path(file.number), what)
        self._expect(file.number, file.data)

    def segment(self, segment: SegmentFile) -> None:
        """A segment. One behind the last digest may have had one: the copies know."""
        while segment.number > self.digests.segment and (number := self._next_copy()):
            self._take_copy(number)
        self.completeness.read(segment)

    def finish(self) -> None:
        """Nothing more comes from the trail."""
        while number := self._next_copy():
            self._take_copy(number)
        self.digests.finish()
        self.completeness.finish(self.digests.removed_up_to)
        self.of_rule.finish(self.digests.countersigning.open_us)
        self._check_public_key()

    def _check_public_key(self) -> None:
        key, keys = self.anchor.public_key, self.digests.keys
        if not key or key in keys or self.digests.anchored:
            return
        if self.digests.number:
            what = f"none is signed by the public key {key} that was given; they are by {', '.join(keys) or 'none'}"
            self.in_digests.add(Finding.WRONG_KEY, DIGEST_FOLDER, what)
        elif self.completeness.without_digest:
            what = "there is none, though segments were closed: nothing of this trail is signed"
            self.in_digests.add(Finding.MISSING_DIGEST, DIGEST_FOLDER, what)

    def _next_copy(self) -> int:
        """Number of the next copied digest; 0 where there is none left."""
        numbers = self.anchor.numbers
        return numbers[self._copies_seen] if self._copies_seen < len(numbers) else 0

    def _take_copy(self, number: int) -> None:
        """A digest that the trail has lost, and its copy has not."""
        self._copies_seen += 1
        data = self.anchor.copy_of(number) or b""
        what = "it is missing, though there is a copy of it: it was removed or cut off"
        self.in_digests.add(Finding.MISSING_DIGEST, _digest_path(number), what)
        self._expect(number, data)

    def _expect(self, number: int, data: bytes) -> None:
        digest = self.digests.check(number, data)
        if digest is not None:
            self.completeness.expect(digest)
            self.of_rule.digest(digest)

    def verdict(self) -> tuple[Verdict, str]:
        """The verdict and its reason."""
        if reason := self._why_not_evaluable():
            return Verdict.NOT_EVALUABLE, reason
        if self.in_lines.count or self.in_digests.count:
            return Verdict.VIOLATED, str(in_order(self.in_lines.told + self.in_digests.told)[0])
        told = f"{counted(self.lines.records, 'record')}, every hash, link and number holds"
        if self.digests.number:
            told += f"; {counted(self.digests.number, 'digest')}, every signature and root holds"
        if self.lines.restoration_count > MOST_RESTORATIONS:
            return Verdict.RESTORED, f"restored {self.lines.restoration_count} times, which no policy can name"
        for each in self.lines.restorations:
            if each.record not in self.accepted:
                return Verdict.RESTORED, f'{each}; until a policy names it: record = "{each.record}"'
        if self.anchor.names and self.digests.countersigning.is_unbound:
            return Verdict.INTACT, f"{told}; anchored by nothing: {self.digests.countersigning}"
        if self.anchor.names:
            return Verdict.ANCHORED, f"{told}; anchored by {self._anchored_by()}"
        return Verdict.INTACT, told

    def _anchored_by(self) -> str:
        anchor, number = self.anchor, self.digests.anchored
        alone = f" (it signed digest {number}, and nothing else)" if number else ""
        parts = [f"the public key {anchor.public_key}{alone}"] if anchor.public_key else []
        if anchor.numbers:
            parts.append(f"the copied digests up to {anchor.numbers[-1]}")
        return " and ".join(parts)

    def _why_not_evaluable(self) -> str:
        """What keeps from a verdict; "" where nothing does."""
        if not self.completeness.segments and not self.digests.number:
            return "there is no segment: the trail is empty, or this is not a trail"
        if not self.lines.records and not self.digests.valid:
            return "no line is an audit record"
        if self.lines.unknown_versions:
            count = self.lines.unknown_versions
            return f"{count} records have another version than {RECORD_VERSION}: use the program that wrote them"
        if self.digests.unknown_versions:
            return f"{self.digests.unknown_versions} digests have an unknown version: use the program that wrote them"
        if self.completeness.lines_too_long:
            return f"a line is longer than {LONGEST_LINE_BYTES} bytes, which no gateway of this version writes"
        if self.anchor.names and not self.digests.number and not self.in_digests.count:
            return "the trail has no digest yet to compare with the given key or copies"
        return ""

    def result(self, verdict: Verdict, reason: str, torn: tuple[str, ...]) -> Verification:
        """What is known so far, with a verdict."""
        return Verification(
            verdict=verdict,
            reason=reason,
            segments=self.completeness.segments,
            records=self.lines.records,
            gateways=tuple(self.lines.positions),
            head=self.lines.head,
            digests=self.digests.number,
            digest_head=self.digests.head,
            public_keys=tuple(self.digests.keys),
            chains=tuple(self.digests.chains),
            anchors=self.anchor.names,
            records_without_digest=self.completeness.records_without_digest,
            segments_removed=self.completeness.removed,
            torn_files=torn,
            notes=self._notes(),
            problems=in_order(self.in_lines.told + self.in_digests.told),
            problem_count=self.in_lines.count + self.in_digests.count,
            restorations=tuple(
                replace(each, is_accepted=each.record in self.accepted)
                for each in self.lines.restorations[:RESTORATIONS_TOLD]
            ),
            restoration_count=self.lines.restoration_count,
            last_digest_at_us=self.of_rule.last_at_us,
            of_rule=self.of_rule.count,
        )

    def _notes(self) -> tuple[str, ...]:
        """What is no problem and should be known."""
        check = self.completeness
        notes = [f"{name}: there beside another form of the same segment" for name in check.doubled]
        if check.removed:
            notes.append(
                f"segments up to {self.digests.removed_up_to} ({check.removed}) were removed by retention; "
                f"their digests are there"
            )
        if check.records_without_digest:
            where = f", closed segments among them: {', '.join(check.without_digest)}" if check.without_digest else ""
            count = counted(check.records_without_digest, "record")
            have = "has" if check.records_without_digest == 1 else "have"
            notes.append(f"{count} at the end {have} no digest yet{where}")
        if self.anchor.public_key in self.digests.keys and self.digests.chains:
            notes.append(
                "the public key that was given is the configured one: a holder of its private half could write all of"
                f" this anew. The first key of the chain shows more, if it was kept elsewhere: {self.digests.chains[0]}"
            )
        if self.anchor.numbers and self.anchor.numbers[-1] < self.digests.number:
            notes.append(f"the copied digests end with {self.anchor.numbers[-1]}; those behind it stand on signatures")
        notes.extend(filter(None, (str(self.digests.countersigning), str(self.digests.clock))))
        return tuple(notes)


def _digest_path(number: int) -> str:
    return f"{DIGEST_FOLDER}/{digest_name(number)}"

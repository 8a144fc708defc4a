"""Time-stamps of digests (RFC 3161): "digest N existed at T, by authority X", for people who trust that authority.

`time-stamps/WITNESS/NNNNNNNNNNNN.tsr` in the trail: the authority's whole reply (TimeStampResp, DER) over the SHA-256
of the file of digest N. `openssl ts -verify -data N.digest -in N.tsr -CAfile FILE` checks the same. A digest
names the hash of the one before, so a time-stamp of one speaks for all before it.

A certificate counts if it was valid at the time of the time-stamp, and leads to one of the auditor's file. Whether it
was revoked is not asked: that needs a network.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cryptography.x509 import Certificate, load_der_x509_certificate, load_pem_x509_certificates
from rfc3161_client import TimeStampResponse, VerifierBuilder, decode_timestamp_response
from rfc3161_client.tsp import Accuracy, PKIStatus
from rfc3161_client.verify import SHA256_OID

from spark_audit.period import second_text
from spark_audit.result import counted
from spark_audit.trail.digest import (
    DIGEST_FOLDER,
    LARGEST_DIGEST_BYTES,
    STAMPS_FOLDER,
    MalformedDigest,
    digest_name,
    digest_numbers,
    parse_digest,
    stamp_name,
    stamp_numbers,
)
from spark_audit.verify.verdict import Finding, Findings, Verdict, Verification, in_order

#: A reply with three certificates of 4,096-bit RSA keys has 8,000 bytes.
LARGEST_STAMP_BYTES: Final = 65_536
_LARGEST_AUTHORITY_BYTES: Final = 1024 * 1024
#: Witnesses of one trail, for the reader of a pack.
MOST_WITNESSES: Final = 100
_SECOND_US: Final = 1_000_000
#: How far the clocks of gateway and authority may differ.
_CLOCKS_DIFFER_US: Final = 300 * _SECOND_US


class WrongTimeStamp(ValueError):
    """A reply is no time-stamp of these bytes by this authority."""


class UnusableAuthority(ValueError):
    """A file holds no certificate of an authority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeStamp:
    """What an authority says. Times in microseconds, since 1970 UTC."""

    at_us: int
    accuracy_us: int
    policy: str
    serial_number: int
    #: Subject of the certificate that signs, RFC 4514.
    by: str


def read_authority(path: Path) -> tuple[Certificate, ...]:
    """The certificates in a PEM file. Raises UnusableAuthority and OSError."""
    with path.open("rb") as file:
        data = file.read(_LARGEST_AUTHORITY_BYTES)
    try:
        return tuple(load_pem_x509_certificates(data))
    except ValueError as error:
        raise UnusableAuthority(f"{path} holds no certificate in PEM: {error}") from None


def read_stamp(path: Path) -> bytes:
    """The bytes of a time-stamp's file, one more than it may have at most. Raises OSError."""
    with path.open("rb") as file:
        return file.read(LARGEST_STAMP_BYTES + 1)


def check_stamp(
    reply: bytes, data: bytes, authority: Iterable[Certificate], *, policy: str = "", nonce: int | None = None
) -> TimeStamp:
    """What a reply says of data. `policy` and `nonce`: those that it must have. Raises WrongTimeStamp."""
    if len(reply) > LARGEST_STAMP_BYTES:
        raise WrongTimeStamp(f"it is longer than {LARGEST_STAMP_BYTES} bytes")
    try:
        return _checked(reply, data, authority, policy, nonce)
    except WrongTimeStamp:
        raise
    except Exception as error:  # the readers of the library raise a dozen kinds, and all say the same
        raise WrongTimeStamp(_printable(str(error) or type(error).__name__)) from None


def _checked(reply: bytes, data: bytes, authority: Iterable[Certificate], policy: str, nonce: int | None) -> TimeStamp:
    response = decode_timestamp_response(reply)
    if response.status != PKIStatus.GRANTED:
        raise WrongTimeStamp(f"it was not granted: status {response.status}, {_printable(str(response.status_string))}")
    told = response.tst_info
    if told.message_imprint.hash_algorithm.dotted_string != SHA256_OID:
        raise WrongTimeStamp("the hash that it stamps is not a SHA-256")
    if policy and told.policy.dotted_string != policy:
        raise WrongTimeStamp(f"its policy is {told.policy.dotted_string}, and {policy} was asked for")
    if nonce is not None and told.nonce != nonce:
        raise WrongTimeStamp("its nonce is not that of the request: it is a reply to another one")
    VerifierBuilder(roots=list(authority)).build().verify_message(response, data)
    accuracy: Accuracy | None = told.accuracy  # it is optional, whatever the library says
    parts = () if accuracy is None else (accuracy.seconds, accuracy.millis, accuracy.micros)
    return TimeStamp(
        at_us=int(told.gen_time.timestamp() * _SECOND_US),
        accuracy_us=sum(unit * (part or 0) for unit, part in zip((_SECOND_US, 1_000, 1), parts, strict=False)),
        policy=told.policy.dotted_string,
        serial_number=told.serial_number,
        by=_signer_of(response),
    )


def _signer_of(response: TimeStampResponse) -> str:
    """The subject of the certificate that signed.

    Only its issuer and serial number are named. Two certificates of that name in one reply could each be the one that
    was checked, so there must be one.
    """
    (signer,) = response.signed_data.signer_infos
    certificates = map(load_der_x509_certificate, response.signed_data.certificates)
    named = [
        each for each in certificates if (each.issuer, each.serial_number) == (signer.issuer, signer.serial_number)
    ]
    if len(named) != 1:
        raise WrongTimeStamp(f"it holds {len(named)} certificates that claim to have signed it")
    return _printable(named[0].subject.rfc4514_string())


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)[:300]


# -- the time-stamps of a trail ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StampedDigest:
    """A digest's number and bytes (None: it is not there), and the replies over it, by the name of the witness."""

    number: int
    data: bytes | None
    replies: Mapping[str, bytes]


def stamped_digests(trail: Path) -> Iterator[StampedDigest]:
    """Every digest of the trail in a folder, or that a time-stamp names, ascending. Raises OSError."""
    folders = sorted(path for path in (trail / STAMPS_FOLDER).glob("*") if path.is_dir())[: MOST_WITNESSES + 1]
    stamped = {folder: frozenset(stamp_numbers(folder)) for folder in folders}
    digests = frozenset(digest_numbers(trail / DIGEST_FOLDER))
    for number in sorted(digests.union(*stamped.values())):
        replies = {each.name: read_stamp(each / stamp_name(number)) for each in folders if number in stamped[each]}
        yield StampedDigest(number=number, data=_digest_bytes(trail, number, digests), replies=replies)


def _digest_bytes(trail: Path, number: int, digests: frozenset[int]) -> bytes | None:
    if number not in digests:
        return None
    with (trail / DIGEST_FOLDER / digest_name(number)).open("rb") as file:
        return file.read(LARGEST_DIGEST_BYTES + 1)


def with_time_stamps(verification: Verification, digests: Iterable[StampedDigest], authority: Path) -> Verification:
    """A verification, and what the time-stamps say. Raises UnusableAuthority, OSError, and what `digests` raises."""
    certificates, findings = read_authority(authority), Findings()
    witnesses: dict[str, _Witness] = {}
    first_us: int | None = None
    for each in digests:
        until_us = _until_us(each.data)
        first_us = until_us if first_us is None else first_us
        for name, reply in sorted(each.replies.items()):
            if name not in witnesses and len(witnesses) >= MOST_WITNESSES:
                findings.add(Finding.WRONG_TIME_STAMP, STAMPS_FOLDER, f"there are more than {MOST_WITNESSES} witnesses")
                break
            witness = witnesses.setdefault(name, _Witness(name, first_us))
            witness.judge(each, reply, until_us, certificates, findings)
        for witness in witnesses.values():
            witness.pass_by(each, until_us)
    if not witnesses:
        findings.add(Finding.WRONG_TIME_STAMP, STAMPS_FOLDER, "there is none, and time-stamps were asked for")
    is_judged = verification.verdict is not Verdict.NOT_EVALUABLE
    worse = (Verdict.VIOLATED, str(findings.told[0])) if findings.count and is_judged else None
    verdict, reason = worse or (verification.verdict, verification.reason)
    return replace(
        verification,
        verdict=verdict,
        reason=verification.reason if verification.verdict is Verdict.VIOLATED else reason,
        problems=in_order((*verification.problems, *findings.told)),
        problem_count=verification.problem_count + findings.count,
        notes=(*verification.notes, *(str(witnesses[name]) for name in sorted(witnesses))),
    )


def _until_us(data: bytes | None) -> int | None:
    try:
        return None if data is None else parse_digest(data).until_us
    except MalformedDigest:
        return None


@dataclass(slots=True)
class _Witness:
    """What the time-stamps of a witness have said so far; `waits_since_us`: of the first digest without one."""

    name: str
    waits_since_us: int | None
    count: int = 0
    longest_us: int = 0
    last: str = ""
    _last_number: int = 0

    def judge(
        self,
        digest: StampedDigest,
        reply: bytes,
        until_us: int | None,
        authority: tuple[Certificate, ...],
        findings: Findings,
    ) -> None:
        """Checks the reply over a digest."""
        number = digest.number
        name = f"{STAMPS_FOLDER}/{self.name}/{stamp_name(number)}"
        try:
            if digest.data is None or until_us is None:
                raise WrongTimeStamp("that is not there" if digest.data is None else "that is no digest")
            stamp = check_stamp(reply, digest.data, authority)
        except WrongTimeStamp as error:
            findings.add(Finding.WRONG_TIME_STAMP, name, f"it shows nothing of digest {number}: {error}")
            return
        if stamp.at_us + stamp.accuracy_us < until_us - _CLOCKS_DIFFER_US:
            until = second_text(until_us)
            what = f"it is of {second_text(stamp.at_us)}, and digest {number} speaks of a time up to {until}"
            findings.add(Finding.WRONG_TIME_STAMP, name, what)
        since_us = until_us if self.waits_since_us is None else self.waits_since_us
        self.count, self.longest_us = self.count + 1, max(self.longest_us, stamp.at_us - since_us)
        self.waits_since_us, self._last_number = None, number
        self.last = f"digest {number} existed at {second_text(stamp.at_us)}, by {stamp.by} (policy {stamp.policy})"

    def pass_by(self, digest: StampedDigest, until_us: int | None) -> None:
        """A digest went by, with a time-stamp or without."""
        if self.waits_since_us is None and digest.number != self._last_number:
            self.waits_since_us = until_us

    def __str__(self) -> str:
        if not self.count:
            return f"witness {self.name} has no time-stamp that holds"
        late = f"no digest had one later than {self.longest_us // _SECOND_US:,} s after its time"
        return f"witness {self.name}, {counted(self.count, 'time-stamp')}: {self.last}; {late}"

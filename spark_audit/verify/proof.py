"""Proofs that the records of one message's life are in a trail, for people without the trail and the gateway.

A proof is one JSON object: the records' lines, for each its place among the leaves of its segment and the path from
there to the Merkle root (RFC 6962, section 2.1.1), and signed digests: those of the segments, with all digests from the
last countersigned one on, that of each new key, and the first of each chain of keys.

The records are those of life.py: the acceptance of the publication, its puts, deliveries, and what was acknowledged. A
proof of version 1 has only the records that name the message.

The checker trusts a public key, and from there every key that a digest of a trusted key names. So a proof stands
on the configured key, or on the key of any digest that is in it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import orjson

from spark_audit.life import MOST_RECORDS, Life, life_of
from spark_audit.record import line_hashes
from spark_audit.record.batch_line import is_of_batch, records_of, text_of
from spark_audit.trail.digest import FIRST_VERSION, Digest, DigestKind, MalformedDigest, digest_hash, parse_digest
from spark_audit.trail.merkle import HASH_BYTES, audit_paths, root_of_path
from spark_audit.verify.digests import segment_number
from spark_audit.verify.source import DigestFile, SegmentFile, TrailLines, TrailSource
from spark_audit.verify.verdict import Verdict

PROOF_VERSION: Final = 2
#: Proofs whose every record names the message.
_NAMES_ALONE: Final = 1
LARGEST_PROOF_BYTES: Final = 256 * 1024 * 1024
#: Fields of a record that name a message.
_NAMING: Final = ("message_id", "source_message_id", "dead_letter_id", "target_message_id")
_NOT_SIGNED_YET: Final = "a digest follows when the segment is closed, after 15 minutes at most"


class ProofError(Exception):
    """There is nothing to prove, or not yet."""


class BrokenSegment(Exception):
    """The trail contradicts its own digests: no proof can be made of it."""


class MalformedProof(ValueError):
    """A file that is no proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenRecord:
    """A record's line, its digest's number, its place among the leaves (from 0), and its path, each hash in hex."""

    digest: int
    leaf: int
    line: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What is handed over. `digests` are the texts of the files, ascending."""

    version: int = PROOF_VERSION
    message_id: str
    records: tuple[ProvenRecord, ...]
    digests: tuple[str, ...]

    def life(self) -> Life:
        """The life of the message, as these lines tell it."""
        return life_of(self.message_id, [("", lambda: TrailLines(record.line for record in self.records))])

    def texts(self) -> tuple[str, ...]:
        """The records of the message as JSON; the line of a batch may have others too.

        Raises ProofError where they take more than a proof may: many records of a batch may share a long header.
        """
        lines = [each.line for each in self.records]
        if self.version == _NAMES_ALONE:
            return tuple(lines)
        texts: list[str] = []
        left = LARGEST_PROOF_BYTES
        for each in self.life().records:
            line = lines[each.line - 1]
            texts.append(text_of(each.record).decode() if is_of_batch(_bytes(line)) else line)
            left -= len(texts[-1])
            if left < 0:
                raise ProofError(f"its records have more than {LARGEST_PROOF_BYTES} bytes")
        return tuple(texts)

    def to_bytes(self) -> bytes:
        """The bytes of a proof's file."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofVerification:
    """What a proof proves. `records` are those of the message, as JSON."""

    verdict: Verdict
    reason: str
    message_id: str = ""
    records: tuple[str, ...] = ()
    public_keys: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


# -- making ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Search:
    """Where the records of a message are: leaves by segment number, digests by segment number."""

    #: Places of the records by the segment's stem, in ascending order. Those of a segment that was found are removed.
    wanted: dict[str, list[int]]
    leaves: dict[int, list[int]] = field(default_factory=dict)
    digests: dict[int, tuple[Digest, bytes]] = field(default_factory=dict)
    #: Digests that hand over to another key or begin a chain, and those between a countersignature and a segment.
    links: dict[int, bytes] = field(default_factory=dict)
    has_chain: bool = False
    #: Whether the configured key in force has countersigned nothing yet, and whether records stand on what it will.
    is_unbound: bool = False
    awaits: bool = False
    not_signed: int = 0

    def run(self, source: TrailSource) -> None:
        """Goes through a trail once."""
        due: tuple[Digest, bytes] | None = None
        since: dict[int, bytes] = {}  # digests from the last countersigned one on
        for entry in source.entries():
            if isinstance(entry, DigestFile):
                digest = _parsed(entry.data)
                if digest is not None:
                    since = self._linked(digest, entry.data, since)
                if digest is not None and digest.kind == DigestKind.SEGMENT:
                    due = digest, entry.data
                continue
            if leaves := self.wanted.pop(entry.stem, []):
                if due is None or segment_number(due[0]) != entry.number:
                    self.not_signed += len(leaves)
                else:
                    self.leaves[entry.number], self.digests[entry.number] = leaves, due
                    self.links |= since
                    self.awaits |= self.is_unbound

    def _linked(self, digest: Digest, data: bytes, since: dict[int, bytes]) -> dict[int, bytes]:
        begins = digest.version != FIRST_VERSION and not self.has_chain
        self.has_chain |= begins
        if begins or digest.kind in (DigestKind.ROTATION, DigestKind.RENEWAL):
            self.links[digest.number] = data
        if digest.version == FIRST_VERSION:
            return {}
        if self.awaits:  # a countersignature that comes later pins what was before it
            self.links[digest.number] = data
        self.is_unbound = digest.kind == DigestKind.ROTATION or (
            not digest.countersignature and (begins or self.is_unbound)
        )
        self.awaits &= self.is_unbound
        if digest.kind == DigestKind.COUNTERSIGNATURE:
            since = {number: each for number, each in since.items() if number >= digest.countersigned_number}
        elif digest.countersignature:
            since = {}
        return since | {digest.number: data}


def prove(source: Callable[[], TrailSource], message_id: str) -> tuple[Proof, int]:
    """The proof of a message's life, and how many more of its records have no digest yet.

    The trail is read as often as the search for the life needs, mostly twice, and its segments with records once more.
    `message_id` is hex. Raises ProofError, BrokenSegment, and what the source raises.
    """
    search = _Search(_places(life_of(message_id, [("", source)])))
    search.run(source())
    records: list[ProvenRecord] = []
    for entry in source().entries():
        if isinstance(entry, SegmentFile) and entry.number in search.leaves:
            wanted = search.leaves.pop(entry.number)
            records += _proven(entry, search.digests[entry.number][0], wanted)
    if gone := [f"{number:012d}" for number in search.leaves] + list(search.wanted):
        raise ProofError(
            f"segment {int(min(gone)[:12])} was removed meanwhile (prove it again, with the records that are left)"
        )
    digests = {digest.number: data for digest, data in search.digests.values()} | search.links
    texts = tuple(digests[number].decode() for number in sorted(digests))
    proof = Proof(message_id=message_id, records=tuple(records), digests=texts)
    linked = _lines_of_life(proof)  # a record that links others to the message may have no digest yet
    kept = tuple(record for place, record in enumerate(records, start=1) if place in linked)
    if not kept:
        raise ProofError(f"no digest covers the records of message {message_id}: {_NOT_SIGNED_YET}")
    return replace(proof, records=kept), search.not_signed + len(records) - len(kept)


def _places(life: Life) -> dict[str, list[int]]:
    if not life.records or life.is_cut:
        found = f"there are more than {len(life.records)} records" if life.is_cut else "there is no record"
        raise ProofError(f"{found} on message {life.message_id} in the trail; a proof holds 1 to {MOST_RECORDS}")
    places: dict[str, list[int]] = {}
    for each in life.records:
        of_segment = places.setdefault(each.segment.partition(".")[0], [])
        if each.line - 1 not in of_segment[-1:]:  # a line may have several of its records
            of_segment.append(each.line - 1)
    return places


def _proven(segment: SegmentFile, digest: Digest, leaves: list[int]) -> Iterator[ProvenRecord]:
    kept: dict[int, bytes] = {}
    try:
        paths = audit_paths(_kept(_lines(segment), frozenset(leaves), kept), digest.records, leaves)
    except ValueError as error:
        raise _broken(segment, digest) from error
    for leaf in leaves:
        if _root(kept[leaf], leaf, digest.records, paths[leaf]) != digest.merkle_root:
            raise _broken(segment, digest)
        path = tuple(each.hex() for each in paths[leaf])
        yield ProvenRecord(digest=digest.number, leaf=leaf, line=kept[leaf].decode(), path=path)


def _lines(segment: SegmentFile) -> Iterator[bytes]:
    for block in segment.blocks():
        yield from block.removesuffix(b"\n").split(b"\n")


def _kept(lines: Iterator[bytes], wanted: frozenset[int], kept: dict[int, bytes]) -> Iterator[bytes]:
    for number, line in enumerate(lines):
        if number in wanted:
            kept[number] = line
        yield line


def _broken(segment: SegmentFile, digest: Digest) -> BrokenSegment:
    return BrokenSegment(
        f"{segment.name} is not what digest {digest.number} says (rfhbridge audit verify names the place)"
    )


def _root(line: bytes, leaf: int, size: int, path: Sequence[bytes]) -> str:
    root = root_of_path(line, leaf, size, path)
    return "" if root is None else root.hex()


def _parsed(data: bytes) -> Digest | None:
    try:
        return parse_digest(data)
    except MalformedDigest:
        return None


def _names_in(line: bytes) -> set[object]:
    """Identifiers of the messages that a line speaks of; none where it is no record."""
    records = records_of(line) or ()
    return {name for record in records for key in _NAMING if isinstance(name := record.get(key), str)}


# -- checking ----------------------------------------------------------------------------------------------------------


def verify_proof(data: bytes, public_key: str = "") -> ProofVerification:
    """Checks a proof against a public key (hex); without one it can be consistent, and not anchored."""
    try:
        proof, digests = _read(data)
    except MalformedProof as error:
        return ProofVerification(verdict=Verdict.NOT_EVALUABLE, reason=f"it is no proof: {error}")
    keys, problems = _check_keys(digests, public_key, {record.digest for record in proof.records})
    of_life = _lines_of_life(proof)
    for place, record in enumerate(proof.records, start=1):
        if problem := _problem_of(record, digests):
            problems.append(f"record {place}: {problem}")
        elif place not in of_life:
            problems.append(f"record {place}: the line does not speak of message {proof.message_id} or its life")
    texts: tuple[str, ...] = ()
    try:
        texts = () if problems else proof.texts()
    except ProofError as error:
        problems.append(str(error))
    if problems:
        verdict, reason = Verdict.VIOLATED, problems[0]
    else:
        count = "1 record is" if len(texts) == 1 else f"{len(texts)} records are"
        reason = f"{count} in the trail, each in its place"
        verdict = Verdict.ANCHORED if public_key else Verdict.INTACT
        reason += f"; anchored by the public key {public_key}" if public_key else ""
    return ProofVerification(
        verdict=verdict,
        reason=reason,
        message_id=proof.message_id,
        records=texts,
        public_keys=tuple(keys),
        problems=tuple(problems),
    )


def _read(data: bytes) -> tuple[Proof, dict[int, Digest]]:
    if len(data) > LARGEST_PROOF_BYTES:
        raise MalformedProof(f"it has more than {LARGEST_PROOF_BYTES} bytes")
    try:
        values = orjson.loads(data)
        version = values.get("version") if isinstance(values, dict) else None
        if type(version) is not int or not _NAMES_ALONE <= version <= PROOF_VERSION:
            raise MalformedProof(f"it is not of version {_NAMES_ALONE} to {PROOF_VERSION}")
        records = tuple(_record(each) for each in values["records"])
        texts = tuple(values["digests"])
        proof = Proof(version=version, message_id=_text(values["message_id"]), records=records, digests=texts)
        digests = {digest.number: digest for digest in (parse_digest(_text(text).encode()) for text in texts)}
    except (orjson.JSONDecodeError, KeyError, TypeError, MalformedDigest, UnicodeEncodeError) as error:
        raise MalformedProof(f"{type(error).__name__}: {error}") from None
    if not records:
        raise MalformedProof("it holds no record")
    return proof, digests


def _record(values: dict[str, Any]) -> ProvenRecord:
    path = tuple(_text(each) for each in values["path"])
    digest, leaf = values["digest"], values["leaf"]
    if type(digest) is not int or type(leaf) is not int:
        raise TypeError("digest and leaf are numbers")
    line = _text(values["line"])
    if "\n" in line:
        raise TypeError("a line has no line feed")
    return ProvenRecord(digest=digest, leaf=leaf, line=line, path=path)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is no text")
    return value


def _countersigners(digests: dict[int, Digest]) -> dict[int, set[str]]:
    """The configured keys that have countersigned a digest, or one that pins it by hashes, by its number."""
    found: dict[int, set[str]] = {}
    for number, digest in digests.items():
        if digest.countersignature and _is_countersigned(digest, digests):
            found.setdefault(digest.countersigned_number or number, set()).add(digest.countersigner)
    for number in sorted(digests, reverse=True):
        following = digests.get(number + 1)
        if following is not None and following.previous == digest_hash(digests[number].to_bytes()):
            found.setdefault(number, set()).update(found.get(number + 1, ()))
    return found


def _is_countersigned(digest: Digest, digests: dict[int, Digest]) -> bool:
    """Whether a countersignature holds; False too where the digest is not in the proof that it is over."""
    covered = digests.get(digest.countersigned_number)
    return digest.is_countersigned("" if covered is None else digest_hash(covered.to_bytes()))


def _check_keys(digests: dict[int, Digest], public_key: str, needed: set[int]) -> tuple[list[str], list[str]]:
    """The keys that signed, and what is wrong with them: each is the one that was given, or one that it handed over to.

    `needed` are the digests that records stand on; the others only lead to them.
    A key may be given that came before those of the proof: the rotations between them are in it. Of digests with a key
    of their own the configured keys are told.
    """
    trusted, countersigners = {public_key}, _countersigners(digests)
    keys: list[str] = []
    problems: list[str] = []
    for number, digest in sorted(digests.items()):
        first = digest.version == FIRST_VERSION
        configured = digest.public_key if first else digest.countersigner
        is_trusted = digest.public_key in trusted or bool(countersigners.get(number, set()) & trusted)
        if not digest.is_signed_by(digest.public_key):
            problems.append(f"digest {number}: its signature is not that of its key {digest.public_key}")
            continue
        if digest.countersignature and not _is_countersigned(digest, digests):
            problems.append(f"digest {number}: its countersignature is not that of {configured}")
            continue
        if is_trusted:
            trusted |= {digest.next_public_key, digest.key_after} - {""}
        elif public_key and number in needed:
            problems.append(
                f"digest {number}: it is signed by {digest.public_key}, which is not the public key that was given and "
                f"did not take over from it"
            )
        if configured not in keys and number in needed:
            keys.append(configured)
    return keys, problems


def _lines_of_life(proof: Proof) -> set[int]:
    """The lines that belong to the message, from 1: to its life as the lines themselves tell it."""
    lines = [record.line for record in proof.records]
    if proof.version == _NAMES_ALONE:
        return {place for place, line in enumerate(lines, start=1) if proof.message_id in _names_in(_bytes(line))}
    return {each.line for each in proof.life().records}


def _bytes(line: str) -> bytes:
    return line.encode(errors="replace")


def _problem_of(record: ProvenRecord, digests: dict[int, Digest]) -> str:
    """What is wrong with a record of a proof; "" where nothing is."""
    digest = digests.get(record.digest)
    if digest is None or digest.kind != DigestKind.SEGMENT:
        return f"there is no digest {record.digest} of a segment in the proof"
    line = _bytes(record.line)
    hashes = line_hashes(line)
    if hashes is None or hashes[0] != hashes[1]:
        return "the line has not the hash that it bears: it was changed"
    try:
        path = [bytes.fromhex(each) for each in record.path]
    except ValueError:
        return "its path is not hex"
    if any(len(each) != HASH_BYTES for each in path) or (
        _root(line, record.leaf, digest.records, path) != digest.merkle_root
    ):
        return f"its path does not lead to the Merkle root of digest {digest.number}: it is not in that segment"
    return ""

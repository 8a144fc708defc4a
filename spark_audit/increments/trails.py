"""The files of an increment: closed segments behind the state, in trails that still go on where the state ended.

What was judged is not read again, but for the last segment: its last line must be the one that the state names. The
digest that was the last one must be the same, and names all before it by its hash.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spark_audit.audit_input import ALONE, NO_ANCHOR, AuditInput, input_of_trails
from spark_audit.controls.digests import DigestFile, read_digests
from spark_audit.engines.engine import Engine
from spark_audit.facts.lines import hash_of, parsed
from spark_audit.facts.pieces import SegmentPiece
from spark_audit.increments.carried import state_of
from spark_audit.increments.state import Rules, State, TrailHead
from spark_audit.location import Location
from spark_audit.read import TrailFiles, trail_files
from spark_audit.trail.digest import DIGEST_FOLDER, LARGEST_DIGEST_BYTES, DigestKind, digest_hash, digest_name
from spark_audit.trail.segment_forms import OPEN, SEGMENT_NAME
from spark_audit.verify import Anchor, Verification

_NUMBER_DIGITS: Final = 12


class OtherTrail(Exception):
    """A trail does not go on where the state ended. The text says why."""


def files_since(folder: Location, head: TrailHead | None) -> TrailFiles:
    """The closed segments of a trail behind its head. Raises OtherTrail, OSError."""
    if head is not None:
        check_head(folder, head)
    return trail_files(folder, None, behind="" if head is None else head.segment)


def heads_of(since: State, folders: Sequence[Location]) -> tuple[TrailHead | None, ...]:
    """The heads of trails in a state, None for all where it has none. Raises OtherTrail."""
    if not since.trails:
        return (None,) * len(folders)
    known = {each.name: each for each in since.trails}
    names = [_name(folder, folders) for folder in folders]
    if known.keys() != set(names):
        raise OtherTrail("the state is of other trails than those that are named")
    return tuple(known[name] for name in names)


def _name(folder: Location, folders: Sequence[Location]) -> str:
    return str(folder) if len(folders) > 1 else ""


def check_head(folder: Location, head: TrailHead) -> None:
    """Whether a trail still goes on behind its head. Raises OtherTrail, OSError."""
    if head.digests:
        try:
            with (folder / DIGEST_FOLDER / digest_name(head.digests)).open("rb") as file:
                sha256 = digest_hash(file.read(LARGEST_DIGEST_BYTES + 1))
        except FileNotFoundError:
            raise OtherTrail(f"{folder}: digest {head.digests} was there and is not: the trail was cut") from None
        if sha256 != head.digest_head:
            raise OtherTrail(f"{folder}: digest {head.digests} is another one: the trail was rewritten")
    found = [path for path in folder.iterdir() if path.name.partition(".")[0] == head.segment]
    closed = [path for path in found if (name := SEGMENT_NAME.fullmatch(path.name)) is not None and name[3] != OPEN]
    if not closed:
        if _is_removed(folder, head):
            return
        raise OtherTrail(f"{folder}: segment {head.segment}, with which the state ended, is not there any more")
    last = SegmentPiece(trail="", path=closed[0]).last_line()
    records = parsed(last)
    if hash_of(last) != head.line or ("" if records is None else records[-1].get("hash") or "") != head.head:
        raise OtherTrail(f"{folder}: segment {head.segment} ends with another record: the trail was rewritten")


def _is_removed(folder: Location, head: TrailHead) -> bool:
    """Whether retention says that it removed the segment; integrity.digests judges whether it may say so."""
    signed = (each.digest for each in read_digests(folder / DIGEST_FOLDER) if each.is_signed)
    return any(
        each is not None and each.kind == DigestKind.RETENTION and each.segment >= head.segment for each in signed
    )


def input_since(
    trails: Sequence[TrailFiles],
    since: State,
    salt: bytes,
    *,
    anchor: Anchor = NO_ANCHOR,
    verifications: tuple[Verification, ...] = (),
) -> AuditInput:
    """The audit input of what is behind a state, or of whole trails if the state is of nothing."""
    made = input_of_trails(trails, anchor=anchor, verifications=verifications)
    several = len(trails) > 1
    names = [files.name if several else "" for files in trails]
    return replace(
        made,
        since=since,
        salt=salt,
        cut=frozenset(each.name for each in since.trails if each.is_cut) if since.trails else made.cut,
        is_whole=not since.trails,
        unread={name: files.passed_over for name, files in zip(names, trails, strict=True)},
        unverified="it is for whole trails, and this goes on from the state of an earlier audit",
    )


def input_of_batch(files: TrailFiles, since: State, salt: bytes) -> AuditInput:
    """The same of one trail that `verify` did not check: its digests say whether retention removed its beginning."""
    made = input_since([files], since, salt)
    if since.trails or int(files.segments[0].name[:_NUMBER_DIGITS]) == 1:
        return made
    told = (each.digest for each in (made.digests or {}).get(ALONE, ()) if each.digest is not None)
    is_removed = any(digest.kind == DigestKind.RETENTION for digest in told)
    return replace(made, cut=frozenset({ALONE}) if is_removed else made.cut)


def state_behind(engine: Engine, audit_input: AuditInput, rules: Rules) -> State:
    """The state behind an audit, whose tables the engine still has."""
    since = audit_input.since
    assert since is not None
    heads = {each.name: each for each in since.trails}
    waiting: list[tuple[str, str]] = []
    for row in engine.rows("SELECT trail, segment, head, last_line_hash FROM segments ORDER BY trail, segment"):
        name, stem = row["trail"], row["segment"].partition(".")[0]
        digests = (audit_input.digests or {}).get(name, ())
        if stem > _last_digested(digests):
            waiting.append((name, row["segment"]))
        last = digests[-1] if digests else DigestFile(number=0)
        heads[name] = TrailHead(
            name=name,
            segment=stem,
            head=row["head"] or "",
            line=row["last_line_hash"],
            digests=last.number,
            digest_head=last.sha256,
            is_cut=name in audit_input.cut,
        )
    return state_of(engine, since, rules, tuple(heads.values()), waiting)


def _last_digested(digests: Sequence[DigestFile]) -> str:
    return max((each.digest.segment for each in digests if each.digest is not None), default="")

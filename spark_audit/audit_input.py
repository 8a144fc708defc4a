"""Audit input: the pieces of one or several trails, their digests, and the findings of `verify`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_audit.controls.digests import DigestFile, read_digests
from spark_audit.facts.pieces import Piece, pieces_of
from spark_audit.increments.state import State
from spark_audit.period import EVERYTHING, Period
from spark_audit.read import TrailFiles
from spark_audit.trail.digest import DIGEST_FOLDER
from spark_audit.verify import Anchor, Verification

NO_ANCHOR = Anchor()
#: How a trail is called that is the only one.
ALONE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInput:
    """Pieces of trails, with digests and copies by the name of their trail (ALONE for a single trail).

    `digests` is None if they cannot be judged here. `is_whole`: every segment of every trail is among the pieces.
    `cut` names trails whose older segments are not among the pieces.
    `since` is the state from which this audit goes on, an empty one where the next audit goes on from this; None: no
    state is kept. `unread` are the segments (stems) of each trail that other audits have read or will read. `salt`
    makes the numbers that stand for payloads in a state; b"": they are of this audit alone.
    `verifications` has a result of `verify` for each trail; if it is empty, `unverified` says why.
    """

    pieces: tuple[Piece, ...]
    digests: Mapping[str, Sequence[DigestFile]] | None
    copies: Mapping[str, Sequence[DigestFile]] | None = None
    public_key: str = ""
    period: Period = EVERYTHING
    is_whole: bool = True
    cut: frozenset[str] = frozenset()
    since: State | None = None
    unread: Mapping[str, frozenset[str]] = field(default_factory=dict)
    salt: bytes = b""
    size_bytes: int = 0
    text_bytes: int = 0
    torn: tuple[str, ...] = ()
    verifications: tuple[Verification, ...] = ()
    unverified: str = "it was not asked"


def input_of_trails(
    trails: Sequence[TrailFiles],
    *,
    period: Period = EVERYTHING,
    anchor: Anchor = NO_ANCHOR,
    verifications: tuple[Verification, ...] = (),
) -> AuditInput:
    """The audit input of trails, each with a segment or more. An anchor is for one trail. Raises OSError."""
    is_removed = {check.segments_removed > 0 for check in verifications}
    several = len(trails) > 1
    names = [files.name if several else ALONE for files in trails]
    cut = {name for name, files in zip(names, trails, strict=True) if files.is_cut}
    if is_removed == {True} or (True in is_removed and several):
        cut |= {name for name, check in zip(names, verifications, strict=True) if check.segments_removed}
    named = list(zip(names, trails, strict=True))
    digests = {name: read_digests(files.folder / DIGEST_FOLDER, files.last_digest) for name, files in named}
    return AuditInput(
        pieces=tuple(piece for name, files in named for piece in pieces_of(name, files.segments)),
        digests=digests,
        copies={names[0]: read_digests(anchor.folder, max(anchor.numbers))} if anchor.folder else None,
        public_key=anchor.public_key,
        period=period,
        is_whole=period.is_everything,
        cut=frozenset(cut),
        size_bytes=sum(files.size_bytes for files in trails),
        text_bytes=sum(files.text_bytes for files in trails),
        torn=tuple(name for files in trails for name in files.torn),
        verifications=verifications,
    )

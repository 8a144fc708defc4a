"""A store, a trail or a whole data folder went back: other files show it, and an operator accepts it.

When a store is opened, it is compared with the end of its own journal and its marker
(mq_adapters/embedded/store/rollback_guard.py). Here it is compared with the trail. The trail has the last line that the
store knows, and no batch that the store does not know. The trail is compared with the copies of digests in the second
place. A target's channel finds messages that it took since. Accepting begins a new
incarnation, and its first record says so (Kind.RESTORED).
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gateway.audit_trail.digests import read_digest
from gateway.audit_trail.exporter import TRAIL_FOLDER
from gateway.audit_trail.notes.notes import NoteKind, pack_batch
from gateway.audit_trail.trail_end import TrailEnd, end_in
from gateway.audit_trail.trail_head import EMPTY_HEAD, TrailHead, difference, head_of_trail, known_by
from mq_adapters.channel.state_message import restated
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.snapshot import states_of
from mq_adapters.embedded.store.reach import Reach, told_time
from mq_adapters.embedded.store.rollback import Rollback, accept_rollback
from mq_adapters.embedded.store.rollback_guard import StoreWentBack
from mq_adapters.embedded.store.verification import StoreVerification, contradictions_of, verify_store
from mq_adapters.embedded.unit_of_work import TRAIL_HEAD
from mq_adapters.plausible_clock import wall_us
from mq_adapters.reasons import StoreError
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE
from spark_audit.trail.digest import DIGEST_FOLDER, digest_numbers

_log = logging.getLogger(__name__)

#: Bytes of the record that says why; all findings stand in the log and on the screen.
_REASON_CHARACTERS: Final = 1_000
_CHANGED: Final = "the trail is not as the store knows it"


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingBatches:
    """Numbers that are missing, first and last; 0 and 0 where none is, as far as anything that is left tells."""

    first_batch: int = 0
    last_batch: int = 0


def check_trail(engine: Engine, data: Path, *, second_place: str = "") -> None:
    """Holds a store that is open against what lies beside it and elsewhere. Raises StoreWentBack, StoreError."""
    if findings := (*beside_store(data, engine.reach, known_by(engine)), *elsewhere(data, second_place)):
        raise StoreWentBack(f"open {data}", findings)


def elsewhere(data: Path, second_place: str) -> tuple[str, ...]:
    """Findings of the copies of digests. A copy that cannot be read shows nothing, and the log says so."""
    if not second_place:
        return ()
    copies, own = Path(second_place) / DIGEST_FOLDER, data / TRAIL_FOLDER / DIGEST_FOLDER
    try:
        last_copy, last = (max(digest_numbers(folder), default=0) for folder in (copies, own))
        if not last or last_copy <= last:  # a trail that begins anew says so itself
            return ()
        told = f"digest {last_copy}, of {told_time(read_digest(copies, last_copy)[0].until_us)}"
    except (OSError, StoreError) as error:
        _log.warning("second place not asked folder=%s reason=%s", second_place, str(error))
        return ()
    return (
        f"the copies in {second_place} go up to {told}, and the trail here ends with digest {last}: all of the data"
        " folder is older than they are (to go on without what is missing, keep them as evidence, name an empty folder"
        " with audit.copy_folder, and say accept-rollback --force)",
    )


def contradictions(data: Path) -> tuple[str, ...]:
    """Everything that shows that something in the data folder went back; changes nothing. Raises StoreError."""
    found, reach = contradictions_of(data)
    return (*found, *(() if reach is None else beside_store(data, reach, known_head(data))))


def verify(data: Path) -> StoreVerification:
    """The result of `verify_store`, and whether the trail has more than the store. A gateway may be running."""
    found = verify_store(data)
    known = known_head(data)
    _, reach = contradictions_of(data)
    if reach is None:
        return found
    end = _end_of(data, reach)
    _, later = contradictions_of(data)  # behind the trail, which a gateway may have written on
    told = () if later is None else (*_ahead_of_store(end, later), *_unlike_store(data, known))
    return replace(found, findings=(*found.findings, *told), count=found.count + len(told))


def beside_store(data: Path, reach: Reach, known: TrailHead | None) -> tuple[str, ...]:
    """Findings of the trail about a store, and of the store about the trail. StoreError where it cannot be read."""
    return (*_ahead_of_store(_end_of(data, reach), reach), *_unlike_store(data, known))


def known_head(data: Path) -> TrailHead | None:
    """How far the store in a data folder knows the trail, whoever owns it; None where it does not.

    A store of an earlier layout does not, and a damaged one is told elsewhere.
    """
    try:
        _, rows = states_of(data, TRAIL_HEAD[0])
        return TrailHead.from_text(dict(rows).get(TRAIL_HEAD[1], b"").decode(errors="replace"))
    except StoreError:
        return None


def _unlike_store(data: Path, known: TrailHead | None) -> tuple[str, ...]:
    with _reading(data / TRAIL_FOLDER) as trail:
        how = "" if known is None else difference(trail, known)
    return (f"{_CHANGED}: {how}",) if how else ()


def _end_of(data: Path, reach: Reach) -> TrailEnd:
    with _reading(data / TRAIL_FOLDER) as trail:
        return end_in(trail, reach.incarnation.hex())


@contextmanager
def _reading(trail: Path) -> Iterator[Path]:
    try:
        yield trail
    except OSError as error:
        raise StoreError(f"read the trail in {trail}", str(error), "let the gateway's user read it") from error


def _ahead_of_store(end: TrailEnd, reach: Reach) -> tuple[str, ...]:
    if end.batch <= reach.batch:
        return ()
    return (
        f"the trail has batches up to {end.batch}, of {told_time(end.at_us)}, and the store knows {reach.batch}:"
        f" what batches {reach.batch + 1} to {end.batch} tell is missing in the store",
    )


def accept(data: Path, *, operator: str, findings: tuple[str, ...], is_audited: bool) -> Rollback:
    """Begins a new incarnation, with a record of it where there is a trail. QueueManagerError 2042, StoreError."""
    known = known_head(data)

    def first_batch(before: Reach, marked: Reach | None, waiting: int) -> bytes:
        missing = _cut_off(data, before, known) or _missing(data / TRAIL_FOLDER, before, marked, waiting)
        note = (
            NoteKind.RESTORED,
            wall_us(),
            "trail_changed" if all(each.startswith(_CHANGED) for each in findings) else "rolled_back",
            before.incarnation.hex(),
            0,
            0,
            missing.first_batch,
            missing.last_batch,
            operator,
            "; ".join(findings)[:_REASON_CHARACTERS],
        )
        return pack_batch(1, [note])

    return accept_rollback(
        data,
        first_batch=first_batch if is_audited else None,
        state_queue=CHANNEL_STATE_QUEUE,
        restated=restated,
        states=((*TRAIL_HEAD, _accepted_head(data).encode()),),
    )


def _accepted_head(data: Path) -> str:
    """The trail as it is: from now on the store knows that."""
    with _reading(data / TRAIL_FOLDER) as trail:
        return (head_of_trail(trail) or EMPTY_HEAD).to_text()


def _cut_off(data: Path, before: Reach, known: TrailHead | None) -> MissingBatches | None:
    """Batches that the store knows in the trail, and that are not there; None where it knows none."""
    end = _end_of(data, before)
    if known is None or known.gateway != before.incarnation.hex() or known.batch <= end.batch:
        return None
    return MissingBatches(first_batch=end.batch + 1, last_batch=known.batch)


def _missing(trail: Path, before: Reach, marked: Reach | None, waiting: int) -> MissingBatches:
    """Batches that the trail does not have, and the store will not bring."""
    end = end_in(trail, before.incarnation.hex())
    there = max(end.batch, before.batch if end.batch or waiting else 0)
    last = max(before.batch, marked.batch if marked is not None and marked.incarnation == before.incarnation else 0)
    return MissingBatches(first_batch=there + 1, last_batch=last) if last > there else MissingBatches()

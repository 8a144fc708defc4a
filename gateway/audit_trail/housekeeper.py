"""The trail's housekeeping: copies, digests for a target and for witnesses, compressing and removing old segments.

It is a thread of the exporter's process, so a second place that hangs never delays a line of the trail. A task that
failed is tried again; the log tells once that it fails, and once that it goes on.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

from gateway.audit_trail.compression import Compression
from gateway.audit_trail.plan import TrailPlan, WitnessPlan
from gateway.audit_trail.retention import ORDER, Retention
from gateway.audit_trail.second_place import SecondPlace
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.segment_digests import SegmentDigests
from mq_adapters.plausible_clock import ClockState, PlausibleClock
from mq_adapters.reasons import QueueManagerError, StoreError

if TYPE_CHECKING:
    from gateway.audit_trail.digest_queue import TransmissionQueue
    from gateway.audit_trail.witnesses.witness import Witness

    class KeepersQueueManager(TransmissionQueue, Protocol):
        """What the housekeeper needs of a queue manager."""

        def operate(self, command: str, reason: str = "") -> None: ...

    Connect = Callable[[], AbstractContextManager[KeepersQueueManager]]

#: How often tasks are looked at when nobody wakes the thread: how soon one that failed is tried again, seconds.
TURN_S: Final = 30.0
#: How long an exporter that ends waits for copies of what it wrote last, seconds; the rest is done at the next start.
END_WAIT_S: Final = 10.0

_NONE: Final[Mapping[str, "Task"]] = {}

_log = logging.getLogger(__name__)


class Task(Protocol):
    """Work that comes in steps. A step raises OSError, StoreError or QueueManagerError, and may be repeated."""

    def step(self) -> bool:
        """Does one thing; False where there was nothing to do."""
        ...


class Keeping(Task, Protocol):
    """A task that keeps digests elsewhere."""

    def has(self, digest_number: int) -> bool:
        """Whether that digest is there."""
        ...


class Housekeeper:
    """Runs tasks in a thread of its own, those of `before` first and those of `after` last.

    Those two wait for the next start where the exporter is about to end.
    """

    def __init__(
        self, tasks: Mapping[str, Task], *, before: Mapping[str, Task] = _NONE, after: Mapping[str, Task] = _NONE
    ) -> None:
        self._tasks = {**before, **tasks, **after}
        self._can_wait = before.keys() | after.keys()
        self._failing: set[str] = set()
        self._woken = threading.Event()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)
        #: Witnesses, each in a thread of its own: one that hangs delays nobody else.
        self._witnesses: tuple[Housekeeper, ...] = ()

    @classmethod
    def of(cls, plan: TrailPlan, trail: Trail, connect: "Connect", clock: PlausibleClock) -> Self:
        """The tasks of a plan; `connect` connects to the gateway's queue manager, for this thread."""
        folder, digests = trail.folder, trail.digests
        tasks: dict[str, Keeping] = {}
        if plan.copy_folder:
            tasks["copying the trail"] = SecondPlace(folder, Path(plan.copy_folder), digests)
        if plan.digest_transmission_queue:
            from gateway.audit_trail.digest_queue import DigestQueue  # few trails have one, and it knows messages

            tasks["sending digests"] = DigestQueue(
                folder,
                digests,
                transmission_queue=plan.digest_transmission_queue,
                queue=plan.digest_queue,
                connect=connect,
            )
        segments = SegmentDigests(digests)
        compression = Compression(
            folder,
            segments,
            after_hours=plan.compress_after_hours,
            now_us=clock.now_us,
            is_time_sure=lambda: clock.state is ClockState.SETTLED,
        )
        retention = Retention(
            folder,
            digests,
            segments,
            keep_days=plan.keep_days,
            may_remove=lambda number: all(place.has(number) for place in tasks.values()),
            now_us=clock.now_us,
            is_time_sure=lambda: clock.state is ClockState.SETTLED,
            tell=lambda segment, reason: _tell_removal(connect, segment, reason),
        )
        housekeeper = cls(tasks, before={"compressing segments": compression}, after={"removing segments": retention})
        housekeeper._witnesses = tuple(cls(task) for task in _witnessing(plan, trail))
        return housekeeper

    def wake(self) -> None:
        """There is something new."""
        self._woken.set()
        for witness in self._witnesses:
            witness.wake()

    def turn(self) -> None:
        """Does all that there is to do, and returns; the thread does it again and again."""
        for name, task in self._tasks.items():
            if not self._is_put_off(name):
                self._carry_out(name, task)

    def __enter__(self) -> Self:
        for each in self._all:
            each._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        deadline = time.monotonic() + END_WAIT_S
        for each in self._all:
            each._is_ending = True
            each._woken.set()
        for each in self._all:
            each._thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def _all(self) -> "tuple[Housekeeper, ...]":
        return self, *self._witnesses

    def _run(self) -> None:
        while True:
            is_last = self._is_ending
            self.turn()
            if is_last:
                return
            self._woken.wait(TURN_S)
            self._woken.clear()

    def _is_put_off(self, name: str) -> bool:
        return self._is_ending and name in self._can_wait

    def _carry_out(self, name: str, task: Task) -> None:
        """Every step that is due. The log hears of the first failure, and of the first success behind it."""
        try:
            while task.step() and not self._is_put_off(name):
                continue
        except (OSError, StoreError, QueueManagerError) as error:
            if name not in self._failing:
                _log.error("trail task failed task=%s reason=%s", name, str(error))
            self._failing.add(name)
            return
        if name in self._failing:
            _log.info("trail task went on task=%s", name)
            self._failing.remove(name)


def _tell_removal(connect: "Connect", segment: str, reason: str) -> None:
    """The record of what is about to be removed."""
    with connect() as queue_manager:
        queue_manager.begin()
        queue_manager.operate(ORDER, f"{reason}: segment {segment} and the older ones are removed")
        queue_manager.commit()


def _witnessing(plan: TrailPlan, trail: Trail) -> Iterator[Mapping[str, Task]]:
    """The task of each witness of a plan. Retention does not wait for them: it never removes a digest."""
    if not plan.witnesses:
        return
    from gateway.audit_trail.witnesses.witness import Witnessing  # few trails have a witness

    for each in plan.witnesses:
        witness = _WITNESSES[each.type](each, trail.folder)
        yield {f"showing digests to witness {each.name}": Witnessing(witness, trail.folder, trail.digests)}


def _git_repository(plan: WitnessPlan, trail: Path) -> "Witness":
    from gateway.audit_trail.witnesses.git_repository import GitRepository
    from spark_audit.trail.witness_note import NOTES_FOLDER

    return GitRepository(
        plan.name,
        trail.parent / NOTES_FOLDER / f"{plan.name}.git",
        trail,
        remote=plan.remote,
        branch=plan.branch,
        git_settings_file=plan.git_settings_file,
        timeout_s=plan.timeout_s,
    )


def _time_stamp_authority(plan: WitnessPlan, trail: Path) -> "Witness":
    from gateway.audit_trail.witnesses.time_stamp_authority import TimeStampAuthority

    return TimeStampAuthority(
        plan.name,
        trail,
        url=plan.url,
        authority_file=plan.authority_file,
        policy=plan.policy,
        timeout_s=plan.timeout_s,
    )


def _s3_bucket(plan: WitnessPlan, trail: Path) -> "Witness":
    from gateway.audit_trail.witnesses.s3_bucket import S3Bucket
    from gateway.audit_trail.witnesses.s3_objects import Bucket

    place = Bucket(
        bucket=plan.bucket,
        prefix=plan.prefix,
        endpoint=plan.endpoint,
        region=plan.region,
        credentials_file=plan.credentials_file,
        keep_days=plan.keep_days,
        timeout_s=plan.timeout_s,
    )
    return S3Bucket(plan.name, place, trail)


#: How a witness is made, by its type in the configuration.
_WITNESSES: Final = {"git": _git_repository, "rfc3161": _time_stamp_authority, "s3": _s3_bucket}

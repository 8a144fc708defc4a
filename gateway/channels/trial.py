"""A trial of a target, for `rfhbridge check --connect`: can the gateway connect, and open what it needs there?

Each target is tried in a process of its own, `python -m gateway.channels.trial`, because a call of IBM's library may
hang. Then the command ends the process, and names its last step. The process opens queues for browsing and for putting,
and closes them again. It reads, puts and alters nothing. It opens no queue for input, because a running gateway has
them open, and a starting one must be able to. Its settings are one line on standard input; it answers in lines of JSON.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from gateway.channels.connections import connect_ibm_mq
from gateway.channels.protocol import line_of, object_of
from gateway.config import TargetSettings
from gateway.private_process import forbid_inspection
from mq_adapters.attributes import ObjectType
from mq_adapters.ibm_mq import IbmMq, Use
from mq_adapters.reasons import Action, QueueManagerError, ReasonCode, what_to_do

if TYPE_CHECKING:  # for the command; the process knows only its target
    from gateway.config import Settings

_COMMAND: Final = (sys.executable, "-P", "-m", "gateway.channels.trial")
#: The working folder, in which IBM's library looks for other libraries. Only root may write there.
_FOLDER: Final = "/"
#: Reasons of a lost connection, which every further call would return again.
_IS_OVER: Final = (Action.OUTCOME_UNKNOWN, Action.RECONNECT)
_SLOW: Final = "check the address, and whether a firewall drops packets to it; --timeout gives it more time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A step at which the gateway will fail; `reason_code` is 0 if no call of the MQI has answered."""

    operation: str
    reason_code: int
    reason: str
    hint: str

    @classmethod
    def of(cls, error: QueueManagerError) -> Self:
        return cls(operation=error.operation, reason_code=error.reason_code, reason=error.reason_name, hint=error.hint)

    def __str__(self) -> str:
        code = f"{self.reason_code} {self.reason}" if self.reason_code else self.reason
        return f"{self.operation}: {code}" + (f" ({self.hint})" if self.hint else "")


@dataclass(slots=True, kw_only=True)
class Trial:
    """The result of a trial: the queue manager that answered, the number of queues opened, and every trouble."""

    target: str
    queue_manager: str = ""
    queue_manager_identifier: str = ""
    package: str = ""
    queues: int = 0
    troubles: list[Trouble] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        return not self.troubles

    def as_json(self) -> dict[str, Any]:
        """For a program: every field, and whether nothing is wrong."""
        return {**asdict(self), "succeeded": self.succeeded}

    def __str__(self) -> str:
        if self.troubles:
            return f"target {self.target}: failed: {'; '.join(map(str, self.troubles))}"
        found = f"{self.queue_manager} ({self.queue_manager_identifier})"
        return f"target {self.target}: connected to {found} over {self.package}, {self.queues} queues opened"


def tried(settings: "Settings", *, timeout_s: float) -> list[Trial]:
    """A trial of each target, all at the same time, each within that time."""
    if not settings.target:
        return []
    with ThreadPoolExecutor(max_workers=len(settings.target)) as threads:
        return list(threads.map(lambda target: _tried(settings, target, timeout_s), settings.target))


def uses_at(settings: "Settings", target: TargetSettings) -> dict[str, tuple[Use, ...]]:
    """The gateway's uses of each queue there, except getting."""
    from gateway.config.routes import route_of

    routes = [route for route in settings.routes if route.target == target.name]
    state_queues = (f"{target.state_queue}.{shard}" for shard in range(target.shards))
    uses: dict[str, tuple[Use, ...]] = dict.fromkeys(state_queues, ("browse", "put"))
    uses |= dict.fromkeys((target.subscriber_queue, target.reply_queue), ("browse",))
    uses[target.control_queue] = ("put",)
    publish: Use = "put_identity" if target.set_identity else "put"
    uses |= dict.fromkeys((route_of(route, target).queue for route in routes), (publish,))
    if digest_queue := settings.audit.digest_queue_at(target.name):
        uses.setdefault(digest_queue, ("put",))
    return uses


# -- the command's side ------------------------------------------------------------------------------------------------


def _tried(settings: "Settings", target: TargetSettings, timeout_s: float) -> Trial:
    asked = line_of(target=target.from_any_folder().model_dump(mode="json"), uses=uses_at(settings, target))
    try:
        done = subprocess.run(_COMMAND, input=asked, capture_output=True, timeout=timeout_s, cwd=_FOLDER, check=False)
    except subprocess.TimeoutExpired as expired:
        return _read(target.name, expired.stdout or b"", f"no answer within {timeout_s:g} s", _SLOW)
    lines = done.stderr.decode(errors="replace").splitlines()
    return _read(target.name, done.stdout, f"its process ended with {done.returncode}", lines[-1] if lines else "")


def _read(target: str, output: bytes, why_not_ended: str, hint: str) -> Trial:
    """The trial from its lines. A trial without an end has that as one more trouble."""
    trial, operation = Trial(target=target), f"try target {target}"
    for said in _said(output):
        match said.pop("said", ""):
            case "step":
                operation = said["operation"]
            case "trouble":
                trial.troubles.append(Trouble(**said))
            case "found":
                trial.queue_manager, trial.package = said["name"], said["package"]
                trial.queue_manager_identifier = said["identifier"]
            case "end":
                trial.queues = said["queues"]
                return trial
    trial.troubles.append(Trouble(operation=operation, reason_code=0, reason=why_not_ended, hint=hint))
    return trial


def _said(output: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of whole lines. Anything that IBM's library prints is passed over."""
    for line in output.splitlines():
        with suppress(ValueError):
            yield object_of(line)


# -- the process -------------------------------------------------------------------------------------------------------


def run() -> int:
    """Tries the target of the line on standard input."""
    forbid_inspection()  # the settings name a password
    said = object_of(sys.stdin.buffer.readline())
    target = TargetSettings.model_validate(said["target"])
    _tell("step", operation=f"connect to target {target.name}")
    opened = 0
    try:
        with connect_ibm_mq(target) as queue_manager:
            assert isinstance(queue_manager, IbmMq)
            _tell("found", name=queue_manager.name, identifier=queue_manager.identifier, package=queue_manager.package)
            for queue_name, uses in said["uses"].items():
                opened += _is_opened(queue_manager, queue_name, uses)
            _tell("step", operation="disconnect")
    except QueueManagerError as error:
        _tell_trouble(error)
    _tell("end", queues=opened)
    return 0


def _is_opened(queue_manager: IbmMq, queue_name: str, uses: Iterable[Use]) -> bool:
    """Whether a queue can be used as needed. Raises QueueManagerError if the connection is lost."""
    _tell("step", operation=f"open {queue_name}")
    troubles = list(_troubles(queue_manager, queue_name, uses))
    for error in troubles:
        if what_to_do(error.reason_code) in _IS_OVER:
            raise error
        _tell_trouble(error)
    return not troubles


def _troubles(queue_manager: IbmMq, queue_name: str, uses: Iterable[Use]) -> Iterator[QueueManagerError]:
    """The troubles of a queue: the first refusal, or a use that it is closed for."""
    for use in uses:
        try:
            queue_manager.try_open(queue_name, use)
        except QueueManagerError as error:
            yield error
            return
    with suppress(
        QueueManagerError
    ):  # a put may be allowed without an inquiry; a cluster's queue has no attributes here
        queue = queue_manager.inquire(queue_name)
        is_local = queue.object_type == ObjectType.QLOCAL
        if is_local and "browse" in uses and queue.text("GET") == "DISABLED":
            yield QueueManagerError(ReasonCode.MQRC_GET_INHIBITED, f"get from {queue_name}")
        if set(uses) - {"browse"} and queue.text("PUT") == "DISABLED":
            yield QueueManagerError(ReasonCode.MQRC_PUT_INHIBITED, f"put on {queue_name}")


def _tell_trouble(error: QueueManagerError) -> None:
    _tell("trouble", **asdict(Trouble.of(error)))


def _tell(said: str, **more: Any) -> None:
    sys.stdout.buffer.write(line_of(said=said, **more))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(run())

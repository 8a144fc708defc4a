"""The lines of JSON that the daemon and a channel process exchange over the process's standard streams.

    daemon to process   the settings, once; then commands
    process to daemon   reports: a channel's status, the queue manager that it found, the outcome of a resolution

They never carry a password. The process reads it from the file or variable in the settings.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

import orjson

from gateway import log
from gateway.config import TargetSettings

#: The longest line: 10,000 messages in doubt, each with a MsgId in hex, take half of it.
LONGEST_LINE_BYTES: Final = 1024 * 1024


class Report(StrEnum):
    """The reports of a process."""

    STATUS = "status"
    QUEUE_MANAGER = "queue_manager"
    RESOLVED = "resolved"
    #: The content of a shard's state queue; from a process that only asks.
    STATE = "state"


class Order(StrEnum):
    """The orders to a process about one of its channels."""

    START = "start"
    STOP = "stop"
    RESOLVE = "resolve"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """Everything that the process of a target needs.

    `data` is the gateway's data folder; `subscriber_queue` and `reply_queue` are the queues here. `publication_queues`
    are queues at the target whose longest message the process finds out. `stopped` are channels that do not start by
    themselves. `now_us` is the daemon's plausible time, by which the process measures its clock. A process with `ask_s`
    runs no channel. It reports the contents of the state queues, and ends after at most so many seconds.
    """

    data: str
    target: TargetSettings
    shards: int
    subscriber_queue: str
    reply_queue: str
    publication_queues: tuple[str, ...]
    stopped: tuple[str, ...]
    log_level: log.Level
    log_format: log.Format
    now_us: int
    ask_s: float = 0.0

    def to_line(self) -> bytes:
        return line_of(
            data=self.data,
            target=self.target.model_dump(mode="json"),
            shards=self.shards,
            subscriber_queue=self.subscriber_queue,
            reply_queue=self.reply_queue,
            publication_queues=self.publication_queues,
            stopped=self.stopped,
            log_level=self.log_level,
            log_format=self.log_format,
            now_us=self.now_us,
            ask_s=self.ask_s,
        )

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """The settings of the first line. ValueError for anything else."""
        said = object_of(line)
        try:
            said["target"] = TargetSettings.model_validate(said["target"])
            said |= {name: tuple(said[name]) for name in ("publication_queues", "stopped")}
            return cls(**said)
        except (KeyError, TypeError) as error:
            raise ValueError(f"the settings are not those of a channel process: {error}") from error


def line_of(**fields: object) -> bytes:
    """One line."""
    return orjson.dumps(fields) + b"\n"


def object_of(line: bytes) -> dict[str, Any]:
    """The JSON object of a line. ValueError for any other line."""
    said = orjson.loads(line)
    if not isinstance(said, dict):
        raise ValueError("a line is not a JSON object")
    return said

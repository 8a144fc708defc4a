"""What all connections to the stand-in's queue manager share: engine, switches, faults, and who has what open."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.reasons import QueueManagerError, ReasonCode
from tests.ibm_mq_stand_in.faults import Faults
from tests.ibm_mq_stand_in.options import MQOO, Reason

if TYPE_CHECKING:
    from tests.ibm_mq_stand_in.link import Link

SHARING_FILE: Final = "stand_in_sharing.json"
#: IBM MQ's ceiling, which MAXMSGL of a server channel may have.
DEFAULT_CHANNEL_BYTES: Final = 100 * 1024 * 1024
_INPUT: Final = MQOO.INPUT_AS_Q_DEF | MQOO.INPUT_SHARED | MQOO.INPUT_EXCLUSIVE


@dataclass(slots=True, kw_only=True)
class Switches:
    """What a test may turn while the queue manager runs.

    `connect_refusal` is the reason that MQCONN is refused with (2059, 2538 ...), 0 for none. `passwords` by user; with
    any, a program needs one (2035). `denied` are pairs of an object and what nobody may do with it: "put", "get",
    "browse", "inquire", "set", "setid", "setall", "passid", "passall"; "*" stands for every object.
    """

    connect_refusal: int = 0
    is_quiescing: bool = False
    passwords: dict[str, str] = field(default_factory=dict)
    denied: list[tuple[str, str]] = field(default_factory=list)
    channel_bytes: int = DEFAULT_CHANNEL_BYTES

    def change(self, changes: dict[str, object]) -> None:
        """Sets the named switches; ValueError for a name that there is none of."""
        for name, value in changes.items():
            if name not in asdict(self):
                raise ValueError(f"switch {name!r}: there are {', '.join(asdict(self))}")
            setattr(self, name, [tuple(pair) for pair in value] if name == "denied" else value)  # type: ignore[attr-defined]  # a list from JSON

    def check_authority(self, name: str, wanted: str) -> None:
        """2035 where that is denied."""
        if self.denied and ((name, wanted) in self.denied or ("*", wanted) in self.denied):
            raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, f"{wanted} {name}")


@dataclass(slots=True, kw_only=True)
class Sharing:
    """SHARE or NOSHARE, and DEFSOPT, of a queue: the embedded queue manager has neither."""

    is_shareable: bool = True
    is_exclusive_by_default: bool = False


class OpenQueues:
    """Who has which queue open for input, and who may."""

    def __init__(self, data_folder: Path) -> None:
        self._file = data_folder / SHARING_FILE
        self._inputs: dict[str, list[bool]] = {}
        self._outputs: dict[str, int] = {}
        self._sharing: dict[str, Sharing] = {}
        if self._file.exists():
            kept = json.loads(self._file.read_text())
            self._sharing = {name: Sharing(**attributes) for name, attributes in kept.items()}

    def sharing(self, name: str) -> Sharing:
        return self._sharing.get(name, Sharing())

    def set_sharing(self, name: str, **changes: bool) -> None:
        """Changes a queue's attributes, durably."""
        self._sharing[name] = Sharing(**{**asdict(self.sharing(name)), **changes})
        self._file.write_text(json.dumps({name: asdict(each) for name, each in self._sharing.items()}))

    def forget_sharing(self) -> None:
        """Every queue is as it is by default."""
        self._sharing.clear()
        self._file.unlink(missing_ok=True)

    def input_count(self, name: str) -> int:
        return len(self._inputs.get(name, ()))

    def output_count(self, name: str) -> int:
        return self._outputs.get(name, 0)

    def open(self, queue: Queue, options: MQOO) -> Callable[[], None]:
        """Notes an open; what is returned undoes it. 2042 where an exclusive open stands in the way."""
        undo: list[Callable[[], None]] = []
        if options & _INPUT:
            sharing = self.sharing(queue.name)
            is_exclusive = not sharing.is_shareable or bool(
                options & MQOO.INPUT_EXCLUSIVE or (options & MQOO.INPUT_AS_Q_DEF and sharing.is_exclusive_by_default)
            )
            inputs = self._inputs.setdefault(queue.name, [])
            if inputs and (is_exclusive or any(inputs)):
                raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, f"open {queue.name}")
            inputs.append(is_exclusive)
            undo.append(lambda: inputs.remove(is_exclusive))
        if options & MQOO.OUTPUT:
            self._outputs[queue.name] = self.output_count(queue.name) + 1
            undo.append(lambda: self._outputs.update({queue.name: self._outputs[queue.name] - 1}))
        return lambda: _call_all(undo)


class State:
    """The queue manager as its connections see it."""

    def __init__(self, engine: Engine, data_folder: Path) -> None:
        self.engine = engine
        self.switches = Switches()
        self.faults = Faults()
        self.open_queues = OpenQueues(data_folder)
        self.links: set[Link] = set()
        self._last_connection = 0
        self._hastened = asyncio.Event()

    async def pass_time(self, seconds: float) -> None:
        """Waits so long, or until a test has no patience any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hastened.wait()

    def hasten(self) -> None:
        """What waits for its time goes on."""
        self._hastened.set()
        self._hastened = asyncio.Event()

    @property
    def identifier(self) -> str:
        """MQCA_Q_MGR_IDENTIFIER: no real queue manager has such a one."""
        return f"STANDIN_{self.engine.incarnation.hex()}"

    def next_connection(self) -> int:
        self._last_connection += 1
        return self._last_connection

    def check_quiescing(self, fails_if_quiescing: int) -> None:
        """2161 for a call that asks for it while the queue manager quiesces."""
        if fails_if_quiescing and self.switches.is_quiescing:
            raise QueueManagerError(Reason.MQRC_Q_MGR_QUIESCING, "call a queue manager that quiesces")

    def wake_waiting_gets(self) -> None:
        """An attribute or a switch has changed: whoever waits looks again."""
        for link in tuple(self.links):
            link.wake()


def _call_all(callbacks: Iterable[Callable[[], None]]) -> None:
    for callback in callbacks:
        callback()

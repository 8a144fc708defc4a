"""Faults that a test plants, and what the stand-in remembers of the calls it got.

A fault strikes the nth call of a verb, or every call with a seeded probability. Its moment says when:

    before     the call is refused and does nothing
    after      the call does its work, and its answer is lost: the program sees the reason
    late       the program sees the reason at once, and the work is done `late_s` later
    lost       the program sees the reason at once, and `late_s` later what was open is backed out instead
    random     one of these four, by the seed

Reason 2009 also ends the connection: at once for the program, and for the queue manager when the work is done or lost;
until then it holds its queues, so that an exclusive open of another connection is refused with 2042. Reason 2003 of
MQCMIT backs the unit of work out. Without a reason a fault only delays the call by `delay_s`.
"""

import random
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

MQRC_BACKED_OUT: Final = 2003
MQRC_CONNECTION_BROKEN: Final = 2009
ANY_VERB: Final = "*"
MOMENTS: Final = ("before", "after", "late", "lost")
#: Calls that the trace keeps.
TRACE_CALLS: Final = 20_000


@dataclass(slots=True, kw_only=True)
class Fault:
    """One planted fault. `times` is how often it may strike, 0 for ever; `contains` narrows it to calls with messages
    that have these bytes in them: MQPUT and MQPUT1 with one, MQCMIT of a unit of work with one that was put."""

    verb: str
    reason: int = 0
    moment: str = "before"
    nth: int = 1
    probability: float = 0.0
    seed: int = 0
    times: int = 1
    delay_s: float = 0.0
    late_s: float = 1.0
    contains: bytes = b""
    seen: int = field(default=0, init=False)
    struck: int = field(default=0, init=False)
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        if self.moment not in (*MOMENTS, "random"):
            raise ValueError(f"moment {self.moment!r}: must be random or one of {', '.join(MOMENTS)}")
        if self.moment in ("late", "lost", "random") and self.reason != MQRC_CONNECTION_BROKEN:
            raise ValueError(
                f"moment {self.moment!r} is for reason 2009: whoever has another reason is still connected"
            )

    def strikes(self, verb: str, messages: Iterable[bytes]) -> bool:
        """Counts a call, and says whether it is the one."""
        if self.verb not in (verb, ANY_VERB) or (self.times and self.struck >= self.times):
            return False
        if self.contains and not any(self.contains in message for message in messages):
            return False
        self.seen += 1
        if not (self._random.random() < self.probability if self.probability else self.seen >= self.nth):
            return False
        self.struck += 1
        return True

    def chosen_moment(self) -> str:
        return self._random.choice(MOMENTS) if self.moment == "random" else self.moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call in the trace: when it ended (seconds of a monotonic clock), on which connection, on what, and how."""

    at_s: float
    connection: int
    verb: str
    object_name: str
    comp_code: int
    reason: int


class Faults:
    """All planted faults, the counters and the trace."""

    def __init__(self) -> None:
        self.planted: list[Fault] = []
        self.calls: Counter[str] = Counter()
        self.reasons: Counter[int] = Counter()
        self.trace: deque[Call] = deque(maxlen=TRACE_CALLS)

    @property
    def look_into_messages(self) -> bool:
        return any(fault.contains for fault in self.planted)

    def striking(self, verb: str, messages: Iterable[bytes]) -> Fault | None:
        """The first planted fault that strikes this call."""
        if not self.planted:
            return None
        return next((fault for fault in self.planted if fault.strikes(verb, messages)), None)

    def note(self, call: Call) -> None:
        self.calls[call.verb] += 1
        if call.reason:
            self.reasons[call.reason] += 1
        self.trace.append(call)

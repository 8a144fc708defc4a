"""The waiting room: programs whose account is ahead of its rate of trail bytes wait for the answer to MQCONN.

A program's connection and its end have records. A connection that rests is not read, but who comes again and again
would pass by that. So programs of one account wait in line, for as long as their connections may take to connect.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.listener.mq.identity import Identified
from mq_adapters.embedded.socket.pace import ApplicationAccount

#: Seconds after which those are forgotten who no longer want to come in.
_LOOK_S: Final = 0.5


@dataclass(slots=True, kw_only=True)
class _Waiting:
    """`come_in` is called with whether what proved the program still counts."""

    who: Identified
    is_wanted: Callable[[], bool]
    come_in: Callable[[bool], None]
    is_proved: bool = True


class WaitingRoom:
    """One for each listener."""

    def __init__(self, wait_s: Callable[[ApplicationAccount], float]) -> None:
        """`wait_s` tells for how long an account is ahead of its rates."""
        self._wait_s = wait_s
        self._lines: dict[ApplicationAccount, deque[_Waiting]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def enter(self, who: Identified, is_wanted: Callable[[], bool], come_in: Callable[[bool], None]) -> None:
        """Calls `come_in` once, now or later, unless `is_wanted` is false by then. See _Waiting."""
        account = who.application.account
        line, wait_s = self._lines.get(account), self._wait_s(account)
        if line is None and wait_s <= 0:
            come_in(True)
            return
        if line is None:
            line = self._lines[account] = deque()
            self._look_later(account, wait_s)
        line.append(_Waiting(who=who, is_wanted=is_wanted, come_in=come_in))

    def doubt(self, is_over: Callable[[Identified], bool]) -> None:
        """What proved some programs no longer counts. They must prove themselves again when it is their turn."""
        for line in self._lines.values():
            for each in line:
                each.is_proved = each.is_proved and not is_over(each.who)

    def _look(self, account: ApplicationAccount) -> None:
        line = self._lines[account] = deque(each for each in self._lines[account] if each.is_wanted())
        wait_s = 0.0
        try:
            while line and (wait_s := self._wait_s(account)) <= 0:
                first = line.popleft()
                if first.is_wanted():  # the one before may have ended it
                    first.come_in(first.is_proved)
        finally:  # a fault of ours with one program: those behind it go on
            if line:
                self._look_later(account, wait_s)
            else:
                del self._lines[account]

    def _look_later(self, account: ApplicationAccount, wait_s: float) -> None:
        asyncio.get_running_loop().call_later(min(wait_s, _LOOK_S), self._look, account)

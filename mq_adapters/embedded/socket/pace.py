"""The pace of an application: it is not read for a while if its work causes too many bytes of the audit trail."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from mq_adapters.embedded.unit_of_work import UnitOfWork


class ApplicationAccount(NamedTuple):
    """Who is charged for the work of an application. All its connections have one account.

    `network`: the network of a program that anybody from there could be, because it proved nothing; else b"". Then one
    network cannot use up what the others have.
    """

    name: str
    network: bytes = b""


#: Is told the account of an application and its unit of work. Gives the seconds to read no more from it.
Charge = Callable[[ApplicationAccount, UnitOfWork], float]


def free_of_charge(_account: ApplicationAccount, _unit: UnitOfWork) -> float:
    """A Charge that never slows anybody down."""
    return 0.0


class Pace:
    """Charges the work of one connection. `go_on` is called when a rest is over."""

    def __init__(self, charge: Charge, go_on: Callable[[], None]) -> None:
        self._charge = charge
        self._go_on = go_on
        self._rest: asyncio.TimerHandle | None = None

    @property
    def is_resting(self) -> bool:
        return self._rest is not None

    def charge(self, account: ApplicationAccount, unit: UnitOfWork) -> None:
        """Charges a unit of work with notes. A longer rest replaces the one under way."""
        rest_s = self._charge(account, unit) if unit.notes else 0.0
        if rest_s > 0:
            self.end()
            self._rest = asyncio.get_running_loop().call_later(rest_s, self._rested)

    def end(self) -> None:
        """Ends the rest, and nobody is called."""
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _rested(self) -> None:
        self._rest = None
        self._go_on()

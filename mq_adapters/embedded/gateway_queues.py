"""The queues of a gateway: which of them must stay, and whose messages are on them.

A gateway says so at each start. It is kept in the store, so that a command that owns the store while no gateway runs
knows it too. The queues that every store has need not be said.
"""

from dataclasses import dataclass
from typing import Final

import orjson

from mq_adapters.embedded.unit_of_work import StateSpace, UnitOfWork
from mq_adapters.reasons import StoreError

_KEY: Final = b"queues"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayQueues:
    """The queues of a gateway, by their names, and whether it keeps an audit trail.

    `owned` are those whose messages it takes itself, `needed` are others that must be there for it to work.
    """

    owned: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    is_audited: bool = True

    @classmethod
    def load(cls, packed: bytes | None) -> "GatewayQueues":
        """From its stored form; None where no gateway has run. StoreError for another version or for damage."""
        if packed is None:
            return cls()
        try:
            said = orjson.loads(packed)
            if said["version"] != _VERSION:
                raise ValueError("it has another version")
            return cls(
                owned=frozenset(said["owned"]), needed=frozenset(said["needed"]), is_audited=bool(said["is_audited"])
            )
        except (ValueError, TypeError, KeyError) as error:
            hint = "use the program that wrote it"
            raise StoreError("read the list of the gateway's queues", str(error), hint) from error

    def save(self, unit: UnitOfWork) -> None:
        """Its stored form, in a unit of work."""
        said = {
            "version": _VERSION,
            "owned": sorted(self.owned),
            "needed": sorted(self.needed),
            "is_audited": self.is_audited,
        }
        unit.set_state(StateSpace.GATEWAY, _KEY, orjson.dumps(said))

    @staticmethod
    def key() -> tuple[StateSpace, bytes]:
        """Where it is kept."""
        return StateSpace.GATEWAY, _KEY

"""The queues of a gateway: queues that must stay, and queues whose messages belong to the gateway.

A gateway names them at each start. The store keeps the names for commands that own the store while no gateway runs.
Queues that every store has are not in the list.
"""

from dataclasses import dataclass
from typing import Final

import orjson

from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork
from mq_adapters.reasons import StoreError

_KEY: Final = b"queues"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayQueues:
    """The queues of a gateway, by their names, and whether it keeps an audit trail.

    The gateway itself takes the messages of `owned` queues. `needed` are other queues that it cannot work without.
    """

    owned: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    is_audited: bool = True

    @classmethod
    def load(cls, packed: bytes | None) -> "GatewayQueues":
        """Reads the stored form; None if no gateway has run. StoreError for another version or for damage."""
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
        """Writes the stored form in a unit of work."""
        said = {
            "version": _VERSION,
            "owned": sorted(self.owned),
            "needed": sorted(self.needed),
            "is_audited": self.is_audited,
        }
        unit.set_state(StateKind.GATEWAY, _KEY, orjson.dumps(said))

    @staticmethod
    def key() -> tuple[StateKind, bytes]:
        """The key of the stored form."""
        return StateKind.GATEWAY, _KEY

"""The newest time that a store has seen. A start compares the wall clock with it (plausible_clock.py)."""

from typing import TYPE_CHECKING, Final

from mq_adapters.embedded.unit_of_work import StateKind

if TYPE_CHECKING:
    from mq_adapters.embedded.engine import Engine
    from mq_adapters.embedded.store.store import Store

_KEY: Final = b"newest"
_BYTES: Final = 8


def newest_us(store: "Store") -> int:
    """Microseconds since 1970 UTC; 0 if the store has no time. Raises StoreError."""
    kept = store.state(StateKind.CLOCK, _KEY)
    return max(int.from_bytes(kept or b"", "big"), store.last_put_us())


def keep(engine: "Engine") -> None:
    """Keeps the present plausible time, in a unit of work of its own."""
    unit = engine.begin()
    unit.set_state(StateKind.CLOCK, _KEY, engine.now_us().to_bytes(_BYTES, "big"))
    engine.submit(unit)


def believe(engine: "Engine", why: str) -> bool:
    """An operator says that the wall clock is right, and the store keeps that. Returns False if nobody doubts it."""
    is_new = engine.clock.believe(why)
    if is_new:
        keep(engine)
    return is_new

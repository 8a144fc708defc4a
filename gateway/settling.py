"""Waits until what was submitted to the engine is committed, before the gateway stops."""

import asyncio
from typing import Final

from mq_adapters.embedded.engine import Engine

#: How often a stopping gateway sees whether a commit is done, seconds.
_COMMIT_LOOK_S: Final = 0.001
#: Commits that may follow from one another while the gateway drains, as a will's after the end of its session.
_FOLLOWING_COMMITS: Final = 10


async def until_settled(engine: Engine) -> None:
    """Until all that was submitted is committed, and what followed from it; applications go on submitting meanwhile."""
    for _ in range(_FOLLOWING_COMMITS):
        if engine.is_idle or engine.failed is not None:
            return
        await _until_committed(engine)


async def _until_committed(engine: Engine) -> None:
    """Until all that was submitted so far is committed."""
    committed = asyncio.Event()
    engine.submit(engine.begin(), lambda _unit: committed.set())
    while not committed.is_set() and engine.failed is None:
        await asyncio.sleep(_COMMIT_LOOK_S)


async def until_idle(engine: Engine) -> None:
    """Until nothing waits for a commit: when nobody submits anything any more."""
    while not engine.is_idle and engine.failed is None:
        await asyncio.sleep(_COMMIT_LOOK_S)

"""Sessions whose registrations a start sets aside, because all sessions together need more memory than there is.

Before anything is loaded, the gateway estimates the memory of each session from the rows of the store. Nine tenths of
it are the registrations at the embedded broker. If the sessions need too much, the registrations of the largest stay in
the store until the others fit (mq_adapters/broker/set_aside.py). Such a session is served as any other: publications
reach it, its client may connect, and it may end. Only a publication on a new topic takes longer. Each start decides
anew.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from gateway.bridge.sessions.session_store import SessionRow, SubscriptionRow, session_correl_id
from gateway.free_memory import free_memory_bytes
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind

_log = logging.getLogger(__name__)

#: Memory in bytes, measured with tracemalloc: of a registration that is loaded (500 to 570), of each level that a
#: pattern with wildcards names (225 to 250 where no other pattern names it, else 4), of a registration that is set
#: aside (95 to 115), of a filter in its session beside its text (145), and of a session.
_LOADED_BYTES: Final = 600
_NEW_LEVEL_BYTES: Final = 240
_LEVEL_BYTES: Final = 4
_SET_ASIDE_BYTES: Final = 110
_FILTER_BYTES: Final = 150
_SESSION_BYTES: Final = 4_000
#: Wildcards of MQRFH, with which a registration is always loaded.
_STAYS_LOADED: Final = re.compile(rb"[*?]")
_WILDCARDS: Final = frozenset((b"+", b"#"))
#: Stream, identity, subscription point and topic.
_NAMES: Final = 4
#: Sessions may take three quarters of the memory that there is: messages and connections need the rest.
_SHARE_OF_FREE: Final = (3, 4)


class _Estimate(NamedTuple):
    """The memory that a session needs where its registrations are loaded, and where they are set aside."""

    client: str
    correl_id: bytes
    loaded_bytes: int
    set_aside_bytes: int

    @property
    def saved_bytes(self) -> int:
        return self.loaded_bytes - self.set_aside_bytes


def sessions_set_aside(
    engine: Engine, maximum_bytes: int, *, free_bytes: Callable[[], int | None] = free_memory_bytes
) -> frozenset[bytes]:
    """The CorrelIds of the sessions whose registrations a start must not load.

    `maximum_bytes` 0: sessions may take most of the free memory.
    """
    if not maximum_bytes:
        free = free_bytes()
        if free is None:
            return frozenset()
        share, whole = _SHARE_OF_FREE
        maximum_bytes = free * share // whole
    estimates = _estimates(engine)
    needed = sum(each.loaded_bytes for each in estimates)
    chosen: list[_Estimate] = []
    for each in sorted(estimates, key=lambda found: found.saved_bytes, reverse=True):
        if needed <= maximum_bytes or each.saved_bytes <= 0:
            break
        needed -= each.saved_bytes
        chosen.append(each)
    _tell(chosen, needed, maximum_bytes, len(estimates))
    return frozenset(each.correl_id for each in chosen)


def _tell(chosen: list[_Estimate], needed: int, maximum_bytes: int, sessions: int) -> None:
    for each in chosen:
        _log.warning("session set aside client=%s saved_bytes=%s", each.client, each.saved_bytes)
    if chosen:
        _log.warning(
            "sessions set aside count=%s of=%s needed_bytes=%s maximum_bytes=%s hint=%s",
            len(chosen),
            sessions,
            needed,
            maximum_bytes,
            "they are served, more slowly; to load them give the gateway more memory, or raise [mqtt]"
            " maximum_session_memory_bytes, and start it again",
        )
    if needed > maximum_bytes:
        _log.error(
            "sessions need more memory than there is needed_bytes=%s maximum_bytes=%s hint=%s",
            needed,
            maximum_bytes,
            "give the gateway more memory, or end sessions that nobody uses: rfhbridge sessions expire",
        )


def _estimates(engine: Engine) -> list[_Estimate]:
    """Every session of the store with the memory that it needs. One row at a time is in memory."""
    loaded, set_aside = _registered_bytes(engine)
    filters: Counter[int] = Counter()
    for key, _ in engine.each_state(StateKind.SESSION_SUBSCRIPTION):
        filters[SubscriptionRow.read_key(key)[0]] += _FILTER_BYTES + len(key)
    found = []
    for key, value in engine.each_state(StateKind.SESSION):
        client, row = key.decode(), SessionRow.unpack(value)
        correl_id = session_correl_id(engine.identity, client, row.epoch)
        own = _SESSION_BYTES + len(value) + _FILTER_BYTES * len(row.subscriptions) + filters[row.epoch]
        place = correl_id.hex()
        found.append(_Estimate(client, correl_id, own + loaded[place], own + set_aside[place]))
    return found


def _registered_bytes(engine: Engine) -> tuple[Counter[str], Counter[str]]:
    """The memory of the registrations at the embedded broker, loaded and set aside, by CorrelId in hexadecimal digits.

    The key of a registration has stream, `QMgr:Queue:CorrelId`, subscription point and topic, joined by NUL. Rows with
    similar topics follow each other, so a level counts as new if the pattern before does not name it.
    """
    loaded: Counter[str] = Counter()
    set_aside: Counter[str] = Counter()
    before: frozenset[bytes] = frozenset()
    for key, _ in engine.each_state(StateKind.BROKER_SUBSCRIPTION):
        names = key.split(b"\0", 4)
        if len(names) < _NAMES:
            continue  # the broker tells of a damaged row when it loads it
        _, identity, _, topic = names[:_NAMES]
        place = identity.rpartition(b":")[2].decode(errors="replace")
        levels = frozenset(topic.split(b"/"))
        needed = _LOADED_BYTES
        if levels & _WILDCARDS:
            needed += _LEVEL_BYTES * topic.count(b"/") + _NEW_LEVEL_BYTES * len(levels - before - _WILDCARDS)
            before = levels
        loaded[place] += needed
        set_aside[place] += needed if _STAYS_LOADED.search(topic) else _SET_ASIDE_BYTES
    return loaded, set_aside

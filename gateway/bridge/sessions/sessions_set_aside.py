"""Sessions that a start sets aside, because all sessions together need more memory than there is.

Before anything is loaded, the gateway estimates the memory of each session from the rows of the store. If they need too
much, the largest are set aside until the others fit. A session that is set aside stays in the store, whole: its row,
its registrations, its flows, and the messages that wait for it. It is in no index, so no new publication is queued for
it. A CONNECT of its client is refused with reason code 97 hex. Each start decides anew: the session is back after a
restart with more memory, or with a higher `maximum_session_memory_bytes`.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from gateway.bridge.sessions.session_store import SessionRow, session_correl_id
from gateway.free_memory import free_memory_bytes
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateSpace

_log = logging.getLogger(__name__)

#: Memory of one level of a filter in the index, of a filter beside its levels and its text, and of a session, bytes
#: (measured with tracemalloc: 8 and the level's text of up to 50, 900, and 3,000).
_LEVEL_BYTES: Final = 64
_FILTER_BYTES: Final = 1_000
_SESSION_BYTES: Final = 4_000
#: A row is in memory about so many times: as it is read, and as what it says.
_COPIES_OF_ROW: Final = 2
#: Stream, identity, subscription point and topic.
_NAMES: Final = 4
#: Sessions may take three quarters of the memory that there is: messages and connections need the rest.
_SHARE_OF_FREE: Final = (3, 4)


class SetAsideSession(NamedTuple):
    """A session that is not loaded."""

    client: str
    epoch: int
    correl_id: bytes
    memory_bytes: int


class SetAside:
    """All of them."""

    def __init__(self, sessions: Mapping[str, SetAsideSession] | None = None) -> None:
        self._sessions = dict(sessions or {})
        self.correl_ids = frozenset(each.correl_id for each in self._sessions.values())
        self.epochs = frozenset(each.epoch for each in self._sessions.values())
        #: How many PUBLISHes of QoS 2 they hold.
        self.held = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, client: object) -> bool:
        return client in self._sessions

    def has_lane(self, correl_id: bytes) -> bool:
        """Whether messages with a CorrelId wait for one of them."""
        return correl_id in self.correl_ids


def sessions_set_aside(
    engine: Engine, maximum_bytes: int, *, free_bytes: Callable[[], int | None] = free_memory_bytes
) -> SetAside:
    """The sessions that a start must not load. `maximum_bytes` 0: sessions may take most of the free memory."""
    if not maximum_bytes:
        free = free_bytes()
        if free is None:
            return SetAside()
        share, whole = _SHARE_OF_FREE
        maximum_bytes = free * share // whole
    estimates = _estimates(engine)
    needed = sum(each.memory_bytes for each in estimates)
    chosen: dict[str, SetAsideSession] = {}
    for each in sorted(estimates, key=lambda found: found.memory_bytes, reverse=True):
        if needed <= maximum_bytes:
            break
        needed -= each.memory_bytes
        chosen[each.client] = each
    for each in chosen.values():
        _log.error("session set aside client=%s memory_bytes=%s", each.client, each.memory_bytes)
    if chosen:
        _log.error(
            "sessions set aside count=%s of=%s maximum_bytes=%s hint=%s",
            len(chosen),
            len(estimates),
            maximum_bytes,
            "give the gateway more memory, or raise [mqtt] maximum_session_memory_bytes, and start it again",
        )
    return SetAside(chosen)


def _estimates(engine: Engine) -> list[SetAsideSession]:
    """Every session of the store with the memory that it needs. One row at a time is in memory."""
    registered = _registered_bytes(engine)
    found = []
    for key, value in engine.each_state(StateSpace.SESSION):
        client, epoch = key.decode(), SessionRow.unpack(value).epoch
        correl_id = session_correl_id(engine.identity, client, epoch)
        needed = _SESSION_BYTES + len(value) * _COPIES_OF_ROW + registered[correl_id.hex()]
        found.append(SetAsideSession(client, epoch, correl_id, needed))
    return found


def _registered_bytes(engine: Engine) -> Counter[str]:
    """The memory of the registrations at the embedded broker, by CorrelId in hexadecimal digits.

    The key of a registration has stream, `QMgr:Queue:CorrelId`, subscription point and topic, joined by NUL.
    """
    needed: Counter[str] = Counter()
    for key, value in engine.each_state(StateSpace.BROKER_SUBSCRIPTION):
        names = key.split(b"\0", 4)
        if len(names) < _NAMES:
            continue  # the broker tells of a damaged row when it loads it
        _, identity, _, topic = names[:_NAMES]
        cost = _FILTER_BYTES + _LEVEL_BYTES * (topic.count(b"/") + 1) + len(topic) + len(value)
        needed[identity.rpartition(b":")[2].decode(errors="replace")] += cost
    return needed

"""Room for retained messages: what is retained, and what will be without anybody being asked again.

A PUBLISH of QoS 2 is taken long before its PUBREL, a will at CONNECT, and what one read brings before any of it is
retained. All of them have their place in `maximum_retained_messages` from then on: whoever sends many at once, or wills
from many clients, does not come past it.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from gateway.bridge.sessions import Sessions

#: Topics that are remembered before it is looked which of them are retained by now, at some 60 bytes each.
_REMEMBERED: Final = 10_000


class RetainedStore(Protocol):
    """What is retained here: how many, and whether a PUBLISH on a topic would replace one."""

    def __len__(self) -> int: ...

    def __contains__(self, topic: object, /) -> bool: ...


class RetainedRoom:
    """Gives places away. Call `tick` several times a second, not within a turn."""

    def __init__(
        self, maximum: int, retained: RetainedStore, sessions: Sessions, *, is_for_target: Callable[[str], bool]
    ) -> None:
        """`maximum` 0: no limit. `is_for_target`: whether a topic is published elsewhere, and retained there."""
        self._maximum = maximum
        self._retained = retained
        self._sessions = sessions
        self._is_for_target = is_for_target
        #: Hashes of the topics that sessions will retain something on; after a start it is not known which.
        self._promised: set[int] = set()
        self._is_known = False
        #: Topics that were given a place since the last tick, and hashes of those from before, back to the last look.
        self._lately: set[str] = set()
        self._before: set[int] = set()
        #: How many were retained when those of this tick were looked through.
        self._retained_then = 0
        self._may_look = True

    def tick(self) -> None:
        """What was given a place before is retained by now, or stands in a session."""
        self._may_look = True
        self._before.update(map(hash, self._lately))
        self._lately.clear()
        if len(self._before) > _REMEMBERED:
            self._look()

    def takes(self, topic: str) -> bool:
        """Whether something may be retained on a topic; then it has its place."""
        if not self._maximum or self._is_for_target(topic) or topic in self._lately:
            return True
        if not self._is_known or self._is_full:
            self._look()
        if self._is_full:
            return hash(topic) in self._promised or topic in self._retained
        self._lately.add(topic)
        return True

    def gives_back(self, topic: str) -> None:
        """What is retained on a topic is deleted."""
        self._lately.discard(topic)

    @property
    def _is_full(self) -> bool:
        given = len(self._promised) + len(self._before) + len(self._lately)
        return len(self._retained) + given >= self._maximum

    def _look(self) -> None:
        """Forgets places that are taken. Sessions are asked once a tick: there may be many."""
        if self._may_look:
            self._may_look, self._is_known = False, True
            wanted = (topic for topic in self._of_sessions() if not self._is_for_target(topic))
            self._promised = {hash(topic) for topic in wanted if topic not in self._retained}
            self._before.clear()
        if len(self._retained) != self._retained_then:
            self._retained_then = len(self._retained)
            self._lately = {topic for topic in self._lately if topic not in self._retained}

    def _of_sessions(self) -> Iterator[str]:
        """What wills and PUBLISHes between PUBLISH and PUBREL will retain."""
        for session in self._sessions:
            if session.will is not None and session.will.retain and session.will.payload:
                yield session.will.topic
            for held in session.held.values():
                if held.retain and held.payload:
                    yield held.topic

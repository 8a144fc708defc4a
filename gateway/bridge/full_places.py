"""Full places: a PUBLISH of QoS 1 or 2 waits until its place has room; its publisher is paused (paused_publishers.py).

A place is the disk, a target (by its name), or a queue that an operator has closed (pauses.py). It is the dead-letter
queue for a client whose dead letters wait to be put there.
"""

from functools import partial
from typing import Final

from gateway.bridge.paused_publishers import PausedPublishers
from gateway.bridge.pauses import Pauses
from gateway.bridge.publish import Intake, is_repeat
from gateway.bridge.publish_command import ToMq
from gateway.bridge.sessions import ClientSession
from gateway.mqtt.events import PublishReceived
from mq_adapters.embedded.engine import Engine

#: The name of the disk as a place; names of targets have no small letters.
_DISK: Final = "disk"
#: The name of the dead-letter queue as a place.
_LETTERS: Final = "letters"


class FullPlaces:
    """Finds the full place of a PUBLISH, and lets its publishers go on when it has room."""

    def __init__(
        self, engine: Engine, *, intake: Intake, to_mq: ToMq, pauses: Pauses, paused: PausedPublishers
    ) -> None:
        self._engine = engine
        self._intake = intake
        self._to_mq = to_mq
        self._pauses = pauses
        self._paused = paused
        self._letters = engine.dead_letters
        self._letters.on_wait, self._letters.on_release = self._look_for_room, self._letters_went_on
        for target in to_mq.targets:
            target.on_room.append(partial(paused.go_on, target.name))
        #: Whether a place may be full. Each PUBLISH asks this; most of the time none is.
        self.may_be_full = to_mq.has_targets

    def of(self, session: ClientSession, event: PublishReceived) -> str:
        """The full place for which a PUBLISH must wait; "" if it need not wait."""
        if self._intake.disk_is_short:
            return _DISK
        if is_repeat(session, event):
            return ""
        if self._letters.waits(session.client):
            return _LETTERS
        target = self._to_mq.full_target(event.topic) if self._to_mq.has_targets else None
        if target is not None:
            return target.name
        return self._pauses.place(event.topic, session.client) if self._pauses else ""

    def look(self) -> None:
        """Lets publishers go on when an operator has opened their queue again."""
        if self._pauses.are_known:
            return
        opened = self._pauses.look()
        self._look_for_room()
        for place in opened:
            self._paused.go_on(place)

    def disk_space_changed(self, is_short: bool) -> None:
        """The free space has fallen below its mark, or is above it again: then all publishers go on."""
        if is_short:
            self._intake.disk_is_short = True
        else:
            unit = self._engine.begin()
            self._intake.disk_has_room(unit, self._engine.now_us())
            self._engine.submit(unit)
        self._look_for_room()
        if not is_short:
            self._paused.go_on(_DISK)

    def _look_for_room(self) -> None:
        is_short = self._intake.disk_is_short or self._letters.somebody_waits
        self.may_be_full = self._to_mq.has_targets or is_short or bool(self._pauses)

    def _letters_went_on(self) -> None:
        """All dead letters of a client are on the dead-letter queue now."""
        self._look_for_room()
        self._paused.go_on(_LETTERS)

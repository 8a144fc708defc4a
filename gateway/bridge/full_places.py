"""What has no room for a PUBLISH of QoS 1 or 2: whoever sent it is held back there, until the place has room.

A place is the disk, the dead-letter queue (for who caused letters that wait for it), a target by its name, or a queue
that an operator has closed (pauses.py).
"""

from functools import partial
from typing import Final

from gateway.bridge.paused_publishers import HeldBack
from gateway.bridge.pauses import Pauses
from gateway.bridge.publish import Intake, is_repeat
from gateway.bridge.publish_command import ToMq
from gateway.bridge.sessions import ClientSession
from gateway.mqtt.events import PublishReceived
from mq_adapters.embedded.engine import Engine

#: Stands for the disk among the names of targets, which have no small letters.
_DISK: Final = "disk"
#: The same for the dead-letter queue.
_LETTERS: Final = "letters"


class FullPlaces:
    """Finds the place that has no room, and lets those who wait there go on when it has."""

    def __init__(self, engine: Engine, *, intake: Intake, to_mq: ToMq, pauses: Pauses, held_back: HeldBack) -> None:
        self._engine = engine
        self._intake = intake
        self._to_mq = to_mq
        self._pauses = pauses
        self._held_back = held_back
        self._letters = engine.dead_letters
        self._letters.on_wait, self._letters.on_release = self._look_for_room, self._letters_went_on
        for target in to_mq.targets:
            target.on_room.append(partial(held_back.go_on, target.name))
        #: Whether a PUBLISH may find no room at all, which each is asked; most of the time all find it.
        self.may_be_full = to_mq.has_targets

    def of(self, session: ClientSession, event: PublishReceived) -> str:
        """The place that has no room for a PUBLISH; "" where it needs none, or there is."""
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
        """Who waited for a queue that the operator has opened again goes on."""
        if self._pauses.are_known:
            return
        opened = self._pauses.look()
        self._look_for_room()
        for place in opened:
            self._held_back.go_on(place)

    def disk_space_changed(self, is_short: bool) -> None:
        """The disk has come below its mark, or is above it again: then everyone goes on."""
        if is_short:
            self._intake.disk_is_short = True
        else:
            unit = self._engine.begin()
            self._intake.disk_has_room(unit, self._engine.now_us())
            self._engine.submit(unit)
        self._look_for_room()
        if not is_short:
            self._held_back.go_on(_DISK)

    def _look_for_room(self) -> None:
        is_short = self._intake.disk_is_short or self._letters.somebody_waits
        self.may_be_full = self._to_mq.has_targets or is_short or bool(self._pauses)

    def _letters_went_on(self) -> None:
        """Nothing of somebody waits for the dead-letter queue any more."""
        self._look_for_room()
        self._held_back.go_on(_LETTERS)

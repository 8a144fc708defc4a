"""The daemon's work for targets, in one place: it builds, starts, checks and ends their channels."""

import os
from collections.abc import Iterator
from pathlib import Path

from gateway.channels.channel_audit import ChannelAudit
from gateway.channels.channel_commands import ChannelCommands
from gateway.channels.names import channel_names
from gateway.channels.protocol import ProcessSettings
from gateway.channels.supervisor import Supervisor, TargetProcess
from gateway.channels.target import Target
from gateway.config import Settings
from gateway.config.queue_names import transmission_queue_name
from gateway.config.routes import route_of
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE


class Channels:
    """The targets of a gateway, the processes of their channels, and the operator's commands for them."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        subscriber_queue: Queue,
        reply_queue: Queue,
        command: tuple[str, ...],
    ) -> None:
        """`command` starts a channel process."""
        self._settings = settings
        self._now_us = engine.now_us
        self._subscriber_queue = subscriber_queue
        self._reply_queue = reply_queue
        #: By name, in the order of the configuration.
        self.targets = {target.name: Target(engine, target) for target in settings.target}
        folder = Path(settings.data).absolute()
        processes = tuple(
            TargetProcess(target, self._settings_of, folder=folder, command=command) for target in self.targets.values()
        )
        self._supervisor = Supervisor(processes)
        audit = ChannelAudit(engine, self.targets.values(), subscriber_queue=subscriber_queue)
        engine.on_application_unit.append(audit.note)
        engine.objects.channels = ChannelCommands(processes, subscriber_queue=subscriber_queue, reply_queue=reply_queue)

    def begin(self) -> None:
        """Starts the channels. The gateway's socket must exist."""
        self._supervisor.begin()

    def tick(self) -> None:
        """Call it several times a second."""
        self._supervisor.tick()

    def disk_space_changed(self, is_short: bool) -> None:
        """While the disk is short of space, publications of targets stay at their queue managers."""
        self._subscriber_queue.lacks_space = is_short

    async def end(self, *, kill: bool = False) -> None:
        """Ends the channels. Returns when all their work is in the store, or at once if the store has failed."""
        await self._supervisor.end(kill=kill)

    def queue_names(self) -> Iterator[str]:
        """The queues of the channels: for each shard in use or wanted, for sent copies, and for state."""
        yield CHANNEL_STATE_QUEUE
        for target in self.targets.values():
            yield target.sent_queue.name
            for shard in range(max(target.shards, target.settings.shards)):
                yield transmission_queue_name(target.name, shard)

    def _settings_of(self, target: Target) -> ProcessSettings:
        routes = (route for route in self._settings.routes if route.target == target.name)
        queues = {route_of(route, target.settings).queue for route in routes}
        names = channel_names(target.name, target.shards)
        return ProcessSettings(
            data=os.fspath(Path(self._settings.data).absolute()),
            target=target.settings.from_any_folder(),
            shards=target.shards,
            subscriber_queue=self._subscriber_queue.name,
            reply_queue=self._reply_queue.name,
            publication_queues=tuple(sorted(queues)),
            stopped=tuple(name for name in names if target.is_stopped(name)),
            now_us=self._now_us(),
            log_level=self._settings.log.level,
            log_format=self._settings.log.format,
        )

"""The daemon: builds the parts, starts them, drains them and stops.

Order of start: signal handlers, store, what trail and targets say of it, broker, sessions, Unix socket; then the MQTT
ports open, so that a client that gets in finds everything there, then the HTTP port; the exporter, the conversion
service and the channels start. Order of stop: ports and connections, the channels, what waits for a commit, the
exporter (which closes the trail's segment), the Unix socket, the store. A failed store stops it, with exit code 1.
"""

import asyncio
import contextlib
import gc
import importlib.metadata
import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from gateway import compiled, signals
from gateway.access.application_roles import application_socket, roles_of
from gateway.access.deciding_files import DecidingFiles
from gateway.access.dollar_topics import DollarTopics
from gateway.access.operator_files import OperatorFiles
from gateway.audit_trail.exporter import TRAIL_FOLDER
from gateway.audit_trail.newest_time import newest_us
from gateway.audit_trail.notes.acts import note_acts
from gateway.audit_trail.notes.notes import BrokerNotes, NoteKind, pack_batch
from gateway.audit_trail.notes.stock_takes import StockTakes, lost_notes, stock_notes
from gateway.audit_trail.supervisor import ExporterSupervisor
from gateway.audit_trail.trail_head import keep_from_creation
from gateway.bridge.assembly import build_bridge
from gateway.bridge.bridge import Bridge
from gateway.bridge.commands.mq_refusals import BrokerClosedTopics
from gateway.bridge.sessions.filter_shapes import BrokerShapes
from gateway.bridge.sessions.retained_copies import RetainedCopies
from gateway.bridge.sessions.session_limits import BrokerRetained
from gateway.bridge.sessions.sessions import Sessions
from gateway.bridge.sessions.sessions_set_aside import sessions_set_aside
from gateway.channels.asked_targets import check_targets
from gateway.channels.channels import Channels
from gateway.channels.supervisor import COMMAND
from gateway.clock_watch import ClockWatch
from gateway.config import ConfigurationError, Settings
from gateway.config.routes import Routes
from gateway.conversion.service import ConversionService
from gateway.free_space import FreeSpace
from gateway.limits.admission import Admission
from gateway.limits.refusals import Refusals
from gateway.listener import Listeners, OpenListener, cannot_listen, mq_listeners
from gateway.operations.inventory import LASTING, Inventory
from gateway.operations.rollback import check_trail
from gateway.private_process import forbid_inspection
from gateway.rescue_folder import ready_rescue_folder
from gateway.settling import until_idle, until_settled
from gateway.system_notices import SystemNotices
from mappings.commands.command import Dialect
from mappings.table import TABLE_VERSION
from mq_adapters.broker.broker import Broker, BrokerRules
from mq_adapters.broker.topic_spaces import BrokerDialect
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.gateway_queues import GatewayQueues
from mq_adapters.embedded.rights import EXPORTER
from mq_adapters.embedded.socket.applications import Applications
from mq_adapters.embedded.socket.server import Server
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from mq_adapters.system_queues import AUDIT_QUEUE, DEFAULT_STREAM
from spark_audit.trail.segment_forms import OPEN

if TYPE_CHECKING:
    from gateway.operations.http import HttpServer

_log = logging.getLogger(__name__)

#: How long a starting gateway waits for a command that has the store open, seconds.
OWNER_WAIT_S: Final = 10.0
_TICK_S: Final = 0.1
#: How long a thread may keep the others waiting: a commit that ends in a thread must get in quickly.
_SWITCH_S: Final = 0.0005
#: Messages are many, short-lived and free of cycles: with Python's own thresholds the collector takes a fifth of the
#: time and most of the 99th percentile (measured with benchmark qos1_offline). While messages pile up in memory a pass
#: over 10,000 new objects takes up to 3 ms, over 50,000 up to 18 ms; those that outlive it are looked at very seldom.
_GC_THRESHOLD: Final = (10_000, 100, 10)
_TICKS_PER_SECOND: Final = 10
_TICKS_PER_SWEEP: Final = 50

#: Is told the ports that are open, in the order of the configuration.
Ready = Callable[[Sequence[OpenListener]], None]


class Daemon:
    """The running gateway. Raises ConfigurationError for a wrong password file, access list or key of the trail."""

    def __init__(
        self, settings: Settings, *, channel_command: tuple[str, ...] = COMMAND, file: Path | None = None
    ) -> None:
        self._settings = settings
        self._file = file
        self._channel_command = channel_command
        self._channels: Channels | None = None
        self._stop = asyncio.Event()
        self._notices = SystemNotices()
        self._exit_code = 0
        ready_rescue_folder(settings)
        self._refusals = Refusals()
        self._access_files = OperatorFiles(
            settings.access,
            has_certificate_users=settings.has_certificate_users,
            dollar_topics=DollarTopics.of(settings.mqtt),
            refusals=self._refusals,
            token_file=settings.queue_manager.token_file,
        )
        self._applications = Applications(roles_of(settings), self._access_files.token_digests)
        self._listeners: Listeners | None = None
        #: Take up changes of the operator's files.
        self._watching: tuple[asyncio.Task[None], ...] = ()
        self._commits = ThreadPoolExecutor(max_workers=1, thread_name_prefix="commit")
        self._broker: Broker | None = None
        self._conversion: ConversionService | None = None
        self._exporter = ExporterSupervisor(settings) if settings.audit.enabled else None
        self._space: FreeSpace | None = None
        self._clock: ClockWatch | None = None
        self._stock_takes: StockTakes | None = None
        self._inventory: Inventory | None = None

    async def run(self, ready: Ready) -> int:
        """Serves until SIGTERM or SIGINT; returns the exit code. `ready(listeners)`: the ports are open."""
        signals.hear(stop=self._stop.set, read_again=self._read_files_again)
        engine = await self._open_engine()
        if engine is None:
            return self._exit_code
        engine.on_failure = self._store_failed
        try:
            check_trail(engine, self._settings.data, second_place=self._settings.audit.copy_folder)
            keep_from_creation(engine, self._settings.data / TRAIL_FOLDER)
            await check_targets(engine, self._settings, command=self._channel_command, stop=self._stop)
            return await self._run_on(engine, ready)
        except BaseException:
            self._exit_code = 1
            raise
        finally:
            self._access_files.close()
            self._notices.close()
            engine.close()
            _log.info("gateway stopped exit_code=%s", self._exit_code)

    def _read_files_again(self) -> None:
        """SIGHUP."""
        self._access_files.ask()
        if self._listeners is not None:
            self._listeners.ask()

    async def _open_engine(self) -> Engine | None:
        """Opens the store; waits for a command that has it open. None when the gateway is told to stop meanwhile."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + OWNER_WAIT_S
        is_told = False
        while not self._stop.is_set():
            try:
                return Engine.open(
                    self._settings.data,
                    name=self._settings.queue_manager.name,
                    call_soon=loop.call_soon,
                    offload=self._offload,
                    measured_queues=(self._settings.subscribe.queue,),
                    rescue_folder=self._settings.rescue,
                )
            except QueueManagerError as error:
                if error.reason_code != ReasonCode.MQRC_OBJECT_IN_USE or loop.time() >= deadline_s:
                    raise
            if not is_told:
                _log.warning("store found in use data=%s waits_s=%s", self._settings.data, OWNER_WAIT_S)
                is_told = True
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _TICK_S)
        return None

    async def _run_on(self, engine: Engine, ready: Ready) -> int:
        settings = self._settings
        bridge = self._build(engine)
        self._access_files.recall_logins(settings.data)
        server = Server(
            engine,
            settings.data,
            applications=self._applications,
            second=application_socket(settings),
            charge=bridge.charge_application,
        )
        self._access_files.programs = mq = mq_listeners(settings, bridge, server, self._access_files.login)
        self._listeners = listeners = Listeners(bridge, settings, mq=mq)
        self._access_files.on_tokens_changed = server.token_changed
        files = DecidingFiles(settings, self._file, engine)
        self._access_files.reloading.on_read = listeners.reloading.on_read = files.read
        await server.start()
        try:
            opened = await listeners.start()
            http = await self._start_http(engine, bridge, listeners, server)
        except ConfigurationError:
            self._exit_code = 1
            await listeners.stop()
            await server.stop()
            raise
        files.started()
        if self._exporter is not None:
            self._exporter.begin(lambda end: server.adopt(end, EXPORTER))
        self._watching = (
            asyncio.create_task(self._access_files.watch(bridge)),
            asyncio.create_task(listeners.watch()),
            asyncio.create_task(files.watch()),
        )
        first = opened[0].address
        line = "gateway started host=%s port=%s data=%s compiled=%s"
        _log.info(line, first.host, first.port, str(settings.data), compiled.is_used())
        if self._conversion is not None:
            self._conversion.start()
        if self._channels is not None:
            self._channels.begin()
        ready(opened)
        self._notices.ready()
        await self._serve(engine, bridge, listeners)
        self._notices.stopping()
        if http is not None:
            await http.stop()
        await self._drain(engine, bridge, listeners)
        await server.stop()
        await until_idle(engine)  # the store is closed next, and a thread may be committing for an application
        return self._exit_code

    async def _start_http(
        self, engine: Engine, bridge: Bridge, listeners: Listeners, server: Server
    ) -> "HttpServer | None":
        settings = self._settings.http
        if not settings.enabled:
            return None
        from gateway.metrics import GatewayCollector, MetricsPage  # a gateway without HTTP loads neither these
        from gateway.operations.http import HttpServer  # nor aiohttp

        assert self._broker is not None
        assert self._channels is not None
        collector = GatewayCollector(
            engine,
            bridge,
            self._broker,
            listeners,
            login=self._access_files.login,
            settings=self._settings,
            targets=self._channels.targets.values(),
            space=self._space,
            conversion=self._conversion,
            socket_refusals=server.refusals,
            mq=listeners.mq,
        )
        http = HttpServer(
            maximum_request_bytes=settings.maximum_request_bytes,
            maximum_connections=settings.maximum_connections,
            request_timeout_s=settings.request_timeout_s,
            is_ready=lambda: self._is_ready(engine),
            metrics=MetricsPage(collector).page,
        )
        try:
            await http.start(settings.address.host, settings.address.port)
        except OSError as error:
            raise cannot_listen("http.listen", settings.listen, error) from error
        return http

    def _is_ready(self, engine: Engine) -> bool:
        is_short = self._space is not None and self._space.is_short
        return engine.failed is None and not self._stop.is_set() and not is_short

    # -- building ------------------------------------------------------------------------------------------------------

    def _build(self, engine: Engine) -> Bridge:
        settings = self._settings
        notes = BrokerNotes(engine.now_us)
        if settings.audit.enabled:
            engine.seal_notes = pack_batch
            engine.maintenance.watch(settings.data / TRAIL_FOLDER, suffix=OPEN)
        note_acts(engine)
        subscriber_queue = engine.ensure(settings.subscribe.queue, "publications for the gateway's MQTT sessions")
        reply_queue = engine.ensure(settings.subscribe.reply_queue, "the broker's answers to the gateway")
        engine.ensure(settings.publish.stream, "publications of MQTT clients")
        self._channels = channels = Channels(
            engine,
            settings,
            subscriber_queue=subscriber_queue,
            reply_queue=reply_queue,
            command=self._channel_command,
        )
        engine.settle(gateway_queues(settings, channels.queue_names()))
        engine.clock.not_before(newest_us(settings.data / TRAIL_FOLDER))
        self._clock = ClockWatch(engine)
        self._clock.tick()
        self._note_start(engine)
        if settings.audit.enabled:
            self._stock_takes = StockTakes(engine, settings.audit.segment_minutes * 60, time.monotonic)
        call_soon = asyncio.get_running_loop().call_soon
        set_aside = sessions_set_aside(engine, settings.mqtt.maximum_session_memory_bytes)
        self._broker = broker = Broker(
            engine,
            listener=notes,
            rules=_broker_rules(settings),
            call_soon=call_soon,
            set_aside=set_aside,
        )
        self._broker.attach()
        if settings.audit.enabled:
            self._inventory = Inventory(engine, broker.read_subscription, settings.name)
        self._conversion = ConversionService(engine, settings.conversion, notes, call_soon=call_soon)
        sessions = Sessions(engine, settings.mqtt, access=self._access_files.access)
        dialect = Dialect(settings.header)
        copies = RetainedCopies(
            sessions, subscriber_queue, self._refusals, retained_bytes=lambda: broker.retained_bytes
        )
        broker.limit_retained_copies(copies)
        bridge = build_bridge(
            engine,
            sessions,
            self._access_files.login,
            dialect=dialect,
            stream=settings.publish.stream,
            subscriber_queue=subscriber_queue,
            reply_queue=reply_queue,
            routes=Routes(settings.routes, settings.target, own_dialect=dialect),
            targets=channels.targets.values(),
            answer_timeout_s=settings.subscribe.answer_timeout_s,
            limits=settings.mqtt,
            admission=Admission(settings.mqtt, self._refusals, sessions.budgets),
            retained=BrokerRetained(self._broker, settings.publish.stream, dialect),
            retained_copies=copies,
            shapes=BrokerShapes(self._broker, dialect),
            closed=BrokerClosedTopics(self._broker, settings.publish.stream, dialect),
            subscriptions_to=self._broker.audience(settings.publish.stream, dialect).of,
            user_properties=settings.mqtt.user_properties,
            jms_folders=settings.publish.jms_folders,
            maps_as_json=settings.subscribe.jms_maps == "json",
            commands_under_way=broker,
            sys_topics_interval_s=settings.mqtt.sys_topics_interval_s,
            published=(DEFAULT_STREAM, *settings.broker.all_input_queues),
            converted={each.source for each in settings.conversion},
            call_soon=call_soon,
        )
        bridge.load()
        self._tell_reserved(bridge)

        def space_changed(is_short: bool) -> None:
            channels.disk_space_changed(is_short)
            bridge.disk_space_changed(is_short)

        self._space = FreeSpace(
            settings.data,
            settings.audit.low_space_bytes,
            on_change=space_changed,
            on_reserve=bridge.pause_deliveries,
            store=engine.maintenance,
        )
        self._space.tick()
        return bridge

    def _tell_reserved(self, bridge: Bridge) -> None:
        assert self._broker is not None
        retained = self._broker.retained_topics(self._settings.publish.stream, "$*")
        for caution in self._access_files.access.dollar_topics.cautions(bridge.subscriptions, retained):
            _log.warning("store doubted because=%s", caution)

    def _note_start(self, engine: Engine) -> None:
        unit = engine.begin()
        version = importlib.metadata.version("rfhbridge")
        configuration = self._settings.configuration_sha256
        name = self._settings.name
        is_in_use = any(next(engine.each_state(kind), None) is not None for kind in LASTING)
        broker = self._settings.broker
        rules = broker.stream_rules, tuple(broker.subscription_points.items())
        note = (NoteKind.STARTED, engine.now_us(), version, TABLE_VERSION, configuration, name, is_in_use, *rules)
        unit.notes.append(note)
        unit.notes += lost_notes(engine) + stock_notes(engine)
        unit.notes_are_due = True
        engine.submit(unit)

    # -- running -------------------------------------------------------------------------------------------------------

    async def _serve(self, engine: Engine, bridge: Bridge, listeners: Listeners) -> None:
        ticks = 0
        while not self._stop.is_set():
            try:
                await asyncio.wait_for(self._stop.wait(), _TICK_S)
            except TimeoutError:
                ticks += 1
            if engine.failed is not None:
                return
            bridge.tick()
            if self._conversion is not None:
                self._conversion.tick()
            if self._channels is not None:
                self._channels.tick()
            if self._inventory is not None:
                self._inventory.tick()
            engine.tick()
            await listeners.end_silence()
            if self._space is not None:
                self._space.tick()
            if ticks % _TICKS_PER_SECOND == 0:
                await listeners.tick()
                engine.maintenance.look()
                self._tick_clocks()
            if ticks % _TICKS_PER_SWEEP == 0 and self._broker is not None:
                self._broker.tend()

    def _tick_clocks(self) -> None:
        if self._clock is not None:
            self._clock.tick()
        if self._stock_takes is not None:
            self._stock_takes.tick()

    async def _drain(self, engine: Engine, bridge: Bridge, listeners: Listeners) -> None:
        bridge.is_stopping = True
        for task in self._watching:
            task.cancel()
        if self._conversion is not None:
            self._conversion.stop()
        if self._broker is not None:
            self._broker.stop()
        await listeners.stop()
        if self._channels is not None:
            await self._channels.end(kill=engine.failed is not None)
        if engine.failed is None:
            bridge.tick()
            if self._clock is not None:
                self._clock.tick()
            await until_settled(engine)
            if self._stock_takes is not None:
                self._stock_takes.take()
            engine.tick()  # writes the audit notes of all that
            await until_settled(engine)
        if self._exporter is not None:
            batches = engine.queue(AUDIT_QUEUE)
            await self._exporter.end(kill=engine.failed is not None, has_batches=lambda: batches.depth > 0)

    def _offload(self, call: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        """Runs a slow commit in a thread; `done` is called in the event loop."""
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._commits, call)
        future.add_done_callback(lambda finished: done(finished.exception()))

    def _store_failed(self, error: StoreError) -> None:
        _log.error("store failed error=%s", str(error))
        self._exit_code = 1
        self._stop.set()


def gateway_queues(settings: Settings, of_channels: Iterable[str]) -> GatewayQueues:
    """The queues that a gateway with these settings cannot do without, and which of them it reads itself."""
    read = (settings.subscribe.queue, settings.subscribe.reply_queue, settings.publish.stream)
    sources = (each.source for each in settings.conversion)
    return GatewayQueues(
        owned=frozenset((*read, *settings.broker.all_input_queues, *sources, *of_channels)),
        needed=frozenset(each.target for each in settings.conversion),
        is_audited=settings.audit.enabled,
    )


def _broker_rules(settings: Settings) -> BrokerRules:
    broker = settings.broker
    return BrokerRules(
        dialect=BrokerDialect(broker.dialect),
        input_queues=(settings.publish.stream, *broker.all_input_queues),
        has_implicit_stream_naming=broker.implicit_stream_naming,
        subscription_points=broker.subscription_points,
        mqtt_queue=settings.subscribe.queue,
    )


def run(
    settings: Settings,
    *,
    ready: Ready = lambda _listeners: None,
    channel_command: tuple[str, ...] = COMMAND,
    file: Path | None = None,
) -> int:
    """Runs the gateway until it is told to stop; returns the exit code. `file`: the settings were loaded from it.

    SIGTERM, SIGINT and SIGHUP are ignored from then on: the process is about to end, and they would end it otherwise.
    Raises QueueManagerError 2042 where another gateway owns the data folder, StoreError for a store that cannot be
    opened, ConfigurationError for an address that cannot be used.
    """

    async def main() -> int:
        try:
            return await Daemon(settings, channel_command=channel_command, file=file).run(ready)
        finally:
            signals.ignore_from_now_on()

    forbid_inspection()
    sys.setswitchinterval(_SWITCH_S)
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLD)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())

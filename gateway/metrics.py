"""The metrics of the gateway, in the format of Prometheus: GET /metrics on the HTTP port.

Nothing on the way of a message knows of them. The gateway counts in plain numbers, and this reads them when it is
asked, on the event loop: some milliseconds with 10,000 sessions. No client identifier and no topic is ever a label, so
there are as many lines as the configuration has listeners, limits, queues and channels.
"""

import importlib.metadata
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from gateway import compiled
from gateway.access.login import Login
from gateway.access.refused_logins import LoginRefusal
from gateway.access.refused_programs import ProgramRefusal
from gateway.audit_trail.exporter import TRAIL_FOLDER
from gateway.bridge.bridge import Bridge
from gateway.channels.target import Target
from gateway.config import Settings
from gateway.conversion.service import ConversionService
from gateway.free_space import FreeSpace
from gateway.limits.budgets import RATES, Amount
from gateway.limits.refusals import REASONS
from gateway.listener.listeners import Listeners
from gateway.mqtt.levels import LEVELS
from mq_adapters.broker.broker import Broker
from mq_adapters.embedded.balance import running_publications, running_queues
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.group_commit import BOUNDS_S
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.rights import MissingRight
from mq_adapters.reasons import ReasonCode
from mq_adapters.system_queues import AUDIT_QUEUE, DEAD_LETTER_QUEUE
from spark_audit.trail.witness_note import ages_s, countersignature_age_s

if TYPE_CHECKING:  # a gateway without MQ clients does not load it
    from gateway.listener.mq.listener import MqListeners

_PREFIX: Final = "rfhbridge_"
_VERSIONS: Final = {0: "none"} | {number: level.version for number, level in LEVELS.items()}
#: Why an application cannot connect.
_SOCKET_REASONS: Final = (
    ReasonCode.MQRC_NOT_AUTHORIZED,
    ReasonCode.MQRC_MAX_CONNS_LIMIT_REACHED,
    ReasonCode.MQRC_Q_MGR_NAME_ERROR,
)
_NOBODY: Final[Mapping[ReasonCode, int]] = {}
_SECOND_US: Final = 1_000_000
#: What the connections of MQ clients did: the attribute of their traffic, the metric, its meaning.
_MQ_TRAFFIC: Final = (
    ("connections", "mq_connections_made", "Connections of MQ clients that were made"),
    ("calls", "mq_calls", "Calls of MQ clients that were taken"),
    ("received_bytes", "mq_received_bytes", "Bytes received from MQ clients"),
    ("sent_bytes", "mq_sent_bytes", "Bytes sent to MQ clients"),
)

#: Counters of a channel, by the keyword with which DISPLAY CHSTATUS shows each.
_OF_CHANNELS: Final = (
    ("channel_messages", "MSGS", "Messages that a channel moved"),
    ("channel_bytes", "BYTES", "Bytes of the messages that a channel moved"),
    ("channel_dead_letters", "DEADMSGS", "Messages of a channel that were refused for good"),
    ("channel_repeated", "DUPMSGS", "Messages that came to a channel again, and were dropped"),
)

_Rows = Iterable[tuple[tuple[str, ...], float]]


class GatewayCollector(Collector):
    """Reads the parts of a running gateway."""

    def __init__(
        self,
        engine: Engine,
        bridge: Bridge,
        broker: Broker,
        listeners: Listeners,
        *,
        login: Login,
        settings: Settings,
        targets: Iterable[Target],
        space: FreeSpace | None = None,
        conversion: ConversionService | None = None,
        socket_refusals: Mapping[ReasonCode, int] = _NOBODY,
        mq: "MqListeners | None" = None,
    ) -> None:
        self._engine = engine
        self._bridge = bridge
        self._broker = broker
        self._listeners = listeners
        self._login = login
        self._subscriber_queue = engine.queue(settings.subscribe.queue)
        self._targets = tuple(targets)
        self._space = space
        self._conversion = conversion
        self._socket_refusals = socket_refusals
        self._mq = mq
        audit = settings.audit
        self._trail = settings.data / TRAIL_FOLDER
        self._witnesses = tuple(witness.name for witness in audit.witness if audit.enabled)
        self._has_token = audit.enabled and bool(audit.signing_token.type)

    def collect(self) -> Iterator[Metric]:
        """Every metric, as it is now."""
        yield _build()
        yield from self._connections()
        yield self._certificates()
        yield from self._packets()
        yield from self._refused()
        yield from self._logins()
        yield from self._mq_clients()
        yield from self._sessions()
        yield from self._queues()
        yield from self._balance()
        yield from self._audit()
        yield from self._clock()
        yield from self._channels()
        yield self._conversions()
        yield self._commits()
        yield from self._store()

    # -- connections --------------------------------------------------------------------------------------------------

    def _connections(self) -> Iterator[Metric]:
        admission = self._bridge.admission
        open_now: Counter[tuple[str, ...]] = Counter()
        past: list[tuple[tuple[str, ...], float]] = []
        received: list[tuple[tuple[str, ...], float]] = []
        sent: list[tuple[tuple[str, ...], float]] = []
        unsent = unfinished = 0
        for listener in self._listeners:
            name = (listener.rules.name,)
            links = list(listener)
            open_now.update((*name, _VERSIONS[link.connection.level]) for link in links)
            past.append((name, listener.past_connections + len(links)))
            received.append((name, listener.past_received_bytes + sum(link.received_bytes for link in links)))
            sent.append((name, listener.past_sent_bytes + sum(link.sent_bytes for link in links)))
            unsent += sum(link.unsent_bytes for link in links)
            unfinished += sum(link.unfinished_bytes for link in links)
        yield _gauges("connections", "Connections now, by MQTT version", ("listener", "version"), open_now.items())
        yield _gauge("connections_waiting", "Connections that have not sent a CONNECT", admission.waiting)
        yield _counters("connections_made", "Connections that were made", ("listener",), past)
        yield _counters("received_bytes", "Bytes of MQTT received, with frames of WebSockets", ("listener",), received)
        yield _counters("sent_bytes", "Bytes of MQTT sent, with frames of WebSockets", ("listener",), sent)
        yield _gauge("unsent_bytes", "Bytes that wait for clients to take them", unsent)
        yield _gauge("unfinished_bytes", "Bytes of incomplete packets and of waiting requests", unfinished)

    def _certificates(self) -> Metric:
        ends = [((name, str(pair.certificate)), pair.expires.timestamp()) for name, pair in self._listeners.pairs()]
        meaning = "When a certificate of a listener expires, in seconds since 1970, UTC"
        return _gauges("certificate_expires_timestamp_seconds", meaning, ("listener", "certificate"), ends)

    def _packets(self) -> Iterator[Metric]:
        traffic = self._bridge.traffic
        yield _counter("packets_received", "MQTT packets received", traffic.packets_received)
        yield _counter("packets_sent", "MQTT packets sent, without those that end a connection", traffic.packets_sent)
        yield _counters("publishes_received", "PUBLISH packets taken, by QoS", ("qos",), _by_qos(traffic.published))
        repeated = (((what,), count) for what, count in traffic.repeated.items())
        meaning = "PUBLISH packets of QoS 2 before the PUBREL of their identifier: the same message, or another"
        yield _counters("publishes_repeated", meaning, ("event",), repeated)
        yield _counters("publishes_sent", "PUBLISH packets sent, by QoS", ("qos",), _by_qos(traffic.delivered))
        yield _gauge(
            "publishers_held_back",
            "Connections that wait for room, or that are read more slowly",
            len(self._bridge.paused_publishers),
        )

    def _refused(self) -> Iterator[Metric]:
        totals = Counter({(limit, reason_code): 0 for limit, told in REASONS.items() for reason_code in told})
        totals.update(self._bridge.admission.refusals.totals)
        refused = (((limit.label, reason_code.name.lower()), count) for (limit, reason_code), count in totals.items())
        yield _counters("refusals", "Refusals, by the limit and the reason code", ("limit", "reason"), refused)
        budgets = self._bridge.sessions.budgets
        used = (((amount.name.lower(),), budgets.everybody.amounts[amount]) for amount in Amount)
        yield _gauges(
            "budget_used", "Amount that all clients together use, of each amount that has a budget", ("amount",), used
        )
        yield _gauge("budget_accounts", "Clients, users, addresses and networks that have a budget", len(budgets))
        slowed = budgets.slowed
        yield _counters(
            "slow_reads",
            "Times that a client was read more slowly, by the scope whose rate was used up",
            ("of",),
            (((scope.name.lower(),), slowed[scope]) for scope in RATES),
        )
        reasons = (((reason,), count) for reason, count in self._bridge.counts.totals.items())
        yield _counters(
            "not_carried_on",
            "Messages that the gateway dropped, refused or delivered without a part, by the reason",
            ("reason",),
            reasons,
        )

        unlet = (((code.name.lower(),), self._socket_refusals.get(code, 0)) for code in _SOCKET_REASONS)
        meaning = "Applications that could not connect to the socket or to an [[mq_listener]], by the reason code"
        yield _counters("applications_refused", meaning, ("reason",), unlet)

    def _logins(self) -> Iterator[Metric]:
        totals = self._login.refused.totals
        refused = (((refusal.name.lower(),), totals[refusal]) for refusal in LoginRefusal)
        yield _counters(
            "logins_refused", "CONNECTs that the rules of access refused, by the reason", ("reason",), refused
        )
        yield _gauge("logins_waiting", "Passwords that wait for their check", self._login.waiting)
        yield _gauge("recent_users", "Users who are known to have logged in lately", len(self._login.recent))

    def _mq_clients(self) -> Iterator[Metric]:
        """Nothing without an [[mq_listener]]."""
        if self._mq is None:
            return
        listeners = [((each.settings.name,), each, each.traffic) for each in self._mq]
        of_one = ("listener",)
        now = ((name, len(each.links)) for name, each, _ in listeners)
        yield _gauges("mq_connections", "Connections of MQ clients", of_one, now)
        conversations = ((name, sum(link.conversations for link in each.links)) for name, each, _ in listeners)
        yield _gauges(
            "mq_conversations", "Conversations of MQ clients, of which each may be a program", of_one, conversations
        )
        programs = ((name, sum(len(link.programs()) for link in each.links)) for name, each, _ in listeners)
        yield _gauges("mq_programs", "Programs of MQ clients that are connected", of_one, programs)
        for attribute, name, meaning in _MQ_TRAFFIC:
            counts = ((listener, getattr(traffic, attribute)) for listener, _, traffic in listeners)
            yield _counters(name, meaning, of_one, counts)
        refused = (((refusal.value,), self._mq.refused.totals[refusal]) for refusal in ProgramRefusal)
        meaning = "Programs and connections of MQ clients that were refused, by the reason"
        yield _counters("mq_programs_refused", meaning, ("reason",), refused)
        missing = (((right.value,), self._mq.refused.rights[right]) for right in MissingRight)
        meaning = "Calls of MQ clients that were refused, by the right that was missing"
        yield _counters("mq_rights_refused", meaning, ("right",), missing)

    # -- sessions and queues -------------------------------------------------------------------------------------------

    def _sessions(self) -> Iterator[Metric]:
        connected = offline = in_flight = held = held_bytes = subscriptions = 0
        for session in self._bridge.sessions:
            connected += session.link is not None
            offline += session.link is None
            in_flight += len(session.mqtt.outgoing)
            held += len(session.held)
            held_bytes += session.held_bytes
            subscriptions += len(session.subscriptions) + len(session.shared)
        rows = [(("connected",), connected), (("offline",), offline)]
        yield _gauges("sessions", "Sessions: connected or offline", ("state",), rows)
        set_aside = self._broker.subscribers_set_aside
        yield _gauge(
            "sessions_set_aside", "Sessions whose registrations stay in the store for lack of memory", set_aside
        )
        waiting = self._subscriber_queue.depth
        yield _gauge("messages_waiting", "Messages waiting for sessions or on their way to them", waiting)
        yield _gauge("messages_in_flight", "PUBLISHes of QoS 1 and 2 that clients have not finished", in_flight)
        yield _gauge("messages_held", "PUBLISHes of QoS 2 between PUBLISH and PUBREL", held)
        yield _gauge("held_bytes", "Bytes of the PUBLISHes of QoS 2 between PUBLISH and PUBREL", held_bytes)
        yield _gauge(
            "subscriptions", "Subscriptions of all sessions; each member of a shared group counts", subscriptions
        )
        yield _gauge("retained_messages", "Retained messages", self._broker.retained_publications)

    def _queues(self) -> Iterator[Metric]:
        queues = [queue for queue in self._engine.queues() if not queue.is_temporary]
        depths = (((queue.name,), queue.depth) for queue in queues)
        yield _gauges("queue_depth", "Messages on a queue of the embedded queue manager", ("queue",), depths)
        sizes = (((queue.name,), queue.waiting_bytes) for queue in queues)
        yield _gauges("queue_bytes", "Bytes of the messages on a queue", ("queue",), sizes)
        ages = [((queue.name,), self._oldest_s(queue)) for queue in queues]
        yield _gauges("queue_oldest_seconds", "Age of the oldest message on a queue; 0: it is empty", ("queue",), ages)
        closed = (((name,), 1) for name in sorted(self._bridge.pauses.queues))
        yield _gauges("queue_paused", "1 while a queue of the gateway is closed by PUT(DISABLED)", ("queue",), closed)
        letters = self._engine.objects.dead_letter_queue.depth
        yield _gauge("dead_letters", f"Messages on the dead-letter queue, as a rule {DEAD_LETTER_QUEUE}", letters)
        held, dropped = self._engine.dead_letters.depth, self._engine.dead_letters.dropped
        yield _gauge("dead_letters_held", "Dead letters that their queue has no room for: an alarm", held)
        yield _counter(
            "dead_letters_dropped", "Dead letters that were dropped: not persistent, and their queue was full", dropped
        )
        yield _gauge("store_failed", "1 when the store has failed", self._engine.failed is not None)

    def _balance(self) -> Iterator[Metric]:
        """Durable counts, of all time; and what is missing, which is 0."""
        queues = running_queues(self._engine)
        publications = running_publications(self._engine, self._bridge.sessions.held)
        meaning = "Messages of a queue since the balance began, by what became of them"
        rows = [((name, what), count) for name, queue in queues.items() for what, count in queue.counted() if count]
        yield _counters("queue_messages", meaning, ("queue", "what"), rows)
        meaning = "Publications since the balance began, by what became of them"
        yield _counters(
            "publications", meaning, ("what",), [((what,), count) for what, count in publications.counted()]
        )
        missing = [(("messages", name), queue.difference) for name, queue in queues.items()]
        missing += [(("messages", ""), sum(count for _, count in missing))]
        missing += [(("publications", ""), publications.difference)]
        meaning = "Messages and publications that are missing from the balance; an empty queue: in all"
        yield _gauges("balance_difference", meaning, ("of", "queue"), missing)

    def _audit(self) -> Iterator[Metric]:
        queue = self._engine.queue(AUDIT_QUEUE)
        yield _gauge("audit_waiting_batches", "Batches of audit notes that are not in the trail yet", queue.depth)
        yield _gauge(
            "audit_waiting_bytes",
            "Bytes of the batches of audit notes that are not in the trail yet",
            queue.waiting_bytes,
        )
        yield _gauge(
            "audit_lag_seconds",
            "Age of the oldest batch of audit notes that is not in the trail yet",
            self._oldest_s(queue),
        )
        ages = ages_s(self._trail, self._witnesses, self._engine.now_us()).items()
        meaning = "Age of the last digest that a witness of the trail has; +Inf: it has none"
        yield _gauges("audit_witness_age_seconds", meaning, ("witness",), [((name,), age) for name, age in ages])
        age_s = countersignature_age_s(self._trail, self._engine.now_us()) if self._has_token else 0.0
        meaning = "Age of the last countersignature by a token or agent; +Inf: there is none; 0: the key is in a file"
        yield _gauge("audit_countersignature_age_seconds", meaning, age_s)

    def _oldest_s(self, queue: Queue) -> float:
        put_us = self._engine.oldest_put_us(queue)
        return max(0, self._engine.now_us() - put_us) / _SECOND_US if put_us else 0.0

    def _clock(self) -> Iterator[Metric]:
        clock = self._engine.clock
        off_s = clock.doubt_us / _SECOND_US
        yield _gauge("clock_off_seconds", "How far the wall clock is off the plausible time; 0: not at all", off_s)
        yield _counter("clock_jumps", "Times that the wall clock has left the plausible time", clock.jumps)

    def _channels(self) -> Iterator[Metric]:
        channels = self._engine.objects.channels
        shown = {} if channels is None else {name: channels.shown(name) for name in channels.names()}
        states = [((name, status["STATUS"].strip("'").lower()), 1) for name, status in shown.items()]
        yield _gauges("channel_state", "1 for the state that a channel is in", ("channel", "state"), states)
        for name, keyword, meaning in _OF_CHANNELS:
            counts = [((channel,), int(status[keyword])) for channel, status in shown.items()]
            yield _counters(name, f"{meaning}, since its process began", ("channel",), counts)
        doubtful = [((channel,), status["INDOUBT"] == "YES") for channel, status in shown.items()]
        yield _gauges("channel_in_doubt", "1 while a batch of a channel is in doubt", ("channel",), doubtful)
        connected = [((target.name,), target.is_connected) for target in self._targets]
        yield _gauges("target_connected", "1 while every channel of a target runs", ("target",), connected)
        behind = [((target.name,), target.is_store_behind) for target in self._targets]
        yield _gauges("store_behind", "1 while a target shows that the store went back", ("target",), behind)
        full = [((target.name,), target.is_full) for target in self._targets]
        yield _gauges("target_full", "1 while publishers to a target are paused", ("target",), full)

    def _conversions(self) -> Metric:
        counts = {} if self._conversion is None else self._conversion.counts()
        rows = [
            ((queue, header, outcome.value), number)
            for (queue, header), outcomes in counts.items()
            for outcome, number in outcomes.items()
        ]
        meaning = "Messages that the conversion service took off a queue, by what became of them"
        return _counters("conversions", meaning, ("queue", "header", "outcome"), rows)

    def _commits(self) -> Metric:
        times = self._engine.commit_times
        bounds = [*(str(bound) for bound in BOUNDS_S), "+Inf"]
        family = HistogramMetricFamily(_PREFIX + "commit_seconds", "Time that a commit to the disk took")
        buckets = list(zip(bounds, map(float, accumulate(times.counts)), strict=True))
        family.add_metric([], buckets=buckets, sum_value=times.sum_s)
        return family

    def _store(self) -> Iterator[Metric]:
        status = self._engine.maintenance.status()
        yield _gauge("store_free_bytes", "Free bytes inside the store's file", status.free_bytes)
        if self._space is not None:
            yield _gauge(
                "disk_free_bytes",
                "Free bytes of the disk at the last look; 0 without low_space_bytes",
                self._space.free_bytes,
            )
            yield _gauge("disk_short", "1 while publishers wait for room on the disk", self._space.is_short)
            yield _gauge("deliveries_paused", "1 while deliveries wait for room on the disk", self._space.is_reserve)
        yield _gauge("wal_bytes", "Bytes of the store's log (WAL) that are not in the database yet", status.log_bytes)
        yield _gauge(
            "wal_too_long",
            "1 while the store's log is too long: a reader keeps it, or the disk fails",
            status.log_is_long,
        )
        attempts = (
            (("done",), status.checkpoints_done),
            (("held",), status.checkpoints_held),
            (("failed",), status.checkpoints_failed),
        )
        yield _counters(
            "checkpoints",
            "Attempts to copy the store's log into the database, by what came of them",
            ("outcome",),
            attempts,
        )


class MetricsPage:
    """What GET /metrics answers: the gateway's metrics and those of its process."""

    def __init__(self, collector: Collector) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(collector)
        ProcessCollector(registry=self._registry)

    def page(self, accept: str) -> tuple[bytes, str]:
        """The page and its media type, in the format that a header Accept asks for: Prometheus's or OpenMetrics."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


def _build() -> Metric:
    said = importlib.metadata.version("rfhbridge"), platform.python_version(), str(compiled.is_used()).lower()
    meaning = "1; its labels say which version runs, on which Python, and whether it is compiled"
    return _gauges("build_info", meaning, ("version", "python", "compiled"), [(said, 1)])


def _by_qos(counts: list[int]) -> _Rows:
    return (((str(qos),), count) for qos, count in enumerate(counts))


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, meaning, value=value)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(_PREFIX + name, meaning, value=value)


def _gauges(name: str, meaning: str, labels: tuple[str, ...], rows: _Rows) -> Metric:
    family = GaugeMetricFamily(_PREFIX + name, meaning, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def _counters(name: str, meaning: str, labels: tuple[str, ...], rows: _Rows) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, meaning, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family

"""Builds the bridge from its parts."""

import importlib.metadata
import time
from collections.abc import Callable, Collection, Iterable

from gateway.access.login import Login
from gateway.audit_trail.notes.origin import client_of
from gateway.bridge.bridge import Bridge
from gateway.bridge.commands.mq_refusals import ClosedTopics
from gateway.bridge.commands.registrations import Registrations
from gateway.bridge.commands.replies import Replies
from gateway.bridge.commands.requests import OwnCommands, Requests
from gateway.bridge.commands.transmission_queues import ToTarget
from gateway.bridge.connect.client_commands import ClientCommands
from gateway.bridge.counts import Counts, Traffic
from gateway.bridge.deliver.deliver import ToMqtt
from gateway.bridge.deliver.deliver_packets import PublishPackets
from gateway.bridge.deliver.outgoing_messages import bytes_in_flight
from gateway.bridge.deliver.shared_deliveries import AllSubscribers, SharedDeliveries, SharedSubscriptions
from gateway.bridge.deliver.shared_groups import SharedGroups
from gateway.bridge.messages.jms_form import CarriedForms
from gateway.bridge.messages.publications import Publications
from gateway.bridge.messages.usr_folder import UserPropertyStyle
from gateway.bridge.publish.pauses import Pauses
from gateway.bridge.publish.publish import EmbeddedAudience, Intake, SubscriptionsTo
from gateway.bridge.publish.publish_command import ToMq
from gateway.bridge.sessions.filter_shapes import KnownShapes
from gateway.bridge.sessions.letter_payers import LetterPayers
from gateway.bridge.sessions.links import ConnectedClients
from gateway.bridge.sessions.queue_limits import QueueLimits
from gateway.bridge.sessions.retained_copies import RetainedCopies
from gateway.bridge.sessions.session_limits import ClientLimits, RetainedStore
from gateway.bridge.sessions.sessions import Sessions
from gateway.bridge.sessions.trail_charges import TrailCharges
from gateway.bridge.subscribe.subscribe import CommandsUnderWay, NoCommands, Subscriptions
from gateway.bridge.sys_topics import SysTopics
from gateway.channels.target import Target
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.config.routes import Routes
from gateway.limits.admission import Admission
from gateway.limits.budgets import Account
from gateway.limits.refusals import LimitReached, reached
from mappings.commands.command import Dialect
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue


def build_bridge(
    engine: Engine,
    sessions: Sessions,
    login: Login,
    *,
    dialect: Dialect,
    stream: str,
    subscriber_queue: Queue,
    reply_queue: Queue,
    routes: Routes,
    targets: Iterable[Target] = (),
    answer_timeout_s: float,
    limits: MqttLimits,
    admission: Admission,
    retained: RetainedStore = (),
    retained_copies: RetainedCopies | None = None,
    shapes: KnownShapes | None = None,
    closed: ClosedTopics = (),
    subscriptions_to: SubscriptionsTo | None = None,
    user_properties: UserPropertyStyle = "one_json",
    jms_folders: bool = False,
    maps_as_json: bool = False,
    commands_under_way: CommandsUnderWay | None = None,
    sys_topics_interval_s: int = 0,
    published: Collection[str] = (),
    converted: Collection[str] = (),
    call_soon: Callable[[Callable[[], None]], object],
    now_s: Callable[[], float] = time.monotonic,
) -> Bridge:
    """The bridge of a gateway. Call `Bridge.load` next: it loads the sessions from the store.

    `targets`: the targets of the routes.
    `shapes`: of the filters at the embedded broker; None: they are not limited.
    `jms_folders`: whether publications to the embedded broker have the folders of JMS.
    `maps_as_json`: whether clients get MapMessages of JMS as JSON.
    `subscriptions_to`: the subscriptions to a topic at the embedded broker; None: they are not known.
    `commands_under_way`: those of that broker; None: there is no such broker.
    `sys_topics_interval_s`: seconds between two publications below $SYS; 0: never.
    `published`: names of the queues on which applications publish. `converted`: of those that the conversion service
    empties. `now_s`: a clock that never goes back.
    """

    groups = SharedGroups(engine, sessions)

    def is_connected(correl_id: bytes) -> bool:
        if (group := groups.of_correl_id(correl_id)) is not None:
            return any(member.link is not None for member in group.members)
        session = sessions.of_correl_id(correl_id)
        return session is None or session.link is not None  # ToMqtt.discard_unknown clears this lane

    def in_flight_bytes(correl_id: bytes) -> int:
        group, session = groups.of_correl_id(correl_id), sessions.of_correl_id(correl_id)
        takers = [session] if session is not None else [] if group is None else list(group.members)
        return sum(bytes_in_flight(taker, correl_id) for taker in takers)

    def account_of(correl_id: bytes) -> Account | None:
        session = sessions.of_correl_id(correl_id)
        return None if session is None else session.account

    client_limits = ClientLimits(
        limits,
        sessions,
        admission=admission,
        queues=QueueLimits(
            engine,
            subscriber_queue,
            limits,
            admission.refusals,
            is_connected=is_connected,
            in_flight_bytes=in_flight_bytes,
            account_of=account_of,
            budgets=sessions.budgets,
        ),
        retained=retained,
        retained_copies=retained_copies,
        routes=routes,
        shapes=shapes,
    )
    login.now_us, login.has_session = engine.now_us, sessions.budgets.has_user
    letters = engine.dead_letters
    letters.client_of, letters.share = client_of, limits.maximum_dead_letters
    letters.share_bytes = limits.maximum_dead_letter_bytes
    letters.expiry_s = limits.dead_letter_expiry_s
    letters.payers = LetterPayers(sessions)

    def share_reached(limit: object | None) -> None:
        admission.refusals.count(limit if isinstance(limit, LimitReached) else reached(Limit.DEAD_LETTERS))

    letters.on_share_reached = share_reached
    all_targets = tuple(targets)
    trail = TrailCharges(engine, sessions.budgets, now_s, converted=converted)
    counts = Counts()
    traffic = Traffic()
    commands = OwnCommands(
        dialect=dialect,
        queue_manager_name=engine.name,
        subscriber_queue=subscriber_queue.name,
        reply_queue=reply_queue.name,
    )
    to_target = ToTarget(engine, all_targets)
    to_mq = ToMq(
        engine,
        commands=commands,
        stream=stream,
        routes=routes,
        to_target=to_target,
        closed=closed,
        forms=CarriedForms(user_properties, routes, writes_jms=jms_folders),
    )
    audience = None
    if subscriptions_to is not None:
        audience = EmbeddedAudience(
            subscriptions_to, routes=routes, sessions=sessions, groups=groups, subscriber_queue=subscriber_queue.name
        )
    pauses = Pauses(
        engine,
        stream=engine.queue(stream),
        subscriber_queue=subscriber_queue,
        routes=routes,
        targets=all_targets,
        published=published,
    )
    publications = Publications(
        own_name=engine.name, queue_name=subscriber_queue.name, routes=routes, maps_as_json=maps_as_json
    )
    replies = Replies(engine, reply_queue, stream_name=stream, counts=counts, routes=routes, targets=all_targets)
    requests = Requests(engine, commands=commands, to_target=to_target)
    registrations = Registrations(
        engine,
        AllSubscribers(sessions, groups),
        requests,
        replies,
        routes=routes,
        targets=all_targets,
        call_soon=call_soon,
    )
    packets = PublishPackets(engine, subscriber_queue, publications=publications, counts=counts, traffic=traffic)
    to_mqtt = ToMqtt(
        engine,
        sessions,
        subscriber_queue,
        publications=publications,
        packets=packets,
        counts=counts,
        trail=trail,
        call_soon=call_soon,
        now_s=now_s,
    )
    engine.takes_back = to_mqtt.takes_back
    shared = SharedSubscriptions(
        engine, groups, registrations, SharedDeliveries(engine, groups, subscriber_queue, to_mqtt, packets)
    )
    connected_clients = ConnectedClients()
    sys_topics = SysTopics(
        interval_s=sys_topics_interval_s,
        version=importlib.metadata.version("rfhbridge"),
        now_us=engine.now_us,
        sessions=sessions,
        connected_clients=connected_clients,
        retained=retained,
        traffic=traffic,
        call_soon=call_soon,
    )
    bridge = Bridge(
        engine,
        sessions=sessions,
        to_mq=to_mq,
        to_mqtt=to_mqtt,
        intake=Intake(engine, to_mq, counts, client_limits, traffic, pauses, audience),
        pauses=pauses,
        replies=replies,
        registrations=registrations,
        groups=groups,
        shared=shared,
        subscriptions=Subscriptions(
            engine,
            sessions,
            registrations,
            shared,
            replies,
            answer_timeout_s=answer_timeout_s,
            commands=commands_under_way or NoCommands(),
            client_limits=client_limits,
            trail=trail,
            call_soon=call_soon,
        ),
        login=login,
        counts=counts,
        client_limits=client_limits,
        traffic=traffic,
        trail=trail,
        connected_clients=connected_clients,
        sys_topics=sys_topics,
        call_soon=call_soon,
        now_s=now_s,
    )
    engine.objects.clients = ClientCommands(
        engine,
        sessions,
        subscriber_queue,
        connected_clients=connected_clients,
        disconnect_handler=bridge.disconnect_handler,
        paused=bridge.paused_publishers,
    )
    return bridge

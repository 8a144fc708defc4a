"""The commands for the embedded broker, as bridge/commands/requests.py writes them, without an engine."""

from collections.abc import Iterator

from gateway.bridge.messages.usr_folder import carrier_folder, expiry_of
from gateway.config import Settings
from gateway.config.routes import Registration, Route
from gateway.explain.asked_properties import PropertyPlace, places
from gateway.explain.carried import carried_of
from gateway.explain.command import ExplainedCommand, Question
from mappings.commands.command import (
    Command,
    DeletePublication,
    DeregisterSubscriber,
    Dialect,
    Publish,
    RegisterSubscriber,
    write_command,
)
from mappings.commands.options import NO_PUBLICATION_OPTIONS, PublicationOption, RegistrationOption
from mappings.headers.chain import FORMAT_MQRFH, FORMAT_MQRFH2
from mappings.topics.topics import escape_topic
from mq_adapters.message import (
    MQCI_NONE,
    MQEI_UNLIMITED,
    MQMT_DATAGRAM,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    MQRO_NAN,
    MessageDescriptor,
)
from mq_adapters.system_queues import CONTROL_QUEUE

_SUBSCRIBER = RegistrationOption.CORREL_ID_AS_IDENTITY


def embedded_publication(settings: Settings, route: Route, question: Question, packet: str) -> ExplainedCommand:
    """The Publish for a PUBLISH that no route takes. Raises MappingError for a topic that MQ cannot carry."""
    options = PublicationOption.RETAIN_PUBLICATION if question.retain else NO_PUBLICATION_OPTIONS
    if is_mqrfh := Dialect(settings.header) is Dialect.MQRFH:
        options |= PublicationOption.NO_REGISTRATION
    carried = carried_of(settings, route, question)
    command = Publish(topics=(question.topic,), publication_options=options, data=carried.pairs if is_mqrfh else ())
    folders = (carrier_folder(carried.pairs),) if carried.pairs and not is_mqrfh else ()
    return _explained(
        settings,
        packet,
        command,
        settings.publish.stream,
        persistence=MQPER_PERSISTENT if question.qos else MQPER_NOT_PERSISTENT,
        expiry=expiry_of(question.properties),
        folders=folders if carried.jms is None else (*carried.jms.folders, *folders),
        properties=tuple(places(question.properties, Dialect(settings.header), settings.mqtt.user_properties)),
    )


def embedded_deletion(settings: Settings, question: Question, packet: str) -> ExplainedCommand:
    """The DeletePub in front of an empty Publish, which deletes the retained publication.

    MQRFH reads its topic as a pattern.
    """
    is_mqrfh = Dialect(settings.header) is Dialect.MQRFH
    command = DeletePublication(topics=(escape_topic(question.topic) if is_mqrfh else question.topic,))
    return _explained(settings, packet, command, settings.publish.stream)


def embedded_registrations(
    settings: Settings, found: Registration, correl_id: bytes, *, takes_retained: bool
) -> Iterator[ExplainedCommand]:
    """RegSub and DeregSub for a topic filter at the embedded broker."""
    names = {"queue_name": settings.subscribe.queue, "queue_manager_name": settings.queue_manager.name}
    options = _SUBSCRIBER | RegistrationOption.INFORM_IF_RETAINED
    if not takes_retained:
        options |= RegistrationOption.NEW_PUBLICATIONS_ONLY
    register = RegisterSubscriber(topics=found.patterns, registration_options=options, **names)
    deregister = DeregisterSubscriber(topics=found.patterns, registration_options=_SUBSCRIBER, **names)
    for packet, command in (("SUBSCRIBE", register), ("UNSUBSCRIBE", deregister)):
        yield _explained(settings, packet, command, CONTROL_QUEUE, msg_type=MQMT_REQUEST, correl_id=correl_id)


def _explained(
    settings: Settings,
    packet: str,
    command: Command,
    queue: str,
    *,
    persistence: int = MQPER_PERSISTENT,
    msg_type: int = MQMT_DATAGRAM,
    correl_id: bytes = MQCI_NONE,
    expiry: int = MQEI_UNLIMITED,
    folders: tuple[str, ...] = (),
    properties: tuple[PropertyPlace, ...] = (),
) -> ExplainedCommand:
    dialect = Dialect(settings.header)
    return ExplainedCommand(
        packet=packet,
        verb=command.verb,
        topics=command.topics,
        target="",
        queue=queue,
        descriptor=MessageDescriptor(
            format=FORMAT_MQRFH2 if dialect is Dialect.MQRFH2 else FORMAT_MQRFH,
            msg_type=msg_type,
            report=MQRO_NAN if msg_type == MQMT_DATAGRAM else 0,
            reply_to_q=settings.subscribe.reply_queue,
            reply_to_q_mgr=settings.queue_manager.name,
            persistence=persistence,
            expiry=expiry,
            correl_id=correl_id,
            put_appl_name="rfhbridge",
        ),
        header=write_command(command, dialect, extra_folders=folders),
        properties=properties,
    )

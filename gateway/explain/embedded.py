"""The commands for the embedded broker, as bridge/to_mq.py writes them, without an engine to put them on."""

from collections.abc import Iterator

from gateway.bridge.routes import Registration
from gateway.config import Settings
from gateway.explain.command import ExplainedCommand, Question
from mappings.command import Command, DeregisterSubscriber, Dialect, Publish, RegisterSubscriber, write_command
from mappings.header_chain import FORMAT_MQRFH, FORMAT_MQRFH2
from mappings.options import NO_PUBLICATION_OPTIONS, PublicationOption, RegistrationOption
from mq_adapters.embedded.engine import CONTROL_QUEUE
from mq_adapters.message import (
    MQCI_NONE,
    MQMT_DATAGRAM,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    MQRO_NAN,
    MessageDescriptor,
)

_SUBSCRIBER = RegistrationOption.CORREL_ID_AS_IDENTITY


def embedded_publication(settings: Settings, question: Question, packet: str) -> ExplainedCommand:
    """The Publish for a PUBLISH that no route takes. Raises MappingError for a topic that MQ cannot carry."""
    options = PublicationOption.RETAIN_PUBLICATION if question.retain else NO_PUBLICATION_OPTIONS
    if Dialect(settings.header) is Dialect.MQRFH:
        options |= PublicationOption.NO_REGISTRATION
    command = Publish(topics=(question.topic,), publication_options=options)
    persistence = MQPER_PERSISTENT if question.qos else MQPER_NOT_PERSISTENT
    return _explained(settings, packet, command, settings.publish.stream, persistence=persistence)


def embedded_registrations(settings: Settings, found: Registration, correl_id: bytes) -> Iterator[ExplainedCommand]:
    """RegSub and DeregSub for a topic filter at the embedded broker."""
    names = {"queue_name": settings.subscribe.queue, "queue_manager_name": settings.queue_manager.name}
    options = _SUBSCRIBER | RegistrationOption.INFORM_IF_RETAINED
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
            correl_id=correl_id,
            put_appl_name="rfhbridge",
        ),
        header=write_command(command, dialect),
    )

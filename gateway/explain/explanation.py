"""The explanation of a topic: its route, its commands with their exact bytes, and their needs at the target.

It needs only the settings: no store and no connection. MsgId and CorrelId are those of the first session of an empty
store. Every other session has its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.bridge.commands.target_messages import (
    TargetMessage,
    deletion,
    deregistration,
    own_message_identifier,
    publication,
    registration,
)
from gateway.bridge.messages.usr_folder import expiry_of
from gateway.bridge.sessions.session_store import session_correl_id
from gateway.config import RouteSettings, Settings, TargetSettings
from gateway.config.routes import Registration, Route, Routes
from gateway.explain.asked_properties import PropertyPlace, places
from gateway.explain.carried import carried_of
from gateway.explain.command import ExplainedCommand, Question
from gateway.explain.embedded import embedded_deletion, embedded_publication, embedded_registrations
from gateway.explain.hub import set_up_of
from gateway.explain.set_up import Section
from gateway.mqtt.errors import PeerError
from gateway.mqtt.topics import check_shared_filter
from mappings.commands.command import DeletePublication, DeregisterSubscriber, Dialect, Publish, RegisterSubscriber
from mappings.errors import ConversionError
from mappings.topics.topics import check_mqtt_topic_filter, topic_error

#: The assumed target if no configuration names one. Every name in it is the documented default.
ASSUMED_TARGET: Final = TargetSettings(name="IBMMQ")
_DELETES: Final = "PUBLISH, RETAIN, no payload"
_EPOCH: Final = 1
_SEQUENCE: Final = 1
_NO_STORE: Final = bytes(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer to a question; `sections` is the MQSC of each target that is concerned, by its name.

    `refusal` says why a SUBSCRIBE is refused, and what to do; "" if it is not refused.
    """

    question: Question
    route: Route | None
    commands: tuple[ExplainedCommand, ...]
    sections: tuple[tuple[TargetSettings, tuple[Section, ...]], ...]
    refusal: str = ""


def with_assumed_target(settings: Settings) -> Settings:
    """The settings with the assumed target, if they name none."""
    return settings.model_copy(update={"target": (ASSUMED_TARGET,)})


def explain(settings: Settings, question: Question) -> Explanation:
    """Answers a question.

    Raises TopicError if it has neither a topic name nor a filter, MappingError if MQ cannot carry it.
    """
    check_mqtt_topic_filter(question.topic)
    if question.is_shared:
        _check_shared(question.topic)
    routes = Routes(settings.routes, settings.target, own_dialect=Dialect(settings.header))
    route = None if question.is_filter else routes.of(question.topic)
    registrations, refusal = _registered(routes, question.topic_filter)
    commands = [] if route is None else [*_publications(settings, route, question)]
    for found in registrations:
        commands += _registrations(settings, found, question)
    targets = [found.destination.target for found in registrations] + ([] if route is None else [route.target])
    concerned = {target.name for target in targets if target is not None}
    return Explanation(
        question=question,
        route=route,
        commands=tuple(commands),
        sections=tuple(
            (
                target,
                set_up_of(
                    target,
                    _routes_to(settings, target),
                    digest_queue=settings.audit.digest_queue_at(target.name),
                ),
            )
            for target in settings.target
            if target.name in concerned
        ),
        refusal=refusal,
    )


def _check_shared(topic_filter: str) -> None:
    try:
        check_shared_filter(topic_filter)
    except PeerError as error:
        raise topic_error(topic_filter, f"is refused: {error.reason}") from None


def _registered(routes: Routes, topic_filter: str) -> tuple[tuple[Registration, ...], str]:
    """The registrations of a SUBSCRIBE; if it is refused, none and the reason."""
    try:
        return routes.registrations(topic_filter), ""
    except ConversionError as error:
        return (), str(error)


def _routes_to(settings: Settings, target: TargetSettings) -> tuple[RouteSettings, ...]:
    return tuple(route for route in settings.routes if route.target == target.name)


def _publications(settings: Settings, route: Route, question: Question) -> Iterator[ExplainedCommand]:
    packet = f"PUBLISH, QoS {question.qos}" + (", RETAIN" if question.retain else "")
    packet += "" if question.properties is None else ", MQTT 5"
    if route.target is None:
        yield embedded_publication(settings, route, question, packet)
        if question.retain:
            yield embedded_deletion(settings, question, _DELETES)
        return
    carried = carried_of(settings, route, question)
    message = publication(
        route,
        topic=question.topic,
        qos=question.qos,
        retain=question.retain,
        client=question.client,
        user=question.user,
        sequence=_SEQUENCE,
        msg_id=_msg_id(question, Publish.verb),
        properties=carried.pairs,
        jms=carried.jms,
        expiry=expiry_of(question.properties),
    )
    found = places(question.properties, Dialect(route.target.header), settings.mqtt.user_properties)
    yield _explained(packet, route.target, message, properties=tuple(found))
    if question.retain:
        empty = deletion(route, topic=question.topic, msg_id=_msg_id(question, DeletePublication.verb))
        yield _explained(_DELETES, route.target, empty)


def _registrations(settings: Settings, found: Registration, question: Question) -> Iterator[ExplainedCommand]:
    correl_id = session_correl_id(_NO_STORE, question.subscriber, _EPOCH)
    target = found.destination.target
    if target is None:
        yield from embedded_registrations(settings, found, correl_id, takes_retained=not question.is_shared)
        return
    patterns = found.patterns
    msg_id = _msg_id(question, RegisterSubscriber.verb)
    made = registration(
        found.destination, patterns=patterns, correl_id=correl_id, msg_id=msg_id, anew=question.is_shared
    )
    yield _explained("SUBSCRIBE", target, made)
    msg_id = _msg_id(question, DeregisterSubscriber.verb)
    made = deregistration(found.destination, patterns=patterns, correl_id=correl_id, msg_id=msg_id)
    yield _explained("UNSUBSCRIBE", target, made)


def _msg_id(question: Question, verb: str) -> bytes:
    client = question.subscriber
    return own_message_identifier(_NO_STORE, epoch=_EPOCH, client=client, verb=verb, sequence=_SEQUENCE)


def _explained(
    packet: str, target: TargetSettings, message: TargetMessage, *, properties: tuple[PropertyPlace, ...] = ()
) -> ExplainedCommand:
    return ExplainedCommand(
        packet=packet,
        verb=message.verb,
        topics=message.topics,
        target=target.name,
        queue=message.queue,
        descriptor=message.descriptor,
        header=message.header,
        properties=properties,
    )

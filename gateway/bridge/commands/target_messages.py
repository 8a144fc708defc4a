"""Complete commands for a target: the MQMD, and the header bytes in front of the payload.

Steps 3 and 4 on the way of a PUBLISH that leaves the gateway. Everything here depends only on the route and the
client's packet, not on store or clock. So `rfhbridge explain` shows the same bytes. Targets differ in their settings:

    header       MQRFH or MQRFH2
    streams      "queue": the publication queue is the stream, and MQRFH names it unless it is the default one;
                 otherwise the stream is a prefix of each topic
    identity     the MQTT user as UserIdentifier of a Publish, or in folder usr (usr_folder.py)

RegSub, DeregSub and DeletePub never expire, and go under the gateway's own user. ReplyToQMgr is empty: the queue
manager that takes the message fills in its own name. Source: IBM MQ, "Queued publish/subscribe command messages",
"MQMD - Message descriptor".
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from gateway.bridge.messages.usr_folder import carrier_folder, exchange_pairs
from gateway.config import TargetSettings
from gateway.config.routes import Destination, Route
from mappings.commands.command import (
    DeletePublication,
    DeregisterSubscriber,
    Dialect,
    Publish,
    RegisterSubscriber,
    RequestUpdate,
    write_command,
)
from mappings.commands.options import NO_PUBLICATION_OPTIONS, PublicationOption, RegistrationOption
from mappings.conversion.jms_folders import JmsFolders
from mappings.errors import MappingError
from mappings.headers.chain import FORMAT_NONE
from mappings.headers.name_value import NameValues
from mappings.topics.topics import escape_topic
from mq_adapters.command_header import FORMAT_OF_DIALECT
from mq_adapters.message import (
    IDENTIFIER_TAG,
    MQCI_NONE,
    MQEI_UNLIMITED,
    MQMT_DATAGRAM,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    MQRO_NAN,
    MessageDescriptor,
)
from mq_adapters.reasons import ReasonCode

APPLICATION_NAME: Final = "rfhbridge"
#: Users that fit MQMD.UserIdentifier: at most 12 characters without blanks, because blanks are its padding.
_USER_IDENTIFIER: Final = re.compile(r"[!-~]{1,12}")
_DIGEST_BYTES: Final = 20
_NO_JMS: Final = JmsFolders((), FORMAT_NONE)
_SUBSCRIBER: Final = RegistrationOption.CORREL_ID_AS_IDENTITY | RegistrationOption.INFORM_IF_RETAINED
#: Options of a repeated registration. It brings no retained messages, because no SUBSCRIBE asked for them (MQTT 3.1.1
#: section 3.8.4).
_ANEW: Final = _SUBSCRIBER | RegistrationOption.NEW_PUBLICATIONS_ONLY


class UserNotExpressible(MappingError):
    """An MQTT user has no UserIdentifier at a target that needs one. The operator must add it to the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetMessage:
    """A command for a target without its payload: `queue` there, MQMD and header.

    `user` is the MQTT user that the header carries, if it does.
    """

    verb: str
    topics: tuple[str, ...]
    queue: str
    descriptor: MessageDescriptor
    header: bytes
    user: str | None = None


def publication(
    route: Route,
    *,
    topic: str,
    qos: int,
    retain: bool,
    client: str,
    user: str | None,
    sequence: int,
    msg_id: bytes,
    deletes: bool = False,
    properties: NameValues = (),
    jms: JmsFolders | None = None,
    expiry: int = MQEI_UNLIMITED,
) -> TargetMessage:
    """The Publish for a PUBLISH. If RETAIN comes without a payload, `deletes` is set, not `retain`: see `deletion`.

    `sequence`: the session's own number of the exchange. `properties`: the carried properties of MQTT 5.0. `jms`: the
    folders of JMS that an MQRFH2 has, if it has them. Raises
    MappingError for a topic that MQ cannot carry, and UserNotExpressible.
    """
    target, destination = _target_of(route), route.destination
    identifier = user_identifier(target, user)
    carried_user = None if identifier else user
    pairs = exchange_pairs(qos=qos, client=client, sequence=sequence, deletes=deletes, user=carried_user)
    pairs += properties
    options = PublicationOption.RETAIN_PUBLICATION if retain else NO_PUBLICATION_OPTIONS
    dialect = Dialect(target.header)
    topics = (destination.prefix + topic,)
    if dialect is Dialect.MQRFH:
        command = Publish(
            topics=topics,
            publication_options=options | PublicationOption.NO_REGISTRATION,
            stream_name=destination.stream_name,
            data=pairs,
        )
        header = write_command(command, dialect)
    else:
        command = Publish(topics=topics, publication_options=options)
        folders, body_format = jms or _NO_JMS
        header = write_command(
            command, dialect, body_format=body_format, extra_folders=(*folders, carrier_folder(pairs))
        )
    descriptor = _descriptor(target, msg_id=msg_id, persistent=qos > 0, user_identifier=identifier, expiry=expiry)
    return TargetMessage(
        verb=command.verb,
        topics=topics,
        queue=route.queue,
        descriptor=descriptor,
        header=header,
        user=carried_user,
    )


def deletion(route: Route, *, topic: str, msg_id: bytes) -> TargetMessage:
    """The DeletePub that deletes a topic's retained message; the empty Publish follows it."""
    target, destination = _target_of(route), route.destination
    dialect = Dialect(target.header)
    name = destination.prefix + topic
    pattern = escape_topic(name) if dialect is Dialect.MQRFH else name  # DeletePub takes patterns
    stream_name = destination.stream_name if dialect is Dialect.MQRFH else None
    command = DeletePublication(topics=(pattern,), stream_name=stream_name)
    return _made(target, command, queue=route.queue, descriptor=_descriptor(target, msg_id=msg_id))


def registration(
    destination: Destination,
    *,
    patterns: tuple[str, ...],
    correl_id: bytes,
    msg_id: bytes,
    anew: bool = False,
) -> TargetMessage:
    """The RegSub for some patterns; its answer carries `msg_id` as CorrelId.

    `anew`: no SUBSCRIBE asked for it, so no retained messages are due.
    """
    target = _target_at(destination)
    command = RegisterSubscriber(
        topics=patterns,
        registration_options=_ANEW if anew else _SUBSCRIBER,
        stream_name=destination.stream_name,
        queue_name=target.subscriber_queue,
        queue_manager_name=_queue_manager_name(target),
    )
    descriptor = _descriptor(target, msg_id=msg_id, msg_type=MQMT_REQUEST, correl_id=correl_id)
    return _made(target, command, queue=target.control_queue, descriptor=descriptor)


def deregistration(
    destination: Destination,
    *,
    patterns: tuple[str, ...],
    correl_id: bytes,
    msg_id: bytes,
) -> TargetMessage:
    """The DeregSub for some patterns, or with DeregAll if there are none; only a refusal is answered."""
    target = _target_at(destination)
    everything = RegistrationOption(0) if patterns else RegistrationOption.DEREGISTER_ALL
    command = DeregisterSubscriber(
        topics=patterns,
        registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY | everything,
        stream_name=destination.stream_name,
        queue_name=target.subscriber_queue,
        queue_manager_name=_queue_manager_name(target),
    )
    descriptor = _descriptor(target, msg_id=msg_id, correl_id=correl_id)
    return _made(target, command, queue=target.control_queue, descriptor=descriptor)


def update_request(destination: Destination, *, pattern: str, correl_id: bytes, msg_id: bytes) -> TargetMessage:
    """The ReqUpdate that asks for a registered pattern's retained messages again; only a refusal is answered."""
    target = _target_at(destination)
    command = RequestUpdate(
        topics=(pattern,),
        registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY,
        stream_name=destination.stream_name,
        queue_name=target.subscriber_queue,
        queue_manager_name=_queue_manager_name(target),
    )
    descriptor = _descriptor(target, msg_id=msg_id, correl_id=correl_id)
    return _made(target, command, queue=target.control_queue, descriptor=descriptor)


def user_identifier(target: TargetSettings, user: str | None) -> str:
    """MQMD.UserIdentifier of a Publish for an MQTT user; "" stands for the gateway's own user.

    A name is never cut. Raises UserNotExpressible if the name does not fit and is not among the target's `users`.
    """
    if user is None or not target.set_identity:
        return ""
    identifier = target.users.get(user, user)
    if not _USER_IDENTIFIER.fullmatch(identifier):
        raise UserNotExpressible(
            ReasonCode.MQRC_NOT_AUTHORIZED,
            f"user {user[:64]!r} is no UserIdentifier of 1 to 12 characters; name one in users of target {target.name}",
            parameter=user,
        )
    return identifier


def own_message_identifier(incarnation: bytes, *, epoch: int, client: str, verb: str, sequence: int) -> bytes:
    """MsgId of a message to a target: a tag, and a hash of gateway, session, command and its own sequence.

    `incarnation` names the gateway's store. The hash has no packet identifier, because clients use those again.
    """
    parts = (incarnation, epoch.to_bytes(8, "big"), client.encode(), verb.encode(), sequence.to_bytes(8, "big"))
    framed = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return IDENTIFIER_TAG + hashlib.sha256(framed).digest()[:_DIGEST_BYTES]


def _made(
    target: TargetSettings,
    command: DeletePublication | RegisterSubscriber | DeregisterSubscriber | RequestUpdate,
    *,
    queue: str,
    descriptor: MessageDescriptor,
) -> TargetMessage:
    header = write_command(command, Dialect(target.header))
    return TargetMessage(verb=command.verb, topics=command.topics, queue=queue, descriptor=descriptor, header=header)


def _descriptor(
    target: TargetSettings,
    *,
    msg_id: bytes,
    persistent: bool = True,
    msg_type: int = MQMT_DATAGRAM,
    correl_id: bytes = MQCI_NONE,
    user_identifier: str = "",
    expiry: int = MQEI_UNLIMITED,
) -> MessageDescriptor:
    """The MQMD of a command. Its priority is always 0: with another one a message could overtake earlier ones."""
    return MessageDescriptor(
        format=FORMAT_OF_DIALECT[Dialect(target.header)],
        msg_type=msg_type,
        report=MQRO_NAN if msg_type == MQMT_DATAGRAM else 0,
        expiry=expiry,
        reply_to_q=target.reply_queue,
        persistence=MQPER_PERSISTENT if persistent else MQPER_NOT_PERSISTENT,
        msg_id=msg_id,
        correl_id=correl_id,
        user_identifier=user_identifier,
        put_appl_name=APPLICATION_NAME,
    )


def _queue_manager_name(target: TargetSettings) -> str | None:
    """QMgrName of a registration, if configured. Otherwise the queue manager that takes it fills in its own name.

    It is never the last queue manager that answered, because another one may take the waiting messages.
    """
    name = target.queue_manager
    return name if name and not name.startswith("*") else None


def _target_of(route: Route) -> TargetSettings:
    return _target_at(route.destination)


def _target_at(destination: Destination) -> TargetSettings:
    assert destination.target is not None, "requests.py writes the embedded broker's commands"
    return destination.target

"""The gateway's own commands: Publish for a PUBLISH, and RegSub, ReqUpdate and DeregSub for subscriptions.

A command for the embedded broker is written here: its MQMD, its header and its audit note. The typed command travels
with the message (`Message.written`), so the broker does not read what was written here.

A RegSub is a request: its answer has the command's MsgId as CorrelId. A DeregSub to the embedded broker is a request
too, because that broker answers at once. A target may be away for hours, and nothing depends on its answer to a
DeregSub. So a target answers a DeregSub only if it refuses.
"""

from typing import Final

from gateway.audit_trail.notes.notes import NoteKind, Translation, with_level
from gateway.bridge.commands.target_messages import APPLICATION_NAME
from gateway.bridge.commands.transmission_queues import ToTarget
from gateway.bridge.messages.usr_folder import FOLDER, carrier_folder
from gateway.bridge.sessions.subscriber import Subscriber, own_origin
from gateway.config.routes import EMBEDDED, Destination, Registration
from mappings.commands.command import Command, DeregisterSubscriber, Dialect, Publish, RegisterSubscriber, write_command
from mappings.commands.options import NO_PUBLICATION_OPTIONS, PublicationOption, RegistrationOption
from mappings.conversion.jms_folders import FORMAT_STRING, JmsFolders
from mappings.conversion.publication_template import PublicationTemplate
from mappings.headers.chain import FORMAT_NONE
from mappings.headers.mqrfh2 import Folder
from mappings.headers.name_value import NameValues
from mq_adapters.command_header import FORMAT_OF_DIALECT, WrittenCommand
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import (
    MQMT_DATAGRAM,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    MQRO_NAN,
    MessageDescriptor,
)
from mq_adapters.system_queues import CONTROL_QUEUE

#: Packet type, packet identifier, and the part of the packet that asked for a command.
PacketPart = tuple[int, int, bytes]
#: Length and hash of the payload of a command that has none.
NO_PAYLOAD: Final = (0, b"")
_SUBSCRIBER: Final = RegistrationOption.CORREL_ID_AS_IDENTITY | RegistrationOption.INFORM_IF_RETAINED
_WITHOUT_RETAINED: Final = _SUBSCRIBER | RegistrationOption.NEW_PUBLICATIONS_ONLY


def note_request(
    unit: UnitOfWork,
    session: Subscriber,
    packet: PacketPart,
    payload: tuple[int, bytes],
    number: int,
    context: Translation,
    now_us: int,
    level: int = 0,
) -> None:
    """Notes a command for the audit; `packet` asked for it.

    `level`: the MQTT level of a PUBLISH or a will, which has properties from level 5 on.
    """
    note = (NoteKind.REQUESTED, now_us, session.client, session.epoch, *packet, *payload, number, context)
    unit.notes.append(with_level(note, level))


class OwnCommands:
    """Writes commands in the gateway's own dialect."""

    def __init__(self, *, dialect: Dialect, queue_manager_name: str, subscriber_queue: str, reply_queue: str) -> None:
        self.dialect = dialect
        self.queue_manager_name = queue_manager_name
        self.subscriber_queue = subscriber_queue
        self._reply_queue = reply_queue
        self._format = FORMAT_OF_DIALECT[dialect]
        #: By RETAIN, and whether the payload is text: what writes the header of a Publish, and its options.
        self._publish = {
            (retain, is_text): _publish_template(dialect, retain=retain, is_text=is_text)
            for retain in (False, True)
            for is_text in (False, True)
        }

    def write(self, command: Command) -> WrittenCommand:
        """The header of a command, which travels with its message."""
        return WrittenCommand(command, self.dialect, write_command(command, self.dialect))

    def write_publish(
        self, topic: str, *, retain: bool, properties: NameValues = (), jms: JmsFolders | None = None
    ) -> WrittenCommand:
        """The header of a Publish; `properties` are the properties of MQTT 5.0 that it carries.

        `jms`: the folders of JMS that an MQRFH2 has, if it has them.
        """
        is_text = jms is not None and jms.body_format == FORMAT_STRING
        template, options = self._publish[retain, is_text]
        if self.dialect is Dialect.MQRFH:
            command = Publish(topics=(topic,), publication_options=options, data=properties)
            return WrittenCommand(command, self.dialect, template.header(topic, data=properties))
        command = Publish(topics=(topic,), publication_options=options)
        if jms is None:
            if not properties:
                return WrittenCommand(command, self.dialect, template.header(topic))
            folder = carrier_folder(properties)
            header = template.header(topic, folders=(folder,))
            return WrittenCommand(command, self.dialect, header, (Folder(name=FOLDER, raw=folder.encode()),))
        texts = jms.folders + ((carrier_folder(properties),) if properties else ())
        folders = [Folder(name=text[1 : text.index(">")], raw=text.encode()) for text in texts]
        header = template.header(topic, folders=texts)
        return WrittenCommand(command, self.dialect, header, tuple(folders), jms.body_format)

    def descriptor(
        self, *, persistent: bool, msg_type: int = MQMT_DATAGRAM, correl_id: bytes = bytes(24)
    ) -> MessageDescriptor:
        return MessageDescriptor(
            format=self._format,
            msg_type=msg_type,
            report=MQRO_NAN if msg_type == MQMT_DATAGRAM else 0,
            reply_to_q=self._reply_queue,
            reply_to_q_mgr=self.queue_manager_name,
            persistence=MQPER_PERSISTENT if persistent else MQPER_NOT_PERSISTENT,
            correl_id=correl_id,
            put_appl_name=APPLICATION_NAME,
        )

    @staticmethod
    def context(
        verb: str, topic: str, queue: Queue, descriptor: MessageDescriptor, header: bytes, dropped: NameValues = ()
    ) -> Translation:
        """The header context of a command on a queue of the embedded queue manager."""
        return Translation(
            command=verb,
            topic=topic,
            queue=queue.name,
            correl_id=descriptor.correl_id,
            persistent=descriptor.persistence == MQPER_PERSISTENT,
            format=descriptor.format,
            coded_char_set_id=descriptor.coded_char_set_id,
            encoding=descriptor.encoding,
            header=header,
            dropped=dropped,
        )


def _publish_template(
    dialect: Dialect, *, retain: bool, is_text: bool
) -> tuple[PublicationTemplate, PublicationOption]:
    options = PublicationOption.RETAIN_PUBLICATION if retain else NO_PUBLICATION_OPTIONS
    if dialect is Dialect.MQRFH:
        options |= PublicationOption.NO_REGISTRATION
    body_format = FORMAT_STRING if is_text else FORMAT_NONE
    return PublicationTemplate(Publish(topics=("topic",), publication_options=options), dialect, body_format), options


class Requests:
    """Writes the commands of subscribers and puts them, in the caller's unit of work."""

    def __init__(self, engine: Engine, *, commands: OwnCommands, to_target: ToTarget) -> None:
        self._engine = engine
        self._commands = commands
        self._to_target = to_target
        self._control = engine.queue(CONTROL_QUEUE)

    def register(
        self,
        unit: UnitOfWork,
        subscriber: Subscriber,
        wanted: Registration,
        packet: PacketPart,
        now_us: int,
        *,
        new_only: bool = False,
    ) -> bytes:
        """Puts a RegSub for one destination; returns the MsgId that the answer carries as CorrelId.

        `new_only`: no retained messages are due: there was no SUBSCRIBE, or it did not ask for them.
        """
        if wanted.destination.target is not None:
            origin = own_origin(subscriber)
            number, context, msg_id = self._to_target.register(unit, subscriber, wanted, origin=origin, anew=new_only)
            note_request(unit, subscriber, packet, NO_PAYLOAD, number, context, now_us)
            return msg_id
        command = RegisterSubscriber(
            topics=wanted.patterns,
            registration_options=_SUBSCRIBER if subscriber.takes_retained and not new_only else _WITHOUT_RETAINED,
            queue_name=self._commands.subscriber_queue,
            queue_manager_name=self._commands.queue_manager_name,
        )
        return self._request(unit, subscriber, command, packet, now_us)

    def request_updates(
        self, unit: UnitOfWork, subscriber: Subscriber, registered: Registration, packet: PacketPart, now_us: int
    ) -> None:
        """Puts a ReqUpdate for each pattern that the target's broker had already, if a RegSub brings nothing retained.

        The setting `retained_again` of the target says so.
        """
        target = registered.destination.target
        if target is None or target.retained_again != "request_update" or not subscriber.takes_retained:
            return
        counts = subscriber.emitted[registered.destination.key]
        for pattern in [pattern for pattern in registered.patterns if counts[pattern] > 1]:
            origin = own_origin(subscriber)
            number, context = self._to_target.request_update(unit, subscriber, registered, pattern, origin=origin)
            note_request(unit, subscriber, packet, NO_PAYLOAD, number, context, now_us)

    def deregister(
        self, unit: UnitOfWork, subscriber: Subscriber, unwanted: Registration, packet: PacketPart, now_us: int
    ) -> bytes:
        """Puts a DeregSub for registered patterns; returns its MsgId."""
        if unwanted.destination.target is not None:
            return self._deregister_at_target(unit, subscriber, unwanted, packet, now_us)
        command = DeregisterSubscriber(
            topics=unwanted.patterns,
            registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY,
            queue_name=self._commands.subscriber_queue,
            queue_manager_name=self._commands.queue_manager_name,
        )
        return self._request(unit, subscriber, command, packet, now_us)

    def deregister_all(
        self,
        unit: UnitOfWork,
        subscriber: Subscriber,
        packet_type: int,
        now_us: int,
        destination: Destination = EMBEDDED,
    ) -> None:
        """Puts a DeregSub with DeregAll at the end of a session or group; only a refusal is answered."""
        packet = (packet_type, 0, b"")
        if destination.target is not None:
            everything = Registration(destination=destination, topic_filters=(), patterns=())
            self._deregister_at_target(unit, subscriber, everything, packet, now_us)
            return
        command = DeregisterSubscriber(
            topics=(),
            registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY | RegistrationOption.DEREGISTER_ALL,
            queue_name=self._commands.subscriber_queue,
            queue_manager_name=self._commands.queue_manager_name,
        )
        self._request(unit, subscriber, command, packet, now_us, msg_type=MQMT_DATAGRAM)

    def _deregister_at_target(
        self, unit: UnitOfWork, subscriber: Subscriber, unwanted: Registration, packet: PacketPart, now_us: int
    ) -> bytes:
        number, context, msg_id = self._to_target.deregister(unit, subscriber, unwanted, origin=own_origin(subscriber))
        note_request(unit, subscriber, packet, NO_PAYLOAD, number, context, now_us)
        return msg_id

    def _request(
        self,
        unit: UnitOfWork,
        subscriber: Subscriber,
        command: RegisterSubscriber | DeregisterSubscriber,
        packet: PacketPart,
        now_us: int,
        msg_type: int = MQMT_REQUEST,
    ) -> bytes:
        descriptor = self._commands.descriptor(persistent=True, msg_type=msg_type, correl_id=subscriber.correl_id)
        header = self._commands.write(command)
        message = header.message(descriptor, b"", own_origin(subscriber))
        number = self._engine.put(unit, self._control, message)
        context = self._commands.context(command.verb, " ".join(command.topics), self._control, descriptor, header.data)
        note_request(unit, subscriber, packet, NO_PAYLOAD, number, context, now_us)
        return message.msg_id

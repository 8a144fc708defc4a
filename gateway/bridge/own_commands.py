"""What every command for the embedded broker has: its MQMD, the bytes of its header, and its audit note."""

from gateway.audit_trail.notes import NoteKind, Translation, with_level
from gateway.bridge.carrier import carrier_folder
from gateway.bridge.subscriber import Subscriber
from gateway.bridge.target_messages import APPLICATION_NAME
from mappings.command import Command, Dialect, Publish, write_command
from mappings.header_chain import FORMAT_MQRFH, FORMAT_MQRFH2
from mappings.name_value import NameValues
from mappings.options import PublicationOption
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import (
    MQMT_DATAGRAM,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    MQRO_NAN,
    MessageDescriptor,
)


def note_request(
    unit: UnitOfWork,
    session: Subscriber,
    packet: tuple[int, int, bytes],
    payload: tuple[int, bytes],
    number: int,
    sheet: Translation,
    now_us: int,
    level: int = 0,
) -> None:
    """The audit's note of a command; `packet` is packet type, packet identifier and what of it asked for this.

    `level`: of a PUBLISH or a will, which from 5 on has properties.
    """
    note = (NoteKind.REQUESTED, now_us, session.client, session.epoch, *packet, *payload, number, sheet)
    unit.notes.append(with_level(note, level))


class OwnCommands:
    """Writes commands in the gateway's own dialect."""

    def __init__(self, *, dialect: Dialect, queue_manager_name: str, subscriber_queue: str, reply_queue: str) -> None:
        self.dialect = dialect
        self.queue_manager_name = queue_manager_name
        self.subscriber_queue = subscriber_queue
        self._reply_queue = reply_queue
        self._format = FORMAT_MQRFH2 if dialect is Dialect.MQRFH2 else FORMAT_MQRFH

    def write(self, command: Command) -> bytes:
        return write_command(command, self.dialect)

    def write_publish(self, topic: str, options: PublicationOption, properties: NameValues) -> bytes:
        """The header of a Publish; `properties` is what it carries of those of MQTT 5.0."""
        if self.dialect is Dialect.MQRFH:
            options |= PublicationOption.NO_REGISTRATION
            return self.write(Publish(topics=(topic,), publication_options=options, data=properties))
        folders = (carrier_folder(properties),) if properties else ()
        return write_command(Publish(topics=(topic,), publication_options=options), self.dialect, extra_folders=folders)

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
    def sheet(
        verb: str, topic: str, queue: Queue, descriptor: MessageDescriptor, header: bytes, dropped: NameValues = ()
    ) -> Translation:
        """The fact sheet of a command on a queue of the embedded queue manager."""
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

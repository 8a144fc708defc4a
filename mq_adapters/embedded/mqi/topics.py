"""Topics of the MQI: puts to a topic, on the broker's queued publish/subscribe.

A put to a topic becomes a Publish on the stream. So the broker, its records and the audit know one kind of publication.
What a program may publish to is a right of its own (`TopicRights`), and a right to put on a queue gives it nobody.
"""

from typing import Final

from mappings.commands.command import Publish, write_command
from mappings.commands.options import PublicationOption
from mappings.errors import MappingError
from mappings.headers.charset import ENCODING_REVERSED
from mappings.headers.mqrfh2 import read_mqrfh2
from mappings.table import Dialect
from mq_adapters.attributes import ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.open_object import OpenObject
from mq_adapters.embedded.mqi.options import ObjectKind, OpenOption, PutOption
from mq_adapters.embedded.rights import MissingRight, RightMissing, TopicRights
from mq_adapters.message import MQMT_DATAGRAM, MQMT_REQUEST, MQRO_NAN, MQRO_PAN, UTF_8, Message
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import DEFAULT_STREAM

FORMAT_MQRFH2: Final = b"MQHRF2  "
#: Folders of commands and answers. A program that publishes by MQPUT has none of its own.
_OF_COMMANDS: Final = ("psc", "pscr")


class Topics:
    """The topics of one connection."""

    def __init__(self, engine: Engine, rights: TopicRights, *, stream: str = DEFAULT_STREAM) -> None:
        self._engine = engine
        self._rights = rights
        self._stream = stream

    def topic_of(self, object_name: str, object_string: str, operation: str) -> str:
        """The whole topic string of a topic object and a string; 2085 without the object, 2425 for no topic."""
        parts = [object_string]
        if object_name:
            found = self._engine.objects.find(ObjectType.TOPIC, object_name)
            if found is None:
                raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_OBJECT_NAME, f"{operation}: topic object {object_name}")
            parts.insert(0, found.text("TOPICSTR"))
        topic = "/".join(part for part in parts if part)
        if not topic:
            raise QueueManagerError(ReasonCode.MQRC_TOPIC_STRING_ERROR, f"{operation}: no topic")
        return topic

    # -- publishing ----------------------------------------------------------------------------------------------------

    def open(self, topic: str, options: OpenOption, operation: str) -> OpenObject:
        """MQOPEN of a topic, to publish to it; 2035 without the right."""
        if options & ~(OpenOption.OUTPUT | _HARMLESS):
            raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, operation)
        if not self._rights.may_publish(topic):
            raise RightMissing(MissingRight.PUBLISH, topic, f"{operation}: no right to publish to {topic!r}")
        return OpenObject(kind=ObjectKind.TOPIC, name=topic, options=options)

    def publication(self, topic: str, message: Message, options: int) -> Message:
        """The message that publishes another one to a topic, with a header that says so. 2425 for no topic name."""
        retained = PublicationOption.RETAIN_PUBLICATION if options & PutOption.RETAIN else PublicationOption(0)
        command = Publish(topics=(topic,), publication_options=retained)
        try:
            header, data = _with_command(command, message)
        except MappingError as error:
            raise QueueManagerError(ReasonCode.MQRC_TOPIC_STRING_ERROR, f"publish to {topic!r}: {error}") from error
        own = message.descriptor
        changes = {
            "format": FORMAT_MQRFH2,
            "coded_char_set_id": UTF_8,
            "encoding": ENCODING_REVERSED,
            # The answer is for a subscriber to give: as a request, the publication would be answered by the broker.
            "msg_type": MQMT_DATAGRAM if own.msg_type == MQMT_REQUEST else own.msg_type,
            "report": own.report & ~(MQRO_PAN | MQRO_NAN),
        }
        return Message(own.replace(**changes), header + data)

    @property
    def stream(self) -> str:
        """The queue on which publications are put."""
        return self._stream


_HARMLESS: Final = OpenOption.FAIL_IF_QUIESCING | OpenOption.NO_MULTICAST | OpenOption.RESOLVE_NAMES


def _with_command(command: Publish, message: Message) -> tuple[bytes, bytes]:
    """A header with the command, and the data behind it. Folders of the message's own MQRFH2 come into that header."""
    descriptor, data = message.descriptor, message.body
    folders: tuple[str, ...] = ()
    format, page, encoding = descriptor.format, descriptor.coded_char_set_id or UTF_8, descriptor.encoding
    if format == FORMAT_MQRFH2:
        own = read_mqrfh2(data, coded_char_set_id=page, encoding=encoding)
        folders = tuple(folder.text for folder in own.folders if folder.name not in _OF_COMMANDS)
        data = data[own.struc_length :]
        format, page, encoding = own.format, own.coded_char_set_id, own.encoding
    header = write_command(
        command,
        Dialect.MQRFH2,
        body_format=format,
        body_coded_char_set_id=page,
        body_encoding=encoding,
        extra_folders=folders,
    )
    return header, data

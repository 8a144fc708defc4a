"""The headers of Publish commands, each written once for its topic where messages can share it.

Step 4 on the way of a PUBLISH to the embedded broker. The header depends on the topic, on RETAIN and on whether QoS is
above 0. It is written once and kept; after that a message costs a look-up, a join and a put. A header with properties
of MQTT 5.0, or with the folders of JMS, is written for each message.
"""

from typing import Final, NamedTuple

from gateway.audit_trail.notes.notes import Translation
from gateway.bridge.commands.requests import OwnCommands
from gateway.bridge.messages.usr_folder import CarriedPairs
from mappings.commands.command import Publish
from mq_adapters.command_header import WrittenCommand
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import MQEI_UNLIMITED, Message, MessageDescriptor
from mq_adapters.weighted_cache import WeightedCache

#: Memory of the translations that are kept, bytes.
KEPT_TRANSLATIONS_BYTES: Final = 32 * 1024 * 1024
#: Memory of one beside its header (measured), and of each byte of its header: it is there in several forms.
_TRANSLATION_BYTES: Final = 1_700
_BYTES_OF_HEADER_BYTE: Final = 4
#: Headers longer than this (bytes) are written anew for each PUBLISH: they would fill the memory.
_LONGEST_KEPT_HEADER: Final = 1_024


class PublishTranslation(NamedTuple):
    """The command for every PUBLISH of one topic, persistence and RETAIN: MQMD, header and header context."""

    descriptor: MessageDescriptor
    header: WrittenCommand
    context: Translation

    def message(self, payload: bytes, origin: bytes, expiry: int = MQEI_UNLIMITED) -> Message:
        """The Publish with its payload. The typed command travels with it."""
        descriptor = self.descriptor if expiry == MQEI_UNLIMITED else self.descriptor.replace(expiry=expiry)
        return self.header.message(descriptor, payload, origin)


class Translations:
    """Writes the headers of a gateway, and keeps those that repeat."""

    def __init__(self, commands: OwnCommands, stream: Queue, descriptors: tuple[MessageDescriptor, ...]) -> None:
        """`descriptors`: by whether the message is persistent."""
        self._commands = commands
        self._stream = stream
        self._descriptors = descriptors
        #: By QoS and RETAIN, the low bits of a PUBLISH's first byte, and by topic.
        self._kept = WeightedCache[tuple[int, str], PublishTranslation](_kept_bytes, KEPT_TRANSLATIONS_BYTES)

    def of(self, topic: str, flags: int, carried: CarriedPairs) -> PublishTranslation:
        """The translation for one topic, QoS and RETAIN. Raises MappingError for a topic that MQ cannot carry.

        It is kept unless it carries something, because that belongs to one message.
        """
        is_shared = not carried.pairs and carried.jms is None
        translation = self._kept.get((flags, topic)) if is_shared else None
        if translation is None:
            translation = self._written(topic, flags, carried)
            if is_shared and len(translation.header.data) <= _LONGEST_KEPT_HEADER:
                self._kept.put((flags, topic), translation)
        return translation

    def _written(self, topic: str, flags: int, carried: CarriedPairs) -> PublishTranslation:
        descriptor = self._descriptors[flags > 1]
        header = self._commands.write_publish(topic, retain=bool(flags & 1), properties=carried.pairs, jms=carried.jms)
        context = self._commands.context(Publish.verb, topic, self._stream, descriptor, header.data, carried.left_out)
        return PublishTranslation(descriptor, header, context)


def _kept_bytes(_key: tuple[int, str], translation: PublishTranslation) -> int:
    return _TRANSLATION_BYTES + _BYTES_OF_HEADER_BYTE * len(translation.header.data)

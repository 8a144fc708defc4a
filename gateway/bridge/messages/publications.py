"""Publications as they come off the subscriber queue: their topics, their QoS, and the place where the payload begins.

The embedded broker writes the same header for each message of a topic, so such a header is read once and kept. A header
from a target may carry properties of its PUBLISH (usr_folder.py) and differ from message to message. Its topics may
have the prefix of a stream, which MQTT clients do not see. The MQMD tells from which broker a publication comes: each
broker writes its queue manager's name into PutApplName.
"""

from typing import Final

from gateway.audit_trail.notes.notes import Arrival
from gateway.audit_trail.notes.origin import ORIGIN, published_qos
from gateway.bridge.messages.usr_folder import Carried, read_carried
from gateway.config.routes import EMBEDDED, Destination, Routes
from gateway.mqtt.wire import MAXIMUM_REMAINING_LENGTH, encode_text
from mappings.commands.command import Command, Publish, read_command
from mappings.commands.options import PublicationOption
from mappings.conversion.jms_maps import map_json
from mappings.errors import MappingError
from mappings.headers.chain import HeaderChain
from mappings.headers.mqrfh2 import Mqrfh2
from mappings.table import Dialect
from mappings.topics.topics import TopicError, check_mqtt_topic_name
from mq_adapters.command_header import CommandHeader, WrittenCommand, chain_of
from mq_adapters.message import MQAT_BROKER, UTF_8, KnownHeader, Message
from mq_adapters.weighted_cache import WeightedCache

#: Memory of the publications that are kept, and as much of their header contexts, bytes.
KEPT_BYTES: Final = 16 * 1024 * 1024
#: Memory of one beside its header (measured), and of each byte of its header.
_ENTRY_BYTES: Final = 1_700
_BYTES_OF_HEADER_BYTE: Final = 5
#: Headers longer than this (bytes) are read anew for each message: they would fill the memory.
_LONGEST_KEPT_HEADER: Final = 1_024
_PUT_APPL_NAME_CHARACTERS: Final = 28
_PACKET_IDENTIFIER_BYTES: Final = 2
#: The folder with the kind of a message of JMS, and its beginning for a MapMessage, as JMS writes it.
_KIND_FOLDER: Final = "mcd"
_MAP: Final = b"<mcd><Msd>jms_map</Msd>"
#: A header of the broker's own without a folder usr carries nothing.
_NOTHING_CARRIED: Final = Carried()


#: Header, and from its MQMD: format, CodedCharSetId, Encoding, and whether its topics have the prefix of a stream.
_Key = tuple[bytes, bytes, int, int, bool]


class Publication:
    """A publication's header chain, read once for all messages that carry the same bytes.

    `topics`: the topics that MQTT can name, without the prefix of `destination`; `topic_fields`: the same, encoded for
    a PUBLISH. `carried` comes from outside. `retains`: the message was published to be retained. `is_retained`: this
    is a retained copy. `converts_map`: its body is that of a MapMessage, and clients get JSON.
    """

    __slots__ = (
        "_longest_payload_bytes",
        "body_offset",
        "carried",
        "converts_map",
        "destination",
        "is_retained",
        "retains",
        "topic_fields",
        "topics",
    )

    def __init__(
        self,
        topics: tuple[str, ...],
        options: PublicationOption,
        body_offset: int,
        carried: Carried,
        destination: Destination,
        converts_map: bool = False,
    ) -> None:
        self.topics = topics
        self.topic_fields = tuple(encode_text(topic) for topic in topics)
        longest = max(map(len, self.topic_fields), default=0)
        self._longest_payload_bytes = MAXIMUM_REMAINING_LENGTH - longest - _PACKET_IDENTIFIER_BYTES
        self.is_retained = PublicationOption.IS_RETAINED_PUBLICATION in options
        self.retains = PublicationOption.RETAIN_PUBLICATION in options
        self.body_offset = body_offset
        self.carried = carried
        self.converts_map = converts_map
        self.destination = destination

    def qos(self, message: Message) -> int:
        """The QoS with which a message was published: from its private origin, its header, or its persistence."""
        if self.carried.qos is None or len(message.origin) >= ORIGIN.size:
            return published_qos(message)
        return self.carried.qos

    def payload(self, body: bytes) -> bytes:
        """What a client gets of the bytes behind the header: these, or the JSON of a map."""
        if not self.converts_map:
            return body
        return map_json(body) or body

    def payload_bytes(self, message: Message) -> int:
        """The length of the payload that a client gets."""
        if not self.converts_map:
            return len(message.body) - self.body_offset
        return len(self.payload(message.body[self.body_offset :]))

    def fits(self, message: Message) -> bool:
        """Whether a PUBLISH on the longest of the topics can carry the payload."""
        return self.payload_bytes(message) <= self._longest_payload_bytes


class Publications:
    """Reads publications, and keeps the headers that repeat."""

    def __init__(self, *, own_name: str, queue_name: str, routes: Routes, maps_as_json: bool = False) -> None:
        """`own_name`: the embedded queue manager, whose topics have no prefix; `queue_name`: the subscriber queue."""
        self._maps_as_json = maps_as_json
        self._queue_name = queue_name
        self._own_name = own_name[:_PUT_APPL_NAME_CHARACTERS]
        self._routes = routes
        self._kept = WeightedCache[_Key, Publication](_kept_bytes, KEPT_BYTES)
        #: Header contexts for the audit, by publication and CorrelId.
        self._contexts = WeightedCache[tuple[Publication, bytes], Arrival](_context_bytes, KEPT_BYTES)

    def of(self, message: Message) -> Publication | None:
        """The publication in a message; None if none can be read."""
        descriptor, body = message.descriptor, message.body
        order = "little" if descriptor.encoding & 2 else "big"
        length = int.from_bytes(body[8:12], order)  # type: ignore[arg-type]  # "little" or "big"
        header = body[:length] if 32 <= length <= len(body) else b""
        has_prefix = self._routes.has_prefixes and self._is_of_target(message)
        key = (header, descriptor.format, descriptor.coded_char_set_id, descriptor.encoding, has_prefix)
        found = self._kept.get(key)
        if found is None:
            found = self._read(message, has_prefix=has_prefix)
            if (
                found is not None
                and not found.carried.is_of_one_message
                and found.body_offset == length <= _LONGEST_KEPT_HEADER
            ):
                self._kept.put(key, found)
        return found

    def context(self, publication: Publication, message: Message) -> Arrival:
        """The audit's header context of a publication as it came for the subscriber with the message's CorrelId."""
        correl_id = message.descriptor.correl_id
        if publication.is_retained:  # a subscriber gets it once
            return _context(self._queue_name, correl_id, publication, message)
        key = (publication, correl_id)
        context = self._contexts.get(key)
        if context is None:
            context = _context(self._queue_name, correl_id, publication, message)
            if publication.body_offset <= _LONGEST_KEPT_HEADER and not publication.carried.is_of_one_message:
                self._contexts.put(key, context)
        return context

    def _is_of_target(self, message: Message) -> bool:
        descriptor = message.descriptor
        is_own = descriptor.put_appl_type == MQAT_BROKER and descriptor.put_appl_name.rstrip() == self._own_name
        return not is_own

    def _read(self, message: Message, *, has_prefix: bool) -> Publication | None:
        written = KnownHeader.of(message)
        if isinstance(written, WrittenCommand) and not written.folders and written.dialect is Dialect.MQRFH2:
            command, body_offset, carried = written.command, len(written.data), _NOTHING_CARRIED
            converts_map = False
        else:
            try:
                command, chain = _command_of(written, message)
            except MappingError:
                return None
            body_offset, carried = chain.body_offset, read_carried(chain)
            converts_map = self._maps_as_json and _is_map(chain)
        if not isinstance(command, Publish):
            return None
        topics, destination = command.topics, EMBEDDED
        if has_prefix:
            plain = [self._routes.without_prefix(topic) for topic in topics]
            topics = tuple(topic for topic, _ in plain)
            destination = next((found for _, found in plain if found != EMBEDDED), EMBEDDED)
        return Publication(
            tuple(topic for topic in topics if _is_topic_name(topic)),
            command.publication_options,
            body_offset,
            carried,
            destination,
            converts_map,
        )


def _kept_bytes(_key: _Key, publication: Publication) -> int:
    return _ENTRY_BYTES + _BYTES_OF_HEADER_BYTE * publication.body_offset


def _context_bytes(key: tuple[Publication, bytes], _context: Arrival) -> int:
    """The context keeps its publication too, even after `_kept` let it go."""
    return 2 * (_ENTRY_BYTES + _BYTES_OF_HEADER_BYTE * key[0].body_offset)


def _command_of(written: KnownHeader | None, message: Message) -> tuple[Command, HeaderChain]:
    """The command of a header that this process wrote; or else what its bytes say."""
    if isinstance(written, CommandHeader):
        return written.command, written.chain
    chain = chain_of(message)
    return read_command(chain), chain


def _is_map(chain: HeaderChain) -> bool:
    """Whether the body is that of a MapMessage, in UTF-8."""
    if chain.body_coded_char_set_id != UTF_8:
        return False
    for header in chain.headers:
        folder = header.folder(_KIND_FOLDER) if isinstance(header, Mqrfh2) else None
        if folder is not None:
            return folder.raw.startswith(_MAP)
    return False


def _context(queue_name: str, correl_id: bytes, publication: Publication, message: Message) -> Arrival:
    descriptor, destination = message.descriptor, publication.destination
    style = "" if destination.target is None else destination.target.streams
    return Arrival(
        queue=queue_name,
        correl_id=correl_id,
        topic=publication.topics[0],
        is_retained=publication.is_retained,
        format=descriptor.format,
        coded_char_set_id=descriptor.coded_char_set_id,
        encoding=descriptor.encoding,
        header=message.body[: publication.body_offset],
        stream=destination.stream if style else "",
        stream_style=style,
        source_client=publication.carried.client,
        source_exchange=publication.carried.sequence,
        dropped=publication.carried.left_out,
        dropped_before_5=publication.carried.left_out_before_5,
    )


def _is_topic_name(topic: str) -> bool:
    """Whether MQTT can name a topic. An MQ topic may contain `+` or `#`, which no topic name of MQTT has."""
    try:
        check_mqtt_topic_name(topic)
    except TopicError:
        return False
    return True

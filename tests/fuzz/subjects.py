"""What `two_builds.py` compares: for each subject a reader of bytes, whose outcome must be the same in both builds.

A reader may keep what it has read: the inputs of a batch go through one reader, and the next batch gets a new one.
"""

import functools
import logging
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

import ormsgpack

from gateway.bridge.messages import usr_folder
from gateway.bridge.messages.publications import Publications
from gateway.bridge.sessions.session_store import HeldPublish, SessionRow, SubscriptionRow, stored_registrations
from gateway.config.routes import Routes
from gateway.mqtt import packets, property_codec, wire
from gateway.mqtt.events import Will
from gateway.mqtt.levels import PacketType
from gateway.mqtt.outgoing_flows import OutgoingFlows, OutgoingState
from gateway.mqtt.properties import (
    ConnackProperties,
    DisconnectProperties,
    PublishProperties,
    ReasonProperties,
    WillProperties,
)
from mappings.commands.command import Publish
from mappings.commands.options import NO_PUBLICATION_OPTIONS, PublicationOption
from mappings.conversion.publication_template import PublicationTemplate
from mappings.table import Dialect
from mq_adapters.broker.received import read_command_header
from mq_adapters.embedded.counters import unpack_account, unpack_publications
from mq_adapters.embedded.store.checksums import descriptor_checksum, message_checksum, state_checksum
from mq_adapters.embedded.store.rows import RowReader, checked_state, rows_of
from mq_adapters.message import Message, MessageDescriptor, unpack_descriptor
from mq_adapters.mqmd import read_delivered_mqmd, read_mqmd, write_mqmd, write_native_mqmd
from mq_adapters.plausible_clock import PlausibleClock
from tests.fuzz import clients, header_vectors, mqtt_peer, queue_managers, trails, worlds
from tests.fuzz.canonical import attempted, raised, without_types
from tests.fuzz.choices import COLUMN_VALUES, Choices
from tests.fuzz.mqtt_peer import whole_and_cut
from tests.mq_adapters.test_mqmd import VECTOR

Reader = Callable[[bytes], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`begin` makes the reader of a batch, and what it does at the end is compared too."""

    begin: Callable[[], AbstractContextManager[Reader]]
    seeds: Callable[[], Iterable[bytes]]
    batch: int = 200


def outcomes(subject: Subject, inputs: list[bytes], tell: Callable[[int], object] = int) -> list[str]:
    """One text for each input, with the log lines of its time, and one for the end. `tell` gets the place of each."""
    made: list[str] = []
    log = _Log()
    logging.getLogger().addHandler(log)
    try:
        with subject.begin() as reader:
            for place, given in enumerate(inputs):
                tell(place)
                made.append(log.behind(attempted(functools.partial(reader, given))))
            tell(len(inputs))
    except Exception as error:
        made.append(log.behind(raised(error)))
    else:
        made.append(log.behind("ends well"))
    finally:
        logging.getLogger().removeHandler(log)
    return made


class _Log(logging.Handler):
    """Keeps log lines in place of showing them."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(f"{record.levelname} {record.getMessage()}")

    def behind(self, outcome: str) -> str:
        """An outcome, and the lines since the last one."""
        lines, self._lines = self._lines, []
        return "\n".join((outcome, *map(without_types, lines)))


# -- MQTT --------------------------------------------------------------------------------------------------------------


def connection(given: bytes) -> object:
    """An MQTT connection, as `connections.py` has it: whole, and cut."""
    if len(given) < 2:
        return None
    whole, cut = whole_and_cut(given)
    return whole.all_outcome(), cut.all_outcome()


def flows(given: bytes) -> object:
    """Outgoing flows, with acknowledgements that come in any order, and numbers at the edges."""
    choices = Choices(given)
    numbers = 1 + choices.byte() % 5, choices.number()
    made = OutgoingFlows("c1", clean_session=False, maximum_in_flight=numbers[0])
    told: list[object] = [attempted(lambda: OutgoingFlows("c2", clean_session=True, maximum_in_flight=numbers[1]))]
    while not choices.is_over:
        step, identifier, number = choices.byte(), choices.byte() % 7, choices.number()
        call = functools.partial(_FLOW_STEPS[step % len(_FLOW_STEPS)], made, identifier, number)
        told.append(attempted(call))
    return told, made.window(), made.unfinished(), made.overdue(), made.outgoing


_ANSWERS: Final = (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP)
_FLOW_STEPS: Final[tuple[Callable[[OutgoingFlows, int, int], object], ...]] = (
    lambda flows, identifier, number: flows.start(f"token {identifier}", number % 3 if identifier else number),
    lambda flows, identifier, number: flows.start((identifier,), 1 + number % 2),
    lambda flows, identifier, number: flows.restore(
        identifier or number, b"token", 1 + number % 2, list(OutgoingState)[number % 5]
    ),
    lambda flows, identifier, number: flows.release(identifier),
    lambda flows, identifier, number: flows.finish(identifier),
    lambda flows, identifier, number: flows.repeats_due(number, identifier),
    lambda flows, identifier, number: flows.note_acknowledgement(_ANSWERS[number % 4], identifier),
    lambda flows, identifier, number: flows.note_acknowledgement(int(_ANSWERS[number % 4]), identifier or number),
    lambda flows, identifier, number: flows.note_refusal(_ANSWERS[number % 4], identifier, number, None),
    lambda flows, identifier, number: flows.check_order(_ANSWERS[number % 4], identifier),
    lambda flows, identifier, number: flows.begin_connection(number),
    lambda flows, identifier, number: flows.window(),
)


def sent_packets(given: bytes) -> object:
    """The encoders of packets, with numbers and texts that MQTT cannot express among others."""
    choices = Choices(given)
    return attempted(lambda: choices.of(_ENCODERS)(choices))


_PROPERTY_TEXTS: Final = (None, "", "text", "\\ud800", "x\\0", "\\U0001f600" * 20_000)


def _answer(choices: Choices) -> ReasonProperties | None:
    return choices.of((None, ReasonProperties(reason_string=choices.of(_PROPERTY_TEXTS)), ReasonProperties()))


_ENCODERS: Final[tuple[Callable[[Choices], object], ...]] = (
    lambda c: wire.encode_remaining_length(c.number()),
    lambda c: wire.largest_remaining_length(c.number()),
    lambda c: wire.encode_text(c.text()),
    lambda c: wire.encode_binary(c.data() * (c.number() % 400)),
    lambda c: packets.connack(bool(c.byte() & 1), c.number(), level=c.of((3, 4, 5, 6))),
    lambda c: packets.connack(
        False,
        c.byte(),
        level=5,
        properties=ConnackProperties(
            session_expiry_s=c.number(), maximum_packet_bytes=c.number(), reason_string=c.of(_PROPERTY_TEXTS)
        ),
    ),
    lambda c: packets.publish_header(
        c.text(),
        c.number(),
        qos=c.byte() % 4,
        retain=bool(c.byte() & 1),
        duplicate=bool(c.byte() & 1),
        packet_identifier=c.number(),
        properties=c.data(),
    ),
    lambda c: packets.publish(
        c.text(),
        c.data(),
        qos=c.number(),
        packet_identifier=c.number(),
        level=c.of((4, 5)),
        properties=PublishProperties(
            message_expiry_s=c.number(), topic_alias=c.number(), subscription_identifiers=(c.number(),)
        ),
    ),
    lambda c: packets.puback(c.number(), c.number(), _answer(c)),
    lambda c: packets.pubrec(c.number(), c.byte(), _answer(c)),
    lambda c: packets.pubrel(c.number(), bool(c.byte() & 1), c.of((3, 4, 5)), reason_code=c.number()),
    lambda c: packets.pubcomp(c.number(), c.number(), _answer(c)),
    lambda c: packets.suback(c.number(), c.data(), level=c.of((3, 4, 5)), explanation=_answer(c)),
    lambda c: packets.unsuback(c.number(), c.data(), level=c.of((3, 4, 5)), explanation=_answer(c)),
    lambda c: packets.disconnect(
        c.number(), c.of((None, DisconnectProperties(session_expiry_s=c.number(), server_reference=c.text())))
    ),
    lambda c: wire.decode_plain_texts([c.data() for _ in range(c.byte() % 4)]),
    lambda c: wire.decode_remaining_length(c.data(), c.number() % 8),
    lambda c: wire.decode_remaining_length(bytearray(c.data()), c.number()),
)


# -- headers and descriptors -------------------------------------------------------------------------------------------


def header(given: bytes) -> object:
    """The header of a publication by its template, and by properties of MQTT 5."""
    choices = Choices(given)
    template = _TEMPLATES[choices.byte() % len(_TEMPLATES)]
    pairs = [(choices.text(), choices.text()) for _ in range(choices.byte() % 3)]
    folder = usr_folder.carrier_folder(tuple(pairs)) if choices.byte() & 1 else ""
    topic = choices.rest().decode("utf-8", "surrogateescape")
    return attempted(
        lambda: template.header(topic, folders=(folder,) if folder else (), data=() if folder else tuple(pairs))
    )


_TEMPLATES: Final = tuple(
    PublicationTemplate(Publish(topics=("topic",), publication_options=options), dialect)
    for dialect in Dialect
    for options in (NO_PUBLICATION_OPTIONS, PublicationOption.RETAIN_PUBLICATION)
)


def carried(given: bytes) -> object:
    """Properties of a PUBLISH or will, into a header and back."""
    choices = Choices(given)
    section = choices.of((property_codec.PUBLISH, property_codec.WILL))
    style = choices.of(("one_json", "each"))
    data = choices.rest()
    told = attempted(lambda: section.read(wire.Fields(data, 0, len(data))))
    if told.startswith("raises"):
        return told
    properties = section.read(wire.Fields(data, 0, len(data)))
    pairs = usr_folder.carried_pairs_of(properties, style)
    folder = usr_folder.carrier_folder(pairs.pairs)
    expiry = usr_folder.expiry_of(properties)
    due = usr_folder.expires_us(expiry, 10**15)
    return told, pairs, folder, expiry, due, usr_folder.expiry_until(due, 10**15 + 3), _read_back(pairs.pairs)


def _read_back(pairs: Iterable[tuple[str, str]]) -> object:
    return attempted(lambda: usr_folder.read_properties(dict(pairs)))


def texts(given: bytes) -> object:
    """Texts under the names of carried properties, as anyone may write them in MQ."""
    choices = Choices(given)
    found = {choices.of(sorted(usr_folder.CARRIED_NAMES)): choices.text() for _ in range(1 + choices.byte() % 4)}
    return _read_back(found.items())


def command(given: bytes) -> object:
    """A message from outside, read as a command and as a publication."""
    if not given:
        return None
    described = header_vectors.pick(given[0])
    message = Message(MessageDescriptor(**described), given[1:])
    read = attempted(lambda: read_command_header(message)) if given[0] % 4 < 2 else None
    publications = Publications(own_name="QM", queue_name="Q", routes=Routes((), (), own_dialect=Dialect.MQRFH2))
    publication = attempted(lambda: _publication(publications, message))
    return read, publication


def _publication(publications: Publications, message: Message) -> object:
    found = publications.of(message)
    if found is None:
        return None
    names = ("topics", "topic_fields", "is_retained", "retains", "body_offset", "carried")
    shown = [getattr(found, name) for name in names]
    return (
        shown,
        found.qos(message),
        found.fits(message),
        publications.context(found, message) if found.topics else None,
    )


def descriptor(given: bytes) -> object:
    """MQMD as 364 bytes."""
    choices = Choices(given)
    read = choices.of((read_mqmd, read_delivered_mqmd))
    now_us, data = choices.number(), choices.rest()
    body = data[364:]
    told = attempted(lambda: read(data[:364], body))
    if told.startswith("raises"):
        return told
    message = read(data[:364], body)
    message.expires_us = now_us + 1
    return told, attempted(lambda: write_mqmd(message, now_us=now_us)), attempted(lambda: write_native_mqmd(message))


# -- the store ---------------------------------------------------------------------------------------------------------


def packed_row(given: bytes) -> object:
    """A packed value of the store, read and packed again."""
    choices = Choices(given)
    read = choices.of(_UNPACKERS)
    data = choices.rest()
    return attempted(lambda: read(data))


def _again(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    def read_and_pack(data: bytes) -> object:
        found = read(data)
        return found, attempted(lambda: found.pack())

    return read_and_pack


_UNPACKERS: Final[tuple[Callable[[bytes], object], ...]] = (
    _again(unpack_descriptor),
    _again(SessionRow.unpack),
    _again(SubscriptionRow.unpack),
    _again(HeldPublish.unpack),
    lambda data: _account(data),
    unpack_publications,
    lambda data: list(stored_registrations([(b"client", data)], b"identity")),
    lambda data: SubscriptionRow.read_key(data),
)


def _account(data: bytes) -> object:
    account = unpack_account(b"qORDERS", data)
    return account, attempted(account.row)


@contextmanager
def rows() -> Iterator[Reader]:
    """Rows of messages and of state, with values of other types, and checksums that fit or not."""
    reader = RowReader()

    def read(given: bytes) -> object:
        choices = Choices(given)
        row = list(choices.of(_ROWS))
        for _ in range(choices.byte() % 3):
            row[choices.byte() % len(row)] = choices.of(COLUMN_VALUES)
        is_message = len(row) == len(_ROWS[0])
        if choices.byte() & 1:
            attempted(lambda: _fit(row))
        if is_message:
            return row, attempted(lambda: reader.message(tuple(row)))
        return row, attempted(lambda: checked_state(choices.byte(), tuple(row)))

    yield read


def _fit(row: list[object]) -> None:
    if len(row) == len(_ROWS[0]):
        numbers = row[0] ^ row[1] ^ row[4] ^ row[5]
        row[-1] = message_checksum(descriptor_checksum(row[6]), numbers, row[7], row[8])
    else:
        row[-1] = state_checksum(3, *row[:2])


def _rows() -> Iterator[tuple[object, ...]]:
    for number in range(1, 5):
        described = MessageDescriptor(persistence=1, priority=number, msg_id=bytes((number,)) * 24, reply_to_q="Q")
        message = Message(described, b"body", b"origin" if number > 1 else b"")
        message.sequence, message.put_us = number << 16 * (number - 1), 1_800_000_000_000_000
        yield rows_of([(7, message)])[0]
    yield b"key", b"value", state_checksum(3, b"key", b"value")


_ROWS: Final = tuple(_rows())


# -- the clock ---------------------------------------------------------------------------------------------------------


def clock(given: bytes) -> object:
    """Clocks that jump."""
    choices = Choices(given)
    wall, boot, is_synchronised = [1_800_000_000_000_000], [1_000_000], [False]
    newest = choices.of((0, wall[0] - 5, wall[0] + 10**12, 2**63))
    made = PlausibleClock(
        newest, wall_us=lambda: wall[0], boot_us=lambda: boot[0], is_synchronised=lambda: is_synchronised[0]
    )
    told: list[object] = []
    while not choices.is_over:
        boot[0] += choices.of((10**3, 10**5, 10**6, 61 * 10**6, 4 * 3_600 * 10**6))
        wall[0] += choices.of((10**3, 10**5, 10**6, 61 * 10**6, 4 * 3_600 * 10**6, -(10**12), 10**12, -(2**62), 2**62))
        is_synchronised[0] = bool(choices.byte() & 1)
        if choices.byte() % 8 == 0:
            told.append(made.believe("somebody knows"))
        elif choices.byte() % 8 == 0:
            made.not_before(wall[0] + choices.number())
        told.append((made.now_us(), made.state, made.jumps, made.doubt_us, made.events()))
    return told


# -- the table ---------------------------------------------------------------------------------------------------------


def _chosen(name: str, number: int = 20, length: int = 48) -> Callable[[], list[bytes]]:
    """Inputs whose bytes are choices: where to begin does not matter."""
    chance = random.Random(name)
    return lambda: [chance.randbytes(length) for _ in range(number)]


def _packed() -> Iterator[bytes]:
    """A packed value for each of `_UNPACKERS`."""
    will = Will("t", b"gone", 1, True, WillProperties(will_delay_s=5, user_properties=(("n", "v"),)))
    session = SessionRow(7, 5, False, True, will, {}, "user", {"QM A": (1, ["t/#"])}, 60, 0, 0, {}, b"net", 9).pack()
    earlier = [4, 7, 5, False, True, ["t", b"gone", 1, True], {"t": 1}, "user", {}, 60, 0, 0, {"t": [False, True, 3]}]
    values = (
        MessageDescriptor(priority=3, reply_to_q="Q", correl_id=b"c" * 24, expiry=2**31 - 1).pack(),
        session,
        SubscriptionRow(2, True, False, 268_435_455).pack(),
        HeldPublish(2**40, "t", True, b"0\3\0\1t", b"x", 5, 5).pack(),
        ormsgpack.packb([1, 2, 3, [4] * 9, [5] * 9]),
        ormsgpack.packb([1, 2, 3, [4] * 8]),
        session,
        SubscriptionRow.key(2**63, "t/#"),
    )
    for place, value in enumerate(values):
        yield bytes((place,)) + value
    for version in range(1, 6):
        yield b"\1" + ormsgpack.packb([version, *earlier[1 : 8 + version]])


def _descriptors() -> Iterator[bytes]:
    for reader in range(2):
        yield bytes((reader, 5)) + VECTOR + b"body"


def _topics() -> list[bytes]:
    topics = ("t", "a/b/c", "", "a b", 'a"b', "a&b<c>", "a%*?", "\U0001f600", "x" * 1_025, "\x7f", "\ufffe", "é")
    return [bytes((number, 0, 0)) + topic.encode() for number, topic in enumerate(topics)] + [
        bytes((number, 1, 1)) + b"n\1v" + bytes((number & 1,)) + b"t/u" for number in range(4)
    ]


def _properties() -> Iterator[bytes]:
    for section, made in ((0, PublishProperties), (1, WillProperties)):
        for text in ("v", "\U0001f600", "&<>", "x" * 300):
            properties = made(
                payload_format_indicator=1,
                message_expiry_s=214_748_365,
                content_type=text,
                response_topic="r",
                correlation_data=b"\0\xff",
                user_properties=(("n", text), ("n", "2")),
            )
            codec = (property_codec.PUBLISH, property_codec.WILL)[section]
            yield bytes((section, len(text) & 255)) + codec.encode(properties)


def _put_messages() -> Iterator[bytes]:
    for number, (_, seed) in enumerate(header_vectors.seeds()):
        yield seed[:1] + bytes((number * 37 & 255,)) + seed[1:]


def _of(read: Reader) -> Callable[[], AbstractContextManager[Reader]]:
    """Of a reader that keeps nothing."""
    return lambda: nullcontext(read)


def _only_data(seeds: Callable[[], Iterable[tuple[str, bytes]]]) -> Callable[[], list[bytes]]:
    return lambda: [data for _, data in seeds()]


SUBJECTS: Final[dict[str, Subject]] = {
    "connection": Subject(begin=_of(connection), seeds=_only_data(mqtt_peer.seeds)),
    "flows": Subject(begin=_of(flows), seeds=_chosen("flows")),
    "sent_packets": Subject(begin=_of(sent_packets), seeds=_chosen("sent_packets", 60)),
    "header": Subject(begin=_of(header), seeds=_topics),
    "carried": Subject(begin=_of(carried), seeds=lambda: list(_properties())),
    "texts": Subject(begin=_of(texts), seeds=_chosen("texts")),
    "command": Subject(begin=_of(command), seeds=_only_data(header_vectors.seeds)),
    "descriptor": Subject(begin=_of(descriptor), seeds=lambda: list(_descriptors())),
    "packed_row": Subject(begin=_of(packed_row), seeds=lambda: list(_packed())),
    "rows": Subject(begin=rows, seeds=_chosen("rows", length=10)),
    "clock": Subject(begin=_of(clock), seeds=_chosen("clock")),
    **{
        name: Subject(begin=functools.partial(worlds.bridge, **options), seeds=_only_data(clients.seeds), batch=25)
        for name, options in worlds.GATEWAYS.items()
    },
    "applications": Subject(
        begin=lambda: worlds.applications(Dialect.MQRFH2), seeds=lambda: list(_put_messages()), batch=25
    ),
    "applications_of_mqrfh": Subject(
        begin=lambda: worlds.applications(Dialect.MQRFH), seeds=lambda: list(_put_messages()), batch=25
    ),
    "queues": Subject(begin=queue_managers.queues, seeds=_chosen("queues", 60, 200), batch=25),
    "trails": Subject(begin=trails.audited, seeds=_chosen("trails", 60, 40), batch=50),
    "store": Subject(begin=worlds.store, seeds=_chosen("store", 60, 16), batch=25),
}

"""What the gateway notes of each fact, and the records that readers of the trail make of a note.

A packed batch is msgpack: [version, batch number, notes as packed bytes, header contexts]. A note is a flat list: its
NoteKind, the time in microseconds, then its items as the table names them. A header context is what many notes say of
one header (and, for a channel, of one batch): a batch has it once, as a list of its name and its facts, and a note has
its place in that list. An item that has the name of a field is that field; the others are:

    header          fixed and variable header of a PUBLISH
    persistence     1: the copy does not survive a restart, 2: it does; 0: the note does not tell
    packet_part     what of a packet the command was made from. SUBSCRIBE, UNSUBSCRIBE: one entry (length, filter,
                    requested QoS). Will: its topic (length, text), a byte with QoS 0x06 and RETAIN 0x01, at level 5 its
                    properties behind that, with their length in front. PUBLISH: its header. Else empty.
    aliased_topic   the topic, where the packet names it by a topic alias alone

A message identifier stands in a note as the number that ends a MsgId of this store; 0 is none. An empty text and a
number 0 say nothing. A message that the conversion service put keeps the MsgId of the one that it took; their numbers
differ. Batches that an earlier version packed may still be on the audit queue: items and facts are added at the end.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from spark_audit.record.fields import Form
from spark_audit.record.header_contexts import (
    ARRIVAL,
    DELIVERY,
    PASSAGE,
    SERVICE,
    TAKEN_COMMAND,
    TRANSLATION,
    HeaderContext,
    Part,
    Rule,
)
from spark_audit.record.header_contexts import if_any as _if_any
from spark_audit.record.header_contexts import values as _values
from spark_audit.record.kinds import Kind

BATCH_VERSION: Final = 1


class NoteKind(IntEnum):
    """First item of a note. Stored: never reuse a number."""

    PUBLISHED = 1
    ACCEPTED = 2
    RELEASED = 3
    REQUESTED = 4
    COPIED = 5
    DELIVERED = 6
    ACKNOWLEDGED = 7
    CONFIRMED = 8
    REFUSED = 9
    DEAD_LETTERED = 10
    DROPPED = 11
    STARTED = 12
    SESSION = 13
    SERVED = 14
    FORWARDED = 15
    RECEIVED = 16
    REDRIVEN = 17
    REPEATED = 18
    OPERATED = 19
    CLOCK_JUMPED = 20
    RESTORED = 21
    LOGINS_REFUSED = 22
    COMMANDED = 23
    LOST = 24
    STOCK = 25
    TOPICS_REFUSED = 26
    FILE_READ = 27
    MQPUT = 28
    MQGET = 29
    INVENTORY = 30
    ANSWERED = 31
    CONNECTS_REFUSED = 32
    PROGRAM = 33
    PROGRAMS_REFUSED = 34


_CLIENT: Final = ("client", "session_epoch")
_WHO: Final = ("user", "proof", "address", "listener", "certificate_subject")
_APPLICATION: Final = ("operator", "application", "user_identifier")
_EXCHANGE: Final = (*_CLIENT, "exchange")
_OF_A_START: Final = ("gateway_name", "is_in_use", "stream_rules", "points")
_PAYLOAD_ITEMS: Final = ("payload_bytes", "payload_sha256")
_SENT_ITEMS: Final = ("sent_bytes", "sent_sha256")
_LEVEL_5: Final = ("protocol_level", "aliased_topic")

_INCOMING: Final = Part(Rule.INCOMING, ("direction", *_EXCHANGE), _EXCHANGE)
_ASKING: Final = Part(Rule.INCOMING, ("direction", *_CLIENT), _CLIENT)
_OUTGOING: Final = Part(Rule.OUTGOING, ("direction", *_EXCHANGE), _EXCHANGE)
_OWNER: Final = Part(Rule.OWNER, ("direction", *_EXCHANGE), _EXCHANGE)
_PACKET: Final = ("packet_type", "packet_identifier", "protocol_level")
_FLAGS: Final = ("qos", "retain", "duplicate")
_PUBLISH: Final = Part(Rule.PUBLISH, (*_PACKET, *_FLAGS), ("header", "protocol_level"))
_BOTH_QOS: Final = ("published_qos", "granted_qos")
_PUBLISH_OUT: Final = Part(
    Rule.PUBLISH, (*_PACKET, "qos", *_BOTH_QOS, "retain", "duplicate"), ("header", "protocol_level", *_BOTH_QOS)
)
_TOPIC: Final = Part(Rule.TOPIC, ("topic",), ("header", "aliased_topic"))
_PAYLOAD: Final = Part(Rule.PAYLOAD, _PAYLOAD_ITEMS, _PAYLOAD_ITEMS)
#: An earlier version's note of a copy has no payload.
_PAYLOAD_IF_HASHED: Final = (
    Part(Rule.IF_ANY, ("payload_bytes",), _PAYLOAD_ITEMS),
    _if_any("payload_sha256"),
)
_MESSAGE: Final = _if_any("message_id")
_LASTS: Final = (Part(Rule.TRUTH_IF_TOLD, ("persistent",), ("persistence",)), _if_any("in_memory"))


@dataclass(frozen=True, slots=True)
class RecordOf:
    """A record that is made of a note: its parts beside those of the header context, where `context` is one."""

    kind: Kind
    parts: tuple[Part, ...]
    context: HeaderContext | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A row of the table: the items of a note behind its time, and its records. It may end before `optional` items."""

    kind: NoteKind
    meaning: str
    items: tuple[str, ...]
    records: tuple[RecordOf, ...]
    optional: tuple[str, ...] = field(default=())


_REFUSED_CONNECT: Final = ("client", "network", "protocol_level", "rule", "codes", "reason")
_PROGRAM: Final = ("program", "event", "operator", "user_identifier")
_PROGRAM_IF_ANY: Final = ("application", *_WHO, "channel", "reason")
_REFUSED: Final = ("event", "user_class", "logins", "since_us")
_REFUSED_PROGRAM: Final = ("user", "network", "listener", "channel", "rule", "reason_code", "reason")
_MQI_ITEMS: Final = (
    *("application", "operator", "unit_of_work", "user_identifier", "queue"),
    *("message_id", "correl_id", "persistent", *_PAYLOAD_ITEMS),
)
_MQI: Final = (
    *(_MESSAGE, _if_any("correlation_id", "correl_id"), *_values("queue", "persistent"), _PAYLOAD),
    *map(_if_any, (*_APPLICATION, "unit_of_work", "program")),
)
_LASTING: Final = ("sessions", "filters", "registrations", "retained_publications")
_PUT_OF_PUBLISH: Final = RecordOf(
    Kind.PUT,
    (_INCOMING, _PUBLISH, _MESSAGE, Part(Rule.MQTT_BYTES, ("input_format", "input"), ("header",)), _PAYLOAD),
    TRANSLATION,
)
_ACCEPTED: Final = RecordOf(Kind.ACCEPTED, (_INCOMING, _PUBLISH, _TOPIC, _PAYLOAD))
_PASSED: Final = (_MESSAGE, *_values("target_message_id"))

NOTES: Final = (
    Note(
        NoteKind.PUBLISHED,
        "A PUBLISH of QoS 0 or 1 was accepted and put in one unit of work.",
        (*_EXCHANGE, "header", *_PAYLOAD_ITEMS, "message_id", "translation"),
        (_ACCEPTED, _PUT_OF_PUBLISH),
        _LEVEL_5,
    ),
    Note(
        NoteKind.ACCEPTED,
        "A PUBLISH of QoS 2 was stored, and waits for its PUBREL.",
        (*_EXCHANGE, "header", *_PAYLOAD_ITEMS),
        (_ACCEPTED,),
        _LEVEL_5,
    ),
    Note(
        NoteKind.RELEASED,
        "The PUBREL of an accepted PUBLISH came, and the message was put.",
        (*_EXCHANGE, "header", *_PAYLOAD_ITEMS, "message_id", "translation"),
        (_PUT_OF_PUBLISH,),
        _LEVEL_5,
    ),
    Note(
        NoteKind.REQUESTED,
        "The gateway put a command for a client: of SUBSCRIBE, UNSUBSCRIBE, a will, a PUBLISH, or of no packet.",
        (*_CLIENT, "packet_type", "packet_identifier", "packet_part", *_PAYLOAD_ITEMS, "message_id", "translation"),
        (
            RecordOf(
                Kind.PUT,
                (
                    _ASKING,
                    Part(
                        Rule.REQUEST,
                        (*_PACKET, *_FLAGS),
                        ("packet_type", "packet_identifier", "packet_part", "protocol_level"),
                    ),
                    _MESSAGE,
                    Part(Rule.MQTT_BYTES, ("input_format", "input"), ("packet_part",)),
                    _PAYLOAD,
                ),
                TRANSLATION,
            ),
        ),
        ("protocol_level",),
    ),
    Note(
        NoteKind.COPIED,
        "The broker put a copy of a publication on the queue of a subscriber.",
        ("source_message_id", "message_id", "delivery"),
        (RecordOf(Kind.PUT, (_MESSAGE, _if_any("source_message_id"), *_PAYLOAD_IF_HASHED, *_LASTS), DELIVERY),),
        (*_PAYLOAD_ITEMS, "persistence", "in_memory"),
    ),
    Note(
        NoteKind.DELIVERED,
        "The gateway handed a message to a client.",
        (*_EXCHANGE, "message_id", "header", *_PAYLOAD_ITEMS, "granted_qos", "published_qos", "arrival"),
        (
            RecordOf(
                Kind.DELIVERED,
                (
                    *(_OUTGOING, _PUBLISH_OUT, _TOPIC, _MESSAGE, *map(_if_any, _SENT_ITEMS)),
                    *(Part(Rule.MQTT_BYTES, ("output_format", "output"), ("header",)), _PAYLOAD),
                ),
                ARRIVAL,
            ),
        ),
        (*_LEVEL_5, *_SENT_ITEMS),
    ),
    Note(
        NoteKind.ACKNOWLEDGED,
        "A client acknowledged a message.",
        (*_EXCHANGE, "packet_type", "packet_identifier", "message_id"),
        (RecordOf(Kind.ACKNOWLEDGED, (_OUTGOING, *_values("packet_type", "packet_identifier"), _MESSAGE)),),
    ),
    Note(
        NoteKind.CONFIRMED,
        "The gateway acknowledged exchanges of a client.",
        (*_CLIENT, "packet_type", "exchanges"),
        (RecordOf(Kind.CONFIRMED, (_ASKING, *_values("exchanges", "packet_type"), _if_any("codes"))),),
        ("codes",),
    ),
    Note(
        NoteKind.REFUSED,
        "The broker or the gateway refused a command.",
        (*_EXCHANGE, "command", "message_id", "reason_code", "reason"),
        (RecordOf(Kind.REFUSED, (_INCOMING, *_values("command", "reason_code"), _MESSAGE, _if_any("reason"))),),
    ),
    Note(
        NoteKind.DEAD_LETTERED,
        "A message went to the dead-letter queue.",
        (*_EXCHANGE, "queue", "message_id", "dead_letter_id", "reason_code"),
        (
            RecordOf(
                Kind.DEAD_LETTERED, (_OWNER, *_values("queue", "reason_code"), _MESSAGE, _if_any("dead_letter_id"))
            ),
        ),
    ),
    Note(
        NoteKind.DROPPED,
        "A message ended without a delivery. The reason quotes nothing of the message, and stands in clear.",
        (*_EXCHANGE, "queue", "message_id", "reason"),
        (
            RecordOf(
                Kind.DROPPED,
                (_OWNER, *_values("queue"), _MESSAGE, Part(Rule.VALUE, ("reason",), ("reason",), Form.TEXT)),
            ),
        ),
    ),
    Note(
        NoteKind.STARTED,
        "The gateway began to run.",
        ("code_version", "table_version", "configuration_sha256"),
        (
            RecordOf(
                Kind.STARTED,
                (
                    *_values("code_version", "table_version", "configuration_sha256"),
                    *map(_if_any, _OF_A_START),
                ),
            ),
        ),
        _OF_A_START,
    ),
    Note(
        NoteKind.SESSION,
        "An MQTT session changed. Who its connection is, or the last one of this run.",
        (*_CLIENT, "event", "protocol_level", "clean_session"),
        (
            RecordOf(
                Kind.SESSION,
                (
                    *_values(*_CLIENT, "event", "protocol_level", "clean_session"),
                    *map(_if_any, (*_WHO, "clean_start", "codes")),
                ),
            ),
        ),
        (*_WHO, "clean_start", "codes"),
    ),
    Note(
        NoteKind.SERVED,
        "The conversion service took a message and put it with a converted header.",
        ("source_message_id", "message_id", "persistent", *_PAYLOAD_ITEMS, "service"),
        (RecordOf(Kind.PUT, (_MESSAGE, _if_any("source_message_id"), *_values("persistent"), _PAYLOAD), SERVICE),),
    ),
    Note(
        NoteKind.FORWARDED,
        "A channel handed a message to the target's queue manager.",
        ("message_id", "target_message_id", "passage"),
        (RecordOf(Kind.FORWARDED, _PASSED, PASSAGE),),
    ),
    Note(
        NoteKind.RECEIVED,
        "A channel took a message from the target's queue manager.",
        ("message_id", "target_message_id", "passage"),
        (RecordOf(Kind.RECEIVED, _PASSED, PASSAGE),),
    ),
    Note(
        NoteKind.REDRIVEN,
        "An operator put a dead letter back on its queue.",
        (*_EXCHANGE, "queue", "dead_letter_id", "message_id"),
        (RecordOf(Kind.REDRIVEN, (_OWNER, *_values("queue"), _if_any("dead_letter_id"), _MESSAGE)),),
    ),
    Note(
        NoteKind.REPEATED,
        "A PUBLISH came under a packet identifier that is still in use.",
        (*_EXCHANGE, "header", *_PAYLOAD_ITEMS, "event"),
        (RecordOf(Kind.REPEATED, (_INCOMING, _PUBLISH, _TOPIC, _PAYLOAD, *_values("event"))),),
        _LEVEL_5,
    ),
    Note(
        NoteKind.OPERATED,
        "An operator gave an order that changed something.",
        ("operator", "command", "queue", "object", "messages", "reason"),
        (
            RecordOf(
                Kind.OPERATED,
                (
                    *_values("operator", "command", "messages"),
                    *map(_if_any, ("queue", "object", "reason", "message_ids")),
                ),
            ),
        ),
        ("message_ids",),
    ),
    Note(
        NoteKind.CLOCK_JUMPED,
        "The wall clock jumped, or agrees again.",
        ("event", "jump_us", "reason"),
        (RecordOf(Kind.CLOCK_JUMPED, (*_values("event", "jump_us"), _if_any("reason"))),),
    ),
    Note(
        NoteKind.RESTORED,
        "The trail has a gap that the gateway knows of.",
        (
            *("event", "gateway_before", "first_missing", "last_missing", "first_missing_batch", "last_missing_batch"),
            *("operator", "reason"),
        ),
        (
            RecordOf(
                Kind.RESTORED,
                (
                    *_values("event"),
                    *map(_if_any, ("gateway_before", "first_missing", "last_missing", "first_missing_batch")),
                    *map(_if_any, ("last_missing_batch", "operator", "reason")),
                ),
            ),
        ),
    ),
    Note(
        NoteKind.LOGINS_REFUSED,
        "Logins were refused.",
        ("event", "user_class", "network", "logins", "since_us"),
        (
            RecordOf(
                Kind.LOGINS_REFUSED,
                (*_values("event", "user_class", "logins", "since_us"), *map(_if_any, ("network", "codes"))),
            ),
        ),
        ("codes",),
    ),
    Note(
        NoteKind.COMMANDED,
        "The broker took a command of an MQ application.",
        (
            *("application", "operator", "user_identifier", "message_id", "correl_id", "persistent"),
            *(*_PAYLOAD_ITEMS, "completion", "reason_code", "taken_command"),
        ),
        (
            RecordOf(
                Kind.COMMANDED,
                (
                    *(_MESSAGE, _if_any("correlation_id", "correl_id"), *_values("persistent", "completion")),
                    *(*map(_if_any, (*_APPLICATION, "reason_code", "expires_us", "program")), *_PAYLOAD_IF_HASHED),
                ),
                TAKEN_COMMAND,
            ),
        ),
        ("expires_us", "program"),
    ),
    Note(
        NoteKind.LOST,
        "Messages that were not persistent ended with the gateway's last run. The reason stands in clear.",
        ("queue", "messages", "reason"),
        (
            RecordOf(
                Kind.DROPPED,
                (*_values("queue", "messages"), Part(Rule.VALUE, ("reason",), ("reason",), Form.TEXT)),
            ),
        ),
    ),
    Note(
        NoteKind.STOCK,
        "What is on the queues, between two commits.",
        ("event", "queue", "messages", "queues", "oldest_us", "subscribers", "subscribers_sha256", "depths"),
        (
            RecordOf(
                Kind.STOCK,
                (
                    *_values("event", "messages"),
                    *map(_if_any, ("queue", "queues", "oldest_us", "subscribers", "subscribers_sha256", "depths")),
                ),
            ),
        ),
    ),
    Note(
        NoteKind.TOPICS_REFUSED,
        "Topics were refused.",
        ("event", "client", "user", "rule", "topic", "refusals", "since_us"),
        (
            RecordOf(
                Kind.TOPICS_REFUSED,
                (
                    *_values("event", "refusals", "since_us"),
                    *map(_if_any, ("client", "user", "rule", "topic", "codes")),
                ),
            ),
        ),
        ("codes",),
    ),
    Note(
        NoteKind.FILE_READ,
        "The gateway has read a file that decides.",
        ("event", "setting", "file", "hashed_by", "file_hash"),
        (RecordOf(Kind.FILE_READ, _values("event", "setting", "file", "hashed_by", "file_hash")),),
    ),
    Note(
        NoteKind.MQPUT,
        "An MQ application put a message on a queue.",
        _MQI_ITEMS,
        (RecordOf(Kind.MQPUT, _MQI),),
        ("program",),
    ),
    Note(
        NoteKind.MQGET,
        "An MQ application got a message from a queue, and has removed it.",
        _MQI_ITEMS,
        (RecordOf(Kind.MQGET, _MQI),),
        ("program",),
    ),
    Note(
        NoteKind.INVENTORY,
        "Rows of the store, read between two commits.",
        ("event", "entries", *_LASTING),
        (RecordOf(Kind.INVENTORY, (*_values("event", "entries"), *map(_if_any, (*_LASTING, "gateway_name")))),),
        ("gateway_name",),
    ),
    Note(
        NoteKind.ANSWERED,
        "The gateway decided on the topic filters of a SUBSCRIBE or UNSUBSCRIBE, or of a part of it.",
        (
            *(*_CLIENT, "packet_type", "packet_identifier", "topic_filters"),
            *("requested_qos", "codes", "refused_filters"),
        ),
        (
            RecordOf(
                Kind.ANSWERED,
                (
                    *(_ASKING, *_values("packet_type", "packet_identifier", "topic_filters")),
                    *map(_if_any, ("requested_qos", "codes", "refused_filters")),
                ),
            ),
        ),
    ),
    Note(
        NoteKind.CONNECTS_REFUSED,
        "CONNECTs were refused, and not for their login.",
        ("event", "client", "network", "protocol_level", "rule", "connects", "since_us", "codes", "reason"),
        (
            RecordOf(
                Kind.CONNECTS_REFUSED, (*_values("event", "connects", "since_us"), *map(_if_any, _REFUSED_CONNECT))
            ),
        ),
    ),
    Note(
        NoteKind.PROGRAM,
        "A program of an MQ client connected, or is gone.",
        (*_PROGRAM, *_PROGRAM_IF_ANY),
        (RecordOf(Kind.PROGRAM, (*_values(*_PROGRAM), *map(_if_any, _PROGRAM_IF_ANY))),),
    ),
    Note(
        NoteKind.PROGRAMS_REFUSED,
        "MQ programs were refused.",
        (*_REFUSED, *_REFUSED_PROGRAM),
        (RecordOf(Kind.PROGRAMS_REFUSED, (*_values(*_REFUSED), *map(_if_any, _REFUSED_PROGRAM))),),
    ),
)

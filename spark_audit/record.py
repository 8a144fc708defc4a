"""The audit record: one line of the trail, one fact. Fields, units and allowed values; nothing of Spark here.

A line is one JSON object with the fields below in this order; fields that do not apply are left out; `prev` and `hash`
are the last two keys. `hash` is the SHA-256 (hex) of the line's stored bytes without `,"hash":"..."`, that is up to and
without the comma before it, with the closing brace put back; `prev` is the hash of the line before (64 zeros for the
first line of a trail). Bytes are base64, identifiers hex, times microseconds since 1970 UTC. Where personal data is
keyed, clients, topics and users are hashes, and bytes and the reason of a refusal are encrypted (personal.py).
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: Raised when a field changes its meaning; readers refuse what they do not know.
RECORD_VERSION: Final = 1
ZERO_HASH: Final = "0" * 64


class Kind(StrEnum):
    """What a record says."""

    STARTED = "started"
    SESSION = "session"
    ACCEPTED = "accepted"
    PUT = "put"
    DELIVERED = "delivered"
    ACKNOWLEDGED = "acknowledged"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    DEAD_LETTERED = "dead_lettered"
    DROPPED = "dropped"
    FORWARDED = "forwarded"
    RECEIVED = "received"
    REDRIVEN = "redriven"
    REPEATED = "repeated"
    OPERATED = "operated"
    CLOCK_JUMPED = "clock_jumped"
    RESTORED = "restored"


class ConversionKind(StrEnum):
    """From what to what a header was translated."""

    PACKET_TO_HEADER = "packet_to_header"
    HEADER_TO_HEADER = "header_to_header"
    HEADER_TO_PACKET = "header_to_packet"
    SERVICE = "service"


#: What a record of a kind says in its field `event`.
EVENTS: Final = {
    Kind.SESSION: ("opened", "resumed", "taken_over", "disconnected", "lost", "ended"),
    #: The same PUBLISH again; another message under an identifier whose PUBREL has not come.
    Kind.REPEATED: ("repeat", "identifier_reused"),
    #: The wall clock left the plausible time ahead or behind; it agrees again.
    Kind.CLOCK_JUMPED: ("ahead", "behind", "settled"),
    #: An operator accepted a store that went back; a trail begins without what was before.
    Kind.RESTORED: ("rolled_back", "trail_begun_late"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the record: its JSON name, its type (`long`, `string`, `boolean`, or a list), and what it means."""

    name: str
    type: str
    meaning: str


FIELDS: Final = (
    Field("version", "long", "RECORD_VERSION"),
    Field("sequence", "long", "number of the record in its gateway's trail, from 1, without gaps"),
    Field("batch", "long", "number of the group commit that made the fact durable, from 1, without gaps"),
    Field("gateway", "string", "incarnation of the gateway's store, 24 hex digits"),
    Field("kind", "string", "a Kind"),
    Field("at_us", "long", "when the fact was noted, microseconds since 1970 UTC"),
    Field("direction", "string", "'in': from the client to the gateway; 'out': from the gateway to the client"),
    Field("client", "string", "MQTT client identifier"),
    Field("session_epoch", "long", "number of the session; a client's next clean session has another"),
    Field("exchange", "long", "the session's own number of this exchange in this direction, from 1"),
    Field(
        "exchanges", "array<array<long>>", "confirmed: ranges [first, last] of exchanges that the gateway acknowledged"
    ),
    Field("packet_type", "long", "MQTT packet type, 1 to 14 (1 in a put: the will of that CONNECT)"),
    Field("packet_identifier", "long", "MQTT packet identifier, 1 to 65535"),
    Field(
        "protocol_level",
        "long",
        "session: MQTT level, 3 to 5; of a PUBLISH or a will: 5 where it is of that level, left out before it",
    ),
    Field("clean_session", "boolean", "session: the CONNECT's flag"),
    Field("qos", "long", "QoS of the packet, 0 to 2"),
    Field("published_qos", "long", "delivered: QoS with which the message was published"),
    Field("granted_qos", "long", "delivered: QoS granted to the subscription"),
    Field("retain", "boolean", "RETAIN flag of the packet"),
    Field("duplicate", "boolean", "DUP flag of the packet"),
    Field("topic", "string", "topic name, or filter for a subscription"),
    Field(
        "command",
        "string",
        "publish/subscribe command: Publish, RegSub, DeregSub ...; operated: what was ordered, CLEAR QLOCAL ...",
    ),
    Field(
        "queue",
        "string",
        "queue of the put, or that the message was taken from; forwarded: queue at the target; received: queue here",
    ),
    Field("message_id", "string", "MQMD.MsgId of the message that the record speaks of"),
    Field("correlation_id", "string", "MQMD.CorrelId of that message"),
    Field(
        "source_message_id",
        "string",
        "put by the broker: MsgId of the publication that was copied; by the conversion service: of the message taken",
    ),
    Field("dead_letter_id", "string", "dead_lettered, redriven: MsgId of the message on the dead-letter queue"),
    Field("target_message_id", "string", "forwarded, received: MQMD.MsgId of the message at the target"),
    Field(
        "queue_manager",
        "string",
        "forwarded, received: identifier of the target's queue manager (MQCA_Q_MGR_IDENTIFIER)",
    ),
    Field("channel", "string", "forwarded, received: channel that the message went over"),
    Field("channel_batch", "long", "forwarded, received: number of the channel's batch, one unit of work there"),
    Field("persistent", "boolean", "put: whether the message survives a restart"),
    Field(
        "conversion",
        "string",
        "a ConversionKind, where a header was made from a packet or a header, or a packet from a header",
    ),
    Field("destination", "string", "put: target that it is for; the queue is one of its queue manager"),
    Field("stream", "string", "put for a target: stream there; delivered: stream whose prefix the packet has not"),
    Field(
        "stream_style",
        "string",
        "how the stream is said: 'queue' (by name in MQRFH), 'message_broker' or 'queue_manager' (prefix of the topic)",
    ),
    Field("topic_filters", "array<string>", "put for a target: what its routes bring of the packet's topic filter"),
    Field("user", "string", "put for a target: MQTT user that the header carries"),
    Field("source_client", "string", "delivered: client that a target's publication names; from outside"),
    Field("source_exchange", "long", "delivered: that client's exchange, as the publication names it; from outside"),
    Field("target", "string", "service: the header that was asked for, 'mqrfh' or 'mqrfh2'"),
    Field("mode", "string", "service: 'strict' or 'extended'"),
    Field("input_format", "string", "'MQTT', 'MQHRF' or 'MQHRF2'"),
    Field("input_ccsid", "long", "CodedCharSetId that describes the first input header"),
    Field("input_encoding", "long", "Encoding that describes the first input header"),
    Field("input", "string", "base64: the raw header bytes before: MQTT fixed and variable header, or MQ header chain"),
    Field("output_format", "string", "as input_format"),
    Field("output_ccsid", "long", ""),
    Field("output_encoding", "long", ""),
    Field("output", "string", "base64: the raw header bytes after"),
    Field("dropped_fields", "array<array<string>>", "[name, reason] of each field that was not copied"),
    Field("is_retained", "boolean", "the copy is of a retained publication, sent because of a new subscription"),
    Field("payload_bytes", "long", "length of the payload"),
    Field("payload_sha256", "string", "SHA-256 of the payload, hex"),
    Field("reason_code", "long", "MQRC or MQRCCF number"),
    Field("reason", "string", "the reason in words"),
    Field("event", "string", "session, repeated, clock_jumped, restored: what happened, one of EVENTS"),
    Field("operator", "string", "operated, restored: user of the operating system whose act it was"),
    Field("object", "string", "operated: what the act was on where it is no queue: client, topic, channel"),
    Field("messages", "long", "operated: messages that the act destroyed, took or moved"),
    Field("jump_us", "long", "clock_jumped: microseconds that the wall clock is ahead of the plausible time"),
    Field("gateway_before", "string", "restored: incarnation of the store until then, 24 hex digits"),
    Field("first_missing", "long", "restored: sequence of the first record of the trail that is missing"),
    Field("last_missing", "long", "restored: sequence of the last one, as far as anything that is left tells"),
    Field("first_missing_batch", "long", "restored: number of the first group commit that is missing"),
    Field("last_missing_batch", "long", "restored: number of the last one, as far as anything that is left tells"),
    Field("code_version", "string", "started: version of the program"),
    Field("table_version", "string", "started, service: version of the field-mapping table"),
    Field("configuration_sha256", "string", "started: SHA-256 of the configuration in force, hex"),
    Field("prev", "string", "hash of the record before"),
    Field("hash", "string", "hash of this record"),
)

#: A line ends in `,"hash":"`, 64 hex digits and `"}`: 75 bytes.
HASH_FIELD: Final = b',"hash":"'
HASH_SUFFIX_BYTES: Final = len(HASH_FIELD) + 64 + len(b'"}')


def line_hashes(line: bytes) -> tuple[str, str] | None:
    """The hash that a line (without its line feed) bears, and the one that its bytes have; None where it bears none."""
    body, suffix = line[:-HASH_SUFFIX_BYTES], line[-HASH_SUFFIX_BYTES:]
    if not body or not suffix.startswith(HASH_FIELD) or not suffix.endswith(b'"}'):
        return None
    borne = suffix[len(HASH_FIELD) : -2].decode("latin-1")
    return borne, hashlib.sha256(body + b"}").hexdigest()

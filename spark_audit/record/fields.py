"""Every field of the audit record, in the order in which a line has them.

Identifiers and hashes are hex, bytes are base64, times are microseconds since 1970 UTC. Where personal data is keyed
(personal.py), a name stands as a keyed hash, and raw bytes and reasons are encrypted.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

#: Version of the program whose trails were the first to have a record.
FIRST_VERSION: Final = "0.1.0"
#: MsgIds in one record of an operator's order.
MOST_MESSAGE_IDS: Final = 100
_MICROSECONDS: Final = "microseconds since 1970 UTC"
_LARGEST: Final = 2**63 - 1
#: The end of the year 9999.
_LAST_TIME_US: Final = 253_402_300_799_999_999
#: MQTT 3.1.1 section 2.2.3; MAXMSGL of IBM MQ ends below it.
_LARGEST_PAYLOAD_BYTES: Final = 268_435_455


class Form(Enum):
    """How a field is written: its type in the Parquet schema, and what becomes of personal data in it."""

    NUMBER = ("long", "number")
    FLAG = ("boolean", "true or false")
    TEXT = ("string", "text")
    NAME = ("string", "text; a keyed hash where personal data is keyed")
    WORDS = ("string", "text; encrypted where personal data is keyed")
    BYTES = ("string", "base64; encrypted where personal data is keyed")
    HEX = ("string", "hex digits")
    MESSAGE_ID = ("string", "hex digits of a MsgId that the gateway gave")
    MESSAGE_IDS = ("array<string>", "list of hex digits of MsgIds that the gateway gave")
    DEPTHS = (
        "array<array<string>>",
        "list of [CorrelId, messages, microseconds]; CorrelIds as keyed hashes where personal data is keyed",
    )
    SESSIONS = (
        "array<array<string>>",
        "list of [client, session epoch, user, protocol level, 'connected' or 'away']; names as keyed hashes where"
        " personal data is keyed",
    )
    FILTERS = (
        "array<array<string>>",
        "list of [session epoch, topic filter, granted QoS]; filters as keyed hashes where personal data is keyed",
    )
    REGISTRATIONS = (
        "array<array<string>>",
        "list of [queue, CorrelId, stream, topic, subscription point, content filter, registration options];"
        " CorrelIds and topics as keyed hashes, content filters encrypted where personal data is keyed",
    )
    RETAINED = (
        "array<array<string>>",
        "list of [topic space, topic, subscription point, MsgId of the publication, length of its payload, SHA-256 of"
        " its payload]; topics as keyed hashes where personal data is keyed",
    )
    CORRELATION_ID = ("string", "hex digits; a keyed hash where personal data is keyed")
    MQ_FORMAT = ("string", "Format of an MQ header without its blanks")
    NAMES = ("array<string>", "list of texts; keyed hashes where personal data is keyed")
    RANGES = ("array<array<long>>", "list of ranges [first, last]")
    PAIRS = ("array<array<string>>", "list of pairs [name, reason]")
    POINTS = ("array<array<string>>", "list of pairs [queue, subscription point]")

    def __init__(self, type: str, shown: str) -> None:
        self.type = type
        self.shown = shown


class ConversionKind(StrEnum):
    """From what to what a header was translated."""

    PACKET_TO_HEADER = "packet_to_header"
    HEADER_TO_HEADER = "header_to_header"
    HEADER_TO_PACKET = "header_to_packet"
    SERVICE = "service"


class StreamRules(StrEnum):
    """How the broker tells streams apart, by the dialect in which it is configured."""

    #: A stream is its queue, and a topic space of its own.
    QUEUES = "mq6"
    #: There is one topic space. A stream is the prefix `$SYS/STREAM/<stream>/` of topics.
    PREFIXES = "wmb"
    #: The same, and an MQRFH publication that names no stream is on that of its queue's name.
    IMPLICIT_PREFIXES = "wmb, implicit"


class LoginProof(StrEnum):
    """How a client proved who it is. With NONE, LISTENER and CHANNEL it proved nothing."""

    NONE = "none"
    LISTENER = "listener"
    PASSWORD = "password"
    TOKEN = "token"
    CERTIFICATE = "certificate"
    APPLICATION_TOKEN = "application_token"
    CHANNEL = "channel"


class HashedBy(StrEnum):
    """How a file that decides was hashed (gateway/access/deciding_files.py)."""

    SHA256 = "sha256"
    HMAC = "hmac"
    PUBLIC_KEY = "public_key"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the record.

    `bounds` are the lowest and the highest value, `values` the allowed words, `digits` the number of hex digits; the
    audit reports any other value. `since` is the version of the program that wrote it first.
    """

    name: str
    form: Form
    meaning: str
    unit: str = ""
    bounds: tuple[int, int] | None = None
    values: tuple[str, ...] = ()
    digits: int = 0
    since: str = FIRST_VERSION

    @property
    def type(self) -> str:
        """Type in the Parquet schema: long, string, boolean, or a list of them."""
        return self.form.type


_COUNTED: Final = (0, _LARGEST)
_NUMBERED: Final = (1, _LARGEST)
_QOS: Final = (0, 2)

FIELDS: Final = (
    Field("version", Form.NUMBER, "version of the record format"),
    Field("sequence", Form.NUMBER, "number of the record in its trail, from 1, without gaps", bounds=_NUMBERED),
    Field(
        "batch",
        Form.NUMBER,
        "number of the group commit that made the fact durable, from 1, without gaps",
        bounds=_NUMBERED,
    ),
    Field("gateway", Form.HEX, "incarnation of the gateway's store", digits=24),
    Field("kind", Form.TEXT, "kind of the record"),
    Field("at_us", Form.NUMBER, "time at which the gateway noted the fact", _MICROSECONDS, bounds=(0, _LAST_TIME_US)),
    Field(
        "direction",
        Form.TEXT,
        "'in': from the client to the gateway; 'out': from the gateway to the client",
        values=("in", "out"),
    ),
    Field("client", Form.NAME, "MQTT client identifier"),
    Field(
        "session_epoch", Form.NUMBER, "number of the session; the client's next clean session has another", "", _COUNTED
    ),
    Field(
        "exchange", Form.NUMBER, "the session's own number of this exchange in this direction, from 1", "", _NUMBERED
    ),
    Field("exchanges", Form.RANGES, "exchanges that the gateway acknowledged"),
    Field("packet_type", Form.NUMBER, "MQTT packet type (in a put, 1 is the will of that CONNECT)", "", (0, 14)),
    Field("packet_identifier", Form.NUMBER, "MQTT packet identifier", "", (1, 65_535)),
    Field(
        "protocol_level",
        Form.NUMBER,
        "MQTT protocol level; a PUBLISH or a will has the field only at level 5",
        "",
        (3, 5),
    ),
    Field("clean_session", Form.FLAG, "whether the session ends with its connection"),
    Field("clean_start", Form.FLAG, "whether the CONNECT has the Clean Session or Clean Start flag; left out: no"),
    Field("qos", Form.NUMBER, "QoS of the packet", "", _QOS),
    Field("published_qos", Form.NUMBER, "QoS with which the message was published", "", _QOS),
    Field("granted_qos", Form.NUMBER, "QoS granted to the subscription", "", _QOS),
    Field("retain", Form.FLAG, "RETAIN flag of the packet"),
    Field("duplicate", Form.FLAG, "DUP flag of the packet"),
    Field(
        "topic", Form.NAME, "topic name; topic filter of a subscription; of a refused topic the first 1,000 characters"
    ),
    Field("command", Form.TEXT, "publish/subscribe command (Publish, RegSub, ...); in `operated` the operator's order"),
    Field("queue", Form.TEXT, "queue of the message; in `forwarded` the queue at the target"),
    Field("message_id", Form.MESSAGE_ID, "MQMD.MsgId of the message that the record is about", digits=48),
    Field("correlation_id", Form.CORRELATION_ID, "MQMD.CorrelId of that message", digits=48),
    Field(
        "source_message_id",
        Form.MESSAGE_ID,
        "MsgId of the publication that the broker copied, or of the message that the conversion service took",
        digits=48,
    ),
    Field("dead_letter_id", Form.MESSAGE_ID, "MsgId of the message on the dead-letter queue", digits=48),
    Field("target_message_id", Form.HEX, "MQMD.MsgId of the message at the target", digits=48),
    Field("queue_manager", Form.TEXT, "identifier of the target's queue manager (MQCA_Q_MGR_IDENTIFIER)"),
    Field("channel", Form.TEXT, "channel that carried the message; of an MQ program its server-connection channel"),
    Field("channel_batch", Form.NUMBER, "number of the channel's batch, which is one unit of work"),
    Field("persistent", Form.FLAG, "whether the message survives a restart"),
    Field(
        "in_memory",
        Form.FLAG,
        "whether the copy stays in memory although its publication is persistent, because the subscriber's session ends"
        " with its connection; left out: no",
    ),
    Field(
        "default_persistent",
        Form.FLAG,
        "whether the definition of the queue makes its messages persistent; told of a copy whose registration has"
        " PersAsQueue",
    ),
    Field(
        "conversion",
        Form.TEXT,
        "which translation made the header or the packet",
        values=tuple(ConversionKind),
    ),
    Field("destination", Form.TEXT, "target of the message; the queue belongs to the target's queue manager"),
    Field("stream", Form.TEXT, "stream at the target; in `delivered` the stream whose prefix the gateway removed"),
    Field(
        "stream_style",
        Form.TEXT,
        "how the stream is named: 'queue' (in MQRFH), 'message_broker' or 'queue_manager' (as prefix of the topic)",
    ),
    Field(
        "topic_filters",
        Form.NAMES,
        "topic filters that the routes to the target make of the packet's filter; in `answered` those of the packet",
    ),
    Field("user", Form.NAME, "MQTT user that the header carries; in other records the user of the client"),
    Field("source_client", Form.NAME, "client that the target's publication names; the gateway cannot check it"),
    Field("source_exchange", Form.NUMBER, "exchange that the target's publication names; the gateway cannot check it"),
    Field("target", Form.TEXT, "header format that the conversion service was asked for: 'mqrfh' or 'mqrfh2'"),
    Field("mode", Form.TEXT, "mode of the conversion service: 'strict' or 'extended'"),
    Field("input_format", Form.MQ_FORMAT, "'MQTT', 'MQHRF' or 'MQHRF2'"),
    Field("input_ccsid", Form.NUMBER, "CodedCharSetId that describes the first input header"),
    Field("input_encoding", Form.NUMBER, "Encoding that describes the first input header"),
    Field("input", Form.BYTES, "header before the translation: MQTT fixed and variable header, or MQ header chain"),
    Field("output_format", Form.MQ_FORMAT, "'MQTT', 'MQHRF' or 'MQHRF2'"),
    Field("output_ccsid", Form.NUMBER, "CodedCharSetId that describes the first output header"),
    Field("output_encoding", Form.NUMBER, "Encoding that describes the first output header"),
    Field("output", Form.BYTES, "header after the translation: MQTT fixed and variable header, or MQ header chain"),
    Field("dropped_fields", Form.PAIRS, "each field that the translation did not copy, with the reason"),
    Field("is_retained", Form.FLAG, "whether a new subscription caused this copy of a retained publication"),
    Field(
        "payload_bytes",
        Form.NUMBER,
        "length of the payload; in `mqput` and `mqget` what is behind the MQRFH and MQRFH2 that stand first",
        "bytes",
        (0, _LARGEST_PAYLOAD_BYTES),
    ),
    Field("payload_sha256", Form.HEX, "SHA-256 of the payload", digits=64),
    Field(
        "sent_bytes",
        Form.NUMBER,
        "length of the JSON that the client got in the place of a MapMessage's payload; left out: it got the payload",
        "bytes",
        (1, _LARGEST_PAYLOAD_BYTES),
    ),
    Field("sent_sha256", Form.HEX, "SHA-256 of that JSON", digits=64),
    Field("requested_qos", Form.HEX, "QoS that the client asked for, one byte for each topic filter"),
    Field(
        "codes",
        Form.HEX,
        "codes that the client was told, one byte each: in `answered` one for each topic filter; in `session` the two"
        " bytes of CONNACK, its flags and its code; in other records one code, and none if it is 00 or was not told",
    ),
    Field(
        "refused_filters",
        Form.PAIRS,
        "each topic filter of the packet that was refused: its number in `topic_filters`, from 1, and the rule, as in"
        " `rule`",
    ),
    Field("reason_code", Form.NUMBER, "MQRC or MQRCCF number"),
    Field("reason", Form.WORDS, "the reason in words"),
    Field("event", Form.TEXT, "what happened"),
    Field(
        "operator",
        Form.NAME,
        "user of the operating system who acted; with the name of the application whose token was shown, if one was",
    ),
    Field(
        "program",
        Form.NUMBER,
        "number of the connection of an MQ program; the numbers begin anew at each start of the gateway",
        bounds=_NUMBERED,
    ),
    Field("object", Form.NAME, "client, topic or channel on which the operator acted"),
    Field(
        "messages",
        Form.NUMBER,
        "messages that the operator's order destroyed, took or moved, or that were dropped; in `stock` those that wait",
        "messages",
        _COUNTED,
    ),
    Field(
        "message_ids",
        Form.MESSAGE_IDS,
        f"MsgIds of these messages, the first {MOST_MESSAGE_IDS} of one unit of work",
    ),
    Field("jump_us", Form.NUMBER, "how far the wall clock is ahead of the plausible time", "microseconds"),
    Field("gateway_before", Form.HEX, "incarnation of the store until then", digits=24),
    Field("first_missing", Form.NUMBER, "sequence of the first missing record of the trail", "", _NUMBERED),
    Field("last_missing", Form.NUMBER, "sequence of the last missing record that is known of", "", _NUMBERED),
    Field("first_missing_batch", Form.NUMBER, "number of the first missing group commit", "", _NUMBERED),
    Field("last_missing_batch", Form.NUMBER, "number of the last missing group commit that is known of", "", _NUMBERED),
    Field(
        "user_class",
        Form.TEXT,
        "user of refused logins: 'none'; 'known' or 'unknown' to the password file, and of MQ programs also to the"
        " applications; 'external', of a token or a certificate",
        values=("none", "known", "unknown", "external"),
    ),
    Field(
        "network",
        Form.NAME,
        "network of refused logins, CONNECTs or MQ programs, /24 of IPv4 or /48 of IPv6; none: all other networks",
    ),
    Field("logins", Form.NUMBER, "number of refused logins", "logins", _NUMBERED),
    Field("connects", Form.NUMBER, "number of refused CONNECTs", "CONNECTs", _NUMBERED),
    Field("refusals", Form.NUMBER, "number of refused topics", "refusals", _NUMBERED),
    Field(
        "rule",
        Form.TEXT,
        "reason of a refusal: 'line N' or 'rule#N' of the access list, 'no rule' of it, 'topic object', a key of the"
        " configuration, a limit, a reason of MQ, or an attribute or a status code of a server-connection channel",
    ),
    Field(
        "since_us",
        Form.NUMBER,
        "time of the first refusal that the record counts",
        _MICROSECONDS,
        bounds=(0, _LAST_TIME_US),
    ),
    Field(
        "proof",
        Form.TEXT,
        "how the client proved who it is; 'none': [access] lets everybody in; 'listener': its listener does;"
        " 'application_token': an MQ program, by the token of its application; 'channel': an MQ program proved nothing,"
        " and its channel says who it is (MCAUSER); 'certificate' is also one that such a channel asks for",
        values=tuple(LoginProof),
    ),
    Field("address", Form.NAME, "address of the client without port; behind a load balancer, that of the PROXY header"),
    Field("listener", Form.TEXT, "name of the listener"),
    Field("setting", Form.TEXT, "key of the configuration that names the file, or a mapping table of the program"),
    Field("file", Form.TEXT, "name of the file without its folder"),
    Field(
        "hashed_by",
        Form.TEXT,
        "'sha256': SHA-256 of the file; 'hmac': HMAC-SHA-256 under a key of the store, as the file holds secrets;"
        " 'public_key': SHA-256 of the public key (SubjectPublicKeyInfo, DER) of the file's private key",
        values=tuple(HashedBy),
    ),
    Field("file_hash", Form.HEX, "hash of the file or the key, as `hashed_by` says", digits=64),
    Field("certificate_subject", Form.NAME, "subject of the client's certificate (RFC 4514)"),
    Field("code_version", Form.TEXT, "version of the program"),
    Field("table_version", Form.TEXT, "version of the field-mapping table"),
    Field("gateway_name", Form.TEXT, "name of the gateway in its configuration"),
    Field("configuration_sha256", Form.HEX, "SHA-256 of the configuration in force", digits=64),
    Field(
        "is_in_use",
        Form.FLAG,
        "whether the store had a session, a subscription or a retained publication when the gateway started",
    ),
    Field(
        "stream_rules",
        Form.TEXT,
        "dialect of the broker: in 'mq6' a stream is its queue, in 'wmb' a prefix of topics; with 'implicit', an MQRFH"
        " publication that names no stream is on that of its queue's name",
        values=tuple(StreamRules),
    ),
    Field("points", Form.POINTS, "subscription points of the publications that come on these queues"),
    Field("application", Form.NAME, "name that the MQ application gave itself when it connected"),
    Field("user_identifier", Form.NAME, "MQMD.UserIdentifier of the application's message"),
    Field(
        "unit_of_work",
        Form.NUMBER,
        "number of the application's unit of work; none: the call was a unit of its own",
        "",
        _NUMBERED,
    ),
    Field("topics", Form.NAMES, "topics of the command, or patterns of topics"),
    Field("filter", Form.WORDS, "content filter of the command"),
    Field("completion", Form.TEXT, "completion of the command", values=("ok", "warning", "error")),
    Field("queues", Form.NUMBER, "queues with messages", "queues", _COUNTED),
    Field(
        "expires_us",
        Form.NUMBER,
        "time at which the command expires, and with a RegSub its subscriptions; none: it does not",
        _MICROSECONDS,
        (0, _LAST_TIME_US),
    ),
    Field("oldest_us", Form.NUMBER, "time at which the oldest message was put", _MICROSECONDS, (0, _LAST_TIME_US)),
    Field("subscribers", Form.NUMBER, "CorrelIds of the messages on the queue", "CorrelIds", _COUNTED),
    Field(
        "subscribers_sha256",
        Form.HEX,
        "SHA-256 of the full list: of each CorrelId, ascending, its 24 bytes and its messages as 8 bytes, big-endian",
        digits=64,
    ),
    Field("depths", Form.DEPTHS, "CorrelId, messages, and time at which the oldest was put, of subscribers"),
    Field("entries", Form.NUMBER, "entries of the record; in `complete` those of the whole inventory", "", _COUNTED),
    Field("sessions", Form.SESSIONS, "MQTT sessions"),
    Field("filters", Form.FILTERS, "subscriptions of MQTT sessions"),
    Field("registrations", Form.REGISTRATIONS, "subscriptions of the broker, those of MQTT sessions too"),
    Field("retained_publications", Form.RETAINED, "retained publications"),
    Field("prev", Form.HEX, "hash of the record before", digits=64),
    Field("hash", Form.HEX, "hash of this record", digits=64),
)

#: Place of each field in a line.
FIELD_PLACES: Final = {row.name: place for place, row in enumerate(FIELDS)}

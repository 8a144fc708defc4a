"""Every kind of audit record: meaning, events, fields that it must have, and those that it may have."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spark_audit.record.fields import FIRST_VERSION


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
    LOGINS_REFUSED = "logins_refused"
    COMMANDED = "commanded"
    STOCK = "stock"
    TOPICS_REFUSED = "topics_refused"
    FILE_READ = "file_read"
    MQPUT = "mqput"
    MQGET = "mqget"
    INVENTORY = "inventory"
    ANSWERED = "answered"
    CONNECTS_REFUSED = "connects_refused"
    PROGRAM = "program"
    PROGRAMS_REFUSED = "programs_refused"


@dataclass(frozen=True, slots=True)
class RecordKind:
    """A kind of record.

    `events` are the values of its field `event`, each with its meaning. Without its `required` fields a record of the
    kind says nothing; the audit reports it. What else it may have follows from the notes (record_fields.py).
    """

    kind: Kind
    meaning: str
    required: tuple[str, ...]
    events: Mapping[str, str]
    since: str = FIRST_VERSION


_SESSION: Final = ("client", "session_epoch")
_EXCHANGE: Final = ("direction", *_SESSION, "exchange", "packet_type")
_PASSED: Final = ("message_id", "target_message_id", "queue", "queue_manager", "channel")
_NO_EVENTS: Final[Mapping[str, str]] = {}

KINDS: Final = (
    RecordKind(
        Kind.STARTED,
        "The gateway began to run with this program, mapping table and configuration.",
        ("code_version", "table_version", "configuration_sha256"),
        _NO_EVENTS,
    ),
    RecordKind(
        Kind.SESSION,
        "An MQTT session changed.",
        (*_SESSION, "event"),
        {
            "opened": "a new session began",
            "resumed": "the client connected again and found its session",
            "taken_over": "another connection of the same client replaced this one",
            "disconnected": "the client sent DISCONNECT",
            "lost": "the connection ended without DISCONNECT",
            "ended": "the session and all that it held are gone",
        },
    ),
    RecordKind(
        Kind.ACCEPTED,
        "A PUBLISH of a client is stored: from now on it is not lost.",
        (*_EXCHANGE, "qos"),
        _NO_EVENTS,
    ),
    RecordKind(Kind.PUT, "A message was put on a queue.", ("message_id", "queue", "conversion"), _NO_EVENTS),
    RecordKind(
        Kind.DELIVERED,
        "A message was handed to a client as a PUBLISH.",
        (*_EXCHANGE, "qos", "message_id"),
        _NO_EVENTS,
    ),
    RecordKind(Kind.ACKNOWLEDGED, "A client acknowledged a message that it was sent.", _EXCHANGE, _NO_EVENTS),
    RecordKind(
        Kind.CONFIRMED,
        "The gateway acknowledged a client's messages; one record covers many exchanges.",
        ("direction", *_SESSION, "exchanges", "packet_type"),
        _NO_EVENTS,
    ),
    RecordKind(Kind.REFUSED, "A command or a PUBLISH was refused; the reason says why.", ("command",), _NO_EVENTS),
    RecordKind(
        Kind.DEAD_LETTERED,
        "A message went to the dead-letter queue; a dead letter that was held has a second record when it goes on.",
        ("queue", "dead_letter_id"),
        _NO_EVENTS,
    ),
    RecordKind(Kind.DROPPED, "A message ended without a delivery; the reason says why.", ("queue",), _NO_EVENTS),
    RecordKind(Kind.FORWARDED, "A channel handed a message to the target's queue manager.", _PASSED, _NO_EVENTS),
    RecordKind(Kind.RECEIVED, "A channel took a message from the target's queue manager.", _PASSED, _NO_EVENTS),
    RecordKind(
        Kind.REDRIVEN,
        "A dead letter was put back on its queue.",
        ("message_id", "dead_letter_id", "queue"),
        _NO_EVENTS,
    ),
    RecordKind(
        Kind.REPEATED,
        "A client sent a PUBLISH under a packet identifier that is still in use.",
        (*_EXCHANGE, "qos", "event"),
        {
            "repeat": "it is the same PUBLISH again",
            "identifier_reused": "it is another message, although the PUBREL of the first has not come",
        },
    ),
    RecordKind(
        Kind.OPERATED,
        "An operator gave an order that changed something. Each message that it destroyed has a `dropped` record too,"
        " each dead letter that it put back a `redriven` one, in the same batch.",
        ("command", "operator", "messages"),
        _NO_EVENTS,
    ),
    RecordKind(
        Kind.CLOCK_JUMPED,
        "The wall clock left the plausible time, or agrees with it again.",
        ("event", "jump_us"),
        {
            "ahead": "the wall clock went ahead of the plausible time",
            "behind": "the wall clock fell behind the plausible time",
            "settled": "the wall clock agrees with the plausible time again",
        },
    ),
    RecordKind(
        Kind.RESTORED,
        "The trail has a gap that the gateway knows of.",
        ("event",),
        {
            "rolled_back": "an operator accepted a store that had gone back to an earlier state",
            "trail_changed": "an operator accepted a trail with other lines than the store knows",
            "trail_begun_late": "the trail begins without the records before",
        },
    ),
    RecordKind(
        Kind.LOGINS_REFUSED,
        "Logins were refused. The record counts those of one network and class of user, for one reason, in at most five"
        " minutes.",
        ("event", "user_class", "logins", "since_us"),
        {
            "wrong_credentials": "the user name, the password, the token or the certificate was wrong",
            "not_allowed": "the client needs a user, may not have the session, or may not leave its will",
            "wrong_identifier": "the client identifier belongs to another user",
            "busy": "too many logins waited for their check",
        },
    ),
    RecordKind(
        Kind.COMMANDED,
        "The broker took a command of an MQ application: a publication, a registration, a request or a deletion.",
        ("message_id", "queue", "completion"),
        _NO_EVENTS,
    ),
    RecordKind(
        Kind.STOCK,
        "Messages that are on the queues after the records before this one. All records of a count are in one batch.",
        ("event", "messages"),
        {
            "queues": "the number of queues with messages, and of their messages; records of the deepest queues follow",
            "queue": "one queue",
            "subscribers": "subscribers of the queue of the record before; those with the most messages come first",
        },
    ),
    RecordKind(
        Kind.TOPICS_REFUSED,
        "A client was refused a topic. The first refusal of a client by a rule has the topic. Later records count the"
        " further refusals of a client by a rule in at most five minutes; one without a client counts those of all"
        " other clients.",
        ("event", "refusals", "since_us"),
        {
            "publish": "a PUBLISH was refused",
            "subscribe": "a topic filter of a SUBSCRIBE was refused",
            "will": "a will was not published",
        },
    ),
    RecordKind(
        Kind.FILE_READ,
        "The gateway goes by a file from now on: configuration, access list, users, keys, certificates, mapping tables,"
        " and the keys of the trail.",
        ("event", "setting", "file", "hashed_by", "file_hash"),
        {
            "started": "the gateway started with it",
            "changed": "the gateway took up a change of it while it ran; a key of the trail was made or replaced",
            "removed": "a key of the trail was removed; the hash is that of the removed key",
        },
    ),
    RecordKind(
        Kind.MQPUT,
        "An MQ application put a message, or asked for a report that the queue manager then put for it. A put that the"
        " broker took at once is `commanded` instead.",
        ("message_id", "queue", "payload_sha256"),
        _NO_EVENTS,
    ),
    RecordKind(
        Kind.MQGET,
        "An MQ application got a message: for the gateway the message ends here. `operated` has the messages that an"
        " operator's order took. A browse takes nothing and has no record.",
        ("message_id", "queue", "payload_sha256"),
        _NO_EVENTS,
    ),
    RecordKind(
        Kind.INVENTORY,
        "The lasting state: sessions, filters, registrations and retained publications. The gateway writes it once a"
        " day, and when it removes old segments. Each entry is true at its place in the trail, and each later change"
        " has a record of its own. An audit that begins at `begun` knows the whole state at `complete`.",
        ("event", "entries"),
        {
            "begun": "an inventory begins",
            "sessions": "sessions of MQTT clients",
            "filters": "topic filters of sessions",
            "registrations": "subscriptions of the broker",
            "retained": "retained publications",
            "complete": "the inventory is complete; if this record is missing, the gateway ended first",
        },
    ),
    RecordKind(
        Kind.ANSWERED,
        "The gateway decided on topic filters of a SUBSCRIBE or UNSUBSCRIBE; SUBACK (packet type 9) or UNSUBACK (11)"
        " says so, if the connection is still there. A packet of more than two filters has several records. Before"
        " MQTT 5 an UNSUBACK has no codes. At MQTT 3.1 a connection with a refused filter is closed instead.",
        ("direction", *_SESSION, "packet_type", "packet_identifier", "topic_filters"),
        _NO_EVENTS,
    ),
    RecordKind(
        Kind.CONNECTS_REFUSED,
        "CONNECTs were refused for another reason than their login. The first refusal of a network by a limit, or for"
        " another reason, has the client and the complaint, if there are such. Later records count further ones in at"
        " most five minutes; one without a network counts those of all other networks. Without `protocol_level` the"
        " client could not be told the reason.",
        ("event", "connects", "since_us"),
        {
            "limit": "a limit is reached, which `rule` names",
            "malformed": "the first packet is no CONNECT that MQTT allows, or too much came before CONNACK",
            "not_served": "the gateway does not serve this protocol or level",
            "identifier": "the client identifier is too long, or empty where it may not be",
            "unknown_method": "the gateway knows no authentication method of MQTT 5",
            "will": "the will cannot be put on a queue",
        },
    ),
    RecordKind(
        Kind.PROGRAM,
        "A program of an MQ client connected, or is gone. It is the application `user_identifier`, because `proof`"
        " proved that it is `user`. Its end has `reason` if the gateway ended it. A session without an end ended with"
        " this run of the gateway.",
        ("program", "event", "operator", "user_identifier", "proof", "listener", "channel"),
        {
            "connected": "the program said MQCONN and may work",
            "disconnected": "the program said MQDISC, or ended its conversation or its connection in order",
            "lost": "the connection ended without that",
            "ended": "the gateway ended it",
        },
    ),
    RecordKind(
        Kind.PROGRAMS_REFUSED,
        "MQ programs were refused. The first refusal of a network by a rule has the user, if it is known to the"
        " gateway, and the complaint. Later records count further ones in at most five minutes; one without a network"
        " counts those of all other networks. Without `reason_code` the connection was closed before MQCONN.",
        ("event", "user_class", "listener", "logins", "since_us"),
        {
            "wrong_credentials": "the user, the password or the token was wrong",
            "not_allowed": "`rule` lets in nobody from there, not this user, or nobody without a password",
            "busy": "too many logins waited for their check",
            "channel": "there is no such channel, or it does not run for this client; `rule` says why",
            "limit": "a limit of connections is reached, or a rate of new ones, which `rule` names",
        },
    ),
)

#: What a record of a kind may say in its field `event`.
EVENTS: Final = {row.kind: tuple(row.events) for row in KINDS if row.events}

"""The limits: what one client, one user, one address and all of them together may have. Each is one row of `Limit`.

From a row come the key of [mqtt] with its default and its line in `rfhbridge check --example`, the label in the metric
`rfhbridge_refusals_total`, the Reason String, and the row of the reference.

To add a limit: write a row, name its key in a class of mqtt_limits.py, and refuse with `Limit.NAME` where the limit is
enforced. A test finds a row that nothing enforces. Where 0 is allowed, it means no limit, unless the row says more.

Some limits nest: a client may use what its row allows, and so may its user, its address, and all clients together
(gateway/limits/budgets.py). Each of these is a row of its own. `LimitRow.of` makes it from the row of one client.
"""

from enum import Enum
from typing import Any, Final

from gateway.config import connection_limits, filter_limits
from gateway.config.limit_row import SLOWER, TOPIC, LimitAnswer, LimitRow, Scope
from gateway.config.values import MAXIMUM_PACKET_IDENTIFIERS, MAXIMUM_REMAINING_LENGTH_BYTES, MAXIMUM_TEXT_BYTES

_QUOTA: Final = "QUOTA_EXCEEDED"
_CONNECT: Final = (LimitAnswer(_QUOTA, ("CONNACK",)),)
_DISCONNECT: Final = (LimitAnswer(_QUOTA, ("DISCONNECT",)),)
_SILENT: Final = (LimitAnswer(_QUOTA),)
_TOO_FAST: Final = (LimitAnswer("MESSAGE_RATE_TOO_HIGH", ("DISCONNECT",)),)


class Limit(Enum):
    """The things that have a limit."""

    CONNECTIONS = connection_limits.CONNECTIONS
    CONNECTIONS_OF_LISTENER = connection_limits.CONNECTIONS_OF_LISTENER
    CONNECTIONS_PER_USER = connection_limits.CONNECTIONS_PER_USER
    CONNECTIONS_PER_ADDRESS = connection_limits.CONNECTIONS_PER_ADDRESS
    CONNECTIONS_PER_PREFIX = connection_limits.CONNECTIONS_PER_PREFIX
    WAITING_CONNECTIONS = connection_limits.WAITING_CONNECTIONS
    CONNECTION_RATE = connection_limits.CONNECTION_RATE
    CONNECTION_RATE_PER_ADDRESS = connection_limits.CONNECTION_RATE_PER_ADDRESS
    CONNECTION_RATE_PER_PREFIX = connection_limits.CONNECTION_RATE_PER_PREFIX
    WAITING_LOGINS = LimitRow(
        key="access.maximum_waiting_logins",
        default=256,
        unit="logins",
        meaning="passwords that may wait for their check, which takes about 25 ms of one core; past the limit the"
        " gateway refuses a login of the network with the most wrong passwords or the most waiting logins, and says"
        " that the server is busy",
        answers=(LimitAnswer("SERVER_BUSY", ("CONNACK",)),),
        told="too many logins wait for their check: try again later",
        where="access.hashing",
    )
    RECENT_LOGINS = LimitRow(
        "",
        65_536,
        "users",
        "users known to have logged in within 30 days, with at most 16 networks each",
        "access.recent_logins",
    )
    REFUSED_LOGINS = LimitRow(
        "", 64, "records", "audit records of refused logins by network in five minutes", "access.refused_logins"
    )
    REFUSED_TOPICS = LimitRow(
        "",
        64,
        "records",
        "audit records of refused topics in five minutes: so many tell a first refusal, and so many count further ones",
        "access.refused_topics",
    )
    REFUSED_CONNECTS = LimitRow(
        "",
        64,
        "records",
        "audit records of refused CONNECTs in five minutes: so many tell a first refusal, and so many count further"
        " ones",
        "access.refused_connects",
    )
    REFUSED_PROGRAMS = LimitRow(
        "",
        64,
        "records",
        "audit records of refused MQ programs in five minutes: so many tell a first refusal, and so many count further"
        " ones",
        "access.refused_programs",
    )
    CONNECT_TIMEOUT = LimitRow(
        key="connect_timeout_s",
        default=10.0,
        least=None,
        unit="seconds",
        meaning="seconds that a new connection has for its CONNECT; then it is closed",
        answers=(LimitAnswer("MAXIMUM_CONNECT_TIME"),),
        where="listener.listener",
    )
    UNSENT_BYTES = LimitRow(
        key="maximum_unsent_bytes",
        default=8_388_608,
        most=2_147_483_647,  # uvloop counts them in a C int
        unit="bytes",
        meaning="bytes that may wait for one slow client; past the limit deliveries to that client pause",
        where="listener.tcp",
    )
    UNSENT_BYTES_IN_ALL = LimitRow(
        key="maximum_unsent_bytes_in_all",
        default=536_870_912,
        unit="bytes",
        meaning="bytes that may wait for all clients; past the limit clients that read nothing are disconnected",
        answers=_DISCONNECT,
        told="the client does not read what is sent to it",
        where="limits.slow_clients",
    )
    UNFINISHED_BYTES_IN_ALL = LimitRow(
        key="maximum_unfinished_bytes_in_all",
        default=536_870_912,
        unit="bytes",
        meaning="bytes of incomplete packets and of waiting requests; past the limit the clients with the most are"
        " disconnected",
        answers=_DISCONNECT,
        told="incomplete packets and waiting requests take too much memory: try again later",
        where="limits.slow_clients",
    )
    SLOW_READER = LimitRow(
        key="slow_reader_timeout_s",
        default=60.0,
        least=None,
        unit="seconds",
        meaning="seconds after which a client is disconnected that reads nothing of the bytes that wait for it",
        answers=_DISCONNECT,
        told="the client does not read what is sent to it",
        where="limits.slow_clients",
    )
    PACKET_BYTES = LimitRow(
        key="maximum_packet_bytes",
        default=MAXIMUM_REMAINING_LENGTH_BYTES,
        least=2,
        most=MAXIMUM_REMAINING_LENGTH_BYTES,
        unit="bytes",
        meaning="remaining length of the largest packet that is taken, in bytes; CONNACK tells it at MQTT 5",
        answers=(LimitAnswer("PACKET_TOO_LARGE", ("DISCONNECT", "CONNACK")),),
        where="mqtt.receiver",
    )
    IN_FLIGHT = LimitRow(
        key="maximum_in_flight",
        default=100,
        most=MAXIMUM_PACKET_IDENTIFIERS,
        unit="messages",
        meaning="PUBLISH packets of QoS 1 and 2 that one client may leave unanswered; past the limit its deliveries"
        " wait",
        where="mqtt.outgoing_flows",
    )
    RECEIVE_MAXIMUM = LimitRow(
        key="receive_maximum",
        default=1_000,
        most=MAXIMUM_PACKET_IDENTIFIERS,
        unit="messages",
        meaning="PUBLISH packets of QoS 1 and 2 that a client of MQTT 5 may send without an answer; CONNACK tells it",
        answers=(LimitAnswer("RECEIVE_MAXIMUM_EXCEEDED", ("DISCONNECT",)),),
        where="mqtt.incoming",
    )
    TOPIC_ALIASES = LimitRow(
        key="topic_alias_maximum",
        default=64,
        least=0,
        most=65_535,
        unit="topic aliases",
        meaning="topic aliases that a client of MQTT 5 may set; CONNACK tells it",
        answers=(LimitAnswer("TOPIC_ALIAS_INVALID", ("DISCONNECT",)),),
        where="mqtt.topic_aliases",
    )
    PROPERTIES = LimitRow(
        key="",
        default=1_000,
        unit="user properties",
        meaning="user properties of one packet; its properties have at most 256 KiB, and the topic names behind the"
        " aliases of one connection 64 KiB",
        answers=(LimitAnswer(_QUOTA, ("DISCONNECT", "CONNACK")),),
        where="mqtt.property_codec",
    )
    KEEP_ALIVE = LimitRow(
        key="maximum_keep_alive_s",
        default=0,
        least=0,
        most=65_535,
        unit="seconds",
        meaning="longest keep-alive time of a client of MQTT 5; CONNACK tells it; 0: the time that the client names",
        where="mqtt.connection",
    )
    HELD_BYTES = LimitRow(
        key="maximum_held_bytes",
        default=67_108_864,
        unit="bytes",
        meaning="bytes of one client's QoS 2 messages between PUBLISH and PUBREL, and 600 bytes for each message; a"
        " single message is always taken",
        answers=(LimitAnswer(_QUOTA, ("PUBREC",)),),
        told="too many bytes of QoS 2 wait for their PUBREL: send PUBREL first",
        where="bridge.sessions.session_limits",
    )
    HELD_BYTES_IN_ALL = LimitRow(
        key="maximum_held_bytes_in_all",
        default=536_870_912,
        unit="bytes",
        meaning="bytes of the QoS 2 messages between PUBLISH and PUBREL of all clients, and of their wills; past the"
        " limit a client that holds nothing may still hold 65,536 bytes, until twice the limit is reached",
        answers=(LimitAnswer(_QUOTA, ("PUBREC", "CONNACK")),),
        told="QoS 2 messages and wills take too much memory: try again later",
        where="bridge.sessions.session_limits",
    )
    TOPIC_BYTES = LimitRow(
        key="maximum_topic_bytes",
        default=40_960,  # 10,240 characters have no more
        most=MAXIMUM_TEXT_BYTES,
        unit="bytes",
        meaning="bytes of a topic name or filter, in UTF-8; MQ carries no more than 10,240 characters",
        answers=TOPIC,
        told="the topic has too many bytes",
        where="limits.topics",
    )
    TOPIC_CHARACTERS = LimitRow(
        key="",
        default=10_240,
        unit="characters",
        meaning="characters of a topic as MQ carries it, with a stream's prefix and MQRFH's escapes; an MQRFH2 carries"
        " only characters of XML 1.0",
        answers=TOPIC,
        told="MQ cannot carry the topic: it is too long, or has a character that an MQ header cannot hold",
        where="bridge.sessions.session_limits",
    )
    TOPIC_LEVELS = LimitRow(
        key="maximum_topic_levels",
        default=200,
        most=200,
        unit="levels",
        meaning="levels of a topic name or filter; each level of a filter costs up to 250 bytes of memory",
        answers=TOPIC,
        told="the topic has too many levels",
        where="limits.topics",
    )
    SUBSCRIPTIONS = filter_limits.SUBSCRIPTIONS
    SUBSCRIPTIONS_PER_USER = SUBSCRIPTIONS.of(Scope.USER)
    SUBSCRIPTIONS_PER_ADDRESS = SUBSCRIPTIONS.of(Scope.ADDRESS)
    SUBSCRIPTIONS_PER_PREFIX = SUBSCRIPTIONS.of(Scope.PREFIX)
    SUBSCRIPTIONS_IN_ALL = SUBSCRIPTIONS.of(Scope.ALL, 2_000_000)
    SUBSCRIPTION_LEVELS = filter_limits.SUBSCRIPTION_LEVELS
    SUBSCRIPTION_LEVELS_PER_USER = SUBSCRIPTION_LEVELS.of(Scope.USER)
    SUBSCRIPTION_LEVELS_PER_ADDRESS = SUBSCRIPTION_LEVELS.of(Scope.ADDRESS)
    SUBSCRIPTION_LEVELS_PER_PREFIX = SUBSCRIPTION_LEVELS.of(Scope.PREFIX)
    SUBSCRIPTION_LEVELS_IN_ALL = SUBSCRIPTION_LEVELS.of(Scope.ALL, 10_000_000)
    SHARED_GROUPS = filter_limits.SHARED_GROUPS
    SHARED_GROUPS_PER_USER = SHARED_GROUPS.of(Scope.USER)
    SHARED_GROUPS_PER_ADDRESS = SHARED_GROUPS.of(Scope.ADDRESS)
    SHARED_GROUPS_PER_PREFIX = SHARED_GROUPS.of(Scope.PREFIX)
    SHARED_GROUPS_IN_ALL = SHARED_GROUPS.of(
        Scope.ALL, 100_000, told="there are too many groups of shared subscriptions: unsubscribe first"
    )
    SUBSCRIPTION_CHARACTERS = filter_limits.SUBSCRIPTION_CHARACTERS
    FILTER_SHAPES_IN_ALL = filter_limits.FILTER_SHAPES_IN_ALL
    FILTER_SHAPES_PER_USER = filter_limits.FILTER_SHAPES_PER_USER
    SESSIONS = LimitRow(
        key="maximum_sessions",
        default=100_000,
        unit="sessions",
        meaning="sessions, connected or not; past the limit no new session may outlive its connection",
        answers=_CONNECT,
        told="no further session may outlive its connection",
        where="limits.budgets",
        scope=Scope.ALL,
    )
    SESSION_EXPIRY = LimitRow(
        key="maximum_session_expiry_s",
        default=0,
        least=0,
        most=4_294_967_294,  # one less than "never" of MQTT 5
        unit="seconds",
        meaning="longest time for which a session outlives its connection; CONNACK tells it at MQTT 5; 0: the time that"
        " the client names, before MQTT 5 for ever",
        where="bridge.sessions.sessions",
    )
    SESSIONS_PER_USER = SESSIONS.of(Scope.USER, without="no limit")
    SESSIONS_PER_ADDRESS = SESSIONS.of(Scope.ADDRESS, without="no limit")
    SESSIONS_PER_PREFIX = SESSIONS.of(Scope.PREFIX, without="no limit")
    SESSION_MEMORY = LimitRow(
        key="maximum_session_memory_bytes",
        default=0,
        least=0,
        unit="bytes",
        meaning="bytes of memory that all sessions of the store may need at a start, by an estimate; past the limit the"
        " registrations of the largest sessions stay in the store, and the gateway reads them when a publication"
        " matches; 0: three quarters of the free memory",
        where="daemon",
    )
    RETAINED_COPIES = LimitRow(
        key="maximum_retained_copy_bytes",
        default=67_108_864,
        unit="bytes of retained copies",
        meaning="bytes of copies of retained messages that wait for one session, beyond one copy of each; past the"
        " limit a filter that asks for more is refused in the SUBACK",
        answers=filter_limits.SUBSCRIBE,
        told="too many retained messages wait for the client: read them first",
        where="limits.budgets",
    )
    RETAINED_COPIES_PER_USER = RETAINED_COPIES.of(Scope.USER)
    RETAINED_COPIES_PER_ADDRESS = RETAINED_COPIES.of(Scope.ADDRESS)
    RETAINED_COPIES_PER_PREFIX = RETAINED_COPIES.of(Scope.PREFIX)
    RETAINED_COPIES_IN_ALL = RETAINED_COPIES.of(
        Scope.ALL, 8_589_934_592, told="too many retained messages wait for clients: read yours first"
    )
    QUEUED_MESSAGES = LimitRow(
        key="maximum_queued_messages",
        default=1_000_000,
        least=0,
        unit="messages",
        meaning="messages that wait for one session; past the limit the newest becomes a dead letter; 0: no limit",
        answers=_SILENT,
        where="bridge.sessions.queue_limits",
    )
    QUEUED_BYTES = LimitRow(
        key="maximum_queued_bytes",
        default=4_294_967_296,
        least=0,
        unit="bytes of the messages that wait for the sessions",
        meaning="bytes of the messages that wait for one session, with headers; past the limit the newest becomes a"
        " dead letter; 0: no limit",
        answers=_SILENT,
        where="bridge.sessions.queue_limits",
    )
    QUEUED_BYTES_PER_USER = QUEUED_BYTES.of(Scope.USER)
    QUEUED_BYTES_PER_ADDRESS = QUEUED_BYTES.of(Scope.ADDRESS)
    QUEUED_BYTES_PER_PREFIX = QUEUED_BYTES.of(Scope.PREFIX)
    QUEUED_AGE = LimitRow(
        key="maximum_queued_age_s",
        default=0,
        least=0,
        most=3_153_600_000,  # a hundred years
        unit="seconds",
        meaning="seconds for which a message waits for a session without a connection; then it becomes a dead letter;"
        " 0: no limit",
        answers=_SILENT,
        where="bridge.sessions.queue_limits",
    )
    DEAD_LETTERS = LimitRow(
        key="maximum_dead_letters",
        default=100_000,
        least=0,
        unit="dead letters",
        meaning="dead letters that one publisher or session may cause, and never more than half of the MAXDEPTH of"
        " their queue; the last tenth of MAXDEPTH is kept for users and networks that have at most a hundredth of it;"
        " past the limit the publisher waits, or the session keeps its messages; 0: no limit",
        answers=_SILENT,
        where="bridge.assembly",
    )
    DEAD_LETTERS_PER_USER = DEAD_LETTERS.of(Scope.USER)
    DEAD_LETTERS_PER_ADDRESS = DEAD_LETTERS.of(Scope.ADDRESS)
    DEAD_LETTERS_PER_PREFIX = DEAD_LETTERS.of(Scope.PREFIX)
    DEAD_LETTER_BYTES = LimitRow(
        key="maximum_dead_letter_bytes",
        default=4_294_967_296,
        least=0,
        unit="bytes of dead letters",
        meaning="bytes of the dead letters that one publisher or session may cause; a single letter is always taken;"
        " past the limit the publisher waits, or the session keeps its messages; 0: no limit",
        answers=_SILENT,
        where="bridge.assembly",
    )
    DEAD_LETTER_BYTES_PER_USER = DEAD_LETTER_BYTES.of(Scope.USER)
    DEAD_LETTER_BYTES_PER_ADDRESS = DEAD_LETTER_BYTES.of(Scope.ADDRESS)
    DEAD_LETTER_BYTES_PER_PREFIX = DEAD_LETTER_BYTES.of(Scope.PREFIX)
    DEAD_LETTER_EXPIRY = LimitRow(
        key="dead_letter_expiry_s",
        default=2_592_000,  # thirty days
        least=0,
        most=99_999_999,  # MQMD.Expiry has tenths of a second, up to 999,999,999
        unit="seconds",
        meaning="seconds for which a dead letter is kept that can never go back, because no header can carry the"
        " client's message; the trail records its end; other dead letters never expire; 0: for ever",
        where="bridge.assembly",
    )
    MESSAGE_RATE = LimitRow(
        key="message_rate",
        default=100_000,  # more than one core takes of one connection
        least=0,
        unit="messages a second",
        meaning=f"PUBLISH packets a second of one client; {SLOWER}",
        answers=_TOO_FAST,
        told="the client sends too many messages: send more slowly",
        where="limits.budgets",
    )
    MESSAGE_RATE_PER_USER = MESSAGE_RATE.of(Scope.USER)
    MESSAGE_RATE_PER_ADDRESS = MESSAGE_RATE.of(Scope.ADDRESS)
    MESSAGE_RATE_PER_PREFIX = MESSAGE_RATE.of(Scope.PREFIX)
    BYTE_RATE = LimitRow(
        key="byte_rate",
        default=104_857_600,
        least=0,
        unit="bytes a second",
        meaning=f"bytes a second that one client sends; {SLOWER}",
        answers=_TOO_FAST,
        told="the client sends too many bytes: send more slowly",
        where="limits.budgets",
    )
    BYTE_RATE_PER_USER = BYTE_RATE.of(Scope.USER)
    BYTE_RATE_PER_ADDRESS = BYTE_RATE.of(Scope.ADDRESS)
    BYTE_RATE_PER_PREFIX = BYTE_RATE.of(Scope.PREFIX)
    NEW_TOPIC_RATE = LimitRow(
        key="new_topic_rate",
        default=60_000,
        least=0,
        unit="new topics a minute",
        meaning="new topics a minute that one client publishes on; a topic is new if it is not among the last 10,000"
        f" topics of all clients; {SLOWER}",
        answers=_TOO_FAST,
        told="the client publishes on too many new topics: send more slowly",
        where="limits.budgets",
    )
    NEW_TOPIC_RATE_PER_USER = NEW_TOPIC_RATE.of(Scope.USER)
    NEW_TOPIC_RATE_PER_ADDRESS = NEW_TOPIC_RATE.of(Scope.ADDRESS)
    NEW_TOPIC_RATE_PER_PREFIX = NEW_TOPIC_RATE.of(Scope.PREFIX)
    TRAIL_BYTE_RATE = LimitRow(
        key="trail_byte_rate",
        default=134_217_728,  # nearly 100,000 small publications: some connections gather those of many sensors
        least=0,
        unit="bytes of audit records a second",
        meaning="bytes of audit records a second that one client causes, as `audit show` prints them, by an estimate: a"
        f" PUBLISH of 5 bytes causes 1,400, and the trail on the disk takes less than half of that; an MQ application"
        f" counts as a user, and is only read more slowly; {SLOWER}",
        answers=_TOO_FAST,
        told="the client causes too many audit records: send more slowly",
        where="limits.budgets",
    )
    TRAIL_BYTE_RATE_PER_USER = TRAIL_BYTE_RATE.of(Scope.USER)
    TRAIL_BYTE_RATE_PER_ADDRESS = TRAIL_BYTE_RATE.of(Scope.ADDRESS)
    TRAIL_BYTE_RATE_PER_PREFIX = TRAIL_BYTE_RATE.of(Scope.PREFIX)
    RETAINED_MESSAGES = LimitRow(
        key="maximum_retained_messages",
        default=1_000_000,
        least=0,
        unit="messages",
        meaning="retained messages of the broker inside; a PUBLISH that would add one more is refused; 0: no limit",
        answers=(LimitAnswer(_QUOTA, ("PUBACK", "PUBREC", "CONNACK")),),
        told="there are too many retained messages",
        where="bridge.sessions.session_limits",
    )

    @property
    def label(self) -> str:
        """Its name in the metrics and in the log."""
        return self.name.lower()

    @property
    def key(self) -> str:
        """Its key of the configuration; "" where the value is fixed."""
        return self.value.key

    @property
    def field(self) -> Any:
        """The key of the configuration, as pydantic declares it."""
        return self.value.field

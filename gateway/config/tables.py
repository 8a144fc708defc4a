"""The tables of the configuration file that every gateway has."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.config.queue_names import REPLY_QUEUE, SUBSCRIBER_QUEUE
from gateway.config.signing_token import SigningTokenSettings
from gateway.config.tokens import TokenSettings
from gateway.config.values import (
    Address,
    ListenText,
    MqName,
    MqNames,
    OptionalFolder,
    Seconds,
    SubscriptionPoint,
    Table,
    TopicFilter,
    TopicFilters,
    listed,
)
from gateway.config.witnesses import Witnesses
from mq_adapters.system_queues import DEFAULT_STREAM
from spark_audit.record import StreamRules


def _checked_dollar_filter(topic_filter: str) -> str:
    if not topic_filter.startswith("$"):
        raise ValueError(f"{topic_filter!r} must begin with $, because other topics are not reserved")
    return topic_filter


class QueueManagerSettings(Table):
    """The embedded queue manager."""

    name: MqName = Field(default="RFHBRIDGE", description="name of the embedded queue manager, 1 to 48 characters")
    socket_folder: OptionalFolder = Field(
        default="",
        description='folder of a second socket, for applications that run as other users; "": there is none',
    )
    token_file: str = Field(
        default="", description="file of the hashes of applications' tokens; see 'rfhbridge user token'"
    )
    maximum_connections_per_user: int = Field(
        default=100, ge=1, description="connections that another user may have at the second socket at one time"
    )


class PublishSettings(Table):
    """From MQTT to MQ."""

    stream: MqName = Field(
        default=DEFAULT_STREAM,
        description="stream queue that publications are put on; MQTT clients subscribe on the default stream",
    )
    jms_folders: bool = Field(
        default=False,
        description="whether publications that no route takes have the folders mcd, jms and mqps, so that JMS reads"
        " each from any queue as a TextMessage (payload format indicator 1, and UTF-8) or a BytesMessage with its topic"
        ' as JMSDestination; needs header "mqrfh2"',
    )


class BrokerSettings(Table):
    """The publish/subscribe broker inside."""

    dialect: Literal["mq6", "wmb"] = Field(
        default="mq6",
        description="mq6: a stream is its queue; wmb: one topic space, a stream is the prefix $SYS/STREAM/<stream>/",
    )
    streams: MqNames = Field(default=(), description="stream queues that the broker serves beside publish.stream")
    input_queues: MqNames = Field(default=(), description="further queues that publications are taken from, with wmb")
    implicit_stream_naming: bool = Field(
        default=False, description="with wmb, an MQRFH publication that names no stream is on that of its queue's name"
    )
    subscription_points: dict[MqName, SubscriptionPoint] = Field(
        default={}, description="subscription point of the publications on a queue, by the name of the queue"
    )

    @property
    def all_input_queues(self) -> tuple[str, ...]:
        """Every queue from which publications are taken, except the default stream and publish.stream."""
        return (*self.streams, *self.input_queues, *self.subscription_points)

    @property
    def stream_rules(self) -> StreamRules:
        """How streams are told apart, as the trail says it."""
        return StreamRules.IMPLICIT_PREFIXES if self.implicit_stream_naming else StreamRules(self.dialect)

    @model_validator(mode="after")
    def _checked_dialect(self) -> Self:
        if self.dialect == "mq6" and (self.input_queues or self.implicit_stream_naming):
            raise ValueError("input_queues and implicit_stream_naming belong to dialect 'wmb'; with 'mq6' name streams")
        return self


class SubscribeSettings(Table):
    """From MQ to MQTT."""

    queue: MqName = Field(
        default=SUBSCRIBER_QUEUE, description="queue on which publications wait for the gateway's sessions"
    )
    reply_queue: MqName = Field(
        default=REPLY_QUEUE, description="queue on which the embedded broker answers the gateway"
    )
    jms_maps: Literal["xml", "json"] = Field(
        default="xml",
        description='payload of a MapMessage of JMS: "xml", its body as JMS writes it; "json", a JSON object of its'
        " entries",
    )
    answer_timeout_s: Seconds = Field(
        default=10.0, description="seconds that a SUBACK waits for the broker's answer before it refuses"
    )


DollarFilters = Annotated[
    tuple[Annotated[TopicFilter, AfterValidator(_checked_dollar_filter)], ...], BeforeValidator(listed)
]
MqttVersions = Annotated[tuple[Literal["3.1", "3.1.1", "5"], ...], BeforeValidator(listed), Field(min_length=1)]


class MqttSettings(MqttLimits):
    """Versions and limits of the MQTT server."""

    versions: MqttVersions = Field(
        default=("3.1", "3.1.1", "5"), description='versions of MQTT that may connect: "3.1", "3.1.1", "5"'
    )
    user_properties: Literal["one_json", "each"] = Field(
        default="one_json",
        description='how user properties of MQTT 5 travel in MQ: "one_json", in one JSON array (rfhbUserProps);'
        ' "each", also as a property of its own where JMS allows the name, so that applications can select by it',
    )

    dollar_topics: DollarFilters = Field(
        default=(),
        description="filters of topics that begin with $ and that clients may use where [access] allows it; all others"
        " that begin with $ are reserved",
    )

    sys_topics_interval_s: int = Field(
        default=0,
        ge=0,
        le=86_400,  # a day
        description="seconds between two publications of the gateway's own figures on $SYS/broker/...; 0: none",
    )


class AccessSettings(Table):
    """Who may connect, and what clients may do."""

    password_file: str = Field(
        default="",
        description="file of users and hashed passwords, relative to the working folder; see 'rfhbridge user'",
    )
    anonymous: Literal[True, False, "auto"] = Field(
        default="auto",
        description='whether clients without a user name may connect; "auto": only while neither password_file nor'
        " tokens are configured",
    )
    bind_client_identifier: Literal[True, False, "reserved"] = Field(
        default="reserved",
        description="who may take a client identifier; a user owns the identifier that is its name, alone or with ':'"
        ' and more behind it; true: only the owner; "reserved": only the owner if that is a known user, else anybody;'
        " false: the first client that comes",
    )
    maximum_waiting_logins: int = Limit.WAITING_LOGINS.field
    access_file: str = Field(
        default="",
        description="file of rules that say what each client may publish and subscribe; without a file publish and"
        " subscribe of [access] decide alone",
    )

    publish: TopicFilters = Field(
        default=("#",), description="topic filters that clients may publish to; all other topics are refused"
    )
    subscribe: TopicFilters = Field(
        default=("#",), description="topic filters that clients may subscribe to; all other filters are refused"
    )
    token: TokenSettings = TokenSettings()

    @property
    def allows_anonymous(self) -> bool:
        """Whether clients without a user name may connect."""
        return not self.tells_users if self.anonymous == "auto" else self.anonymous

    @property
    def tells_users(self) -> bool:
        """Whether a password or a token tells one user from another, on every listener."""
        return bool(self.password_file or self.token.key_files)


class AuditSettings(Table):
    """The audit trail."""

    enabled: bool = Field(default=True, description="whether the gateway writes the trail")
    segment_bytes: int = Field(default=67_108_864, ge=1, description="bytes after which a file of the trail is closed")
    segment_minutes: int = Field(
        default=15,
        ge=1,
        le=525_600,  # a year
        description="minutes after which a file of the trail is closed",
    )
    signing_key: str = Field(
        default="",
        description='file of the key that countersigns digests; the first start makes it; "": DATA/trail-key.pem',
    )
    signing_token: SigningTokenSettings = Field(
        default=SigningTokenSettings(), description="a token or an agent that has the key which countersigns"
    )
    former_signing_token: SigningTokenSettings = Field(
        default=SigningTokenSettings(),
        description="the token or agent that countersigned before, and hands over to signing_token",
    )
    copy_folder: OptionalFolder = Field(
        default="", description="folder to which closed files of the trail and their digests are copied"
    )
    digest_target: str = Field(default="", description="target whose queue manager gets a copy of each digest")
    digest_queue: MqName | Literal[""] = Field(
        default="", description="queue at digest_target on which digests are put"
    )
    compress_after_hours: float = Field(
        default=0.0,
        ge=-1,
        le=876_000,  # a hundred years
        allow_inf_nan=False,
        description="hours after which a closed file of the trail is compressed with Zstandard; 0: as soon as its"
        " digest is signed; less than 0: never",
    )
    keep_days: float = Field(
        default=0.0,
        ge=0,
        le=36_500,  # a hundred years
        allow_inf_nan=False,
        description="days after which a file of the trail is removed, once it is copied; 0: never",
    )
    low_space_bytes: int = Field(
        default=268_435_456,
        ge=0,
        description="free bytes on the disk and inside the store; below this mark publishers of QoS 1 and 2 wait and"
        " QoS 0 is dropped; below half of it on the disk the trail waits, below a quarter deliveries wait; 0: no mark",
    )
    personal_data: Literal["plain", "keyed"] = Field(
        default="plain",
        description='"plain": names stand in the trail as they are; "keyed": clients, topics and users stand there as'
        " hashes under a key, and headers are encrypted",
    )
    personal_key: str = Field(
        default="", description='file of the key for "keyed", 32 random bytes; "": DATA/trail-personal.key'
    )
    witness: Witnesses = Field(
        default=(),
        description="other places that get the digests of the trail, so that nobody here can write them anew",
    )

    def digest_queue_at(self, target: str) -> str:
        """The queue at a target for digests; "" if that target gets none."""
        return self.digest_queue if target == self.digest_target else ""

    @model_validator(mode="after")
    def _checked_hand_over(self) -> Self:
        former, following = self.former_signing_token, self.signing_token
        if former.type and not following.type:
            raise ValueError("former_signing_token: hands over to signing_token, and there is none")
        if former.type and former.public_key == following.public_key:
            raise ValueError("former_signing_token: has the same public_key as signing_token")
        return self


class ConversionSettings(Table):
    """A queue whose messages are converted and moved to another queue; one [[conversion]] for each."""

    source: MqName = Field(alias="from", description="queue from which the gateway takes messages to convert")
    target: MqName = Field(alias="to", description="queue on which the gateway puts the converted messages")
    header: Literal["mqrfh2", "mqrfh"] = Field(description='header that the messages get: "mqrfh2" or "mqrfh"')
    mode: Literal["strict", "extended"] = Field(
        default="strict",
        description='"strict": converts the nine mapped fields; "extended": also the three names of a subscription',
    )
    description: str = Field(default="", description="what the conversion is for")


class HttpSettings(Table):
    """Conversion, health and metrics over HTTP. It has no passwords: everybody who reaches the port may use it."""

    enabled: bool = Field(
        default=False, description="whether the gateway serves HTTP: /convert, /health, /metrics and /openapi.json"
    )
    listen: ListenText = Field(
        default="127.0.0.1:8080", description="address of the HTTP server, HOST:PORT or [IPV6]:PORT"
    )
    maximum_request_bytes: int = Field(
        default=4_194_304,
        ge=1,
        le=104_857_600,
        description="bytes of the largest message that /convert takes; IBM MQ's own default is 4 MiB, its ceiling"
        " 100 MiB",
    )
    maximum_connections: int = Field(
        default=100,
        ge=1,
        description="connections at one time; a further one replaces the one that has been silent longest",
    )
    request_timeout_s: Seconds = Field(default=10.0, description="seconds that a client has to send a complete request")

    @property
    def address(self) -> Address:
        """`listen` as host and port."""
        return Address.parse(self.listen)


class LogSettings(Table):
    """The log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least important events that are logged: debug, info, warning or error"
    )
    format: Literal["text", "json"] = Field(
        default="text", description='"text": key=value; "json": one JSON object a line'
    )

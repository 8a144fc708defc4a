"""Targets and routes: the IBM MQ queue managers that publications go to, and which topics go where.

A target is one queue manager with a publish/subscribe broker, reached through channels of the gateway
(mq_adapters/channel). A route says which topics go to which stream there. The first route that matches counts. A topic
without a route stays at the embedded broker.
"""

import re
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gateway.config.queue_names import REPLY_QUEUE, SUBSCRIBER_QUEUE
from gateway.config.values import MqName, Seconds, Table, TopicFilters, listed
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_STREAM

#: A channel's batch, with the state message got and put, must stay below MAXUMSGS, whose default is 10,000.
MAXIMUM_BATCH_MESSAGES: Final = 9_998
#: IBM MQ, MQ_USER_ID_LENGTH: MQMD.UserIdentifier.
USER_IDENTIFIER_CHARACTERS: Final = 12
MAXIMUM_SHARDS: Final = 64
#: Seconds. A queue manager that is away must not keep a processor busy.
SHORTEST_LAST_RETRY_S: Final = 0.1
#: Queues of a gateway itself, which another gateway must not use as its own.
_OWN_PREFIXES: Final = ("RFHBRIDGE.", "SYSTEM.")
_TARGET_NAME: Final = re.compile(r"[A-Z0-9._]{1,12}")
_CONNECTION_NAME: Final = re.compile(r"[A-Za-z0-9._:\-]{1,253}(\([0-9]{1,5}\))?")


def _checked_target_name(name: str) -> str:
    if not _TARGET_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of a target: 1 to 12 characters, A to Z, digits, . and _")
    return name


def _checked_connection_name(name: str) -> str:
    if not _CONNECTION_NAME.fullmatch(name):
        raise ValueError(f'{name!r} is not a connection name: HOST(PORT), for example "mq1.example.com(1414)"')
    return name


def _checked_user_identifier(user: str) -> str:
    if not 1 <= len(user.encode()) <= USER_IDENTIFIER_CHARACTERS:
        raise ValueError(f"{user!r} is not a UserIdentifier: 1 to {USER_IDENTIFIER_CHARACTERS} characters")
    return user


TargetName = Annotated[str, AfterValidator(_checked_target_name)]
ConnectionNames = Annotated[
    tuple[Annotated[str, AfterValidator(_checked_connection_name)], ...], BeforeValidator(listed)
]


def _checked_retry(delays_s: tuple[float, ...]) -> tuple[float, ...]:
    if delays_s[-1] < SHORTEST_LAST_RETRY_S:
        raise ValueError(f"the last number is for all later attempts: at least {SHORTEST_LAST_RETRY_S}")
    return delays_s


RetryDelays = Annotated[
    tuple[Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)], ...],
    Field(min_length=1, max_length=100),
    AfterValidator(_checked_retry),
    BeforeValidator(listed),
]
UserIdentifier = Annotated[str, AfterValidator(_checked_user_identifier)]


class TargetSettings(Table):
    """An IBM MQ queue manager that publications go to; one [[target]] for each."""

    name: TargetName = Field(description="name of the target in routes, commands and queue names")
    queue_manager: str = Field(
        default="", max_length=48, description='queue manager to connect to; "": any that answers'
    )
    mode: Literal["client", "bindings"] = Field(
        default="client", description='"client": over the network; "bindings": on the same machine'
    )
    binding: Literal["auto", "ibmmq", "pymqi", "native"] = Field(
        default="auto",
        description='Python package that is used: "ibmmq", "pymqi", or "auto", which prefers ibmmq; "native" is'
        " experimental: the gateway's own client, without IBM's library, which has met no queue manager of IBM,"
        " only the mq_listener of another rfhbridge",
    )
    connections: ConnectionNames = Field(
        default=("localhost(1414)",), description="connection names HOST(PORT), tried in this order"
    )
    channel: str = Field(
        default="RFHBRIDGE.SVRCONN", max_length=20, description="server-connection channel, at most 20 characters"
    )
    ccdt_url: str = Field(
        default="",
        description="URL of a client channel definition table, instead of `connections` and `channel`; ibmmq only",
    )
    user: str = Field(default="", description="user that the gateway connects as")
    password_file: str = Field(default="", description="file whose first line is that user's password")
    password_environment: str = Field(
        default="", description="environment variable with that password, instead of password_file"
    )
    cipher: str = Field(default="", description="TLS CipherSpec of the channel, ANY_TLS12_OR_HIGHER for example")
    key_repository: str = Field(
        default="",
        description="key repository of IBM MQ with the certificates, as a path without its ending; with binding"
        ' "native" PEM files: PATH.pem has the authorities that are trusted, PATH.own.pem the gateway\'s own'
        " certificate with its key, where the channel wants one",
    )
    peer_name: str = Field(default="", description="distinguished name that the queue manager's certificate must have")
    header: Literal["mqrfh2", "mqrfh"] = Field(
        default="mqrfh2", description='header that its broker takes: "mqrfh2" or "mqrfh"'
    )
    jms_folders: bool = Field(
        default=False,
        description="whether publications have the folders mcd, jms and mqps beside psc, so that JMS reads a"
        " TextMessage (payload format indicator 1, and UTF-8) or a BytesMessage with its topic as JMSDestination; needs"
        ' header "mqrfh2"',
    )
    streams: Literal["queue", "message_broker", "queue_manager"] = Field(
        default="queue",
        description='how streams are named there: "queue", by the queue that a message is put on; "message_broker" or'
        ' "queue_manager", by a prefix of the topic, in the form of that product',
    )
    control_queue: MqName = Field(
        default=CONTROL_QUEUE, description="queue there on which the broker takes its commands"
    )
    state_queue: MqName = Field(
        default="RFHBRIDGE.STATE", description="state queues there: this name, a dot and the number of the shard"
    )
    subscriber_queue: MqName = Field(
        default=SUBSCRIBER_QUEUE, description="queue there on which its broker puts publications for the gateway"
    )
    reply_queue: MqName = Field(default=REPLY_QUEUE, description="queue there on which its broker answers the gateway")
    shards: int = Field(
        default=1, ge=1, le=MAXIMUM_SHARDS, description="channels in parallel; a client's messages stay in one"
    )
    batch_messages: int = Field(
        default=500, ge=1, le=MAXIMUM_BATCH_MESSAGES, description="most messages of one unit of work there"
    )
    batch_bytes: int = Field(default=4_194_304, ge=1, description="most bytes of one unit of work there")
    batch_idle_ms: int = Field(
        default=10,
        ge=0,
        le=10_000,
        description="milliseconds for which a batch that is not full waits for more messages",
    )
    retry_s: RetryDelays = Field(
        default=(0.0, 10.0, 60.0),
        description="seconds that a channel waits before each attempt to connect again; the last number is for all"
        " later attempts, and where only an operator can help",
    )
    hold_bytes: int = Field(
        default=10_737_418_240,
        ge=1,
        description="bytes that may wait here for the target; past the limit publishers to the target wait",
    )
    grace_s: Seconds = Field(
        default=60.0,
        description="seconds for which the gateway keeps a copy of a forwarded message, for a late refusal of the"
        " broker there",
    )
    subscribe_in_outage: Literal["refuse", "grant"] = Field(
        default="refuse",
        description='what a SUBSCRIBE gets while the target is away: "refuse", after subscribe.answer_timeout_s;'
        ' "grant", at once, and the gateway registers it later',
    )
    retained_again: Literal["register", "request_update"] = Field(
        default="register",
        description='how the gateway asks for retained publications at a repeated SUBSCRIBE: "register", by RegSub'
        ' alone; "request_update", by ReqUpdate too, for a broker that sends them only at the first RegSub',
    )
    ask_at_start_s: float = Field(
        default=5.0,
        ge=0,
        le=600,
        description="seconds for which a start waits for the target's state queues, which show whether the store went"
        " back; 0: they are not asked",
    )
    set_identity: bool = Field(
        default=False,
        description="whether MQMD.UserIdentifier of a Publish is the MQTT user; needs authority setid there",
    )
    users: dict[str, UserIdentifier] = Field(
        default={},
        description="MQTT users by name, each with the UserIdentifier that it has there; for names of more than 12"
        " characters",
    )

    def from_any_folder(self) -> Self:
        """The same with full names of files: a channel process works in another folder than the gateway."""
        named = {key: name for key in ("password_file", "key_repository") if (name := getattr(self, key))}
        return self.model_copy(update={key: str(Path(name).absolute()) for key, name in named.items()})

    def _check_native(self) -> None:
        if self.mode == "bindings":
            raise ValueError('mode: with binding "native" it must be "client"')
        for key in ("state_queue", "subscriber_queue", "reply_queue"):
            name = getattr(self, key)
            if name.startswith(_OWN_PREFIXES):
                raise ValueError(f"{key}: {name} may be the other gateway's own; name another, {self.name}.STATE say")

    @model_validator(mode="after")
    def _checked_together(self) -> Self:
        if self.mode == "client" and not (self.connections or self.ccdt_url):
            raise ValueError("connections: name at least one HOST(PORT), or ccdt_url")
        if self.jms_folders and self.header != "mqrfh2":
            raise ValueError('jms_folders: an MQRFH has no folders; write header = "mqrfh2"')
        if self.ccdt_url and self.binding in ("pymqi", "native"):
            raise ValueError(
                f"ccdt_url: {self.binding} cannot use one; name connections and channel, or binding 'ibmmq'"
            )
        if self.binding == "native":
            self._check_native()
        if self.password_file and self.password_environment:
            raise ValueError("password_file, password_environment: name one of them")
        if (self.password_file or self.password_environment) and not self.user:
            raise ValueError("user: is missing; a password needs a user")
        return self


class RouteSettings(Table):
    """Topics that go to a target; one [[route]] for each. The first route that matches counts."""

    topics: TopicFilters = Field(
        default=("#",), min_length=1, description="topic filters of the topics that take this route"
    )
    target: TargetName = Field(description="name of the [[target]] that takes them")
    stream: MqName = Field(default=DEFAULT_STREAM, description="stream there on which they are published")
    queue: MqName | Literal[""] = Field(
        default="",
        description='queue there on which publications are put; "": the queue of the stream, or of the default stream'
        " where streams are prefixes",
    )

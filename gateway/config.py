"""The settings of the gateway: one TOML file to frozen values, checked before anything starts.

A key that is not known is an error that names the nearest known one; nothing is read from the environment.
"""

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from mappings.topics import TopicError, check_mqtt_topic_filter

#: MQTT 3.1.1, section 2.2.3: the largest remaining length that four bytes can say.
MAXIMUM_REMAINING_LENGTH_BYTES: Final = 268_435_455
#: A packet identifier has 16 bits and is never 0.
MAXIMUM_PACKET_IDENTIFIERS: Final = 65_535
MAXIMUM_PORT: Final = 65_535
#: IBM MQ, MQ_SUB_POINT_LENGTH.
MAXIMUM_SUBSCRIPTION_POINT_CHARACTERS: Final = 128

_DEFAULT_STREAM: Final = "SYSTEM.BROKER.DEFAULT.STREAM"
#: Queues that no setting may name, and why.
_SYSTEM_QUEUES: Final = {
    "SYSTEM.BROKER.CONTROL.QUEUE": "the queue on which the broker takes its commands",
    "SYSTEM.DEAD.LETTER.QUEUE": "the dead-letter queue",
    "SYSTEM.RFHBRIDGE.AUDIT": "the queue from which the audit trail is written",
}
_MQ_NAME: Final = re.compile(r"[A-Za-z0-9./_%]{1,48}")
_LISTEN: Final = re.compile(r"(?:\[(?P<host6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:\s]+)):(?P<port>[0-9]{1,5})")


class ConfigurationError(Exception):
    """The configuration is wrong: the operator's fault. `problems` are complete sentences, `hint` says what to do."""

    def __init__(self, source: str, problems: tuple[str, ...], hint: str) -> None:
        super().__init__(source, problems, hint)
        self.source = source
        self.problems = problems
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.source}: {'; '.join(self.problems)} ({self.hint})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A TCP address; port 0 asks the system for a free one. As text: HOST:PORT, an IPv6 host in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The address of HOST:PORT or [IPV6]:PORT; ValueError says what is wrong."""
        found = _LISTEN.fullmatch(text)
        if found is None or int(found["port"]) > MAXIMUM_PORT:
            raise ValueError(f"{text!r} is not HOST:PORT or [IPV6]:PORT with a port from 0 to {MAXIMUM_PORT}")
        return cls(host=found["host6"] or found["host"], port=int(found["port"]))


def _checked_address(text: str) -> str:
    return str(Address.parse(text))


def _checked_mq_name(name: str) -> str:
    if not _MQ_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not an MQ name: 1 to 48 characters, letters, digits and . / _ %")
    return name


def _checked_topic_filter(topic_filter: str) -> str:
    try:
        check_mqtt_topic_filter(topic_filter)
    except TopicError as problem:
        raise ValueError(problem.hint) from None
    return topic_filter


def _listed(value: object) -> object:
    """TOML has arrays, the settings have tuples."""
    return tuple(value) if isinstance(value, list) else value


def _as_path(value: object) -> object:
    if value == "":
        raise ValueError("the name of the folder is empty")
    return Path(value) if isinstance(value, str) else value


ListenText = Annotated[str, AfterValidator(_checked_address)]
FolderPath = Annotated[Path, BeforeValidator(_as_path)]
MqName = Annotated[str, AfterValidator(_checked_mq_name)]
MqNames = Annotated[tuple[MqName, ...], BeforeValidator(_listed)]
TopicFilters = Annotated[tuple[Annotated[str, AfterValidator(_checked_topic_filter)], ...], BeforeValidator(_listed)]
SubscriptionPoint = Annotated[str, Field(min_length=1, max_length=MAXIMUM_SUBSCRIPTION_POINT_CHARACTERS)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Table(BaseModel):
    """A table of the file: frozen, no further keys, no value converted from another type (1 is a valid float)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class QueueManagerSettings(_Table):
    """The embedded queue manager."""

    name: MqName = Field(default="RFHBRIDGE", description="name of the embedded queue manager, 1 to 48 characters")


class PublishSettings(_Table):
    """From MQTT to MQ."""

    stream: MqName = Field(
        default="SYSTEM.BROKER.DEFAULT.STREAM",
        description="stream queue that publications are put on; MQTT clients subscribe on the default stream",
    )


class BrokerSettings(_Table):
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
        default={}, description="subscription point of what is published on a queue, by the name of the queue"
    )

    @property
    def all_input_queues(self) -> tuple[str, ...]:
        """Every queue that publications are taken from, beside the default stream and publish.stream."""
        return (*self.streams, *self.input_queues, *self.subscription_points)

    @model_validator(mode="after")
    def _checked_dialect(self) -> Self:
        if self.dialect == "mq6" and (self.input_queues or self.implicit_stream_naming):
            raise ValueError("input_queues and implicit_stream_naming belong to dialect 'wmb'; with 'mq6' name streams")
        return self


class SubscribeSettings(_Table):
    """From MQ to MQTT."""

    queue: MqName = Field(
        default="RFHBRIDGE.SUBSCRIBER", description="queue on which the gateway receives its publications"
    )
    reply_queue: MqName = Field(default="RFHBRIDGE.REPLY", description="queue on which the broker answers the gateway")
    answer_timeout_s: Seconds = Field(
        default=10.0, description="seconds that a SUBACK waits for the broker's answer before it refuses"
    )


class MqttSettings(_Table):
    """Limits of the MQTT server."""

    maximum_packet_bytes: int = Field(
        default=MAXIMUM_REMAINING_LENGTH_BYTES,
        ge=2,
        le=MAXIMUM_REMAINING_LENGTH_BYTES,
        description="bytes of the largest packet that is taken, by its remaining length",
    )
    maximum_in_flight: int = Field(
        default=100,
        ge=1,
        le=MAXIMUM_PACKET_IDENTIFIERS,
        description="PUBLISH packets of QoS 1 and 2 on their way to one client before the first is acknowledged",
    )
    connect_timeout_s: Seconds = Field(default=10.0, description="seconds that a new connection has for its CONNECT")
    maximum_connections: int = Field(
        default=10_000, ge=1, description="connections at one time; further ones are closed"
    )
    maximum_subscriptions: int = Field(
        default=2_000, ge=1, description="topic filters of one session; further ones are refused in the SUBACK"
    )
    maximum_unsent_bytes: int = Field(
        default=8_388_608, ge=1, description="bytes that may wait for one slow client before its deliveries pause"
    )


class AccessSettings(_Table):
    """What clients may do."""

    publish: TopicFilters = Field(
        default=("#",), description="topic filters a client may publish to; others are refused"
    )
    subscribe: TopicFilters = Field(
        default=("#",), description="topic filters a client may subscribe to; others are refused"
    )


class AuditSettings(_Table):
    """The audit trail."""

    enabled: bool = Field(default=True, description="whether every conversion leaves its records in the trail")
    segment_bytes: int = Field(default=67_108_864, ge=1, description="bytes after which a file of the trail is closed")
    segment_minutes: int = Field(default=15, ge=1, description="minutes after which a file of the trail is closed")


class ConversionSettings(_Table):
    """A queue whose messages are converted and moved to another; one [[conversion]] each."""

    source: MqName = Field(alias="from", description="queue whose messages are converted; it is emptied")
    target: MqName = Field(alias="to", description="queue that the converted messages are put on")
    header: Literal["mqrfh2", "mqrfh"] = Field(description='header that the messages get: "mqrfh2" or "mqrfh"')
    mode: Literal["strict", "extended"] = Field(
        default="strict",
        description='"strict": the nine mapped fields; "extended": the names of the subscription too',
    )
    description: str = Field(default="", description="what the conversion is for")


class HttpSettings(_Table):
    """Conversion over HTTP. It has no passwords: whoever reaches the port may use it."""

    enabled: bool = Field(default=False, description="whether messages can be converted over HTTP")
    listen: ListenText = Field(
        default="127.0.0.1:8080", description="address of the HTTP server, HOST:PORT or [IPV6]:PORT"
    )
    maximum_request_bytes: int = Field(
        default=4_194_304,
        ge=1,
        le=104_857_600,
        description="bytes of the largest message that is taken; IBM MQ's own default is 4 MiB, its ceiling 100 MiB",
    )

    @property
    def address(self) -> Address:
        """`listen` as host and port."""
        return Address.parse(self.listen)


class LogSettings(_Table):
    """The log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least important events that are logged: debug, info, warning or error"
    )
    format: Literal["text", "json"] = Field(
        default="text", description='"text": key=value; "json": one JSON object a line'
    )


Conversions = Annotated[tuple[ConversionSettings, ...], BeforeValidator(_listed)]


class Settings(_Table):
    """The complete settings. Defaults are those of a gateway on this machine alone, with its data under ./var."""

    listen: ListenText = Field(
        default="127.0.0.1:1883",
        description="address of the MQTT server, HOST:PORT or [IPV6]:PORT; port 0: any free one",
    )
    data: FolderPath = Field(
        default=Path("var"), description="folder of the store and the trail, relative to the working folder"
    )
    header: Literal["mqrfh2", "mqrfh"] = Field(
        default="mqrfh2", description='header of the commands that the gateway writes: "mqrfh2" or "mqrfh"'
    )
    queue_manager: QueueManagerSettings = QueueManagerSettings()
    publish: PublishSettings = PublishSettings()
    broker: BrokerSettings = BrokerSettings()
    subscribe: SubscribeSettings = SubscribeSettings()
    mqtt: MqttSettings = MqttSettings()
    access: AccessSettings = AccessSettings()
    conversion: Conversions = Field(default=(), description="queues whose messages are converted, one table for each")
    http: HttpSettings = HttpSettings()
    audit: AuditSettings = AuditSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _checked_queues(self) -> Self:
        problems = (*_queue_problems(self), *_conversion_problems(self))
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def address(self) -> Address:
        """`listen` as host and port."""
        return Address.parse(self.listen)

    @property
    def configuration_sha256(self) -> str:
        """SHA-256 (hex) of the effective settings as canonical JSON: sorted keys, no blanks, UTF-8."""
        settings = self.model_dump(mode="json", by_alias=True)
        canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @classmethod
    def load(cls, path: Path | None = None, overrides: Mapping[str, object] | None = None) -> Self:
        """The settings of a TOML file (None: the defaults), with overrides by dotted key; an override of None is none.

        Raises ConfigurationError for a file that cannot be read, an unknown key or a wrong value.
        """
        tables = {} if path is None else _read_toml(path)
        source = "configuration" if path is None else str(path)
        for key, value in (overrides or {}).items():
            if value is not None:
                _override(tables, key, value)
        try:
            return cls.model_validate(tables)
        except ValidationError as error:
            problems = tuple(_sentence(problem) for problem in error.errors())
            raise ConfigurationError(
                source, problems, "'rfhbridge check --example' prints every key with its default"
            ) from None


def _queue_problems(settings: Settings) -> Iterator[str]:
    """Queues of the gateway's own that are taken by somebody else, and addresses that are given twice."""
    own = {
        "publish.stream": settings.publish.stream,
        "subscribe.queue": settings.subscribe.queue,
        "subscribe.reply_queue": settings.subscribe.reply_queue,
    }
    for key, name in own.items():
        if name in _SYSTEM_QUEUES:
            yield f"{key}: {name!r} is {_SYSTEM_QUEUES[name]}"
        for other, other_name in own.items():
            if other > key and other_name == name:
                yield f"{other}: {name!r} is {key} already"
    streams = {_DEFAULT_STREAM, settings.publish.stream, *settings.broker.all_input_queues}
    for key in ("subscribe.queue", "subscribe.reply_queue"):
        if own[key] in streams and own[key] != own["publish.stream"]:
            yield f"{key}: {own[key]!r} is a stream"
    if settings.http.enabled and settings.http.listen == settings.listen and settings.http.address.port:
        yield f"http.listen: {settings.listen} is the address of the MQTT server already"


def _conversion_problems(settings: Settings) -> Iterator[str]:
    """What is wrong with the conversions together: sources that are somebody else's, and ways that lead back."""
    if not settings.conversion:
        return
    from mq_adapters.embedded.engine import AUDIT_QUEUE, CONTROL_QUEUE, DEAD_LETTER_QUEUE, DEFAULT_STREAM

    streams = (DEFAULT_STREAM, settings.publish.stream, *settings.broker.all_input_queues)
    taken = {
        CONTROL_QUEUE: "the broker takes its commands off it",
        AUDIT_QUEUE: "the audit trail is written from it",
        DEAD_LETTER_QUEUE: "what cannot be converted is put there",
        settings.subscribe.queue: "the gateway receives its publications on it",
        settings.subscribe.reply_queue: "the gateway receives its answers on it",
        **dict.fromkeys(streams, "it is a stream, whose messages the broker takes"),
    }
    targets: dict[str, str] = {}
    for index, conversion in enumerate(settings.conversion):
        source, target = conversion.source, conversion.target
        if source in taken:
            yield f"conversion.{index}.from: {source!r} cannot be converted: {taken[source]}"
        if target in (AUDIT_QUEUE, DEAD_LETTER_QUEUE):
            yield f"conversion.{index}.to: {target!r} takes nothing but what the gateway itself puts there"
        if source in targets:
            yield f"conversion.{index}.from: {source!r} has a conversion already; one queue, one conversion"
        targets.setdefault(source, target)
        if _leads_back(targets, source):
            yield f"conversion.{index}: what leaves {source!r} comes back to it; messages would go round for ever"


def _leads_back(targets: Mapping[str, str], source: str) -> bool:
    """Whether the way that starts at a queue comes to it again."""
    queue = source
    for _ in targets:
        queue = targets.get(queue, "")
        if queue == source:
            return True
    return False


def example_toml() -> str:
    """A configuration file with every key, its default, and what it is."""
    lines = ["# rfhbridge: every key with its default"]
    tables = {name: field for name, field in Settings.model_fields.items() if isinstance(field.default, _Table)}
    for name, field in Settings.model_fields.items():
        if name not in (*tables, *_TABLE_ARRAYS):
            lines += ["", f"# {field.description}", f"{name} = {_toml_value(field.default)}"]
    for name, field in tables.items():
        lines += ["", f"[{name}]", *_example_table(type(field.default))]
    for name, table in _TABLE_ARRAYS.items():
        lines += ["", f"# {Settings.model_fields[name].description}; remove the first # of each line", f"# [[{name}]]"]
        lines += [f"# {line}" for line in _example_table(table)]
    return "\n".join(lines) + "\n"


#: Tables of which a file may have any number, by their key.
_TABLE_ARRAYS: Final[dict[str, type[_Table]]] = {"conversion": ConversionSettings}
#: What the example says where a key has no default.
_EXAMPLE_VALUES: Final = {"from": "ORDERS.MQRFH", "to": "ORDERS.MQRFH2", "header": "mqrfh2"}


def known_keys() -> tuple[str, ...]:
    """Every key by its full path, `mqtt.maximum_in_flight` for example, and every table."""
    return tuple(_known_keys())


def _known_keys() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        yield name
        table = _TABLE_ARRAYS.get(name) or type(field.default)
        if issubclass(table, _Table):
            yield from (f"{name}.{inner.alias or key}" for key, inner in table.model_fields.items())


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            str(path), (f"cannot be read: {error.strerror}",), "name a readable file with --config"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), (f"is not TOML: {error}",), "correct the file at that place") from None


def _override(tables: dict[str, object], key: str, value: object) -> None:
    *parents, name = key.split(".")
    table = tables
    for parent in parents:
        child = table.get(parent)
        if not isinstance(child, dict):
            child = table[parent] = {}
        table = child
    table[name] = value


#: Pydantic's kinds of error whose own words speak of Python instead of TOML.
_IN_TOML_TERMS: Final = {
    "model_type": "must be a table",
    "tuple_type": "must be an array",
    "is_instance_of": "must be text",
}


def _sentence(problem: ErrorDetails) -> str:
    path = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown key {path!r}{_nearest('.'.join(part for part in problem['loc'] if isinstance(part, str)))}"
    if problem["type"] == "value_error":
        words = problem["msg"].removeprefix("Value error, ")
        return f"{path}: {words}" if path else words
    if problem["type"] == "missing":
        return f"{path}: is missing"
    message = _IN_TOML_TERMS.get(problem["type"]) or problem["msg"].replace("Input should be", "must be")
    return f"{path}: {message}, not {problem['input']!r}"


def _nearest(path: str) -> str:
    """The known key that looks most like an unknown one: by its full path, else by its last name."""
    keys = known_keys()
    close = difflib.get_close_matches(path, keys, n=1, cutoff=0.6)
    if not close:
        last = path.rpartition(".")[2]
        names = difflib.get_close_matches(last, [key.rpartition(".")[2] for key in keys], n=1, cutoff=0.0)
        close = [key for key in keys if key.rpartition(".")[2] == names[0]]
    return f", the nearest known key is {close[0]!r}"


def _example_table(table: type[_Table]) -> Iterator[str]:
    for key, field in table.model_fields.items():
        name = field.alias or key
        yield f"# {field.description}"
        yield f"{name} = {_toml_value(_EXAMPLE_VALUES[name] if field.is_required() else field.default)}"


def _toml_value(value: object) -> str:
    """TOML writes strings, numbers, booleans and arrays of our kind as JSON does."""
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return json.dumps(str(value) if isinstance(value, Path) else value)
